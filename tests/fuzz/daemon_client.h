/* SPDX-License-Identifier: BSD-2-Clause */
/* The clients of fuzz_daemon: their sockets and rings, and what they check of the answers. */
#ifndef FUZZ_DAEMON_CLIENT_H
#define FUZZ_DAEMON_CLIENT_H

#include "daemon/daemon.h"

#define CLIENTS 2

struct fixture {
	const uint8_t *data;
	size_t size, at;
	struct cn_daemon *daemon;
	struct cn_task *task; /* that is being run; NULL: none */
	struct {
		struct cn_client *client; /* the daemon's end; NULL: gone */
		int fd;
		bool deaf;
		/* Its rings; broken: it wrote there what it should not, and may get any answer. */
		uint8_t *memory;
		struct cn_shm_ring requests, completions;
		bool broken;
		/* Requests of this number without an answer that was read: more than one where a
		 * deaf client used a number again. */
		uint32_t busy[CN_MSG_REQUESTS];
	} end[CLIENTS];
	struct cn_msg_combined last; /* what answers the last COMBINE */
};

/* Aborts, which is a finding. */
void check(bool ok);
/* The next byte of the input; 0 after its end. */
uint8_t byte(struct fixture *w);

/* A client i, unless there is one. */
void connect_client(struct fixture *w, int i);
/* Closes the client's side. */
void end_client(struct fixture *w, int i);
/* Reads and checks what the daemon sent to clients that are not deaf. */
void read_answers(struct fixture *w);
/* Those that are marked for close go. */
void reap(struct fixture *w);
/* Whether memory waits to be unmapped. */
bool unmaps(const struct cn_daemon *d);
/* A task is begun in one turn and done in the next: what ends in between must not be read by it. */
void run_task(struct fixture *w);
/* Until no call of the client waits for one. */
void settle(struct fixture *w, int i);
/* Client i sends a message, and the daemon serves it. */
void say(struct fixture *w, int i, const void *m, size_t len);
/* The same, with n descriptors, which must not come in. */
void send_with_descriptors(struct fixture *w, int i, const void *m, size_t len, uint32_t n);

/* Client i has its rings made, unless it has them. */
void make_rings(struct fixture *w, int i);
/* As if it had mapped its other regions. */
void seal_regions(struct fixture *w, int i);
/* Client i writes into its rings what it should not: bytes of the input say what and where. */
void scribble(struct fixture *w, int i);

#endif
