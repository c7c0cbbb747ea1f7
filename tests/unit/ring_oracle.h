/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A brute-force oracle for rings: trees as lists of parents, paths by climbing, contention by
 * counting, the shortest ring by trying all of them, and by the published Algorithm 3. It shares
 * only the trees that it builds with lib/sched.
 */
#ifndef RING_ORACLE_H
#define RING_ORACLE_H

#include "topo/tree.h"

#define RO_SWITCHES 1024u
#define RO_HOSTS    8192u
#define RO_TRIED    9u /* most hosts of ro_shortest() */

/* Switch 0 is the root, parent[i] < i. Host h hangs on switch at[h]. */
struct ro_tree {
	uint32_t nswitches, nhosts;
	uint32_t parent[RO_SWITCHES], at[RO_HOSTS];
};

/* Switches joined as parent[] says with hosts[i] hosts each. False: no host at all. */
bool ro_make(struct ro_tree *r, uint32_t nswitches, const uint32_t *parent, const uint32_t *hosts);
/* The same as collnet has it, all hosts being the team, in their order. Fails the test. */
void ro_read(const struct ro_tree *r, struct cn_topo **topo, struct cn_tree **tree);
void ro_drop(struct cn_topo *topo, struct cn_tree *tree);

/* In switches. */
uint32_t ro_length(const struct ro_tree *r, uint32_t a, uint32_t b);
uint32_t ro_longest(const struct ro_tree *r, const uint32_t *ring);
/* A permutation of the hosts, and no directed link carries two of its messages. */
bool ro_free_of_contention(const struct ro_tree *r, const uint32_t *ring);
/* The smallest longest path of all such rings, of up to RO_TRIED hosts. */
uint32_t ro_shortest(const struct ro_tree *r);
/* The same by Algorithm 3, for switches with up to 8 switches as children. */
uint32_t ro_algorithm3(const struct ro_tree *r);

/* ---- trees --------------------------------------------------------------------------------- */

/* Calls f on every tree of 1 .. nswitches switches with 0 .. most hosts each, but those of none. */
void ro_every(uint32_t nswitches, uint32_t most, void (*f)(const struct ro_tree *r, void *arg),
	      void *arg);
/*
 * A random tree: `nswitches` switches, each joined to one of the last `reach` (0: of all) with at
 * most `degree` children; a switch has 1 .. most hosts with a chance of `percent`, leaves always.
 * Hosts are numbered at random.
 */
void ro_random(struct ro_tree *r, uint32_t nswitches, uint32_t reach, uint32_t degree,
	       uint32_t percent, uint32_t most, uint64_t *seed);

#endif
