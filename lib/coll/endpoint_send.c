/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending messages. A request stays in its flow's queue until its last frame was sent (and the flow
 * is confirmed), so that the messages of a flow are sent one after the other; then, unless all its
 * frames were copied, it waits for their acknowledgement.
 *
 * Of small messages every frame is copied into a buffer of the pool, of larger ones only the first,
 * because the header must precede the bytes. Without a buffer, the header is sent alone, from the
 * request, and the bytes from the user's memory.
 *
 * Flows that could send are in a ring, served round robin, skipping those without room at their
 * peer, so that a blocked flow blocks no other.
 */
#include <inttypes.h>
#include <string.h>

#include "coll/endpoint.h"

/* ---- which flow is next ---------------------------------------------------------------- */

static bool could_send(const struct cn_flow *f)
{
	return f->first != NULL && f->first->state < CN_SEND_SENT && f->credit > 0 &&
	       !f->closed_due && !f->abort_due && !f->gone;
}

static void enter(struct cn_flow *f)
{
	struct cn_endpoint *ep = f->ep;
	struct cn_ep_account *a = ep->account;

	if (ep->current == NULL && ep->source.turn.next == NULL) {
		if (a->sources.n == 0) {
			cn_source_start(&ep->all->engine->own.sources, &a->source);
		}
		cn_source_start(&a->sources, &ep->source);
	}
	cn_turn_enter(&ep->current, &f->turn, f);
}

static void leave(struct cn_flow *f)
{
	struct cn_endpoint *ep = f->ep;
	struct cn_ep_account *a = ep->account;
	struct cn_transport *own = &ep->all->engine->own;

	if (ep->current == &f->turn) {
		ep->quantum_used = 0;
	}
	cn_turn_leave(&ep->current, &f->turn);
	if (ep->current == NULL) {
		cn_source_stop(&a->sources, &ep->source, cn_node_window(own->node));
	}
	if (a->sources.n == 0) {
		cn_source_stop(&own->sources, &a->source, cn_node_window(own->node));
	}
}

void cn_flow_activate(struct cn_flow *f)
{
	bool in = f->turn.next != NULL, could = could_send(f);

	if (could && !in) {
		enter(f);
	} else if (!could && in) {
		leave(f);
	}
}

/* ---- requests ------------------------------------------------------------------------- */

void cn_send_enqueue(struct cn_flow *f, struct cn_send *r)
{
	r->state = CN_SEND_QUEUED;
	r->next = NULL;
	if (f->first != NULL) {
		f->last->next = r;
	} else {
		f->first = r;
	}
	f->last = r;
}

static void dequeue(struct cn_send *r)
{
	struct cn_flow *f = r->flow;
	struct cn_send *before = NULL;

	if (f->first == r) {
		f->first = r->next;
	} else {
		for (before = f->first; before->next != r; before = before->next) {
		}
		before->next = r->next;
	}
	if (f->last == r) {
		f->last = before;
	}
}

void cn_send_end(struct cn_send *r, int status, const char *text)
{
	struct cn_flow *f = r->flow;
	struct cn_endpoint *ep = r->ep;
	struct cn_done *done = r->done;

	cn_flight_end(&r->source.flight, cn_node_window(cn_ep_node(ep->all)));
	if (--f->sends == 0 && f->peer != NULL) {
		cn_peer_expect(cn_ep_node(ep->all), 0, f->peer, -1);
	}
	r->state = CN_SEND_FREE;
	r->next = ep->free_send;
	ep->free_send = r;
	done->fn(done, status, text);
}

/* The first of the queue was sent: once the flow is confirmed, the next may be sent. */
static void settle(struct cn_flow *f)
{
	struct cn_send *r = f->first;

	if (r == NULL || r->state != CN_SEND_SENT || (r->grantreq && !f->confirmed)) {
		return;
	}
	dequeue(r);
	r->state = CN_SEND_UNACKED;
	if (r->source.flight.unacked == 0) {
		cn_send_end(r, COLLNET_OK, "");
	}
}

static void on_acked(struct cn_source *source)
{
	struct cn_send *r = (struct cn_send *)source;

	/* If the peer is gone, all frames are returned, but none has arrived. */
	if (r->state == CN_SEND_UNACKED && source->flight.unacked == 0 &&
	    cn_peer_alive(r->flow->peer)) {
		cn_send_end(r, COLLNET_OK, "");
	}
}

static void on_copied_acked(struct cn_source *source)
{
	(void)source;
}

void cn_send_init_copied(struct cn_endpoints *s)
{
	s->copied.acked = on_copied_acked;
}

/* ---- frames --------------------------------------------------------------------------- */

