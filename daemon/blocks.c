/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of clients' vector operations, copied out of shared memory. */
#include "daemon/daemon.h"

#include <stdlib.h>
#include <string.h>

int cn_blocks_take(struct cn_client *c, struct cn_op_slot *op, const struct cn_msg_coll *m,
		   struct cn_call *call, struct cn_err *err)
{
	uint32_t sends = cn_call_send_blocks(call) ? call->ranks : 0;
	uint32_t n = sends + (cn_call_recv_blocks(call) ? call->ranks : 0);
	struct cn_mapping *ref;
	const void *shared;
	bool ok;

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
	op->blocks = malloc(n * sizeof(*op->blocks));
	if (op->blocks != NULL) {
		memcpy(op->blocks, shared, n * sizeof(*op->blocks));
	}
	cn_mapping_put(c->daemon, ref);
	if (op->blocks == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "collnetd is out of memory");
	}
	call->blocks.send = sends > 0 ? op->blocks : NULL;
	call->blocks.recv = n > sends ? op->blocks + sends : NULL;
	return COLLNET_OK;
}
