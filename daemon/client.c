/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients: accepted by their credentials, served message by message, and marked for close. */
#include "daemon/daemon.h"

#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Without a descriptor or a process, the time until the next attempt to accept clients. */
#define ACCEPT_AGAIN (100 * CN_MS)
#define DESCRIPTORS  64u       /* besides the clients' */
#define SEND_BUFFER  (1 << 20) /* as much of it as the system allows */
#define GROUPS_MAX   65536u    /* of a process, by the kernel; NGROUPS_MAX of musl is 32 */
/*
 * The kernel counts the descriptors that this process has sent and nobody has received yet, and
 * refuses to send more than it may open. A client requests one at a time, but a message to another
 * of its threads may still be unread.
 */
#define UNREAD_DESCRIPTORS_MAX 8u
/* A message waits at most so long. Its client gives up after four thirds of the peer timeout. */
#define CLOSING_WAIT  (1000 * CN_MS)
#define PONG_INTERVAL (10 * CN_MS) /* to a client whose region waits */

/* ---- out ------------------------------------------------------------------------------ */

void cn_client_mark(struct cn_client *c, const char *why)
{
	if (c->marked) {
		return;
	}
	if (why != NULL && cn_user_may_log(c->daemon, c->user)) {
		cn_log(COLLNET_LOG_WARNING, "process %ld of user %lu is disconnected: %s",
		       (long)c->pid, (unsigned long)c->uid, why);
	}
	c->marked = true;
	c->user->closing++;
	c->daemon->marked_clients = true;
}

/* Why a message was not sent; NULL: the client is gone. */
static const char *send_error(int e)
{
	switch (e) {
	case EAGAIN:
		return "it does not read its messages";
	case ETOOMANYREFS:
		return "clients leave more descriptors unread than collnetd may open: raise its "
		       "limit (LimitNOFILE= of the service, ulimit -n)";
	case EPIPE:
	case ECONNRESET:
		return NULL;
	default:
		return cn_strerror(e);
	}
}

static void send_message(struct cn_client *c, const struct msghdr *msg, size_t len)
{
	ssize_t n;

	if (c->marked) {
		return;
	}
	do {
		n = sendmsg(c->fd, msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)len) {
		cn_client_mark(c, n < 0 ? send_error(errno) : NULL);
	}
}

void cn_client_send(struct cn_client *c, const void *m, size_t len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)m, .iov_len = len };
	const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	send_message(c, &msg, len);
}

void cn_client_reply(struct cn_client *c, uint32_t tag, int status, uint64_t value,
		     const char *text)
{
	struct cn_msg_reply m = {
		.head = { .type = CN_MSG_REPLY, .tag = tag },
		.status = status,
		.value = value,
	};

	strncpy(m.text, text, sizeof(m.text) - 1);
	cn_client_send(c, &m, sizeof(m));
}

/* Whether the client has received most of the descriptors that were sent to it. */
static bool may_send_descriptor(struct cn_client *c)
{
	int unread;

	if (ioctl(c->fd, SIOCOUTQ, &unread) == 0 && unread == 0) {
		c->unread_descriptors = 0;
	}
	return c->unread_descriptors < UNREAD_DESCRIPTORS_MAX;
}

void cn_client_send_descriptor(struct cn_client *c, uint32_t tag, int fd)
{
	struct cn_msg_reply m = { .head = { .type = CN_MSG_REPLY, .tag = tag } };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(fd))];
	} control;
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};

	if (!may_send_descriptor(c)) {
		cn_client_mark(c, "it does not read its messages");
		return;
	}
	c->unread_descriptors++;
	memset(&control, 0, sizeof(control));
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(fd));
	send_message(c, &msg, sizeof(m));
}

/* ---- in ------------------------------------------------------------------------------- */

static void welcome(struct cn_client *c, const struct cn_msg_hello *hello)
{
	struct cn_msg_welcome m = {
		.head = { .type = CN_MSG_WELCOME, .tag = hello->head.tag },
		.version = CN_MSG_VERSION,
	};

	memcpy(m.node, c->daemon->runtime.node, sizeof(m.node));
	if (hello->version != CN_MSG_VERSION) {
		m.status = COLLNET_EPROTO;
		snprintf(
			m.text, sizeof(m.text),
			"libcollnet speaks version %u of the daemon's protocol, collnetd %s version %u: "
			"install both from one release, and restart collnetd",
			hello->version, collnet_version(), CN_MSG_VERSION);
	} else {
		m.peer_timeout_ms = c->daemon->config.peer_timeout_ms;
		m.now = cn_now();
	}
	cn_client_send(c, &m, sizeof(m));
	c->greeted = true;
	if (m.status != COLLNET_OK) {
		cn_client_mark(c, "it has another version of the protocol");
	}
}

