/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/op_unexpected.c on a simulated cluster: a rank that does not call holds up its own job
 * alone, and nodes that call in time are not held up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "two_jobs.h"

/* Ranks 0 to 2 of job x call operations of 1 MB in all, outstanding at once, and rank 3 does not.
 * An exchange of job y between the same nodes ends; so do those of x when rank 3 calls. */
static void one_does_not_call(enum cn_op_kind op, uint64_t bytes, uint32_t window)
{
	struct two_jobs *c = two_jobs_begin(window);

	for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
		for (uint32_t r = 0; r < 3; r++) {
			two_jobs_call(c, &c->x, r, k, op, bytes, 60 * SECOND);
		}
	}
	two_jobs_run(c, 2 * SECOND);
	for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
		two_jobs_call(c, &c->y, r, 0, CN_OP_ALLTOALL, 100000, 5 * SECOND);
	}
	two_jobs_run(c, 6 * SECOND);
	two_jobs_assert_done(&c->y, 0);
	assert_int_equal(two_jobs_refusals(c), 0);
	for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
		two_jobs_call(c, &c->x, 3, k, op, bytes, 60 * SECOND);
	}
	two_jobs_run(c, 20 * SECOND);
	for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
		two_jobs_assert_done(&c->x, k);
	}
	two_jobs_end(c);
}

static void op_unexpected__a_rank_that_does_not_call_stops_no_other_job(void **state)
{
	const uint32_t windows[] = { COLLNET_WINDOW_AUTO, COLLNET_WINDOW_OFF };

	(void)state;
	for (int i = 0; i < 2; i++) {
		one_does_not_call(CN_OP_ALLTOALL, 250000, windows[i]);
		one_does_not_call(CN_OP_ALLGATHER, 250000, windows[i]);
		one_does_not_call(CN_OP_BCAST, 1000000, windows[i]);
		one_does_not_call(CN_OP_SCATTER, 250000, windows[i]);
	}
}

/*
 * The pool of host 3 is so small that it refuses frames of an operation of job x. They are not in
 * flight while they wait for their retransmission: the window stays open for job y, on hosts 0
 * to 2.
 */
static void op_unexpected__refused_frames_do_not_hold_the_window(void **state)
{
	struct two_jobs *c = two_jobs_begin_with(COLLNET_WINDOW_AUTO, 16, 3);

	(void)state;
	c->x.window = 8;
	c->y.window = 4;
	for (uint32_t r = 0; r < 3; r++) {
		two_jobs_call(c, &c->x, r, 0, CN_OP_GATHER, 100000, 60 * SECOND);
	}
	two_jobs_run(c, SECOND);
	assert_true(two_jobs_refusals(c) > 0);
	for (uint32_t r = 0; r < 3; r++) {
		two_jobs_call(c, &c->y, r, 0, CN_OP_ALLTOALL, 100000, 5 * SECOND);
	}
	two_jobs_run(c, 6 * SECOND);
	two_jobs_assert_done(&c->y, 0);
	two_jobs_call(c, &c->x, 3, 0, CN_OP_GATHER, 100000, 60 * SECOND);
	two_jobs_run(c, 2 * SECOND);
	two_jobs_assert_done(&c->x, 0);
	for (uint32_t h = 0; h < TWO_JOBS_HOSTS; h++) {
		assert_int_equal(
			cn_node_window(cn_engine_node(cn_sim_engine(c->sim, h)))->in_flight, 0);
	}
	two_jobs_end(c);
}

/* The sender's error names the node and the operation. */
static void op_unexpected__deadline_names_the_node_that_has_not_started(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);

	(void)state;
	for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
		two_jobs_call(c, &c->x, r, 0, CN_OP_BARRIER, 0, 5 * SECOND);
	}
	two_jobs_run(c, SECOND);
	two_jobs_assert_done(&c->x, 0);
	for (uint32_t r = 0; r < 3; r++) {
		two_jobs_call(c, &c->x, r, 1, CN_OP_SCATTER, 1000000, SECOND);
	}
	two_jobs_run(c, SECOND / 2);
	cn_sim_cut(c->sim, 3, 2, true); /* it cannot say that it has not called */
	two_jobs_run(c, SECOND);
	assert_int_equal(c->x.calls[0][1].told, 1);
	assert_int_equal(c->x.calls[0][1].status, COLLNET_ETIMEOUT);
	assert_non_null(strstr(c->x.calls[0][1].text,
			       "node h3 has not started operation 2 of job x"));
	two_jobs_end(c);
}

/* Without a deadline, the others wait ten minutes for rank 0, and ten more for its data; when its
 * node dies, they are told at once. */
