/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logical rings of the hosts of a tree: Faraj, Patarasuk and Yuan, Algorithms 1, 2 and 3. All are
 * free of contention: every directed link is used by one message of the ring.
 */
#ifndef CN_RING_H
#define CN_RING_H

#include "topo/tree.h"

/* LR1: depth-first, which is the order of the tree. ring[i] is a node of the team. */
void cn_ring_lr1(const struct cn_tree *t, uint32_t *ring);
/* LR2: no path longer than two switches. COLLNET_ETOPO names a switch that breaks Theorem 2's
 * condition (as many hosts as neighbouring switches, at least). */
int cn_ring_lr2(const struct cn_tree *t, uint32_t *ring, struct cn_err *err);
/* LR3: the smallest maximum path length of all contention-free rings. COLLNET_ELIMIT: it was not
 * found with a bounded amount of work (see ring_lr3.c; no network that is built comes near). */
int cn_ring_lr3(const struct cn_tree *t, uint32_t *ring, struct cn_err *err);
/* The longest path of a ring (NULL: 0, 1, 2, ...), in switches; *at (may be NULL): the position
 * of its sender. */
uint32_t cn_ring_longest(const struct cn_tree *t, const uint32_t *ring, uint32_t *at);

/* For those above: the lowest vertex above all hosts (with P = 1 it is the host), and the number
 * of hosts among a vertex's children, which come first. */
uint32_t cn_ring_top(const struct cn_tree *t);
uint32_t cn_ring_hosts_of(const struct cn_tree *t, uint32_t v);

#endif
