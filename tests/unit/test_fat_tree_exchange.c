/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fat-tree total exchange of Dimopoulos and Dimakopoulos, Communications in Binary Fat Trees,
 * section 5: the paper's step counts, counted by stepping the packets of real schedules
 * (packet_stepper.h) for 2 to 1,024 hosts; and its phases on any tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sched/alltoall/fattree.h"
#include "fat_tree.h"

/* ---- total exchange ------------------------------------------------------------------------ */

/* The tree gets the root that the exchange chooses. */
static void choose_root(struct fat_tree *m)
{
	struct cn_fattree *x = NULL;
	struct cn_tree *tree = NULL;
	uint32_t n = m->tree->nhosts, *hosts = fat_tree_alloc(n, sizeof(*hosts));

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
static uint32_t compare_plan(const struct fat_tree *m, uint32_t me, const uint32_t *to)
{
	struct cn_sched s = { 0 };
	uint32_t sends = 0, phases;

	fat_tree_plan(m, CN_OP_ALLTOALL, "fattree", 0, me, &s);
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
	uint32_t x = t->host[from], top = cn_tree_lca(t, x, t->host[to]);

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
static uint32_t exchange_packets(const struct fat_tree *m, struct st_packet **out, uint32_t *phases)
{
	uint32_t n = m->tree->nhosts, k = 0, *to = fat_tree_alloc(2 * (size_t)n, sizeof(*to));
	struct st_packet *p = fat_tree_alloc((size_t)n * (n - 1), sizeof(*p));
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
static struct st_result run_exchange(const struct fat_tree *m, uint32_t *phases)
{
	uint32_t n = m->tree->nhosts, count;
	uint8_t *heard = fat_tree_alloc((size_t)n * n, 1);
	struct st_packet *p;
	struct st_result r;

	count = exchange_packets(m, &p, phases);
	r = st_run(m->tree, p, count, heard);
	fat_tree_assert_all_received(heard, n);
	assert_int_equal(r.waits, 0);
	free(heard);
	free(p);
	return r;
}

/* Section 5, c_i = 1: (n^2 - 1) / 3 + 2 log n - 1 steps. */
static void exchange__cbft_steps(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= FAT_TREE_LEVELS; levels++) {
		struct fat_tree m = fat_tree_binary(levels, NULL);
		uint32_t n = 1u << levels, phases;
		struct st_result r = run_exchange(&m, &phases);

		assert_int_equal(phases, (n * n - 1) / 3);
		assert_int_equal(r.steps, (n * n - 1) / 3 + 2 * levels - 1);
		fat_tree_done(&m);
	}
}

/* Section 5, c_i = 2^(i - 1): n + 2 log n - 2 steps. */
static void exchange__ebft_steps(void **state)
{
	uint32_t channels[FAT_TREE_LEVELS];

	(void)state;
	for (uint32_t i = 0; i < FAT_TREE_LEVELS; i++) {
		channels[i] = 1u << i;
	}
	for (uint32_t levels = 1; levels <= FAT_TREE_LEVELS; levels++) {
		struct fat_tree m = fat_tree_binary(levels, channels);
		uint32_t n = 1u << levels, phases;
		struct st_result r = run_exchange(&m, &phases);

		assert_int_equal(phases, n - 1);
		assert_int_equal(r.steps, n + 2 * levels - 2);
		fat_tree_done(&m);
	}
}

/* Section 5, Eq. 2, capacities that do not decrease: those that grow at most twofold a level. */
static void exchange__any_capacities_eq_2(void **state)
{
	static const uint32_t patterns[][FAT_TREE_LEVELS] = {
		{ 1, 1, 2, 2, 4, 4, 8, 8, 16, 16 },	   { 1, 2, 2, 2, 2, 2, 2, 2, 2, 2 },
		{ 1, 1, 2, 3, 3, 5, 7, 7, 11, 13 },	   { 1, 2, 3, 3, 3, 6, 12, 13, 13, 20 },
		{ 1, 2, 4, 7, 14, 20, 20, 33, 50, 99 },	   { 1, 2, 3, 6, 11, 21, 42, 81, 160, 300 },
		{ 3, 3, 4, 8, 16, 32, 64, 128, 256, 512 }, /* a host has one port, whatever c_1 */
	};

	(void)state;
	for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]); k++) {
		for (uint32_t levels = 1;
		     levels <= (k == 2 ? FAT_TREE_LEVELS : FAT_TREE_LEVELS - 3); levels++) {
			struct fat_tree m = fat_tree_binary(levels, patterns[k]);
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
			fat_tree_done(&m);
		}
	}
}

/* Where a level has more than twice the channels of the one below, that one is the limit. */
static void exchange__lower_links_limit(void **state)
{
	static const uint32_t channels[] = { 1, 1, 4 };
	struct fat_tree m = fat_tree_binary(3, channels);
	uint32_t phases;

	(void)state;
	/* Eq. 2 would say 16 / 4 for the last term; 8 messages cross a link of level 2. */
	assert_int_equal(run_exchange(&m, &phases).steps, 1 + 4 + 8 + 5);
	fat_tree_done(&m);
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
static void check_circuits(const struct fat_tree *m)
{
	uint32_t n = m->tree->nhosts,
		 *path = fat_tree_alloc(2 * (size_t)m->tree->height + 1, sizeof(*path));
	struct phase_use *use = fat_tree_alloc((size_t)n * n * (2 * (size_t)m->tree->height + 1),
					       sizeof(*use));
	uint32_t count = 0, run = 0;
	struct cn_sched s = { 0 };

	for (uint32_t me = 0; me < n; me++) {
		fat_tree_plan(m, CN_OP_ALLTOALL, "fattree", 0, me, &s);
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
	uint32_t *end = fat_tree_alloc(t->n, sizeof(*end)), most = 0;

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
		struct fat_tree m = { 0 };

		st_random(n, switches, channels, &seed, &m.topo, &m.tree);
		choose_root(&m);
		fat_tree_layout(&m);
		run_exchange(&m, &phases);
		check_circuits(&m);
		assert_int_equal(phases, bound_of(m.tree));
		assert_int_equal(cn_fattree_new(m.tree, &x, NULL), COLLNET_OK);
		for (uint32_t v = 0; v < m.tree->n; v++) {
			methods[x->share[v].method]++;
		}
		cn_fattree_free(x);
		fat_tree_done(&m);
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
	uint32_t phases, *order = fat_tree_alloc(2 * (size_t)n, sizeof(*order));
	struct fat_tree m = { 0 };
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
	fat_tree_layout(&m);
	fat_tree_plan(&m, CN_OP_ALLTOALL, "fattree", 0, 0, &s);
	phases = s.phases;
	cn_sched_reset(&s);
	fat_tree_done(&m);
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
		struct fat_tree m = { 0 };
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
		fat_tree_layout(&m);
		run_exchange(&m, &phases);
		check_circuits(&m);
		assert_int_equal(phases, cases[k].phases);
		fat_tree_done(&m);
	}
}

/* Long chains of switches: two hosts at its ends, one, and a host at each switch. */
static void exchange__chain(void **state)
{
	struct cn_fattree *x;
	struct cn_tree *tree;
	struct cn_topo *topo;
	uint32_t ends[2], n = 1500, *to = fat_tree_alloc(2 * (size_t)n, sizeof(*to));

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
