/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of small numbers, a bit each: CN_BIT_WORDS(n) words for the numbers below n, the lowest bit
 * of the first word for 0.
 */
#ifndef CN_BITS_H
#define CN_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CN_BIT_WORDS(n) (((size_t)(n) + 63) / 64)

static inline bool cn_bit(const uint64_t *set, uint32_t i)
{
	return (set[i / 64] >> i % 64 & 1) != 0;
}

static inline void cn_bit_set(uint64_t *set, uint32_t i)
{
	set[i / 64] |= (uint64_t)1 << i % 64;
}

static inline void cn_bit_clear(uint64_t *set, uint32_t i)
{
	set[i / 64] &= ~((uint64_t)1 << i % 64);
}

/* The lowest number of a word that has one. */
static inline uint32_t cn_bit_first(uint64_t word)
{
	return (uint32_t)__builtin_ctzll(word);
}

#endif