void cn_client_message(struct cn_client *c, const union cn_msg *m, size_t len)
{
	const char *why = cn_msg_check(m, len, false);

	if (why == NULL && c->greeted != (m->head.type != CN_MSG_HELLO)) {
		why = "HELLO out of sequence";
	}
	if (why != NULL || c->marked) {
		cn_client_mark(c, why);
	} else if (m->head.type == CN_MSG_HELLO) {
		welcome(c, &m->hello);
	} else if (m->head.type == CN_MSG_REGION) {
		cn_mapping_create(c, &m->region);
	} else {
		cn_client_request(c, m);
	}
}

/* It requests something that the user's clients in close may still have: numbers, names, and shares
 * of a limit. Or it requests a region that exceeds a limit until unused memory has been freed. */
static bool depends_on_closing(const struct cn_client *c)
{
	struct cn_daemon *d = c->daemon;
	struct cn_msg_region m;
	ssize_t n;

	if (!cn_mapping_is_ending(d) && c->user->closing == 0) {
		return false;
	}
	n = recv(c->fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT);
	if (n < (ssize_t)sizeof(m.head)) {
		return false;
	}
	if (m.head.type != CN_MSG_REGION || n != (ssize_t)sizeof(m)) {
		return c->user->closing > 0 &&
		       (m.head.type == CN_MSG_JOIN || m.head.type == CN_MSG_OPEN);
	}
	if (cn_mapping_charge(d, c->user, m.bytes, NULL) != COLLNET_OK) {
		return true;
	}
	cn_mapping_uncharge(d, c->user, m.bytes);
	return false;
}

/* For a while: others may close clients and free memory again and again. */
static bool must_wait_for_closing(struct cn_client *c)
{
	const struct cn_daemon *d = c->daemon;

	if (!depends_on_closing(c)) {
		return false;
	}
	if (c->waits_until == 0) {
		c->waits_until = d->now +
				 cn_min_time(CLOSING_WAIT, d->config.peer_timeout_ms * CN_MS / 2);
	}
	return d->now < c->waits_until;
}

/* Its next message takes almost no time and does not depend on the requests before it: a client
 * whose PING is not answered gives up the daemon. */
static bool next_is_signal(const struct cn_client *c)
{
	struct cn_msg_head m;
	const ssize_t n = recv(c->fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT);

	if (n == 0) { /* end of file: a client whose call waits has no later chance to be closed */
		return c->call.op != NULL;
	}
	return n == (ssize_t)sizeof(m) && (m.type == CN_MSG_PING || m.type == CN_MSG_DOORBELL);
}

/* A region does not depend on them either: calls after one that waits may need memory. */
static bool next_is_region(const struct cn_client *c)
{
	struct cn_msg_head m;

	return recv(c->fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof(m) &&
	       m.type == CN_MSG_REGION;
}

/*
 * Messages after a call that waits stay in the socket and may include PINGs. Each new message is
 * therefore answered by a PONG, which fails if the client has ended. The loop reports new messages
 * once, but a region in each iteration: while that waits, PONGs are sent now and then.
 */
static void respond_if_waiting(struct cn_client *c)
{
	static const struct cn_msg_head ping = { .type = CN_MSG_PING };
	struct cn_msg_head m;

	if (c->marked || c->call.op == NULL ||
	    recv(c->fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT) < 0) {
		return;
	}
	if (next_is_region(c)) {
		if (c->daemon->now < c->pong_at) {
			return;
		}
		c->pong_at = c->daemon->now + PONG_INTERVAL;
	}
	cn_report_alive(c, &ping);
}

static void receive(struct cn_client *c)
{
	static union cn_msg m;
	bool descriptors;
	ssize_t n = cn_receive(c->fd, c->daemon->guarded, &m, sizeof(m), &descriptors);

	c->waits_until = 0;
	/* ECONNRESET: it has ended with messages unread. What it sent before comes next. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) {
		return;
	}
	if (n >= 0 && descriptors) {
		cn_client_mark(c, "it sent a descriptor");
	} else if (n <= 0) {
		cn_client_mark(c, NULL); /* end of file; an empty message looks the same */
	} else {
		cn_client_rings_count_message(c);
		cn_client_update_clock(c);
		cn_client_message(c, &m, (size_t)n);
	}
}

/* Receives messages that need not wait for the waiting call. The loop reports several messages
 * once. It reports a region again that waits for another slice, or for clients that close. */
static void receive_while_waiting(struct cn_client *c, bool served)
{
	bool over = false;

	while (!over && !c->marked &&
	       (next_is_signal(c) || (served && next_is_region(c) && !must_wait_for_closing(c)))) {
		receive(c);
		over = !served || cn_slice_is_over(c->daemon);
	}
	if (!c->marked && next_is_region(c)) {
		cn_event_client_waits(c->daemon, c, true);
	}
}

