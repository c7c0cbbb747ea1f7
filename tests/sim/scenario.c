/* SPDX-License-Identifier: BSD-2-Clause */
/* Drawing scenarios. The order of draws is the format of the seeds: new draws go to the end. */
#include "draw.h"
#include "scenario.h"
#include "proto/wire.h"
#include "tests/unit/reduction.h"
#include "tools/plan/random.h"
#include "tools/plan/span.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_MAX (3u << 20) /* bytes that all ranks together receive in an operation */

/* ---- the network ---------------------------------------------------------------------- */

static bool draw_network(struct scenario *s, uint64_t *r)
{
	static const uint64_t rates[] = { 10000000, 20000000, 100000000, 1000000000, 2500000000 };
	static const uint32_t buffers[] = { 0, 4, 8, 16, 43, 43, 100, 512 };
	static const uint32_t sizes[] = { 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 24, 40 };
	uint64_t rate = PICK(r, rates), uplink = chance(r, 50) ? rate : PICK(r, rates);
	uint32_t buffer = PICK(r, buffers), hosts = PICK(r, sizes);
	uint32_t per_switch = (uint32_t)between(r, 1, hosts < 8 ? hosts : 8);
	struct cn_err err;
	int rc;

	if (chance(r, 55)) {
		uint32_t switches = hosts / per_switch;
		char shape[32];

		if (switches < 2) {
			snprintf(shape, sizeof(shape), "%u", hosts);
		} else {
			snprintf(shape, sizeof(shape), "%ux%u", per_switch, switches);
		}
		snprintf(s->network, sizeof(s->network),
			 "shape %s, %" PRIu64 " and %" PRIu64 " Mbit/s, buffers %u", shape,
			 rate / 1000000, uplink / 1000000, buffer);
		rc = cn_topo_shape(shape, rate, buffer, uplink, buffer, &s->topo, &err);
	} else {
		const struct cn_topo_random t = {
			.hosts = hosts,
			.switches = (uint32_t)between(r, 1, hosts < 10 ? hosts : 10),
			.degree = 1.0 + (double)between(r, 0, 3) / 2,
			.seed = cn_random(r),
			.rate = rate,
			.buffer = buffer,
		};
		struct cn_topo *graph;
		enum cn_tree_kind kind = (enum cn_tree_kind)between(r, CN_TREE_BFS,
								    CN_TREE_SHORTEST);
		uint64_t tree_seed = cn_random(r);

		snprintf(s->network, sizeof(s->network),
			 "%u hosts on %u random switches, %" PRIu64 " Mbit/s, buffers %u", t.hosts,
			 t.switches, rate / 1000000, buffer);
		rc = cn_topo_random(&t, &graph, &err);
		if (rc == COLLNET_OK) {
			rc = cn_topo_span(graph, kind, CN_TOPO_NONE, tree_seed, &s->topo, &err);
			cn_topo_free(graph);
		}
	}
	s->hosts = rc == COLLNET_OK ? s->topo->nhosts : 0;
	return rc == COLLNET_OK;
}

