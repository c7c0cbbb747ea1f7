/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scatter, furthest first: Dimopoulos and Dimakopoulos, section 3. The root's node sends to one
 * node a phase, in order of decreasing distance, so that the messages that need most time on their
 * way leave first; on a complete binary tree of n hosts all have arrived after n + 1 steps, the
 * lower bound. The order is as good on any tree: a message leaves in every step and none ever waits
 * for another, so that it ends at the largest (place in the order + distance), and an exchange of
 * two neighbours in the order, the nearer one first, cannot make that smaller.
 *
 * All messages come from one sender in the order of its list, so no two that share a link are
 * without an order, and synchronisations are not needed. Without a tree the order is by number.
 */
#include <stdlib.h>

#include "sched/rooted/furthest.h"
#include "sched/rooted/rooted.h"

int cn_plan_scatter_furthest(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			     struct cn_sched *out, struct cn_err *err)
{
	uint32_t root = l->node_of[p->root], *order = malloc(l->nnodes * sizeof(*order));
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = me };
	int rc;

	out->order = CN_ORDER_IN_TURN;
	out->phases = l->nnodes - 1;
	if (order == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", l->nnodes);
	}
	rc = cn_furthest_first(l->tree, l->nnodes, root, order, err);
	if (rc == COLLNET_OK && me == root) {
		rc = cn_rooted_add(l, p, me, me, a, out, err);
	}
	for (uint32_t phase = 0; rc == COLLNET_OK && phase < out->phases; phase++) {
		uint32_t to = order[phase];

		a.phase = phase;
		if (me == root) {
			a.kind = CN_ACT_SEND;
			a.peer = to;
			rc = cn_rooted_add(l, p, me, to, a, out, err);
		} else if (me == to) {
			a.kind = CN_ACT_RECV;
			a.peer = root;
			rc = cn_rooted_add(l, p, me, me, a, out, err);
		}
	}
	free(order);
	return rc;
}
