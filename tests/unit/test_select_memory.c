/* SPDX-License-Identifier: BSD-2-Clause */
/* A node without memory does not select another algorithm than the other nodes, or plan another
 * schedule: it selects none, and plans none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/select.h"
#include "tests/unit/failing_memory_impl.h"

/* Returns how many allocations a selection makes. */
static int64_t select_without_memory(const struct cn_layout *l, const struct cn_plan *p)
{
	const struct cn_algorithm *right = cn_select(l, p), *chosen;
	int64_t n = 0;

	do {
		allocations = 0;
		failing = n++;
		chosen = cn_select(l, p);
		failing = -1;
		if (chosen != NULL && chosen != right) {
			fail_msg("%s of %llu bytes: %s, not %s, when allocation %lld fails",
				 cn_op_name(p->op), (unsigned long long)p->bytes, chosen->name,
				 right->name, (long long)n);
		}
	} while (allocations >= n);
	return n - 1;
}

static bool same_action(const struct cn_action *a, const struct cn_action *b)
{
	return a->kind == b->kind && a->dep == b->dep && a->dep_on == b->dep_on &&
	       a->peer == b->peer && a->phase == b->phase && a->after == b->after &&
	       a->len == b->len && cn_span_same(&a->src, &b->src) &&
	       cn_span_same(&a->dst, &b->dst) && cn_span_same(&a->right, &b->right);
}

static bool same_schedule(const struct cn_sched *a, const struct cn_sched *b)
{
	bool same = a->n == b->n && a->phases == b->phases && a->order == b->order;

	for (uint32_t i = 0; same && i < a->n; i++) {
		same = same_action(&a->actions[i], &b->actions[i]);
	}
	return same;
}

/* Each allocation of the plan of a node fails in turn. */
static void plan_without_memory(const struct cn_layout *l, const struct cn_plan *p, uint32_t me)
{
	struct cn_sched right = { 0 };
	struct cn_err err = { 0 };
	int64_t n = 0;
	const bool usable = cn_sched_plan(l, p, me, &right, &err) == COLLNET_OK;

	assert_true(usable || err.code != COLLNET_ENOMEM);
	do {
		const int64_t before = live;
		struct cn_sched s = { 0 };
		int rc;

		allocations = 0;
		failing = n++;
		rc = cn_sched_plan(l, p, me, &s, &err);
		failing = -1;
		if (rc == COLLNET_OK ? !same_schedule(&s, &right)
				     : usable && (rc != COLLNET_ENOMEM ||
						  strstr(err.text, "memory") == NULL)) {
			fail_msg("%s by %s of %llu bytes on node %u: %d when allocation %lld fails",
				 cn_op_name(p->op), cn_algorithm_by_id(p->op, p->algorithm)->name,
				 (unsigned long long)p->bytes, me, rc, (long long)n);
		}
		cn_sched_reset(&s);
		assert_int_equal(live, before);
	} while (allocations >= n);
	cn_sched_reset(&right);
}

/* All algorithms. */
static void all_schedules(const struct cn_layout *l)
{
	static const uint64_t sizes[] = { 0, 600, 30000, 100000 };
	size_t rows;
	const struct cn_algorithm *row = cn_algorithms(&rows);

	for (size_t i = 0; i < rows * 4; i++) {
		const struct cn_plan p = { .op = row[i / 4].op,
					   .algorithm = row[i / 4].id,
					   .bytes = row[i / 4].op == CN_OP_BARRIER ? 0
										   : sizes[i % 4] };

		plan_without_memory(l, &p, 0);
		plan_without_memory(l, &p, l->nnodes - 1);
	}
}

static int64_t all_operations(const struct cn_layout *l)
{
	static const uint64_t sizes[] = { 0, 8, 1000, 16384, 1000000 };
	int64_t n = 0;

	for (int op = CN_OP_ALLTOALL; op < CN_OP_KINDS; op++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			const struct cn_plan p = { .op = (enum cn_op_kind)op, .bytes = sizes[i] };

			n += select_without_memory(l, &p);
		}
	}
	return n;
}

static void on_all_networks(void (*check)(const struct cn_layout *l))
{
	static const char *const shapes[] = { "16", "8x2", "3x5" };
	uint32_t numbers[17];

	for (uint32_t i = 0; i < 17; i++) {
		numbers[i] = i;
	}
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		struct cn_layout l = { .node_of = numbers, .first = numbers, .ranks = numbers };
		struct cn_topo *topo;
		struct cn_tree *tree;

		assert_int_equal(cn_topo_shape(shapes[s], 100000000, 20, 1000000000, 10, &topo,
					       NULL),
				 0);
		l.nranks = l.nnodes = topo->nhosts;
		assert_int_equal(cn_tree_make(topo, topo->hosts, l.nnodes, CN_TOPO_NONE, &tree,
					      NULL),
				 0);
		check(&l);
		l.tree = tree;
		check(&l);
		cn_tree_free(tree);
		cn_topo_free(topo);
	}
}

static void select_all(const struct cn_layout *l)
{
	assert_true(all_operations(l) > (l->tree != NULL ? 100 : 0));
}

static void select__without_memory(void **state)
{
	(void)state;
	on_all_networks(select_all);
}

static void plan__without_memory(void **state)
{
	(void)state;
	on_all_networks(all_schedules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(select__without_memory),
		cmocka_unit_test(plan__without_memory),
	};

	counted = true;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
