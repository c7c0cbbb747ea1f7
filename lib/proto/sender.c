/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Go-Back-N sender. After a loss it goes back to the first frame not acknowledged. The number
 * of frames in flight halves at a loss and grows by one a window acknowledged, so that many
 * senders into one port settle instead of repeating their whole windows into it.
 */
#include <stdlib.h>

#include "proto/peer.h"
#include "proto/serial.h"

/* Timeouts in a row, without progress, of a peer that is otherwise there. */
static const uint32_t give_up = 14;
/* Repetitions of one frame, each after an answer, until it is suspected that its size is why. */
#define REPEATS 4u

struct cn_sent *cn_sender_entry(struct cn_peer *p, uint32_t seq)
{
	return &p->tx.ring[seq & p->tx.mask];
}

static void put_ring(struct cn_peer *p, struct cn_sent *ring)
{
	if (cn_pool_owns(&p->node->rings, ring)) {
		cn_pool_put(&p->node->rings, ring);
	} else {
		free(ring);
	}
}

bool cn_sender_reserve(struct cn_peer *p)
{
	struct cn_sender *t = &p->tx;
	uint32_t mask = t->ring == NULL ? CN_RING_FEW - 1 : t->mask * 2 + 1;
	struct cn_sent *ring;

	if (t->ring != NULL && t->end - t->una <= t->mask) {
		return true;
	}
	ring = t->ring == NULL ? cn_pool_get(&p->node->rings)
			       : malloc(((size_t)mask + 1) * sizeof(*ring));
	if (ring == NULL) {
		return false;
	}
	for (uint32_t seq = t->una; seq != t->end; seq++) {
		ring[seq & mask] = *cn_sender_entry(p, seq);
	}
	put_ring(p, t->ring);
	t->ring = ring;
	t->mask = mask;
	return true;
}

/* Nothing is in flight. */
static void let_ring_go(struct cn_peer *p)
{
	if (p->tx.mask == CN_RING_FEW - 1 && p->tx.ring != NULL) {
		put_ring(p, p->tx.ring);
		p->tx.ring = NULL;
	}
}

void cn_sender_free(struct cn_peer *p)
{
	put_ring(p, p->tx.ring);
	p->tx.ring = NULL;
}

cn_time cn_sender_rto(const struct cn_peer *p)
{
	const struct cn_node_config *c = &p->node->config;
	cn_time t = cn_rtt_timeout(&p->tx.rtt, c->rto_first, c->rto_min,
				   cn_cadence_wait(&p->tx.cadence, p->node));
	cn_time most = c->dead_after / 3;

	t <<= p->tx.doublings < 6 ? p->tx.doublings : 6;
	return t < most ? t : most;
}

static void release(struct cn_peer *p, struct cn_sent *s)
{
	if (s->owned) {
		cn_node_put(p->node, s->payload);
		s->owned = false;
	}
	s->payload = NULL;
	if (s->token != NULL) {
		void *token = s->token;

		s->token = NULL;
		p->node->ops->acked(p->node->ctx, token);
	}
}

uint32_t cn_sender_take(struct cn_peer *p, const struct cn_tx *tx, bool owned)
{
	struct cn_sender *t = &p->tx;
	struct cn_sent *s = cn_sender_entry(p, t->end);
	uint32_t flight = t->end - t->una + 1;

	*s = (struct cn_sent){
		.payload = tx->payload,
		.token = tx->token,
		.at = p->node->now,
		.stream = tx->stream,
		.len = tx->len,
		.type = (uint8_t)tx->type,
		.flags = tx->flags & (CN_FLAG_ACKREQ | CN_FLAG_FIRST | CN_FLAG_LAST),
		.owned = owned,
	};
	/* The window closes behind this frame, or is half full: only an answer opens it again. */
	if (flight >= t->cwnd ||
	    (t->cwnd < 2 * cn_ack_every(p->node) && flight == (t->cwnd + 1) / 2)) {
		s->flags |= CN_FLAG_ACKREQ;
	}
	cn_cadence_note(&t->cadence, p->node);
	if (t->rto_at == CN_NEVER) {
		t->rto_at = p->node->now + cn_sender_rto(p);
	}
	t->next++;
	p->data_sent++;
	p->node->stats.data_sent++;
	return t->end++;
}

