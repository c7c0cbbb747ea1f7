/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of clients.
 *
 * Only the loop closes a client. Until then one that is marked for close is neither read nor
 * written, and its state stays as it is. One that was closed may be kept with its memory, as long
 * as its process lives (still_reads()): it is not connected any more.
 *
 * A client may have a thousand teams, and to leave one on 64 nodes takes 40 us and sends 190
 * frames, which takes 200. So clients are closed in steps, of which a turn of the loop takes as
 * many as it has time for, and one at least. Those that are marked leave a team each by turns, so
 * that the other nodes soon know the first of each. Other clients of the user who ask for a team,
 * an endpoint or memory meanwhile wait: what those who go still have may be what they ask for.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* of headers before Linux 5.3 */
#endif

#define LET_GO (CN_MSG_TEAMS + CN_MSG_ENDPOINTS)

/* The n-th of its teams is left, or of its endpoints, behind them, closed. False: it has none
 * there. dead: without its doing so. */
static bool let_go(struct cn_client *c, uint32_t n, bool dead)
{
	const uint32_t e = n - CN_MSG_TEAMS;

	if (n < CN_MSG_TEAMS && c->teams[n] != NULL) {
		cn_client_release_team(c, n);
		cn_team_leave(c->teams[n], c->daemon->now, dead);
		c->teams[n] = NULL;
		cn_bit_set(c->lost_teams, n);
		return true;
	}
	if (n >= CN_MSG_TEAMS && c->endpoints[e] != NULL) {
		cn_endpoint_close(c->endpoints[e], c->daemon->now);
		cn_quota_give(c->daemon, c->user, CN_QUOTA_ENDPOINTS, 1);
		c->endpoints[e] = NULL;
		cn_bit_set(c->lost_endpoints, e);
		return true;
	}
	return false;
}

void cn_client_detach(struct cn_client *c)
{
	for (uint32_t n = 0; n < LET_GO; n++) {
		let_go(c, n, false);
	}
	if (c->call.op != NULL) {
		cn_call_make(c, &c->call); /* it fails */
	}
}

/* A client that is still in teams has died, or might as well have. False: it has none left. */
static bool let_next_go(struct cn_client *c)
{
	while (c->let_go < LET_GO) {
		if (let_go(c, c->let_go++, true)) {
			return true;
		}
	}
	return false;
}

/* From here on, c->fd tells of the end of its process; -1: that has ended, or nothing can tell. */
static void watch_process(struct cn_daemon *d, struct cn_client *c)
{
	struct pollfd p = { .events = POLLIN };

	c->fd = p.fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->fd >= 0 && cn_event_add_client(d, c) != COLLNET_OK) {
		close(c->fd);
		c->fd = -1;
	}
	c->ended = c->fd < 0 || poll(&p, 1, 0) != 0;
	if (c->fd < 0 && c->pid > 0 && errno != ESRCH && errno != ENOSYS &&
	    cn_user_may_log(d, c->user)) {
		cn_log(COLLNET_LOG_WARNING,
		       "process %ld cannot be watched: it loses the memory that it shares with "
		       "collnetd: %s",
		       (long)c->pid, cn_strerror(errno));
	}
}

/* It has no teams and endpoints any more. */
static void disconnect(struct cn_daemon *d, struct cn_client *c)
{
	cn_call_drop(c);
	cn_client_release_all(c);
	cn_client_rings_close(c);
	/* A keeper may hold the socket for a while, and so would epoll. */
	cn_event_remove_client(d, c);
	cn_receive_close(d, c->fd);
	c->fd = -1;
	c->left = c->ended = true;
	c->user->going--;
	d->nclients--;
	d->nleft++;
	if (c->bytes > 0 && d->memory.usage_fd >= 0) {
		watch_process(d, c);
	}
}

/*
 * A process that lost its connection, or gave it up, may still read what it received. Where the
 * daemon clears memory that it lets go of (mapping.c), that of such a process stays until the
 * process ends, and its user is charged for it.
 */
static bool still_reads(const struct cn_client *c)
{
	return !c->ended && c->daemon->memory.usage_fd >= 0;
}

static void forget(struct cn_daemon *d, struct cn_client *c)
{
	for (uint32_t i = 0; i <= CN_MSG_RINGS; i++) {
		cn_mapping_drop(c, i);
	}
	if (c->fd >= 0) {
		cn_event_remove_client(d, c); /* a keeper may hold this one, too */
		close(c->fd);
	}
	cn_quota_give(d, c->user, CN_QUOTA_CONNECTIONS, 1);
	free(c);
	d->nleft--;
}

/* A step of the end of the client at this place, if it is marked. False: there is none to do. */
static bool close_more(struct cn_daemon *d, uint32_t i)
{
	struct cn_client *c = d->clients[i];

	if (c == NULL || !c->marked || (c->left && still_reads(c))) {
		return false;
	}
	if (!c->left && let_next_go(c)) {
		return true;
	}
	if (!c->left) {
		disconnect(d, c);
	}
	if (!still_reads(c)) {
		d->clients[i] = NULL;
		forget(d, c);
	}
	return true;
}

void cn_client_close_marked(struct cn_daemon *d)
{
	bool over = false;

	while (d->marked_clients && !over) {
		d->marked_clients = false; /* closing one can mark another */
		for (uint32_t n = 0; n < CN_CLIENTS_MAX && !over; n++) {
			if (close_more(d, d->close_next++ % CN_CLIENTS_MAX)) {
				d->marked_clients = true;
				over = d->closing_ends != 0 && cn_now() >= d->closing_ends;
			}
		}
	}
}
