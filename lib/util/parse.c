/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers, rates, sizes and names from text.
 *
 * A text is parsed as a whole or rejected; nothing overflows or depends on the locale, and *out is
 * written only on success.
 */
#include <string.h>

#include "util/util.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Case-insensitive comparison (ASCII). */
static bool same_word(const char *a, const char *b)
{
	while (*a != '\0' && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return lower(*a) == lower(*b);
}

/* Parses decimal digits at *p, at least one, and advances *p. */
static bool parse_digits(const char **p, uint64_t *out)
{
	uint64_t n = 0, digit;

	if (!is_digit(**p)) {
		return false;
	}
	for (; is_digit(**p); (*p)++) {
		digit = (uint64_t)(**p - '0');
		if (n > (UINT64_MAX - digit) / 10) {
			return false;
		}
		n = n * 10 + digit;
	}
	*out = n;
	return true;
}

bool cn_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t n;

	if (!parse_digits(&text, &n) || *text != '\0' || n < min || n > max) {
		return false;
	}
	*out = n;
	return true;
}

/* Parses the digits after a decimal point, times `factor`; a fraction of a bit is an error. */
static bool parse_fraction(const char **p, uint64_t factor, uint64_t *out)
{
	uint64_t sum = 0;

	if (!is_digit(**p)) {
		return false;
	}
	for (; is_digit(**p); (*p)++) {
		if (**p != '0' && (factor == 0 || factor % 10 != 0)) {
			return false;
		}
		factor /= 10;
		sum += (uint64_t)(**p - '0') * factor;
	}
	*out = sum;
	return true;
}

/* The factor of the unit; 0: unknown. */
static uint64_t rate_unit(const char *text)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = {
		{ "bit", 1 },		{ "kbit", 1000 },	   { "mbit", 1000000 },
		{ "gbit", 1000000000 }, { "tbit", 1000000000000 },
	};
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (same_word(text, units[i].name)) {
			return units[i].factor;
		}
	}
	return 0;
}

bool cn_parse_rate(const char *text, uint64_t *bits_per_second)
{
	uint64_t whole, fraction = 0, factor;

	if (!parse_digits(&text, &whole)) {
		return false;
	}
	factor = rate_unit(text + strspn(text, ".0123456789"));
	if (*text == '.') {
		text++;
		if (!parse_fraction(&text, factor, &fraction)) {
			return false;
		}
	}
	if (is_digit(*text) || *text == '.' || factor == 0 ||
	    whole > (UINT64_MAX - fraction) / factor || whole * factor + fraction == 0) {
		return false;
	}
	*bits_per_second = whole * factor + fraction;
	return true;
}

bool cn_parse_size(const char *text, uint64_t *bytes)
{
	unsigned int shift = 0;
	uint64_t n;

	if (!parse_digits(&text, &n)) {
		return false;
	}
	if (*text != '\0') {
		switch (lower(*text)) {
		case 'k':
			shift = 10;
			break;
		case 'm':
			shift = 20;
			break;
		case 'g':
			shift = 30;
			break;
		default:
			return false;
		}
		text++;
	}
	if (*text != '\0' || n > UINT64_MAX >> shift) {
		return false;
	}
	*bytes = n << shift;
	return true;
}

static bool is_of_name(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '-' && c <= ':') ||
	       c == '@' || c == '_';
}

bool cn_valid_name(const char *name)
{
	size_t len = 0;

	while (len <= COLLNET_NAME_MAX && is_of_name(name[len])) {
		len++;
	}
	return len >= 1 && len <= COLLNET_NAME_MAX && name[len] == '\0';
}

bool cn_parse_ethertype(const char *text, uint64_t *out)
{
	uint64_t v = 0;

	if (strncmp(text, "0x", 2) != 0 && strncmp(text, "0X", 2) != 0) {
		return cn_parse_uint(text, 0x0600, 0xFFFF, out);
	}
	text += 2;
	if (text[0] == '\0' || strlen(text) > 4) {
		return false;
	}
	for (; *text != '\0'; text++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF";
		const char *d = strchr(digits, *text);

		if (d == NULL) {
			return false;
		}
		v = v * 16 + (uint64_t)(d - digits) % 16;
	}
	*out = v;
	return v >= 0x0600;
}
