/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon that is the test: a child process that speaks lib/ipc/msg.h and misbehaves. */
#ifndef CN_FAKE_DAEMON_H
#define CN_FAKE_DAEMON_H

#include <sys/un.h>

#include "collnet/collnet.h"
#include "ipc/msg.h"

extern struct sockaddr_un fake_name; /* of its socket */

/* Before the first, and after the last test. */
void fake_begin(void);
void fake_finish(void);

/*
 * Opens a context with a daemon that calls serve() when it has greeted the client, or refuses it.
 * fake_end() closes it, unless it is NULL, and ends the daemon.
 */
int fake_open(void (*serve)(int fd, int arg), int arg, const char *refusal,
	      uint32_t peer_timeout_ms, collnet_t **out);
void fake_end(collnet_t *c);

/* By the daemon: a message that is zero otherwise. */
void fake_respond(int fd, uint32_t type, uint32_t tag);
/* The rings, and the descriptor of their memory, which is handed out later. */
int fake_rings(const struct cn_msg_region *request, bool sealed, struct cn_shm_ring *requests,
	       struct cn_shm_ring *completions);
void fake_hand_out(int fd, uint32_t tag, int memory);

#endif
