/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fragmentation of a stream into frames. Consecutive messages of one phase are a run, which is
 * fragmented as if it were one message (coalescing): otherwise blocks of several ranks, or of
 * unequal sizes, would have frames of their own. Both ends derive the runs from the schedule. The
 * sender copies a frame that contains more than one message, and keeps the copy until the
 * operation's frames are acknowledged. In a long stream (CN_STREAM_SHORT), where partial frames
 * matter less, every message is a run of its own, which bounds this memory.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/op.h"

/* An empty message is one frame. */
static uint64_t frames_of(uint64_t len, uint64_t payload)
{
	return len > 0 ? (len + payload - 1) / payload : 1;
}

static bool is_short(const struct cn_op *op, uint32_t i)
{
	uint64_t bytes = 0;

	for (; i != CN_NONE && bytes <= CN_STREAM_SHORT; i = op->progress[i].next) {
		bytes += op->sched.actions[i].len;
	}
	return bytes <= CN_STREAM_SHORT;
}

/* Finds the run that message i starts, in a short or long stream, and its bytes. Returns the
 * message after it. */
static uint32_t find_run(struct cn_op *op, uint32_t i, bool in_short)
{
	const struct cn_action *actions = op->sched.actions;
	struct cn_progress *first = &op->progress[i];
	uint32_t next = first->next;

	first->run = actions[i].len;
	while (in_short && next != CN_NONE && actions[i].len > 0 && actions[next].len > 0 &&
	       actions[next].phase == actions[i].phase) {
		first->run += actions[next].len;
		next = op->progress[next].next;
	}
	first->after = next;
	return next;
}

/* Bytes of the frames of a run that contain more than one message. */
static uint64_t mixed_bytes(struct cn_op *op, uint32_t i)
{
	const uint64_t frame = cn_op_frame_bytes(op, op->progress[i].run);
	const uint32_t after = op->progress[i].after;
	uint64_t at = 0, bytes = 0, counted = UINT64_MAX;

	for (; op->progress[i].next != after; i = op->progress[i].next) {
		at += op->sched.actions[i].len;
		if (at % frame != 0 && at / frame != counted) {
			counted = at / frame;
			bytes += frame;
		}
	}
	return bytes;
}

/* Finds the run that message i begins, and counts its frames. Returns its messages. */
static uint32_t fragment_run(struct cn_op *op, uint32_t i)
{
	struct cn_starting *s = &op->starting;
	const uint32_t after = find_run(op, i, s->is_short);
	const uint64_t frames = frames_of(op->progress[i].run,
					  cn_node_payload(op->team->transport->node));
	uint32_t messages = 1;

	for (uint32_t m = op->progress[i].next; m != after; m = op->progress[m].next) {
		messages++;
	}
	if (s->received) {
		op->frames_in += frames;
	} else {
		op->frames_out += frames;
		s->mixed += messages > 1 ? mixed_bytes(op, i) : 0;
	}
	s->message = after;
	return messages;
}

void cn_op_fragment_begin(struct cn_op *op)
{
	op->frames_out = op->frames_in = op->mixed_used = 0;
}

uint32_t cn_op_fragment_more(struct cn_op *op)
{
	struct cn_starting *s = &op->starting;

	while (s->node < op->team->layout.nnodes) {
		const struct cn_streams *st = &op->streams[s->node];

		if (!s->in_stream) {
			s->in_stream = true;
			s->message = s->received ? st->recv : st->send;
			s->is_short = s->message != CN_NONE && is_short(op, s->message);
		}
		if (s->message != CN_NONE) {
			return fragment_run(op, s->message);
		}
		s->in_stream = false;
		s->node += s->received;
		s->received = !s->received;
	}
	return 0;
}

bool cn_op_fragment_end(struct cn_op *op)
{
	const uint64_t before = cn_op_bytes(op), bytes = op->starting.mixed;
	uint8_t *mixed;

	if (bytes > op->mixed_cap) {
		mixed = realloc(op->mixed, bytes);
		if (mixed == NULL) {
			return false;
		}
		op->mixed = mixed;
		op->mixed_cap = bytes;
		cn_op_count(op, before);
	}
	return true;
}

uint64_t cn_op_next_frame(struct cn_op *op, struct cn_fragmenter *c, uint32_t i)
{
	uint64_t most;

	if (c->left == 0) {
		c->run = c->left = op->progress[i].run;
		c->after = op->progress[i].after;
	}
	most = cn_op_frame_bytes(op, c->run);
	return c->left < most ? c->left : most;
}

const uint8_t *cn_op_frame_data(struct cn_op *op, uint32_t i, uint64_t n)
{
	const struct cn_action *a = &op->sched.actions[i];
	uint64_t done = op->progress[i].done, part;
	uint8_t *mixed;

	if (n <= a->len - done) {
		return n > 0 ? cn_op_address(op, &a->src) + done : NULL;
	}
	mixed = op->mixed + op->mixed_used;
	op->mixed_used += n;
	for (uint64_t at = 0; at < n; at += part) {
		a = &op->sched.actions[i];
		done = op->progress[i].done;
		part = a->len - done < n - at ? a->len - done : n - at;
		memcpy(mixed + at, cn_op_address(op, &a->src) + done, part);
		i = op->progress[i].next;
	}
	return mixed;
}
