/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame came in: strangers out first, then who it is from, then what it says. */
#include <stdlib.h>
#include <string.h>

#include "proto/peer.h"
#include "proto/serial.h"

/* Hellos to one peer are at least this far apart, whatever arrives. */
static const cn_time hello_spacing = 20 * CN_MS;

void cn_hello_ask(struct cn_peer *p, bool want, bool later)
{
	struct cn_node *n = p->node;
	cn_time wait = later ? cn_node_spread(n, p) : 0;

	if (p->hello_last != 0 && n->now - p->hello_last < hello_spacing && !p->hello_due) {
		return;
	}
	if (wait > 0) {
		if (p->hello_at == CN_NEVER && !p->hello_due) {
			p->hello_at = n->now + wait;
			cn_peer_reschedule(p);
		}
		return; /* what it is to say is found out then */
	}
	p->hello_last = n->now;
	p->hello_at = CN_NEVER;
	p->hello_due = true;
	p->hello_want |= want;
	cn_peer_reschedule(p);
	cn_peer_ready(p);
}

/* Nodes of different MTUs reach each other with short frames, so that their jobs can say why they do
 * not run. */
static void check_mtu(struct cn_peer *p, const struct cn_hello *h)
{
	if (h->mtu != p->node->config.mtu && !p->mtu_told) {
		cn_log(COLLNET_LOG_ERROR, "node %s has MTU %u and this node %u: set them alike",
		       h->name, h->mtu, p->node->config.mtu);
		p->mtu_told = true;
	}
}

static bool is_older(const struct cn_peer *p, const struct cn_hello *h, uint8_t flags)
{
	return h->epoch == p->epoch && (flags & CN_FLAG_UNICAST) != 0 &&
	       cn_serial_before(h->life, p->life_in);
}

/*
 * Whether a hello belongs to a life that is over: late, or said again by somebody. Only where the
 * present one is beyond doubt; else a replay believed once would lock the true node out.
 */
static bool is_over(const struct cn_peer *p, const struct cn_hello *h, uint8_t flags)
{
	if ((flags & CN_FLAG_BYE) != 0 && h->epoch != p->epoch) {
		return true;
	}
	if (!p->proven) {
		return false;
	}
	if (h->epoch == p->epoch) {
		return is_older(p, h, flags);
	}
	for (uint32_t i = 0; i < CN_PAST && p->past != NULL; i++) {
		if (h->epoch == p->past->epochs[i]) {
			return true;
		}
	}
	return false;
}

/*
 * It has another epoch than we knew. Our own life ends with the old one, so that no session is
 * ever used twice, even if the new epoch turns out to be a replay that we could not know of: two
 * nodes in one session that began it at different times would never agree on a number again. A
 * life that goes backwards ends ours, too, for the same reason.
 */
static void new_epoch(struct cn_peer *p, uint64_t epoch)
{
	if (p->epoch != 0) {
		if (p->past != NULL) {
			p->past->epochs[p->past->n++ % CN_PAST] = p->epoch;
		}
		p->life_out++;
	}
	p->epoch = epoch;
	p->life_in = 0;
	p->proven = false;
}

/*
 * A hello. Broadcast ones say who is there; a unicast one also says which life of the connection
 * its sender is in, and only that brings a peer up: then both sides agree on epochs and lives.
 */
