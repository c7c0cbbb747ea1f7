/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Synchronous shuffle exchange: Tam and Wang, Algorithm 1, and Algorithm 2 with the numbering of
 * Eq. 5. Frame by frame over destinations in the order of a node-contention-free permutation, so
 * that the pipelines of all links stay full and no two frames of a step meet at a host's port.
 * The permutation runs over the contention-aware numbers when the plan asks for them.
 *
 * The list names the destinations in permutation order, all blocks to one node together: the
 * order INTERLEAVED takes one frame for each destination in turn.
 */
#include "sched/planners.h"

int cn_plan_alltoall_shuffle(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			     struct cn_sched *out, struct cn_err *err)
{
	const struct cn_after nothing = { CN_DEP_NONE, 0 };
	struct cn_partners m;
	int rc = cn_partners_init(&m, l, p, me, err);

	if (rc) {
		return rc;
	}
	out->order = CN_ORDER_INTERLEAVED;
	out->phases = m.steps;
	rc = cn_alltoall_local(l, p, me, out, err);
	for (uint32_t step = 1; !rc && step <= m.steps; step++) {
		uint32_t to = cn_partners_to(&m, step);
		uint32_t from = cn_partners_from(&m, step);

		if (to != CN_IDLE) {
			rc = cn_alltoall_send(l, p, me, to, step - 1, nothing, out, err);
		}
		if (!rc && from != CN_IDLE) {
			rc = cn_alltoall_recv(l, p, me, from, step - 1, out, err);
		}
	}
	cn_partners_done(&m);
	return rc;
}
