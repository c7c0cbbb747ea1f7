/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collnetd: owns the interface, the transport and the global window of a node; programs reach it
 * through a Unix socket (ipc/msg.h).
 *
 *   config.c   options and the configuration file
 *   start.c    startup, main loop, shutdown
 *   parent.c   the parent process
 *   interface.c  follows the interface: down, up, removed, created again
 *   listen.c   the listening socket
 *   event.c    the loop: the one file that knows epoll
 *   time_slice.c  whose requests are served, and for how long
 *   client.c   accepts and reads clients
 *   close.c    closes them
 *   quota.c    limits per user
 *   subuid.c   whose limits those of a subordinate user ID are
 *   receive.c  receives from a client's socket without accepting descriptors
 *   request.c  clients' requests and their completions
 *   operation.c  operations, and calls that wait for tasks
 *   report.c   clients' queries about the node
 *   blocks.c   buffers of operations, and blocks of vector operations
 *   combine.c  clients' reductions: fragments to combine
 *   rings.c    clients' rings: requests out, completions in
 *   reaper.c   drops last references in a child process
 *   mapping.c  maps the memory that clients share
 *   unmap.c    ends it
 *   reload.c   reloads the configuration
 *   seccomp.c  filters system calls
 *   priv.c     drops privileges
 *   notify.c   notifies the service manager
 *   log.c      logs to standard error
 *
 * One thread, except for that of the engine's tasks (node/helper.h). Neither sockets nor rings ever
 * block: a client that does not read its messages is closed. Only the loop calls the engine;
 * functions that the engine calls (completions of requests) only send a message and mark clients
 * for close; the loop does everything else.
 */
#ifndef CN_DAEMON_H
#define CN_DAEMON_H

#include <sys/types.h>

#include "coll/combine.h"
#include "coll/turns.h"
#include "ipc/msg.h"
#include "node/runtime.h"
#include "util/spin.h"
#include "daemon/config.h"
#include "daemon/interface.h"
#include "daemon/mapping.h"
#include "daemon/parent.h"
#include "util/bits.h"

#define CN_CLIENTS_MAX	   1024u
#define CN_ACCEPTS	   32u /* connections per iteration */
#define CN_CLIENTS_RESERVE 32u /* of these, for root */
#define CN_SUBUIDS_MAX	   4096u
#define CN_USERS_MAX	   (CN_CLIENTS_MAX + 64u) /* including recently disconnected ones */
#define CN_ON_SOCKET_MAX   1024u		  /* requests of a user; request.c */
#define CN_TIME_SLICE	   (250 * CN_US)	  /* of a user per round; time_slice.c */

/* ---- state ---------------------------------------------------------------------------- */

struct cn_daemon;
struct cn_client;

/* Subordinate user IDs: first .. first + count - 1. */
struct cn_subuid {
	uid_t first;
	uint32_t count;
	uid_t owner; /* never root */
};

struct cn_subuids {
	struct cn_subuid ranges[CN_SUBUIDS_MAX];
	bool lacks_users; /* those whom the user namespace does not map are CN_UNMAPPED_USER */
	uint32_t n;
};

/* A user, from the first connection until the entry is needed for another. */
struct cn_user {
	bool known;
	uid_t uid;
	uint64_t used[CN_QUOTAS]; /* not of teams: the engine knows */
	cn_time seen;		  /* last connection */
	uint32_t closing;	  /* clients that are marked, and not closed yet */
	uint32_t watches;	  /* of his memory that has ended here, and is not freed yet */
	uint32_t on_socket;	  /* his requests whose completions are messages */
	uint32_t log_lines;	  /* that may be written now */
	cn_time log_at;		  /* start of the interval that permits the next one */
	uint64_t round;		  /* the last one in which he was served */
	cn_time used_up;	  /* of his slice in that round */
	cn_time waits_until;	  /* none of his requests is served before */
	uint64_t log_suppressed;
};

