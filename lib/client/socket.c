/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's end of the daemon's socket: sends and receives whole messages, and ensures that no
 * call hangs on a dead or stuck daemon.
 */
#include "client/daemon.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define RESPONSE_TIMEOUT (5000 * CN_MS) /* for the WELCOME, and until it reads what we send */
/*
 * A call that waits probes a silent daemon after an interval, and gives it up after so many more:
 * after the peer timeout of the daemon, as long as nodes wait for each other. While the daemon
 * responds, a response is waited for: it may be due after another call of this process only.
 * Intervals are counted, and not the clock alone, so that a program that was stopped itself does
 * not blame the daemon.
 *
 * A call that only this node's daemon answers keeps the context's lock, and waits for no other
 * node. It gives a silent daemon up after RESPONSE_TIMEOUT at the latest.
 */
#define INTERVALS    3u
#define INTERVAL_MAX (RESPONSE_TIMEOUT / (INTERVALS + 1)) /* of such a call */

void cn_socket_received(struct cn_daemon_side *d)
{
	d->missed = 0;
	d->check_at = 0;
}

void cn_socket_gone(struct collnet *c, int code, const char *what)
{
	struct cn_daemon_side *d = c->impl;
	struct cn_err why;

	cn_fail(&why, code, "collnetd on this node %s (socket %s)", what, d->path);
	cn_descriptor_close(d->fd, &d->fd_id);
	d->fd = -1;
	cn_context_gone(c, &why);
}

/* The connection has ended: the daemon closed it, or the program did. */
static void connection_ended(struct collnet *c)
{
	struct cn_daemon_side *d = c->impl;
	const bool closed_here = !cn_descriptor_is(d->fd, &d->fd_id);

	/* Closed before its last completions are taken, which may want to send. They can have the
	 * daemon's reason. */
	cn_descriptor_close(d->fd, &d->fd_id);
	d->fd = -1;
	cn_rings_completions(c);
	cn_socket_gone(c, COLLNET_EDAEMON,
		       closed_here ? "cannot be reached: the program closed a descriptor of the "
				     "library"
				   : "went away");
}

static int wait_for(int fd, short events, cn_time until)
{
	struct pollfd p = { .fd = fd, .events = events };
	cn_time now = cn_now();
	struct timespec ts;

	if (now >= until) {
		return 0;
	}
	ts = cn_timespec(until - now);
	return ppoll(&p, 1, &ts, NULL);
}

/* As recv(); a descriptor that comes becomes d->in_fd. */
static ssize_t receive_descriptor(struct cn_daemon_side *d)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = &d->in, .iov_len = sizeof(d->in) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof(int)), /* room for one */
	};
	ssize_t n = recvmsg(d->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	const struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);

	if (h != NULL && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
	    h->cmsg_len == CMSG_LEN(sizeof(int)) && d->in_fd < 0) {
		memcpy(&d->in_fd, CMSG_DATA(h), sizeof(int));
	}
	return n;
}

/*
 * One message into d->in. 1: it is there, and well-formed; 0: none now; -1: the context is gone.
 */
static int receive_any(struct collnet *c)
{
	struct cn_daemon_side *d = c->impl;
	const char *wrong;
	int tries = 0;
	ssize_t n;

	if (d->fd < 0) {
		return -1;
	}
	do {
		n = d->wants_fd ? receive_descriptor(d)
				: recv(d->fd, &d->in, sizeof(d->in), MSG_DONTWAIT | MSG_TRUNC);
		/* ECONNRESET: it did not read our last message. Its own may wait behind that. */
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && tries++ == 0)));
	if (n < 0 && errno == EAGAIN) {
		return 0;
	}
	if (n <= 0) {
		connection_ended(c);
		return -1;
	}
	wrong = cn_msg_check(&d->in, (size_t)n, true);
	if (wrong != NULL) {
		cn_log(COLLNET_LOG_ERROR, "message from collnetd: %s", wrong);
		cn_socket_gone(c, COLLNET_EPROTO, "sent an invalid message");
		return -1;
	}
	return 1;
}

