/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collective operations with blocks of any size: counts and displacements become blocks, which
 * the request keeps, so that the caller's arrays are free again at once.
 */
#include "collnet/collnet.h"

#include <stdlib.h>

#include "client/backend.h"

/* Without displacements, blocks follow one another. */
static void fill(struct cn_block *b, uint32_t n, const size_t *counts, const size_t *displs)
{
	for (uint32_t i = 0; i < n; i++) {
		b[i].len = counts[i];
		b[i].at = displs != NULL ? displs[i] : 0;
	}
	if (displs == NULL) {
		cn_blocks_follow(b, n);
	}
}

/* The rank's own block has one size, whatever it is given by. */
static int check_own(const struct cn_coll_call *call, const struct cn_call *shape,
		     struct cn_err *err)
{
	const struct cn_block *b = call->op == CN_OP_SCATTERV ? shape->blocks.send
							      : shape->blocks.recv;

	if (b != NULL && call->op != CN_OP_ALLTOALLV && b[shape->rank].len != call->bytes) {
		return cn_fail(err, COLLNET_EINVAL,
			       "rank %u's own block has %zu bytes, but its count is %llu",
			       shape->rank, call->bytes, (unsigned long long)b[shape->rank].len);
	}
	return COLLNET_OK;
}

int cn_coll_blocks(const struct cn_coll_call *call, struct cn_call *shape, struct cn_block **memory,
		   struct cn_err *err)
{
	bool sends = cn_call_send_blocks(shape), recvs = cn_call_recv_blocks(shape);
	uint32_t n = shape->ranks;
	struct cn_block *b;
	int rc;

	shape->bytes = 0;
	shape->blocks.send_len = call->op == CN_OP_GATHERV ? call->bytes : 0;
	shape->blocks.recv_len = call->op == CN_OP_SCATTERV ? call->bytes : 0;
	if (!sends && !recvs) {
		return COLLNET_OK;
	}
	if ((sends && call->sends.counts == NULL) || (recvs && call->recvs.counts == NULL)) {
		return cn_fail(err, COLLNET_EINVAL, "the counts are NULL");
	}
	b = calloc((size_t)n * 2, sizeof(*b));
	if (b == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the counts of %u ranks", n);
	}
	if (sends) {
		fill(b, n, call->sends.counts, call->sends.displs);
		shape->blocks.send = b;
	}
	if (recvs) {
		fill(b + n, n, call->recvs.counts, call->recvs.displs);
		shape->blocks.recv = b + n;
	}
	rc = check_own(call, shape, err);
	if (rc != COLLNET_OK) {
		free(b);
		return rc;
	}
	*memory = b;
	return COLLNET_OK;
}

static struct cn_coll_call alltoallv(const void *send, const size_t *send_counts,
				     const size_t *send_displs, void *recv,
				     const size_t *recv_counts, const size_t *recv_displs)
{
	return (struct cn_coll_call){ .op = CN_OP_ALLTOALLV,
				      .send = send,
				      .recv = recv,
				      .sends = { send_counts, send_displs },
				      .recvs = { recv_counts, recv_displs } };
}

int collnet_alltoallv(collnet_team_t *t, const void *send, const size_t *send_counts,
		      const size_t *send_displs, void *recv, const size_t *recv_counts,
		      const size_t *recv_displs, const struct collnet_coll_options *o)
{
	const struct cn_coll_call call = alltoallv(send, send_counts, send_displs, recv,
						   recv_counts, recv_displs);

	return cn_coll_run(t, &call, o);
}

int collnet_ialltoallv(collnet_team_t *t, const void *send, const size_t *send_counts,
		       const size_t *send_displs, void *recv, const size_t *recv_counts,
		       const size_t *recv_displs, const struct collnet_coll_options *o,
		       collnet_request_t **out)
{
	const struct cn_coll_call call = alltoallv(send, send_counts, send_displs, recv,
						   recv_counts, recv_displs);

	return cn_coll_start(t, &call, o, out);
}

int collnet_allgatherv(collnet_team_t *t, const void *send, size_t bytes, void *recv,
		       const size_t *counts, const size_t *displs,
		       const struct collnet_coll_options *o)
{
	const struct cn_coll_call call = { .op = CN_OP_ALLGATHERV,
					   .send = send,
					   .recv = recv,
					   .bytes = bytes,
					   .recvs = { counts, displs } };

	return cn_coll_run(t, &call, o);
}

int collnet_iallgatherv(collnet_team_t *t, const void *send, size_t bytes, void *recv,
			const size_t *counts, const size_t *displs,
			const struct collnet_coll_options *o, collnet_request_t **out)
{
	const struct cn_coll_call call = { .op = CN_OP_ALLGATHERV,
					   .send = send,
					   .recv = recv,
					   .bytes = bytes,
					   .recvs = { counts, displs } };

	return cn_coll_start(t, &call, o, out);
}

int collnet_gatherv(collnet_team_t *t, const void *send, size_t bytes, void *recv,
		    const size_t *counts, const size_t *displs, uint32_t root,
		    const struct collnet_coll_options *o)
{
	const struct cn_coll_call call = { .op = CN_OP_GATHERV,
					   .send = send,
					   .recv = recv,
					   .bytes = bytes,
					   .root = root,
					   .recvs = { counts, displs } };

	return cn_coll_run(t, &call, o);
}

int collnet_igatherv(collnet_team_t *t, const void *send, size_t bytes, void *recv,
		     const size_t *counts, const size_t *displs, uint32_t root,
		     const struct collnet_coll_options *o, collnet_request_t **out)
{
	const struct cn_coll_call call = { .op = CN_OP_GATHERV,
					   .send = send,
					   .recv = recv,
					   .bytes = bytes,
					   .root = root,
					   .recvs = { counts, displs } };

	return cn_coll_start(t, &call, o, out);
}

int collnet_scatterv(collnet_team_t *t, const void *send, const size_t *counts,
		     const size_t *displs, void *recv, size_t bytes, uint32_t root,
		     const struct collnet_coll_options *o)
{
	const struct cn_coll_call call = { .op = CN_OP_SCATTERV,
					   .send = send,
					   .recv = recv,
					   .bytes = bytes,
					   .root = root,
					   .sends = { counts, displs } };

	return cn_coll_run(t, &call, o);
}

int collnet_iscatterv(collnet_team_t *t, const void *send, const size_t *counts,
		      const size_t *displs, void *recv, size_t bytes, uint32_t root,
		      const struct collnet_coll_options *o, collnet_request_t **out)
{
	const struct cn_coll_call call = { .op = CN_OP_SCATTERV,
					   .send = send,
					   .recv = recv,
					   .bytes = bytes,
					   .root = root,
					   .sends = { counts, displs } };

	return cn_coll_start(t, &call, o, out);
}
