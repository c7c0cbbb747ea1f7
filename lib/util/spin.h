/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adaptive spinning: divides a wait into polling and sleeping. Pure: the time is an argument.
 *
 * A wait polls before it sleeps if the previous one was short, because sleep and wake-up cost more
 * processor time and latency than a short poll. So a long wait costs at most CN_SPIN_MAX of polling
 * once, and the following ones none. Since a slow wake-up can make every wait look long, one in
 * CN_SPIN_PROBE polls nevertheless.
 *
 * A polling process calls sched_yield() after each poll: the process it waits for may need this
 * processor. If a computing process needs it, too, that call can last for milliseconds, whatever
 * its priority. After a call of CN_SPIN_LOST or longer, polling is suspended for CN_SPIN_SHARE
 * times as long, and for twice that time if it soon recurs, up to CN_SPIN_BAR_MAX. The share is
 * small because an idle machine also preempts occasionally.
 */
#ifndef CN_SPIN_H
#define CN_SPIN_H

#include "util/util.h"

#define CN_SPIN_MAX	(50 * CN_US)
#define CN_SPIN_PROBE	64u
#define CN_SPIN_LOST	(500 * CN_US)
#define CN_SPIN_SHARE	8u
#define CN_SPIN_BAR_MAX (30000 * CN_MS)

struct cn_spin {
	bool waiting;
	bool polling;	    /* this wait polled at `last` */
	bool short_wait;    /* the last wait was */
	uint8_t long_waits; /* long waits since then, modulo CN_SPIN_PROBE */
	cn_time since;	    /* if waiting: start of the wait */
	cn_time last;
	cn_time not_before; /* no polls until then: other processes need the processor */
	cn_time bar;	    /* length of that suspension */
};

/* sched_yield() returned: suspends polling if it took too long. */
static inline void cn_spin_returned(struct cn_spin *s, cn_time now)
{
	const cn_time lost = s->polling ? now - s->last : 0;

	if (lost >= CN_SPIN_LOST) {
		const bool again = now - s->not_before < s->bar;

		s->bar = again && s->bar > CN_SPIN_SHARE / 2 * lost ? 2 * s->bar
								    : CN_SPIN_SHARE * lost;
		s->bar = cn_min_time(s->bar, CN_SPIN_BAR_MAX);
		s->not_before = now + s->bar;
	}
	s->polling = false;
}

/* Nothing to do. True: yield, and poll again; false: sleep. */
static inline bool cn_spin_wait(struct cn_spin *s, cn_time now)
{
	if (!s->waiting) {
		s->waiting = true;
		s->since = now;
	}
	cn_spin_returned(s, now);
	if (s->short_wait && now - s->since < CN_SPIN_MAX && now >= s->not_before) {
		s->polling = true;
		s->last = now;
	}
	return s->polling;
}

/* There is work: ends the wait, if any. */
static inline void cn_spin_over(struct cn_spin *s, cn_time now)
{
	if (!s->waiting) {
		return;
	}
	cn_spin_returned(s, now);
	s->waiting = false;
	s->short_wait = now - s->since < CN_SPIN_MAX;
	s->long_waits = s->short_wait ? 0 : (uint8_t)(s->long_waits + 1u);
	if (s->long_waits == CN_SPIN_PROBE) {
		s->long_waits = 0;
		s->short_wait = true;
	}
}

#endif