/*
 * A request in the engine. Its index is the request's number.
 *
 * free       -op_begin()-> busy                 all other flags are cleared
 * busy       -op_done()-> free                  the engine ended or refused it: op_free()
 * busy       -op_free()-> free                  it is not in the engine, and the client is marked
 * busy       -prepare()-> kept                  by op_done(); `prepared` is set
 * kept       -handle_start()-> busy, kept
 * busy, kept -op_done()-> kept                  whatever the status
 * kept       -handle_release()-> free
 * kept       -cn_client_release_all()-> free    the client is closed
 *
 * prepared:  cn_client_release_team() clears it when the rank leaves the team, or loses it with the
 *            interface or the connection; each start fails from then on.
 * joins:     handle_join() sets it where the rank gets a team: op_done() reports success by JOINED.
 * waits:     combine() enters it; cn_combine_cancel() removes it, called by cn_combine_pending(),
 * which combines the fragment, or by op_done(). combining: forward_to_client() sets it, but not for
 * the last fragment; cn_combined() clears it. It is valid only while busy: handle_start() clears it
 * after a failed operation.
 */
struct cn_op_slot {
	struct cn_done done;
	struct cn_client *client;
	bool busy;
	bool kept;		      /* persistent: its number is taken until RELEASE */
	struct cn_prepared *prepared; /* if kept; NULL: its team has ended */
	uint32_t team;		      /* likewise; or the one that it joins */
	bool joins;
	uint32_t parent; /* of the team that it joins; CN_MSG_TEAMS: none */
	bool receives;
	bool buffered;	/* the client does not wait for it */
	bool on_socket; /* it began before the client had rings */
	struct cn_mapping *send, *recv, *scratch;
	struct cn_block *blocks; /* of a vector operation; NULL: none */
	uint64_t block_bytes;	 /* of these, charged to the user */
	struct cn_received received;
	struct cn_reducer reducer;
	/* Of a reduction of short blocks: how and where the daemon combines them. */
	cn_combine_function *arithmetic;
	enum collnet_type type;
	struct cn_combine_buffers buffers;
	struct cn_combine deferred;  /* the fragment that waits for the daemon's next iteration */
	struct cn_operands operands; /* of that */
	struct cn_turn waits;	     /* in a ring while there is one */
	uint32_t piece; /* number of the last fragment that the client was sent to combine */
	bool combining; /* it has not returned it yet */
};

enum cn_call_kind { CN_CALL_POST, CN_CALL_PREPARE, CN_CALL_START, CN_CALL_JOIN };

/* A call of the engine that may have to wait for a task, with the contents of its message. */
struct cn_client_call {
	enum cn_call_kind kind;
	struct cn_op_slot *op;
	struct cn_coll_args args;	/* POST, PREPARE; START, JOIN: the deadline */
	const struct cn_msg_join *join; /* JOIN */
};

/*
 * connected           -cn_client_mark()-> marked
 * marked              -drop_next_membership()-> marked       with one team or endpoint less
 * marked              -forget()-> freed                       it has none any more
 *
 * close_more() calls drop_next_membership(), then forget().
 */
struct cn_client {
	struct cn_daemon *daemon;
	int fd;
	uid_t uid;
	pid_t pid;
	struct cn_user *user;
	bool greeted;
	bool marked;		     /* for close by the loop; nothing is sent any more */
	uint32_t dropped;	     /* teams, then endpoints, that its close has processed */
	uint64_t bytes;		     /* of its regions */
	uint32_t unread_descriptors; /* sent since it last had received all messages */
	uint32_t peak;		     /* of the window, since it reset that, as of the last query */
	struct cn_member *teams[CN_MSG_TEAMS];
	uint32_t refused[CN_MSG_TEAMS]; /* operations of each, as in cn_msg_coll */
	struct cn_endpoint *endpoints[CN_MSG_ENDPOINTS];
	/* Numbers that are taken, of what went with the interface: a bit each. */
	uint64_t lost_teams[CN_BIT_WORDS(CN_MSG_TEAMS)];
	uint64_t lost_endpoints[CN_BIT_WORDS(CN_MSG_ENDPOINTS)];
	struct cn_mapping *regions[CN_MSG_REGIONS + 1]; /* the last: of the rings */
	struct cn_shm_ring requests, completions;	/* once there is the region */
	bool polled;					/* the loop polls `requests` */
	bool to_wake;					/* once frames are sent */
	cn_time done_at;     /* time of the last completion; 0: it has made a request since */
	uint32_t prompt;     /* consecutive requests that followed a completion at once */
	uint32_t idle_polls; /* of `requests`, consecutive */
	uint32_t pieces;     /* fragments that it was sent to combine, over all requests */
	struct cn_client_call call; /* that waits for a task; op NULL: none does */
	uint32_t received;	    /* messages from its socket */
	bool has_waited;	    /* a call has waited: later requests may be late */
	cn_time waits_until;	    /* its next message, for clients in close or memory; 0: no */
	cn_time pong_at;	    /* the next PONG while a region waits behind a call */
	struct cn_op_slot ops[CN_MSG_REQUESTS];
};

