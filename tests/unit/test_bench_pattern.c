/* SPDX-License-Identifier: BSD-2-Clause */
/* The pattern of --verify: right bytes pass, and every kind of wrong delivery is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tools/bench/pattern.h"

#define SEED 0x5eed
#define MAX  20000

static uint8_t buffer[MAX + 64], other[MAX + 64];

static void fill_check__every_length(void **state)
{
	size_t n, at;

	(void)state;
	for (n = 0; n < 5000; n++) {
		struct bench_pattern p = bench_pattern(SEED, n, 1, 2);

		memset(buffer, 0x55, n + 32);
		bench_pattern_fill(&p, buffer + 3, n); /* unaligned on purpose */
		assert_true(bench_pattern_check(&p, buffer + 3, n, &at));
		assert_int_equal(buffer[2], 0x55);
		assert_int_equal(buffer[3 + n], 0x55);
	}
}

static void byte__agrees_with_fill(void **state)
{
	struct bench_pattern p = bench_pattern(SEED, 9, 4, 5);
	size_t i;

	(void)state;
	bench_pattern_fill(&p, buffer, 1003);
	for (i = 0; i < 1003; i++) {
		assert_int_equal(buffer[i], bench_pattern_byte(&p, i));
	}
}

/* Any one wrong bit is found, and where it is. */
static void check__names_first_wrong_byte(void **state)
{
	struct bench_pattern p = bench_pattern(SEED, 1, 0, 1);
	size_t i, at;

	(void)state;
	bench_pattern_fill(&p, buffer, 9001);
	for (i = 0; i < 9001; i++) {
		buffer[i] ^= (uint8_t)(1u << (i % 8));
		if (i + 10 < 9001) {
			buffer[i + 10] ^= 1;
		}
		at = SIZE_MAX;
		assert_false(bench_pattern_check(&p, buffer, 9001, &at));
		assert_int_equal(at, i);
		buffer[i] ^= (uint8_t)(1u << (i % 8));
		if (i + 10 < 9001) {
			buffer[i + 10] ^= 1;
		}
	}
	assert_true(bench_pattern_check(&p, buffer, 9001, &at));
}

/* The right block at a wrong place: shifted by a byte, a word, a frame's payload. */
static void check__wrong_offset(void **state)
{
	static const size_t shifts[] = { 1, 3, 7, 8, 16, 64, 256, 1024, 1476, 2048, 8192 };
	struct bench_pattern p = bench_pattern(SEED, 2, 3, 4);
	size_t i, at;

	(void)state;
	bench_pattern_fill(&p, other, MAX);
	for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		assert_false(bench_pattern_check(&p, other + shifts[i], 4096, &at));
		assert_true(at < 8);
		/* two frames swapped within a block */
		memcpy(buffer, other, MAX);
		memcpy(buffer + 2000, other + 2000 + shifts[i], 1000);
		assert_false(bench_pattern_check(&p, buffer, MAX, &at));
		assert_uint_in_range(at, 2000, 2008);
	}
}

/* Another pair's block, another iteration's, a transposed pair's, another seed's. */
static void check__wrong_block(void **state)
{
	uint32_t s, d;
	size_t at;

	(void)state;
	for (s = 0; s < 16; s++) {
		for (d = 0; d < 16; d++) {
			struct bench_pattern p = bench_pattern(SEED, 5, s, d);
			struct bench_pattern wrong[] = {
				bench_pattern(SEED, 4, s, d),
				bench_pattern(SEED, 6, s, d),
				bench_pattern(SEED + 1, 5, s, d),
				bench_pattern(SEED, 5, s, (d + 1) % 16),
				bench_pattern(SEED, 5, (s + 1) % 16, d),
				bench_pattern(SEED, 5, s, BENCH_EVERYONE),
				bench_pattern(SEED, 5, d, s),
			};
			size_t i, n = sizeof(wrong) / sizeof(wrong[0]);

			for (i = 0; i < (s == d ? n - 1 : n); i++) {
				bench_pattern_fill(&wrong[i], buffer, 1024);
				assert_false(bench_pattern_check(&p, buffer, 1024, &at));
				assert_true(at < 8);
			}
		}
	}
}

/* A block that never came, and blocks that lack their last bytes, of every short length. */
static void poison__short_delivery(void **state)
{
	size_t n, missing, at;

	(void)state;
	for (n = 1; n < 300; n++) {
		struct bench_pattern p = bench_pattern(SEED, n, 7, 8);

		memset(buffer, 0, n + 1);
		for (missing = 1; missing <= n && missing <= 64; missing++) {
			bench_pattern_poison(&p, buffer, n);
			assert_int_equal(buffer[n], 0);
			bench_pattern_fill(&p, other, n);
			memcpy(buffer, other, n - missing);
			assert_false(bench_pattern_check(&p, buffer, n, &at));
			assert_int_equal(at, n - missing);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fill_check__every_length),
		cmocka_unit_test(byte__agrees_with_fill),
		cmocka_unit_test(check__names_first_wrong_byte),
		cmocka_unit_test(check__wrong_offset),
		cmocka_unit_test(check__wrong_block),
		cmocka_unit_test(poison__short_delivery),
	};

	print_message("seed %d\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
