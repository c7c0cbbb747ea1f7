/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The global window W_g of Tam and Wang, section 3.2: one per node, over all peers and operations.
 *
 * Each operation counts its frames in flight, the eta of Algorithm 2: a data frame sent for the
 * first time adds one, a data frame of the operation accepted for the first time subtracts one.
 * Retransmissions and duplicates change nothing, so a lost frame leaks nothing: it is subtracted
 * when its retransmission arrives. The count is capped by the frames that are not acknowledged,
 * which bound what a node can have in flight; the cap keeps operations going that send more than
 * they receive (the paper's exchange never does). A node that has received more than it has sent
 * has a negative difference, as in the paper; it counts as 0 in the sum.
 *
 * A frame that the receiver refused (RNR) has left the network. It does not count until it is sent
 * again, which takes the same room as a new frame. Otherwise frames of a later operation, which
 * the receiver cannot take yet, would occupy the window that an earlier operation needs, while the
 * receiver waits for that one. If it is acknowledged without having been sent again (another copy
 * was accepted), it counts as sent when there is room: until then no frame of the operation has
 * come back for it, but nothing was sent now.
 *
 * All operations share the sum, so an operation with a small limit would starve while another job
 * with a larger limit keeps more in flight. After a frame of a larger limit, a flight with nothing
 * in flight may send one frame under that limit. Operations of one job need no such rule, as they
 * end one after the other.
 *
 * Invariant: the sum over all flights grows only where a frame is sent, or by deferred ones where
 * there is room; so it is at most the limit.
 */
#ifndef CN_GLOBAL_WINDOW_H
#define CN_GLOBAL_WINDOW_H

#include "util/util.h"

struct cn_window {
	uint32_t limit;	    /* W_g; COLLNET_WINDOW_OFF: none */
	uint32_t in_flight; /* sum over the flights */
	uint32_t peak;	    /* largest in_flight */
	uint32_t last;	    /* operation limit of the last frame sent */
	bool blocked;	    /* a new or refused frame did not fit, and none has left since */
};

/* A flight: the frames of one operation or message that count towards the global window. */
struct cn_flight {
	uint64_t sent, received, unacked;
	uint64_t refused;   /* of `sent` and `unacked`: refused (RNR), not yet retransmitted */
	uint64_t deferred;  /* of `sent`: acknowledged after a refusal, not counted yet for want of
			     * room */
	uint32_t limit;	    /* operation limit of its last frame */
	uint32_t in_flight; /* this flight's share of the sum */
	uint32_t since;	    /* frames sent since the last one received */
	bool by_acks;	    /* in_flight is `unacked`: received data does not clock this flight */
};

/*
 * True if one more frame may be sent under the node's limit and the operation's own. flight: the
 * operation's, if frames of other jobs may fill the window; else NULL.
 */
bool cn_window_open(const struct cn_window *w, const struct cn_flight *flight, uint32_t own_limit);
/*
 * A frame was sent for the first time. True: it should request an acknowledgement, because nothing
 * was received for a full window; a one-way flight is clocked by acknowledgements alone.
 */
bool cn_flight_sent(struct cn_flight *f, struct cn_window *w, uint32_t own_limit);
void cn_flight_received(struct cn_flight *f, struct cn_window *w);
/* `frames` were acknowledged, of which `refused` were refused and not retransmitted. */
void cn_flight_acked(struct cn_flight *f, struct cn_window *w, uint64_t frames, uint64_t refused);
/* The receiver refused a frame. */
void cn_flight_refused(struct cn_flight *f, struct cn_window *w);
/* A refused frame is due for retransmission. True: there is room, and it counts again. */
bool cn_flight_resend(struct cn_flight *f, struct cn_window *w);
/* The operation ended: removes its frames from the sum. */
void cn_flight_end(struct cn_flight *f, struct cn_window *w);

#endif
