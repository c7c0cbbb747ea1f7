/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The global window of Tam and Wang, section 3.2: one a node, over all peers and operations.
 *
 * Each operation keeps a flight, the eta of Algorithm 2: a data frame sent for the first time adds
 * one, a data frame of the operation accepted for the first time takes one away. Frames sent again
 * and frames that come twice change nothing, so a lost frame leaks nothing: it is taken away when
 * its replacement arrives. Because what a node still has in flight can also never be more than
 * what is not acknowledged, eta is the smaller of the two; this is what lets operations go on that
 * send more than they receive (the paper's exchange never does). A node that is behind has a
 * negative difference and may catch up, as in the paper; it counts as 0 in the sum.
 *
 * Invariant: the sum of all flights' eta is at most the limit, whenever a frame was sent under it.
 */
#ifndef CN_WINDOW_H
#define CN_WINDOW_H

#include "util/util.h"

struct cn_window {
	uint32_t limit; /* W_g; COLLNET_WINDOW_OFF: none */
	uint32_t now;	/* sum of the flights' eta */
	uint32_t peak;
};

struct cn_flight {
	uint64_t sent, received, unacked;
	uint32_t eta;	/* this flight's part of the sum */
	uint32_t since; /* frames sent since one was received or acknowledged */
	bool by_acks;	/* eta is what is not acknowledged: data that comes in says nothing of it */
};

/* Whether one more frame may go under the node's limit and the operation's own. */
bool cn_window_open(const struct cn_window *w, uint32_t own_limit);
/*
 * A frame was sent for the first time. True: nothing has come back for a whole window, so the
 * frame should ask for an acknowledgement, which is the only clock of a one-way flight.
 */
bool cn_flight_sent(struct cn_flight *f, struct cn_window *w, uint32_t own_limit);
void cn_flight_received(struct cn_flight *f, struct cn_window *w);
void cn_flight_acked(struct cn_flight *f, struct cn_window *w, uint64_t frames);
/* The operation is over: its part leaves the sum. */
void cn_flight_end(struct cn_flight *f, struct cn_window *w);

#endif