/* `acked` frames of a flight of `flight`. What was not in use is no measure of the room. */
static void grow(struct cn_peer *p, uint32_t acked, uint32_t flight)
{
	struct cn_sender *t = &p->tx;

	if (t->cwnd < t->slow_until) {
		if (2 * flight >= t->cwnd) {
			t->cwnd += acked < t->slow_until - t->cwnd ? acked
								   : t->slow_until - t->cwnd;
		}
		return;
	}
	t->credit += acked;
	if (t->credit >= t->cwnd) {
		t->credit -= t->cwnd;
		if (t->cwnd < p->node->config.window) {
			t->cwnd++;
		}
	}
}

static void pass_over(struct cn_peer *p)
{
	while (p->tx.next != p->tx.end && cn_sender_entry(p, p->tx.next)->there) {
		p->tx.next++;
	}
}

static void note_loss(struct cn_node *n, bool lost)
{
	n->loss -= n->loss / 32;
	n->loss += lost ? 65536 / 32 : 0;
}

void cn_sender_ack(struct cn_peer *p, uint32_t ack)
{
	struct cn_sender *t = &p->tx;
	cn_time sample = 0;
	uint32_t n, flight = t->end - t->una;

	if (!cn_serial_within(t->una, ack, t->end) || ack == t->una) {
		return;
	}
	n = ack - t->una;
	for (uint32_t seq = t->una; seq != ack; seq++) {
		struct cn_sent *s = cn_sender_entry(p, seq);

		sample = s->again ? 0 : p->node->now - s->at;
		note_loss(p->node, s->again);
		release(p, s);
	}
	t->una = ack;
	if (cn_serial_before(t->recover, ack)) {
		t->recover = ack; /* or it would be ahead again after 2^31 frames without a loss */
	}
	if (cn_serial_before(t->next, ack)) {
		t->next = ack;
		pass_over(p);
	}
	if (sample != 0) {
		cn_rtt_sample(&t->rtt, sample);
	}
	t->doublings = t->repeats = 0;
	t->answered = false;
	t->hold_until = 0;
	t->hold = 0;
	grow(p, n, flight);
	t->rto_at = t->una == t->end ? CN_NEVER : p->node->now + cn_sender_rto(p);
	if (t->una == t->end) {
		let_ring_go(p);
	}
	cn_peer_reschedule(p);
	if (t->next != t->end || p->control_first != NULL) {
		cn_peer_ready(p);
	}
}

/*
 * Which frames need not be sent again: none without a map. Those after the last one held are still
 * on their way, but only as far ahead as a receiver holds them: the others come before the missing
 * frame does, and in vain. Nor is on its way what was to be sent again and was not yet.
 */
static void mark(struct cn_peer *p, uint32_t map)
{
	uint32_t held = map & CN_SACK_BITMAP, i = 0;

	for (uint32_t seq = p->tx.una; seq != p->tx.end; seq++, i++) {
		struct cn_sent *s = cn_sender_entry(p, seq);

		if (i == 0 || (map & CN_SACK_VALID) == 0) {
			s->there = false;
		} else if (i <= CN_REORDER_MAX && held >> (i - 1) != 0) {
			s->there = (held >> (i - 1) & 1) != 0;
		} else {
			s->there = i <= p->node->config.reorder &&
				   (s->there || cn_serial_before(seq, p->tx.next));
		}
	}
}

/* To the first frame not acknowledged, and again over those that the map does not say are there. */
static void go_back(struct cn_peer *p, uint32_t cwnd, uint32_t slow_until, uint32_t map)
{
	struct cn_sender *t = &p->tx;

	mark(p, map);
	/* One decrease a window of data: further losses of the same flight say nothing new. */
	if (!cn_serial_before(t->una, t->recover)) {
		t->cwnd = cwnd < 2 ? 2 : cwnd;
		t->slow_until = slow_until;
		t->credit = 0;
		t->recover = t->end;
	}
	t->next = t->una;
	cn_peer_ready(p);
}

