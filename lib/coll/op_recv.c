/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving half of an operation: the order of frames determines their position in the receive
 * buffer; frames of an operation that has not started are unexpected and go to the team's queue.
 * Mismatched calls are detected at the first frame with another length or last flag.
 */
#include <stdio.h>
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/stream.h"
#include "proto/wire.h"

_Static_assert(offsetof(struct cn_unexpected, data) <= CN_WIRE_HEADER, "room in a buffer");

static const char other_sizes[] = "other sizes";

/* The calls of the two nodes do not match. */
static void mismatch(struct cn_team *t, const struct cn_op *op, uint32_t k, const char *what)
{
	const bool blocks = what == other_sizes && cn_op_is_vector(op->args.op);
	char of[40] = "";

	if (!cn_op_is_vector(op->args.op)) {
		snprintf(of, sizeof(of), " of %llu bytes", (unsigned long long)op->args.bytes);
	}
	cn_team_fail(t, true, COLLNET_EMISMATCH,
		     "node %s does not match node %s in operation %u (%s%s on %s): %s; "
		     "%s",
		     t->nodes[k].name, t->engine->config.node.name, op->seq + 1,
		     cn_op_called(&op->args), of, t->engine->config.node.name, what,
		     blocks ? "the two ranks of a block must pass the same size for it"
			    : "every rank must call the same operation with the same sizes, root, "
			      "types and options");
}

/* True if `len` bytes, the last ones of the stream or not, are its next frame by this schedule. */
static bool is_next_frame(struct cn_op *op, struct cn_streams *s, uint32_t len, bool last)
{
	return len == cn_op_next_frame(op, &s->in, s->recv) &&
	       last == (len == s->in.left && s->in.after == CN_NONE);
}

/* Receives bytes of the current message from node k. False: a digest that differs. */
static bool receive_part(struct cn_op *op, uint32_t k, const uint8_t *data, uint32_t len)
{
	struct cn_streams *s = &op->streams[k];
	const uint32_t i = s->recv;
	struct cn_action *a = &op->sched.actions[i];
	struct cn_progress *p = &op->progress[i];

	if (a->dst.buffer == CN_BUF_DIGEST) {
		if (memcmp((const uint8_t *)&a->dst.offset + p->done, data, len) != 0) {
			return false;
		}
	} else if (len > 0) {
		uint8_t *to = cn_op_address(op, &a->dst) + p->done;

		if (data != to) { /* a wrongly placed frame may overlap */
			memmove(to, data, len);
		}
	}
	p->done += len;
	cn_op_stream_copies(op, i, data, p->done - len, len);
	if (p->done == a->len) {
		s->recv = p->next;
		if (s->recv == CN_NONE) {
			cn_op_unexpect(op, k);
		}
		cn_op_complete(op, i);
	}
	return true;
}

static void receive(struct cn_op *op, uint32_t k, uint32_t stream, uint8_t flags,
		    const uint8_t *data, uint32_t len)
{
	struct cn_team *t = op->team;
	struct cn_streams *s = &op->streams[k];
	uint64_t left;
	uint32_t part;

	if (cn_stream_signature(stream) != cn_op_signature(op)) {
		char difference[80];

		cn_op_difference(op, stream, difference, sizeof(difference));
		mismatch(t, op, k, difference);
		return;
	}
	if (s->recv == CN_NONE) {
		mismatch(t, op, k, "it sends more");
		return;
	}
	if (!is_next_frame(op, s, len, (flags & CN_FLAG_LAST) != 0)) {
		mismatch(t, op, k, other_sizes);
		return;
	}
	cn_flight_received(&op->source.flight, cn_node_window(t->transport->node));
	cn_op_unexpected_received(op, k);
	if ((flags & CN_FLAG_ROOM) != 0) {
		t->nodes[k].room_for = op->seq + 1;
	}
	/* Data may go back, and while there is any to send, acknowledgements would compete with it:
	 * those of the last round coincide. A node whose frame was unexpected may have gone
	 * meanwhile. */
	if (op->ntargets > 0 && t->nodes[k].peer != NULL) {
		cn_peer_reply_soon(t->nodes[k].peer);
	}
	s->in.left -= len;
	do {
		left = op->sched.actions[s->recv].len - op->progress[s->recv].done;
		part = left < len ? (uint32_t)left : len;
		if (!receive_part(op, k, data, part)) {
			mismatch(t, op, k, other_sizes);
			return;
		}
		data += part;
		len -= part;
	} while (len > 0);
	cn_op_reduce(op);
	if (op->remaining == 0) {
		cn_op_try_finish(op);
	}
}

static struct cn_op *running(struct cn_team *t, uint32_t stream)
{
	uint32_t number = cn_stream_number(stream);
	struct cn_op *op = t->ops[number % CN_OPS];

	return op != NULL && op->state == OP_RUNNING && (op->seq & CN_NUMBER_MASK) == number ? op
											     : NULL;
}

/* The node that sent it; UINT16_MAX: not in the team. */
static uint32_t sender_of(const struct cn_team *t, const struct cn_unexpected *f)
{
	return f->peer < t->npeers ? t->node_by_peer[f->peer] : UINT16_MAX;
}

