/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all in phases (sched/alltoall/aapc.h) on random trees, compared with brute force
 * (aapc_oracle.h); that both ends of a synchronisation agree; and the planner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/plan/check.h"
#include "sched_fixture.h"
#include "aapc_oracle.h"

/* ---- brute force -------------------------------------------------------------------------- */

static void cn_aapc__random_trees(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)aapc_seed);
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t hosts = round % 20 == 19 ? 24 + aapc_below(AAPC_HOSTS - 23)
						  : 1 + aapc_below(16);
		uint32_t switches = 1 + aapc_below(9);
		struct aapc_net n;

		aapc_net_random(&n, hosts, switches, round % 4);
		aapc_check_all(&n);
		aapc_net_free(&n);
	}
}

/* Wherever the tree that one begins with is rooted, all is the same. */
static void cn_aapc_new__whatever_the_root(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)aapc_seed);
	for (uint32_t round = 0; round < 40; round++) {
		struct aapc_net n;

		aapc_net_random(&n, 2 + aapc_below(14), 1 + aapc_below(9), round % 4);
		for (uint32_t v = 0; v < n.topo->nvertices; v++) {
			struct cn_tree *tree;
			struct cn_aapc *a;

			if (!n.topo->vertices[v].is_switch) {
				continue;
			}
			assert_int_equal(0, cn_tree_make(n.topo, n.topo->hosts, n.topo->nhosts, v,
							 &tree, NULL));
			assert_int_equal(cn_aapc_new(tree, &a, NULL), COLLNET_OK);
			assert_int_equal(cn_aapc_root(tree), cn_aapc_root(n.tree));
			assert_int_equal(a->phases, n.a->phases);
			assert_memory_equal(a->node, n.a->node, a->n * sizeof(*a->node));
			assert_memory_equal(a->first, n.a->first, (a->k + 1) * sizeof(*a->first));
			cn_aapc_free(a);
			cn_tree_free(tree);
		}
		aapc_net_free(&n);
	}
}

/* One host: nothing. Two: one phase both ways, also over switches without other branches. */
static void cn_aapc_new__one_and_two_hosts(void **state)
{
	struct aapc_net n;

	(void)state;
	aapc_net_shape(&n, "1");
	assert_int_equal(n.a->phases, 0);
	assert_int_equal(n.a->k, 0);
	aapc_check_all(&n);
	aapc_net_free(&n);
	for (uint32_t chain = 1; chain < 4; chain++) {
		aapc_net_random(&n, 2, chain, 1);
		assert_int_equal(n.a->phases, 1);
		assert_int_equal(cn_aapc_between(n.a, 0, 1).phase, 0);
		assert_int_equal(cn_aapc_between(n.a, 1, 0).phase, 0);
		aapc_check_all(&n);
		aapc_net_free(&n);
	}
}

/* ---- both ends, where brute force is too much --------------------------------------------- */

/* What x's messages wait for, its senders tell; and whom x tells, they wait. Returns the number. */
static uint32_t check_ends(const struct cn_aapc *a, struct cn_aapc_sync *one,
			   struct cn_aapc_sync *other, uint32_t x)
{
	const struct cn_aapc_message *list, *back;
	uint32_t n, m, total = 0;

	for (uint32_t y = 0; y < a->n; y++) {
		struct cn_aapc_message mine;

		if (x == y) {
			continue;
		}
		mine = cn_aapc_between(a, x, y);
		assert_int_equal(cn_aapc_before(one, &mine, &list, &n, NULL), COLLNET_OK);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_not_equal(list[i].from, x);
			assert_true(list[i].phase < mine.phase);
			assert_int_equal(cn_aapc_after(other, &list[i], &back, &m, NULL), 0);
			assert_true(aapc_listed(back, m, &mine));
		}
		total += n;
		assert_int_equal(cn_aapc_after(one, &mine, &list, &n, NULL), COLLNET_OK);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(list[i].phase > mine.phase);
			assert_int_equal(cn_aapc_before(other, &list[i], &back, &m, NULL), 0);
			assert_true(aapc_listed(back, m, &mine));
		}
		total += n;
	}
	return total;
}

