/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of an operation that all ranks of this node have called.
 *
 * Its cursors are rewound action by action, which takes a third of a second for millions of them,
 * mostly copies between the ranks of one node. A short schedule is rewound at once; of a longer
 * one, each poll does a part, as it does of copies, and the operation is OP_STARTING meanwhile: for
 * other nodes it has not started.
 *
 * Operations of a team start in the order of their calls. For other nodes a frame of one shows that
 * those before it have started, too, and its own frames to a node count from the first operation
 * that may not have started there (unexpected_limit.h). So a rewound operation waits for those
 * before it, in no ring, and the start of the one before it puts it there.
 */
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"

#define ACTION_BYTES 16u /* cost of an action, within the budget of a poll's copies */
#define AT_ONCE	     (4u * CN_COPY_CHUNK)

/* ---- cursors ---------------------------------------------------------------------------- */

/* Streams are found from the last action to the first. */
static void begin_streams(struct cn_op *op)
{
	op->ntargets = op->next = op->quantum_used = 0;
	op->copy_first = CN_NONE;
	op->remaining = op->sched.n;
	op->deferred_reduces = 0;
	op->bytes_in = 0;
	op->synchronised = op->reduces = false;
	for (uint32_t k = 0; k < op->nposts; k++) {
		op->posts[k].reduce = CN_NONE;
		op->posts[k].combining = 0;
	}
	for (uint32_t k = 0; k < op->team->layout.nnodes; k++) {
		op->streams[k] = (struct cn_streams){ .send = CN_NONE, .recv = CN_NONE };
	}
}

/* The action becomes the first one of its stream, or of its rank's combinations. */
static void add_to_stream(struct cn_op *op, uint32_t i)
{
	const struct cn_action *a = &op->sched.actions[i];
	struct cn_streams *st = &op->streams[a->peer];
	struct cn_progress *p = &op->progress[i];

	*p = (struct cn_progress){ .next = CN_NONE, .copies = CN_NONE, .sibling = CN_NONE };
	op->synchronised |= a->kind == CN_ACT_WAIT;
	if (a->kind == CN_ACT_SEND) {
		p->next = st->send;
		st->send = i;
	} else if (a->kind == CN_ACT_RECV) {
		p->next = st->recv;
		st->recv = i;
		op->bytes_in += a->len;
	} else if (a->kind == CN_ACT_REDUCE) {
		struct cn_post *post = cn_op_post(op, a->dst.rank);

		p->next = post->reduce;
		post->reduce = i;
		op->reduces = true;
	}
}

/* Lists targets in order of appearance, runnable copies, and those that depend on others. */
static void add_to_lists(struct cn_op *op, uint32_t i)
{
	const struct cn_action *a = &op->sched.actions[i];

	if (a->kind == CN_ACT_SEND && op->streams[a->peer].send == i) {
		op->targets[op->ntargets++] = a->peer;
	} else if (a->kind == CN_ACT_COPY && a->dep == CN_DEP_NONE) {
		cn_op_queue_copy(op, i);
	} else if (a->kind == CN_ACT_COPY) {
		op->progress[i].sibling = op->progress[a->dep_on].copies;
		op->progress[a->dep_on].copies = i;
	}
}

/* ---- in steps --------------------------------------------------------------------------- */

static void spend(uint64_t *budget, uint64_t bytes)
{
	*budget -= bytes < *budget ? bytes : *budget;
}

/* Rewinds more actions, as the budget allows. True: all are done. */
static bool rewind_more(struct cn_op *op, uint64_t *budget)
{
	struct cn_starting *s = &op->starting;

	while (s->streamed > 0 && *budget > 0) {
		add_to_stream(op, --s->streamed);
		spend(budget, ACTION_BYTES);
	}
	while (*budget > 0 && s->streamed == 0 && s->listed < op->sched.n) {
		add_to_lists(op, s->listed++);
		spend(budget, ACTION_BYTES);
	}
	while (s->listed == op->sched.n && *budget > 0) {
		const uint32_t messages = cn_op_fragment_more(op);

		if (messages == 0) {
			return true;
		}
		spend(budget, (uint64_t)messages * ACTION_BYTES);
	}
	return false;
}

/*
 * True if acknowledgements clock the operation's window. Only in an exchange of equal blocks, or of
 * so few frames that ports hold them, are as many frames received as sent at all times. Without a
 * window, no clock is needed.
 */
static bool by_acks(const struct cn_op *op)
{
	const struct cn_window *w = cn_node_window(op->team->transport->node);
	const bool limited = op->window != COLLNET_WINDOW_OFF || w->limit != COLLNET_WINDOW_OFF;

	switch (op->algorithm->window_rule) {
	case CN_WINDOW_EXCHANGE:
		return !op->own_port_has_room &&
		       (cn_op_is_vector(op->args.op) || !cn_op_is_exchange(op->args.op));
	case CN_WINDOW_NONE:
		return limited;
	default:
		return true;
	}
}

/* True if all operations before this one have started. */
static bool is_next(const struct cn_op *op)
{
	return op->seq == op->team->nstarted;
}

/* This one has started: the next one may wait for that. */
static void wake_next(const struct cn_op *op)
{
	struct cn_op *next = op->team->ops[(op->seq + 1) % CN_OPS];

	if (next != NULL && next->state == OP_STARTING) {
		cn_op_turn_enter(next);
	}
}

/* Everything is in place. */
static void run(struct cn_op *op, cn_time now)
{
	struct cn_team *t = op->team;

	if (op->copy_first == CN_NONE) {
		cn_op_turn_leave(op);
	}
	if (!cn_op_fragment_end(op)) {
		cn_team_fail(t, true, COLLNET_ENOMEM, "operation %u (%s) on node %s: no memory",
			     op->seq + 1, cn_op_name(op->args.op), t->engine->config.node.name);
		return;
	}
	op->ending = op->ending_tried = false;
	op->state = OP_RUNNING;
	cn_source_start(&t->transport->sources, &op->source);
	cn_op_window_start(op);
	op->source.flight.by_acks = by_acks(op);
	for (uint32_t k = 0; k < t->layout.nnodes; k++) {
		if (op->streams[k].recv != CN_NONE) {
			cn_op_expect(op, now, k);
		}
	}
	cn_op_unexpected_start(op);
	wake_next(op);
	cn_op_reduce(op);
	cn_op_deliver_unexpected(op);
	cn_op_try_finish(op);
}

void cn_op_start_more(struct cn_op *op, cn_time now, uint64_t *budget)
{
	if (!rewind_more(op, budget)) {
		return;
	}
	if (!is_next(op)) {
		cn_op_turn_leave(op);
		return;
	}
	spend(budget, (uint64_t)op->team->layout.nnodes * ACTION_BYTES); /* run() looks at all */
	cn_team_touch(op->team);
	run(op, now);
}

void cn_op_start(struct cn_op *op, cn_time now)
{
	uint64_t budget = AT_ONCE;

	op->state = OP_STARTING;
	op->starting = (struct cn_starting){ .streamed = op->sched.n };
	begin_streams(op);
	cn_op_fragment_begin(op);
	if (!rewind_more(op, &budget)) {
		cn_op_turn_enter(op);
	} else if (is_next(op)) {
		run(op, now);
	} else {
		cn_op_turn_leave(op); /* its copies have entered it */
	}
}
