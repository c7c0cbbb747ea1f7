/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree of a team: marked from its hosts upwards, rooted where the caller wants it, and laid
 * out in preorder without recursion (a chain of 100,000 switches is a legal topology).
 */
#include <stdio.h>
#include <stdlib.h>

#include "topo/tree.h"

#define NONE CN_TOPO_NONE

/* Per-vertex scratch data for making a tree. */
struct scratch {
	uint32_t *below;  /* hosts of the team at or below, by the topology's own root */
	uint32_t *node;	  /* node of a host, or NONE */
	uint32_t *parent; /* in the tree to be made; NONE: its root */
	uint32_t *link;
	uint32_t *first, *last, *next; /* lists of children: hosts before switches */
};

static int scratch_new(struct scratch *s, uint32_t n, struct cn_err *err)
{
	uint32_t *p = malloc((size_t)n * 7 * sizeof(*p));

	if (p == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a tree of %u vertices", n);
	}
	s->below = p;
	s->node = p + n;
	s->parent = p + 2 * (size_t)n;
	s->link = p + 3 * (size_t)n;
	s->first = p + 4 * (size_t)n;
	s->last = p + 5 * (size_t)n;
	s->next = p + 6 * (size_t)n;
	for (uint32_t i = 0; i < n; i++) {
		s->below[i] = 0;
		s->node[i] = s->parent[i] = s->link[i] = NONE;
		s->first[i] = s->last[i] = s->next[i] = NONE;
	}
	return COLLNET_OK;
}

static int mark_hosts(const struct cn_topo *topo, const uint32_t *hosts, uint32_t n,
		      struct scratch *s, struct cn_err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t h = hosts[i];

		if (h >= topo->nvertices || topo->vertices[h].is_switch) {
			return cn_fail(err, COLLNET_ETOPO,
				       "node %u of the team is not a host of the topology", i);
		}
		if (s->node[h] != NONE) {
			return cn_fail(err, COLLNET_ETOPO, "host %s is in the team twice",
				       topo->vertices[h].name);
		}
		s->node[h] = i;
		s->below[h] = 1;
	}
	for (uint32_t i = topo->nvertices; i-- > 1;) {
		uint32_t v = topo->order[i];

		s->below[topo->vertices[v].parent] += s->below[v];
	}
	return COLLNET_OK;
}

/* The lowest switch above all hosts of the team (its host itself when it has no switch). */
static uint32_t top_of(const struct cn_topo *topo, uint32_t host, uint32_t n,
		       const struct scratch *s)
{
	uint32_t v = topo->vertices[host].parent == NONE ? host : topo->vertices[host].parent;

	while (s->below[v] < n) {
		v = topo->vertices[v].parent;
	}
	return v;
}

/* Re-roots the tree at `root`: reverses the parents on the path from it to the topology's root. */
static void turn(const struct cn_topo *topo, uint32_t root, uint32_t n, struct scratch *s)
{
	uint32_t child = NONE, v = root, link = NONE;

	for (uint32_t i = 0; i < topo->nvertices; i++) {
		s->parent[i] = topo->vertices[i].parent;
		s->link[i] = topo->vertices[i].parent_link;
	}
	while (v != NONE) {
		uint32_t up = topo->vertices[v].parent, up_link = topo->vertices[v].parent_link;

		s->parent[v] = child;
		s->link[v] = link;
		child = v;
		link = up_link;
		v = up;
	}
	/* Hosts below, by the new root: all but those beyond the vertex that the way came from. */
	for (uint32_t beyond = 0, x = root; x != NONE; x = topo->vertices[x].parent) {
		uint32_t was = s->below[x];

		s->below[x] = n - beyond;
		beyond = was;
	}
}

static void append(struct scratch *s, uint32_t parent, uint32_t v)
{
	if (s->last[parent] == NONE) {
		s->first[parent] = v;
	} else {
		s->next[s->last[parent]] = v;
	}
	s->last[parent] = v;
}

/* Hosts in the order of the team, then switches in the order of the topology. */
static uint32_t list_children(const struct cn_topo *topo, const uint32_t *hosts, uint32_t n,
			      uint32_t root, struct scratch *s)
{
	uint32_t count = 1;

	for (uint32_t i = 0; i < n; i++) {
		if (hosts[i] != root) {
			append(s, s->parent[hosts[i]], hosts[i]);
			count++;
		}
	}
	for (uint32_t v = 0; v < topo->nvertices; v++) {
		if (topo->vertices[v].is_switch && v != root && s->below[v] > 0 &&
		    s->parent[v] != NONE) {
			append(s, s->parent[v], v);
			count++;
		}
	}
	return count;
}

