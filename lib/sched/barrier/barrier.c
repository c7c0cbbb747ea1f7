/* SPDX-License-Identifier: BSD-2-Clause */
#include "sched/barrier/barrier.h"

int cn_barrier_add(struct cn_sched *out, enum cn_action_kind kind, uint32_t peer, uint32_t phase,
		   struct cn_err *err)
{
	struct cn_action a = { .kind = kind, .peer = peer, .phase = phase };

	if (kind == CN_ACT_SEND && out->n > 0) {
		a.dep = CN_DEP_COMPLETE;
		a.dep_on = out->n - 1;
	}
	return cn_sched_add(out, &a, err);
}

int cn_barrier_round(struct cn_sched *out, uint32_t to, uint32_t from, uint32_t phase,
		     struct cn_err *err)
{
	const int rc = cn_barrier_add(out, CN_ACT_SEND, to, phase, err);

	return rc != COLLNET_OK ? rc : cn_barrier_add(out, CN_ACT_RECV, from, phase, err);
}
