/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress of an operation: its actions, the copies between local ranks, and its end. */
#include <stdio.h>
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/stream.h"

#define COPY_MIN 64u /* minimum cost of a copy, in bytes */

bool cn_op_busy(const struct cn_op *op)
{
	return op->state != OP_FREE;
}

uint32_t cn_op_locals(const struct cn_team *t)
{
	return t->layout.first[t->me + 1] - t->layout.first[t->me];
}

const char *cn_op_called(const struct cn_coll_args *a)
{
	switch (a->making) {
	case CN_MAKING_SPLIT:
		return "split";
	case CN_MAKING_DUP:
		return "dup";
	default:
		return cn_op_name(a->op);
	}
}

_Static_assert(CN_OP_KINDS <= 32, "an operation has five bits of a signature");

/* Four bits of a reduction: its type; of a user's function, which has none, the size of its
 * elements. */
static uint32_t elements(const struct cn_plan *p)
{
	const uint32_t type = p->function & 0xffu;

	return (type != 0 ? type : p->element % 15) & 15u;
}

/* The 12 bits of what is called. */
#define KIND_OP	      0x1fu
#define KIND_TYPE     0x8e0u
#define KIND_MAKING   0x300u /* not of reductions */
#define KIND_OPERATOR 0x100u /* the high bit of a reduction's */
#define KIND_ORDERED  0x400u

uint32_t cn_op_signature(const struct cn_op *op)
{
	const struct cn_plan *p = &op->plan;
	uint32_t kind = (uint32_t)p->making << 8 | p->op;
	uint32_t low = (p->permutation & 3u) << 1 | p->contention_aware;

	if (cn_op_reduces(p->op)) {
		kind |= (elements(p) & 7u) << 5 | (p->function >> 11 & 1u) << 8 |
			(uint32_t)p->ordered << 10 | (elements(p) & 8u) << 8;
	}
	if (cn_op_base(p->op) >= CN_OP_BCAST) { /* these have a root instead, or a function */
		low = (p->root + (p->function >> 8)) & 7;
	}
	return cn_signature(kind, (uint32_t)p->algorithm << 3 | low);
}

/* Name of the call of a frame's sender. */
static const char *called(uint32_t kind)
{
	struct cn_coll_args a = { .op = kind & KIND_OP };

	if (a.op < CN_OP_ALLTOALL || a.op >= CN_OP_KINDS) {
		return "an unknown operation";
	}
	a.making = cn_op_reduces(a.op) ? CN_MAKING_NONE : (kind & KIND_MAKING) >> 8;
	return cn_op_called(&a);
}

void cn_op_difference(const struct cn_op *op, uint32_t stream, char *to, size_t room)
{
	const struct cn_plan *p = &op->plan;
	const uint32_t differs = cn_op_signature(op) ^ cn_stream_signature(stream),
		       kind = differs >> 20;
	const struct cn_algorithm *a = cn_algorithm_by_id(p->op, stream >> 3 & 31);

	if ((kind & KIND_OP) != 0 || (!cn_op_reduces(p->op) && (kind & KIND_MAKING) != 0)) {
		snprintf(to, room, "it called %s", called(stream >> 20));
	} else if ((kind & KIND_ORDERED) != 0) {
		snprintf(to, room, "commutative on one of them only");
	} else if ((kind & KIND_TYPE) != 0) {
		snprintf(to, room, "another type");
	} else if ((differs >> 3 & 31) != 0) {
		snprintf(to, room, "algorithm %s there and %s here",
			 a != NULL ? a->name : "unknown",
			 cn_algorithm_by_id(p->op, p->algorithm)->name);
	} else {
		snprintf(to, room, "another %s",
			 cn_op_base(p->op) >= CN_OP_BCAST ? "root or operator"
							  : "order of the nodes");
	}
}

struct cn_post *cn_op_post(const struct cn_op *op, uint32_t rank)
{
	const struct cn_layout *l = &op->team->layout;
	const uint32_t *ranks = l->ranks + l->first[op->team->me];
	uint32_t n = cn_op_locals(op->team), low = 0;

	while (n > 1) { /* binary search of the rank's index among this node's */
		uint32_t half = n / 2;

		if (ranks[low + half] <= rank) {
			low += half;
			n -= half;
		} else {
			n = half;
		}
	}
	return &op->posts[low];
}

