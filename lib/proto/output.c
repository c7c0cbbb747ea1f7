/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of output: hellos; per peer, round robin, acknowledgements, path MTU probes,
 * retransmissions and control messages; then new frames of the engine. */
#include <string.h>

#include "proto/node_impl.h"
#include "util/byteorder.h"

/* Bytes of a frame with this payload, from the Ethernet header on. */
static uint64_t on_wire(const struct cn_node *n, uint32_t payload)
{
	uint64_t len = CN_ETH_HEADER + (uint64_t)n->header + payload;

	return len < CN_ETH_MIN ? CN_ETH_MIN : len;
}

/* The body follows the head in the frame unless it is a separate payload. */
static uint8_t *body_of(const struct cn_node *n, struct cn_frame *out)
{
	return out->head + CN_ETH_HEADER + cn_wire_header(n->config.authenticated);
}

/* Builds a frame without the tag, which covers the body. */
static void build(struct cn_node *n, const uint8_t mac[6], struct cn_wire *w,
		  const uint8_t *payload, struct cn_frame *out)
{
	w->authenticated = n->config.authenticated;
	memcpy(out->head, mac, 6);
	memcpy(out->head + 6, n->config.mac, 6);
	cn_put_be16(out->head + 12, n->config.ethertype);
	cn_wire_put(out->head + CN_ETH_HEADER, w);
	out->head_len = (uint16_t)(body_of(n, out) - out->head);
	out->flow = cn_wire_flow(w);
	out->ends = false;
	out->payload = payload;
	out->payload_len = payload != NULL ? w->length : 0;
	n->counters.frames_sent++;
	n->counters.bytes_sent += on_wire(n, w->length);
}

/* Builds a frame of the session with p. */
static void build_to(struct cn_peer *p, struct cn_wire *w, const uint8_t *payload,
		     struct cn_frame *out)
{
	struct cn_node *n = p->node;

	w->port_to = p->port;
	w->session = p->session_out;
	build(n, p->mac, w, payload, out);
	if (n->config.authenticated) {
		cn_auth_seal(p->auth.key_out, out->head, ++p->auth.sent, payload, w->length);
	}
}

static void finish_hello(struct cn_node *n, const uint8_t mac[6], struct cn_wire *w, uint32_t nonce,
			 struct cn_frame *out)
{
	struct cn_hello h = {
		.epoch = n->config.epoch,
		.nonce = nonce,
		.mtu = n->config.mtu,
		.cluster = n->config.cluster,
	};
	size_t len;

	w->type = CN_TYPE_HELLO;
	memcpy(h.name, n->config.name, sizeof(h.name));
	len = cn_hello_put(body_of(n, out), &h);
	w->length = (uint16_t)len;
	build(n, mac, w, NULL, out);
	out->head_len += (uint16_t)len;
	if (n->config.authenticated) {
		cn_auth_seal(n->hello_key, out->head, 0, body_of(n, out), len);
	}
}

static void build_broadcast(struct cn_node *n, uint8_t flags, struct cn_frame *out)
{
	static const uint8_t everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct cn_wire w = { .flags = flags };

	finish_hello(n, everyone, &w, 0, out);
}

static void build_hello(struct cn_node *n, const uint8_t mac[6], uint8_t flags, uint64_t nonce,
			uint64_t echo, struct cn_frame *out)
{
	struct cn_wire w = {
		.flags = CN_FLAG_UNICAST | flags,
		.seq = (uint32_t)(echo >> 32),
		.ack = (uint32_t)echo,
		.stream = (uint32_t)(nonce >> 32),
	};

	finish_hello(n, mac, &w, (uint32_t)nonce, out);
}

