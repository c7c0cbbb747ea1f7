/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Go-Back-N receiver from one peer: the frame that it expects, the reorder buffer, delayed
 * acknowledgements and the detection of losses by gaps.
 */
#ifndef CN_RECEIVER_H
#define CN_RECEIVER_H

#include "proto/interarrival.h"
#include "proto/reorder.h"

struct cn_peer;

struct cn_receiver {
	uint32_t expected; /* RCV.NXT */
	struct cn_reorder reorder;

	/* acknowledgements */
	uint32_t unacked; /* frames accepted since the last one */
	cn_time ack_at;	  /* delayed one; CN_NEVER: none */
	bool reply_soon;  /* cn_peer_reply_soon() */
	bool no_reply;	  /* cn_peer_no_reply() */
	struct cn_interarrival arrivals;

	/* the gap before `expected` */
	bool nak_sent;		    /* for it */
	bool overflow;		    /* a frame beyond it was dropped: no SACK, retransmit all */
	uint32_t last_out_of_order; /* sequence number of the last out-of-order frame */
	uint32_t announced; /* all frames before it were sent, by the peer's last acknowledgement */
	/* Reordering timeout or, after a NAK, its repetition. CN_NEVER: no frame is known to be
	 * missing. */
	cn_time nak_at;
	cn_time nak_wait; /* NAK repetition interval; doubles */

	bool rnr; /* the last frame was refused: no buffer */
};

/* A session begins: the first frame has number `first`. */
void cn_receiver_init(struct cn_peer *p, uint32_t first);
void cn_receiver_free(struct cn_peer *p);
/* A reliable frame of the session was received. */
void cn_receiver_data(struct cn_peer *p, const struct cn_wire *w, const uint8_t *payload);
/* An acknowledgement of the peer was received: it has sent all frames before number `next`. */
void cn_receiver_announced(struct cn_peer *p, uint32_t next);
void cn_receiver_nak_timeout(struct cn_peer *p); /* nak_at has come */
void cn_receiver_acked(struct cn_peer *p);	 /* an acknowledgement is being sent */
/* The CN_SACK_... field of a negative acknowledgement. */
uint32_t cn_receiver_sack(const struct cn_peer *p);
/* Empties the reorder buffer. */
void cn_receiver_drop_all(struct cn_peer *p);

#endif
