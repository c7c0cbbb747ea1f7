/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linear exchange: everything at once, to the nodes 0, 1, 2, ... in this order on every node. The
 * naive baseline: all nodes begin with the same receiver, so it has node contention by design and
 * no permutation, phases or numbering.
 */
#include "sched/planners.h"

int cn_plan_alltoall_linear(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			    struct cn_sched *out, struct cn_err *err)
{
	const struct cn_after nothing = { CN_DEP_NONE, 0 };
	int rc;

	out->order = CN_ORDER_ANY;
	out->phases = l->nnodes > 1;
	rc = cn_alltoall_local(l, p, me, out, err);
	for (uint32_t b = 0; !rc && b < l->nnodes; b++) {
		if (b == me) {
			continue;
		}
		rc = cn_alltoall_send(l, p, me, b, 0, nothing, out, err);
		if (!rc) {
			rc = cn_alltoall_recv(l, p, me, b, 0, out, err);
		}
	}
	return rc;
}