/* Advances old numbers, so that comparisons stay valid when numbers wrap. */
static void clamp_numbers(struct cn_flow *f)
{
	struct cn_ep_numbers *n = &f->numbers;

	if (n->next - f->abort > UINT32_MAX / 4) {
		f->abort = n->next - UINT32_MAX / 8;
		f->since = CN_EP_CREDIT;
	}
	if (n->next - n->failed > UINT32_MAX / 4) {
		n->failed = n->failed_from = n->next - UINT32_MAX / 8;
	}
	if (n->next - n->first > UINT32_MAX / 4) {
		n->first = n->next - UINT32_MAX / 8;
	}
}

/* The first frame of a message; true: its bytes were copied. */
static bool first_frame(struct cn_flow *f, struct cn_send *r, struct cn_tx *tx)
{
	struct cn_endpoints *s = f->ep->all;
	uint64_t n = s->payload - CN_EP_HEAD;
	uint8_t *b = cn_node_buffer_get(cn_ep_node(s));
	struct cn_cursor c = { r->head, r->head + CN_EP_HEAD, false };

	if (f->credit > CN_EP_CREDIT) {
		f->credit = CN_EP_CREDIT;
	}
	r->state = CN_SEND_BEGUN;
	f->known = true;
	r->grantreq = !f->confirmed;
	r->number = f->numbers.next++;
	clamp_numbers(f);
	cn_put32(&c, (uint32_t)r->bytes | (f->confirmed ? 0 : CN_EP_GRANTREQ));
	cn_put32(&c, r->number);
	cn_put64(&c, r->ep->owner);
	tx->flags = CN_FLAG_FIRST;
	if (b == NULL) {
		tx->payload = r->head;
		tx->len = CN_EP_HEAD;
		return false;
	}
	n = r->bytes < n ? r->bytes : n;
	memcpy(b, r->head, CN_EP_HEAD);
	if (n > 0) {
		memcpy(b + CN_EP_HEAD, r->data, n);
	}
	r->offset = n;
	tx->payload = b;
	tx->len = (uint16_t)(CN_EP_HEAD + n);
	return true;
}

static bool is_copied(const struct cn_send *r)
{
	const struct cn_endpoints *s = r->ep->all;

	return r->bytes + CN_EP_HEAD <= (uint64_t)CN_EP_COPIED * s->payload;
}

static bool further_frame(struct cn_flow *f, struct cn_send *r, struct cn_tx *tx)
{
	struct cn_endpoints *s = f->ep->all;
	uint64_t n = r->bytes - r->offset;
	uint8_t *b = NULL;

	n = n < s->payload ? n : s->payload;
	tx->payload = r->data + r->offset;
	tx->len = (uint16_t)n;
	if (is_copied(r)) {
		b = cn_node_buffer_get(cn_ep_node(s));
	}
	if (b != NULL) {
		memcpy(b, tx->payload, n);
		tx->payload = b;
	}
	r->offset += n;
	return b != NULL;
}

/* The flight that counts the frames of a message, if there are buffers. */
static const struct cn_flight *flight_of(const struct cn_send *r)
{
	return is_copied(r) ? &r->ep->all->copied.flight : &r->source.flight;
}

static void send_frame(struct cn_flow *f, struct cn_tx *tx)
{
	struct cn_endpoints *s = f->ep->all;
	struct cn_window *w = cn_node_window(cn_ep_node(s));
	struct cn_send *r = f->first;
	uint32_t limit = s->engine->window;
	struct cn_source *token;

	tx->peer = f->peer;
	tx->type = CN_TYPE_MESSAGE;
	tx->stream = (uint32_t)f->remote << 16 | f->local;
	tx->owned = r->state == CN_SEND_BEGUN ? further_frame(f, r, tx) : first_frame(f, r, tx);
	f->credit--;
	f->since++;
	token = tx->owned ? &s->copied : &r->source;
	tx->token = token;
	/* The frame that closes the window requests an acknowledgement, even if the window holds
	 * frames of other flights: nothing else opens it. */
	if (cn_flight_sent(&token->flight, w, limit) || !cn_window_open(w, &token->flight, limit)) {
		tx->flags |= CN_FLAG_ACKREQ;
	}
	if (r->offset == r->bytes) {
		tx->flags |= CN_FLAG_LAST;
		if (r->source.flight.unacked > 0) {
			tx->flags |= CN_FLAG_ACKREQ;
		}
		r->state = CN_SEND_SENT;
		settle(f);
	}
	cn_flow_activate(f);
}

