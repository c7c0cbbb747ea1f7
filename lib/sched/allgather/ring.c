/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allgather on a logical ring: at step 1 a node sends the blocks of its own ranks to its right
 * neighbour, at step i those received from its left at step i - 1, pipelined by byte (n - 1 steps).
 *
 * Four algorithms that differ in the order of the nodes on the ring. `ring` goes by node numbers,
 * which follow the topology: hosts of one switch are neighbours, so each switch-to-switch link
 * carries one node's stream in each direction. (Not by the contention-aware numbers, which put
 * neighbours behind different switches.) lr1, lr2 and lr3 go by the tree (ring.h), and are free of
 * contention whatever the numbers are: all messages on a directed link come from one node, which
 * sends them in turn.
 *
 * In the vector variant every rank knows all sizes, so one digest of them precedes a node's blocks.
 */
#include <stdlib.h>

#include "sched/allgather/allgather.h"
#include "sched/allgather/ring.h"

struct ring {
	struct cn_allgather g;
	const uint32_t *order;	     /* [nnodes] nodes in ring order; NULL: by number */
	uint32_t left, right, place; /* place: index of this node on the ring */
};

/* Vector variant: checks that the ranks here agree on the sizes, and exchanges their digest with
 * the neighbours. */
static int digest(const struct ring *r)
{
	const struct cn_allgather *g = &r->g;
	struct cn_action a = { .kind = CN_ACT_SEND, .peer = r->right };
	struct cn_messages m;
	int rc = COLLNET_OK;

	for (int k = 0; rc == COLLNET_OK && k < 2 && g->l->nnodes > 1; k++) {
		rc = cn_messages_begin(&m, &a, g->l->nranks, g->out, g->err);
		for (uint32_t origin = 0; rc == COLLNET_OK && origin < g->l->nranks; origin++) {
			m.value = cn_digest(m.value, cn_allgather_length(g, origin));
		}
		if (rc == COLLNET_OK) {
			rc = cn_messages_end(&m, g->err);
		}
		a.kind = CN_ACT_RECV;
		a.peer = r->left;
	}
	return rc;
}

/* The location of a block on a node as it goes round the ring. */
static struct cn_span block_at(const struct ring *r, uint32_t node, uint32_t phase, uint32_t origin)
{
	if (phase == 0) {
		return (struct cn_span){ CN_BUF_SEND, origin, 0 };
	}
	return cn_allgather_place(&r->g, node, 0, origin);
}

/* Sends the blocks of node `owner` to the right; `received` is the receive of the first of them. */
static int send_right(const struct ring *r, uint32_t owner, uint32_t phase, uint32_t received)
{
	const struct cn_allgather *g = &r->g;
	const struct cn_layout *l = g->l;
	struct cn_action a = { .kind = CN_ACT_SEND, .peer = r->right, .phase = phase };

	for (uint32_t i = l->first[owner]; i < l->first[owner + 1]; i++) {
		uint32_t origin = l->ranks[i];
		uint32_t before = g->out->n;
		int rc;

		if (phase > 0) {
			a.dep = CN_DEP_STREAM;
			a.dep_on = received;
		}
		a.src = block_at(r, g->me, phase, origin);
		a.dst = cn_allgather_place(g, r->right, 0, origin);
		a.len = cn_allgather_length(g, origin);
		rc = cn_allgather_add(g, &a);
		if (rc) {
			return rc;
		}
		received += g->out->n - before;
	}
	return COLLNET_OK;
}

static int receive_left(const struct ring *r, uint32_t owner, uint32_t phase, uint32_t *received)
{
	const struct cn_allgather *g = &r->g;
	const struct cn_layout *l = g->l;
	struct cn_action a = { .kind = CN_ACT_RECV, .peer = r->left, .phase = phase };

	*received = g->out->n;
	for (uint32_t i = l->first[owner]; i < l->first[owner + 1]; i++) {
		int rc;

		a.src = block_at(r, r->left, phase, l->ranks[i]);
		a.dst = cn_allgather_place(g, g->me, 0, l->ranks[i]);
		a.len = cn_allgather_length(g, l->ranks[i]);
		rc = cn_allgather_add(g, &a);
		if (rc) {
			return rc;
		}
	}
	return COLLNET_OK;
}

