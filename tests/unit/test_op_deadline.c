/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll: an operation passes its deadline, and every rank learns whose call is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine_fixture.h"

#define TIMEOUT (400 * CN_MS)

static const enum cn_op_kind kinds[] = { CN_OP_BARRIER, CN_OP_ALLTOALL, CN_OP_ALLGATHER,
					 CN_OP_ALLREDUCE, CN_OP_BCAST };

/* The ranks of a team call, but those of `late` (a bit each); that of a broadcast is the root. */
static void call_all_but(struct engine_fixture *w, uint64_t late, enum cn_op_kind op, cn_time step)
{
	struct cn_coll_args a = engine_alltoall(op == CN_OP_BARRIER ? 0 : 1000);
	struct cn_err err = { 0 };

	a.op = op;
	a.algorithm = NULL;
	while (op == CN_OP_BCAST && (late >> a.root & 1) == 0) {
		a.root++;
	}
	a.deadline = w->now + TIMEOUT;
	for (uint32_t r = 0; r < w->ranks; r++) {
		if ((late >> r & 1) != 0) {
			w->rank[r].op[0].calls = 1; /* it does not wait for anything */
			w->rank[r].op[0].status = COLLNET_OK;
			continue;
		}
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
		a.deadline += step;
	}
}

/* The first operation of a team. */
static struct engine_fixture *all_but(uint64_t late, uint32_t nodes, uint32_t a_node,
				      enum cn_op_kind op, cn_time step)
{
	struct engine_fixture *w = engine_fixture(nodes, NULL, NULL);

	engine_join_all(w, a_node, false, "job");
	call_all_but(w, late, op, step);
	return w;
}

static void assert_all_name(struct engine_fixture *w, uint64_t late, const char *text)
{
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct engine_waiter *x = &w->rank[r].op[0];

		if ((late >> r & 1) != 0) {
			continue;
		}
		if (x->status != COLLNET_ETIMEOUT || strstr(x->text, text) == NULL) {
			fail_msg("rank %u: status %d, \"%s\", not \"%s\"", r, x->status, x->text,
				 text);
		}
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

static void op_deadline__the_late_rank_is_named_everywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		for (cn_time step = 0; step <= 10 * CN_MS; step += 10 * CN_MS) {
			assert_all_name(all_but(2, 8, 1, kinds[i], step), 2,
					"not called in time by rank 1 (node n1)");
			assert_all_name(all_but(8, 5, 2, kinds[i], step), 8,
					"not called in time by rank 3 (node n1)");
		}
	}
}

static void op_deadline__several_late_ranks_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		assert_all_name(all_but(0x2c, 8, 1, kinds[i], 0), 0x2c,
				"not called in time by ranks 2-3, 5 (the first on node n2)");
		assert_all_name(all_but(0x2c, 4, 2, kinds[i], 0), 0x2c,
				"not called in time by ranks 2-3, 5 (the first on node n1)");
	}
}

/* Numbers are compared modulo 2^32, and half of them have passed since nodes said what they called.
 */
static void op_deadline__after_many_operations(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);

	(void)state;
	engine_join_all(w, 1, false, "job");
	engine_set_numbers(w, (UINT32_C(1) << 31) + 5);
	call_all_but(w, 2, CN_OP_ALLTOALL, 0);
	assert_all_name(w, 2, "not called in time by rank 1 (node n1)");
}

/* Who does not answer has not been heard to be late: the ranks are named whose data is missing. */
static void op_deadline__no_answer(void **state)
{
	struct engine_fixture *w = all_but(2, 4, 1, CN_OP_ALLTOALL, 0);

	(void)state;
	cn_hub_cut(w->hub, 1, true);
	assert_all_name(w, 2, "waiting for data of rank 1 (node n1)");
}

/* All have called, and say so; the data of a node that is cut off is missing. */
static void op_deadline__all_have_called(void **state)
{
	struct engine_fixture *w = all_but(0, 4, 1, CN_OP_ALLTOALL, 0);

	(void)state;
	cn_hub_cut(w->hub, 3, true);
	assert_all_name(w, 8, "waiting for data of rank 3 (node n3)");
}

/* Rank 1 calls after it was asked, and node 2 is cut off: it is not rank 1 who is late. */
static void op_deadline__called_since(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(0);
	struct cn_err err = { 0 };
	uint32_t late = 0;

	(void)state;
	engine_join_all(w, 1, false, "job");
	a.op = CN_OP_BARRIER;
	a.algorithm = "dissemination"; /* in others, the nodes that are left finish */
	a.deadline = w->now + TIMEOUT;
	for (uint32_t r = 0; r < 4; r++) {
		if (r != 1) {
			assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
		}
	}
	engine_run(w, TIMEOUT - 40 * CN_MS);
	cn_hub_cut(w->hub, 2, true);
	engine_run(w, 10 * CN_MS);
	a.deadline = w->now + SECOND;
	assert_int_equal(engine_post(w, 1, 0, &a, &err), COLLNET_OK);
	engine_wait_all(w, 0, 2 * SECOND);
	for (uint32_t r = 0; r < 4; r++) {
		late += w->rank[r].op[0].status == COLLNET_ETIMEOUT;
		if (r != 2 && strstr(w->rank[r].op[0].text, "not called") != NULL) {
			fail_msg("rank %u: %s", r, w->rank[r].op[0].text);
		}
	}
	assert_true(late > 1);
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* Several operations wait for rank 1; the deadlines are so near that one asks as another expires.
 */
static void op_deadline__several_operations(void **state)
{
	(void)state;
	for (cn_time gap = 0; gap <= 50 * CN_MS; gap += 10 * CN_MS) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);
		struct cn_coll_args a = engine_alltoall(100);
		struct cn_err err = { 0 };
		struct collnet_stats s = { .size = sizeof(s) };
		uint64_t before;

		engine_join_all(w, 1, false, "job");
		cn_engine_stats(w->engines[0], &s, false);
		before = s.frames_sent;
		for (int k = 0; k < 20; k++) {
			a.deadline = w->now + TIMEOUT + (cn_time)(19 - k) * gap;
			for (uint32_t r = 0; r < 4; r++) {
				if (r != 1) {
					assert_int_equal(engine_post(w, r, k, &a, &err),
							 COLLNET_OK);
				}
			}
		}
		w->rank[1].op[19].calls = 1;
		engine_wait_all(w, 19, SECOND);
		for (uint32_t r = 0; r < 4; r++) {
			const struct engine_waiter *x = &w->rank[r].op[19];

			if (r != 1 && strstr(x->text, "not called in time by rank 1") == NULL) {
				fail_msg("rank %u: %s", r, x->text);
			}
		}
		cn_engine_stats(w->engines[0], &s, false);
		print_message("%llu frames\n", (unsigned long long)(s.frames_sent - before));
		engine_leave_all(w);
		engine_fixture_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(op_deadline__the_late_rank_is_named_everywhere),
		cmocka_unit_test(op_deadline__several_late_ranks_are_named),
		cmocka_unit_test(op_deadline__after_many_operations),
		cmocka_unit_test(op_deadline__no_answer),
		cmocka_unit_test(op_deadline__all_have_called),
		cmocka_unit_test(op_deadline__called_since),
		cmocka_unit_test(op_deadline__several_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
