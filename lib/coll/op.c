/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One collective operation on one node: cursors into its schedule.
 *
 * It starts when every rank of this node has called it. From node a to node b runs one stream: the
 * messages of the schedule from a to b, in list order, cut into frames that never span two
 * messages. So the order of the frames names their place, and the wire carries no offsets. Frames
 * that come before the start wait in the node's pool (struct cn_unexpected).
 *
 * It is complete when every action is, and its frames are acknowledged, or the last few of them
 * copied (cn_node_detach()), so that the user's buffers are free.
 */
#include <string.h>

#include "coll/op.h"

/* Bytes that copies between ranks of this node move before frames get their turn again. */
static const uint64_t copy_chunk = 256 * 1024;

bool cn_op_busy(const struct cn_op *op)
{
	return op->state != OP_FREE;
}

uint32_t cn_op_locals(const struct cn_team *t)
{
	return t->layout.first[t->me + 1] - t->layout.first[t->me];
}

/* What the two ends must agree on beyond sizes, which the frames themselves show. */
static uint8_t signature(const struct cn_op *op)
{
	uint8_t low = (uint8_t)((op->plan.permutation & 3) << 1 | op->plan.contention_aware);

	if (op->plan.op >= CN_OP_BCAST) { /* these have a root instead */
		low = op->plan.root & 7;
	}
	return (uint8_t)(op->plan.algorithm << 3 | low);
}

static uint8_t *place(const struct cn_op *op, const struct cn_span *s)
{
	const struct cn_layout *l = &op->team->layout;
	const uint32_t *ranks = l->ranks + l->first[op->team->me];
	uint32_t n = cn_op_locals(op->team), low = 0;

	if (s->buffer == CN_BUF_NONE) {
		return NULL;
	}
	while (n > 1) { /* the rank's place among this node's, which ascend */
		uint32_t half = n / 2;

		if (ranks[low + half] <= s->rank) {
			low += half;
			n -= half;
		} else {
			n = half;
		}
	}
	return (s->buffer == CN_BUF_SEND ? (uint8_t *)(uintptr_t)op->posts[low].send
					 : op->posts[low].recv) +
	       s->offset;
}

/* ---- the end -------------------------------------------------------------------------- */

static void unexpect(struct cn_op *op, uint32_t k)
{
	struct cn_streams *s = &op->streams[k];

	if (s->expected && op->team->nodes[k].peer != NULL) {
		cn_peer_expect(op->team->engine->node, 0, op->team->nodes[k].peer, -1);
	}
	s->expected = false;
}

void cn_op_finish(struct cn_op *op, int status, const char *text)
{
	struct cn_team *t = op->team;
	uint32_t n = cn_op_locals(t);

	if (op->state == OP_RUNNING) {
		cn_source_stop(t->engine, &op->source);
		for (uint32_t k = 0; k < t->layout.nnodes; k++) {
			unexpect(op, k);
		}
	}
	op->state = OP_FREE;
	op->nposts = 0;
	op->copy_first = CN_NONE;
	cn_engine_touch(t->engine);
	for (uint32_t i = 0; i < n; i++) {
		struct cn_done *d = op->posts[i].done;

		op->posts[i].done = NULL;
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
		cn_node_abandon(op->team->engine->node, &op->source);
	}
	cn_op_finish(op, status, text);
}

void cn_op_try_finish(struct cn_op *op)
{
	struct cn_node *node = op->team->engine->node;

	if (op->state != OP_RUNNING || op->remaining > 0) {
		return;
	}
	if (op->source.flight.unacked > 0 &&
	    !cn_node_detach(node, &op->source, 4 * op->team->layout.nnodes + 16)) {
		return;
	}
	op->team->operations++;
	cn_op_finish(op, COLLNET_OK, "");
}

void cn_op_acked(struct cn_source *s)
{
	struct cn_op *op = (struct cn_op *)s;

	if (op->remaining == 0 && s->flight.unacked == 0) {
		cn_op_try_finish(op);
	}
}

/* ---- progress ------------------------------------------------------------------------- */

