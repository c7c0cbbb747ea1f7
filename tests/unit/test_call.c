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
	struct cn_call c = { op, bytes, rank, ranks, 0 };

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
	assert_int_equal(check(CN_OP_ALLTOALL, b, b, 16, 0, 1, &err), COLLNET_EINVAL);
	/* allgather: only the own block */
	assert_int_equal(check(CN_OP_ALLGATHER, b + 16, b, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_ALLGATHER, b + 32, b, 16, 1, 4, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "block 1"));
	assert_int_equal(check(CN_OP_ALLGATHER, b + 64, b, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_ALLGATHER, b, b + 15, 16, 1, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_ALLGATHER, b, b + 16, 16, 1, 4, &err), COLLNET_OK);
	/* broadcast: one buffer on the root (rank 0), none to send elsewhere */
	assert_int_equal(check(CN_OP_BCAST, b, b, 16, 0, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_BCAST, b + 1, b, 16, 0, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_BCAST, b + 1, b, 16, 1, 4, &err), COLLNET_OK);
	/* gather: the root's own block of recv; scatter: never */
	assert_int_equal(check(CN_OP_GATHER, b, b, 16, 0, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_GATHER, b + 16, b, 16, 0, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_GATHER, b, NULL, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_SCATTER, b, b, 16, 0, 4, &err), COLLNET_EINVAL);
	assert_int_equal(check(CN_OP_SCATTER, NULL, b, 16, 1, 4, &err), COLLNET_OK);
	assert_int_equal(check(CN_OP_SCATTER, NULL, b, 16, 0, 4, &err), COLLNET_EINVAL);
}

static void check_buffers__root(void **state)
{
	struct cn_call c = { CN_OP_BCAST, 16, 0, 4, 4 };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_buffers__overlap),
		cmocka_unit_test(check_buffers__root),
		cmocka_unit_test(check_buffers__nothing_and_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
