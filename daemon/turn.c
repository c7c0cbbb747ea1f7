/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns: what one user requests keeps others waiting for a moment only, whatever the number of his
 * connections.
 *
 * A round serves all rings, or all sockets that have messages. In each a user has CN_TURN for all
 * of his clients, and none of his requests begins after that. A request cannot be interrupted, but
 * what takes long is left to a thread (node/helper.h). As long as it outlasted the turn, its user
 * waits afterwards, unless nobody else is connected.
 */
#include "daemon/daemon.h"

#include "util/clock.h"

void cn_turn_round(struct cn_daemon *d)
{
	d->turn.round++;
}

bool cn_turn_begin(struct cn_daemon *d, struct cn_user *u)
{
	if (d->turn.round == 0) {
		d->turn.ends = CN_NEVER;
		return true;
	}
	if (u->round != d->turn.round) {
		u->round = d->turn.round;
		u->spent = 0;
	}
	if (u->spent >= CN_TURN) {
		return false;
	}
	d->turn.began = d->turn.now = cn_now();
	d->turn.ends = d->turn.now + CN_TURN - u->spent;
	if (d->turn.now < u->waits_until) {
		u->spent = CN_TURN;
		return false;
	}
	return true;
}

bool cn_turn_is_over(struct cn_daemon *d)
{
	d->turn.now = cn_now();
	return d->turn.now >= d->turn.ends;
}

bool cn_turn_end(struct cn_daemon *d, struct cn_user *u)
{
	const struct cn_turn *t = &d->turn;

	u->spent += t->now - t->began;
	if (t->now <= t->ends) {
		return t->now == t->ends;
	}
	if (d->nclients + d->nleft > u->used[CN_QUOTA_CONNECTIONS]) {
		u->waits_until = t->now + (t->now - t->ends);
	}
	return true;
}
