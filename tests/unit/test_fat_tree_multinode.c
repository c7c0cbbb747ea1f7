/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multinode broadcasts of Dimopoulos and Dimakopoulos, Communications in Binary Fat Trees: step
 * counts and queues, counted by stepping packets (packet_stepper.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fat_tree.h"
#include "multinode.h"

/* Section 4, Theorem 2: everybody floods in step 1; queues, n + 1 steps (two hosts: 2). */
static void multinode__flooding_n_plus_1_steps(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= FAT_TREE_LEVELS; levels++) {
		struct fat_tree m = fat_tree_binary(levels, NULL);
		uint32_t n = 1u << levels;
		struct st_packet *p = fat_tree_alloc(n, sizeof(*p));
		uint8_t *heard = fat_tree_alloc((size_t)n * n, 1);
		struct st_result r;

		for (uint32_t i = 0; i < n; i++) {
			p[i] = (struct st_packet){ i, ST_EVERYBODY, ST_EVERYBODY, 1, 0 };
		}
		r = st_run(m.tree, p, n, heard);
		fat_tree_assert_all_received(heard, n);
		assert_int_equal(r.steps, n == 2 ? 2 : n + 1);
		assert_true(n < 4 || r.waits > 0);
		free(heard);
		free(p);
		fat_tree_done(&m);
	}
}

static struct st_result run_turns(const struct cn_tree *t)
{
	uint32_t n = t->nhosts, count;
	uint8_t *heard = fat_tree_alloc((size_t)n * n, 1);
	struct cn_turn *turns;
	struct st_packet *p;
	struct st_result r;
	struct cn_err err = { 0 };

	if (cn_multinode_turns(t, &turns, &count, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	p = fat_tree_alloc(count, sizeof(*p));
	for (uint32_t i = 0; i < count; i++) {
		p[i] = (struct st_packet){ turns[i].node, ST_EVERYBODY, turns[i].top, turns[i].step,
					   0 };
	}
	r = st_run(t, p, count, heard);
	fat_tree_assert_all_received(heard, n);
	free(turns);
	free(p);
	free(heard);
	return r;
}

static struct st_result run_times(const struct cn_tree *t)
{
	uint32_t n = t->nhosts;
	uint8_t *heard = fat_tree_alloc((size_t)n * n, 1);
	uint64_t *times = fat_tree_alloc(n, sizeof(*times));
	struct st_packet *p = fat_tree_alloc(n, sizeof(*p));
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
	fat_tree_assert_all_received(heard, n);
	free(times);
	free(p);
	free(heard);
	return r;
}

/* Section 4.1: no queues at all, n + 2 log n - 2 steps. */
static void multinode_turns__n_plus_2_log_n_minus_2_steps(void **state)
{
	(void)state;
	for (uint32_t levels = 1; levels <= FAT_TREE_LEVELS; levels++) {
		struct fat_tree m = fat_tree_binary(levels, NULL);
		struct st_result r = run_turns(m.tree);

		assert_int_equal(r.steps, (1u << levels) + 2 * levels - 2);
		assert_int_equal(r.waits, 0);
		fat_tree_done(&m);
	}
}

/* One flood a host, without queues: 3 n - 3 steps; n = 4 and a star reach the lower bound n + 1. */
static void multinode_times__no_queues(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (uint32_t levels = 1; levels <= FAT_TREE_LEVELS; levels++) {
		struct fat_tree m = fat_tree_binary(levels, NULL);
		uint32_t n = 1u << levels;
		struct st_result r = run_times(m.tree);

		assert_int_equal(r.waits, 0);
		assert_int_equal(r.steps, n == 2 ? 2 : n == 4 ? 5 : 3 * n - 3);
		fat_tree_done(&m);
	}
	for (uint32_t n = 1; n <= 40; n++) {
		struct fat_tree m = { 0 };

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
	struct fat_tree m = fat_tree_binary(3, NULL);
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
	fat_tree_done(&m);
}

static void multinode__random_trees(void **state)
{
	uint64_t seed = 94704;

	(void)state;
	printf("seed %llu\n", (unsigned long long)seed);
	for (uint32_t k = 0; k < 300; k++) {
		uint32_t n = 1 + (uint32_t)(cn_random(&seed) % 40);
		uint32_t switches = 1 + (uint32_t)(cn_random(&seed) % 30);
		struct fat_tree m = { 0 };

		st_random(n, switches, 1, &seed, &m.topo, &m.tree);
		assert_int_equal(run_turns(m.tree).waits, 0);
		assert_int_equal(run_times(m.tree).waits, 0);
		cn_tree_free(m.tree);
		cn_topo_free(m.topo);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multinode__flooding_n_plus_1_steps),
		cmocka_unit_test(multinode_turns__n_plus_2_log_n_minus_2_steps),
		cmocka_unit_test(multinode_times__no_queues),
		cmocka_unit_test(multinode__one_flood_cannot_be_as_good),
		cmocka_unit_test(multinode__random_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
