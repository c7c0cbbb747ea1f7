/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dimopoulos and Dimakopoulos, Communications in Binary Fat Trees: the step counts of the paper,
 * counted by stepping the packets of real schedules through trees (stepper.h), for 2 to 1,024
 * hosts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/alltoall/fattree.h"
#include "tools/papers/multinode.h"
#include "sched/sched.h"
#include "packet_stepper.h"

#define LEVELS 10u /* 1,024 hosts */

static void *need(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	assert_non_null(p);
	return p;
}

/* One rank a node. */
struct team {
	struct cn_topo *topo;
	struct cn_tree *tree;
	struct cn_layout layout;
	uint32_t *numbers; /* 0, 1, .. nhosts */
};

static void layout(struct team *m)
{
	uint32_t n = m->tree->nhosts;

	m->numbers = need(n + 1, sizeof(*m->numbers));
	for (uint32_t i = 0; i <= n; i++) {
		m->numbers[i] = i;
	}
	m->layout = (struct cn_layout){ .nranks = n,
					.nnodes = n,
					.node_of = m->numbers,
					.first = m->numbers,
					.ranks = m->numbers,
					.tree = m->tree };
}

static struct team binary(uint32_t levels, const uint32_t *channels)
{
	struct team m = { 0 };

	st_binary(levels, channels, &m.topo, &m.tree);
	layout(&m);
	return m;
}

static void done(struct team *m)
{
	cn_tree_free(m->tree);
	cn_topo_free(m->topo);
	free(m->numbers);
}

static void plan(const struct team *m, enum cn_op_kind op, const char *name, uint32_t root,
		 uint32_t node, struct cn_sched *s)
{
	struct cn_plan p = {
		.op = op, .algorithm = cn_algorithm_find(op, name)->id, .bytes = 1, .root = root
	};
	struct cn_err err = { 0 };

	if (cn_sched_plan(&m->layout, &p, node, s, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

/* Every node has heard every other one once, and not itself. */
static void everybody(const uint8_t *heard, uint32_t n)
{
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = 0; b < n; b++) {
			assert_int_equal(heard[(size_t)a * n + b], a != b);
		}
	}
}

/* ---- scatter, gather ----------------------------------------------------------------------- */

/* The messages of the root's schedule, one a step in its order; their number. */
static uint32_t scatter_packets(const struct team *m, uint32_t root, struct st_packet *p)
{
	struct cn_sched s = { 0 };
	uint32_t n = 0;

	plan(m, CN_OP_SCATTER, "furthest", root, root, &s);
	for (uint32_t i = 0; i < s.n; i++) {
		if (s.actions[i].kind == CN_ACT_SEND) {
			p[n] = (struct st_packet){ .from = root,
						   .to = s.actions[i].peer,
						   .start = n + 1 };
			n++;
		}
	}
	cn_sched_reset(&s);
	return n;
}

/* Section 3, Theorem 1: n + 1 steps (n >= 4; two hosts need 2), from any root, nobody waiting. */
static void scatter_furthest__n_plus_1_steps(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= LEVELS; levels++) {
		struct team m = binary(levels, NULL);
		uint32_t n = 1u << levels;
		struct st_packet *p = need(n, sizeof(*p));

		for (uint32_t root = 0; root < n; root += 1 + n / 8) {
			struct st_result r;

			assert_int_equal(scatter_packets(&m, root, p), n - 1);
			r = st_run(m.tree, p, n - 1, NULL);
			assert_int_equal(r.delivered, n - 1);
			assert_int_equal(r.steps, n == 2 ? 2 : n + 1);
			assert_int_equal(r.waits, 0);
		}
		free(p);
		done(&m);
	}
}

/* The same messages nearest first: the order is what makes it n + 1. */
static void scatter_furthest__other_order_is_slower(void **state)
{
	struct team m = binary(5, NULL);
	struct st_packet p[32];

	(void)state;
	assert_int_equal(scatter_packets(&m, 0, p), 31);
	for (uint32_t i = 0; i < 31; i++) {
		p[i].start = 31 - i;
	}
	assert_int_equal(st_run(m.tree, p, 31, NULL).steps, 31 + 9);
	done(&m);
}