static bool on_pull(struct cn_source *source, cn_time now, struct cn_tx *tx)
{
	struct cn_endpoint *ep = (struct cn_endpoint *)source;
	struct cn_engine *e = ep->all->engine;
	struct cn_turn *at = ep->current;
	struct cn_flow *f = at != NULL ? at->owner : NULL;

	(void)now;
	if (f == NULL ||
	    !cn_window_open(cn_node_window(e->own.node), flight_of(f->first), e->window)) {
		return false;
	}
	do {
		f = at->owner;
		if (cn_peer_room(f->peer) > 0) {
			if (at != ep->current ||
			    ++ep->quantum_used >= cn_engine_quantum(e, e->window)) {
				ep->quantum_used = 0;
			}
			ep->current = ep->quantum_used > 0 ? at : at->next;
			send_frame(f, tx);
			return true;
		}
		at = at->next;
	} while (at != ep->current);
	return false;
}

static bool on_pull_account(struct cn_source *source, cn_time now, struct cn_tx *tx)
{
	struct cn_ep_account *a = (struct cn_ep_account *)source;
	const struct cn_engine *e = a->all->engine;

	return cn_source_pull(&a->sources, now, cn_engine_quantum(e, e->window), tx);
}

void cn_send_account_init(struct cn_ep_account *a)
{
	a->source.pull = on_pull_account;
}

void cn_send_init(struct cn_endpoint *ep)
{
	ep->source.pull = on_pull;
	ep->source.acked = on_copied_acked;
	for (uint32_t i = CN_EP_REQUESTS; i-- > 0;) {
		struct cn_send *r = &ep->sends[i];

		r->ep = ep;
		r->source.acked = on_acked;
		r->next = ep->free_send;
		ep->free_send = r;
	}
}

/* ---- what the other end sends ---------------------------------------------------------- */

void cn_flow_confirmed(struct cn_flow *f)
{
	if (!f->confirmed) {
		f->confirmed = true;
		settle(f);
		cn_flow_activate(f);
	}
}

void cn_flow_grant(struct cn_flow *f, uint32_t frames, uint32_t number)
{
	const struct cn_send *r = f->first;
	const uint64_t credit = (uint64_t)f->credit + frames;
	uint64_t most = CN_EP_CREDIT;

	if (f->numbers.next - 1 - number >= f->numbers.next - 1 - f->abort) {
		/* The grant was sent before the other end knew of the abort. */
		most = f->since < CN_EP_CREDIT ? CN_EP_CREDIT - f->since : 0;
	} else if (r != NULL && r->state == CN_SEND_BEGUN && r->number == number) {
		most += cn_ep_frames(f->ep->all, r->bytes - r->offset);
	}
	f->credit = (uint32_t)(credit < most ? credit : most);
	cn_flow_confirmed(f);
	cn_flow_activate(f);
}

static void refusal(struct cn_err *err, const char *node, uint16_t to, bool full)
{
	if (full) {
		cn_fail(err, COLLNET_ELIMIT,
			"node %s has no room for more senders to endpoint %u: messages that were not "
			"received there occupy it",
			node, to);
	} else {
		cn_fail(err, COLLNET_ENOENT, "no endpoint %u is open on node %s", to, node);
	}
}

static bool has(const struct cn_ep_numbers *n, uint32_t number)
{
	return number - n->first < n->next - n->first;
}

/* A message that was sent and has not failed here had completed: the endpoint's next send reports
 * it. */
static void report_lost(struct cn_endpoint *ep, struct cn_ep_numbers *n, uint32_t number,
			const struct cn_err *err)
{
	n->first = number + 1; /* refusals arrive in order; each is reported once */
	if ((int32_t)(number - n->failed_from) < 0 || (int32_t)(number - n->failed) > 0) {
		cn_fail(&ep->lost, err->code, "a message sent earlier is lost: %s", err->text);
		cn_log(COLLNET_LOG_WARNING, "%s", ep->lost.text);
	}
}

void cn_flow_remember(const struct cn_flow *f)
{
	struct cn_endpoint *ep = f->ep;
	struct cn_ep_forgotten *g = &ep->forgotten[ep->nforgotten % CN_EP_FORGOTTEN];

	if (f->peer != NULL && f->numbers.first != f->numbers.next) {
		*g = (struct cn_ep_forgotten){ f->peer, f->remote, f->numbers };
		ep->nforgotten++;
	}
}

void cn_endpoint_refused(struct cn_endpoint *ep, const struct cn_peer *p, uint16_t to,
			 uint32_t number, bool full)
{
	struct cn_err err;

	refusal(&err, cn_peer_name(p), to, full);
	for (uint32_t i = 0; i < CN_EP_FORGOTTEN; i++) {
		struct cn_ep_forgotten *g = &ep->forgotten[i];

		if (g->peer == p && g->remote == to && has(&g->numbers, number)) {
			report_lost(ep, &g->numbers, number, &err);
			return;
		}
	}
}

