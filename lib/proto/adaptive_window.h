/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A global window that follows from the frames that are lost: where the network is not known, and
 * Eq. 4 can say nothing, and below what Eq. 4 allows, where ports overflow all the same. Congestion
 * control towards each peer (cc.h) cannot do this, as an exchange has few frames in flight to each
 * of many peers, which meet in one port.
 *
 * Slow start up to the first loss. A loss halves the window, once per window of frames, and the
 * window at which it happened is remembered: the window soon grows again to one less, and stays
 * there, as the port is as small as it was. Only after many windows without a loss it tries the
 * size that lost frames, and waits the longer for the next time if that fails again (compare the
 * plateau of CUBIC, RFC 9438).
 */
#ifndef CN_ADAPTIVE_WINDOW_H
#define CN_ADAPTIVE_WINDOW_H

#include "util/util.h"

struct cn_adaptive_window {
	uint32_t window;      /* frames that may be in flight */
	uint32_t least, most; /* what it may shrink and grow to */
	uint32_t lossy;	      /* the window that lost frames; UINT32_MAX: none did */
	uint32_t probe_wait;  /* windows without a loss before `lossy` is tried */
	uint64_t acked;	      /* frames since the window changed */
	bool full;	      /* the window was closed since it changed */
	bool decreased;	      /* and since then no window of frames was acknowledged */
};

/* For a network that is not known. */
void cn_adaptive_window_init(struct cn_adaptive_window *w);
/* For one whose ports hold `ports` frames of each node if nothing else uses them, and half of them
 * in any case: what is lost then is not lost in ports. In flight may be `most`. */
void cn_adaptive_window_init_known(struct cn_adaptive_window *w, uint32_t ports, uint32_t most);
/* A source would have sent more. */
void cn_adaptive_window_closed(struct cn_adaptive_window *w);
void cn_adaptive_window_acked(struct cn_adaptive_window *w);
/* A frame was lost that this node had sent, or that was on its way here. */
void cn_adaptive_window_lost(struct cn_adaptive_window *w);

#endif