/* The order in which the root's schedule receives, and who waits for whom, from the senders'. */
static void gather_order(const struct team *m, uint32_t root, uint32_t *order)
{
	uint32_t n = m->tree->nhosts, k = 0;
	struct cn_sched s = { 0 };

	plan(m, CN_OP_GATHER, "nearest", root, root, &s);
	for (uint32_t i = 0; i < s.n; i++) {
		if (s.actions[i].kind == CN_ACT_RECV) {
			assert_int_equal(s.actions[i].phase, k);
			order[k++] = s.actions[i].peer;
		}
	}
	assert_int_equal(k, n - 1);
	for (uint32_t phase = 0; phase < n - 1; phase += 1 + n / 16) {
		uint32_t i = 0;

		plan(m, CN_OP_GATHER, "nearest", root, order[phase], &s);
		assert_int_equal(s.n, (phase > 0 ? 2 : 0) + 1 + (phase + 2 < n));
		if (phase > 0) {
			assert_int_equal(s.actions[0].kind, CN_ACT_RECV);
			assert_int_equal(s.actions[0].peer, order[phase - 1]);
			assert_int_equal(s.actions[0].src.buffer, CN_BUF_NONE);
			assert_int_equal(s.actions[1].kind, CN_ACT_WAIT);
			assert_int_equal(s.actions[1].dep, CN_DEP_COMPLETE);
			assert_int_equal(s.actions[1].dep_on, 0);
			i = 2;
		}
		assert_int_equal(s.actions[i].kind, CN_ACT_SEND);
		assert_int_equal(s.actions[i].peer, root);
		if (phase + 2 < n) {
			assert_int_equal(s.actions[i + 1].peer, order[phase + 1]);
			assert_int_equal(s.actions[i + 1].src.buffer, CN_BUF_NONE);
		}
	}
	cn_sched_reset(&s);
}

/* Section 3: the scatter with its data paths reversed in time, n + 1 steps; arrivals in the order
 * of the schedule. */
static void gather_nearest__n_plus_1_steps(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= LEVELS; levels++) {
		struct team m = binary(levels, NULL);
		uint32_t n = 1u << levels, root = n / 3, *order = need(n, sizeof(*order));
		struct st_packet *p = need(n, sizeof(*p));
		uint64_t *arrived = need(n, sizeof(*arrived));
		struct st_result r;

		scatter_packets(&m, root, p);
		r = st_run(m.tree, p, n - 1, NULL);
		for (uint32_t i = 0; i < n - 1; i++) {
			p[i] = (struct st_packet){ .from = p[i].to,
						   .to = root,
						   .start = r.steps + 1 - p[i].end };
		}
		r = st_run(m.tree, p, n - 1, NULL);
		assert_int_equal(r.steps, n == 2 ? 2 : n + 1);
		assert_int_equal(r.waits, 0);
		for (uint32_t i = 0; i < n - 1; i++) {
			arrived[p[i].from] = p[i].end;
		}
		gather_order(&m, root, order);
		for (uint32_t i = 0; i + 1 < n - 1; i++) {
			assert_true(arrived[order[i]] < arrived[order[i + 1]]);
		}
		free(order);
		free(arrived);
		free(p);
		done(&m);
	}
}

/* ---- multinode broadcast ------------------------------------------------------------------- */

/* Section 4, Theorem 2: everybody floods in step 1; queues, n + 1 steps (two hosts: 2). */
static void multinode__flooding_n_plus_1_steps(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= LEVELS; levels++) {
		struct team m = binary(levels, NULL);
		uint32_t n = 1u << levels;
		struct st_packet *p = need(n, sizeof(*p));
		uint8_t *heard = need((size_t)n * n, 1);
		struct st_result r;

		for (uint32_t i = 0; i < n; i++) {
			p[i] = (struct st_packet){ i, ST_EVERYBODY, ST_EVERYBODY, 1, 0 };
		}
		r = st_run(m.tree, p, n, heard);
		everybody(heard, n);
		assert_int_equal(r.steps, n == 2 ? 2 : n + 1);
		assert_true(n < 4 || r.waits > 0);
		free(heard);
		free(p);
		done(&m);
	}
}

