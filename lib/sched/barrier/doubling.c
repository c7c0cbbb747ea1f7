/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barrier by recursive doubling over nodes: in round k the members (sched/allreduce/power.h) whose
 * numbers differ in bit k exchange empty messages. The other node of a pair sends one to its member
 * before the rounds, and receives one afterwards.
 *
 * With a power of two of nodes it has as many rounds as dissemination and fewer frames: a message
 * carries the acknowledgement of its peer's previous one.
 */
#include "sched/allreduce/power.h"
#include "sched/barrier/barrier.h"

int cn_plan_barrier_doubling(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			     struct cn_sched *out, struct cn_err *err)
{
	const struct cn_power w = cn_power_of(l->nnodes, CN_POWER_NO_ROOT);
	const bool paired = me < 2 * w.pairs;
	const uint32_t i = paired ? me / 2 : me - w.pairs, member = cn_power_part(&w, i),
		       last = cn_log2_up(w.members) + 1;
	uint32_t phase = w.pairs > 0;
	int rc = COLLNET_OK;

	(void)p;
	out->order = CN_ORDER_IN_TURN;
	out->phases = w.pairs > 0 ? last + 1 : last - 1;
	if (me != member) {
		rc = cn_barrier_add(out, CN_ACT_SEND, member, 0, err);
		return rc != COLLNET_OK ? rc : cn_barrier_add(out, CN_ACT_RECV, member, last, err);
	}
	if (paired) {
		rc = cn_barrier_add(out, CN_ACT_RECV, cn_power_other(&w, i), 0, err);
	}
	for (uint32_t bit = 1; rc == COLLNET_OK && bit < w.members; bit *= 2) {
		const uint32_t peer = cn_power_part(&w, i ^ bit);

		rc = cn_barrier_round(out, peer, peer, phase++, err);
	}
	if (rc == COLLNET_OK && paired) {
		rc = cn_barrier_add(out, CN_ACT_SEND, cn_power_other(&w, i), last, err);
	}
	return rc;
}
