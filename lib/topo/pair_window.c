/* SPDX-License-Identifier: BSD-2-Clause */
/* What the hosts' own ports hold of an exchange of blocks of any size, of which much may be for one
 * host. */
#include "topo/topo.h"

#define WINDOW_MAX 65535u

/* The smallest buffer of a port to one of the hosts; COLLNET_WINDOW_OFF: none is limited. */
static uint32_t smallest_host_buffer(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t least = COLLNET_WINDOW_OFF, assumed = cn_topo_assumed_buffer(t);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t buffer = 0;

		/* The only host of a file may have no link. */
		if (cn_topo_switch_of(t, hosts[i]) != CN_TOPO_NONE) {
			buffer = t->links[t->vertices[hosts[i]].parent_link].buffer;
			buffer = buffer != 0 ? buffer : assumed;
		}
		if (buffer != 0 && buffer < least) {
			least = buffer;
		}
	}
	return least;
}

uint32_t cn_topo_pair_window(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t least, room;

	if (n < 2 || n > t->nvertices) {
		return COLLNET_WINDOW_OFF;
	}
	least = smallest_host_buffer(t, hosts, n);
	if (least == COLLNET_WINDOW_OFF) {
		return least;
	}
	room = least / 4 > n - 1 ? least / 4 : n - 1;
	least = least > room ? (least - room) / (n - 1) : 0;
	return least < 1 ? 1 : least > WINDOW_MAX ? WINDOW_MAX : least;
}

uint32_t cn_topo_port_holds(const struct cn_topo *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t least = smallest_host_buffer(t, hosts, n), rest;

	rest = least > n ? least - n : 0;
	return rest < least / 2 ? rest : least / 2;
}