static struct st_result run_turns(const struct cn_tree *t)
{
	uint32_t n = t->nhosts, count;
	uint8_t *heard = need((size_t)n * n, 1);
	struct cn_turn *turns;
	struct st_packet *p;
	struct st_result r;
	struct cn_err err = { 0 };

	if (cn_multinode_turns(t, &turns, &count, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	p = need(count, sizeof(*p));
	for (uint32_t i = 0; i < count; i++) {
		p[i] = (struct st_packet){ turns[i].node, ST_EVERYBODY, turns[i].top, turns[i].step,
					   0 };
	}
	r = st_run(t, p, count, heard);
	everybody(heard, n);
	free(turns);
	free(p);
	free(heard);
	return r;
}

static struct st_result run_times(const struct cn_tree *t)
{
	uint32_t n = t->nhosts;
	uint8_t *heard = need((size_t)n * n, 1);
	uint64_t *times = need(n, sizeof(*times));
	struct st_packet *p = need(n, sizeof(*p));
	struct st_result r;
	struct cn_err err = { 0 };

	if (cn_multinode_times(t, times, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	for (uint32_t i = 0; i < n; i++) {
		assert_true(times[i] >= 1);
		p[i] = (struct st_packet){ i, ST_EVERYBODY, ST_EVERYBODY, times[i], 0 };
	}
	r = st_run(t, p, n, heard);
	everybody(heard, n);
	free(times);
	free(p);
	free(heard);
	return r;
}

/* Section 4.1: no queues at all, n + 2 log n - 2 steps. */
static void multinode_turns__n_plus_2_log_n_minus_2_steps(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= LEVELS; levels++) {
		struct team m = binary(levels, NULL);
		struct st_result r = run_turns(m.tree);

		assert_int_equal(r.steps, (1u << levels) + 2 * levels - 2);
		assert_int_equal(r.waits, 0);
		done(&m);
	}
}

/* One flood a host, without queues: 3 n - 3 steps; n = 4 and a star reach the lower bound n + 1. */
static void multinode_times__no_queues(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (uint32_t levels = 1; levels <= LEVELS; levels++) {
		struct team m = binary(levels, NULL);
		uint32_t n = 1u << levels;
		struct st_result r = run_times(m.tree);

		assert_int_equal(r.waits, 0);
		assert_int_equal(r.steps, n == 2 ? 2 : n == 4 ? 5 : 3 * n - 3);
		done(&m);
	}
	for (uint32_t n = 1; n <= 40; n++) {
		struct team m = { 0 };

		st_random(n, 1, 1, &seed, &m.topo, &m.tree);
		assert_int_equal(run_times(m.tree).steps, n == 1 ? 0 : n == 2 ? 2 : n + 1);
		cn_tree_free(m.tree);
		cn_topo_free(m.topo);
	}
}

/* Whether the floods of two hosts of a tree meet when one starts `later` steps later; stepped. */
static bool floods_meet(const struct cn_tree *t, uint32_t a, uint32_t b, int later)
{
	struct st_packet p[2] = {
		{ a, ST_EVERYBODY, ST_EVERYBODY, (uint64_t)(10 - later), 0 },
		{ b, ST_EVERYBODY, ST_EVERYBODY, 10, 0 },
	};

	return st_run(t, p, 2, NULL).waits > 0;
}

/* Whether 8 hosts can flood in steps 1 .. last without meeting: all methods are tried. */
static bool floods_fit(const bool meet[8][8][32], int last)
{
	int step[8] = { 0 }, i = 0;

	while (i >= 0 && i < 8) {
		bool fits = ++step[i] <= last;

		for (int j = 0; fits && j < i; j++) {
			fits = !meet[j][i][16 + step[i] - step[j]];
		}
		if (fits) {
			i++;
			if (i < 8) {
				step[i] = 0;
			}
		} else if (step[i] > last) {
			i--;
		}
	}
	return i == 8;
}

/*
 * Why turns: 8 hosts that flood once each need 13 steps without queues, the paper's algorithm 12.
 * (A flood that starts in step 8 is over in step 13.)
 */
static void multinode__one_flood_cannot_be_as_good(void **state)
{
	struct team m = binary(3, NULL);
	bool meet[8][8][32] = { { { false } } };

	(void)state;
	for (uint32_t a = 0; a < 8; a++) {
		for (uint32_t b = a + 1; b < 8; b++) {
			for (int later = -8; later <= 8; later++) {
				meet[a][b][16 + later] = floods_meet(m.tree, a, b, later);
			}
		}
	}
	assert_false(floods_fit((const bool(*)[8][32])meet, 7));
	assert_true(floods_fit((const bool(*)[8][32])meet, 8));
	done(&m);
}

static void multinode__random_trees(void **state)
{
	uint64_t seed = 94704;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < 300; k++) {
		uint32_t n = 1 + (uint32_t)(cn_random(&seed) % 40);
		uint32_t switches = 1 + (uint32_t)(cn_random(&seed) % 30);
		struct team m = { 0 };

		st_random(n, switches, 1, &seed, &m.topo, &m.tree);
		assert_int_equal(run_turns(m.tree).waits, 0);
		assert_int_equal(run_times(m.tree).waits, 0);
		cn_tree_free(m.tree);
		cn_topo_free(m.topo);
	}
}

/* ---- total exchange ------------------------------------------------------------------------ */

/* The tree gets the root that the exchange chooses. */
static void choose_root(struct team *m)
{
	struct cn_fattree *x = NULL;
	struct cn_tree *tree = NULL;
	uint32_t n = m->tree->nhosts, *hosts = need(n, sizeof(*hosts));

	for (uint32_t i = 0; i < n; i++) {
		hosts[i] = m->tree->v[m->tree->host[i]].vertex;
	}
	assert_int_equal(cn_fattree_rooted(m->tree, &x, NULL), COLLNET_OK);
	if (x->own != NULL) {
		assert_int_equal(cn_tree_make(m->topo, hosts, n, x->t->v[0].vertex, &tree, NULL),
				 COLLNET_OK);
		cn_tree_free(m->tree);
		m->tree = tree;
	}
	cn_fattree_free(x);
	free(hosts);
}

/* A node's sends by its schedule must be those of the whole exchange: phases [to]. */
static uint32_t compare_plan(const struct team *m, uint32_t me, const uint32_t *to)
{
	struct cn_sched s = { 0 };
	uint32_t sends = 0, phases;

	plan(m, CN_OP_ALLTOALL, "fattree", 0, me, &s);
	for (uint32_t i = 0; i < s.n; i++) {
		if (s.actions[i].kind == CN_ACT_SEND) {
			assert_int_equal(s.actions[i].phase, to[s.actions[i].peer]);
			sends++;
		}
	}
	assert_int_equal(sends, m->tree->nhosts - 1);
	phases = s.phases;
	cn_sched_reset(&s);
	return phases;
}

/*
 * Store and forward, phases pipelined: the step, from 1, in which a packet must leave its host so
 * that none ever waits in a queue. A switch's packets leave 2 steps later for each level that it is
 * below the root (what the paper's overlap of 2 h - 3 steps leaves of the distance), and hosts
 * nearer to the root later by their difference in depth.
 */
static uint64_t fattree_start(const struct cn_tree *t, uint32_t from, uint32_t to, uint32_t phase)
{
	uint32_t x = t->host[from], top = cn_tree_meet(t, x, t->host[to]);

	/*
	 * With T = step + depth of the sender: a packet goes up from depth q in step T - q and down
	 * to depth q in step T - 2 depth(top) + q - 1. With T = phase + 2 depth(top) + a constant
	 * the packets of one link have different T on the way up, since a switch's phases come
	 * after its parent's, and different phases on the way down (but for those of other
	 * channels).
	 */
	return (uint64_t)phase + 2 * (uint64_t)t->v[top].depth + t->height - t->v[x].depth + 1;
}

/*
 * All messages, as packets that leave when fattree_start() says. They are those of all nodes'
 * schedules; in large teams only some schedules are made, for the time.
 */
static uint32_t exchange_packets(const struct team *m, struct st_packet **out, uint32_t *phases)
{
	uint32_t n = m->tree->nhosts, k = 0, *to = need(2 * (size_t)n, sizeof(*to));
	struct st_packet *p = need((size_t)n * (n - 1), sizeof(*p));
	struct cn_fattree *x = NULL;

	assert_int_equal(cn_fattree_new(m->tree, &x, NULL), COLLNET_OK);
	for (uint32_t me = 0; me < n; me++) {
		assert_int_equal(cn_fattree_node(x, me, to, to + n, NULL), COLLNET_OK);
		if (n <= 64 || me % 100 == 0 || me == n - 1) {
			*phases = compare_plan(m, me, to);
		}
		for (uint32_t i = 0; i < n; i++) {
			if (i != me) {
				p[k++] = (struct st_packet){ .from = me,
							     .to = i,
							     .start = fattree_start(m->tree, me, i,
										    to[i]) };
			}
		}
	}
	cn_fattree_free(x);
	free(to);
	*out = p;
	return k;
}

/* Steps of the exchange on a tree; every message arrives once and none waits. */
static struct st_result run_exchange(const struct team *m, uint32_t *phases)
{
	uint32_t n = m->tree->nhosts, count;
	uint8_t *heard = need((size_t)n * n, 1);
	struct st_packet *p;
	struct st_result r;

	count = exchange_packets(m, &p, phases);
	r = st_run(m->tree, p, count, heard);
	everybody(heard, n);
	assert_int_equal(r.waits, 0);
	free(heard);
	free(p);
	return r;
}

/* Section 5, c_i = 1: (n^2 - 1) / 3 + 2 log n - 1 steps. */
static void exchange__cbft_steps(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= LEVELS; levels++) {
		struct team m = binary(levels, NULL);
		uint32_t n = 1u << levels, phases;
		struct st_result r = run_exchange(&m, &phases);

		assert_int_equal(phases, (n * n - 1) / 3);
		assert_int_equal(r.steps, (n * n - 1) / 3 + 2 * levels - 1);
		done(&m);
	}
}

/* Section 5, c_i = 2^(i - 1): n + 2 log n - 2 steps. */
static void exchange__ebft_steps(void **state)
{
	uint32_t channels[LEVELS];

	(void)state;
	for (uint32_t i = 0; i < LEVELS; i++) {
		channels[i] = 1u << i;
	}
	for (uint32_t levels = 1; levels <= LEVELS; levels++) {
		struct team m = binary(levels, channels);
		uint32_t n = 1u << levels, phases;
		struct st_result r = run_exchange(&m, &phases);

		assert_int_equal(phases, n - 1);
		assert_int_equal(r.steps, n + 2 * levels - 2);
		done(&m);
	}
}

/* Section 5, Eq. 2, capacities that do not decrease: those that grow at most twofold a level. */
static void exchange__any_capacities_eq_2(void **state)
{
	static const uint32_t patterns[][LEVELS] = {
		{ 1, 1, 2, 2, 4, 4, 8, 8, 16, 16 },	   { 1, 2, 2, 2, 2, 2, 2, 2, 2, 2 },
		{ 1, 1, 2, 3, 3, 5, 7, 7, 11, 13 },	   { 1, 2, 3, 3, 3, 6, 12, 13, 13, 20 },
		{ 1, 2, 4, 7, 14, 20, 20, 33, 50, 99 },	   { 1, 2, 3, 6, 11, 21, 42, 81, 160, 300 },
		{ 3, 3, 4, 8, 16, 32, 64, 128, 256, 512 }, /* a host has one port, whatever c_1 */
	};

	(void)state;
	for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]); k++) {
		for (uint32_t levels = 1; levels <= (k == 2 ? LEVELS : LEVELS - 3); levels++) {
			struct team m = binary(levels, patterns[k]);
			uint32_t steps = 2 * levels - 1, phases;
			struct st_result r = run_exchange(&m, &phases);

			for (uint32_t i = 0; i < levels; i++) {
				uint32_t c = i == 0 ? 1 : patterns[k][i];

				if (i == 1 && c > 2) {
					c = 2; /* all that two hosts can send */
				}
				steps += ((1u << (2 * i)) + c - 1) / c;
			}
			assert_int_equal(r.steps, steps);
			done(&m);
		}
	}
}

