/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spanning trees of a graph of switches.
 *
 * Each kind only selects the links that are used; the one walk of build.c then makes parents, order
 * and counts of them. A host's only link is in every tree. Nothing recurses, and equal inputs (with
 * an equal seed) give equal trees on every machine.
 */
#include "tools/plan/span.h"

#include <stdlib.h>
#include <string.h>

#include "topo/build.h"
#include "util/heap.h"
#include "util/union_find.h"

#define NONE CN_TOPO_NONE

/*
 * What the slowest link weighs: a number with many divisors, so that the usual ratios of rates are
 * exact, and small enough for a path over all vertices.
 */
#define WEIGHT_MAX 720720000000u

static void *copy(const void *p, size_t n, size_t size)
{
	void *q = malloc(n * size + 1);

	if (q != NULL && n > 0) {
		memcpy(q, p, n * size);
	}
	return q;
}

/* Everything in memory of its own; NULL: no memory. */
static struct cn_topo *clone(const struct cn_topo *t)
{
	struct cn_topo *c = copy(t, 1, sizeof(*t));

	if (c == NULL) {
		return NULL;
	}
	c->vertices = copy(t->vertices, t->nvertices, sizeof(*t->vertices));
	c->links = copy(t->links, t->nlinks, sizeof(*t->links));
	c->hosts = copy(t->hosts, t->nhosts, sizeof(*t->hosts));
	c->order = copy(t->order, t->nvertices, sizeof(*t->order));
	c->adj_start = copy(t->adj_start, (size_t)t->nvertices + 1, sizeof(*t->adj_start));
	c->adj = copy(t->adj, (size_t)t->nlinks * 2, sizeof(*t->adj));
	c->index = copy(t->index, (size_t)t->index_mask + 1, sizeof(*t->index));
	if (c->vertices == NULL || c->links == NULL || c->hosts == NULL || c->order == NULL ||
	    c->adj_start == NULL || c->adj == NULL || c->index == NULL) {
		cn_topo_free(c);
		return NULL;
	}
	return c;
}

/* The way back is kept where a recursive search would keep its stack. */
static bool choose_dfs(const struct cn_topo *t, bool *use)
{
	uint32_t *next = copy(t->adj_start, t->nvertices, sizeof(*next));
	uint32_t *back = malloc((size_t)t->nvertices * sizeof(*back));
	bool *seen = calloc(t->nvertices, sizeof(*seen));
	bool ok = next != NULL && back != NULL && seen != NULL;
	uint32_t v = t->root;

	if (ok) {
		back[v] = NONE;
		seen[v] = true;
	}
	while (ok && v != NONE) {
		if (next[v] == t->adj_start[v + 1]) {
			v = back[v];
			continue;
		}
		uint32_t link = t->adj[next[v]++], w = cn_topo_other_end(t, link, v);

		if (!seen[w]) {
			use[link] = seen[w] = true;
			back[w] = v;
			v = w;
		}
	}
	free(next);
	free(back);
	free(seen);
	return ok;
}

/* Kruskal: the links in random order, unless they close a cycle. */
static bool choose_random(const struct cn_topo *t, uint64_t seed, bool *use)
{
	uint32_t *set = malloc((size_t)t->nvertices * sizeof(*set));
	uint32_t *links = malloc((size_t)t->nlinks * sizeof(*links) + 1);
	bool ok = set != NULL && links != NULL;

	if (ok) {
		cn_union_init(set, t->nvertices);
	}
	for (uint32_t i = 0; ok && i < t->nlinks; i++) {
		uint32_t j = cn_below(&seed, i + 1);

		links[i] = links[j];
		links[j] = i;
	}
	for (uint32_t i = 0; ok && i < t->nlinks; i++) {
		const struct cn_topo_link *l = &t->links[links[i]];

		use[links[i]] = cn_union_join(set, l->a, l->b);
	}
	free(set);
	free(links);
	return ok;
}

/* Bits a second of all channels; a link of unknown rate is as slow as the slowest that is known. */
static double capacity(const struct cn_topo_link *l, uint64_t slowest)
{
	return (double)(l->rate == 0 ? slowest : l->rate) * l->channels;
}

/* Weights in whole numbers, rounded up, so that equal ones are equal and none is nothing. */
static uint64_t *weigh(const struct cn_topo *t)
{
	uint64_t *weight = malloc((size_t)t->nlinks * sizeof(*weight) + 1);
	uint64_t slowest = 0;
	double least = 0;

	for (uint32_t i = 0; weight != NULL && i < t->nlinks; i++) {
		if (t->links[i].rate != 0 && (slowest == 0 || t->links[i].rate < slowest)) {
			slowest = t->links[i].rate;
		}
	}
	slowest = slowest == 0 ? 1 : slowest;
	for (uint32_t i = 0; weight != NULL && i < t->nlinks; i++) {
		double c = capacity(&t->links[i], slowest);

		least = i == 0 || c < least ? c : least;
	}
	for (uint32_t i = 0; weight != NULL && i < t->nlinks; i++) {
		double w = WEIGHT_MAX * (least / capacity(&t->links[i], slowest));

		weight[i] = (uint64_t)w;
		weight[i] += (double)weight[i] < w;
	}
	return weight;
}

