/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree that connects the hosts of a team: the part of the topology's spanning tree that the
 * team needs, in one compact array. All planners and checkers of schedules use it.
 *
 * Vertices are in preorder: v[0] is the root, and the subtree of vertex i is i .. i + size - 1,
 * so that "is x below i" is a comparison. The children of a switch are its hosts, in the order of
 * their numbers in the team, then its switches, in the order of the topology. Hosts are leaves.
 *
 * Directed links: 2 i goes up from vertex i to its parent, 2 i + 1 down from the parent to i.
 */
#ifndef CN_TREE_H
#define CN_TREE_H

#include "topo/topo.h"

struct cn_tree_vertex {
	uint32_t vertex; /* of the topology */
	uint32_t parent; /* index here; CN_TOPO_NONE: the root */
	uint32_t link;	 /* of the topology, to the parent */
	uint32_t node;	 /* a host: its number in the team; a switch: CN_TOPO_NONE */
	uint32_t depth;	 /* links to the root */
	uint32_t size;	 /* vertices at or below */
	uint32_t hosts;	 /* of the team at or below */
	uint32_t first_child, nchildren; /* children[first_child] .. */
	uint32_t next;			 /* index of the next sibling; CN_TOPO_NONE: the last */
};

struct cn_tree {
	const struct cn_topo *topo; /* not owned; outlives the tree */
	uint32_t n, nhosts, height; /* height: the greatest depth */
	struct cn_tree_vertex *v;   /* [n] */
	uint32_t *children;	    /* [n - 1] indices */
	uint32_t *host;		    /* [nhosts] index of a node of the team */
};

/*
 * hosts[i] is the topology's vertex of node i of the team; no two are the same. `root` is a switch
 * of the topology's tree, or CN_TOPO_NONE: the lowest switch above all hosts. COLLNET_ETOPO names
 * the node that is no host of the topology. Linear in the vertices of the topology.
 */
int cn_tree_make(const struct cn_topo *topo, const uint32_t *hosts, uint32_t n, uint32_t root,
		 struct cn_tree **out, struct cn_err *err);
void cn_tree_free(struct cn_tree *t); /* NULL is ignored */

static inline bool cn_tree_below(const struct cn_tree *t, uint32_t x, uint32_t top)
{
	return x - top < t->v[top].size; /* unsigned: false for x < top too */
}

/* Rate of the link from vertex x to its parent, bit/s; 0: not known, or the root. */
static inline uint64_t cn_tree_rate(const struct cn_tree *t, uint32_t x)
{
	return t->v[x].link != CN_TOPO_NONE ? t->topo->links[t->v[x].link].rate : 0;
}

/* Lowest common ancestor of two vertices. */
uint32_t cn_tree_lca(const struct cn_tree *t, uint32_t x, uint32_t y);
/*
 * The path from node a to node b: directed links in order, at most 2 * height; returns their
 * number (0: the same node). The switches on it, its length in hops, are one less.
 */
uint32_t cn_tree_path(const struct cn_tree *t, uint32_t a, uint32_t b, uint32_t *links);
uint32_t cn_tree_hops(const struct cn_tree *t, uint32_t a, uint32_t b);
/* Channels of a directed link. */
uint32_t cn_tree_channels(const struct cn_tree *t, uint32_t dlink);
/* "s0 -> h3", for messages; truncated to cap. Returns text. */
const char *cn_tree_link_name(const struct cn_tree *t, uint32_t dlink, char *text, size_t cap);
/* Name of a node of the team. */
const char *cn_tree_node_name(const struct cn_tree *t, uint32_t node);

#endif
