/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event heap: 4-ary, by time; at equal times ports become free first, so that a frame that
 * comes just then finds the place; then by the order in which events were made.
 */
#include <stdlib.h>

#include "sim/parts.h"

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

bool sim_events_push(struct events *e, struct event v)
{
	uint32_t i = e->n;

	if (e->n == e->cap) {
		uint32_t cap = e->cap == 0 ? 1024 : e->cap * 2;
		struct event *heap = cap > e->cap ? realloc(e->heap, cap * sizeof(*heap)) : NULL;

		if (heap == NULL) {
			return false;
		}
		e->heap = heap;
		e->cap = cap;
	}
	e->n++;
	v.order = (v.kind == EVENT_FREE ? 0 : UINT64_C(1) << 63) | e->order++;
	while (i > 0 && before(&v, &e->heap[(i - 1) / 4])) {
		e->heap[i] = e->heap[(i - 1) / 4];
		i = (i - 1) / 4;
	}
	e->heap[i] = v;
	return true;
}

static void sift_down(struct events *e, struct event v)
{
	uint32_t i = 0;

	for (;;) {
		uint32_t first = 4 * i + 1, least = first, last = first + 4;

		if (first >= e->n) {
			break;
		}
		last = last < e->n ? last : e->n;
		for (uint32_t k = first + 1; k < last; k++) {
			if (before(&e->heap[k], &e->heap[least])) {
				least = k;
			}
		}
		if (!before(&e->heap[least], &v)) {
			break;
		}
		e->heap[i] = e->heap[least];
		i = least;
	}
	e->heap[i] = v;
}

bool sim_events_pop(struct events *e, cn_time until, struct event *out)
{
	if (e->n == 0 || e->heap[0].at > until) {
		return false;
	}
	*out = e->heap[0];
	e->n--;
	if (e->n > 0) {
		sift_down(e, e->heap[e->n]);
	}
	return true;
}
