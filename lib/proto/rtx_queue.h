/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The retransmission queue of one peer: frames that were sent and are not acknowledged.
 *
 * Sequence numbers una <= next <= end are SND.UNA, SND.NXT and SND.MAX of TCP. Frames [una, end)
 * are in the queue; if next < end, frames from `next` on are due for retransmission, except sacked
 * ones.
 */
#ifndef CN_RTX_QUEUE_H
#define CN_RTX_QUEUE_H

#include "util/pool.h"
#include "util/util.h"

struct cn_rtx_frame {
	const uint8_t *payload;
	void *token;	 /* the engine's; NULL: no upcall when it is acknowledged */
	cn_time sent_at; /* last time */
	uint32_t stream;
	uint16_t len;
	uint8_t type, flags;
	bool resent;  /* sent more than once: no round-trip sample (Karn) */
	bool sacked;  /* in the receiver's reorder buffer or on its way there: not retransmitted */
	bool owned;   /* payload is a buffer of the node's pool, returned when acknowledged */
	bool refused; /* RNR: the receiver dropped it, or will; not retransmitted since */
};

/* Frames of the smallest ring. Control messages need no more, and most pairs of nodes exchange
 * nothing else. */
#define CN_RTX_SMALL 2u

struct cn_rtx_queue {
	/* A power of two, grown with the frames in flight. Smallest rings are of the node's pool,
	 * and returned (NULL) when nothing is in flight. */
	struct cn_rtx_frame *ring;
	uint32_t mask;
	uint32_t una, next, end;
};

/* The queue is empty; its first frame gets number `first`. */
void cn_rtx_init(struct cn_rtx_queue *q, uint32_t first);
/* Makes room for one more frame. False: no memory. */
bool cn_rtx_reserve(struct cn_rtx_queue *q, struct cn_pool *small);
/* Returns the smallest ring to its pool. Nothing is in flight. */
void cn_rtx_trim(struct cn_rtx_queue *q, struct cn_pool *small);
void cn_rtx_free(struct cn_rtx_queue *q, struct cn_pool *small);

/*
 * Marks the frames that need no retransmission by `sack`, as in proto/wire.h (0: none): the sacked
 * ones, and those after the last sacked one that were sent and that the receiver's reorder buffer,
 * of `reorder` frames, can hold when they arrive. Frames further ahead arrive before the missing
 * one and are dropped. Frames due for retransmission are not on their way, nor are refused ones:
 * later frames would take their room in the window.
 */
void cn_rtx_sack(struct cn_rtx_queue *q, uint32_t sack, uint32_t reorder);
/* Moves `next` over sacked frames. */
void cn_rtx_skip_sacked(struct cn_rtx_queue *q);

static inline struct cn_rtx_frame *cn_rtx_at(const struct cn_rtx_queue *q, uint32_t seq)
{
	return &q->ring[seq & q->mask];
}

static inline uint32_t cn_rtx_in_flight(const struct cn_rtx_queue *q)
{
	return q->end - q->una;
}

#endif
