/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dissemination barrier over nodes: in round k an empty message goes 2^k nodes ahead, and one comes
 * from 2^k nodes behind; after ceil(log2 n) rounds every node depends, directly or through others,
 * on every node.
 *
 * A send waits for the receive of the previous round. Sends are in list order, so by then all
 * earlier receives are complete too.
 */
#include "sched/barrier/barrier.h"

int cn_plan_barrier_dissemination(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
				  struct cn_sched *out, struct cn_err *err)
{
	const uint32_t n = l->nnodes;
	int rc = COLLNET_OK;

	(void)p;
	out->order = CN_ORDER_IN_TURN;
	for (uint32_t distance = 1; rc == COLLNET_OK && distance < n; distance *= 2) {
		rc = cn_barrier_round(out, (me + distance) % n, (me + n - distance) % n,
				      out->phases++, err);
	}
	return rc;
}
