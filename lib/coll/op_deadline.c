/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The deadline of an operation, and the ranks that missed it. Most nodes wait for data of a node
 * that waits itself. So shortly before the deadline a node asks all other nodes of the team how
 * many operations their ranks have called (CALLED), and the error names the ranks that have not
 * called this one.
 */
#include <stdio.h>

#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/ranges.h"

/* Lead time before the deadline: enough for a busy node to respond, but at most a quarter of the
 * remaining time. */
static const cn_time ask_before = 50 * CN_MS;

void cn_op_set_deadline(struct cn_op *op, cn_time now, cn_time deadline)
{
	if (deadline < op->deadline) {
		op->deadline = deadline;
		op->ask_at = now < deadline
				     ? deadline - cn_min_time((deadline - now) / 4, ask_before)
				     : CN_NEVER;
	}
}

cn_time cn_op_deadline(const struct cn_op *op)
{
	if (op->state == OP_FREE) {
		return CN_NEVER;
	}
	if (op->ending && op->state == OP_RUNNING) {
		/* At once, but after input: frames acknowledged meanwhile need no copies. */
		return 1;
	}
	return cn_min_time(cn_min_time(op->deadline, op->ask_at), op->opens_at);
}

/* The index of rank r among the ranks of its node. */
static uint32_t place_of(const struct cn_team *t, uint32_t r)
{
	const uint32_t *ranks = t->layout.ranks + t->layout.first[t->layout.node_of[r]];
	uint32_t i = 0;

	while (ranks[i] != r) {
		i++;
	}
	return i;
}

/* True if rank r is known not to have called the operation in time. */
static bool has_not_called(const struct cn_op *op, uint32_t r)
{
	const struct cn_team *t = op->team;
	const uint32_t k = t->layout.node_of[r], place = place_of(t, r);
	const struct cn_team_node *n = &t->nodes[k];
	const struct cn_member *here = k == t->me ? t->local[place] : NULL;

	if (k == t->me) {
		return op->state == OP_POSTED && op->posts[place].done == NULL &&
		       (here == NULL || (int32_t)(op->seq - cn_member_called(here)) >= 0);
	}
	return n->answered != 0 && (int32_t)(n->answered - op->asks) >= 0 && place < 64 &&
	       (n->late >> place & 1) != 0 && (int32_t)(op->seq - n->called) >= 0 &&
	       (int32_t)(op->seq - n->unexpected.started) >= 0; /* it may have called since */
}

static bool owes_data(const struct cn_op *op, uint32_t r)
{
	return op->state == OP_RUNNING && op->streams[op->team->layout.node_of[r]].recv != CN_NONE;
}

/* "rank 1 (node h1)" or "ranks 1, 3-5 (the first on node h1)". False: there is none. */
static bool list_ranks(const struct cn_op *op, bool (*of)(const struct cn_op *, uint32_t),
		       char *text, size_t cap)
{
	const struct cn_team *t = op->team;
	char ranks[128] = "";
	struct cn_rank_list l = { .text = ranks, .cap = sizeof(ranks) };
	uint32_t n = 0, first = 0;

	for (uint32_t r = 0; r < t->ranks; r++) {
		if (of(op, r)) {
			first = n++ == 0 ? r : first;
			cn_rank_list_add(&l, r);
		}
	}
	cn_rank_list_end(&l);
	snprintf(text, cap, "rank%s %s (%snode %s)", n > 1 ? "s" : "", ranks,
		 n > 1 ? "the first on " : "", t->nodes[t->layout.node_of[first]].name);
	return n > 0;
}

