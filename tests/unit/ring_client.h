/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients with rings, and as much of a daemon as they need, for tests of daemon/. */
#ifndef TESTS_RING_CLIENT_H
#define TESTS_RING_CLIENT_H

#include "daemon/daemon.h"

#define RING_CLIENT_BYTES ((CN_MSG_RINGS_BYTES + 4095) / 4096 * 4096)

/* The daemon's end, and its own. */
struct ring_client {
	struct cn_client *client;
	int fd;
	void *memory;
	struct cn_shm_ring requests, completions;
};

/* Zeroed but for what clients need; freed by free(). */
struct cn_daemon *ring_daemon(void);
/* Its team 0 went with an interface: requests on it end at once, and need no engine. */
void ring_client_connect(struct ring_client *e, struct cn_daemon *d, uid_t uid);
/* After the daemon has closed it. */
void ring_client_free(struct ring_client *e);
/* Sends a message, and has the daemon read. */
void ring_client_send(struct ring_client *e, const void *m, size_t len);
/* The next message on the socket; its type, 0: none. A descriptor that it brings is in *fd. */
uint32_t ring_client_recv(struct ring_client *e, int *fd);
/* A request in its ring. */
enum cn_shm_ring_status ring_client_post(struct ring_client *e, uint32_t tag, uint32_t team);
/* Takes the next completion, with this status. */
void ring_client_expect_done(struct ring_client *e, uint32_t tag, int status);

#endif