/* Of the user who is served. */
struct cn_time_slice {
	uint64_t round; /* 0: there are no rounds, and slices have no end */
	cn_time began, ends;
	cn_time now; /* when the clock was read last */
};

struct cn_daemon {
	struct cn_config config;
	int argc;
	char **argv;
	struct cn_runtime runtime; /* not attached while there is no interface */
	struct cn_iface iface;
	struct cn_parent parent;
	int listen_fd, signal_fd, epoll_fd; /* -1: none */
	uint32_t link_events;		    /* what epoll watches of the link */
	uint32_t nclients;
	uint32_t peak;	     /* of the window, since the start */
	bool marked_clients; /* some are marked */
	uint32_t close_next; /* index of the client that is closed next, round-robin */
	bool stop;
	cn_time now; /* of this iteration of the loop */
	/* Regions that no request uses any more, in the states of unmap.c. */
	struct cn_mappings unmap, settled, held;
	struct cn_mapping *watched[CN_WATCH_BUCKETS];
	cn_time held_until; /* then they are tried again; 0: there are none */
	uint32_t nwatched;
	int inotify_fd;	      /* 0: not open */
	uint64_t descriptors; /* that the daemon may open; 0: enough */
	cn_time freed_by;     /* reapers have freed the memory that they took */
	struct {
		uint64_t bytes;	      /* in this iteration */
		struct cn_turn *next; /* the first request with a fragment that waits */
	} combining;		      /* by the daemon itself */
	uid_t owner;		      /* of the socket: the worker's user */
	gid_t group;		      /* of the socket */
	int reserve_fd;		      /* closed to accept and refuse one more client; -1: none */
	cn_time accept_at;	      /* clients are accepted from then on; CN_NEVER: now */
	bool starved;		      /* the reason was logged */
	int closing[CN_CLIENTS_MAX + CN_ACCEPTS]; /* sockets that wait for a reaper */
	uint32_t nclosing;
	struct {
		uint64_t base;	/* of the machine, or of the daemon's control group */
		uint64_t total; /* for all users */
		uint64_t used;	/* by them */
		uint64_t regions;
		bool limited; /* by the control group */
	} memory;
	bool unlink_socket;
	dev_t socket_device; /* of the listening socket's path, as is the next */
	ino_t socket_inode;
	bool guarded; /* the kernel refuses clients' descriptors; see receive.c */
	struct cn_client *clients[CN_CLIENTS_MAX];
	struct cn_client *polled[CN_CLIENTS_MAX]; /* whose rings the loop polls */
	uint32_t npolled;
	struct cn_client *to_wake[CN_CLIENTS_MAX]; /* once frames are sent */
	uint32_t nto_wake;
	struct cn_client *waiting[CN_CLIENTS_MAX]; /* whose call waits for a task */
	uint32_t nwaiting;
	cn_time calls_until;	  /* the first of their deadlines, or earlier */
	struct cn_helper *helper; /* NULL: none */
	struct cn_spin spin;
	cn_time sockets_at; /* when the loop polled descriptors last */
	struct cn_time_slice slice;
	cn_time closing_ends; /* clients are closed until then, before frames move again; 0: no end
			       */
	uint32_t first;	      /* index of the first event to serve, round-robin */
	struct cn_subuids subuids;
	struct cn_user users[CN_USERS_MAX];
};

