/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the planners of broadcasts. A broadcast is a tree of nodes (parents, and the order in
 * which a node serves its children) and a segment length; phases, predicted time and each node's
 * schedule are derived from it.
 *
 * Phases are periodic: segment s of the message to node v goes in phase offset[v] + s * period. A
 * node's first child is served after the node was, and all its children within one period, so that
 * list order and the order of phases are one. cn_bcast_colour() chooses offsets and the smallest
 * period it can find so that in no phase a directed link carries more messages than it has
 * channels; with one segment it is enough that no two offsets on a link are equal.
 *
 * Times are nanoseconds and integers, so that all nodes of a team decide alike.
 */
#ifndef CN_BCAST_H
#define CN_BCAST_H

#include "sched/cost.h"
#include "sched/planners.h"

#define CN_BCAST_SEGMENTS_MAX 65536u

struct cn_bcast {
	uint32_t n, root; /* nodes */
	uint32_t *parent; /* [n] CN_TOPO_NONE: the root */
	uint32_t *order;  /* [n] the root first; the children of a node are neighbours in it,
			   * in the order in which they are served */
	uint32_t *first, *nchildren; /* [n] place in order[] of the first child */
	uint32_t *offset;	     /* [n] phase of the first segment; root: not used */
	uint32_t period, phases;
	bool phased; /* offset[] is set */
	uint64_t bytes, segment;
	uint32_t segments; /* at least 1 */
	uint64_t time;	   /* predicted; 0 without a tree of the network */
	uint32_t *load;	   /* [2 t->n] a segment's messages on a link; NULL: not known */
};

/* Builds a tree (see below); segment 0: chosen by the model. */
typedef int cn_bcast_builder(const struct cn_layout *l, uint32_t root, uint64_t bytes,
			     uint64_t segment, const struct cn_cost *c, struct cn_bcast *out,
			     struct cn_err *err);

cn_bcast_builder cn_bcast_smp;
cn_bcast_builder cn_bcast_chain;
cn_bcast_builder cn_bcast_binary;
cn_bcast_builder cn_bcast_kary;
cn_bcast_builder cn_bcast_binomial;

/* A contention-free tree of at most k (1 .. 8) children per node (kary.c). */
int cn_bcast_kary_tree(const struct cn_layout *l, uint32_t root, uint32_t k, struct cn_bcast *b,
		       struct cn_err *err);

/* Allocates storage for n nodes, b->parent all CN_TOPO_NONE; call done after a failure, too. */
int cn_bcast_init(struct cn_bcast *b, uint32_t n, uint32_t root, struct cn_err *err);
void cn_bcast_done(struct cn_bcast *b);
/* seq: all nodes but the root; b->parent is set. Siblings are served in the order of seq. */
int cn_bcast_arrange(struct cn_bcast *b, const uint32_t *seq, struct cn_err *err);
/* Sets bytes, segment and segments; segment 0: a single segment. COLLNET_ELIMIT: too many. */
int cn_bcast_segment(struct cn_bcast *b, uint64_t bytes, uint64_t segment, struct cn_err *err);
/* Chooses the segment (unless given), and sets the segments and the time. */
int cn_bcast_choose(struct cn_bcast *b, const struct cn_tree *t, const struct cn_cost *c,
		    uint64_t bytes, uint64_t segment, struct cn_err *err);
/* The i-th segment length that the model tries, decreasing; 0 after the last. */
uint64_t cn_bcast_try(const struct cn_cost *c, uint64_t bytes, uint32_t i);
/* Offsets, period and phases; siblings are put in the order of their offsets. */
int cn_bcast_colour(struct cn_bcast *b, const struct cn_tree *t, struct cn_err *err);

/* The cost of a message: how long the sender's port is busy, and when it has arrived. */
void cn_bcast_cost(const struct cn_cost *c, const struct cn_tree *t, uint32_t from, uint32_t to,
		   uint64_t bytes, uint64_t *busy, uint64_t *total);
/*
 * The time of a segmented tree: a node receives segment after segment and sends each to its
 * children in turn, one message at a time. The first segment takes what it takes; each further one
 * comes after the time that the slowest node on the way needs to serve its children once, or that
 * the busiest link of all needs for the messages of a segment. With one segment and known phases,
 * messages of one phase share the links that they have in common.
 */
int cn_bcast_time(struct cn_bcast *b, const struct cn_tree *t, const struct cn_cost *c,
		  struct cn_err *err);

/* Builds, emits, done. */
int cn_bcast_plan(cn_bcast_builder *build, const struct cn_layout *l, const struct cn_plan *p,
		  uint32_t me, struct cn_sched *out, struct cn_err *err);
/* The predicted time of p's algorithm and its choices: for the selection, and for explanations. */
int cn_bcast_predict(const struct cn_layout *l, const struct cn_plan *p, const struct cn_cost *c,
		     struct cn_bcast *out, struct cn_err *err);

#endif
