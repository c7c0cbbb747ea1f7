/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a context: the objects behind the public handles, and what a backend does.
 *
 * Two backends: daemon.c talks to collnetd, direct.c runs the transport in this process. In a child
 * of fork(), a third one (fork.c) does nothing. All argument checks, request bookkeeping and
 * waiting are above them, once. Requests live in a table of the context (never allocated per
 * operation) and outlive their team and endpoint, so that a caller may collect what became of them.
 *
 * Locking: threads of the caller share the context, and so does direct's keep-alive thread. Every
 * public function that touches more than constants takes the context's lock (cn_enter, cn_leave);
 * backends are called with it held, and give it up where they wait for other nodes (threads.c).
 */
#ifndef CN_BACKEND_H
#define CN_BACKEND_H

#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "coll/combine.h"
#include "coll/engine.h"
#include "ipc/msg.h"
#include "node/descriptor.h"
#include "util/clock.h"

struct cn_backend;

enum cn_request_state {
	CN_REQUEST_FREE = 0,
	CN_REQUEST_PENDING,
	CN_REQUEST_DONE,
	CN_REQUEST_INACTIVE, /* persistent, and not outstanding */
	CN_REQUEST_DETACHED, /* collected before the backend has ended it: `buffered` */
};

/* A reduction as it was called. */
struct cn_reduction_call {
	uint32_t element; /* bytes */
	size_t alignment;
	uint64_t bytes; /* of the block */
	uint16_t function;
	bool ordered;
	cn_combine_function *combine; /* NULL: the user's */
	struct collnet_user_op user;
};

/* Of a request: its reduction's buffers in this process. */
struct cn_request_reduction {
	struct cn_reduction_call call;
	struct cn_combine_buffers buffers;
	struct cn_reducer reducer; /* direct */
	struct cn_combine piece;   /* direct: for the caller's thread, if `waiting` */
	bool waiting;
	void *owned; /* direct: the scratch buffer */
};

/*
 * FREE     -cn_request_get()-> PENDING
 * PENDING  -cn_request_put()-> FREE          its team has no room, or the backend refused it
 *                                            (DONE -> FREE, if it broke the context)
 * PENDING  -cn_request_done()-> DONE         the backend ended it, its team or endpoint is closed,
 *                                            or the context is gone
 * DONE     -collect()-> FREE                 wait.c, by cn_request_put()
 *
 * buffered (never persistent):
 * PENDING  -cn_request_buffered()-> DONE     buffered: the backend has not ended it
 * DONE     -collect()-> DETACHED             buffered still: cn_request_put()
 * DONE     -cn_request_done()-> DONE         buffered no more: end_buffered()
 * DETACHED -cn_request_done()-> FREE         likewise
 *
 * persistent (set by post_coll() with `preparing`; it collects the preparation itself):
 * DONE     -collect()-> INACTIVE             preparing no more: it succeeded
 * DONE     -collect()-> FREE                 preparing and persistent no more: it failed
 * INACTIVE -cn_request_restart()-> PENDING   collnet_start()
 * PENDING  -cn_request_put()-> INACTIVE      the backend refused to start it (DONE as above)
 * DONE     -collect()-> INACTIVE             whatever the status of the operation
 * INACTIVE -collnet_request_free()-> FREE    persistent no more
 */