void cn_op_deliver_unexpected(struct cn_op *op)
{
	struct cn_team *t = op->team;
	struct cn_unexpected_queue mine = { NULL, NULL };
	struct cn_unexpected *f;
	uint32_t seq = op->seq, k;
	bool any;

	cn_unexpected_queue_split(&t->unexpected, CN_UNEXPECTED_OF_OPERATION, seq, &mine);
	any = mine.first != NULL;
	/* A frame may fail the team, or be the operation's last. */
	while (t->state == CN_TEAM_READY && (f = cn_unexpected_queue_pop(&mine)) != NULL) {
		k = sender_of(t, f);
		if (k != UINT16_MAX && op->state == OP_RUNNING && op->seq == seq) {
			receive(op, k, f->stream, f->flags, f->data, f->len);
		}
		cn_node_buffer_put(t->transport->node, f);
	}
	cn_team_drop_unexpected(t, &mine);
	if (any) {
		cn_node_ready(t->transport->node);
	}
}

/*
 * The distance of the frame's operation from the next one to start here; more than half of the
 * number space: it has started, and finished if it is not running. A node that only sends (to the
 * root of a gather) may run ahead by as much as unexpected_limit.h allows.
 */
static uint32_t ahead(const struct cn_team *t, uint32_t stream)
{
	return (cn_stream_number(stream) - t->nstarted) & CN_NUMBER_MASK;
}

static bool enqueue_unexpected(struct cn_team *t, struct cn_peer *p, const struct cn_rx *rx)
{
	struct cn_unexpected *f = cn_node_buffer_get(t->transport->node);

	if (f == NULL) {
		return false;
	}
	f->stream = rx->stream;
	f->peer = (uint16_t)cn_peer_index(cn_engine_peer_of(p)->peer);
	f->len = rx->len;
	f->flags = rx->flags;
	memcpy(f->data, rx->payload, rx->len);
	cn_unexpected_queue_append(&t->unexpected, f);
	return true;
}

/* A frame of this operation shows that node k has started it. */
static void record_started(struct cn_team *t, uint32_t k, uint32_t stream)
{
	cn_unexpected_limit_started(&t->nodes[k].unexpected, t->nstarted + ahead(t, stream) + 1);
}

void cn_op_record_started(struct cn_team *t)
{
	for (const struct cn_unexpected *f = t->unexpected.first; f != NULL; f = f->next) {
		const uint32_t k = sender_of(t, f);

		if (k != UINT16_MAX) {
			record_started(t, k, f->stream);
		}
	}
}

bool cn_op_deliver(struct cn_team *t, struct cn_peer *p, const struct cn_rx *rx)
{
	struct cn_op *op;
	uint32_t k;

	if (t->state == CN_TEAM_FAILED) {
		return true;
	}
	if (t->state == CN_TEAM_FORMING) {
		return enqueue_unexpected(t, p, rx);
	}
	k = cn_team_node_of(t, p);
	if (k == UINT32_MAX || t->nodes[k].peer != p || t->nodes[k].failed) {
		return true; /* not in the team, or the team failed there */
	}
	op = running(t, rx->stream);
	if (op == NULL && ahead(t, rx->stream) > CN_NUMBER_MASK / 2) {
		cn_team_fail(t, true, COLLNET_EMISMATCH,
			     "node %s sent more data for an operation than node %s expected: every "
			     "rank must call the same operations with the same sizes",
			     t->nodes[k].name, t->engine->config.node.name);
		return true;
	}
	if (op == NULL) {
		record_started(t, k, rx->stream);
		return enqueue_unexpected(t, p, rx);
	}
	receive(op, k, rx->stream, rx->flags, rx->payload, rx->len);
	return true;
}

bool cn_op_place(struct cn_team *t, const struct cn_peer *p, const struct cn_rx *rx,
		 struct cn_rx_place *out)
{
	uint32_t k = t->state == CN_TEAM_READY ? cn_team_node_of(t, p) : UINT32_MAX, i;
	struct cn_op *op = k != UINT32_MAX ? running(t, rx->stream) : NULL;
	const struct cn_action *a;
	uint64_t done, next;

	if (op == NULL || t->nodes[k].peer != p || t->nodes[k].failed ||
	    cn_stream_signature(rx->stream) != cn_op_signature(op) ||
	    op->streams[k].recv == CN_NONE) {
		return false;
	}
	i = op->streams[k].recv;
	a = &op->sched.actions[i];
	if (a->dst.buffer == CN_BUF_DIGEST || a->dst.buffer == CN_BUF_NONE) {
		return false;
	}
	done = op->progress[i].done;
	next = cn_op_next_frame(op, &op->streams[k].in, i);
	out->at = cn_op_address(op, &a->dst) + done;
	out->room = a->len - done;
	if (op->streams[k].in.left > out->room) { /* the frames of this message alone */
		out->room -= next > 0 ? out->room % next : 0;
	}
	return out->room >= next;
}

void cn_op_tombstone(struct cn_team *t, const struct cn_peer *p)
{
	uint32_t k = t->state == CN_TEAM_READY ? cn_team_node_of(t, p) : UINT32_MAX;

	if (k != UINT32_MAX) {
		t->nodes[k].failed = true;
	}
}
