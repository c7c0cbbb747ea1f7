/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal to lib/sched: the planners, one per file, and code shared by the all-to-all ones.
 *
 * A planner is called by cn_sched_plan(), which has checked the layout and the plan, resolved the
 * permutation and cleared the schedule. It sets order and phases and adds the actions, in time and
 * memory proportional to the actions and the nodes.
 */
#ifndef CN_PLANNERS_H
#define CN_PLANNERS_H

#include "sched/sched.h"

cn_planner cn_plan_alltoall_shuffle;
cn_planner cn_plan_alltoall_pairwise;
cn_planner cn_plan_alltoall_linear;
cn_planner cn_plan_alltoall_aapc;
cn_planner cn_plan_alltoall_fattree;
cn_planner cn_plan_allgather_ring;
cn_planner cn_plan_allgather_lr1;
cn_planner cn_plan_allgather_lr2;
cn_planner cn_plan_allgather_lr3;
cn_planner cn_plan_allgather_doubling;
cn_planner cn_plan_barrier_dissemination;
cn_planner cn_plan_barrier_doubling;
cn_planner cn_plan_bcast_smp;
cn_planner cn_plan_bcast_chain;
cn_planner cn_plan_bcast_binary;
cn_planner cn_plan_bcast_kary;
cn_planner cn_plan_bcast_binomial;
cn_planner cn_plan_scatter_furthest;
cn_planner cn_plan_gather_nearest;
cn_planner cn_plan_gather_windowed;
cn_planner cn_plan_allreduce_allgather;
cn_planner cn_plan_allreduce_doubling;
cn_planner cn_plan_halving; /* allreduce, reduce */
cn_planner cn_plan_allreduce_ring;
cn_planner cn_plan_allreduce_chain;
cn_planner cn_plan_reduce_binomial;
cn_planner cn_plan_reduce_chain;
cn_planner cn_plan_reduce_scatter_ring;
cn_planner cn_plan_reduce_scatter_exchange;
cn_planner cn_plan_scan_doubling; /* and exscan */
cn_planner cn_plan_scan_chain;

/* A dependency of actions to be added. */
struct cn_after {
	enum cn_dep dep;
	uint32_t on;
};

/* ---- blocks of any size, shared (blocks.c) -------------------------------------------------- */

/* The messages from one node to another, on one of the two; see sched.h. */
struct cn_messages {
	struct cn_action like;
	struct cn_sched *out;
	uint32_t digest; /* its action; UINT32_MAX: none */
	uint64_t value;
	bool any;
};

/* `like` has all but spans and lengths; `blocks` is how many there can be. */
int cn_messages_begin(struct cn_messages *m, const struct cn_action *like, uint32_t blocks,
		      struct cn_sched *out, struct cn_err *err);
int cn_messages_add(struct cn_messages *m, struct cn_span src, struct cn_span dst, uint64_t len,
		    struct cn_err *err);
int cn_messages_end(struct cn_messages *m, struct cn_err *err);
/* A digest with one more size; it begins with 0. */
uint64_t cn_digest(uint64_t digest, uint64_t len);
/* COLLNET_EMISMATCH: two ranks of one node do not agree about a block. */
int cn_blocks_differ(uint32_t from, uint64_t sent, uint32_t to, uint64_t expected,
		     struct cn_err *err);

/* The root's blocks, on its node. */
const struct cn_blocks *cn_plan_root_blocks(const struct cn_layout *l, const struct cn_plan *p,
					    uint32_t me);

/* ---- all-to-all, shared (alltoall/alltoall.c) --------------------------------------------- */

/* The blocks that stay on this node, each rank's block to itself among them: copies. */
int cn_alltoall_local(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		      struct cn_sched *out, struct cn_err *err);
/* Every block from the ranks of `me` to those of node `to`, by source rank, then destination. */
int cn_alltoall_send(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t to,
		     uint32_t phase, struct cn_after after, struct cn_sched *out,
		     struct cn_err *err);
/* Every block from the ranks of node `from` to those of `me`, in the order in which they come. */
int cn_alltoall_recv(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t from,
		     uint32_t phase, struct cn_sched *out, struct cn_err *err);

/* The partner schedule of a node, by a permutation of contention-aware or plain node numbers. */
struct cn_partners {
	enum cn_permutation kind;
	uint32_t nnodes, steps;
	uint32_t number;   /* of this node */
	uint32_t *node_at; /* number -> node; NULL: the same */
};

int cn_partners_init(struct cn_partners *m, const struct cn_layout *l, const struct cn_plan *p,
		     uint32_t me, struct cn_err *err);
void cn_partners_done(struct cn_partners *m);
/* The node to send to, or to receive from, at step 1 .. steps; CN_IDLE: none. */
uint32_t cn_partners_to(const struct cn_partners *m, uint32_t step);
uint32_t cn_partners_from(const struct cn_partners *m, uint32_t step);

#endif