static void draw_config(struct scenario *s, uint64_t *r)
{
	static const uint32_t windows[] = { 2, 3, 8, 32, 128, 256 };
	static const uint32_t pools[] = { 16, 24, 64, 1024, 1024, 1024 };
	static const uint32_t mtus[] = { 576, 1500, 1500, 1500, 4096, 9000 };
	static const cn_time costs[] = { 0, 0, 500, 5000, 20000 };
	static const cn_time latencies[] = { 0, 500, 5000, 1000000 };
	struct cn_sim_config *c = &s->config;

	cn_sim_config_init(c);
	c->place = true;
	c->topo = s->topo;
	c->seed = cn_random(r);
	c->kind = (enum cn_sim_kind)between(r, CN_SIM_OUTPUT, CN_SIM_DYNAMIC);
	c->cut_through = chance(r, 25);
	c->alpha_pct = (uint32_t)between(r, 25, 200);
	c->latency = PICK(r, latencies);
	c->delay = between(r, 0, 10 * CN_US);
	c->o_send = PICK(r, costs);
	c->o_recv = PICK(r, costs);
	c->u_recv = PICK(r, costs);
	c->gap = chance(r, 30) ? between(r, 0, 30 * CN_US) : 0;
	c->jitter = chance(r, 40) ? between(r, 0, 2 * CN_MS) : 0;
	c->jitter_ppm = (uint32_t)between(r, 1, 1000000);
	c->queue = (uint32_t)between(r, 1, 4);
	c->ring = chance(r, 20) ? (uint32_t)between(r, 32, 256) : 0;
	c->ring = c->ring != 0 ? c->ring : 2048;
	c->topology_unaware = chance(r, 15);
	c->engine.node.mtu = PICK(r, mtus);
	c->engine.node.send_window = PICK(r, windows);
	c->engine.node.pool_frames = PICK(r, pools);
	c->engine.node.reorder = chance(r, 70) ? 8 : (uint32_t)between(r, 0, 7);
	c->engine.node.max_peers = s->hosts + (uint32_t)between(r, 0, 8);
	c->engine.window = chance(r, 70)   ? COLLNET_WINDOW_AUTO
			   : chance(r, 50) ? COLLNET_WINDOW_OFF
					   : (uint32_t)between(r, 1, 40);
}

/*
 * Queues drain in less time than a node waits for an answer: no port stores more than a tenth of a
 * second of full frames, and all ports of a switch with shared memory do not either.
 */
static void bound_queues(struct scenario *s)
{
	uint64_t slowest = UINT64_MAX;
	bool shared = s->config.kind == CN_SIM_SHARED || s->config.kind == CN_SIM_DYNAMIC;

	for (uint32_t i = 0; i < s->topo->nlinks; i++) {
		struct cn_topo_link *l = &s->topo->links[i];
		uint64_t most = l->rate / 10 / 8 / (s->config.engine.node.mtu + 38);

		most = shared ? most / (s->hosts < 16 ? s->hosts : 16) : most;
		most = most < 4 ? 4 : most;
		if (l->buffer == 0 || l->buffer > most) {
			l->buffer = most > CN_TOPO_BUFFER_MAX ? CN_TOPO_BUFFER_MAX : (uint32_t)most;
		}
		slowest = l->rate < slowest ? l->rate : slowest;
	}
	/* An answer may stand in such a queue at every port there and back, and be dropped and
	 * asked for again: who configures a slow network gives it the time. */
	if (slowest < 100000000) {
		s->config.engine.node.dead_after = 5000 * CN_MS;
	}
}

/* ---- operations ----------------------------------------------------------------------- */

/* Some algorithms have no schedule for some networks, and say so: those are left to the engine. */
static bool has_schedule(const struct scenario *s, const struct cn_algorithm *g)
{
	const struct cn_topo *t = s->topo;
	const struct cn_plan p = {
		.op = g->op, .algorithm = g->id, .bytes = 1, .permutation = CN_PERM_SHIFT
	};
	struct cn_sched out = { 0 };
	struct cn_layout l = { .nranks = s->hosts, .nnodes = s->hosts };
	struct cn_tree *tree = NULL;
	uint32_t *numbers = calloc(2 * (size_t)s->hosts + 2, sizeof(*numbers));
	struct cn_err err;
	bool ok = numbers != NULL &&
		  cn_tree_make(t, t->hosts, t->nhosts, CN_TOPO_NONE, &tree, &err) == COLLNET_OK;

	if (ok) {
		for (uint32_t i = 0; i <= s->hosts; i++) {
			numbers[i] = i;
		}
		l.node_of = l.ranks = l.first = numbers;
		l.tree = tree;
		ok = cn_sched_plan(&l, &p, 0, &out, &err) == COLLNET_OK;
		cn_sched_reset(&out);
	}
	cn_tree_free(tree);
	free(numbers);
	return ok;
}

/* Rows that came later take the place of others, so that seeds still mean what they meant. */
static const struct {
	const char *name, *instead_of;
} later[] = { { "windowed", "nearest" }, { "doubling", "ring" } };
#define NLATER (sizeof(later) / sizeof(later[0]))

