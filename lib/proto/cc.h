/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control towards one peer: slow start, congestion avoidance and one decrease per window
 * of data, as in RFC 5681 and NewReno, counted in frames.
 *
 * Deviations: the first window is configured (initial_cwnd); cwnd never falls below 2; after a loss
 * without a timeout cwnd is half of the frames in flight, but not less than half of cwnd or 8,
 * whichever is smaller, because a flight may be small for want of data and not for want of room;
 * retransmissions that are lost decrease it again (RFC 5681, 4.3) only after the second one; slow
 * start adds one frame for each acknowledged one, and grows only while at least half of cwnd is in
 * use (compare RFC 7661); an idle time does not decrease cwnd.
 *
 * Invariant: 2 <= cwnd <= the Go-Back-N window.
 */
#ifndef CN_CC_H
#define CN_CC_H

#include <stdint.h>

struct cn_cc {
	uint32_t cwnd;	     /* congestion window: frames that may be in flight */
	uint32_t ssthresh;   /* slow start below it, congestion avoidance from it on */
	uint32_t cwnd_count; /* congestion avoidance: frames acknowledged since the last increase */
	uint32_t recover;    /* losses before this sequence number belong to the last decrease */
};

void cn_cc_init(struct cn_cc *c, uint32_t initial_cwnd, uint32_t send_window, uint32_t seq);
/* `acked` frames were acknowledged up to `ack`, when `in_flight` were in flight. */
void cn_cc_acked(struct cn_cc *c, uint32_t acked, uint32_t ack, uint32_t in_flight,
		 uint32_t send_window);
/* Frame `una` was lost, `end` was to be sent next. */
void cn_cc_loss(struct cn_cc *c, uint32_t una, uint32_t end);
/* The retransmission timer expired, or frame `una` was lost in several retransmissions. */
void cn_cc_timeout(struct cn_cc *c, uint32_t una, uint32_t end);

#endif
