/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of an interface and EtherType: one process at a time, because two would each acknowledge
 * the other's frames under the same address. The kernel releases it when its process ends.
 *
 * Two parts. The lock itself is a file that is locked, named after network namespace, interface and
 * EtherType, in the daemon's run directory, where no other user can make or open it. A daemon locks
 * it before it drops its privileges, also if its interface is not there yet, and until it ends. A
 * program in direct mode that has no access to that directory sees the second part, an abstract
 * socket named after the interface's index: it counts only if it is held by root, by the same user,
 * or by the owner of the run directory (the daemon's user). Any user can bind that name first; such
 * a socket is ignored with a warning.
 */
#include "node/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "link/netlink.h"

#define LISTENS 10 /* TCP_LISTEN, which <linux/tcp.h> and <netinet/tcp.h> define differently */

struct holder {
	bool known; /* its user */
	long pid;   /* 0: unknown, or in a PID namespace that this process does not see */
	long uid;
};

static int lock_conflict(const char *interface, uint16_t ethertype, const struct holder *h,
			 struct cn_err *err)
{
	char who[64] = "";

	if (h->pid > 0) {
		snprintf(who, sizeof(who), " (process %ld of user %ld)", h->pid, h->uid);
	} else if (h->known) {
		snprintf(who, sizeof(who), " (of user %ld)", h->uid);
	}
	return cn_fail(
		err, COLLNET_EIFACE,
		"interface %s is used by another collnetd or direct program%s with EtherType "
		"0x%04x: stop it; several ranks of a node need collnetd, another cluster on the "
		"same interface needs an EtherType of its own",
		interface, who, ethertype);
}

/* ---- the file ------------------------------------------------------------------------- */

/* True if only root or this user can create files there; creates the directory if possible. */
static bool private_directory(const char *dir)
{
	struct stat st;

	if (mkdir(dir, 0755) == 0 && chmod(dir, 0755) != 0) {
		return false; /* the umask was stricter, and others must find the socket there */
	}
	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_uid == 0 || st.st_uid == geteuid()) && (st.st_mode & 022) == 0;
}

static void read_holder(int fd, struct holder *h)
{
	char text[64] = "";

	h->pid = 0;
	if (pread(fd, text, sizeof(text) - 1, 0) <= 0 ||
	    sscanf(text, "%ld %ld", &h->pid, &h->uid) != 2) {
		h->pid = 0;
	}
}

/* COLLNET_OK with *out, -1 if the directory is not usable; COLLNET_EIFACE: *h holds the lock. */
static int lock_file(const char *dir, const char *interface, uint16_t ethertype, int *out,
		     struct holder *h)
{
	char path[288], text[64];
	struct stat ns = { .st_ino = 0 };
	int fd, n;

	*out = -1;
	if (strchr(interface, '/') != NULL || !private_directory(dir)) {
		return COLLNET_OK; /* no interface has such a name */
	}
	/* Interfaces of two network namespaces have the same names. */
	if (stat("/proc/self/ns/net", &ns) != 0) {
		ns.st_ino = 0;
	}
	snprintf(path, sizeof(path), "%s/lock-%llu-%s-%04x", dir, (unsigned long long)ns.st_ino,
		 interface, ethertype);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		return COLLNET_OK;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		n = errno;
		if (n == EWOULDBLOCK) {
			read_holder(fd, h);
		}
		close(fd);
		return n == EWOULDBLOCK ? COLLNET_EIFACE : COLLNET_OK;
	}
	n = snprintf(text, sizeof(text), "%ld %ld\n", (long)getpid(), (long)geteuid());
	if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) {
		cn_log(COLLNET_LOG_DEBUG, "lock %s: %s", path, cn_strerror(errno));
	}
	*out = fd;
	return COLLNET_OK;
}

/* ---- the name ------------------------------------------------------------------------- */

/* True if this message of the kernel is about a socket of that name; then *uid is its user. */
static bool is_of(struct nlmsghdr *h, const char *name, size_t len, long *uid)
{
	const struct rtattr *a = (void *)((struct unix_diag_msg *)NLMSG_DATA(h) + 1);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(struct unix_diag_msg));
	bool same = false, has_user = false;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == UNIX_DIAG_NAME) {
			same = RTA_PAYLOAD(a) == len && memcmp(RTA_DATA(a), name, len) == 0;
		} else if (a->rta_type == UNIX_DIAG_UID) {
			has_user = true;
			*uid = *(const uint32_t *)RTA_DATA(a);
		}
	}
	return same && has_user;
}

/* Finds the user whose socket listens on the name, in the kernel's list (since Linux 5.3). */
static bool find_listener(const struct sockaddr_un *name, socklen_t len, long *uid)
{
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req r;
	} request = { { .nlmsg_len = sizeof(request),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		      { .sdiag_family = AF_UNIX,
			.udiag_states = 1u << LISTENS,
			.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID } };
	union {
		struct nlmsghdr first;
		char bytes[32768];
	} buf;
	const size_t bytes = len - offsetof(struct sockaddr_un, sun_path);
	int fd = cn_netlink_request(NETLINK_SOCK_DIAG, &request, sizeof(request));
	bool found = false, more = fd >= 0;

	while (more && !found) {
		ssize_t n = recv(fd, &buf, sizeof(buf), 0);
		struct nlmsghdr *h = &buf.first;

		/* The list ends with a message of another type, as an error does. */
		more = n > 0 && h->nlmsg_type == SOCK_DIAG_BY_FAMILY;
		for (; more && !found && NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
			found = h->nlmsg_type == SOCK_DIAG_BY_FAMILY &&
				is_of(h, name->sun_path, bytes, uid);
		}
	}
	if (fd >= 0) {
		close(fd);
	}
	return found;
}

