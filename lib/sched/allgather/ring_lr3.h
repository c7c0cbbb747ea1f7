/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to LR3: shared by ring_lr3.c (the tree) and ring_lr3_switch.c (one switch). */
#ifndef CN_RING_LR3_H
#define CN_RING_LR3_H

#include "sched/allgather/ring_matching.h"
#include "sched/allgather/ring.h"

/* Elementary steps of trying choices, for one call: about a second. */
#define CN_LR3_WORK ((uint64_t)200000000)

struct cn_lr3 {
	const struct cn_tree *t;
	struct cn_err *err;
	uint32_t top, most;	       /* T */
	uint64_t work;		       /* left */
	struct cn_ring_segment *pairs; /* all fronts */
	uint32_t npairs, cap_pairs;
	uint32_t *front, *nfront; /* [t->n] where a vertex's begins in pairs[], how many it has */
	uint32_t *taken;	  /* [t->n] index in pairs[] of the pair that a vertex takes */
	uint32_t *order;	  /* [t->n] children of a switch in the ring, from first_child on:
				     2 * vertex + turned */
	/* For one switch: its segments are hosts, switches, and what is above it. */
	struct cn_ring_matching rings;
	struct cn_ring_segment *d;
	uint32_t cap_d, *laid;
	uint64_t *many; /* children with several pairs: like ones together */
	uint32_t nmany, *pick;
	uint32_t cap_values, *values, *levels, nlevels; /* heights of ends */
	int32_t *sum,
		*rest; /* by level: small ends that are left, and what the undecided can add */
};

/* A switch: its children as segments, d[], first hosts, then switches. */
struct cn_crossing {
	uint32_t v;
	const uint32_t *child; /* of v: hosts, then switches */
	uint32_t hosts, switches;
	uint32_t used; /* hosts that are segments */
	uint32_t n;    /* segments, without the one above, which is d[n] */
};

struct cn_crossing cn_lr3_crossing(const struct cn_lr3 *s, uint32_t v);
/* Makes the segments of the switch's children, first pairs taken. */
int cn_lr3_open(struct cn_lr3 *s, const struct cn_crossing *c);
/* 1: the n segments of d[] can be laid in a ring (laid[]), by some choice (taken[]); 0: not. */
int cn_lr3_lay(struct cn_lr3 *s, const struct cn_crossing *c, uint32_t n);
/* Sorts, and leaves each once; returns how many are left. */
uint32_t cn_lr3_distinct(uint32_t *x, uint32_t n);
int cn_lr3_no_memory(const struct cn_lr3 *s);

#endif
