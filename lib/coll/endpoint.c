/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: opening and closing, the payers' accounts, and the engine's calls. See endpoint.h for
 * the protocol.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/endpoint.h"

/* First automatically assigned (ephemeral) number. */
static const uint16_t first_free_number = 32768;

/* ---- life ----------------------------------------------------------------------------- */

int cn_endpoints_new(struct cn_engine *e, struct cn_err *err)
{
	struct cn_endpoints *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the endpoints");
	}
	s->engine = e;
	s->payload = cn_node_payload(e->own.node);
	s->max_flows = 4 * e->config.node.pool_frames;
	s->max_flows = s->max_flows > CN_EP_FLOWS_LEAST ? s->max_flows : CN_EP_FLOWS_LEAST;
	s->max_flows = s->max_flows < CN_EP_FLOWS ? s->max_flows : CN_EP_FLOWS;
	s->next_free = first_free_number;
	s->deadline = s->retry_at = CN_NEVER;
	s->created = e->config.node.epoch;
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
		cn_flow_free(f);
	}
	cn_pool_fini(&s->pool);
	free(s->by_number);
	free(s);
	e->endpoints = NULL;
}

/* What the first endpoint needs. */
static int need_memory(struct cn_endpoints *s)
{
	/* The header of a message is not stored, which leaves room for the list links. */
	size_t item = sizeof(struct cn_ep_buffered) + s->payload;
	int rc;

	if (s->by_number == NULL) {
		s->by_number = calloc(UINT16_MAX + 1, sizeof(struct cn_endpoint *));
		if (s->by_number == NULL) {
			return COLLNET_ENOMEM;
		}
	}
	if (s->pool.memory != NULL) {
		return COLLNET_OK;
	}
	/* The system refuses allocations beyond its memory, although most of this one is never
	 * touched: a small machine with long frames has fewer pairs. */
	while ((rc = cn_pool_init(&s->pool, item, CN_EP_UNREAD * s->max_flows)) != COLLNET_OK &&
	       s->max_flows / 2 >= CN_EP_FLOWS_LEAST) {
		s->max_flows /= 2;
	}
	return rc;
}

static uint16_t free_number(struct cn_endpoints *s)
{
	for (uint32_t n = 0; n < 65536u - first_free_number; n++) {
		uint16_t number = s->next_free++;

		if (s->next_free < first_free_number) {
			s->next_free = first_free_number;
		}
		if (cn_endpoint_at(s, number) == NULL) {
			return number;
		}
	}
	return 0;
}

/* The payer's account, charged with one more endpoint; NULL: no memory. */
static struct cn_ep_account *account_get(struct cn_endpoints *s, uint64_t payer)
{
	struct cn_ep_account *a = s->accounts;

	while (a != NULL && a->payer != payer) {
		a = a->next;
	}
	if (a == NULL) {
		a = calloc(1, sizeof(*a));
		if (a == NULL) {
			return NULL;
		}
		a->all = s;
		a->payer = payer;
		cn_send_account_init(a);
		a->next = s->accounts;
		s->accounts = a;
	}
	a->endpoints++;
	return a;
}

void cn_ep_account_settle(struct cn_endpoints *s, struct cn_ep_account *a)
{
	struct cn_ep_account **at = &s->accounts;

	if (a->endpoints > 0 || a->flows > 0) {
		return;
	}
	while (*at != a) {
		at = &(*at)->next;
	}
	*at = a->next;
	free(a);
}

int cn_endpoint_open(struct cn_engine *e, uint64_t owner, uint64_t payer, uint16_t number,
		     struct cn_endpoint **out, struct cn_err *err)
{
	struct cn_endpoints *s = e->endpoints;
	uint32_t most = e->config.max_endpoints;
	struct cn_endpoint *ep;

	if (e->closing) {
		return cn_engine_refuse(e, err);
	}
	if (s->count >= most) {
		return cn_fail(err, COLLNET_ELIMIT, "node %s has %u endpoints already",
			       e->config.node.name, most);
	}
	if (number != 0 && cn_endpoint_at(s, number) != NULL) {
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
	ep = need_memory(s) == COLLNET_OK ? calloc(1, sizeof(*ep)) : NULL;
	if (ep != NULL) {
		ep->account = account_get(s, payer);
	}
	if (ep == NULL || ep->account == NULL) {
		free(ep);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for an endpoint");
	}
	ep->all = s;
	ep->owner = owner;
	ep->number = number;
	ep->deadline = CN_NEVER;
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

/* notify: tell the other ends about aborted messages. */
static void end_requests(struct cn_endpoint *ep, cn_time now, bool notify, int status,
			 const char *text)
{
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		if (ep->sends[i].state != CN_SEND_FREE) {
			cn_send_fail(&ep->sends[i], now, notify, status, text);
		}
	}
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		if (ep->recvs[i].done != NULL) {
			cn_recv_fail(&ep->recvs[i], now, status, text);
		}
	}
}

void cn_endpoint_close(struct cn_endpoint *ep, cn_time now)
{
	struct cn_endpoints *s = ep->all;
	struct cn_err err;

	cn_fail(&err, COLLNET_EINVAL, "endpoint %u was closed", ep->number);
	end_requests(ep, now, false, err.code, err.text); /* cn_flow_close() does */
	cn_ep_unexpected_drop(ep);
	while (ep->flows != NULL) {
		cn_flow_close(ep->flows, now);
	}
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
	ep->account->endpoints--;
	cn_ep_account_settle(s, ep->account);
	free(ep);
}