uint8_t *cn_op_address(const struct cn_op *op, const struct cn_span *s)
{
	const struct cn_post *post;

	if (s->buffer == CN_BUF_NONE) {
		return NULL;
	}
	if (s->buffer == CN_BUF_DIGEST) {
		return (uint8_t *)(uintptr_t)&s->offset;
	}
	post = cn_op_post(op, s->rank);
	switch (s->buffer) {
	case CN_BUF_SEND:
		return (uint8_t *)(uintptr_t)post->send + s->offset;
	case CN_BUF_SCRATCH:
		return post->scratch + s->offset;
	default:
		return post->recv + s->offset;
	}
}

uint64_t cn_op_frame_bytes(struct cn_op *op, uint64_t len)
{
	if (len == 0) {
		return cn_node_payload(op->team->transport->node);
	}
	if (op->framed != len) {
		const uint64_t most = cn_node_payload(op->team->transport->node);
		const uint64_t frames = (len + most - 1) / most;

		op->framed = len;
		op->frame_bytes = frames > 1 ? (len + frames - 1) / frames : most;
	}
	return op->frame_bytes;
}

/* ---- the end -------------------------------------------------------------------------- */

void cn_op_expect(struct cn_op *op, cn_time now, uint32_t k)
{
	struct cn_streams *s = &op->streams[k];

	if (!s->expected && op->team->nodes[k].peer != NULL) {
		s->expected = true;
		cn_peer_expect(op->team->transport->node, now, op->team->nodes[k].peer, 1);
	}
}

void cn_op_unexpect(struct cn_op *op, uint32_t k)
{
	struct cn_streams *s = &op->streams[k];

	if (s->expected && op->team->nodes[k].peer != NULL) {
		cn_peer_expect(op->team->transport->node, 0, op->team->nodes[k].peer, -1);
	}
	s->expected = false;
}

/* Calls back every rank of this node. The operation is free afterwards. */
static void finish(struct cn_op *op, int status, const char *text)
{
	struct cn_team *t = op->team;
	uint32_t n = cn_op_locals(t);

	if (op->state == OP_RUNNING) {
		cn_source_stop(&t->transport->sources, &op->source,
			       cn_node_window(t->transport->node));
		for (uint32_t k = 0; k < t->layout.nnodes; k++) {
			if (op->streams[k].expected) {
				cn_op_unexpect(op, k);
			}
		}
	}
	if (op->planning) {
		cn_tasks_forget_op(op);
	}
	op->planned = false;
	op->state = OP_FREE;
	op->nposts = 0;
	op->copy_first = CN_NONE;
	cn_op_turn_leave(op);
	cn_op_put_idle(op);
	cn_team_touch(t);
	for (uint32_t i = 0; i < n; i++) {
		struct cn_done *d = op->posts[i].done;

		op->posts[i].done = NULL;
		if (op->posts[i].reducer != NULL) {
			op->posts[i].reducer->op = NULL;
			op->posts[i].reducer = NULL;
		}
		if (d == NULL) {
			continue;
		}
		if (t->local[i] != NULL) {
			t->local[i]->done_ops++;
		}
		d->fn(d, status, text);
	}
}

void cn_op_abort(struct cn_op *op, int status, const char *text)
{
	if (op->state == OP_RUNNING) {
		cn_node_abandon(op->team->transport->node, &op->source);
	}
	finish(op, status, text);
}

uint32_t cn_op_copied_max(const struct cn_op *op)
{
	return 4 * op->team->layout.nnodes + 64;
}

void cn_op_try_finish(struct cn_op *op)
{
	struct cn_node *node = op->team->transport->node;

	if (op->state != OP_RUNNING || op->remaining > 0) {
		return;
	}
	if (op->source.flight.unacked > 0 &&
	    !cn_node_detach(node, &op->source, cn_op_copied_max(op))) {
		cn_node_request_acks(node, &op->source); /* of all of them */
		return;
	}
	op->team->operations++;
	finish(op, COLLNET_OK, "");
}

/* True if polls of the transport may progress it: sends, waits, or its end. Copies and combinations
 * progress also while the transport is inactive. */
static bool progresses_in_polls(const struct cn_op *op)
{
	return op->ntargets > 0 || op->synchronised || op->remaining == op->deferred_reduces;
}

void cn_op_progress(struct cn_op *op)
{
	cn_op_reduce(op);
	if (progresses_in_polls(op)) {
		cn_team_touch(op->team);
	}
	cn_op_try_finish(op);
}

