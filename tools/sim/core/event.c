/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event queue, by time; at equal times ports become free first, so that a frame that comes just
 * then finds the place; then by the order in which events were made.
 */
#include "tools/sim/core/parts.h"
#include "util/pqueue.h"
#include "util/vector.h"

static bool before(const void *x, const void *y)
{
	const struct event *a = x, *b = y;

	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

bool sim_events_push(struct events *e, struct event v)
{
	struct event *heap = cn_vector_grow(e->heap, e->n, &e->cap, sizeof(*heap));

	if (heap == NULL) {
		return false;
	}
	e->heap = heap;
	v.order = (v.kind == EVENT_FREE ? 0 : UINT64_C(1) << 63) | e->order++;
	cn_pqueue_push(e->heap, e->n++, sizeof(v), &v, before);
	return true;
}

bool sim_events_pop(struct events *e, cn_time until, struct event *out)
{
	if (e->n == 0 || e->heap[0].at > until) {
		return false;
	}
	cn_pqueue_pop(e->heap, e->n--, sizeof(*out), out, before);
	return true;
}
