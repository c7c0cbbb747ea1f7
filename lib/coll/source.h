/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources of frames: operations, and the messages of an endpoint. The transport asks the engine for
 * the next frame, and the engine asks its active sources round robin, with a quantum.
 */
#ifndef CN_SOURCE_H
#define CN_SOURCE_H

#include "coll/turns.h"
#include "proto/adaptive_window.h"
#include "proto/node.h"
#include "proto/global_window.h"

struct cn_source {
	/* The next frame, with a token that points to this; false: none now. May end the source. */
	bool (*pull)(struct cn_source *s, cn_time now, struct cn_tx *out);
	/* A frame of it was acknowledged, or never will be; `flight` has been updated. May end the
	 * source. */
	void (*acked)(struct cn_source *s);
	struct cn_flight flight;	     /* its frames in flight, for the global window */
	struct cn_adaptive_window *adaptive; /* the window that limits them; NULL: fixed window */
	bool window_closed;		     /* at the last pull, when it may have had a frame */
	struct cn_turn turn;		     /* while it is active */
};

struct cn_source_ring {
	struct cn_turn *current; /* the next one to pull from; NULL: none is active */
	uint32_t n;
	uint32_t quantum_used; /* frames sent in a row by the current one */
};

void cn_source_start(struct cn_source_ring *r, struct cn_source *s);
/* Leaves the ring and the window. Its frames must be acknowledged, detached or abandoned. */
void cn_source_stop(struct cn_source_ring *r, struct cn_source *s, struct cn_window *w);
/* Pulls from each source at most once, starting with the current one, which stays current until it
 * has sent `quantum` frames or has none (round robin). */
bool cn_source_pull(struct cn_source_ring *r, cn_time now, uint32_t quantum, struct cn_tx *out);

#endif
