/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame came in: others' frames out first, then who it is from, then what it says. */
#include <string.h>

#include "proto/peer.h"
#include "proto/serial.h"

static void ack_taken(struct cn_peer *p, const struct cn_wire *w, size_t len)
{
	if ((w->flags & CN_FLAG_ACKREQ) != 0) {
		p->ack_due = true;
		cn_peer_ready(p);
	}
	if ((w->flags & CN_FLAG_MTU_PROBE) != 0) {
		cn_path_probed(p, w->stream, (uint32_t)(len - CN_ETH_HEADER));
	}
	if ((w->flags & CN_FLAG_MTU_REPLY) != 0) {
		cn_path_answer(p, w->stream);
	}
	if ((w->flags & (CN_FLAG_MTU_PROBE | CN_FLAG_MTU_REPLY)) != 0 || p->state != CN_PEER_UP) {
		return;
	}
	if (w->ack != p->tx.una) {
		return; /* it asks for an older or impossible place */
	}
	if ((w->flags & CN_FLAG_RNR) == 0) {
		p->tx.answered = true;
	} else {
		p->tx.repeats = 0; /* the frame came */
	}
	if ((w->flags & CN_FLAG_RNR) != 0) {
		cn_sender_busy(p);
	} else if ((w->flags & CN_FLAG_NAK) != 0) {
		cn_sender_nak(p, w->stream);
	} else if (p->tx.hold_until != 0) {
		p->tx.hold = 0;
		cn_sender_timeout(p); /* it has buffers again: go on at once */
		cn_peer_reschedule(p);
	} else if ((w->flags & CN_FLAG_ACKREQ) != 0) {
		cn_sender_query(p);
	}
}

/*
 * Whether the numbers of a frame can be those of the session: not further from what is expected
 * than a window is long, either way. What is older was delayed for longer than anything waits for;
 * what is neither was guessed.
 */
static bool in_window(const struct cn_peer *p, const struct cn_wire *w)
{
	return cn_serial_within(p->rx.expected - CN_WINDOW_MAX, w->seq,
				p->rx.expected + CN_WINDOW_MAX) &&
	       cn_serial_within(p->tx.una - CN_WINDOW_MAX, w->ack, p->tx.end);
}

void cn_node_input(struct cn_node *n, cn_time now, const uint8_t *frame, size_t len)
{
	struct cn_wire w;
	struct cn_peer *p;
	enum cn_wire_fault fault;

	n->now = now;
	if (n->leaving) {
		return;
	}
	if (len < CN_ETH_HEADER) {
		n->stats.bad_frames++;
		return;
	}
	fault = cn_wire_get(frame + CN_ETH_HEADER, len - CN_ETH_HEADER, n->config.cluster, &w);
	if (fault == CN_WIRE_OK && w.length > n->payload && w.type != CN_TYPE_HELLO) {
		fault = CN_WIRE_BAD;
	}
	if (fault != CN_WIRE_OK && fault != CN_WIRE_FOREIGN_VERSION) {
		*(fault == CN_WIRE_FOREIGN ? &n->stats.foreign_frames : &n->stats.bad_frames) += 1;
		return;
	}
	/* To another one: a link that hears everything. */
	if ((frame[0] & 1) == 0 && memcmp(frame, n->config.mac, 6) != 0) {
		n->stats.foreign_frames++;
		return;
	}
	/* From ourselves, or from a group address: nobody sends so. */
	if ((frame[6] & 1) != 0 || memcmp(frame + 6, n->config.mac, 6) == 0) {
		n->stats.bad_frames++;
		return;
	}
	if (fault == CN_WIRE_FOREIGN_VERSION) {
		n->stats.version_frames++;
		cn_foreign_version_note(n, frame + 6, w.version);
		return;
	}
	n->stats.bytes_received += len < CN_ETH_MIN ? CN_ETH_MIN : len;
	if (w.type == CN_TYPE_HELLO) {
		n->stats.frames_received++;
		cn_hello_take(n, frame + 6, &w, frame + CN_HEAD);
		return;
	}
	p = cn_peer_by_mac(n, frame + 6);
	if (p == NULL || p->state != CN_PEER_UP || w.session != p->session_in) {
		n->stats.stale_frames++;
		cn_hello_stray(n, frame + 6, p);
		return;
	}
	if (!in_window(p, &w)) {
		n->stats.stale_frames++;
		return;
	}
	n->stats.frames_received++;
	p->heard = p->answered = now;
	p->proven = true;
	p->contested = false;
	p->probes = 0;
	p->suspected = 0;
	cn_sender_ack(p, w.ack);
	if (w.type == CN_TYPE_ACK) {
		ack_taken(p, &w, len);
	} else {
		cn_receiver_data(p, &w, frame + CN_HEAD);
	}
}
