/* SPDX-License-Identifier: BSD-2-Clause */
/* See reducer.h. */
#include "reducer.h"

#include <stdlib.h>

#include "script.h"

static void combine_piece(struct reducer *r)
{
	const struct cn_operands *o = &r->piece;
	const size_t n = o->count * r->element;

	for (size_t i = 0; i < n; i++) {
		uint8_t value = o->left[i];

		for (uint32_t k = 0; k < r->operands; k++) {
			value = (uint8_t)(value + o->right[k * n + i]);
		}
		o->out[i] = value;
	}
}

static bool combine(struct cn_reducer *engine, const struct cn_combine *piece)
{
	struct reducer *r = (struct reducer *)engine;

	script_check(!r->pending && piece->operands > 0 && piece->out.buffer != CN_BUF_SEND &&
		     cn_combine_operands(&r->buffers, piece, r->element, &r->piece));
	r->operands = piece->operands;
	r->pending = r->later;
	if (!r->pending) {
		combine_piece(r);
	}
	return !r->pending;
}

void reducer_begin(struct reducer *r, struct cn_coll_args *a, const struct cn_call *c, uint8_t how)
{
	const uint64_t n = cn_call_scratch_bytes(c);

	a->ordered = (how & 1) != 0;
	a->function = how & 1;
	a->element = c->element;
	a->scratch = calloc(1, n > 0 ? n : 1);
	script_check(a->scratch != NULL);
	a->reducer = &r->engine;
	r->engine.combine = combine;
	r->later = (how & 2) != 0;
	r->element = c->element;
	r->buffers = cn_combine_buffers_of(a, c);
}

void reducer_work(struct reducer *r)
{
	if (r->pending) {
		r->pending = false;
		combine_piece(r);
		cn_coll_combined(&r->engine);
	}
}

void reducer_end(struct reducer *r)
{
	free(r->buffers.scratch.p);
}
