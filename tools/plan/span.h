/* SPDX-License-Identifier: BSD-2-Clause */
/* Spanning trees other than the default one of a topology. */
#ifndef CN_SPAN_H
#define CN_SPAN_H

#include "topo/topo.h"

enum cn_tree_kind {
	CN_TREE_BFS = 0,    /* breadth-first: the fewest hops from the root */
	CN_TREE_DFS = 1,    /* depth-first */
	CN_TREE_RANDOM = 2, /* random links, unless they close a cycle (seed) */
	CN_TREE_SHORTEST =
		3, /* shortest paths, a link weighing the inverse of its rate * channels */
};

/*
 * Another spanning tree of the same graph, from switch `root` (CN_TOPO_NONE: the first; random:
 * root only roots it): a new topology with the same vertices and links.
 */
int cn_topo_span(const struct cn_topo *t, enum cn_tree_kind kind, uint32_t root, uint64_t seed,
		 struct cn_topo **out, struct cn_err *err);
/* A new topology of the tree's links only. */
int cn_topo_prune(const struct cn_topo *t, struct cn_topo **out, struct cn_err *err);

#endif
