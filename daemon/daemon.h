/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collnetd: owns the interface, the transport and the global window of a node; programs reach it
 * through a Unix socket (ipc/msg.h).
 *
 *   config.c   options and the configuration file
 *   start.c    the story of a life: start, loop, end
 *   parent.c   the parent process
 *   interface.c  the interface goes down and comes back
 *   listen.c   the listening socket
 *   event.c    the loop: the one file that knows epoll
 *   client.c   clients come, speak and go
 *   quota.c    what a user may take of the node
 *   receive.c  a client's socket, without the descriptors that it may bring
 *   request.c  what clients ask for, and the ends of it
 *   region.c   clients' memory
 *   reload.c   the configuration is read again
 *   seccomp.c  system calls are filtered
 *   priv.c     privileges are dropped
 *   notify.c   the service manager is told
 *   log.c      lines to standard error
 *
 * One thread. Sockets never block: a client that does not take what it is sent is closed. The
 * engine is called from the loop only; functions that the engine calls (the ends of requests)
 * send a message and mark, and leave the rest to the loop.
 */
#ifndef CN_DAEMON_H
#define CN_DAEMON_H

#include <sys/types.h>

#include "ipc/msg.h"
#include "node/runtime.h"
#include "daemon/interface.h"
#include "daemon/parent.h"

#define CN_CLIENTS_MAX	   1024u
#define CN_CLIENTS_RESERVE 32u			  /* of these, for root */
#define CN_USERS_MAX	   (CN_CLIENTS_MAX + 64u) /* those that were here last included */
#define CN_PATH_MAX	   256u

/* ---- config.c ------------------------------------------------------------------------- */

/* What is limited for each user. */
enum cn_quota {
	CN_QUOTA_CONNECTIONS,
	CN_QUOTA_TEAMS,
	CN_QUOTA_ENDPOINTS,
	CN_QUOTA_REQUESTS,
	CN_QUOTA_MEMORY, /* bytes */
	CN_QUOTAS
};

/* Empty strings: not said. */
struct cn_config {
	char interface[32];
	char link[16];
	char node[CN_MSG_NAME];
	char topology[CN_PATH_MAX];
	char socket[108]; /* as long as a Unix socket's path can be */
	char user[64];
	char group[64];
	uint32_t socket_mode;
	uint16_t cluster, ethertype;
	uint32_t window;
	uint16_t peer_timeout_ms;
	uint64_t limits[CN_QUOTAS]; /* of each user; 0: the default */
	enum collnet_log_level log_level;
	int ready_fd; /* -1: none */
};

void cn_config_init(struct cn_config *c);
/* The text of a configuration file; errors name file and line. */
int cn_config_parse(struct cn_config *c, const char *text, size_t len, const char *name,
		    struct cn_err *err);
int cn_config_read(struct cn_config *c, const char *path, struct cn_err *err);
/*
 * The command line, over the file that it names. COLLNET_INPROGRESS: --help or --version, whose
 * text is to be printed.
 */
int cn_config_args(struct cn_config *c, int argc, char **argv, const char **print,
		   struct cn_err *err);

/* ---- state ---------------------------------------------------------------------------- */

struct cn_daemon;
struct cn_client;

/* A user, from his first connection on until the entry is needed for another. */
struct cn_user {
	bool known;
	uid_t uid;
	uint64_t used[CN_QUOTAS]; /* not of teams: the engine knows */
	cn_time seen;		  /* his last connection */
	uint32_t log_lines;	  /* that may be written now */
	cn_time log_at;		  /* since when the next one is earned */
	uint64_t log_left_out;
};

/* A client's memory. Counted: by its number while it has one, and by each request on it. */
struct cn_shared {
	uint8_t *p;
	uint64_t bytes;
	uint64_t freed; /* of these, given back to the system before it is unmapped */
	uint32_t refs;
	struct cn_user *user;	/* to whom it is charged */
	struct cn_shared *next; /* in the daemon's list of those to unmap */
};

/* What the engine reports the end of a request to. Its index is the request's number. */
struct cn_op_slot {
	struct cn_done done;
	struct cn_client *client;
	bool busy;
	bool receives;
	struct cn_shared *send, *recv;
	struct cn_received received;
};

