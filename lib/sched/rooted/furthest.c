/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes by decreasing distance from one of them: a counting sort of the tree's preorder, so that it
 * is linear and stable. The distance of a vertex follows from its parent's, without any path: it
 * meets the root node's way up where its parent does, unless it is on that way itself.
 */
#include <stdlib.h>

#include "sched/rooted/furthest.h"

static void by_number(uint32_t nnodes, uint32_t root, uint32_t *order)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < nnodes; i++) {
		if (i != root) {
			order[k++] = i;
		}
	}
}

/* Links from node `root` to every vertex; `meet` is room for as many. */
static void measure(const struct cn_tree *t, uint32_t root, uint32_t *meet, uint32_t *links)
{
	uint32_t from = t->host[root];

	for (uint32_t i = 0; i < t->n; i++) {
		const struct cn_tree_vertex *v = &t->v[i];

		meet[i] = cn_tree_below(t, from, i) ? v->depth : meet[v->parent];
		links[i] = v->depth + t->v[from].depth - 2 * meet[i];
	}
}

int cn_furthest_first(const struct cn_tree *t, uint32_t nnodes, uint32_t root, uint32_t *order,
		      struct cn_err *err)
{
	uint32_t *meet, *links, *at, most, sum = 0;

	if (t == NULL) {
		by_number(nnodes, root, order);
		return COLLNET_OK;
	}
	most = 2 * t->height;
	meet = calloc(2 * (size_t)t->n + most + 2, sizeof(*meet));
	if (meet == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to order %u nodes", nnodes);
	}
	links = meet + t->n;
	at = links + t->n; /* where those of a distance begin */
	measure(t, root, meet, links);
	for (uint32_t i = 0; i < t->n; i++) {
		at[links[i]] += t->v[i].node != CN_TOPO_NONE && t->v[i].node != root;
	}
	for (uint32_t d = most + 1; d-- > 0;) {
		uint32_t count = at[d];

		at[d] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->v[i].node != CN_TOPO_NONE && t->v[i].node != root) {
			order[at[links[i]]++] = t->v[i].node;
		}
	}
	free(meet);
	return COLLNET_OK;
}
