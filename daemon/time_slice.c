/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time slices: one user's requests delay others only briefly, regardless of the number of his
 * connections.
 *
 * A round serves all rings, or all sockets that have messages. In each round a user has
 * CN_TIME_SLICE for all of his clients, and none of his requests begins after that. A request
 * cannot be interrupted, but a thread runs long tasks (node/helper.h). If a request exceeds the
 * slice, its user then waits for the excess time, unless nobody else is connected.
 */
#include "daemon/daemon.h"

#include "util/clock.h"

void cn_slice_new_round(struct cn_daemon *d)
{
	d->slice.round++;
}

bool cn_slice_begin(struct cn_daemon *d, struct cn_user *u)
{
	if (d->slice.round == 0) {
		d->slice.ends = CN_NEVER;
		return true;
	}
	if (u->round != d->slice.round) {
		u->round = d->slice.round;
		u->used_up = 0;
	}
	if (u->used_up >= CN_TIME_SLICE) {
		return false;
	}
	d->slice.began = d->slice.now = cn_now();
	d->slice.ends = d->slice.now + CN_TIME_SLICE - u->used_up;
	if (d->slice.now < u->waits_until) {
		u->used_up = CN_TIME_SLICE;
		return false;
	}
	return true;
}

bool cn_slice_is_over(struct cn_daemon *d)
{
	d->slice.now = cn_now();
	return d->slice.now >= d->slice.ends;
}

bool cn_slice_end(struct cn_daemon *d, struct cn_user *u)
{
	const struct cn_time_slice *s = &d->slice;

	u->used_up += s->now - s->began;
	if (s->now <= s->ends) {
		return s->now == s->ends;
	}
	if (d->nclients > u->used[CN_QUOTA_CONNECTIONS]) {
		u->waits_until = s->now + (s->now - s->ends);
	}
	return true;
}
