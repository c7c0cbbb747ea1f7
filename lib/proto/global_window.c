/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto/global_window.h"

static uint64_t count(const struct cn_flight *f)
{
	uint64_t sent = f->sent - f->refused - f->deferred, unacked = f->unacked - f->refused;
	uint64_t in_flight = sent > f->received ? sent - f->received : 0;

	return f->by_acks || in_flight > unacked ? unacked : in_flight;
}

static void recount(struct cn_flight *f, struct cn_window *w)
{
	const uint32_t limit = f->limit < w->limit ? f->limit : w->limit;
	const uint32_t others = w->in_flight - f->in_flight, before = w->in_flight;
	uint64_t in_flight = count(f);

	while (f->deferred > 0 && others + in_flight < limit) {
		f->deferred--;
		in_flight = count(f);
	}
	w->in_flight = others + (uint32_t)in_flight;
	w->blocked = w->blocked && w->in_flight >= before;
	f->in_flight = (uint32_t)in_flight;
	if (w->in_flight > w->peak) {
		w->peak = w->in_flight;
	}
}

bool cn_window_open(const struct cn_window *w, const struct cn_flight *flight, uint32_t own_limit)
{
	if (flight != NULL && flight->in_flight == 0 && own_limit < w->last) {
		own_limit = w->last;
	}
	return w->in_flight < w->limit && w->in_flight < own_limit;
}

bool cn_flight_sent(struct cn_flight *f, struct cn_window *w, uint32_t own_limit)
{
	uint32_t limit = own_limit < w->limit ? own_limit : w->limit;

	f->sent++;
	f->unacked++;
	f->since++;
	f->limit = w->last = own_limit;
	recount(f, w);
	if (f->by_acks) { /* at half the window, and when any flight's frames close it */
		return f->in_flight == (limit + 1) / 2 || w->in_flight >= limit;
	}
	/* After a full window without data from the peers, request an ACK every half window. */
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

void cn_flight_acked(struct cn_flight *f, struct cn_window *w, uint64_t frames, uint64_t refused)
{
	f->unacked -= frames;
	f->refused -= refused;
	f->deferred += refused;
	recount(f, w);
}

void cn_flight_refused(struct cn_flight *f, struct cn_window *w)
{
	f->refused++;
	recount(f, w);
}

bool cn_flight_resend(struct cn_flight *f, struct cn_window *w)
{
	if (!cn_window_open(w, NULL, f->limit)) {
		w->blocked = true;
		return false;
	}
	f->refused--;
	recount(f, w);
	return true;
}

void cn_flight_end(struct cn_flight *f, struct cn_window *w)
{
	w->in_flight -= f->in_flight;
	w->blocked = w->blocked && f->in_flight == 0;
	f->in_flight = 0;
}
