/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The k-ary trees of broadcasts: every directed link has one sender, and no tree is lower, by
 * comparison with all trees of small teams.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/plan/random.h"
#include "bcast_team.h"

/* ---- one sender a link ---------------------------------------------------------------------- */

/* Builds; every node is reached; at most `kids` children; every directed link has one sender. */
static void one_sender(const struct bcast_team *t, uint32_t root, uint32_t kids)
{
	uint32_t *sender = calloc(2 * (size_t)t->tree->n, sizeof(*sender));
	uint32_t *path = calloc(2 * (size_t)t->tree->height + 1, sizeof(*path));
	struct cn_bcast b;

	assert_true(sender && path);
	assert_int_equal(cn_bcast_kary_tree(&t->l, root, kids, &b, NULL), COLLNET_OK);
	for (uint32_t v = 0; v < b.n; v++) {
		uint32_t up = v, steps = 0, n;

		assert_true(b.nchildren[v] <= kids);
		while (up != root && steps++ <= b.n) {
			up = b.parent[up];
		}
		assert_int_equal(up, root);
		if (v == root) {
			continue;
		}
		n = cn_tree_path(t->tree, b.parent[v], v, path);
		while (n-- > 0) {
			assert_true(sender[path[n]] == 0 || sender[path[n]] == b.parent[v] + 1);
			sender[path[n]] = b.parent[v] + 1;
		}
	}
	cn_bcast_done(&b);
	free(sender);
	free(path);
}

static void cn_bcast_kary_tree__every_link_has_one_sender(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++) {
		struct bcast_team t;

		bcast_team(&t, bcast_random_topo(1 + bcast_below(40), 2 + bcast_below(60)), 1);
		for (uint32_t kids = 1; kids <= 8; kids++) {
			one_sender(&t, bcast_below(t.l.nnodes), kids);
		}
		bcast_team_done(&t);
	}
}

/* On one switch there is no contention: as many as can be had by then. With two children a node,
 * served after one and two phases, that is 1 + f(d - 1) + f(d - 2). */
static void cn_bcast_kary_tree__one_switch_is_optimal(void **state)
{
	(void)state;
	for (uint32_t kids = 1; kids <= 8; kids++) {
		uint64_t reach[64] = { 1 };

		for (uint32_t d = 1; d < 64; d++) {
			reach[d] = 1;
			for (uint32_t c = 1; c <= kids && c <= d; c++) {
				reach[d] += reach[d - c];
			}
		}
		for (uint32_t n = 1; n <= 60; n += 1 + n / 8) {
			char text[16];
			struct bcast_team t;
			uint32_t d = 0;

			while (reach[d] < n) {
				d++;
			}
			snprintf(text, sizeof(text), "%u", n);
			bcast_team(&t, bcast_shape(text), 1);
			assert_int_equal(bcast_height(&t, bcast_below(n), kids), d);
			bcast_team_done(&t);
		}
	}
}

/* All trees by brute force: the fewest phases for the interval first .. last of a depth-first
 * order, every link having one sender. used[] counts which sender a link has. */
struct brute {
	const struct cn_tree *t;
	uint32_t n, kids, root, best;
	uint32_t parent[8], phase[8], sent[8];
	uint32_t sender[64];
};

static void brute(struct brute *x, uint32_t reached, uint32_t latest)
{
	uint32_t path[32];

	if (latest >= x->best) {
		return;
	}
	if (reached == x->n) {
		x->best = latest;
		return;
	}
	/* In the order of phases: the next message goes at `latest` or later. */
	for (uint32_t u = 0; u < x->n; u++) {
		for (uint32_t v = 0; v < x->n && x->phase[u] != UINT32_MAX; v++) {
			uint32_t from = x->phase[u] + 1, k, old[32], links;

			if (x->phase[v] != UINT32_MAX) {
				continue;
			}
			links = cn_tree_path(x->t, u, v, path);
			for (k = 0; k < links; k++) {
				if (x->sender[path[k]] != 0 && x->sender[path[k]] != u + 1) {
					break;
				}
			}
			if (k < links) {
				continue;
			}
			for (uint32_t slot = from; slot < from + x->kids && slot < x->best;
			     slot++) {
				if (slot < latest || (x->sent[u] >> (slot - from) & 1)) {
					continue;
				}
				for (k = 0; k < links; k++) {
					old[k] = x->sender[path[k]];
					x->sender[path[k]] = u + 1;
				}
				x->sent[u] |= 1u << (slot - from);
				x->phase[v] = slot;
				brute(x, reached + 1, slot);
				x->phase[v] = UINT32_MAX;
				x->sent[u] &= ~(1u << (slot - from));
				for (k = 0; k < links; k++) {
					x->sender[path[k]] = old[k];
				}
			}
		}
	}
}

