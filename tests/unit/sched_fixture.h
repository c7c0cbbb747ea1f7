/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * a fixture for schedules: every node's schedule of one operation, carried out on real buffers by a
 * small interpreter that knows sched.h and nothing of the generators or of lib/coll.
 *
 * Frames are as small as W_FRAME, delivered in order for each pair of nodes, otherwise in an order
 * drawn from a seed. Receive buffers begin as poison, and every byte written is counted.
 */
#ifndef SCHED_FIXTURE_H
#define SCHED_FIXTURE_H

#include "sched/sched.h"

#define W_FRAME	 700u
#define W_NODES	 16u
#define W_RANKS	 (W_NODES * 3)
#define W_NOBODY UINT32_MAX

/* Where ranks are. */
enum w_placement {
	W_ONE = 0,    /* one rank a node */
	W_TWO = 1,    /* two a node, consecutive */
	W_ROUND = 2,  /* three per node, round robin */
	W_UNEVEN = 3, /* one to three a node, shuffled */
	W_PLACEMENTS = 4,
};

struct w_team {
	struct cn_layout layout;
	uint32_t node_of[W_RANKS], first[W_NODES + 1], ranks[W_RANKS], logical[W_NODES];
	struct cn_topo *topo; /* a random tree of switches, node i on a host drawn at random */
	struct cn_tree *tree;
};

struct sched_fixture;

void w_team_init(struct w_team *t, uint32_t nnodes, enum w_placement placement, uint64_t *seed);
void w_team_done(struct w_team *t);

/* Plans every node's part; fails the test if that fails. */
struct sched_fixture *w_new(const struct w_team *t, const struct cn_plan *p);
void w_free(struct sched_fixture *w);
const struct cn_sched *w_sched(const struct sched_fixture *w, uint32_t node);

/* Asserts the invariants of sched.h for all nodes together. */
void w_check(const struct sched_fixture *w, bool phases);

/*
 * Runs until nothing progresses. `eager` per cent of the steps try to send before anything is
 * delivered. Node `frozen` (or W_NOBODY) never does anything.
 */
void w_run(struct sched_fixture *w, uint64_t *seed, uint32_t eager, uint32_t frozen);
/* Every action of the node is complete. */
bool w_complete(const struct sched_fixture *w, uint32_t node);
/* Every byte of every receive buffer is the right one and was written once. Fails the test. */
void w_check_data(const struct sched_fixture *w);

#endif
