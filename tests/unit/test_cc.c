/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/cc.c: slow start, congestion avoidance, and the decrease at a loss or a timeout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/cc.h"

#define WINDOW 256u

static uint32_t ack; /* all before it are acknowledged */

static struct cn_cc cc_new(uint32_t initial_cwnd)
{
	struct cn_cc c;

	ack = 1000;
	cn_cc_init(&c, initial_cwnd, WINDOW, ack);
	return c;
}

/* A whole window is sent and acknowledged. */
static void round_trip(struct cn_cc *c)
{
	uint32_t n = c->cwnd;

	ack += n;
	cn_cc_acked(c, n, ack, n, WINDOW);
}

static void cc__slow_start_doubles(void **state)
{
	struct cn_cc c = cc_new(16);

	(void)state;
	for (uint32_t cwnd = 16; cwnd <= WINDOW; cwnd *= 2) {
		assert_int_equal(c.cwnd, cwnd);
		round_trip(&c);
	}
	round_trip(&c);
	assert_int_equal(c.cwnd, WINDOW);
}

static void cc__initial_window_is_bounded(void **state)
{
	struct cn_cc c = cc_new(2 * WINDOW);

	(void)state;
	assert_int_equal(c.cwnd, WINDOW);
}

/* Less than half of the window is in use: nothing is known about the rest of it. */
static void cc__slow_start_needs_use(void **state)
{
	struct cn_cc c = cc_new(16);

	(void)state;
	cn_cc_acked(&c, 7, ack += 7, 7, WINDOW);
	assert_int_equal(c.cwnd, 16);
	cn_cc_acked(&c, 8, ack += 8, 8, WINDOW);
	assert_int_equal(c.cwnd, 24);
}

static void cc__slow_start_ends_at_ssthresh(void **state)
{
	struct cn_cc c = cc_new(16);

	(void)state;
	c.ssthresh = 20;
	round_trip(&c);
	assert_int_equal(c.cwnd, 20);
	for (uint32_t cwnd = 20; cwnd < 30; cwnd++) {
		assert_int_equal(c.cwnd, cwnd);
		round_trip(&c);
	}
}

/* One frame per window, by parts of it too. */
static void cc__congestion_avoidance(void **state)
{
	struct cn_cc c = cc_new(16);

	(void)state;
	c.ssthresh = 16;
	cn_cc_acked(&c, 15, ack += 15, 16, WINDOW);
	assert_int_equal(c.cwnd, 16);
	cn_cc_acked(&c, 1, ack += 1, 16, WINDOW);
	assert_int_equal(c.cwnd, 17);
	assert_int_equal(c.cwnd_count, 0);
	c.cwnd = WINDOW;
	round_trip(&c);
	assert_int_equal(c.cwnd, WINDOW);
}

static void cc__loss_halves_once_per_window(void **state)
{
	struct cn_cc c = cc_new(128);

	(void)state;
	cn_cc_loss(&c, ack, ack + 128);
	assert_int_equal(c.cwnd, 64);
	assert_int_equal(c.ssthresh, 64);
	cn_cc_loss(&c, ack + 100, ack + 140); /* of the same window */
	assert_int_equal(c.cwnd, 64);
	cn_cc_loss(&c, ack + 128, ack + 192);
	assert_int_equal(c.cwnd, 32);
}

/* A flight may be small for want of data: 8 frames are the floor, until cwnd itself is small. */
static void cc__loss_in_a_small_flight(void **state)
{
	static const uint32_t after[] = { 8, 4, 2, 2 };
	struct cn_cc c = cc_new(128);

	(void)state;
	for (int i = 0; i < 4; i++) {
		cn_cc_loss(&c, ack, ack + 1);
		assert_int_equal(c.cwnd, after[i]);
		ack += 1;
	}
}

/* Two frames, then slow start to half of what was in flight, then congestion avoidance. */
static void cc__timeout(void **state)
{
	struct cn_cc c = cc_new(128);

	(void)state;
	cn_cc_timeout(&c, ack, ack + 128);
	assert_int_equal(c.cwnd, 2);
	assert_int_equal(c.ssthresh, 64);
	for (uint32_t cwnd = 2; cwnd <= 64; cwnd *= 2) {
		assert_int_equal(c.cwnd, cwnd);
		round_trip(&c);
	}
	assert_int_equal(c.cwnd, 65);
	/* A timeout counts at any time, also within the window of the last decrease. */
	cn_cc_loss(&c, ack, ack + 65);
	cn_cc_timeout(&c, ack, ack + 65);
	assert_int_equal(c.cwnd, 2);
}

/* More than half of the sequence numbers were acknowledged since the last loss. */
static void cc__loss_after_a_wrap(void **state)
{
	struct cn_cc c = cc_new(128);

	(void)state;
	for (int i = 0; i < 3; i++) {
		ack += 0x40000000u;
		cn_cc_acked(&c, 1, ack, 1, WINDOW);
	}
	cn_cc_loss(&c, ack, ack + 128);
	assert_int_equal(c.cwnd, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cc__slow_start_doubles),
		cmocka_unit_test(cc__initial_window_is_bounded),
		cmocka_unit_test(cc__slow_start_needs_use),
		cmocka_unit_test(cc__slow_start_ends_at_ssthresh),
		cmocka_unit_test(cc__congestion_avoidance),
		cmocka_unit_test(cc__loss_halves_once_per_window),
		cmocka_unit_test(cc__loss_in_a_small_flight),
		cmocka_unit_test(cc__timeout),
		cmocka_unit_test(cc__loss_after_a_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