/* Copies received blocks from the lowest rank to the node's other ranks. */
static int share(const struct ring *r, uint32_t owner, uint32_t phase, uint32_t received)
{
	const struct cn_layout *l = r->g.l;
	int rc = COLLNET_OK;

	for (uint32_t i = l->first[owner]; rc == COLLNET_OK && i < l->first[owner + 1]; i++) {
		rc = cn_allgather_share(&r->g, l->ranks[i], 1, phase, received);
		/* The next block's receive: a block of no bytes has none. */
		received += r->g.blocks == NULL || cn_allgather_length(&r->g, l->ranks[i]) > 0;
	}
	return rc;
}

/* The node at an index of the ring, modulo its size. */
static uint32_t node_at(const struct ring *r, uint32_t place)
{
	place %= r->g.l->nnodes;
	return r->order == NULL ? place : r->order[place];
}

static int plan_ring(const struct cn_layout *l, const struct cn_plan *p, const uint32_t *order,
		     uint32_t me, struct cn_sched *out, struct cn_err *err)
{
	uint32_t n = l->nnodes, received = 0;
	struct ring r = { .g = { .l = l,
				 .bytes = p->bytes,
				 .blocks = p->blocks,
				 .me = me,
				 .out = out,
				 .err = err },
			  .order = order };
	int rc;

	while (node_at(&r, r.place) != me) {
		r.place++;
	}
	r.left = node_at(&r, r.place + n - 1);
	r.right = node_at(&r, r.place + 1);
	out->order = CN_ORDER_IN_TURN;
	out->phases = n - 1;
	rc = cn_allgather_own(&r.g);
	if (!rc && p->blocks != NULL) {
		rc = digest(&r);
	}
	for (uint32_t phase = 0; !rc && phase + 1 < n; phase++) {
		uint32_t outgoing = node_at(&r, r.place + n - phase);
		uint32_t incoming = node_at(&r, r.place + n - phase - 1);

		rc = send_right(&r, outgoing, phase, received);
		if (!rc) {
			rc = receive_left(&r, incoming, phase, &received);
		}
		if (!rc) {
			rc = share(&r, incoming, phase, received);
		}
	}
	return rc;
}

int cn_plan_allgather_ring(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			   struct cn_sched *out, struct cn_err *err)
{
	return plan_ring(l, p, NULL, me, out, err);
}

static int find_lr1(const struct cn_tree *t, uint32_t *order, struct cn_err *err)
{
	(void)err;
	cn_ring_lr1(t, order);
	return COLLNET_OK;
}

static int plan_by_tree(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			int (*find)(const struct cn_tree *t, uint32_t *order, struct cn_err *err),
			struct cn_sched *out, struct cn_err *err)
{
	uint32_t *order = calloc(l->nnodes, sizeof(*order));
	int rc;

	if (order == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a ring of %u nodes", l->nnodes);
	}
	rc = find(l->tree, order, err);
	if (!rc) {
		rc = plan_ring(l, p, order, me, out, err);
	}
	free(order);
	return rc;
}

int cn_plan_allgather_lr1(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			  struct cn_sched *out, struct cn_err *err)
{
	return plan_by_tree(l, p, me, find_lr1, out, err);
}

int cn_plan_allgather_lr2(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			  struct cn_sched *out, struct cn_err *err)
{
	return plan_by_tree(l, p, me, cn_ring_lr2, out, err);
}

int cn_plan_allgather_lr3(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			  struct cn_sched *out, struct cn_err *err)
{
	return plan_by_tree(l, p, me, cn_ring_lr3, out, err);
}