static void check_ends_of(const char *shape, uint32_t phases)
{
	struct cn_aapc_sync *one, *other;
	struct aapc_net n;

	aapc_net_shape(&n, shape);
	assert_int_equal(n.a->phases, phases);
	/* Half of the effort decides as much as any: nothing is left undecided, by far. */
	assert_int_equal(cn_aapc_sync_new(n.a, CN_AAPC_EFFORT / 2, &one, NULL), COLLNET_OK);
	assert_int_equal(cn_aapc_sync_new(n.a, UINT32_MAX, &other, NULL), COLLNET_OK);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(check_ends(n.a, one, other, aapc_below(n.a->n)) > 0);
	}
	cn_aapc_sync_free(one);
	cn_aapc_sync_free(other);
	aapc_net_free(&n);
}

static void cn_aapc_before__both_ends_agree_on_1024_hosts(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)aapc_seed);
	check_ends_of("16x64", 16 * (1024 - 16));
	check_ends_of("128x8", 128 * (1024 - 128));
	check_ends_of("512x2", 512 * 512);
}

/* An effort that is too small keeps edges that are redundant: more, but the same at both ends. */
static void cn_aapc_before__both_ends_agree_without_effort(void **state)
{
	uint32_t more = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)aapc_seed);
	for (uint32_t round = 0; round < 30; round++) {
		struct aapc_net n;

		aapc_net_random(&n, 10 + aapc_below(14), 2 + aapc_below(6), round % 4);
		for (uint32_t effort = 0; effort < 6; effort++) {
			struct cn_aapc_sync *one, *other;

			assert_int_equal(cn_aapc_sync_new(n.a, effort, &one, NULL), COLLNET_OK);
			assert_int_equal(cn_aapc_sync_new(n.a, effort, &other, NULL), COLLNET_OK);
			for (uint32_t x = 0; x < n.a->n; x++) {
				uint32_t kept = check_ends(n.a, one, other, x);
				uint32_t exact = check_ends(n.a, n.sync, n.sync_too, x);

				assert_true(kept >= exact);
				more += kept - exact;
			}
			cn_aapc_sync_free(one);
			cn_aapc_sync_free(other);
		}
		aapc_net_free(&n);
	}
	assert_true(more > 0); /* or the test tests nothing */
}

/* ---- the planner -------------------------------------------------------------------------- */

static const struct cn_algorithm *row(void)
{
	return cn_algorithm_find(CN_OP_ALLTOALL, "aapc");
}

static void cn_plan_alltoall_aapc__right_and_checked(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)aapc_seed);
	for (uint32_t round = 0; round < 4 * W_NODES; round++) {
		struct cn_plan p = { .op = CN_OP_ALLTOALL,
				     .algorithm = row()->id,
				     .bytes = round % 9 };
		struct cn_check_report report;
		struct cn_err err = { 0 };
		struct cn_check *c;
		struct sched_fixture *w;
		struct w_team t;

		w_team_init(&t, 1 + round % W_NODES, (enum w_placement)(round / W_NODES),
			    &aapc_seed);
		w = w_new(&t, &p);
		w_check(w, true);
		assert_int_equal(cn_check_new(&t.layout, &p, &c, &err), COLLNET_OK);
		for (uint32_t b = 0; b < t.layout.nnodes; b++) {
			assert_int_equal(w_sched(w, b)->order, CN_ORDER_IN_TURN);
			assert_int_equal(cn_check_add(c, b, w_sched(w, b), &err), COLLNET_OK);
		}
		if (cn_check_run(c, row()->guarantees, &report, &err)) {
			fail_msg("%s", err.text);
		}
		w_run(w, &aapc_seed, 50, W_NOBODY);
		for (uint32_t b = 0; b < t.layout.nnodes; b++) {
			assert_true(w_complete(w, b));
		}
		w_check_data(w);
		cn_check_free(c);
		w_free(w);
		w_team_done(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_aapc__random_trees),
		cmocka_unit_test(cn_aapc_new__whatever_the_root),
		cmocka_unit_test(cn_aapc_new__one_and_two_hosts),
		cmocka_unit_test(cn_aapc_before__both_ends_agree_on_1024_hosts),
		cmocka_unit_test(cn_aapc_before__both_ends_agree_without_effort),
		cmocka_unit_test(cn_plan_alltoall_aapc__right_and_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
