/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/plan/span: four kinds of spanning trees, against what defines them, on random graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topo/topo.h"
#include "topo_text.h"
#include "tools/plan/write.h"
#include "tools/plan/span.h"

#define NONE CN_TOPO_NONE
#define SEED 20260807u

/* Up to 12 switches and 8 hosts; parallel links, channels, and rates of which some are unknown. */
static struct cn_topo *random_graph(uint64_t *seed)
{
	static const char *const rates[] = { "none", "1gbit", "2gbit", "5gbit", "10gbit" };
	uint32_t switches = 1 + (uint32_t)(cn_random(seed) % 12);
	uint32_t hosts = 1 + (uint32_t)(cn_random(seed) % 8);
	uint32_t extra = (uint32_t)(cn_random(seed) % (2 * switches));
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct cn_topo *t;

	assert_non_null(f);
	for (uint32_t i = 0; i < switches; i++) {
		fprintf(f, "switch s%u\n", i);
	}
	for (uint32_t i = 0; i < hosts; i++) {
		fprintf(f, "host h%u\nlink h%u s%u rate 1gbit\n", i, i,
			(uint32_t)(cn_random(seed) % switches));
	}
	for (uint32_t i = 1; i < switches + extra && switches > 1; i++) {
		uint32_t a = i < switches ? i : (uint32_t)(cn_random(seed) % switches);
		uint32_t b = (uint32_t)(cn_random(seed) % (i < switches ? i : switches));

		if (a != b) {
			fprintf(f, "link s%u s%u rate %s channels %u\n", a, b,
				rates[cn_random(seed) % 5], 1 + (uint32_t)(cn_random(seed) % 3));
		}
	}
	fclose(f);
	t = topo_text(text);
	free(text);
	return t;
}

static struct cn_topo *span(const struct cn_topo *t, enum cn_tree_kind kind, uint32_t root,
			    uint64_t seed)
{
	struct cn_topo *c = NULL;
	struct cn_err err = { 0 };

	if (cn_topo_span(t, kind, root, seed, &c, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return c;
}

/* What every spanning tree is: n - 1 links, parents before children, hosts counted. */
static void check_tree(const struct cn_topo *t, const struct cn_topo *c, uint32_t root)
{
	bool seen[64] = { false };
	uint32_t used = 0, hosts[64] = { 0 };

	assert_int_equal(c->nvertices, t->nvertices);
	assert_int_equal(c->nlinks, t->nlinks);
	assert_memory_equal(c->links, t->links, t->nlinks * sizeof(*t->links));
	assert_int_equal(c->root, root);
	assert_int_equal(c->order[0], root);
	assert_true(c->vertices[root].parent == NONE);
	for (uint32_t i = 0; i < c->nvertices; i++) {
		uint32_t v = c->order[i], p = c->vertices[v].parent;

		assert_false(seen[v]);
		seen[v] = true;
		assert_string_equal(c->vertices[v].name, t->vertices[v].name);
		if (i > 0) {
			const struct cn_topo_link *l = &c->links[c->vertices[v].parent_link];

			assert_true(seen[p]);
			assert_true((l->a == v && l->b == p) || (l->b == v && l->a == p));
		}
	}
	for (uint32_t i = c->nvertices; i-- > 0;) {
		uint32_t v = c->order[i];

		hosts[v] += !c->vertices[v].is_switch;
		assert_int_equal(c->vertices[v].hosts, hosts[v]);
		if (i > 0) {
			hosts[c->vertices[v].parent] += hosts[v];
		}
	}
	for (uint32_t i = 0; i < c->nlinks; i++) {
		used += cn_topo_in_tree(c, i);
	}
	assert_int_equal(used, c->nvertices - 1);
	assert_int_equal(cn_topo_unused(c), c->nlinks - used);
	assert_false(cn_topo_in_tree(c, c->nlinks));
}

/* Sum of a tree's weights from the root; kind SHORTEST weighs by rates, others count hops. */
static double tree_way(const struct cn_topo *c, uint32_t v, const double *weight)
{
	double d = 0;

	for (; c->vertices[v].parent != NONE; v = c->vertices[v].parent) {
		d += weight[c->vertices[v].parent_link];
	}
	return d;
}

/* Bellman and Ford, which shares nothing with the trees. */
static void all_ways(const struct cn_topo *t, uint32_t root, const double *weight, double *way)
{
	for (uint32_t v = 0; v < t->nvertices; v++) {
		way[v] = v == root ? 0 : 1e300;
	}
	for (uint32_t round = 0; round < t->nvertices; round++) {
		for (uint32_t i = 0; i < t->nlinks; i++) {
			uint32_t a = t->links[i].a, b = t->links[i].b;

			way[a] = way[b] + weight[i] < way[a] ? way[b] + weight[i] : way[a];
			way[b] = way[a] + weight[i] < way[b] ? way[a] + weight[i] : way[b];
		}
	}
}

static bool above(const struct cn_topo *c, uint32_t x, uint32_t v)
{
	while (v != NONE && v != x) {
		v = c->vertices[v].parent;
	}
	return v == x;
}

static uint32_t some_switch(const struct cn_topo *t, uint64_t *seed)
{
	uint32_t v;

	do {
		v = (uint32_t)(cn_random(seed) % t->nvertices);
	} while (!t->vertices[v].is_switch);
	return v;
}

static void span__bfs_has_the_fewest_hops(void **state)
{
	uint64_t seed = SEED;
	double weight[64], way[64];

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int round = 0; round < 500; round++) {
		struct cn_topo *t = random_graph(&seed), *c;
		uint32_t root = some_switch(t, &seed);

		c = span(t, CN_TREE_BFS, root, 0);
		check_tree(t, c, root);
		for (uint32_t i = 0; i < t->nlinks; i++) {
			weight[i] = 1;
		}
		all_ways(t, root, weight, way);
		for (uint32_t v = 0; v < t->nvertices; v++) {
			assert_true(tree_way(c, v, weight) == way[v]);
		}
		cn_topo_free(c);
		cn_topo_free(t);
	}
}

/* No link joins two branches of a depth-first tree. */
static void span__dfs_has_no_cross_links(void **state)
{
	uint64_t seed = SEED;

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct cn_topo *t = random_graph(&seed), *c;
		uint32_t root = some_switch(t, &seed);

		c = span(t, CN_TREE_DFS, root, 0);
		check_tree(t, c, root);
		for (uint32_t i = 0; i < t->nlinks; i++) {
			assert_true(above(c, t->links[i].a, t->links[i].b) ||
				    above(c, t->links[i].b, t->links[i].a));
		}
		cn_topo_free(c);
		cn_topo_free(t);
	}
}

