/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending half of an operation: which frame is next, and whether it may go. A frame goes when
 * the peer and W_g have room, its dependency is met, no earlier operation has frames for the same
 * node, the receiver's limit of unexpected messages allows it, and, for a synchronisation, the
 * link is released.
 */
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/stream.h"
#include "proto/wire.h"

/* Unacknowledged frames to a node without an ACK request. */
#define COPIES_PER_PEER 8u

static bool dep_allows(const struct cn_op *op, const struct cn_action *a, uint64_t up_to)
{
	const struct cn_progress *d;

	if (a->dep == CN_DEP_NONE) {
		return true;
	}
	d = &op->progress[a->dep_on];
	return d->complete || (a->dep == CN_DEP_STREAM && up_to > 0 && d->done >= up_to);
}

/* Half of what ports hold, plus two. */
static uint64_t half_window(const struct cn_op *op)
{
	return op->algorithm->window_rule == CN_WINDOW_FAN_IN ? 0 : cn_op_ports_window(op) / 2 + 2;
}

/*
 * Link release. A synchronisation tells another node that a message is over, so that it may use the
 * message's links. If it were sent with the message's last frame, the queue before a link would
 * grow with every message by the rate by which nodes are faster than the link (acknowledgements
 * take some of it), although never two nodes send at a time. So it waits until at most half a
 * window of this node's frames is in flight: some have passed the link by then, and it does not run
 * dry. Where many send to one, others keep the link busy, so none of this node's frames may be
 * left. Where a link is slower than this node's, half as many may be left: most of a message is
 * queued before that link when its last frame is sent, and the next node's message adds to it.
 */
static uint64_t release_limit(const struct cn_op *op)
{
	const uint64_t half = half_window(op);

	return op->team->meets_slower ? half / 2 : half;
}

static bool releases_link(const struct cn_op *op, const struct cn_action *a)
{
	return op->synchronised && op->window != COLLNET_WINDOW_OFF && a->len == 0 &&
	       a->src.buffer == CN_BUF_NONE;
}

/* True if this frame's acknowledgement should open the window towards its node: twice per window,
 * so that acknowledgements do not fill the ports on their way back. */
static bool clocks_pair(const struct cn_op *op, const struct cn_peer *p)
{
	return op->pair_window < 4 ? cn_peer_in_flight(p) + 1 >= op->pair_window
				   : cn_peer_unrequested(p) + 1 >= op->pair_window / 2;
}

/* True if a synchronisation will soon wait for the acknowledgement of this frame of action a. */
static bool last_before_release(struct cn_op *op, const struct cn_action *a,
				const struct cn_fragmenter *c)
{
	const uint64_t limit = release_limit(op), asks = half_window(op) / 2,
		       unacked = op->source.flight.unacked;
	uint64_t most, frames;

	if (!op->synchronised || op->window == COLLNET_WINDOW_OFF) {
		return false;
	}
	if (releases_link(op, a)) { /* others have as few frames to each node, without requests */
		return limit > 0 && unacked > limit;
	}
	most = cn_op_frame_bytes(op, c->run);
	frames = (c->left + most - 1) / most;
	return frames == asks || (frames == 0 && unacked >= asks);
}

/* True if action i was the last one for its node before sends to others. */
static bool leaves_node(const struct cn_op *op, uint32_t i)
{
	const struct cn_sched *s = &op->sched;

	if (s->order != CN_ORDER_IN_TURN) {
		return op->streams[s->actions[i].peer].send == CN_NONE;
	}
	for (uint32_t k = i + 1; k < s->n; k++) {
		if (s->actions[k].kind == CN_ACT_SEND) {
			return s->actions[k].peer != s->actions[i].peer;
		}
	}
	return true;
}

/* True if no other operation of the team is running. */
static bool runs_alone(const struct cn_op *op)
{
	return op->team->transport->sources.n == 1;
}

/* The smallest window of the running operations: a node counts the frames of all of them, so frames
 * of one also close the window of another. */
static uint32_t smallest_window(const struct cn_op *op)
{
	uint32_t least = op->window;

	if (runs_alone(op)) {
		return least;
	}
	for (uint64_t left = op->team->busy; left != 0; left &= left - 1) {
		const struct cn_op *o = op->team->ops[cn_bit_first(left)];

		if (o->state == OP_RUNNING && o->window < least) {
			least = o->window;
		}
	}
	return least;
}

