/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws from the random numbers of a seed. */
#ifndef TESTS_DRAW_H
#define TESTS_DRAW_H

#include "util/util.h"

/* From low to high, both included. */
static inline uint64_t between(uint64_t *r, uint64_t low, uint64_t high)
{
	return low + cn_random(r) % (high - low + 1);
}

static inline bool chance(uint64_t *r, uint32_t percent)
{
	return cn_random(r) % 100 < percent;
}

#define PICK(r, array) ((array)[cn_random(r) % (sizeof(array) / sizeof((array)[0]))])

#endif