struct cn_client {
	struct cn_daemon *daemon;
	int fd;
	uid_t uid;
	pid_t pid;
	struct cn_user *user;
	bool greeted;
	bool doomed;	/* to be closed by the loop; nothing is sent any more */
	uint64_t bytes; /* of its regions */
	struct cn_member *teams[CN_MSG_TEAMS];
	struct cn_endpoint *endpoints[CN_MSG_ENDPOINTS];
	/* Numbers that are taken, of what went with the interface: a bit each. */
	uint32_t lost_teams;
	uint64_t lost_endpoints;
	struct cn_shared *regions[CN_MSG_REGIONS];
	struct cn_op_slot ops[CN_MSG_REQUESTS];
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
	bool doomed_clients; /* some are marked */
	bool stop;
	cn_time now;		 /* of this turn of the loop */
	struct cn_shared *unmap; /* nobody uses these any more */
	uid_t owner;		 /* of the socket: the worker's user */
	gid_t group;		 /* of the socket */
	int reserve_fd;		 /* closed to accept one more, who is told so; -1: none */
	struct {
		uint64_t base;	/* of the machine, or of our control group */
		uint64_t total; /* for all users */
		uint64_t used;	/* by them */
		int usage_fd;	/* says what our control group uses; -1: it has no limit */
	} memory;
	bool unlink_socket;
	bool guarded; /* the kernel refuses clients' descriptors; see receive.c */
	struct cn_client *clients[CN_CLIENTS_MAX];
	struct cn_user users[CN_USERS_MAX];
};

/* ---- start.c -------------------------------------------------------------------------- */

/* The daemon's life; the process's exit status. */
int cn_daemon_run(int argc, char **argv);

/* ---- listen.c ------------------------------------------------------------------------- */

/*
 * Makes the socket, with its directory where that is missing, over a stale one. COLLNET_EDAEMON:
 * somebody answers on it already.
 */
int cn_listen_open(struct cn_daemon *d, struct cn_err *err);
void cn_listen_close(struct cn_daemon *d);
/* Whether a peer may use a socket of this mode and group; its groups include the primary one. */
bool cn_peer_allowed(uint32_t mode, uid_t owner, gid_t group, uid_t uid, const gid_t *groups,
		     size_t ngroups);

/* ---- event.c -------------------------------------------------------------------------- */

int cn_event_open(struct cn_daemon *d, struct cn_err *err);
void cn_event_close(struct cn_daemon *d);
/* Runs until SIGTERM or SIGINT, or until the interface cannot be opened again: an error. */
int cn_event_loop(struct cn_daemon *d, struct cn_err *err);
int cn_event_add_client(struct cn_daemon *d, struct cn_client *c);
/* The runtime was attached; it is about to be detached. */
int cn_event_add_link(struct cn_daemon *d, struct cn_err *err);
void cn_event_remove_link(struct cn_daemon *d);

/* ---- client.c ------------------------------------------------------------------------- */

/* Opens the reserve, and allows as many descriptors as clients may need. */
void cn_client_open(struct cn_daemon *d);
/* Takes who waits on the listening socket. */
void cn_client_accept(struct cn_daemon *d);
/*
 * A client of this user on this descriptor, which becomes its own; NULL: no room, and it is closed.
 */
struct cn_client *cn_client_new(struct cn_daemon *d, int fd, uid_t uid);
/* Takes what the client has sent, up to a bound. */
void cn_client_readable(struct cn_client *c);
/* One message. */
void cn_client_message(struct cn_client *c, const union cn_msg *m, size_t len);
void cn_client_doom(struct cn_client *c, const char *why);
/* Its teams are left and its endpoints closed; their numbers stay taken. */
void cn_client_detach(struct cn_client *c);
/* Closes those that are marked, and unmaps what nobody uses. True: there were some. */
bool cn_client_reap(struct cn_daemon *d);
/* Closes all. */
void cn_client_end(struct cn_daemon *d);
/* Never blocks. */
void cn_client_send(struct cn_client *c, const void *m, size_t len);
void cn_client_reply(struct cn_client *c, uint32_t tag, int status, uint64_t value,
		     const char *text);
/* A REPLY of success with a descriptor, which stays the caller's. */
void cn_client_hand_out(struct cn_client *c, uint32_t tag, int fd);

/* ---- quota.c -------------------------------------------------------------------------- */