/* ---- start.c -------------------------------------------------------------------------- */

/* Runs the daemon; returns the process's exit status. */
int cn_daemon_run(int argc, char **argv);

/* ---- listen.c ------------------------------------------------------------------------- */

/*
 * Makes the socket, with its directory where that is missing, over a stale one. COLLNET_EDAEMON:
 * another daemon listens on it.
 */
int cn_listen_open(struct cn_daemon *d, struct cn_err *err);
void cn_listen_close(struct cn_daemon *d);

/* Of the file that cn_listen_open() made, and of none that is there instead. */
bool cn_listen_set_mode(const struct cn_daemon *d, uint32_t mode);

/* Whether a peer may use a socket of this mode and group; its groups include the primary one. */
bool cn_listen_allowed(uint32_t mode, uid_t owner, gid_t group, uid_t uid, const gid_t *groups,
		       size_t ngroups);

/* ---- event.c -------------------------------------------------------------------------- */

int cn_event_open(struct cn_daemon *d, struct cn_err *err);
void cn_event_close(struct cn_daemon *d);
/* Runs until SIGTERM or SIGINT, or until the interface cannot be opened again: an error. */
int cn_event_loop(struct cn_daemon *d, struct cn_err *err);
/* Whether clients that wait at the socket wake the loop. */
void cn_event_listen(struct cn_daemon *d, bool on);
int cn_event_add_client(struct cn_daemon *d, struct cn_client *c);
void cn_event_remove_client(struct cn_daemon *d, struct cn_client *c);
/* Its call waits for a task: only new messages wake the loop, as the first one may stay unread. */
void cn_event_client_waits(struct cn_daemon *d, struct cn_client *c, bool waits);
/* The runtime was attached; it is about to be detached. */
int cn_event_add_link(struct cn_daemon *d, struct cn_err *err);
int cn_event_add_memory(struct cn_daemon *d);
void cn_event_remove_link(struct cn_daemon *d);

/* ---- time_slice.c --------------------------------------------------------------------- */

void cn_slice_new_round(struct cn_daemon *d);
/* Call before serving a client of the user. False: it must wait. */
bool cn_slice_begin(struct cn_daemon *d, struct cn_user *u);
/* Call after each request. */
bool cn_slice_is_over(struct cn_daemon *d);
/* Call after serving the client. True: its user's slice was over at the last check. */
bool cn_slice_end(struct cn_daemon *d, struct cn_user *u);

/* ---- client.c ------------------------------------------------------------------------- */

/* Opens the reserve, and allows as many descriptors as clients may need. */
void cn_client_open(struct cn_daemon *d);
/* Accepts the connections that wait on the listening socket. */
void cn_client_accept(struct cn_daemon *d);
/* A client of this user, which owns the descriptor from now on; NULL: no room, or no memory. */
struct cn_client *cn_client_new(struct cn_daemon *d, int fd, uid_t uid);
/* Serves the requests in its ring, and then one message, as its user's slice allows. */
void cn_client_readable(struct cn_client *c);
/* One message. */
void cn_client_message(struct cn_client *c, const union cn_msg *m, size_t len);
/* Marks it for close; `why` is logged, unless NULL. */
void cn_client_mark(struct cn_client *c, const char *why);
/* Closes marked clients until d->closing_ends, and unmaps unused memory. True: there were some. */
bool cn_client_reap(struct cn_daemon *d);
/* Closes all. */
void cn_client_end(struct cn_daemon *d);
/* Never blocks. */
void cn_client_send(struct cn_client *c, const void *m, size_t len);
void cn_client_reply(struct cn_client *c, uint32_t tag, int status, uint64_t value,
		     const char *text);
/* A REPLY of success with a descriptor, which the caller still owns. */
void cn_client_send_descriptor(struct cn_client *c, uint32_t tag, int fd);

