/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings of Faraj, Patarasuk and Yuan: LR1 and LR2, Theorem 2, Figure 5, the topologies of
 * Figure 8, and the allgather on all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring_oracle.h"
#include "sched/allgather/ring.h"
#include "sched/sched.h"

static uint64_t seed = 20070713;

static void cn_ring_lr1__is_free_of_contention(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 2000; i++) {
		uint32_t ring[RO_HOSTS];
		struct cn_topo *topo;
		struct cn_tree *tree;
		struct ro_tree r;

		ro_random(&r, 1 + (uint32_t)(cn_random(&seed) % 40), i % 7, 8, 50, 5, &seed);
		ro_read(&r, &topo, &tree);
		cn_ring_lr1(tree, ring);
		assert_true(ro_free_of_contention(&r, ring));
		assert_int_equal(cn_ring_longest(tree, ring, NULL), ro_longest(&r, ring));
		ro_drop(topo, tree);
	}
}

/* The check above can fail: two neighbours of a ring that are exchanged across a switch. */
static void cn_ring_lr1__contention_would_be_seen(void **state)
{
	static const uint32_t good[] = { 0, 1, 2, 3 }, bad[] = { 0, 2, 1, 3 },
			      twice[] = { 0, 1, 1, 3 };
	struct ro_tree r;

	(void)state;
	assert_true(ro_make(&r, 2, (uint32_t[]){ 0, 0 }, (uint32_t[]){ 2, 2 }));
	assert_true(ro_free_of_contention(&r, good));
	assert_false(ro_free_of_contention(&r, bad));
	assert_false(ro_free_of_contention(&r, twice));
}

/* Figure 5: a cluster of 8 machines, whose ring has 4 hops by LR1 and 2 by LR2. */
static void cn_ring_lr2__figure_5(void **state)
{
	uint32_t ring[8], at;
	struct cn_topo *topo;
	struct cn_tree *tree;
	struct ro_tree r;

	(void)state;
	assert_true(ro_make(&r, 4, (uint32_t[]){ 0, 0, 1, 2 }, (uint32_t[]){ 2, 2, 2, 2 }));
	ro_read(&r, &topo, &tree);
	cn_ring_lr1(tree, ring);
	assert_true(ro_free_of_contention(&r, ring));
	assert_int_equal(ro_longest(&r, ring), 4);
	assert_int_equal(cn_ring_longest(tree, ring, &at), 4);
	assert_int_equal(ring[at], 7); /* from machine 7 to machine 0, as in Figure 5 (a) */
	assert_int_equal(ring[(at + 1) % 8], 0);
	assert_int_equal(cn_ring_lr2(tree, ring, NULL), COLLNET_OK);
	assert_true(ro_free_of_contention(&r, ring));
	assert_int_equal(ro_longest(&r, ring), 2);
	ro_drop(topo, tree);
}

/* ---- Theorem 2 ---------------------------------------------------------------------------- */

/* Its condition, on the switches that the hosts need. */
static bool theorem_2(const struct ro_tree *r)
{
	uint32_t hosts[8] = { 0 }, below[8] = { 0 }, neighbours[8] = { 0 };

	for (uint32_t h = 0; h < r->nhosts; h++) {
		hosts[r->at[h]]++;
		for (uint32_t s = r->at[h];; s = r->parent[s]) {
			below[s]++;
			if (s == 0) {
				break;
			}
		}
	}
	for (uint32_t s = 1; s < r->nswitches; s++) {
		if (below[s] > 0 && below[s] < r->nhosts) {
			neighbours[s]++;
			neighbours[r->parent[s]]++;
		}
	}
	for (uint32_t s = 0; s < r->nswitches; s++) {
		if (hosts[s] < neighbours[s]) {
			return false;
		}
	}
	return true;
}

struct theorem_count {
	uint32_t yes, no;
};

