/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/topo/tree: the team's tree in preorder, against brute force on the topology's own links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topo/tree.h"
#include "topo_text.h"
#include "tools/plan/random.h"
#include "tools/plan/span.h"

#define NONE CN_TOPO_NONE
#define SEED 20260808u
#define MAX  128u /* vertices of the small ones */

static struct cn_tree *make(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			    uint32_t root)
{
	struct cn_tree *tree = NULL;
	struct cn_err err = { 0 };

	if (cn_tree_make(t, hosts, n, root, &tree, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return tree;
}

/* A spanning tree of a random cluster, of some kind and root. */
static struct cn_topo *random_topo(uint64_t *seed)
{
	const struct cn_topo_random r = {
		.hosts = 1 + (uint32_t)(cn_random(seed) % 40),
		.switches = 1 + (uint32_t)(cn_random(seed) % 20),
		.degree = (double)(cn_random(seed) % 5),
		.seed = cn_random(seed),
	};
	struct cn_topo *graph = NULL, *t = NULL;
	struct cn_err err = { 0 };

	assert_int_equal(cn_topo_random(&r, &graph, &err), 0);
	assert_int_equal(cn_topo_span(graph, (enum cn_tree_kind)(cn_random(seed) % 4),
				      (uint32_t)(cn_random(seed) % r.switches), cn_random(seed), &t,
				      &err),
			 0);
	cn_topo_free(graph);
	return t;
}

/* Some of the hosts, in any order; how many. */
static uint32_t random_team(const struct cn_topo *t, uint64_t *seed, uint32_t *hosts)
{
	uint32_t n = 1 + (uint32_t)(cn_random(seed) % t->nhosts);

	memcpy(hosts, t->hosts, t->nhosts * sizeof(*hosts));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = i + (uint32_t)(cn_random(seed) % (t->nhosts - i)), h = hosts[i];

		hosts[i] = hosts[j];
		hosts[j] = h;
	}
	return n;
}

/* The way from x to y over links of the spanning tree: vertices, by a search that knows no root. */
static uint32_t way_of(const struct cn_topo *t, uint32_t x, uint32_t y, uint32_t *way)
{
	uint32_t from[MAX], queue[MAX], tail = 0, n = 0;

	memset(from, 0xff, sizeof(from));
	queue[tail++] = y;
	from[y] = y;
	for (uint32_t head = 0; head < tail; head++) {
		for (uint32_t i = 0; i < t->nlinks; i++) {
			const struct cn_topo_link *l = &t->links[i];
			uint32_t v = queue[head], w = l->a == v ? l->b : l->a;

			if ((l->a == v || l->b == v) && from[w] == NONE && cn_topo_in_tree(t, i)) {
				from[w] = v;
				queue[tail++] = w;
			}
		}
	}
	for (way[n++] = x; x != y; way[n++] = x) {
		x = from[x];
	}
	return n;
}

static bool above(const struct cn_tree *t, uint32_t top, uint32_t x)
{
	while (x != NONE && x != top) {
		x = t->v[x].parent;
	}
	return x == top;
}

/* Exactly what is between the root and the hosts is in the tree. */
static void check_members(const struct cn_topo *t, const struct cn_tree *tree,
			  const uint32_t *hosts, uint32_t n)
{
	bool wanted[MAX] = { false }, found[MAX] = { false };
	uint32_t way[MAX];

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = way_of(t, hosts[i], tree->v[0].vertex, way); k-- > 0;) {
			wanted[way[k]] = true;
		}
	}
	for (uint32_t i = 0; i < tree->n; i++) {
		assert_false(found[tree->v[i].vertex]);
		found[tree->v[i].vertex] = true;
	}
	assert_memory_equal(wanted, found, sizeof(found));
}

static void check_children(const struct cn_topo *t, const struct cn_tree *tree, uint32_t i)
{
	const struct cn_tree_vertex *v = &tree->v[i];
	uint32_t key, before = 0, count = 0;

	for (uint32_t k = 0; k < v->nchildren; k++) {
		uint32_t c = tree->children[v->first_child + k];

		assert_int_equal(tree->v[c].parent, i);
		assert_int_equal(tree->v[c].next, k + 1 < v->nchildren
							  ? tree->children[v->first_child + k + 1]
							  : NONE);
		/* hosts by their numbers, then switches by the topology's */
		key = tree->v[c].node != NONE ? tree->v[c].node : t->nvertices + tree->v[c].vertex;
		assert_true(k == 0 || before < key);
		before = key;
	}
	for (uint32_t k = 0; k < tree->n; k++) {
		count += tree->v[k].parent == i;
	}
	assert_int_equal(v->nchildren, count);
}

