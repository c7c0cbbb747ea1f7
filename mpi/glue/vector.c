/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's collectives with a count for each rank. A rank knows only its own counts, so these calls
 * are never declined because of them: a block longer than COLLNET_BLOCK_MAX is an error. All ranks
 * know all counts only in an allgather.
 */
#include "mpi/glue/glue.h"

/* Of a root in place. */
static const struct glue_blocks none;

/* ---- collnet's operations, of calls whose blocks are packed ------------------------------- */

static int alltoallv(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_ialltoallv(k->team->team, k->in.bytes, k->in.counts, k->in.displs,
				  k->out.bytes, k->out.counts, k->out.displs, o, &k->request);
}

static int allgatherv(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_iallgatherv(k->team->team, k->in.bytes, k->out.counts[k->c->rank],
				   k->out.bytes, k->out.counts, k->out.displs, o, &k->request);
}

static int gatherv(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_igatherv(k->team->team, k->in.bytes, k->bytes, k->out.bytes, k->out.counts,
				k->out.displs, k->root, o, &k->request);
}

static int scatterv(struct glue_call *k, const struct collnet_coll_options *o)
{
	return collnet_iscatterv(k->team->team, k->in.bytes, k->in.counts, k->in.displs,
				 k->out.bytes, k->bytes, k->root, o, &k->request);
}

/* ---- MPI's ---------------------------------------------------------------------------------- */

/* What a rank sends is one of the blocks of the other side: the library accepts that it is in
 * place. */
static int pack_one(const struct glue_call *k, struct glue_packed *one,
		    const struct glue_packed *all, const struct glue_blocks *b, int rank)
{
	const struct glue_blocks block = { .data = glue_block(b, (uint32_t)rank),
					   .n = 1,
					   .count = glue_count_in(b->counts, b->large,
								  (uint32_t)rank),
					   .type = b->type };

	if (all->owned != NULL) {
		return glue_pack(k, one, &block, GLUE_SENT);
	}
	one->bytes = block.data;
	return MPI_SUCCESS;
}

/* From the first to the last byte of a side's blocks. */
struct hull {
	uintptr_t begin, end; /* equal: there is no byte */
};

static struct hull hull_of(const struct glue_packed *p, const struct glue_blocks *b)
{
	struct hull h = { 0, 0 };
	size_t bytes;

	for (uint32_t i = 0; i < b->n; i++) {
		const uintptr_t at = (uintptr_t)glue_packed_block(p, b, i, &bytes);

		if (bytes > 0) {
			h.begin = h.begin == h.end || at < h.begin ? at : h.begin;
			h.end = at + bytes > h.end ? at + bytes : h.end;
		}
	}
	return h;
}

/*
 * Packs what is sent, after what is received. MPI permits that blocks of one side lie between those
 * of the other, as in an array that has the sent rows beside the received ones. The library does
 * not: what is sent is copied.
 */
static int pack_sent(struct glue_call *k, const struct glue_blocks *sent,
		     const struct glue_blocks *received)
{
	int rc = glue_pack(k, &k->in, sent, GLUE_SENT);
	struct hull in, out;

	if (rc != MPI_SUCCESS || k->out.bytes == NULL || k->in.owned != NULL ||
	    k->out.owned != NULL) {
		return rc;
	}
	in = hull_of(&k->in, sent);
	out = hull_of(&k->out, received);
	if (in.begin == in.end || out.begin == out.end || in.end <= out.begin ||
	    out.end <= in.begin) {
		return MPI_SUCCESS;
	}
	glue_packed_free(&k->in);
	return glue_pack(k, &k->in, sent, GLUE_COPIED);
}

