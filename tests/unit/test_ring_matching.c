/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of segments against all orders and directions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "sched/allgather/ring_matching.h"

#define MOST 7u

static struct cn_ring_matching work;

/* Whether the segments that are left can follow an end of value `last` and close the ring. */
static bool goes_on(const struct cn_ring_segment *d, uint32_t n, uint32_t most, uint32_t used,
		    uint32_t last)
{
	if (used == (1u << n) - 1) {
		return last + d[0].end[0] <= most;
	}
	for (uint32_t i = 1; i < n; i++) {
		for (int side = 0; side < 2 && (used >> i & 1) == 0; side++) {
			if (last + d[i].end[side] <= most &&
			    goes_on(d, n, most, used | 1u << i, d[i].end[!side])) {
				return true;
			}
		}
	}
	return false;
}

/* order[] is a ring of all n segments, and what touches is no more than `most`. */
static void check_order(const struct cn_ring_segment *d, uint32_t n, uint32_t most,
			const uint32_t *order)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t a = order[i], b = order[(i + 1) % n];

		assert_true(a / 2 < n);
		seen |= 1u << a / 2;
		assert_true(d[a / 2].end[!(a % 2)] + d[b / 2].end[b % 2] <= most);
	}
	assert_int_equal(seen, (1u << n) - 1);
}

static bool check(const struct cn_ring_segment *d, uint32_t n, uint32_t most)
{
	uint32_t order[MOST];
	bool got = cn_ring_matching_ring(&work, d, n, most, order);

	if (got) {
		check_order(d, n, most, order);
	}
	assert_int_equal(cn_ring_matching_ring(&work, d, n, most, NULL), got);
	if (got != goes_on(d, n, most, 1, d[0].end[1])) {
		for (uint32_t i = 0; i < n; i++) {
			print_error("(%u, %u) ", d[i].end[0], d[i].end[1]);
		}
		fail_msg("at most %u: %s", most, got ? "no ring" : "there is a ring");
	}
	return got;
}

/* All segments of 0 .. 4, up to four of them. */
static void cn_ring_matching_ring__all_small(void **state)
{
	uint32_t rings = 0, seen = 0;

	(void)state;
	assert_int_equal(cn_ring_matching_reserve(&work, MOST, NULL), COLLNET_OK);
	for (uint32_t n = 1; n <= 4; n++) {
		for (uint32_t x = 0, end = 1; end > 0; x++) {
			struct cn_ring_segment d[4];
			uint32_t y = x;

			for (uint32_t i = 0; i < n; i++, y /= 15) {
				uint32_t a = 0, b = y % 15; /* the b-th pair of 0 <= a <= b < 5 */

				while (b >= 5 - a) {
					b -= 5 - a++;
				}
				d[i] = (struct cn_ring_segment){ { a, a + b } };
			}
			end = y == 0;
			for (uint32_t most = 1; end && most <= 8; most++) {
				rings += check(d, n, most);
				seen++;
			}
		}
	}
	cn_ring_matching_done(&work);
	assert_true(rings > seen / 10 && rings < seen - seen / 10);
}

static void cn_ring_matching_ring__random(void **state)
{
	uint64_t seed = 20070712;
	uint32_t rings = 0, seen = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	assert_int_equal(cn_ring_matching_reserve(&work, MOST, NULL), COLLNET_OK);
	for (; seen < 20000; seen++) {
		struct cn_ring_segment d[MOST];
		uint32_t n = 4 + (uint32_t)(cn_random(&seed) % (MOST - 3));
		uint32_t most = 2 + (uint32_t)(cn_random(&seed) % 9);

		/* Near the border between yes and no: the ends about most / 2. */
		for (uint32_t i = 0; i < n; i++) {
			for (int side = 0; side < 2; side++) {
				uint32_t x = (uint32_t)(cn_random(&seed) % (most + 1));
				uint32_t y = (uint32_t)(cn_random(&seed) % (most + 1));

				d[i].end[side] = cn_random(&seed) % 2 == 0 ? x : x < y ? x : y;
			}
		}
		rings += check(d, n, most);
	}
	cn_ring_matching_done(&work);
	print_message("%u of %u have a ring\n", rings, seen);
	assert_true(rings > 4000 && rings < 16000);
}

/* Matched they could all be; but two sorts of segments have no end that meets the other sort. */
static void cn_ring_matching_ring__needs_one_cycle(void **state)
{
	static const struct cn_ring_segment apart[] = {
		{ { 0, 0 } }, { { 6, 6 } }, { { 1, 1 } }, { { 5, 5 } }
	};
	static const struct cn_ring_segment linked[] = {
		{ { 0, 1 } }, { { 6, 6 } }, { { 0, 1 } }, { { 5, 5 } }
	};

	(void)state;
	assert_int_equal(cn_ring_matching_reserve(&work, 4, NULL), COLLNET_OK);
	assert_false(check(apart, 4, 6));
	assert_true(check(linked, 4, 6));
	cn_ring_matching_done(&work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_ring_matching_ring__all_small),
		cmocka_unit_test(cn_ring_matching_ring__random),
		cmocka_unit_test(cn_ring_matching_ring__needs_one_cycle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