/* Where a level has more than twice the channels of the one below, that one is the limit. */
static void exchange__lower_links_limit(void **state)
{
	static const uint32_t channels[] = { 1, 1, 4 };
	struct team m = binary(3, channels);
	uint32_t phases;

	(void)state;
	/* Eq. 2 would say 16 / 4 for the last term; 8 messages cross a link of level 2. */
	assert_int_equal(run_exchange(&m, &phases).steps, 1 + 4 + 8 + 5);
	done(&m);
}

/* ---- the schedule's own guarantee, and any tree ---------------------------------------------- */

struct phase_use {
	uint32_t phase, link;
};

static int compare_uses(const void *pa, const void *pb)
{
	const struct phase_use *a = pa, *b = pb;

	if (a->phase != b->phase) {
		return a->phase < b->phase ? -1 : 1;
	}
	return a->link < b->link ? -1 : a->link > b->link;
}

/* In a phase a link carries at most its channels, and a node sends once and receives once, when
 * messages hold their whole paths. */
static void check_circuits(const struct team *m)
{
	uint32_t n = m->tree->nhosts, *path = need(2 * (size_t)m->tree->height + 1, sizeof(*path));
	struct phase_use *use = need((size_t)n * n * (2 * (size_t)m->tree->height + 1),
				     sizeof(*use));
	uint32_t count = 0, run = 0;
	struct cn_sched s = { 0 };

	for (uint32_t me = 0; me < n; me++) {
		plan(m, CN_OP_ALLTOALL, "fattree", 0, me, &s);
		for (uint32_t i = 0; i < s.n; i++) {
			const struct cn_action *a = &s.actions[i];
			uint32_t links;

			if (a->kind != CN_ACT_SEND) {
				continue;
			}
			assert_true(a->phase < s.phases);
			links = cn_tree_path(m->tree, me, a->peer, path);
			for (uint32_t k = 0; k < links; k++) {
				use[count++] = (struct phase_use){ a->phase, path[k] };
			}
		}
	}
	cn_sched_reset(&s);
	qsort(use, count, sizeof(*use), compare_uses);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t v = use[i].link / 2;
		bool host = m->tree->v[v].node != CN_TOPO_NONE;

		run = i > 0 && compare_uses(&use[i - 1], &use[i]) == 0 ? run + 1 : 1;
		assert_true(run <= (host ? 1 : cn_tree_channels(m->tree, use[i].link)));
	}
	free(use);
	free(path);
}

