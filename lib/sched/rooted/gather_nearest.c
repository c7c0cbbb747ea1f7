/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gather, nearest first: the scatter of Dimopoulos and Dimakopoulos with its data paths reversed in
 * time. The nodes send to the root's node one after another, in the reverse of the scatter's order.
 *
 * Here every message has another sender, and all of them want the root's link, so an order must be
 * made: the sender of a phase sends an empty message after its data to the sender of the next
 * phase, which waits for it. (The paper's steps need a common clock instead; with one, messages
 * follow each other without a gap and a complete binary tree needs n + 1 steps, as for scatter.)
 */
#include "sched/rooted/gather.h"

int cn_plan_gather_nearest(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			   struct cn_sched *out, struct cn_err *err)
{
	const struct cn_gather one = { .width = 1 };

	return cn_gather_plan(l, p, me, &one, out, err);
}
