/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contention-aware numbering of nodes: Tam and Wang, Eq. 5, for any tree of switches.
 *
 * Every switch merges the sequences of what is below it: one sequence of its own hosts, in the
 * order of the team, and one of each switch below, merged there in the same way. Element j (from
 * 0) of a sequence of m stands at (2j + 1) / 2m of the way from 0 to 1, so that every sequence is
 * evenly spread; at equal places the sequence with the lowest node comes first. The merged
 * sequence of the root is the order of the numbers. So consecutive numbers are behind different
 * subtrees of the root, and those behind one subtree again behind different subtrees of that.
 *
 * With B switches of A hosts under one root all switches' elements j stand at one place, so the
 * number is switch + j * B, which is Eq. 5.
 *
 * A merge sorts, so the time is the sum over the switches that merge of the hosts below them,
 * times its logarithm: n log n for each level of the tree.
 */
#include <stdlib.h>

#include "sched/sched.h"

#define NONE CN_TOPO_NONE

struct place {
	uint32_t index; /* j */
	uint32_t count; /* m */
	uint32_t order; /* of the sequence: its lowest node */
	uint32_t node;
};

struct merger {
	const struct cn_tree *tree;
	uint32_t *lowest; /* [tree->n] lowest node at or below */
	uint32_t *begin;  /* [tree->n] where the sequence of a vertex begins in seq */
	uint32_t *seq;	  /* [nhosts] nodes; in preorder a subtree's are in one piece */
	struct place *places;
};

/* Exact: (2a + 1) / n_a against (2b + 1) / n_b by cross products, which fit in 64 bits. */
static int compare_places(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;
	uint64_t x = (2 * (uint64_t)a->index + 1) * b->count;
	uint64_t y = (2 * (uint64_t)b->index + 1) * a->count;

	if (x != y) {
		return x < y ? -1 : 1;
	}
	if (a->order != b->order) {
		return a->order < b->order ? -1 : 1;
	}
	return a->index < b->index ? -1 : a->index > b->index;
}

/* One sequence of `count` nodes, from seq[at] on, becomes places. */
static void place(struct merger *m, uint32_t at, uint32_t count, uint32_t order, uint32_t *nplaces)
{
	for (uint32_t j = 0; j < count; j++) {
		m->places[(*nplaces)++] = (struct place){
			.index = j, .count = count, .order = order, .node = m->seq[at + j]
		};
	}
}

/* Switch v, whose children are merged already: its own hosts stand first in its piece of seq. */
static void merge(struct merger *m, uint32_t v)
{
	const struct cn_tree_vertex *x = &m->tree->v[v];
	const uint32_t *child = &m->tree->children[x->first_child];
	uint32_t own = 0, nplaces = 0;

	while (own < x->nchildren && m->tree->v[child[own]].node != NONE) {
		own++;
	}
	if (own == x->nchildren || (own == 0 && x->nchildren == 1)) {
		return; /* one sequence is merged already */
	}
	if (own > 0) {
		place(m, m->begin[v], own, m->lowest[child[0]], &nplaces);
	}
	for (uint32_t i = own; i < x->nchildren; i++) {
		place(m, m->begin[child[i]], m->tree->v[child[i]].hosts, m->lowest[child[i]],
		      &nplaces);
	}
	qsort(m->places, nplaces, sizeof(*m->places), compare_places);
	for (uint32_t i = 0; i < nplaces; i++) {
		m->seq[m->begin[v] + i] = m->places[i].node;
	}
}

static void number(struct merger *m, uint32_t *logical)
{
	const struct cn_tree *t = m->tree;
	uint32_t hosts = 0;

	for (uint32_t v = 0; v < t->n; v++) {
		m->begin[v] = hosts;
		m->lowest[v] = t->v[v].node; /* NONE of a switch is above all numbers */
		if (t->v[v].node != NONE) {
			m->seq[hosts++] = t->v[v].node;
		}
	}
	for (uint32_t v = t->n; v-- > 0;) {
		uint32_t parent = t->v[v].parent;

		if (t->v[v].nchildren > 0) {
			merge(m, v);
		}
		if (parent != NONE && m->lowest[v] < m->lowest[parent]) {
			m->lowest[parent] = m->lowest[v];
		}
	}
	for (uint32_t i = 0; i < t->nhosts; i++) {
		logical[m->seq[i]] = i;
	}
}

int cn_number_nodes(const struct cn_topo *t, const uint32_t *hosts, uint32_t n, uint32_t *logical,
		    struct cn_err *err)
{
	struct cn_tree *tree = NULL;
	struct merger m;
	int rc;

	if (n == 0) {
		return COLLNET_OK;
	}
	rc = cn_tree_make(t, hosts, n, NONE, &tree, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	m = (struct merger){
		.tree = tree,
		.lowest = calloc(tree->n, sizeof(*m.lowest)),
		.begin = calloc(tree->n, sizeof(*m.begin)),
		.seq = calloc(n, sizeof(*m.seq)),
		.places = calloc(n, sizeof(*m.places)),
	};
	if (m.lowest == NULL || m.begin == NULL || m.seq == NULL || m.places == NULL) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory to number %u nodes", n);
	} else {
		number(&m, logical);
	}
	free(m.lowest);
	free(m.begin);
	free(m.seq);
	free(m.places);
	cn_tree_free(tree);
	return rc;
}
