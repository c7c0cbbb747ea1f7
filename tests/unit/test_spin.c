/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/util/spin.h: when a wait polls, and when it sleeps at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/spin.h"

#define STEP (1 * CN_US)

static struct cn_spin s;
static cn_time now;

static int setup(void **state)
{
	(void)state;
	s = (struct cn_spin){ .waiting = false };
	now = 1000 * CN_MS;
	return 0;
}

/* A wait of this length: how long it polls. */
static cn_time wait(cn_time length)
{
	const cn_time began = now, end = now + length;

	while (now < end && cn_spin_wait(&s, now)) {
		now += STEP;
	}
	const cn_time polled = now - began;

	now = end;
	cn_spin_over(&s, now);
	return polled;
}

static void wait__polls_after_a_short_one(void **state)
{
	(void)state;
	assert_int_equal(wait(20 * CN_US), 0); /* nothing is known yet */
	assert_int_equal(wait(20 * CN_US), 20 * CN_US);
	assert_int_equal(wait(49 * CN_US), 49 * CN_US);
	assert_int_equal(wait(5 * CN_MS), CN_SPIN_MAX);
	assert_int_equal(wait(5 * CN_MS), 0);
	assert_int_equal(wait(20 * CN_US), 0);
	assert_int_equal(wait(20 * CN_US), 20 * CN_US);
}

static void wait__long_ones_poll_now_and_then(void **state)
{
	cn_time polled = 0;

	(void)state;
	wait(1 * CN_US);
	for (uint32_t i = 0; i < 10 * CN_SPIN_PROBE; i++) {
		polled += wait(100 * CN_US);
	}
	assert_int_equal(polled, 10 * CN_SPIN_MAX);
}

/* Others ran for two milliseconds while this one yielded: it is not to happen again for long. */
static void wait__sleeps_where_others_need_the_processor(void **state)
{
	const cn_time lost = 2 * CN_MS;

	(void)state;
	for (int found = 0; found < 2; found++) {
		setup(NULL);
		wait(20 * CN_US);
		assert_true(cn_spin_wait(&s, now));
		now += lost;
		if (!found) {
			assert_false(cn_spin_wait(&s, now));
			now += STEP;
		}
		cn_spin_over(&s, now);
		for (cn_time until = now + (CN_SPIN_SHARE - 1) * lost; now < until;) {
			assert_int_equal(wait(20 * CN_US), 0);
		}
		now += 2 * lost;
		wait(20 * CN_US);
		assert_int_equal(wait(20 * CN_US), 20 * CN_US);
	}
}

/* Each time at once again: the polls get rarer, up to a limit; after a time without, they do not.
 */
static void wait__others_that_keep_needing_it(void **state)
{
	cn_time bar = 0, before = 0;

	(void)state;
	s.not_before = now;
	for (int i = 0; i < 12; i++, before = bar) {
		now = s.not_before;
		wait(20 * CN_US);
		assert_true(cn_spin_wait(&s, now));
		now += 10 * CN_MS;
		cn_spin_over(&s, now);
		bar = s.not_before - now;
		assert_int_equal(bar, i == 0			     ? CN_SPIN_SHARE * 10 * CN_MS
				      : 2 * before < CN_SPIN_BAR_MAX ? 2 * before
								     : CN_SPIN_BAR_MAX);
	}
	now = s.not_before + bar;
	wait(20 * CN_US);
	assert_true(cn_spin_wait(&s, now));
	now += 10 * CN_MS;
	cn_spin_over(&s, now);
	assert_int_equal(s.not_before - now, CN_SPIN_SHARE * 10 * CN_MS);
}

static void over__without_a_wait_means_nothing(void **state)
{
	(void)state;
	wait(20 * CN_US);
	now += 10 * CN_MS;
	cn_spin_over(&s, now);
	assert_int_equal(wait(20 * CN_US), 20 * CN_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(wait__polls_after_a_short_one, setup),
		cmocka_unit_test_setup(wait__long_ones_poll_now_and_then, setup),
		cmocka_unit_test_setup(wait__sleeps_where_others_need_the_processor, setup),
		cmocka_unit_test_setup(wait__others_that_keep_needing_it, setup),
		cmocka_unit_test_setup(over__without_a_wait_means_nothing, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
