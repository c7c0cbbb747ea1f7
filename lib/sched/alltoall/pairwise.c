/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generalised pairwise exchange: Tam and Wang, Algorithm 3. One partner a round; the next round's
 * sends begin when this round's blocks have come. That implicit synchronisation is what Eq. 6
 * charges (p - 1) T_w for, and why it is a baseline.
 *
 * Left to itself it takes the edge-colour permutation, as the paper does; shift and xor work too.
 * A node that is idle in a round, or receives nothing in it, waits for the last round in which it
 * received. The contention-aware numbers apply when the plan asks for them (the paper's pair+CA).
 */
#include "sched/planners.h"

int cn_plan_alltoall_pairwise(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			      struct cn_sched *out, struct cn_err *err)
{
	struct cn_after after = { CN_DEP_NONE, 0 };
	struct cn_partners m;
	int rc = cn_partners_init(&m, l, p, me, err);

	if (rc) {
		return rc;
	}
	out->order = CN_ORDER_IN_TURN;
	out->phases = m.steps;
	rc = cn_alltoall_local(l, p, me, out, err);
	for (uint32_t step = 1; !rc && step <= m.steps; step++) {
		uint32_t to = cn_partners_to(&m, step);
		uint32_t from = cn_partners_from(&m, step);

		if (to != CN_IDLE) {
			rc = cn_alltoall_send(l, p, me, to, step - 1, after, out, err);
		}
		if (!rc && from != CN_IDLE) {
			rc = cn_alltoall_recv(l, p, me, from, step - 1, out, err);
			/* Blocks of one round come from one node, in order: its last is last. */
			after = (struct cn_after){ CN_DEP_COMPLETE, out->n - 1 };
		}
	}
	cn_partners_done(&m);
	return rc;
}
