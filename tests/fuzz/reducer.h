/* SPDX-License-Identifier: BSD-2-Clause */
/* What a request of a harness combines: sums of bytes, in buffers that the engine must not leave.
 */
#ifndef FUZZ_REDUCER_H
#define FUZZ_REDUCER_H

#include "coll/combine.h"

struct reducer {
	struct cn_reducer engine; /* first: the engine gives it back */
	struct cn_combine_buffers buffers;
	struct cn_operands piece;
	uint32_t element, operands;
	bool later;   /* pieces are combined by reducer_work() */
	bool pending; /* the piece is one of these */
};

/*
 * For a call of a reduction; zeroed before. Sets what `a` lacks. how: 1: in the order of the ranks,
 * 2: pieces are combined later. Its elements have the size that the call says.
 */
void reducer_begin(struct reducer *r, struct cn_coll_args *a, const struct cn_call *c, uint8_t how);
/* Combines the piece that waits, if there is one. */
void reducer_work(struct reducer *r);
/* Frees its memory. Without effect on one that is zeroed. */
void reducer_end(struct reducer *r);

#endif
