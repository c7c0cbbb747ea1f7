/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations: their names, and the buffers that a rank has in each. */
#include <string.h>

#include "sched/sched.h"

static const char *const names[CN_OP_KINDS] = {
	[CN_OP_ALLTOALL] = "alltoall", [CN_OP_ALLGATHER] = "allgather", [CN_OP_BARRIER] = "barrier",
	[CN_OP_BCAST] = "bcast",       [CN_OP_SCATTER] = "scatter",	[CN_OP_GATHER] = "gather",
};

const char *cn_op_name(enum cn_op_kind op)
{
	return names[op];
}

bool cn_op_find(const char *name, enum cn_op_kind *out)
{
	for (int op = CN_OP_ALLTOALL; op < CN_OP_KINDS; op++) {
		if (strcmp(names[op], name) == 0) {
			*out = (enum cn_op_kind)op;
			return true;
		}
	}
	return false;
}

uint64_t cn_call_send_bytes(const struct cn_call *c)
{
	switch (c->op) {
	case CN_OP_ALLTOALL:
		return c->bytes * c->ranks;
	case CN_OP_ALLGATHER:
	case CN_OP_GATHER:
		return c->bytes;
	case CN_OP_BCAST:
		return c->rank == c->root ? c->bytes : 0;
	case CN_OP_SCATTER:
		return c->rank == c->root ? c->bytes * c->ranks : 0;
	case CN_OP_BARRIER:
		break;
	}
	return 0;
}

uint64_t cn_call_recv_bytes(const struct cn_call *c)
{
	switch (c->op) {
	case CN_OP_ALLTOALL:
	case CN_OP_ALLGATHER:
		return c->bytes * c->ranks;
	case CN_OP_BCAST:
	case CN_OP_SCATTER:
		return c->bytes;
	case CN_OP_GATHER:
		return c->rank == c->root ? c->bytes * c->ranks : 0;
	case CN_OP_BARRIER:
		break;
	}
	return 0;
}

uint64_t cn_call_in_place(const struct cn_call *c)
{
	switch (c->op) {
	case CN_OP_ALLGATHER:
		return c->rank * c->bytes;
	case CN_OP_GATHER:
		return c->rank == c->root ? c->rank * c->bytes : UINT64_MAX;
	case CN_OP_BCAST:
		return c->rank == c->root ? 0 : UINT64_MAX;
	case CN_OP_ALLTOALL:
	case CN_OP_SCATTER:
	case CN_OP_BARRIER:
		break;
	}
	return UINT64_MAX;
}

int cn_call_check_buffers(const struct cn_call *c, const void *send, const void *recv,
			  struct cn_err *err)
{
	uint64_t out, in, same; /* at most 2^30 * 2^12 */
	uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv;

	if (c->bytes > COLLNET_BLOCK_MAX) {
		return cn_fail(err, COLLNET_EINVAL, "a block of %llu bytes is more than %llu",
			       (unsigned long long)c->bytes, (unsigned long long)COLLNET_BLOCK_MAX);
	}
	if (c->root >= c->ranks) {
		return cn_fail(err, COLLNET_EINVAL, "root %u is not one of the team's %u ranks",
			       c->root, c->ranks);
	}
	out = cn_call_send_bytes(c);
	in = cn_call_recv_bytes(c);
	same = cn_call_in_place(c);
	if ((out > 0 && send == NULL) || (in > 0 && recv == NULL)) {
		return cn_fail(err, COLLNET_EINVAL, "%s is NULL",
			       out > 0 && send == NULL ? "send" : "recv");
	}
	if (out > SIZE_MAX || in > SIZE_MAX || (out > 0 && s > UINTPTR_MAX - out) ||
	    (in > 0 && r > UINTPTR_MAX - in)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "buffers of %u blocks of %llu bytes end beyond the "
			       "address space",
			       c->ranks, (unsigned long long)c->bytes);
	}
	if (out == 0 || in == 0 || s >= r + in || r >= s + out) {
		return COLLNET_OK;
	}
	if (same == UINT64_MAX) {
		return cn_fail(err, COLLNET_EINVAL, "send and recv of rank %u overlap", c->rank);
	}
	if (s != r + same) {
		return cn_fail(err, COLLNET_EINVAL,
			       "send and recv overlap; send may be block %u of "
			       "recv, no other part",
			       c->op == CN_OP_BCAST ? 0 : c->rank);
	}
	return COLLNET_OK;
}
