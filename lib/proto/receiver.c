/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Go-Back-N receiver. It accepts the expected frame, keeps up to `reorder` frames beyond it in
 * the reorder buffer, and drops the others. It acknowledges with the data that goes back, after
 * cn_ack_every() frames, after ack_delay, or at once where a frame requests it.
 *
 * A gap counts as a loss when the reordering threshold or timeout is reached, or a frame cannot be
 * buffered; then it sends one negative acknowledgement with the SACK bitmap. A gap is detected by a
 * later frame, or by the sequence number of an acknowledgement.
 */
#include "proto/receiver.h"

#include "proto/node_impl.h"
#include "proto/serial.h"

/* A frame overtaken by fewer frames, and for a shorter time, counts as reordered, not lost. */
static const uint32_t reordering_threshold = 4;
static const cn_time reordering_timeout = 500 * CN_US;
/* A node that only receives has no round-trip sample. Too short a time would request frames that
 * are already being retransmitted. */
static const cn_time rtt_unknown = 1500 * CN_US;

void cn_receiver_init(struct cn_peer *p, uint32_t first)
{
	struct cn_reorder reorder = p->rx.reorder;

	p->rx = (struct cn_receiver){
		.expected = first,
		.announced = first,
		.reorder = reorder,
		.ack_at = CN_NEVER,
		.nak_at = CN_NEVER,
	};
}

void cn_receiver_free(struct cn_peer *p)
{
	cn_reorder_free(&p->rx.reorder);
}

void cn_receiver_acked(struct cn_peer *p)
{
	p->rx.unacked = 0;
	p->rx.ack_at = CN_NEVER;
	p->ack_due = false;
}

static void ack_now(struct cn_peer *p)
{
	p->ack_due = true;
	cn_peer_ready(p);
}

/* With a reorder buffer only the missing frames are retransmitted. If one of these is lost again,
 * no later frame reveals it, so the NAK is repeated with backoff. */
static void nak_now(struct cn_peer *p, bool repeated)
{
	struct cn_receiver *r = &p->rx;

	if (!repeated) {
		cn_time rtt = p->tx.rtt.least;

		r->nak_wait = 2 * (reordering_timeout + (rtt != 0 ? rtt : rtt_unknown));
	} else if (r->nak_wait < p->node->config.dead_after / 5) {
		r->nak_wait *= 2;
	}
	if (!r->nak_sent && p->node->ops->lost != NULL) {
		p->node->ops->lost(p->node->ctx, NULL);
	}
	r->nak_sent = true;
	r->nak_at = r->reorder.count == 0 ? CN_NEVER : p->node->now + r->nak_wait;
	p->nak_due = true;
	cn_peer_reschedule(p);
	cn_peer_ready(p);
}

uint32_t cn_receiver_sack(const struct cn_peer *p)
{
	return p->rx.overflow ? 0 : cn_reorder_sack(&p->rx.reorder, p->rx.expected);
}

void cn_receiver_drop_all(struct cn_peer *p)
{
	uint8_t *b;

	while ((b = cn_reorder_drop(&p->rx.reorder)) != NULL) {
		cn_node_buffer_put(p->node, b);
	}
	p->rx.nak_at = CN_NEVER;
}

/* Puts a frame into the reorder buffer. False: too far ahead, or no buffer. */
static bool buffer_out_of_order(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_reorder *r = &p->rx.reorder;
	uint8_t *b;

	if (w->seq - p->rx.expected > p->node->config.reorder) {
		return false;
	}
	if (cn_reorder_has(r, w->seq)) {
		return true;
	}
	b = cn_node_buffer_get(p->node);
	if (b == NULL) {
		return false;
	}
	if (!cn_reorder_put(r, w, payload, b)) {
		cn_node_buffer_put(p->node, b);
		return false;
	}
	return true;
}

/*
 * An out-of-order frame. A loss is reported once, and again when sequence numbers go backwards: the
 * sender has gone back, and its first retransmission was lost.
 */
static void receive_out_of_order(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_receiver *r = &p->rx;
	bool buffered = !r->rnr && buffer_out_of_order(p, w, payload);

	p->node->counters.gaps++;
	r->overflow |= !buffered;
	if (buffered && !r->nak_sent && r->reorder.count < reordering_threshold) {
		if (r->nak_at == CN_NEVER) {
			r->nak_at = p->node->now + reordering_timeout;
			cn_peer_reschedule(p);
		}
	} else if (!r->rnr && (!r->nak_sent || !cn_serial_before(r->last_out_of_order, w->seq))) {
		nak_now(p, false);
	}
	r->last_out_of_order = w->seq;
}

