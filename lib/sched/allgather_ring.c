/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allgather on a logical ring: at step 1 a node sends the blocks of its own ranks to its right
 * neighbour, at step i what came from its left at step i - 1, as the bytes come (n - 1 steps).
 *
 * The ring goes by node numbers, which follow the topology: hosts of one switch are neighbours,
 * so each switch-to-switch link carries one node's stream in each direction. (Not by the
 * contention-aware numbers, which put neighbours behind different switches.) Blocks arrive at the
 * lowest rank of a node, are forwarded from there, and are copied to its other ranks.
 */
#include "sched/planners.h"

struct ring {
	const struct cn_layout *l;
	uint64_t bytes;
	uint32_t me, left, right;
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

int cn_plan_allgather_ring(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			   struct cn_sched *out, struct cn_err *err)
{
	uint32_t n = l->nnodes, received = 0;
	struct ring r = { l, p->bytes, me, (me + n - 1) % n, (me + 1) % n, out, err };
	int rc = own_blocks(&r);

	out->order = CN_ORDER_IN_TURN;
	out->phases = n - 1;
	for (uint32_t phase = 0; !rc && phase + 1 < n; phase++) {
		uint32_t outgoing = (me + n - phase) % n;
		uint32_t incoming = (me + n - phase - 1) % n;

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
