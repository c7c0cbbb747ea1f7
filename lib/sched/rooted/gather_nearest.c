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
#include <stdlib.h>

#include "sched/rooted/furthest.h"
#include "sched/planners.h"

/* The blocks of the ranks of the root's node: copies. */
static int copy_vector(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       struct cn_action a, struct cn_sched *out, struct cn_err *err)
{
	const struct cn_block *recv = cn_plan_root_blocks(l, p, me)->recv;
	int rc = COLLNET_OK;

	for (uint32_t i = l->first[me]; rc == COLLNET_OK && i < l->first[me + 1]; i++) {
		uint32_t s = l->ranks[i];
		uint64_t sent = p->blocks[i - l->first[me]].send_len;

		if (recv[s].len != sent) {
			return cn_blocks_differ(s, sent, p->root, recv[s].len, err);
		}
		a.src = (struct cn_span){ CN_BUF_SEND, s, 0 };
		a.dst = (struct cn_span){ CN_BUF_RECV, p->root, recv[s].at };
		a.len = sent;
		rc = a.len > 0 ? cn_sched_add(out, &a, err) : COLLNET_OK;
	}
	return rc;
}

/* The blocks of a vector operation of the ranks of node `from`, on it or on the root's node. */
static int add_vector(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		      uint32_t from, const struct cn_action *a, struct cn_sched *out,
		      struct cn_err *err)
{
	struct cn_messages m;
	int rc;

	if (a->kind == CN_ACT_COPY) {
		return copy_vector(l, p, me, *a, out, err);
	}
	rc = cn_messages_begin(&m, a, l->first[from + 1] - l->first[from], out, err);
	for (uint32_t i = l->first[from]; rc == COLLNET_OK && i < l->first[from + 1]; i++) {
		struct cn_span src = { CN_BUF_SEND, l->ranks[i], 0 };
		struct cn_span dst = { CN_BUF_RECV, p->root, CN_OFFSET_UNKNOWN };
		uint64_t len;

		if (a->kind == CN_ACT_RECV) {
			struct cn_block b = cn_plan_root_blocks(l, p, me)->recv[l->ranks[i]];

			dst.offset = b.at;
			len = b.len;
		} else {
			len = p->blocks[i - l->first[from]].send_len;
		}
		rc = cn_messages_add(&m, src, dst, len, err);
	}
	return rc == COLLNET_OK ? cn_messages_end(&m, err) : rc;
}

/* The blocks of the ranks of node `from`, one action each. */
static int add_blocks(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		      uint32_t from, struct cn_action a, struct cn_sched *out, struct cn_err *err)
{
	int rc = COLLNET_OK;

	if (p->blocks != NULL) {
		return add_vector(l, p, me, from, &a, out, err);
	}
	a.len = p->bytes;
	for (uint32_t i = l->first[from]; rc == COLLNET_OK && i < l->first[from + 1]; i++) {
		a.src = (struct cn_span){ CN_BUF_SEND, l->ranks[i], 0 };
		a.dst = (struct cn_span){ CN_BUF_RECV, p->root, l->ranks[i] * p->bytes };
		rc = cn_sched_add(out, &a, err);
	}
	return rc;
}

static int plan_root(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		     const uint32_t *order, struct cn_sched *out, struct cn_err *err)
{
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = me };
	int rc = add_blocks(l, p, me, me, a, out, err);

	a.kind = CN_ACT_RECV;
	for (uint32_t phase = 0; rc == COLLNET_OK && phase < out->phases; phase++) {
		a.phase = phase;
		a.peer = order[phase];
		rc = add_blocks(l, p, me, a.peer, a, out, err);
	}
	return rc;
}

/* A sender: the turn comes from the one before, the data go, the turn goes to the next. */
static int plan_sender(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       const uint32_t *order, uint32_t phase, struct cn_sched *out,
		       struct cn_err *err)
{
	struct cn_action sync = { .kind = CN_ACT_RECV }, wait = { .kind = CN_ACT_WAIT, .peer = me };
	struct cn_action data = { .kind = CN_ACT_SEND,
				  .peer = l->node_of[p->root],
				  .phase = phase };
	int rc = COLLNET_OK;

	if (phase > 0) {
		sync.peer = order[phase - 1];
		sync.phase = phase - 1;
		wait.dep = CN_DEP_COMPLETE;
		wait.dep_on = out->n;
		wait.phase = phase;
		rc = cn_sched_add(out, &sync, err);
		if (rc == COLLNET_OK) {
			rc = cn_sched_add(out, &wait, err);
		}
	}
	if (rc == COLLNET_OK) {
		rc = add_blocks(l, p, me, me, data, out, err);
	}
	if (rc == COLLNET_OK && phase + 1 < out->phases) {
		sync.kind = CN_ACT_SEND;
		sync.peer = order[phase + 1];
		sync.phase = phase;
		rc = cn_sched_add(out, &sync, err);
	}
	return rc;
}

int cn_plan_gather_nearest(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			   struct cn_sched *out, struct cn_err *err)
{
	uint32_t n = l->nnodes, root = l->node_of[p->root], phase = 0;
	uint32_t *order = malloc(n * sizeof(*order));
	int rc;

	out->order = CN_ORDER_IN_TURN;
	out->phases = n - 1;
	if (order == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", n);
	}
	rc = cn_furthest_first(l->tree, n, root, order, err);
	for (uint32_t i = 0, j = n - 1; rc == COLLNET_OK && i + 1 < j; i++) {
		uint32_t x = order[i];

		order[i] = order[--j];
		order[j] = x;
	}
	if (rc == COLLNET_OK && me == root) {
		rc = plan_root(l, p, me, order, out, err);
	} else if (rc == COLLNET_OK) {
		while (order[phase] != me) {
			phase++;
		}
		rc = plan_sender(l, p, me, order, phase, out, err);
	}
	free(order);
	return rc;
}
