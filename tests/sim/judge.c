/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judgements on a run: what errors say, what is left behind, and how long it took.
 *
 * Goodput. The operations of a calm scenario take at most
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
 *    (100 ms) and a round trip; for as many frames as spikes of delay meet, their length;
 * O: outages: twice their length, since the timer doubles, and its cap (dead_after / 3).
 *
 * Plus think times, and 100 ms for the first round trips, whose timer does not know the way.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/engine_state.h"
#include "proto/node_impl.h"

/* ---- windows -------------------------------------------------------------------------- */

static uint32_t automatic_window(const struct scenario *s, const struct op_plan *p)
{
	const struct cn_topo *t = s->topo;
	const struct cn_algorithm *g;

	if (p->algorithm == NULL) {
		return COLLNET_WINDOW_OFF; /* the engine's choice: not known here */
	}
	g = cn_algorithm_find(p->op, p->algorithm);
	if (g->window == CN_WINDOW_NONE) {
		return COLLNET_WINDOW_OFF;
	}
	if (s->config.engine.window != COLLNET_WINDOW_AUTO) {
		return s->config.engine.window;
	}
	if (s->config.topology_unaware) {
		return COLLNET_WINDOW_OFF;
	}
	return g->window == CN_WINDOW_EXCHANGE ? cn_topo_window(t, t->hosts, t->nhosts, 2, NULL)
					       : cn_topo_link_window(t, t->hosts, t->nhosts);
}

uint32_t judge_window(const struct scenario *s, const struct op_plan *p)
{
	uint32_t own = p->window != COLLNET_WINDOW_AUTO ? p->window : automatic_window(s, p);
	uint32_t node = s->config.engine.window;

	return node != COLLNET_WINDOW_AUTO && node < own ? node : own;
}

bool judge_by_acks(const struct op_plan *p)
{
	return p->algorithm != NULL &&
	       cn_algorithm_find(p->op, p->algorithm)->window == CN_WINDOW_LINK;
}

/* ---- errors --------------------------------------------------------------------------- */

static uint32_t host_named(const struct world *w, const char *text, const char *after)
{
	const struct cn_topo *t = w->s->topo;
	const char *at = strstr(text, after);
	size_t n;

	if (at == NULL) {
		return UINT32_MAX;
	}
	at += strlen(after);
	n = strcspn(at, " ,:;)");
	for (uint32_t i = 0; i < t->nhosts; i++) {
		const char *name = t->vertices[t->hosts[i]].name;

		if (strlen(name) == n && memcmp(name, at, n) == 0) {
			return i;
		}
	}
	return UINT32_MAX;
}

/* Whether host is on the far side of the link, seen from the root. */
static bool beyond(const struct cn_topo *t, uint32_t host, uint32_t link)
{
	for (uint32_t v = t->hosts[host]; v != t->root; v = t->vertices[v].parent) {
		if (t->vertices[v].parent_link == link) {
			return true;
		}
	}
	return false;
}

static bool separated(const struct cn_topo *t, uint32_t a, uint32_t b, uint32_t link)
{
	return link == CN_TOPO_NONE || beyond(t, a, link) != beyond(t, b, link);
}

/* Something that went wrong explains that `named` did not answer `by`. */
static bool silence_is_true(const struct world *w, uint32_t named, uint32_t by)
{
	for (uint32_t i = 0; i < w->s->nfaults; i++) {
		const struct fault_plan *f = &w->s->faults[i];

		switch (f->kind) {
		case FAULT_WEATHER:
		case FAULT_CUT:
			if (separated(w->s->topo, named, by, f->link)) {
				return true;
			}
			break;
		case FAULT_PAUSE:
		case FAULT_CRASH:
			if (named == f->host || by == f->host) {
				return true;
			}
			break;
		default:
			break;
		}
	}
	return false;
}

