/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of more than one message. Messages that follow one another in the stream to a node, in one
 * phase, share a frame as far as they fit whole: blocks of several ranks, or of unequal sizes. Both
 * ends derive that from the schedule. The sender copies them, where they stay until the operation's
 * frames are acknowledged.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/op.h"

/* Not an empty frame, whose coming is all that it says. */
static bool can_share(const struct cn_action *a)
{
	return a->len > 0;
}

static uint64_t frames_of(uint64_t len, uint64_t payload)
{
	return len > 0 ? (len + payload - 1) / payload : 1;
}

/* The stream that begins with action i: its frames; *bytes: of those that are shared. */
static uint64_t share(struct cn_op *op, uint32_t i, uint64_t *bytes)
{
	const struct cn_action *actions = op->sched.actions;
	const uint64_t payload = cn_node_payload(op->team->transport->node);
	uint64_t frames = 0;

	while (i != CN_NONE) {
		const struct cn_action *a = &actions[i];
		struct cn_progress *p = &op->progress[i];
		uint64_t sum = a->len;
		uint32_t next = p->next;

		while (next != CN_NONE && can_share(a) && can_share(&actions[next]) &&
		       actions[next].phase == a->phase && sum + actions[next].len <= payload) {
			sum += actions[next].len;
			next = op->progress[next].next;
		}
		p->shared = next != p->next ? (uint32_t)sum : 0;
		p->packed = *bytes;
		*bytes += p->shared;
		frames += p->shared > 0 ? 1 : frames_of(a->len, payload);
		i = next;
	}
	return frames;
}

bool cn_op_share_frames(struct cn_op *op)
{
	uint64_t out = 0, in = 0;
	uint8_t *packed;

	op->frames_out = op->frames_in = 0;
	for (uint32_t k = 0; k < op->team->layout.nnodes; k++) {
		op->frames_out += share(op, op->streams[k].send, &out);
		op->frames_in += share(op, op->streams[k].recv, &in);
	}
	if (out > op->packed_cap) {
		packed = realloc(op->packed, out);
		if (packed == NULL) {
			return false;
		}
		op->packed = packed;
		op->packed_cap = out;
	}
	return true;
}

const uint8_t *cn_op_pack(const struct cn_op *op, uint32_t i)
{
	const struct cn_progress *p = &op->progress[i];
	uint8_t *const packed = op->packed + p->packed;

	for (uint64_t at = 0; at < p->shared; i = op->progress[i].next) {
		const struct cn_action *a = &op->sched.actions[i];

		memcpy(packed + at, cn_op_address(op, &a->src), a->len);
		at += a->len;
	}
	return packed;
}