void cn_hello_take(struct cn_node *n, const uint8_t mac[6], const struct cn_wire *w,
		   const uint8_t *body)
{
	struct cn_hello h;
	struct cn_peer *p = cn_peer_by_mac(n, mac);
	bool unicast = (w->flags & CN_FLAG_UNICAST) != 0;

	if (!cn_hello_get(body, w->length, &h)) {
		n->stats.bad_frames++;
		return;
	}
	if (p == NULL && (w->flags & CN_FLAG_BYE) == 0) {
		p = cn_peer_add(n, mac);
	}
	if (p == NULL) {
		n->stats.stale_frames++;
		return;
	}
	if (is_over(p, &h, w->flags)) {
		n->stats.stale_frames++;
		return;
	}
	if ((w->flags & CN_FLAG_BYE) != 0) {
		cn_peer_down(p, CN_PEER_BYE);
		return;
	}
	if (p->epoch != 0 && h.epoch != p->epoch && p->past == NULL) {
		p->past = calloc(1, sizeof(*p->past));
		if (p->past == NULL) {
			cn_log(COLLNET_LOG_ERROR, "no memory for node %s", p->name);
			return; /* it will say so again */
		}
	}
	p->heard = n->now;
	if (p->state == CN_PEER_UP && (h.epoch != p->epoch || (unicast && h.life != p->life_in))) {
		cn_peer_down(p, h.epoch != p->epoch ? CN_PEER_RESTARTED : CN_PEER_GAVE_UP);
	}
	if (h.epoch != p->epoch) {
		new_epoch(p, h.epoch);
	} else if (is_older(p, &h, w->flags)) {
		p->life_out++;
	}
	memcpy(p->name, h.name, sizeof(p->name));
	p->mtu = h.mtu;
	check_mtu(p, &h);
	if (unicast) {
		p->life_in = h.life;
		if ((w->flags & CN_FLAG_WANT) != 0) {
			cn_hello_ask(p, false, false);
		}
		if (p->state != CN_PEER_UP) {
			cn_peer_up(p);
		}
	} else if (p->state != CN_PEER_UP || ((w->flags & CN_FLAG_WANT) != 0 && !p->proven)) {
		/* One whose frames come knows us: all answers at once can be too many for its port. */
		cn_hello_ask(p, p->state != CN_PEER_UP, true);
	}
}

static void ack_taken(struct cn_peer *p, const struct cn_wire *w, size_t len)
{
	if ((w->flags & CN_FLAG_ASK) != 0) {
		p->ack_due = true;
		cn_peer_ready(p);
	}
	if ((w->flags & CN_FLAG_SIZE) != 0) {
		cn_path_probed(p, w->stream, (uint32_t)(len - CN_ETH_HEADER));
	}
	if ((w->flags & CN_FLAG_SIZED) != 0) {
		cn_path_answer(p, w->stream);
	}
	if ((w->flags & (CN_FLAG_SIZE | CN_FLAG_SIZED)) != 0 || p->state != CN_PEER_UP) {
		return;
	}
	if (w->ack != p->tx.una) {
		return; /* it asks for an older or impossible place */
	}
	if ((w->flags & CN_FLAG_BUSY) == 0) {
		p->tx.answered = true;
	} else {
		p->tx.repeats = 0; /* the frame came */
	}
	if ((w->flags & CN_FLAG_BUSY) != 0) {
		cn_sender_busy(p);
	} else if ((w->flags & CN_FLAG_NAK) != 0) {
		cn_sender_nak(p, w->stream);
	} else if (p->tx.hold_until != 0) {
		p->tx.hold = 0;
		cn_sender_timeout(p); /* it has buffers again: go on at once */
		cn_peer_reschedule(p);
	} else if ((w->flags & CN_FLAG_ASK) != 0) {
		cn_sender_query(p);
	}
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
	if (fault != CN_WIRE_OK) {
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
	n->stats.bytes_received += len < CN_ETH_MIN ? CN_ETH_MIN : len;
	if (w.type == CN_TYPE_HELLO) {
		n->stats.frames_received++;
		cn_hello_take(n, frame + 6, &w, frame + CN_HEAD);
		return;
	}
	p = cn_peer_by_mac(n, frame + 6);
	if (p == NULL || p->state != CN_PEER_UP || w.session != p->session_in) {
		n->stats.stale_frames++;
		if (p != NULL) {
			cn_hello_ask(p, true, false);
		}
		return;
	}
	n->stats.frames_received++;
	p->heard = p->answered = now;
	p->proven = true;
	p->probes = 0;
	cn_sender_ack(p, w.ack);
	if (w.type == CN_TYPE_ACK) {
		ack_taken(p, &w, len);
	} else {
		cn_receiver_data(p, &w, frame + CN_HEAD);
	}
}
