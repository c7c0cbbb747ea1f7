/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks and node names as ranges. Text that is too long is cut. */
#include <stdio.h>
#include <string.h>

#include "coll/ranges.h"

void cn_rank_list_add(struct cn_rank_list *l, uint32_t rank)
{
	if (l->count > 0 && rank == l->last + 1) {
		l->last = rank;
		l->count++;
		return;
	}
	cn_rank_list_end(l);
	l->first = l->last = rank;
	l->count = 1;
}

void cn_rank_list_end(struct cn_rank_list *l)
{
	const char *comma = l->len > 0 ? ", " : "";
	int n;

	if (l->count == 0 || l->len + 1 >= l->cap) {
		return;
	}
	n = l->first == l->last
		    ? snprintf(l->text + l->len, l->cap - l->len, "%s%u", comma, l->first)
		    : snprintf(l->text + l->len, l->cap - l->len, "%s%u-%u", comma, l->first,
			       l->last);
	l->len = l->len + (size_t)n < l->cap ? l->len + (size_t)n : l->cap - 1;
	l->count = 0;
}

/* Bytes before the number at the end of a name, of which at most 8 digits count. */
static size_t stem(const char *name)
{
	size_t n = strlen(name);

	while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9' && strlen(name) - n < 8) {
		n--;
	}
	return n;
}

/* True if `next` is `name` with its last number increased by one. */
static bool counts_up(const char *name, const char *next)
{
	size_t n = stem(name);
	uint64_t a, b;

	return n == stem(next) && strncmp(name, next, n) == 0 &&
	       cn_parse_uint(name + n, 0, UINT32_MAX, &a) &&
	       cn_parse_uint(next + n, 0, UINT32_MAX, &b) && a + 1 == b;
}

void cn_name_list_end(struct cn_name_list *l)
{
	const char *comma = l->len > 0 ? ", " : "";
	int n;

	if (l->first == NULL || l->len + 1 >= sizeof(l->text)) {
		return;
	}
	n = l->first == l->last
		    ? snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s", comma, l->first)
		    : snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s-%s", comma,
			       l->first, l->last);
	l->len = l->len + (size_t)n < sizeof(l->text) ? l->len + (size_t)n : sizeof(l->text) - 1;
	l->first = NULL;
}

void cn_name_list_add(struct cn_name_list *l, const char *name)
{
	if (l->first == NULL || !counts_up(l->last, name)) {
		cn_name_list_end(l);
		l->first = name;
	}
	l->last = name;
}
