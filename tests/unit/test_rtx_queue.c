/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/rtx_queue.c: the ring grows and is returned, and SACK says what is retransmitted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/reorder.h"
#include "proto/rtx_queue.h"
#include "proto/wire.h"

#define FIRST 0xfffffff0u /* numbers wrap */

static struct cn_pool small;

static int begin(void **state)
{
	(void)state;
	return cn_pool_init(&small, CN_RTX_SMALL * sizeof(struct cn_rtx_frame), 1);
}

static int end(void **state)
{
	(void)state;
	assert_int_equal(small.free, small.count);
	cn_pool_fini(&small);
	return 0;
}

static struct cn_rtx_queue sent(uint32_t frames)
{
	struct cn_rtx_queue q = { 0 };

	cn_rtx_init(&q, FIRST);
	for (uint32_t i = 0; i < frames; i++) {
		assert_true(cn_rtx_reserve(&q, &small));
		*cn_rtx_at(&q, q.end) = (struct cn_rtx_frame){ .stream = i };
		q.next = ++q.end;
	}
	return q;
}

static void rtx_queue__grows(void **state)
{
	struct cn_rtx_queue q = sent(2);

	(void)state;
	assert_int_equal(small.free, 0);
	assert_int_equal(q.mask, CN_RTX_SMALL - 1);
	cn_rtx_free(&q, &small);
	q = sent(100);
	assert_int_equal(small.free, 1);
	assert_int_equal(q.mask, 127);
	assert_int_equal(cn_rtx_in_flight(&q), 100);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(cn_rtx_at(&q, FIRST + i)->stream, i);
	}
	cn_rtx_free(&q, &small);
}

/* The smallest ring is returned when nothing is in flight, a larger one is kept. */
static void rtx_queue__trim(void **state)
{
	struct cn_rtx_queue q = sent(1);

	(void)state;
	q.una = q.end;
	cn_rtx_trim(&q, &small);
	assert_null(q.ring);
	assert_int_equal(small.free, 1);
	q = sent(5);
	q.una = q.end;
	cn_rtx_trim(&q, &small);
	assert_non_null(q.ring);
	cn_rtx_free(&q, &small);
}

/* No memory for a small ring: no room. */
static void rtx_queue__pool_is_empty(void **state)
{
	struct cn_rtx_queue a = sent(1), b = { 0 };

	(void)state;
	assert_false(cn_rtx_reserve(&b, &small));
	cn_rtx_free(&a, &small);
	assert_true(cn_rtx_reserve(&b, &small));
	cn_rtx_free(&b, &small);
}

/* The frames that are retransmitted, of `frames` in flight, of which those from `next` on wait for
 * their retransmission already. */
static const char *resends(uint32_t frames, uint32_t next, uint32_t sack, uint32_t reorder)
{
	static char log[256];
	struct cn_rtx_queue q = sent(frames);
	size_t n = 0;

	q.next = FIRST + next;
	cn_rtx_sack(&q, sack, reorder);
	log[0] = '\0';
	for (q.next = q.una; cn_rtx_skip_sacked(&q), q.next != q.end; q.next++) {
		n += (size_t)snprintf(log + n, sizeof(log) - n, "%s%u", n > 0 ? " " : "",
				      q.next - FIRST);
	}
	cn_rtx_free(&q, &small);
	return log;
}

static void rtx_queue__sack(void **state)
{
	(void)state;
	/* none: all */
	assert_string_equal(resends(5, 5, 0, 8), "0 1 2 3 4");
	/* the missing ones up to the last sacked one; what follows it is on its way */
	assert_string_equal(resends(6, 6, CN_SACK_VALID | 0x06, 8), "0 1");
	assert_string_equal(resends(6, 6, CN_SACK_VALID | 0x1f, 8), "0");
	/* what is more than the reorder buffer ahead was dropped */
	assert_string_equal(resends(12, 12, CN_SACK_VALID | 0x01, 8), "0 9 10 11");
	assert_string_equal(resends(12, 12, CN_SACK_VALID | 0x01, 4), "0 5 6 7 8 9 10 11");
	/* what waited for its retransmission is not on its way */
	assert_string_equal(resends(6, 3, CN_SACK_VALID | 0x01, 8), "0 3 4 5");
}

/* A later SACK of less is right: the receiver dropped what it had. */
static void rtx_queue__sack_is_withdrawn(void **state)
{
	struct cn_rtx_queue q = sent(4);

	(void)state;
	cn_rtx_sack(&q, CN_SACK_VALID | 0x07, 8);
	assert_true(cn_rtx_at(&q, FIRST + 1)->sacked && cn_rtx_at(&q, FIRST + 3)->sacked);
	cn_rtx_sack(&q, CN_SACK_VALID | 0x04, 8);
	assert_false(cn_rtx_at(&q, FIRST + 1)->sacked);
	assert_true(cn_rtx_at(&q, FIRST + 3)->sacked);
	cn_rtx_sack(&q, 0, 8);
	assert_false(cn_rtx_at(&q, FIRST + 3)->sacked);
	cn_rtx_free(&q, &small);
}

/* An old SACK, or one of a copy that came late: a refused frame is retransmitted all the same. */
static void rtx_queue__refused_is_not_sacked(void **state)
{
	struct cn_rtx_queue q = sent(4);

	(void)state;
	cn_rtx_at(&q, FIRST + 1)->refused = cn_rtx_at(&q, FIRST + 3)->refused = true;
	cn_rtx_sack(&q, CN_SACK_VALID | 0x03, 8);
	assert_false(cn_rtx_at(&q, FIRST + 1)->sacked);
	assert_true(cn_rtx_at(&q, FIRST + 2)->sacked);
	assert_false(cn_rtx_at(&q, FIRST + 3)->sacked);
	cn_rtx_free(&q, &small);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rtx_queue__grows),
		TEST(rtx_queue__trim),
		TEST(rtx_queue__pool_is_empty),
		TEST(rtx_queue__sack),
		TEST(rtx_queue__sack_is_withdrawn),
		TEST(rtx_queue__refused_is_not_sacked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
