/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving messages. Receives match messages from any source in order of arrival of first frames.
 * So posted receives and unexpected messages never coexist, except messages of this node deferred
 * behind a longer one (endpoint_local.c).
 *
 * Frames of a matched message are copied from the link's ring into the user's memory. All others
 * are queued in buffers of the endpoints' pool, as many as there are credits, in order of arrival;
 * a message from this node may stay in its sender's memory instead.
 */
#include <inttypes.h>
#include <string.h>

#include "coll/endpoint.h"

/* ---- queues --------------------------------------------------------------------------- */

void cn_recv_append(struct cn_endpoint *ep, struct cn_recv *r)
{
	r->next = NULL;
	r->number = ep->posted++;
	if (ep->recv_first != NULL) {
		ep->recv_last->next = r;
	} else {
		ep->recv_first = r;
	}
	ep->recv_last = r;
}

void cn_recv_return(struct cn_endpoint *ep, struct cn_recv *r)
{
	struct cn_recv **at = &ep->recv_first;

	while (*at != NULL && (int32_t)((*at)->number - r->number) < 0) {
		at = &(*at)->next;
	}
	r->next = *at;
	*at = r;
	if (r->next == NULL) {
		ep->recv_last = r;
	}
}

struct cn_recv *cn_recv_dequeue(struct cn_endpoint *ep)
{
	struct cn_recv *r = ep->recv_first;

	if (r != NULL) {
		ep->recv_first = r->next;
	}
	return r;
}

static void recv_remove(struct cn_endpoint *ep, struct cn_recv *r)
{
	struct cn_recv *before;

	if (ep->recv_first == r) {
		cn_recv_dequeue(ep);
		return;
	}
	for (before = ep->recv_first; before->next != r; before = before->next) {
	}
	before->next = r->next;
	if (ep->recv_last == r) {
		ep->recv_last = before;
	}
}

void cn_recv_init(struct cn_endpoint *ep)
{
	for (uint32_t i = CN_EP_REQUESTS; i-- > 0;) {
		ep->recvs[i].ep = ep;
		ep->recvs[i].next = ep->free_recv;
		ep->free_recv = &ep->recvs[i];
	}
}

/* ---- the end of a receive --------------------------------------------------------------- */

static void end(struct cn_recv *r, int status, const char *text)
{
	struct cn_done *done = r->done;

	r->done = NULL;
	r->flow = NULL;
	r->next = r->ep->free_recv;
	r->ep->free_recv = r;
	done->fn(done, status, text);
}

void cn_recv_complete(struct cn_recv *r, const struct cn_flow *f, uint32_t bytes)
{
	struct cn_err err;

	memcpy(r->result->from.node, f->name, strlen(f->name) + 1);
	r->result->from.endpoint = f->remote;
	r->result->bytes = bytes;
	if (bytes <= r->capacity) {
		end(r, COLLNET_OK, "");
		return;
	}
	cn_fail(&err, COLLNET_ETRUNC,
		"a message of %u bytes from endpoint %u of node %s is longer than the buffer of "
		"%" PRIu64,
		bytes, f->remote, f->name, r->capacity);
	end(r, err.code, err.text);
}

void cn_recv_copy(struct cn_recv *r, uint32_t at, const void *data, uint32_t n)
{
	if (at >= r->capacity) {
		return;
	}
	if (n > r->capacity - at) {
		n = (uint32_t)(r->capacity - at);
	}
	if (n > 0 && data != r->data + at) {	/* the frame may have been placed by the link */
		memmove(r->data + at, data, n); /* a sender of this node may send from there */
	}
}

/* ---- credits -------------------------------------------------------------------------- */

void cn_flow_credit(struct cn_flow *f, cn_time now)
{
	uint32_t rest = 0, target, more;

	if (f->peer == NULL || f->gone) {
		return;
	}
	if (f->coming && f->into != NULL) {
		rest = cn_ep_frames(f->ep->all, f->left);
	}
	target = rest + CN_EP_CREDIT - (f->pooled < CN_EP_CREDIT ? f->pooled : CN_EP_CREDIT);
	more = target > f->avail ? target - f->avail : 0;
	/* Grants are batched. (When the rest of a message lacks credits, it lacks many.) */
	if (!f->grant_due && more < CN_EP_CREDIT / 2) {
		return;
	}
	if (f->closed_due || !cn_flow_control_grant(f, more)) {
		cn_flow_retry(f, now);
		return;
	}
	f->avail += more;
	f->grant_due = false;
}

