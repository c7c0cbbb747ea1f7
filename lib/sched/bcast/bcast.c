/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcasts: from a tree of nodes and a segment to the schedule of one node. Data arrives at the
 * lowest rank of a node, is sent on from there as it comes, and is copied to the node's other
 * ranks. The root's node sends from the root's own buffer.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/bcast/bcast.h"
#include "sched/select.h"

#define NONE CN_TOPO_NONE

int cn_bcast_init(struct cn_bcast *b, uint32_t n, uint32_t root, struct cn_err *err)
{
	uint32_t *p = malloc((size_t)n * 5 * sizeof(*p));

	memset(b, 0, sizeof(*b));
	if (p == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a broadcast among %u nodes", n);
	}
	b->n = n;
	b->root = root;
	b->parent = p;
	b->order = p + n;
	b->first = p + 2 * (size_t)n;
	b->nchildren = p + 3 * (size_t)n;
	b->offset = p + 4 * (size_t)n;
	for (uint32_t i = 0; i < n; i++) {
		b->parent[i] = NONE;
		b->order[i] = b->first[i] = b->nchildren[i] = b->offset[i] = 0;
	}
	b->period = b->segments = 1;
	return COLLNET_OK;
}

void cn_bcast_done(struct cn_bcast *b)
{
	free(b->parent);
	free(b->load);
	memset(b, 0, sizeof(*b));
}

int cn_bcast_arrange(struct cn_bcast *b, const uint32_t *seq, struct cn_err *err)
{
	uint32_t *start, *children, tail = 1;

	free(b->load);
	b->load = NULL;
	b->phased = false;
	start = malloc(((size_t)b->n * 2 + 1) * sizeof(*start));
	if (start == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a broadcast among %u nodes",
			       b->n);
	}
	children = start + b->n + 1;
	memset(b->nchildren, 0, b->n * sizeof(*b->nchildren));
	for (uint32_t i = 0; i + 1 < b->n; i++) {
		b->nchildren[b->parent[seq[i]]]++;
	}
	start[0] = 0;
	for (uint32_t v = 0; v < b->n; v++) {
		start[v + 1] = start[v] + b->nchildren[v];
		b->first[v] = start[v];
	}
	for (uint32_t i = 0; i + 1 < b->n; i++) {
		children[b->first[b->parent[seq[i]]]++] = seq[i];
	}
	b->order[0] = b->root;
	for (uint32_t q = 0; q < tail; q++) {
		uint32_t v = b->order[q];

		b->first[v] = tail;
		memcpy(b->order + tail, children + start[v], b->nchildren[v] * sizeof(*children));
		tail += b->nchildren[v];
	}
	free(start);
	return COLLNET_OK;
}

int cn_bcast_segment(struct cn_bcast *b, uint64_t bytes, uint64_t segment, struct cn_err *err)
{
	uint64_t segments;

	if (segment == 0 || segment > bytes) {
		segment = bytes;
	}
	segments = bytes == 0 ? 1 : (bytes - 1) / segment + 1;
	if (segments > CN_BCAST_SEGMENTS_MAX) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "a broadcast of %llu bytes in segments of %llu has more than %u of "
			       "them: choose at least %llu bytes",
			       (unsigned long long)bytes, (unsigned long long)segment,
			       CN_BCAST_SEGMENTS_MAX,
			       (unsigned long long)((bytes - 1) / CN_BCAST_SEGMENTS_MAX + 1));
	}
	b->bytes = bytes;
	b->segment = segment;
	b->segments = (uint32_t)segments;
	return COLLNET_OK;
}

/* ---- the schedule -------------------------------------------------------------------------- */

struct emit {
	const struct cn_bcast *b;
	const struct cn_layout *l;
	uint32_t me, root; /* root: rank */
	struct cn_sched *out;
	struct cn_err *err;
};

/* The location of the message on a node. */
static struct cn_span place(const struct emit *e, uint32_t node, uint64_t at)
{
	if (node == e->b->root) {
		return (struct cn_span){ CN_BUF_SEND, e->root, at };
	}
	return (struct cn_span){ CN_BUF_RECV, e->l->ranks[e->l->first[node]], at };
}

static struct cn_span arrival(const struct emit *e, uint32_t node, uint64_t at)
{
	return (struct cn_span){ CN_BUF_RECV, e->l->ranks[e->l->first[node]], at };
}

/* On the root's node: copies into all receive buffers, the root's own too. */
static int copy_from_root(const struct emit *e)
{
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = e->me, .len = e->b->bytes };
	int rc = COLLNET_OK;

	a.src = place(e, e->me, 0);
	for (uint32_t i = e->l->first[e->me]; !rc && i < e->l->first[e->me + 1]; i++) {
		a.dst = (struct cn_span){ CN_BUF_RECV, e->l->ranks[i], 0 };
		rc = cn_sched_add(e->out, &a, e->err);
	}
	return rc;
}

