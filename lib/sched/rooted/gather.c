/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the gathers share: all nodes send to the root's node in an order, at most `width` of them at
 * a time. The sender of a phase sends an empty message after its data to the sender `width` phases
 * later, which waits for it.
 */
#include <stdlib.h>

#include "sched/rooted/furthest.h"
#include "sched/rooted/gather.h"

int cn_fan_in(const struct cn_layout *l, uint32_t *senders, uint32_t *window, struct cn_err *err)
{
	uint32_t *hosts = malloc(l->nnodes * sizeof(*hosts));
	const struct cn_topo *topo = l->tree != NULL ? l->tree->topo : NULL;

	if (hosts == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u nodes", l->nnodes);
	}
	for (uint32_t k = 0; topo != NULL && k < l->nnodes; k++) {
		hosts[k] = l->tree->v[l->tree->host[k]].vertex;
	}
	*window = cn_topo_fan_in(topo, hosts, l->nnodes, senders);
	free(hosts);
	return COLLNET_OK;
}

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

static int add_sync(enum cn_action_kind kind, uint32_t peer, uint32_t phase, struct cn_sched *out,
		    struct cn_err *err)
{
	const struct cn_action sync = { .kind = kind, .peer = peer, .phase = phase };

	return cn_sched_add(out, &sync, err);
}

/*
 * A sender: the turn comes from the sender `width` phases before, the data go, the turn goes to the
 * one `width` phases later. If it is closed, the last `width` senders pass their turns to the first
 * ones, which so return when the end is near, and are not ahead of it with another gather.
 */
static int plan_sender(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       const struct cn_gather *g, const uint32_t *order, uint32_t phase,
		       struct cn_sched *out, struct cn_err *err)
{
	const struct cn_action data = { .kind = CN_ACT_SEND,
					.peer = l->node_of[p->root],
					.phase = phase };
	/* Whose turn ends this node's gather, or whose gather its own turn ends. */
	const uint32_t other = out->phases - 1 - phase;
	const bool closed = g->closed && out->phases > g->width && other != phase;
	int rc = COLLNET_OK;

	if (phase >= g->width) {
		const struct cn_action wait = { .kind = CN_ACT_WAIT,
						.dep = CN_DEP_COMPLETE,
						.dep_on = out->n,
						.peer = me,
						.phase = phase };

		rc = add_sync(CN_ACT_RECV, order[phase - g->width], phase - g->width, out, err);
		rc = rc == COLLNET_OK ? cn_sched_add(out, &wait, err) : rc;
	}
	rc = rc == COLLNET_OK ? add_blocks(l, p, me, me, data, out, err) : rc;
	if (rc == COLLNET_OK && phase + g->width < out->phases) {
		rc = add_sync(CN_ACT_SEND, order[phase + g->width], phase, out, err);
	} else if (rc == COLLNET_OK && closed) {
		rc = add_sync(CN_ACT_SEND, order[other], phase, out, err);
	}
	if (rc == COLLNET_OK && closed && phase < g->width) {
		rc = add_sync(CN_ACT_RECV, order[other], other, out, err);
	}
	return rc;
}

int cn_gather_plan(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		   const struct cn_gather *g, struct cn_sched *out, struct cn_err *err)
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
		rc = plan_sender(l, p, me, g, order, phase, out, err);
	}
	free(order);
	return rc;
}
