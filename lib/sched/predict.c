/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Predicted times of exchanges, rings and sequential algorithms: the time of the busiest link or
 * port, plus waiting times. Loss is not predicted: an algorithm that fills ports faster than they
 * drain is a baseline, chosen only by name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/bcast/bcast.h"
#include "sched/alltoall/fattree.h"
#include "sched/predict.h"
#include "sched/allgather/ring.h"
#include "sched/load.h"

/* Seconds on the slowest link of all that one node has for another. */
static double node_to_node(const struct cn_network *n)
{
	double blocks = cn_op_base(n->plan->op) == CN_OP_ALLTOALL ? (double)n->local * n->local
								  : n->local;

	return blocks * cn_cost_wire(n->cost, n->plan->bytes, n->slowest);
}

/* ---- all-to-all ----------------------------------------------------------------------- */

void cn_predict_shuffle(const struct cn_network *n, struct cn_prediction *out)
{
	const uint64_t frames = cn_cost_frames(n->cost, n->plan->bytes);
	const double sent = (double)n->local * (n->layout->nranks - n->local) * (double)frames,
		     windows = sent * n->cost->pace;

	out->seconds = (windows > n->exchange ? windows : n->exchange) + n->latency;
	if (windows > n->exchange) {
		snprintf(out->why, sizeof(out->why),
			 "the window of %u frames turns round %.0f times", n->window,
			 sent / n->window);
	} else {
		snprintf(out->why, sizeof(out->why), "the busiest link all the time");
	}
}

void cn_predict_pairwise(const struct cn_network *n, struct cn_prediction *out)
{
	uint32_t rounds = n->layout->nnodes - 1 + n->layout->nnodes % 2;

	out->seconds = n->exchange + rounds * n->latency;
	snprintf(out->why, sizeof(out->why),
		 "the busiest link, and %u rounds that wait for each other "
		 "(were links shared evenly)",
		 rounds);
}

void cn_predict_linear(const struct cn_network *n, struct cn_prediction *out)
{
	out->seconds = n->exchange + n->latency;
	snprintf(out->why, sizeof(out->why), "the busiest link, if no port overflowed");
}

/* The largest s (n - s) of nodes over all links: the phases of Faraj and Yuan. */
static double phases(const struct cn_layout *l)
{
	double most = 0;

	for (uint32_t x = 1; x < l->tree->n; x++) {
		double s = l->tree->v[x].hosts, m = s * (l->nnodes - s);

		most = m > most ? m : most;
	}
	return most;
}

void cn_predict_aapc(const struct cn_network *n, struct cn_prediction *out)
{
	double count = phases(n->layout);

	out->seconds = count * (node_to_node(n) + n->latency);
	snprintf(out->why, sizeof(out->why), "%.0f phases, and a synchronisation after each",
		 count);
}

void cn_predict_fattree(const struct cn_network *n, struct cn_prediction *out)
{
	struct cn_fattree *x;
	struct cn_err err = { 0 };

	if (cn_fattree_rooted(n->layout->tree, &x, &err) != COLLNET_OK) {
		cn_network_had(n, err.code != COLLNET_ENOMEM);
		snprintf(out->why, sizeof(out->why), "%.150s", err.text);
		return;
	}
	out->seconds = x->phases * (node_to_node(n) + n->cost->startup) + n->latency;
	snprintf(out->why, sizeof(out->why), "%u phases, were they kept apart by themselves",
		 x->phases);
	cn_fattree_free(x);
}

/* ---- allgather ------------------------------------------------------------------------ */

struct cn_ways cn_ways(const struct cn_network *n, const uint32_t *nodes, uint32_t count, bool ring,
		       uint64_t frame)
{
	const struct cn_tree *t = n->layout->tree;
	const uint32_t paths = ring ? count : count - 1;
	struct cn_ways w = { .sharing = 1, .load = 1 };
	struct cn_load x = { 0 };
	double one = n->cost->startup + n->cost->hop + 2 * cn_cost_wire(n->cost, frame, n->slowest);
	const bool known = t != NULL &&
			   cn_network_had(n, cn_load_begin(&x, t,
							   cn_load_by_number(n->layout->nnodes)));

	for (uint32_t i = 0; i < paths && count > 1; i++) {
		const uint32_t next = (i + 1) % count,
			       from = nodes != NULL ? nodes[i] : i % n->layout->nnodes,
			       to = nodes != NULL ? nodes[next] : next % n->layout->nnodes;
		const uint32_t links = known ? cn_load_add(&x, from, to) : 0;

		for (uint32_t k = 0; k < links; k++) {
			const uint32_t sharing = cn_load_turns(&x, x.path[k]);
			const uint64_t rate = cn_load_rate(&x, x.path[k]);

			w.sharing = sharing > w.sharing ? sharing : w.sharing;
			w.load = cn_longer(w.load,
					   sharing * (double)n->slowest /
						   (rate > 0 ? (double)rate : n->cost->rate));
		}
		one = known ? cn_cost_message(n->cost, t, from, to, frame) : one;
		w.sum += one;
		w.shortest = i == 0 || one < w.shortest ? one : w.shortest;
		w.longest = cn_longer(w.longest, one);
	}
	cn_load_end(&x);
	return w;
}

