/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/adaptive_window.h"

#define INITIAL		 4u
#define LEAST		 2u
#define MOST		 65535u
#define TRIAL		 8u /* windows without a loss that validate the size */
#define PROBE_WAIT_FIRST 512u
#define PROBE_WAIT_MIN	 32u
#define PROBE_WAIT_MAX	 2048u

void cn_adaptive_window_init(struct cn_adaptive_window *w)
{
	*w = (struct cn_adaptive_window){
		.window = INITIAL,
		.least = LEAST,
		.most = MOST,
		.lossy = UINT32_MAX,
		.probe_wait = PROBE_WAIT_FIRST,
	};
}

void cn_adaptive_window_init_known(struct cn_adaptive_window *w, uint32_t ports, uint32_t most)
{
	cn_adaptive_window_init(w);
	w->least = ports / 2 + ports % 2;
	w->window = w->most = most;
}

void cn_adaptive_window_closed(struct cn_adaptive_window *w)
{
	w->full = true;
}

/* Acknowledged frames per increase by one. */
static uint64_t frames_to_grow(const struct cn_adaptive_window *w)
{
	uint32_t below;

	if (w->lossy == UINT32_MAX) {
		return 1; /* slow start */
	}
	if (w->window >= w->lossy) {
		return (uint64_t)TRIAL * w->window;
	}
	below = w->lossy - w->window;
	if (below == 1) {
		return (uint64_t)w->probe_wait * w->window;
	}
	return below < 8 ? w->window : 8 * (uint64_t)w->window / below;
}

void cn_adaptive_window_acked(struct cn_adaptive_window *w)
{
	w->acked++;
	if (!w->full || w->acked < frames_to_grow(w)) {
		return;
	}
	w->acked = 0;
	if (w->window >= w->lossy) { /* the probe lost nothing */
		w->lossy = w->window + 1;
		w->probe_wait = w->probe_wait / 2 > PROBE_WAIT_MIN ? w->probe_wait / 2
								   : PROBE_WAIT_MIN;
	} else if (w->window < w->most) {
		w->window++;
		w->full = w->decreased = false;
	}
}

void cn_adaptive_window_lost(struct cn_adaptive_window *w)
{
	if (w->decreased && w->acked < w->lossy) {
		return; /* same window of frames as the last loss */
	}
	if (w->lossy != UINT32_MAX && w->window >= w->lossy) {
		w->probe_wait = w->probe_wait * 2 < PROBE_WAIT_MAX ? w->probe_wait * 2
								   : PROBE_WAIT_MAX;
	}
	w->lossy = w->window;
	w->window = w->window / 2 > w->least ? w->window / 2 : w->least;
	w->acked = 0;
	w->full = false;
	w->decreased = true;
}
