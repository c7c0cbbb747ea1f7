/* SPDX-License-Identifier: BSD-2-Clause */
/* See reducer.h. */
#include "reducer.h"

#include <stdlib.h>

#include "script.h"
#include "tests/unit/reduction.h"

static void combine_piece(const struct reducer *r)
{
	const struct cn_operands *o = &r->piece;

	reduction_combine_all(false, o->left, o->right, o->out, o->count * r->element, r->operands);
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
