/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle of goodput. Operations that must succeed take at most
 *
 *     4 B + S + W + L + O
 *
 * B: the time of the busiest directed link (each frame once, at its rate, by the tree's paths) or
 *    of the busiest processor, summed over the operations; 4 because baselines and phases do not
 *    keep all links busy;
 * S: steps: for every operation a round trip for each rank and eight more, a round trip being a
 *    full frame and its acknowledgement over the longest path, with processors and the longest
 *    scheduling delay;
 * W: windows: a round trip for every window of the frames that the busiest host sends, or receives,
 *    as those that send to one host may take turns; where the window is not the algorithm's own,
 *    also the longest time for which an acknowledgement may wait for data to go back (2 ack_delay),
 *    since nothing else may open it;
 * L: losses: for each frame that was lost, by faults or by full queues, a timeout at its floor
 *    (100 ms) and a round trip; for each delayed frame, the delay. Above LOSS_LIMIT a frame is lost
 *    several times in a row now and then, and its timer doubles: one grace period (dead_after);
 * O: outages: twice their length, since the timer doubles, and its cap (dead_after / 3).
 *
 * Plus think times, and 100 ms for the first round trips, before the RTT is known.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "sched/cost.h"

/* ---- windows -------------------------------------------------------------------------- */

/* How far away nodes count at most: half of the longest round trip. */
static const uint64_t furthest = 100 * CN_US;

/* Where nodes are so far away, from which follows what the slowest links have in cables. */
static uint32_t automatic_window(const struct scenario *s, const struct op_plan *p,
				 uint64_t latency)
{
	const struct cn_topo *t = s->topo;
	const struct cn_algorithm *g;
	uint32_t senders;

	if (p->algorithm == NULL) {
		return COLLNET_WINDOW_OFF; /* the engine selects it: not known here */
	}
	g = cn_algorithm_find(p->op, p->algorithm);
	if (g->window_rule == CN_WINDOW_NONE) {
		return COLLNET_WINDOW_OFF;
	}
	if (g->window_rule == CN_WINDOW_FAN_IN) {
		return s->config.topology_unaware
			       ? cn_topo_fan_in(NULL, NULL, t->nhosts, &senders)
			       : cn_topo_fan_in(t, t->hosts, t->nhosts, &senders);
	}
	if (s->config.engine.window != COLLNET_WINDOW_AUTO) {
		return s->config.engine.window;
	}
	if (s->config.topology_unaware) {
		return COLLNET_WINDOW_OFF;
	}
	return g->window_rule == CN_WINDOW_EXCHANGE
		       ? cn_topo_exchange_window(t, t->hosts, t->nhosts, latency,
						 s->config.engine.node.mtu)
		       : cn_topo_link_window(t, t->hosts, t->nhosts);
}

static uint32_t window_at(const struct scenario *s, const struct op_plan *p, uint64_t latency)
{
	uint32_t own = p->window != COLLNET_WINDOW_AUTO ? p->window
							: automatic_window(s, p, latency);
	uint32_t node = s->config.engine.window;

	return node != COLLNET_WINDOW_AUTO && node < own ? node : own;
}

uint32_t oracle_window(const struct scenario *s, const struct op_plan *p)
{
	return window_at(s, p, 0);
}

static uint32_t payload_of(const struct scenario *s)
{
	const struct cn_node_config *c = &s->config.engine.node;

	return c->mtu - cn_wire_header(c->authenticated) - cn_encapsulation_bytes(c->encapsulation);
}

uint32_t oracle_in_flight(const struct scenario *s, const struct op_plan *p)
{
	const uint32_t payload = payload_of(s);
	const uint32_t window = window_at(s, p, furthest);
	/* the blocks of a pair of hosts are cut as one */
	const uint64_t frames = ((uint64_t)s->local * s->local * p->bytes + payload - 1) / payload;
	uint32_t at_once;

	if (!oracle_has_cables(s, p) || p->op != CN_OP_ALLTOALL || !p->contention_aware ||
	    cn_algorithm_find(p->op, p->algorithm)->window_rule != CN_WINDOW_EXCHANGE) {
		return window;
	}
	at_once = cn_topo_burst(s->topo, s->topo->hosts, s->topo->nhosts);
	if ((frames > 0 ? frames : 1) > at_once) {
		return window;
	}
	at_once *= s->topo->nhosts - 1;
	return at_once > window ? at_once : window;
}

bool oracle_has_cables(const struct scenario *s, const struct op_plan *p)
{
	if (p->window != COLLNET_WINDOW_AUTO || s->config.engine.window != COLLNET_WINDOW_AUTO ||
	    s->config.topology_unaware || p->algorithm == NULL) {
		return false;
	}
	return p->op == CN_OP_ALLTOALL ||
	       cn_algorithm_find(p->op, p->algorithm)->window_rule != CN_WINDOW_EXCHANGE;
}

uint32_t oracle_cable_frame(const struct scenario *s, const struct op_plan *p)
{
	const uint32_t mtu = s->config.engine.node.mtu;
	const uint64_t payload = payload_of(s), overhead = cn_cost_default.overhead;

	if (!oracle_has_cables(s, p)) {
		return 0;
	}
	return p->op == CN_OP_ALLTOALL && p->bytes < payload
		       ? (uint32_t)(mtu * (p->bytes + overhead) / (payload + overhead))
		       : mtu;
}

bool oracle_by_acks(const struct scenario *s, const struct op_plan *p)
{
	if (p->algorithm == NULL) {
		return false; /* not known here */
	}
	switch (cn_algorithm_find(p->op, p->algorithm)->window_rule) {
	case CN_WINDOW_EXCHANGE:
		/* an alltoallv has what comes as its clock where a node has few frames of it */
		return !cn_op_is_exchange(p->op) ||
		       (p->op == CN_OP_ALLTOALLV && p->window == COLLNET_WINDOW_AUTO &&
			s->config.engine.window == COLLNET_WINDOW_AUTO &&
			!s->config.topology_unaware &&
			cn_topo_few(s->topo, s->topo->hosts, s->topo->nhosts) == 0);
	case CN_WINDOW_NONE:
		return oracle_window(s, p) != COLLNET_WINDOW_OFF;
	default:
		return true;
	}
}

/* ---- goodput -------------------------------------------------------------------------- */

struct links {
	const struct scenario *s;
	double *load;  /* [2 nlinks] seconds */
	double *cpu;   /* [hosts] */
	double frames; /* of the busiest sender */
	double round_trip;
};

static double link_rate(const struct scenario *s, uint32_t link)
{
	const struct cn_topo_link *l = &s->topo->links[link];

	return (double)(l->rate != 0 ? l->rate : s->config.rate) * l->channels;
}

static uint32_t depth_of(const struct cn_topo *t, uint32_t v)
{
	uint32_t d = 0;

	for (; v != t->root; v = t->vertices[v].parent) {
		d++;
	}
	return d;
}

/* Goes over the path from a to b and adds to the links' load, if there is one; returns the time of
 * one frame of `bytes` alone on it. */
static double walk(struct links *k, uint32_t a, uint32_t b, double bytes, double add)
{
	const struct cn_topo *t = k->s->topo;
	uint32_t x = t->hosts[a], y = t->hosts[b], dx = depth_of(t, x), dy = depth_of(t, y);
	double takes = 0;

	while (x != y) {
		bool up = dx >= dy;
		uint32_t v = up ? x : y, link = t->vertices[v].parent_link;
		double wire = 8 / link_rate(k->s, link);
		/* end 0 sends from links[link].a */
		uint32_t end = (t->links[link].a == v) == up ? 0 : 1;

		if (k->load != NULL) {
			k->load[2 * link + end] += add * wire;
		}
		takes += bytes * wire + (double)(k->s->config.latency + k->s->config.delay) / 1e9;
		if (up) {
			x = t->vertices[x].parent;
			dx--;
		} else {
			y = t->vertices[y].parent;
			dy--;
		}
	}
	return takes;
}

static double busiest(struct fixture *fx, struct links *k, uint32_t number)
{
	const struct cn_sim_config *c = &fx->s->config;
	uint32_t n = fx->s->hosts;
	double most = 0;

	memset(k->load, 0, 2 * fx->s->topo->nlinks * sizeof(*k->load));
	memset(k->cpu, 0, n * sizeof(*k->cpu));
	k->frames = 0;
	for (uint32_t a = 0; a < n; a++) {
		double out = 0, in = 0;

		for (uint32_t b = 0; b < n; b++) {
			double frames = (double)wire_oracle_frames(fx->wire, number, a, b);

			in += (double)wire_oracle_frames(fx->wire, number, b, a);
			if (frames > 0) {
				walk(k, a, b, 0, (double)wire_oracle_load(fx->wire, number, a, b));
				out += frames;
				/* an acknowledgement a frame at most */
				k->cpu[a] += frames *
					     (double)(c->o_send + c->gap + c->o_recv + c->u_recv) /
					     1e9;
				k->cpu[b] += frames *
					     (double)(c->o_send + c->gap + c->o_recv + c->u_recv) /
					     1e9;
			}
		}
		k->frames = out > k->frames ? out : k->frames;
		k->frames = in > k->frames ? in : k->frames;
	}
	for (uint32_t i = 0; i < 2 * fx->s->topo->nlinks; i++) {
		most = k->load[i] > most ? k->load[i] : most;
	}
	for (uint32_t i = 0; i < n; i++) {
		most = k->cpu[i] > most ? k->cpu[i] : most;
	}
	return most;
}

double oracle_round_trip(struct fixture *fx)
{
	const struct cn_sim_config *c = &fx->s->config;
	struct links k = { .s = fx->s };
	double longest = 0;

	for (uint32_t a = 0; a < fx->s->hosts; a++) {
		for (uint32_t b = 0; b < fx->s->hosts; b++) {
			double there = walk(&k, a, b, c->engine.node.mtu + 38.0, 0);

			longest = there > longest ? there : longest;
		}
	}
	return 2 *
	       (longest + (double)(c->o_send + c->o_recv + c->u_recv + c->gap + c->jitter) / 1e9);
}

static double outages(const struct fixture *fx)
{
	double sum = 0;

	for (uint32_t i = 0; fx->s->profile == PROFILE_OUTAGE && i < fx->s->nfaults; i++) {
		const struct fault_plan *f = &fx->s->faults[i];

		sum += 2 * (double)(f->until - f->at) / 1e9 +
		       (double)fx->s->config.engine.node.dead_after / 3e9;
	}
	return sum;
}

/* Delay spikes: so many of the frames on all links since the beginning, one after the other. */
static double delays(const struct fixture *fx)
{
	const struct cn_sim_faults *f = &fx->s->faults[0].link_faults;
	double frames = 0;

	if (fx->s->profile != PROFILE_LOSS) {
		return 0;
	}
	for (uint32_t i = 0; i < 2 * fx->s->topo->nlinks; i++) {
		struct cn_sim_port port;

		cn_sim_port(fx->sim, i / 2, i % 2, &port);
		frames += (double)port.frames;
	}
	return (frames * f->spikes / 1e6 + 3) * (double)f->spike / 1e9 +
	       (frames * f->reorder / 1e6 + 3) * (double)f->late / 1e9;
}

/* The same frame lost several times in a row: its timer doubles. */
static double backoff(const struct fixture *fx)
{
	const struct scenario *s = fx->s;

	return s->nfaults > 0 && s->faults[0].link_faults.loss > LOSS_LIMIT
		       ? (double)s->config.engine.node.dead_after / 1e9
		       : 0;
}

static bool is_own_window(const struct scenario *s, const struct op_plan *p)
{
	return p->window == COLLNET_WINDOW_AUTO && s->config.engine.window == COLLNET_WINDOW_AUTO &&
	       s->config.engine.node.send_window >= 32;
}

void oracle_check_goodput(struct fixture *fx)
{
	const struct scenario *s = fx->s;
	struct links k = { .s = s };
	struct cn_sim_totals now;
	double b = 0, steps = 0, windows = 0, losses, limit,
	       took = (double)(fx->finish - fx->start) / 1e9;

	k.load = calloc(2 * s->topo->nlinks, sizeof(*k.load));
	k.cpu = calloc(s->hosts, sizeof(*k.cpu));
	if (k.load == NULL || k.cpu == NULL) {
		free(k.load);
		free(k.cpu);
		return;
	}
	k.round_trip = oracle_round_trip(fx);
	cn_sim_totals(fx->sim, &now);
	losses = (double)(now.lost + now.drops + now.ring_drops - fx->before.lost -
			  fx->before.drops - fx->before.ring_drops);
	for (uint32_t i = 0; i < fx->nops; i++) {
		uint32_t window = oracle_window(s, &fx->ops[i]);

		window = window < s->config.engine.node.send_window
				 ? window
				 : s->config.engine.node.send_window;
		b += busiest(fx, &k, i);
		steps += (s->ranks + 8) * k.round_trip;
		windows += k.frames / window *
			   (k.round_trip +
			    (is_own_window(s, &fx->ops[i])
				     ? 0
				     : 2 * (double)s->config.engine.node.ack_delay / 1e9));
	}
	limit = 4 * b + steps + windows + losses * (0.1 + k.round_trip) + backoff(fx) + delays(fx) +
		outages(fx) + 0.1 + (double)s->think * fx->nops / 1e9;
	if (fx->verbose) {
		printf("  took %.3f ms; busiest %.3f, steps %.3f, windows %.3f, %.0f lost, round trip "
		       "%.3f, limit %.3f ms\n",
		       took * 1e3, b * 1e3, steps * 1e3, windows * 1e3, losses, k.round_trip * 1e3,
		       limit * 1e3);
	}
	if (took > limit) {
		fixture_report(fx, "goodput: %.3f ms where %.3f are enough", took * 1e3,
			       limit * 1e3);
	}
	free(k.load);
	free(k.cpu);
}
