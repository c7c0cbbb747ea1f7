/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Predicted times of rounds in which messages grow or shrink: an allgather by doubling
 * (allgather/doubling.h), an allreduce that gathers all blocks so and combines them once, and an
 * allreduce by halving and doubling.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sched/allgather/doubling.h"
#include "sched/allgather/ring.h"
#include "sched/allreduce/power.h"
#include "sched/load.h"
#include "sched/predict.h"
#include "sched/reduction.h"

struct rounds {
	const struct cn_network *n;
	uint32_t *ranks;	      /* [nranks] of a message */
	struct cn_doubling *messages; /* [nnodes] of a round */
	struct cn_load load;	      /* if the network is known */
	uint64_t before; /* frames of the round before, or as many as the window lets go */
	double seconds;
};

/* `by_number`: nodes are in the order of their numbers, else on the ring of a reduction. */
static bool begin(struct rounds *x, const struct cn_network *n, bool by_number)
{
	const struct cn_layout *l = n->layout;
	uint32_t *nodes;

	*x = (struct rounds){ .n = n,
			      .ranks = malloc(l->nranks * sizeof(*x->ranks)),
			      .messages = malloc(l->nnodes * sizeof(*x->messages)) };
	if (l->tree == NULL) {
		return cn_network_had(n, x->ranks != NULL && x->messages != NULL);
	}
	nodes = cn_load_by_number(l->nnodes);
	if (nodes != NULL && !by_number) {
		cn_ring_lr1(l->tree, nodes);
	}
	return cn_network_had(n, cn_load_begin(&x->load, l->tree, nodes) && x->ranks != NULL &&
					 x->messages != NULL);
}

static void end(struct rounds *x)
{
	free(x->ranks);
	free(x->messages);
	cn_load_end(&x->load);
}

/* A round: what the busiest link carries, and the longest way that a message has besides, there
 * and, of an acknowledgement, back. */
struct round {
	double busiest, way, back;
};

/*
 * Adds a message of a round: its time, of `pieces` fragments of `bytes` bytes, besides that on the
 * link.
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

/* Seconds of a round: of a first frame on its way, and in which the busiest link carries all. */
struct exchange {
	double way, link;
	double frame; /* of `link`, the first frame */
};

static double seconds_of(struct exchange e)
{
	return e.way + e.link;
}

/*
 * A round of so many messages, of so many pieces on the links. A node sends so many of these, of
 * whose frames a window lets only so many go per round trip; what the links carry passes meanwhile.
 */
static struct exchange exchange_of(struct rounds *x, uint32_t messages, uint32_t pieces,
				   uint32_t sent, uint64_t bytes)
{
	const struct cn_network *n = x->n;
	const struct cn_layout *l = n->layout;
	const uint64_t frames = sent * (1 + bytes / n->cost->payload);
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
	for (uint32_t i = 0; l->tree != NULL && i < messages; i++) {
		add_message(x, &c, &x->messages[i], pieces, bytes, &r);
	}
	return (struct exchange){ r.way, cn_longer(r.busiest, waiting(x, frames, one, &r)), one };
}

/* The same, where what a node sends is what a link to a node carries. */
static struct exchange exchange(struct rounds *x, uint32_t messages, uint32_t pieces,
				uint64_t bytes)
{
	return exchange_of(x, messages, pieces, pieces, bytes);
}

/* Fragments of a message of an allgather: one per run of consecutive ranks or, for blocks of any
 * size, per block, plus the digest. */
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

/*
 * All rounds. A second fragment of several frames counts half a start-up, as simulated; a single
 * frame overlaps the first. Where blocks are combined a message is one fragment, as its parts are
 * fragmented into frames together.
 */
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

		for (uint32_t part = 0; part < l->nnodes; part++) {
			x->messages[part] = cn_doubling_send(l->nnodes, k, part);
		}
		x->seconds += seconds_of(exchange(x, l->nnodes, pieces, bytes / pieces)) +
			      (pieces - 1) * more;
	}
}

/* True if messages contend: the ports cannot hold all frames. */
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

/* The messages of a round. */
static uint32_t between_members(struct rounds *x, const struct cn_power *w, uint32_t chunks,
				uint32_t bit)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->members; i++) {
		if (cn_power_sends(x->n->plan, chunks, i, bit)) {
			x->messages[n++] = (struct cn_doubling){ .from = cn_power_part(w, i),
								 .to = cn_power_part(w, i ^ bit) };
		}
	}
	return n;
}