/*
 * Frames that need no ACK request when their node's quantum ends: at most a quarter of the window,
 * if acknowledgements are its clock, and half of what can be copied at the end (cn_node_detach()),
 * for which a small pool has few buffers. More would delay the operation until their receivers
 * acknowledge them unrequested, which takes many round trips.
 */
static uint64_t unrequested_limit(const struct cn_op *op)
{
	uint32_t limit = cn_node_window(op->team->transport->node)->limit, window;
	uint32_t copied = cn_op_copied_max(op),
		 pool = op->team->engine->config.node.pool_frames / 2;

	copied = (pool < copied ? pool : copied) / 2;
	if (!op->source.flight.by_acks) {
		return copied;
	}
	window = smallest_window(op);
	limit = window < limit ? window : limit;
	return limit / 4 < copied ? limit / 4 : copied;
}

/* True if a running operation still has frames for node k; before: only operations called before
 * this one, or NULL. */
static bool has_frames_for(const struct cn_team *t, uint32_t k, const struct cn_op *before)
{
	for (uint64_t left = t->busy; left != 0; left &= left - 1) {
		const struct cn_op *o = t->ops[cn_bit_first(left)];

		if (o->state == OP_RUNNING && o->streams[k].send != CN_NONE &&
		    (before == NULL || (int32_t)(before->seq - o->seq) > 0)) {
			return true;
		}
	}
	return false;
}

bool cn_op_sends_to(const struct cn_team *t, uint32_t k)
{
	return has_frames_for(t, k, NULL);
}

/*
 * The ordering check: whether an operation that was called before this one still has frames for
 * node k. They go first: a node calls in order, so frames that it cannot accept yet (unexpected
 * messages have filled the pool) must never precede those that it needs for its next call.
 */
static bool must_wait_for_earlier(const struct cn_op *op, uint32_t k)
{
	return !runs_alone(op) && has_frames_for(op->team, k, op);
}

/* True if the next n bytes of a stream, whose current message is i, are available. */
static bool is_there(const struct cn_op *op, uint32_t i, uint64_t n)
{
	uint64_t part;

	do {
		const struct cn_action *a = &op->sched.actions[i];
		const uint64_t done = op->progress[i].done;

		part = a->len - done < n ? a->len - done : n;
		if (!dep_allows(op, a, done + part)) {
			return false;
		}
		n -= part;
		i = op->progress[i].next;
	} while (n > 0);
	return true;
}

/* True if the limit of unexpected messages allows a frame to node k. If it does not, and all frames
 * are acknowledged, only liveness can detect that the node will never start the operation. */
static bool is_allowed(struct cn_op *op, uint32_t k)
{
	if (cn_op_unexpected_allows(op, k)) {
		return true;
	}
	cn_op_expect(op, op->pulled, k);
	return false;
}

/* True if the next frame to node k, of n bytes from action i on, may be sent. */
static bool may_send(struct cn_op *op, uint32_t k, uint32_t i, uint64_t n)
{
	const struct cn_action *a = &op->sched.actions[i];
	struct cn_peer *peer = op->team->nodes[k].peer;

	if (peer == NULL || cn_peer_room(peer) == 0 || !is_there(op, i, n) ||
	    must_wait_for_earlier(op, k) || !is_allowed(op, k) ||
	    (releases_link(op, a) && op->source.flight.unacked > release_limit(op))) {
		return false;
	}
	if (cn_peer_in_flight(peer) >= op->pair_window && !cn_op_peer_port_has_room(op, k)) {
		/* by frames that an operation before left behind, perhaps */
		cn_peer_request_ack(peer);
		return false;
	}
	return true;
}

/*
 * True if this frame is all that the node sends in the operation, and leaves the windows open:
 * frames from there in the next operation acknowledge it, or frames to there request it.
 */
static bool acked_later(const struct cn_op *op, const struct cn_peer *p)
{
	return op->source.flight.by_acks && op->frames_out == 1 && !clocks_pair(op, p) &&
	       cn_window_open(cn_node_window(op->team->transport->node), NULL, op->window);
}

/*
 * True if a frame that ends with action i should request an acknowledgement. `clock`: the window's
 * clock needs it (cn_flight_sent()). `room`: the port has room for it.
 */