/* The index of row i, were the later ones not there. */
static size_t nth_earlier(const struct cn_algorithm *all, size_t i)
{
	for (size_t k = 0; k <= i; k++) {
		for (size_t x = 0; x < NLATER; x++) {
			i += strcmp(all[k].name, later[x].name) == 0;
		}
	}
	return i;
}

static void draw_op(const struct scenario *s, struct op_plan *p, uint64_t *r)
{
	static const uint64_t sizes[] = { 0, 1, 7, 64, 500, 1476, 1477, 4096, 10001, 16384, 65536 };
	const struct cn_algorithm *all;
	uint64_t copies;
	size_t n;

	all = cn_algorithms(&n);
	while (cn_op_reduces(all[n - 1].op)) {
		n--;
	}
	all += nth_earlier(all, cn_random(r) % (n - NLATER));
	p->op = all->op;
	p->algorithm = chance(r, 85) && !(all->needs_tree && s->config.topology_unaware) &&
				       (!all->needs_tree || has_schedule(s, all))
			       ? all->name
			       : NULL;
	p->permutation = chance(r, 70)	 ? CN_PERM_AUTO
			 : chance(r, 50) ? CN_PERM_SHIFT
					 : CN_PERM_EDGE_COLOUR;
	p->contention_aware = chance(r, 80);
	p->window = chance(r, 60)   ? COLLNET_WINDOW_AUTO
		    : chance(r, 30) ? COLLNET_WINDOW_OFF
				    : (uint32_t)between(r, 1, 32);
	p->root = (uint32_t)(cn_random(r) % s->ranks);
	p->bytes = chance(r, 75) ? PICK(r, sizes) : between(r, 0, 65536);
	copies = p->op == CN_OP_ALLTOALL || p->op == CN_OP_ALLGATHER ? (uint64_t)s->ranks * s->ranks
								     : s->ranks;
	if (p->bytes > DATA_MAX / copies) {
		p->bytes = DATA_MAX / copies;
	}
	if (p->op != CN_OP_BCAST && p->op != CN_OP_SCATTER && p->op != CN_OP_GATHER) {
		p->root = 0;
	}
	if (p->op == CN_OP_BARRIER) {
		p->bytes = 0;
	}
}

static void draw_ops(struct scenario *s, uint64_t *r)
{
	s->local = chance(r, 60) ? 1 : (uint32_t)between(r, 2, 3);
	s->ranks = s->hosts * s->local;
	s->nops = (uint32_t)between(r, 1, OPS_MAX);
	s->nafter = (uint32_t)between(r, 1, 3);
	for (uint32_t i = 0; i < s->nops; i++) {
		draw_op(s, &s->ops[i], r);
	}
	for (uint32_t i = 0; i < s->nafter; i++) {
		draw_op(s, &s->after[i], r);
	}
	s->depth = chance(r, 40) ? 1 : (uint32_t)between(r, 2, OPS_MAX);
	s->think = chance(r, 50) ? 0 : between(r, 0, 20 * CN_MS);
}

/* Some operations have blocks of any size. */
static void draw_vectors(struct op_plan *p, uint32_t n, uint64_t *r)
{
	for (uint32_t i = 0; i < n; i++, p++) {
		for (int op = CN_OP_ALLTOALLV; op <= CN_OP_GATHERV; op++) {
			if (cn_op_base((enum cn_op_kind)op) == p->op && chance(r, 35)) {
				p->op = (enum cn_op_kind)op;
				p->sizes = cn_random(r);
				break;
			}
		}
	}
}

uint64_t scenario_size(const struct op_plan *p, uint32_t from, uint32_t to)
{
	uint64_t x = cn_mix64(p->sizes ^ (uint64_t)from << 32 ^ to);

	return x % 3 == 0 ? 0 : (x >> 8) % (3 * p->bytes + 1);
}

static void draw_later(size_t x, struct op_plan *p, uint32_t n, uint64_t *r)
{
	for (uint32_t i = 0; i < n; i++, p++) {
		if (p->algorithm != NULL && !cn_op_reduces(p->op) &&
		    strcmp(p->algorithm, later[x].instead_of) == 0 && chance(r, 50)) {
			p->algorithm = later[x].name;
		}
	}
}

/* ---- what goes wrong ------------------------------------------------------------------ */

