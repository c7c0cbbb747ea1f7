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

struct rounds {
	const struct cn_network *n;
	uint32_t *ranks;     /* [nranks] of a message */
	struct cn_load load; /* if the network is known */
	uint64_t before;     /* frames of the round before, or as many as the window lets go */
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

/* A round: what the busiest link carries, and the longest way that a message has besides, there
 * and, of an acknowledgement, back. */
struct round {
	double busiest, way, back;
};

/*
 * A message of a round, of so many pieces of so many bytes, besides what they take on the link.
 */
static void add_message(struct rounds *x, const struct cn_cost *c, const struct cn_doubling *m,
			uint32_t pieces, uint64_t bytes, struct round *r)
{
	const struct cn_load *load = &x->load;
	const uint32_t links = cn_load_add(&x->load, m->from, m->to);
	double slowest = 0;

	for (uint32_t k = 0; k < links; k++) {
		const uint32_t link = load->path[k];
		const double one = cn_cost_wire(c, bytes, cn_load_rate(load, link));

		slowest = cn_longer(slowest, one);
		r->busiest = cn_longer(r->busiest, cn_load_turns(load, link) * pieces * one);
	}
	r->way = cn_longer(r->way, cn_cost_message(c, load->t, load->nodes[m->from],
						   load->nodes[m->to], bytes) -
					   slowest);
	r->back = cn_longer(r->back, (links - 1) * c->hop);
}

/*
 * Seconds that a window makes so many frames wait, one of which takes `one`, with those that the
 * last one takes. The window lets a window of frames go per round trip, its second half while the
 * first is acknowledged. The last frames of the round before are acknowledged in this one.
 */
static double waiting(struct rounds *x, uint64_t frames, double one, const struct round *r)
{
	const uint64_t window = x->n->window, last = (frames - 1) % window,
		       turns = (frames - 1) / window;
	const double turn = r->way + r->back + (1 + (double)window / 2) * one;
	const bool behind = last + x->before >= window;

	if (window == COLLNET_WINDOW_OFF) {
		return 0;
	}
	x->before = frames < window ? frames : window;
	return (double)turns * turn + (behind ? r->back : 0) + (double)(1 + last) * one;
}

/*
 * Seconds of a round. A node sends so many frames, of which a window lets only so many go per round
 * trip; what the links carry passes meanwhile.
 */
static double exchange(struct rounds *x, uint32_t round, uint32_t pieces, uint64_t bytes)
{
	const struct cn_network *n = x->n;
	const struct cn_layout *l = n->layout;
	const uint64_t frames = pieces * (1 + bytes / n->cost->payload);
	struct cn_cost c = *n->cost;
	struct round r = { 0 };
	double one;

	c.pace = 0; /* what comes is the clock of what goes */
	one = cn_cost_wire(&c, cn_cost_frame(&c, bytes), n->slowest);
	if (l->tree == NULL) {
		r.busiest = pieces * cn_cost_wire(&c, bytes, n->slowest);
		r.way = n->latency -
			cn_cost_wire(&c, cn_cost_frame(&c, n->plan->bytes), n->slowest);
		r.back = c.hop;
	} else {
		cn_load_clear(&x->load);
	}
	for (uint32_t part = 0; l->tree != NULL && part < l->nnodes; part++) {
		const struct cn_doubling m = cn_doubling_send(l->nnodes, round, part);

		add_message(x, &c, &m, pieces, bytes, &r);
	}
	return r.way + cn_longer(r.busiest, waiting(x, frames, one, &r));
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

/* All rounds. A second piece of several frames counts half a start-up, as simulated; one of one
 * frame passes while the first is on its way. Where blocks are combined a message is one piece, as
 * its parts are cut into frames as one. */
static void predict(struct rounds *x, bool gathers)
{
	const struct cn_layout *l = x->n->layout;
	const uint32_t rounds = cn_log2_up(l->nnodes);

	for (uint32_t k = 0; k < rounds; k++) {
		const struct cn_doubling m = cn_doubling_send(l->nnodes, k, l->nnodes - 1);
		const uint64_t bytes = m.count * x->n->local * x->n->plan->bytes;
		const uint32_t pieces = gathers ? pieces_of(x, &m) : 1;
		const struct cn_cost *c = x->n->cost;
		const double more = bytes > c->payload ? c->startup / 2 : c->message;

		x->seconds += exchange(x, k, pieces, bytes / pieces) + (pieces - 1) * more;
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
		out->seconds = x.seconds;
		snprintf(out->why, sizeof(out->why), "%u rounds", cn_log2_up(n->layout->nnodes));
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