static bool requests_ack(struct cn_op *op, uint32_t i, bool clock, bool room)
{
	const struct cn_action *a = &op->sched.actions[i];
	const struct cn_flight *f = &op->source.flight;
	struct cn_peer *peer = op->team->nodes[a->peer].peer;
	const struct cn_fragmenter *c = &op->streams[a->peer].out;

	if (acked_later(op, peer)) {
		return false;
	}
	/* Received frames clock an exchange's window, unless more are sent. With a window towards
	 * each node, one outstanding request is enough: where all send to this node, too,
	 * acknowledgements fill the port to it. */
	if (clock && (op->frames_out > op->frames_in || f->by_acks) &&
	    (op->algorithm->window_rule != CN_WINDOW_EXCHANGE ||
	     op->pair_window == COLLNET_WINDOW_OFF || !cn_peer_ack_requested(peer))) {
		return true;
	}
	/* The last frame to a node, if much is in flight: otherwise these frames would occupy the
	 * window, or their copies the pool, until the receiver acknowledges them unrequested. */
	if (op->frames_out > op->frames_in && f->by_acks && op->streams[a->peer].send == CN_NONE &&
	    (cn_node_window(op->team->transport->node)->in_flight > unrequested_limit(op) ||
	     cn_peer_in_flight(peer) >= COPIES_PER_PEER)) {
		return true;
	}
	if (c->left == 0 && f->unacked > unrequested_limit(op) && leaves_node(op, i)) {
		return true;
	}
	/* Frames that the port has room for need no window towards its node. */
	room = room &&
	       (op->streams[a->peer].send == CN_NONE || cn_op_peer_port_has_room(op, a->peer));
	return last_before_release(op, a, c) || (!room && clocks_pair(op, peer));
}

/*
 * True if a long super-frame ends with this frame, which requests an acknowledgement, where this
 * node only sends and will wait for it. If the whole window were one super-frame, the receiver
 * would acknowledge it as a whole, and each node would idle while the other works. A node that also
 * receives has work meanwhile, and so has one that many send to.
 */
static bool ends_super_frame(struct cn_op *op, const struct cn_fragmenter *c)
{
	const struct cn_flight *f = &op->source.flight;
	const uint64_t most = cn_op_frame_bytes(op, c->run);

	return f->by_acks && op->frames_in == 0 &&
	       (op->algorithm->window_rule != CN_WINDOW_FAN_IN || op->team->senders == 1) &&
	       f->in_flight + (c->left + most - 1) / most > op->window;
}

/* Advances a stream by `n` sent bytes. Returns the last message that they belong to. */
static uint32_t advance(struct cn_op *op, struct cn_streams *s, uint64_t n)
{
	uint32_t i;

	do {
		const struct cn_action *a = &op->sched.actions[s->send];
		struct cn_progress *p = &op->progress[s->send];
		const uint64_t left = a->len - p->done, part = left < n ? left : n;

		i = s->send;
		n -= part;
		p->done += part;
		if (p->done == a->len) {
			s->send = p->next;
			cn_op_complete(op, i);
		}
	} while (n > 0);
	return i;
}