/* What tree.h says of every vertex. */
static void check_preorder(const struct cn_topo *t, const struct cn_tree *tree,
			   const uint32_t *hosts, uint32_t n)
{
	uint32_t height = 0;

	assert_int_equal(tree->nhosts, n);
	assert_ptr_equal(tree->topo, t);
	assert_true(tree->v[0].parent == NONE && tree->v[0].link == NONE &&
		    tree->v[0].next == NONE);
	for (uint32_t i = 0; i < tree->n; i++) {
		const struct cn_tree_vertex *v = &tree->v[i];
		uint32_t below = 0, members = 0;

		if (i > 0) {
			const struct cn_topo_link *l = &t->links[v->link];
			uint32_t p = tree->v[v->parent].vertex;

			assert_true(v->parent < i);
			assert_int_equal(v->depth, tree->v[v->parent].depth + 1);
			assert_true((l->a == v->vertex && l->b == p) ||
				    (l->b == v->vertex && l->a == p));
			assert_true(cn_topo_in_tree(t, v->link));
		}
		height = v->depth > height ? v->depth : height;
		if (v->node != NONE) {
			assert_int_equal(hosts[v->node], v->vertex);
			assert_int_equal(tree->host[v->node], i);
			assert_int_equal(v->size, 1);
		} else {
			assert_true(t->vertices[v->vertex].is_switch);
		}
		for (uint32_t x = 0; x < tree->n; x++) {
			assert_int_equal(cn_tree_below(tree, x, i), above(tree, i, x));
			below += above(tree, i, x);
			members += above(tree, i, x) && tree->v[x].node != NONE;
		}
		assert_int_equal(v->size, below);
		assert_int_equal(v->hosts, members);
		check_children(t, tree, i);
	}
	assert_int_equal(tree->height, height);
}

static void check_paths(const struct cn_topo *t, const struct cn_tree *tree, const uint32_t *hosts,
			uint32_t n)
{
	uint32_t way[MAX], links[2 * MAX];
	char name[2 * COLLNET_NAME_MAX + 8], expected[sizeof(name)];

	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = 0; b < n; b++) {
			uint32_t len = way_of(t, hosts[a], hosts[b], way), x = tree->host[a];

			assert_int_equal(cn_tree_path(tree, a, b, links), len - 1);
			assert_true(len - 1 <= 2 * tree->height);
			assert_int_equal(cn_tree_hops(tree, a, b), a == b ? 0 : len - 2);
			for (uint32_t k = 0; k < len - 1; k++) {
				uint32_t low = links[k] / 2, high = tree->v[low].parent;
				bool down = links[k] % 2;

				assert_int_equal(tree->v[down ? high : low].vertex, way[k]);
				assert_int_equal(tree->v[down ? low : high].vertex, way[k + 1]);
				snprintf(expected, sizeof(expected), "%s -> %s",
					 t->vertices[way[k]].name, t->vertices[way[k + 1]].name);
				assert_string_equal(cn_tree_link_name(tree, links[k], name,
								      sizeof(name)),
						    expected);
			}
			while (!above(tree, x, tree->host[b])) {
				x = tree->v[x].parent;
			}
			assert_int_equal(cn_tree_lca(tree, tree->host[a], tree->host[b]), x);
		}
	}
}

static void make__against_brute_force(void **state)
{
	uint64_t seed = SEED;
	uint32_t hosts[MAX];

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int round = 0; round < 200; round++) {
		struct cn_topo *t = random_topo(&seed);
		uint32_t n = random_team(t, &seed, hosts), root = NONE;
		struct cn_tree *tree;

		if (round % 3 != 0) {
			do {
				root = (uint32_t)(cn_random(&seed) % t->nvertices);
			} while (!t->vertices[root].is_switch);
		}
		tree = make(t, hosts, n, root);
		if (root != NONE) {
			assert_int_equal(tree->v[0].vertex, root);
		}
		check_members(t, tree, hosts, n);
		check_preorder(t, tree, hosts, n);
		check_paths(t, tree, hosts, n < 12 ? n : 12);
		cn_tree_free(tree);
		cn_topo_free(t);
	}
}

/* Without a wish, the root is the lowest switch that is on all ways to the topology's root. */
static void make__the_lowest_common_switch(void **state)
{
	uint64_t seed = SEED;
	uint32_t hosts[MAX], way[MAX];

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct cn_topo *t = random_topo(&seed);
		uint32_t n = random_team(t, &seed, hosts), times[MAX] = { 0 }, len = 0;
		struct cn_tree *tree = make(t, hosts, n, NONE);

		for (uint32_t i = n; i-- > 0;) {
			len = way_of(t, hosts[i], t->root, way);
			for (uint32_t k = 1; k < len; k++) {
				times[way[k]]++;
			}
		}
		for (uint32_t k = 1; k < len; k++) {
			if (times[way[k]] == n) {
				assert_int_equal(tree->v[0].vertex, way[k]);
				break;
			}
		}
		cn_tree_free(tree);
		cn_topo_free(t);
	}
}

