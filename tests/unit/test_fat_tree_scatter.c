/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scatter furthest first and gather nearest first: n + 1 steps, as Dimopoulos and Dimakopoulos,
 * Communications in Binary Fat Trees, have it; counted by stepping packets (packet_stepper.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fat_tree.h"

/* The messages of the root's schedule, one a step in its order; their number. */
static uint32_t scatter_packets(const struct fat_tree *m, uint32_t root, struct st_packet *p)
{
	struct cn_sched s = { 0 };
	uint32_t n = 0;

	fat_tree_plan(m, CN_OP_SCATTER, "furthest", root, root, &s);
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
	for (uint32_t levels = 1; levels <= FAT_TREE_LEVELS; levels++) {
		struct fat_tree m = fat_tree_binary(levels, NULL);
		uint32_t n = 1u << levels;
		struct st_packet *p = fat_tree_alloc(n, sizeof(*p));

		for (uint32_t root = 0; root < n; root += 1 + n / 8) {
			struct st_result r;

			assert_int_equal(scatter_packets(&m, root, p), n - 1);
			r = st_run(m.tree, p, n - 1, NULL);
			assert_int_equal(r.delivered, n - 1);
			assert_int_equal(r.steps, n == 2 ? 2 : n + 1);
			assert_int_equal(r.waits, 0);
		}
		free(p);
		fat_tree_done(&m);
	}
}

/* The same messages nearest first: the order is what makes it n + 1. */
static void scatter_furthest__other_order_is_slower(void **state)
{
	struct fat_tree m = fat_tree_binary(5, NULL);
	struct st_packet p[32];

	(void)state;
	assert_int_equal(scatter_packets(&m, 0, p), 31);
	for (uint32_t i = 0; i < 31; i++) {
		p[i].start = 31 - i;
	}
	assert_int_equal(st_run(m.tree, p, 31, NULL).steps, 31 + 9);
	fat_tree_done(&m);
}

/* The order in which the root's schedule receives, and who waits for whom, from the senders'. */
static void gather_order(const struct fat_tree *m, uint32_t root, uint32_t *order)
{
	uint32_t n = m->tree->nhosts, k = 0;
	struct cn_sched s = { 0 };

	fat_tree_plan(m, CN_OP_GATHER, "nearest", root, root, &s);
	for (uint32_t i = 0; i < s.n; i++) {
		if (s.actions[i].kind == CN_ACT_RECV) {
			assert_int_equal(s.actions[i].phase, k);
			order[k++] = s.actions[i].peer;
		}
	}
	assert_int_equal(k, n - 1);
	for (uint32_t phase = 0; phase < n - 1; phase += 1 + n / 16) {
		uint32_t i = 0;

		fat_tree_plan(m, CN_OP_GATHER, "nearest", root, order[phase], &s);
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
	for (uint32_t levels = 1; levels <= FAT_TREE_LEVELS; levels++) {
		struct fat_tree m = fat_tree_binary(levels, NULL);
		uint32_t n = 1u << levels, root = n / 3, *order = fat_tree_alloc(n, sizeof(*order));
		struct st_packet *p = fat_tree_alloc(n, sizeof(*p));
		uint64_t *arrived = fat_tree_alloc(n, sizeof(*arrived));
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
		fat_tree_done(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scatter_furthest__n_plus_1_steps),
		cmocka_unit_test(scatter_furthest__other_order_is_slower),
		cmocka_unit_test(gather_nearest__n_plus_1_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