/* Finds out how much memory there is. */
void cn_quota_open(struct cn_daemon *d);
void cn_quota_close(struct cn_daemon *d);
/* The key of the configuration. */
const char *cn_quota_key(enum cn_quota q);
/* What every user but root may have, at most. */
uint64_t cn_quota_limit(const struct cn_daemon *d, enum cn_quota q);
/* Whether a user who has `used` of something may have n more: COLLNET_OK, or COLLNET_ELIMIT. */
int cn_quota_check(const struct cn_daemon *d, const struct cn_user *u, enum cn_quota q,
		   uint64_t used, uint64_t n, struct cn_err *err);
/* Charges n of something to the user, or COLLNET_ELIMIT. */
int cn_quota_take(struct cn_daemon *d, struct cn_user *u, enum cn_quota q, uint64_t n,
		  struct cn_err *err);
void cn_quota_give(struct cn_daemon *d, struct cn_user *u, enum cn_quota q, uint64_t n);
/* Whether the control group's memory is so short that clients' pages must not outlive us. */
bool cn_quota_short(const struct cn_daemon *d);
/* NULL: there are too many users with something. */
struct cn_user *cn_user_find(struct cn_daemon *d, uid_t uid);
/* Whether a line about the user may be written now; a flood of them is counted instead. */
bool cn_user_may_log(struct cn_daemon *d, struct cn_user *u);

/* ---- receive.c ------------------------------------------------------------------------ */

/* Has the kernel refuse descriptors, on a listening socket for all its connections. False: it
 * cannot. */
bool cn_receive_guard(int fd);
/*
 * As recv(), without waiting: the bytes of a message, of which at most `size` are stored.
 * *descriptors: it brought some; they have not come in, and the socket is of no further use.
 */
ssize_t cn_receive(int fd, bool guarded, void *m, size_t size, bool *descriptors);
/* Closes a client's socket, which may hold descriptors that nobody received. */
void cn_receive_close(int fd, bool guarded);

/* ---- request.c ------------------------------------------------------------------------ */

/* False: the message does not fit the state, and the client is doomed. */
bool cn_request_take(struct cn_client *c, const union cn_msg *m);

/* ---- region.c ------------------------------------------------------------------------- */

/* Makes and maps memory, and replies with its descriptor. False: the client is doomed. */
bool cn_region_take(struct cn_client *c, const struct cn_msg_region *m);
bool cn_region_drop(struct cn_client *c, uint32_t number);
/*
 * The memory of a place, with a reference to it. NULL with *ok: nothing is needed (len 0). False
 * in *ok: there is no such place.
 */
void *cn_region_place(struct cn_client *c, const struct cn_msg_place *place, uint64_t len,
		      struct cn_shared **ref, bool *ok);
void cn_region_put(struct cn_daemon *d, struct cn_shared *s);
/* Unmaps what nobody uses, or a part of it. True: there is more. */
bool cn_region_unmap(struct cn_daemon *d);

/* ---- reload.c ------------------------------------------------------------------------- */

/* Reads the configuration again, as far as it can change; logs what became of it. */
void cn_reload(struct cn_daemon *d);
/*
 * Sets back in *fresh what cannot change while the daemon runs, and lists the names of those that
 * differ in `stays`.
 */
void cn_reload_keep(struct cn_config *fresh, const struct cn_config *running, char *stays,
		    size_t cap);

/* ---- priv.c, notify.c, log.c ---------------------------------------------------------- */

int cn_priv_find(const struct cn_config *c, struct cn_identity *out, struct cn_err *err);
/* Changes groups, group and user, unless `keep` or there is nothing to change. */
int cn_priv_become(const struct cn_identity *id, struct cn_err *err);
/*
 * Becomes it, for good, and installs the filter of system calls; anything short of that is an error
 * to end with.
 */
int cn_priv_drop(const struct cn_identity *id, struct cn_err *err);

/* Whether this build has a filter, for this architecture. */
bool cn_seccomp_available(void);
/* Filters the system calls of this process, for good. */
int cn_seccomp_install(struct cn_err *err);

/* "READY=1", "STOPPING=1" to the service manager, if there is one. */
void cn_notify(const char *state);

void cn_log_open(void);
void cn_log_set_level(enum collnet_log_level level);

#endif