/* Builds a goodbye to the next established peer. False: all were sent. */
static bool output_bye(struct cn_node *n, struct cn_frame *out)
{
	while (n->byes_due > 0) {
		while (n->bye_next < n->npeers) {
			const struct cn_peer *p = n->peers[n->bye_next++];
			struct cn_wire w = { .flags = CN_FLAG_UNICAST | CN_FLAG_BYE };

			if (p->state == CN_PEER_UP) {
				w.session = p->session_out;
				w.seq = p->bye_out;
				finish_hello(n, p->mac, &w, n->bye, out);
				return true;
			}
		}
		n->bye_next = 0;
		n->byes_due--;
	}
	return false;
}

/* Broadcast hellos, and unicast ones to addresses that are not validated. */
static bool output_hello(struct cn_node *n, struct cn_frame *out)
{
	const struct cn_unvalidated *u;

	if (n->leaving) {
		return output_bye(n, out);
	}
	if (n->hello_due) {
		n->hello_due = false;
		build_broadcast(n, n->hellos_sent++ < 2 ? CN_FLAG_SOLICIT : 0, out);
		return true;
	}
	u = cn_unvalidated_next(n);
	if (u != NULL) {
		build_hello(n, u->mac, CN_FLAG_SOLICIT, cn_nonce(n, u->mac, n->evicted << 32),
			    u->echo, out);
		return true;
	}
	return false;
}

static void build_ack(struct cn_peer *p, struct cn_frame *out)
{
	struct cn_node *n = p->node;
	struct cn_wire w = { .type = CN_TYPE_ACK, .seq = p->tx.queue.next, .ack = p->rx.expected };

	if (p->rnr_due || p->rx.rnr) {
		w.flags |= CN_FLAG_RNR; /* also in a probe: without it, the peer would retransmit */
	} else if (p->nak_due) {
		w.flags |= CN_FLAG_NAK;
		w.stream = cn_receiver_sack(p);
		n->counters.naks_sent++;
	}
	if (p->ackreq_due) {
		w.flags |= CN_FLAG_ACKREQ;
		cn_sender_ack_requested(p, p->tx.queue.end - 1);
	}
	p->nak_due = p->rnr_due = p->ackreq_due = false;
	cn_receiver_acked(p);
	cn_peer_reschedule(p);
	build_to(p, &w, NULL, out);
	n->counters.acks_sent++;
	n->counters.ack_bytes_sent += on_wire(n, 0);
}

/* Tells the peer that its session was given up, and how many nodes are silent. */
static void build_reset(struct cn_peer *p, struct cn_frame *out)
{
	struct cn_node *n = p->node;
	struct cn_wire w = { .type = CN_TYPE_ACK,
			     .flags = CN_FLAG_RESET,
			     .seq = p->tx.queue.end,
			     .ack = p->rx.expected,
			     .stream = cn_node_silent_peers(n) };

	build_to(p, &w, NULL, out);
	n->counters.acks_sent++;
	n->counters.ack_bytes_sent += on_wire(n, 0);
}

/* Builds a path MTU probe, padded or not, or the reply to one. */
static void build_path(struct cn_peer *p, uint8_t flag, uint32_t stream, uint32_t padding,
		       struct cn_frame *out)
{
	struct cn_node *n = p->node;
	struct cn_wire w = { .type = CN_TYPE_ACK,
			     .flags = flag,
			     .seq = p->tx.queue.next,
			     .ack = p->rx.expected,
			     .stream = stream };

	if (n->config.authenticated && flag == CN_FLAG_MTU_PROBE) {
		w.stream |= padding;
	}
	build_to(p, &w, n->zeros, out);
	out->payload_len = (uint16_t)padding;
	n->counters.bytes_sent += on_wire(n, padding) - on_wire(n, 0);
	n->counters.acks_sent++;
	n->counters.ack_bytes_sent += on_wire(n, 0);
}