/* True if a frame is missing before the last one known to be sent. A number further ahead than a
 * window is from an ACK frame that is 2^31 data frames old, or more. */
static bool is_missing(const struct cn_receiver *r)
{
	return r->reorder.count > 0 || r->announced - r->expected - 1 < CN_WINDOW_MAX;
}

/* No later frame reveals a lost tail. After a NAK, the acknowledgement may have been sent before
 * the NAK arrived, or the retransmission may be lost as well. */
void cn_receiver_announced(struct cn_peer *p, uint32_t next)
{
	struct cn_receiver *r = &p->rx;

	r->announced = next;
	if (is_missing(r) && !r->rnr && r->nak_at == CN_NEVER) {
		r->nak_at = p->node->now + (r->nak_sent ? r->nak_wait : reordering_timeout);
		cn_peer_reschedule(p);
	}
}

void cn_receiver_nak_timeout(struct cn_peer *p)
{
	p->rx.nak_at = CN_NEVER;
	if (!p->rx.rnr && is_missing(&p->rx)) {
		nak_now(p, p->rx.nak_sent);
	}
}

/* Delivers the expected frame to the engine. False: refused (RNR), or the peer is gone. */
static bool accept(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_receiver *r = &p->rx;
	struct cn_node *n = p->node;
	const struct cn_node_config *c = &n->config;
	struct cn_rx rx = {
		.type = w->type,
		.flags = w->flags & (CN_FLAG_FIRST | CN_FLAG_LAST),
		.len = w->length,
		.stream = w->stream,
		.payload = payload,
	};

	if (!n->ops->deliver(n->ctx, n->now, p, &rx)) {
		n->counters.rnr++;
		r->rnr = true;
		p->rnr_due = true;
		cn_peer_ready(p);
		return false;
	}
	if (p->state != CN_PEER_UP) {
		return false;
	}
	r->expected++;
	n->loss_in -= n->loss_in / 32;
	n->loss_in += r->nak_sent ? 65536 / 32 : 0;
	r->nak_sent = r->overflow = r->rnr = false;
	p->rnr_due = p->nak_due = false;
	p->data_received++;
	cn_tlp_data_received(n);
	n->counters.data_received++;
	cn_interarrival_sample(&r->arrivals, n->now, c->dead_after / 6);
	r->unacked++;
	if ((w->flags & CN_FLAG_ACKREQ) != 0 || r->no_reply || r->unacked >= cn_ack_every(n)) {
		ack_now(p);
	} else if (r->ack_at == CN_NEVER) {
		r->ack_at = n->now +
			    (r->reply_soon ? cn_interarrival_ack_delay(&r->arrivals, c->ack_delay)
					   : c->ack_delay);
		cn_peer_reschedule(p);
	}
	r->reply_soon = r->no_reply = false;
	return true;
}

/* The gap is closed: delivers the frames that follow from the reorder buffer, up to the next
 * gap. */
static void deliver_buffered(struct cn_peer *p)
{
	struct cn_receiver *r = &p->rx;
	struct cn_reorder_frame f;

	while (cn_reorder_remove(&r->reorder, r->expected, &f)) {
		bool ok = accept(p, &f.wire, f.data);

		cn_node_buffer_put(p->node, f.data);
		if (!ok) {
			cn_receiver_drop_all(p); /* all of them will be retransmitted */
			return;
		}
	}
	r->nak_at = is_missing(r) ? p->node->now + reordering_timeout : CN_NEVER;
	cn_peer_reschedule(p);
}

void cn_receiver_data(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_receiver *r = &p->rx;

	if (w->seq == r->expected) {
		if (!accept(p, w, payload)) {
			/* Buffers are short, and all frames will be retransmitted. */
			cn_receiver_drop_all(p);
		} else if (r->reorder.count > 0) {
			deliver_buffered(p);
		}
	} else if (cn_serial_before(r->expected, w->seq)) {
		receive_out_of_order(p, w, payload);
	} else {
		p->node->counters.duplicates++;
		ack_now(p); /* the acknowledgement may have been lost */
	}
}

bool cn_peer_rnr_sent(const struct cn_peer *p)
{
	return p->rx.rnr;
}

void cn_peer_reply_soon(struct cn_peer *p)
{
	p->rx.reply_soon = true;
}

void cn_peer_no_reply(struct cn_peer *p)
{
	p->rx.no_reply = true;
}
