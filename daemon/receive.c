/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving from a client's socket and closing it, neither of which may block.
 *
 * No descriptor of a client enters this process. The last close() of a descriptor can block for as
 * long as its sender likes (a TCP socket with SO_LINGER, a file of a FUSE server), also when the
 * kernel discards it for lack of control space, also when it lies unread in a socket that is
 * closed. Two ways:
 *
 *  - guarded: SO_PASSRIGHTS is off (Linux 6.16), so that sendmsg() with descriptors fails at the
 *    sender. The listening socket's setting is inherited by connections before they are accepted.
 *  - not guarded: every message is examined first (MSG_PEEK without control space duplicates
 *    nothing and sets MSG_CTRUNC), and one with descriptors stays in its socket. The exit of a
 *    reaper (reaper.c), in which the kernel does not linger, drops the sockets' last references:
 *    one reaper for all sockets to be closed. While none can be forked, they wait.
 */
#include "daemon/daemon.h"

#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

bool cn_receive_guard(int fd)
{
	const int off = 0;

	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}

ssize_t cn_receive(int fd, bool guarded, void *m, size_t size, bool *descriptors)
{
	struct iovec iov = { .iov_base = m, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	const int flags = MSG_DONTWAIT | MSG_TRUNC;
	ssize_t n = recvmsg(fd, &msg, guarded ? flags : flags | MSG_PEEK);

	*descriptors = n >= 0 && (msg.msg_flags & MSG_CTRUNC) != 0;
	if (n > 0 && !guarded && !*descriptors) {
		return recv(fd, m, size, flags);
	}
	return n;
}

void cn_receive_close(struct cn_daemon *d, int fd)
{
	if (d->guarded) {
		close(fd);
		return;
	}
	shutdown(fd, SHUT_RDWR); /* nothing more is queued */
	d->closing[d->nclosing++] = fd;
}

bool cn_receive_close_pending(struct cn_daemon *d)
{
	pid_t reaper;

	if (d->nclosing == 0) {
		return true;
	}
	reaper = cn_reaper_begin(d->closing, d->nclosing);
	if (reaper < 0) {
		return false;
	}
	while (d->nclosing > 0) {
		close(d->closing[--d->nclosing]);
	}
	cn_reaper_end(reaper);
	return true;
}
