/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inter-arrival time of frames in one direction. In an exchange of many nodes each peer sends
 * once per round, and data goes back one round later. The receiver delays its acknowledgement by
 * this time, and the sender, which sees the same round, extends its retransmission timeout.
 */
#ifndef CN_INTERARRIVAL_H
#define CN_INTERARRIVAL_H

#include "util/util.h"

struct cn_interarrival {
	cn_time last;	  /* frame; 0: none yet */
	cn_time interval; /* between the last two; 0: unknown, or longer than `most` */
};

static inline void cn_interarrival_sample(struct cn_interarrival *a, cn_time now, cn_time most)
{
	cn_time interval = now - a->last;

	a->interval = a->last != 0 && interval <= most ? interval : 0;
	a->last = now;
}

/* How long an acknowledgement may wait to be piggybacked on data. */
static inline cn_time cn_interarrival_ack_delay(const struct cn_interarrival *a, cn_time ack_delay)
{
	cn_time delay = a->interval + a->interval / 2;

	return delay > 2 * ack_delay ? delay : 2 * ack_delay;
}

#endif
