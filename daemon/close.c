/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of clients.
 *
 * Only the loop closes a client. Until then a client marked for close is neither read nor written,
 * and its state does not change.
 *
 * A client may have a thousand teams, and leaving one on 64 nodes takes 40 us and sends 190
 * frames, which takes 200. Clients are therefore closed in steps: an iteration of the loop makes at
 * least one and as many as it has time for. Marked clients leave one team each in turn, so that the
 * other nodes soon learn of each client. Meanwhile the user's other clients wait if they request a
 * team, an endpoint or memory: the closing clients may still have what they request.
 */
#include "daemon/daemon.h"

#include <stdlib.h>

#include "util/clock.h"

#define MEMBERSHIPS (CN_MSG_TEAMS + CN_MSG_ENDPOINTS)

/* Leaves the n-th of its teams, or closes the n-th of its endpoints, which follow the teams. False:
 * there is none. dead: the client did not leave it itself. */
static bool drop_membership(struct cn_client *c, uint32_t n, bool dead)
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
		cn_quota_uncharge(c->daemon, c->user, CN_QUOTA_ENDPOINTS, 1);
		c->endpoints[e] = NULL;
		cn_bit_set(c->lost_endpoints, e);
		return true;
	}
	return false;
}

void cn_client_detach(struct cn_client *c)
{
	for (uint32_t n = 0; n < MEMBERSHIPS; n++) {
		drop_membership(c, n, false);
	}
	if (c->call.op != NULL) {
		cn_call_make(c, &c->call); /* it fails */
	}
}

/* A client that is still in teams counts as dead. False: it has no team or endpoint left. */
static bool drop_next_membership(struct cn_client *c)
{
	while (c->dropped < MEMBERSHIPS) {
		if (drop_membership(c, c->dropped++, true)) {
			return true;
		}
	}
	return false;
}

/* Its teams and endpoints have been dropped. */
static void forget(struct cn_daemon *d, struct cn_client *c)
{
	cn_call_drop(c);
	cn_client_release_all(c);
	cn_client_rings_close(c);
	/* A reaper may hold the socket for a while, and so would epoll. */
	cn_event_remove_client(d, c);
	cn_receive_close(d, c->fd);
	for (uint32_t i = 0; i <= CN_MSG_RINGS; i++) {
		cn_mapping_drop(c, i);
	}
	cn_quota_uncharge(d, c->user, CN_QUOTA_CONNECTIONS, 1);
	c->user->closing--;
	d->nclients--;
	free(c);
}

/* One step of the close of the client with this index, if it is marked. False: there is none. */
static bool close_more(struct cn_daemon *d, uint32_t i)
{
	struct cn_client *c = d->clients[i];

	if (c == NULL || !c->marked) {
		return false;
	}
	if (!drop_next_membership(c)) {
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
