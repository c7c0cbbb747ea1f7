/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Predicted times of the reductions: the wire's time, a start-up per message on the longest way,
 * and two for every combination that has to be waited for: it is handed to another process, and
 * reported back.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sched/allgather/ring.h"
#include "sched/predict.h"
#include "sched/reduction.h"

static double wire(const struct cn_network *n, double bytes)
{
	return cn_cost_wire(n->cost, (uint64_t)bytes, n->slowest);
}

static double longer(double a, double b)
{
	return a > b ? a : b;
}

/* Rounds of doubling distances over `parts`. */
static uint32_t doublings(uint32_t parts)
{
	uint32_t rounds = 0;

	while (parts > 1u << rounds) {
		rounds++;
	}
	return rounds;
}

/* Parts of an operation that combines in the order of the ranks. */
static uint32_t consecutive(const struct cn_layout *l)
{
	uint32_t parts = 1;

	for (uint32_t rank = 1; rank < l->nranks; rank++) {
		parts += l->node_of[rank] != l->node_of[rank - 1];
	}
	return parts;
}

static uint32_t parts_of(const struct cn_network *n)
{
	const enum cn_op_kind op = n->plan->op;

	return n->plan->ordered || op == CN_OP_SCAN || op == CN_OP_EXSCAN ? consecutive(n->layout)
									  : n->layout->nnodes;
}

static bool too_long(const struct cn_network *n, struct cn_prediction *out)
{
	if (n->plan->bytes <= CN_REDUCTION_SMALL) {
		return false;
	}
	snprintf(out->why, sizeof(out->why), "for blocks of up to %u bytes", CN_REDUCTION_SMALL);
	return true;
}

void cn_predict_reduction_rounds(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t parts = parts_of(n), rounds = doublings(parts);
	const uint64_t bytes = n->plan->bytes;
	/* An allreduce of parts beyond a power of two begins and ends with a message more. */
	const bool more = n->plan->op == CN_OP_ALLREDUCE && (parts & (parts - 1)) != 0;
	const double steps = rounds + (more ? 1 : 0);

	if (too_long(n, out)) {
		return;
	}
	/* The latency has the first frame on every link, and the wire's time has it again. */
	out->seconds = steps * (wire(n, (double)bytes) + n->latency -
				wire(n,
				     bytes < n->cost->payload ? (double)bytes : n->cost->payload)) +
		       rounds * 2 * n->cost->startup; /* the result's way back has none */
	snprintf(out->why, sizeof(out->why), "%.0f rounds", steps);
}

/*
 * Seconds from a node to the next one on the ring of the parts, of the first frame of so many
 * bytes: the mean over the ring, since what goes round it passes all of its paths. Each switch
 * stores the frame before it forwards it.
 */
static double pass(const struct cn_network *n, double bytes)
{
	const struct cn_tree *t = n->layout->tree;
	const uint32_t nodes = n->layout->nnodes;
	const uint64_t frame = bytes < n->cost->payload ? (uint64_t)bytes : n->cost->payload;
	uint32_t *ring = t != NULL ? malloc(nodes * sizeof(*ring)) : NULL;
	double lap = 0;

	if (ring == NULL || nodes < 2) {
		free(ring);
		return n->cost->startup + n->cost->hop + 2 * wire(n, (double)frame);
	}
	cn_ring_lr1(t, ring);
	for (uint32_t i = 0; i < nodes; i++) {
		lap += cn_cost_message(n->cost, t, ring[i], ring[(i + 1) % nodes], frame);
	}
	free(ring);
	return lap / nodes;
}

void cn_predict_reduction_ring(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t nodes = n->layout->nnodes, steps = nodes - 1;
	const bool all = n->plan->op == CN_OP_ALLREDUCE;
	const double chunk = all ? (double)n->plan->bytes / nodes
				 : (double)n->plan->bytes * n->local;
	/* Chunks are passed on as they come: a step takes the link's time for a chunk, or longer if
	 * the first frame of the next one takes longer to be stored, forwarded and combined. */
	const double first = pass(n, chunk);
	const double gather = longer(wire(n, chunk), first);
	const double scatter = longer(wire(n, chunk), first + 2 * n->cost->startup);

	if (n->plan->ordered) {
		snprintf(out->why, sizeof(out->why), "for commutative operations");
		return;
	}
	out->seconds = steps * (scatter + (all ? gather : 0));
	snprintf(out->why, sizeof(out->why), "%u steps", all ? 2 * steps : steps);
}

void cn_predict_reduction_chain(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t hops = parts_of(n) - 1;
	const uint64_t bytes = n->plan->bytes;
	const double hop = pass(n, (double)bytes) + 2 * n->cost->startup;
	/* There and back, each node's link carries the block twice in either direction; on the way
	 * to a root in the order of the ranks the root's does. */
	const bool twice = n->plan->op == CN_OP_ALLREDUCE ||
			   (n->plan->op == CN_OP_REDUCE && n->plan->ordered);

	out->seconds = hops == 0 ? 0
				 : (twice ? 2 : 1) * wire(n, (double)bytes) +
					   (n->plan->op == CN_OP_ALLREDUCE ? 2 : 1) * hops * hop;
	snprintf(out->why, sizeof(out->why), "the block %s, and %u hops", twice ? "twice" : "once",
		 hops);
}

void cn_predict_reduction_exchange(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t others = parts_of(n) - 1;

	out->seconds = others * ((double)n->local * wire(n, (double)n->plan->bytes) +
				 n->cost->startup) +
		       n->latency;
	if (n->exchange / (n->local > 0 ? n->local : 1) > out->seconds) {
		out->seconds = n->exchange / n->local + n->latency;
	}
	snprintf(out->why, sizeof(out->why), "%u messages from and to every node", others);
}