static bool has_fault(const struct world *w, enum fault_kind kind, uint32_t host, uint32_t rank)
{
	for (uint32_t i = 0; i < w->s->nfaults; i++) {
		const struct fault_plan *f = &w->s->faults[i];

		if (f->kind == kind && (host == UINT32_MAX || f->host == host) &&
		    (rank == UINT32_MAX || f->rank == rank)) {
			return true;
		}
	}
	return false;
}

/* "node h5 is cut off": every other host is separated from it. */
static bool cut_off_is_true(const struct world *w, uint32_t named)
{
	for (uint32_t h = 0; h < w->s->hosts; h++) {
		if (h != named && !silence_is_true(w, named, h)) {
			return false;
		}
	}
	return named != UINT32_MAX;
}

static void judge_peer(struct world *w, const struct call *c)
{
	uint32_t named = host_named(w, c->text, "node "),
		 by = host_named(w, c->text, "answering node ");

	if (strstr(c->text, "is cut off") != NULL) {
		if (!cut_off_is_true(w, named)) {
			world_blame(w, "rank %u, operation %u: it was not cut off: %s", c->rank,
				    c->number, c->text);
		}
		return;
	}
	if (strstr(c->text, " peers stopped answering: ") != NULL) {
		by = host_named(w, c->text, "seen by node ");
		named = UINT32_MAX; /* the first of the group */
		for (uint32_t h = 0; h < w->s->hosts && named == UINT32_MAX; h++) {
			const char *name = w->s->topo->vertices[w->s->topo->hosts[h]].name;
			const char *list = strstr(c->text, ": ");

			if (list != NULL && strncmp(list + 2, name, strlen(name)) == 0 &&
			    strchr(",- ", list[2 + strlen(name)]) != NULL) {
				named = h;
			}
		}
	}
	if (named == UINT32_MAX) {
		world_blame(w, "rank %u, operation %u: the error names no node: %s", c->rank,
			    c->number, c->text);
	} else if (strstr(c->text, "stopped answering") != NULL) {
		if (by == UINT32_MAX || !silence_is_true(w, named, by)) {
			world_blame(w, "rank %u, operation %u: nothing was wrong there: %s",
				    c->rank, c->number, c->text);
		}
	} else if (!has_fault(w, FAULT_CRASH, named, UINT32_MAX)) {
		by = host_named(w, c->text, "gave up node ");
		if (by == UINT32_MAX || !silence_is_true(w, named, by)) {
			world_blame(w, "rank %u, operation %u: it did not restart or end: %s",
				    c->rank, c->number, c->text);
		}
	}
}

/* A list like "3, 5-7": calls fn for each; false: it is no list. */
static void judge_listed(struct world *w, const struct call *c, const char *list, bool calls)
{
	char *at = (char *)(uintptr_t)list;

	while (*at >= '0' && *at <= '9') {
		unsigned long first = strtoul(at, &at, 10), last = first;

		if (*at == '-') {
			last = strtoul(at + 1, &at, 10);
		}
		for (unsigned long r = first; r <= last; r++) {
			bool true_for = r < w->s->ranks;

			if (true_for && calls) {
				true_for = !w->calls[c->number * w->s->ranks + r].posted;
			} else if (true_for && r < 128) {
				true_for = (c->missing[r / 64] >> r % 64 & 1) != 0;
			}
			if (!true_for) {
				world_blame(w, "rank %u, operation %u: rank %lu is not missing: %s",
					    c->rank, c->number, r, c->text);
				return;
			}
		}
		at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
	}
}

/* What it receives is data for itself: no synchronisations, nothing to pass on. */
static bool has_data_only(const struct op_plan *p)
{
	return p->op == CN_OP_ALLTOALL && p->algorithm != NULL &&
	       (strcmp(p->algorithm, "shuffle") == 0 || strcmp(p->algorithm, "pairwise") == 0 ||
		strcmp(p->algorithm, "linear") == 0);
}