/* The bits of the ranks here that have called n operations, by their place on the node. */
static uint64_t late_ranks(const struct cn_team *t, uint32_t n)
{
	uint64_t late = 0;
	uint32_t i = 0;

	if (t->local == NULL) { /* it forms, and all its ranks are there */
		for (const struct cn_member *m = t->members; m != NULL && i < 64; m = m->next) {
			late |= (uint64_t)1 << i++;
		}
		return late;
	}
	for (; i < 64 && i < cn_op_locals(t); i++) {
		if (t->local[i] != NULL && cn_member_called(t->local[i]) == n) {
			late |= (uint64_t)1 << i;
		}
	}
	return late;
}

static void send_called(struct cn_team *t, struct cn_peer *p, bool ask)
{
	const struct cn_member *least = t->members;
	uint32_t n;

	for (const struct cn_member *i = t->members; i != NULL; i = i->next) {
		if ((int32_t)(cn_member_called(i) - cn_member_called(least)) < 0) {
			least = i;
		}
	}
	if (p == NULL || least == NULL || t->transport->pending.of_peer[cn_peer_index(p)] > 0) {
		return; /* LEAVE was sent; and pending messages are more important */
	}
	n = cn_member_called(least);
	cn_control_called(t, p, n, late_ranks(t, n), ask);
}

void cn_op_called_by(struct cn_team *t, struct cn_peer *p, uint32_t k, struct cn_cursor *c)
{
	const uint32_t n = cn_get32(c);
	const uint64_t late = cn_get64(c);
	const bool ask = cn_get8(c) != 0;

	/* While the team forms here, it may be ready there. */
	if (c->bad || (k == UINT32_MAX && t->state != CN_TEAM_FORMING)) {
		return;
	}
	if (k != UINT32_MAX) {
		t->nodes[k].called = n;
		t->nodes[k].late = late;
		t->nodes[k].answered = t->asks;
	}
	if (ask) {
		t->asked = true;
		send_called(t, p, false);
	}
}

/* The answers serve all operations of the team for a while. */
static void ask(struct cn_op *op, cn_time now)
{
	struct cn_team *t = op->team;

	op->ask_at = CN_NEVER;
	if (t->asks == 0 || now >= t->asked_at + ask_before / 2) {
		t->asks += t->asks + 1 != 0 ? 1 : 2;
		t->asked_at = now;
		for (uint32_t k = 0; k < t->layout.nnodes; k++) {
			send_called(t, t->nodes[k].peer, true);
		}
	}
	op->asks = t->asks;
}

void cn_op_called_late(struct cn_team *t)
{
	for (uint32_t k = 0; k < t->layout.nnodes && t->asked; k++) {
		send_called(t, t->nodes[k].peer, false);
	}
	t->asked = false;
}

void cn_op_expire(struct cn_op *op, cn_time now)
{
	struct cn_team *t = op->team;
	char who[200], why[160], text[400]; /* more than an error carries */

	if (op->state == OP_RUNNING && op->ending) {
		op->ending = false;
		cn_op_progress(op);
	}
	if (op->opens_at <= now) {
		op->opens_at = CN_NEVER; /* request its next frame now */
	}
	if (op->state != OP_FREE && op->ask_at <= now) {
		ask(op, now);
	}
	if (op->state == OP_FREE || op->deadline > now) {
		return;
	}
	if (list_ranks(op, has_not_called, who, sizeof(who))) {
		snprintf(text, sizeof(text), ": not called in time by %s", who);
	} else if (op->state == OP_POSTED) {
		snprintf(text, sizeof(text), ": not planned in time");
	} else {
		const bool waits = list_ranks(op, owes_data, who, sizeof(who));

		cn_op_unexpected_explain(op, why, sizeof(why));
		snprintf(text, sizeof(text), ", %s%.*s%s",
			 waits ? "waiting for data of "
			       : "with data still to be sent or acknowledged",
			 waits ? (int)sizeof(who) : 0, who, why);
	}
	cn_team_fail(t, true, COLLNET_ETIMEOUT,
		     "operation %u (%s) passed its deadline on node %s%s", op->seq + 1,
		     cn_op_called(&op->args), t->engine->config.node.name, text);
}
