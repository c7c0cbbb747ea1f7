/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's collectives with a count for each rank. A rank knows its own counts only, so these calls
 * are never declined for them: a block that is longer than COLLNET_BLOCK_MAX is an error.
 *
 * MPI displaces blocks by extents of a type, in either direction; collnet by bytes from the lowest.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi/glue/glue.h"

/* The blocks of one side of a call as collnet sees them. */
struct blocks {
	struct glue_packed packed;
	size_t *counts, *displs; /* bytes; the second is part of the first's memory */
	size_t bytes;		 /* of all */
};

static const struct blocks no_blocks = { .bytes = 0 };

static void *block_at(const void *data, int displ, MPI_Datatype type)
{
	MPI_Aint lower, extent;

	PMPI_Type_get_extent(type, &lower, &extent);
	return (char *)data + (MPI_Aint)displ * extent;
}

static int pack(struct glue_comm *c, struct blocks *b, const void *data, uint32_t n,
		const int *counts, const int *displs, MPI_Datatype type, bool filled, MPI_Comm comm)
{
	char *at;
	int low = 0;

	*b = no_blocks;
	b->counts = calloc(2 * (size_t)n, sizeof(*b->counts));
	if (b->counts == NULL) {
		return MPI_ERR_NO_MEM;
	}
	b->displs = b->counts + n;
	for (uint32_t i = 0; i < n; i++) {
		b->counts[i] = glue_bytes(counts[i], type);
		b->displs[i] = b->bytes;
		b->bytes += b->counts[i];
		low = i == 0 || displs[i] < low ? displs[i] : low;
	}
	if (glue_is_contiguous(type)) {
		b->packed.bytes = block_at(data, low, type);
		for (uint32_t i = 0; i < n; i++) {
			b->displs[i] = (size_t)((char *)block_at(data, displs[i], type) -
						(char *)b->packed.bytes);
		}
		return MPI_SUCCESS;
	}
	at = glue_packed_alloc(c, &b->packed, b->bytes);
	if (at == NULL) {
		return MPI_ERR_NO_MEM;
	}
	for (uint32_t i = 0; filled && i < n; i++) {
		int rc = glue_pack_block(block_at(data, displs[i], type), counts[i], type,
					 at + b->displs[i], b->counts[i], comm);

		if (rc != MPI_SUCCESS) {
			return rc;
		}
	}
	return MPI_SUCCESS;
}

/* What was received goes to its place; for a type that is contiguous it is there already. */
static int unpack(const struct blocks *b, void *data, uint32_t n, const int *counts,
		  const int *displs, MPI_Datatype type, MPI_Comm comm)
{
	for (uint32_t i = 0; b->packed.owned != NULL && i < n; i++) {
		int rc = glue_unpack_block((char *)b->packed.bytes + b->displs[i], b->counts[i],
					   block_at(data, displs[i], type), counts[i], type, comm);

		if (rc != MPI_SUCCESS) {
			return rc;
		}
	}
	return MPI_SUCCESS;
}

static void free_blocks(struct blocks *b)
{
	glue_packed_free(&b->packed);
	free(b->counts);
}

static void *own_block(const struct blocks *b, int rank)
{
	return (char *)b->packed.bytes + b->displs[rank];
}

static int exchange(struct glue_comm *c, const char *what, const struct blocks *in,
		    const struct blocks *out)
{
	struct collnet_coll_options o = glue_options();
	collnet_request_t *r = NULL;

	return glue_wait(c, what,
			 collnet_ialltoallv(c->team->team, in->packed.bytes, in->counts, in->displs,
					    out->packed.bytes, out->counts, out->displs, &o, &r),
			 &r);
}

