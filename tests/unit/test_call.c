/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/sched/call.c: the buffers that may be given to an operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched/sched.h"

static int check(enum cn_op_kind op, const void *send, const void *recv, uint64_t bytes,
		 uint32_t rank, uint32_t ranks, struct cn_err *err)
{
	struct cn_call c = { .op = op, .bytes = bytes, .rank = rank, .ranks = ranks };

	return cn_call_check_buffers(&c, send, recv, err);
}

static void check_buffers__overlap(void **state)
{
	static char b[4096];
	struct cn_err err;

	(void)state;
	/* all-to-all of 4 ranks, 16 bytes each: 64 bytes on both sides */
	assert_int_equal(check(CN_OP_ALLTOALL, b, b + 64, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_ALLTOALL, b + 64, b, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_ALLTOALL, b, b + 63, 16, 1, 4, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "overlap"));
	assert_int_equal(check(CN_OP_ALLTOALL, b + 63, b, 16, 1, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_ALLTOALL, b + 16, b, 16, 1, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_ALLTOALL, b, b, 16, 0, 1, &err), COLLNET_OK);
	/* allgather: only the own block */
	assert_int_equal(check(CN_OP_ALLGATHER, b + 16, b, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_ALLGATHER, b + 32, b, 16, 1, 4, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "rank 1 overlap"));
	assert_int_equal(check(CN_OP_ALLGATHER, b + 64, b, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_ALLGATHER, b, b + 15, 16, 1, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_ALLGATHER, b, b + 16, 16, 1, 4, &err), COLLNET_OK);
	/* broadcast: one buffer on the root (rank 0), none to send elsewhere */
	assert_int_equal(check(CN_OP_BCAST, b, b, 16, 0, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_BCAST, b + 1, b, 16, 0, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_BCAST, b + 1, b, 16, 1, 4, &err), COLLNET_OK);
	/* gather: the root's own block of recv; scatter: of send */
	assert_int_equal(check(CN_OP_GATHER, b, b, 16, 0, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_GATHER, b + 16, b, 16, 0, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_GATHER, b, NULL, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_SCATTER, b, b, 16, 0, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_SCATTER, b, b + 16, 16, 0, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_SCATTER, NULL, b, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_SCATTER, NULL, b, 16, 0, 4, &err), COLLNET_EINVAL);
}

/* The message has the name of the argument in collnet.h. */
static void check_buffers__null(void **state)
{
	static char b[64];
	struct cn_err err;

	(void)state;
	assert_int_equal(check(CN_OP_SCATTER, NULL, b, 16, 0, 4, &err), COLLNET_EINVAL);
	assert_string_equal(err.text, "send is NULL");
	assert_int_equal(check(CN_OP_GATHER, b, NULL, 16, 0, 4, &err), COLLNET_EINVAL);
	assert_string_equal(err.text, "recv is NULL");
	for (uint32_t rank = 0; rank < 2; rank++) {
		assert_int_equal(check(CN_OP_BCAST, NULL, NULL, 16, rank, 4, &err), COLLNET_EINVAL);
		assert_string_equal(err.text, "buffer is NULL");
	}
}

static void check_buffers__root(void **state)
{
	struct cn_call c = { .op = CN_OP_BCAST, .bytes = 16, .ranks = 4, .root = 4 };
	static char b[64];
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_call_check_buffers(&c, b, b, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "root 4"));
	c.root = 3;
	assert_int_equal(cn_call_check_buffers(&c, b, b, &err), COLLNET_OK);
}

static void check_buffers__nothing_and_too_much(void **state)
{
	char *end = (char *)(uintptr_t)(UINTPTR_MAX - 8);
	static char b[64];

	(void)state;
	assert_int_equal(check(CN_OP_ALLTOALL, NULL, NULL, 0, 0, 4, NULL), COLLNET_OK);
	assert_int_equal(check(CN_OP_ALLTOALL, b, b, 0, 0, 4, NULL), COLLNET_OK);
	assert_int_equal(check(CN_OP_BARRIER, NULL, NULL, 0, 0, 4, NULL), COLLNET_OK);
	assert_int_equal(check(CN_OP_ALLTOALL, NULL, b, 1, 0, 4, NULL), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_ALLTOALL, b, NULL, 1, 0, 4, NULL), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_ALLTOALL, b, end, 16, 0, 4, NULL), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_ALLTOALL, end, b, 16, 0, 4, NULL), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_ALLTOALL, b, b, (uint64_t)COLLNET_BLOCK_MAX + 1, 0, 4, NULL),
			 COLLNET_EINVAL);
}

static int check_blocks(enum cn_op_kind op, const struct cn_blocks *blocks, const void *send,
			const void *recv, uint32_t rank, struct cn_err *err)
{
	struct cn_call c = { .op = op, .rank = rank, .ranks = 4, .blocks = *blocks };

	return cn_call_check_buffers(&c, send, recv, err);
}

