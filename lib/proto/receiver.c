/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Go-Back-N receiver: accepts the expected frame and no other, acknowledges on data going
 * back, after cn_ack_every() frames, after ack_delay, or at once when asked. A few frames beyond
 * the expected one are held where the configuration says so (`reorder`): frames that were overtaken
 * on their way cost nothing, and after a loss less is sent again.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/peer.h"
#include "proto/serial.h"

/* A frame that was overtaken follows within this time, and not more frames overtake it; what does
 * not is lost. */
static const cn_time gap_patience = 500 * CN_US;
static const uint32_t overtakers = 4;
/* A node that only receives has measured no round trip. Too short a time, and what was already sent
 * again is sent once more. */
static const cn_time rtt_unknown = 1500 * CN_US;

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

/* Where frames are held, only the missing ones come again, and if one of these is lost once more,
 * nothing else tells: so it is said again after a while, and less often while nothing comes. */
static void nak_now(struct cn_peer *p, bool repeated)
{
	struct cn_receiver *r = &p->rx;

	if (!repeated) {
		cn_time rtt = p->tx.rtt.least;

		r->gap_wait = 2 * (gap_patience + (rtt != 0 ? rtt : rtt_unknown));
	} else if (r->gap_wait < p->node->config.dead_after / 5) {
		r->gap_wait *= 2;
	}
	r->in_gap = true;
	r->gap_at = r->nheld == 0 ? CN_NEVER : p->node->now + r->gap_wait;
	p->nak_due = true;
	cn_peer_reschedule(p);
	cn_peer_ready(p);
}

uint32_t cn_receiver_map(const struct cn_peer *p)
{
	const struct cn_receiver *r = &p->rx;
	uint32_t map = 0;

	if (r->nheld == 0 || r->beyond) {
		return 0;
	}
	for (uint32_t i = 0; i < CN_REORDER_MAX; i++) {
		const struct cn_held *h = &r->held[(r->expected + 1 + i) % CN_REORDER_MAX];

		if (h->data != NULL && h->wire.seq == r->expected + 1 + i) {
			map |= 1u << i;
		}
	}
	return map | CN_SACK_VALID;
}

static void let_go(struct cn_peer *p, struct cn_held *h)
{
	cn_pool_put(&p->node->pool, h->data);
	h->data = NULL;
	p->rx.nheld--;
}

void cn_receiver_drop_all(struct cn_peer *p)
{
	for (int i = 0; i < CN_REORDER_MAX && p->rx.held != NULL; i++) {
		if (p->rx.held[i].data != NULL) {
			let_go(p, &p->rx.held[i]);
		}
	}
	p->rx.gap_at = CN_NEVER;
}

/* Keeps a frame until those before it come. False: too far ahead, or no buffer. */
static bool hold(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_held *h;

	if (w->seq - p->rx.expected > p->node->config.reorder) {
		return false;
	}
	if (p->rx.held == NULL) {
		p->rx.held = calloc(CN_REORDER_MAX, sizeof(*p->rx.held));
	}
	if (p->rx.held == NULL) {
		return false;
	}
	h = &p->rx.held[w->seq % CN_REORDER_MAX];
	if (h->data != NULL) {
		return true; /* this very frame: others of the slot are out of reach */
	}
	h->data = cn_node_buffer_get(p->node);
	if (h->data == NULL) {
		return false;
	}
	p->rx.nheld++;
	h->wire = *w;
	memcpy(h->data, payload, w->length);
	return true;
}

/*
 * A frame beyond the expected one: something is lost, or was overtaken. Where frames are held, a
 * moment tells which. A loss is said once; and again when the numbers go backwards, which shows
 * that the sender went back and its first frame was lost once more.
 */
static void take_early(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_receiver *r = &p->rx;
	bool held = !r->refused && hold(p, w, payload);

	p->node->stats.gaps++;
	r->beyond |= !held;
	if (held && !r->in_gap && r->nheld < overtakers) {
		if (r->gap_at == CN_NEVER) {
			r->gap_at = p->node->now + gap_patience;
			cn_peer_reschedule(p);
		}
	} else if (!r->refused && (!r->in_gap || !cn_serial_before(r->gap_last, w->seq))) {
		nak_now(p, false);
	}
	r->gap_last = w->seq;
}

void cn_receiver_gap(struct cn_peer *p)
{
	p->rx.gap_at = CN_NEVER;
	if (!p->rx.refused) {
		nak_now(p, p->rx.in_gap);
	}
}

static void note_arrival(struct cn_node *n)
{
	cn_time gap = n->now - n->data_last;

	if (n->data_last != 0 && gap < n->config.dead_after / 15) {
		n->data_gap = n->data_gap - n->data_gap / 8 + gap / 8;
	}
	n->data_last = n->now;
}

/* The expected frame, to whom it is for. False: it is refused, or the peer is gone. */
static bool accept(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_receiver *r = &p->rx;
	struct cn_node *n = p->node;
	struct cn_rx rx = {
		.type = w->type,
		.flags = w->flags & (CN_FLAG_FIRST | CN_FLAG_LAST),
		.len = w->length,
		.stream = w->stream,
		.payload = payload,
	};

	if (!n->ops->deliver(n->ctx, n->now, p, &rx)) {
		n->stats.busy++;
		r->refused = true;
		p->busy_due = true;
		cn_peer_ready(p);
		return false;
	}
	if (p->state != CN_PEER_UP) {
		return false;
	}
	r->expected++;
	r->in_gap = r->beyond = false;
	r->refused = false;
	p->busy_due = p->nak_due = false;
	p->data_received++;
	note_arrival(n);
	n->stats.data_received++;
	cn_cadence_note(&r->cadence, n);
	r->unacked++;
	if ((w->flags & CN_FLAG_ACKREQ) != 0 || r->unacked >= cn_ack_every(n)) {
		ack_now(p);
	} else if (r->ack_at == CN_NEVER) {
		r->ack_at = n->now +
			    (r->reply_soon ? cn_cadence_wait(&r->cadence, n) : n->config.ack_delay);
		cn_peer_reschedule(p);
	}
	r->reply_soon = false;
	return true;
}

/* The gap is closed: those that were held follow, as far as they go. */
static void follow(struct cn_peer *p)
{
	struct cn_receiver *r = &p->rx;

	while (r->nheld > 0) {
		struct cn_held *slot = &r->held[r->expected % CN_REORDER_MAX], h = *slot;
		bool ok;

		if (h.data == NULL || h.wire.seq != r->expected) {
			break;
		}
		slot->data = NULL;
		r->nheld--;
		ok = accept(p, &h.wire, h.data);
		cn_pool_put(&p->node->pool, h.data);
		if (!ok) {
			cn_receiver_drop_all(p); /* they will come again */
			return;
		}
	}
	r->gap_at = r->nheld > 0 ? p->node->now + gap_patience : CN_NEVER;
	cn_peer_reschedule(p);
}

void cn_receiver_data(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_receiver *r = &p->rx;

	if (w->seq == r->expected) {
		if (!accept(p, w, payload)) {
			cn_receiver_drop_all(p); /* buffers are short, and all will come again */
		} else if (r->nheld > 0) {
			follow(p);
		}
	} else if (cn_serial_before(r->expected, w->seq)) {
		take_early(p, w, payload);
	} else {
		p->node->stats.duplicates++;
		ack_now(p); /* the acknowledgement may have been lost */
	}
}

bool cn_peer_rnr_sent(const struct cn_peer *p)
{
	return p->rx.refused;
}

void cn_peer_reply_soon(struct cn_peer *p)
{
	p->rx.reply_soon = true;
}