/* ---- close.c -------------------------------------------------------------------------- */

/* Its teams are left and its endpoints closed; their numbers stay taken. */
void cn_client_detach(struct cn_client *c);
/* Closes marked clients until d->closing_ends. */
void cn_client_close_marked(struct cn_daemon *d);

/* ---- quota.c -------------------------------------------------------------------------- */

struct cn_quota_kind {
	const char *key;      /* in the configuration */
	const char *things;   /* in messages */
	uint64_t limit;	      /* default; 0: half of the memory */
	uint64_t max;	      /* that can be configured, from 1 on */
	const char *expected; /* in words */
};

extern const struct cn_quota_kind cn_quota_kinds[CN_QUOTAS];

/* Finds out how much memory there is. */
void cn_quota_open(struct cn_daemon *d);
/* The limit of every user but root. */
uint64_t cn_quota_limit(const struct cn_daemon *d, enum cn_quota q);
/* Whether a user who has `used` of something may have n more: COLLNET_OK, or COLLNET_ELIMIT. */
int cn_quota_check(const struct cn_daemon *d, const struct cn_user *u, enum cn_quota q,
		   uint64_t used, uint64_t n, struct cn_err *err);
/* Charges n of something to the user, or COLLNET_ELIMIT. */
int cn_quota_charge(struct cn_daemon *d, struct cn_user *u, enum cn_quota q, uint64_t n,
		    struct cn_err *err);
void cn_quota_uncharge(struct cn_daemon *d, struct cn_user *u, enum cn_quota q, uint64_t n);
/* The user who is charged for this user ID; NULL: the table is full of users with charges. */
struct cn_user *cn_user_find(struct cn_daemon *d, uid_t uid);
/* Whether a line about the user may be written now; a flood of them is counted instead. */
bool cn_user_may_log(struct cn_daemon *d, struct cn_user *u);

/* ---- subuid.c ------------------------------------------------------------------------- */

#define CN_SUBUID_FILE "/etc/subuid"
/* Reads the file; there are no ranges if it cannot be read. */
void cn_subuid_read(struct cn_subuids *s, const char *path);

#define CN_UID_MAP	 "/proc/self/uid_map"
#define CN_UNMAPPED_USER 65534u /* unless kernel.overflowuid is another */
/* Whether this process's user namespace maps all users. */
void cn_subuid_read_map(struct cn_subuids *s, const char *path);
/* The owner of the range that the ID is in; the ID itself if it is in none. */
uid_t cn_subuid_owner(const struct cn_subuids *s, uid_t uid);

/* ---- receive.c ------------------------------------------------------------------------ */

/* Has the kernel refuse descriptors, on a listening socket for all its connections. False: it
 * cannot. */
bool cn_receive_guard(int fd);
/*
 * As recv(), without waiting: the bytes of a message, of which at most `size` are stored.
 * *descriptors: it brought some; they have not come in, and the socket is of no further use.
 */
ssize_t cn_receive(int fd, bool guarded, void *m, size_t size, bool *descriptors);
/*
 * Closes a client's socket, which may hold descriptors that nobody received: at once, or with the
 * rest of them. cn_receive_close_pending() returns false when no process can be made for that now.
 */
void cn_receive_close(struct cn_daemon *d, int fd);
bool cn_receive_close_pending(struct cn_daemon *d);

/* ---- request.c ------------------------------------------------------------------------ */

/* Serves a request. False: it violates the protocol, and the client is marked for close. */
bool cn_client_request(struct cn_client *c, const union cn_msg *m);

/* Marks the client for close; returns false. */
bool cn_client_violation(struct cn_client *c, const char *what);
/* A free slot, initialised; NULL: the client is marked for close, or was sent the reason. */
struct cn_op_slot *cn_slot_begin(struct cn_client *c, uint32_t tag);
void cn_slot_free(struct cn_op_slot *op);
/* When a request is due that was called then (0: now). */
cn_time cn_slot_deadline(const struct cn_client *c, uint64_t called, uint32_t timeout_ms);
/* Its deadline has passed before it was taken, and its memory may have other users by now: it is
 * completed with an error. Returns true. */