void cn_op_queue_copy(struct cn_op *op, uint32_t i)
{
	op->progress[i].next = CN_NONE;
	if (op->copy_first == CN_NONE) {
		op->copy_first = i;
		cn_engine_touch(op->team->engine); /* there is work without a frame */
	} else {
		op->progress[op->copy_last].next = i;
	}
	op->copy_last = i;
}

static void complete(struct cn_op *op, uint32_t i)
{
	op->progress[i].complete = true;
	op->remaining--;
	for (uint32_t c = op->progress[i].copies; c != CN_NONE; c = op->progress[c].sibling) {
		if (!op->progress[c].complete) {
			cn_op_queue_copy(op, c);
		}
	}
}

/* `len` bytes of action i are there now, at `from`: copies that follow it byte by byte. */
static void follow(struct cn_op *op, uint32_t i, const uint8_t *from, uint64_t offset, uint32_t len)
{
	for (uint32_t c = op->progress[i].copies; c != CN_NONE; c = op->progress[c].sibling) {
		struct cn_action *a = &op->sched.actions[c];

		if (a->dep == CN_DEP_STREAM && op->progress[c].done == offset && len > 0) {
			memcpy(place(op, &a->dst) + offset, from, len);
			op->progress[c].done += len;
			if (op->progress[c].done == a->len) {
				complete(op, c);
			}
		}
	}
}

void cn_op_run_copies(struct cn_op *op)
{
	uint64_t budget = copy_chunk;

	while (op->copy_first != CN_NONE && budget > 0) {
		uint32_t i = op->copy_first;
		struct cn_action *a = &op->sched.actions[i];
		struct cn_progress *p = &op->progress[i];
		uint64_t n = a->len - p->done;

		if (n > budget) {
			n = budget;
		}
		if (n > 0) {
			uint8_t *to = place(op, &a->dst) + p->done;
			const uint8_t *from = place(op, &a->src) + p->done;

			if (to != from) { /* in place: the block is where it belongs */
				memcpy(to, from, n);
			}
		}
		p->done += n;
		budget -= n;
		if (p->done < a->len) {
			break;
		}
		op->copy_first = p->next;
		complete(op, i);
	}
}

/* ---- sending -------------------------------------------------------------------------- */

/*
 * A message is cut into as few frames as can be, all alike. Were the last one short, then in the
 * last round of an exchange all nodes' frames would be, go faster than those before them, and
 * meet at ports where these still stand.
 */
static uint64_t frame_bytes(uint64_t len, uint64_t most)
{
	uint64_t frames = (len + most - 1) / most;

	return frames > 1 ? (len + frames - 1) / frames : most;
}

static bool dep_allows(const struct cn_op *op, const struct cn_action *a, uint64_t up_to)
{
	const struct cn_progress *d;

	if (a->dep == CN_DEP_NONE) {
		return true;
	}
	d = &op->progress[a->dep_on];
	return d->complete || (a->dep == CN_DEP_STREAM && up_to > 0 && d->done >= up_to);
}

/*
 * Handing over. A synchronisation says that a message is over, so that another node may use its
 * links. If it went with the message's last frame, the queue before a link would grow by whatever
 * the nodes are faster than the link (acknowledgements take some of it), message after message,
 * though never two of them send at a time. So it waits until no more of this node's frames are on
 * their way than half a window: some are beyond the link by then, and it does not run dry.
 */
static uint64_t handover(const struct cn_op *op)
{
	return op->window / 2 + 2;
}

static bool hands_over(const struct cn_op *op, const struct cn_action *a)
{
	return op->synchronised && op->window != COLLNET_WINDOW_OFF && a->len == 0 &&
	       a->src.buffer == CN_BUF_NONE;
}

/* Whether a synchronisation will soon wait for the acknowledgement of this frame of action a. */
static bool last_before_handover(const struct cn_op *op, const struct cn_action *a, uint64_t left)
{
	uint64_t most = frame_bytes(a->len, cn_node_payload(op->team->engine->node));
	uint64_t frames = (left + most - 1) / most;

	if (!op->synchronised || op->window == COLLNET_WINDOW_OFF || a->len == 0) {
		return false;
	}
	return frames == handover(op) / 2 ||
	       (frames == 0 && op->source.flight.unacked >= handover(op) / 2);
}