static void judge_timeout(struct world *w, const struct call *c)
{
	const struct op_plan *p = &w->ops[c->number];
	uint32_t by = host_named(w, c->text, "on node ");
	const char *data = strstr(c->text, "for data of ranks "),
		   *call = strstr(c->text, "call of ranks ");
	char own[40];

	snprintf(own, sizeof(own), "%s number %u ", cn_op_name(p->op), c->number);

	if (c->ended < w->start + w->s->deadline) {
		world_blame(w, "rank %u, operation %u: too early: %s", c->rank, c->number, c->text);
	}
	if (by != w->ranks[c->rank].host || strncmp(c->text, own, strlen(own)) != 0) {
		return; /* another one found it, or in another operation */
	}
	if (call != NULL) {
		judge_listed(w, c, call + strlen("call of ranks "), true);
	} else if (data != NULL && w->s->local == 1 && p->bytes > 0 && has_data_only(p)) {
		judge_listed(w, c, data + strlen("for data of ranks "), false);
	}
}

static void judge_rank(struct world *w, const struct call *c)
{
	const char *at = strstr(c->text, "rank ");
	uint32_t rank = at != NULL ? (uint32_t)strtoul(at + 5, NULL, 10) : UINT32_MAX;

	if (rank == UINT32_MAX || (!has_fault(w, FAULT_DIE, UINT32_MAX, rank) &&
				   !has_fault(w, FAULT_LEAVE, UINT32_MAX, rank))) {
		world_blame(w, "rank %u, operation %u: that rank did not leave: %s", c->rank,
			    c->number, c->text);
	}
}

void judge_call(struct world *w, const struct call *c)
{
	if (c->status == COLLNET_OK) {
		return;
	}
	if (c->text[0] == '\0') {
		world_blame(w, "rank %u, operation %u: error %d without a word", c->rank, c->number,
			    c->status);
		return;
	}
	if (scenario_is_calm(w->s) || w->ops == w->s->after) {
		world_blame(w, "rank %u, operation %u failed: %s", c->rank, c->number, c->text);
		return;
	}
	switch (c->status) {
	case COLLNET_EPEER:
		judge_peer(w, c);
		break;
	case COLLNET_ETIMEOUT:
		judge_timeout(w, c);
		break;
	case COLLNET_ERANK:
		judge_rank(w, c);
		break;
	case COLLNET_EDAEMON:
		if (!w->crashed[w->ranks[c->rank].host]) {
			world_blame(w, "rank %u, operation %u: its daemon did not end: %s", c->rank,
				    c->number, c->text);
		}
		break;
	default:
		world_blame(w, "rank %u, operation %u: error %d: %s", c->rank, c->number, c->status,
			    c->text);
		break;
	}
}

/* ---- what is left --------------------------------------------------------------------- */

bool judge_is_quiet(const struct world *w)
{
	for (uint32_t h = 0; h < w->s->hosts; h++) {
		const struct cn_engine *e = cn_sim_engine(w->sim, h);

		for (uint32_t i = 0; e != NULL && i < e->node->npeers; i++) {
			const struct cn_peer *p = e->node->peers[i];

			if (p->tx.queue.una != p->tx.queue.end || p->control_first != NULL ||
			    e->pending.n > 0) {
				return false;
			}
		}
	}
	return true;
}

/* On a link that is nearly idle a burst of losses may last for so long that two nodes take each
 * other for gone, though nothing failed. */
static bool parted(const struct world *w, const struct cn_peer *p)
{
	bool bursts = false;

	for (uint32_t i = 0; i < w->s->nfaults; i++) {
		bursts |= w->s->faults[i].weather.burst > 0;
	}
	return bursts && (uint32_t)p->generation != 0;
}