bool cn_slot_late(struct cn_op_slot *op);
/* The request is complete: called by the engine, from wherever it is; sends, marks, and no more. */
void cn_slot_done(struct cn_done *done, int status, const char *text);
/* The engine refused it: it is completed with the error. Returns true. */
bool cn_slot_refused(struct cn_op_slot *op, const struct cn_err *err);
/* The client's handles belong to an interface that is gone. */
void cn_client_fail_lost(const struct cn_client *c, struct cn_err *err);
/* A request on a team or endpoint that is lost ends at once. */
bool cn_client_refuse_lost(struct cn_client *c, uint32_t tag);
/* Joins, derives or divides, if the user may. */
int cn_client_try_join(struct cn_op_slot *op, const struct cn_msg_join *m, cn_time deadline,
		       struct cn_err *err);

/* ---- operation.c ---------------------------------------------------------------------- */

/* Their requests, as cn_client_request(). */
bool cn_operation_coll(struct cn_client *c, const struct cn_msg_coll *m);
bool cn_operation_start(struct cn_client *c, const struct cn_msg_start *m);
/* COLLNET_ELIMIT: the client sent a call without knowing of a refusal (struct cn_msg_coll). */
int cn_operation_in_order(const struct cn_client *c, uint32_t team, uint32_t refused,
			  struct cn_err *err);
bool cn_operation_release(struct cn_client *c, const struct cn_msg_release *m);
/* Makes the call, and completes the request if that fails. If the call must wait for a task, it
 * becomes c->call. */
void cn_call_make(struct cn_client *c, const struct cn_client_call *k);
/* A task is done: the calls that wait are made again. */
void cn_call_make_waiting(struct cn_daemon *d);
/* The same, if the thread has done one. */
void cn_call_collect_task(struct cn_daemon *d);
/* Submits the next task of the engine to the thread, if there is one, and makes calls again whose
 * deadline has passed or whose task may have been dropped. */
void cn_call_submit_task(struct cn_daemon *d);
/* When that is to be called. */
cn_time cn_call_deadline(const struct cn_daemon *d);
/* The client ends: its waiting call is cancelled. */
void cn_call_drop(struct cn_client *c);
/* Persistent operations of a team are released: it ends. */
void cn_client_release_team(struct cn_client *c, uint32_t team);
/* Frees the remaining persistent operations of a client that has no teams any more. */
void cn_client_release_all(struct cn_client *c);

/* ---- report.c ------------------------------------------------------------------------- */

/* Responses to a client. */
void cn_report_stats(struct cn_client *c, const struct cn_msg_stats *m);
void cn_report_nodes(struct cn_client *c, const struct cn_msg_table *m);
void cn_report_jobs(struct cn_client *c, const struct cn_msg_table *m);
void cn_report_alive(struct cn_client *c, const struct cn_msg_head *m);

/* ---- blocks.c ------------------------------------------------------------------------- */

/*
 * Copies the blocks of a vector operation, which the client may change at any time, and fills in
 * call->blocks. Their contents are not checked. COLLNET_EINVAL: they are outside the client's
 * regions. COLLNET_ELIMIT, COLLNET_ENOMEM: with a text.
 */
int cn_blocks_copy(struct cn_client *c, struct cn_op_slot *op, const struct cn_msg_coll *m,
		   struct cn_call *call, struct cn_err *err);
/* Likewise, and the buffers, all into `a`, too. COLLNET_EINVAL: the client is marked for close. */
int cn_buffers_resolve(struct cn_op_slot *op, const struct cn_msg_coll *m, struct cn_call *call,
		       struct cn_coll_args *a, struct cn_err *err);
void cn_blocks_free(struct cn_op_slot *op);

/* ---- combine.c ------------------------------------------------------------------------ */

/* The reducer of the request, of which `call` has the sizes: the client or, for short blocks, the
 * daemon. */
struct cn_reducer *cn_combine_by(struct cn_op_slot *op, const struct cn_coll_args *a,
				 const struct cn_call *call);
