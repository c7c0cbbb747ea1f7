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
