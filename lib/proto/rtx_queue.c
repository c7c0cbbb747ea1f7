/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/rtx_queue.h"

#include <stdlib.h>

#include "proto/reorder.h"
#include "proto/serial.h"
#include "proto/wire.h"

void cn_rtx_init(struct cn_rtx_queue *q, uint32_t first)
{
	q->una = q->next = q->end = first;
}

static void put_ring(struct cn_rtx_frame *ring, struct cn_pool *small)
{
	if (cn_pool_owns(small, ring)) {
		cn_pool_put(small, ring);
	} else {
		free(ring);
	}
}

bool cn_rtx_reserve(struct cn_rtx_queue *q, struct cn_pool *small)
{
	uint32_t mask = q->ring == NULL ? CN_RTX_SMALL - 1 : q->mask * 2 + 1;
	struct cn_rtx_frame *ring;

	if (q->ring != NULL && cn_rtx_in_flight(q) <= q->mask) {
		return true;
	}
	ring = q->ring == NULL ? cn_pool_get(small) : malloc(((size_t)mask + 1) * sizeof(*ring));
	if (ring == NULL) {
		return false;
	}
	for (uint32_t seq = q->una; seq != q->end; seq++) {
		ring[seq & mask] = *cn_rtx_at(q, seq);
	}
	put_ring(q->ring, small);
	q->ring = ring;
	q->mask = mask;
	return true;
}

void cn_rtx_trim(struct cn_rtx_queue *q, struct cn_pool *small)
{
	if (q->mask == CN_RTX_SMALL - 1 && q->ring != NULL) {
		put_ring(q->ring, small);
		q->ring = NULL;
	}
}

void cn_rtx_free(struct cn_rtx_queue *q, struct cn_pool *small)
{
	put_ring(q->ring, small);
	q->ring = NULL;
}

void cn_rtx_sack(struct cn_rtx_queue *q, uint32_t sack, uint32_t reorder)
{
	uint32_t bitmap = sack & CN_SACK_BITMAP, i = 0;

	for (uint32_t seq = q->una; seq != q->end; seq++, i++) {
		struct cn_rtx_frame *f = cn_rtx_at(q, seq);

		if (i == 0 || f->refused || (sack & CN_SACK_VALID) == 0) {
			f->sacked = false;
		} else if (i <= CN_REORDER_MAX && bitmap >> (i - 1) != 0) {
			f->sacked = (bitmap >> (i - 1) & 1) != 0;
		} else {
			f->sacked = i <= reorder && (f->sacked || cn_serial_before(seq, q->next));
		}
	}
}

void cn_rtx_skip_sacked(struct cn_rtx_queue *q)
{
	while (q->next != q->end && cn_rtx_at(q, q->next)->sacked) {
		q->next++;
	}
}
