/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of `collnet bench`: ranks agree on their lengths, and they fit into the buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/bench/blocks.h"

#define RANKS 9u

static struct bench_blocks of[RANKS];

static struct bench_call call_of(enum cn_op_kind op, uint64_t bytes, uint32_t rank, uint32_t ranks)
{
	return (struct bench_call){
		.op = op, .bytes = bytes, .seed = 7, .rank = rank, .ranks = ranks, .nodes = ranks
	};
}

static void check_room(const size_t *length, const size_t *at, uint32_t n, uint64_t room)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_true(at[i] + length[i] <= room);
		assert_true(i == 0 || at[i] == at[i - 1] + length[i - 1]);
	}
}

/* The sender and the receiver of a block know the same length. */
static void check_op(enum cn_op_kind op, uint64_t bytes, uint32_t ranks)
{
	for (uint32_t r = 0; r < ranks; r++) {
		const struct bench_call c = call_of(op, bytes, r, ranks);

		assert_true(bench_blocks_init(&of[r], &c));
		check_room(of[r].sends, of[r].send_at, of[r].nsends, bench_send_room(&c));
		check_room(of[r].recvs, of[r].recv_at, of[r].nrecvs, bench_recv_room(&c));
	}
	for (uint32_t s = 0; s < ranks; s++) {
		for (uint32_t d = 0; d < ranks; d++) {
			const size_t sent = of[s].sends[of[s].nsends > 1 ? d : 0];
			const size_t received = of[d].recvs[of[d].nrecvs > 1 ? s : 0];

			if (of[s].nsends > 0 && of[d].nrecvs > 0) {
				assert_int_equal(sent, received);
			}
		}
	}
	for (uint32_t r = 0; r < ranks; r++) {
		bench_blocks_free(&of[r]);
	}
}

static void blocks__the_ranks_agree(void **state)
{
	(void)state;
	for (int op = CN_OP_ALLTOALL; op < CN_OP_KINDS; op++) {
		for (uint32_t ranks = 1; ranks <= RANKS; ranks++) {
			check_op((enum cn_op_kind)op, 0, ranks);
			check_op((enum cn_op_kind)op, 1, ranks);
			check_op((enum cn_op_kind)op, 1000, ranks);
		}
	}
}

static void blocks__the_mean_is_the_given_size(void **state)
{
	static const enum cn_op_kind ops[] = { CN_OP_ALLGATHERV, CN_OP_SCATTERV, CN_OP_GATHERV,
					       CN_OP_REDUCE_SCATTERV };

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		for (uint32_t ranks = 1; ranks <= RANKS; ranks++) {
			const struct bench_call c = call_of(ops[i], 1000, 0, ranks);
			uint64_t sum = 0, different = 0;

			for (uint32_t r = 0; r < ranks; r++) {
				const uint64_t n = bench_length(&c, r, r);

				assert_true(n <= 2000);
				sum += n;
				different += n != 1000;
			}
			assert_int_equal(sum, 1000 * ranks);
			assert_true(different >= ranks / 2);
		}
	}
}

static void blocks__of_equal_sizes(void **state)
{
	const struct bench_call c = call_of(CN_OP_SCATTER, 100, 0, 3),
				other = call_of(CN_OP_SCATTER, 100, 1, 3);
	struct bench_blocks b;

	(void)state;
	assert_true(bench_blocks_init(&b, &c));
	assert_int_equal(b.nsends, 3);
	assert_int_equal(b.send_at[2], 200);
	assert_int_equal(b.nrecvs, 1);
	bench_blocks_free(&b);
	assert_true(bench_blocks_init(&b, &other));
	assert_int_equal(b.nsends, 0);
	assert_int_equal(b.recvs[0], 100);
	bench_blocks_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks__the_ranks_agree),
		cmocka_unit_test(blocks__the_mean_is_the_given_size),
		cmocka_unit_test(blocks__of_equal_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
