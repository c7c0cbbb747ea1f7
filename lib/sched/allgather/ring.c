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
 */
#include <stdlib.h>

#include "sched/planners.h"
#include "sched/allgather/ring.h"

struct ring {
	const struct cn_layout *l;
	uint64_t bytes;
	const uint32_t *order;		 /* [nnodes] nodes round the ring; NULL: by their numbers */
	uint32_t me, left, right, place; /* of me, on the ring */
	struct cn_sched *out;
	struct cn_err *err;
};

static uint32_t lowest_rank(const struct cn_layout *l, uint32_t node)
{
	return l->ranks[l->first[node]];
}

/* Every rank's own block into all receive buffers of the node. */
static int own_blocks(const struct ring *r)
{
	const struct cn_layout *l = r->l;
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = r->me, .len = r->bytes };

	for (uint32_t i = l->first[r->me]; i < l->first[r->me + 1]; i++) {
		a.src = (struct cn_span){ CN_BUF_SEND, l->ranks[i], 0 };
		for (uint32_t j = l->first[r->me]; j < l->first[r->me + 1]; j++) {
			int rc;

			a.dst = (struct cn_span){ CN_BUF_RECV, l->ranks[j],
						  l->ranks[i] * r->bytes };
			rc = cn_sched_add(r->out, &a, r->err);
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
	return (struct cn_span){ CN_BUF_RECV, lowest_rank(r->l, node), origin * r->bytes };
}

/* The blocks of node `owner` to the right; `received` is the receive of the first of them. */
static int send_right(const struct ring *r, uint32_t owner, uint32_t phase, uint32_t received)
{
	const struct cn_layout *l = r->l;
	struct cn_action a = { .kind = CN_ACT_SEND, .peer = r->right, .phase = phase };

	a.len = r->bytes;
	for (uint32_t i = l->first[owner]; i < l->first[owner + 1]; i++) {
		uint32_t origin = l->ranks[i];
		int rc;

		if (phase > 0) {
			a.dep = CN_DEP_STREAM;
			a.dep_on = received + (i - l->first[owner]);
		}
		a.src = block_at(r, r->me, phase, origin);
		a.dst = (struct cn_span){ CN_BUF_RECV, lowest_rank(l, r->right),
					  origin * r->bytes };
		rc = cn_sched_add(r->out, &a, r->err);
		if (rc) {
			return rc;
		}
	}
	return COLLNET_OK;
}

static int receive_left(const struct ring *r, uint32_t owner, uint32_t phase, uint32_t *received)
{
	const struct cn_layout *l = r->l;
	struct cn_action a = { .kind = CN_ACT_RECV, .peer = r->left, .phase = phase };

	*received = r->out->n;
	a.len = r->bytes;
	for (uint32_t i = l->first[owner]; i < l->first[owner + 1]; i++) {
		int rc;

		a.src = block_at(r, r->left, phase, l->ranks[i]);
		a.dst = (struct cn_span){ CN_BUF_RECV, lowest_rank(l, r->me),
					  l->ranks[i] * r->bytes };
		rc = cn_sched_add(r->out, &a, r->err);
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
	a.len = r->bytes;
	for (uint32_t i = l->first[owner]; i < l->first[owner + 1]; i++) {
		uint64_t offset = l->ranks[i] * r->bytes;

		a.dep_on = received + (i - l->first[owner]);
		a.src = (struct cn_span){ CN_BUF_RECV, lowest_rank(l, r->me), offset };
		for (uint32_t j = l->first[r->me] + 1; j < l->first[r->me + 1]; j++) {
			int rc;

			a.dst = (struct cn_span){ CN_BUF_RECV, l->ranks[j], offset };
			rc = cn_sched_add(r->out, &a, r->err);
			if (rc) {
				return rc;
			}
		}
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
	struct ring r = {
		.l = l, .bytes = p->bytes, .order = order, .me = me, .out = out, .err = err
	};
	int rc;

	while (node_at(&r, r.place) != me) {
		r.place++;
	}
	r.left = node_at(&r, r.place + n - 1);
	r.right = node_at(&r, r.place + 1);
	out->order = CN_ORDER_IN_TURN;
	out->phases = n - 1;
	rc = own_blocks(&r);
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