/* A COMBINED; ignored if its fragment is not outstanding any more. */
void cn_combined(struct cn_client *c, const struct cn_msg_combined *m);
/* In each iteration: the daemon combines waiting fragments, up to a bound. True: there were some.
 */
bool cn_combine_pending(struct cn_daemon *d);
/* The request ends: its waiting fragment is dropped. */
void cn_combine_cancel(struct cn_op_slot *op);

/* ---- rings.c --------------------------------------------------------------------------- */

/* Initialises new memory for rings, before the client gets it. */
void cn_client_rings_prepare(struct cn_client *c, void *memory);
/* Opens the rings if the client has sealed their memory, which is mapped until
 * cn_client_rings_close(). */
void cn_client_rings_open(struct cn_client *c);
void cn_client_rings_close(struct cn_client *c);
/* Serves up to `max` requests in the client's ring, within its user's slice. */
void cn_client_rings_serve(struct cn_client *c, uint32_t max);
/* Its call with this number waits for a task; -1: none does any more. */
void cn_client_rings_set_waiting(struct cn_client *c, int tag);
/* A message was received from its socket. */
void cn_client_rings_count_message(struct cn_client *c);
/* A request was taken: reads the clock again if the request may be late. */
void cn_client_update_clock(const struct cn_client *c);
/* Serves the requests in polled rings, up to a bound per client. True: there were some. */
bool cn_rings_poll(struct cn_daemon *d);
/* Frames are sent: wakes the clients whose wake-up was delayed until then. */
void cn_rings_wake(struct cn_daemon *d);
/*
 * Before the loop sleeps: clients must send a DOORBELL from now on. Returns how long it may sleep,
 * which depends on waiting users. 0: there are requests, and it must not sleep.
 */
cn_time cn_rings_sleep(struct cn_daemon *d);
void cn_rings_awake(struct cn_daemon *d);
/* A DONE, into the client's ring, or onto the socket of a client without rings. Never blocks. */
void cn_client_complete(struct cn_client *c, const struct cn_msg_done *m, bool urgent);
/* Likewise a COMBINE. */
void cn_client_combine(struct cn_client *c, const struct cn_msg_combine *m);
/* The client's team with this number is ready; its parent's number, or CN_MSG_TEAMS. */
void cn_client_joined(struct cn_client *c, uint32_t tag, uint32_t team, uint32_t parent);

/* ---- reaper.c ------------------------------------------------------------------------- */

/* Forks a child that holds these descriptors and all memory. -1: it cannot be created. */
pid_t cn_reaper_begin(int *fds, uint32_t n);
/* The caller has dropped its references: the child exits. -1 is ignored. */
void cn_reaper_end(pid_t reaper);

/* ---- reload.c ------------------------------------------------------------------------- */

/* Reloads the settings that can change at run time, and logs the result. */
void cn_reload(struct cn_daemon *d);
/*
 * Restores in *fresh the settings that cannot change while the daemon runs, and lists the names of
 * those that differ in `stays`.
 */
void cn_reload_keep(struct cn_config *fresh, const struct cn_config *running, char *stays,
		    size_t cap);

/* ---- priv.c, notify.c, log.c ---------------------------------------------------------- */

int cn_priv_find(const struct cn_config *c, struct cn_identity *out, struct cn_err *err);
/* Changes groups, group and user, unless `keep` or there is nothing to change. */
int cn_priv_become(const struct cn_identity *id, struct cn_err *err);
/*
 * Changes to that identity permanently and installs the system call filter. After an error the
 * daemon must exit.
 */
int cn_priv_drop(const struct cn_identity *id, struct cn_err *err);

/* Whether this build has a filter, for this architecture. */
bool cn_seccomp_available(void);
/* Filters the system calls of this process, permanently. */
int cn_seccomp_install(struct cn_err *err);

/* "READY=1", "STOPPING=1" to the service manager, if there is one. Waits for 100 ms at most. */
void cn_notify(const char *state);

void cn_log_open(void);
void cn_log_set_level(enum collnet_log_level level);

#endif