static void both_ways(const struct ro_tree *r, void *arg)
{
	struct theorem_count *count = arg;
	uint32_t ring[RO_TRIED], best;
	struct cn_err err = { 0 };
	struct cn_topo *topo;
	struct cn_tree *tree;

	if (r->nhosts > 8) {
		return;
	}
	best = ro_shortest(r);
	ro_read(r, &topo, &tree);
	if (theorem_2(r)) {
		assert_true(best <= 2);
		assert_int_equal(cn_ring_lr2(tree, ring, &err), COLLNET_OK);
		assert_true(ro_free_of_contention(r, ring));
		assert_int_equal(ro_longest(r, ring), best);
		count->yes++;
	} else {
		assert_true(best > 2);
		assert_int_equal(cn_ring_lr2(tree, ring, &err), COLLNET_ETOPO);
		assert_non_null(strstr(err.text, "lr3"));
		count->no++;
	}
	ro_drop(topo, tree);
}

/* By all rings of all trees of up to 4 switches with up to 3 hosts each, and of 5 with up to 2. */
static void cn_ring_lr2__theorem_2_both_ways(void **state)
{
	struct theorem_count count = { 0, 0 };

	(void)state;
	ro_every(4, 3, both_ways, &count);
	ro_every(5, 2, both_ways, &count);
	print_message("%u trees with rings of 2 hops, %u without\n", count.yes, count.no);
	assert_true(count.yes > 300 && count.no > 3000);
}

/* Larger trees that have as many hosts as switches around them, or one less somewhere. */
static void cn_ring_lr2__random_trees(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 500; i++) {
		uint32_t n = 2 + (uint32_t)(cn_random(&seed) % 40), ring[RO_HOSTS];
		uint32_t parent[40 + 2] = { 0 }, hosts[40 + 2] = { 0 };
		struct cn_err err = { 0 };
		struct cn_topo *topo;
		struct cn_tree *tree;
		struct ro_tree r;
		uint32_t poor = (uint32_t)(cn_random(&seed) % n);
		char name[16];

		for (uint32_t s = 1; s < n; s++) {
			parent[s] = (uint32_t)(cn_random(&seed) % s);
			hosts[s]++;
			hosts[parent[s]]++;
		}
		assert_true(ro_make(&r, n, parent, hosts));
		ro_read(&r, &topo, &tree);
		assert_int_equal(cn_ring_lr2(tree, ring, &err), COLLNET_OK);
		assert_true(ro_free_of_contention(&r, ring));
		assert_int_equal(ro_longest(&r, ring), 2);
		ro_drop(topo, tree);
		if (hosts[poor]-- < 2) {
			continue; /* a leaf, which is not needed then */
		}
		assert_true(ro_make(&r, n, parent, hosts));
		ro_read(&r, &topo, &tree);
		assert_int_equal(cn_ring_lr2(tree, ring, &err), COLLNET_ETOPO);
		snprintf(name, sizeof(name), "switch s%u ", poor);
		assert_non_null(strstr(err.text, name));
		ro_drop(topo, tree);
	}
}

/* ---- any team, any root ------------------------------------------------------------------- */

