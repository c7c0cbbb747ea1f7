/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints and flows: how they begin and end, what endpoints tell each other besides messages,
 * and what the engine asks of them. See endpoint.h for the protocol.
 *
 * A flow is in the hash table as long as its endpoint is open and its peer is up. After that it
 * lives on only for complete messages that wait (gone), or until its CLOSED could be sent (ep is
 * NULL).
 */
#include <stdlib.h>
#include <string.h>

#include "coll/endpoint.h"

/* Numbers that the system gives begin here. */
static const uint16_t first_free_number = 32768;

/* ---- flows ---------------------------------------------------------------------------- */

static struct cn_flow **bucket(struct cn_endpoints *s, const struct cn_peer *p, uint16_t local,
			       uint16_t remote)
{
	uint64_t x = p != NULL ? (uint64_t)cn_peer_index(p) + 1 : 0;

	x = cn_mix64(x << 32 | (uint32_t)local << 16 | remote);
	return &s->hash[x & (CN_EP_BUCKETS - 1)];
}

struct cn_flow *cn_flow_find(struct cn_endpoints *s, const struct cn_peer *p, uint16_t local,
			     uint16_t remote)
{
	struct cn_flow *f = *bucket(s, p, local, remote);

	while (f != NULL && (f->peer != p || f->local != local || f->remote != remote)) {
		f = f->hash_next;
	}
	return f;
}

static void unhash(struct cn_endpoints *s, struct cn_flow *f)
{
	struct cn_flow **at = bucket(s, f->peer, f->local, f->remote);

	while (*at != NULL && *at != f) {
		at = &(*at)->hash_next;
	}
	if (*at == f) {
		*at = f->hash_next;
		f->hash_next = NULL;
	}
}

static void unretry(struct cn_endpoints *s, struct cn_flow *f)
{
	struct cn_flow **at = &s->retry;

	while (*at != NULL && *at != f) {
		at = &(*at)->retry_next;
	}
	if (*at == f) {
		*at = f->retry_next;
	}
	f->retry = false;
}

/* Nobody finds it any more. */
static void detach(struct cn_flow *f)
{
	struct cn_endpoint *ep = f->ep;
	struct cn_endpoints *s = ep->all;

	if (s->heard == f) {
		s->heard = NULL;
	}
	if (ep->last == f) {
		ep->last = NULL;
	}
	if (!f->gone) {
		unhash(s, f);
	}
	if (f->prev != NULL) {
		f->prev->next = f->next;
	} else {
		ep->flows = f->next;
	}
	if (f->next != NULL) {
		f->next->prev = f->prev;
	}
	f->next = f->prev = NULL;
	ep->account->flows--;
	if (f->retry) {
		unretry(s, f);
	}
}

void cn_flow_free(struct cn_flow *f)
{
	struct cn_endpoints *s = f->ep->all;

	detach(f);
	s->nflows--;
	free(f);
}

void cn_flow_settle_gone(struct cn_flow *f)
{
	if (f->gone && f->waiting == 0) {
		cn_flow_free(f);
	}
}

/* Neither side would notice if it were forgotten. */
static bool forget(struct cn_flow *f)
{
	if (f->sends > 0 || f->waiting > 0 || f->coming || f->retry || f->credit < CN_EP_CREDIT ||
	    f->answer) {
		return false;
	}
	if (f->peer != NULL && f->avail < CN_EP_CREDIT &&
	    !cn_flow_tell(f, CN_EP_GRANT, CN_EP_CREDIT - f->avail)) {
		return false;
	}
	cn_flow_free(f);
	return true;
}

/* The table, or the owner's share of it, is full: one that is idle makes room, of the owner's where
 * its share is full. */
static bool make_room(struct cn_endpoints *s, const struct cn_ep_account *of)
{
	bool any = of->flows < s->max_flows / CN_EP_SHARES;

	for (uint32_t n = 0; n < CN_EP_BUCKETS; n++) {
		struct cn_flow *f = s->hash[s->hand++ & (CN_EP_BUCKETS - 1)];

		for (; f != NULL; f = f->hash_next) {
			if ((any || f->ep->account == of) && forget(f)) {
				return true;
			}
		}
	}
	return false;
}

