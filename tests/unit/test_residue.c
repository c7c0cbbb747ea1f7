/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/sched/residue: against what defines divisors and inverses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/residue.h"

static void gcd__largest_that_divides_both(void **state)
{
	(void)state;
	for (uint32_t a = 1; a <= 60; a++) {
		for (uint32_t b = 1; b <= 60; b++) {
			uint32_t d = a < b ? a : b;

			while (a % d != 0 || b % d != 0) {
				d--;
			}
			assert_int_equal(cn_gcd(a, b), d);
		}
	}
	assert_int_equal(cn_gcd(0, 7), 7);
	assert_int_equal(cn_gcd(7, 0), 7);
	assert_int_equal(cn_gcd(UINT32_MAX, 3), 3);
}

static void inverse__gives_one(void **state)
{
	(void)state;
	for (uint32_t m = 2; m <= 60; m++) {
		for (uint32_t a = 1; a <= 150; a++) {
			if (cn_gcd(a, m) == 1) {
				assert_uint_in_range(cn_inverse(a, m), 1, m - 1);
				assert_int_equal((uint64_t)a * cn_inverse(a, m) % m, 1);
			}
		}
	}
	assert_int_equal(cn_inverse(5, 1), 0);
	assert_int_equal((uint64_t)65537 * cn_inverse(65537, UINT32_MAX - 4) % (UINT32_MAX - 4), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gcd__largest_that_divides_both),
		cmocka_unit_test(inverse__gives_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
