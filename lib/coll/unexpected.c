/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unexpected messages: frames of an operation that their receiver has not started, because a rank
 * there has not called it. They wait in the receiver's pool of buffers. When the pool is full,
 * frames are refused, and with them everything between two nodes, of all jobs. So the sender bounds
 * them.
 *
 * It counts the frames that it has sent to a node, of operations that the node is not known to have
 * started. At most limit() of them are sent. The node shows that it has started operation k, and so
 * all before it, by its first frame of k, or it says so in STARTED. It sends STARTED when it has
 * taken half of the smallest limit of its running operations since it last showed or said so: the
 * other half is under way meanwhile. Operations without frames between the two nodes may go by
 * unnoticed, so the first and the last operation of the counted frames are less than
 * CN_UNEXPECTED_OPS apart, and half of that calls for STARTED, too.
 *
 * The frames that the sender counts are among those that the receiver counts as taken or will take,
 * so a sender that waits waits for a call.
 */
#include <stdio.h>

#include "coll/op.h"

#define POOL_SHARE 256u /* frames of a team at one receiver, from all other nodes together */
#define LEAST	   4u
#define MOST	   64u

static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Where many nodes may send to one. */
static uint32_t least(const struct cn_team *t)
{
	uint32_t peers = t->layout.nnodes - 1, n = POOL_SHARE / (peers > 0 ? peers : 1);

	return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

/* Frames of a tree or ring come from one node, or few. */
static uint32_t limit(const struct cn_op *op)
{
	switch (op->args.op) {
	case CN_OP_BCAST:
	case CN_OP_SCATTER:
	case CN_OP_ALLGATHER:
		return MOST;
	default:
		return least(op->team);
	}
}

bool cn_unexpected_room(const struct cn_op *op, uint32_t k)
{
	const struct cn_team_node *n = &op->team->nodes[k];

	return before(op->seq, n->started) || n->nsent == 0 ||
	       (n->nsent < limit(op) && op->seq - n->sent_first < CN_UNEXPECTED_OPS);
}

void cn_unexpected_sent(struct cn_op *op, uint32_t k)
{
	struct cn_team_node *n = &op->team->nodes[k];

	if (!before(op->seq, n->started)) {
		if (n->nsent++ == 0) {
			n->sent_first = op->seq;
		}
		n->sent[op->seq % CN_UNEXPECTED_OPS]++;
	}
	if (!before(op->seq, n->told)) {
		n->told = op->seq + 1;
		if (n->ntaken > 0 && !before(op->seq, n->taken_last)) {
			n->ntaken = 0;
		}
	}
}

void cn_unexpected_started(struct cn_team *t, uint32_t k, uint32_t started)
{
	struct cn_team_node *n = &t->nodes[k];

	if (!before(n->started, started)) {
		return;
	}
	n->started = started;
	while (n->nsent > 0 && before(n->sent_first, started)) {
		uint8_t *sent = &n->sent[n->sent_first++ % CN_UNEXPECTED_OPS];

		n->nsent -= *sent;
		*sent = 0;
	}
	while (n->nsent > 0 && n->sent[n->sent_first % CN_UNEXPECTED_OPS] == 0) {
		n->sent_first++;
	}
}

static void tell(struct cn_team *t, uint32_t k)
{
	struct cn_team_node *n = &t->nodes[k];
	uint8_t m[16];
	struct cn_cursor c = { m, m + sizeof(m), false };

	n->told = t->nstarted;
	n->ntaken = 0;
	if (n->peer != NULL) {
		cn_put8(&c, CN_CONTROL_STARTED);
		cn_put32(&c, t->id);
		cn_put32(&c, t->nstarted);
		cn_pending_send(t->engine, n->peer, m, (size_t)(c.at - m));
	}
}

void cn_unexpected_taken(struct cn_op *op, uint32_t k)
{
	struct cn_team *t = op->team;
	struct cn_team_node *n = &t->nodes[k];

	cn_unexpected_started(t, k, op->seq + 1);
	if (before(op->seq, n->told)) {
		return;
	}
	if (n->ntaken++ == 0) {
		n->taken_first = op->seq;
	}
	n->taken_last = op->seq;
	if (n->ntaken >= t->tell_after) {
		tell(t, k);
	}
}

void cn_unexpected_start(struct cn_op *op)
{
	struct cn_team *t = op->team;

	t->nstarted = op->seq + 1;
	t->tell_after = MOST / 2;
	for (int i = 0; i < CN_OPS; i++) {
		const struct cn_op *o = t->ops[i];

		if (o != NULL && o->state == OP_RUNNING && limit(o) / 2 < t->tell_after) {
			t->tell_after = limit(o) / 2;
		}
	}
	for (uint32_t k = 0; k < t->layout.nnodes; k++) {
		const struct cn_team_node *n = &t->nodes[k];

		if (n->ntaken >= t->tell_after ||
		    (n->ntaken > 0 && op->seq - n->taken_first >= CN_UNEXPECTED_OPS / 2)) {
			tell(t, k);
		}
	}
}

void cn_unexpected_explain(const struct cn_op *op, char *text, size_t cap)
{
	const struct cn_team *t = op->team;

	text[0] = '\0';
	for (uint32_t k = 0; k < t->layout.nnodes && text[0] == '\0' && op->state == OP_RUNNING;
	     k++) {
		const struct cn_team_node *n = &t->nodes[k];
		const struct cn_streams *s = &op->streams[k];
		const char *own = t->engine->config.node.name;

		if (n->peer != NULL && cn_peer_rnr_received(n->peer)) {
			snprintf(text, cap,
				 "; node %s refuses frames: its buffers hold frames of "
				 "operations that were not called there",
				 n->name);
		} else if (n->peer != NULL && s->recv != CN_NONE && cn_peer_rnr_sent(n->peer)) {
			snprintf(text, cap,
				 "; node %s refuses frames of node %s: its buffers hold frames "
				 "of operations that were not called there",
				 own, n->name);
		} else if (s->send != CN_NONE && !cn_unexpected_room(op, k)) {
			snprintf(text, cap, "; node %s has not started operation %u of job %s",
				 n->name, n->sent_first, t->job);
		}
	}
}