struct collnet_request {
	struct collnet *c;
	enum cn_request_state state;
	uint32_t number;		   /* index in the context's table */
	struct collnet_team *team;	   /* NULL: none, or destroyed since */
	struct collnet_endpoint *endpoint; /* likewise */
	struct collnet_team *counts;	   /* an operation of this team that has not ended */
	uint32_t operation;		   /* its number there */
	bool listed;			   /* in the set that is looked at: wait.c */
	bool message;			   /* a send or receive: counts for the endpoints' bound */
	bool admitted;			   /* counts for its team's bound */
	bool persistent;		   /* it is INACTIVE after its completion */
	bool buffered;	     /* DONE or DETACHED before its end: what it reads was copied */
	bool preparing;	     /* persistent: this completion is that of its preparation */
	bool refused;	     /* daemon: as in cn_msg_coll; counted when it is collected */
	uint32_t timeout_ms; /* of the operation; if persistent, of each start */
	struct cn_prepared *prepared; /* likewise; direct */
	cn_time begun;		      /* when it was posted or started */
	cn_time deadline;	      /* the operation's own */
	cn_time late_since;	      /* start of the first wait after the deadline; 0: none */
	cn_time late_at;	      /* next call of the backend's late() */
	int status;
	char text[CN_ERR_TEXT];
	struct collnet_address *from; /* the caller's, of a receive; may be NULL */
	size_t *bytes;		      /* likewise */
	struct cn_received received;
	struct cn_block *blocks; /* of a vector operation: struct cn_blocks; NULL: none */
	struct {		 /* direct: of what an operation in place sends */
		void *p;	 /* NULL: none */
		const void *from;
		uint64_t bytes;
		struct cn_block *blocks; /* of a vector operation: where in `from` */
	} copy;
	struct cn_done done;	 /* direct: completion callback of the engine */
	const char *what;	 /* daemon: the operation; NULL: a message */
	uint32_t place;		 /* daemon: position in the ring, for cn_shm_ring_has_consumed() */
	bool out_of_band;	 /* daemon: sent on the socket, not in the ring */
	bool in_transit;	 /* daemon: free, but its message is still on the socket */
	struct {		 /* daemon: staging copy of the caller's memory */
		uint32_t region; /* CN_MSG_NO_REGION: none */
		const void *in;	 /* what to copy there before it starts; NULL: nothing */
		uint64_t in_offset, in_len;
		const struct cn_block *in_blocks; /* where in `in`; NULL: all of it */
		void *back;			  /* where to copy the result; NULL: nowhere */
		uint64_t offset, len;		  /* from where in the region, how much */
		const struct cn_block *blocks;	  /* where in `back`; NULL: all of it */
		uint32_t nblocks;
	} staging;
	struct cn_request_reduction reduction; /* call.element 0: it is none */
};

struct collnet_team {
	struct collnet *c;
	uint32_t number; /* index in the context's table */
	uint32_t rank, ranks, nodes;
	uint32_t local; /* ranks on this node */
	uint32_t outstanding;
	uint32_t buffered;     /* of them */
	uint32_t operations;   /* posted so far, as the engine numbers them */
	uint64_t busy;	       /* those not ended: bits, by number mod COLLNET_OUTSTANDING_MAX */
	struct cn_err delayed; /* first error of a buffered request: reported by the next call */
	uint32_t refused;      /* daemon: operations that were, as in cn_msg_coll */
	uint64_t run;	       /* the same on all ranks, and of no other team */
	uint32_t children;     /* teams derived from it by all its ranks: split.c */
	uint32_t splits;       /* of them, by collnet_team_split() */
	char made_as[128];     /* name of the team in errors; "": `job` */
	struct cn_list {       /* rank lists of derived teams, by hash, with counts */
		uint64_t hash;
		uint32_t n;
	} * lists;
	uint32_t nlists, lists_cap;
	char job[COLLNET_NAME_MAX + 1];
	uint64_t secret;		     /* cn_secret(); 0: the user is the owner */
	char (*names)[COLLNET_NAME_MAX + 1]; /* [ranks] node of each */
	uint32_t named;			     /* known names, the first ones: daemon */
	const struct collnet_team *parent;   /* its parent, while joining */
	struct cn_member *member;	     /* direct */
	bool abandoned; /* daemon: its JOIN ended before the daemon processed it */
};

struct collnet_endpoint {
	struct collnet *c;
	uint32_t number; /* index in the context's table, not on the node */
	uint16_t endpoint;
	struct cn_endpoint *ep; /* direct */
};

/* A buffer of collnet_alloc(). */
struct cn_allocation {
	void *p; /* NULL: a free entry */
	uint64_t bytes;
};

/* The error of a thread's last failed call on the context. */
struct cn_thread_error {
	bool used;
	pthread_t thread;
	unsigned long serial; /* unique number of the thread */
	struct cn_err err;
	struct cn_thread_error *next;
};

