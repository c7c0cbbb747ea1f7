/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allgather on a logical ring: at step 1 a node sends the blocks of its own ranks to its right
 * neighbour, at step i what came from its left at step i - 1, as the bytes come (n - 1 steps).
 *
 * Four algorithms that differ in the order of the nodes on the ring. `ring` goes by node numbers,
 * which follow the topology: hosts of one switch are neighbours, so each switch-to-switch link
 * carries one node's stream in each direction. (Not by the contention-aware numbers, which put
 * neighbours behind different switches.) lr1, lr2 and lr3 go by the tree (ring.h), and are free of
 * contention whatever the numbers are: all messages on a directed link come from one node, which
 * sends them in turn. Blocks arrive at the lowest rank of a node, are forwarded from there, and are
 * copied to its other ranks.
 *
 * In the vector variant every rank knows all sizes, so one digest of them precedes a node's blocks.
 */
#include <stdlib.h>

#include "sched/planners.h"
#include "sched/allgather/ring.h"

struct ring {
	const struct cn_layout *l;
	uint64_t bytes;
	const struct cn_blocks *blocks;	 /* vector variant: of this node's ranks; else NULL */
	const uint32_t *order;		 /* [nnodes] nodes round the ring; NULL: by their numbers */
	uint32_t me, left, right, place; /* of me, on the ring */
	struct cn_sched *out;
	struct cn_err *err;
};

static uint32_t lowest_rank(const struct cn_layout *l, uint32_t node)
{
	return l->ranks[l->first[node]];
}

static uint64_t length(const struct ring *r, uint32_t origin)
{
	return r->blocks == NULL ? r->bytes : r->blocks[0].recv[origin].len;
}

/* The block of `origin` in the receive buffer of rank i of a node. */
static struct cn_span place(const struct ring *r, uint32_t node, uint32_t i, uint32_t origin)
{
	const struct cn_layout *l = r->l;
	struct cn_span s = { CN_BUF_RECV, l->ranks[l->first[node] + i], origin * r->bytes };

	if (r->blocks != NULL) {
		s.offset = node == r->me ? r->blocks[i].recv[origin].at : CN_OFFSET_UNKNOWN;
	}
	return s;
}

/* Adds an action for a block; in the vector variant those of no bytes are left out. */
static int add(const struct ring *r, const struct cn_action *a)
{
	return r->blocks != NULL && a->len == 0 ? COLLNET_OK : cn_sched_add(r->out, a, r->err);
}

/* The sizes, which are equal on all ranks here, and for the neighbours. */
static int digest(const struct ring *r)
{
	const struct cn_layout *l = r->l;
	uint32_t n = l->first[r->me + 1] - l->first[r->me];
	struct cn_action a = { .kind = CN_ACT_SEND, .peer = r->right };
	struct cn_messages m;
	int rc = COLLNET_OK;

	for (uint32_t i = 1; i < n; i++) {
		for (uint32_t origin = 0; origin < l->nranks; origin++) {
			uint64_t first = length(r, origin), len = r->blocks[i].recv[origin].len;

			if (len != first) {
				return cn_blocks_differ(lowest_rank(l, r->me), first,
							l->ranks[l->first[r->me] + i], len, r->err);
			}
		}
	}
	for (int k = 0; rc == COLLNET_OK && k < 2 && l->nnodes > 1; k++) {
		rc = cn_messages_begin(&m, &a, l->nranks, r->out, r->err);
		for (uint32_t origin = 0; rc == COLLNET_OK && origin < l->nranks; origin++) {
			m.value = cn_digest(m.value, length(r, origin));
		}
		if (rc == COLLNET_OK) {
			rc = cn_messages_end(&m, r->err);
		}
		a.kind = CN_ACT_RECV;
		a.peer = r->left;
	}
	return rc;
}

/* Every rank's own block into all receive buffers of the node. */
static int own_blocks(const struct ring *r)
{
	const struct cn_layout *l = r->l;
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = r->me };

	for (uint32_t i = l->first[r->me]; i < l->first[r->me + 1]; i++) {
		a.src = (struct cn_span){ CN_BUF_SEND, l->ranks[i], 0 };
		a.len = length(r, l->ranks[i]);
		for (uint32_t j = 0; j < l->first[r->me + 1] - l->first[r->me]; j++) {
			int rc;

			a.dst = place(r, r->me, j, l->ranks[i]);
			rc = add(r, &a);
			if (rc) {
				return rc;
			}
		}
	}
	return COLLNET_OK;
}