static void make__one_and_two_hosts(void **state)
{
	struct cn_topo *t = topo_text("host only");
	struct cn_tree *tree = make(t, t->hosts, 1, NONE);
	uint32_t links[4], pair[2];

	(void)state;
	assert_int_equal(tree->n, 1);
	assert_int_equal(tree->height, 0);
	assert_int_equal(tree->v[0].node, 0);
	assert_int_equal(tree->v[0].hosts, 1);
	assert_int_equal(cn_tree_path(tree, 0, 0, links), 0);
	assert_int_equal(cn_tree_hops(tree, 0, 0), 0);
	assert_string_equal(cn_tree_node_name(tree, 0), "only");
	cn_tree_free(tree);
	cn_topo_free(t);

	t = topo_text("switch s\nswitch u\nhost a\nhost b\nlink s u rate none channels 4\n"
		      "link a s rate none\nlink b u rate none channels 2\n");
	tree = make(t, &t->hosts[1], 1, NONE);
	assert_int_equal(tree->n, 2);
	assert_string_equal(t->vertices[tree->v[0].vertex].name, "u");
	cn_tree_free(tree);
	pair[0] = t->hosts[1];
	pair[1] = t->hosts[0];
	tree = make(t, pair, 2, NONE);
	assert_int_equal(tree->n, 4);
	assert_int_equal(cn_tree_path(tree, 0, 1, links), 3);
	assert_int_equal(cn_tree_hops(tree, 0, 1), 2);
	assert_int_equal(cn_tree_channels(tree, links[0]), 2);
	assert_int_equal(cn_tree_channels(tree, links[1]), 4);
	assert_int_equal(cn_tree_channels(tree, links[2]), 1);
	assert_string_equal(cn_tree_node_name(tree, 0), "b");
	cn_tree_free(tree);
	cn_topo_free(t);
}

static void make__errors(void **state)
{
	struct cn_topo *t = topo_text("switch s\nhost a\nhost b\nlink a s rate none\n"
				      "link b s rate none\n");
	const uint32_t no_host[] = { 1, 0 }, beyond[] = { 1, 2, 3 }, none[] = { NONE },
		       twice[] = { 2, 1, 2 };
	struct cn_tree *tree = NULL;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_tree_make(t, no_host, 2, NONE, &tree, &err), COLLNET_ETOPO);
	assert_string_equal(err.text, "node 1 of the team is not a host of the topology");
	assert_int_equal(cn_tree_make(t, beyond, 3, NONE, &tree, &err), COLLNET_ETOPO);
	assert_string_equal(err.text, "node 2 of the team is not a host of the topology");
	assert_int_equal(cn_tree_make(t, none, 1, NONE, &tree, &err), COLLNET_ETOPO);
	assert_int_equal(cn_tree_make(t, twice, 3, NONE, &tree, &err), COLLNET_ETOPO);
	assert_string_equal(err.text, "host b is in the team twice");
	assert_int_equal(cn_tree_make(t, t->hosts, 0, NONE, &tree, &err), COLLNET_EINVAL);
	assert_int_equal(cn_tree_make(t, t->hosts, 2, 1, &tree, &err), COLLNET_EINVAL);
	assert_string_equal(err.text, "the root of a tree must be a switch");
	assert_int_equal(cn_tree_make(t, t->hosts, 2, 7, &tree, &err), COLLNET_EINVAL);
	assert_null(tree);
	cn_tree_free(NULL);
	cn_topo_free(t);
}

/* The longest topology there is: no recursion, and linear. */
static void make__a_long_chain(void **state)
{
	const uint32_t n = 100000;
	struct cn_topo *t = NULL;
	struct cn_tree *tree;
	struct cn_err err = { 0 };
	char *text = NULL;
	uint32_t *links;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	fprintf(f, "switch s0\nhost a\nhost b\nlink a s0 rate none\n");
	for (uint32_t i = 1; i < n; i++) {
		fprintf(f, "switch s%u\nlink s%u s%u rate none\n", i, i - 1, i);
	}
	fprintf(f, "link b s%u rate none\n", n - 1);
	fclose(f);
	assert_int_equal(cn_topo_parse(text, len, "chain", &t, &err), 0);
	free(text);
	links = malloc((n + 1) * 2 * sizeof(*links));
	assert_non_null(links);
	for (uint32_t i = 0; i < 3; i++) {
		const char *root = i == 0 ? "s0" : i == 1 ? "s50000" : "s99999";

		tree = make(t, t->hosts, 2, cn_topo_find(t, root));
		assert_int_equal(tree->n, n + 2);
		assert_int_equal(tree->height, i == 1 ? 50001 : n);
		assert_int_equal(cn_tree_path(tree, 0, 1, links), n + 1);
		assert_int_equal(cn_tree_hops(tree, 1, 0), n);
		cn_tree_free(tree);
	}
	free(links);
	cn_topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(make__against_brute_force),
		cmocka_unit_test(make__the_lowest_common_switch),
		cmocka_unit_test(make__one_and_two_hosts),
		cmocka_unit_test(make__errors),
		cmocka_unit_test(make__a_long_chain),
	};

	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
