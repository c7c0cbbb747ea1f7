/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One collective operation on one node: cursors into its schedule.
 *
 * It starts when every rank of this node has called it. From node a to node b runs one stream: the
 * messages of the schedule from a to b, in list order, cut into frames that never span two
 * messages. So the order of the frames names their place, and the wire carries no offsets. Frames
 * that come before the start wait in the node's pool (struct cn_early).
 *
 * It is complete when every action is, and its frames are acknowledged, or the last few of them
 * copied (cn_node_detach()), so that the user's buffers are free.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"

#define NONE UINT32_MAX

/* Bytes that copies between ranks of this node move before frames get their turn again. */
static const uint64_t copy_chunk = 256 * 1024;

/* How far an action has come, and the next one of its list. */
struct progress {
	uint64_t done;
	uint32_t next;	  /* SEND: to the same node; RECV: from the same node; COPY: in the queue */
	uint32_t copies;  /* first copy that depends on this action */
	uint32_t sibling; /* COPY: next one that depends on the same action */
	bool complete;
};

/* The two streams between this node and another one. */
struct streams {
	uint32_t send, recv; /* current action; NONE: all done */
	bool expected;	     /* cn_peer_expect() is in force */
};

struct post {
	struct cn_done *done; /* NULL: this rank has not called */
	const uint8_t *send;
	uint8_t *recv;
};

enum op_state {
	OP_FREE,
	OP_POSTED, /* some ranks of this node have called */
	OP_RUNNING,
};

struct cn_op {
	struct cn_source source; /* first: the transport's token is the source */
	struct cn_team *team;
	enum op_state state;
	uint32_t seq;
	struct cn_coll_args args; /* of the first call; buffers are in posts[] */
	const struct cn_algorithm *algorithm;
	uint32_t window;
	cn_time deadline;
	struct post *posts; /* [local ranks] */
	uint32_t nposts;

	/* the plan, kept for the next operation that is alike */
	struct cn_plan plan;
	struct cn_sched sched;
	struct progress *progress; /* [sched.n] */
	uint32_t progress_cap;
	struct streams *streams; /* [nodes] */
	uint32_t *targets;	 /* nodes with something left to send, in order of appearance */
	uint32_t ntargets, turn;
	uint32_t copy_first, copy_last; /* copies that can run */
	uint32_t remaining;	        /* actions not complete */
	bool one_way;			/* it sends more frames than it receives */
};

const char *cn_op_name(enum cn_op_kind op)
{
	return op == CN_OP_ALLTOALL ? "alltoall" : op == CN_OP_ALLGATHER ? "allgather" : "barrier";
}

uint64_t cn_coll_send_bytes(enum cn_op_kind op, uint64_t bytes, uint32_t ranks)
{
	return op == CN_OP_ALLTOALL ? bytes * ranks : op == CN_OP_ALLGATHER ? bytes : 0;
}

uint64_t cn_coll_recv_bytes(enum cn_op_kind op, uint64_t bytes, uint32_t ranks)
{
	return op == CN_OP_BARRIER ? 0 : bytes * ranks;
}

bool cn_op_busy(const struct cn_op *op)
{
	return op->state != OP_FREE;
}

static uint32_t local_ranks(const struct cn_team *t)
{
	return t->layout.first[t->me + 1] - t->layout.first[t->me];
}

/* What the two ends must agree on beyond sizes, which the frames themselves show. */
static uint8_t signature(const struct cn_op *op)
{
	return (uint8_t)(op->plan.algorithm << 3 | (op->plan.permutation & 3) << 1 |
			 op->plan.contention_aware);
}

static uint8_t *place(const struct cn_op *op, const struct cn_span *s)
{
	const struct cn_layout *l = &op->team->layout;
	const uint32_t *ranks = l->ranks + l->first[op->team->me];
	uint32_t n = local_ranks(op->team), low = 0;

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
					 : op->posts[low].recv) + s->offset;
}

/* ---- the end -------------------------------------------------------------------------- */

