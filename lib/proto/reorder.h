/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reorder buffer of one peer: up to eight frames that arrived before an earlier one. Each is in
 * a buffer of the caller.
 *
 * Invariant: all frames are among the CN_REORDER_MAX after the one that the receiver expects, so
 * each has a slot by its number.
 */
#ifndef CN_REORDER_H
#define CN_REORDER_H

#include "proto/wire.h"

#define CN_REORDER_MAX 8

struct cn_reorder_frame {
	uint8_t *data; /* NULL: the slot is free */
	struct cn_wire wire;
};

struct cn_reorder {
	struct cn_reorder_frame *slots; /* [CN_REORDER_MAX] by number; NULL until the first frame */
	uint32_t count;
};

void cn_reorder_free(struct cn_reorder *r); /* it is empty */
bool cn_reorder_has(const struct cn_reorder *r, uint32_t seq);
/* Copies the frame into `buffer` and adds it. False: no memory; the caller keeps the buffer. */
bool cn_reorder_put(struct cn_reorder *r, const struct cn_wire *w, const uint8_t *payload,
		    uint8_t *buffer);
/* Removes frame `seq`. False: not buffered. */
bool cn_reorder_remove(struct cn_reorder *r, uint32_t seq, struct cn_reorder_frame *out);
/* Removes any frame and returns its buffer; NULL: empty. */
uint8_t *cn_reorder_drop(struct cn_reorder *r);
/* The SACK bitmap beyond `expected`, with CN_SACK_VALID; 0: empty. */
uint32_t cn_reorder_sack(const struct cn_reorder *r, uint32_t expected);

#endif
