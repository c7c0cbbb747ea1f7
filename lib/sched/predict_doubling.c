/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Predicted times of rounds of doubling (allgather/doubling.h), in which messages grow: an
 * allgather, and an allreduce that gathers all blocks and combines them once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sched/allgather/doubling.h"
#include "sched/allgather/ring.h"
#include "sched/load.h"
#include "sched/predict.h"
#include "sched/reduction.h"

static const double contended = 2; /* times as long */

struct rounds {
	const struct cn_network *n;
	uint32_t *ranks;     /* [nranks] of a message */
	struct cn_load load; /* if the network is known */
	double seconds;
};

/* `by_number`: nodes are in the order of their numbers, else on the ring of a reduction. */
static bool begin(struct rounds *x, const struct cn_network *n, bool by_number)
{
	const struct cn_layout *l = n->layout;
	uint32_t *nodes;

	*x = (struct rounds){ .n = n, .ranks = malloc(l->nranks * sizeof(*x->ranks)) };
	if (l->tree == NULL) {
		return x->ranks != NULL;
	}
	nodes = cn_load_by_number(l->nnodes);
	if (nodes != NULL && !by_number) {
		cn_ring_lr1(l->tree, nodes);
	}
	return cn_load_begin(&x->load, l->tree, nodes) && x->ranks != NULL;
}

static void end(struct rounds *x)
{
	free(x->ranks);
	cn_load_end(&x->load);
}

/*
 * Messages of a round, of so many pieces of so many bytes: what the busiest link carries, and the
 * longest way that a message has besides. The window does not count: what comes is the clock of
 * what goes.
 */
static double exchange(struct rounds *x, uint32_t round, uint32_t pieces, uint64_t bytes)
{
	const struct cn_layout *l = x->n->layout;
	const struct cn_tree *t = l->tree;
	struct cn_cost c = *x->n->cost;
	double way = 0, busiest = 0;

	c.pace = 0;
	if (t == NULL) {
		return x->n->latency + pieces * cn_cost_wire(&c, bytes, x->n->slowest) -
		       cn_cost_wire(&c, cn_cost_frame(&c, x->n->plan->bytes), x->n->slowest);
	}
	cn_load_clear(&x->load);
	for (uint32_t part = 0; part < l->nnodes; part++) {
		const struct cn_doubling m = cn_doubling_send(l->nnodes, round, part);
		const uint32_t links = cn_load_add(&x->load, m.from, m.to);
		double slowest = 0;

		for (uint32_t k = 0; k < links; k++) {
			const uint32_t link = x->load.path[k];
			const double one = cn_cost_wire(&c, bytes, cn_load_rate(&x->load, link));

			slowest = cn_longer(slowest, one);
			busiest = cn_longer(busiest, cn_load_turns(&x->load, link) * pieces * one);
		}
		way = cn_longer(way, cn_cost_message(&c, t, x->load.nodes[m.from],
						     x->load.nodes[m.to], bytes) -
					     slowest);
	}
	return busiest + way;
}

/* Pieces of a message of an allgather: ranks that follow one another, or, of blocks of any size,
 * each, and the digest. */
static uint32_t pieces_of(struct rounds *x, const struct cn_doubling *m)
{
	const uint32_t n = cn_doubling_ranks(x->n->layout, m, x->ranks);
	uint32_t pieces = 0;

	if (cn_op_is_vector(x->n->plan->op)) {
		return n + (n > 1);
	}
	for (uint32_t at = 0; at < n; at += cn_doubling_run(x->ranks, n, at)) {
		pieces++;
	}
	return pieces;
}

/* What a window makes the frames of a round wait. */
static double waiting(const struct cn_network *n, uint64_t frames)
{
	const double round_trip = n->latency + n->cost->startup;

	return n->window == COLLNET_WINDOW_OFF || frames <= n->window
		       ? 0
		       : (double)((frames - 1) / n->window) * round_trip;
}

/* All rounds. A node's range of parts may go beyond the end, and be two: about half of them do, so
 * a second piece counts half a start-up. */
static void predict(struct rounds *x, bool gathers)
{
	const struct cn_layout *l = x->n->layout;
	const uint32_t rounds = cn_log2_up(l->nnodes);

	for (uint32_t k = 0; k < rounds; k++) {
		const struct cn_doubling m = cn_doubling_send(l->nnodes, k, l->nnodes - 1);
		const uint64_t bytes = m.count * x->n->local * x->n->plan->bytes;
		const uint32_t pieces = gathers ? pieces_of(x, &m)
						: 1 + (m.first + m.count > l->nnodes);
		const uint64_t piece = bytes / pieces,
			       frames = pieces * (1 + piece / x->n->cost->payload);

		x->seconds += exchange(x, k, pieces, piece) +
			      (pieces - 1) * x->n->cost->startup / 2 + waiting(x->n, frames);
	}
}

/* Messages may contend, and do where the ports have no room for all frames. */
static bool contends(const struct cn_network *n)
{
	return n->window != COLLNET_WINDOW_OFF &&
	       n->layout->nranks * n->plan->bytes / n->cost->payload >= n->window;
}

void cn_predict_doubling(const struct cn_network *n, struct cn_prediction *out)
{
	struct rounds x;

	if (!begin(&x, n, true)) {
		snprintf(out->why, sizeof(out->why), "no memory");
	} else {
		predict(&x, true);
		out->seconds = (contends(n) ? contended : 1) * x.seconds;
		snprintf(out->why, sizeof(out->why), "%u rounds%s", cn_log2_up(n->layout->nnodes),
			 contends(n) ? ", whose messages contend" : "");
	}
	end(&x);
}

void cn_predict_reduction_allgather(const struct cn_network *n, struct cn_prediction *out)
{
	struct rounds x;

	if (!cn_reduction_gathers(n->layout->nranks, n->plan->bytes)) {
		snprintf(out->why, sizeof(out->why), "for blocks of up to %u bytes together",
			 CN_REDUCTION_SMALL);
		return;
	}
	if (contends(n)) {
		snprintf(out->why, sizeof(out->why),
			 "for blocks that are together less than the window of %u frames",
			 n->window);
		return;
	}
	if (!begin(&x, n, false)) {
		snprintf(out->why, sizeof(out->why), "no memory");
	} else {
		predict(&x, false);
		out->seconds = x.seconds + n->cost->combine;
		snprintf(out->why, sizeof(out->why), "%u rounds, combined once",
			 cn_log2_up(n->layout->nnodes));
	}
	end(&x);
}
