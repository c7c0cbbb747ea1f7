/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A priority queue: a binary heap of items of one size in an array that the caller owns. The
 * functions are inline, so that the compiler sees `before` and copies items of known size. For
 * timers, which are moved and removed, use util/heap.h.
 */
#ifndef CN_PQUEUE_H
#define CN_PQUEUE_H

#include <string.h>

#include "util/util.h"

/* True if item a precedes item b. A strict order. */
typedef bool cn_pqueue_before(const void *a, const void *b);

/* Inserts *item into the n items of `heap`, which has room for one more. The caller updates n. */
static inline void cn_pqueue_push(void *heap, size_t n, size_t size, const void *item,
				  cn_pqueue_before *before)
{
	uint8_t *h = heap;
	size_t i = n;

	for (; i > 0 && before(item, h + (i - 1) / 2 * size); i = (i - 1) / 2) {
		memcpy(h + i * size, h + (i - 1) / 2 * size, size);
	}
	memcpy(h + i * size, item, size);
}

/* Removes the first of the n > 0 items into *out. The caller updates n. */
static inline void cn_pqueue_pop(void *heap, size_t n, size_t size, void *out,
				 cn_pqueue_before *before)
{
	uint8_t *h = heap, *last = h + (n - 1) * size;
	size_t i = 0, c;

	memcpy(out, h, size);
	while ((c = 2 * i + 1) < n - 1) {
		if (c + 1 < n - 1 && before(h + (c + 1) * size, h + c * size)) {
			c++;
		}
		if (!before(h + c * size, last)) {
			break;
		}
		memcpy(h + i * size, h + c * size, size);
		i = c;
	}
	memmove(h + i * size, last, size);
}

#endif
