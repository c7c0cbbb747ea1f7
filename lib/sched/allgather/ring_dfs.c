/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logical rings that are found in one pass over the tree: LR1 and LR2 of Faraj, Patarasuk and
 * Yuan (Algorithms 1 and 2), and the length of any ring.
 *
 * A ring is free of contention exactly when the hosts of every subtree follow one another (their
 * Lemma 2). Both keep to that by giving every subtree a range of places of the ring.
 */
#include <stdlib.h>

#include "sched/allgather/ring.h"

void cn_ring_lr1(const struct cn_tree *t, uint32_t *ring)
{
	uint32_t place = 0;

	for (uint32_t v = 0; v < t->n; v++) {
		if (t->v[v].node != CN_TOPO_NONE) {
			ring[place++] = t->v[v].node;
		}
	}
}

uint32_t cn_ring_top(const struct cn_tree *t)
{
	uint32_t v = 0;

	while (t->v[v].nchildren == 1) {
		v = t->children[t->v[v].first_child];
	}
	return v;
}

uint32_t cn_ring_hosts_of(const struct cn_tree *t, uint32_t v)
{
	const uint32_t *child = t->children + t->v[v].first_child;
	uint32_t n = 0;

	while (n < t->v[v].nchildren && t->v[child[n]].node != CN_TOPO_NONE) {
		n++;
	}
	return n;
}

/*
 * The children of a switch from place[v] on: a host, a switch, a host, a switch, ..., and the
 * hosts that are left. Below the top there is one host more than switches at least, so that the
 * first and the last are hosts.
 */
static void lay_two_hop(const struct cn_tree *t, uint32_t v, uint32_t hosts, uint32_t *place)
{
	const uint32_t *child = t->children + t->v[v].first_child;
	uint32_t switches = t->v[v].nchildren - hosts, at = place[v];

	for (uint32_t i = 0; i < hosts; i++) {
		place[child[i]] = at++;
		if (i < switches) {
			place[child[hosts + i]] = at;
			at += t->v[child[hosts + i]].hosts;
		}
	}
}

int cn_ring_lr2(const struct cn_tree *t, uint32_t *ring, struct cn_err *err)
{
	uint32_t top = cn_ring_top(t), *place = calloc(t->n, sizeof(*place));

	if (place == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a ring of %u hosts", t->nhosts);
	}
	for (uint32_t v = top; v < t->n; v++) {
		uint32_t hosts, neighbours;

		if (t->v[v].node != CN_TOPO_NONE) {
			ring[place[v]] = t->v[v].node;
			continue;
		}
		hosts = cn_ring_hosts_of(t, v);
		neighbours = t->v[v].nchildren - hosts + (v != top);
		if (hosts < neighbours) {
			free(place);
			return cn_fail(
				err, COLLNET_ETOPO,
				"no ring has paths of two switches only: switch %s has %u host%s "
				"of the team and %u neighbouring switches, and needs as many "
				"hosts as those; use lr3",
				t->topo->vertices[t->v[v].vertex].name, hosts,
				hosts == 1 ? "" : "s", neighbours);
		}
		lay_two_hop(t, v, hosts, place);
	}
	free(place);
	return COLLNET_OK;
}

/*
 * Linear for a ring without contention: finding where two hosts meet climbs from the sender, and
 * every link is climbed once.
 */
uint32_t cn_ring_longest(const struct cn_tree *t, const uint32_t *ring, uint32_t *at)
{
	uint32_t longest = 0, place = 0;

	for (uint32_t i = 0; i < t->nhosts; i++) {
		uint32_t next = i + 1 < t->nhosts ? i + 1 : 0;
		uint32_t hops = cn_tree_hops(t, ring != NULL ? ring[i] : i,
					     ring != NULL ? ring[next] : next);

		if (hops > longest) {
			longest = hops;
			place = i;
		}
	}
	if (at != NULL) {
		*at = place;
	}
	return longest;
}
