/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multinode broadcast (all hosts broadcast a packet each) where the switches replicate packets:
 * Dimopoulos and Dimakopoulos, section 4. Data and proof only: collnet does not send this way,
 * since its transport numbers the frames of pairs of hosts and cannot acknowledge a multicast.
 *
 * Flooding needs no plan: every host sends in step 1, a switch passes a packet on through all its
 * other links, and the last of n packets has arrived in step n + 1 on a complete binary tree; but
 * switches need long queues. Here are two ways to send so that no packet ever waits:
 *
 * By turns (cn_multinode_turns): the paper names an algorithm of n + 2 log n - 2 steps without its
 * construction; this one has that count. Like the total exchange, it goes down the tree: the
 * subtrees of a switch tell each other their packets, then each subtree does the same for itself,
 * in parallel and pipelined. So a host sends its packet once for each switch above it: up to that
 * switch and from there to all other subtrees of it. A switch with two subtrees of a and b hosts
 * takes max(a, b) steps (they fill opposite directions); one with more takes as many as there are
 * hosts below, since any two packets meet in a third subtree. On a complete binary tree the sum is
 * n/2 + n/4 + .. + 1 = n - 1, and 2 log n - 1 steps for the last packet's way and the pipeline. It
 * is good on balanced trees; a chain of n switches costs of the order of n^2.
 *
 * By one flood (cn_multinode_times): a host sends once, as in flooding, but in a step of its own:
 * each host in turn gets the earliest step in which its flood meets none of those before, on any
 * link. It is simple and the better one in deep trees; on a star it is as good as can be (n + 1
 * steps). On binary trees two floods from one subtree keep each other off, and it takes 3 n - 3
 * steps from n = 8 on; with 8 hosts no choice of steps at all gives less than 13, where turns need
 * 12.
 */
#ifndef CN_MULTINODE_H
#define CN_MULTINODE_H

#include "topo/tree.h"

/* A packet of a node's that goes up to switch `top` and from there down to its other subtrees. */
struct cn_turn {
	uint32_t node;
	uint32_t top;  /* index in the tree */
	uint64_t step; /* from 1 */
};

/* All turns, a node's together; *out is freed by the caller. At most all hosts' depths in sum. */
int cn_multinode_turns(const struct cn_tree *t, struct cn_turn **out, uint32_t *count,
		       struct cn_err *err);
/* times[i]: the step, from 1, in which node i floods. n^2 times the tree's height, at worst. */
int cn_multinode_times(const struct cn_tree *t, uint64_t *times, struct cn_err *err);

#endif
