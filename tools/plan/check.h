/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the guarantees of a schedule, from the schedule and the tree alone: it shares no code with
 * the generators, and does not depend on how a schedule was generated.
 *
 * Nodes are added one by one, then the check runs once. It reports one violation as one message
 * with the two messages, the link and the phase. Of several it reports the first kind in this list:
 *  - at cn_check_add(): actions make sense (earlier dependencies, peers, ranks, within buffers);
 *  - in a phase a node sends data to at most one node and receives it from at most one (with any
 *    guarantee: in a schedule without guarantees all messages may be concurrent);
 *  - CN_GUARANTEE_LINKS: in a phase no directed link carries more data messages than it has
 * channels;
 *  - sends and receives match, stream by stream: peers, lengths, places, order, phases;
 *  - every block of the operation arrives exactly once, and no other; a node has received the data
 *    that it forwards (it depends on the receive of the data, or on a later receive from the same
 *    node; for sends in turn, a dependency of an earlier send or CN_ACT_WAIT suffices);
 *  - in a reduction: every contribution is combined once, with the same bytes of others and, where
 *    the operation requires it, in the order of the ranks; data that was sent is not changed; each
 *    rank's result of an allreduce is combined in the same way, with the same operands on the left;
 *  - no cycle of waiting; in a barrier every rank's call happens before every rank's return;
 *  - with any guarantee, dependencies and lists agree with the phases: no action waits for one of a
 *    later phase, data is sent phase by phase, a synchronisation has the phase of the data before
 *    it;
 *  - CN_GUARANTEE_ORDERED: of the messages that use a directed link, each one and the one that
 * comes `channels` later (by phase) are ordered: the later one's sender knows, by its own sends and
 * by what it has received and waited for, that the earlier one was sent. (Several channels: the
 *    users of a link can be dealt out to its channels so that this holds on each of them.) Only
 *    sends in turn prove anything, but for messages between the same two nodes;
 *  - CN_GUARANTEE_OPTIMAL: the phases equal the lower bound.
 *
 * A message with len 0 and CN_BUF_NONE is a synchronisation: it counts for order, not for links.
 * (In a barrier it is the message.) Data messages from one node to another that follow each other
 * in the list and have the same phase, the blocks of several ranks, use a link as one.
 *
 * Stricter than the engine: sends in any order must also be possible in list order, and frames
 * interleaved over nodes (CN_ORDER_INTERLEAVED) may not wait for receives.
 *
 * Time and memory: about 0.4 us and 75 bytes per message, and for the order of n nodes clocks of n
 * numbers: one per node, and one for every message in flight that a node waits for.
 */
#ifndef CN_CHECK_H
#define CN_CHECK_H

#include "sched/sched.h"

struct cn_check;

struct cn_check_report {
	uint64_t messages, syncs; /* sends of data; synchronisations */
	uint32_t phases;	  /* that carry data: the last one's number, plus one */
	uint64_t bound;	       /* lower bound of the phases without contention; 0: none is known */
	bool one_block;	       /* it is that of messages of one block each */
	uint32_t longest_path; /* switches on the longest path of a data message */
	uint32_t link_load;    /* most uses of one directed link in one phase ... */
	uint32_t busiest;      /* ... that link (sched's tree), CN_TOPO_NONE without a tree */
	uint32_t busiest_phase;
	uint32_t bottleneck; /* the directed link whose data take longest, over all phases */
	uint64_t link_total; /* ... their bytes */
	uint64_t unordered;  /* pairs of neighbouring users of a link without an order */
};

/* Of vector operations, reduce_scatterv alone; the plan's blocks hold for all nodes, and live on.
 */
int cn_check_new(const struct cn_layout *l, const struct cn_plan *p, struct cn_check **out,
		 struct cn_err *err);
/* Every node once, in any order. The schedule is not kept. */
int cn_check_add(struct cn_check *c, uint32_t node, const struct cn_sched *s, struct cn_err *err);
/*
 * COLLNET_EINVAL and the message: a guarantee or a rule is broken. The report is filled in anyway
 * (`unordered` only if sends and receives match). Claims need a tree.
 */
int cn_check_run(struct cn_check *c, unsigned guarantees, struct cn_check_report *out,
		 struct cn_err *err);
void cn_check_free(struct cn_check *c); /* NULL is ignored */

/*
 * The lower bound of the phases, in each of which a node sends at most one message and receives at
 * most one, and no link carries more messages than it has channels. 0: no tree.
 *
 * In general, ceil(log2 n): some node needs something of each of the n nodes, or each needs
 * something of one, and who knows of a node's data at most doubles in a phase. `one_block`, of
 * alltoall, allgather, scatter and gather: every message has the blocks of one node only. Then n -
 * 1, for there is one port, and of alltoall at least the largest s (n - s) / channels over all
 * links (Faraj and Yuan), rounded up.
 */
uint64_t cn_phase_bound(const struct cn_layout *l, enum cn_op_kind op, bool one_block);

#endif
