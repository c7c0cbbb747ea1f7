/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves what a schedule promises, from the schedule and the tree alone: it shares no code with
 * the generators, and knows nothing of how a schedule was made.
 *
 * Fed node by node, then run once. It checks, and reports the first violation as one sentence with
 * the two messages, the link and the phase:
 *  - sends and receives match, stream by stream: peers, lengths, places, order, phases;
 *  - every block that the operation owes arrives exactly once, and none else; what a node sends on
 *    it has before (a dependency on the receive that brings it);
 *  - a node sends data to at most one node and receives it from at most one in a phase;
 *  - CN_CLAIM_LINKS: in a phase no directed link carries more data messages than it has channels;
 *  - CN_CLAIM_ORDERED: of the messages that use a directed link, each one and the one that comes
 *    `channels` later (by phase) are ordered: the later one's sender knows, by its own sends and by
 *    what it has received and waited for, that the earlier one was sent;
 *  - CN_CLAIM_OPTIMAL: the phases equal the lower bound.
 *
 * A message with len 0 and CN_BUF_NONE is a synchronisation: it counts for order, not for links.
 */
#ifndef CN_CHECK_H
#define CN_CHECK_H

#include "sched/sched.h"

struct cn_check;

struct cn_check_report {
	uint64_t messages, syncs; /* data messages between nodes; synchronisations */
	uint32_t phases;	  /* that carry data: the last one's number, plus one */
	uint64_t bound;		  /* lower bound of the phases; 0: none is known */
	uint32_t longest_path;	  /* switches on the longest path of a data message */
	uint32_t link_load;	  /* most data messages on one directed link in one phase ... */
	uint32_t busiest;	  /* ... that link (sched's tree), CN_TOPO_NONE without a tree */
	uint32_t busiest_phase;
	uint64_t link_total;	  /* most data bytes on one directed link over all phases ... */
	uint32_t bottleneck;	  /* ... that link */
	uint64_t unordered;	  /* pairs of neighbouring users of a link without an order */
};

int cn_check_new(const struct cn_layout *l, const struct cn_plan *p, struct cn_check **out,
		 struct cn_err *err);
/* Every node once, in any order. The schedule is not kept. */
int cn_check_add(struct cn_check *c, uint32_t node, const struct cn_sched *s, struct cn_err *err);
/* COLLNET_EINVAL and the sentence: a claim or a rule is broken. The report is filled in anyway. */
int cn_check_run(struct cn_check *c, unsigned claims, struct cn_check_report *out,
		 struct cn_err *err);
void cn_check_free(struct cn_check *c); /* NULL is ignored */

/*
 * The lower bound of the phases in which a node sends and receives one block: alltoall, the
 * largest s (n - s) / channels over all links (Faraj and Yuan); allgather, scatter, gather n - 1;
 * bcast the largest distance in messages, ceil(log2 n); barrier the same. 0: no tree.
 */
uint64_t cn_phase_bound(const struct cn_layout *l, enum cn_op_kind op);

#endif