/*
 * Seconds in which the other parts of pairs send all of the block in one message per chunk, and
 * members their share of it besides what they send while they halve: there, and the result back.
 */
static double with_others(struct rounds *x, const struct cn_power *w, uint32_t chunks)
{
	const uint64_t bytes = x->n->plan->bytes / chunks;
	const uint32_t taken = w->pairs < chunks ? w->pairs : chunks; /* chunks, by a member */
	const double members = seconds_of(exchange_of(x, between_members(x, w, chunks, 1),
						      chunks - 1 + taken, chunks - 1, bytes));

	for (uint32_t i = 0; i < w->pairs; i++) {
		x->messages[i] = (struct cn_doubling){ .from = cn_power_other(w, i),
						       .to = cn_power_part(w, i) };
	}
	return cn_longer(members, seconds_of(exchange(x, w->pairs, chunks, bytes)));
}

/* Rounds in which frames are passed on as they come. */
struct stream {
	double ways;  /* of a first frame through all */
	double links; /* the busiest ones of all rounds */
	struct exchange last;
};

static void add_round(struct stream *s, struct exchange e)
{
	s->ways += e.way + e.frame;
	s->links += e.link;
	s->last = e;
}

static double seconds_of_stream(const struct stream *s)
{
	return cn_longer(s->ways + s->last.link - s->last.frame, s->links + s->last.way);
}

/* The last messages of a reduce, one from each node with a chunk, through the root's port. */
static struct exchange to_root(struct rounds *x, const struct cn_power *w, uint32_t chunks,
			       uint64_t bytes)
{
	x->messages[0] = (struct cn_doubling){ .from = w->pairs + 1, .to = w->pairs };
	return exchange_of(x, 1, chunks - 1, 1, bytes);
}

/* As planned by allreduce/halving.c, in several chunks, which are passed on as they come in all
 * rounds, unless other parts contribute in between. */
static double predict_halving(struct rounds *x, const struct cn_power *w, uint32_t chunks)
{
	const bool all = x->n->plan->op == CN_OP_ALLREDUCE;
	struct stream stream = { 0 };
	struct exchange first = { 0 };
	uint64_t bytes = x->n->plan->bytes;
	uint32_t combinations = w->pairs > 0;
	double halve = 0;

	for (uint32_t bit = 1; bit < w->members; bit *= 2, combinations++) {
		const bool halves = bit < chunks;
		struct exchange e;

		bytes = halves ? (bytes + 1) / 2 : bytes;
		e = exchange(x, between_members(x, w, chunks, bit), 1, bytes);
		first = bit == 1 ? e : first;
		if (halves && w->pairs > 0) {
			halve += seconds_of(e);
			continue;
		}
		add_round(&stream, e);
		if (halves && all) {
			add_round(&stream, e); /* and back */
		}
	}
	if (w->pairs > 0) {
		halve = cn_longer(halve, with_others(x, w, chunks));
	} else if (all) {
		stream.last = first;
	}
	if (!all) {
		add_round(&stream, to_root(x, w, chunks, bytes));
	}
	return halve + seconds_of_stream(&stream) + combinations * x->n->cost->combine +
	       (all ? halve : 0);
}

/* Rounds that do not halve exchange the same blocks. With the same window, they take longer where
 * halving them saves time, however the two are predicted. */
#define LESS_THAN_ROUNDS 0.99

void cn_predict_reduction_halving(const struct cn_network *n, struct cn_prediction *out)
{
	const struct cn_power w = cn_power_of(n->layout->nnodes, CN_POWER_NO_ROOT);
	uint32_t chunks;
	struct rounds x;

	if (n->plan->ordered || n->plan->bytes > CN_REDUCTION_SMALL) {
		snprintf(out->why, sizeof(out->why),
			 "for commutative operations, and blocks of up to %u bytes",
			 CN_REDUCTION_SMALL);
		return;
	}
	chunks = cn_power_chunks(n->layout, n->plan, w.members);
	if (chunks == 1) {
		snprintf(out->why, sizeof(out->why), "halving saves no time");
		return;
	}
	if (!begin(&x, n, false)) {
		snprintf(out->why, sizeof(out->why), "no memory");
	} else {
		const double seconds = predict_halving(&x, &w, chunks),
			     rounds = LESS_THAN_ROUNDS * cn_rounds_seconds(n);

		out->seconds = seconds < rounds ? seconds : rounds;
		snprintf(out->why, sizeof(out->why), "%u rounds, in %u chunks",
			 cn_log2_up(n->layout->nnodes), chunks);
	}
	end(&x);
}