/* A block on its way round the ring, seen from the node that has it in hand. */
static struct cn_span block_at(const struct ring *r, uint32_t node, uint32_t phase, uint32_t origin)
{
	if (phase == 0) {
		return (struct cn_span){ CN_BUF_SEND, origin, 0 };
	}
	return place(r, node, 0, origin);
}

/* The blocks of node `owner` to the right; `received` is the receive of the first of them. */
static int send_right(const struct ring *r, uint32_t owner, uint32_t phase, uint32_t received)
{
	const struct cn_layout *l = r->l;
	struct cn_action a = { .kind = CN_ACT_SEND, .peer = r->right, .phase = phase };

	for (uint32_t i = l->first[owner]; i < l->first[owner + 1]; i++) {
		uint32_t origin = l->ranks[i];
		uint32_t before = r->out->n;
		int rc;

		if (phase > 0) {
			a.dep = CN_DEP_STREAM;
			a.dep_on = received;
		}
		a.src = block_at(r, r->me, phase, origin);
		a.dst = place(r, r->right, 0, origin);
		a.len = length(r, origin);
		rc = add(r, &a);
		if (rc) {
			return rc;
		}
		received += r->out->n - before;
	}
	return COLLNET_OK;
}

static int receive_left(const struct ring *r, uint32_t owner, uint32_t phase, uint32_t *received)
{
	const struct cn_layout *l = r->l;
	struct cn_action a = { .kind = CN_ACT_RECV, .peer = r->left, .phase = phase };

	*received = r->out->n;
	for (uint32_t i = l->first[owner]; i < l->first[owner + 1]; i++) {
		int rc;

		a.src = block_at(r, r->left, phase, l->ranks[i]);
		a.dst = place(r, r->me, 0, l->ranks[i]);
		a.len = length(r, l->ranks[i]);
		rc = add(r, &a);
		if (rc) {
			return rc;
		}
	}
	return COLLNET_OK;
}

/* What came to the lowest rank, on to the node's other ranks. */
static int share(const struct ring *r, uint32_t owner, uint32_t phase, uint32_t received)
{
	const struct cn_layout *l = r->l;
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = r->me, .phase = phase };

	a.dep = CN_DEP_STREAM;
	a.dep_on = received;
	for (uint32_t i = l->first[owner]; i < l->first[owner + 1]; i++) {
		uint32_t origin = l->ranks[i];

		a.src = place(r, r->me, 0, origin);
		a.len = length(r, origin);
		for (uint32_t j = 1; j < l->first[r->me + 1] - l->first[r->me]; j++) {
			int rc;

			a.dst = place(r, r->me, j, origin);
			rc = add(r, &a);
			if (rc) {
				return rc;
			}
		}
		/* The next block's receive: a block of no bytes has none. */
		a.dep_on += r->blocks == NULL || a.len > 0;
	}
	return COLLNET_OK;
}

/* The node at a place of the ring; places go round. */
static uint32_t node_at(const struct ring *r, uint32_t place)
{
	place %= r->l->nnodes;
	return r->order == NULL ? place : r->order[place];
}

static int plan_ring(const struct cn_layout *l, const struct cn_plan *p, const uint32_t *order,
		     uint32_t me, struct cn_sched *out, struct cn_err *err)
{
	uint32_t n = l->nnodes, received = 0;
	struct ring r = { .l = l,
			  .bytes = p->bytes,
			  .blocks = p->blocks,
			  .order = order,
			  .me = me,
			  .out = out,
			  .err = err };
	int rc;

	while (node_at(&r, r.place) != me) {
		r.place++;
	}
	r.left = node_at(&r, r.place + n - 1);
	r.right = node_at(&r, r.place + 1);
	out->order = CN_ORDER_IN_TURN;
	out->phases = n - 1;
	rc = own_blocks(&r);
	if (!rc && r.blocks != NULL) {
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
