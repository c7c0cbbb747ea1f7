/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/global_window.c: frames in flight (eta of Algorithm 2), and that losses leak none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/global_window.h"

#define SEED 99u

static void flight__sent_and_received(void **state)
{
	struct cn_window w = { .limit = 4 };
	struct cn_flight f = { 0 };

	(void)state;
	for (uint32_t i = 1; i <= 4; i++) {
		assert_true(cn_window_open(&w, &f, COLLNET_WINDOW_OFF));
		cn_flight_sent(&f, &w, COLLNET_WINDOW_OFF);
		assert_int_equal(w.in_flight, i);
	}
	assert_false(cn_window_open(&w, &f, COLLNET_WINDOW_OFF));
	cn_flight_received(&f, &w);
	assert_int_equal(w.in_flight, 3);
	assert_true(cn_window_open(&w, &f, COLLNET_WINDOW_OFF));
	assert_false(cn_window_open(&w, &f, 3));
	assert_int_equal(w.peak, 4);
}

/* What was kept back may go once frames have left the window, not when others are sent. */
static void flight__kept_back(void **state)
{
	struct cn_window w = { .limit = 4 };
	struct cn_flight f = { 0 }, other = { 0 };

	(void)state;
	cn_flight_sent(&f, &w, 2);
	w.blocked = true;
	cn_flight_sent(&other, &w, 4);
	assert_true(w.blocked);
	cn_flight_received(&f, &w);
	assert_false(w.blocked);
	w.blocked = true;
	cn_flight_end(&f, &w); /* it has nothing in flight */
	assert_true(w.blocked);
	cn_flight_end(&other, &w);
	assert_false(w.blocked);
}

/* Behind: more received than sent counts as nothing, and may be caught up. */
static void flight__negative_counts_as_zero(void **state)
{
	struct cn_window w = { .limit = 4 };
	struct cn_flight f = { 0 };

	(void)state;
	for (int i = 0; i < 10; i++) {
		cn_flight_received(&f, &w);
		assert_int_equal(w.in_flight, 0);
	}
	for (int i = 0; i < 10; i++) {
		cn_flight_sent(&f, &w, COLLNET_WINDOW_OFF);
		assert_int_equal(w.in_flight, 0);
	}
	cn_flight_sent(&f, &w, COLLNET_WINDOW_OFF);
	assert_int_equal(w.in_flight, 1);
}

/* Only sends: acknowledgements are what opens the window. */
static void flight__one_way(void **state)
{
	struct cn_window w = { .limit = 8 };
	struct cn_flight f = { 0 };
	int asked = 0;

	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_true(cn_window_open(&w, &f, COLLNET_WINDOW_OFF));
		asked += cn_flight_sent(&f, &w, COLLNET_WINDOW_OFF);
	}
	assert_false(cn_window_open(&w, &f, COLLNET_WINDOW_OFF));
	assert_int_equal(asked, 1); /* by the last one: else no acknowledgement would come */
	cn_flight_acked(&f, &w, 8, 0);
	assert_int_equal(w.in_flight, 0);
}

/* Where acknowledgements are the clock, the frame that closes the window requests one, also if
 * frames of another flight are in it. */
static void flight__others_fill_the_window(void **state)
{
	struct cn_window w = { .limit = COLLNET_WINDOW_OFF };
	struct cn_flight f = { .by_acks = true }, other = { 0 };
	bool asked = false;

	(void)state;
	cn_flight_sent(&other, &w, 4);
	while (cn_window_open(&w, &f, 4)) {
		assert_int_equal(w.in_flight, 1 + f.in_flight);
		asked = cn_flight_sent(&f, &w, 4);
	}
	assert_int_equal(f.in_flight, 3);
	assert_true(asked);
}

/* One of a small limit beside one of a larger limit, which has more in flight: a frame at a time,
 * each after a frame of the other, and never beyond the larger limit. */
