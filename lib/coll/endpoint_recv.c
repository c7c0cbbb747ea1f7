/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving messages. Receives match messages in the order in which first frames came, from
 * anyone; so whenever both receives and messages wait, they are matched, and never do both wait.
 *
 * Frames of a message that has its receive go from the link's ring into the user's memory. All
 * others wait in buffers of the endpoints' pool, as many as there are credits, in the order of
 * arrival; a message from this node may wait in its sender's memory instead.
 */
#include <inttypes.h>
#include <string.h>

#include "coll/endpoint.h"

/* ---- queues --------------------------------------------------------------------------- */

static void arrival_append(struct cn_endpoint *ep, struct cn_arrival *a)
{
	a->next = NULL;
	if (ep->arrival_first != NULL) {
		ep->arrival_last->next = a;
	} else {
		ep->arrival_first = a;
	}
	ep->arrival_last = a;
	a->flow->waiting++;
}

void cn_arrival_remove(struct cn_endpoint *ep, struct cn_arrival *a)
{
	struct cn_arrival *before = NULL;

	if (ep->arrival_first == a) {
		ep->arrival_first = a->next;
	} else {
		for (before = ep->arrival_first; before->next != a; before = before->next) {
		}
		before->next = a->next;
	}
	if (ep->arrival_last == a) {
		ep->arrival_last = before;
	}
	a->flow->waiting--;
}

static struct cn_send *send_of(struct cn_arrival *a)
{
	return (struct cn_send *)(void *)((char *)a - offsetof(struct cn_send, arrival));
}

static void recv_append(struct cn_endpoint *ep, struct cn_recv *r)
{
	r->next = NULL;
	if (ep->recv_first != NULL) {
		ep->recv_last->next = r;
	} else {
		ep->recv_first = r;
	}
	ep->recv_last = r;
}

static void recv_prepend(struct cn_endpoint *ep, struct cn_recv *r)
{
	r->next = ep->recv_first;
	ep->recv_first = r;
	if (r->next == NULL) {
		ep->recv_last = r;
	}
}

static struct cn_recv *recv_take(struct cn_endpoint *ep)
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
		recv_take(ep);
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

static void complete(struct cn_recv *r, const struct cn_flow *f, uint32_t bytes)
{
	const char *name = cn_ep_name(f);
	struct cn_err err;

	memcpy(r->result->from.node, name, strlen(name) + 1); /* both are COLLNET_NAME_MAX long */
	r->result->from.endpoint = f->remote;
	r->result->bytes = bytes;
	if (bytes <= r->capacity) {
		end(r, COLLNET_OK, "");
		return;
	}
	cn_fail(&err, COLLNET_ETRUNC,
		"a message of %u bytes from endpoint %u of node %s is longer than the buffer of "
		"%" PRIu64,
		bytes, f->remote, name, r->capacity);
	end(r, err.code, err.text);
}