static struct cn_sim_faults draw_link_faults(uint64_t *r, uint32_t loss)
{
	struct cn_sim_faults f = { 0 };

	f.loss = chance(r, 75) ? (uint32_t)between(r, 100, loss) : 0;
	f.burst = chance(r, 30) ? (uint32_t)between(r, 2, 12) : 0;
	f.duplicate = chance(r, 40) ? (uint32_t)between(r, 100, loss) : 0;
	f.reorder = chance(r, 40) ? (uint32_t)between(r, 100, loss) : 0;
	f.corrupt = chance(r, 30) ? (uint32_t)between(r, 100, loss / 2) : 0;
	f.spikes = chance(r, 30) ? (uint32_t)between(r, 100, loss / 2) : 0;
	f.late = between(r, 1000, 2 * CN_MS);
	f.spike = between(r, CN_MS, 80 * CN_MS);
	return f;
}

/* A link of the tree. */
static uint32_t draw_link(const struct scenario *s, uint64_t *r)
{
	uint32_t link;

	do {
		link = (uint32_t)(cn_random(r) % s->topo->nlinks);
	} while (!cn_topo_in_tree(s->topo, link));
	return link;
}

static void draw_outage(struct scenario *s, struct fault_plan *f, uint64_t *r, cn_time least,
			cn_time most)
{
	f->host = (uint32_t)(cn_random(r) % s->hosts);
	f->link = chance(r, 50) ? s->topo->vertices[s->topo->hosts[f->host]].parent_link
				: draw_link(s, r);
	f->end = chance(r, 60) ? 2 : (uint32_t)(cn_random(r) % 2);
	f->at = between(r, 0, 30 * CN_MS);
	f->until = f->at + between(r, least, most);
	f->kind = chance(r, 60) ? FAULT_CUT : FAULT_PAUSE;
}

static void draw_failure(struct scenario *s, struct fault_plan *f, uint64_t *r)
{
	draw_outage(s, f, r, 3000 * CN_MS, 12000 * CN_MS);
	switch (cn_random(r) % 7) {
	case 0:
	case 1:
		break; /* as it is: gone for long */
	case 2:
		f->kind = FAULT_CRASH;
		f->until = CN_NEVER;
		break;
	case 3:
		f->kind = FAULT_CRASH;
		f->until = f->at + between(r, CN_MS, 3000 * CN_MS);
		break;
	case 4:
		f->kind = FAULT_DIE;
		break;
	case 5:
		f->kind = FAULT_LEAVE;
		break;
	default:
		f->kind = FAULT_NO_CALL;
		break;
	}
	f->rank = (uint32_t)(cn_random(r) % s->ranks);
	f->number = (uint32_t)(cn_random(r) % s->nops);
}

static void draw_faults(struct scenario *s, uint64_t *r)
{
	static const uint32_t losses[] = { 1000, 10000, LOSS_LIMIT };
	struct fault_plan *f = s->faults;

	s->deadline = SUCCESS_DEADLINE;
	switch (s->profile) {
	case PROFILE_LOSS:
		f->kind = FAULT_LINK;
		f->link = CN_TOPO_NONE;
		f->end = 2;
		f->until = CN_NEVER;
		f->link_faults = draw_link_faults(r, PICK(r, losses));
		s->nfaults = 1;
		break;
	case PROFILE_OUTAGE:
		draw_outage(s, f, r, CN_MS, OUTAGE_LIMIT);
		s->nfaults = 1;
		break;
	case PROFILE_HEAVY_LOSS:
		s->nfaults = (uint32_t)between(r, 1, FAULTS_MAX);
		for (uint32_t i = 0; i < s->nfaults; i++, f++) {
			f->kind = FAULT_LINK;
			f->link = chance(r, 30) ? CN_TOPO_NONE : draw_link(s, r);
			f->end = 2;
			f->at = between(r, 0, 50 * CN_MS);
			f->until = f->at + between(r, 10 * CN_MS, 5000 * CN_MS);
			f->link_faults = draw_link_faults(r, 200000);
		}
		s->deadline = between(r, 500, 20000) * CN_MS;
		break;
	case PROFILE_FAILURE:
		draw_failure(s, f, r);
		s->nfaults = 1;
		s->deadline = between(r, 500, 20000) * CN_MS;
		break;
	default:
		break;
	}
}

