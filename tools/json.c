/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small writer of JSON. Strings are written as UTF-8 if they are, and byte by byte as U+00XX if
 * not, so that the output is always valid.
 */
#include "tools/tool.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

/* Length of the valid UTF-8 sequence at s, 0 if there is none. */
static size_t utf8_length(const unsigned char *s)
{
	uint32_t c;
	size_t n, i;

	if (s[0] < 0x80) {
		return 1;
	} else if (s[0] >= 0xc2 && s[0] < 0xe0) {
		n = 2;
		c = s[0] & 0x1f;
	} else if (s[0] >= 0xe0 && s[0] < 0xf0) {
		n = 3;
		c = s[0] & 0x0f;
	} else if (s[0] >= 0xf0 && s[0] < 0xf5) {
		n = 4;
		c = s[0] & 0x07;
	} else {
		return 0;
	}
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80) {
			return 0; /* the terminating zero too ends here */
		}
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c < 0xe000)) {
		return 0;
	}
	return n;
}

static void write_string(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n;

	putc('"', out);
	while (*s != 0) {
		n = utf8_length(s);
		if (*s == '"' || *s == '\\') {
			putc('\\', out);
			putc(*s, out);
			s++;
		} else if (n == 0 || *s < 0x20 || *s == 0x7f) {
			fprintf(out, "\\u%04x", *s);
			s++;
		} else {
			fwrite(s, 1, n, out);
			s += n;
		}
	}
	putc('"', out);
}

static void item(struct json *j, const char *key)
{
	if (j->some[j->depth]) {
		fputs(", ", j->out);
	}
	j->some[j->depth] = true;
	if (key != NULL) {
		write_string(j->out, key);
		fputs(": ", j->out);
	}
}

static void open_level(struct json *j, const char *key, char c)
{
	item(j, key);
	assert(j->depth < JSON_DEPTH);
	putc(c, j->out);
	j->some[++j->depth] = false;
}

static void close_level(struct json *j, char c)
{
	assert(j->depth > 0);
	j->depth--;
	putc(c, j->out);
}

void json_begin(struct json *j, FILE *out)
{
	j->out = out;
	j->depth = 0;
	j->some[0] = false;
}

bool json_end(struct json *j)
{
	assert(j->depth == 0);
	putc('\n', j->out);
	return fflush(j->out) == 0 && !ferror(j->out);
}

void json_object(struct json *j, const char *key)
{
	open_level(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_level(j, '}');
}

void json_array(struct json *j, const char *key)
{
	open_level(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_level(j, ']');
}

void json_string(struct json *j, const char *key, const char *value)
{
	item(j, key);
	if (value == NULL) {
		fputs("null", j->out);
	} else {
		write_string(j->out, value);
	}
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	item(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_double(struct json *j, const char *key, double value, int decimals)
{
	item(j, key);
	if (isfinite(value)) {
		fprintf(j->out, "%.*f", decimals, value);
	} else {
		fputs("null", j->out);
	}
}

void json_bool(struct json *j, const char *key, bool value)
{
	item(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	item(j, key);
	fputs("null", j->out);
}