/*
 * Blocks are passed on as they come: a link carries one block in every step, and a block passes all
 * paths of the ring but one, each as long as its first frame takes to be stored and forwarded. The
 * step of Faraj, Patarasuk and Yuan, section 3.2, is the sum of both.
 */
static void predict_ring(const struct cn_network *n, const uint32_t *ring,
			 struct cn_prediction *out)
{
	const struct cn_layout *l = n->layout;
	const uint32_t steps = l->nnodes - 1,
		       hops = l->tree != NULL ? cn_ring_longest(l->tree, ring, NULL) : 1;
	const uint64_t bytes = n->plan->bytes, frame = cn_cost_frame(n->cost, bytes),
		       sent = (uint64_t)steps * n->local * cn_cost_frames(n->cost, bytes);
	const double block = node_to_node(n), first = cn_cost_wire(n->cost, frame, n->slowest);
	const struct cn_ways w = cn_ways(n, ring, l->nnodes, true, frame);
	const double links = steps * w.load * block + w.shortest - first,
		     lap = w.sum - w.shortest + block - first;

	out->seconds = steps == 0 ? 0 : cn_longer(links, lap);
	if (steps > 0) {
		out->seconds += cn_cost_waits(n->cost, sent, out->seconds / sent, w.longest);
	}
	if (w.sharing > 1) {
		snprintf(out->why, sizeof(out->why),
			 "%u steps, paths of up to %u switches, a link "
			 "shared by %u",
			 steps, hops, w.sharing);
	} else {
		snprintf(out->why, sizeof(out->why), "%u steps, paths of up to %u switches", steps,
			 hops);
	}
}

void cn_predict_ring(const struct cn_network *n, struct cn_prediction *out)
{
	predict_ring(n, NULL, out);
}

static void predict_tree_ring(const struct cn_network *n, struct cn_prediction *out,
			      int (*make)(const struct cn_tree *t, uint32_t *ring,
					  struct cn_err *err))
{
	const struct cn_layout *l = n->layout;
	uint32_t *ring = malloc(l->nnodes * sizeof(*ring));
	struct cn_err err = { 0 };

	if (!cn_network_had(n, ring != NULL)) {
		snprintf(out->why, sizeof(out->why), "no memory");
	} else if (make(l->tree, ring, &err) == COLLNET_OK) {
		predict_ring(n, ring, out);
	} else {
		cn_network_had(n, err.code != COLLNET_ENOMEM);
		snprintf(out->why, sizeof(out->why), "%.150s", err.text);
	}
	free(ring);
}

static int make_lr1(const struct cn_tree *t, uint32_t *ring, struct cn_err *err)
{
	(void)err;
	cn_ring_lr1(t, ring);
	return COLLNET_OK;
}

void cn_predict_lr1(const struct cn_network *n, struct cn_prediction *out)
{
	predict_tree_ring(n, out, make_lr1);
}

void cn_predict_lr2(const struct cn_network *n, struct cn_prediction *out)
{
	predict_tree_ring(n, out, cn_ring_lr2);
}

void cn_predict_lr3(const struct cn_network *n, struct cn_prediction *out)
{
	predict_tree_ring(n, out, cn_ring_lr3);
}

/* ---- broadcast ------------------------------------------------------------------------ */

/*
 * One switch, when the network is not known: every message takes the same time. Only the binomial
 * tree runs without a tree of the network.
 */
static void predict_unknown_network(const struct cn_network *n, struct cn_prediction *out)
{
	double whole = cn_cost_wire(n->cost, n->plan->bytes, n->slowest) + n->latency;

	out->seconds = cn_log2_up(n->layout->nnodes) * whole;
	snprintf(out->why, sizeof(out->why), "were all nodes on one switch");
}