/* ---- the whole ------------------------------------------------------------------------ */

/*
 * Reductions take the place of some operations. Of seeds that 4 divides only, so that others still
 * mean what they meant when they found something.
 */
static void draw_reduction(const struct scenario *s, struct op_plan *p, uint64_t *r)
{
	const struct cn_algorithm *all;
	size_t n, first = 0;

	all = cn_algorithms(&n);
	while (!cn_op_reduces(all[first].op)) {
		first++;
	}
	all += first + cn_random(r) % (n - first);
	p->op = all->op;
	p->ordered = chance(r, 40);
	p->bytes &= ~(uint64_t)1;
	p->algorithm = chance(r, 85) && reduction_takes(all, p->ordered, p->bytes, s->ranks)
			       ? all->name
			       : NULL;
	p->permutation = CN_PERM_AUTO;
	p->root = p->op == CN_OP_REDUCE ? (uint32_t)(cn_random(r) % s->ranks) : 0;
}

static void draw_reductions(struct scenario *s, uint64_t *r)
{
	s->late = chance(r, 50);
	for (uint32_t i = 0; s->seed % 4 == 0 && i < s->nops + s->nafter; i++) {
		if (chance(r, 60)) {
			draw_reduction(s, i < s->nops ? &s->ops[i] : &s->after[i - s->nops], r);
		}
	}
}

bool scenario_draw(uint64_t seed, struct scenario *s)
{
	static const enum fault_profile profiles[] = { PROFILE_NONE,	   PROFILE_NONE,
						       PROFILE_LOSS,	   PROFILE_LOSS,
						       PROFILE_LOSS,	   PROFILE_OUTAGE,
						       PROFILE_HEAVY_LOSS, PROFILE_HEAVY_LOSS,
						       PROFILE_FAILURE,	   PROFILE_FAILURE };
	uint64_t random = cn_mix64(seed);

	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->profile = PICK(&random, profiles);
	if (!draw_network(s, &random)) {
		return false;
	}
	draw_config(s, &random);
	bound_queues(s);
	draw_ops(s, &random);
	draw_faults(s, &random);
	draw_reductions(s, &random);
	draw_vectors(s->ops, s->nops, &random);
	draw_vectors(s->after, s->nafter, &random);
	for (size_t x = 0; x < NLATER; x++) {
		draw_later(x, s->ops, s->nops, &random);
		draw_later(x, s->after, s->nafter, &random);
	}
	scenario_authenticate(s, cn_mix64(~seed) % 4 == 0);
	return true;
}

void scenario_authenticate(struct scenario *s, bool on)
{
	struct cn_node_config *c = &s->config.engine.node;

	c->authenticated = on;
	if (on && c->mtu == CN_FRAME_MTU_MIN) {
		c->mtu += CN_WIRE_AUTH;
	}
	memcpy(c->cluster_key, &s->seed, sizeof(s->seed));
}

/*
 * The time that losses may cost all operations together: where frames follow one another, each may
 * wait for a repeated probe, at most a fifth of the grace period. So many frames follow one another
 * in the longest schedules: all frames of the busiest host (a window of one), or one per phase.
 */
static cn_time loss_time(const struct scenario *s)
{
	const struct cn_node_config *c = &s->config.engine.node;
	uint64_t steps = 0;

	for (uint32_t i = 0; i < s->nops; i++) {
		const struct op_plan *p = &s->ops[i];
		uint64_t blocks = (uint64_t)s->ranks *
				  (cn_op_base(p->op) == CN_OP_ALLTOALL ? s->local : 1);
		uint64_t frames = blocks * (1 + p->bytes / (c->mtu - CN_WIRE_HEADER));
		uint64_t phases = (uint64_t)s->hosts * s->hosts / 2;

		steps += frames > phases ? frames : phases;
	}
	return steps * c->dead_after / 5;
}