/* Preorder along first child, next sibling, parent. */
static void lay_out(struct cn_tree *t, uint32_t root, const struct scratch *s, uint32_t *index)
{
	uint32_t v = root, i = 0;

	for (;;) {
		struct cn_tree_vertex *x = &t->v[i];

		index[v] = i;
		*x = (struct cn_tree_vertex){ .vertex = v,
					      .parent = NONE,
					      .link = s->link[v],
					      .node = s->node[v],
					      .size = 1,
					      .next = NONE };
		x->hosts = x->node != NONE;
		if (v != root) {
			x->parent = index[s->parent[v]];
			x->depth = t->v[x->parent].depth + 1;
			t->v[x->parent].nchildren++;
		}
		t->height = x->depth > t->height ? x->depth : t->height;
		if (x->node != NONE) {
			t->host[x->node] = i;
		}
		i++;
		if (s->first[v] != NONE) {
			v = s->first[v];
			continue;
		}
		while (v != root && s->next[v] == NONE) {
			v = s->parent[v];
		}
		if (v == root) {
			break;
		}
		v = s->next[v];
	}
	for (uint32_t first = 0, k = 0; k < t->n; k++) {
		t->v[k].first_child = first;
		first += t->v[k].nchildren;
		t->v[k].nchildren = 0;
	}
	for (uint32_t k = 1; k < t->n; k++) {
		struct cn_tree_vertex *p = &t->v[t->v[k].parent];

		if (p->nchildren > 0) {
			t->v[t->children[p->first_child + p->nchildren - 1]].next = k;
		}
		t->children[p->first_child + p->nchildren++] = k;
	}
	for (uint32_t k = t->n; k-- > 1;) {
		t->v[t->v[k].parent].size += t->v[k].size;
		t->v[t->v[k].parent].hosts += t->v[k].hosts;
	}
}

int cn_tree_make(const struct cn_topo *topo, const uint32_t *hosts, uint32_t n, uint32_t root,
		 struct cn_tree **out, struct cn_err *err)
{
	struct scratch s = { 0 };
	struct cn_tree *t = NULL;
	int rc;

	if (n == 0) {
		return cn_fail(err, COLLNET_EINVAL, "a tree needs at least one host");
	}
	if (root != NONE && (root >= topo->nvertices || !topo->vertices[root].is_switch)) {
		return cn_fail(err, COLLNET_EINVAL, "the root of a tree must be a switch");
	}
	rc = scratch_new(&s, topo->nvertices, err);
	if (rc == COLLNET_OK) {
		rc = mark_hosts(topo, hosts, n, &s, err);
	}
	if (rc != COLLNET_OK) {
		free(s.below);
		return rc;
	}
	root = root == NONE ? top_of(topo, hosts[0], n, &s) : root;
	turn(topo, root, n, &s);
	t = calloc(1, sizeof(*t));
	if (t != NULL) {
		t->topo = topo;
		t->nhosts = n;
		t->n = list_children(topo, hosts, n, root, &s);
		t->v = calloc(t->n, sizeof(*t->v));
		t->children = calloc(t->n, sizeof(*t->children));
		t->host = calloc(n, sizeof(*t->host));
	}
	if (t == NULL || t->v == NULL || t->children == NULL || t->host == NULL) {
		cn_tree_free(t);
		free(s.below);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a tree of %u hosts", n);
	}
	lay_out(t, root, &s, s.last); /* the lists' ends are no longer needed */
	free(s.below);
	*out = t;
	return COLLNET_OK;
}

void cn_tree_free(struct cn_tree *t)
{
	if (t != NULL) {
		free(t->v);
		free(t->children);
		free(t->host);
		free(t);
	}
}

uint32_t cn_tree_lca(const struct cn_tree *t, uint32_t x, uint32_t y)
{
	while (!cn_tree_below(t, y, x)) {
		x = t->v[x].parent;
	}
	return x;
}

uint32_t cn_tree_path(const struct cn_tree *t, uint32_t a, uint32_t b, uint32_t *links)
{
	uint32_t x = t->host[a], y = t->host[b], top = cn_tree_lca(t, x, y), n = 0, down;

	for (; x != top; x = t->v[x].parent) {
		links[n++] = 2 * x;
	}
	down = n += t->v[y].depth - t->v[top].depth;
	for (; y != top; y = t->v[y].parent) {
		links[--down] = 2 * y + 1;
	}
	return n;
}

uint32_t cn_tree_hops(const struct cn_tree *t, uint32_t a, uint32_t b)
{
	uint32_t x = t->host[a], y = t->host[b], top = cn_tree_lca(t, x, y);
	uint32_t links = t->v[x].depth + t->v[y].depth - 2 * t->v[top].depth;

	return links == 0 ? 0 : links - 1;
}

uint32_t cn_tree_channels(const struct cn_tree *t, uint32_t dlink)
{
	return t->topo->links[t->v[dlink / 2].link].channels;
}

const char *cn_tree_link_name(const struct cn_tree *t, uint32_t dlink, char *text, size_t cap)
{
	const struct cn_tree_vertex *v = &t->v[dlink / 2];
	const char *low = t->topo->vertices[v->vertex].name;
	const char *high = t->topo->vertices[t->v[v->parent].vertex].name;

	snprintf(text, cap, "%s -> %s", dlink % 2 == 0 ? low : high, dlink % 2 == 0 ? high : low);
	return text;
}

const char *cn_tree_node_name(const struct cn_tree *t, uint32_t node)
{
	return t->topo->vertices[t->v[t->host[node]].vertex].name;
}