/* Builds a path MTU probe or reply that is due; false: none. */
static bool output_path(struct cn_peer *p, struct cn_frame *out)
{
	struct cn_path *h = &p->path;
	struct cn_path_reply *r = &p->path_reply;

	if (r->due) {
		r->due = false;
		build_path(p, CN_FLAG_MTU_REPLY, (uint32_t)r->number << 16 | r->largest, 0, out);
	} else if (h->padded_due) {
		h->padded_due = false;
		build_path(p, CN_FLAG_MTU_PROBE, (uint32_t)h->number << 16,
			   h->size - p->node->header, out);
	} else if (h->short_due) {
		h->short_due = false;
		build_path(p, CN_FLAG_MTU_PROBE, (uint32_t)h->number << 16, 0, out);
	} else {
		return false;
	}
	return true;
}

static void build_data(struct cn_peer *p, uint32_t seq, struct cn_frame *out)
{
	const struct cn_rtx_frame *f = cn_rtx_at(&p->tx.queue, seq);
	struct cn_wire w = { .type = f->type,
			     .flags = f->flags,
			     .length = f->len,
			     .seq = seq,
			     .ack = p->rx.expected,
			     .stream = f->stream };

	/* RNR and NAK take an ACK frame; all other acknowledgements are piggybacked. */
	if (!p->rnr_due && !p->nak_due) {
		cn_receiver_acked(p);
	}
	if ((f->flags & CN_FLAG_ACKREQ) != 0) {
		cn_sender_ack_requested(p, seq);
	}
	cn_peer_reschedule(p);
	build_to(p, &w, f->payload, out);
}

static void build_retransmission(struct cn_peer *p, struct cn_frame *out)
{
	struct cn_sender *t = &p->tx;
	struct cn_rtx_queue *q = &t->queue;
	uint32_t seq = q->next;
	struct cn_rtx_frame *f = cn_rtx_at(q, seq);

	if (seq == q->una && t->una_answered) {
		t->una_resends++;
	}
	t->una_answered &= seq != q->una;
	f->resent = true;
	f->sent_at = p->node->now;
	cn_sender_advance(p);
	if (q->next == q->end || q->next - q->una >= t->cc.cwnd) {
		f->flags |= CN_FLAG_ACKREQ; /* the last one for now: only an ACK opens the window */
	}
	p->data_resent++;
	p->node->counters.data_resent++;
	build_data(p, seq, out);
}

static bool control_room(struct cn_peer *p)
{
	return p->control_first != NULL && cn_sender_is_open(p) &&
	       cn_rtx_reserve(&p->tx.queue, &p->node->rings);
}

/* The list link and the length are in the first bytes of the buffer, before the message. */
struct control {
	uint8_t *next;
	uint16_t len;
};
#define CONTROL_HEAD 16

static void build_control(struct cn_peer *p, struct cn_frame *out)
{
	uint8_t *b = p->control_first;
	struct control c;
	struct cn_tx tx = { .peer = p, .type = CN_TYPE_CONTROL };

	memcpy(&c, b, sizeof(c));
	p->control_first = c.next;
	p->controls--;
	if (c.next == NULL) {
		p->control_last = NULL;
	}
	memmove(b, b + CONTROL_HEAD, c.len);
	tx.payload = b;
	tx.len = c.len;
	build_data(p, cn_sender_push(p, &tx, true), out);
}

/* The global window may open at any call: the peer is skipped for the rest of this output and
 * retried at the next. */
static void wait_for_window(struct cn_peer *p)
{
	p->ready = true;
	p->ready_next = p->node->window_waiting;
	p->node->window_waiting = p;
}

/* The next frame to a ready peer; false: none. */
static bool output_peer(struct cn_peer *p, struct cn_frame *out)
{
	if (p->reset_due) {
		p->reset_due = false;
		build_reset(p, out);
		return true;
	}
	if (p->hello.due) {
		p->hello.due = false;
		build_hello(p->node, p->mac, p->hello.flags, cn_hello_nonce(p), p->hello.echo, out);
		p->hello.fresh = false;
		return true;
	}
	if (p->state != CN_PEER_UP) {
		return false;
	}
	if (p->nak_due || p->rnr_due || p->ackreq_due || p->ack_due) {
		build_ack(p, out);
		return true;
	}
	if (output_path(p, out)) {
		return true;
	}
	if (cn_sender_retransmits(p)) {
		if (!cn_sender_may_resend(p)) {
			wait_for_window(p);
			return false;
		}
		build_retransmission(p, out);
		return true;
	}
	if (control_room(p)) {
		build_control(p, out);
		return true;
	}
	return false;
}