/*
 * The credentials of the process that listens on the name. False: its backlog is full of
 * connections, which it never accepts; then its user may be known all the same.
 */
static bool name_holder(const struct sockaddr_un *name, socklen_t len, struct holder *h)
{
	struct ucred cred = { .pid = 0 };
	socklen_t size = sizeof(cred);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool answers = true;

	*h = (struct holder){ .known = false };
	if (fd < 0) {
		return true;
	}
	if (connect(fd, (const struct sockaddr *)name, len) != 0) {
		answers = errno != EAGAIN;
		h->known = !answers && find_listener(name, len, &h->uid);
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0) {
		*h = (struct holder){ true, cred.pid, (long)cred.uid };
	}
	close(fd);
	return answers;
}

static bool is_trusted(const struct holder *h, const char *dir)
{
	struct stat st;

	return h->known &&
	       (h->uid == 0 || h->uid == (long)geteuid() ||
		(lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && h->uid == (long)st.st_uid));
}

/*
 * COLLNET_OK with *out, -1 if another user has bound the name; COLLNET_EIFACE: *h holds it
 * legitimately. An unidentified holder is legitimate if there is no lock file.
 */
static int lock_name(const char *dir, bool is_only_lock, unsigned int index, uint16_t ethertype,
		     int *out, struct holder *h, struct cn_err *err)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "collnet/%u/%04x", index,
			 ethertype);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*out = -1;
	if (fd < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot open a Unix socket: %s",
			       cn_strerror(errno));
	}
	if (bind(fd, (struct sockaddr *)&name, len) == 0 && listen(fd, 8) == 0) {
		*out = fd;
		return COLLNET_OK;
	}
	n = errno;
	close(fd);
	if (n != EADDRINUSE) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot bind the lock's name: %s",
			       cn_strerror(n));
	}
	if ((!name_holder(&name, len, h) && is_only_lock) || is_trusted(h, dir)) {
		return COLLNET_EIFACE;
	}
	cn_log(COLLNET_LOG_WARNING,
	       "the lock's name collnet/%u/%04x is held by process %ld of user %ld, which is ignored",
	       index, ethertype, h->pid, h->known ? h->uid : -1);
	return COLLNET_OK;
}

/* As if_nametoindex(), which reports ENOENT if it cannot open a socket. */
static unsigned int index_of(const char *interface)
{
	struct ifreq r = { .ifr_ifindex = 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int n = fd < 0 ? -1 : 0;

	if (n == 0) {
		snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", interface);
		n = ioctl(fd, SIOCGIFINDEX, &r);
	}
	if (fd >= 0) {
		int e = errno;

		close(fd);
		errno = e;
	}
	return n == 0 ? (unsigned int)r.ifr_ifindex : 0;
}

int cn_lock_acquire_file(const char *dir, const char *interface, uint16_t ethertype,
			 struct cn_lock *l, struct cn_err *err)
{
	struct holder h = { .pid = 0 };
	const int rc = lock_file(dir, interface, ethertype, &l->file_fd, &h);

	cn_descriptor_identify(l->file_fd, &l->file_id);
	return rc == COLLNET_OK ? COLLNET_OK : lock_conflict(interface, ethertype, &h, err);
}

static int acquire_name(const char *dir, const char *interface, uint16_t ethertype,
			struct cn_lock *l, struct cn_err *err)
{
	const unsigned int index = index_of(interface);
	struct holder h = { .pid = 0 };
	int rc;

	if (index == 0 && errno != ENODEV) {
		return cn_fail(err, COLLNET_ESYSTEM, "interface %s: %s", interface,
			       cn_strerror(errno));
	}
	if (index == 0) {
		return cn_fail(err, COLLNET_EIFACE, "interface %s disappeared", interface);
	}
	rc = lock_name(dir, l->file_fd < 0, index, ethertype, &l->name_fd, &h, err);
	cn_descriptor_identify(l->name_fd, &l->name_id);
	return rc == COLLNET_EIFACE ? lock_conflict(interface, ethertype, &h, err) : rc;
}

int cn_lock_acquire(const char *dir, const char *interface, uint16_t ethertype, struct cn_lock *l,
		    struct cn_err *err)
{
	const bool has_file = l->file_fd >= 0;
	int rc = has_file ? COLLNET_OK : cn_lock_acquire_file(dir, interface, ethertype, l, err);

	if (rc == COLLNET_OK) {
		rc = acquire_name(dir, interface, ethertype, l, err);
	}
	if (rc != COLLNET_OK && !has_file) {
		cn_lock_release(l);
	}
	return rc;
}

void cn_lock_release_name(struct cn_lock *l)
{
	cn_descriptor_close(l->name_fd, &l->name_id);
	l->name_fd = -1;
}

void cn_lock_release(struct cn_lock *l)
{
	if (cn_descriptor_is(l->file_fd, &l->file_id)) {
		flock(l->file_fd, LOCK_UN); /* a child may have inherited it */
	}
	cn_lock_forked(l);
}

void cn_lock_forked(struct cn_lock *l)
{
	cn_descriptor_close(l->file_fd, &l->file_id);
	l->file_fd = -1;
	cn_lock_release_name(l);
}
