/* SPDX-License-Identifier: BSD-2-Clause */
/* Unexpected messages of operations: their limits by operation, and STARTED (unexpected_limit.h).
 */
#include <stdio.h>

#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/op.h"

/* Frames of a team at one receiver, from all other nodes together. (Limits of whole super-frames
 * make it 484 at most, of a pool of 1,024.) */
#define POOL_SHARE 256u
#define LEAST	   4u
#define MOST	   (2 * CN_SUPER_FRAME_MAX)

_Static_assert(MOST <= UINT8_MAX, "the counts of struct cn_unexpected_limit");

/* The limit where many nodes may send to one. Larger limits are multiples of a super-frame, because
 * any other limit would split one. */
static uint32_t fan_in_limit(const struct cn_team *t)
{
	const uint32_t peers = t->layout.nnodes - 1, n = POOL_SHARE / (peers > 0 ? peers : 1);

	if (n < CN_SUPER_FRAME_MAX / 2) {
		return n < LEAST ? LEAST : n;
	}
	return n < MOST ? CN_SUPER_FRAME_MAX : MOST;
}

/* Frames of a tree or ring come from one node, or few. */
static uint32_t unexpected_limit(const struct cn_op *op)
{
	switch (cn_op_base(op->args.op)) {
	case CN_OP_BCAST:
	case CN_OP_SCATTER:
	case CN_OP_ALLGATHER:
		return MOST;
	default:
		return fan_in_limit(op->team);
	}
}

bool cn_op_unexpected_allows(const struct cn_op *op, uint32_t k)
{
	return cn_unexpected_limit_allows(&op->team->nodes[k].unexpected, op->seq,
					  unexpected_limit(op));
}

static void send_started(struct cn_team *t, uint32_t k)
{
	struct cn_team_node *n = &t->nodes[k];
	uint8_t m[16];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_unexpected_limit_notified(&n->unexpected, t->nstarted);
	if (n->peer != NULL) {
		cn_put8(&c, CN_CONTROL_STARTED);
		cn_put32(&c, t->id);
		cn_put32(&c, t->nstarted);
		cn_transport_activate(t->transport);
		if (!cn_pending_send(&t->transport->pending, n->peer, m, (size_t)(c.at - m))) {
			cn_transport_fail_team(t->transport);
		}
	}
}

/*
 * The last started operation, which decides whether STARTED is due. STARTED of many nodes to one,
 * the root of broadcasts or scatters, would be due at the same operation and meet in its port: of
 * 63 frames a third was lost, and the root waited for their timeouts. So nodes send it early by
 * different numbers of operations.
 */
static uint32_t started_for_notification(const struct cn_team *t)
{
	return t->nstarted - 1 + t->me % (CN_UNEXPECTED_OPS / 4);
}

void cn_op_unexpected_received(struct cn_op *op, uint32_t k)
{
	struct cn_team *t = op->team;

	if (cn_unexpected_limit_received(&t->nodes[k].unexpected, op->seq,
					 started_for_notification(t), t->notify_after)) {
		send_started(t, k);
	}
}

void cn_op_unexpected_started(struct cn_team *t, struct cn_peer *p, struct cn_join *j, uint32_t n)
{
	const uint32_t k = cn_team_node_of(t, p);

	if (k != UINT32_MAX) {
		cn_unexpected_limit_started(&t->nodes[k].unexpected, n);
		if (cn_op_sends_to(t, k)) {
			cn_peer_reply_soon(p);
		}
	} else if (j != NULL) {
		j->started = n;
	}
}

/* Notifies some nodes in each operation, so that all are covered within CN_UNEXPECTED_RENEW. */
static void renew_notifications(struct cn_team *t)
{
	const uint32_t nodes = t->layout.nnodes,
		       each = (nodes + CN_UNEXPECTED_RENEW - 1) / CN_UNEXPECTED_RENEW;

	for (uint32_t i = 0; i < each; i++) {
		const uint32_t k = (t->me + t->nstarted * each + i) % nodes;

		if (k != t->me && cn_unexpected_limit_stale(&t->nodes[k].unexpected, t->nstarted)) {
			send_started(t, k);
		}
	}
}

void cn_op_unexpected_start(struct cn_op *op)
{
	struct cn_team *t = op->team;

	t->nstarted = op->seq + 1;
	t->notify_after = MOST / 2;
	for (uint64_t left = t->busy; left != 0; left &= left - 1) {
		const struct cn_op *o = t->ops[cn_bit_first(left)];

		if (o->state == OP_RUNNING && unexpected_limit(o) / 2 < t->notify_after) {
			t->notify_after = unexpected_limit(o) / 2;
		}
	}
	for (uint32_t k = 0; k < t->layout.nnodes; k++) {
		if (cn_unexpected_limit_due(&t->nodes[k].unexpected, started_for_notification(t),
					    t->notify_after)) {
			send_started(t, k);
		}
	}
	renew_notifications(t);
}

void cn_op_unexpected_explain(const struct cn_op *op, char *text, size_t cap)
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
		} else if (s->send != CN_NONE && !cn_op_unexpected_allows(op, k)) {
			const struct cn_unexpected_limit *u = &n->unexpected;

			snprintf(text, cap, "; node %s has not started operation %u of job %s",
				 n->name, (u->nsent > 0 ? u->sent_first : u->started) + 1, t->job);
		}
	}
}