struct cn_flow *cn_flow_get(struct cn_endpoint *ep, struct cn_peer *p, uint16_t remote)
{
	struct cn_endpoints *s = ep->all;
	struct cn_flow *f = cn_flow_find(s, p, ep->number, remote), **at;

	if (f != NULL ||
	    ((s->nflows >= s->max_flows || ep->account->flows >= s->max_flows / CN_EP_SHARES) &&
	     !make_room(s, ep->account))) {
		return f;
	}
	f = calloc(1, sizeof(*f));
	if (f == NULL) {
		return NULL;
	}
	s->nflows++;
	ep->account->flows++;
	f->ep = ep;
	f->peer = p;
	f->local = ep->number;
	f->remote = remote;
	f->credit = f->avail = CN_EP_CREDIT;
	f->number = (uint32_t)cn_mix64(++s->born);
	f->next = ep->flows;
	if (f->next != NULL) {
		f->next->prev = f;
	}
	ep->flows = f;
	at = bucket(s, p, ep->number, remote);
	f->hash_next = *at;
	*at = f;
	return f;
}

/* ---- telling -------------------------------------------------------------------------- */

static bool tell(struct cn_endpoints *s, struct cn_peer *p, enum cn_ep_control kind, uint16_t to,
		 uint16_t from, uint32_t value)
{
	uint8_t m[9];
	struct cn_cursor c = { m, m + sizeof(m), false };

	cn_put8(&c, (uint8_t)kind);
	cn_put16(&c, to);
	cn_put16(&c, from);
	cn_put32(&c, value);
	/* To a peer that is not up nothing needs to be told. */
	return cn_node_control(cn_ep_node(s), p, m, sizeof(m)) != COLLNET_ELIMIT;
}

bool cn_flow_tell(const struct cn_flow *f, enum cn_ep_control kind, uint32_t value)
{
	return tell(f->ep->all, f->peer, kind, f->remote, f->local, value);
}

static void retry(struct cn_endpoints *s, struct cn_flow *f, cn_time now)
{
	struct cn_flow **at = &s->retry;

	if (f->retry) {
		return;
	}
	while (*at != NULL) {
		at = &(*at)->retry_next;
	}
	*at = f;
	f->retry_next = NULL;
	f->retry = true;
	s->retry_at = cn_min_time(s->retry_at, now + CN_EP_RETRY);
}

void cn_flow_retry(struct cn_flow *f, cn_time now)
{
	retry(f->ep->all, f, now);
}

static void retry_all(struct cn_endpoints *s, cn_time now)
{
	struct cn_flow *f = s->retry, *next;

	s->retry = NULL;
	s->retry_at = CN_NEVER;
	for (; f != NULL; f = next) {
		next = f->retry_next;
		f->retry = false;
		if (f->ep != NULL) {
			cn_flow_tell_abort(f, now);
			cn_flow_credit(f, now);
		} else if (tell(s, f->peer, CN_EP_CLOSED, f->remote, f->local, 0)) {
			s->nflows--;
			free(f);
		} else {
			retry(s, f, now);
		}
	}
}

/* The endpoint at the other end was closed. What it sent before stays, if it is whole. */
static void on_closed(struct cn_flow *f, cn_time now)
{
	struct cn_err err;

	cn_fail(&err, COLLNET_ENOENT, "endpoint %u of node %s was closed", f->remote,
		cn_ep_name(f));
	/* It may be open again, and have the beginning of a message. */
	cn_send_fail_flow(f, now, true, err.code, err.text);
	cn_flow_discard(f, now);
	f->confirmed = f->answer = false;
	f->credit = f->avail = CN_EP_CREDIT;
	if (f->waiting == 0 && !f->abort_due) {
		cn_flow_free(f);
	}
}