void scenario_lose(struct scenario *s, uint32_t ppm)
{
	s->profile = PROFILE_LOSS;
	s->deadline = SUCCESS_DEADLINE + loss_time(s);
	s->nfaults = 1;
	s->faults[0] = (struct fault_plan){ .kind = FAULT_LINK,
					    .link = CN_TOPO_NONE,
					    .end = 2,
					    .until = CN_NEVER,
					    .link_faults = { .loss = ppm } };
}

void scenario_free(struct scenario *s)
{
	cn_topo_free(s->topo);
	s->topo = NULL;
}

bool scenario_must_succeed(const struct scenario *s)
{
	return s->profile == PROFILE_NONE || s->profile == PROFILE_LOSS ||
	       s->profile == PROFILE_OUTAGE;
}

const char *profile_name(enum fault_profile c)
{
	static const char *const names[] = { "none", "loss", "outage", "heavy loss", "failure" };

	return names[c];
}

static void print_window(uint32_t w)
{
	if (w == COLLNET_WINDOW_OFF) {
		printf("off");
	} else if (w == COLLNET_WINDOW_AUTO) {
		printf("auto");
	} else {
		printf("%u", w);
	}
}

static void print_op(const char *when, const struct op_plan *p)
{
	printf("  %s %s %s, %" PRIu64
	       " bytes, root %u, permutation %s, contention-aware %d, window ",
	       when, cn_op_name(p->op), p->algorithm != NULL ? p->algorithm : "(chosen)", p->bytes,
	       p->root, cn_perm_name(p->permutation), p->contention_aware);
	print_window(p->window);
	printf("\n");
}

static void print_fault(const struct fault_plan *f)
{
	static const char *const names[] = { "link", "cut",   "pause",	"crash",
					     "die",  "leave", "no call" };

	printf("  fault %s: %.3f .. %.3f ms, link %d end %u, host %u, rank %u, number %u",
	       names[f->kind], (double)f->at / 1e6,
	       f->until == CN_NEVER ? -1.0 : (double)f->until / 1e6, (int)f->link, f->end, f->host,
	       f->rank, f->number);
	if (f->kind == FAULT_LINK) {
		const struct cn_sim_faults *w = &f->link_faults;

		printf("; loss %u ppm (burst %u), duplicate %u, reorder %u (%.3f ms), corrupt %u, "
		       "spikes %u (%.3f ms)",
		       w->loss, w->burst, w->duplicate, w->reorder, (double)w->late / 1e6,
		       w->corrupt, w->spikes, (double)w->spike / 1e6);
	}
	printf("\n");
}

void scenario_print(const struct scenario *s)
{
	const struct cn_sim_config *c = &s->config;
	const struct cn_node_config *n = &c->engine.node;

	printf("seed %" PRIu64 ": %s; %s, %u ranks a host\n", s->seed, profile_name(s->profile),
	       s->network, s->local);
	printf("  switches: kind %d%s, latency %.3f us, delay %.3f us; hosts: %.1f + %.1f + %.1f us, "
	       "gap %.1f us, jitter %.1f us at %u ppm, ring %u, queue %u%s\n",
	       c->kind, c->cut_through ? " (cut-through)" : "", (double)c->latency / 1e3,
	       (double)c->delay / 1e3, (double)c->o_send / 1e3, (double)c->o_recv / 1e3,
	       (double)c->u_recv / 1e3, (double)c->gap / 1e3, (double)c->jitter / 1e3,
	       c->jitter_ppm, c->ring, c->queue, c->topology_unaware ? ", topology-unaware" : "");
	printf("  transport: MTU %u, window %u, pool %u, reorder %u, W_g ", n->mtu, n->send_window,
	       n->pool_frames, n->reorder);
	print_window(c->engine.window);
	printf("; depth %u, think %.3f ms, deadline %.0f ms\n", s->depth, (double)s->think / 1e6,
	       (double)s->deadline / 1e6);
	for (uint32_t i = 0; i < s->nops; i++) {
		print_op("op", &s->ops[i]);
	}
	for (uint32_t i = 0; i < s->nafter && !scenario_must_succeed(s); i++) {
		print_op("after", &s->after[i]);
	}
	for (uint32_t i = 0; i < s->nfaults; i++) {
		print_fault(&s->faults[i]);
	}
}
