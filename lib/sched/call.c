/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations: their names, and the buffers that a rank has in each. */
#include <string.h>

#include "sched/reduction.h"

static const char *const names[CN_OP_KINDS] = {
	[CN_OP_ALLTOALL] = "alltoall",
	[CN_OP_ALLGATHER] = "allgather",
	[CN_OP_BARRIER] = "barrier",
	[CN_OP_BCAST] = "bcast",
	[CN_OP_SCATTER] = "scatter",
	[CN_OP_GATHER] = "gather",
	[CN_OP_ALLTOALLV] = "alltoallv",
	[CN_OP_ALLGATHERV] = "allgatherv",
	[CN_OP_SCATTERV] = "scatterv",
	[CN_OP_GATHERV] = "gatherv",
	[CN_OP_ALLREDUCE] = "allreduce",
	[CN_OP_REDUCE] = "reduce",
	[CN_OP_SCAN] = "scan",
	[CN_OP_EXSCAN] = "exscan",
	[CN_OP_REDUCE_SCATTER] = "reduce_scatter",
	[CN_OP_REDUCE_SCATTERV] = "reduce_scatterv",
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

uint64_t cn_blocks_bytes(const struct cn_block *b, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += b[i].len;
	}
	return sum;
}

uint64_t cn_blocks_pack(const struct cn_block *b, uint32_t n, const void *from, void *to)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (b[i].len > 0) {
			memcpy((char *)to + at, (const char *)from + b[i].at, b[i].len);
		}
		at += b[i].len;
	}
	return at;
}

void cn_blocks_unpack(const struct cn_block *b, uint32_t n, const void *from, void *to)
{
	const char *at = from;

	for (uint32_t i = 0; i < n; i++) {
		if (b[i].len > 0) {
			memcpy((char *)to + b[i].at, at, b[i].len);
		}
		at += b[i].len;
	}
}

void cn_blocks_follow(struct cn_block *b, uint32_t n)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		b[i].at = at;
		at += b[i].len;
	}
}

/* The bytes of a buffer that an operation uses: from `begin` up to `end`. */
struct extent {
	uint64_t begin, end;
};

/* Of blocks; the end is UINT64_MAX where one is longer than allowed, or beyond any memory. */
static struct extent blocks_extent(const struct cn_block *b, uint32_t n)
{
	struct extent e = { UINT64_MAX, 0 };

	for (uint32_t i = 0; i < n; i++) {
		uint64_t end = b[i].at + b[i].len;

		if (b[i].len == 0) {
			continue;
		}
		if (b[i].len > COLLNET_BLOCK_MAX || end < b[i].at) {
			return (struct extent){ 0, UINT64_MAX };
		}
		e.begin = b[i].at < e.begin ? b[i].at : e.begin;
		e.end = end > e.end ? end : e.end;
	}
	return e.end > 0 ? e : (struct extent){ 0, 0 };
}

bool cn_call_send_blocks(const struct cn_call *c)
{
	return c->op == CN_OP_ALLTOALLV || c->op == CN_OP_REDUCE_SCATTERV ||
	       (c->op == CN_OP_SCATTERV && c->rank == c->root);
}

bool cn_call_recv_blocks(const struct cn_call *c)
{
	return c->op == CN_OP_ALLTOALLV || c->op == CN_OP_ALLGATHERV ||
	       (c->op == CN_OP_GATHERV && c->rank == c->root);
}

static struct extent send_extent(const struct cn_call *c)
{
	struct extent e = { 0, 0 };

	switch (c->op) {
	case CN_OP_ALLTOALL:
	case CN_OP_REDUCE_SCATTER:
		e.end = c->bytes * c->ranks;
		break;
	case CN_OP_ALLGATHER:
	case CN_OP_GATHER:
	case CN_OP_ALLREDUCE:
	case CN_OP_REDUCE:
	case CN_OP_SCAN:
	case CN_OP_EXSCAN:
		e.end = c->bytes;
		break;
	case CN_OP_BCAST:
		e.end = c->rank == c->root ? c->bytes : 0;
		break;
	case CN_OP_SCATTER:
		e.end = c->rank == c->root ? c->bytes * c->ranks : 0;
		break;
	case CN_OP_ALLTOALLV:
	case CN_OP_SCATTERV:
	case CN_OP_REDUCE_SCATTERV:
		if (cn_call_send_blocks(c)) {
			e = blocks_extent(c->blocks.send, c->ranks);
		}
		break;
	case CN_OP_ALLGATHERV:
		e.end = c->blocks.recv[c->rank].len;
		break;
	case CN_OP_GATHERV:
		e.end = c->blocks.send_len;
		break;
	case CN_OP_BARRIER:
		break;
	}
	return e;
}