/* The next frame to any ready peer; false: none. */
static bool output_ready(struct cn_node *n, struct cn_frame *out)
{
	while (n->ready_first != NULL) {
		struct cn_peer *p = n->ready_first;

		n->ready_first = p->ready_next;
		if (n->ready_first == NULL) {
			n->ready_last = NULL;
		}
		p->ready = false;
		if (output_peer(p, out)) {
			cn_peer_ready(p); /* appended again until it has nothing to send */
			return true;
		}
	}
	return false;
}

/*
 * The next new frame of the engine. With authentication, messages are sent from copies: all users'
 * messages share port 0, and the tag is computed before the kernel copies the payload, so a user
 * who changes a message meanwhile would invalidate frames that everyone waits for. A team's frames
 * affect only its own port.
 */
static bool pull(struct cn_node *n, cn_time now, struct cn_tx *tx)
{
	const bool copied = n->config.authenticated && n->config.port == 0;
	uint8_t *b;

	if ((copied && !cn_node_has_buffer(n)) || !n->ops->pull(n->ctx, now, tx)) {
		return false;
	}
	if (copied && !tx->owned && tx->len > 0) {
		b = cn_node_buffer_get(n);
		memcpy(b, tx->payload, tx->len);
		tx->payload = b;
		tx->owned = true;
	}
	return true;
}

bool cn_node_output(struct cn_node *n, cn_time now, struct cn_frame *out)
{
	struct cn_tx tx;

	n->now = now;
	if (output_hello(n, out)) {
		return true;
	}
	while (n->window_waiting != NULL) {
		struct cn_peer *p = n->window_waiting;

		n->window_waiting = p->ready_next;
		p->ready = false;
		cn_peer_ready(p);
	}
	if (n->ready_first != NULL && output_ready(n, out)) {
		return true;
	}
	memset(&tx, 0, sizeof(tx));
	if (pull(n, now, &tx)) {
		build_data(tx.peer, cn_sender_push(tx.peer, &tx, tx.owned), out);
		out->ends = tx.ends;
		return true;
	}
	/* An ACK request by pull(). */
	return n->ready_first != NULL && output_ready(n, out);
}

bool cn_node_is_idle(const struct cn_node *n)
{
	return n->ready_first == NULL && n->window_waiting == NULL && !n->hello_due &&
	       n->unvalidated_first == NULL && !n->leaving;
}

bool cn_node_has_output(struct cn_node *n, cn_time now)
{
	n->now = now;
	return !cn_node_is_idle(n);
}

int cn_node_control(struct cn_node *n, struct cn_peer *p, const void *data, size_t len)
{
	struct control c = { .len = (uint16_t)len };
	uint8_t *b;

	if (p->state != CN_PEER_UP) {
		return COLLNET_EPEER;
	}
	if (len == 0 || len > n->payload || len + CONTROL_HEAD > n->pool.item) {
		return COLLNET_EINVAL;
	}
	if (p->controls >= CN_CONTROL_WAITING) {
		return COLLNET_ELIMIT;
	}
	b = len + CONTROL_HEAD <= n->small.item ? cn_pool_get(&n->small) : NULL;
	if (b == NULL) {
		b = cn_pool_get(&n->pool);
	}
	if (b == NULL) {
		return COLLNET_ELIMIT;
	}
	memcpy(b, &c, sizeof(c));
	memcpy(b + CONTROL_HEAD, data, len);
	if (p->control_last != NULL) {
		memcpy(p->control_last, &b, sizeof(b));
	} else {
		p->control_first = b;
	}
	p->control_last = b;
	p->controls++;
	cn_peer_ready(p);
	return COLLNET_OK;
}
