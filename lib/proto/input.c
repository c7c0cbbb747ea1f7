/* SPDX-License-Identifier: BSD-2-Clause */
/* Input path: drops frames that are not for this node, looks up the sender, processes the frame. */
#include <string.h>

#include "proto/node_impl.h"
#include "proto/serial.h"

static void process_ack(struct cn_peer *p, const struct cn_wire *w, size_t len)
{
	if ((w->flags & CN_FLAG_RESET) != 0) {
		p->unheard = w->stream;
		cn_peer_down(p, CN_PEER_UNHEARD);
		return;
	}
	if ((w->flags & CN_FLAG_ACKREQ) != 0) {
		p->ack_due = true;
		cn_peer_ready(p);
	}
	cn_receiver_announced(p, w->seq);
	if ((w->flags & CN_FLAG_MTU_PROBE) != 0) {
		cn_path_probed(p, w->stream,
			       cn_encapsulation_bytes(p->node->config.encapsulation) +
				       (uint32_t)len);
	}
	if ((w->flags & CN_FLAG_MTU_REPLY) != 0) {
		cn_path_answer(p, w->stream);
	}
	if ((w->flags & (CN_FLAG_MTU_PROBE | CN_FLAG_MTU_REPLY)) != 0 || p->state != CN_PEER_UP) {
		return;
	}
	if (w->ack != p->tx.queue.una) {
		return; /* of an older or impossible place */
	}
	if ((w->flags & CN_FLAG_RNR) != 0) {
		p->tx.una_resends = 0; /* the frame arrived */
		cn_sender_rnr(p);
		return;
	}
	p->tx.una_answered = true;
	if ((w->flags & CN_FLAG_NAK) != 0) {
		cn_sender_nak(p, w->stream);
	} else if (p->tx.rnr_until != 0) {
		cn_sender_ready(p);
	}
}

/*
 * True if the sequence numbers of a frame are acceptable (RFC 5961): within the largest window of
 * the expected ones, in either direction. Older frames were delayed beyond all timeouts; others are
 * guesses.
 */
static bool in_window(const struct cn_peer *p, const struct cn_wire *w)
{
	return cn_serial_within(p->rx.expected - CN_WINDOW_MAX, w->seq,
				p->rx.expected + CN_WINDOW_MAX) &&
	       cn_serial_within(p->tx.queue.una - CN_WINDOW_MAX, w->ack, p->tx.queue.end);
}

/*
 * Late frames acknowledge less than una, but if all frames do for this long, an undetected damaged
 * frame had acknowledged more. The frames lost meanwhile are not retransmitted, and the peer, which
 * is alive, would wait for them for ever.
 */
#define STALE_ACK_LIMIT 4u /* times dead_after */
static bool lacks_acked(struct cn_peer *p, uint32_t ack)
{
	struct cn_sender *t = &p->tx;
	const cn_time now = p->node->now;

	if (!cn_serial_before(ack, t->queue.una)) {
		t->stale_ack_since = 0;
		return false;
	}
	if (t->stale_ack_since == 0) {
		t->stale_ack_since = now;
	}
	return now - t->stale_ack_since >= STALE_ACK_LIMIT * p->node->config.dead_after;
}

/*
 * True if a frame from p (NULL: a stranger) is one of the session. The id is that of one
 * incarnation of either end, of its cluster and of its port (cn_node_connect()).
 */
static bool in_session(const struct cn_node *n, const struct cn_peer *p, const struct cn_wire *w)
{
	return p != NULL && p->state == CN_PEER_UP && w->session == p->session_in &&
	       w->port_to == n->config.port;
}

/*
 * A frame without a session. If it is for port 0, or its sender has no session with port 0, the
 * nodes establish one. Frames for other ports may be late frames of a team that has ended.
 */
static void stray(struct cn_node *n, const uint8_t mac[6], struct cn_peer *p,
		  const struct cn_wire *w)
{
	if (n->config.port == 0 && (w->port_to == 0 || p == NULL || p->state != CN_PEER_UP)) {
		cn_hello_stray(n, mac, p);
	}
}

/*
 * Bytes of an authenticated frame. The tag does not cover the padding of a path MTU probe, so the
 * probe carries the length of its padding, by which a truncated one is detected.
 */
static size_t whole(const struct cn_wire *w)
{
	const bool padded = w->type == CN_TYPE_ACK && (w->flags & CN_FLAG_MTU_PROBE) != 0;

	return cn_wire_header(true) + w->length + (padded ? w->stream & 0xffff : 0u);
}

/* Checks a frame independently of its addresses. */
static enum cn_wire_fault check(struct cn_node *n, const struct cn_rx_frame *f, struct cn_wire *w)
{
	enum cn_wire_fault fault = cn_wire_get(f->data, f->len, w);
	const uint8_t *body;