static void op_deadline__none(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);

	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t r = 1; r < TWO_JOBS_HOSTS; r++) {
			two_jobs_call(c, &c->x, r, k, CN_OP_BCAST, 100000, CN_NEVER);
		}
	}
	two_jobs_run(c, 600 * SECOND);
	two_jobs_call(c, &c->x, 0, 0, CN_OP_BCAST, 100000, CN_NEVER);
	two_jobs_run(c, SECOND);
	two_jobs_assert_done(&c->x, 0);
	two_jobs_run(c, 600 * SECOND);
	for (uint32_t r = 1; r < TWO_JOBS_HOSTS; r++) {
		assert_int_equal(c->x.calls[r][1].told, 0);
	}
	cn_sim_cut(c->sim, 0, 2, true);
	two_jobs_run(c, 2 * SECOND);
	for (uint32_t r = 1; r < TWO_JOBS_HOSTS; r++) {
		assert_int_equal(c->x.calls[r][1].status, COLLNET_EPEER);
		assert_non_null(strstr(c->x.calls[r][1].text, "node h0 stopped answering"));
	}
	two_jobs_end(c);
}

/* Operations of every kind, called one after the other and late by turns: every
 * one ends, more than an operation's number distinguishes on the wire. */
static void op_unexpected__many_operations_end(void **state)
{
	static const enum cn_op_kind kinds[] = { CN_OP_BCAST,	CN_OP_GATHER, CN_OP_ALLTOALL,
						 CN_OP_SCATTER, CN_OP_BCAST,  CN_OP_ALLGATHER,
						 CN_OP_GATHER };
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);

	(void)state;
	for (uint32_t n = 0; n < 4200; n++) {
		uint32_t slot = n % TWO_JOBS_CALLS, late = n / 8 % TWO_JOBS_HOSTS;
		uint64_t bytes = n % 64 < 56 ? 10 : 60000;

		if (slot == 0 && n > 0) { /* the late one calls what the others have called */
			for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
				uint32_t i = n - TWO_JOBS_CALLS + k;

				two_jobs_call(c, &c->x, i / 8 % TWO_JOBS_HOSTS, k, kinds[i % 7],
					      i % 64 < 56 ? 10 : 60000, 60 * SECOND);
			}
			two_jobs_run(c, 300 * CN_MS);
			for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
				two_jobs_assert_done(&c->x, k);
			}
		}
		for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
			if (r != late) {
				two_jobs_call(c, &c->x, r, slot, kinds[n % 7], bytes, 60 * SECOND);
			}
		}
	}
	assert_int_equal(two_jobs_refusals(c), 0);
	two_jobs_end(c);
}

/* Rank 3 has not called when its host loses power, and all that was sent to it is acknowledged.
 * Rank 0 has no deadline and receives nothing from there. */
static void op_unexpected__the_host_of_a_rank_that_has_not_called_dies(void **state)
{
	struct two_jobs *c = two_jobs_begin(COLLNET_WINDOW_AUTO);

	(void)state;
	for (uint32_t r = 0; r < 3; r++) {
		two_jobs_call(c, &c->x, r, 0, CN_OP_SCATTER, 1000000, CN_NEVER);
	}
	two_jobs_run(c, 2 * SECOND);
	assert_int_equal(c->x.calls[0][0].told, 0);
	cn_sim_cut(c->sim, 3, 2, true);
	two_jobs_run(c, 3 * SECOND);
	assert_int_equal(c->x.calls[0][0].told, 1);
	assert_int_equal(c->x.calls[0][0].status, COLLNET_EPEER);
	assert_non_null(strstr(c->x.calls[0][0].text, "h3"));
	two_jobs_end(c);
}

/* An exchange whose window is a quarter of that of broadcasts beside it, which keep more frames in
 * flight than it may have, all the time. */
static void op_window__a_small_one_beside_a_stream_of_a_larger_one(void **state)
{
	struct two_jobs *c = two_jobs_begin(16);

	(void)state;
	c->x.window = 16;
	c->y.window = 4;
	for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
		for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
			two_jobs_call(c, &c->x, r, k, CN_OP_BCAST, 1 << 20, 60 * SECOND);
		}
	}
	two_jobs_run(c, 5 * CN_MS);
	for (uint32_t r = 0; r < TWO_JOBS_HOSTS; r++) {
		two_jobs_call(c, &c->y, r, 0, CN_OP_ALLTOALL, 1000, 60 * SECOND);
	}
	two_jobs_run(c, 5 * CN_MS);
	two_jobs_assert_done(&c->y, 0);
	two_jobs_run(c, 10 * SECOND);
	for (uint32_t k = 0; k < TWO_JOBS_CALLS; k++) {
		two_jobs_assert_done(&c->x, k);
	}
	two_jobs_end(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(op_unexpected__a_rank_that_does_not_call_stops_no_other_job),
		cmocka_unit_test(op_unexpected__refused_frames_do_not_hold_the_window),
		cmocka_unit_test(op_unexpected__deadline_names_the_node_that_has_not_started),
		cmocka_unit_test(op_deadline__none),
		cmocka_unit_test(op_unexpected__many_operations_end),
		cmocka_unit_test(op_unexpected__the_host_of_a_rank_that_has_not_called_dies),
		cmocka_unit_test(op_window__a_small_one_beside_a_stream_of_a_larger_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