static void judge_node(struct world *w, uint32_t host)
{
	struct cn_engine *e = cn_sim_engine(w->sim, host);
	struct cn_node *n = cn_engine_node(e);
	struct collnet_stats st = { .size = sizeof(st) };

	cn_engine_stats(e, &st, false);
	if (n->pool.free != n->pool.count) {
		world_blame(w, "host %u keeps %u of %u buffers when nothing is left to do", host,
			    n->pool.count - n->pool.free, n->pool.count);
	}
	if (st.window_now != 0) {
		world_blame(w, "host %u: eta is %u when nothing is left to do", host,
			    st.window_now);
	}
	if (st.jobs != 0) {
		world_blame(w, "host %u keeps %u teams that everybody left", host, st.jobs);
	}
	for (uint32_t i = 0; i < n->npeers; i++) {
		const struct cn_peer *p = n->peers[i];
		const struct cn_engine_peer *m = cn_engine_peer_of(n->peers[i]);

		if (p->live.expecting != 0 || p->tx.queue.una != p->tx.queue.end) {
			world_blame(w, "host %u waits for %s (%u), has %u frames for it", host,
				    p->name, p->live.expecting, p->tx.queue.end - p->tx.queue.una);
		}
		if (m != NULL && m->joins.n != 0 && !parted(w, p)) {
			world_blame(w, "host %u keeps %u teams of %s that everybody left", host,
				    m->joins.n, p->name);
		}
	}
}

/* Whether all that one sent the other must have come. */
static bool all_came(const struct world *w, const struct cn_peer *to, const struct cn_peer *from)
{
	return scenario_is_calm(w->s) && !parted(w, to) && !parted(w, from);
}

static const struct cn_peer *peer_of(struct world *w, uint32_t at, uint32_t of)
{
	const char *name = w->s->topo->vertices[w->s->topo->hosts[of]].name;

	return cn_node_find(cn_engine_node(cn_sim_engine(w->sim, at)), name);
}

