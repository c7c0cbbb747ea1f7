/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that cannot be right by accident. Pure; written so that a compiler makes vectors of the
 * two loops, for sixteen ranks on two cores check hundreds of megabytes an iteration.
 */
#include "tools/bench/pattern.h"

#include <endian.h>
#include <string.h>

#include "util/util.h"

#define POISON 64

struct bench_pattern bench_pattern(uint64_t seed, uint64_t iteration, uint32_t source,
				   uint32_t destination)
{
	struct bench_pattern p;
	uint64_t x;

	x = cn_mix64(seed);
	x = cn_mix64(x ^ iteration);
	x = cn_mix64(x ^ ((uint64_t)source << 32 | destination));
	p.base = x;
	p.step = cn_mix64(x) | 1;
	return p;
}

void bench_pattern_fill(const struct bench_pattern *p, uint8_t *data, size_t bytes)
{
	size_t words = bytes / 8, i;
	uint64_t x;

	for (i = 0; i < words; i++) {
		x = htole64(p->base + i * p->step);
		memcpy(data + i * 8, &x, 8);
	}
	x = htole64(p->base + words * p->step);
	memcpy(data + words * 8, &x, bytes % 8);
}

uint8_t bench_pattern_byte(const struct bench_pattern *p, size_t offset)
{
	return (uint8_t)((p->base + offset / 8 * p->step) >> (offset % 8 * 8));
}

/* Whether whole words [from, to) are right; no branch inside, for speed. */
static bool words_right(const struct bench_pattern *p, const uint8_t *data, size_t from, size_t to)
{
	uint64_t wrong = 0, x;
	size_t i;

	for (i = from; i < to; i++) {
		memcpy(&x, data + i * 8, 8);
		wrong |= x ^ htole64(p->base + i * p->step);
	}
	return wrong == 0;
}

bool bench_pattern_check(const struct bench_pattern *p, const uint8_t *data, size_t bytes,
			 size_t *offset)
{
	size_t words = bytes / 8, at = 0, i;

	while (at < words) {
		size_t to = words - at < 512 ? words : at + 512;

		if (!words_right(p, data, at, to)) {
			break;
		}
		at = to;
	}
	for (i = at * 8; i < bytes; i++) {
		if (data[i] != bench_pattern_byte(p, i)) {
			*offset = i;
			return false;
		}
	}
	return true;
}

void bench_pattern_poison(const struct bench_pattern *p, uint8_t *data, size_t bytes)
{
	size_t i, n = bytes < POISON ? bytes : POISON;

	for (i = 0; i < n; i++) {
		data[i] = (uint8_t)~bench_pattern_byte(p, i);
		data[bytes - 1 - i] = (uint8_t)~bench_pattern_byte(p, bytes - 1 - i);
	}
}
