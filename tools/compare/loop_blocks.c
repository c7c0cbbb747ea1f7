/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the operations send and receive. Pure.
 */
#include "tools/compare/loop.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/pattern.h"

#define NO_ITERATION UINT64_MAX /* lengths are equal in all iterations */

static const struct shape {
	const char *name, *function;
	bool send_all, recv_all;     /* a block per rank, not one */
	bool root_sends, root_recvs; /* only rank 0 does */
	bool own;		     /* every receiver has a block of its own */
	bool reduces;		     /* what is received is the exclusive or of the ranks' blocks */
	bool vector;		     /* blocks have lengths of their own */
} shapes[LOOP_OPS] = {
	[LOOP_ALLTOALL] = { "alltoall", "MPI_Alltoall", .send_all = true, .recv_all = true,
			    .own = true },
	[LOOP_ALLTOALLV] = { "alltoallv", "MPI_Alltoallv", .send_all = true, .recv_all = true,
			     .own = true, .vector = true },
	[LOOP_ALLGATHER] = { "allgather", "MPI_Allgather", .recv_all = true },
	[LOOP_ALLGATHERV] = { "allgatherv", "MPI_Allgatherv", .recv_all = true, .vector = true },
	[LOOP_BCAST] = { "bcast", "MPI_Bcast", .root_sends = true },
	[LOOP_SCATTER] = { "scatter", "MPI_Scatter", .send_all = true, .root_sends = true,
			   .own = true },
	[LOOP_GATHER] = { "gather", "MPI_Gather", .recv_all = true, .root_recvs = true },
	[LOOP_GATHERV] = { "gatherv", "MPI_Gatherv", .recv_all = true, .root_recvs = true,
			   .vector = true },
	[LOOP_ALLREDUCE] = { "allreduce", "MPI_Allreduce", .reduces = true },
	[LOOP_REDUCE] = { "reduce", "MPI_Reduce", .root_recvs = true, .reduces = true },
	[LOOP_REDUCE_SCATTER] = { "reduce_scatter", "MPI_Reduce_scatter_block", .send_all = true,
				  .own = true, .reduces = true },
	[LOOP_SCAN] = { "scan", "MPI_Scan", .reduces = true },
	[LOOP_BARRIER] = { .name = "barrier", .function = "MPI_Barrier" },
};

const char *loop_op_name(enum loop_op op)
{
	return shapes[op].name;
}

const char *loop_op_function(enum loop_op op)
{
	return shapes[op].function;
}

enum loop_op loop_op_find(const char *name)
{
	int op = 0;

	while (op < LOOP_OPS && strcmp(name, shapes[op].name) != 0) {
		op++;
	}
	return (enum loop_op)op;
}

bool loop_op_reduces(enum loop_op op)
{
	return shapes[op].reduces;
}

uint32_t loop_operands(enum loop_op op, uint32_t rank, uint32_t ranks)
{
	return op == LOOP_SCAN ? rank + 1 : ranks;
}

uint32_t loop_destination(enum loop_op op, uint32_t destination)
{
	return shapes[op].own ? destination : BENCH_EVERYONE;
}

uint32_t loop_source(enum loop_op op, uint32_t i)
{
	return shapes[op].root_sends ? 0 : i;
}

uint32_t loop_send_blocks(enum loop_op op, uint32_t rank, uint32_t ranks)
{
	const struct shape *s = &shapes[op];

	if (op == LOOP_BARRIER || op == LOOP_BCAST || (s->root_sends && rank != 0)) {
		return 0;
	}
	return s->send_all ? ranks : 1;
}

uint32_t loop_recv_blocks(enum loop_op op, uint32_t rank, uint32_t ranks)
{
	const struct shape *s = &shapes[op];

	if (op == LOOP_BARRIER || (s->root_recvs && rank != 0)) {
		return 0;
	}
	return s->recv_all ? ranks : 1;
}

/* The bytes of a block; of a vector operation 0 to 2 `bytes`, drawn from the seed. */
static uint64_t loop_length(enum loop_op op, uint64_t seed, uint64_t bytes, uint32_t source,
			    uint32_t destination)
{
	if (!shapes[op].vector) {
		return bytes;
	}
	return bench_pattern(seed, NO_ITERATION, source, loop_destination(op, destination)).base %
	       (2 * bytes + 1);
}

int loop_layout(struct loop_layout *l, enum loop_op op, bool sends, uint64_t seed, uint64_t bytes,
		uint32_t rank, uint32_t ranks)
{
	uint32_t n = sends ? loop_send_blocks(op, rank, ranks) : loop_recv_blocks(op, rank, ranks);

	loop_layout_free(l);
	l->bytes = calloc((size_t)n + 1, 2 * sizeof(*l->bytes));
	l->count = calloc((size_t)n + 1, 2 * sizeof(*l->count));
	if (l->bytes == NULL || l->count == NULL) {
		return 1;
	}
	l->n = n;
	l->at = l->bytes + n;
	l->displ = l->count + n;
	for (uint32_t i = 0; i < n; i++) {
		l->bytes[i] = sends ? loop_length(op, seed, bytes, rank, i)
				    : loop_length(op, seed, bytes, loop_source(op, i), rank);
		l->at[i] = l->total;
		l->total += l->bytes[i];
		if (l->total > INT_MAX && shapes[op].vector) {
			return 1;
		}
		l->count[i] = (int)l->bytes[i];
		l->displ[i] = (int)l->at[i];
	}
	return 0;
}

void loop_layout_free(struct loop_layout *l)
{
	free(l->bytes);
	free(l->count);
	memset(l, 0, sizeof(*l));
}

static uint64_t largest(const uint64_t *v, uint32_t n)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < n; i++) {
		most = v[i] > most ? v[i] : most;
	}
	return most;
}

uint64_t loop_time(enum loop_op op, int one_clock, const uint64_t *call, const uint64_t *ret,
		   uint32_t ranks)
{
	uint64_t from, to, most = 0;

	if (one_clock) {
		from = shapes[op].root_sends ? call[0] : largest(call, ranks);
		to = largest(ret, ranks);
		return to > from ? to - from : 0;
	}
	for (uint32_t r = 0; r < ranks; r++) {
		most = ret[r] - call[r] > most ? ret[r] - call[r] : most;
	}
	return most;
}

int loop_barrier_is_valid(const uint64_t *call, const uint64_t *ret, uint32_t ranks)
{
	uint64_t last = largest(call, ranks);

	for (uint32_t r = 0; r < ranks; r++) {
		if (ret[r] < last) {
			return 0;
		}
	}
	return 1;
}
