/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The algorithms, one row each. Ids go on the wire, beside the operation: a row may be added, never
 * renumbered. The first row of an operation is its default.
 *
 * The global window of Eq. 4 belongs to the shuffle (Algorithm 2 of Tam and Wang). Schedules with
 * one message at a time per link have a window of their own: otherwise nothing throttles a node
 * that sends at the rate of a link that also carries acknowledgements, and the queue before it
 * would grow without bound. The baselines run without one, as in the paper, unless the caller names
 * it.
 */
#include <stdio.h>
#include <string.h>

#include "sched/planners.h"
#include "sched/predict.h"
#include "sched/sched.h"

static const struct cn_algorithm algorithms[] = {
	{
		.id = 1,
		.op = CN_OP_ALLTOALL,
		.name = "shuffle",
		.description = "synchronous shuffle exchange: frame by frame over destinations",
		.window_rule = CN_WINDOW_EXCHANGE,
		.permuted = true,
		.plan = cn_plan_alltoall_shuffle,
		.predict = cn_predict_shuffle,
	},
	{
		.id = 2,
		.op = CN_OP_ALLTOALL,
		.name = "pairwise",
		.description = "generalised pairwise exchange: one partner a round",
		.baseline = true,
		.permuted = true,
		.permutation = CN_PERM_EDGE_COLOUR,
		.plan = cn_plan_alltoall_pairwise,
		.predict = cn_predict_pairwise,
	},
	{
		.id = 3,
		.op = CN_OP_ALLTOALL,
		.name = "linear",
		.description = "all messages at once in rank order: the naive baseline",
		.baseline = true,
		.plan = cn_plan_alltoall_linear,
		.predict = cn_predict_linear,
	},
	{
		.id = 4,
		.op = CN_OP_ALLTOALL,
		.name = "aapc",
		.description = "phases without contention on any tree, as few as its links allow",
		.window_rule = CN_WINDOW_LINK,
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED | CN_GUARANTEE_OPTIMAL,
		.plan = cn_plan_alltoall_aapc,
		.predict = cn_predict_aapc,
	},
	{
		.id = 5,
		.op = CN_OP_ALLTOALL,
		.name = "fattree",
		.description =
			"total exchange in fat trees: switch by switch, as many messages at a "
			"time as its links have channels",
		.window_rule = CN_WINDOW_LINK,
		.baseline =
			true, /* its phases are not kept apart on the wire: ports may overflow */
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS,
		.plan = cn_plan_alltoall_fattree,
		.predict = cn_predict_fattree,
	},
	{
		.id = 8,
		.op = CN_OP_ALLGATHER,
		.name = "ring",
		.description = "logical ring: every node forwards what comes from its left",
		.window_rule = CN_WINDOW_LINK,
		.plan = cn_plan_allgather_ring,
		.predict = cn_predict_ring,
	},
	{
		.id = 9,
		.op = CN_OP_ALLGATHER,
		.name = "lr1",
		.description = "logical ring by the tree, depth-first: no contention",
		.window_rule = CN_WINDOW_LINK,
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED | CN_GUARANTEE_OPTIMAL,
		.plan = cn_plan_allgather_lr1,
		.predict = cn_predict_lr1,
	},
	{
		.id = 10,
		.op = CN_OP_ALLGATHER,
		.name = "lr2",
		.description =
			"logical ring without paths of more than two switches, where there is one",
		.window_rule = CN_WINDOW_LINK,
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED | CN_GUARANTEE_OPTIMAL,
		.plan = cn_plan_allgather_lr2,
		.predict = cn_predict_lr2,
	},
	{
		.id = 11,
		.op = CN_OP_ALLGATHER,
		.name = "lr3",
		.description =
			"logical ring with the shortest longest path of all without contention",
		.window_rule = CN_WINDOW_LINK,
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED | CN_GUARANTEE_OPTIMAL,
		.plan = cn_plan_allgather_lr3,
		.predict = cn_predict_lr3,
	},
	{
		.id = 12,
		.op = CN_OP_ALLGATHER,
		.name = "doubling",
		.description = "rounds of doubling: all blocks that a node has, to one node",
		.window_rule = CN_WINDOW_EXCHANGE,
		.plan = cn_plan_allgather_doubling,
		.predict = cn_predict_doubling,
	},
	{
		.id = 12,
		.op = CN_OP_BARRIER,
		.name = "dissemination",
		.description = "dissemination barrier: rounds of doubling distance",
		.plan = cn_plan_barrier_dissemination,
		.predict = cn_predict_dissemination,
	},
	{
		.id = 13,
		.op = CN_OP_BARRIER,
		.name = "doubling",
		.description = "recursive doubling: pairs exchange, which acknowledges as well",
		.plan = cn_plan_barrier_doubling,
		.predict = cn_predict_barrier_doubling,
	},
	{
		.id = 16,
		.op = CN_OP_BCAST,
		.name = "smp",
		.description =
			"three levels, shortest paths between switches, who has it helps to send",
		.window_rule = CN_WINDOW_LINK,
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS,
		.plan = cn_plan_bcast_smp,
		.predict = cn_predict_bcast,
	},
	{
		.id = 17,
		.op = CN_OP_BCAST,
		.name = "chain",
		.description = "pipelined chain in depth-first order: every link has one sender",
		.window_rule = CN_WINDOW_LINK,
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED,
		.plan = cn_plan_bcast_chain,
		.predict = cn_predict_bcast,
	},
	{
		.id = 18,
		.op = CN_OP_BCAST,
		.name = "binary",
		.description = "pipelined binary tree in which every link has one sender",
		.window_rule = CN_WINDOW_LINK,
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED,
		.plan = cn_plan_bcast_binary,
		.predict = cn_predict_bcast,
	},
	{
		.id = 19,
		.op = CN_OP_BCAST,
		.name = "kary",
		.description =
			"pipelined tree of 3, 4 or 8 children in which every link has one sender",
		.window_rule = CN_WINDOW_LINK,
		.needs_tree = true,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED,
		.plan = cn_plan_bcast_kary,
		.predict = cn_predict_bcast,
	},
	{
		.id = 20,
		.op = CN_OP_BCAST,
		.name = "binomial",
		.description = "binomial tree of the node numbers, whole messages: the baseline",
		.window_rule = CN_WINDOW_LINK,
		.plan = cn_plan_bcast_binomial,
		.predict = cn_predict_bcast,
	},
	{
		.id = 24,
		.op = CN_OP_SCATTER,
		.name = "furthest",
		.description =
			"furthest first: one node a phase, by decreasing distance from the root",
		.window_rule = CN_WINDOW_LINK,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED | CN_GUARANTEE_OPTIMAL,
		.plan = cn_plan_scatter_furthest,
		.predict = cn_predict_furthest,
	},
	{
		.id = 6,
		.op = CN_OP_GATHER,
		.name = "windowed",
		.description = "all send at once, with windows that the root's port has room for",
		.window_rule = CN_WINDOW_FAN_IN,
		.plan = cn_plan_gather_windowed,
		.predict = cn_predict_windowed,
	},
	{
		.id = 26,
		.op = CN_OP_GATHER,
		.name = "nearest",
		.description =
			"nearest first: the scatter reversed in time, one sender after the other",
		.window_rule = CN_WINDOW_LINK,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED | CN_GUARANTEE_OPTIMAL,
		.plan = cn_plan_gather_nearest,
		.predict = cn_predict_nearest,
	},
	{
		.id = 13,
		.op = CN_OP_ALLREDUCE,
		.name = "doubling",
		.description = "recursive doubling: neighbours at doubling distances exchange all",
		.window_rule = CN_WINDOW_EXCHANGE,
		.plan = cn_plan_allreduce_doubling,
		.predict = cn_predict_reduction_rounds,
	},
	{
		.id = 31,
		.op = CN_OP_ALLREDUCE,
		.name = "halving",
		.description = "recursive halving and doubling: a reduce-scatter and an allgather",
		.window_rule = CN_WINDOW_EXCHANGE,
		.plan = cn_plan_halving,
		.predict = cn_predict_reduction_halving,
	},
	{
		.id = 7,
		.op = CN_OP_ALLREDUCE,
		.name = "allgather",
		.description = "rounds of doubling of all blocks, which are combined at the end",
		.window_rule = CN_WINDOW_EXCHANGE,
		.plan = cn_plan_allreduce_allgather,
		.predict = cn_predict_reduction_allgather,
	},
	{
		.id = 14,
		.op = CN_OP_ALLREDUCE,
		.name = "ring",
		.description = "reduce-scatter and allgather on a ring without contention",
		.window_rule = CN_WINDOW_LINK,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED,
		.plan = cn_plan_allreduce_ring,
		.predict = cn_predict_reduction_ring,
	},
	{
		.id = 15,
		.op = CN_OP_ALLREDUCE,
		.name = "chain",
		.description = "along a chain and back, byte by byte",
		.window_rule = CN_WINDOW_TWO_WAY,
		.plan = cn_plan_allreduce_chain,
		.predict = cn_predict_reduction_chain,
	},
	{
		.id = 21,
		.op = CN_OP_REDUCE,
		.name = "binomial",
		.description = "binomial tree of neighbours",
		.plan = cn_plan_reduce_binomial,
		.predict = cn_predict_reduction_rounds,
	},
	{
		.id = 31,
		.op = CN_OP_REDUCE,
		.name = "halving",
		.description = "recursive halving: a reduce-scatter, and a gather at the root",
		.window_rule = CN_WINDOW_EXCHANGE,
		.plan = cn_plan_halving,
		.predict = cn_predict_reduction_halving,
	},
	{
		.id = 22,
		.op = CN_OP_REDUCE,
		.name = "chain",
		.description = "along a chain to the root, byte by byte",
		.window_rule = CN_WINDOW_LINK,
		.plan = cn_plan_reduce_chain,
		.predict = cn_predict_reduction_chain,
	},
	{
		.id = 25,
		.op = CN_OP_REDUCE_SCATTER,
		.name = "exchange",
		.description = "every node sends to every node, and combines what it gets",
		.window_rule = CN_WINDOW_EXCHANGE,
		.plan = cn_plan_reduce_scatter_exchange,
		.predict = cn_predict_reduction_exchange,
	},
	{
		.id = 23,
		.op = CN_OP_REDUCE_SCATTER,
		.name = "ring",
		.description = "every block once round a ring without contention",
		.window_rule = CN_WINDOW_LINK,
		.guarantees = CN_GUARANTEE_LINKS | CN_GUARANTEE_ORDERED,
		.plan = cn_plan_reduce_scatter_ring,
		.predict = cn_predict_reduction_ring,
	},
	{
		.id = 27,
		.op = CN_OP_SCAN,
		.name = "doubling",
		.description = "prefixes of doubling length",
		.window_rule = CN_WINDOW_EXCHANGE,
		.plan = cn_plan_scan_doubling,
		.predict = cn_predict_reduction_rounds,
	},
	{
		.id = 28,
		.op = CN_OP_SCAN,
		.name = "chain",
		.description = "along the chain of the ranks, byte by byte",
		.window_rule = CN_WINDOW_LINK,
		.plan = cn_plan_scan_chain,
		.predict = cn_predict_reduction_chain,
	},
	{
		.id = 29,
		.op = CN_OP_EXSCAN,
		.name = "doubling",
		.description = "prefixes of doubling length",
		.window_rule = CN_WINDOW_EXCHANGE,
		.plan = cn_plan_scan_doubling,
		.predict = cn_predict_reduction_rounds,
	},
	{
		.id = 30,
		.op = CN_OP_EXSCAN,
		.name = "chain",
		.description = "along the chain of the ranks, byte by byte",
		.window_rule = CN_WINDOW_LINK,
		.plan = cn_plan_scan_chain,
		.predict = cn_predict_reduction_chain,
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
	op = cn_op_base(op);
	for (size_t i = 0; i < NALGORITHMS; i++) {
		if (algorithms[i].op == op && (!name || strcmp(algorithms[i].name, name) == 0)) {
			return &algorithms[i];
		}
	}
	return NULL;
}

const char *cn_algorithm_names(enum cn_op_kind op, char *out, size_t size)
{
	size_t len = 0;

	op = cn_op_base(op);
	snprintf(out, size, "none");
	for (size_t i = 0; i < NALGORITHMS && len < size; i++) {
		if (algorithms[i].op == op) {
			len += (size_t)snprintf(out + len, size - len, "%s%s", len > 0 ? ", " : "",
						algorithms[i].name);
		}
	}
	return out;
}

const struct cn_algorithm *cn_algorithm_by_id(enum cn_op_kind op, uint8_t id)
{
	op = cn_op_base(op);
	for (size_t i = 0; i < NALGORITHMS; i++) {
		if (algorithms[i].op == op && algorithms[i].id == id) {
			return &algorithms[i];
		}
	}
	return NULL;
}