/* Whatever switch the tree is rooted at, and with hosts that are not of the team. */
static void cn_rings__do_not_depend_on_the_root(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 300; i++) {
		struct ro_tree all, team;
		uint32_t n = 2 + (uint32_t)(cn_random(&seed) % 8), ring[RO_HOSTS], hosts[RO_HOSTS];
		uint32_t two_hops = 0, best;
		struct cn_err err = { 0 };
		struct cn_topo *topo;
		struct cn_tree *tree;

		ro_random(&all, n, 0, 8, 60, 3, &seed);
		ro_read(&all, &topo, &tree);
		cn_tree_free(tree);
		team = all;
		team.nhosts = 0;
		for (uint32_t h = 0; h < all.nhosts; h++) {
			if (cn_random(&seed) % 3 > 0 || h == 0) {
				hosts[team.nhosts] = topo->hosts[h];
				team.at[team.nhosts++] = all.at[h];
			}
		}
		best = ro_algorithm3(&team);
		for (uint32_t root = 0; root <= n; root++) {
			uint32_t vertex = CN_TOPO_NONE;
			char name[16];

			snprintf(name, sizeof(name), "s%u", root);
			vertex = root < n ? cn_topo_find(topo, name) : CN_TOPO_NONE;
			assert_int_equal(cn_tree_make(topo, hosts, team.nhosts, vertex, &tree,
						      &err),
					 0);
			cn_ring_lr1(tree, ring);
			assert_true(ro_free_of_contention(&team, ring));
			if (cn_ring_lr2(tree, ring, &err) == COLLNET_OK) {
				assert_true(ro_free_of_contention(&team, ring));
				assert_int_equal(ro_longest(&team, ring), best);
				two_hops++;
			}
			assert_int_equal(cn_ring_lr3(tree, ring, &err), COLLNET_OK);
			assert_true(ro_free_of_contention(&team, ring));
			assert_int_equal(ro_longest(&team, ring), best);
			cn_tree_free(tree);
		}
		assert_int_equal(two_hops, best <= 2 ? n + 1 : 0);
		cn_topo_free(topo);
	}
}

static void cn_rings__one_two_and_three_hosts(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 3; n++) {
		for (uint32_t apart = 0; apart < 5; apart++) {
			/* A chain s0 .. of `apart` links between the first host and the others. */
			uint32_t hosts[8] = { 1 }, parent[8] = { 0, 0, 1, 2, 3 }, ring[3];
			uint32_t want = n == 1 ? 0 : apart + 1;
			struct cn_err err = { 0 };
			struct cn_topo *topo;
			struct cn_tree *tree;
			struct ro_tree r;

			hosts[apart] += n - 1;
			assert_true(ro_make(&r, apart + 1, parent, hosts));
			ro_read(&r, &topo, &tree);
			cn_ring_lr1(tree, ring);
			assert_int_equal(cn_ring_longest(tree, ring, NULL), want);
			assert_int_equal(cn_ring_lr3(tree, ring, &err), COLLNET_OK);
			assert_true(ro_free_of_contention(&r, ring));
			assert_int_equal(ro_longest(&r, ring), want);
			assert_int_equal(cn_ring_lr2(tree, ring, &err),
					 want <= 2 ? COLLNET_OK : COLLNET_ETOPO);
			ro_drop(topo, tree);
		}
	}
}

/* ---- Figure 8 ----------------------------------------------------------------------------- */

static void topology(char which, struct cn_topo **topo, struct cn_tree **tree)
{
	const char *source = getenv("COLLNET_SOURCE");
	struct cn_err err = { 0 };
	char path[4096];

	snprintf(path, sizeof(path), "%s/examples/topologies/rings-%c.topo",
		 source != NULL ? source : ".", which);
	if (cn_topo_read(path, topo, &err) ||
	    cn_tree_make(*topo, (*topo)->hosts, (*topo)->nhosts, CN_TOPO_NONE, tree, &err)) {
		fail_msg("%s", err.text);
	}
}

/* Messages of the ring on the busiest directed link. */
static uint32_t busiest(const struct cn_tree *t, const uint32_t *ring)
{
	uint32_t links[64], load[2 * 64] = { 0 }, most = 0;

	assert_true(t->n <= 64 && 2 * t->height <= 64);
	for (uint32_t i = 0; i < t->nhosts; i++) {
		uint32_t n = cn_tree_path(t, ring[i], ring[(i + 1) % t->nhosts], links);

		while (n-- > 0) {
			most = ++load[links[n]] > most ? load[links[n]] : most;
		}
	}
	return most;
}