/*
 * One message per iteration: the library waits for the response to nearly every message, and a
 * flood gets no more than its share. The requests that were in the client's ring when it sent the
 * message are served first. If its user's slice ends before that, or one of them waits for a task,
 * the message stays in the socket, unless it does not depend on them.
 */
void cn_client_readable(struct cn_client *c)
{
	struct cn_daemon *d = c->daemon;
	bool served;

	served = cn_slice_begin(d, c->user);
	cn_client_rings_serve(c, served && c->call.op == NULL ? CN_MSG_RING_SLOTS : 0);
	if (c->call.op != NULL) {
		receive_while_waiting(c, served);
	} else if (!c->marked && (served && !cn_slice_is_over(d) ? !must_wait_for_closing(c)
								 : next_is_signal(c))) {
		receive(c);
		cn_slice_is_over(d);
	}
	respond_if_waiting(c);
	if (served) {
		cn_slice_end(d, c->user);
	}
}

/* ---- accept --------------------------------------------------------------------------- */

struct cn_client *cn_client_new(struct cn_daemon *d, int fd, uid_t uid)
{
	struct cn_user *user = cn_user_find(d, uid);
	struct cn_client *c = NULL;
	uint32_t i = 0;

	while (i < CN_CLIENTS_MAX && d->clients[i] != NULL) {
		i++;
	}
	if (i < CN_CLIENTS_MAX && user != NULL &&
	    cn_quota_charge(d, user, CN_QUOTA_CONNECTIONS, 1, NULL) == COLLNET_OK) {
		c = calloc(1, sizeof(*c));
		if (c == NULL) {
			cn_quota_uncharge(d, user, CN_QUOTA_CONNECTIONS, 1);
		}
	}
	if (c == NULL) {
		return NULL;
	}
	c->daemon = d;
	c->fd = fd;
	c->uid = uid;
	c->user = user;
	c->peak = d->peak;
	d->clients[i] = c;
	d->nclients++;
	return c;
}

/* Checks the peer's credentials, as the kernel reports them. */
static bool peer_allowed(struct cn_daemon *d, int fd, struct ucred *cred)
{
	static gid_t groups[GROUPS_MAX + 1]; /* and cred->gid */
	socklen_t len = sizeof(*cred), glen = GROUPS_MAX * sizeof(gid_t);
	size_t n = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &len) != 0) {
		return false;
	}
#ifdef SO_PEERGROUPS
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &glen) == 0) {
		n = glen / sizeof(gid_t);
	}
#endif
	groups[n++] = cred->gid;
	return cn_listen_allowed(d->config.socket_mode, geteuid(), d->group, cred->uid, groups, n);
}

