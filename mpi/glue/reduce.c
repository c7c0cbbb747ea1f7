/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions by means of libcollnet's exchanges: blocks are exchanged, and each rank reduces them
 * with MPI_Reduce_local in rank order. So any datatype and operation is supported, commutative or
 * not, and the result has the same bits on all ranks and on every run with the same number of
 * ranks.
 *
 * Short vectors: an allgather, then every rank reduces all of them. Long ones: each rank reduces
 * one block (all-to-all), then an allgather; 2 (P - 1) S / P bytes per link, the minimum.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi/glue/glue.h"

/* Vectors of this size and below are reduced by every rank; equal on all ranks, as the size is. */
#define SHORT_BYTES 1024u

/*
 * Reduces `n` vectors of `count` elements, packed one after another at `in` with `stride` bytes
 * between them, into the packed vector at `out`.
 */
static int reduce_packed(const char *in, int n, size_t stride, void *out, int count,
			 MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	MPI_Aint lower, extent, true_lower, true_extent;
	int size = (int)glue_bytes(count, type), at;
	int rc = MPI_SUCCESS;

	PMPI_Type_get_extent(type, &lower, &extent);
	PMPI_Type_get_true_extent(type, &true_lower, &true_extent);
	size_t span = (size_t)(true_extent + (MPI_Aint)(count - 1) * extent);
	char *memory = malloc(2 * span);
	if (memory == NULL) {
		return MPI_ERR_NO_MEM;
	}
	char *a = memory - true_lower, *sum = memory + span - true_lower;
	at = 0;
	rc = PMPI_Unpack(in + (size_t)(n - 1) * stride, size, &at, sum, count, type, comm);
	for (int i = n - 2; i >= 0 && rc == MPI_SUCCESS; i--) {
		at = 0;
		rc = PMPI_Unpack(in + (size_t)i * stride, size, &at, a, count, type, comm);
		if (rc == MPI_SUCCESS) {
			rc = PMPI_Reduce_local(a, sum, count, type, op);
		}
	}
	at = 0;
	if (rc == MPI_SUCCESS) {
		rc = PMPI_Pack(sum, count, type, out, size, &at, comm);
	}
	free(memory);
	return rc;
}

/* in: the packed vector, padded to `size` blocks of `block` bytes; it is replaced by the result. */
static int reduce_long(struct glue_comm *c, char *vector, size_t block, int per_block, int count,
		       MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	collnet_request_t *r = NULL;
	int mine = count - c->rank * per_block;
	char *blocks = malloc(block * (size_t)c->size);

	if (blocks == NULL) {
		return MPI_ERR_NO_MEM;
	}
	int rc = glue_wait(c, "Allreduce",
			   collnet_ialltoall(c->team->team, vector, blocks, block, &o, &r), &r);
	mine = mine < 0 ? 0 : mine > per_block ? per_block : mine;
	char *result = vector + (size_t)c->rank * block;
	if (rc == MPI_SUCCESS && mine > 0) {
		rc = reduce_packed(blocks, c->size, block, result, mine, type, op, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_wait(c, "Allreduce",
			       collnet_iallgather(c->team->team, result, vector, block, &o, &r),
			       &r);
	}
	free(blocks);
	return rc;
}

static int reduce_short(struct glue_comm *c, char *vector, size_t bytes, int count,
			MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	collnet_request_t *r = NULL;
	char *all = malloc(bytes * (size_t)c->size);

	if (all == NULL) {
		return MPI_ERR_NO_MEM;
	}
	int rc = glue_wait(c, "Allreduce",
			   collnet_iallgather(c->team->team, vector, all, bytes, &o, &r), &r);
	if (rc == MPI_SUCCESS) {
		rc = reduce_packed(all, c->size, bytes, vector, count, type, op, comm);
	}
	free(all);
	return rc;
}

int glue_allreduce(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
		   MPI_Op op, MPI_Comm comm)
{
	size_t bytes = glue_bytes(count, type);
	int at = 0, size;

	if (bytes > COLLNET_BLOCK_MAX || !glue_decide(c, comm)) {
		return GLUE_DECLINED;
	}
	if (bytes == 0) {
		return MPI_SUCCESS;
	}
	PMPI_Type_size(type, &size);
	int per_block = (count + c->size - 1) / c->size;
	size_t block = (size_t)per_block * (size_t)size;
	char *vector = calloc(block, (size_t)c->size);
	if (vector == NULL) {
		return MPI_ERR_NO_MEM;
	}
	int rc = PMPI_Pack(send == MPI_IN_PLACE ? recv : send, count, type, vector, (int)bytes, &at,
			   comm);
	if (rc == MPI_SUCCESS) {
		rc = bytes <= SHORT_BYTES
			     ? reduce_short(c, vector, bytes, count, type, op, comm)
			     : reduce_long(c, vector, block, per_block, count, type, op, comm);
	}
	at = 0;
	if (rc == MPI_SUCCESS) {
		rc = PMPI_Unpack(vector, (int)bytes, &at, recv, count, type, comm);
	}
	free(vector);
	return rc;
}
