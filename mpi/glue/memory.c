/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reserves memory for long calls. Data is copied to and from memory shared with the daemon, and a
 * reduction has a buffer for each value; the daemon bounds the memory of a user, and the process
 * has a limited address space. A rank without memory when its operation starts fails too late: the
 * others have started theirs and wait. Each rank therefore allocates the memory of a blocking call
 * before it starts, and the call is left to MPI unless all succeed. A size that all ranks had once
 * is not checked again: the library keeps the memory for the next operation. For a gather or
 * scatter, that is the size of a rank other than the root.
 *
 * A non-blocking call cannot exchange messages with the other ranks. It uses the results of
 * blocking calls or, without any, its length. The ranks agree on a persistent call after its
 * preparation. Operations with a count per rank are not checked, since a rank does not know the
 * others' counts, except MPI_Allgatherv() and MPI_Reduce_scatter(), whose counts all ranks know.
 */
#include <inttypes.h>
#include <stdio.h>

#include "mpi/glue/glue.h"

/* Calls that take less are not asked for. */
#define ASKED_MIN ((uint64_t)16 << 20)

/* Non-blocking calls of which nothing is known take no more. */
#define UNASKED_MAX ((uint64_t)256 << 20)

struct takes {
	uint64_t most, least; /* bytes of a rank, as all ranks know */
	uint64_t mine;	      /* of this rank */
};

/*
 * What is sent and received, and the scratch memory of reductions (cn_call_scratch_bytes()). Holes
 * of pairs, which MPI does not count, are a third of them at most.
 */
static uint64_t needed(const struct glue_call *k, enum glue_op op, uint64_t bytes)
{
	const uint64_t n = (uint64_t)k->c->size, nodes = k->team->nodes;
	const uint64_t local = (n + nodes - 1) / nodes, with_holes = bytes + bytes / 3;

	switch (op) {
	case GLUE_Bcast:
		return bytes;
	case GLUE_Allgatherv:
		return k->bytes;
	case GLUE_Allgather:
	case GLUE_Gather:
	case GLUE_Scatter:
		return (n + 1) * bytes;
	case GLUE_Alltoall:
		return 2 * n * bytes;
	case GLUE_Allreduce:
	case GLUE_Reduce:
		return (local + 3) * with_holes;
	case GLUE_Scan:
	case GLUE_Exscan:
		return (2 * local + 4) * with_holes;
	case GLUE_Reduce_scatter_block:
		return (3 * n + 2 * local + 1) * with_holes;
	case GLUE_Reduce_scatter:
		return with_holes + (2 * n + 2 * local + 1) * (k->bytes + k->bytes / 3);
	default:
		return 0;
	}
}

/* bytes: as glue_serves() has them. Copies are kept in memory that is up to a quarter longer. */
static struct takes takes(const struct glue_call *k, enum glue_op op, uint64_t bytes)
{
	const bool rooted = op == GLUE_Gather || op == GLUE_Scatter;
	const uint64_t all = needed(k, op, bytes), one = rooted ? bytes : all;
	struct takes t = { .most = all + all / 4, .least = one + one / 4 };

	t.mine = (uint32_t)k->c->rank == k->root ? t.most : t.least;
	return t;
}

bool glue_has_memory(struct glue_call *k, enum glue_op op, size_t bytes)
{
	const struct takes t = takes(k, op, bytes);
	struct glue_team *team = k->team;
	char text[160];
	void *memory;
	int64_t all;

	if (k->persistent || t.most < ASKED_MIN || t.most <= team->had) {
		return true;
	}
	if (team->lacked != 0 && t.most >= team->lacked) {
		return false;
	}
	if (k->nonblocking) {
		return t.most <= UNASKED_MAX;
	}
	memory = collnet_alloc(team->context, t.mine);
	all = memory != NULL;
	if (glue_min(k, &all, 1) != MPI_SUCCESS) {
		all = 1; /* the call itself will tell why */
	} else if (all != 0) {
		team->had = t.least > team->had ? t.least : team->had;
	} else {
		team->lacked = t.most;
	}
	collnet_free(team->context, memory);
	if (all == 0 && k->c->rank == 0) {
		snprintf(text, sizeof(text),
			 "MPI_%s: a rank cannot allocate the %" PRIu64
			 " bytes of shared memory that it needs: by MPI",
			 glue_op_name(op), t.most);
		glue_explain(k->c, k->comm, 1, text);
	}
	return all != 0;
}
