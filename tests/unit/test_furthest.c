/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scatter and gather on any tree: the order against distances counted pair by pair, the schedules
 * through the checker and on real buffers; chains, parts of a cluster, one and two nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/check.h"
#include "sched/rooted/furthest.h"
#include "sched_fixture.h"
#include "packet_stepper.h"

static uint64_t seed = 1995;

static uint32_t links(const struct cn_tree *t, uint32_t a, uint32_t b)
{
	return cn_tree_hops(t, a, b) + 1;
}

/* Everybody but the root once, by decreasing distance, then in preorder. */
static void check_order(const struct cn_tree *t, uint32_t root)
{
	uint32_t n = t->nhosts, order[64];
	bool seen[64] = { false };

	assert_true(n <= 64);
	assert_int_equal(cn_furthest_first(t, n, root, order, NULL), COLLNET_OK);
	for (uint32_t i = 0; i + 1 < n; i++) {
		assert_true(order[i] < n && order[i] != root && !seen[order[i]]);
		seen[order[i]] = true;
		if (i > 0) {
			uint32_t before = links(t, root, order[i - 1]);
			uint32_t now = links(t, root, order[i]);

			assert_true(before > now ||
				    (before == now && t->host[order[i - 1]] < t->host[order[i]]));
		}
	}
}

static void cn_furthest_first__order(void **state)
{
	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < 300; k++) {
		uint32_t n = 1 + cn_below(&seed, 64), switches = 1 + cn_below(&seed, 1 + k / 4);
		struct cn_topo *topo;
		struct cn_tree *tree;

		st_random(n, switches, 2, &seed, &topo, &tree);
		check_order(tree, cn_below(&seed, n));
		cn_tree_free(tree);
		cn_topo_free(topo);
	}
}

static void cn_furthest_first__without_a_tree_by_number(void **state)
{
	uint32_t order[5], want[] = { 0, 1, 3, 4 };

	(void)state;
	assert_int_equal(cn_furthest_first(NULL, 5, 2, order, NULL), COLLNET_OK);
	assert_memory_equal(order, want, sizeof(want));
	assert_int_equal(cn_furthest_first(NULL, 1, 0, order, NULL), COLLNET_OK);
}

/* The checker's verdict on a whole team's schedules. */
static int verdict(const struct w_team *t, const struct cn_plan *p, unsigned guarantees,
		   struct cn_check_report *report, struct cn_err *err)
{
	struct cn_sched s = { 0 };
	struct cn_check *c;
	int rc;

	assert_int_equal(cn_check_new(&t->layout, p, &c, err), COLLNET_OK);
	for (uint32_t node = 0; node < t->layout.nnodes; node++) {
		if (cn_sched_plan(&t->layout, p, node, &s, err) != COLLNET_OK ||
		    cn_check_add(c, node, &s, err) != COLLNET_OK) {
			fail_msg("%s", err->text);
		}
	}
	rc = cn_check_run(c, guarantees, report, err);
	cn_check_free(c);
	cn_sched_reset(&s);
	return rc;
}

/* Every guarantee of the rows, on random trees, teams and roots: phases = n - 1, the bound. */
static void check_everywhere(enum cn_op_kind op, const char *name)
{
	const struct cn_algorithm *a = cn_algorithm_find(op, name);

	assert_non_null(a);
	assert_int_equal(a->guarantees,
			 CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED | CN_GUARANTEE_OPTIMAL);
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < 300; k++) {
		uint32_t n = 1 + k % W_NODES;
		struct cn_plan p = { .op = op,
				     .algorithm = a->id,
				     .bytes = 1 + cn_below(&seed, 900) };
		struct cn_check_report report;
		struct cn_err err = { 0 };
		struct w_team t;

		w_team_init(&t, n, (enum w_placement)(k / W_NODES % W_PLACEMENTS), &seed);
		p.root = cn_below(&seed, t.layout.nranks);
		if (verdict(&t, &p, a->guarantees, &report, &err) != COLLNET_OK) {
			fail_msg("%s", err.text);
		}
		assert_int_equal(report.phases, n - 1);
		assert_int_equal(report.unordered, 0);
		assert_int_equal(report.syncs, op == CN_OP_GATHER && n > 2 ? n - 2 : 0);
		w_team_done(&t);
	}
}

static void scatter_furthest__keeps_its_promises(void **state)
{
	(void)state;
	check_everywhere(CN_OP_SCATTER, "furthest");
}

