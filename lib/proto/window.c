/* SPDX-License-Identifier: BSD-2-Clause */
/* CN_BREAK: tests/sim/broken.h, where tests break it on purpose. */
#include "proto/window.h"

static void recount(struct cn_flight *f, struct cn_window *w)
{
	uint64_t eta = f->sent > f->received ? f->sent - f->received : 0;

	if (f->by_acks || eta > f->unacked) {
		eta = f->unacked;
	}
	w->now = w->now - f->eta + (uint32_t)eta;
	f->eta = (uint32_t)eta;
	if (w->now > w->peak) {
		w->peak = w->now;
	}
}

bool cn_window_open(const struct cn_window *w, uint32_t own_limit)
{
#ifdef CN_BREAK
	own_limit += CN_BREAK(1) && own_limit != COLLNET_WINDOW_OFF;
#endif
	return w->now < w->limit && w->now < own_limit;
}

bool cn_flight_sent(struct cn_flight *f, struct cn_window *w, uint32_t own_limit)
{
	uint32_t limit = own_limit < w->limit ? own_limit : w->limit;

	f->sent++;
	f->unacked++;
	f->since++;
	recount(f, w);
	if (f->by_acks) { /* half a window before it closes, and when it does */
		return f->unacked == (limit + 1) / 2 || f->unacked == limit;
	}
	/* Once a window has gone out and nothing came, ask every half window, to keep it moving. */
	if (limit == COLLNET_WINDOW_OFF || limit == 0 || f->since < limit) {
		return false;
	}
	return (f->since - limit) % ((limit + 1) / 2) == 0;
}

void cn_flight_received(struct cn_flight *f, struct cn_window *w)
{
	f->received++;
	f->since = 0;
	recount(f, w);
}

void cn_flight_acked(struct cn_flight *f, struct cn_window *w, uint64_t frames)
{
	f->unacked -= frames;
	recount(f, w);
}

void cn_flight_end(struct cn_flight *f, struct cn_window *w)
{
#ifdef CN_BREAK
	if (!CN_BREAK(3) || f->unacked == 0)
#endif
		w->now -= f->eta;
	f->eta = 0;
}