struct collnet {
	const struct cn_backend *backend;
	void *impl;		   /* the backend's own */
	struct collnet *next_open; /* fork.c */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a request has ended, or no thread polls */
	uint32_t waiting;	/* threads that wait for `changed` */
	uint32_t called;	/* of these, those signalled; atomic */
	unsigned long combiner; /* thread that runs a user's function with the lock; atomic */
	uint32_t entering;	/* threads that wait for the lock; atomic */
	cn_time yielded_at;	/* last yield by a test: wait.c */
	unsigned long polling;	/* the thread that polls the backend for all; 0: none */
	bool asleep;		/* it sleeps, without the lock */
	uint32_t *futex;	/* on which it sleeps; NULL: on descriptors */
	int wake_fd;		/* a socket connected to itself, to wake it */
	struct cn_descriptor_id wake_id;
	struct cn_thread_error errors;
	struct cn_err err;  /* of a call that is failing: cn_leave() keeps it for the thread */
	struct cn_err gone; /* code != 0: the context is broken, with the reason */
	char node[COLLNET_NAME_MAX + 1];
	char *algorithms; /* COLLNET_ALGORITHM when it was opened; NULL: none */
	uint32_t timeout_ms;
	uint32_t messages;	  /* endpoint requests in use */
	uint32_t buffered;	  /* buffered requests */
	uint32_t awaits_buffered; /* waits for the end of buffered requests */
	uint64_t ended;		  /* requests ended so far: a wait checks again when it changes */
	uint64_t user_buffer_bytes;
	struct collnet_team *teams[CN_MSG_TEAMS];
	struct collnet_endpoint *endpoints[CN_MSG_ENDPOINTS];
	struct cn_allocation user_buffers[CN_MSG_USER_REGIONS];
	struct collnet_request requests[CN_MSG_REQUESTS];
};

/* The origin of a team; no parent: not derived. */
struct cn_origin {
	struct collnet_team *parent;
	const uint64_t *members;	   /* derived from these ranks, a bit each; or NULL, and */
	const struct cn_split_call *split; /* the parent is divided */
};

/*
 * The operations of a backend. Functions that post a request return an error, and then the request
 * is the caller's again; or COLLNET_OK, and then cn_request_done() is called on it exactly once,
 * possibly at once.
 */
struct cn_backend {
	int (*open)(struct collnet *c, const struct collnet_options *o, struct cn_err *err);
	/* Teams and endpoints are gone. Also called after a partial failure of open(). */
	void (*close)(struct collnet *c);
	/* In a child of fork(): closes the descriptors, and nothing else. */
	void (*forked)(struct collnet *c);

	/*
	 * Makes progress, without sleeping past `until` (0: without sleeping), and returns early
	 * when something happened. When the context breaks, calls cn_context_gone(). `until` is not
	 * 0 only for the polling thread; then it releases the lock meanwhile.
	 */
	void (*progress)(struct collnet *c, cn_time until);
	/*
	 * The deadline of a pending request has passed: ends it if the backend has not started it
	 * and is blocked, or sets r->late_at for the next call. NULL: the backend starts every
	 * request at once.
	 */
	void (*late)(struct collnet_request *r, cn_time now);
	/* True if the backend is or was recently blocked and starts no requests: the backstop does
	 * not apply. */
	bool (*is_blocked)(struct collnet *c, cn_time now);
	/* The backstop of a wait: the backend was silent for too long; calls cn_context_gone(). */
	void (*timed_out)(struct collnet *c, const char *what);

	int (*alloc)(struct collnet *c, uint32_t index, uint64_t bytes, void **out,
		     struct cn_err *err);
	void (*free)(struct collnet *c, uint32_t index, struct cn_allocation *piece);

	/* With a split, its job is t's. With a color less than 0 there is no leave(). */
	int (*join)(struct collnet_team *t, const struct cn_origin *from, struct collnet_request *r,
		    struct cn_err *err);
	/* Fills in t->rank, t->ranks, t->nodes, t->run and t->names of a ready team, unless already
	 * known. */
	int (*ranks)(struct collnet_team *t, struct cn_err *err);
	/* After a posted join, whatever its result. */
	void (*leave)(struct collnet_team *t);
	/* Of a persistent request only its preparation, which completes at once. */
	int (*coll)(struct collnet_team *t, struct collnet_request *r, const struct cn_coll_args *a,
		    struct cn_err *err);
	/* Starts a persistent request, of a team that exists. */
	int (*start)(struct collnet_request *r, struct cn_err *err);
	/* Releases a persistent request that is not outstanding. */
	void (*release)(struct collnet_request *r);

	/* Sets e->endpoint. */
	int (*endpoint_open)(struct collnet_endpoint *e, uint16_t number, struct cn_err *err);
	void (*endpoint_close)(struct collnet_endpoint *e);
	int (*send)(struct collnet_endpoint *e, struct collnet_request *r,
		    const struct collnet_address *to, const void *data, uint64_t bytes,
		    struct cn_err *err);
	int (*recv)(struct collnet_endpoint *e, struct collnet_request *r, void *data,
		    uint64_t capacity, struct cn_err *err);
	/* Copies the result of a request to the caller's memory. */
	void (*collect)(struct collnet_request *r);