static void flight__beside_a_larger_limit(void **state)
{
	struct cn_window w = { .limit = COLLNET_WINDOW_OFF };
	struct cn_flight small = { 0 }, large = { 0 };

	(void)state;
	for (int i = 0; i < 16; i++) {
		assert_true(cn_window_open(&w, &large, 16));
		cn_flight_sent(&large, &w, 16);
	}
	assert_false(cn_window_open(&w, &small, 4));
	cn_flight_acked(&large, &w, 8, 0);
	assert_true(cn_window_open(&w, &small, 4));
	cn_flight_sent(&small, &w, 4);
	assert_false(cn_window_open(&w, &small, 4)); /* one of its own is in flight */
	cn_flight_acked(&small, &w, 1, 0);
	assert_false(cn_window_open(&w, &small, 4)); /* the last one was its own */
	cn_flight_sent(&large, &w, 16);
	assert_true(cn_window_open(&w, &small, 4));
	w.limit = 9; /* the node's own is kept */
	assert_int_equal(w.in_flight, 9);
	assert_false(cn_window_open(&w, &small, 4));
}

/* After a window without an answer, every half window has an ACK request, at any limit. */
static void flight__requests_acks_in_time(void **state)
{
	(void)state;
	for (uint32_t limit = 1; limit < 40; limit++) {
		struct cn_window w = { .limit = limit };
		struct cn_flight f = { 0 };
		uint32_t unanswered = 0;

		for (int i = 0; i < 1000; i++) {
			bool ask;

			assert_true(cn_window_open(&w, &f, COLLNET_WINDOW_OFF));
			ask = cn_flight_sent(&f, &w, COLLNET_WINDOW_OFF);
			unanswered++;
			if (ask) {
				cn_flight_acked(&f, &w, unanswered, 0);
				unanswered = 0;
			}
		}
	}
}

static void flight__off(void **state)
{
	struct cn_window w = { .limit = COLLNET_WINDOW_OFF };
	struct cn_flight f = { 0 };

	(void)state;
	for (int i = 0; i < 100000; i++) {
		assert_true(cn_window_open(&w, &f, COLLNET_WINDOW_OFF));
		assert_false(cn_flight_sent(&f, &w, COLLNET_WINDOW_OFF));
	}
	assert_int_equal(w.in_flight, 100000);
}

static void flight__no_room_at_all(void **state)
{
	struct cn_window w = { .limit = 0 };
	struct cn_flight f = { 0 };

	(void)state;
	assert_false(cn_window_open(&w, &f, COLLNET_WINDOW_OFF));
	(void)cn_flight_sent(&f, &w, 0);
}

static void flight__end_gives_back(void **state)
{
	struct cn_window w = { .limit = 10 };
	struct cn_flight f = { 0 }, g = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		cn_flight_sent(&f, &w, COLLNET_WINDOW_OFF);
		cn_flight_sent(&g, &w, COLLNET_WINDOW_OFF);
	}
	assert_int_equal(w.in_flight, 6);
	cn_flight_end(&f, &w);
	assert_int_equal(w.in_flight, 3);
	cn_flight_end(&f, &w);
	assert_int_equal(w.in_flight, 3);
	cn_flight_end(&g, &w);
	assert_int_equal(w.in_flight, 0);
}

/* Refused frames make room for other flights, and take it again when they are sent again. */
static void flight__refused(void **state)
{
	struct cn_window w = { .limit = COLLNET_WINDOW_OFF };

	(void)state;
	for (int by_acks = 0; by_acks < 2; by_acks++) {
		struct cn_flight later = { .by_acks = by_acks != 0 }, earlier = { 0 };

		for (int i = 0; i < 13; i++) {
			cn_flight_sent(&later, &w, 13);
		}
		assert_false(cn_window_open(&w, &later, 9));
		for (int i = 0; i < 13; i++) {
			cn_flight_refused(&later, &w);
		}
		assert_int_equal(w.in_flight, 0);
		for (int i = 0; i < 9; i++) {
			assert_true(cn_window_open(&w, &earlier, 9));
			cn_flight_sent(&earlier, &w, 9);
		}
		for (int i = 0; i < 4; i++) {
			assert_true(cn_flight_resend(&later, &w));
		}
		assert_false(cn_flight_resend(&later, &w));
		assert_int_equal(w.in_flight, 13);
		cn_flight_acked(&earlier, &w, 9, 0);
		for (int i = 0; i < 8; i++) {
			assert_true(cn_flight_resend(&later, &w));
		}
		assert_int_equal(w.in_flight, 12);
		cn_flight_acked(&later, &w, 13, 1); /* one was accepted after all */
		assert_int_equal(w.in_flight, 0);
		assert_int_equal(later.refused, 0);
	}
}

