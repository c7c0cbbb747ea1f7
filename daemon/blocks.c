/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The buffers of clients' operations, and the blocks of vector operations, which are copied out of
 * shared memory: the client may change them there at any time.
 */
#include "daemon/daemon.h"

#include <stdlib.h>
#include <string.h>

int cn_blocks_copy(struct cn_client *c, struct cn_op_slot *op, const struct cn_msg_coll *m,
		   struct cn_call *call, struct cn_err *err)
{
	uint32_t sends = cn_call_send_blocks(call) ? call->ranks : 0;
	uint32_t n = sends + (cn_call_recv_blocks(call) ? call->ranks : 0);
	struct cn_mapping *ref;
	const void *shared;
	bool ok;
	int rc;

	call->bytes = 0;
	call->blocks.send_len = call->op == CN_OP_GATHERV ? m->bytes : 0;
	call->blocks.recv_len = call->op == CN_OP_SCATTERV ? m->bytes : 0;
	if (n == 0) {
		return COLLNET_OK;
	}
	shared = cn_mapping_resolve(c, &m->blocks, n * sizeof(*op->blocks), &ref, &ok);
	if (!ok) {
		return COLLNET_EINVAL;
	}
	rc = cn_quota_charge(c->daemon, c->user, CN_QUOTA_MEMORY, n * sizeof(*op->blocks), err);
	if (rc == COLLNET_OK) {
		op->block_bytes = n * sizeof(*op->blocks);
		op->blocks = malloc(op->block_bytes);
		rc = op->blocks != NULL ? COLLNET_OK
					: cn_fail(err, COLLNET_ENOMEM, "collnetd is out of memory");
	}
	if (rc == COLLNET_OK) {
		memcpy(op->blocks, shared, op->block_bytes);
	}
	cn_mapping_put(c->daemon, ref);
	if (rc != COLLNET_OK) {
		return rc;
	}
	call->blocks.send = sends > 0 ? op->blocks : NULL;
	call->blocks.recv = n > sends ? op->blocks + sends : NULL;
	return COLLNET_OK;
}

int cn_buffers_resolve(struct cn_op_slot *op, const struct cn_msg_coll *m, struct cn_call *call,
		       struct cn_coll_args *a, struct cn_err *err)
{
	struct cn_client *c = op->client;
	bool send_ok, recv_ok, scratch_ok;
	void *send;

	if (cn_op_is_vector(call->op)) {
		int rc = cn_blocks_copy(c, op, m, call, err);

		if (rc == COLLNET_EINVAL) {
			cn_client_mark(c, "blocks outside its regions");
		}
		if (rc != COLLNET_OK) {
			return rc;
		}
		a->bytes = call->bytes;
		a->blocks = call->blocks;
	}
	send = cn_mapping_resolve(c, &m->send, cn_call_send_bytes(call), &op->send, &send_ok);
	a->send = send;
	recv_ok = cn_call_only_sends(call);
	a->recv = recv_ok ? send
			  : cn_mapping_resolve(c, &m->recv, cn_call_recv_bytes(call), &op->recv,
					       &recv_ok);
	a->scratch = cn_mapping_resolve(c, &m->scratch, cn_call_scratch_bytes(call), &op->scratch,
					&scratch_ok);
	if (!send_ok || !recv_ok || !scratch_ok ||
	    cn_call_check_buffers(call, a->send, a->recv, NULL) != COLLNET_OK ||
	    cn_call_swaps(call, a->send, a->recv)) {
		cn_client_mark(c, "buffer outside its regions");
		return COLLNET_EINVAL;
	}
	return COLLNET_OK;
}

void cn_blocks_free(struct cn_op_slot *op)
{
	struct cn_daemon *d = op->client->daemon;

	cn_quota_uncharge(d, op->client->user, CN_QUOTA_MEMORY, op->block_bytes);
	if (d->runtime.engine != NULL) {
		cn_engine_discard(d->runtime.engine, op->blocks, op->block_bytes);
	} else {
		free(op->blocks);
	}
	op->blocks = NULL;
	op->block_bytes = 0;
}
