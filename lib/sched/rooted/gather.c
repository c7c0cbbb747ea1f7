/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the gathers: all nodes send to the root's node in an order, at most `width` at a time.
 * The sender of a phase sends an empty message after its data to the sender `width` phases later,
 * which waits for it.
 */
#include <stdlib.h>

#include "sched/rooted/furthest.h"
#include "sched/rooted/gather.h"
#include "sched/rooted/rooted.h"

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
	return *window > 0 ? COLLNET_OK
			   : cn_fail(err, COLLNET_ENOMEM, "no memory for %u nodes", l->nnodes);
}

static int plan_root(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		     const uint32_t *order, struct cn_sched *out, struct cn_err *err)
{
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = me };
	int rc = cn_rooted_add(l, p, me, me, a, out, err);

	a.kind = CN_ACT_RECV;
	for (uint32_t phase = 0; rc == COLLNET_OK && phase < out->phases; phase++) {
		a.phase = phase;
		a.peer = order[phase];
		rc = cn_rooted_add(l, p, me, a.peer, a, out, err);
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
 * A sender: receives the token from the sender `width` phases before, sends its data, and passes
 * the token to the one `width` phases later. If it is closed, the last `width` senders pass their
 * tokens to the first ones, which thus return only near the end, and do not run ahead with another
 * gather.
 */
static int plan_sender(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       const struct cn_gather *g, const uint32_t *order, uint32_t phase,
		       struct cn_sched *out, struct cn_err *err)
{
	const struct cn_action data = { .kind = CN_ACT_SEND,
					.peer = l->node_of[p->root],
					.phase = phase };
	/* The node whose token ends this node's gather, or whose gather this node's token ends. */
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
	rc = rc == COLLNET_OK ? cn_rooted_add(l, p, me, me, data, out, err) : rc;
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