/* The lower bounds of the switches' shares, summed along the longest way down; from loads alone. */
static uint32_t bound_of(const struct cn_tree *t)
{
	uint32_t *end = need(t->n, sizeof(*end)), most = 0;

	for (uint32_t v = 0; v < t->n; v++) {
		uint32_t d = 0;

		for (uint32_t u = v + 1; u < v + t->v[v].size; u++) {
			uint32_t child = u, cap;

			while (t->v[child].parent != v) {
				child = t->v[child].parent;
			}
			cap = t->v[u].node != CN_TOPO_NONE ? 1 : cn_tree_channels(t, 2 * u);
			cap = (t->v[u].hosts * (t->v[v].hosts - t->v[child].hosts) + cap - 1) / cap;
			d = cap > d ? cap : d;
		}
		end[v] = d + (v > 0 ? end[t->v[v].parent] : 0);
		most = end[v] > most ? end[v] : most;
	}
	free(end);
	return most;
}

static void exchange__random_trees(void **state)
{
	uint64_t seed = 19950601;
	uint32_t methods[5] = { 0 };

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < 1500; k++) {
		uint32_t n = 1 + (uint32_t)(cn_random(&seed) % 24);
		uint32_t switches = 1 + (uint32_t)(cn_random(&seed) % 12);
		uint32_t channels = 1 + (uint32_t)(cn_random(&seed) % 5), phases = 0;
		struct cn_fattree *x;
		struct team m = { 0 };

		st_random(n, switches, channels, &seed, &m.topo, &m.tree);
		choose_root(&m);
		layout(&m);
		run_exchange(&m, &phases);
		check_circuits(&m);
		assert_int_equal(phases, bound_of(m.tree));
		assert_int_equal(cn_fattree_new(m.tree, &x, NULL), COLLNET_OK);
		for (uint32_t v = 0; v < m.tree->n; v++) {
			methods[x->share[v].method]++;
		}
		cn_fattree_free(x);
		done(&m);
	}
	/* All methods were met (xor: by the fat trees). */
	assert_true(methods[CN_FATTREE_RING] > 0 && methods[CN_FATTREE_DIAGONAL] > 0);
	assert_true(methods[CN_FATTREE_COLOUR] > 0);
}

