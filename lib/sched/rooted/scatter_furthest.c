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
#include "sched/planners.h"

/* The root's blocks for the ranks of its own node: copies. */
static int copy_vector(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       struct cn_action a, struct cn_sched *out, struct cn_err *err)
{
	const struct cn_block *send = cn_plan_root_blocks(l, p, me)->send;
	int rc = COLLNET_OK;

	for (uint32_t i = l->first[me]; rc == COLLNET_OK && i < l->first[me + 1]; i++) {
		uint32_t d = l->ranks[i];
		uint64_t expected = p->blocks[i - l->first[me]].recv_len;

		if (send[d].len != expected) {
			return cn_blocks_differ(p->root, send[d].len, d, expected, err);
		}
		a.src = (struct cn_span){ CN_BUF_SEND, p->root, send[d].at };
		a.dst = (struct cn_span){ CN_BUF_RECV, d, 0 };
		a.len = send[d].len;
		rc = a.len > 0 ? cn_sched_add(out, &a, err) : COLLNET_OK;
	}
	return rc;
}

/* The blocks of a vector operation for the ranks of node `to`, on it or on the root's node. */
static int add_vector(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t to,
		      const struct cn_action *a, struct cn_sched *out, struct cn_err *err)
{
	struct cn_messages m;
	int rc;

	if (a->kind == CN_ACT_COPY) {
		return copy_vector(l, p, me, *a, out, err);
	}
	rc = cn_messages_begin(&m, a, l->first[to + 1] - l->first[to], out, err);
	for (uint32_t i = l->first[to]; rc == COLLNET_OK && i < l->first[to + 1]; i++) {
		struct cn_span src = { CN_BUF_SEND, p->root, CN_OFFSET_UNKNOWN };
		struct cn_span dst = { CN_BUF_RECV, l->ranks[i], 0 };
		uint64_t len;

		if (a->kind == CN_ACT_SEND) {
			struct cn_block b = cn_plan_root_blocks(l, p, me)->send[l->ranks[i]];

			src.offset = b.at;
			len = b.len;
		} else {
			len = p->blocks[i - l->first[to]].recv_len;
		}
		rc = cn_messages_add(&m, src, dst, len, err);
	}
	return rc == COLLNET_OK ? cn_messages_end(&m, err) : rc;
}

/* The blocks of the ranks of node `to`, one action each. */
static int add_blocks(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t to,
		      struct cn_action a, struct cn_sched *out, struct cn_err *err)
{
	int rc = COLLNET_OK;

	if (p->blocks != NULL) {
		return add_vector(l, p, me, to, &a, out, err);
	}
	a.len = p->bytes;
	for (uint32_t i = l->first[to]; rc == COLLNET_OK && i < l->first[to + 1]; i++) {
		a.src = (struct cn_span){ CN_BUF_SEND, p->root, l->ranks[i] * p->bytes };
		a.dst = (struct cn_span){ CN_BUF_RECV, l->ranks[i], 0 };
		rc = cn_sched_add(out, &a, err);
	}
	return rc;
}

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
		rc = add_blocks(l, p, me, me, a, out, err);
	}
	for (uint32_t phase = 0; rc == COLLNET_OK && phase < out->phases; phase++) {
		uint32_t to = order[phase];

		a.phase = phase;
		if (me == root) {
			a.kind = CN_ACT_SEND;
			a.peer = to;
			rc = add_blocks(l, p, me, to, a, out, err);
		} else if (me == to) {
			a.kind = CN_ACT_RECV;
			a.peer = root;
			rc = add_blocks(l, p, me, me, a, out, err);
		}
	}
	free(order);
	return rc;
}
