/* SPDX-License-Identifier: BSD-2-Clause */
/* An in-process switch whose ports are links (lib/link/link.h), for tests of the layers above. */
#ifndef CN_HUB_H
#define CN_HUB_H

#include "link/link.h"

/*
 * An in-process hub of `ports` links; mac of port i is 02:00:00:00:hi:lo of i + 1. `depth` frames
 * wait at most at a port; more are dropped, as in a switch.
 */
struct cn_hub;
struct cn_hub *cn_hub_new(uint32_t ports, uint32_t mtu, uint32_t depth);
void cn_hub_free(struct cn_hub *h);
struct cn_link *cn_hub_port(struct cn_hub *h, uint32_t port); /* owned by the hub */
/* Faults, by seed, each in parts per million of frames: lost, duplicated, swapped, corrupted. */
struct cn_hub_faults {
	uint64_t seed;
	uint32_t loss, duplicate, reorder, corrupt;
};
void cn_hub_set_faults(struct cn_hub *h, const struct cn_hub_faults *f);
/* The encapsulation that the links report; raw by default. */
void cn_hub_set_encapsulation(struct cn_hub *h, enum cn_encapsulation e);
void cn_hub_cut(struct cn_hub *h, uint32_t port, bool cut); /* cable pulled / put back */

#endif
