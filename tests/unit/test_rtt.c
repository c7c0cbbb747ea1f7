/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/rtt.c: the estimator of RFC 6298 and the timeout made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/rtt.h"

static void rtt__before_any_sample(void **state)
{
	struct cn_rtt r = { 0 };

	(void)state;
	assert_int_equal(cn_rtt_timeout(&r, 120, 30, 25), 120);
}

static void rtt__first_sample(void **state)
{
	struct cn_rtt r = { 0 };

	(void)state;
	cn_rtt_sample(&r, 1000);
	assert_int_equal(r.srtt, 1000);
	assert_int_equal(r.rttvar, 500);
	assert_int_equal(cn_rtt_timeout(&r, 1, 30, 25), 1000 + 4 * 500 + 25);
}

/* Worked by hand: rttvar = 3/4 500 + 1/4 800 = 575; srtt = 7/8 1000 + 1/8 1800 = 1100. */
static void rtt__second_sample(void **state)
{
	struct cn_rtt r = { 0 };

	(void)state;
	cn_rtt_sample(&r, 1000);
	cn_rtt_sample(&r, 1800);
	assert_int_equal(r.rttvar, 575);
	assert_int_equal(r.srtt, 1100);
	cn_rtt_sample(&r, 300);
	assert_int_equal(r.rttvar, 575 - 143 + 200);
	assert_int_equal(r.srtt, 1100 - 137 + 37);
}

static void rtt__floor(void **state)
{
	struct cn_rtt r = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		cn_rtt_sample(&r, 50 * CN_US);
	}
	assert_uint_in_range(r.srtt, 49 * CN_US, 51 * CN_US);
	assert_int_equal(cn_rtt_timeout(&r, 1, 30 * CN_MS, 25 * CN_MS), 55 * CN_MS);
}

static void rtt__converges(void **state)
{
	struct cn_rtt r = { 0 };

	(void)state;
	cn_rtt_sample(&r, 100 * CN_MS);
	for (int i = 0; i < 200; i++) {
		cn_rtt_sample(&r, 10 * CN_MS);
	}
	assert_uint_in_range(r.srtt, 10 * CN_MS - 10, 10 * CN_MS + 10);
	assert_true(cn_rtt_timeout(&r, 1, 1, 0) < 11 * CN_MS);
}

/* No time at all is a sample too, and never taken for "no sample". */
static void rtt__zero(void **state)
{
	struct cn_rtt r = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		cn_rtt_sample(&r, 0);
		assert_true(r.srtt != 0);
	}
	assert_int_equal(cn_rtt_timeout(&r, 500, 30, 25), 55);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rtt__before_any_sample), cmocka_unit_test(rtt__first_sample),
		cmocka_unit_test(rtt__second_sample),	  cmocka_unit_test(rtt__floor),
		cmocka_unit_test(rtt__converges),	  cmocka_unit_test(rtt__zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
