/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dissemination barrier over nodes: in round k an empty message goes 2^k nodes ahead, and one comes
 * from 2^k nodes behind; after ceil(log2 n) rounds every node depends, directly or through others,
 * on every node.
 *
 * A send waits for the receive of the previous round. Sends are in list order, so by then all
 * earlier receives are complete too.
 */
#include "sched/planners.h"

int cn_plan_barrier_dissemination(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
				  struct cn_sched *out, struct cn_err *err)
{
	uint32_t n = l->nnodes, phase = 0;

	(void)p;
	out->order = CN_ORDER_IN_TURN;
	for (uint32_t distance = 1; distance < n; distance *= 2, phase++) {
		struct cn_action send = { .kind = CN_ACT_SEND, .phase = phase };
		struct cn_action recv = { .kind = CN_ACT_RECV, .phase = phase };
		int rc;

		send.peer = (me + distance) % n;
		recv.peer = (me + n - distance) % n;
		if (phase > 0) {
			send.dep = CN_DEP_COMPLETE;
			send.dep_on = out->n - 1;
		}
		rc = cn_sched_add(out, &send, err);
		if (!rc) {
			rc = cn_sched_add(out, &recv, err);
		}
		if (rc) {
			return rc;
		}
	}
	out->phases = phase;
	return COLLNET_OK;
}