void cn_predict_bcast(const struct cn_network *n, struct cn_prediction *out)
{
	struct cn_plan p = *n->plan;
	struct cn_err err = { 0 };
	struct cn_bcast b;

	if (n->layout->tree == NULL) {
		predict_unknown_network(n, out);
		return;
	}
	p.algorithm = out->algorithm->id;
	if (cn_bcast_predict(n->layout, &p, n->cost, &b, &err) != COLLNET_OK) {
		cn_network_had(n, err.code != COLLNET_ENOMEM);
		snprintf(out->why, sizeof(out->why), "%.150s", err.text);
		return;
	}
	out->seconds = (double)b.time * 1e-9;
	if (b.segments > 1) {
		snprintf(out->why, sizeof(out->why), "%u segments of %llu bytes", b.segments,
			 (unsigned long long)b.segment);
	} else {
		snprintf(out->why, sizeof(out->why), "whole messages");
	}
	cn_bcast_done(&b);
}

/* ---- the others ----------------------------------------------------------------------- */

/* Seconds that a link takes for what so many nodes have for the root's, or it for them. */
static double blocks_on(const struct cn_network *n, uint32_t nodes, uint64_t rate)
{
	return (double)nodes * n->local * cn_cost_wire(n->cost, n->plan->bytes, rate);
}

/* Seconds of the busiest link in a scatter or gather; *root: those of the root's link. */
static double rooted_time(const struct cn_network *n, double *root)
{
	const struct cn_tree *t = n->layout->tree;
	const uint32_t others = n->layout->nnodes - 1;
	double most;

	if (t == NULL) {
		return *root = others * node_to_node(n);
	}
	const uint32_t at = t->host[n->layout->node_of[n->plan->root]];

	most = *root = blocks_on(n, others, cn_tree_rate(t, at));
	for (uint32_t x = 1; x < t->n; x++) {
		const uint32_t far = cn_tree_below(t, at, x) ? others + 1 - t->v[x].hosts
							     : t->v[x].hosts,
			       channels = t->topo->links[t->v[x].link].channels;

		most = cn_longer(most, blocks_on(n, far, cn_tree_rate(t, x)) / channels);
	}
	return most;
}

/*
 * What the nodes' blocks take one after the other, each at the slowest link of its path; but the
 * root does not wait for this share of a block, which its own link brings at once to a port.
 */
static double in_turn(const struct cn_network *n, double at_once)
{
	const struct cn_layout *l = n->layout;
	const uint32_t root = l->node_of[n->plan->root];
	const double own = blocks_on(n, 1, cn_tree_rate(l->tree, l->tree->host[root]));
	double sum = 0, wire;

	for (uint32_t k = 0; k < l->nnodes; k++) {
		cn_cost_message_and_wire(n->cost, l->tree, root, k, n->plan->bytes, &wire);
		wire *= n->local;
		sum += k == root ? 0 : wire - at_once * (wire - own);
	}
	return sum;
}

static void explain_rooted(struct cn_prediction *out, double busiest, double root)
{
	snprintf(out->why, sizeof(out->why), "the %s link all the time",
		 busiest > root ? "busiest" : "root's");
}

void cn_predict_windowed(const struct cn_network *n, struct cn_prediction *out)
{
	double root, busiest = rooted_time(n, &root);

	out->seconds = busiest + n->latency;
	explain_rooted(out, busiest, root);
}

void cn_predict_furthest(const struct cn_network *n, struct cn_prediction *out)
{
	const double frames = (double)n->local * (double)cn_cost_frames(n->cost, n->plan->bytes);
	double root, busiest = rooted_time(n, &root), turns = busiest;

	if (n->layout->tree != NULL) {
		turns = in_turn(n, n->link_window < frames ? n->link_window / frames : 1);
	}
	out->seconds = cn_longer(turns, busiest) + n->latency;
	explain_rooted(out, busiest, root);
	if (turns > 1.001 * busiest) {
		snprintf(out->why, sizeof(out->why),
			 "one node after the other, at its path's rate");
	}
}

void cn_predict_nearest(const struct cn_network *n, struct cn_prediction *out)
{
	const uint32_t turns = n->layout->nnodes - 1;
	double root, busiest = rooted_time(n, &root);

	if (n->layout->tree != NULL) {
		busiest = cn_longer(busiest, in_turn(n, 0));
	}
	out->seconds = busiest + n->latency + turns * n->latency;
	snprintf(out->why, sizeof(out->why), "one node after the other, and %u turns passed on",
		 turns);
}
