/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of unexpected frames, in order of arrival. */
#include "coll/unexpected_queue.h"

#include "coll/stream.h"

void cn_unexpected_queue_append(struct cn_unexpected_queue *q, struct cn_unexpected *f)
{
	f->next = NULL;
	if (q->last != NULL) {
		q->last->next = f;
	} else {
		q->first = f;
	}
	q->last = f;
}

struct cn_unexpected *cn_unexpected_queue_pop(struct cn_unexpected_queue *q)
{
	struct cn_unexpected *f = q->first;

	if (f != NULL) {
		q->first = f->next;
		q->last = q->first != NULL ? q->last : NULL;
	}
	return f;
}

void cn_unexpected_queue_split(struct cn_unexpected_queue *q, enum cn_unexpected_of of,
			       uint32_t which, struct cn_unexpected_queue *out)
{
	struct cn_unexpected *f = q->first, *next;

	q->first = q->last = NULL;
	for (; f != NULL; f = next) {
		const bool moves = of == CN_UNEXPECTED_OF_PEER ? f->peer == which
							       : cn_stream_number(f->stream) ==
									 (which & CN_NUMBER_MASK);

		next = f->next;
		cn_unexpected_queue_append(moves ? out : q, f);
	}
}