/* Hops by LR1, LR2 and LR3 on topologies (a) - (f); (d) is that of Table 1. */
static void cn_rings__topologies_of_figure_8(void **state)
{
	static const struct {
		char name;
		uint32_t machines, lr1, lr2;
		bool by_number; /* whether the ring of machine numbers is free of contention */
	} want[] = {
		{ 'a', 16, 1, 1, true }, { 'b', 16, 2, 2, true }, { 'c', 16, 3, 2, true },
		{ 'd', 16, 4, 2, true }, { 'e', 32, 4, 2, true }, { 'f', 32, 4, 2, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		uint32_t ring[32];
		struct cn_topo *topo;
		struct cn_tree *tree;

		topology(want[i].name, &topo, &tree);
		assert_int_equal(tree->nhosts, want[i].machines);
		for (uint32_t k = 0; k < tree->nhosts; k++) {
			ring[k] = k;
		}
		assert_int_equal(busiest(tree, ring) == 1, want[i].by_number);
		cn_ring_lr1(tree, ring);
		assert_int_equal(busiest(tree, ring), 1);
		assert_int_equal(cn_ring_longest(tree, ring, NULL), want[i].lr1);
		for (uint32_t k = 0; k < tree->nhosts && want[i].name == 'e'; k++) {
			assert_int_equal(ring[k], k); /* LR1 is the ring of MPICH here */
		}
		assert_int_equal(cn_ring_lr2(tree, ring, NULL), COLLNET_OK);
		assert_int_equal(busiest(tree, ring), 1);
		assert_int_equal(cn_ring_longest(tree, ring, NULL), want[i].lr2);
		assert_int_equal(cn_ring_lr3(tree, ring, NULL), COLLNET_OK);
		assert_int_equal(busiest(tree, ring), 1);
		assert_int_equal(cn_ring_longest(tree, ring, NULL), want[i].lr2);
		ro_drop(topo, tree);
	}
}

/* ---- the allgather on them ---------------------------------------------------------------- */

/* A node sends to the next of the ring, hears from the one before, and needs n - 1 phases. */
static void check_plans(const struct cn_layout *l, const char *name, const uint32_t *ring)
{
	const struct cn_algorithm *a = cn_algorithm_find(CN_OP_ALLGATHER, name);
	struct cn_plan p = { .op = CN_OP_ALLGATHER, .algorithm = a->id, .bytes = 100 };
	uint32_t n = l->nnodes;
	struct cn_sched s = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		uint32_t sends = 0, receives = 0;

		assert_int_equal(cn_sched_plan(l, &p, ring[i], &s, NULL), COLLNET_OK);
		assert_int_equal(s.phases, n - 1);
		for (uint32_t k = 0; k < s.n; k++) {
			const struct cn_action *x = &s.actions[k];

			if (x->kind == CN_ACT_SEND) {
				assert_int_equal(x->peer, ring[(i + 1) % n]);
				assert_int_equal(x->phase, sends++);
				assert_int_equal(x->dst.offset, 100 * ring[(i + n - x->phase) % n]);
			} else if (x->kind == CN_ACT_RECV) {
				assert_int_equal(x->peer, ring[(i + n - 1) % n]);
				receives++;
			}
		}
		assert_int_equal(sends, n - 1);
		assert_int_equal(receives, n - 1);
	}
	cn_sched_reset(&s);
}

static void cn_plan_allgather_lr__goes_round_the_ring(void **state)
{
	uint32_t ranks[33], ring[32];

	(void)state;
	for (uint32_t i = 0; i <= 32; i++) {
		ranks[i] = i;
	}
	for (char which = 'a'; which <= 'f'; which++) {
		struct cn_topo *topo;
		struct cn_tree *tree;
		struct cn_layout l = { .node_of = ranks, .first = ranks, .ranks = ranks };

		topology(which, &topo, &tree);
		l.nranks = l.nnodes = tree->nhosts;
		l.tree = tree;
		check_plans(&l, "ring", ranks);
		cn_ring_lr1(tree, ring);
		check_plans(&l, "lr1", ring);
		assert_int_equal(cn_ring_lr2(tree, ring, NULL), COLLNET_OK);
		check_plans(&l, "lr2", ring);
		assert_int_equal(cn_ring_lr3(tree, ring, NULL), COLLNET_OK);
		check_plans(&l, "lr3", ring);
		ro_drop(topo, tree);
	}
}

