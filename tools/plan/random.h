/* SPDX-License-Identifier: BSD-2-Clause */
/* Random clusters. */
#ifndef CN_RANDOM_H
#define CN_RANDOM_H

#include "topo/topo.h"

/*
 * A random cluster as in Faraj, Patarasuk and Yuan, section 5: `switches` switches joined at
 * random, connected, with an average degree of `degree` (no more links than pairs of switches;
 * at least a tree), and `hosts` hosts, each at a switch drawn with equal probability. The same
 * seed gives the same cluster. rate and buffer 0: unknown.
 */
struct cn_topo_random {
	uint32_t hosts, switches;
	double degree;
	uint64_t seed, rate;
	uint32_t buffer;
};
int cn_topo_random(const struct cn_topo_random *r, struct cn_topo **out, struct cn_err *err);

#endif
