/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collnetd is two processes. The parent opens the link's sockets for the worker, forwards signals
 * to it, and outlives it. The worker does everything else, without privileges.
 */
#ifndef CN_PARENT_H
#define CN_PARENT_H

#include <sys/types.h>

#include "proto/goodbye_list.h"

/*
 * The user to run as: that of the configuration, or collnet, or nobody. COLLNET_EINVAL: there is no
 * such user or group. `keep`: no privileges are dropped.
 */
struct cn_identity {
	bool keep;
	bool lacks_group; /* the default one, of those who may use the socket */
	uid_t uid;
	gid_t gid;
	char name[64];
};

#define CN_PARENT_NODES 4096u /* in the goodbye list */
/* Milliseconds. The daemon does not start, or ends, if the parent takes longer to open a socket, so
 * it is much longer than a busy machine keeps a process from running. */
#define CN_PARENT_TIMEOUT 30000u

/* The worker's side of its parent. */
struct cn_parent {
	pid_t pid;
	int fd;				  /* requests to it; -1: there is no parent */
	bool udp;			  /* the link is of kind udp */
	bool has_key;			  /* the goodbyes have a secret: no core dumps */
	uint32_t timeout_ms;		  /* for its response */
	struct cn_goodbye_list *goodbyes; /* shared with it; the transport writes, it reads */
};

/*
 * Forks. In the worker: COLLNET_OK. In the parent: returns when the worker is gone,
 * COLLNET_INPROGRESS, with the exit status of the daemon in *status. SIGTERM, SIGINT, SIGHUP and
 * SIGCHLD are blocked in both. `ready_fd` is closed in the parent.
 */
int cn_parent_fork(const struct cn_identity *id, int ready_fd, struct cn_parent *p, int *status,
		   struct cn_err *err);
/*
 * In the worker: SIGTERM when the parent dies. To be called again after a change of credentials,
 * which cancels it.
 */
int cn_parent_watch(const struct cn_parent *p, struct cn_err *err);
bool cn_parent_died(const struct cn_parent *p);
/*
 * Gives it a packet socket that is bound to this interface: from now on it sends goodbyes there to
 * the nodes of the goodbye list when the worker dies. COLLNET_EPERM, COLLNET_ESYSTEM.
 */
int cn_parent_announce(const struct cn_parent *p, int interface, struct cn_err *err);
/*
 * A copy of the goodbye list, for cn_parent_send_goodbyes() after the transport has been replaced;
 * to be freed. NULL: there is no parent, or no memory.
 */
struct cn_goodbye_list *cn_parent_copy_goodbyes(const struct cn_parent *p);
/*
 * Sends the goodbyes of a list, with its reason, on this interface in the worker. Blocks for a
 * millisecond per 16 nodes, three times. Returns the number of nodes.
 */
uint32_t cn_parent_send_goodbyes(const struct cn_parent *p, int interface,
				 struct cn_goodbye_list *left);
/* Asks for a socket of the link's kind: a descriptor, or -1 with errno. The argument is a struct
 * cn_parent. */
int cn_parent_socket(void *parent);

#endif