static void span__shortest_by_weight(void **state)
{
	uint64_t seed = SEED;
	double weight[64], way[64], d;

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct cn_topo *t = random_graph(&seed), *c;
		uint32_t root = some_switch(t, &seed);

		c = span(t, CN_TREE_SHORTEST, root, 0);
		check_tree(t, c, root);
		for (uint32_t i = 0; i < t->nlinks; i++) {
			/* hosts' links are of 1 Gbit/s: the slowest known */
			double rate = t->links[i].rate == 0 ? 1e9 : (double)t->links[i].rate;

			weight[i] = 1e9 / rate / t->links[i].channels;
		}
		all_ways(t, root, weight, way);
		for (uint32_t v = 0; v < t->nvertices; v++) {
			d = tree_way(c, v, weight) - way[v];
			assert_true(d > -1e-9 && d < 1e-9);
		}
		cn_topo_free(c);
		cn_topo_free(t);
	}
}

/* A direct slow link against two fast ones, and against a bundle of slow channels. */
static void span__shortest_prefers_capacity(void **state)
{
	static const char *const texts[] = {
		"switch a\nswitch b\nswitch c\nhost h\nlink h a rate 1gbit\n"
		"link a c rate 1gbit\nlink a b rate 10gbit\nlink b c rate 10gbit\n",
		"switch a\nswitch b\nswitch c\nhost h\nlink h a rate none\n"
		"link a c rate none\nlink a b rate none channels 3\nlink b c rate none channels 3\n",
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct cn_topo *t = topo_text(texts[i]), *c = span(t, CN_TREE_SHORTEST, NONE, 0);

		assert_true(cn_topo_in_tree(t, 1));
		assert_false(cn_topo_in_tree(c, 1));
		assert_int_equal(cn_topo_unused(c), 1);
		assert_int_equal(c->vertices[2].parent, 1);
		cn_topo_free(c);
		cn_topo_free(t);
	}
}

/* Every tree of a triangle about as often; the same seed, the same tree. */
static void span__random_by_seed(void **state)
{
	struct cn_topo
		*t = topo_text("switch a\nswitch b\nswitch c\nhost h\nlink a b rate none\n"
			       "link b c rate none\nlink c a rate none\nlink h b rate none\n");
	uint64_t seed = SEED;
	uint32_t left_out[3] = { 0 };

	(void)state;
	for (uint64_t s = 0; s < 3000; s++) {
		struct cn_topo *c = span(t, CN_TREE_RANDOM, 1, s), *d;

		check_tree(t, c, 1);
		d = span(t, CN_TREE_RANDOM, 1, s);
		assert_memory_equal(c->vertices, d->vertices, t->nvertices * sizeof(*t->vertices));
		for (uint32_t i = 0; i < 3; i++) {
			left_out[i] += !cn_topo_in_tree(c, i);
		}
		cn_topo_free(c);
		cn_topo_free(d);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_uint_in_range(left_out[i], 850, 1150);
	}
	cn_topo_free(t);
	for (int round = 0; round < 500; round++) {
		struct cn_topo *c;
		uint32_t root;

		t = random_graph(&seed);
		root = some_switch(t, &seed);
		c = span(t, CN_TREE_RANDOM, root, cn_random(&seed));
		check_tree(t, c, root);
		cn_topo_free(c);
		cn_topo_free(t);
	}
}

