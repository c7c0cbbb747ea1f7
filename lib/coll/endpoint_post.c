/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls to send and to receive a message. */
#include <string.h>

#include "coll/endpoint.h"

/* ---- send ------------------------------------------------------------------------------- */

static struct cn_send *request(struct cn_endpoint *ep, struct cn_flow *f, const void *data,
			       uint64_t bytes, cn_time deadline, struct cn_done *done)
{
	struct cn_send *r = ep->free_send;

	ep->free_send = r->next;
	memset(&r->source.flight, 0, sizeof(r->source.flight));
	r->next = NULL;
	r->flow = f;
	r->done = done;
	r->data = data;
	r->bytes = bytes;
	r->offset = 0;
	r->deadline = deadline;
	f->sends++;
	cn_ep_deadline(ep, deadline);
	return r;
}

/* Of the endpoint whose user is charged: the sender, or the receiver on the same node. */
static int no_flow(const struct cn_endpoint *ep, struct cn_err *err)
{
	const struct cn_endpoints *s = ep->all;
	const uint32_t share = s->max_flows / CN_EP_SHARES;
	const char *node = s->engine->config.node.name;

	if (ep->account->flows >= share) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "node %s has %u pairs of endpoints of the user of endpoint %u "
			       "already, of %u",
			       node, ep->account->flows, ep->number, share);
	}
	return s->nflows >= s->max_flows
		       ? cn_fail(err, COLLNET_ELIMIT,
				 "node %s has %u pairs of endpoints already, of %u", node,
				 s->nflows, s->max_flows)
		       : cn_fail(err, COLLNET_ENOMEM, "no memory for a pair of endpoints");
}

static int send_local(struct cn_endpoint *ep, cn_time now, uint16_t to, const void *data,
		      uint64_t bytes, cn_time deadline, struct cn_done *done, struct cn_err *err)
{
	struct cn_endpoint *dst = cn_endpoint_at(ep->all, to);
	struct cn_flow *f;

	if (dst == NULL || dst->owner != ep->owner) {
		return cn_fail(err, COLLNET_ENOENT, "no endpoint %u is open on node %s", to,
			       ep->all->engine->config.node.name);
	}
	f = cn_flow_get(dst, NULL, ep->number);
	if (f == NULL) {
		return no_flow(dst, err);
	}
	if (cn_local_deliver(f, now, data, bytes)) {
		done->fn(done, COLLNET_OK, "");
	} else {
		cn_local_wait(request(ep, f, data, bytes, deadline, done), now);
	}
	return COLLNET_OK;
}

static struct cn_flow *flow_to(struct cn_endpoint *ep, const char *node, uint16_t to,
			       struct cn_err *err)
{
	struct cn_endpoints *s = ep->all;
	struct cn_flow *f = ep->last;
	struct cn_peer *p;

	if (f != NULL && f->remote == to && strcmp(cn_peer_name(f->peer), node) == 0) {
		return f;
	}
	p = cn_node_find(cn_ep_node(s), node);
	if (p == NULL) {
		cn_fail(err, COLLNET_ENOENT, "no node %s is known to node %s", node,
			s->engine->config.node.name);
		return NULL;
	}
	f = cn_flow_get(ep, p, to);
	if (f == NULL) {
		no_flow(ep, err);
		return NULL;
	}
	ep->last = f;
	return f;
}

/* A frame that is longer than what the node receives never arrives, nor does anything behind it. */
static int check_mtu(const struct cn_endpoint *ep, const struct cn_peer *p, uint64_t bytes,
		     struct cn_err *err)
{
	const struct cn_node_config *c = &ep->all->engine->config.node;
	const uint32_t payload = cn_node_payload(cn_ep_node(ep->all)), other = cn_peer_mtu(p);
	const uint64_t longest = bytes < payload - CN_EP_HEAD ? bytes + CN_EP_HEAD : payload;

	return other == 0 || c->mtu - payload + longest <= other
		       ? COLLNET_OK
		       : cn_fail(err, COLLNET_EMISMATCH,
				 "node %s has MTU %u, node %s %u: set them alike", cn_peer_name(p),
				 other, c->name, c->mtu);
}

int cn_endpoint_send(struct cn_endpoint *ep, cn_time now, const char *node, uint16_t to,
		     const void *data, uint64_t bytes, cn_time deadline, struct cn_done *done,
		     struct cn_err *err)
{
	struct cn_engine *e = ep->all->engine;
	struct cn_err own;
	struct cn_flow *f;

	err = err != NULL ? err : &own;
	if (e->closing) {
		return cn_engine_refuse(e, err);
	}
	if (to == 0 || bytes > COLLNET_MESSAGE_MAX || (data == NULL && bytes > 0)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a message needs an endpoint, 1 .. 65535, and at most %zu bytes",
			       COLLNET_MESSAGE_MAX);
	}
	if (ep->lost.code != COLLNET_OK) {
		*err = ep->lost;
		ep->lost.code = COLLNET_OK;
		return err->code;
	}
	if (ep->free_send == NULL) {
		return cn_fail(err, COLLNET_ELIMIT, "endpoint %u has %u sends outstanding already",
			       ep->number, CN_EP_REQUESTS);
	}
	if (strcmp(node, e->config.node.name) == 0) {
		return send_local(ep, now, to, data, bytes, deadline, done, err);
	}
	f = flow_to(ep, node, to, err);
	if (f == NULL || check_mtu(ep, f->peer, bytes, err) != COLLNET_OK) {
		return err->code;
	}
	cn_send_enqueue(f, request(ep, f, data, bytes, deadline, done));
	if (f->sends == 1) {
		cn_peer_expect(e->own.node, now, f->peer, 1);
	}
	cn_flow_activate(f);
	return COLLNET_OK;
}

/* ---- receive ---------------------------------------------------------------------------- */

int cn_endpoint_recv(struct cn_endpoint *ep, cn_time now, void *data, uint64_t capacity,
		     cn_time deadline, struct cn_received *result, struct cn_done *done,
		     struct cn_err *err)
{
	struct cn_recv *r = ep->free_recv;

	if (ep->all->engine->closing) {
		return cn_engine_refuse(ep->all->engine, err);
	}
	if (data == NULL && capacity > 0) {
		return cn_fail(err, COLLNET_EINVAL, "the receive buffer is NULL");
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
	cn_ep_deadline(ep, deadline);
	cn_recv_append(ep, r);
	cn_recv_match(ep, now);
	cn_recv_resume(ep->all);
	return COLLNET_OK;
}
