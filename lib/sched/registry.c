/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The algorithms, one row each. Ids go on the wire: a row may be added, never renumbered. The
 * first row of an operation is its default.
 *
 * The global window belongs to the shuffle (Algorithm 2 of Tam and Wang) and to the ring, whose
 * sends go to one neighbour as fast as they can. The baselines run without it, as in the paper,
 * unless the caller names a window.
 */
#include <string.h>

#include "sched/planners.h"
#include "sched/sched.h"

static const struct cn_algorithm algorithms[] = {
	{
		.id = 1,
		.op = CN_OP_ALLTOALL,
		.name = "shuffle",
		.description = "synchronous shuffle exchange: frame by frame over destinations",
		.windowed = true,
		.permutation = COLLNET_PERM_AUTO,
		.plan = cn_plan_alltoall_shuffle,
	},
	{
		.id = 2,
		.op = CN_OP_ALLTOALL,
		.name = "pairwise",
		.description = "generalised pairwise exchange: one partner a round",
		.windowed = false,
		.permutation = COLLNET_PERM_EDGE_COLOUR,
		.plan = cn_plan_alltoall_pairwise,
	},
	{
		.id = 3,
		.op = CN_OP_ALLTOALL,
		.name = "linear",
		.description = "all messages at once in rank order: the naive baseline",
		.windowed = false,
		.permutation = COLLNET_PERM_AUTO,
		.plan = cn_plan_alltoall_linear,
	},
	{
		.id = 8,
		.op = CN_OP_ALLGATHER,
		.name = "ring",
		.description = "logical ring: every node forwards what comes from its left",
		.windowed = true,
		.permutation = COLLNET_PERM_AUTO,
		.plan = cn_plan_allgather_ring,
	},
	{
		.id = 12,
		.op = CN_OP_BARRIER,
		.name = "dissemination",
		.description = "dissemination barrier: rounds of doubling distance",
		.windowed = false,
		.permutation = COLLNET_PERM_AUTO,
		.plan = cn_plan_barrier_dissemination,
	},
};

#define NALGORITHMS (sizeof(algorithms) / sizeof(algorithms[0]))

const struct cn_algorithm *cn_algorithms(size_t *count)
{
	*count = NALGORITHMS;
	return algorithms;
}

const struct cn_algorithm *cn_algorithm_find(enum cn_op_kind op, const char *name)
{
	for (size_t i = 0; i < NALGORITHMS; i++) {
		if (algorithms[i].op == op && (!name || strcmp(algorithms[i].name, name) == 0)) {
			return &algorithms[i];
		}
	}
	return NULL;
}

const struct cn_algorithm *cn_algorithm_by_id(uint8_t id)
{
	for (size_t i = 0; i < NALGORITHMS; i++) {
		if (algorithms[i].id == id) {
			return &algorithms[i];
		}
	}
	return NULL;
}
