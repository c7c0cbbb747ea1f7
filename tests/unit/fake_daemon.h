/* SPDX-License-Identifier: BSD-2-Clause */
/* A misbehaving daemon: a child process that implements lib/ipc/msg.h. */
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

/* For the daemon: sends a message that is otherwise zero. */
void fake_respond(int fd, uint32_t type, uint32_t tag);
/* Creates the rings; returns the descriptor of their memory, to be sent later. */
int fake_rings(const struct cn_msg_region *request, bool sealed, struct cn_shm_ring *requests,
	       struct cn_shm_ring *completions);
void fake_hand_out(int fd, uint32_t tag, int memory);

#endif
