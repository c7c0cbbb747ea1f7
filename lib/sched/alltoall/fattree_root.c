/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The root of the total exchange. In the paper the root is the switch whose subtrees are equal
 * halves. In any tree that is a switch which leaves no more than half of the hosts in one piece.
 * There is one, or a path of several; the one with the fewest phases is taken. So the number of
 * phases does not depend on the order of the lines in a topology file.
 */
#include <stdlib.h>

#include "sched/alltoall/fattree.h"

#define CANDIDATES 8u /* that are compared, of those on the path */

/* The hosts in the largest piece that is left of the tree without switch v. */
static uint32_t largest_piece(const struct cn_tree *t, uint32_t v)
{
	uint32_t most = t->nhosts - t->v[v].hosts;

	for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
		uint32_t hosts = t->v[t->children[t->v[v].first_child + i]].hosts;

		most = hosts > most ? hosts : most;
	}
	return most;
}

/* The exchange with switch v of `t` as its root, on a tree of its own. */
static int root_at(const struct cn_tree *t, uint32_t v, const uint32_t *hosts,
		   struct cn_fattree **out, struct cn_err *err)
{
	struct cn_tree *own;
	int rc = cn_tree_make(t->topo, hosts, t->nhosts, t->v[v].vertex, &own, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = cn_fattree_new(own, out, err);
	if (rc != COLLNET_OK) {
		cn_tree_free(own);
		return rc;
	}
	(*out)->own = own;
	return COLLNET_OK;
}

/* Fewer phases; of equal ones the switch that the topology has first, whatever the root was. */
static bool better(const struct cn_fattree *a, const struct cn_fattree *b)
{
	return a->phases != b->phases ? a->phases < b->phases
				      : a->t->v[0].vertex < b->t->v[0].vertex;
}

int cn_fattree_rooted(const struct cn_tree *t, struct cn_fattree **out, struct cn_err *err)
{
	uint32_t *hosts = calloc(t->nhosts, sizeof(*hosts)), least = UINT32_MAX, tried = 0;
	struct cn_fattree *best = NULL;
	int rc = COLLNET_OK;

	if (hosts == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", t->nhosts);
	}
	for (uint32_t i = 0; i < t->nhosts; i++) {
		hosts[i] = t->v[t->host[i]].vertex;
	}
	for (uint32_t v = 0; v < t->n; v++) {
		if (t->v[v].node == CN_TOPO_NONE && largest_piece(t, v) < least) {
			least = largest_piece(t, v);
		}
	}
	for (uint32_t v = 0; rc == COLLNET_OK && v < t->n && tried < CANDIDATES; v++) {
		struct cn_fattree *x;

		if (t->v[v].node != CN_TOPO_NONE || largest_piece(t, v) != least) {
			continue;
		}
		tried++;
		rc = root_at(t, v, hosts, &x, err);
		if (rc == COLLNET_OK && (best == NULL || better(x, best))) {
			cn_fattree_free(best);
			best = x;
		} else if (rc == COLLNET_OK) {
			cn_fattree_free(x);
		}
	}
	free(hosts);
	if (rc != COLLNET_OK) {
		cn_fattree_free(best);
		return rc;
	}
	/* A tree without a switch is one host. */
	return best != NULL ? (*out = best, COLLNET_OK) : cn_fattree_new(t, out, err);
}
