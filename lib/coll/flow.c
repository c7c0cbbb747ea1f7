/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows: creation and end, and the control messages between their endpoints.
 *
 * A flow is in the hash table as long as both endpoints are open and its peer is up. After that it
 * lives on only for complete messages that wait (gone), or until its CLOSED could be sent (ep is
 * NULL).
 */
#include <stdlib.h>
#include <string.h>

#include "coll/endpoint.h"

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

/* Removes it from the hash table and lists. */
static void detach(struct cn_flow *f)
{
	struct cn_endpoint *ep = f->ep;
	struct cn_endpoints *s = ep->all;

	if (s->last_received == f) {
		s->last_received = NULL;
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
	if (f->retry) {
		unretry(s, f);
	}
}

void cn_flow_free(struct cn_flow *f)
{
	struct cn_endpoints *s = f->all;

	if (f->ep != NULL) {
		detach(f);
	}
	s->nflows--;
	f->account->flows--;
	cn_ep_account_settle(s, f->account);
	free(f);
}

void cn_flow_settle_gone(struct cn_flow *f)
{
	if (f->gone && f->waiting == 0) {
		cn_flow_free(f);
	}
}

/* Evicts a flow that is idle: all it sent was received, except frames too few for a grant. Those
 * may be credited twice, which the receiver's bound allows for. */
static bool forget(struct cn_flow *f)
{
	if (f->sends > 0 || f->waiting > 0 || f->coming || f->retry || f->grant_due ||
	    f->credit <= CN_EP_CREDIT / 2) {
		return false;
	}
	if (f->peer != NULL && f->avail < CN_EP_CREDIT &&
	    !cn_flow_control_grant(f, CN_EP_CREDIT - f->avail)) {
		return false;
	}
	cn_flow_remember(f);
	cn_flow_free(f);
	return true;
}

/* The table, or the owner's share of it, is full: evicts an idle flow, of the owner's if its share
 * is full. */
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

/* The CLOSED of an endpoint that had this number before may wait: this flow sends it instead,
 * before all else. */
static void take_over_closed(struct cn_endpoints *s, struct cn_flow *f)
{
	struct cn_flow **at = &s->retry, *old;

	while ((old = *at) != NULL && (old->ep != NULL || old->peer != f->peer ||
				       old->local != f->local || old->remote != f->remote)) {
		at = &old->retry_next;
	}
	if (old != NULL) {
		*at = f;
		f->retry_next = old->retry_next;
		f->retry = f->closed_due = f->known = true;
		cn_flow_free(old);
	}
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
	f->all = s;
	f->account = ep->account;
	f->ep = ep;
	f->peer = p;
	f->local = ep->number;
	f->remote = remote;
	memcpy(f->name, p != NULL ? cn_peer_name(p) : s->engine->config.node.name, sizeof(f->name));
	f->credit = f->avail = CN_EP_CREDIT;
	f->numbers.first = f->numbers.next = f->numbers.failed_from = (uint32_t)
		cn_mix64(++s->created);
	f->numbers.failed = f->abort = f->numbers.next - 1; /* none */
	f->next = ep->flows;
	if (f->next != NULL) {
		f->next->prev = f;
	}
	ep->flows = f;
	at = bucket(s, p, ep->number, remote);
	f->hash_next = *at;
	*at = f;
	take_over_closed(s, f);
	return f;
}

/* ---- control messages ------------------------------------------------------------------------ */

#define CONTROL_MAX 13 /* bytes of a message: those of a grant */

static struct cn_cursor put(uint8_t m[CONTROL_MAX], enum cn_ep_control kind, uint16_t to,
			    uint16_t from, uint32_t value)
{
	struct cn_cursor c = { m, m + CONTROL_MAX, false };

	cn_put8(&c, (uint8_t)kind);
	cn_put16(&c, to);
	cn_put16(&c, from);
	cn_put32(&c, value);
	return c;
}

static bool notify(struct cn_endpoints *s, struct cn_peer *p, const uint8_t *m,
		   const struct cn_cursor *c)
{
	/* A peer that is not up needs no notice. */
	return cn_node_control(cn_ep_node(s), p, m, (size_t)(c->at - m)) != COLLNET_ELIMIT;
}

bool cn_flow_notify(struct cn_endpoints *s, struct cn_peer *p, enum cn_ep_control kind, uint16_t to,
		    uint16_t from, uint32_t value)
{
	uint8_t m[CONTROL_MAX];
	const struct cn_cursor c = put(m, kind, to, from, value);

	return notify(s, p, m, &c);
}

bool cn_flow_refuse(struct cn_endpoints *s, struct cn_peer *p, enum cn_ep_control kind, uint16_t to,
		    uint16_t from, uint32_t number)
{
	return cn_flow_notify(s, p, kind, to, from, number) || cn_peer_rnr_received(p);
}

bool cn_flow_control(const struct cn_flow *f, enum cn_ep_control kind, uint32_t value)
{
	return cn_flow_notify(f->ep->all, f->peer, kind, f->remote, f->local, value);
}

bool cn_flow_control_grant(const struct cn_flow *f, uint32_t frames)
{
	uint8_t m[CONTROL_MAX];
	struct cn_cursor c = put(m, CN_EP_GRANT, f->remote, f->local, frames);

	cn_put32(&c, f->in_number);
	return notify(f->ep->all, f->peer, m, &c);
}

static void retry(struct cn_endpoints *s, struct cn_flow *f, cn_time now)
{
	if (f->retry) {
		return;
	}
	f->retry_next = s->retry;
	s->retry = f;
	f->retry = true;
	s->retry_at = cn_min_time(s->retry_at, now + CN_EP_RETRY);
}

void cn_flow_retry(struct cn_flow *f, cn_time now)
{
	retry(f->ep->all, f, now);
}

void cn_flow_retry_all(struct cn_endpoints *s, cn_time now)
{
	struct cn_flow *f = s->retry, *next;

	s->retry = NULL;
	s->retry_at = CN_NEVER;
	for (; f != NULL; f = next) {
		next = f->retry_next;
		f->retry = false;
		if (f->ep == NULL || f->closed_due) {
			if (!cn_flow_notify(s, f->peer, CN_EP_CLOSED, f->remote, f->local, 0)) {
				retry(s, f, now);
				continue;
			}
			if (f->ep == NULL) {
				cn_flow_free(f);
				continue;
			}
			f->closed_due = false;
			cn_flow_activate(f);
		}
		cn_flow_send_abort(f, now);
		cn_flow_credit(f, now);
	}
}

/* Only its complete unexpected messages are left. They stay charged. */
static void make_gone(struct cn_flow *f)
{
	struct cn_endpoints *s = f->ep->all;

	unhash(s, f);
	f->gone = true;
	f->closed_due = false;
	if (s->last_received == f) {
		s->last_received = NULL;
	}
	if (f->ep->last == f) {
		f->ep->last = NULL;
	}
	cn_flow_settle_gone(f);
}

/* The remote endpoint was closed. Complete messages of it stay. */
static void on_closed(struct cn_flow *f, cn_time now)
{
	struct cn_err err;

	cn_fail(&err, COLLNET_ENOENT, "endpoint %u of node %s was closed", f->remote, f->name);
	/* It may have been reopened, and have the beginning of a message. */
	cn_send_fail_flow(f, now, true, err.code, err.text);
	cn_flow_discard(f, now);
	f->confirmed = f->grant_due = false;
	f->credit = f->avail = CN_EP_CREDIT;
	if (!f->abort_due && !f->closed_due) {
		make_gone(f);
	}
}

bool cn_endpoints_control(struct cn_engine *e, cn_time now, struct cn_peer *p, const uint8_t *data,
			  size_t len)
{
	struct cn_cursor c = cn_cursor_of(data, len);
	uint8_t kind = cn_get8(&c);
	uint16_t local = cn_get16(&c), remote = cn_get16(&c);
	uint32_t value = cn_get32(&c);
	struct cn_endpoint *ep = cn_endpoint_at(e->endpoints, local);
	struct cn_flow *f = c.bad ? NULL : cn_flow_find(e->endpoints, p, local, remote);

	if (f == NULL) { /* closed or forgotten since it was sent */
		if (!c.bad && ep != NULL && (kind == CN_EP_NOENT || kind == CN_EP_FULL)) {
			cn_endpoint_refused(ep, p, remote, value, kind == CN_EP_FULL);
		}
		return true;
	}
	switch (kind) {
	case CN_EP_GRANT:
		/* Without a number, from an earlier build: for the last message. */
		cn_flow_grant(f, value, c.at < c.end ? cn_get32(&c) : f->numbers.next - 1);
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

/* ---- the end -------------------------------------------------------------------------- */

void cn_flow_close(struct cn_flow *f, cn_time now)
{
	struct cn_endpoints *s = f->ep->all;

	if (f->peer == NULL || f->gone || !f->known || cn_flow_control(f, CN_EP_CLOSED, 0)) {
		cn_flow_free(f);
		return;
	}
	detach(f);
	f->ep = NULL;
	retry(s, f, now);
}

static void flow_down(struct cn_flow *f, cn_time now)
{
	struct cn_err err;

	cn_fail(&err, COLLNET_EPEER, "node %s is gone, and with it a message to its endpoint %u",
		f->name, f->remote);
	cn_send_fail_flow(f, now, false, err.code, err.text);
	cn_flow_lost(f);
	f->abort_due = f->grant_due = false;
	make_gone(f);
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
				flow_down(f, now);
			}
		}
	}
	for (f = s->retry; f != NULL; f = next) {
		next = f->retry_next;
		if (f->ep == NULL && f->peer == p) {
			unretry(s, f);
			cn_flow_free(f);
		}
	}
}
