/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A binary heap of timers. A timer is embedded in its owner and stores its index, so that it can be
 * moved or removed in O(log n). Capacity is fixed at init; nothing is allocated later.
 */
#ifndef CN_HEAP_H
#define CN_HEAP_H

#include "util/util.h"

struct cn_timer {
	cn_time at;	/* CN_NEVER: not in the heap */
	uint32_t place; /* 1-based; 0: not in the heap */
	void *owner;
};

struct cn_heap_slot {
	cn_time at; /* copy of the timer's, for locality */
	struct cn_timer *timer;
};

struct cn_heap {
	struct cn_heap_slot *slots; /* [1 .. count] */
	uint32_t count, cap;
};

int cn_heap_init(struct cn_heap *h, uint32_t cap); /* 0 or COLLNET_ENOMEM */
void cn_heap_fini(struct cn_heap *h);
/* Inserts, moves or (CN_NEVER) removes the timer. At most `cap` timers. */
void cn_heap_set(struct cn_heap *h, struct cn_timer *t, cn_time at);
/* The earliest timer, or NULL. */
struct cn_timer *cn_heap_first(const struct cn_heap *h);

/* Its time; CN_NEVER: empty. */
static inline cn_time cn_heap_next(const struct cn_heap *h)
{
	return h->count > 0 ? h->slots[1].at : CN_NEVER;
}

#endif