static struct extent recv_extent(const struct cn_call *c)
{
	struct extent e = { 0, 0 };

	switch (c->op) {
	case CN_OP_ALLTOALL:
	case CN_OP_ALLGATHER:
		e.end = c->bytes * c->ranks;
		break;
	case CN_OP_BCAST:
	case CN_OP_SCATTER:
	case CN_OP_ALLREDUCE:
	case CN_OP_REDUCE_SCATTER:
	case CN_OP_SCAN:
		e.end = c->bytes;
		break;
	case CN_OP_GATHER:
		e.end = c->rank == c->root ? c->bytes * c->ranks : 0;
		break;
	case CN_OP_ALLTOALLV:
	case CN_OP_ALLGATHERV:
	case CN_OP_GATHERV:
		if (cn_call_recv_blocks(c)) {
			e = blocks_extent(c->blocks.recv, c->ranks);
		}
		break;
	case CN_OP_SCATTERV:
		e.end = c->blocks.recv_len;
		break;
	case CN_OP_REDUCE_SCATTERV:
		e.end = c->blocks.send[c->rank].len;
		break;
	case CN_OP_REDUCE:
		e.end = c->rank == c->root ? c->bytes : 0;
		break;
	case CN_OP_EXSCAN:
		e.end = c->rank > 0 ? c->bytes : 0;
		break;
	case CN_OP_BARRIER:
		break;
	}
	return e;
}

uint64_t cn_call_send_bytes(const struct cn_call *c)
{
	return send_extent(c).end;
}

uint64_t cn_call_recv_bytes(const struct cn_call *c)
{
	return recv_extent(c).end;
}

/* The longest block that is sent. */
static uint64_t longest_block(const struct cn_call *c)
{
	uint64_t most = c->bytes;

	for (uint32_t i = 0; c->op == CN_OP_REDUCE_SCATTERV && i < c->ranks; i++) {
		most = c->blocks.send[i].len > most ? c->blocks.send[i].len : most;
	}
	return most;
}

/*
 * Places of a reduce-scatter. A rank combines at most all blocks, those of its node's ranks each in
 * a place; and into its own block what each part and each rank of its node contributes.
 */
static uint64_t reduce_scatter_places(const struct cn_call *c, uint64_t slot)
{
	const uint64_t local = c->local, equal = (2 * (uint64_t)c->ranks + 2 * local) * slot;
	uint64_t all = 0, unequal;

	if (c->op != CN_OP_REDUCE_SCATTERV) {
		return equal;
	}
	for (uint32_t i = 0; i < c->ranks; i++) {
		all += cn_reduction_room(c->blocks.send[i].len);
	}
	unequal = local * all + (c->ranks + local) * cn_reduction_room(c->blocks.send[c->rank].len);
	return unequal < equal ? unequal : equal;
}

uint64_t cn_call_scratch_bytes(const struct cn_call *c)
{
	const uint64_t longest = longest_block(c), slot = longest + CN_REDUCTION_ALIGN;
	const uint64_t local = c->local;
	/* of an algorithm that doubles distances, and one more for ranks beyond a power of two */
	const uint64_t rounds = c->bytes <= CN_REDUCTION_SMALL ? cn_log2_up(c->ranks) + 1 : 1;
	const uint64_t element = c->element > 0 ? c->element : 1,
		       nodes = c->nodes > 0 ? c->nodes : 1;

	if (longest == 0 || longest > COLLNET_BLOCK_MAX || c->ranks < 2) {
		return 0;
	}
	switch (c->op) {
	case CN_OP_ALLREDUCE: {
		const uint64_t steps = (local + rounds) * slot;
		const uint64_t ring = (nodes + local) *
				      (c->bytes / nodes + element + CN_REDUCTION_ALIGN);

		const uint64_t most = steps > ring ? steps : ring;
		const uint64_t gathered = c->ranks * c->bytes + local * slot;

		return cn_reduction_gathers(c->ranks, c->bytes) && gathered > most ? gathered
										   : most;
	}
	case CN_OP_REDUCE:
		return (local + rounds) * slot;
	case CN_OP_REDUCE_SCATTER:
	case CN_OP_REDUCE_SCATTERV:
		return reduce_scatter_places(c, slot);
	case CN_OP_SCAN:
	case CN_OP_EXSCAN:
		return 2 * (local + rounds) * slot;
	default:
		return 0;
	}
}

bool cn_call_swaps(const struct cn_call *c, const void *send, const void *recv)
{
	return (cn_op_base(c->op) == CN_OP_ALLTOALL || cn_op_reduces(c->op)) && send == recv &&
	       cn_call_send_bytes(c) > 0 && cn_call_recv_bytes(c) > 0;
}

