/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The global window W_g from the buffers of the switch ports (Tam and Wang, section 3.2, Eq. 3
 * and 4), generalised from equal switches under one root to any tree.
 *
 * A link of a tree parts the n hosts of an exchange into s and n - s. In one step every host sends
 * one frame to a partner, each of the n - 1 others equally often, so nu = s (n - s) / (n - 1)
 * frames a step go through the port on either end of the link. For a host's own port that is 1
 * and for the uplink of one of B switches with A hosts it is A * A (B - 1) / (A B - 1): the
 * paper's two cases. W_g frames a host in flight fill a port with at most W_g * nu frames.
 *
 * A link of c channels is c cables with a port and a buffer each, and a frame goes to one of them:
 * nu / c frames a step for each, or c times the buffer for all. (Evenly, in the mean: a pair of
 * hosts may well keep to one cable.) The spanning tree alone counts: other links carry nothing.
 *
 * A file that says no buffer at all is taken for one of small switches: a window that is a little
 * too small costs a little, none lets queues overflow.
 *
 * All arithmetic is in whole numbers: W_g = floor(buffer c (n - 1) / (control s (n - s))).
 */
#include <stdlib.h>

#include "topo/topo.h"

#define WINDOW_MAX 65535u

/* Frames that a link carries in n - 1 steps: nu (n - 1). Zero: the exchange does not cross it. */
static uint64_t crossings(uint64_t s, uint64_t n)
{
	return s * (n - s);
}

uint32_t cn_topo_assumed_buffer(const struct cn_topo *t)
{
	for (uint32_t i = 0; i < t->nlinks; i++) {
		if (t->links[i].buffer != 0) {
			return 0;
		}
	}
	return CN_TOPO_BUFFER_ASSUMED;
}

static uint32_t buffer_of(const struct cn_topo *t, uint32_t link, uint32_t assumed)
{
	return t->links[link].buffer != 0 ? t->links[link].buffer : assumed;
}

/*
 * a / b < c / d, without a fraction and without a product, which might not fit: while the whole
 * parts are equal the remainders decide, the other way up.
 */
static bool is_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t t;

	while (a / b == c / d) {
		a %= b;
		c %= d;
		if (a == 0 || c == 0) {
			return a == 0 && c != 0;
		}
		t = a;
		a = d;
		d = t;
		t = b;
		b = c;
		c = t;
	}
	return a / b < c / d;
}

/* How many of the hosts are below every vertex; free() it. NULL: no memory. */
static uint32_t *count_below(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t *below = calloc(t->nvertices, sizeof(*below));
	uint32_t i, v;

	for (i = 0; below != NULL && i < n; i++) {
		if (hosts[i] < t->nvertices) {
			below[hosts[i]] = 1;
		}
	}
	for (i = t->nvertices; below != NULL && i-- > 1;) {
		v = t->order[i];
		below[t->vertices[v].parent] += below[v];
	}
	return below;
}

uint32_t cn_topo_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			uint32_t control, uint32_t *bottleneck)
{
	uint64_t best_room = 0, best_cross = 0, cross, room, window;
	uint32_t *below, i, v, link, best = CN_TOPO_NONE, assumed = cn_topo_assumed_buffer(t);

	if (bottleneck != NULL) {
		*bottleneck = CN_TOPO_NONE;
	}
	if (n < 2 || n > t->nvertices) {
		return COLLNET_WINDOW_OFF;
	}
	below = count_below(t, hosts, n);
	if (below == NULL) {
		return 1;
	}
	for (i = 1; i < t->nvertices; i++) {
		v = t->order[i];
		link = t->vertices[v].parent_link;
		cross = crossings(below[v], n);
		room = (uint64_t)buffer_of(t, link, assumed) * t->links[link].channels;
		if (room != 0 && cross != 0 &&
		    (best == CN_TOPO_NONE || is_less(room, cross, best_room, best_cross))) {
			best = link;
			best_room = room;
			best_cross = cross;
		}
	}
	free(below);
	if (best == CN_TOPO_NONE) {
		return COLLNET_WINDOW_OFF;
	}
	if (bottleneck != NULL) {
		*bottleneck = best;
	}
	window = best_room * (n - 1) / ((control == 0 ? 1 : control) * best_cross);
	if (window < 1) {
		window = 1;
	}
	return window > WINDOW_MAX ? WINDOW_MAX : (uint32_t)window;
}

/* The smallest buffer of a port that one of the hosts needs to reach another; COLLNET_WINDOW_OFF:
 * none is limited. False: no memory. */
static bool smallest_buffer(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			    uint32_t *least)
{
	uint32_t *below = count_below(t, hosts, n), assumed = cn_topo_assumed_buffer(t);

	*least = COLLNET_WINDOW_OFF;
	for (uint32_t i = 1; below != NULL && i < t->nvertices; i++) {
		uint32_t v = t->order[i],
			 buffer = buffer_of(t, t->vertices[v].parent_link, assumed);

		if (buffer != 0 && crossings(below[v], n) != 0 && buffer < *least) {
			*least = buffer;
		}
	}
	free(below);
	return below != NULL;
}

uint32_t cn_topo_link_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t least;

	if (n < 2 || n > t->nvertices) {
		return COLLNET_WINDOW_OFF;
	}
	if (!smallest_buffer(t, hosts, n, &least)) {
		return 1;
	}
	if (least == COLLNET_WINDOW_OFF) {
		return least;
	}
	least = least / 2 > 0 ? least / 2 : 1;
	return least > WINDOW_MAX ? WINDOW_MAX : least;
}

uint32_t cn_topo_fan_in(const struct cn_topo *t, const uint32_t *hosts, uint32_t n,
			uint32_t *senders)
{
	uint32_t least = CN_TOPO_BUFFER_ASSUMED;

	*senders = n > 1 ? n - 1 : 1;
	if (t != NULL && n <= t->nvertices && !smallest_buffer(t, hosts, n, &least)) {
		least = CN_TOPO_BUFFER_ASSUMED;
	}
	if (least == COLLNET_WINDOW_OFF) {
		return least;
	}
	least -= least > 1 ? least / 8 + 1 : 0;
	least = least > WINDOW_MAX ? WINDOW_MAX : least;
	*senders = *senders < least ? *senders : least;
	return least / *senders;
}

uint32_t cn_topo_pair_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t least = COLLNET_WINDOW_OFF, room, assumed = cn_topo_assumed_buffer(t);

	if (n < 2 || n > t->nvertices) {
		return COLLNET_WINDOW_OFF;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t buffer = hosts[i] < t->nvertices
					  ? buffer_of(t, t->vertices[hosts[i]].parent_link, assumed)
					  : 0;

		if (buffer != 0 && buffer < least) {
			least = buffer;
		}
	}
	if (least == COLLNET_WINDOW_OFF) {
		return least;
	}
	room = least / 4 > n - 1 ? least / 4 : n - 1;
	least = least > room ? (least - room) / (n - 1) : 0;
	return least < 1 ? 1 : least > WINDOW_MAX ? WINDOW_MAX : least;
}