/* Dijkstra from the root. A vertex keeps the first of equally long ways. */
static void shortest(const struct cn_topo *t, const uint64_t *weight, struct cn_heap *heap,
		     struct cn_timer *timers, uint32_t *via, bool *use)
{
	struct cn_timer *first;

	for (uint32_t v = 0; v < t->nvertices; v++) {
		timers[v] = (struct cn_timer){ .at = CN_NEVER, .owner = &timers[v] };
		via[v] = NONE;
	}
	cn_heap_set(heap, &timers[t->root], 0);
	while ((first = cn_heap_first(heap)) != NULL) {
		uint32_t v = (uint32_t)(first - timers);
		cn_time here = first->at;

		cn_heap_set(heap, first, CN_NEVER);
		if (via[v] != NONE) {
			use[via[v]] = true;
		}
		for (uint32_t i = t->adj_start[v]; i < t->adj_start[v + 1]; i++) {
			uint32_t link = t->adj[i], w = cn_topo_other_end(t, link, v);
			bool new = via[w] == NONE &&w != t->root;

			/* One that was taken out is not `new`, and its time is CN_NEVER. */
			if (new ||
			    (timers[w].at != CN_NEVER && here + weight[link] < timers[w].at)) {
				via[w] = link;
				cn_heap_set(heap, &timers[w], here + weight[link]);
			}
		}
	}
}

static bool choose_shortest(const struct cn_topo *t, bool *use)
{
	uint64_t *weight = weigh(t);
	struct cn_timer *timers = malloc((size_t)t->nvertices * sizeof(*timers));
	uint32_t *via = malloc((size_t)t->nvertices * sizeof(*via));
	struct cn_heap heap = { 0 };
	bool ok = weight != NULL && timers != NULL && via != NULL &&
		  cn_heap_init(&heap, t->nvertices) == COLLNET_OK;

	if (ok) {
		shortest(t, weight, &heap, timers, via, use);
		cn_heap_fini(&heap);
	}
	free(weight);
	free(timers);
	free(via);
	return ok;
}

/* Marks the links of a tree. False: no memory. */
static bool choose(const struct cn_topo *t, enum cn_tree_kind kind, uint64_t seed, bool *use)
{
	switch (kind) {
	case CN_TREE_DFS:
		return choose_dfs(t, use);
	case CN_TREE_RANDOM:
		return choose_random(t, seed, use);
	case CN_TREE_SHORTEST:
		return choose_shortest(t, use);
	case CN_TREE_BFS:
		break;
	}
	for (uint32_t i = 0; i < t->nlinks; i++) {
		use[i] = true; /* the walk itself is breadth-first */
	}
	return true;
}

int cn_topo_span(const struct cn_topo *t, enum cn_tree_kind kind, uint32_t root, uint64_t seed,
		 struct cn_topo **out, struct cn_err *err)
{
	struct cn_topo *c;
	bool *use;

	if (root != NONE && (root >= t->nvertices || !t->vertices[root].is_switch)) {
		return cn_fail(err, COLLNET_EINVAL, "the root of a spanning tree must be a switch");
	}
	c = clone(t);
	use = calloc((size_t)t->nlinks + 1, sizeof(*use));
	if (c != NULL) {
		for (uint32_t v = 0; root == NONE && v < t->nvertices; v++) {
			root = t->vertices[v].is_switch ? v : NONE;
		}
		c->root = root == NONE ? t->root : root;
	}
	if (c == NULL || use == NULL || !choose(c, kind, seed, use)) {
		cn_topo_free(c);
		free(use);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a spanning tree of %u vertices",
			       t->nvertices);
	}
	(void)cn_topo_walk(c, use);
	free(use);
	*out = c;
	return COLLNET_OK;
}

int cn_topo_prune(const struct cn_topo *t, struct cn_topo **out, struct cn_err *err)
{
	struct cn_topo *c = clone(t);

	if (c == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a topology of %u vertices",
			       t->nvertices);
	}
	c->nlinks = 0;
	for (uint32_t i = 0; i < t->nlinks; i++) {
		if (cn_topo_in_tree(t, i)) {
			c->links[c->nlinks++] = t->links[i];
		}
	}
	cn_topo_neighbours(c);
	(void)cn_topo_walk(c, NULL);
	*out = c;
	return COLLNET_OK;
}