uint64_t cn_call_in_place(const struct cn_call *c)
{
	bool root = c->rank == c->root;

	switch (c->op) {
	case CN_OP_ALLGATHER:
		return c->rank * c->bytes;
	case CN_OP_ALLGATHERV:
		return c->blocks.recv[c->rank].at;
	case CN_OP_GATHER:
		return root ? c->rank * c->bytes : UINT64_MAX;
	case CN_OP_GATHERV:
		return root && c->blocks.recv[c->rank].len == c->blocks.send_len
			       ? c->blocks.recv[c->rank].at
			       : UINT64_MAX;
	case CN_OP_BCAST:
	case CN_OP_REDUCE:
		return root ? 0 : UINT64_MAX;
	case CN_OP_ALLREDUCE:
	case CN_OP_SCAN:
	case CN_OP_EXSCAN:
		return 0;
	case CN_OP_ALLTOALL:
	case CN_OP_ALLTOALLV:
		return 0;
	case CN_OP_SCATTER:
	case CN_OP_SCATTERV:
	case CN_OP_REDUCE_SCATTER:
	case CN_OP_REDUCE_SCATTERV:
	case CN_OP_BARRIER:
		break;
	}
	return UINT64_MAX;
}

/* True if send and recv, which overlap, are placed as in-place operation requires. */
static bool in_place(const struct cn_call *c, uintptr_t send, uintptr_t recv)
{
	uint64_t offset = cn_call_in_place(c);

	if (c->op == CN_OP_SCATTER && c->rank == c->root) {
		return recv == send + c->rank * c->bytes;
	}
	if (c->op == CN_OP_SCATTERV && c->rank == c->root) {
		return recv == send + c->blocks.send[c->rank].at &&
		       c->blocks.send[c->rank].len == c->blocks.recv_len;
	}
	return offset != UINT64_MAX && send == recv + offset;
}

/* Root, blocks, and that there are arrays of blocks where the rank needs them. */
static int check_shape(const struct cn_call *c, struct cn_err *err)
{
	const struct cn_blocks *b = &c->blocks;

	if (c->bytes > COLLNET_BLOCK_MAX || b->send_len > COLLNET_BLOCK_MAX ||
	    b->recv_len > COLLNET_BLOCK_MAX) {
		uint64_t most = b->send_len > b->recv_len ? b->send_len : b->recv_len;

		return cn_fail(err, COLLNET_EINVAL, "a block of %llu bytes is more than %llu",
			       (unsigned long long)(c->bytes > most ? c->bytes : most),
			       (unsigned long long)COLLNET_BLOCK_MAX);
	}
	if (c->root >= c->ranks) {
		return cn_fail(err, COLLNET_EINVAL, "root %u is not one of the team's %u ranks",
			       c->root, c->ranks);
	}
	if ((cn_call_send_blocks(c) && b->send == NULL) ||
	    (cn_call_recv_blocks(c) && b->recv == NULL)) {
		return cn_fail(err, COLLNET_EINVAL, "the counts are NULL");
	}
	return COLLNET_OK;
}

int cn_call_check_buffers(const struct cn_call *c, const void *send, const void *recv,
			  struct cn_err *err)
{
	struct extent out, in;
	uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv;
	int rc = check_shape(c, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	out = send_extent(c);
	in = recv_extent(c);
	if ((out.end > 0 && send == NULL) || (in.end > 0 && recv == NULL)) {
		return cn_fail(err, COLLNET_EINVAL, "%s is NULL",
			       c->op == CN_OP_BCAST	     ? "buffer"
			       : out.end > 0 && send == NULL ? "send"
							     : "recv");
	}
	if (out.end > SIZE_MAX || in.end > SIZE_MAX || (out.end > 0 && s > UINTPTR_MAX - out.end) ||
	    (in.end > 0 && r > UINTPTR_MAX - in.end)) {
		return cn_op_is_vector(c->op)
			       ? cn_fail(err, COLLNET_EINVAL,
					 "a block is longer than %llu bytes, or ends beyond the "
					 "address space",
					 (unsigned long long)COLLNET_BLOCK_MAX)
			       : cn_fail(err, COLLNET_EINVAL,
					 "buffers of %u blocks of %llu bytes end beyond the "
					 "address space",
					 c->ranks, (unsigned long long)c->bytes);
	}
	if (out.end == 0 || in.end == 0 || s + out.begin >= r + in.end ||
	    r + in.begin >= s + out.end || in_place(c, s, r)) {
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_EINVAL,
		       "send and recv of rank %u overlap, and not as %s in place has them", c->rank,
		       cn_op_name(c->op));
}
