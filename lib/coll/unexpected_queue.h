/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unexpected message queue of a team: frames received before their operation has started here.
 * Each is in a buffer of the node's pool, which the caller allocates and frees.
 */
#ifndef CN_UNEXPECTED_QUEUE_H
#define CN_UNEXPECTED_QUEUE_H

#include "util/util.h"

struct cn_unexpected {
	struct cn_unexpected *next;
	uint32_t stream;
	uint16_t peer, len; /* index of the peer; bytes of data */
	uint8_t flags;
	uint8_t data[];
};

enum cn_unexpected_of { CN_UNEXPECTED_OF_PEER, CN_UNEXPECTED_OF_OPERATION };

struct cn_unexpected_queue {
	struct cn_unexpected *first, *last;
};

void cn_unexpected_queue_append(struct cn_unexpected_queue *q, struct cn_unexpected *f);
struct cn_unexpected *cn_unexpected_queue_pop(struct cn_unexpected_queue *q); /* NULL: empty */
/* Moves the frames of this peer, or operation, to the empty queue `out`; both keep their order. */
void cn_unexpected_queue_split(struct cn_unexpected_queue *q, enum cn_unexpected_of of,
			       uint32_t which, struct cn_unexpected_queue *out);

#endif