/*
 * Whether an operation that was called before this one has still frames for node k. They go first:
 * a node calls in order, so what it cannot take yet (its early frames have filled the pool) must
 * never stand before what it needs to call again.
 */
static bool behind(const struct cn_op *op, uint32_t k)
{
	const struct cn_team *t = op->team;

	for (int i = 0; i < CN_OPS; i++) {
		const struct cn_op *o = t->ops[i];

		if (o != NULL && o->state == OP_RUNNING && (int32_t)(op->seq - o->seq) > 0 &&
		    o->streams[k].send != CN_NONE) {
			return true;
		}
	}
	return false;
}

/* The next frame of the stream to node k, if it can go. */
static bool send_to(struct cn_op *op, uint32_t k, struct cn_tx *out)
{
	struct cn_team *t = op->team;
	struct cn_node *node = t->engine->node;
	struct cn_streams *s = &op->streams[k];
	uint32_t i = s->send;
	struct cn_action *a = &op->sched.actions[i];
	struct cn_progress *p = &op->progress[i];
	uint64_t n = a->len - p->done, most = frame_bytes(a->len, cn_node_payload(node));

	n = n < most ? n : most;
	if (t->nodes[k].peer == NULL || cn_peer_room(t->nodes[k].peer) == 0 ||
	    !dep_allows(op, a, p->done + n) || behind(op, k) || !cn_unexpected_room(op, k) ||
	    (hands_over(op, a) && op->source.flight.unacked > handover(op))) {
		return false;
	}
	out->peer = t->nodes[k].peer;
	out->type = CN_TYPE_COLL;
	out->flags = 0;
	out->len = (uint16_t)n;
	out->stream = cn_stream(t->nodes[k].slot, op->seq, signature(op));
	out->payload = n > 0 ? place(op, &a->src) + p->done : NULL;
	out->token = &op->source;
	cn_unexpected_sent(op, k);
	p->done += n;
	if (p->done == a->len) {
		s->send = p->next;
		if (s->send == CN_NONE) {
			out->flags |= CN_FLAG_LAST;
		}
		complete(op, i);
	}
	/* What comes in is the clock of an exchange's window; acknowledgements are asked for only
	 * where less comes in than goes out, or where they are the clock; then at the end of what
	 * goes to a node, too, or the rest would take its place in the window until it waited for
	 * long. */
	if ((cn_flight_sent(&op->source.flight, cn_node_window(node), op->window) &&
	     (op->one_way || op->source.flight.by_acks)) ||
	    (op->one_way && op->source.flight.by_acks && s->send == CN_NONE) ||
	    last_before_handover(op, a, a->len - p->done)) {
		out->flags |= CN_FLAG_ACKREQ;
	}
	return true;
}

static void drop_target(struct cn_op *op, uint32_t at)
{
	op->ntargets--;
	memmove(op->targets + at, op->targets + at + 1, (op->ntargets - at) * sizeof(*op->targets));
}

static bool pull_interleaved(struct cn_op *op, struct cn_tx *out)
{
	uint32_t k;

	if (op->ntargets == 0) {
		return false;
	}
	if (op->turn >= op->ntargets) {
		op->turn = 0;
	}
	k = op->targets[op->turn];
	if (!send_to(op, k, out)) {
		return false; /* never past it: the order is what keeps ports free of contention */
	}
	if (op->streams[k].send == CN_NONE) {
		drop_target(op, op->turn);
	} else {
		op->turn++;
	}
	return true;
}

static bool pull_any(struct cn_op *op, struct cn_tx *out)
{
	for (uint32_t i = 0; i < op->ntargets; i++) {
		uint32_t k = op->targets[i];

		if (send_to(op, k, out)) {
			if (op->streams[k].send == CN_NONE) {
				drop_target(op, i);
			}
			return true;
		}
	}
	return false;
}