/* Answers its HELLO. */
static void send_refusal(int fd, int status, const char *text)
{
	struct cn_msg_welcome m = {
		.head = { .type = CN_MSG_WELCOME, .tag = 1 }, /* of the library's HELLO */
		.version = CN_MSG_VERSION,
		.status = status,
	};

	strncpy(m.text, text, sizeof(m.text) - 1);
	/* The client may be gone. */
	if (send(fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		cn_log(COLLNET_LOG_DEBUG, "a refused process did not wait for the reason");
	}
}

static void refuse(struct cn_daemon *d, int fd, int status, const char *text)
{
	send_refusal(fd, status, text);
	cn_receive_close(d, fd);
}

/* Whether there is room for one more of this user: COLLNET_OK, or why not. */
static int check_room(struct cn_daemon *d, struct cn_user *user, struct cn_err *err)
{
	const uint32_t n = d->nclients;

	if (user == NULL || n >= CN_CLIENTS_MAX - (user->uid != 0 ? CN_CLIENTS_RESERVE : 0)) {
		return cn_fail(err, COLLNET_ELIMIT, "collnetd is at its limit of %u connections",
			       n);
	}
	return cn_quota_check(d, user, CN_QUOTA_CONNECTIONS, user->used[CN_QUOTA_CONNECTIONS], 1,
			      err);
}

static void admit(struct cn_daemon *d, int fd)
{
	struct ucred cred = { .pid = 0 };
	const int size = SEND_BUFFER;
	struct cn_client *c = NULL;
	struct cn_user *user;
	struct cn_err err;
	bool allowed;
	int rc;

	allowed = peer_allowed(d, fd, &cred);
	user = cn_user_find(d, cred.uid);
	if (!allowed) {
		rc = cn_fail(&err, COLLNET_EPERM,
			     "no permission to use collnetd: join the group of its socket, or see "
			     "socket-mode in collnetd.conf(5)");
	} else if (d->subuids.lacks_users && cred.uid == CN_UNMAPPED_USER) {
		rc = cn_fail(&err, COLLNET_EPERM,
			     "collnetd runs in a user namespace that does not map this user, or "
			     "not all others: start it in one that maps all users");
	} else {
		rc = check_room(d, user, &err);
	}
	if (rc == COLLNET_OK) {
		c = cn_client_new(d, fd, cred.uid);
		rc = c != NULL ? COLLNET_OK
			       : cn_fail(&err, COLLNET_ENOMEM, "collnetd is out of memory");
	}
	if (rc != COLLNET_OK) {
		if (user != NULL && cn_user_may_log(d, user)) {
			cn_log(COLLNET_LOG_WARNING, "process %ld of user %lu is refused: %s",
			       (long)cred.pid, (unsigned long)cred.uid, err.text);
		}
		refuse(d, fd, rc, err.text);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	c->pid = cred.pid;
	if (cn_event_add_client(d, c) != COLLNET_OK) {
		cn_fail(&err, COLLNET_ENOMEM, "collnetd cannot watch another connection: %s",
			cn_strerror(errno));
		send_refusal(fd, err.code, err.text);
		cn_client_mark(c, err.text);
	}
}

void cn_client_open(struct cn_daemon *d)
{
	const rlim_t want = CN_CLIENTS_MAX * (1 + UNREAD_DESCRIPTORS_MAX) + CN_REGIONS_MAX +
			    DESCRIPTORS;
	struct rlimit r;

	/* A client's socket, what is sent to it, and its regions; the default limit of 1,024 is too
	 * near. Root, which collnetd still is, may raise the hard limit, too. */
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < want) {
		const struct rlimit both = { want, r.rlim_max < want ? want : r.rlim_max };

		r.rlim_cur = r.rlim_max < want ? r.rlim_max : want;
		if (setrlimit(RLIMIT_NOFILE, &both) != 0) {
			setrlimit(RLIMIT_NOFILE, &r);
			d->descriptors = r.rlim_cur < want ? r.rlim_cur : 0;
		}
	}
	d->reserve_fd = fcntl(d->listen_fd, F_DUPFD_CLOEXEC, 0);
}

/*
 * There is no descriptor for the next connection. The reserve is closed in order to accept and
 * refuse it: left waiting, it would wake the loop again and again. False: that failed, because the
 * limit is below the number of open descriptors, or other processes took the system's last file.
 */
static bool refuse_one(struct cn_daemon *d)
{
	int fd;

	if (d->reserve_fd < 0) {
		d->reserve_fd = fcntl(d->listen_fd, F_DUPFD_CLOEXEC, 0);
	}
	if (d->reserve_fd < 0) {
		return false;
	}
	close(d->reserve_fd);
	fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		refuse(d, fd, COLLNET_ELIMIT,
		       "collnetd has no descriptor left: raise its limit (LimitNOFILE= of the "
		       "service, ulimit -n)");
		cn_receive_close_pending(d);
	}
	d->reserve_fd = fcntl(d->listen_fd, F_DUPFD_CLOEXEC, 0);
	return fd >= 0;
}

/* Waiting connections would wake the loop again and again. */
static void accept_later(struct cn_daemon *d, const char *why)
{
	if (!d->starved) {
		cn_log(COLLNET_LOG_WARNING, "%s: new clients wait", why);
	}
	d->starved = true;
	d->accept_at = d->now + ACCEPT_AGAIN;
	cn_event_listen(d, false);
}

static void close_pending(struct cn_daemon *d)
{
	if (!cn_receive_close_pending(d)) {
		accept_later(d, "cannot fork a process that closes clients' sockets");
	}
}

void cn_client_accept(struct cn_daemon *d)
{
	for (uint32_t i = 0; i < CN_ACCEPTS; i++) {
		int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			d->starved = false;
			admit(d, fd);
		} else if (errno == EMFILE || errno == ENFILE) {
			if (!refuse_one(d)) {
				accept_later(d,
					     "no descriptor is left, not even to refuse a client");
				break;
			}
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			accept_later(d, cn_strerror(errno));
			break;
		}
	}
	close_pending(d);
}

/* ---- close ---------------------------------------------------------------------------- */

bool cn_client_reap(struct cn_daemon *d)
{
	const bool some = d->marked_clients;

	if (d->accept_at <= d->now) {
		d->accept_at = CN_NEVER;
		cn_event_listen(d, true);
	}
	cn_client_close_marked(d);
	if (d->accept_at == CN_NEVER) {
		close_pending(d);
	}
	return cn_mapping_unmap(d) || some;
}

void cn_client_end(struct cn_daemon *d)
{
	d->closing_ends = 0;
	for (uint32_t i = 0; i < CN_CLIENTS_MAX; i++) {
		if (d->clients[i] != NULL) {
			cn_client_mark(d->clients[i], NULL);
			d->marked_clients = true;
		}
	}
	cn_client_reap(d);
}
