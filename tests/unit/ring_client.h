/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients with rings, and a minimal daemon, for tests of daemon/. */
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

/* Zeroed except what clients need; freed by free(). */
struct cn_daemon *ring_daemon(void);
/* Its team 0 lost its interface: requests on it end at once, without an engine. */
void ring_client_connect(struct ring_client *e, struct cn_daemon *d, uid_t uid);
/* After the daemon has closed it. */
void ring_client_free(struct ring_client *e);
/* Sends a message, and lets the daemon read it. */
void ring_client_send(struct ring_client *e, const void *m, size_t len);
/* Receives the next message on the socket; returns its type, 0: none. *fd is its descriptor. */
uint32_t ring_client_recv(struct ring_client *e, int *fd);
/* Puts a request into its ring. */
enum cn_shm_ring_status ring_client_post(struct ring_client *e, uint32_t tag, uint32_t team);
/* Pops the next completion, and asserts its status. */
void ring_client_expect_done(struct ring_client *e, uint32_t tag, int status);

#endif