/* The acknowledgement of a frame that counted as refused does not close a full window any further:
 * it counts as sent when there is room again. */
static void flight__refused_and_acknowledged(void **state)
{
	struct cn_window w = { .limit = 24 };
	struct cn_flight f = { 0 }, other = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		cn_flight_sent(&f, &w, 24);
	}
	for (int i = 0; i < 12; i++) { /* in turn: more are not acknowledged than in flight */
		cn_flight_received(&f, &w);
		cn_flight_sent(&f, &w, 24);
	}
	cn_flight_refused(&f, &w);
	cn_flight_refused(&f, &w);
	assert_int_equal(w.in_flight, 2);
	while (cn_window_open(&w, &other, 24)) {
		cn_flight_sent(&other, &w, 24);
	}
	cn_flight_acked(&f, &w, 2, 2);
	assert_int_equal(w.in_flight, 24);
	cn_flight_acked(&other, &w, 1, 0);
	assert_int_equal(w.in_flight, 23);
	cn_flight_received(&f, &w); /* and both count */
	assert_int_equal(w.in_flight, 24);
	assert_int_equal(f.in_flight, 3);
	assert_int_equal(f.deferred, 0);
	cn_flight_end(&f, &w);
	assert_int_equal(w.in_flight, 21);
}

/*
 * Several operations of several nodes exchange frames over a wire that loses and repeats them.
 * Only first sendings and first arrivals are counted: the sum never passes the limit, and when
 * all has arrived and is acknowledged nothing is left.
 */
static void flight__random_exchanges(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		uint64_t random = SEED + seed;
		struct cn_window w = { .limit = 1 + (uint32_t)(cn_random(&random) % 20) };
		struct cn_flight f[4] = { 0 };
		uint32_t to_send[4], to_receive[4], lost[4] = { 0 }, unacked[4] = { 0 };
		uint32_t left = 0;

		for (int k = 0; k < 4; k++) {
			to_send[k] = (uint32_t)(cn_random(&random) % 300);
			to_receive[k] = (uint32_t)(cn_random(&random) % 300);
			left += to_send[k] + to_receive[k];
		}
		for (uint64_t step = 0; left > 0 && step < 1000000; step++) {
			int k = (int)(cn_random(&random) % 4);

			if (cn_random(&random) % 2 && to_send[k] &&
			    cn_window_open(&w, &f[k], 1000)) {
				cn_flight_sent(&f[k], &w, 1000);
				to_send[k]--;
				left--;
				unacked[k]++;
				lost[k] += cn_random(&random) % 4 == 0;
			}
			if (to_receive[k] && cn_random(&random) % 3 == 0) {
				cn_flight_received(&f[k], &w);
				to_receive[k]--;
				left--;
			}
			if (lost[k] && cn_random(&random) % 2) {
				lost[k]--; /* sent again: counted nowhere */
			}
			if (!lost[k] && unacked[k]) {
				uint32_t n = 1 + (uint32_t)(cn_random(&random) % unacked[k]);

				cn_flight_acked(&f[k], &w, n, 0);
				unacked[k] -= n;
			}
			assert_true(w.in_flight <= w.limit && w.peak <= w.limit);
			assert_int_equal(w.in_flight, f[0].in_flight + f[1].in_flight +
							      f[2].in_flight + f[3].in_flight);
		}
		assert_int_equal(left, 0); /* it went on to the end */
		for (int k = 0; k < 4; k++) {
			cn_flight_acked(&f[k], &w, unacked[k], 0);
		}
		assert_int_equal(w.in_flight, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flight__sent_and_received),
		cmocka_unit_test(flight__kept_back),
		cmocka_unit_test(flight__negative_counts_as_zero),
		cmocka_unit_test(flight__one_way),
		cmocka_unit_test(flight__others_fill_the_window),
		cmocka_unit_test(flight__beside_a_larger_limit),
		cmocka_unit_test(flight__requests_acks_in_time),
		cmocka_unit_test(flight__off),
		cmocka_unit_test(flight__no_room_at_all),
		cmocka_unit_test(flight__end_gives_back),
		cmocka_unit_test(flight__refused),
		cmocka_unit_test(flight__refused_and_acknowledged),
		cmocka_unit_test(flight__random_exchanges),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
