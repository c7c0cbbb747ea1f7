/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Go-Back-N sender. After a loss it goes back to the first frame that is not acknowledged and
 * retransmits from there what is not sacked. Congestion control (proto/cc.h) bounds the frames in
 * flight by slow start, congestion avoidance and a decrease per window, so that many senders into
 * one port settle instead of repeating their whole windows into it.
 */
#include "proto/sender.h"

#include "proto/node_impl.h"
#include "proto/serial.h"

/* Retransmission timeouts in a row, without progress, of a peer that answers probes. */
static const uint32_t max_retries = 14;
/* Retransmissions of one frame, each after an answer, before its size is suspected. */
#define SUSPECT_RESENDS 4u
/* ... before their loss decreases the window further. */
#define LOST_AGAIN 2u

static const cn_time rnr_first = 5 * CN_MS, rnr_most = 100 * CN_MS;

void cn_sender_init(struct cn_peer *p, uint32_t first)
{
	const struct cn_node_config *c = &p->node->config;
	struct cn_rtx_queue queue = p->tx.queue;

	p->tx = (struct cn_sender){ .queue = queue, .rto_at = CN_NEVER };
	cn_rtx_init(&p->tx.queue, first);
	p->tx.ackreq_end = first;
	cn_cc_init(&p->tx.cc, c->initial_cwnd, c->send_window, first);
}

void cn_sender_free(struct cn_peer *p)
{
	cn_rtx_free(&p->tx.queue, &p->node->rings);
}

static cn_time current_rto(const struct cn_peer *p)
{
	const struct cn_node_config *c = &p->node->config;
	cn_time t = cn_rtt_timeout(&p->tx.rtt, c->rto_first, c->rto_min,
				   cn_interarrival_ack_delay(&p->tx.arrivals, c->ack_delay));
	cn_time most = c->dead_after / 3;

	t <<= p->tx.backoff < 6 ? p->tx.backoff : 6;
	return t < most ? t : most;
}

static void release(struct cn_peer *p, struct cn_rtx_frame *f)
{
	if (f->owned) {
		cn_node_put(p->node, f->payload);
		f->owned = false;
	}
	f->payload = NULL;
	if (f->token != NULL) {
		void *token = f->token;

		f->token = NULL;
		p->node->ops->acked(p->node->ctx, token, f->refused);
	}
}

uint32_t cn_sender_push(struct cn_peer *p, const struct cn_tx *tx, bool owned)
{
	struct cn_sender *t = &p->tx;
	struct cn_node *n = p->node;
	struct cn_rtx_frame *f = cn_rtx_at(&t->queue, t->queue.end);
	uint32_t in_flight = cn_rtx_in_flight(&t->queue) + 1, cwnd = t->cc.cwnd;

	*f = (struct cn_rtx_frame){
		.payload = tx->payload,
		.token = tx->token,
		.sent_at = n->now,
		.stream = tx->stream,
		.len = tx->len,
		.type = (uint8_t)tx->type,
		.flags = tx->flags & (CN_FLAG_ACKREQ | CN_FLAG_FIRST | CN_FLAG_LAST),
		.owned = owned,
	};
	/* The frame fills the window, or half of a window whose half is shorter than the interval
	 * of unrequested acknowledgements: only a requested one opens it in time. */
	if (in_flight >= cwnd || (cwnd < 2 * cn_ack_every(n) && in_flight == (cwnd + 1) / 2)) {
		f->flags |= CN_FLAG_ACKREQ;
	}
	cn_interarrival_sample(&t->arrivals, n->now, n->config.dead_after / 6);
	if (t->rto_at == CN_NEVER) {
		t->rto_at = n->now + current_rto(p);
	}
	t->queue.next++;
	p->data_sent++;
	n->counters.data_sent++;
	return t->queue.end++;
}

void cn_sender_ack_requested(struct cn_peer *p, uint32_t seq)
{
	if (!cn_serial_before(seq, p->tx.ackreq_end)) {
		p->tx.ackreq_end = seq + 1;
	}
}

/* A peer that is not ready would mistake the request for the end of the RNR timeout. */
void cn_sender_request_ack(struct cn_peer *p)
{
	if (p->state == CN_PEER_UP && p->tx.rnr_until == 0) {
		p->ackreq_due = true;
		cn_peer_ready(p);
	}
}

static void sample_loss(struct cn_peer *p, bool lost)
{
	struct cn_node *n = p->node;

	n->loss -= n->loss / 32;
	n->loss += lost ? 65536 / 32 : 0;
	cn_liveness_sample_loss(p, lost);
}