	int (*stats)(struct collnet *c, struct collnet_stats *s, bool reset, struct cn_err *err);
	int (*nodes)(struct collnet *c, struct collnet_node_info *out, size_t *count,
		     struct cn_err *err);
	int (*jobs)(struct collnet *c, struct collnet_job_info *out, size_t *count,
		    struct cn_err *err);
};

extern const struct cn_backend cn_backend_daemon, cn_backend_direct;

/* ---- threads.c ------------------------------------------------------------------------ */

/* Fills in what threads share; cn_threads_fini() also after a failure. */
int cn_threads_init(struct collnet *c, struct cn_err *err);
void cn_threads_fini(struct collnet *c);
/* In a child of fork(), and part of cn_threads_fini(): closes descriptors. */
void cn_threads_close(struct collnet *c);
/* Of this thread, not 0; that of one that has ended is not used again, as its pthread_t is. */
unsigned long cn_thread_serial(void);
/* Sets whether this thread runs a user's function with the lock of c held. */
void cn_set_combining(struct collnet *c, bool on);
/* COLLNET_EINVAL within a user's function: the lock is already held. */
int cn_may_enter(const struct collnet *c);
/* Acquires the lock, also of a broken context. */
void cn_lock(struct collnet *c);
/*
 * Acquires the context's lock. COLLNET_EINVAL for NULL, or the reason of a broken context; then it
 * is not held.
 */
int cn_enter(struct collnet *c);
/* Releases the lock and returns code; an error in c->err becomes the thread's. */
int cn_leave(struct collnet *c, int code);
/* The text of the calling thread's last error; takes the lock. */
const char *cn_thread_error(struct collnet *c);
/* For the polling thread: yields the processor, without the lock. */
void cn_yield(struct collnet *c);
/* The same, only if another thread waits for the lock. */
void cn_yield_lock(struct collnet *c);
/*
 * For the polling thread: ppoll() without the lock, with a timeout. fds has room for one more
 * entry. True: the first descriptor is ready.
 */
bool cn_sleep(struct collnet *c, struct pollfd *fds, nfds_t n, cn_time duration);
/* The same on a futex, which other processes may share, while it has that value. */
void cn_sleep_on(struct collnet *c, uint32_t *futex, uint32_t value, cn_time duration);
/* Wakes the sleeping thread. */
void cn_wake(struct collnet *c);
/* Wakes the threads that wait for the polling thread. */
void cn_wake_waiting(struct collnet *c);
/* Waits until a request has ended or no thread polls, at most until `until`. */
void cn_wait_for_poller(struct collnet *c, cn_time until);

/* ---- fork.c --------------------------------------------------------------------------- */

/* Registers a context that is being opened, so that children of fork() do not share it. */
int cn_fork_watch(struct collnet *c, struct cn_err *err);
void cn_fork_forget(struct collnet *c);
/* Waits for a thread in exit() that waits for buffered operations. Later ones do not wait on a
 * context without teams. */
void cn_fork_await_exit(void);

/* ---- collnet.c ------------------------------------------------------------------------ */

/* Sets the thread's error about an argument, for calls without a context. */
int cn_argument_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Marks the context broken: all requests end with this error, now and later. Copies the error. */
void cn_context_gone(struct collnet *c, const struct cn_err *why);
/*
 * Reads an options struct of another version of the header: overwrites the `have` bytes of ours,
 * which hold the defaults, as far as the caller's reaches. Its rest must be zero.
 */
int cn_options_copy(void *ours, size_t have, const void *theirs, size_t size, const char *name,
		    struct cn_err *err);

/* ---- team.c --------------------------------------------------------------------------- */

/* The arguments of a public function of a collective operation. */
struct cn_coll_call {
	enum cn_op_kind op;
	const void *send;
	void *recv;
	size_t bytes; /* vector operations: of a buffer of one block */
	uint32_t root;
	struct {
		const size_t *counts, *displs;
	} sends, recvs;		/* vector operations */
	enum collnet_type type; /* reductions, of which `bytes` are elements */
	enum collnet_op function;
};

/*
 * Joins the team with these complete options, and waits for the others. In a split, rank and size
 * are the parent's. The team of a color less than 0 is NULL.
 */