static int exchange(struct glue_call *k, const char *what, const void *send,
		    const struct glue_blocks *sent, const struct glue_blocks *received)
{
	int rc = glue_pack(k, &k->out, received, GLUE_RECEIVED);

	if (rc == MPI_SUCCESS) {
		/* In place, the library copies what it sends from its receive buffer. */
		rc = send == MPI_IN_PLACE ? glue_pack(k, &k->in, received, GLUE_SENT)
					  : pack_sent(k, sent, received);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	return glue_post(k, what, alltoallv);
}

int glue_alltoallv(struct glue_call *k, const void *send, const int *send_counts,
		   const int *send_displs, MPI_Datatype tsend, void *recv, const int *recv_counts,
		   const int *recv_displs, MPI_Datatype trecv)
{
	const uint32_t n = (uint32_t)k->c->size;
	const struct glue_blocks sent = { (void *)send, n,	     0,	   tsend,
					  send_counts,	send_displs, NULL, NULL };
	const struct glue_blocks received = { recv,	   n,		0,    trecv,
					      recv_counts, recv_displs, NULL, k->receives };

	return glue_serves_counts(k, GLUE_Alltoallv, &received)
		       ? exchange(k, "Alltoallv", send, &sent, &received)
		       : GLUE_DECLINED;
}

/* Blocks with a type each. */
int glue_alltoallw(struct glue_call *k, const void *send, const int *send_counts,
		   const int *send_displs, const MPI_Datatype *tsend, void *recv,
		   const int *recv_counts, const int *recv_displs, const MPI_Datatype *trecv)
{
	const uint32_t n = (uint32_t)k->c->size;
	const struct glue_blocks sent = { (void *)send, n,	     0,	    MPI_DATATYPE_NULL,
					  send_counts,	send_displs, tsend, NULL };
	const struct glue_blocks received = { recv,	   n,		0,     MPI_DATATYPE_NULL,
					      recv_counts, recv_displs, trecv, k->receives };

	return glue_serves_counts(k, GLUE_Alltoallw, &received)
		       ? exchange(k, "Alltoallw", send, &sent, &received)
		       : GLUE_DECLINED;
}

static bool serves_allgatherv(struct glue_call *k, const struct glue_blocks *received)
{
	size_t longest = 0, average;

	for (uint32_t i = 0; i < received->n; i++) {
		const int count = glue_count_in(received->counts, received->large, i);
		const size_t bytes = glue_bytes(count, received->type);

		if (bytes > COLLNET_BLOCK_MAX) {
			return false;
		}
		k->bytes += bytes;
		longest = bytes > longest ? bytes : longest;
	}
	average = (k->bytes + received->n - 1) / received->n;
	k->bytes += longest;
	return glue_serves(k, GLUE_Allgatherv, average);
}

int glue_allgatherv(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend,
		    void *recv, const int *counts, const int *displs, MPI_Datatype trecv)
{
	const struct glue_blocks sent = {
		.data = (void *)send, .n = 1, .count = nsend, .type = tsend
	};
	const struct glue_blocks received = { recv, (uint32_t)k->c->size, 0, trecv, counts, displs,
					      NULL, k->receives };
	const int rank = k->c->rank;
	int rc = MPI_SUCCESS;

	if (!serves_allgatherv(k, &received)) {
		return GLUE_DECLINED;
	}
	if (send != MPI_IN_PLACE) {
		rc = glue_match(glue_bytes(glue_count_in(counts, k->receives, (uint32_t)rank),
					   trecv),
				nsend, tsend);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_pack(k, &k->out, &received, GLUE_RECEIVED);
	}
	if (rc == MPI_SUCCESS) {
		rc = send == MPI_IN_PLACE ? pack_one(k, &k->in, &k->out, &received, rank)
					  : pack_sent(k, &sent, &received);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	return glue_post(k, "Allgatherv", allgatherv);
}

int glue_gatherv(struct glue_call *k, const void *send, int nsend, MPI_Datatype tsend, void *recv,
		 const int *counts, const int *displs, MPI_Datatype trecv, int root)
{
	const struct glue_blocks sent = {
		.data = (void *)send, .n = 1, .count = nsend, .type = tsend
	};
	const struct glue_blocks received = { recv, (uint32_t)k->c->size, 0, trecv, counts, displs,
					      NULL, k->receives };
	const bool is_root = k->c->rank == root, in_place = is_root && send == MPI_IN_PLACE;
	int rc = MPI_SUCCESS;

	if (!glue_serves_counts(k, GLUE_Gatherv, in_place ? &none : &sent)) {
		return GLUE_DECLINED;
	}
	if (is_root) {
		rc = glue_pack(k, &k->out, &received, GLUE_RECEIVED);
	}
	if (rc == MPI_SUCCESS) {
		rc = in_place ? pack_one(k, &k->in, &k->out, &received, root)
			      : pack_sent(k, &sent, &received);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	k->bytes = in_place ? k->out.counts[root] : glue_bytes(nsend, tsend);
	k->root = (uint32_t)root;
	return glue_post(k, "Gatherv", gatherv);
}

int glue_scatterv(struct glue_call *k, const void *send, const int *counts, const int *displs,
		  MPI_Datatype tsend, void *recv, int nrecv, MPI_Datatype trecv, int root)
{
	const struct glue_blocks sent = {
		(void *)send, (uint32_t)k->c->size, 0, tsend, counts, displs, NULL, NULL
	};
	const struct glue_blocks received = { .data = recv, .n = 1, .count = nrecv, .type = trecv };
	const bool is_root = k->c->rank == root, in_place = is_root && recv == MPI_IN_PLACE;
	int rc = MPI_SUCCESS;

	if (!glue_serves_counts(k, GLUE_Scatterv, in_place ? &none : &received)) {
		return GLUE_DECLINED;
	}
	if (!in_place) {
		rc = glue_pack(k, &k->out, &received, GLUE_RECEIVED);
	}
	if (rc == MPI_SUCCESS && is_root) {
		rc = in_place ? glue_pack(k, &k->in, &sent, GLUE_SENT)
			      : pack_sent(k, &sent, &received);
	}
	if (rc == MPI_SUCCESS && in_place) {
		k->out.bytes = (char *)k->in.bytes + k->in.displs[root];
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	k->bytes = in_place ? k->in.counts[root] : glue_bytes(nrecv, trecv);
	k->root = (uint32_t)root;
	return glue_post(k, "Scatterv", scatterv);
}
