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
#include "sched/allgather/ring.h"

static uint64_t seed = 20070711;

/* LR3's longest path; the ring is free of contention and as long as cn_ring_longest() says. */
static uint32_t lr3(const struct ro_tree *r)
{
	struct cn_err err = { 0 };
	struct cn_topo *topo;
	struct cn_tree *tree;
	static uint32_t ring[RO_HOSTS];
	uint32_t longest;

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
			if (i == 0) {
				print_message("seed %llu\n", (unsigned long long)before);
			}
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
		{ 600, 12, 0, 8, 20, 2 }, { 600, 16, 0, 8, 0, 2 },  { 300, 20, 4, 3, 5, 2 },
		{ 300, 24, 3, 4, 0, 3 },  { 150, 32, 6, 8, 10, 2 }, { 60, 48, 12, 8, 10, 4 },
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

/* ---- switches with many neighbours, and large trees ---------------------------------------- */

/* A hub with hosts; `arms` chains of `near` switches, `arms2` of `far`, and a host at each end. */
static void make_hub(struct ro_tree *r, uint32_t hosts, uint32_t arms, uint32_t near,
		     uint32_t arms2, uint32_t far)
{
	static uint32_t parent[RO_SWITCHES], at[RO_SWITCHES];
	uint32_t n = 1;

	memset(at, 0, sizeof(at));
	at[0] = hosts;
	for (uint32_t i = 0; i < arms + arms2; i++) {
		for (uint32_t k = 0; k < (i < arms ? near : far); k++, n++) {
			parent[n] = k == 0 ? 0 : n - 1;
		}
		at[n - 1] = 1;
	}
	assert_true(ro_make(r, n, parent, at));
}

/*
 * Between two hosts at the ends of arms there are both arms and the hub. A host of the hub can
 * stand between two arms, and a short arm between two long ones.
 */
static void cn_ring_lr3__hubs(void **state)
{
	static const uint32_t degrees[] = { 2, 3, 16, 60, 100 };
	struct ro_tree r;

	(void)state;
	for (size_t i = 0; i < sizeof(degrees) / sizeof(degrees[0]); i++) {
		uint32_t k = degrees[i];

		make_hub(&r, k, k, 3, 0, 0);
		assert_int_equal(lr3(&r), 4);
		make_hub(&r, k - 1, k, 3, 0, 0);
		assert_int_equal(lr3(&r), 7);
		make_hub(&r, 0, k, 2, k, 4);
		assert_int_equal(lr3(&r), 7);
		make_hub(&r, 0, k, 2, k + 1, 4);
		assert_int_equal(lr3(&r), 9);
		make_hub(&r, 1, k, 2, k + 1, 4);
		assert_int_equal(lr3(&r), 7);
	}
}

/* 16 or 60 subtrees with several pairs of ends each, in a tree that is rooted elsewhere. */
static void cn_ring_lr3__choices_at_hubs(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 200; i++) {
		static uint32_t parent[RO_SWITCHES], hosts[RO_SWITCHES];
		uint32_t n = 6, degree = i % 2 ? 16 : 60;
		struct ro_tree r;

		memset(hosts, 0, sizeof(hosts));
		hosts[0] = 2; /* and a run to the hub, switch 5 */
		for (uint32_t k = 1; k < n; k++) {
			parent[k] = k - 1;
		}
		for (uint32_t k = 0; k < degree; k++) {
			ro_random(&r, 1 + (uint32_t)(cn_random(&seed) % 16), 3, 3, 5, 2, &seed);
			for (uint32_t s = 0; s < r.nswitches; s++) {
				parent[n + s] = s == 0 ? 5 : n + r.parent[s];
			}
			for (uint32_t h = 0; h < r.nhosts; h++) {
				hosts[n + r.at[h]]++;
			}
			n += r.nswitches;
		}
		assert_true(ro_make(&r, n, parent, hosts));
		assert_uint_in_range(lr3(&r), 4, 40);
	}
}

/* 1,000 switches with 5,000 hosts: never worse than LR1, and 2 exactly where LR2 is. */
static void cn_ring_lr3__large_trees(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 0; i < 12; i++) {
		static uint32_t ring[RO_HOSTS];
		uint32_t reach = i % 3 == 0 ? 4 : 0, got, by_lr1;
		struct cn_topo *topo;
		struct cn_tree *tree;
		struct ro_tree r;

		ro_random(&r, 1000, reach, 60, i < 6 ? 100 : 30, 9, &seed);
		got = lr3(&r);
		ro_read(&r, &topo, &tree);
		cn_ring_lr1(tree, ring);
		by_lr1 = ro_longest(&r, ring);
		assert_int_equal(cn_ring_lr2(tree, ring, NULL) == COLLNET_OK, got <= 2);
		print_message("%u hosts: LR1 %u, LR3 %u\n", r.nhosts, by_lr1, got);
		assert_true(got < by_lr1);
		ro_drop(topo, tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_ring_lr3__is_the_best_of_all_rings),
		cmocka_unit_test(cn_ring_lr3__is_algorithm_3_on_all_small_trees),
		cmocka_unit_test(cn_ring_lr3__is_algorithm_3_on_random_trees),
		cmocka_unit_test(cn_ring_lr3__hubs),
		cmocka_unit_test(cn_ring_lr3__choices_at_hubs),
		cmocka_unit_test(cn_ring_lr3__large_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