/* The next frame of the stream to node k, if it can be sent. */
static bool send_to(struct cn_op *op, uint32_t k, struct cn_tx *out)
{
	struct cn_node *node = op->team->transport->node;
	struct cn_streams *s = &op->streams[k];
	uint32_t i = s->send;
	const uint64_t n = cn_op_next_frame(op, &s->out, i);
	bool clock, room;

	if (!may_send(op, k, i, n)) {
		return false;
	}
	out->peer = op->team->nodes[k].peer;
	out->type = CN_TYPE_COLL;
	out->flags = op->own_port_has_room && runs_alone(op) ? CN_FLAG_ROOM : 0;
	out->len = (uint16_t)n;
	out->stream = cn_stream(op->seq, cn_op_signature(op));
	out->payload = cn_op_frame_data(op, i, n);
	out->token = &op->source;
	cn_unexpected_limit_sent(&op->team->nodes[k].unexpected, op->seq);
	room = cn_op_peer_port_has_room(op, k);
	s->begun = s->sent++ == 0 ? op->pulled : s->begun;
	i = advance(op, s, n);
	s->out.left -= n;
	if (s->send == CN_NONE) {
		out->flags |= CN_FLAG_LAST;
		if (s->recv == CN_NONE) {
			cn_op_unexpect(op, k);
		}
	}
	clock = cn_flight_sent(&op->source.flight, cn_node_window(node), op->window);
	if (requests_ack(op, i, clock, room)) {
		out->flags |= CN_FLAG_ACKREQ;
		out->ends = ends_super_frame(op, &s->out);
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
	if (op->next >= op->ntargets) {
		op->next = 0;
	}
	k = op->targets[op->next];
	if (!send_to(op, k, out)) {
		return false; /* never past it: the order keeps ports free of contention */
	}
	if (op->streams[k].send == CN_NONE) {
		drop_target(op, op->next);
		op->quantum_used = 0;
	} else if (++op->quantum_used >=
		   cn_engine_quantum(op->team->engine, cn_op_ports_window(op))) {
		op->next++;
		op->quantum_used = 0;
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

/* True if the cursor can pass action i: not a send, or complete, or a wait that is over. */
static bool passable(struct cn_op *op, uint32_t i)
{
	const struct cn_action *a = &op->sched.actions[i];

	if (a->kind == CN_ACT_WAIT && !op->progress[i].complete && dep_allows(op, a, 0)) {
		cn_op_complete(op, i);
	}
	return op->progress[i].complete || a->kind == CN_ACT_RECV || a->kind == CN_ACT_COPY ||
	       a->kind == CN_ACT_REDUCE;
}

static bool pull_in_order(struct cn_op *op, struct cn_tx *out)
{
	const struct cn_sched *s = &op->sched;

	while (op->next < s->n && passable(op, op->next)) {
		op->next++;
	}
	if (op->next == s->n || s->actions[op->next].kind != CN_ACT_SEND) {
		return false;
	}
	const uint32_t k = s->actions[op->next].peer;

	if (!send_to(op, k, out)) {
		return false;
	}
	for (uint32_t i = 0; op->streams[k].send == CN_NONE && i < op->ntargets; i++) {
		if (op->targets[i] == k) {
			drop_target(op, i);
			break;
		}
	}
	return true;
}

/*
 * True if the operation is starved: frames of other operations, of any team, close its window, so
 * that none of its own will open it; or its own do, sent without ACK requests when the window was
 * larger.
 */
static bool is_starved(const struct cn_op *op, const struct cn_window *w)
{
	const struct cn_flight *f = &op->source.flight;

	return op->ntargets > 0 && (f->by_acks || f->in_flight == 0) &&
	       (w->in_flight > f->in_flight || f->limit > op->window);
}

bool cn_op_pull(struct cn_source *source, cn_time now, struct cn_tx *out)
{
	struct cn_op *op = (struct cn_op *)source;
	struct cn_window *w = cn_node_window(op->team->transport->node);
	bool sent = false;

	cn_op_window_update(op, now);
	op->source.window_closed = false;
	if (cn_window_open(w, runs_alone(op) ? &op->source.flight : NULL, op->window)) {
		switch (op->sched.order) {
		case CN_ORDER_INTERLEAVED:
			sent = pull_interleaved(op, out);
			break;
		case CN_ORDER_IN_TURN:
			sent = pull_in_order(op, out);
			break;
		case CN_ORDER_ANY:
			sent = pull_any(op, out);
			break;
		}
	} else {
		op->source.window_closed = op->ntargets > 0;
		w->blocked |= op->ntargets > 0;
		if (op->source.adaptive != NULL) {
			cn_adaptive_window_closed(op->source.adaptive);
		}
		op->team->engine->starved |= is_starved(op, w);
	}
	if (sent || op->ntargets == 0) {
		op->opens_at = CN_NEVER;
	} else if (op->opens_at != CN_NEVER) {
		cn_team_touch(op->team);
	}
	if (!sent && op->remaining == op->deferred_reduces && !op->ending_tried) {
		/* Do not finish here: frames pulled before this call may still be in the poller,
		 * pointing into buffers that the caller may change once it is notified. */
		op->ending = op->ending_tried = true;
		cn_team_touch(op->team);
	}
	return sent;
}

void cn_op_acked(struct cn_source *s)
{
	struct cn_op *op = (struct cn_op *)s;

	if (op->remaining == 0 && s->flight.unacked == 0) {
		cn_op_try_finish(op);
	}
}