/* Bytes of a message to their place, as far as there is one. */
static void place(struct cn_recv *r, uint32_t at, const void *data, uint32_t n)
{
	if (at >= r->capacity) {
		return;
	}
	if (n > r->capacity - at) {
		n = (uint32_t)(r->capacity - at);
	}
	if (n > 0) {
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
	/* Not each frame by itself. (When the rest of a message lacks credits, it lacks many.) */
	if (!f->answer && more < CN_EP_CREDIT / 2) {
		return;
	}
	if (!cn_flow_tell(f, CN_EP_GRANT, more)) {
		cn_flow_retry(f, now);
		return;
	}
	f->avail += more;
	f->answer = false;
}

/* As long as a receive waits for the rest of a message, its sender had better be there. */
static void await(struct cn_flow *f, cn_time now)
{
	bool wanted = f->coming && f->into != NULL && f->left > 0;

	if (wanted != f->awaiting && f->peer != NULL && !f->gone) {
		f->awaiting = wanted;
		cn_peer_expect(cn_ep_node(f->ep->all), now, f->peer, wanted ? 1 : -1);
	}
}

/* There are buffers, or a receive: what was refused may come again. */
static void take_again(struct cn_endpoints *s)
{
	if (s->refused) {
		s->refused = false;
		cn_node_ready(cn_ep_node(s));
	}
}

/* ---- early messages --------------------------------------------------------------------- */

/* Gives the buffers back; with a receive, the bytes to it. */
static void unpool(struct cn_kept *m, struct cn_recv *r)
{
	struct cn_flow *f = m->arrival.flow;
	struct cn_pool *pool = &f->ep->all->pool;
	struct cn_piece *p = m->more;
	uint32_t at = m->arrival.len;

	if (r != NULL) {
		place(r, 0, m + 1, m->arrival.len);
	}
	cn_pool_put(pool, m);
	f->pooled--;
	while (p != NULL) {
		struct cn_piece *next = p->next;

		if (r != NULL) {
			place(r, at, p + 1, p->len);
		}
		at += p->len;
		cn_pool_put(pool, p);
		f->pooled--;
		p = next;
	}
}

static void match_early(struct cn_kept *m, struct cn_recv *r, cn_time now)
{
	struct cn_flow *f = m->arrival.flow;
	uint32_t bytes = m->arrival.bytes;

	unpool(m, r);
	if (f->early == m) {
		f->early = NULL;
		f->into = r;
		r->flow = f;
		await(f, now);
	} else {
		complete(r, f, bytes);
	}
	cn_flow_credit(f, now);
	cn_flow_settle_gone(f);
}

static void match_local(struct cn_send *out, struct cn_recv *in)
{
	place(in, 0, out->data, (uint32_t)out->bytes);
	complete(in, out->flow, (uint32_t)out->bytes);
	cn_send_end(out, COLLNET_OK, "");
}

static void match(struct cn_endpoint *ep, cn_time now)
{
	while (ep->recv_first != NULL && ep->arrival_first != NULL) {
		struct cn_arrival *a = ep->arrival_first;
		struct cn_recv *r = recv_take(ep);

		cn_arrival_remove(ep, a);
		if (a->local) {
			match_local(send_of(a), r);
		} else {
			match_early((struct cn_kept *)a, r, now);
		}
	}
	take_again(ep->all);
}

static struct cn_kept *keep_first(struct cn_flow *f, uint32_t bytes, const void *data, uint32_t n)
{
	struct cn_kept *m = cn_pool_get(&f->ep->all->pool);

	if (m == NULL) {
		return NULL;
	}
	m->arrival.flow = f;
	m->arrival.bytes = bytes;
	m->arrival.len = (uint16_t)n;
	m->arrival.local = false;
	m->more = NULL;
	if (n > 0) {
		memcpy(m + 1, data, n);
	}
	f->pooled++;
	arrival_append(f->ep, &m->arrival);
	return m;
}

static bool keep_further(struct cn_flow *f, const void *data, uint32_t n)
{
	struct cn_piece *p = cn_pool_get(&f->ep->all->pool);

	if (p == NULL) {
		return false;
	}
	p->next = NULL;
	p->len = (uint16_t)n;
	if (n > 0) {
		memcpy(p + 1, data, n);
	}
	*f->tail = p;
	f->tail = &p->next;
	f->pooled++;
	return true;
}

/* ---- frames --------------------------------------------------------------------------- */

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

bool cn_ep_head(const struct cn_rx *rx, uint32_t *bytes, uint32_t *number)
{
	if ((rx->flags & CN_FLAG_FIRST) == 0 || rx->len < CN_EP_HEAD) {
		return false;
	}
	*bytes = get32(rx->payload) & ~CN_EP_ASK;
	*number = get32(rx->payload + 4);
	return *bytes <= COLLNET_MESSAGE_MAX && rx->len - CN_EP_HEAD <= *bytes;
}

uint64_t cn_ep_head_owner(const struct cn_rx *rx)
{
	return (uint64_t)get32(rx->payload + 8) << 32 | get32(rx->payload + 12);
}

/* False: no buffer. */
static bool first_frame(struct cn_flow *f, cn_time now, const struct cn_rx *rx, uint32_t bytes,
			uint32_t number)
{
	uint32_t n = rx->len - CN_EP_HEAD;
	const uint8_t *data = rx->payload + CN_EP_HEAD;
	struct cn_recv *r;

	cn_flow_discard(f, now); /* what came before it without an end */
	r = f->ep->recv_first;
	f->early = NULL;
	if (r == NULL) {
		f->early = keep_first(f, bytes, data, n);
		if (f->early == NULL) {
			return false;
		}
		f->tail = &f->early->more;
	} else {
		recv_take(f->ep);
		r->flow = f;
		place(r, 0, data, n);
	}
	f->into = r;
	f->coming = true;
	f->in_number = number;
	f->bytes = bytes;
	f->left = bytes - n;
	f->answer |= (get32(rx->payload) & CN_EP_ASK) != 0;
	return true;
}

static bool further_frame(struct cn_flow *f, const struct cn_rx *rx)
{
	if (f->into != NULL) {
		place(f->into, f->bytes - f->left, rx->payload, rx->len);
	} else if (f->early != NULL && !keep_further(f, rx->payload, rx->len)) {
		return false;
	}
	f->left -= rx->len;
	return true;
}

/* The message is whole. */
static void finish(struct cn_flow *f, cn_time now)
{
	struct cn_recv *r = f->into;

	f->coming = false;
	f->early = NULL;
	f->into = NULL;
	await(f, now);
	if (r != NULL) {
		complete(r, f, f->bytes);
	}
}

bool cn_flow_deliver(struct cn_flow *f, cn_time now, const struct cn_rx *rx)
{
	uint32_t bytes, number;
	bool first = cn_ep_head(rx, &bytes, &number);

	if (first) {
		if (!first_frame(f, now, rx, bytes, number)) {
			return false;
		}
		cn_flow_confirmed(f); /* who sends is there */
	} else if (!f->coming || (rx->flags & CN_FLAG_FIRST) != 0 || rx->len > f->left) {
		cn_flow_discard(f, now); /* nothing that it could belong to */
	} else if (!further_frame(f, rx)) {
		return false;
	}
	f->avail -= f->avail > 0;
	if (f->coming && f->left == 0) {
		finish(f, now);
	} else if (f->coming && (rx->flags & CN_FLAG_LAST) != 0) {
		cn_flow_discard(f, now);
	} else if (!first && f->into != NULL) {
		return true; /* in the middle of a message that has all its credits */
	}
	if (first) {
		await(f, now);
	}
	cn_flow_credit(f, now);
	return true;
}

void cn_flow_discard(struct cn_flow *f, cn_time now)
{
	struct cn_recv *r = f->into;
	struct cn_kept *m = f->early;

	if (!f->coming) {
		return;
	}
	f->coming = false;
	f->into = NULL;
	f->early = NULL;
	if (f->avail > CN_EP_CREDIT) {
		f->avail = CN_EP_CREDIT; /* what was granted for it is void, at both ends */
	}
	await(f, now);
	if (m != NULL) {
		cn_arrival_remove(f->ep, &m->arrival);
		unpool(m, NULL);
		take_again(f->ep->all);
	}
	if (r != NULL) {
		r->flow = NULL;
		recv_prepend(f->ep, r);
		match(f->ep, now);
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
			cn_ep_name(f), f->bytes, f->remote, f->left);
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
	} else {
		f->into = NULL; /* the rest of the message is thrown away as it comes */
		await(f, now);
	}
	end(r, status, text);
}

