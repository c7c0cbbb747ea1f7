/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's collectives by means of collnet's. Calls with blocks longer than COLLNET_BLOCK_MAX are
 * declined, and operations of no bytes complete at once, in the same way on all ranks.
 */
#include "mpi/glue/glue.h"

/* ---- collnet's operations, of calls whose blocks are packed ------------------------------- */

static int barrier(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_ibarrier(k->team->team, o, &k->request);
}

static int bcast(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_ibcast(k->team->team, k->out.bytes, k->bytes, k->root, o, &k->request);
}

static int allgather(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_iallgather(k->team->team, k->in.bytes, k->out.bytes, k->bytes, o,
				  &k->request);
}

static int alltoall(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_ialltoall(k->team->team, k->in.bytes, k->out.bytes, k->bytes, o,
				 &k->request);
}

static int gather(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_igather(k->team->team, k->in.bytes, k->out.bytes, k->bytes, k->root, o,
			       &k->request);
}

static int scatter(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_iscatter(k->team->team, k->in.bytes, k->out.bytes, k->bytes, k->root, o,
				&k->request);
}

/* ---- MPI's ---------------------------------------------------------------------------------- */

/* Whether the call ends here: it is declined, or complete because it moves nothing. */
static bool ends_here(struct glue_call *k, enum glue_op op, size_t bytes, int *rc)
{
	*rc = MPI_SUCCESS;
	if (bytes == 0 && !glue_decides_later(k, 0) && glue_decide(k, 0)) {
		return true;
	}
	if (bytes == 0 || bytes > COLLNET_BLOCK_MAX || !glue_serves(k, op, bytes)) {
		*rc = GLUE_DECLINED;
		return true;
	}
	return false;
}

/* What a rank sends is its block of the result: the library accepts that it is in place. */
static int pack_own_block(struct glue_call *k, const struct glue_blocks *received)
{
	struct glue_blocks own = *received;

	own.data = glue_block(received, (uint32_t)k->c->rank);
	own.n = 1;
	if (k->out.owned != NULL) {
		return glue_pack(k, &k->in, &own, GLUE_SENT);
	}
	k->in.bytes = own.data;
	return MPI_SUCCESS;
}

int glue_barrier(struct glue_call *k)
{
	if (!glue_serves(k, GLUE_Barrier, 0)) {
		return GLUE_DECLINED;
	}
	return glue_post(k, "Barrier", barrier);
}

int glue_bcast(struct glue_call *k, void *buffer, int count, MPI_Datatype type, int root)
{
	const struct glue_blocks block = { .data = buffer, .n = 1, .count = count, .type = type };
	size_t bytes = glue_bytes(count, type);
	int rc;

	if (ends_here(k, GLUE_Bcast, bytes, &rc)) {
		return rc;
	}
	rc = glue_pack(k, &k->out, &block, k->c->rank == root ? GLUE_SENT : GLUE_RECEIVED);
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	k->bytes = bytes;
	k->root = (uint32_t)root;
	return glue_post(k, "Bcast", bcast);
}