int cn_team_open(struct collnet *c, const struct collnet_team_options *o, uint64_t secret,
		 const struct cn_origin *from, struct collnet_team **out);

/* Leaves the team, and frees it. With the lock held. */
void cn_team_close(struct collnet_team *t);

int cn_coll_run_locked(struct collnet_team *t, const struct cn_coll_call *call,
		       const struct collnet_coll_options *o);
int cn_coll_run(collnet_team_t *t, const struct cn_coll_call *call,
		const struct collnet_coll_options *o);
int cn_coll_start(collnet_team_t *t, const struct cn_coll_call *call,
		  const struct collnet_coll_options *o, collnet_request_t **out);

/* The arguments that sizes depend on. */
struct cn_call cn_coll_shape(const struct collnet_team *t, const struct cn_coll_args *a);

/* ---- vector.c ------------------------------------------------------------------------- */

/*
 * Fills in shape->blocks from the counts of a call; *memory, which is to be freed, has the blocks.
 */
int cn_coll_blocks(const struct cn_coll_call *call, struct cn_call *shape, struct cn_block **memory,
		   struct cn_err *err);

/* ---- request.c ------------------------------------------------------------------------ */

/* Replaces 0 by the context's default; COLLNET_EINVAL: the timeout is too long. */
int cn_settle_timeout(const struct collnet *c, uint32_t *timeout_ms, struct cn_err *err);
/* Allocates a request of a team or an endpoint (message). NULL: err names the limit. */
struct collnet_request *cn_request_get(struct collnet *c, struct collnet_team *t,
				       struct collnet_endpoint *e, uint32_t timeout_ms,
				       struct cn_err *err);
/*
 * Makes the request the next operation of a team, which the backend must be given before the lock
 * is released; if it is being prepared, only checks that one more may be outstanding. Waits for
 * buffered requests that are in the way, at most until the request's deadline. COLLNET_ELIMIT: the
 * team has too many, or its oldest has not ended. Or the error of an earlier call. Then the request
 * is to be put.
 */
int cn_request_admit(struct collnet_request *r, struct collnet_team *t, struct cn_err *err);
/* True if only buffered requests, which end without a call of their program, are in its way. */
bool cn_request_waits_for_buffered(const struct collnet_request *r, const struct collnet_team *t);
void cn_request_put(struct collnet_request *r);
/* The backend refused it with the error in the context: frees it, and adds the team to the error.
 * Returns its code. */
int cn_request_refused(struct collnet_request *r);
/* Marks a persistent request outstanding again. Errors as of cn_request_admit(); then it is not. */
int cn_request_restart(struct collnet_request *r, struct cn_err *err);
/* Starts its timeout. */
void cn_request_begins(struct collnet_request *r);
/* Frees the memory of an unused request. */
void cn_request_free_memory(struct collnet_request *r);
/*
 * For backends: completes a request that writes nothing for its caller once its input is copied, as
 * a buffered send of MPI. It still ends by cn_request_done(); an error that its caller does not see
 * is reported by the team's next call.
 */
void cn_request_buffered(struct collnet_request *r);
/* True if another request may be buffered: few are unfinished, so that a caller is never far
 * ahead. */
bool cn_request_can_be_buffered(const struct collnet_team *t);
/* True if posted and not ended by the backend. */
bool cn_request_is_posted(const struct collnet_request *r);
/* For backends: the request has ended. */
void cn_request_done(struct collnet_request *r, int status, const char *text);

/* ---- wait.c --------------------------------------------------------------------------- */

/* Waits until the backend has ended all buffered requests of the team. */
void cn_wait_for_buffered(struct collnet_team *t);
/* Waits while cn_request_waits_for_buffered(), at most until the request's deadline. */
void cn_wait_for_room(struct collnet_request *r, const struct collnet_team *t);
/* Waits until a request is free, or no collected one is buffered. Of any team, as it may be
 * destroyed meanwhile. */
void cn_wait_for_free(struct collnet *c);
/* Waits for those of all teams, at most until `until`. */
void cn_wait_at_exit(struct collnet *c, cn_time until);
/* Waits for the end of the operation, collects its result and frees it. */
int cn_request_finish(struct collnet_request *r);
/* Acquires the lock. COLLNET_EINVAL: NULL, or already collected; then the lock is not held. Also of
 * a broken context, whose requests have ended and must be collected. */
int cn_request_enter(struct collnet_request *r);

#endif