/* Whether the turn can pass over action i: it is no send, or done, or a wait that is over. */
static bool passable(struct cn_op *op, uint32_t i)
{
	const struct cn_action *a = &op->sched.actions[i];

	if (a->kind == CN_ACT_WAIT && !op->progress[i].complete && dep_allows(op, a, 0)) {
		complete(op, i);
	}
	return op->progress[i].complete || a->kind == CN_ACT_RECV || a->kind == CN_ACT_COPY;
}

static bool pull_in_turn(struct cn_op *op, struct cn_tx *out)
{
	const struct cn_sched *s = &op->sched;

	while (op->turn < s->n && passable(op, op->turn)) {
		op->turn++;
	}
	return op->turn < s->n && s->actions[op->turn].kind == CN_ACT_SEND &&
	       send_to(op, s->actions[op->turn].peer, out);
}

bool cn_op_pull(struct cn_source *source, cn_time now, struct cn_tx *out)
{
	struct cn_op *op = (struct cn_op *)source;
	bool sent = false;

	(void)now;
	if (op->copy_first != CN_NONE) {
		cn_op_run_copies(op);
	}
	if (cn_window_open(cn_node_window(op->team->engine->node), op->window)) {
		switch (op->sched.order) {
		case CN_ORDER_INTERLEAVED:
			sent = pull_interleaved(op, out);
			break;
		case CN_ORDER_IN_TURN:
			sent = pull_in_turn(op, out);
			break;
		case CN_ORDER_ANY:
			sent = pull_any(op, out);
			break;
		}
	}
	if (!sent && op->remaining == 0 && !op->ending_tried) {
		/* Not here: frames pulled before this call may still be in the poller, pointing
		 * into buffers that the caller is free to change as soon as he is told. */
		op->ending = op->ending_tried = true;
		cn_engine_touch(op->team->engine);
	}
	return sent;
}

/* ---- receiving ------------------------------------------------------------------------ */

static void mismatch(struct cn_team *t, cn_time now, const struct cn_op *op, uint32_t k,
		     const char *what)
{
	cn_team_fail(t, now, true, COLLNET_EMISMATCH,
		     "node %s does not match node %s in operation %u (%s of %llu bytes here): %s; "
		     "every rank must call the same operation with the same sizes and options",
		     t->nodes[k].name, t->engine->config.node.name, op->seq,
		     cn_op_name(op->args.op), (unsigned long long)op->args.bytes, what);
}