bool cn_endpoints_control(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			  size_t len)
{
	/* The cursor does not write when it reads. */
	struct cn_cursor c = { (uint8_t *)(uintptr_t)data, (uint8_t *)(uintptr_t)data + len,
			       false };
	uint8_t kind = cn_get8(&c);
	uint16_t local = cn_get16(&c), remote = cn_get16(&c);
	uint32_t value = cn_get32(&c);
	struct cn_flow *f = c.bad ? NULL : cn_flow_find(e->endpoints, p, local, remote);

	if (f == NULL) {
		return true; /* closed since it was sent */
	}
	switch (kind) {
	case CN_EP_GRANT:
		cn_flow_grant(f, value);
		break;
	case CN_EP_NOENT:
	case CN_EP_FULL:
		cn_flow_refused(f, now, value, kind == CN_EP_FULL);
		break;
	case CN_EP_ABORT:
		if (f->coming && (int32_t)(value - f->in_number) >= 0) {
			cn_flow_discard(f, now);
			cn_flow_credit(f, now);
		}
		break;
	case CN_EP_CLOSED:
		on_closed(f, now);
		break;
	default:
		break;
	}
	return true;
}

/* ---- life ----------------------------------------------------------------------------- */

int cn_endpoints_new(struct cn_engine *e, struct cn_err *err)
{
	struct cn_endpoints *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the endpoints");
	}
	s->engine = e;
	s->payload = cn_node_payload(e->node);
	s->max_flows = 4 * e->config.node.pool_frames;
	s->max_flows = s->max_flows > CN_EP_FLOWS_LEAST ? s->max_flows : CN_EP_FLOWS_LEAST;
	s->max_flows = s->max_flows < CN_EP_FLOWS ? s->max_flows : CN_EP_FLOWS;
	s->next_free = first_free_number;
	s->deadline = s->retry_at = CN_NEVER;
	s->born = e->config.node.epoch;
	cn_send_init_copied(s);
	e->endpoints = s;
	return COLLNET_OK;
}

void cn_endpoints_free(struct cn_engine *e)
{
	struct cn_endpoints *s = e->endpoints;

	while (s->list != NULL) {
		cn_endpoint_close(s->list, 0);
	}
	while (s->retry != NULL) {
		struct cn_flow *f = s->retry;

		s->retry = f->retry_next;
		free(f);
	}
	cn_pool_fini(&s->pool);
	free(s);
	e->endpoints = NULL;
}

static int need_pool(struct cn_endpoints *s)
{
	/* The head of a message is not kept, so that there is room for the lists. */
	size_t item = sizeof(struct cn_kept) + s->payload;

	if (s->pool.memory != NULL) {
		return COLLNET_OK;
	}
	return cn_pool_init(&s->pool, item, CN_EP_CREDIT * s->max_flows);
}

static uint16_t free_number(struct cn_endpoints *s)
{
	for (uint32_t n = 0; n < 65536u - first_free_number; n++) {
		uint16_t number = s->next_free++;

		if (s->next_free < first_free_number) {
			s->next_free = first_free_number;
		}
		if (s->by_number[number] == NULL) {
			return number;
		}
	}
	return 0;
}

/* The owner's account, with one endpoint more; NULL: no memory. */
static struct cn_ep_account *account_get(struct cn_endpoints *s, uint64_t owner)
{
	struct cn_ep_account *a = s->accounts;

	while (a != NULL && a->owner != owner) {
		a = a->next;
	}
	if (a == NULL) {
		a = calloc(1, sizeof(*a));
		if (a == NULL) {
			return NULL;
		}
		a->owner = owner;
		a->next = s->accounts;
		s->accounts = a;
	}
	a->endpoints++;
	return a;
}

static void account_put(struct cn_endpoints *s, struct cn_ep_account *a)
{
	struct cn_ep_account **at = &s->accounts;

	if (--a->endpoints > 0) {
		return;
	}
	while (*at != a) {
		at = &(*at)->next;
	}
	*at = a->next;
	free(a);
}