	if (fault != CN_WIRE_OK) {
		return fault;
	}
	body = cn_wire_body(f, w);
	if (w->type != CN_TYPE_HELLO) {
		return w->length > n->payload ? CN_WIRE_BAD : CN_WIRE_OK;
	}
	if (!cn_hello_is_foreign(body, w->length, n->config.cluster)) {
		return CN_WIRE_OK;
	}
	cn_other_cluster_record(n, cn_hello_cluster(body));
	return CN_WIRE_FOREIGN;
}

/* True if no session with the sender is possible; nothing else of the frame is read. */
static bool is_of_others(struct cn_node *n, const uint8_t from[6], const struct cn_rx_frame *f,
			 const struct cn_wire *w)
{
	struct cn_mismatch what = { w->version, f->encapsulation, w->authenticated, false, "" };

	if (w->version == CN_WIRE_VERSION && f->encapsulation == n->config.encapsulation &&
	    w->authenticated == n->config.authenticated) {
		if (!w->authenticated || w->type != CN_TYPE_HELLO ||
		    cn_auth_is_genuine(n->hello_key, from, f->data, cn_wire_body(f, w),
				       w->length)) {
			return false;
		}
		what.other_key = true;
	}
	n->counters.version_frames++;
	cn_foreign_version_record(n, from, &what);
	return true;
}

static void count_received(struct cn_node *n, const struct cn_rx_frame *f)
{
	const size_t bytes = CN_ETH_HEADER + cn_encapsulation_bytes(f->encapsulation) + f->len;

	n->counters.frames_received++;
	n->counters.bytes_received += bytes < CN_ETH_MIN ? CN_ETH_MIN : bytes;
}

void cn_node_input(struct cn_node *n, cn_time now, const struct cn_rx_frame *f)
{
	const uint8_t *to = f->ether, *from = f->ether + 6;
	struct cn_wire w;
	struct cn_peer *p;
	enum cn_wire_fault fault;

	n->now = now;
	if (n->leaving) {
		return;
	}
	fault = check(n, f, &w);
	if (fault != CN_WIRE_OK && fault != CN_WIRE_FOREIGN_VERSION) {
		*(fault == CN_WIRE_FOREIGN ? &n->counters.foreign_frames
					   : &n->counters.bad_frames) += 1;
		return;
	}
	/* To another node: the link is promiscuous. */
	if ((to[0] & 1) == 0 && memcmp(to, n->config.mac, 6) != 0) {
		n->counters.foreign_frames++;
		return;
	}
	/* From this node, or from a group address: forged. */
	if ((from[0] & 1) != 0 || memcmp(from, n->config.mac, 6) == 0) {
		n->counters.bad_frames++;
		return;
	}
	if (is_of_others(n, from, f, &w)) {
		return;
	}
	if (w.type == CN_TYPE_HELLO && n->config.port == 0) {
		count_received(n, f);
		cn_hello_input(n, from, &w, cn_wire_body(f, &w));
		return;
	}
	p = cn_peer_by_mac(n, from);
	if (!in_session(n, p, &w)) {
		n->counters.stale_frames++;
		stray(n, from, p, &w);
		return;
	}
	if (!in_window(p, &w)) {
		n->counters.stale_frames++;
		return;
	}
	if (w.authenticated &&
	    (f->len < whole(&w) ||
	     !cn_auth_accept(&p->auth, from, f->data, cn_wire_body(f, &w), w.length))) {
		n->counters.bad_frames++;
		return;
	}
	count_received(n, f);
	p->validated = true;
	p->hello.challenged = false;
	cn_liveness_received(p);
	if (lacks_acked(p, w.ack)) {
		cn_peer_down(p, CN_PEER_ACKS);
		return;
	}
	cn_sender_ack(p, w.ack);
	if (w.type == CN_TYPE_ACK) {
		process_ack(p, &w, w.authenticated ? whole(&w) : f->len);
	} else {
		cn_receiver_data(p, &w, cn_wire_body(f, &w));
	}
}

bool cn_node_place(struct cn_node *n, const struct cn_rx_frame *f, struct cn_rx_place *out)
{
	struct cn_wire w;
	struct cn_peer *p;
	struct cn_rx rx;

	/* Authenticated payloads are verified before they are placed. */
	if (n->ops->place == NULL || n->leaving || n->config.authenticated ||
	    f->encapsulation != n->config.encapsulation ||
	    memcmp(f->ether, n->config.mac, 6) != 0 ||
	    cn_wire_get(f->data, f->len, &w) != CN_WIRE_OK) {
		return false;
	}
	p = cn_peer_by_mac(n, f->ether + 6);
	if (!in_session(n, p, &w) || w.seq != p->rx.expected || p->rx.reorder.count > 0) {
		return false;
	}
	rx = (struct cn_rx){
		.type = w.type, .flags = w.flags, .len = w.length, .stream = w.stream
	};
	out->header = CN_WIRE_HEADER;
	return n->ops->place(n->ctx, p, &rx, out);
}