/*
 * A binary fat tree as a file whose switches and links come in another order, the leaf switches
 * first: as many phases as with the root first. Exponential: channels double
 * towards the root.
 */
static uint32_t phases_of_file(uint32_t n, bool exponential, uint64_t *seed)
{
	char text[16384];
	uint32_t phases, *order = need(2 * (size_t)n, sizeof(*order));
	struct team m = { 0 };
	struct cn_sched s = { 0 };
	size_t len = 0;

	/* Vertex 1 is the root, 2 v and 2 v + 1 are the children of v, the last n are hosts. */
	for (uint32_t v = 1; v < 2 * n; v++) {
		order[v] = v;
	}
	for (uint32_t v = 2 * n - 1; seed != NULL && v > 1; v--) {
		uint32_t k = 1 + (uint32_t)(cn_random(seed) % v), swap = order[v];

		order[v] = order[k];
		order[k] = swap;
	}
	for (uint32_t i = 1; i < 2 * n; i++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s v%u\n",
					order[i] >= n ? "host" : "switch", order[i]);
	}
	for (uint32_t i = 1; i < 2 * n; i++) {
		uint32_t v = order[i], channels = 1;

		for (uint32_t up = v; exponential && up < n; up *= 2) {
			channels *= 2;
		}
		if (v > 1) {
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"link v%u v%u rate none channels %u\n", v / 2, v,
						channels);
		}
	}
	assert_int_equal(cn_topo_parse(text, len, "fat tree", &m.topo, NULL), COLLNET_OK);
	assert_int_equal(cn_tree_make(m.topo, m.topo->hosts, n, CN_TOPO_NONE, &m.tree, NULL),
			 COLLNET_OK);
	layout(&m);
	plan(&m, CN_OP_ALLTOALL, "fattree", 0, 0, &s);
	phases = s.phases;
	cn_sched_reset(&s);
	done(&m);
	free(order);
	return phases;
}

