/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pieces that the daemon combines itself, so many bytes in a turn, the others in later ones;
 * and those that go to the client by its ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/daemon.h"

#define BYTES ((uint32_t)CN_COMBINED_BY_DAEMON) /* of a block, and all of a turn */
#define OPS   4

struct fixture {
	struct cn_daemon daemon;
	struct cn_client client;
	uint8_t send[OPS][BYTES], recv[OPS][BYTES];
};

/* OPS requests: sums of one byte per element. */
static int setup(void **state)
{
	struct fixture *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->client.daemon = &w->daemon;
	for (int i = 0; i < OPS; i++) {
		struct cn_op_slot *op = &w->client.ops[i];
		const struct cn_coll_args a = {
			.op = CN_OP_ALLREDUCE,
			.bytes = BYTES,
			.send = w->send[i],
			.recv = w->recv[i],
			.element = 1,
			.function = cn_combine_id(COLLNET_UINT8, COLLNET_SUM),
		};
		const struct cn_call call = { .op = a.op, .bytes = BYTES, .ranks = 2 };

		op->client = &w->client;
		assert_ptr_equal(cn_combine_by(op, &a, &call), &op->reducer);
		memset(w->send[i], 2, BYTES);
		memset(w->recv[i], i, BYTES);
	}
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* The engine has a piece of the first bytes for request i: its result is 2 more. */
static bool combine_operands(struct fixture *w, int i, uint32_t bytes, uint32_t operands)
{
	const struct cn_combine piece = {
		.left = { .buffer = CN_BUF_RECV },
		.right = { .buffer = CN_BUF_SEND },
		.out = { .buffer = CN_BUF_RECV },
		.bytes = bytes,
		.operands = operands,
	};
	struct cn_reducer *r = &w->client.ops[i].reducer;

	return r->combine(r, &piece);
}

static bool combine(struct fixture *w, int i, uint32_t bytes)
{
	return combine_operands(w, i, bytes, 1);
}

static bool has_result(const struct fixture *w, int i)
{
	return w->recv[i][0] == i + 2 && w->recv[i][BYTES - 1] == i + 2;
}

static void combine__in_turns(void **state)
{
	struct fixture *w = *state;

	assert_true(combine(w, 0, BYTES));
	for (int i = 1; i < OPS; i++) {
		assert_false(combine(w, i, BYTES));
	}
	for (int i = 0; i < OPS; i++) {
		for (int k = 0; k < OPS; k++) {
			assert_int_equal(has_result(w, k), k <= i);
		}
		assert_int_equal(cn_combine_pending(&w->daemon), i < OPS - 1);
	}
	assert_true(combine(w, 1, BYTES)); /* a new turn */
}

static void combine__short_pieces_of_a_turn(void **state)
{
	struct fixture *w = *state;

	for (uint32_t i = 0; i < 16; i++) {
		assert_true(combine(w, 0, BYTES / 16));
	}
	assert_false(combine(w, 0, 1025));
	assert_false(combine_operands(w, 2, 1024, 2));
	assert_int_equal(w->recv[0][0], 32);
	assert_true(combine(w, 1, 1024)); /* so short that it does not wait */
	assert_int_equal(w->recv[1][0], 3);
	assert_true(cn_combine_pending(&w->daemon));
	assert_int_equal(w->recv[0][0], 34);
	assert_false(cn_combine_pending(&w->daemon));
}

static void combine_drop__first_middle_last(void **state)
{
	for (int dropped = 1; dropped < OPS; dropped++) {
		struct fixture *w;

		if (dropped > 1) {
			teardown(state);
			setup(state);
		}
		w = *state;
		for (int i = 0; i < OPS; i++) {
			assert_int_equal(combine(w, i, BYTES), i == 0);
		}
		cn_combine_cancel(&w->client.ops[dropped]);
		cn_combine_cancel(&w->client.ops[dropped]); /* it does not wait */
		assert_true(cn_combine_pending(&w->daemon));
		assert_false(combine(w, 0, BYTES)); /* behind those that wait */
		while (cn_combine_pending(&w->daemon)) {
		}
		assert_int_equal(w->recv[0][0], 4);
		for (int i = 1; i < OPS; i++) {
			assert_int_equal(has_result(w, i), i != dropped);
		}
	}
}

/* ---- which pieces are the daemon's ------------------------------------------------------ */

static struct {
	_Alignas(8) int32_t send[512], recv[512], scratch[4096];
} sums;
static _Alignas(CN_SHM_RING_LINE) uint8_t rings[CN_MSG_RINGS_BYTES];
static struct cn_shm_ring completions; /* the client's side */

static struct fixture *with_rings(struct fixture *w)
{
	struct cn_shm_ring requests;

	memset(rings, 0, sizeof(rings));
	cn_msg_rings_init(rings, &w->client.requests, &w->client.completions);
	cn_msg_rings_init(rings, &requests, &completions);
	return w;
}

/* Has sums.send and sums.recv combined to sums.recv, in blocks of so many bytes that begin so many
 * bytes behind them. True: the daemon did it. */
static bool combined_here(struct fixture *w, uint16_t function, uint64_t bytes, size_t shift)
{
	struct cn_op_slot *op = &w->client.ops[3];
	const struct cn_call call = {
		.op = CN_OP_ALLREDUCE,
		.bytes = bytes,
		.ranks = 2,
		.nodes = 2,
		.local = 1,
		.element = 4,
	};
	const struct cn_coll_args args = {
		.op = CN_OP_ALLREDUCE,
		.bytes = bytes,
		.send = (uint8_t *)sums.send + shift,
		.recv = (uint8_t *)sums.recv + shift,
		.scratch = sums.scratch,
		.element = 4,
		.function = function,
	};
	const struct cn_combine piece = {
		.left = { .buffer = CN_BUF_SEND },
		.right = { .buffer = CN_BUF_RECV },
		.out = { .buffer = CN_BUF_RECV },
		.bytes = bytes,
		.operands = 1,
	};
	struct cn_reducer *r;

	for (int32_t i = 0; i < 512; i++) {
		sums.send[i] = i;
		sums.recv[i] = 1000 * i;
	}
	r = cn_combine_by(op, &args, &call);
	return r->combine(r, &piece);
}

static void expect_passed_on(void)
{
	const struct cn_msg_combine *m;
	const void *slot;

	assert_int_equal(cn_shm_ring_front(&completions, &slot), CN_SHM_RING_OK);
	m = slot;
	assert_int_equal(m->head.type, CN_MSG_COMBINE);
	assert_int_equal(m->head.tag, 3);
	cn_shm_ring_pop(&completions);
	assert_int_equal(sums.recv[1], 1000);
}

static void combine__short_blocks_here(void **state)
{
	const uint16_t sum = cn_combine_id(COLLNET_INT32, COLLNET_SUM);
	struct fixture *w = with_rings(*state);
	const void *slot;

	assert_true(combined_here(w, sum, 1024, 0));
	for (int32_t i = 0; i < 512; i++) {
		assert_int_equal(sums.recv[i], i < 256 ? 1001 * i : 1000 * i);
	}
	assert_int_equal(cn_shm_ring_front(&completions, &slot), CN_SHM_RING_NONE);
}

/* What the client asks for that the daemon does not do, or cannot. */
static void combine__the_rest_by_the_client(void **state)
{
	static const uint16_t others[] = { COLLNET_USER << 8, 0, 0xffff, COLLNET_SUM << 8 | 0xff };
	const uint16_t sum = cn_combine_id(COLLNET_INT32, COLLNET_SUM);
	/* Another size of an element than the client says. */
	const uint16_t wide = cn_combine_id(COLLNET_INT64, COLLNET_SUM);
	struct fixture *w = with_rings(*state);

	assert_false(combined_here(w, sum, CN_COMBINED_BY_DAEMON + 4, 0));
	expect_passed_on();
	assert_false(combined_here(w, sum, 1024, 2));
	expect_passed_on();
	assert_false(combined_here(w, wide, 1024, 0));
	expect_passed_on();
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_false(combined_here(w, others[i], 1024, 0));
		expect_passed_on();
	}
}

/* The client's answer is to the piece that it has, and to no other; a last one needs none. */
static void combined__by_the_client(void **state)
{
	struct fixture *w = with_rings(*state);
	struct cn_op_slot *op = &w->client.ops[3];
	struct cn_msg_combined m = { .head = { .type = CN_MSG_COMBINED, .tag = 3 } };
	struct cn_combine piece = { .bytes = 8, .operands = 1 };

	op->busy = true;
	assert_false(combined_here(w, 0, 1024, 0));
	m.piece = op->piece + 1;
	cn_combined(&w->client, &m);
	assert_true(op->combining);
	m.piece = op->piece;
	cn_combined(&w->client, &m);
	assert_false(op->combining);
	piece.last = true;
	assert_true(op->reducer.combine(&op->reducer, &piece));
	assert_false(op->combining);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(combine__in_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(combine__short_pieces_of_a_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(combine_drop__first_middle_last, setup, teardown),
		cmocka_unit_test_setup_teardown(combine__short_blocks_here, setup, teardown),
		cmocka_unit_test_setup_teardown(combine__the_rest_by_the_client, setup, teardown),
		cmocka_unit_test_setup_teardown(combined__by_the_client, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