/* A message that is no response to a request: PONG, or a wake-up. */
static bool is_idle(const struct cn_daemon_side *d)
{
	return d->in.head.type == CN_MSG_PONG || d->in.head.type == CN_MSG_EVENT;
}

/* A REPLY that nobody waits for, which is counted then. */
static bool is_unread(struct cn_daemon_side *d)
{
	if (d->unread == 0 || d->in.head.type != CN_MSG_REPLY) {
		return false;
	}
	d->unread--;
	return true;
}

/* As receive_any(); the daemon runs. */
static int receive_one(struct collnet *c)
{
	struct cn_daemon_side *d = c->impl;
	const int got = receive_any(c);

	if (got > 0) {
		cn_socket_received(d);
		d->pinged = d->pinged && d->in.head.type != CN_MSG_PONG;
		cn_wake(c); /* an EVENT may have been for it */
	}
	return got;
}

/* The same, of responses. */
static int receive(struct collnet *c)
{
	int got;

	do {
		got = receive_one(c);
	} while (got > 0 && is_idle(c->impl));
	return got;
}

/* Checks the daemon at this interval. */
static bool probe(struct collnet *c, cn_time now, cn_time interval)
{
	const struct cn_msg_head m = { .type = CN_MSG_PING };
	struct cn_daemon_side *d = c->impl;

	if (d->interval == 0) {
		d->check_at = now + RESPONSE_TIMEOUT;
		return true;
	}
	if (d->check_at == 0 || d->check_at > now + interval) {
		d->check_at = now + interval;
	}
	if (now < d->check_at) {
		return true;
	}
	d->check_at = now + interval;
	if (d->pinged || send(d->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		d->missed++;
	} else {
		d->sent++;
	}
	d->pinged = true;
	if (d->missed >= INTERVALS) {
		cn_socket_gone(c, COLLNET_EDAEMON, "does not respond");
	}
	return d->missed < INTERVALS;
}

bool cn_socket_probe(struct collnet *c, cn_time now)
{
	const struct cn_daemon_side *d = c->impl;

	return probe(c, now, d->interval);
}

bool cn_socket_poll(struct collnet *c, cn_time now)
{
	struct cn_daemon_side *d = c->impl;
	const int got = receive_one(c);

	d->read_at = now;
	if (got > 0 && !is_idle(d) && !is_unread(d)) {
		cn_socket_gone(c, COLLNET_EPROTO, "sent an unexpected response");
		return false;
	}
	return got >= 0;
}

void cn_socket_drain_unread(struct collnet *c)
{
	struct cn_daemon_side *d = c->impl;

	while (d->unread > 0 && receive_one(c) > 0) {
		if (!is_idle(d) && !is_unread(d)) {
			cn_socket_gone(c, COLLNET_EPROTO, "sent an unexpected response");
		}
	}
}

bool cn_socket_sleep(struct collnet *c, cn_time until)
{
	struct cn_daemon_side *d = c->impl;
	struct pollfd fds[2] = { { .fd = d->fd, .events = POLLIN } };
	const cn_time now = cn_now(), end = cn_min_time(until, d->check_at);

	return now < end && cn_sleep(c, fds, 1, end - now);
}

int cn_socket_send(struct collnet *c, const void *m, size_t len, struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	const struct cn_msg_head *head = m;
	cn_time until = 0; /* for its room; 0: there was no wait yet */
	ssize_t n;

	while (d->fd >= 0) {
		n = send(d->fd, m, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n == (ssize_t)len) {
			d->sent++;
			return COLLNET_OK;
		}
		if (n < 0 && errno == EAGAIN) {
			/* Its own messages can be received later: the daemon never waits for
			 * us. */
			until = until != 0 ? until : cn_now() + RESPONSE_TIMEOUT;
			cn_rings_blocked_on(d, cn_now());
			if (cn_now() >= until) {
				cn_socket_gone(c, COLLNET_EDAEMON, "does not read requests");
			} else {
				wait_for(d->fd, POLLOUT, until);
			}
		} else if (n < 0 && errno == EPIPE && head->type == CN_MSG_HELLO) {
			return COLLNET_OK; /* refused already: the WELCOME says why */
		} else if (n >= 0 || errno != EINTR) {
			connection_ended(c);
		}
	}
	return cn_fail(err, c->gone.code, "%s", c->gone.text);
}

int cn_socket_request(struct collnet *c, void *m, size_t len, enum cn_msg_type response,
		      struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	struct cn_msg_head *head = m;
	const cn_time until = d->interval == 0 ? cn_now() + RESPONSE_TIMEOUT : CN_NEVER;
	cn_time now;
	int got, rc;

	head->tag = ++d->tag;
	rc = cn_socket_send(c, m, len, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	while (c->gone.code == COLLNET_OK) {
		now = cn_now();
		cn_rings_blocked_on(d, now);
		got = receive(c);
		/* Requests that the daemon completed before its response have completed. */
		if (got > 0 && cn_rings_completions(c) < 0) {
			break;
		}
		if (got > 0 && d->in.head.tag == head->tag && d->in.head.type == CN_MSG_REPLY &&
		    d->in.reply.status != COLLNET_OK) {
			return cn_fail(err, d->in.reply.status, "%s", d->in.reply.text);
		} else if (got > 0 && d->in.head.tag == head->tag && d->in.head.type == response) {
			return COLLNET_OK;
		} else if (got > 0 && (d->in.head.tag == head->tag || !is_unread(d))) {
			cn_socket_gone(c, COLLNET_EPROTO, "sent an unexpected response");
		} else if (got == 0 && now >= until) {
			cn_socket_gone(c, COLLNET_EDAEMON, "does not respond");
		} else if (got == 0 && probe(c, now, cn_min_time(d->interval, INTERVAL_MAX))) {
			wait_for(d->fd, POLLIN, cn_min_time(until, d->check_at));
		}
	}
	return cn_fail(err, c->gone.code, "%s", c->gone.text);
}

int cn_socket_request_descriptor(struct collnet *c, void *m, size_t len, int *fd,
				 struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	int rc;

	d->in_fd = -1;
	d->wants_fd = true;
	rc = cn_socket_request(c, m, len, CN_MSG_REPLY, err);
	d->wants_fd = false;
	if (rc == COLLNET_OK) {
		*fd = d->in_fd;
	} else if (d->in_fd >= 0) {
		close(d->in_fd);
	}
	return rc;
}

/* A full backlog makes connect() wait, but not for ever, also where signals interrupt it. 0, or an
 * errno. */
static int connect_until(int fd, const struct sockaddr_un *sun, cn_time until)
{
	struct timeval limit;
	cn_time now, us;

	do {
		now = cn_now();
		if (now >= until) {
			return EAGAIN;
		}
		us = (until - now + 999) / 1000; /* a limit of 0 is none */
		limit.tv_sec = (time_t)(us / 1000000);
		limit.tv_usec = (suseconds_t)(us % 1000000);
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		if (connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0) {
			return 0;
		}
	} while (errno == EINTR);
	return errno;
}

/*
 * Whether a daemon that root started found no group collnet and gave its socket the group of its
 * user instead (cn_priv_find()). Nobody is to join that group.
 */
static bool is_fallback(const struct stat *st, const char *group)
{
	struct passwd pw, *found = NULL;
	char text[4096];

	(void)getpwuid_r(st->st_uid, &pw, text, sizeof(text), &found);
	return found != NULL && pw.pw_gid == st->st_gid && strcmp(group, "collnet") != 0 &&
	       (strcmp(pw.pw_name, "collnet") == 0 || strcmp(pw.pw_name, "nobody") == 0);
}

static int refused(const char *path, struct cn_err *err)
{
	static const char how[] = "or see group and socket-mode in collnetd.conf(5)";
	struct group gr, *found = NULL;
	char text[4096], group[64], why[256];
	struct stat st;

	if (stat(path, &st) != 0) {
		return cn_fail(err, COLLNET_EPERM,
			       "no permission to use collnetd's socket %s: its directory is not "
			       "accessible",
			       path);
	}
	(void)getgrgid_r(st.st_gid, &gr, text, sizeof(text), &found);
	if (found != NULL) {
		snprintf(group, sizeof(group), "%s", gr.gr_name);
	} else {
		snprintf(group, sizeof(group), "%lu", (unsigned long)st.st_gid);
	}
	if ((st.st_mode & S_IWGRP) == 0) {
		snprintf(why, sizeof(why),
			 "its mode, %04o, admits no group: see socket-mode in collnetd.conf(5)",
			 (unsigned int)(st.st_mode & 07777));
	} else if (!is_fallback(&st, group)) {
		snprintf(why, sizeof(why), "join its group, %s, %s", group, how);
	} else if (getgrnam_r("collnet", &gr, text, sizeof(text), &found) == 0 && found == NULL) {
		snprintf(why, sizeof(why),
			 "there is no group collnet: as root, create it with 'groupadd -r "
			 "collnet', add users to it and restart collnetd, %s",
			 how);
	} else {
		snprintf(why, sizeof(why),
			 "collnetd did not find the group collnet at its start: restart collnetd "
			 "and join that group, %s",
			 how);
	}
	return cn_fail(err, COLLNET_EPERM, "no permission to use collnetd's socket %s: %s", path,
		       why);
}

static int connect_to(struct cn_daemon_side *d, const char *path, struct cn_err *err)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const cn_time until = cn_now() + RESPONSE_TIMEOUT;
	int e;

	if (*path == '\0') {
		return cn_fail(err, COLLNET_EINVAL, "the path of the socket is empty");
	}
	if (strlen(path) >= sizeof(sun.sun_path)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "the path of the socket is longer than %zu bytes: %.100s...",
			       sizeof(sun.sun_path) - 1, path);
	}
	memcpy(sun.sun_path, path, strlen(path) + 1);
	memcpy(d->path, path, strlen(path) + 1);
	d->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (d->fd < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot open a Unix socket: %s",
			       cn_strerror(errno));
	}
	cn_descriptor_identify(d->fd, &d->fd_id);
	e = connect_until(d->fd, &sun, until);
	if (e == 0) {
		return COLLNET_OK;
	}
	if (e == EACCES || e == EPERM) {
		return refused(path, err);
	}
	if (e == EAGAIN) {
		return cn_fail(err, COLLNET_EDAEMON, "collnetd at %s does not respond", path);
	}
	return cn_fail(err, COLLNET_EDAEMON,
		       "no collnetd at %s: start it with 'collnetd -i IFACE', or set "
		       "COLLNET_SOCKET",
		       path);
}

int cn_socket_open(struct collnet *c, const char *path, struct cn_err *err)
{
	struct cn_daemon_side *d = c->impl;
	struct cn_msg_hello hello = {
		.head = { .type = CN_MSG_HELLO },
		.magic = CN_MSG_MAGIC,
		.version = CN_MSG_VERSION,
	};
	int rc = connect_to(d, path, err);
	const cn_time before = cn_now();

	if (rc == COLLNET_OK) {
		rc = cn_socket_request(c, &hello, sizeof(hello), CN_MSG_WELCOME, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (d->in.welcome.status != COLLNET_OK) {
		return cn_fail(err, d->in.welcome.status, "%s", d->in.welcome.text);
	}
	memcpy(c->node, d->in.welcome.node, sizeof(c->node));
	d->same_clock = d->in.welcome.now >= before && d->in.welcome.now <= cn_now();
	d->interval = d->in.welcome.peer_timeout_ms * CN_MS / INTERVALS;
	d->check_at = 0;
	return COLLNET_OK;
}