static void exchange__any_order_of_lines(void **state)
{
	uint64_t seed = 16;

	(void)state;
	assert_int_equal(phases_of_file(16, false, NULL), 85);
	assert_int_equal(phases_of_file(16, true, NULL), 15);
	for (uint32_t k = 0; k < 50; k++) {
		assert_int_equal(phases_of_file(16, false, &seed), 85);
		assert_int_equal(phases_of_file(16, true, &seed), 15);
	}
}

/* Several subtrees of one size under a switch with links of several channels. */
static void exchange__regular_trees(void **state)
{
	static const struct {
		uint32_t switches, hosts, channels, phases;
	} cases[] = {
		/* hosts (N - hosts) / channels between switches, then hosts - 1 */
		{ 4, 8, 2, 8 * 24 / 2 + 7 }, { 4, 8, 4, 8 * 24 / 4 + 7 },
		{ 8, 4, 4, 28 + 3 },	     { 3, 6, 3, 6 * 12 / 3 + 5 },
		{ 5, 6, 4, 6 * 24 / 4 + 5 }, { 16, 4, 3, 4 * 60 / 3 + 3 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct cn_err err = { 0 };
		struct team m = { 0 };
		char shape[32];
		uint32_t phases;

		snprintf(shape, sizeof(shape), "%ux%u", cases[k].hosts, cases[k].switches);
		assert_int_equal(cn_topo_shape(shape, 0, 0, 0, 0, &m.topo, &err), COLLNET_OK);
		for (uint32_t i = 0; i < m.topo->nlinks; i++) {
			struct cn_topo_link *l = &m.topo->links[i];

			if (m.topo->vertices[l->a].is_switch && m.topo->vertices[l->b].is_switch) {
				l->channels = cases[k].channels;
			}
		}
		assert_int_equal(cn_tree_make(m.topo, m.topo->hosts, m.topo->nhosts, CN_TOPO_NONE,
					      &m.tree, &err),
				 COLLNET_OK);
		layout(&m);
		run_exchange(&m, &phases);
		check_circuits(&m);
		assert_int_equal(phases, cases[k].phases);
		done(&m);
	}
}

/* Long chains of switches: two hosts at its ends, one, and a host at each switch. */
static void exchange__chain(void **state)
{
	struct cn_fattree *x;
	struct cn_tree *tree;
	struct cn_topo *topo;
	uint32_t ends[2], n = 1500, *to = need(2 * (size_t)n, sizeof(*to));

	(void)state;
	st_chain(n, &topo);
	ends[0] = topo->hosts[0];
	ends[1] = topo->hosts[n - 1];
	for (uint32_t hosts = 1; hosts <= 2; hosts++) {
		assert_int_equal(cn_tree_make(topo, ends, hosts, CN_TOPO_NONE, &tree, NULL),
				 COLLNET_OK);
		assert_int_equal(cn_fattree_new(tree, &x, NULL), COLLNET_OK);
		assert_int_equal(x->phases, hosts - 1);
		cn_fattree_free(x);
		cn_tree_free(tree);
	}
	assert_int_equal(cn_tree_make(topo, topo->hosts, n, CN_TOPO_NONE, &tree, NULL), COLLNET_OK);
	assert_int_equal(cn_fattree_new(tree, &x, NULL), COLLNET_OK);
	assert_int_equal(x->phases, n * (n - 1) / 2); /* one host against the rest, n - 1 times */
	assert_int_equal(cn_fattree_node(x, n - 1, to, to + n, NULL), COLLNET_OK);
	for (uint32_t i = 0; i < n - 1; i++) {
		assert_true(to[i] < x->phases && to[n + i] < x->phases);
	}
	cn_fattree_free(x);
	cn_tree_free(tree);
	cn_topo_free(topo);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scatter_furthest__n_plus_1_steps),
		cmocka_unit_test(scatter_furthest__other_order_is_slower),
		cmocka_unit_test(gather_nearest__n_plus_1_steps),
		cmocka_unit_test(multinode__flooding_n_plus_1_steps),
		cmocka_unit_test(multinode_turns__n_plus_2_log_n_minus_2_steps),
		cmocka_unit_test(multinode_times__no_queues),
		cmocka_unit_test(multinode__one_flood_cannot_be_as_good),
		cmocka_unit_test(multinode__random_trees),
		cmocka_unit_test(exchange__cbft_steps),
		cmocka_unit_test(exchange__ebft_steps),
		cmocka_unit_test(exchange__any_capacities_eq_2),
		cmocka_unit_test(exchange__lower_links_limit),
		cmocka_unit_test(exchange__random_trees),
		cmocka_unit_test(exchange__any_order_of_lines),
		cmocka_unit_test(exchange__regular_trees),
		cmocka_unit_test(exchange__chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
