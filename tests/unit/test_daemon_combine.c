/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pieces that the daemon combines itself: so many bytes in a turn, the others in later ones.
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
static bool combine(struct fixture *w, int i, uint32_t bytes)
{
	const struct cn_combine piece = {
		.left = { .buffer = CN_BUF_RECV },
		.right = { .buffer = CN_BUF_SEND },
		.out = { .buffer = CN_BUF_RECV },
		.bytes = bytes,
		.operands = 1,
	};
	struct cn_reducer *r = &w->client.ops[i].reducer;

	return r->combine(r, &piece);
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
		assert_int_equal(cn_combine_rest(&w->daemon), i < OPS - 1);
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
	assert_int_equal(w->recv[0][0], 32);
	assert_true(combine(w, 1, 1024)); /* so short that it does not wait */
	assert_int_equal(w->recv[1][0], 3);
	assert_true(cn_combine_rest(&w->daemon));
	assert_int_equal(w->recv[0][0], 34);
	assert_false(cn_combine_rest(&w->daemon));
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
		cn_combine_drop(&w->client.ops[dropped]);
		cn_combine_drop(&w->client.ops[dropped]); /* it does not wait */
		assert_true(cn_combine_rest(&w->daemon));
		assert_false(combine(w, 0, BYTES)); /* behind those that wait */
		while (cn_combine_rest(&w->daemon)) {
		}
		assert_int_equal(w->recv[0][0], 4);
		for (int i = 1; i < OPS; i++) {
			assert_int_equal(has_result(w, i), i != dropped);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(combine__in_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(combine__short_pieces_of_a_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(combine_drop__first_middle_last, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