static void cn_plan_allgather_lr__needs_the_network(void **state)
{
	static const uint32_t ranks[] = { 0, 1, 2 };
	struct cn_layout l = {
		.nranks = 2, .nnodes = 2, .node_of = ranks, .first = ranks, .ranks = ranks
	};

	(void)state;
	for (uint8_t id = 9; id <= 11; id++) {
		struct cn_plan p = { .op = CN_OP_ALLGATHER, .algorithm = id, .bytes = 1 };
		struct cn_sched s = { 0 };
		struct cn_err err = { 0 };

		assert_int_equal(cn_sched_plan(&l, &p, 0, &s, &err), COLLNET_ETOPO);
		assert_non_null(strstr(err.text, "topology"));
		cn_sched_reset(&s);
	}
}

/* 100,000 hosts, as a chain of switches and as one switch: no recursion, and all in place. */
static void cn_ring_lr1__of_100000_hosts(void **state)
{
	static uint32_t ring[100000];

	(void)state;
	for (uint32_t per_switch = 1; per_switch <= 100000; per_switch *= 316) {
		size_t n = 0, cap = (size_t)16 << 20;
		char *text = malloc(cap);
		struct cn_topo *topo;
		struct cn_tree *tree = NULL;
		struct cn_err err = { 0 };

		assert_non_null(text);
		for (uint32_t h = 0; h < 100000 && n + 128 < cap; h++) {
			uint32_t s = h / per_switch;

			if (h % per_switch == 0) {
				n += (size_t)snprintf(text + n, cap - n, "switch s%u\n", s);
				if (s > 0) {
					n += (size_t)snprintf(text + n, cap - n,
							      "link s%u s%u rate none\n", s, s - 1);
				}
			}
			n += (size_t)snprintf(text + n, cap - n,
					      "host h%u\nlink h%u s%u rate none\n", h, h, s);
		}
		if (per_switch == 1) { /* as many vertices as there may be: 200,000 */
			assert_true(n + 128 < cap);
		}
		if (cn_topo_parse(text, n, "large", &topo, &err) ||
		    cn_tree_make(topo, topo->hosts, 100000, CN_TOPO_NONE, &tree, &err)) {
			fail_msg("%s", err.text);
		}
		free(text);
		cn_ring_lr1(tree, ring);
		for (uint32_t h = 0; h < 100000; h++) {
			assert_int_equal(ring[h], h); /* down the chain, and back at once */
		}
		assert_int_equal(cn_ring_longest(tree, ring, NULL), (100000 - 1) / per_switch + 1);
		if (cn_ring_lr3(tree, ring, &err)) {
			fail_msg("%s", err.text);
		}
		/* One host a switch: out over the odd ones, back over the even ones. */
		assert_int_equal(cn_ring_longest(tree, ring, NULL), per_switch == 1 ? 3 : 2);
		ro_drop(topo, tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_ring_lr1__is_free_of_contention),
		cmocka_unit_test(cn_ring_lr1__contention_would_be_seen),
		cmocka_unit_test(cn_ring_lr2__figure_5),
		cmocka_unit_test(cn_ring_lr2__theorem_2_both_ways),
		cmocka_unit_test(cn_ring_lr2__random_trees),
		cmocka_unit_test(cn_rings__do_not_depend_on_the_root),
		cmocka_unit_test(cn_rings__one_two_and_three_hosts),
		cmocka_unit_test(cn_rings__topologies_of_figure_8),
		cmocka_unit_test(cn_plan_allgather_lr__goes_round_the_ring),
		cmocka_unit_test(cn_plan_allgather_lr__needs_the_network),
		cmocka_unit_test(cn_ring_lr1__of_100000_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
