/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <stdlib.h>

#include "util/heap.h"

int cn_heap_init(struct cn_heap *h, uint32_t cap)
{
	h->slots = calloc((size_t)cap + 1, sizeof(*h->slots));
	h->count = 0;
	h->cap = cap;
	return h->slots != NULL ? COLLNET_OK : COLLNET_ENOMEM;
}

void cn_heap_fini(struct cn_heap *h)
{
	free(h->slots);
	h->slots = NULL;
	h->count = h->cap = 0;
}

static void put(struct cn_heap *h, uint32_t place, struct cn_heap_slot s)
{
	h->slots[place] = s;
	s.timer->place = place;
}

static void sift(struct cn_heap *h, uint32_t place, struct cn_heap_slot s)
{
	while (place > 1 && h->slots[place / 2].at > s.at) {
		put(h, place, h->slots[place / 2]);
		place /= 2;
	}
	for (;;) {
		uint32_t child = place * 2;

		if (child > h->count) {
			break;
		}
		if (child < h->count && h->slots[child + 1].at < h->slots[child].at) {
			child++;
		}
		if (h->slots[child].at >= s.at) {
			break;
		}
		put(h, place, h->slots[child]);
		place = child;
	}
	put(h, place, s);
}

void cn_heap_set(struct cn_heap *h, struct cn_timer *t, cn_time at)
{
	uint32_t place = t->place;

	if (at == CN_NEVER) {
		t->at = CN_NEVER;
		if (place != 0) {
			struct cn_heap_slot last = h->slots[h->count--];

			t->place = 0;
			if (last.timer != t) {
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
	sift(h, place, (struct cn_heap_slot){ at, t });
}

struct cn_timer *cn_heap_first(const struct cn_heap *h)
{
	return h->count > 0 ? h->slots[1].timer : NULL;
}
