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
#include "sched/allreduce/power.h"
#include "sched/load.h"
#include "sched/predict.h"
#include "sched/reduction.h"

#define AT_ONCE 400e-6 /* seconds of a block on a link */

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

	if (cn_network_had(n, nodes != NULL) && parts_are_nodes(n)) {
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

/*
 * What rounds carry. A node sends the frames of earlier rounds first, so a link that only later
 * rounds take is idle until nodes have sent the rounds before, or, after a round that keeps them
 * waiting on a shared link, have time left.
 */
struct look {
	struct cn_load load;
	const struct cn_cost *cost; /* without a pace, which is a node's, not a link's */
	uint64_t bytes, frame;	    /* of a block, and of its first frame */
	bool in_turn;		    /* every node sends in every round */
	double whole;		    /* seconds of a block on a node's link */
	double from;		    /* when nodes have time for the round, at the earliest */
	bool late;		    /* a round before kept them waiting */
	uint32_t *before;	    /* [2 * t->n] messages of earlier rounds */
	double *first;		    /* [2 * t->n] `from` of the first round on a link */
	double *left;		    /* [2 * t->n] frames that rounds leave in the port to a link */
	uint32_t parts;
	double *at;	 /* [parts] when a first frame has what the rounds before bring a part */
	double *next;	 /* [parts] the same after this round */
	double way;	 /* the longest of this round */
	double ways;	 /* of all rounds */
	uint64_t frames; /* of a block */
	uint32_t window;
	bool lossy; /* a port overflows */
};

static bool begin_look(struct look *x, const struct cn_tree *t, uint32_t *nodes)
{
	x->before = calloc(2 * (size_t)t->n, sizeof(*x->before));
	x->first = calloc(2 * (size_t)t->n, sizeof(*x->first));
	x->left = calloc(2 * (size_t)t->n, sizeof(*x->left));
	x->at = calloc(x->parts, sizeof(*x->at));
	x->next = calloc(x->parts, sizeof(*x->next));
	return cn_load_begin(&x->load, t, nodes) && x->before != NULL && x->first != NULL &&
	       x->left != NULL && x->at != NULL && x->next != NULL;
}

static void end_look(struct look *x)
{
	cn_load_end(&x->load);
	free(x->before);
	free(x->first);
	free(x->left);
	free(x->at);
	free(x->next);
}

static void add_message(struct look *x, uint32_t from, uint32_t to)
{
	const struct cn_load *l = &x->load;
	const double way = cn_cost_message(x->cost, l->t, l->nodes[from], l->nodes[to], x->frame);

	x->next[to] = cn_longer(x->next[to], x->at[from] + way);
	x->way = cn_longer(x->way, way);
	cn_load_add(&x->load, from, to);
}

/* Seconds of so many blocks on a directed link. */
static double carried(const struct look *x, uint32_t link, uint32_t messages)
{
	return messages * cn_cost_wire(x->cost, x->bytes, cn_load_rate(&x->load, link)) /
	       cn_tree_channels(x->load.t, link);
}

/*
 * True if a port to the link hardly holds the frames that nodes leave in it: two each, and those of
 * this round and earlier ones that the link has not carried yet; at most what their windows allow.
 * Of several channels, it is the fullest one, as messages are drawn for them. Blocks that a link
 * carries in less than AT_ONCE are not all sent at once, because the nodes' other work takes as
 * long.
 */
static bool overflows(struct look *x, uint32_t link, uint32_t messages)
{
	const struct cn_topo *topo = x->load.t->topo;
	const struct cn_topo_link *l = &topo->links[x->load.t->v[link / 2].link];
	const double room = l->buffer != 0 ? l->buffer : cn_topo_assumed_buffer(topo),
		     fullest = l->channels > 1 ? 1.5 : 1,
		     busy = fullest * carried(x, link, messages),
		     senders = fullest * messages / l->channels, most = senders * x->window;
	double left;

	if (busy <= x->whole || x->frames < 2 || x->whole < AT_ONCE) {
		return false;
	}
	x->left[link] += senders * (double)x->frames * (1 - x->whole / busy);
	left = 2 * senders + x->left[link];
	return room > 0 && (left < most ? left : most) > 0.8 * room;
}

static void end_round(struct look *x)
{
	for (uint32_t link = 2; link < 2 * x->load.t->n; link++) {
		const uint32_t all = x->load.messages[link], more = all - x->before[link];

		if (more > 0 && x->before[link] == 0) {
			x->first[link] = x->from;
		}
		x->late = x->late || carried(x, link, more) > x->whole;
		x->lossy = overflows(x, link, more) || x->lossy;
		x->before[link] = all;
	}
	x->from += x->in_turn && !x->late ? x->whole : 0;
	x->ways += x->way;
	x->way = 0;
	memcpy(x->at, x->next, x->parts * sizeof(*x->at));
}

/* As planned by allreduce/doubling.c. */
static void add_doubling(struct look *x, uint32_t parts)
{
	const struct cn_power w = cn_power_of(parts, CN_POWER_NO_ROOT);

	for (uint32_t i = 0; i < w.pairs; i++) {
		add_message(x, cn_power_other(&w, i), cn_power_part(&w, i));
	}
	if (w.pairs > 0) {
		end_round(x);
	}
	for (uint32_t bit = 1; bit < w.members; bit *= 2) {
		for (uint32_t i = 0; i < w.members; i++) {
			add_message(x, cn_power_part(&w, i), cn_power_part(&w, i ^ bit));
		}
		end_round(x);
	}
	for (uint32_t i = 0; i < w.pairs; i++) {
		add_message(x, cn_power_part(&w, i), cn_power_other(&w, i));
	}
	if (w.pairs > 0) {
		end_round(x);
	}
}

/* As planned by reduce/binomial.c with root 0, and scan/doubling.c. */
static void add_rounds(struct look *x, bool scans, uint32_t parts)
{
	for (uint32_t d = 1; d < parts; d *= 2) {
		for (uint32_t i = 0; i + d < parts; i += scans ? 1 : 2 * d) {
			add_message(x, scans ? i : i + d, scans ? i + d : i);
		}
		end_round(x);
	}
}

struct rounds {
	double link; /* seconds until the link that is busy last has carried all rounds */
	double ways; /* of a frame through all rounds */
	bool lossy;
};

/* `steps`: rounds with their additional messages. */
static struct rounds measure_rounds(const struct cn_network *n, uint32_t parts, double steps)
{
	const struct cn_tree *t = n->layout->tree;
	struct rounds out = { 0, steps * n->latency, false };
	struct cn_cost cost = *n->cost;
	struct look x = { .cost = &cost,
			  .bytes = n->plan->bytes,
			  .frame = cn_cost_frame(n->cost, n->plan->bytes),
			  .frames = cn_cost_frames(n->cost, n->plan->bytes),
			  .window = n->window,
			  .parts = parts,
			  .in_turn = n->plan->op != CN_OP_REDUCE };

	if (t == NULL) {
		return out;
	}
	cost.pace = 0;
	x.whole = cn_cost_wire(&cost, n->plan->bytes, n->slowest);
	if (cn_network_had(n, begin_look(&x, t, nodes_of_parts(n, parts)))) {
		if (n->plan->op == CN_OP_ALLREDUCE) {
			add_doubling(&x, parts);
		} else {
			add_rounds(&x, n->plan->op != CN_OP_REDUCE, parts);
		}
		out.lossy = x.lossy;
		/* who needs something of everyone waits for the longest way in each round */
		out.ways = n->plan->op == CN_OP_ALLREDUCE ? x.ways : 0;
		for (uint32_t i = 0; i < parts; i++) {
			out.ways = cn_longer(out.ways, x.at[i]);
		}
		for (uint32_t link = 2; link < 2 * t->n; link++) {
			out.link = cn_longer(out.link,
					     x.first[link] + carried(&x, link, x.before[link]));
		}
	}
	end_look(&x);
	return out;
}

/*
 * Seconds from the first frame of a block at a node until the node has combined all of it, of which
 * the links take `whole`, after as many hops. Data that arrive while a fragment is combined form
 * the next fragment. So the first frame is a fragment, and the frames close behind it another;
 * these are forwarded together, their first frame reaches the next node when the previous fragment
 * is done there, and is a fragment again. Each hop adds one fragment, until fragments are frames.
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
	r = measure_rounds(n, parts, *steps);
	/* Frames are passed on as they come, combined: either the first one's way through all
	 * rounds takes longest, and the others follow it, or the link that carries most. */
	path = r.ways + (rounds > 0 ? (rounds - 1) * combining : 0) +
	       rest(n, cn_cost_frames(n->cost, bytes), frame, whole, rounds);
	link = cn_longer(*steps * whole, r.link) + n->latency - frame + combining;
	return cn_longer(path, link) + (r.lossy ? n->cost->loss : 0);
}

double cn_rounds_seconds(const struct cn_network *n)
{
	double steps;

	return all_rounds(n, &steps);
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

	if (cn_network_had(n, ring != NULL || l->tree == NULL) && ring != NULL) {
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
	cn_network_had(n, chain != NULL || l->tree == NULL);
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

/* Blocks that are short together are combined once, else one by one, as they come: about three
 * quarters of them after the last frame. */
static double combining_blocks(const struct cn_network *n, uint32_t others)
{
	return others <= CN_REDUCTION_SMALL / (n->plan->bytes > 0 ? n->plan->bytes : 1)
		       ? n->cost->combine
		       : n->cost->combine * (1 + others * 3 / 4);
}

void cn_predict_reduction_exchange(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t others = parts_of(n) - 1;
	const double combine = combining_blocks(n, others);

	out->seconds = others * ((double)n->local * wire(n, (double)n->plan->bytes) +
				 n->cost->message) +
		       n->latency + combine;
	if (n->exchange / (n->local > 0 ? n->local : 1) > out->seconds) {
		out->seconds = n->exchange / n->local + n->latency + combine;
	}
	snprintf(out->why, sizeof(out->why), "%u messages from and to every node", others);
}