void cn_sender_ack(struct cn_peer *p, uint32_t ack)
{
	struct cn_sender *t = &p->tx;
	struct cn_rtx_queue *q = &t->queue;
	cn_time sample = 0;
	uint32_t acked, in_flight = cn_rtx_in_flight(q);

	if (!cn_serial_within(q->una, ack, q->end) || ack == q->una) {
		return;
	}
	acked = ack - q->una;
	for (uint32_t seq = q->una; seq != ack; seq++) {
		struct cn_rtx_frame *f = cn_rtx_at(q, seq);

		sample = f->resent ? 0 : p->node->now - f->sent_at;
		sample_loss(p, f->resent);
		release(p, f);
	}
	q->una = ack;
	if (cn_serial_before(t->ackreq_end, ack)) {
		t->ackreq_end = ack;
	}
	if (cn_serial_before(q->next, ack)) {
		q->next = ack;
		cn_rtx_skip_sacked(q);
	}
	if (sample != 0) {
		cn_rtt_sample(&t->rtt, sample);
	}
	t->backoff = t->una_resends = 0;
	t->una_answered = false;
	t->rnr_until = t->rnr_wait = 0;
	cn_cc_acked(&t->cc, acked, ack, in_flight, p->node->config.send_window);
	t->rto_at = q->una == q->end ? CN_NEVER : p->node->now + current_rto(p);
	if (q->una == q->end) {
		cn_rtx_trim(q, &p->node->rings);
	}
	cn_peer_reschedule(p);
	if (q->next != q->end || p->control_first != NULL) {
		cn_peer_ready(p);
	}
}

/* Removes all frames from the global window: refused or lost. */
static void leave_network(struct cn_peer *p)
{
	const struct cn_node *n = p->node;
	struct cn_sender *t = &p->tx;

	for (uint32_t seq = t->queue.una; seq != t->queue.end; seq++) {
		struct cn_rtx_frame *f = cn_rtx_at(&t->queue, seq);

		if (!f->refused && f->token != NULL && n->ops->refused != NULL) {
			n->ops->refused(n->ctx, f->token);
			f->refused = true;
		}
	}
}

/* Retransmits from the first unacknowledged frame, except sacked ones. If the first one needs room
 * in the global window again, those behind it leave the window, too: they must not fill it before
 * the one that they wait for. */
static void go_back(struct cn_peer *p, uint32_t sack)
{
	cn_rtx_sack(&p->tx.queue, sack, p->node->config.reorder);
	p->tx.queue.next = p->tx.queue.una;
	if (cn_rtx_at(&p->tx.queue, p->tx.queue.una)->refused) {
		leave_network(p);
	}
}

/* The peer is alive, but its next frame does not get through, perhaps because of its size. */
static void suspect_path(struct cn_peer *p)
{
	uint32_t bytes = p->node->header + cn_rtx_at(&p->tx.queue, p->tx.queue.una)->len;

	if (p->tx.una_resends >= SUSPECT_RESENDS && bytes > CN_FRAME_MTU_MIN) {
		cn_path_suspect(p, bytes);
	}
}

void cn_sender_nak(struct cn_peer *p, uint32_t sack)
{
	struct cn_sender *t = &p->tx;
	struct cn_node *n = p->node;
	const struct cn_rtx_frame *lost;

	if (t->queue.una == t->queue.end) {
		return;
	}
	t->rnr_until = 0;
	lost = cn_rtx_at(&t->queue, t->queue.una);
	if (lost->type == CN_TYPE_COLL && n->ops->lost != NULL) {
		n->ops->lost(n->ctx, lost->token);
	}
	/* Every NAK restarts the timer, so no timeout decreases a window that is itself the reason
	 * why the first frame is lost each time it is retransmitted. */
	if (t->una_resends >= LOST_AGAIN) {
		cn_cc_timeout(&t->cc, t->queue.una, t->queue.end);
	} else {
		cn_cc_loss(&t->cc, t->queue.una, t->queue.end);
	}
	suspect_path(p);
	go_back(p, sack);
	cn_peer_ready(p);
	t->rto_at = p->node->now + current_rto(p);
	cn_peer_reschedule(p);
}

