/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <stdlib.h>

#include "util/heap.h"

int cn_heap_init(struct cn_heap *h, uint32_t cap)
{
	h->timers = calloc((size_t)cap + 1, sizeof(*h->timers));
	h->count = 0;
	h->cap = cap;
	return h->timers != NULL ? COLLNET_OK : COLLNET_ENOMEM;
}

void cn_heap_fini(struct cn_heap *h)
{
	free(h->timers);
	h->timers = NULL;
	h->count = h->cap = 0;
}

static void put(struct cn_heap *h, uint32_t place, struct cn_timer *t)
{
	h->timers[place] = t;
	t->place = place;
}

static void sift(struct cn_heap *h, uint32_t place, struct cn_timer *t)
{
	while (place > 1 && h->timers[place / 2]->at > t->at) {
		put(h, place, h->timers[place / 2]);
		place /= 2;
	}
	for (;;) {
		uint32_t child = place * 2;

		if (child > h->count) {
			break;
		}
		if (child < h->count && h->timers[child + 1]->at < h->timers[child]->at) {
			child++;
		}
		if (h->timers[child]->at >= t->at) {
			break;
		}
		put(h, place, h->timers[child]);
		place = child;
	}
	put(h, place, t);
}

void cn_heap_set(struct cn_heap *h, struct cn_timer *t, cn_time at)
{
	uint32_t place = t->place;

	if (at == CN_NEVER) {
		t->at = CN_NEVER;
		if (place != 0) {
			struct cn_timer *last = h->timers[h->count--];

			t->place = 0;
			if (last != t) {
				sift(h, place, last);
			}
		}
		return;
	}
	if (place == 0) {
		assert(h->count < h->cap);
		place = ++h->count;
	} else if (t->at == at) {
		return;
	}
	t->at = at;
	sift(h, place, t);
}

struct cn_timer *cn_heap_first(const struct cn_heap *h)
{
	return h->count > 0 ? h->timers[1] : NULL;
}
