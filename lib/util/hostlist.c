/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/hostlist.h"

#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 9 /* of a number in brackets */

/* A number of at most DIGITS_MAX digits. */
static bool parse_number(const char **p, uint32_t *out, int *width)
{
	uint32_t n = 0;
	int digits = 0;

	for (; **p >= '0' && **p <= '9' && digits < DIGITS_MAX; (*p)++, digits++) {
		n = n * 10 + (uint32_t)(**p - '0');
	}
	*out = n;
	*width = digits;
	return digits > 0 && !(**p >= '0' && **p <= '9');
}

/* "07" or "01-12" at p; *next is what follows. The width is the first number's. */
static bool parse_range(struct cn_hostlist *h, unsigned int g, const char *p, const char **next)
{
	int width;

	h->present[g] = p;
	if (!parse_number(&p, &h->now[g], &h->width[g])) {
		return false;
	}
	h->last[g] = h->now[g];
	if (*p == '-') {
		p++;
		if (!parse_number(&p, &h->last[g], &width) || h->last[g] < h->now[g]) {
			return false;
		}
	}
	*next = p;
	return *p == ',' || *p == ']';
}

/* Parses the element at h->at and sets every group to its first number. False: syntax error. */
static bool parse_element(struct cn_hostlist *h)
{
	const char *q = h->at;

	h->groups = 0;
	for (;;) {
		h->before[h->groups] = q;
		q += strcspn(q, "[],");
		h->before_len[h->groups] = (int)(q - h->before[h->groups]);
		if (*q != '[') {
			break;
		}
		if (h->groups == CN_HOSTLIST_GROUPS) {
			return false;
		}
		const char *next = h->ranges[h->groups] = ++q;

		do {
			if (!parse_range(h, h->groups, next, &next)) {
				return false;
			}
		} while (*next++ == ',');
		q = next;
		(void)parse_range(h, h->groups, h->ranges[h->groups], &next);
		h->groups++;
	}
	if (*q == ']' || q == h->at) {
		return false;
	}
	h->at = q;
	return true;
}

/* Advances to the next name, the last group fastest. False: that was the last one. */
static bool advance(struct cn_hostlist *h)
{
	const char *next;

	for (unsigned int g = h->groups; g-- > 0;) {
		if (h->now[g] < h->last[g]) {
			h->now[g]++;
			return true;
		}
		next = h->present[g] + strcspn(h->present[g], ",]");
		if (*next == ',') {
			(void)parse_range(h, g, next + 1, &next);
			return true;
		}
		(void)parse_range(h, g, h->ranges[g], &next);
	}
	return false;
}

static void spell(const struct cn_hostlist *h, char *name, size_t size)
{
	size_t at = 0;

	for (unsigned int g = 0; g <= h->groups && at < size; g++) {
		at += (size_t)snprintf(name + at, size - at, "%.*s", h->before_len[g],
				       h->before[g]);
		if (g < h->groups && at < size) {
			at += (size_t)snprintf(name + at, size - at, "%0*u", h->width[g],
					       h->now[g]);
		}
	}
}

void cn_hostlist_begin(struct cn_hostlist *h, const char *text)
{
	memset(h, 0, sizeof(*h));
	h->at = text;
}

int cn_hostlist_next(struct cn_hostlist *h, char *name, size_t size)
{
	if (h->within) {
		h->within = advance(h);
	}
	if (!h->within) {
		if (h->before[0] != NULL) { /* not the first element */
			if (*h->at == '\0') {
				return 0;
			}
			h->at++; /* the comma */
		}
		if (!parse_element(h)) {
			return -1;
		}
		h->within = true;
	}
	spell(h, name, size);
	return 1;
}

const char *cn_hostlist_found(const struct cn_hostlist *h, char text[CN_HOSTLIST_FOUND])
{
	snprintf(text, CN_HOSTLIST_FOUND, *h->at == '\0' ? "its end" : "'%.40s'", h->at);
	return text;
}