void cn_endpoints_abort(struct cn_engine *e, int status, const char *text)
{
	for (struct cn_endpoint *ep = e->endpoints->list; ep != NULL; ep = ep->next) {
		end_requests(ep, 0, false, status, text);
	}
}

void cn_endpoints_fail(struct cn_engine *e, cn_time now, int status, const char *text)
{
	for (struct cn_endpoint *ep = e->endpoints->list; ep != NULL; ep = ep->next) {
		end_requests(ep, now, true, status, text);
	}
}

/* ---- the engine's calls ---------------------------------------------------------------- */

bool cn_endpoints_deliver(struct cn_engine *e, cn_time now, struct cn_peer *p,
			  const struct cn_rx *rx)
{
	struct cn_endpoints *s = e->endpoints;
	uint16_t to = (uint16_t)(rx->stream >> 16), from = (uint16_t)rx->stream;
	struct cn_flow *f = s->last_received;
	struct cn_ep_head h;

	if (f == NULL || f->peer != p || f->local != to || f->remote != from) {
		f = cn_flow_find(s, p, to, from);
	}
	if (f == NULL || (rx->flags & CN_FLAG_FIRST) != 0) {
		struct cn_endpoint *ep = cn_endpoint_at(s, to);
		bool head = cn_ep_head(rx, &h);

		if (f == NULL && !head) {
			return true; /* the rest of a message to an endpoint that was not open */
		}
		if (ep != NULL && head && ep->owner != h.owner) {
			ep = NULL;
			if (f != NULL) {
				cn_flow_discard(f, now);
			}
			f = NULL;
		}
		f = f != NULL ? f : ep != NULL ? cn_flow_get(ep, p, from) : NULL;
		if (f == NULL) {
			return cn_flow_refuse(s, p, ep != NULL ? CN_EP_FULL : CN_EP_NOENT, from, to,
					      h.number);
		}
	}
	s->last_received = f;
	if (!cn_flow_deliver(f, now, rx)) {
		s->refused = true;
		return false;
	}
	return true;
}

void cn_ep_deadline(struct cn_endpoint *ep, cn_time deadline)
{
	ep->deadline = cn_min_time(ep->deadline, deadline);
	ep->all->deadline = cn_min_time(ep->all->deadline, deadline);
}

cn_time cn_endpoints_deadline(const struct cn_engine *e)
{
	const struct cn_endpoints *s = e->endpoints;

	return s->copying != NULL ? CN_AFTER_FRAMES : cn_min_time(s->deadline, s->retry_at);
}

/* The cached deadline may be that of a request that has ended; finds the next one. */
static void expire_requests(struct cn_endpoint *ep, cn_time now)
{
	ep->deadline = CN_NEVER;
	for (uint32_t i = 0; i < CN_EP_REQUESTS; i++) {
		struct cn_send *out = &ep->sends[i];
		struct cn_recv *in = &ep->recvs[i];

		if (out->state != CN_SEND_FREE && out->deadline <= now) {
			cn_send_expire(out, now);
		}
		if (in->done != NULL && in->deadline <= now) {
			cn_recv_expire(in, now);
		}
		if (out->state != CN_SEND_FREE) {
			cn_ep_deadline(ep, out->deadline);
		}
		if (in->done != NULL) {
			cn_ep_deadline(ep, in->deadline);
		}
	}
}

void cn_endpoints_expire(struct cn_engine *e, cn_time now)
{
	struct cn_endpoints *s = e->endpoints;

	cn_local_copy(s, now);
	if (s->retry_at <= now) {
		cn_flow_retry_all(s, now);
	}
	if (s->deadline > now) {
		return;
	}
	s->deadline = CN_NEVER;
	for (struct cn_endpoint *ep = s->list; ep != NULL; ep = ep->next) {
		if (ep->deadline <= now) {
			expire_requests(ep, now);
		}
		s->deadline = cn_min_time(s->deadline, ep->deadline);
	}
}

/* A super-frame may have messages of all endpoints with the same flow number on the link. */
static bool flow_has_one_owner(const struct cn_endpoints *s, uint16_t number)
{
	const struct cn_endpoint *ep = cn_endpoint_at(s, number);
	uint16_t n = number;

	while ((n = (uint16_t)(n + CN_FLOWS)) != number) {
		if (cn_endpoint_at(s, n) != NULL && cn_endpoint_at(s, n)->owner != ep->owner) {
			return false;
		}
	}
	return true;
}

bool cn_endpoints_place(struct cn_engine *e, const struct cn_peer *p, const struct cn_rx *rx,
			struct cn_rx_place *out)
{
	struct cn_endpoints *s = e->endpoints;
	uint16_t to = (uint16_t)(rx->stream >> 16), from = (uint16_t)rx->stream;
	const struct cn_flow *f = cn_flow_find(s, p, to, from);

	return f != NULL && cn_endpoint_at(s, to) != NULL && cn_flow_place(f, rx, out) &&
	       flow_has_one_owner(s, to);
}
