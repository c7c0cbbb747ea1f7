/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between endpoints of this node. One that no receive waits for is kept in the buffers
 * that its frames would take, as long as the flow has credit for them, and waits in its sender's
 * memory otherwise. One that fits a frame is copied to its receive at once, as a frame is; a longer
 * one in chunks of CN_COPY_CHUNK bytes, between which frames are sent. It is a message in progress
 * whose bytes are in its sender's memory: `from` of the flow is its request, `into` its receive.
 * Payers are served round robin, and the flows of each.
 *
 * Messages of a flow are received one after the other, as those from another node are: a message
 * matched meanwhile is deferred until the one before it has ended. If either request ends early,
 * the other one is queued again, and the copy stops.
 */
#include "coll/endpoint.h"

/* As many as another node would send. */
static uint32_t frames_of(const struct cn_flow *f, uint64_t bytes)
{
	return cn_ep_frames(f->ep->all, CN_EP_HEAD + bytes);
}

static bool is_short(const struct cn_flow *f, uint64_t bytes)
{
	return frames_of(f, bytes) == 1;
}

/* The copy ends, complete or not. */
static void stop(struct cn_flow *f)
{
	struct cn_ep_account *a = f->ep->account;

	cn_turn_leave(&a->copying, &f->turn);
	if (a->copying == NULL) {
		cn_turn_leave(&f->ep->all->copying, &a->turn);
	}
	f->coming = false;
	f->from = NULL;
	f->into = NULL;
}

/* Delivers the deferred messages before all later ones. */
static void resume(struct cn_flow *f, cn_time now)
{
	cn_ep_unexpected_return(f->ep, &f->deferred);
	cn_recv_match(f->ep, now);
}

/* A message was appended to the endpoint's queue. */
static void arrived(struct cn_endpoint *to, cn_time now)
{
	if (to->recv_first != NULL) {
		cn_recv_match(to, now);
	}
}

static void finish(struct cn_flow *f, cn_time now)
{
	struct cn_send *out = f->from;
	struct cn_recv *in = f->into;

	stop(f);
	cn_recv_complete(in, f, f->bytes);
	cn_send_end(out, COLLNET_OK, "");
	resume(f, now);
}

/* Queues a copy of a message. False: there is no credit or no buffer for it. */
static bool keep(struct cn_flow *f, const uint8_t *data, uint64_t bytes)
{
	const uint32_t payload = f->ep->all->payload;
	uint64_t n = bytes < payload - CN_EP_HEAD ? bytes : payload - CN_EP_HEAD;
	struct cn_ep_buffered *m;

	if (frames_of(f, bytes) + f->pooled > CN_EP_CREDIT) {
		return false;
	}
	m = cn_ep_unexpected_enqueue(f, (uint32_t)bytes, data, (uint32_t)n);
	if (m == NULL) {
		return false;
	}
	f->tail = &m->more;
	for (uint64_t at = n; at < bytes; at += n) {
		n = bytes - at < payload ? bytes - at : payload;
		if (!cn_ep_unexpected_add(f, data + at, (uint32_t)n)) {
			cn_ep_unexpected_remove(&m->message);
			cn_ep_unexpected_deliver(m, NULL);
			return false;
		}
	}
	return true;
}

bool cn_local_deliver(struct cn_flow *f, cn_time now, const void *data, uint64_t bytes)
{
	struct cn_endpoint *to = f->ep;
	struct cn_recv *r = f->from == NULL ? to->recv_first : NULL;

	if (r == NULL) {
		if (!keep(f, data, bytes)) {
			return false;
		}
		arrived(to, now);
		return true;
	}
	if (!is_short(f, bytes)) {
		return false;
	}
	cn_recv_dequeue(to);
	cn_recv_copy(r, 0, data, (uint32_t)bytes);
	cn_recv_complete(r, f, (uint32_t)bytes);
	return true;
}

void cn_local_wait(struct cn_send *out, cn_time now)
{
	struct cn_endpoint *to = out->flow->ep;

	out->state = CN_SEND_LOCAL;
	out->message.flow = out->flow;
	out->message.local = true;
	cn_ep_unexpected_append(&to->unexpected, &out->message);
	arrived(to, now);
}

void cn_local_match(struct cn_send *out, struct cn_recv *in)
{
	struct cn_flow *f = out->flow;
	struct cn_ep_account *a = f->ep->account;

	if (is_short(f, out->bytes)) {
		cn_recv_copy(in, 0, out->data, (uint32_t)out->bytes);
		cn_recv_complete(in, f, (uint32_t)out->bytes);
		cn_send_end(out, COLLNET_OK, "");
		return;
	}
	in->flow = f;
	f->from = out;
	f->into = in;
	f->coming = true;
	f->bytes = f->left = (uint32_t)out->bytes;
	cn_turn_enter(&a->copying, &f->turn, f);
	cn_turn_enter(&f->ep->all->copying, &a->turn, a);
}

/* Copies at most `most` bytes of a message, truncated to its receive. Returns how many. */
static uint32_t copy_some(struct cn_flow *f, uint32_t most)
{
	struct cn_send *out = f->from;
	const uint64_t room = f->into->capacity < out->bytes ? f->into->capacity : out->bytes;
	const uint64_t left = room - out->offset;
	const uint32_t n = left < most ? (uint32_t)left : most;

	cn_recv_copy(f->into, (uint32_t)out->offset, out->data + out->offset, n);
	out->offset += n;
	f->left -= out->offset == room ? f->left : n;
	return n;
}

void cn_local_copy(struct cn_endpoints *s, cn_time now)
{
	uint32_t budget = CN_COPY_CHUNK;

	while (s->copying != NULL && budget > 0) {
		struct cn_ep_account *a = s->copying->owner;
		struct cn_flow *f = a->copying->owner;

		budget -= copy_some(f, budget);
		s->copying = a->turn.next;
		a->copying = f->turn.next;
		if (f->left == 0) {
			finish(f, now);
		}
	}
}

void cn_local_send_ends(struct cn_send *out, cn_time now)
{
	struct cn_flow *f = out->flow;
	struct cn_recv *in = f->into;

	if (f->from != out) {
		cn_ep_unexpected_remove(&out->message);
		return;
	}
	stop(f);
	in->flow = NULL;
	cn_recv_return(f->ep, in);
	resume(f, now);
}

void cn_local_recv_ends(struct cn_recv *in, cn_time now)
{
	struct cn_flow *f = in->flow;
	struct cn_send *out = f->from;

	stop(f);
	out->offset = 0;
	cn_ep_unexpected_prepend(&f->deferred, &out->message);
	resume(f, now);
}