/* ---- progress ------------------------------------------------------------------------- */

void cn_op_turn_enter(struct cn_op *op)
{
	if (op->copies.next == NULL) {
		op->copies.payer = cn_turn_of(cn_team_payer(op->team));
		cn_turns_enter(&op->team->engine->copies, &op->copies, op);
	}
}

void cn_op_turn_leave(struct cn_op *op)
{
	cn_turns_leave(&op->team->engine->copies, &op->copies);
}

void cn_op_queue_copy(struct cn_op *op, uint32_t i)
{
	if (op->progress[i].queued) {
		return;
	}
	op->progress[i].queued = true;
	op->progress[i].next = CN_NONE;
	if (op->copy_first == CN_NONE) {
		op->copy_first = i;
		cn_op_turn_enter(op);
	} else {
		op->progress[op->copy_last].next = i;
	}
	op->copy_last = i;
}

void cn_op_complete(struct cn_op *op, uint32_t i)
{
	op->progress[i].complete = true;
	op->remaining--;
	for (uint32_t c = op->progress[i].copies; c != CN_NONE; c = op->progress[c].sibling) {
		if (!op->progress[c].complete) {
			cn_op_queue_copy(op, c);
		}
	}
}

void cn_op_stream_copies(struct cn_op *op, uint32_t i, const uint8_t *from, uint64_t offset,
			 uint32_t len)
{
	for (uint32_t c = op->progress[i].copies; c != CN_NONE; c = op->progress[c].sibling) {
		struct cn_action *a = &op->sched.actions[c];

		if (a->dep != CN_DEP_STREAM || op->progress[c].done != offset || len == 0) {
			continue;
		}
		if (len > cn_node_payload(op->team->transport->node)) {
			cn_op_queue_copy(op, c);
		} else {
			/* Two ranks of a process may use the same memory: memmove(). */
			memmove(cn_op_address(op, &a->dst) + offset, from, len);
			op->progress[c].done += len;
			if (op->progress[c].done == a->len) {
				cn_op_complete(op, c);
			}
		}
	}
}

/* Bytes that a copy may take now. */
static uint64_t available(const struct cn_op *op, const struct cn_action *a)
{
	const struct cn_progress *d = &op->progress[a->dep_on];

	if (a->dep == CN_DEP_NONE || d->complete) {
		return a->len;
	}
	return a->dep == CN_DEP_STREAM ? d->done : 0;
}

static void run_copies(struct cn_op *op, uint64_t *most)
{
	uint64_t budget = *most;

	while (op->copy_first != CN_NONE && budget > 0) {
		uint32_t i = op->copy_first;
		struct cn_action *a = &op->sched.actions[i];
		struct cn_progress *p = &op->progress[i];
		const uint64_t left = available(op, a) - p->done;
		const uint64_t n = left < budget ? left : budget;

		if (n > 0) {
			uint8_t *to = cn_op_address(op, &a->dst) + p->done;
			const uint8_t *from = cn_op_address(op, &a->src) + p->done;

			if (to != from) { /* in place: the block is already there */
				memmove(to, from, n);
			}
		}
		p->done += n;
		if (n < left) {
			budget = 0;
			break;
		}
		budget -= n > COPY_MIN ? n : budget < COPY_MIN ? budget : COPY_MIN;
		op->copy_first = p->next;
		p->queued = false;
		if (p->done == a->len) { /* else it follows its source */
			cn_op_complete(op, i);
		}
	}
	*most = budget;
}

/* Continues its start, or runs its copies. */
static void take_turn(struct cn_op *op, cn_time now, uint64_t *budget)
{
	if (op->state == OP_STARTING) {
		cn_op_start_more(op, now, budget);
		return;
	}
	run_copies(op, budget);
	if (op->copy_first == CN_NONE) {
		cn_op_turn_leave(op);
	}
	cn_op_progress(op); /* sends may wait for them */
}

void cn_op_run_copies(struct cn_engine *e, cn_time now)
{
	struct cn_turns *s = &e->copies;
	uint64_t budget = CN_COPY_CHUNK;

	while (s->used != 0 && budget > 0) {
		struct cn_turn *x = s->next[cn_turns_following(s, s->payer)];

		cn_turns_served(s, x);
		take_turn(x->owner, now, &budget);
	}
}