static void take(struct cn_op *op, cn_time now, uint32_t k, uint32_t stream, uint8_t flags,
		 const uint8_t *data, uint32_t len)
{
	struct cn_team *t = op->team;
	struct cn_streams *s = &op->streams[k];
	uint32_t i = s->recv;
	struct cn_action *a;
	struct cn_progress *p;
	uint64_t left, most;
	bool last;

	if ((stream & 0xff) != signature(op)) {
		mismatch(t, now, op, k, "another operation or algorithm");
		return;
	}
	if (i == CN_NONE) {
		mismatch(t, now, op, k, "it sends more");
		return;
	}
	a = &op->sched.actions[i];
	p = &op->progress[i];
	left = a->len - p->done;
	most = frame_bytes(a->len, cn_node_payload(t->engine->node));
	last = left <= most && p->next == CN_NONE;
	if (len != (left < most ? left : most) || last != ((flags & CN_FLAG_LAST) != 0)) {
		mismatch(t, now, op, k, "other sizes");
		return;
	}
	cn_flight_received(&op->source.flight, cn_node_window(t->engine->node));
	cn_unexpected_taken(op, k);
	if (len > 0) {
		memcpy(place(op, &a->dst) + p->done, data, len);
	}
	/* Data may go back; and while there is any to send to anyone, acknowledgements would only
	 * be in its way: those of the last round all come at once. */
	if (op->ntargets > 0) {
		cn_peer_reply_soon(t->nodes[k].peer);
	}
	p->done += len;
	follow(op, i, data, p->done - len, len);
	if (p->done == a->len) {
		s->recv = p->next;
		if (s->recv == CN_NONE) {
			unexpect(op, k);
		}
		complete(op, i);
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

void cn_op_take_unexpected(struct cn_op *op, cn_time now)
{
	struct cn_team *t = op->team;
	struct cn_unexpected **at = &t->unexpected_first, *f, *kept = NULL;
	uint32_t seq = op->seq, k;
	bool freed = false;

	while ((f = *at) != NULL && t->state == CN_TEAM_READY) {
		if (cn_stream_number(f->stream) != (seq & CN_NUMBER_MASK)) {
			kept = f;
			at = &f->next;
			continue;
		}
		*at = f->next;
		if (t->unexpected_last == f) {
			t->unexpected_last = kept;
		}
		k = f->peer < t->npeers ? t->node_by_peer[f->peer] : UINT16_MAX;
		if (k != UINT16_MAX && op->state == OP_RUNNING && op->seq == seq) {
			take(op, now, k, f->stream, f->flags, f->data, f->len);
		}
		cn_node_buffer_put(t->engine->node, f);
		freed = true;
	}
	if (freed) {
		cn_node_ready(t->engine->node);
	}
}

/* Operations that all ranks here have finished. */
static uint32_t finished(const struct cn_team *t)
{
	uint32_t n = UINT32_MAX;

	for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
		n = m->done_ops < n ? m->done_ops : n;
	}
	return n;
}

/*
 * How many operations the frame is ahead of those that all ranks here have finished; more than half
 * of the numbers: it is of one that is over. A node that only sends (to the root of a gather) may
 * run ahead of the others by as much as unexpected.c allows.
 */
static uint32_t ahead(const struct cn_team *t, uint32_t stream)
{
	return (cn_stream_number(stream) - finished(t)) & CN_NUMBER_MASK;
}

static bool keep_unexpected(struct cn_team *t, struct cn_peer *p, const struct cn_rx *rx)
{
	struct cn_unexpected *f = cn_node_buffer_get(t->engine->node);

	if (f == NULL) {
		return false;
	}
	f->next = NULL;
	f->stream = rx->stream;
	f->peer = (uint16_t)cn_peer_index(p);
	f->len = rx->len;
	f->flags = rx->flags;
	memcpy(f->data, rx->payload, rx->len);
	if (t->unexpected_last != NULL) {
		t->unexpected_last->next = f;
	} else {
		t->unexpected_first = f;
	}
	t->unexpected_last = f;
	return true;
}

bool cn_op_deliver(struct cn_team *t, cn_time now, struct cn_peer *p, const struct cn_rx *rx)
{
	uint32_t index = cn_peer_index(p), k;
	struct cn_op *op;

	if (t->state == CN_TEAM_FAILED) {
		return true;
	}
	if (t->state == CN_TEAM_FORMING) {
		return keep_unexpected(t, p, rx);
	}
	k = index < t->npeers ? t->node_by_peer[index] : UINT16_MAX;
	if (k == UINT16_MAX || t->nodes[k].peer != p) {
		return true; /* not one of ours */
	}
	if (t->nodes[k].failed) {
		return true;
	}
	op = running(t, rx->stream);
	if (op == NULL && ahead(t, rx->stream) > CN_NUMBER_MASK / 2) {
		cn_team_fail(t, now, true, COLLNET_EMISMATCH,
			     "node %s sent more data for an operation than node %s expected: every "
			     "rank must call the same operations with the same sizes",
			     t->nodes[k].name, t->engine->config.node.name);
		return true;
	}
	if (op == NULL) {
		cn_unexpected_started(t, k, finished(t) + ahead(t, rx->stream) + 1);
		return keep_unexpected(t, p, rx);
	}
	take(op, now, k, rx->stream, rx->flags, rx->payload, rx->len);
	return true;
}

void cn_op_emptied(struct cn_team *t, const struct cn_peer *p)
{
	uint32_t index = cn_peer_index(p);

	if (t->state == CN_TEAM_READY && index < t->npeers &&
	    t->node_by_peer[index] != UINT16_MAX) {
		t->nodes[t->node_by_peer[index]].failed = true;
	}
}