int cn_endpoint_open(struct cn_engine *e, uint64_t owner, uint16_t number, struct cn_endpoint **out,
		     struct cn_err *err)
{
	struct cn_endpoints *s = e->endpoints;
	uint32_t most = e->config.max_endpoints != 0 ? e->config.max_endpoints : 1024;
	struct cn_endpoint *ep;

	if (e->closing) {
		return cn_fail(err, COLLNET_EDAEMON, "the node's daemon is ending");
	}
	if (s->count >= most) {
		return cn_fail(err, COLLNET_ELIMIT, "node %s has %u endpoints already",
			       e->config.node.name, most);
	}
	if (number != 0 && s->by_number[number] != NULL) {
		return cn_fail(err, COLLNET_ELIMIT, "endpoint %u of node %s is open already",
			       number, e->config.node.name);
	}
	if (number == 0) {
		number = free_number(s);
	}
	if (number == 0) {
		return cn_fail(err, COLLNET_ELIMIT, "no endpoint number is free on node %s",
			       e->config.node.name);
	}
	ep = need_pool(s) == COLLNET_OK ? calloc(1, sizeof(*ep)) : NULL;
	if (ep != NULL) {
		ep->account = account_get(s, owner);
	}
	if (ep == NULL || ep->account == NULL) {
		free(ep);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for an endpoint");
	}
	ep->all = s;
	ep->owner = owner;
	ep->number = number;
	cn_send_init(ep);
	cn_recv_init(ep);
	ep->next = s->list;
	if (ep->next != NULL) {
		ep->next->prev = ep;
	}
	s->list = ep;
	s->count++;
	s->by_number[number] = ep;
	*out = ep;
	return COLLNET_OK;
}

uint16_t cn_endpoint_number(const struct cn_endpoint *ep)
{
	return ep->number;
}

static void end_requests(struct cn_endpoint *ep, cn_time now, int status, const char *text)
{
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		if (ep->sends[i].done != NULL) {
			cn_send_fail(&ep->sends[i], now, false, status, text);
		}
	}
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		if (ep->recvs[i].done != NULL) {
			cn_recv_fail(&ep->recvs[i], now, status, text);
		}
	}
}

/* The other end hears of it, now or when there is a buffer. */
static void close_flow(struct cn_flow *f, cn_time now)
{
	struct cn_endpoints *s = f->ep->all;

	if (f->peer == NULL || f->gone || cn_flow_tell(f, CN_EP_CLOSED, 0)) {
		cn_flow_free(f);
		return;
	}
	detach(f);
	f->ep = NULL;
	retry(s, f, now);
}

void cn_endpoint_close(struct cn_endpoint *ep, cn_time now)
{
	struct cn_endpoints *s = ep->all;
	struct cn_err err;

	cn_fail(&err, COLLNET_EINVAL, "endpoint %u was closed", ep->number);
	end_requests(ep, now, err.code, err.text);
	cn_arrivals_drop(ep);
	while (ep->flows != NULL) {
		close_flow(ep->flows, now);
	}
	cn_source_stop(s->engine, &ep->source);
	s->by_number[ep->number] = NULL;
	s->count--;
	if (ep->prev != NULL) {
		ep->prev->next = ep->next;
	} else {
		s->list = ep->next;
	}
	if (ep->next != NULL) {
		ep->next->prev = ep->prev;
	}
	account_put(s, ep->account);
	free(ep);
}

void cn_endpoints_abort(struct cn_engine *e, int status, const char *text)
{
	for (struct cn_endpoint *ep = e->endpoints->list; ep != NULL; ep = ep->next) {
		end_requests(ep, 0, status, text);
	}
}

void cn_endpoints_fail(struct cn_engine *e, cn_time now, int status, const char *text)
{
	for (struct cn_endpoint *ep = e->endpoints->list; ep != NULL; ep = ep->next) {
		end_requests(ep, now, status, text);
	}
}

/* ---- what the engine asks ------------------------------------------------------------- */