void cn_recv_expire(struct cn_recv *r, cn_time now)
{
	const struct cn_flow *f = r->flow;
	struct cn_err err;

	if (f == NULL) {
		cn_fail(&err, COLLNET_ETIMEOUT, "no message came to endpoint %u in time",
			r->ep->number);
	} else {
		cn_fail(&err, COLLNET_ETIMEOUT,
			"a message of %u bytes from endpoint %u of node %s did not come in time: "
			"%u bytes are missing",
			f->bytes, f->remote, cn_ep_name(f), f->left);
	}
	cn_recv_fail(r, now, err.code, err.text);
}

void cn_arrivals_drop(struct cn_endpoint *ep)
{
	struct cn_err err;

	cn_fail(&err, COLLNET_ENOENT, "endpoint %u of node %s was closed", ep->number,
		ep->all->engine->config.node.name);
	while (ep->arrival_first != NULL) {
		struct cn_arrival *a = ep->arrival_first;

		cn_arrival_remove(ep, a);
		if (a->local) {
			cn_send_end(send_of(a), err.code, err.text);
		} else {
			unpool((struct cn_kept *)a, NULL);
		}
	}
	take_again(ep->all);
}

/* ---- messages of this node --------------------------------------------------------------- */

bool cn_recv_local(struct cn_endpoint *to, struct cn_flow *f, const void *data, uint32_t bytes)
{
	struct cn_recv *r = recv_take(to);

	if (r != NULL) {
		place(r, 0, data, bytes);
		complete(r, f, bytes);
		return true;
	}
	return bytes <= to->all->payload - CN_EP_HEAD && f->pooled < CN_EP_CREDIT &&
	       keep_first(f, bytes, data, bytes) != NULL;
}

void cn_recv_wait(struct cn_endpoint *to, struct cn_send *r)
{
	r->arrival.flow = r->flow;
	r->arrival.local = true;
	arrival_append(to, &r->arrival);
}

/* ---- posting -------------------------------------------------------------------------- */

int cn_endpoint_recv(struct cn_endpoint *ep, cn_time now, void *data, uint64_t capacity,
		     cn_time deadline, struct cn_received *result, struct cn_done *done,
		     struct cn_err *err)
{
	struct cn_recv *r = ep->free_recv;

	if (ep->all->engine->closing) {
		return cn_fail(err, COLLNET_EDAEMON, "the node's daemon is ending");
	}
	if (data == NULL && capacity > 0) {
		return cn_fail(err, COLLNET_EINVAL, "a receive needs memory");
	}
	if (r == NULL) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "endpoint %u has %u receives outstanding "
			       "already",
			       ep->number, CN_EP_REQUESTS);
	}
	ep->free_recv = r->next;
	*r = (struct cn_recv){
		.ep = ep,
		.done = done,
		.data = data,
		.capacity = capacity,
		.deadline = deadline,
		.result = result,
	};
	cn_ep_deadline(ep->all, deadline);
	recv_append(ep, r);
	match(ep, now);
	take_again(ep->all);
	return COLLNET_OK;
}
