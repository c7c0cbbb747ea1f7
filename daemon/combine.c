/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions of clients. Fragments to combine become messages, and the responses notify the engine
 * that a fragment is combined: the arithmetic is the client's processor time. The daemon reads only
 * the number of the fragment in a response.
 *
 * The daemon itself combines short blocks of a predefined operation. Switching to the client and
 * back takes longer than the arithmetic, in every round of an allreduce. The length of the blocks
 * alone decides, which is the same on all ranks and in every run, not that of a fragment: in a
 * process with another rounding mode the last bits would differ. (The client combines buffers that
 * are not aligned, which the library does not permit.)
 *
 * A node may have many ranks. In an iteration of the loop the daemon combines PER_ITERATION bytes
 * and the fragment that exceeds them; the others wait for the next iteration, in their order. A
 * fragment of SHORT bytes does not wait: other ranks may have many long ones.
 */
#include "daemon/daemon.h"

#define PER_ITERATION (64u << 10)
#define SHORT	      1024u

static struct cn_msg_span span_of(const struct cn_span *s)
{
	return (struct cn_msg_span){ .buffer = s->buffer, .offset = s->offset };
}

static struct cn_op_slot *slot_of(struct cn_reducer *r)
{
	return (struct cn_op_slot *)(void *)((char *)r - offsetof(struct cn_op_slot, reducer));
}

/* Called by the engine: the client combines it. */
static bool forward_to_client(struct cn_reducer *r, const struct cn_combine *piece)
{
	struct cn_op_slot *op = slot_of(r);
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

/* Whether it can be combined here: the client chose where the buffers begin. */
static bool find_operands(const struct cn_op_slot *op, const struct cn_combine *piece,
			  struct cn_operands *o)
{
	const uintptr_t alignment = cn_type_alignment(op->type);

	return cn_combine_operands(&op->buffers, piece, cn_type_bytes(op->type), o) &&
	       (uintptr_t)o->left % alignment == 0 && (uintptr_t)o->right % alignment == 0 &&
	       (uintptr_t)o->out % alignment == 0;
}

static void compute(const struct cn_op_slot *op, const struct cn_combine *piece,
		    struct cn_operands o)
{
	for (uint32_t i = 0; i < piece->operands; i++, o.left = o.out, o.right += piece->bytes) {
		op->arithmetic(o.left, o.right, o.out, o.count);
	}
	op->client->daemon->combining.bytes += piece->operands * piece->bytes;
}

/* Called by the engine: combined here if possible, now or in a later iteration. */
static bool combine(struct cn_reducer *r, const struct cn_combine *piece)
{
	struct cn_op_slot *op = slot_of(r);
	struct cn_daemon *d = op->client->daemon;
	struct cn_operands o;

	if (!find_operands(op, piece, &o)) {
		return forward_to_client(r, piece);
	}
	if (d->combining.bytes < PER_ITERATION || piece->operands * piece->bytes <= SHORT) {
		compute(op, piece, o);
		return true;
	}
	op->deferred = *piece;
	op->operands = o;
	cn_turn_enter(&d->combining.next, &op->waits, op);
	return false;
}

bool cn_combine_pending(struct cn_daemon *d)
{
	bool some = false;

	d->combining.bytes = 0;
	while (d->combining.next != NULL && d->combining.bytes < PER_ITERATION) {
		struct cn_op_slot *op = d->combining.next->owner;

		cn_combine_cancel(op);
		compute(op, &op->deferred, op->operands);
		cn_coll_combined(&op->reducer);
		some = true;
	}
	return some;
}

void cn_combine_cancel(struct cn_op_slot *op)
{
	cn_turn_leave(&op->client->daemon->combining.next, &op->waits);
}

struct cn_reducer *cn_combine_by(struct cn_op_slot *op, const struct cn_coll_args *a,
				 const struct cn_call *call)
{
	op->arithmetic = cn_combine_of_id(a->function, &op->type);
	if (cn_op_is_combined_by_daemon(a->op, a->bytes, op->arithmetic == NULL) &&
	    cn_type_bytes(op->type) == a->element) {
		op->buffers = cn_combine_buffers_of(a, call);
		op->reducer.combine = combine;
	} else {
		op->reducer.combine = forward_to_client;
	}
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
