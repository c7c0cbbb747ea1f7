/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Predicted times of the reductions: the wire's time, a start-up per message on the longest way,
 * and two for every combination that has to be waited for: it is handed to another process, and
 * reported back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Messages between the nodes of parts, on the directed links of a tree. */
struct load {
	const struct cn_tree *t;
	uint32_t *nodes; /* of the parts */
	uint32_t *messages, *path;
};

/* Takes the nodes. False: no memory; load_end() is due all the same. */
static bool load_begin(struct load *x, const struct cn_tree *t, uint32_t *nodes)
{
	*x = (struct load){ .t = t, .nodes = nodes };
	x->messages = calloc(2 * (size_t)t->n, sizeof(*x->messages));
	x->path = malloc((2 * (size_t)t->height + 1) * sizeof(*x->path));
	return x->nodes != NULL && x->messages != NULL && x->path != NULL;
}

static void load_end(struct load *x)
{
	free(x->nodes);
	free(x->messages);
	free(x->path);
}

/* Returns the links of its path, which are in x->path. */
static uint32_t add_message(struct load *x, uint32_t from, uint32_t to)
{
	const uint32_t links = cn_tree_path(x->t, x->nodes[from], x->nodes[to], x->path);

	for (uint32_t i = 0; i < links; i++) {
		x->messages[x->path[i]]++;
	}
	return links;
}

/* Of a directed link, bit/s. */
static uint64_t rate_of(const struct cn_tree *t, uint32_t link)
{
	return t->topo->links[t->v[link / 2].link].rate;
}

/* As planned by allreduce/doubling.c, reduce/binomial.c and scan/doubling.c, with root 0. */
static void add_rounds(struct load *x, enum cn_op_kind op, uint32_t parts)
{
	for (uint32_t d = 1; d < parts; d *= 2) {
		for (uint32_t i = 0; i + d < parts; i++) {
			if (op == CN_OP_REDUCE ? i % (2 * d) == 0
					       : op != CN_OP_ALLREDUCE || (i & d) == 0) {
				add_message(x, op == CN_OP_SCAN || op == CN_OP_EXSCAN ? i : i + d,
					    op == CN_OP_SCAN || op == CN_OP_EXSCAN ? i + d : i);
			}
			if (op == CN_OP_ALLREDUCE && (i & d) == 0) {
				add_message(x, i, i + d);
			}
		}
	}
}

/* Seconds of all rounds on the link that they occupy longest; 0: the network is not known. */
static double busiest_link(const struct cn_network *n, uint32_t parts)
{
	const struct cn_tree *t = n->layout->tree;
	struct cn_cost cost = *n->cost;
	struct load x;
	double most = 0;

	if (t == NULL) {
		return 0;
	}
	cost.pace = 0; /* that is a node's, not a link's */
	if (load_begin(&x, t, nodes_of_parts(n, parts))) {
		add_rounds(&x, n->plan->op, parts);
	}
	for (uint32_t link = 2; x.messages != NULL && link < 2 * t->n; link++) {
		const double one = cn_cost_wire(&cost, n->plan->bytes, rate_of(t, link));

		most = longer(most, x.messages[link] * one / cn_tree_channels(t, link));
	}
	load_end(&x);
	return most;
}

/* Seconds of the rounds of an operation, which the ranks combine `combined` times. */
static double all_rounds(const struct cn_network *n, uint32_t combined, double *steps)
{
	const uint32_t parts = parts_of(n), rounds = doublings(parts);
	const uint64_t bytes = n->plan->bytes;
	/* An allreduce of parts beyond a power of two begins and ends with a message more. */
	const bool more = n->plan->op == CN_OP_ALLREDUCE && (parts & (parts - 1)) != 0;
	const double combining = 2 * n->cost->startup;
	const double whole = wire(n, (double)bytes),
		     frame = wire(n, (double)cn_cost_frame(n->cost, bytes));
	double path, link;

	*steps = rounds + (more ? 1 : 0);
	/* Frames are passed on as they come, combined: either the first one's way through all
	 * rounds takes longest, and the others follow it, or the link that carries most. */
	path = *steps * n->latency + whole - frame + combined * combining;
	link = longer(*steps * whole, busiest_link(n, parts)) + n->latency - frame + combining;
	return longer(path, link);
}

