/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between ranks of this node. One poll moves CN_COPY_CHUNK bytes over all operations: round
 * robin over payers, and over the operations of each. Operations with many actions start in the
 * same way.
 */
#ifndef CN_COPIES_H
#define CN_COPIES_H

#include "util/util.h"

struct cn_op;

#define CN_COPY_PAYERS 64u /* by hash, with collisions */

struct cn_copies {
	struct cn_op *next[CN_COPY_PAYERS]; /* ring of operations per payer; NULL: empty */
	uint64_t used;			    /* bit i: next[i] is not NULL */
	uint32_t next_payer;		    /* the payer that is served next */
};

/* An operation's links in its ring. */
struct cn_copies_place {
	struct cn_op *next, *prev; /* NULL: in none */
	uint32_t payer;
};

/* Adds an operation that has copies to run, or is starting. */
void cn_copies_enter(struct cn_copies *c, struct cn_op *op);
/* Removes it. */
void cn_copies_leave(struct cn_copies *c, struct cn_op *op);
/* Runs copies, and progresses the actions that depend on them. */
void cn_copies_run(struct cn_copies *c, cn_time now);

#endif
