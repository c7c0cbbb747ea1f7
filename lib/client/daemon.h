/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the daemon backend: the socket (socket.c), the rings (rings.c), shared memory
 * (region.c), and the backend's functions on them (daemon.c).
 */
#ifndef CN_CLIENT_DAEMON_H
#define CN_CLIENT_DAEMON_H

#include "client/backend.h"
#include "util/spin.h"

/* A region of memory shared with the daemon. Those of collnet_alloc() have the lower numbers. */
struct cn_region {
	void *p; /* NULL: a free entry */
	uint64_t bytes;
	bool busy; /* of the upper numbers: a request uses it */
};

struct cn_daemon_side {
	int fd; /* -1: none */
	struct cn_descriptor_id fd_id;
	char path[108];
	uint32_t tag;				      /* of the last synchronous request */
	uint64_t bytes;				      /* of all regions */
	bool wants_fd;				      /* the next REPLY may bring one */
	int in_fd;				      /* received with the last message; -1: none */
	struct cn_region regions[CN_MSG_REGIONS + 1]; /* the last: of the rings */
	uint32_t copies; /* upper numbers ever used: those beyond are free */
	struct cn_shm_ring requests, completions; /* from the first team or endpoint on */
	cn_time blocked_at;  /* when the daemon was last seen blocked on a request; 0: never */
	uint32_t sent;	     /* messages on the socket */
	uint32_t unread;     /* outstanding REPLYs that no call waits for */
	uint32_t late_joins; /* of the abandoned ones, on the socket */
	uint32_t abandoned;  /* requests that ended here and are still in the ring */
	uint16_t abandons[CN_MSG_REQUESTS]; /* of them, per number */
	struct cn_spin spin;
	union cn_msg in; /* the last message received */
	/* Liveness of the daemon while calls wait for it (socket.c). */
	bool same_clock;  /* as the daemon's */
	cn_time interval; /* check interval; 0: before WELCOME, when no PING may be sent */
	bool pinged;	  /* a PING has no response yet */
	uint32_t missed;  /* intervals of waiting since the PING */
	cn_time check_at; /* the end of this interval; 0: a message was just received */
	cn_time read_at;  /* when the socket was last polled */
};

/* ---- socket.c ------------------------------------------------------------------------- */

/* Connects and shakes hands; sets c->node. */
int cn_socket_open(struct collnet *c, const char *path, struct cn_err *err);
/* Sends a message. On failure the context is gone. */
int cn_socket_send(struct collnet *c, const void *m, size_t len, struct cn_err *err);
/*
 * Sends a synchronous request and receives messages until its response, of this type, is in d->in.
 * A REPLY with an error is passed on as that error.
 */
int cn_socket_request(struct collnet *c, void *m, size_t len, enum cn_msg_type response,
		      struct cn_err *err);
/* The same, for a REPLY with a descriptor, which is then the caller's; -1: it came without. */
int cn_socket_request_descriptor(struct collnet *c, void *m, size_t len, int *fd,
				 struct cn_err *err);
/*
 * Checks the daemon while a call waits. False: it has been silent for too long, and the context is
 * gone.
 */
bool cn_socket_probe(struct collnet *c, cn_time now);
/* Receives a message that is not a response, if any. False: the context is gone. */
bool cn_socket_poll(struct collnet *c, cn_time now);
/* Receives available messages that no call waits for. */
void cn_socket_drain_unread(struct collnet *c);
/* The daemon is alive: a message was received. */
void cn_socket_received(struct cn_daemon_side *d);
/* Sleeps, without the lock, until the socket has a message, at most until `until`. True: it has
 * one. */
bool cn_socket_sleep(struct collnet *c, cn_time until);
/* Breaks the context because of the daemon. */
void cn_socket_gone(struct collnet *c, int code, const char *what);

/* ---- rings.c --------------------------------------------------------------------------- */

/* Requests the rings from the daemon, unless they exist. */
int cn_rings_open(struct collnet *c, struct cn_err *err);
/* Puts a message into the ring, and wakes the daemon if it sleeps. On failure the context is gone.
 */
int cn_rings_request(struct collnet *c, const void *m, size_t len, struct cn_err *err);
/* The same for a request with a deadline. COLLNET_ELIMIT: too many abandoned requests in the
 * ring. */
int cn_rings_post(struct collnet_request *r, const void *m, size_t len, struct cn_err *err);
/* The request, + 1, that the daemon is blocked on; 0: none. Called during each wait, for
 * is_blocked(). */
uint32_t cn_rings_blocked_on(struct cn_daemon_side *d, cn_time now);
/* Backend functions. */
void cn_rings_late(struct collnet_request *r, cn_time now);
bool cn_rings_are_blocked(struct collnet *c, cn_time now);
/* Processes the completions in the ring. Returns their number; -1: the context is gone. */
int cn_rings_completions(struct collnet *c);
/* Processes completions; waits for the first one until `until` (0: does not wait). */
void cn_rings_progress(struct collnet *c, cn_time until);

/* ---- region.c ------------------------------------------------------------------------- */

int cn_region_create(struct collnet *c, uint32_t number, uint64_t bytes, struct cn_err *err);
void cn_region_destroy(struct collnet *c, uint32_t number);
/* Finds [p, p + len) in collnet_alloc()'s buffers; false: not within one buffer. */
bool cn_region_find(struct collnet *c, const void *p, uint64_t len, struct cn_msg_buffer_ref *out);
/* A free staging region of at least this size; cn_region_release() caches it. */
int cn_region_acquire(struct collnet *c, uint64_t bytes, uint32_t *number, struct cn_err *err);
void cn_region_release(struct collnet *c, uint32_t number);

#endif
