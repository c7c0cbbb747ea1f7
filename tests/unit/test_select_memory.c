/* SPDX-License-Identifier: BSD-2-Clause */
/* A node without memory does not select another algorithm than the other nodes: it selects none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sched/select.h"

/* Linked with --wrap: allocations of the predictions are counted, and one of them fails. */
static int64_t allocations, failing = -1;
static bool elsewhere; /* in the topology's windows, which are small without memory */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool fails(void)
{
	return !elsewhere && allocations++ == failing;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

#define WINDOW(type, function, parameters, arguments)                                              \
	type __real_##function parameters;                                                         \
	type __wrap_##function parameters;                                                         \
	type __wrap_##function parameters                                                          \
	{                                                                                          \
		type window;                                                                       \
                                                                                                   \
		elsewhere = true;                                                                  \
		window = __real_##function arguments;                                              \
		elsewhere = false;                                                                 \
		return window;                                                                     \
	}

WINDOW(uint32_t, cn_topo_window,
       (const struct cn_topo *t, const uint32_t *hosts, uint32_t n, uint32_t directions,
	uint32_t *at),
       (t, hosts, n, directions, at))
WINDOW(uint32_t, cn_topo_exchange_window,
       (const struct cn_topo *t, const uint32_t *hosts, uint32_t n, uint64_t time, uint32_t bytes),
       (t, hosts, n, time, bytes))
WINDOW(bool, cn_topo_holds_two, (const struct cn_topo *t, const uint32_t *hosts, uint32_t n),
       (t, hosts, n))
WINDOW(uint32_t, cn_topo_link_window, (const struct cn_topo *t, const uint32_t *hosts, uint32_t n),
       (t, hosts, n))
WINDOW(uint32_t, cn_topo_burst, (const struct cn_topo *t, const uint32_t *hosts, uint32_t n),
       (t, hosts, n))

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

static void select__without_memory(void **state)
{
	static const char *const shapes[] = { "16", "8x2", "3x5" };
	uint32_t numbers[17];

	(void)state;
	for (uint32_t i = 0; i < 17; i++) {
		numbers[i] = i;
	}
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		struct cn_layout l = { .node_of = numbers, .first = numbers, .ranks = numbers };
		struct cn_topo *topo;
		struct cn_tree *tree;

		assert_int_equal(cn_topo_shape(shapes[s], 100000000, 43, 1000000000, 43, &topo,
					       NULL),
				 0);
		l.nranks = l.nnodes = topo->nhosts;
		assert_int_equal(cn_tree_make(topo, topo->hosts, l.nnodes, CN_TOPO_NONE, &tree,
					      NULL),
				 0);
		assert_true(all_operations(&l) > 0);
		l.tree = tree;
		assert_true(all_operations(&l) > 100);
		cn_tree_free(tree);
		cn_topo_free(topo);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(select__without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
