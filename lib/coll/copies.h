/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies within this node, of operations. One poll moves CN_COPY_CHUNK bytes for all of them
 * together, however many have copies to make: those of one payer after the other, and of each one
 * operation after the other. Operations with many actions start in the same turns.
 */
#ifndef CN_COPIES_H
#define CN_COPIES_H

#include "util/util.h"

struct cn_op;

#define CN_COPY_PAYERS 64u /* by hash: several share one */

struct cn_copies {
	struct cn_op *next[CN_COPY_PAYERS]; /* a ring of each; NULL: empty */
	uint64_t used;			    /* bit i: next[i] is not NULL */
	uint32_t next_payer;		    /* the payer that is served next */
};

/* Place of an operation in its ring. */
struct cn_copies_place {
	struct cn_op *next, *prev; /* NULL: in none */
	uint32_t payer;
};

/* The operation has copies that can run, or is starting. */
void cn_copies_enter(struct cn_copies *c, struct cn_op *op);
/* It has none. */
void cn_copies_leave(struct cn_copies *c, struct cn_op *op);
/* Runs copies, and goes on with what waits for them. */
void cn_copies_run(struct cn_copies *c, cn_time now);

#endif
