/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unexpected message queue of an endpoint: messages that no receive waits for, in the order in
 * which their first frames came. Frames from other nodes wait in buffers of the endpoints' pool, as
 * many as there are credits; a message from this node may wait in its sender's memory instead.
 */
#include <string.h>

#include "coll/endpoint.h"

void cn_ep_unexpected_append(struct cn_ep_queue *q, struct cn_ep_message *a)
{
	a->queue = q;
	a->next = NULL;
	a->prev = q->first != NULL ? q->last : NULL;
	*(q->first != NULL ? &q->last->next : &q->first) = a;
	q->last = a;
	a->flow->waiting++;
}

void cn_ep_unexpected_prepend(struct cn_ep_queue *q, struct cn_ep_message *a)
{
	a->queue = q;
	a->next = q->first;
	a->prev = NULL;
	*(q->first != NULL ? &q->first->prev : &q->last) = a;
	q->first = a;
	a->flow->waiting++;
}

void cn_ep_unexpected_remove(struct cn_ep_message *a)
{
	struct cn_ep_queue *q = a->queue;

	*(a->prev != NULL ? &a->prev->next : &q->first) = a->next;
	*(a->next != NULL ? &a->next->prev : &q->last) = a->prev;
	a->flow->waiting--;
}

void cn_ep_unexpected_return(struct cn_endpoint *ep, struct cn_ep_queue *deferred)
{
	if (deferred->first == NULL) {
		return;
	}
	for (struct cn_ep_message *a = deferred->first; a != NULL; a = a->next) {
		a->queue = &ep->unexpected;
	}
	deferred->last->next = ep->unexpected.first;
	*(ep->unexpected.first != NULL ? &ep->unexpected.first->prev
				       : &ep->unexpected.last) = deferred->last;
	ep->unexpected.first = deferred->first;
	deferred->first = deferred->last = NULL;
}

struct cn_send *cn_ep_unexpected_send(struct cn_ep_message *a)
{
	return (struct cn_send *)(void *)((char *)a - offsetof(struct cn_send, message));
}

struct cn_ep_buffered *cn_ep_unexpected_enqueue(struct cn_flow *f, uint32_t bytes, const void *data,
						uint32_t n)
{
	struct cn_ep_buffered *m = cn_pool_get(&f->ep->all->pool);

	if (m == NULL) {
		return NULL;
	}
	m->message.flow = f;
	m->message.bytes = bytes;
	m->message.len = (uint16_t)n;
	m->message.local = false;
	m->more = NULL;
	if (n > 0) {
		memcpy(m + 1, data, n);
	}
	f->pooled++;
	cn_ep_unexpected_append(&f->ep->unexpected, &m->message);
	return m;
}

bool cn_ep_unexpected_add(struct cn_flow *f, const void *data, uint32_t n)
{
	struct cn_ep_fragment *p = cn_pool_get(&f->ep->all->pool);

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

void cn_ep_unexpected_deliver(struct cn_ep_buffered *m, struct cn_recv *r)
{
	struct cn_flow *f = m->message.flow;
	struct cn_pool *pool = &f->ep->all->pool;
	struct cn_ep_fragment *p = m->more;
	uint32_t at = m->message.len;

	if (r != NULL) {
		cn_recv_copy(r, 0, m + 1, m->message.len);
	}
	cn_pool_put(pool, m);
	f->pooled--;
	while (p != NULL) {
		struct cn_ep_fragment *next = p->next;

		if (r != NULL) {
			cn_recv_copy(r, at, p + 1, p->len);
		}
		at += p->len;
		cn_pool_put(pool, p);
		f->pooled--;
		p = next;
	}
}

void cn_ep_unexpected_drop(struct cn_endpoint *ep)
{
	struct cn_err err;

	cn_fail(&err, COLLNET_ENOENT, "endpoint %u of node %s was closed", ep->number,
		ep->all->engine->config.node.name);
	while (ep->unexpected.first != NULL) {
		struct cn_ep_message *a = ep->unexpected.first;

		cn_ep_unexpected_remove(a);
		if (a->local) {
			cn_send_end(cn_ep_unexpected_send(a), err.code, err.text);
		} else {
			cn_ep_unexpected_deliver((struct cn_ep_buffered *)a, NULL);
		}
	}
	cn_recv_resume(ep->all);
}
