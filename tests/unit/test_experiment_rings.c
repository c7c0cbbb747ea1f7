/* SPDX-License-Identifier: BSD-2-Clause */
/* Figure 11 of Faraj, Patarasuk and Yuan, at a few points, and the table's form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/papers/rings.h"
#include "tools/plan/span.h"

#define SEED 11u

/* 50 clusters a point, as in the figure; the size in the row, the tree in the column. */
static void experiment_rings__figure_11(void **state)
{
	static const uint32_t machines[] = { 160, 320, 640, 1280 };
	struct experiment_rings_point p[4][3]; /* by breadth, depth, random */
	struct cn_err err = { 0 };

	(void)state;
	print_message("seed %u\n", SEED);
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 3; k++) {
			if (experiment_rings_point(machines[i], (enum cn_tree_kind)k, 50, SEED,
						   &p[i][k], &err)) {
				fail_msg("%s", err.text);
			}
			print_message("%4u machines, tree %d: LR1 %.2f (%u), LR3 %.2f (%u)\n",
				      p[i][k].machines, k, p[i][k].lr1_mean, p[i][k].lr1_max,
				      p[i][k].lr3_mean, p[i][k].lr3_max);
			assert_int_equal(p[i][k].switches, machines[i] / 5);
			/* (b): about 3, whatever the size and the construction (2 where
			 * Theorem 2 holds, as it does for some of the small ones) */
			assert_true(p[i][k].lr3_mean > 2.7 && p[i][k].lr3_mean < 3.3);
			/* (a): much more by LR1, and more for larger clusters */
			assert_true(p[i][k].lr1_mean > p[i][k].lr3_mean + 1);
			assert_true(i == 0 || p[i][k].lr1_mean > p[i - 1][k].lr1_mean);
		}
		/* (a): breadth-first much better than random, that much better than depth-first */
		assert_true(p[i][2].lr1_mean > 1.2 * p[i][0].lr1_mean);
		assert_true(p[i][1].lr1_mean > 1.2 * p[i][2].lr1_mean);
	}
}

static void experiment_rings__one_seed_one_result(void **state)
{
	struct experiment_rings_point a, b, c;

	(void)state;
	assert_int_equal(experiment_rings_point(160, CN_TREE_DFS, 10, 1, &a, NULL), COLLNET_OK);
	assert_int_equal(experiment_rings_point(160, CN_TREE_DFS, 10, 1, &b, NULL), COLLNET_OK);
	assert_int_equal(experiment_rings_point(160, CN_TREE_DFS, 10, 2, &c, NULL), COLLNET_OK);
	assert_memory_equal(&a.lr1_mean, &b.lr1_mean, sizeof(a.lr1_mean));
	assert_true(a.lr1_mean > c.lr1_mean || a.lr1_mean < c.lr1_mean);
}

static void experiment_rings__table(void **state)
{
	char *text = NULL, *line, *rest;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	uint32_t lines = 0, largest = 0;

	(void)state;
	assert_non_null(f);
	assert_int_equal(experiment_rings(SEED, f, NULL), COLLNET_OK);
	assert_int_equal(fclose(f), 0);
	line = strtok_r(text, "\n", &rest);
	assert_string_equal(line, "machines,switches,tree,lr1_mean,lr1_max,lr3_mean,lr3_max");
	while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
		unsigned machines, switches, lr1_max, lr3_max;
		double lr1, lr3;
		char tree[8];

		assert_int_equal(sscanf(line, "%u,%u,%7[a-z],%lf,%u,%lf,%u", &machines, &switches,
					tree, &lr1, &lr1_max, &lr3, &lr3_max),
				 7);
		assert_true(lr3 <= lr1 && lr1 <= lr1_max && lr3 <= lr3_max);
		largest = machines > largest ? machines : largest;
		lines++;
	}
	free(text);
	assert_true(largest >= 640);
	assert_int_equal(lines % 3, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(experiment_rings__figure_11),
		cmocka_unit_test(experiment_rings__one_seed_one_result),
		cmocka_unit_test(experiment_rings__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
