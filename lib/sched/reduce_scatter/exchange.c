/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce-scatter by an exchange: each part sends its contributions to the blocks of the parts 1, 2,
 * ... places ahead, and each rank combines all that has come for its block, in the order of the
 * parts. One message per pair of parts and block, and no message waits for another: for short
 * blocks, and for operations that are not commutative. Places, order and window are those of the
 * synchronous shuffle exchange: contention-aware numbers, and frame by frame over the destinations,
 * so that the frames that a node has in flight are for nodes behind different switches.
 *
 * Where blocks have sizes of their own, a digest of all sizes precedes those for a node of several
 * ranks, because frames show their sum alone. To a node of one rank the frame shows the size,
 * unless that is 0, for which there is no frame. So the node before it sends it a digest: if two
 * nodes do not agree, neither do two neighbours.
 */
#include <stdlib.h>

#include "sched/planners.h"
#include "sched/reduce_scatter/ring.h"

struct exchange {
	struct cn_reduction r;
	uint32_t *local; /* [nranks] which of this node's ranks it is */
	uint32_t *place; /* [nparts] of a part */
	uint32_t *at;	 /* [nparts] the part at a place */
	/* [local ranks][nparts] the parts' contributions to a rank's block */
	struct cn_value *from;
};

/* Where a rank receives the contribution of a part. */
static struct cn_span arrival(const struct cn_reduction *r, uint32_t rank, uint32_t part)
{
	return (struct cn_span){ CN_BUF_SCRATCH, rank, part * cn_reduction_block(r, rank).len };
}

/* The contribution of part x to a rank's block, of which this node takes note if it is its own. */
static void arrived(struct exchange *e, uint32_t x, uint32_t rank, struct cn_value v)
{
	if (e->r.l->node_of[rank] == e->r.me) {
		e->from[(size_t)e->local[rank] * e->r.nparts + x] = v;
	}
}

/* True for one part of each node. */
static bool is_first(const struct cn_reduction *r, uint32_t x)
{
	return r->parts[x].ranks == r->l->ranks + r->l->first[r->parts[x].node];
}

/* Sends the digest of the sizes, once per pair of nodes, if the pair has one. */
static void agree(struct cn_reduction *r, uint32_t x, uint32_t to, uint32_t phase)
{
	const uint32_t from_node = r->parts[x].node, to_node = r->parts[to].node,
		       ranks = r->l->first[to_node + 1] - r->l->first[to_node];

	if (is_first(r, x) && is_first(r, to) &&
	    (ranks > 1 || (from_node + 1) % r->l->nnodes == to_node)) {
		cn_reduction_agree(r, from_node, to_node, phase);
	}
}

static void send_blocks(struct exchange *e, uint32_t x, uint32_t to, uint32_t step)
{
	struct cn_reduction *r = &e->r;

	agree(r, x, to, step - 1);
	for (uint32_t k = 0; k < r->parts[to].n; k++) {
		const uint32_t rank = r->parts[to].ranks[k];
		const struct cn_block b = cn_reduction_block(r, rank);
		struct cn_value v;

		if (b.len == 0) {
			continue;
		}
		v = cn_reduction_fold(r, &r->parts[x], cn_chunk_handler(&r->parts[x], rank), b.at,
				      b.len, NULL);
		arrived(e, x, rank, cn_reduction_move(r, v, arrival(r, rank, x), b.len, step - 1));
	}
}

static void combine_block(struct exchange *e, uint32_t own, uint32_t rank)
{
	struct cn_reduction *r = &e->r;
	const struct cn_span result = cn_reduction_result(rank, 0), at = arrival(r, rank, own);
	const struct cn_block b = cn_reduction_block(r, rank);
	const struct cn_value *from = &e->from[(size_t)e->local[rank] * r->nparts];
	struct cn_value v;

	if (b.len == 0) {
		return;
	}
	arrived(e, own, rank,
		cn_reduction_fold(r, &r->parts[own], rank, b.at, b.len,
				  r->nparts == 1 ? &result : &at));
	v = from[0];
	for (uint32_t x = 1; x < r->nparts; x++) {
		v = cn_reduction_combine(r, v, from[x], result, b.len);
	}
}

/* Places by number; by part where one node has several. */
static void place_parts(struct exchange *e)
{
	const struct cn_reduction *r = &e->r;
	const bool spread = r->p->contention_aware && r->l->logical != NULL &&
			    r->nparts == r->l->nnodes;

	for (uint32_t x = 0; x < r->nparts; x++) {
		e->place[x] = spread ? r->l->logical[r->parts[x].node] : x;
		e->at[e->place[x]] = x;
	}
}

static void run(struct exchange *e)
{
	struct cn_reduction *r = &e->r;
	const uint32_t n = r->nparts;

	for (uint32_t rank = 0; rank < r->l->nranks; rank++) {
		cn_reduction_slot(r, rank, n * cn_reduction_block(r, rank).len); /* arrivals */
	}
	for (uint32_t step = 1; step < n; step++) {
		for (uint32_t x = 0; x < n; x++) {
			send_blocks(e, x, e->at[(e->place[x] + step) % n], step);
		}
	}
	for (uint32_t own = 0; own < n; own++) {
		for (uint32_t k = 0; k < r->parts[own].n && r->parts[own].node == r->me; k++) {
			combine_block(e, own, r->parts[own].ranks[k]);
		}
	}
}

int cn_plan_reduce_scatter_exchange(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
				    struct cn_sched *out, struct cn_err *err)
{
	const uint32_t here = l->first[me + 1] - l->first[me];
	struct exchange e;
	int rc = cn_reduction_init(&e.r, l, p, me, p->ordered, out, err);

	if (rc != COLLNET_OK || (p->bytes == 0 && p->blocks == NULL)) {
		return rc != COLLNET_OK ? rc : cn_reduction_done(&e.r);
	}
	out->order = CN_ORDER_INTERLEAVED;
	e.local = calloc(l->nranks, sizeof(*e.local));
	e.from = calloc((size_t)here * e.r.nparts, sizeof(*e.from));
	e.place = calloc(e.r.nparts, sizeof(*e.place));
	e.at = calloc(e.r.nparts, sizeof(*e.at));
	if (e.local == NULL || e.from == NULL || e.place == NULL || e.at == NULL) {
		e.r.rc = cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u ranks", l->nranks);
	} else {
		for (uint32_t k = 0; k < here; k++) {
			e.local[l->ranks[l->first[me] + k]] = k;
		}
		place_parts(&e);
		run(&e);
	}
	free(e.local);
	free(e.from);
	free(e.place);
	free(e.at);
	return cn_reduction_done(&e.r);
}