void cn_flow_refused(struct cn_flow *f, cn_time now, uint32_t number, bool full)
{
	struct cn_endpoint *ep = f->ep;
	struct cn_err err;

	if (!has(&f->numbers, number)) {
		cn_endpoint_refused(ep, f->peer, f->remote, number, full);
		return;
	}
	/* Frames sent there were not counted. */
	f->confirmed = false;
	if (f->credit < CN_EP_CREDIT) {
		f->credit = CN_EP_CREDIT;
	}
	refusal(&err, f->name, f->remote, full);
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		struct cn_send *r = &ep->sends[i];

		if (r->state >= CN_SEND_BEGUN && r->flow == f && r->number == number) {
			cn_send_fail(r, now, false, err.code, err.text);
			return;
		}
	}
	report_lost(ep, &f->numbers, number, &err);
	cn_flow_activate(f);
}

void cn_flow_send_abort(struct cn_flow *f, cn_time now)
{
	if (!f->abort_due) {
		return;
	}
	if (cn_flow_control(f, CN_EP_ABORT, f->abort)) {
		f->abort_due = false;
	} else {
		cn_flow_retry(f, now);
	}
	cn_flow_activate(f);
}

/* ---- failure -------------------------------------------------------------------------- */

/* Some of its frames were sent, and may not all arrive. */
static void abort_send(struct cn_send *r, cn_time now, bool notify)
{
	struct cn_flow *f = r->flow;
	uint64_t unacked = r->source.flight.unacked;

	if (unacked > 0) {
		cn_node_abandon(cn_ep_node(f->ep->all), &r->source);
		f->credit += (uint32_t)unacked; /* the receiver may never count them */
	}
	if (!notify || (r->state >= CN_SEND_SENT && unacked == 0)) {
		return;
	}
	if ((int32_t)(r->number - f->abort) > 0) {
		f->abort = r->number;
		f->since = 0;
	}
	f->abort_due = true;
	cn_flow_send_abort(f, now);
}

static void record_failed(struct cn_ep_numbers *n, uint32_t number)
{
	if ((int32_t)(number - n->failed) > 0) {
		n->failed_from = number == n->failed + 1 ? n->failed_from : number;
		n->failed = number;
	}
}

void cn_send_fail(struct cn_send *r, cn_time now, bool notify, int status, const char *text)
{
	struct cn_flow *f = r->flow;

	if (f->peer == NULL) {
		cn_local_send_ends(r, now);
		cn_send_end(r, status, text);
		return;
	}
	if (r->state != CN_SEND_UNACKED) {
		dequeue(r);
	}
	if (r->state >= CN_SEND_BEGUN) {
		record_failed(&f->numbers, r->number);
		abort_send(r, now, notify);
	}
	cn_send_end(r, status, text);
	cn_flow_activate(f);
}

void cn_send_fail_flow(struct cn_flow *f, cn_time now, bool notify, int status, const char *text)
{
	struct cn_endpoint *ep = f->ep;

	for (uint32_t i = 0; i < CN_EP_REQUESTS && f->sends > 0; i++) {
		struct cn_send *r = &ep->sends[i];

		if (r->state == CN_SEND_UNACKED && r->flow == f) {
			cn_send_fail(r, now, notify, status, text);
		}
	}
	while (f->first != NULL) {
		cn_send_fail(f->first, now, notify, status, text);
	}
}

static const char *phase(const struct cn_send *r)
{
	const struct cn_flow *f = r->flow;

	if (f->from == r) {
		return "the node is slow";
	}
	if (f->peer == NULL && f->from == NULL) {
		return "nobody there received it";
	}
	if (r->state >= CN_SEND_SENT) {
		return r->state == CN_SEND_SENT ? "the node did not answer"
						: "the last were not acknowledged";
	}
	if (f->peer == NULL || f->first != r) {
		return "it waited for those before it";
	}
	if (f->credit == 0) {
		return "nobody there receives";
	}
	return cn_peer_room(f->peer) == 0 ? "the node does not take more" : "the network is slow";
}

void cn_send_expire(struct cn_send *r, cn_time now)
{
	struct cn_err err;

	cn_fail(&err, COLLNET_ETIMEOUT,
		"a message of %" PRIu64 " bytes from endpoint %u to endpoint %u of node %s was not "
		"sent in time: %" PRIu64 " bytes went, %s",
		r->bytes, r->ep->number, r->flow->peer != NULL ? r->flow->remote : r->flow->local,
		r->flow->name, r->offset, phase(r));
	cn_send_fail(r, now, true, err.code, err.text);
}