static void check_buffers__blocks(void **state)
{
	static char b[4096];
	const struct cn_block sends[] = { { 100, 10 }, { 200, 0 }, { 150, 50 }, { 0, 0 } };
	const struct cn_block recvs[] = { { 40, 8 }, { 90, 10 }, { UINT64_MAX, 0 }, { 48, 1 } };
	struct cn_block far[] = { { 0, 1 }, { UINT64_MAX - 5, 10 }, { 0, 0 }, { 0, 0 } };
	struct cn_blocks v = { sends, recvs, 0, 0 };
	struct cn_call c = { .op = CN_OP_ALLTOALLV, .rank = 1, .ranks = 4, .blocks = v };
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_call_send_bytes(&c), 200);
	assert_int_equal(cn_call_recv_bytes(&c), 100);
	/* bytes 100 .. 199 and 40 .. 99 of the two: they may be neighbours */
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 1000, 1, &err), COLLNET_OK);
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 160, 1, &err), COLLNET_OK);
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 159, 1, &err), COLLNET_EINVAL);
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 1, 1, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "overlap"));
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b, 1, &err), COLLNET_OK);
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, NULL, b, 1, &err), COLLNET_EINVAL);
	/* in place: the rank's own block of recv, of send */
	assert_int_equal(check_blocks(CN_OP_ALLGATHERV, &v, b + 90, b, 1, &err), COLLNET_OK);
	assert_int_equal(check_blocks(CN_OP_ALLGATHERV, &v, b + 89, b, 1, &err), COLLNET_EINVAL);
	assert_int_equal(check_blocks(CN_OP_ALLGATHERV, &v, b + 89, b, 2, &err), COLLNET_OK);
	v.send_len = 8;
	assert_int_equal(check_blocks(CN_OP_GATHERV, &v, b + 40, b, 0, &err), COLLNET_OK);
	assert_int_equal(check_blocks(CN_OP_GATHERV, &v, b + 41, b, 0, &err), COLLNET_EINVAL);
	assert_int_equal(check_blocks(CN_OP_GATHERV, &v, b + 41, NULL, 1, &err), COLLNET_OK);
	v.send_len = 9; /* not as long as its block */
	assert_int_equal(check_blocks(CN_OP_GATHERV, &v, b + 40, b, 0, &err), COLLNET_EINVAL);
	v = (struct cn_blocks){ sends, NULL, 0, 10 };
	assert_int_equal(check_blocks(CN_OP_SCATTERV, &v, b, b + 100, 0, &err), COLLNET_OK);
	assert_int_equal(check_blocks(CN_OP_SCATTERV, &v, b, b + 101, 0, &err), COLLNET_EINVAL);
	assert_int_equal(check_blocks(CN_OP_SCATTERV, &v, NULL, b, 1, &err), COLLNET_OK);
	/* no counts, blocks that are too long, ends beyond all memory */
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 1000, 1, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "counts"));
	v = (struct cn_blocks){ sends, far, 0, 0 };
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 1000, 1, &err), COLLNET_EINVAL);
	far[1] = (struct cn_block){ UINT64_MAX - 10, 10 };
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 1000, 1, &err), COLLNET_EINVAL);
	far[1] = (struct cn_block){ 0, (uint64_t)COLLNET_BLOCK_MAX + 1 };
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 1000, 1, &err), COLLNET_EINVAL);
	far[1] = (struct cn_block){ 2, 1 };
	assert_int_equal(check_blocks(CN_OP_ALLTOALLV, &v, b, b + 1000, 1, &err), COLLNET_OK);
	v = (struct cn_blocks){ NULL, NULL, (uint64_t)COLLNET_BLOCK_MAX + 1, 0 };
	assert_int_equal(check_blocks(CN_OP_GATHERV, &v, b, NULL, 1, &err), COLLNET_EINVAL);
}

static void blocks__packed_and_back(void **state)
{
	struct cn_block b[] = { { 7, 2 }, { 0, 0 }, { 1, 3 } };
	char from[] = ".abc...de.", to[11] = "..........", packed[6] = { 0 };

	(void)state;
	assert_int_equal(cn_blocks_bytes(b, 3), 5);
	assert_int_equal(cn_blocks_pack(b, 3, from, packed), 5);
	assert_string_equal(packed, "deabc");
	cn_blocks_unpack(b, 3, packed, to);
	assert_string_equal(to, from);
	cn_blocks_follow(b, 3);
	assert_int_equal(b[0].at, 0);
	assert_int_equal(b[1].at, 2);
	assert_int_equal(b[2].at, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_buffers__overlap),
		cmocka_unit_test(check_buffers__null),
		cmocka_unit_test(check_buffers__root),
		cmocka_unit_test(check_buffers__nothing_and_too_much),
		cmocka_unit_test(check_buffers__blocks),
		cmocka_unit_test(blocks__packed_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