/* How far the trees are from the lowest ones that there are, hosts in any order. */
static void cn_bcast_kary_tree__against_all_trees(void **state)
{
	uint32_t same = 0, all = 0, worst = 0;

	(void)state;
	for (int i = 0; i < 120; i++) {
		struct bcast_team t;
		struct brute x = { .kids = 2 };
		uint32_t mine;

		bcast_team(&t, bcast_random_topo(5, i < 10 ? 7 : 6), 1);
		x.n = t.l.nnodes;
		x.t = t.tree;
		x.root = bcast_below(x.n);
		x.best = 2 * x.n;
		memset(x.phase, 0xff, sizeof(x.phase));
		/* The root has it before phase 1; here phases begin at 1. */
		x.phase[x.root] = 0;
		brute(&x, 1, 0);
		mine = bcast_height(&t, x.root, 2);
		assert_true(mine >= x.best);
		assert_true(mine <= x.best + 2);
		all++;
		same += mine == x.best;
		worst = mine - x.best > worst ? mine - x.best : worst;
		bcast_team_done(&t);
	}
	printf("lowest possible: %u of %u trees; others up to %u phases higher\n", same, all,
	       worst);
	assert_true(same * 10 >= all * 8);
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* A deep network and a large team: the chain where the search would be too long. */
static void cn_bcast_kary_tree__large(void **state)
{
	struct cn_topo_random r = {
		.hosts = 4000, .switches = 800, .degree = 4, .seed = bcast_seed
	};
	struct cn_topo *topo;
	struct bcast_team t;

	(void)state;
	assert_int_equal(cn_topo_random(&r, &topo, NULL), COLLNET_OK);
	bcast_team(&t, topo, 1);
	one_sender(&t, 17, 2);
	one_sender(&t, 3999, 3);
	bcast_team_done(&t);
}

/* On a long row of switches, with a host each, the search ends early. */
static void cn_bcast_kary_tree__row_of_switches(void **state)
{
	const uint32_t n = 500;
	const size_t size = n * 80;
	char *text = malloc(size);
	size_t len = 0;
	struct cn_topo *topo;
	struct bcast_team t;
	struct cn_bcast b;

	(void)state;
	assert_non_null(text);
	for (uint32_t i = 0; i < n; i++) {
		len += (size_t)snprintf(text + len, size - len,
					"switch s%u\nhost h%u\nlink h%u s%u rate 1gbit\n", i, i, i,
					i);
	}
	for (uint32_t i = 1; i < n; i++) {
		len += (size_t)snprintf(text + len, size - len, "link s%u s%u rate 1gbit\n", i - 1,
					i);
	}
	assert_int_equal(cn_topo_parse(text, len, "row", &topo, NULL), COLLNET_OK);
	bcast_team(&t, topo, 1);
	for (uint32_t kids = 2; kids <= 8; kids++) {
		one_sender(&t, 100, kids);
		assert_int_equal(cn_bcast_kary_tree(&t.l, 100, kids, &b, NULL), COLLNET_OK);
		for (uint32_t v = 0; v < n; v++) {
			assert_uint_in_range(b.nchildren[v], 0, 1); /* a chain */
		}
		cn_bcast_done(&b);
	}
	bcast_team_done(&t);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_bcast_kary_tree__every_link_has_one_sender),
		cmocka_unit_test(cn_bcast_kary_tree__one_switch_is_optimal),
		cmocka_unit_test(cn_bcast_kary_tree__against_all_trees),
		cmocka_unit_test(cn_bcast_kary_tree__large),
		cmocka_unit_test(cn_bcast_kary_tree__row_of_switches),
	};

	printf("seed %llu\n", (unsigned long long)bcast_seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
