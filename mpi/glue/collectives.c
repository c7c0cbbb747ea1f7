/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's collectives by means of collnet's. Calls with blocks longer than COLLNET_BLOCK_MAX are
 * declined, and operations of no bytes complete at once, in the same way on all ranks.
 */
#include "mpi/glue/glue.h"

/* Whether the call ends here: it is declined, or complete because it moves nothing. */
static bool ends_here(struct glue_comm *c, MPI_Comm comm, enum glue_op op, size_t bytes, int *rc)
{
	*rc = MPI_SUCCESS;
	if (bytes == 0 && glue_decide(c, comm)) {
		return true;
	}
	if (bytes == 0 || bytes > COLLNET_BLOCK_MAX || !glue_serves(c, comm, op, bytes)) {
		*rc = GLUE_DECLINED;
		return true;
	}
	return false;
}

/* The end of an operation: the `blocks` blocks of `count` elements that it received go to recv. */
static int end(int rc, struct glue_packed *in, struct glue_packed *out, void *recv, uint32_t blocks,
	       int count, MPI_Datatype type, MPI_Comm comm)
{
	if (rc == MPI_SUCCESS) {
		rc = glue_unpack(out, recv, blocks, count, type, comm);
	}
	glue_packed_free(in);
	glue_packed_free(out);
	return rc;
}

int glue_barrier(struct glue_comm *c, MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	collnet_request_t *r = NULL;

	if (!glue_serves(c, comm, GLUE_Barrier, 0)) {
		return GLUE_DECLINED;
	}
	return glue_wait(c, "Barrier", collnet_ibarrier(c->team->team, &o, &r), &r);
}

int glue_bcast(struct glue_comm *c, void *buffer, int count, MPI_Datatype type, int root,
	       MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	size_t bytes = glue_bytes(count, type);
	collnet_request_t *r = NULL;
	struct glue_packed p, none = GLUE_NOT_PACKED;
	int rc;

	if (ends_here(c, comm, GLUE_Bcast, bytes, &rc)) {
		return rc;
	}
	rc = glue_pack(c, &p, buffer, 1, count, type, c->rank == root, comm);
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	rc = glue_wait(c, "Bcast",
		       collnet_ibcast(c->team->team, p.bytes, bytes, (uint32_t)root, &o, &r), &r);
	return end(rc, &none, &p, buffer, c->rank != root, count, type, comm);
}

int glue_allgather(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		   int nrecv, MPI_Datatype trecv, MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	size_t bytes = glue_bytes(nrecv, trecv);
	struct glue_packed in = GLUE_NOT_PACKED, out;
	collnet_request_t *r = NULL;
	int rc;

	if (ends_here(c, comm, GLUE_Allgather, bytes, &rc)) {
		return rc;
	}
	rc = glue_pack(c, &out, recv, (uint32_t)c->size, nrecv, trecv, false, comm);
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	char *mine = (char *)out.bytes + (size_t)c->rank * bytes;
	if (send == MPI_IN_PLACE) {
		/* The library takes the rank's own block of the result as what it sends. */
		if (out.owned != NULL) {
			rc = glue_pack(c, &in, glue_block(recv, (uint32_t)c->rank, nrecv, trecv), 1,
				       nrecv, trecv, true, comm);
		} else {
			in.bytes = mine;
		}
	} else {
		rc = glue_pack(c, &in, send, 1, nsend, tsend, true, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_wait(c, "Allgather",
			       collnet_iallgather(c->team->team, in.bytes, out.bytes, bytes, &o,
						  &r),
			       &r);
	}
	return end(rc, &in, &out, recv, (uint32_t)c->size, nrecv, trecv, comm);
}

int glue_alltoall(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		  int nrecv, MPI_Datatype trecv, MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	size_t bytes = glue_bytes(nrecv, trecv);
	struct glue_packed in = GLUE_NOT_PACKED, out;
	uint32_t size = (uint32_t)c->size;
	collnet_request_t *r = NULL;
	int rc;

	if (ends_here(c, comm, GLUE_Alltoall, bytes, &rc)) {
		return rc;
	}
	rc = glue_pack(c, &out, recv, size, nrecv, trecv, false, comm);
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	if (send == MPI_IN_PLACE) {
		/* The library copies what it sends from its receive buffer. */
		rc = glue_pack(c, &in, recv, size, nrecv, trecv, true, comm);
	} else {
		rc = glue_pack(c, &in, send, size, nsend, tsend, true, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_wait(c, "Alltoall",
			       collnet_ialltoall(c->team->team, in.bytes, out.bytes, bytes, &o, &r),
			       &r);
	}
	return end(rc, &in, &out, recv, size, nrecv, trecv, comm);
}

int glue_gather(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		int nrecv, MPI_Datatype trecv, int root, MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	struct glue_packed in = GLUE_NOT_PACKED, out = GLUE_NOT_PACKED;
	bool is_root = c->rank == root;
	size_t bytes = is_root ? glue_bytes(nrecv, trecv) : glue_bytes(nsend, tsend);
	uint32_t size = (uint32_t)c->size;
	collnet_request_t *r = NULL;
	int rc;

	if (ends_here(c, comm, GLUE_Gather, bytes, &rc)) {
		return rc;
	}
	if (is_root) {
		rc = glue_pack(c, &out, recv, size, nrecv, trecv, false, comm);
	}
	if (rc == MPI_SUCCESS && is_root && send == MPI_IN_PLACE) {
		if (out.owned != NULL) {
			rc = glue_pack(c, &in, glue_block(recv, (uint32_t)root, nrecv, trecv), 1,
				       nrecv, trecv, true, comm);
		} else {
			in.bytes = (char *)out.bytes + (size_t)root * bytes;
		}
	} else if (rc == MPI_SUCCESS) {
		rc = glue_pack(c, &in, send, 1, nsend, tsend, true, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_wait(c, "Gather",
			       collnet_igather(c->team->team, in.bytes, out.bytes, bytes,
					       (uint32_t)root, &o, &r),
			       &r);
	}
	return end(rc, &in, &out, recv, is_root ? size : 0, nrecv, trecv, comm);
}

int glue_scatter(struct glue_comm *c, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		 int nrecv, MPI_Datatype trecv, int root, MPI_Comm comm)
{
	struct collnet_coll_options o = glue_options();
	struct glue_packed in = GLUE_NOT_PACKED, out = GLUE_NOT_PACKED;
	bool is_root = c->rank == root, in_place = is_root && recv == MPI_IN_PLACE;
	size_t bytes = is_root ? glue_bytes(nsend, tsend) : glue_bytes(nrecv, trecv);
	collnet_request_t *r = NULL;
	int rc;

	if (ends_here(c, comm, GLUE_Scatter, bytes, &rc)) {
		return rc;
	}
	if (is_root) {
		rc = glue_pack(c, &in, send, (uint32_t)c->size, nsend, tsend, true, comm);
	}
	if (rc == MPI_SUCCESS && in_place) {
		out.bytes = (char *)in.bytes + (size_t)root * bytes;
	} else if (rc == MPI_SUCCESS) {
		rc = glue_pack(c, &out, recv, 1, nrecv, trecv, false, comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_wait(c, "Scatter",
			       collnet_iscatter(c->team->team, in.bytes, out.bytes, bytes,
						(uint32_t)root, &o, &r),
			       &r);
	}
	return end(rc, &in, &out, recv, !in_place, nrecv, trecv, comm);
}
