/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that cannot be right by accident: what one rank sends to another in one iteration.
 *
 * A block is a run of 64-bit little-endian words, word i being base + i * step, where base and
 * step (odd) are mixed from the seed, the iteration, the source and the destination. No word
 * occurs twice in a block, so a shift by any number of words shows everywhere; blocks of other
 * pairs or iterations have another base and step. A block may end within a word.
 */
#ifndef COLLNET_BENCH_PATTERN_H
#define COLLNET_BENCH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The destination of a block that goes to everyone. */
#define BENCH_EVERYONE UINT32_MAX

struct bench_pattern {
	uint64_t base, step;
};

struct bench_pattern bench_pattern(uint64_t seed, uint64_t iteration, uint32_t source,
				   uint32_t destination);
void bench_pattern_fill(const struct bench_pattern *p, uint8_t *data, size_t bytes);
/* The byte at an offset. */
uint8_t bench_pattern_byte(const struct bench_pattern *p, size_t offset);
/* False: *offset is the first wrong byte. */
bool bench_pattern_check(const struct bench_pattern *p, const uint8_t *data, size_t bytes,
			 size_t *offset);
/*
 * Makes the first and last bytes (up to 64 each) of a receive buffer wrong beforehand, so that a
 * block which did not come, or not to its end, is never taken for right, however short it is.
 */
void bench_pattern_poison(const struct bench_pattern *p, uint8_t *data, size_t bytes);

#endif
