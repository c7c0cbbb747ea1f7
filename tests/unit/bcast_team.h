/* SPDX-License-Identifier: BSD-2-Clause */
/* Teams on given and random networks, for tests of broadcasts. */
#ifndef BCAST_TEAM_H
#define BCAST_TEAM_H

#include "sched/bcast/bcast.h"

extern uint64_t bcast_seed;
uint32_t bcast_below(uint32_t n);

struct bcast_team {
	struct cn_layout l;
	struct cn_topo *topo;
	struct cn_tree *tree;
	uint32_t *node_of, *first, *ranks;
};

/* All hosts of a topology, 1 .. most ranks on each, in random order. Owns the topology. */
void bcast_team(struct bcast_team *t, struct cn_topo *topo, uint32_t most);
void bcast_team_done(struct bcast_team *t);
struct cn_topo *bcast_shape(const char *text);

/* 1 .. switches switches and 1 .. hosts hosts anywhere; rates and channels of all kinds. */
struct cn_topo *bcast_random_topo(uint32_t switches, uint32_t hosts);

/* Phases of one segment by k children, which is how low the tree is. */
uint32_t bcast_height(const struct bcast_team *t, uint32_t root, uint32_t kids);

#endif
