/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/unexpected_limit.c: the counts at both ends of a pair of nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/unexpected_limit.h"

#define LIMIT 4u

/* How many frames of operation seq go before the limit. */
static uint32_t sends(struct cn_unexpected_limit *n, uint32_t seq, uint32_t most)
{
	uint32_t sent = 0;

	while (sent < most && cn_unexpected_limit_allows(n, seq, LIMIT)) {
		cn_unexpected_limit_sent(n, seq);
		sent++;
	}
	return sent;
}

static void unexpected_limit__bounds_frames(void **state)
{
	struct cn_unexpected_limit n = { 0 };

	(void)state;
	assert_int_equal(sends(&n, 0, 3), 3);
	assert_int_equal(sends(&n, 1, 9), 1); /* one limit for all operations */
	cn_unexpected_limit_started(&n, 1);   /* operation 0: its frames do not count */
	assert_int_equal(sends(&n, 0, 100), 100);
	assert_int_equal(sends(&n, 1, 9), 3);
	cn_unexpected_limit_started(&n, 1); /* known already */
	assert_int_equal(sends(&n, 1, 9), 0);
	cn_unexpected_limit_started(&n, 3); /* further than it has sent */
	assert_int_equal(sends(&n, 2, 9), 9);
	assert_int_equal(sends(&n, 3, 9), 4);
}

/* Operations without frames in between may go by unnoticed: their numbers are bounded as well. */
static void unexpected_limit__bounds_operations(void **state)
{
	struct cn_unexpected_limit n = { 0 };

	(void)state;
	assert_int_equal(sends(&n, 10, 1), 1);
	assert_true(cn_unexpected_limit_allows(&n, 10 + CN_UNEXPECTED_OPS - 1, LIMIT));
	assert_false(cn_unexpected_limit_allows(&n, 10 + CN_UNEXPECTED_OPS, LIMIT));
	assert_int_equal(sends(&n, 12, 1), 1);
	cn_unexpected_limit_started(&n, 11); /* now 12 is the first */
	assert_true(cn_unexpected_limit_allows(&n, 12 + CN_UNEXPECTED_OPS - 1, LIMIT));
	assert_false(cn_unexpected_limit_allows(&n, 12 + CN_UNEXPECTED_OPS, LIMIT));
}

/* STARTED is due after so many frames, unless a frame to the other node showed it. */
/* Of an operation that the receiver might take for an earlier one no frame is sent. */
static void unexpected_limit__bounds_numbers(void **state)
{
	struct cn_unexpected_limit n = { 0 };

	(void)state;
	assert_true(cn_unexpected_limit_allows(&n, CN_UNEXPECTED_APART - 1, LIMIT));
	assert_false(cn_unexpected_limit_allows(&n, CN_UNEXPECTED_APART, LIMIT));
	cn_unexpected_limit_started(&n, 1);
	assert_true(cn_unexpected_limit_allows(&n, CN_UNEXPECTED_APART, LIMIT));
	assert_false(cn_unexpected_limit_stale(&n, CN_UNEXPECTED_RENEW - 1));
	assert_true(cn_unexpected_limit_stale(&n, CN_UNEXPECTED_RENEW));
	cn_unexpected_limit_notified(&n, CN_UNEXPECTED_RENEW);
	assert_false(cn_unexpected_limit_stale(&n, CN_UNEXPECTED_RENEW));
}

static void unexpected_limit__started_is_due(void **state)
{
	struct cn_unexpected_limit n = { 0 };

	(void)state;
	assert_false(cn_unexpected_limit_received(&n, 0, 0, 2));
	assert_true(cn_unexpected_limit_received(&n, 0, 0, 2));
	cn_unexpected_limit_notified(&n, 1);
	assert_false(cn_unexpected_limit_received(&n, 0, 0, 2)); /* it knows */
	assert_false(cn_unexpected_limit_received(&n, 0, 0, 2));
	assert_false(cn_unexpected_limit_received(&n, 1, 1, 2));
	cn_unexpected_limit_sent(&n, 1); /* its first frame shows that 1 has started */
	assert_false(cn_unexpected_limit_received(&n, 2, 2, 2));
	assert_true(cn_unexpected_limit_received(&n, 2, 2, 2));
	assert_int_equal(n.started, 3); /* what it sends, it has started */
}

static void unexpected_limit_due__by_operations(void **state)
{
	struct cn_unexpected_limit n = { 0 };

	(void)state;
	assert_false(cn_unexpected_limit_due(&n, 100, 2)); /* nothing was received */
	assert_false(cn_unexpected_limit_received(&n, 8, 8, 2));
	assert_false(cn_unexpected_limit_due(&n, 8 + CN_UNEXPECTED_OPS / 2 - 1, 2));
	assert_true(cn_unexpected_limit_due(&n, 8 + CN_UNEXPECTED_OPS / 2, 2));
	assert_true(cn_unexpected_limit_due(&n, 8, 1)); /* the limit became smaller */
	cn_unexpected_limit_notified(&n, 9);
	assert_false(cn_unexpected_limit_due(&n, 100, 1));
}

/* The same at the end of the numbers, which wrap. */
/* All operations have started before the first frame comes: no start will look again. */
static void unexpected_limit_received__by_operations(void **state)
{
	struct cn_unexpected_limit n = { .started = 0 };

	(void)state;
	assert_false(cn_unexpected_limit_received(&n, 3, 3 + CN_UNEXPECTED_OPS / 2 - 1, 9));
	assert_true(cn_unexpected_limit_received(&n, 4, 3 + CN_UNEXPECTED_OPS / 2, 9));
	cn_unexpected_limit_notified(&n, 4 + CN_UNEXPECTED_OPS / 2);
	assert_false(cn_unexpected_limit_received(&n, 5, 60, 9)); /* it knows */
	assert_true(cn_unexpected_limit_received(&n, 40, 60, 9));
}

static void unexpected_limit__numbers_wrap(void **state)
{
	struct cn_unexpected_limit n = { .started = UINT32_MAX, .notified = UINT32_MAX };

	(void)state;
	assert_int_equal(sends(&n, UINT32_MAX, 2), 2);
	assert_int_equal(sends(&n, 0, 9), 2);
	cn_unexpected_limit_started(&n, 0);
	assert_int_equal(sends(&n, UINT32_MAX, 9), 9);
	assert_int_equal(sends(&n, 1, 9), 2);
	assert_false(cn_unexpected_limit_received(&n, 1, 1, 2)); /* its frames showed 0 and 1 */
	assert_false(cn_unexpected_limit_received(&n, 2, 2, 2));
	assert_true(cn_unexpected_limit_received(&n, 2, 2, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unexpected_limit__bounds_frames),
		cmocka_unit_test(unexpected_limit__bounds_operations),
		cmocka_unit_test(unexpected_limit__bounds_numbers),
		cmocka_unit_test(unexpected_limit__started_is_due),
		cmocka_unit_test(unexpected_limit_due__by_operations),
		cmocka_unit_test(unexpected_limit_received__by_operations),
		cmocka_unit_test(unexpected_limit__numbers_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
