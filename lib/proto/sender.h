/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Go-Back-N sender towards one peer: retransmission queue, congestion control, retransmission
 * timer, and the reaction to acknowledgements.
 */
#ifndef CN_SENDER_H
#define CN_SENDER_H

#include "proto/cc.h"
#include "proto/interarrival.h"
#include "proto/rtt.h"
#include "proto/rtx_queue.h"

struct cn_peer;
struct cn_tx;

struct cn_sender {
	struct cn_rtx_queue queue;
	struct cn_cc cc;
	struct cn_rtt rtt;
	struct cn_interarrival arrivals; /* inter-arrival time of new frames */
	cn_time rto_at;			 /* retransmission timeout; CN_NEVER: nothing in flight */
	uint32_t backoff;		 /* doublings of the timeout since the last progress */
	/* Path MTU: retransmissions of frame `una`, each after a frame of the peer that does not
	 * acknowledge it; and whether such a frame came since the last one. */
	uint32_t una_resends;
	bool una_answered;
	/* One past the last frame with an ACK request; at least una. */
	uint32_t ackreq_end;
	cn_time rnr_until;	 /* end of the RNR timeout; 0: the receiver is ready */
	cn_time rnr_wait;	 /* last RNR timeout; doubles */
	cn_time stale_ack_since; /* first ACK of less than una in a row; 0: none */
};

/* A session begins: the first frame gets number `first`. */
void cn_sender_init(struct cn_peer *p, uint32_t first);
/* Appends a new frame and returns its number. There is room: cn_rtx_reserve(). */
uint32_t cn_sender_push(struct cn_peer *p, const struct cn_tx *tx, bool owned);
void cn_sender_free(struct cn_peer *p);

/* An ACK request for the frames up to `seq` is being sent. */
void cn_sender_ack_requested(struct cn_peer *p, uint32_t seq);
/* Requests an acknowledgement of the frames in flight by an ACK frame. */
void cn_sender_request_ack(struct cn_peer *p);

/* A cumulative acknowledgement: all frames before `ack` were accepted. */
void cn_sender_ack(struct cn_peer *p, uint32_t ack);
/* A negative acknowledgement with the CN_SACK_... field of the frame. */
void cn_sender_nak(struct cn_peer *p, uint32_t sack);
/* Receiver not ready: it has no buffer. */
void cn_sender_rnr(struct cn_peer *p);
/* The receiver is ready again. */
void cn_sender_ready(struct cn_peer *p);
/* rto_at has passed: the retransmission timeout, or the end of the RNR timeout. */
void cn_sender_timeout(struct cn_peer *p);

/* True if frame `next` is due for retransmission. */
bool cn_sender_retransmits(const struct cn_peer *p);
/* True if the global window admits it, if it was refused; it counts as in flight then. */
bool cn_sender_may_resend(struct cn_peer *p);
/* It was retransmitted. */
void cn_sender_advance(struct cn_peer *p);
/* True if new frames may be sent: no retransmission is due, and the window is open. */
bool cn_sender_is_open(const struct cn_peer *p);
/* The session ends: returns every token. */
void cn_sender_drop_all(struct cn_peer *p);

#endif