int glue_allgather(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		   int nrecv, MPI_Datatype trecv)
{
	const struct glue_blocks sent = {
		.data = (void *)send, .n = 1, .count = nsend, .type = tsend
	};
	const struct glue_blocks received = {
		.data = recv, .n = (uint32_t)k->c->size, .count = nrecv, .type = trecv
	};
	size_t bytes = glue_bytes(nrecv, trecv);
	int rc;

	if (ends_here(k, GLUE_Allgather, bytes, &rc)) {
		return rc;
	}
	rc = send == MPI_IN_PLACE ? MPI_SUCCESS : glue_match(bytes, nsend, tsend);
	if (rc == MPI_SUCCESS) {
		rc = glue_pack(k, &k->out, &received, GLUE_RECEIVED);
	}
	if (rc == MPI_SUCCESS) {
		rc = send == MPI_IN_PLACE ? pack_own_block(k, &received)
					  : glue_pack(k, &k->in, &sent, GLUE_SENT);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	k->bytes = bytes;
	return glue_post(k, "Allgather", allgather);
}

int glue_alltoall(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		  int nrecv, MPI_Datatype trecv)
{
	const uint32_t size = (uint32_t)k->c->size;
	const struct glue_blocks sent = {
		.data = (void *)send, .n = size, .count = nsend, .type = tsend
	};
	const struct glue_blocks received = {
		.data = recv, .n = size, .count = nrecv, .type = trecv
	};
	size_t bytes = glue_bytes(nrecv, trecv);
	int rc;

	if (ends_here(k, GLUE_Alltoall, bytes, &rc)) {
		return rc;
	}
	rc = send == MPI_IN_PLACE ? MPI_SUCCESS : glue_match(bytes, nsend, tsend);
	if (rc == MPI_SUCCESS) {
		rc = glue_pack(k, &k->out, &received, GLUE_RECEIVED);
	}
	if (rc == MPI_SUCCESS) {
		/* In place, the library copies what it sends from its receive buffer. */
		rc = glue_pack(k, &k->in, send == MPI_IN_PLACE ? &received : &sent, GLUE_SENT);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	k->bytes = bytes;
	return glue_post(k, "Alltoall", alltoall);
}

int glue_gather(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		int nrecv, MPI_Datatype trecv, int root)
{
	const struct glue_blocks sent = {
		.data = (void *)send, .n = 1, .count = nsend, .type = tsend
	};
	const struct glue_blocks received = {
		.data = recv, .n = (uint32_t)k->c->size, .count = nrecv, .type = trecv
	};
	const bool is_root = k->c->rank == root;
	size_t bytes = is_root ? glue_bytes(nrecv, trecv) : glue_bytes(nsend, tsend);
	int rc;

	k->root = (uint32_t)root;
	if (ends_here(k, GLUE_Gather, bytes, &rc)) {
		return rc;
	}
	if (is_root && send != MPI_IN_PLACE) {
		rc = glue_match(bytes, nsend, tsend);
	}
	if (rc == MPI_SUCCESS && is_root) {
		rc = glue_pack(k, &k->out, &received, GLUE_RECEIVED);
	}
	if (rc == MPI_SUCCESS) {
		rc = is_root && send == MPI_IN_PLACE ? pack_own_block(k, &received)
						     : glue_pack(k, &k->in, &sent, GLUE_SENT);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	k->bytes = bytes;
	return glue_post(k, "Gather", gather);
}

int glue_scatter(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		 int nrecv, MPI_Datatype trecv, int root)
{
	const struct glue_blocks sent = {
		.data = (void *)send, .n = (uint32_t)k->c->size, .count = nsend, .type = tsend
	};
	const struct glue_blocks received = { .data = recv, .n = 1, .count = nrecv, .type = trecv };
	const bool is_root = k->c->rank == root;
	size_t bytes = is_root ? glue_bytes(nsend, tsend) : glue_bytes(nrecv, trecv);
	int rc;

	k->root = (uint32_t)root;
	if (ends_here(k, GLUE_Scatter, bytes, &rc)) {
		return rc;
	}
	if (is_root && recv != MPI_IN_PLACE) {
		rc = glue_match(glue_bytes(nrecv, trecv), nsend, tsend);
	}
	if (rc == MPI_SUCCESS && is_root) {
		rc = glue_pack(k, &k->in, &sent, GLUE_SENT);
	}
	if (rc == MPI_SUCCESS && is_root && recv == MPI_IN_PLACE) {
		k->out.bytes = (char *)k->in.bytes + (size_t)root * bytes;
	} else if (rc == MPI_SUCCESS) {
		rc = glue_pack(k, &k->out, &received, GLUE_RECEIVED);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	k->bytes = bytes;
	return glue_post(k, "Scatter", scatter);
}
