/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of reductions: combines two arrays of elements to a third. The engine schedules
 * it; the library runs it in the caller's process, the daemon for short blocks.
 */
#ifndef CN_COMBINE_H
#define CN_COMBINE_H

#include "coll/engine.h"
#include "collnet/collnet.h"
#include "util/util.h"

/* out[i] = left[i] op right[i] for n elements; out may be left or right. Aligned to an element. */
typedef void cn_combine_function(const void *left, const void *right, void *out, size_t n);

/* NULL: the type has no such operation, or there is no such type. */
cn_combine_function *cn_combine_find(enum collnet_type type, enum collnet_op op);
/* Bytes of an element, and the alignment that it needs; 0: there is no such type. */
size_t cn_type_bytes(enum collnet_type type);
size_t cn_type_alignment(enum collnet_type type);
/* The operation as the ranks must agree on it, for struct cn_plan. */
uint16_t cn_combine_id(enum collnet_type type, enum collnet_op op);
/* The type of such a number, and its arithmetic; NULL: it is user-defined, or of no such operation.
 */
cn_combine_function *cn_combine_of_id(uint16_t id, enum collnet_type *type);

struct cn_memory {
	uint8_t *p;
	uint64_t bytes;
};

/* A rank's buffers, as mapped in this process. */
struct cn_combine_buffers {
	struct cn_memory send, recv, scratch;
};

/* Those of a call. */
struct cn_combine_buffers cn_combine_buffers_of(const struct cn_coll_args *a,
						const struct cn_call *call);

/* The first operands of a fragment, of `count` elements each; the others follow the right one. */
struct cn_operands {
	const uint8_t *left, *right;
	uint8_t *out;
	size_t count;
};

/* False: the fragment is not within the buffers, or not whole elements of `element` bytes. */
bool cn_combine_operands(const struct cn_combine_buffers *b, const struct cn_combine *piece,
			 size_t element, struct cn_operands *out);

#endif
