/* SPDX-License-Identifier: BSD-2-Clause */
/* LR3 against all rings there are, against the published Algorithm 3, and on large trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring_oracle.h"
#include "sched/ring.h"

static uint64_t seed = 20070711;

/* LR3's longest path; the ring is free of contention and as long as cn_ring_longest() says. */
static uint32_t lr3(const struct ro_tree *r)
{
	struct cn_err err = { 0 };
	struct cn_topo *topo;
	struct cn_tree *tree;
	uint32_t ring[RO_HOSTS], longest;

	ro_read(r, &topo, &tree);
	memset(ring, 0xff, sizeof(ring));
	if (cn_ring_lr3(tree, ring, &err)) {
		fail_msg("%s", err.text);
	}
	assert_true(ro_free_of_contention(r, ring));
	longest = ro_longest(r, ring);
	assert_int_equal(cn_ring_longest(tree, ring, NULL), longest);
	ro_drop(topo, tree);
	return longest;
}

static void same_as(const struct ro_tree *r, uint32_t got, uint32_t want, const char *whose)
{
	if (got == want) {
		return;
	}
	for (uint32_t i = 0; i < r->nswitches; i++) {
		print_error("s%u below s%u:", i, r->parent[i]);
		for (uint32_t h = 0; h < r->nhosts; h++) {
			if (r->at[h] == i) {
				print_error(" h%u", h);
			}
		}
		print_error("\n");
	}
	fail_msg("longest path %u, but %u by %s", got, want, whose);
}

static void against_all_rings(const struct ro_tree *r, void *arg)
{
	uint32_t *seen = arg;

	if (r->nhosts <= 7) {
		same_as(r, lr3(r), ro_shortest(r), "trying all rings");
		++*seen;
	}
}

static void cn_ring_lr3__is_the_best_of_all_rings(void **state)
{
	uint32_t seen = 0;

	(void)state;
	ro_every(4, 3, against_all_rings, &seen);
	assert_true(seen > 1000);
	for (int i = 0; i < 2000; i++) {
		uint64_t before = seed;
		struct ro_tree r;

		ro_random(&r, 2 + (uint32_t)(cn_random(&seed) % 9), 0, 8, 30, 2, &seed);
		if (r.nhosts <= 8) {
			print_message(i == 0 ? "seed %llu\n" : "", (unsigned long long)before);
			same_as(&r, lr3(&r), ro_shortest(&r), "trying all rings");
		}
	}
}

static void against_algorithm3(const struct ro_tree *r, void *arg)
{
	uint32_t *seen = arg;

	same_as(r, lr3(r), ro_algorithm3(r), "Algorithm 3");
	++*seen;
}

/* The oracles agree too. */
static void oracles(const struct ro_tree *r, void *arg)
{
	(void)arg;
	if (r->nhosts <= 6) {
		same_as(r, ro_algorithm3(r), ro_shortest(r), "trying all rings");
	}
}

static void cn_ring_lr3__is_algorithm_3_on_all_small_trees(void **state)
{
	uint32_t seen = 0;

	(void)state;
	ro_every(4, 2, oracles, NULL);
	ro_every(4, 3, against_algorithm3, &seen);
	ro_every(5, 1, against_algorithm3, &seen);
	assert_int_equal(seen, 3 + 15 + 2 * 63 + 6 * 255 + 1 + 3 + 2 * 7 + 6 * 15 + 24 * 31);
}

/* Sparse hosts, long runs of switches and high degrees: where children have several fronts. */
static void cn_ring_lr3__is_algorithm_3_on_random_trees(void **state)
{
	static const struct {
		uint32_t trees, switches, reach, degree, percent, most;
	} kind[] = {
		{ 600, 12, 0, 8, 20, 2 },  { 600, 16, 0, 8, 0, 2 },  { 300, 20, 4, 3, 5, 2 },
		{ 300, 24, 3, 4, 0, 3 },   { 150, 32, 6, 8, 10, 2 }, { 60, 48, 12, 8, 10, 4 },
	};
	uint32_t lengths[RO_SWITCHES] = { 0 };

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (size_t k = 0; k < sizeof(kind) / sizeof(kind[0]); k++) {
		for (uint32_t i = 0; i < kind[k].trees; i++) {
			struct ro_tree r;
			uint32_t got;

			ro_random(&r, kind[k].switches, kind[k].reach, kind[k].degree,
				  kind[k].percent, kind[k].most, &seed);
			got = lr3(&r);
			same_as(&r, got, ro_algorithm3(&r), "Algorithm 3");
			lengths[got]++;
		}
	}
	for (uint32_t i = 0; i < RO_SWITCHES; i++) {
		if (lengths[i] > 0) {
			print_message("%u rings of %u\n", lengths[i], i);
		}
	}
	assert_true(lengths[3] > 0 && lengths[5] > 0 && lengths[7] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_ring_lr3__is_the_best_of_all_rings),
		cmocka_unit_test(cn_ring_lr3__is_algorithm_3_on_all_small_trees),
		cmocka_unit_test(cn_ring_lr3__is_algorithm_3_on_random_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
