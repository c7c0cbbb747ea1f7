/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll: several ranks per node: how many frames their operations take, turns of copies,
 * persistent operations of some of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine_fixture.h"

/* Data frames of the first node in one operation. */
static uint64_t frames_of(struct engine_fixture *w, enum cn_op_kind op, const char *algorithm,
			  uint64_t bytes)
{
	struct collnet_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	struct cn_coll_args a = engine_alltoall(bytes);

	a.op = op;
	a.algorithm = algorithm;
	a.root = cn_op_has_root(op) ? w->ranks - 1 : 0;
	engine_collective(w, &a, SECOND);
	cn_engine_stats(w->engines[0], &before, false);
	engine_collective(w, &a, SECOND);
	cn_engine_stats(w->engines[0], &after, false);
	return after.data_sent - before.data_sent;
}

/* From each node nine blocks to each of three others, which are cut into frames as one message. */
static void share__blocks_of_a_pair_of_nodes(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);

	(void)state;
	engine_join_all(w, 3, false, "job");
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "shuffle", 1), 3);
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "linear", PAYLOAD / 9), 3);
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "pairwise", PAYLOAD / 9 + 1), 3 * 2);
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "shuffle", PAYLOAD / 3), 3 * 3);
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "shuffle", PAYLOAD / 2), 3 * 5);
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "shuffle", PAYLOAD / 2 + 1), 3 * 5);
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "shuffle", PAYLOAD + 1), 3 * 10);
	/* as long as a stream that is cut so can be, and longer: message by message */
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "shuffle", CN_STREAM_SHORT / 9),
			 3 * ((CN_STREAM_SHORT / 9 * 9 + PAYLOAD - 1) / PAYLOAD));
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "shuffle", CN_STREAM_SHORT / 9 + 1),
			 3 * 9 * ((CN_STREAM_SHORT / 9 + PAYLOAD) / PAYLOAD));
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* Three blocks of a node, or of two nodes; on a ring those of one node at a time. */
static void share__blocks_of_a_node(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);

	(void)state;
	engine_join_all(w, 3, false, "job");
	assert_int_equal(frames_of(w, CN_OP_ALLGATHER, "ring", 8), 3);
	assert_int_equal(frames_of(w, CN_OP_ALLGATHER, "doubling", 8), 2);
	assert_int_equal(frames_of(w, CN_OP_GATHER, "windowed", PAYLOAD / 3), 1);
	assert_int_equal(frames_of(w, CN_OP_GATHER, "windowed", PAYLOAD / 3 + 1), 2);
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* One message per round and pair of nodes. */
static void share__nothing_with_one_rank_a_node(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);

	(void)state;
	engine_join_all(w, 1, false, "job");
	assert_int_equal(frames_of(w, CN_OP_ALLTOALL, "shuffle", 8), 3);
	assert_int_equal(frames_of(w, CN_OP_ALLGATHER, "ring", 8), 3);
	assert_int_equal(frames_of(w, CN_OP_BARRIER, NULL, 0), 2); /* empty frames */
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* Copies within a node take turns, also if they have no bytes. */
static void copies__of_nothing_take_turns(void **state)
{
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);
	const struct cn_coll_args a = engine_alltoall(0);
	struct cn_err err = { 0 };
	uint32_t turns = 0;

	(void)state;
	engine_join_all(w, 51, false, "job"); /* 51 ranks: 2,601 copies */
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	for (; cn_engine_has_copies(w->engines[0]); turns++) {
		cn_engine_expire(w->engines[0], w->now);
	}
	assert_uint_in_range(turns, 2, 10);
	engine_wait_all(w, 0, SECOND);
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* A persistent operation is released when others have still to start what it takes part in. */
static void persistent__released_while_others_start(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	static uint8_t send[6][64], recv[6][64];
	struct cn_block blocks[6];
	struct cn_prepared *p[6];
	struct cn_err err = { 0 };

	(void)state;
	engine_join_all(w, 3, false, "job");
	for (uint32_t i = 0; i < 6; i++) {
		blocks[i] = (struct cn_block){ .at = i * 8, .len = 8 };
		memset(send[i], (int)i, sizeof(send[i]));
	}
	for (uint32_t i = 0; i < 6; i++) {
		const struct cn_coll_args a = { .op = CN_OP_ALLTOALLV,
						.window = COLLNET_WINDOW_AUTO,
						.send = send[i],
						.recv = recv[i],
						.blocks = { .send = blocks, .recv = blocks } };

		assert_int_equal(cn_coll_prepare(w->rank[i].member, &a, &p[i], &err), COLLNET_OK);
	}
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(cn_prepared_start(p[i], w->now, w->now + SECOND,
						   engine_begin_wait(w, &w->rank[i].op[0]), &err),
				 COLLNET_OK);
		if (i == 1) {
			cn_prepared_release(p[i]);
		}
	}
	engine_wait_all(w, 0, SECOND);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(w->rank[i].op[0].status, COLLNET_OK);
		assert_int_equal(recv[i][8 * 5], 5);
		if (i != 1) {
			cn_prepared_release(p[i]);
		}
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__blocks_of_a_pair_of_nodes),
		cmocka_unit_test(share__blocks_of_a_node),
		cmocka_unit_test(share__nothing_with_one_rank_a_node),
		cmocka_unit_test(copies__of_nothing_take_turns),
		cmocka_unit_test(persistent__released_while_others_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
