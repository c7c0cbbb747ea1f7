/* SPDX-License-Identifier: BSD-2-Clause */
/* The caller's part of a reduction: what its elements are, and how two of them are combined. */
#ifndef CN_CLIENT_REDUCE_H
#define CN_CLIENT_REDUCE_H

#include "client/backend.h"

/* count, type and operation as bytes and functions. */
int cn_reduction_settle(size_t count, enum collnet_type type, enum collnet_op op,
			const struct collnet_coll_options *o, struct cn_reduction_call *out,
			struct cn_err *err);
/* Blocks of so many elements become blocks of bytes, one behind the other. */
int cn_reduction_blocks(const struct cn_reduction_call *k, struct cn_block *b, uint32_t n,
			struct cn_err *err);
/* Checks whether buffers are aligned to the type. */
int cn_reduction_check(const struct cn_reduction_call *k, const void *send, const void *recv,
		       struct cn_err *err);
/* Combines a fragment of the request's buffers. False: not within them. */
bool cn_request_combine(struct collnet_request *r, const struct cn_combine *piece);

#endif
