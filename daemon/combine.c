/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions of clients: pieces to combine become messages, and the responses tell the engine that
 * a piece is combined. The daemon never does the arithmetic, and reads nothing in a response but
 * which piece it is.
 */
#include "daemon/daemon.h"

static struct cn_msg_span span_of(const struct cn_span *s)
{
	return (struct cn_msg_span){ .buffer = s->buffer, .offset = s->offset };
}

/* Called by the engine. */
static bool combine(struct cn_reducer *r, const struct cn_combine *piece)
{
	struct cn_op_slot *op = (struct cn_op_slot *)(void *)((char *)r -
							      offsetof(struct cn_op_slot, reducer));
	const struct cn_msg_combine m = {
		.head = { .type = CN_MSG_COMBINE, .tag = (uint32_t)(op - op->client->ops) },
		.piece = ++op->client->pieces,
		.left = span_of(&piece->left),
		.right = span_of(&piece->right),
		.out = span_of(&piece->out),
		.bytes = piece->bytes,
		.operands = piece->operands,
		.last = piece->last,
	};

	op->piece = m.piece;
	op->combining = !piece->last;
	cn_client_combine(op->client, &m);
	return piece->last; /* the client combines it before it takes the DONE that follows */
}

struct cn_reducer *cn_combine_by(struct cn_op_slot *op)
{
	op->reducer.combine = combine;
	return &op->reducer;
}

void cn_combined(struct cn_client *c, const struct cn_msg_combined *m)
{
	struct cn_op_slot *op = &c->ops[m->head.tag];

	if (op->busy && op->combining && op->piece == m->piece) {
		op->combining = false;
		cn_coll_combined(&op->reducer);
	}
}