static void span__of_what_has_one_tree(void **state)
{
	struct cn_topo *t = topo_text("host only"), *c;

	(void)state;
	for (int kind = CN_TREE_BFS; kind <= CN_TREE_SHORTEST; kind++) {
		c = span(t, (enum cn_tree_kind)kind, NONE, 1);
		assert_int_equal(c->root, 0);
		assert_int_equal(cn_topo_unused(c), 0);
		cn_topo_free(c);
	}
	cn_topo_free(t);
}

static void span__errors(void **state)
{
	struct cn_topo *t = topo_text("switch s\nhost h\nlink s h rate none"), *c = NULL;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_topo_span(t, CN_TREE_BFS, 1, 0, &c, &err), COLLNET_EINVAL);
	assert_string_equal(err.text, "the root of a spanning tree must be a switch");
	assert_int_equal(cn_topo_span(t, CN_TREE_BFS, 2, 0, &c, &err), COLLNET_EINVAL);
	assert_null(c);
	cn_topo_free(t);
}

/* Nothing recurses, and nothing takes more than n log n. */
static void span__a_ring_of_switches(void **state)
{
	const uint32_t n = 100000;
	struct cn_topo *t = NULL, *c;
	struct cn_err err = { 0 };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	for (uint32_t i = 0; i < n; i++) {
		fprintf(f, "switch s%u\n", i);
	}
	fprintf(f, "host h\nlink h s7 rate 1gbit\n");
	for (uint32_t i = 0; i < n; i++) {
		fprintf(f, "link s%u s%u rate 1gbit\n", i, (i + 1) % n);
	}
	fclose(f);
	assert_int_equal(cn_topo_parse(text, len, "ring", &t, &err), 0);
	free(text);
	for (int kind = CN_TREE_BFS; kind <= CN_TREE_SHORTEST; kind++) {
		uint32_t depth = 0;

		c = span(t, (enum cn_tree_kind)kind, 5, 1);
		assert_int_equal(cn_topo_unused(c), 1);
		for (uint32_t v = c->order[n]; v != 5; v = c->vertices[v].parent) {
			depth++;
		}
		if (kind == CN_TREE_DFS) {
			assert_int_equal(depth, n - 1);
		} else if (kind != CN_TREE_RANDOM) {
			assert_int_equal(depth, n / 2);
		}
		cn_topo_free(c);
	}
	cn_topo_free(t);
}

/* A pruned graph is a tree: any walk gives the same parents, and it reads back. */
static void prune__keeps_the_tree(void **state)
{
	uint64_t seed = SEED;
	struct cn_err err = { 0 };

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct cn_topo *t = random_graph(&seed), *c, *p = NULL, *again = NULL;
		char *text = NULL;
		size_t len;
		FILE *f;

		c = span(t, (enum cn_tree_kind)(round % 4), some_switch(t, &seed), seed);
		assert_int_equal(cn_topo_prune(c, &p, &err), 0);
		assert_int_equal(p->nlinks, t->nvertices - 1);
		assert_int_equal(cn_topo_unused(p), 0);
		assert_int_equal(p->root, c->root);
		assert_int_equal(p->adj_start[p->nvertices], 2 * p->nlinks);
		for (uint32_t v = 0; v < t->nvertices; v++) {
			const struct cn_vertex *x = &c->vertices[v], *y = &p->vertices[v];

			assert_int_equal(x->parent, y->parent);
			assert_int_equal(x->hosts, y->hosts);
			if (x->parent != NONE) {
				assert_memory_equal(&c->links[x->parent_link],
						    &p->links[y->parent_link], sizeof(*c->links));
			}
		}
		f = open_memstream(&text, &len);
		assert_non_null(f);
		assert_int_equal(cn_topo_write(p, f), 0);
		fclose(f);
		assert_int_equal(cn_topo_parse(text, len, "again", &again, &err), 0);
		assert_int_equal(again->nlinks, p->nlinks);
		free(text);
		cn_topo_free(again);
		cn_topo_free(p);
		cn_topo_free(c);
		cn_topo_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(span__bfs_has_the_fewest_hops),
		cmocka_unit_test(span__dfs_has_no_cross_links),
		cmocka_unit_test(span__shortest_by_weight),
		cmocka_unit_test(span__shortest_prefers_capacity),
		cmocka_unit_test(span__random_by_seed),
		cmocka_unit_test(span__of_what_has_one_tree),
		cmocka_unit_test(span__errors),
		cmocka_unit_test(span__a_ring_of_switches),
		cmocka_unit_test(prune__keeps_the_tree),
	};

	return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