static void unexpect(struct cn_op *op, uint32_t k)
{
	struct streams *s = &op->streams[k];

	if (s->expected && op->team->nodes[k].peer != NULL) {
		cn_peer_expect(op->team->engine->node, 0, op->team->nodes[k].peer, -1);
	}
	s->expected = false;
}

/* Every rank of this node is told. The op is free afterwards. */
static void finish(struct cn_op *op, int status, const char *text)
{
	struct cn_team *t = op->team;
	uint32_t n = local_ranks(t);

	if (op->state == OP_RUNNING) {
		cn_source_stop(t->engine, &op->source);
		for (uint32_t k = 0; k < t->layout.nnodes; k++) {
			unexpect(op, k);
		}
	}
	op->state = OP_FREE;
	op->nposts = 0;
	op->copy_first = NONE;
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
	finish(op, status, text);
}

static void try_finish(struct cn_op *op)
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
	finish(op, COLLNET_OK, "");
}

static void on_acked(struct cn_source *s)
{
	struct cn_op *op = (struct cn_op *)s;

	if (op->remaining == 0 && s->flight.unacked == 0) {
		try_finish(op);
	}
}

/* ---- progress ------------------------------------------------------------------------- */

static void queue_copy(struct cn_op *op, uint32_t i)
{
	op->progress[i].next = NONE;
	if (op->copy_first == NONE) {
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
	for (uint32_t c = op->progress[i].copies; c != NONE; c = op->progress[c].sibling) {
		if (!op->progress[c].complete) {
			queue_copy(op, c);
		}
	}
}

/* `len` bytes of action i are there now, at `from`: copies that follow it byte by byte. */
static void follow(struct cn_op *op, uint32_t i, const uint8_t *from, uint64_t offset, uint32_t len)
{
	for (uint32_t c = op->progress[i].copies; c != NONE; c = op->progress[c].sibling) {
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

static void run_copies(struct cn_op *op)
{
	uint64_t budget = copy_chunk;

	while (op->copy_first != NONE && budget > 0) {
		uint32_t i = op->copy_first;
		struct cn_action *a = &op->sched.actions[i];
		struct progress *p = &op->progress[i];
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

static bool dep_allows(const struct cn_op *op, const struct cn_action *a, uint64_t up_to)
{
	const struct progress *d;

	if (a->dep == CN_DEP_NONE) {
		return true;
	}
	d = &op->progress[a->dep_on];
	return d->complete || (a->dep == CN_DEP_STREAM && up_to > 0 && d->done >= up_to);
}

/* The next frame of the stream to node k, if it can go. */
static bool send_to(struct cn_op *op, uint32_t k, struct cn_tx *out)
{
	struct cn_team *t = op->team;
	struct cn_node *node = t->engine->node;
	struct streams *s = &op->streams[k];
	uint32_t i = s->send;
	struct cn_action *a = &op->sched.actions[i];
	struct progress *p = &op->progress[i];
	uint64_t n = a->len - p->done, most = cn_node_payload(node);

	n = n < most ? n : most;
	if (t->nodes[k].peer == NULL || cn_peer_room(t->nodes[k].peer) == 0 ||
	    !dep_allows(op, a, p->done + n)) {
		return false;
	}
	out->peer = t->nodes[k].peer;
	out->type = CN_TYPE_COLL;
	out->flags = 0;
	out->len = (uint16_t)n;
	out->stream = (uint32_t)t->nodes[k].slot << 16 | (op->seq & 0xff) << 8 | signature(op);
	out->payload = n > 0 ? place(op, &a->src) + p->done : NULL;
	out->token = &op->source;
	p->done += n;
	if (p->done == a->len) {
		s->send = p->next;
		if (s->send == NONE) {
			out->flags |= CN_FLAG_LAST;
		}
		complete(op, i);
	}
	/* What comes in is the clock of the window; acknowledgements are asked for only where less
	 * comes in than goes out. */
	if (cn_flight_sent(&op->source.flight, cn_node_window(node), op->window) && op->one_way) {
		out->flags |= CN_FLAG_ASK;
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
	if (op->streams[k].send == NONE) {
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
			if (op->streams[k].send == NONE) {
				drop_target(op, i);
			}
			return true;
		}
	}
	return false;
}

static bool pull_in_turn(struct cn_op *op, struct cn_tx *out)
{
	const struct cn_sched *s = &op->sched;

	while (op->turn < s->n &&
	       (s->actions[op->turn].kind != CN_ACT_SEND || op->progress[op->turn].complete)) {
		op->turn++;
	}
	return op->turn < s->n && send_to(op, s->actions[op->turn].peer, out);
}

static bool on_pull(struct cn_source *source, cn_time now, struct cn_tx *out)
{
	struct cn_op *op = (struct cn_op *)source;
	bool sent = false;

	(void)now;
	if (op->copy_first != NONE) {
		run_copies(op);
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
	if (!sent) {
		/* Not while a frame is on its way out: it is not in the sender's ring yet. */
		try_finish(op);
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
	struct streams *s = &op->streams[k];
	uint32_t i = s->recv, most = cn_node_payload(t->engine->node);
	struct cn_action *a;
	struct progress *p;
	uint64_t left;
	bool last;

	if ((stream & 0xff) != signature(op)) {
		mismatch(t, now, op, k, "another operation or algorithm");
		return;
	}
	if (i == NONE) {
		mismatch(t, now, op, k, "it sends more");
		return;
	}
	a = &op->sched.actions[i];
	p = &op->progress[i];
	left = a->len - p->done;
	last = left <= most && p->next == NONE;
	if (len != (left < most ? left : most) || last != ((flags & CN_FLAG_LAST) != 0)) {
		mismatch(t, now, op, k, "other sizes");
		return;
	}
	cn_flight_received(&op->source.flight, cn_node_window(t->engine->node));
	if (len > 0) {
		memcpy(place(op, &a->dst) + p->done, data, len);
	}
	if (s->send != NONE) {
		cn_peer_reply_soon(t->nodes[k].peer);
	}
	p->done += len;
	follow(op, i, data, p->done - len, len);
	if (p->done == a->len) {
		s->recv = p->next;
		if (s->recv == NONE) {
			unexpect(op, k);
		}
		complete(op, i);
		try_finish(op);
	}
}

static struct cn_op *running(struct cn_team *t, uint32_t stream)
{
	uint8_t number = (uint8_t)(stream >> 8);
	struct cn_op *op = t->ops[number % CN_OPS];

	return op != NULL && op->state == OP_RUNNING && (uint8_t)op->seq == number ? op : NULL;
}

/* Frames that waited for this operation, in the order in which they came. */
static void take_early(struct cn_op *op, cn_time now)
{
	struct cn_team *t = op->team;
	struct cn_early **at = &t->early_first, *f, *kept = NULL;
	uint32_t seq = op->seq, k;
	bool freed = false;

	while ((f = *at) != NULL && t->state == CN_TEAM_READY) {
		if ((uint8_t)(f->stream >> 8) != (uint8_t)seq) {
			kept = f;
			at = &f->next;
			continue;
		}
		*at = f->next;
		if (t->early_last == f) {
			t->early_last = kept;
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

/* Whether the frame can belong to an operation to come: nobody runs further ahead than this. */
static bool ahead(const struct cn_team *t, uint32_t stream)
{
	uint32_t base = UINT32_MAX;

	for (const struct cn_member *m = t->members; m != NULL; m = m->next) {
		base = m->done_ops < base ? m->done_ops : base;
	}
	return (uint8_t)((stream >> 8) - base) < 4 * CN_OPS;
}

static bool keep_early(struct cn_team *t, struct cn_peer *p, const struct cn_rx *rx)
{
	struct cn_early *f = cn_node_buffer_get(t->engine->node);

	if (f == NULL) {
		return false;
	}
	f->next = NULL;
	f->stream = rx->stream;
	f->peer = (uint16_t)cn_peer_index(p);
	f->len = rx->len;
	f->flags = rx->flags;
	memcpy(f->data, rx->payload, rx->len);
	if (t->early_last != NULL) {
		t->early_last->next = f;
	} else {
		t->early_first = f;
	}
	t->early_last = f;
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
		return keep_early(t, p, rx);
	}
	k = index < t->npeers ? t->node_by_peer[index] : UINT16_MAX;
	if (k == UINT16_MAX || t->nodes[k].peer != p) {
		return true; /* not one of ours */
	}
	op = running(t, rx->stream);
	if (op == NULL && !ahead(t, rx->stream)) {
		cn_team_fail(t, now, true, COLLNET_EMISMATCH,
			     "node %s sent more data for an operation than node %s expected: every "
			     "rank must call the same operations with the same sizes",
			     t->nodes[k].name, t->engine->config.node.name);
		return true;
	}
	if (op == NULL) {
		return keep_early(t, p, rx);
	}
	take(op, now, k, rx->stream, rx->flags, rx->payload, rx->len);
	return true;
}

/* ---- starting ------------------------------------------------------------------------- */

static int make_room(struct cn_op *op, struct cn_err *err)
{
	uint32_t n = op->sched.n;

	if (n > op->progress_cap) {
		struct progress *p = realloc(op->progress, n * sizeof(*p));

		if (p == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory for a schedule of %u actions", n);
		}
		op->progress = p;
		op->progress_cap = n;
	}
	return COLLNET_OK;
}

static int plan(struct cn_op *op, const struct cn_plan *p, struct cn_err *err)
{
	struct cn_team *t = op->team;
	int r = COLLNET_OK;

	if (memcmp(&op->plan, p, sizeof(*p)) != 0) {
		memset(&op->plan, 0, sizeof(op->plan));
		r = cn_sched_plan(&t->layout, p, t->me, &op->sched, err);
		if (r == COLLNET_OK) {
			r = make_room(op, err);
		}
		if (r == COLLNET_OK) {
			op->plan = *p;
		}
	}
	return r;
}

/* Cursors to the beginning: streams by node, targets in order of appearance, copies that can run. */
static void rewind_cursors(struct cn_op *op)
{
	const struct cn_sched *s = &op->sched;
	uint64_t most = cn_node_payload(op->team->engine->node), out = 0, in = 0;

	op->ntargets = op->turn = 0;
	op->copy_first = NONE;
	op->remaining = s->n;
	for (uint32_t k = 0; k < op->team->layout.nnodes; k++) {
		op->streams[k] = (struct streams){.send = NONE, .recv = NONE};
	}
	for (uint32_t i = s->n; i-- > 0;) {
		const struct cn_action *a = &s->actions[i];
		struct streams *st = &op->streams[a->peer];
		struct progress *p = &op->progress[i];

		*p = (struct progress){.next = NONE, .copies = NONE, .sibling = NONE};
		out += a->kind == CN_ACT_SEND ? a->len / most + 1 : 0;
		in += a->kind == CN_ACT_RECV ? a->len / most + 1 : 0;
		if (a->kind == CN_ACT_SEND) {
			p->next = st->send;
			st->send = i;
		} else if (a->kind == CN_ACT_RECV) {
			p->next = st->recv;
			st->recv = i;
		}
	}
	op->one_way = out > in;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		if (a->kind == CN_ACT_SEND && op->streams[a->peer].send == i) {
			op->targets[op->ntargets++] = a->peer;
		} else if (a->kind == CN_ACT_COPY && a->dep == CN_DEP_NONE) {
			queue_copy(op, i);
		} else if (a->kind == CN_ACT_COPY) {
			op->progress[i].sibling = op->progress[a->dep_on].copies;
			op->progress[a->dep_on].copies = i;
		}
	}
}

static void start(struct cn_op *op, cn_time now)
{
	struct cn_team *t = op->team;

	rewind_cursors(op);
	op->state = OP_RUNNING;
	cn_source_start(t->engine, &op->source);
	for (uint32_t k = 0; k < t->layout.nnodes; k++) {
		if (op->streams[k].recv != NONE && t->nodes[k].peer != NULL) {
			op->streams[k].expected = true;
			cn_peer_expect(t->engine->node, now, t->nodes[k].peer, 1);
		}
	}
	take_early(op, now);
	try_finish(op);
}

static struct cn_op *op_of(struct cn_team *t, uint32_t seq)
{
	struct cn_op **slot = &t->ops[seq % CN_OPS], *op = *slot;

	if (op != NULL) {
		return op;
	}
	op = calloc(1, sizeof(*op));
	if (op == NULL) {
		return NULL;
	}
	op->team = t;
	op->copy_first = NONE;
	op->posts = calloc(local_ranks(t), sizeof(*op->posts));
	op->streams = calloc(t->layout.nnodes, sizeof(*op->streams));
	op->targets = calloc(t->layout.nnodes, sizeof(*op->targets));
	if (op->posts == NULL || op->streams == NULL || op->targets == NULL) {
		cn_op_free_storage(op);
		return NULL;
	}
	op->source.pull = on_pull;
	op->source.acked = on_acked;
	*slot = op;
	return op;
}

void cn_op_free_storage(struct cn_op *op)
{
	if (op != NULL) {
		cn_sched_reset(&op->sched);
		free(op->posts);
		free(op->streams);
		free(op->targets);
		free(op->progress);
		free(op);
	}
}

/* The window of an operation: what was asked for, else Eq. 4 where the algorithm is under it. */
static uint32_t window_of(const struct cn_team *t, const struct cn_coll_args *a,
			  const struct cn_algorithm *g)
{
	if (a->window != COLLNET_WINDOW_AUTO) {
		return a->window;
	}
	return g->windowed ? t->window : COLLNET_WINDOW_OFF;
}

static int make_plan(struct cn_team *t, const struct cn_coll_args *a,
		     const struct cn_algorithm **g, struct cn_plan *p, struct cn_err *err)
{
	enum collnet_permutation perm;
	int r;

	*g = cn_algorithm_find(a->op, a->algorithm);
	if (*g == NULL) {
		return cn_fail(err, COLLNET_EINVAL, "no algorithm '%s' for %s", a->algorithm,
			       cn_op_name(a->op));
	}
	r = cn_perm_resolve(a->permutation, t->layout.nnodes, &perm, err);
	if (r != COLLNET_OK) {
		return r;
	}
	memset(p, 0, sizeof(*p));
	p->op = a->op;
	p->algorithm = (*g)->id;
	p->permutation = (uint8_t)perm;
	p->contention_aware = a->contention_aware && t->layout.logical != NULL;
	p->bytes = a->op == CN_OP_BARRIER ? 0 : a->bytes;
	return COLLNET_OK;
}

static uint32_t local_index(const struct cn_member *m)
{
	uint32_t i = 0;

	while (m->team->local[i] != m) {
		i++;
	}
	return i;
}

int cn_coll_post(struct cn_member *m, cn_time now, const struct cn_coll_args *a,
		 struct cn_done *done, struct cn_err *err)
{
	struct cn_team *t = m->team;
	const struct cn_algorithm *g;
	struct cn_plan p;
	struct cn_op *op;
	int r;

	if (t->state != CN_TEAM_READY) {
		return t->state == CN_TEAM_FAILED
			       ? cn_fail(err, t->status, "%s", t->text)
			       : cn_fail(err, COLLNET_EINVAL, "the team is not ready yet");
	}
	if (a->bytes > COLLNET_BLOCK_MAX) {
		return cn_fail(err, COLLNET_ELIMIT, "a block of %llu bytes: at most %zu",
			       (unsigned long long)a->bytes, COLLNET_BLOCK_MAX);
	}
	r = make_plan(t, a, &g, &p, err);
	if (r != COLLNET_OK) {
		return r;
	}
	op = op_of(t, m->posted);
	if (op == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for an operation");
	}
	if (op->state != OP_FREE && op->seq != m->posted) {
		return cn_fail(err, COLLNET_ELIMIT, "%d operations are outstanding: wait for one",
			       CN_OPS);
	}
	if (op->state == OP_FREE) {
		r = plan(op, &p, err);
		if (r != COLLNET_OK) {
			return r;
		}
		op->state = OP_POSTED;
		op->seq = m->posted;
		op->args = *a;
		op->algorithm = g;
		op->window = window_of(t, a, g);
		op->deadline = a->deadline;
	} else if (memcmp(&op->plan, &p, sizeof(p)) != 0) {
		cn_team_fail(t, now, true, COLLNET_EMISMATCH,
			     "rank %u on node %s called %s of %llu bytes where another rank of the "
			     "node called %s of %llu bytes, or with other options",
			     m->rank, t->engine->config.node.name, cn_op_name(a->op),
			     (unsigned long long)a->bytes, cn_op_name(op->args.op),
			     (unsigned long long)op->args.bytes);
		return cn_fail(err, t->status, "%s", t->text);
	}
	op->deadline = cn_min_time(op->deadline, a->deadline);
	op->posts[local_index(m)] = (struct post){done, a->send, a->recv};
	op->nposts++;
	m->posted++;
	cn_engine_touch(t->engine);
	for (uint32_t k = 0; k < t->layout.nnodes && t->state == CN_TEAM_READY; k++) {
		cn_op_check_left(t, now, k);
	}
	if (t->state == CN_TEAM_READY && op->state == OP_POSTED && op->nposts == local_ranks(t)) {
		start(op, now);
	}
	return COLLNET_OK;
}

/* ---- deadlines, ranks that left --------------------------------------------------------- */

void cn_op_check_left(struct cn_team *t, cn_time now, uint32_t k)
{
	const struct cn_team_node *n = &t->nodes[k];

	for (int i = 0; i < CN_OPS && n->left_after != UINT32_MAX; i++) {
		const struct cn_op *op = t->ops[i];

		if (op != NULL && op->state != OP_FREE && op->seq >= n->left_after) {
			cn_team_fail(t, now, true, COLLNET_ERANK,
				     "rank %u on node %s left the team after %u operations, before %s "
				     "number %u", n->left_rank, n->name, n->left_after,
				     cn_op_name(op->args.op), op->seq);
			return;
		}
	}
}

cn_time cn_op_deadline(const struct cn_op *op)
{
	if (op->state == OP_FREE) {
		return CN_NEVER;
	}
	return op->copy_first != NONE && op->state == OP_RUNNING ? 0 : op->deadline;
}

static void name_missing(const struct cn_op *op, char *text, size_t cap)
{
	const struct cn_team *t = op->team;
	struct cn_rank_list l = {.text = text, .cap = cap};

	for (uint32_t r = 0; r < t->ranks; r++) {
		uint32_t k = t->layout.node_of[r];
		bool missing = op->state == OP_RUNNING && op->streams[k].recv != NONE;

		if (op->state == OP_POSTED && k == t->me) {
			for (uint32_t i = 0; i < local_ranks(t); i++) {
				missing |= t->layout.ranks[t->layout.first[k] + i] == r &&
					   op->posts[i].done == NULL;
			}
		}
		if (missing) {
			cn_rank_list_add(&l, r);
		}
	}
	cn_rank_list_end(&l);
}

void cn_op_expire(struct cn_op *op, cn_time now)
{
	struct cn_team *t = op->team;
	char ranks[160] = "", node[COLLNET_NAME_MAX + 16] = "";

	if (op->state == OP_RUNNING && op->copy_first != NONE) {
		run_copies(op);
		try_finish(op);
		cn_engine_touch(t->engine);
	}
	if (op->state == OP_FREE || op->deadline > now) {
		return;
	}
	name_missing(op, ranks, sizeof(ranks));
	for (uint32_t k = 0; k < t->layout.nnodes && op->state == OP_RUNNING; k++) {
		if (op->streams[k].recv != NONE) {
			snprintf(node, sizeof(node), " (node %s)", t->nodes[k].name);
			break;
		}
	}
	cn_team_fail(t, now, true, COLLNET_ETIMEOUT,
		     "%s number %u passed its deadline on node %s, %s%s%s", cn_op_name(op->args.op),
		     op->seq, t->engine->config.node.name,
		     ranks[0] == '\0' ? "with data still to be sent or acknowledged"
		     : op->state == OP_RUNNING ? "waiting for data of ranks "
					       : "waiting for the call of ranks ",
		     ranks, node);
}