/* Not a loss, and no evidence about the path. The receiver emptied its reorder buffer. */
void cn_sender_rnr(struct cn_peer *p)
{
	struct cn_sender *t = &p->tx;

	if (t->queue.una == t->queue.end) {
		return;
	}
	t->rnr_wait = t->rnr_wait == 0 ? rnr_first : cn_min_time(t->rnr_wait * 2, rnr_most);
	t->rnr_until = p->node->now + t->rnr_wait;
	go_back(p, 0);
	leave_network(p);
	t->backoff = 0;
	t->rto_at = t->rnr_until;
	cn_peer_reschedule(p);
}

void cn_sender_ready(struct cn_peer *p)
{
	p->tx.rnr_wait = 0;
	cn_sender_timeout(p);
	cn_peer_reschedule(p);
}

bool cn_peer_rnr_received(const struct cn_peer *p)
{
	return p->tx.rnr_wait != 0;
}

/* Random jitter of a repeated timeout: up to a quarter of the RTO earlier. Otherwise senders that
 * lost frames in one port at the same time would fill it repeatedly at the same time. */
static cn_time jitter(const struct cn_peer *p, cn_time rto)
{
	uint64_t state = (uint64_t)p->tx.queue.una << 32 | p->tx.backoff;

	return p->tx.backoff > 0 ? (cn_time)(cn_random(&state) % ((uint64_t)rto / 4 + 1)) : 0;
}

/* True if the peer has sent a frame of the session. */
static bool was_heard(const struct cn_peer *p)
{
	return p->live.last_session_rx != 0;
}

/*
 * True if frames in flight yield the global window to others after a timeout. While a team is not
 * ready at the peer, the peer sends nothing and queues what arrives. If such frames filled the
 * window meanwhile, they could block the frames that the peer needs to become ready.
 */
static bool yields_window(const struct cn_peer *p)
{
	return !was_heard(p) && cn_node_window(p->node)->blocked;
}

void cn_sender_timeout(struct cn_peer *p)
{
	struct cn_sender *t = &p->tx;
	cn_time rto;

	if (t->rnr_until != 0) {
		t->rnr_until = 0;
	} else if (!cn_rtx_at(&t->queue, t->queue.una)->refused) { /* else nothing is in flight */
		p->node->counters.timeouts++;
		suspect_path(p);
		if (++t->backoff > max_retries && t->backoff > cn_peer_min_tries(p)) {
			cn_peer_down(p, CN_PEER_SILENT);
			return;
		}
		cn_cc_timeout(&t->cc, t->queue.una, t->queue.end);
		if (yields_window(p)) {
			go_back(p, 0);
			leave_network(p);
			t->rnr_until = t->rto_at = p->node->now + rnr_first;
			return;
		}
	}
	go_back(p, 0);
	cn_peer_ready(p);
	rto = current_rto(p);
	t->rto_at = p->node->now + rto - jitter(p, rto);
}

void cn_sender_advance(struct cn_peer *p)
{
	p->tx.queue.next++;
	cn_rtx_skip_sacked(&p->tx.queue);
}

bool cn_sender_may_resend(struct cn_peer *p)
{
	struct cn_rtx_frame *f = cn_rtx_at(&p->tx.queue, p->tx.queue.next);
	struct cn_node *n = p->node;

	/* Frames that yielded stay out of the window: of several such sessions one would always
	 * occupy it. At most cwnd frames are sent per timeout, which is then the least. */
	if (f->refused && !was_heard(p)) {
		return true;
	}
	if (f->refused && f->token != NULL && !n->ops->resend(n->ctx, f->token, &f->flags)) {
		return false;
	}
	f->refused = false;
	return true;
}

bool cn_sender_retransmits(const struct cn_peer *p)
{
	const struct cn_sender *t = &p->tx;

	return t->queue.next != t->queue.end && t->rnr_until == 0 &&
	       t->queue.next - t->queue.una < t->cc.cwnd;
}

bool cn_sender_is_open(const struct cn_peer *p)
{
	const struct cn_sender *t = &p->tx;

	return t->queue.next == t->queue.end && t->rnr_until == 0 &&
	       cn_rtx_in_flight(&t->queue) < t->cc.cwnd;
}

void cn_sender_drop_all(struct cn_peer *p)
{
	struct cn_sender *t = &p->tx;

	while (t->queue.una != t->queue.end) {
		release(p, cn_rtx_at(&t->queue, t->queue.una++));
	}
	cn_rtx_trim(&t->queue, &p->node->rings);
	t->queue.next = t->ackreq_end = t->queue.end;
	t->rto_at = CN_NEVER;
	t->rnr_until = 0;
}
