/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Go-Back-N receiver: accepts the expected frame and no other, acknowledges on data going
 * back, after cn_ack_every() frames, after ack_delay, or at once when asked.
 */
#include "proto/peer.h"
#include "proto/serial.h"

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

/*
 * A frame beyond the expected one: something is lost. Say so once; and again when the numbers go
 * backwards, which shows that the sender went back and its first frame was lost once more.
 */
static void take_early(struct cn_peer *p, uint32_t seq)
{
	struct cn_receiver *r = &p->rx;

	p->node->stats.gaps++;
	if (!r->refused && (!r->in_gap || !cn_serial_before(r->gap_last, seq))) {
		r->in_gap = true;
		p->nak_due = true;
		cn_peer_ready(p);
	}
	r->gap_last = seq;
}

void cn_receiver_data(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload)
{
	struct cn_receiver *r = &p->rx;
	struct cn_node *n = p->node;
	struct cn_rx rx = {
		.type = w->type, .flags = w->flags & (CN_FLAG_FIRST | CN_FLAG_LAST),
		.len = w->length, .stream = w->stream, .payload = payload,
	};

	if (w->seq != r->expected) {
		if (cn_serial_before(r->expected, w->seq)) {
			take_early(p, w->seq);
		} else {
			n->stats.duplicates++;
			ack_now(p); /* the acknowledgement may have been lost */
		}
		return;
	}
	if (!n->ops->deliver(n->ctx, n->now, p, &rx)) {
		n->stats.busy++;
		r->refused = true;
		p->busy_due = true;
		cn_peer_ready(p);
		return;
	}
	if (p->state != CN_PEER_UP) {
		return;
	}
	r->expected++;
	r->in_gap = false;
	r->refused = false;
	p->busy_due = false;
	p->data_received++;
	n->data_last = n->now;
	n->stats.data_received++;
	r->unacked++;
	if ((w->flags & CN_FLAG_ASK) != 0 || r->unacked >= cn_ack_every(n)) {
		ack_now(p);
	} else if (r->ack_at == CN_NEVER) {
		r->ack_at = n->now + n->config.ack_delay * (r->reply_soon ? 2 : 1);
		cn_peer_reschedule(p);
	}
	r->reply_soon = false;
}

void cn_peer_reply_soon(struct cn_peer *p)
{
	p->rx.reply_soon = true;
}
