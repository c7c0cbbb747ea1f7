/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Predicted times of the reductions: the wire's time, a start-up per message on the longest way,
 * and the time of every combination that has to be waited for: it is handed to another process,
 * and reported back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/allgather/ring.h"
#include "sched/load.h"
#include "sched/predict.h"
#include "sched/reduction.h"

static double wire(const struct cn_network *n, double bytes)
{
	return cn_cost_wire(n->cost, (uint64_t)bytes, n->slowest);
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

static bool parts_are_nodes(const struct cn_network *n)
{
	const enum cn_op_kind op = n->plan->op;

	return !n->plan->ordered && op != CN_OP_SCAN && op != CN_OP_EXSCAN;
}

static uint32_t parts_of(const struct cn_network *n)
{
	return parts_are_nodes(n) ? n->layout->nnodes : consecutive(n->layout);
}

static bool too_long(const struct cn_network *n, struct cn_prediction *out)
{
	if (n->plan->bytes <= CN_REDUCTION_SMALL) {
		return false;
	}
	snprintf(out->why, sizeof(out->why), "for blocks of up to %u bytes", CN_REDUCTION_SMALL);
	return true;
}

/* The nodes of the parts, in their order; NULL: no memory. */
static uint32_t *nodes_of_parts(const struct cn_network *n, uint32_t parts)
{
	const struct cn_layout *l = n->layout;
	uint32_t *nodes = malloc((parts > l->nnodes ? parts : l->nnodes) * sizeof(*nodes)), k = 0;

	if (nodes != NULL && parts_are_nodes(n)) {
		cn_ring_lr1(l->tree, nodes);
	} else if (nodes != NULL) {
		for (uint32_t rank = 0; rank < l->nranks; rank++) {
			if (rank == 0 || l->node_of[rank] != l->node_of[rank - 1]) {
				nodes[k++] = l->node_of[rank];
			}
		}
	}
	return nodes;
}

/* A message of so many bytes; *way: the longest time of one of its round. */
static void add_message(struct cn_load *x, const struct cn_cost *c, uint32_t from, uint32_t to,
			uint64_t bytes, double *way)
{
	cn_load_add(x, from, to);
	*way = cn_longer(*way, cn_cost_message(c, x->t, x->nodes[from], x->nodes[to], bytes));
}

/* As planned by allreduce/doubling.c. Returns the seconds of the longest ways of frames of so many
 * bytes, one of each round. */
static double add_doubling(struct cn_load *x, const struct cn_cost *c, uint32_t parts,
			   uint64_t bytes)
{
	uint32_t power = 1, pairs;
	double ways = 0, way = 0;

	while (2 * power <= parts) {
		power *= 2;
	}
	pairs = parts - power;
	for (uint32_t i = 0; i < pairs; i++) {
		add_message(x, c, 2 * i, 2 * i + 1, bytes, &way);
		add_message(x, c, 2 * i + 1, 2 * i, bytes, &way);
	}
	ways = 2 * way;
	for (uint32_t bit = 1; bit < power; bit *= 2) {
		way = 0;
		for (uint32_t i = 0; i < power; i++) {
			const uint32_t to = i ^ bit;

			add_message(x, c, i < pairs ? 2 * i + 1 : i + pairs,
				    to < pairs ? 2 * to + 1 : to + pairs, bytes, &way);
		}
		ways += way;
	}
	return ways;
}

/* The same of reduce/binomial.c with root 0, and scan/doubling.c. */
static double add_rounds(struct cn_load *x, const struct cn_cost *c, bool scans, uint32_t parts,
			 uint64_t bytes)
{
	double ways = 0;

	for (uint32_t d = 1; d < parts; d *= 2) {
		double way = 0;

		for (uint32_t i = 0; i + d < parts; i += scans ? 1 : 2 * d) {
			add_message(x, c, scans ? i : i + d, scans ? i + d : i, bytes, &way);
		}
		ways += way;
	}
	return ways;
}

struct rounds {
	double link; /* seconds of all rounds on the link that they occupy longest */
	double ways; /* of a frame through all rounds */
};

/* `steps`: rounds with their additional messages. */
static struct rounds look_at_rounds(const struct cn_network *n, uint32_t parts, double steps)
{
	const struct cn_tree *t = n->layout->tree;
	struct rounds out = { 0, steps * n->latency };
	struct cn_cost cost = *n->cost;
	struct cn_load x;

	if (t == NULL) {
		return out;
	}
	cost.pace = 0; /* that is a node's, not a link's */
	if (cn_load_begin(&x, t, nodes_of_parts(n, parts))) {
		const uint64_t frame = cn_cost_frame(n->cost, n->plan->bytes);

		out.ways = n->plan->op == CN_OP_ALLREDUCE
				   ? add_doubling(&x, &cost, parts, frame)
				   : add_rounds(&x, &cost, n->plan->op != CN_OP_REDUCE, parts,
						frame);
	}
	for (uint32_t link = 2; x.messages != NULL && link < 2 * t->n; link++) {
		const double one = cn_cost_wire(&cost, n->plan->bytes, cn_load_rate(&x, link));

		out.link = cn_longer(out.link, x.messages[link] * one / cn_tree_channels(t, link));
	}
	cn_load_end(&x);
	return out;
}

/*
 * Seconds from the first frame of a block at a node until the node has combined all of it, of which
 * the links take `whole`, after as many hops. What comes while a piece is combined is the next
 * piece. So the first frame is a piece, and what follows it closely another; that is passed on
 * together, its first frame comes to the next node when the piece before is done there, and is a
 * piece again. Each hop makes one piece more, until pieces are frames.
 */
static double rest(const struct cn_network *n, uint64_t frames, double frame, double whole,
		   double hops)
{
	const double combine = n->cost->combine, pieces = whole - frame + (hops + 1) * combine,
		     most = (double)frames * combine;

	return cn_longer(whole - frame + combine, pieces < most ? pieces : most);
}

/* Seconds of the rounds of an operation, each of which the ranks combine; *steps: messages. */
static double all_rounds(const struct cn_network *n, double *steps)
{
	const uint32_t parts = parts_of(n), rounds = cn_log2_up(parts);
	const uint64_t bytes = n->plan->bytes;
	/* An allreduce of parts beyond a power of two begins and ends with a message more. */
	const bool more = n->plan->op == CN_OP_ALLREDUCE && (parts & (parts - 1)) != 0;
	const double combining = n->cost->combine;
	const double whole = wire(n, (double)bytes),
		     frame = wire(n, (double)cn_cost_frame(n->cost, bytes));
	struct rounds r;
	double path, link;

	*steps = rounds + (more ? 1 : 0);
	r = look_at_rounds(n, parts, *steps);
	/* Frames are passed on as they come, combined: either the first one's way through all
	 * rounds takes longest, and the others follow it, or the link that carries most. */
	path = r.ways + (rounds > 0 ? (rounds - 1) * combining : 0) +
	       rest(n, cn_cost_frames(n->cost, bytes), frame, whole, rounds);
	link = cn_longer(*steps * whole, r.link) + n->latency - frame + combining;
	return cn_longer(path, link);
}

void cn_predict_reduction_rounds(const struct cn_network *n, struct cn_prediction *out)
{
	double steps;

	if (too_long(n, out)) {
		return;
	}
	out->seconds = all_rounds(n, &steps);
	snprintf(out->why, sizeof(out->why), "%.0f rounds", steps);
}

/* The ring of the nodes, of a reduction whose parts they are. NULL: no memory, or no tree. */
static uint32_t *ring_of_nodes(const struct cn_network *n)
{
	const struct cn_layout *l = n->layout;
	uint32_t *ring = l->tree != NULL ? malloc(l->nnodes * sizeof(*ring)) : NULL;

	if (ring != NULL) {
		cn_ring_lr1(l->tree, ring);
	}
	return ring;
}

/*
 * Seconds of a reduce-scatter of chunks that are passed on as they come: a link carries one in
 * every step; a node combines one in every step, of several frames in two pieces at least, the
 * first frame and the others; and the first frame of a chunk passes all paths of the ring but one,
 * and is combined after each.
 */
static double scatter(const struct cn_network *n, const struct cn_ways *w, uint64_t frames,
		      double frame, double chunk)
{
	const uint32_t steps = n->layout->nnodes - 1;
	const double combine = n->cost->combine, pieces = frames > 1 ? 2 : 1,
		     links = steps * chunk + w->shortest - frame + pieces * combine,
		     ranks = steps * pieces * combine + w->shortest + chunk - frame,
		     lap = w->sum - w->shortest + (steps + pieces - 1) * combine + chunk - frame;

	return cn_longer(links, cn_longer(ranks, lap));
}

void cn_predict_reduction_ring(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t nodes = n->layout->nnodes, steps = nodes - 1;
	const bool all = n->plan->op == CN_OP_ALLREDUCE;
	const uint64_t block = all ? (n->plan->bytes + nodes - 1) / nodes : n->plan->bytes,
		       bytes = cn_cost_frame(n->cost, block);
	const uint64_t frames = cn_cost_frames(n->cost, block) * (all ? 1 : n->local),
		       sent = (all ? 2 : 1) * steps * frames;
	const double frame = wire(n, (double)bytes),
		     chunk = (all ? 1 : n->local) * wire(n, (double)block);
	uint32_t *ring = ring_of_nodes(n);
	const struct cn_ways w = cn_ways(n, ring, nodes, true, bytes);

	free(ring);
	if (n->plan->ordered) {
		snprintf(out->why, sizeof(out->why), "for commutative operations");
		return;
	}
	out->seconds = 0;
	if (steps > 0) {
		out->seconds = scatter(n, &w, frames, frame, chunk) +
			       (all ? cn_longer(steps * chunk, w.sum - w.shortest) : 0);
		out->seconds += cn_cost_waits(n->cost, sent, out->seconds / (double)sent,
					      w.longest);
	}
	snprintf(out->why, sizeof(out->why), "%u steps", all ? 2 * steps : steps);
}

/* The paths of a chain of the parts, to the root of a reduction. */
static struct cn_ways chain_ways(const struct cn_network *n, uint32_t parts, uint64_t frame)
{
	const struct cn_layout *l = n->layout;
	const uint32_t root = n->plan->op == CN_OP_REDUCE ? l->node_of[n->plan->root] : 0;
	uint32_t *nodes = l->tree != NULL ? nodes_of_parts(n, parts) : NULL, *chain, at = 0;
	struct cn_ways w;

	chain = nodes != NULL ? malloc((parts + 1) * sizeof(*chain)) : NULL;
	if (chain == NULL || n->plan->op != CN_OP_REDUCE) {
		w = cn_ways(n, nodes, parts, false, frame);
	} else if (n->plan->ordered) { /* from the last one to the root */
		memcpy(chain, nodes, parts * sizeof(*chain));
		chain[parts] = root;
		w = cn_ways(n, chain, parts + (nodes[parts - 1] != root), false, frame);
	} else {
		while (nodes[at] != root) {
			at++;
		}
		for (uint32_t i = 0; i < parts; i++) {
			chain[i] = nodes[(at + 1 + i) % parts];
		}
		w = cn_ways(n, chain, parts, false, frame);
	}
	free(nodes);
	free(chain);
	return w;
}

void cn_predict_reduction_chain(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t parts = parts_of(n), hops = parts - 1;
	const uint64_t bytes = n->plan->bytes, frames = cn_cost_frames(n->cost, bytes),
		       first = cn_cost_frame(n->cost, bytes);
	const bool all = n->plan->op == CN_OP_ALLREDUCE;
	/* There and back, the link of a node between two others carries the block twice in either
	 * direction; on the way to a root in the order of the ranks the root's does. */
	const bool twice = (all && hops > 1) || (n->plan->op == CN_OP_REDUCE && n->plan->ordered);
	const struct cn_ways w = chain_ways(n, parts, first);
	const double frame = wire(n, (double)first),
		     whole = (twice ? 2 : 1) * w.load * wire(n, (double)bytes);

	out->seconds = 0;
	if (hops > 0) {
		out->seconds = (all ? 2 : 1) * w.sum + (hops - 1) * n->cost->combine +
			       rest(n, frames, frame, whole, hops) +
			       cn_cost_waits(n->cost, frames, frame, w.longest);
	}
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