bool cn_endpoints_deliver(struct cn_engine *e, cn_time now, struct cn_peer *p,
			  const struct cn_rx *rx)
{
	struct cn_endpoints *s = e->endpoints;
	uint16_t to = (uint16_t)(rx->stream >> 16), from = (uint16_t)rx->stream;
	struct cn_flow *f = s->heard;
	uint32_t bytes, number;

	if (f == NULL || f->peer != p || f->local != to || f->remote != from) {
		f = cn_flow_find(s, p, to, from);
	}
	if (f == NULL || (rx->flags & CN_FLAG_FIRST) != 0) {
		struct cn_endpoint *ep = s->by_number[to];
		bool head = cn_ep_head(rx, &bytes, &number);

		if (f == NULL && !head) {
			return true; /* the rest of a message whose beginning found nobody */
		}
		if (ep != NULL && head && ep->owner != cn_ep_head_owner(rx)) {
			ep = NULL;
			if (f != NULL) {
				cn_flow_discard(f, now);
			}
			f = NULL;
		}
		f = f != NULL ? f : ep != NULL ? cn_flow_get(ep, p, from) : NULL;
		if (f == NULL) {
			return tell(s, p, ep != NULL ? CN_EP_FULL : CN_EP_NOENT, from, to, number);
		}
	}
	s->heard = f;
	if (!cn_flow_deliver(f, now, rx)) {
		s->refused = true;
		return false;
	}
	return true;
}

static void flow_down(struct cn_endpoints *s, struct cn_flow *f, cn_time now)
{
	struct cn_err err;

	/* The transport has forgotten what was expected of the peer. */
	f->expecting = f->awaiting = false;
	cn_fail(&err, COLLNET_EPEER, "node %s is gone, and with it a message to its endpoint %u",
		cn_ep_name(f), f->remote);
	cn_send_fail_flow(f, now, false, err.code, err.text);
	cn_flow_lost(f);
	f->abort_due = f->answer = false;
	unhash(s, f);
	f->gone = true;
	if (s->heard == f) {
		s->heard = NULL;
	}
	if (f->ep->last == f) {
		f->ep->last = NULL;
	}
	cn_flow_settle_gone(f);
}

void cn_endpoints_peer_down(struct cn_engine *e, cn_time now, struct cn_peer *p)
{
	struct cn_endpoints *s = e->endpoints;
	struct cn_flow *f, *next;

	if (s == NULL) {
		return;
	}
	for (uint32_t i = 0; i < CN_EP_BUCKETS; i++) {
		for (f = s->hash[i]; f != NULL; f = next) {
			next = f->hash_next;
			if (f->peer == p) {
				flow_down(s, f, now);
			}
		}
	}
	for (f = s->retry; f != NULL; f = next) {
		next = f->retry_next;
		if (f->ep == NULL && f->peer == p) {
			unretry(s, f);
			s->nflows--;
			free(f);
		}
	}
}

void cn_ep_deadline(struct cn_endpoints *s, cn_time deadline)
{
	s->deadline = cn_min_time(s->deadline, deadline);
}

cn_time cn_endpoints_deadline(const struct cn_engine *e)
{
	return cn_min_time(e->endpoints->deadline, e->endpoints->retry_at);
}

/* The kept deadline may be that of a request that ended; here the next one is found. */
void cn_endpoints_expire(struct cn_engine *e, cn_time now)
{
	struct cn_endpoints *s = e->endpoints;

	if (s->retry_at <= now) {
		retry_all(s, now);
	}
	if (s->deadline > now) {
		return;
	}
	s->deadline = CN_NEVER;
	for (struct cn_endpoint *ep = s->list; ep != NULL; ep = ep->next) {
		for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
			struct cn_send *out = &ep->sends[i];
			struct cn_recv *in = &ep->recvs[i];

			if (out->done != NULL && out->deadline <= now) {
				cn_send_expire(out, now);
			}
			if (in->done != NULL && in->deadline <= now) {
				cn_recv_expire(in, now);
			}
			if (out->done != NULL) {
				cn_ep_deadline(s, out->deadline);
			}
			if (in->done != NULL) {
				cn_ep_deadline(s, in->deadline);
			}
		}
	}
}