void judge_rest(struct world *w)
{
	bool same = true; /* lives of the nodes: their counters are of one piece */

	for (uint32_t i = 0; i < w->s->nfaults; i++) {
		same &= w->s->faults[i].kind != FAULT_CRASH;
	}
	for (uint32_t a = 0; a < w->s->hosts; a++) {
		judge_node(w, a);
		for (uint32_t b = 0; b < w->s->hosts && same; b++) {
			const struct cn_peer *to = a != b ? peer_of(w, a, b) : NULL;
			const struct cn_peer *from = to != NULL ? peer_of(w, b, a) : NULL;

			if (from != NULL &&
			    (from->data_received > to->data_sent ||
			     (all_came(w, to, from) && from->data_received != to->data_sent))) {
				world_blame(w, "host %u sent host %u %llu frames, which took %llu",
					    a, b, (unsigned long long)to->data_sent,
					    (unsigned long long)from->data_received);
			}
		}
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

/* Goes over the path from a to b; returns the time of one frame of `bytes` alone on it. */
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

		k->load[2 * link + end] += add * wire;
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

static double busiest(struct world *w, struct links *k, uint32_t number)
{
	const struct cn_sim_config *c = &w->s->config;
	uint32_t n = w->s->hosts;
	double most = 0;

	memset(k->load, 0, 2 * w->s->topo->nlinks * sizeof(*k->load));
	memset(k->cpu, 0, n * sizeof(*k->cpu));
	k->frames = 0;
	for (uint32_t a = 0; a < n; a++) {
		double out = 0, in = 0;

		for (uint32_t b = 0; b < n; b++) {
			double frames = (double)wire_oracle_frames(w->wire, number, a, b);

			in += (double)wire_oracle_frames(w->wire, number, b, a);
			if (frames > 0) {
				walk(k, a, b, 0, (double)wire_oracle_load(w->wire, number, a, b));
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
	for (uint32_t i = 0; i < 2 * w->s->topo->nlinks; i++) {
		most = k->load[i] > most ? k->load[i] : most;
	}
	for (uint32_t i = 0; i < n; i++) {
		most = k->cpu[i] > most ? k->cpu[i] : most;
	}
	return most;
}

static double longest_round_trip(struct world *w, struct links *k)
{
	const struct cn_sim_config *c = &w->s->config;
	double longest = 0;

	for (uint32_t a = 0; a < w->s->hosts; a++) {
		for (uint32_t b = 0; b < w->s->hosts; b++) {
			double there = walk(k, a, b, c->engine.node.mtu + 38.0, 0);

			longest = there > longest ? there : longest;
		}
	}
	return 2 *
	       (longest + (double)(c->o_send + c->o_recv + c->u_recv + c->gap + c->jitter) / 1e9);
}

static double outages(const struct world *w)
{
	double sum = 0;

	for (uint32_t i = 0; w->s->climate == OUTAGE && i < w->s->nfaults; i++) {
		const struct fault_plan *f = &w->s->faults[i];

		sum += 2 * (double)(f->until - f->at) / 1e9 +
		       (double)w->s->config.engine.node.dead_after / 3e9;
	}
	return sum;
}

/* Delay spikes: so many of the frames on all links since the beginning, one after the other. */
static double delays(const struct world *w)
{
	const struct cn_sim_faults *f = &w->s->faults[0].weather;
	double frames = 0;

	if (w->s->climate != WEATHER) {
		return 0;
	}
	for (uint32_t i = 0; i < 2 * w->s->topo->nlinks; i++) {
		struct cn_sim_port port;

		cn_sim_port(w->sim, i / 2, i % 2, &port);
		frames += (double)port.frames;
	}
	return (frames * f->spikes / 1e6 + 3) * (double)f->spike / 1e9 +
	       (frames * f->reorder / 1e6 + 3) * (double)f->late / 1e9;
}

static bool is_own_window(const struct scenario *s, const struct op_plan *p)
{
	return p->window == COLLNET_WINDOW_AUTO && s->config.engine.window == COLLNET_WINDOW_AUTO &&
	       s->config.engine.node.window >= 32;
}

void judge_goodput(struct world *w)
{
	const struct scenario *s = w->s;
	struct links k = { .s = s };
	struct cn_sim_totals now;
	double b = 0, steps = 0, windows = 0, losses, limit,
	       took = (double)(w->finish - w->start) / 1e9;

	k.load = calloc(2 * s->topo->nlinks, sizeof(*k.load));
	k.cpu = calloc(s->hosts, sizeof(*k.cpu));
	if (k.load == NULL || k.cpu == NULL) {
		free(k.load);
		free(k.cpu);
		return;
	}
	k.round_trip = longest_round_trip(w, &k);
	cn_sim_totals(w->sim, &now);
	losses = (double)(now.lost + now.drops + now.ring_drops - w->before.lost - w->before.drops -
			  w->before.ring_drops);
	for (uint32_t i = 0; i < w->nops; i++) {
		uint32_t window = judge_window(s, &w->ops[i]);

		window = window < s->config.engine.node.window ? window
							       : s->config.engine.node.window;
		b += busiest(w, &k, i);
		steps += (s->ranks + 8) * k.round_trip;
		windows += k.frames / window *
			   (k.round_trip +
			    (is_own_window(s, &w->ops[i])
				     ? 0
				     : 2 * (double)s->config.engine.node.ack_delay / 1e9));
	}
	limit = 4 * b + steps + windows + losses * (0.1 + k.round_trip) + delays(w) + outages(w) +
		0.1 + (double)s->think * w->nops / 1e9;
	if (w->verbose) {
		printf("  took %.3f ms; busiest %.3f, steps %.3f, windows %.3f, %.0f lost, round trip "
		       "%.3f, limit %.3f ms\n",
		       took * 1e3, b * 1e3, steps * 1e3, windows * 1e3, losses, k.round_trip * 1e3,
		       limit * 1e3);
	}
	if (took > limit) {
		world_blame(w, "goodput: %.3f ms where %.3f are enough", took * 1e3, limit * 1e3);
	}
	free(k.load);
	free(k.cpu);
}
