/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A global window that adapts to losses: where the network is not known, so that Eq. 4 does not
 * apply, and below the window of Eq. 4 where ports overflow nevertheless. Congestion control per
 * peer (cc.h) cannot do this, because an exchange has few frames in flight to each of many peers,
 * and these meet in one port.
 *
 * Slow start runs up to the first loss. A loss halves the window, once per window of frames, and
 * records the window at which it happened. The window soon grows to one less and stays there,
 * because the port has not grown. Only after many windows without a loss does it probe the size
 * that lost frames; if the probe fails, the wait before the next one doubles (compare the plateau
 * of CUBIC, RFC 9438).
 */
#ifndef CN_ADAPTIVE_WINDOW_H
#define CN_ADAPTIVE_WINDOW_H

#include "util/util.h"

struct cn_adaptive_window {
	uint32_t window;      /* limit of frames in flight */
	uint32_t least, most; /* bounds of `window` */
	uint32_t lossy;	      /* window at the last loss; UINT32_MAX: no loss yet */
	uint32_t probe_wait;  /* windows without a loss before `lossy` is probed */
	uint64_t acked;	      /* frames acknowledged since the window changed */
	bool full;	      /* the window was closed since it changed */
	bool decreased;	      /* decreased, and no full window acknowledged since */
};

/* For an unknown network. */
void cn_adaptive_window_init(struct cn_adaptive_window *w);
/*
 * For a network whose ports hold `ports` frames per node when nothing else uses them, and half as
 * many in any case. The window does not shrink below that half, because losses in smaller windows
 * do not come from ports. It is at most `most`.
 */
void cn_adaptive_window_init_known(struct cn_adaptive_window *w, uint32_t ports, uint32_t most);
/* The window kept a source from sending. */
void cn_adaptive_window_closed(struct cn_adaptive_window *w);
void cn_adaptive_window_acked(struct cn_adaptive_window *w);
/* A frame from or to this node was lost. */
void cn_adaptive_window_lost(struct cn_adaptive_window *w);

#endif
