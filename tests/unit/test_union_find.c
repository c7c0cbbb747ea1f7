/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/util/union_find.h, against sets that are painted over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/union_find.h"

#define N 40u

static void union_find__random_joins(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t set[N], colour[N], sets = N;

		cn_union_init(set, N);
		for (uint32_t i = 0; i < N; i++) {
			colour[i] = i;
		}
		while (sets > 1) {
			uint32_t x = (uint32_t)(cn_random(&seed) % N);
			uint32_t y = (uint32_t)(cn_random(&seed) % N);
			uint32_t old = colour[x], new = colour[y];

			assert_int_equal(cn_union_join(set, x, y), old != new);
			sets -= old != new;
			for (uint32_t i = 0; i < N; i++) {
				colour[i] = colour[i] == old ? new : colour[i];
			}
			for (uint32_t i = 0; i < N; i++) {
				assert_int_equal(cn_union_find(set, i) == cn_union_find(set, x),
						 colour[i] == colour[x]);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(union_find__random_joins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