/* While a receive waits for the rest of a message, its sender is probed when silent. */
static void update_expect(struct cn_flow *f, cn_time now)
{
	bool wanted = f->coming && f->into != NULL && f->left > 0;

	if (wanted != f->awaiting && f->peer != NULL && !f->gone) {
		f->awaiting = wanted;
		cn_peer_expect(cn_ep_node(f->ep->all), now, f->peer, wanted ? 1 : -1);
	}
}

void cn_recv_resume(struct cn_endpoints *s)
{
	if (s->refused) {
		s->refused = false;
		cn_node_ready(cn_ep_node(s));
	}
}

/* ---- matching --------------------------------------------------------------------------- */

static void match_buffered(struct cn_ep_buffered *m, struct cn_recv *r, cn_time now)
{
	struct cn_flow *f = m->message.flow;
	uint32_t bytes = m->message.bytes;

	cn_ep_unexpected_deliver(m, r);
	if (f->buffered == m) {
		f->buffered = NULL;
		f->into = r;
		r->flow = f;
		update_expect(f, now);
	} else {
		cn_recv_complete(r, f, bytes);
	}
	cn_flow_credit(f, now);
	cn_flow_settle_gone(f);
}

void cn_recv_match(struct cn_endpoint *ep, cn_time now)
{
	while (ep->recv_first != NULL && ep->unexpected.first != NULL) {
		struct cn_ep_message *a = ep->unexpected.first;

		cn_ep_unexpected_remove(a);
		if (a->flow->from != NULL) {
			cn_ep_unexpected_append(&a->flow->deferred, a);
		} else if (a->local) {
			cn_local_match(cn_ep_unexpected_send(a), cn_recv_dequeue(ep));
		} else {
			match_buffered((struct cn_ep_buffered *)a, cn_recv_dequeue(ep), now);
		}
	}
	cn_recv_resume(ep->all);
}

/* ---- frames --------------------------------------------------------------------------- */

bool cn_ep_head(const struct cn_rx *rx, struct cn_ep_head *head)
{
	struct cn_cursor c = cn_cursor_of(rx->payload, rx->len);

	if ((rx->flags & CN_FLAG_FIRST) == 0 || rx->len < CN_EP_HEAD) {
		return false;
	}
	head->bytes = cn_get32(&c);
	head->grantreq = (head->bytes & CN_EP_GRANTREQ) != 0;
	head->bytes &= ~CN_EP_GRANTREQ;
	head->number = cn_get32(&c);
	head->owner = cn_get64(&c);
	return head->bytes <= COLLNET_MESSAGE_MAX && rx->len - CN_EP_HEAD <= head->bytes;
}

/* The sender exceeded its credit: refuses the message and discards the rest. False: no buffer. */
static bool refuse(struct cn_flow *f, cn_time now, uint32_t number)
{
	if (!cn_flow_refuse(f->ep->all, f->peer, CN_EP_FULL, f->remote, f->local, number)) {
		return false;
	}
	cn_flow_discard(f, now);
	return true;
}

/* False: no buffer. */
static bool first_frame(struct cn_flow *f, cn_time now, const struct cn_rx *rx,
			const struct cn_ep_head *head)
{
	uint32_t n = rx->len - CN_EP_HEAD;
	const uint8_t *data = rx->payload + CN_EP_HEAD;
	struct cn_recv *r;

	cn_flow_discard(f, now); /* an unfinished message before it */
	r = f->ep->recv_first;
	f->buffered = NULL;
	if (r == NULL) {
		if (f->pooled >= CN_EP_UNREAD) {
			f->in_number = head->number; /* grants report it as received */
			return refuse(f, now, head->number);
		}
		f->buffered = cn_ep_unexpected_enqueue(f, head->bytes, data, n);
		if (f->buffered == NULL) {
			return false;
		}
		f->tail = &f->buffered->more;
	} else {
		cn_recv_dequeue(f->ep);
		r->flow = f;
		cn_recv_copy(r, 0, data, n);
	}
	f->into = r;
	f->coming = f->known = true;
	f->in_number = head->number;
	f->bytes = head->bytes;
	f->left = head->bytes - n;
	f->grant_due |= head->grantreq;
	return true;
}

static bool further_frame(struct cn_flow *f, cn_time now, const struct cn_rx *rx)
{
	if (f->into != NULL) {
		cn_recv_copy(f->into, f->bytes - f->left, rx->payload, rx->len);
	} else if (f->buffered != NULL && f->pooled >= CN_EP_UNREAD) {
		return refuse(f, now, f->in_number);
	} else if (f->buffered != NULL && !cn_ep_unexpected_add(f, rx->payload, rx->len)) {
		return false;
	}
	f->left -= rx->len;
	return true;
}

