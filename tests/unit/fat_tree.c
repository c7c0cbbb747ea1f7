/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fat_tree.h"

void *fat_tree_alloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	assert_non_null(p);
	return p;
}

void fat_tree_layout(struct fat_tree *m)
{
	uint32_t n = m->tree->nhosts;

	m->numbers = fat_tree_alloc(n + 1, sizeof(*m->numbers));
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

struct fat_tree fat_tree_binary(uint32_t levels, const uint32_t *channels)
{
	struct fat_tree m = { 0 };

	st_binary(levels, channels, &m.topo, &m.tree);
	fat_tree_layout(&m);
	return m;
}

void fat_tree_done(struct fat_tree *m)
{
	cn_tree_free(m->tree);
	cn_topo_free(m->topo);
	free(m->numbers);
}

void fat_tree_plan(const struct fat_tree *m, enum cn_op_kind op, const char *name, uint32_t root,
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

void fat_tree_assert_all_received(const uint8_t *heard, uint32_t n)
{
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = 0; b < n; b++) {
			assert_int_equal(heard[(size_t)a * n + b], a != b);
		}
	}
}