static void gather_nearest__keeps_its_promises(void **state)
{
	(void)state;
	check_everywhere(CN_OP_GATHER, "nearest");
}

/* Without the synchronisations a gather has no order, and the checker sees it. */
static void gather_nearest__needs_its_synchronisations(void **state)
{
	struct cn_plan p = { .op = CN_OP_GATHER, .bytes = 9 };
	struct cn_check_report report;
	struct cn_err err = { 0 };
	struct cn_sched s = { 0 };
	struct cn_check *c;
	struct w_team t;

	(void)state;
	p.algorithm = cn_algorithm_find(CN_OP_GATHER, "nearest")->id;
	w_team_init(&t, 6, W_ONE, &seed);
	assert_int_equal(cn_check_new(&t.layout, &p, &c, &err), COLLNET_OK);
	for (uint32_t node = 0; node < 6; node++) {
		uint32_t kept = 0;

		assert_int_equal(cn_sched_plan(&t.layout, &p, node, &s, &err), COLLNET_OK);
		for (uint32_t i = 0; i < s.n; i++) {
			if (s.actions[i].kind != CN_ACT_WAIT && s.actions[i].len > 0) {
				s.actions[kept++] = s.actions[i];
			}
		}
		s.n = kept;
		assert_int_equal(cn_check_add(c, node, &s, &err), COLLNET_OK);
	}
	assert_int_equal(cn_check_run(c, CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED, &report, &err),
			 COLLNET_EINVAL);
	assert_true(report.unordered > 0);
	cn_check_free(c);
	cn_sched_reset(&s);
	w_team_done(&t);
}

/*
 * The order is the best one: with packets of one step, no permutation of the messages ends before
 * furthest first, from any root; all orders of small teams are tried.
 */
static void cn_furthest_first__no_order_is_better(void **state)
{
	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < 60; k++) {
		uint32_t n = 2 + cn_below(&seed, 5), root = cn_below(&seed, n), order[6],
			 at[6] = { 0 };
		uint32_t best = UINT32_MAX, ours = 0;
		struct cn_topo *topo;
		struct cn_tree *tree;

		st_random(n, 1 + cn_below(&seed, 8), 1, &seed, &topo, &tree);
		assert_int_equal(cn_furthest_first(tree, n, root, order, NULL), COLLNET_OK);
		for (uint32_t i = 0; i + 1 < n; i++) {
			uint32_t end = i + links(tree, root, order[i]);

			ours = end > ours ? end : ours;
		}
		/* All permutations, as swaps counted in mixed radix. */
		for (uint32_t done = 0; !done;) {
			uint32_t try[6], last = 0, i;

			memcpy(try, order, sizeof(try));
			for (i = 0; i + 1 < n; i++) {
				uint32_t x = try[i];

				try[i] = try[i + at[i]];
				try[i + at[i]] = x;
				x = i + links(tree, root, try[i]);
				last = x > last ? x : last;
			}
			best = last < best ? last : best;
			for (i = 0; i + 1 < n && ++at[i] == n - 1 - i; i++) {
				at[i] = 0;
			}
			done = i + 1 == n;
		}
		assert_int_equal(ours, best);
		cn_tree_free(tree);
		cn_topo_free(topo);
	}
}

/* 20,000 switches in a row: linear, and no recursion. */
static void cn_furthest_first__long_chain(void **state)
{
	uint32_t n = 20000, *order = malloc(n * sizeof(*order));
	struct cn_topo *topo;
	struct cn_tree *tree;

	(void)state;
	assert_non_null(order);
	st_chain(n, &topo);
	assert_int_equal(cn_tree_make(topo, topo->hosts, n, CN_TOPO_NONE, &tree, NULL), COLLNET_OK);
	assert_int_equal(cn_furthest_first(tree, n, 0, order, NULL), COLLNET_OK);
	for (uint32_t i = 0; i < n - 1; i++) {
		assert_int_equal(order[i], n - 1 - i);
	}
	cn_tree_free(tree);
	cn_topo_free(topo);
	free(order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_furthest_first__order),
		cmocka_unit_test(cn_furthest_first__without_a_tree_by_number),
		cmocka_unit_test(cn_furthest_first__no_order_is_better),
		cmocka_unit_test(cn_furthest_first__long_chain),
		cmocka_unit_test(scatter_furthest__keeps_its_promises),
		cmocka_unit_test(gather_nearest__keeps_its_promises),
		cmocka_unit_test(gather_nearest__needs_its_synchronisations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
