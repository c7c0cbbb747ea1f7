/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/post.c: persistent operations and the schedules that they take from each other, and
 * calls that differ. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll/op.h"
#include "engine_fixture.h"

#define ON_TWO_NODES 4u /* ranks, two on each */

/* An alltoallv of eight bytes between all ranks, or between all but rank 0 and the other node. */
struct exchange {
	bool all;
	struct cn_block blocks[ON_TWO_NODES][ON_TWO_NODES];
	struct cn_prepared *p[ON_TWO_NODES];
};

static uint8_t send[ON_TWO_NODES][64], recv[ON_TWO_NODES][64];

static void prepare(struct engine_fixture *w, struct exchange *x, uint32_t rank)
{
	const struct cn_coll_args a = { .op = CN_OP_ALLTOALLV,
					.window = COLLNET_WINDOW_AUTO,
					.send = send[rank],
					.recv = recv[rank],
					.blocks = { .send = x->blocks[rank],
						    .recv = x->blocks[rank] } };
	struct cn_err err = { 0 };

	for (uint32_t i = 0; i < ON_TWO_NODES; i++) {
		const bool none = !x->all && ((rank == 0 && i > 1) || (rank > 1 && i == 0));

		x->blocks[rank][i] = (struct cn_block){ .at = i * 8, .len = none ? 0 : 8 };
	}
	memset(send[rank], (int)rank, sizeof(send[rank]));
	assert_int_equal(cn_coll_prepare(w->rank[rank].member, &a, &x->p[rank], &err), COLLNET_OK);
}

/* All ranks start it, `first` before the others, and have the right bytes. */
static void start(struct engine_fixture *w, const struct exchange *x, uint32_t first)
{
	const struct cn_op *op;
	struct cn_err err = { 0 };

	memset(recv, 0xcc, sizeof(recv));
	for (uint32_t i = 0; i < ON_TWO_NODES; i++) {
		const uint32_t r = i ^ first;

		assert_int_equal(cn_prepared_start(x->p[r], w->now, w->now + SECOND,
						   engine_begin_wait(w, &w->rank[r].op[0]), &err),
				 COLLNET_OK);
	}
	op = w->rank[0].member->team->ops[(w->rank[0].member->posted - 1) % CN_OPS];
	assert_true(op->progress_cap >= op->sched.n);
	assert_true(malloc_usable_size(op->progress) >= op->progress_cap * sizeof(*op->progress));
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 0; r < ON_TWO_NODES; r++) {
		assert_int_equal(w->rank[r].op[0].status, COLLNET_OK);
		for (uint32_t i = 0; i < ON_TWO_NODES; i++) {
			assert_int_equal(recv[r][i * 8], x->blocks[r][i].len > 0 ? i : 0xcc);
		}
	}
}

/*
 * A rank's operation takes part in two exchanges in turn, of which one has a longer schedule. The
 * schedules change places, and with each goes what there is room for.
 */
static void persistent__schedules_change_places(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct exchange longer = { .all = true }, shorter = { .all = false };

	(void)state;
	engine_join_all(w, 2, false, "job");
	for (uint32_t r = 0; r < ON_TWO_NODES; r++) {
		prepare(w, &longer, r);
		if (r != 1) {
			prepare(w, &shorter, r);
		}
	}
	shorter.p[1] = longer.p[1];
	memcpy(shorter.blocks[1], longer.blocks[1], sizeof(shorter.blocks[1]));
	start(w, &longer, 1);
	start(w, &shorter, 0);
	start(w, &shorter, 1); /* its schedule is that of rank 0 */
	start(w, &longer, 1);
	start(w, &longer, 0); /* and the other way round */
	start(w, &shorter, 1);
	for (uint32_t r = 0; r < ON_TWO_NODES; r++) {
		cn_prepared_release(longer.p[r]);
		if (r != 1) {
			cn_prepared_release(shorter.p[r]);
		}
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* Two ranks of one node do not agree: known without a frame. The message says who and in what. */
static void engine__mismatch_on_one_node(void **state)
{
	const struct cn_coll_args call = engine_alltoall(100),
				  bcast = { .op = CN_OP_BCAST, .bytes = 100 };
	struct {
		struct cn_coll_args first, second;
		const char *text;
	} c[] = {
		{ call, engine_alltoall(99),
		  "rank 0 on node n0 called alltoall of 99 bytes as operation 1, where rank 1 called "
		  "alltoall of 100 bytes: other sizes;" },
		{ call, bcast,
		  "called bcast of 100 bytes as operation 1, where rank 1 called "
		  "alltoall of 100 bytes: another operation;" },
		{ bcast, bcast, "another root;" },
		{ call, call, "another algorithm;" },
	};

	(void)state;
	c[2].second.root = 3;
	c[3].second.algorithm = "linear";
	for (uint32_t i = 0; i < 4; i++) {
		struct engine_fixture *w = engine_fixture(2, NULL, NULL);
		struct cn_err err = { 0 };

		engine_join_all(w, 2, false, "job");
		assert_int_equal(engine_post(w, 1, 0, &c[i].first, &err), COLLNET_OK);
		assert_int_equal(engine_post(w, 0, 0, &c[i].second, &err), COLLNET_EMISMATCH);
		assert_non_null(strstr(err.text, c[i].text));
		assert_int_equal(w->rank[1].op[0].status, COLLNET_EMISMATCH);
		engine_run(w, 100 * CN_MS);
		assert_int_equal(engine_post(w, 2, 0, &c[i].first, &err), COLLNET_EMISMATCH);
		engine_fixture_free(w);
	}
}

/* A call without a schedule is refused on every rank, also on one whose node's other rank has
 * called something else since. */
static void engine__refused_on_one_node(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_coll_args smp = { .op = CN_OP_BCAST,
				    .algorithm = "smp", /* which plans by the network */
				    .window = COLLNET_WINDOW_AUTO,
				    .bytes = 1000,
				    .deadline = CN_NEVER },
			    chosen = smp;
	struct cn_err err;

	(void)state;
	chosen.algorithm = NULL;
	chosen.bytes = 2000;
	engine_join_all(w, 2, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 1, &smp, &err), COLLNET_ETOPO);
		assert_int_equal(engine_post(w, r, 0, &chosen, &err), COLLNET_OK);
	}
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 0; r < w->ranks; r++) {
		engine_check(w, r, 0, &chosen);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(persistent__schedules_change_places),
		cmocka_unit_test(engine__mismatch_on_one_node),
		cmocka_unit_test(engine__refused_on_one_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