int glue_alltoallv(struct glue_comm *c, const void *send, const int *send_counts,
		   const int *send_displs, MPI_Datatype tsend, void *recv, const int *recv_counts,
		   const int *recv_displs, MPI_Datatype trecv, MPI_Comm comm)
{
	struct blocks in = no_blocks, out = no_blocks;
	uint32_t n = (uint32_t)c->size;
	int rc;

	if (!glue_serves(c, comm, GLUE_Alltoallv, 0)) {
		return GLUE_DECLINED;
	}
	rc = pack(c, &out, recv, n, recv_counts, recv_displs, trecv, false, comm);
	if (rc == MPI_SUCCESS && send == MPI_IN_PLACE) {
		/* The library copies what it sends from its receive buffer. */
		rc = pack(c, &in, recv, n, recv_counts, recv_displs, trecv, true, comm);
	} else if (rc == MPI_SUCCESS) {
		rc = pack(c, &in, send, n, send_counts, send_displs, tsend, true, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = exchange(c, "Alltoallv", &in, &out);
	}
	if (rc == MPI_SUCCESS) {
		rc = unpack(&out, recv, n, recv_counts, recv_displs, trecv, comm);
	}
	free_blocks(&in);
	free_blocks(&out);
	return rc;
}

/* Blocks with a type each, packed; displacements are in bytes. */
static int pack_each(struct glue_comm *c, struct blocks *b, const void *data, uint32_t n,
		     const int *counts, const int *displs, const MPI_Datatype *types, bool filled,
		     MPI_Comm comm)
{
	*b = no_blocks;
	b->counts = calloc(2 * (size_t)n, sizeof(*b->counts));
	if (b->counts == NULL) {
		return MPI_ERR_NO_MEM;
	}
	b->displs = b->counts + n;
	for (uint32_t i = 0; i < n; i++) {
		b->counts[i] = glue_bytes(counts[i], types[i]);
		b->displs[i] = b->bytes;
		b->bytes += b->counts[i];
	}
	if (glue_packed_alloc(c, &b->packed, b->bytes) == NULL) {
		return MPI_ERR_NO_MEM;
	}
	for (uint32_t i = 0; filled && i < n; i++) {
		int rc = b->counts[i] == 0
				 ? MPI_SUCCESS
				 : glue_pack_block((const char *)data + displs[i], counts[i],
						   types[i], own_block(b, (int)i), b->counts[i],
						   comm);

		if (rc != MPI_SUCCESS) {
			return rc;
		}
	}
	return MPI_SUCCESS;
}

static int unpack_each(const struct blocks *b, void *data, uint32_t n, const int *counts,
		       const int *displs, const MPI_Datatype *types, MPI_Comm comm)
{
	for (uint32_t i = 0; i < n; i++) {
		int rc = b->counts[i] == 0 ? MPI_SUCCESS
					   : glue_unpack_block(own_block(b, (int)i), b->counts[i],
							       (char *)data + displs[i], counts[i],
							       types[i], comm);

		if (rc != MPI_SUCCESS) {
			return rc;
		}
	}
	return MPI_SUCCESS;
}

int glue_alltoallw(struct glue_comm *c, const void *send, const int *send_counts,
		   const int *send_displs, const MPI_Datatype *tsend, void *recv,
		   const int *recv_counts, const int *recv_displs, const MPI_Datatype *trecv,
		   MPI_Comm comm)
{
	struct blocks in = no_blocks, out = no_blocks;
	uint32_t n = (uint32_t)c->size;
	int rc;

	if (!glue_serves(c, comm, GLUE_Alltoallw, 0)) {
		return GLUE_DECLINED;
	}
	rc = pack_each(c, &out, recv, n, recv_counts, recv_displs, trecv, false, comm);
	if (rc == MPI_SUCCESS && send == MPI_IN_PLACE) {
		rc = pack_each(c, &in, recv, n, recv_counts, recv_displs, trecv, true, comm);
	} else if (rc == MPI_SUCCESS) {
		rc = pack_each(c, &in, send, n, send_counts, send_displs, tsend, true, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = exchange(c, "Alltoallw", &in, &out);
	}
	if (rc == MPI_SUCCESS) {
		rc = unpack_each(&out, recv, n, recv_counts, recv_displs, trecv, comm);
	}
	free_blocks(&in);
	free_blocks(&out);
	return rc;
}

int glue_allgatherv(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend,
		    void *recv, const int *counts, const int *displs, MPI_Datatype trecv,
		    MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	struct glue_packed in = GLUE_NOT_PACKED;
	struct blocks out = no_blocks;
	uint32_t n = (uint32_t)c->size;
	collnet_request_t *r = NULL;
	int rc;

	if (!glue_serves(c, comm, GLUE_Allgatherv, 0)) {
		return GLUE_DECLINED;
	}
	rc = pack(c, &out, recv, n, counts, displs, trecv, false, comm);
	if (rc == MPI_SUCCESS && send != MPI_IN_PLACE) {
		rc = glue_pack(c, &in, send, 1, nsend, tsend, true, comm);
	} else if (rc == MPI_SUCCESS && out.packed.owned != NULL) {
		rc = glue_pack(c, &in, block_at(recv, displs[c->rank], trecv), 1, counts[c->rank],
			       trecv, true, comm);
	} else if (rc == MPI_SUCCESS) {
		in.bytes = own_block(&out, c->rank);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_wait(c, "Allgatherv",
			       collnet_iallgatherv(c->team->team, in.bytes, out.counts[c->rank],
						   out.packed.bytes, out.counts, out.displs, &o,
						   &r),
			       &r);
	}
	if (rc == MPI_SUCCESS) {
		rc = unpack(&out, recv, n, counts, displs, trecv, comm);
	}
	glue_packed_free(&in);
	free_blocks(&out);
	return rc;
}

int glue_gatherv(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		 const int *counts, const int *displs, MPI_Datatype trecv, int root, MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	struct glue_packed in = GLUE_NOT_PACKED;
	struct blocks out = no_blocks;
	bool is_root = c->rank == root, in_place = is_root && send == MPI_IN_PLACE;
	uint32_t n = (uint32_t)c->size;
	collnet_request_t *r = NULL;
	size_t bytes = 0;
	int rc = MPI_SUCCESS;

	if (!glue_serves(c, comm, GLUE_Gatherv, 0)) {
		return GLUE_DECLINED;
	}
	if (is_root) {
		rc = pack(c, &out, recv, n, counts, displs, trecv, false, comm);
	}
	if (rc == MPI_SUCCESS && in_place) {
		bytes = out.counts[root];
		in.bytes = own_block(&out, root);
		if (out.packed.owned != NULL) {
			rc = glue_pack(c, &in, block_at(recv, displs[root], trecv), 1, counts[root],
				       trecv, true, comm);
		}
	} else if (rc == MPI_SUCCESS) {
		bytes = glue_bytes(nsend, tsend);
		rc = glue_pack(c, &in, send, 1, nsend, tsend, true, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_wait(c, "Gatherv",
			       collnet_igatherv(c->team->team, in.bytes, bytes, out.packed.bytes,
						out.counts, out.displs, (uint32_t)root, &o, &r),
			       &r);
	}
	if (rc == MPI_SUCCESS && is_root) {
		rc = unpack(&out, recv, n, counts, displs, trecv, comm);
	}
	glue_packed_free(&in);
	free_blocks(&out);
	return rc;
}

int glue_scatterv(struct glue_comm *c, const void *send, const int *counts, const int *displs,
		  MPI_Datatype tsend, void *recv, int nrecv, MPI_Datatype trecv, int root,
		  MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	struct glue_packed out = GLUE_NOT_PACKED;
	struct blocks in = no_blocks;
	bool is_root = c->rank == root, in_place = is_root && recv == MPI_IN_PLACE;
	collnet_request_t *r = NULL;
	size_t bytes = 0;
	int rc = MPI_SUCCESS;

	if (!glue_serves(c, comm, GLUE_Scatterv, 0)) {
		return GLUE_DECLINED;
	}
	if (is_root) {
		rc = pack(c, &in, send, (uint32_t)c->size, counts, displs, tsend, true, comm);
	}
	if (rc == MPI_SUCCESS && in_place) {
		bytes = in.counts[root];
		out.bytes = own_block(&in, root);
	} else if (rc == MPI_SUCCESS) {
		bytes = glue_bytes(nrecv, trecv);
		rc = glue_pack(c, &out, recv, 1, nrecv, trecv, false, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_wait(c, "Scatterv",
			       collnet_iscatterv(c->team->team, in.packed.bytes, in.counts,
						 in.displs, out.bytes, bytes, (uint32_t)root, &o,
						 &r),
			       &r);
	}
	if (rc == MPI_SUCCESS && !in_place) {
		rc = glue_unpack(&out, recv, 1, nrecv, trecv, comm);
	}
	glue_packed_free(&out);
	free_blocks(&in);
	return rc;
}
