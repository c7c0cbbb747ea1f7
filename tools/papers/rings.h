/* SPDX-License-Identifier: BSD-2-Clause */
/* One point of the experiment on logical rings, for its test too. */
#ifndef COLLNET_EXPERIMENT_RINGS_H
#define COLLNET_EXPERIMENT_RINGS_H

#include "topo/topo.h"
#include "tools/plan/span.h"

struct experiment_rings_point {
	uint32_t machines, switches;
	double lr1_mean, lr3_mean; /* switches on the longest path */
	uint32_t lr1_max, lr3_max;
};

/*
 * `clusters` random clusters of that many machines, five a switch and switches of degree 4 on
 * average, and LR1 and LR3 on a spanning tree of each, from a root drawn at random. The same seed
 * gives the same clusters for every kind of tree.
 */
int experiment_rings_point(uint32_t machines, enum cn_tree_kind kind, uint32_t clusters,
			   uint64_t seed, struct experiment_rings_point *out, struct cn_err *err);

/* The plot's script for papers.c: the panels of Figure 11. */
extern const char experiment_rings_plot[];

#endif
