/* SPDX-License-Identifier: BSD-2-Clause */
/* Union-find over the numbers 0 .. n - 1, in an array of the caller. */
#ifndef CN_UNION_FIND_H
#define CN_UNION_FIND_H

#include "util/util.h"

static inline void cn_union_init(uint32_t *set, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		set[i] = i;
	}
}

/* The representative of x's set (path halving). */
static inline uint32_t cn_union_find(uint32_t *set, uint32_t x)
{
	while (set[x] != x) {
		set[x] = set[set[x]];
		x = set[x];
	}
	return x;
}

/* Joins the sets of x and y; false: the same set. */
static inline bool cn_union_join(uint32_t *set, uint32_t x, uint32_t y)
{
	uint32_t a = cn_union_find(set, x), b = cn_union_find(set, y);

	set[a] = b;
	return a != b;
}

#endif