void cn_predict_reduction_rounds(const struct cn_network *n, struct cn_prediction *out)
{
	double steps;

	if (too_long(n, out)) {
		return;
	}
	out->seconds = all_rounds(n, doublings(parts_of(n)), &steps);
	snprintf(out->why, sizeof(out->why), "%.0f rounds", steps);
}

/* ---- allreduce by allgather ------------------------------------------------------------- */

/* Rounds in which nodes exchange whose places on the ring differ in one bit. */
struct doubling {
	const struct cn_network *n;
	uint32_t power, pairs;
	struct load load;
	bool known; /* the network */
};

static void doubling_begin(struct doubling *d, const struct cn_network *n)
{
	const struct cn_tree *t = n->layout->tree;
	const uint32_t parts = parts_of(n);
	uint32_t *ring;

	*d = (struct doubling){ .n = n, .power = 1 };
	while (2 * d->power <= parts) {
		d->power *= 2;
	}
	d->pairs = parts - d->power;
	if (t != NULL && parts == n->layout->nnodes) {
		ring = malloc(parts * sizeof(*ring));
		if (ring != NULL) {
			cn_ring_lr1(t, ring);
		}
		d->known = load_begin(&d->load, t, ring);
	}
}

/* The place of the node that is number `i` of the power. */
static uint32_t place(const struct doubling *d, uint32_t i)
{
	return i < d->pairs ? 2 * i + 1 : i + d->pairs;
}

/*
 * A round of messages of so many bytes: what the busiest link carries, and the longest way that a
 * message has besides. The window does not count: what comes is the clock of what goes.
 */
static double exchange(struct doubling *d, uint32_t bit, double bytes)
{
	const struct cn_tree *t = d->n->layout->tree;
	struct load *x = &d->load;
	struct cn_cost c = *d->n->cost;
	double way = 0, busiest = 0;

	if (!d->known) {
		return wire(d->n, bytes);
	}
	c.pace = 0;
	memset(x->messages, 0, 2 * (size_t)t->n * sizeof(*x->messages));
	for (uint32_t i = 0; i < d->power; i++) {
		const uint32_t a = place(d, i), b = place(d, i ^ bit);
		const uint32_t links = add_message(x, a, b);
		double slowest = 0;

		for (uint32_t k = 0; k < links; k++) {
			const uint32_t link = x->path[k], channels = cn_tree_channels(t, link);
			const uint32_t turns = (x->messages[link] + channels - 1) / channels;
			const double one = cn_cost_wire(&c, (uint64_t)bytes, rate_of(t, link));

			slowest = longer(slowest, one);
			busiest = longer(busiest, turns * one);
		}
		way = longer(way,
			     cn_cost_message(&c, t, x->nodes[a], x->nodes[b], (uint64_t)bytes) -
				     slowest);
	}
	return busiest + way;
}

/* What the rounds of an allreduce take longer because their messages grow. */
static double growth(const struct cn_network *n)
{
	const double bytes = (double)n->plan->bytes;
	struct doubling d;
	double seconds = 0;

	doubling_begin(&d, n);
	for (uint32_t bit = 1; bit < d.power; bit *= 2) {
		/* The members that begin with a pair's blocks have twice as many. */
		const uint32_t nodes = bit + (bit < d.pairs ? bit : d.pairs);

		seconds += exchange(&d, bit, nodes * bytes * n->local) - exchange(&d, bit, bytes);
	}
	load_end(&d.load);
	return seconds;
}

void cn_predict_reduction_allgather(const struct cn_network *n, struct cn_prediction *out)
{
	const uint64_t all = n->layout->nranks * n->plan->bytes;
	double steps;

	if (!cn_reduction_gathers(n->layout->nranks, n->plan->bytes)) {
		snprintf(out->why, sizeof(out->why), "for blocks of up to %u bytes together",
			 CN_REDUCTION_SMALL);
		return;
	}
	if (n->window != COLLNET_WINDOW_OFF && all / n->cost->payload >= n->window) {
		snprintf(out->why, sizeof(out->why),
			 "for blocks that are together less than the window of %u frames",
			 n->window);
		return;
	}
	out->seconds = all_rounds(n, 1, &steps) + growth(n);
	snprintf(out->why, sizeof(out->why), "%.0f rounds, combined once", steps);
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