/*
 * Half of what was in flight; but a flight that is small, because others have their turn, says
 * little of the room there is, and is not taken for it before 8 were halved in turn.
 */
static uint32_t decreased(const struct cn_sender *t)
{
	uint32_t half = (t->end - t->una) / 2, least = t->cwnd / 2 < 8 ? t->cwnd / 2 : 8;

	return half > least ? half : least;
}

/* Every peer carries frames of so many bytes: what is lost of those is not lost for its size. */
#define MTU_LEAST 576u

/* The peer answers, but its next frame does not get through, whatever made it be sent again:
 * perhaps for its size. */
static void suspect_path(struct cn_peer *p)
{
	uint32_t bytes = CN_WIRE_HEADER + cn_sender_entry(p, p->tx.una)->len;

	if (p->tx.repeats >= REPEATS && bytes > MTU_LEAST) {
		cn_path_suspect(p, bytes);
	}
}

void cn_sender_nak(struct cn_peer *p, uint32_t map)
{
	struct cn_sender *t = &p->tx;

	if (t->una == t->end) {
		return;
	}
	suspect_path(p);
	t->hold_until = 0;
	go_back(p, decreased(t), 0, map);
	t->rto_at = p->node->now + cn_sender_rto(p);
	cn_peer_reschedule(p);
}

/* Frames that should have arrived long ago, by what is known of the way, are lost; those too that
 * were sent again, where as many as may be are on their way. */
void cn_sender_query(struct cn_peer *p)
{
	struct cn_sender *t = &p->tx;
	cn_time due = 3 * t->rtt.least, least = cn_quiet_after(p->node);

	if (t->una != t->end && !cn_sender_again(p) &&
	    p->node->now - cn_sender_entry(p, t->una)->at > (due > least ? due : least)) {
		cn_sender_nak(p, 0);
	}
}

/* The receiver has no buffer: nothing is lost, only early. Wait, longer each time. */
void cn_sender_busy(struct cn_peer *p)
{
	struct cn_sender *t = &p->tx;

	if (t->una == t->end) {
		return;
	}
	t->hold = t->hold == 0 ? 5 * CN_MS : cn_min_time(t->hold * 2, 100 * CN_MS);
	t->hold_until = p->node->now + t->hold;
	mark(p, 0); /* what it held is gone */
	t->next = t->una;
	t->doublings = 0;
	t->rto_at = t->hold_until;
	cn_peer_reschedule(p);
}

bool cn_peer_rnr_received(const struct cn_peer *p)
{
	return p->tx.hold != 0;
}

void cn_sender_timeout(struct cn_peer *p)
{
	struct cn_sender *t = &p->tx;

	if (t->hold_until != 0) {
		t->hold_until = 0; /* the hold is over, not a timeout */
		mark(p, 0);
		t->next = t->una;
		cn_peer_ready(p);
	} else {
		p->node->stats.timeouts++;
		suspect_path(p);
		if (++t->doublings > give_up && t->doublings > cn_node_tries(p->node)) {
			cn_peer_down(p, CN_PEER_SILENT);
			return;
		}
		t->recover = t->una;
		go_back(p, 2, decreased(t), 0);
	}
	t->rto_at = p->node->now + cn_sender_rto(p);
}

void cn_sender_advance(struct cn_peer *p)
{
	p->tx.next++;
	pass_over(p);
}

bool cn_sender_again(const struct cn_peer *p)
{
	const struct cn_sender *t = &p->tx;

	return t->next != t->end && t->hold_until == 0 && t->next - t->una < t->cwnd;
}

void cn_sender_drop_all(struct cn_peer *p)
{
	struct cn_sender *t = &p->tx;

	while (t->una != t->end) {
		struct cn_sent *s = cn_sender_entry(p, t->una++);

		release(p, s);
	}
	let_ring_go(p);
	t->next = t->end;
	t->rto_at = CN_NEVER;
	t->hold_until = 0;
}