/* Receives segment s from the parent, and copies it to the node's other ranks. */
static int receive(const struct emit *e, uint32_t s, uint64_t at, uint64_t len)
{
	const struct cn_bcast *b = e->b;
	struct cn_action a = { .kind = CN_ACT_RECV, .peer = b->parent[e->me], .len = len };
	uint32_t received = e->out->n;
	int rc;

	a.phase = b->offset[e->me] + s * b->period;
	a.src = place(e, a.peer, at);
	a.dst = arrival(e, e->me, at);
	rc = cn_sched_add(e->out, &a, e->err);
	a.kind = CN_ACT_COPY;
	a.peer = e->me;
	a.src = a.dst;
	a.dep = CN_DEP_STREAM;
	a.dep_on = received;
	for (uint32_t i = e->l->first[e->me] + 1; !rc && i < e->l->first[e->me + 1]; i++) {
		a.dst.rank = e->l->ranks[i];
		rc = cn_sched_add(e->out, &a, e->err);
	}
	return rc;
}

static int serve(const struct emit *e, uint32_t s, uint64_t at, uint64_t len, uint32_t received)
{
	const struct cn_bcast *b = e->b;
	struct cn_action a = { .kind = CN_ACT_SEND, .len = len };
	int rc = COLLNET_OK;

	a.src = place(e, e->me, at);
	if (e->me != b->root) {
		a.dep = CN_DEP_STREAM;
		a.dep_on = received;
	}
	for (uint32_t i = 0; !rc && i < b->nchildren[e->me]; i++) {
		a.peer = b->order[b->first[e->me] + i];
		a.phase = b->offset[a.peer] + s * b->period;
		a.dst = arrival(e, a.peer, at);
		rc = cn_sched_add(e->out, &a, e->err);
	}
	return rc;
}

/* The schedule of node `me`. */
static int emit_schedule(const struct cn_bcast *b, const struct cn_layout *l,
			 const struct cn_plan *p, uint32_t me, struct cn_sched *out,
			 struct cn_err *err)
{
	struct emit e = { .b = b, .l = l, .me = me, .root = p->root, .out = out, .err = err };
	int rc = me == b->root ? copy_from_root(&e) : COLLNET_OK;

	out->order = CN_ORDER_IN_TURN;
	out->phases = b->phases;
	for (uint32_t s = 0; !rc && s < b->segments; s++) {
		uint64_t at = s * b->segment;
		uint64_t len = b->bytes - at < b->segment ? b->bytes - at : b->segment;
		uint32_t received = out->n;

		if (me != b->root) {
			rc = receive(&e, s, at, len);
		}
		if (!rc) {
			rc = serve(&e, s, at, len, received);
		}
	}
	return rc;
}

int cn_bcast_plan(cn_bcast_builder *build, const struct cn_layout *l, const struct cn_plan *p,
		  uint32_t me, struct cn_sched *out, struct cn_err *err)
{
	struct cn_cost cost = cn_cost_of(l);
	struct cn_bcast b;
	int rc;

	if (!cn_sent_at_once(l, &cost.at_once)) { /* without it, the tree would be another one */
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u nodes", l->nnodes);
	}
	rc = build(l, l->node_of[p->root], p->bytes, p->segment, &cost, &b, err);
	if (rc) {
		return rc;
	}
	rc = emit_schedule(&b, l, p, me, out, err);
	cn_bcast_done(&b);
	return rc;
}

int cn_bcast_predict(const struct cn_layout *l, const struct cn_plan *p, const struct cn_cost *c,
		     struct cn_bcast *out, struct cn_err *err)
{
	static const struct {
		cn_planner *plan;
		cn_bcast_builder *build;
	} all[] = {
		{ cn_plan_bcast_smp, cn_bcast_smp },
		{ cn_plan_bcast_chain, cn_bcast_chain },
		{ cn_plan_bcast_binary, cn_bcast_binary },
		{ cn_plan_bcast_kary, cn_bcast_kary },
		{ cn_plan_bcast_binomial, cn_bcast_binomial },
	};
	const struct cn_algorithm *a = cn_algorithm_by_id(CN_OP_BCAST, p->algorithm);

	for (size_t i = 0; a != NULL && i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].plan == a->plan) {
			return all[i].build(l, l->node_of[p->root], p->bytes, p->segment, c, out,
					    err);
		}
	}
	return cn_fail(err, COLLNET_EINVAL, "no broadcast has id %u", (unsigned)p->algorithm);
}
