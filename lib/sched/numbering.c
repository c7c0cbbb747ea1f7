/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contention-aware numbering of nodes: Tam and Wang, Eq. 5, for switches with unequal numbers of
 * hosts too.
 *
 * Host j (from 0) of the n_s hosts that the team has on switch s stands at (2j + 1) / (2 n_s) of
 * the way from 0 to 1: the hosts of every switch are evenly spread. The numbers follow these
 * places; at equal places the switch that appears first comes first. With n_s = A everywhere, all
 * switches' hosts j stand at one place, so the number is switch + j * B, which is Eq. 5.
 */
#include <stdlib.h>

#include "sched/sched.h"

struct place {
	uint32_t index;	 /* j */
	uint32_t count;	 /* n_s */
	uint32_t order;	 /* of the switch, by first appearance */
	uint32_t node;
};

struct group {
	uint32_t order;
	uint32_t count;
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

int cn_number_nodes(const struct cn_topo *t, const uint32_t *hosts, uint32_t n, uint32_t *logical,
		    struct cn_err *err)
{
	/* One group a vertex that is a switch, and a last one for hosts without a switch. */
	struct group *groups = calloc((size_t)t->nvertices + 1, sizeof(*groups));
	struct place *places = calloc(n ? n : 1, sizeof(*places));
	uint32_t order = 0;
	int rc = COLLNET_OK;

	if (!groups || !places) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory to number %u nodes", n);
		goto out;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s;

		if (hosts[i] >= t->nvertices || t->vertices[hosts[i]].is_switch) {
			rc = cn_fail(err, COLLNET_ETOPO, "node %u of the team is not a host of the "
				     "topology", i);
			goto out;
		}
		s = cn_topo_switch_of(t, hosts[i]);
		if (s >= t->nvertices) {
			s = t->nvertices;
		}
		if (groups[s].count == 0) {
			groups[s].order = order++;
		}
		places[i].node = i;
		places[i].order = s; /* the vertex, until the counts are known */
		places[i].index = groups[s].count++;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct group *g = &groups[places[i].order];

		places[i].count = g->count;
		places[i].order = g->order;
	}
	qsort(places, n, sizeof(*places), compare_places);
	for (uint32_t i = 0; i < n; i++) {
		logical[places[i].node] = i;
	}
out:
	free(places);
	free(groups);
	return rc;
}