/* The message is complete. */
static void finish(struct cn_flow *f, cn_time now)
{
	struct cn_recv *r = f->into;

	f->coming = false;
	f->buffered = NULL;
	f->into = NULL;
	update_expect(f, now);
	if (r != NULL) {
		cn_recv_complete(r, f, f->bytes);
	}
}

bool cn_flow_deliver(struct cn_flow *f, cn_time now, const struct cn_rx *rx)
{
	struct cn_ep_head head;
	bool first = cn_ep_head(rx, &head);

	if (first) {
		if (!first_frame(f, now, rx, &head)) {
			return false;
		}
		cn_flow_confirmed(f); /* the endpoint that sent it exists */
	} else if (!f->coming || (rx->flags & CN_FLAG_FIRST) != 0 || rx->len > f->left) {
		cn_flow_discard(f, now); /* not part of a message */
	} else if (!further_frame(f, now, rx)) {
		return false;
	}
	f->avail -= f->avail > 0;
	if (f->coming && f->left == 0) {
		finish(f, now);
	} else if (f->coming && (rx->flags & CN_FLAG_LAST) != 0) {
		cn_flow_discard(f, now);
	} else if (!first && f->into != NULL &&
		   (uint64_t)f->avail * f->ep->all->payload >= f->left) {
		return true; /* in a message with all its credits */
	}
	if (first) {
		update_expect(f, now);
	}
	cn_flow_credit(f, now);
	return true;
}

bool cn_flow_place(const struct cn_flow *f, const struct cn_rx *rx, struct cn_rx_place *out)
{
	uint32_t at = f->bytes - f->left;
	uint64_t room;

	if (!f->coming || f->into == NULL || (rx->flags & CN_FLAG_FIRST) != 0 ||
	    at >= f->into->capacity) {
		return false;
	}
	room = f->into->capacity - at;
	out->at = f->into->data + at;
	out->room = (size_t)(room < f->left ? room : f->left);
	return true;
}

void cn_flow_discard(struct cn_flow *f, cn_time now)
{
	struct cn_recv *r = f->into;
	struct cn_ep_buffered *m = f->buffered;

	if (!f->coming) {
		return;
	}
	f->coming = false;
	f->into = NULL;
	f->buffered = NULL;
	if (f->avail > CN_EP_CREDIT) {
		f->avail = CN_EP_CREDIT; /* its grants are void at both ends */
	}
	update_expect(f, now);
	if (m != NULL) {
		cn_ep_unexpected_remove(&m->message);
		cn_ep_unexpected_deliver(m, NULL);
		cn_recv_resume(f->ep->all);
	}
	if (r != NULL) {
		r->flow = NULL;
		cn_recv_return(f->ep, r);
		cn_recv_match(f->ep, now);
	}
}

void cn_flow_lost(struct cn_flow *f)
{
	struct cn_recv *r = f->into;
	struct cn_err err;

	if (r != NULL) {
		cn_fail(&err, COLLNET_EPEER,
			"node %s is gone: of a message of %u bytes from its endpoint %u, %u are "
			"missing",
			f->name, f->bytes, f->remote, f->left);
		f->into = NULL;
		end(r, err.code, err.text);
	}
	cn_flow_discard(f, 0);
}

/* ---- failure -------------------------------------------------------------------------- */

void cn_recv_fail(struct cn_recv *r, cn_time now, int status, const char *text)
{
	struct cn_flow *f = r->flow;

	if (f == NULL) {
		recv_remove(r->ep, r);
	} else if (f->from != NULL) {
		cn_local_recv_ends(r, now);
	} else {
		f->into = NULL; /* the rest of the message is discarded on arrival */
		update_expect(f, now);
	}
	end(r, status, text);
}

void cn_recv_expire(struct cn_recv *r, cn_time now)
{
	const struct cn_flow *f = r->flow;
	struct cn_err err;

	if (f == NULL) {
		cn_fail(&err, COLLNET_ETIMEOUT,
			"no message arrived at endpoint %u of node %s in time", r->ep->number,
			r->ep->all->engine->config.node.name);
	} else {
		cn_fail(&err, COLLNET_ETIMEOUT,
			"a message of %u bytes from endpoint %u of node %s did not arrive in time: "
			"%u bytes are missing",
			f->bytes, f->remote, f->name, f->left);
	}
	cn_recv_fail(r, now, err.code, err.text);
}
