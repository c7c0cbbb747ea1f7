/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The listening socket, at a fixed path, whatever an earlier daemon left there.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG	   128
#define LOCK_TRIES 100 /* 10 ms apart */

bool cn_listen_allowed(uint32_t mode, uid_t owner, gid_t group, uid_t uid, const gid_t *groups,
		       size_t ngroups)
{
	if (uid == 0 || uid == owner) {
		return true;
	}
	for (size_t i = 0; i < ngroups; i++) {
		if (groups[i] == group) {
			return (mode & 0020) != 0;
		}
	}
	return (mode & 0002) != 0;
}

static void directory_of(const char *path, char *dir, size_t size)
{
	char *slash;

	snprintf(dir, size, "%s", path);
	slash = strrchr(dir, '/');
	if (slash == NULL) {
		snprintf(dir, size, ".");
	} else {
		slash[slash == dir] = '\0'; /* "/" stays */
	}
}

/* Makes it, if it is the last one that is missing. */
static int make_directory(const char *dir, struct cn_err *err)
{
	/* Whatever the umask was: others are to find the socket there. */
	const mode_t mask = umask(0022);
	const int e = mkdir(dir, 0755) == 0 ? 0 : errno;

	umask(mask);
	if (e != 0 && e != EEXIST) {
		return cn_fail(
			err, e == EACCES ? COLLNET_EPERM : COLLNET_ESYSTEM,
			"cannot make directory %s for the socket: %s; choose another path with --socket",
			dir, cn_strerror(e));
	}
	return COLLNET_OK;
}

/* Whether a process listens there: 0: no; EADDRINUSE: yes; another errno: unknown. */
static int find_listener(const struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int e = 0;

	if (fd < 0) {
		return errno;
	}
	if (connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) != 0) {
		e = errno;
	}
	close(fd);
	/* A socket of another type is in use if it says so. */
	return e == ECONNREFUSED || e == ENOENT		  ? 0
	       : e == 0 || e == EAGAIN || e == EPROTOTYPE ? EADDRINUSE
							  : e;
}

static int bind_path(struct cn_daemon *d, const struct sockaddr_un *sun, struct cn_err *err)
{
	const char *path = sun->sun_path;
	struct stat st;
	int e;

	if (bind(d->listen_fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0) {
		return COLLNET_OK;
	}
	if (errno != EADDRINUSE) {
		return cn_fail(err, errno == EACCES ? COLLNET_EPERM : COLLNET_ESYSTEM,
			       "socket %s: %s; choose another path with --socket", path,
			       cn_strerror(errno));
	}
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		return cn_fail(
			err, COLLNET_ESYSTEM,
			"%s exists and is not a socket: remove it, or choose another path with --socket",
			path);
	}
	e = find_listener(sun);
	if (e != 0 && e != EADDRINUSE) {
		const bool refused = e == EACCES || e == EPERM;

		return cn_fail(err, refused ? COLLNET_EPERM : COLLNET_ESYSTEM,
			       "socket %s exists, and cannot be tested for another listener: %s%s",
			       path, cn_strerror(e),
			       refused ? ": remove it, or choose another path with --socket" : "");
	}
	if (e != 0) {
		return cn_fail(
			err, COLLNET_EDAEMON,
			"another collnetd, or another program, listens on %s: stop it, or choose "
			"another path with --socket",
			path);
	}
	if ((unlink(path) != 0 && errno != ENOENT) ||
	    bind(d->listen_fd, (const struct sockaddr *)sun, sizeof(*sun)) != 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot replace the stale socket %s: %s", path,
			       cn_strerror(errno));
	}
	return COLLNET_OK;
}

/*
 * Daemons that start at the same time replace a stale socket one after the other, and the second
 * one finds that of the first. Returns the descriptor to close, or -1: the directory cannot be
 * opened, or another process has locked it for too long.
 */
static int lock_directory(const char *dir)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < LOCK_TRIES && fd >= 0; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			return fd;
		}
		if (errno != EWOULDBLOCK && errno != EINTR) {
			break;
		}
		nanosleep(&pause, NULL);
	}
	if (fd >= 0) {
		close(fd);
	}
	return -1;
}

/*
 * The file at the socket's path, without following a link: others may be able to write to its
 * directory. -1, with errno; ENOENT also if it is not a socket.
 */
static int open_path(const char *path, struct stat *st)
{
	const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int e;

	if (fd < 0) {
		return -1;
	}
	e = fstat(fd, st) != 0 ? errno : S_ISSOCK(st->st_mode) ? 0 : ENOENT;
	if (e != 0) {
		close(fd);
		errno = e;
	}
	return e == 0 ? fd : -1;
}

/*
 * The file that bind() made belongs to the worker's user, who can change its mode at a reload. One
 * that others have put there instead, such as a link to another socket of root's, is not given
 * away.
 */
static int set_owner(struct cn_daemon *d, struct cn_err *err)
{
	const bool changes = d->group != getegid() || d->owner != geteuid();
	const char *path = d->config.socket;
	struct stat st;
	const int fd = open_path(path, &st);
	int rc = COLLNET_OK;

	if (fd < 0 && errno != ENOENT) {
		return cn_fail(err, COLLNET_ESYSTEM, "socket %s: %s", path, cn_strerror(errno));
	}
	if (fd < 0 || (changes && (st.st_nlink != 1 || st.st_uid != geteuid()))) {
		rc = cn_fail(err, COLLNET_EPERM,
			     "socket %s was replaced while collnetd started: choose another path "
			     "with --socket, in a directory to which no other user can write",
			     path);
	} else {
		d->unlink_socket = true;
		d->socket_device = st.st_dev;
		d->socket_inode = st.st_ino;
		if (changes && fchownat(fd, "", d->owner, d->group, AT_EMPTY_PATH) != 0) {
			rc = cn_fail(
				err, COLLNET_EINVAL,
				"cannot give socket %s to group %lu: %s; %s, or choose another with "
				"--group",
				path, (unsigned long)d->group, cn_strerror(errno),
				geteuid() == 0
					? "keep user and group with --user none"
					: "start collnetd with that group (Group= of the service)");
		}
	}
	if (fd >= 0) {
		close(fd);
	}
	return rc;
}

static int listen_at(struct cn_daemon *d, struct cn_err *err)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const char *path = d->config.socket;
	mode_t mask;
	int rc;

	memcpy(sun.sun_path, path, strlen(path) + 1);
	d->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->listen_fd < 0) {
		return cn_fail(err, COLLNET_ESYSTEM, "cannot open a Unix socket: %s",
			       cn_strerror(errno));
	}
	d->guarded = cn_receive_guard(d->listen_fd);
	mask = umask(~d->config.socket_mode & 0777); /* the file has all other permissions */
	rc = bind_path(d, &sun, err);
	umask(mask);
	if (rc == COLLNET_OK) {
		rc = set_owner(d, err);
	}
	if (rc == COLLNET_OK && listen(d->listen_fd, BACKLOG) != 0) {
		rc = cn_fail(err, COLLNET_ESYSTEM, "socket %s: %s", path, cn_strerror(errno));
	}
	return rc;
}

int cn_listen_open(struct cn_daemon *d, struct cn_err *err)
{
	char dir[sizeof(d->config.socket)];
	int rc, lock;

	directory_of(d->config.socket, dir, sizeof(dir));
	rc = make_directory(dir, err);
	if (rc == COLLNET_OK) {
		lock = lock_directory(dir);
		rc = listen_at(d, err);
		if (lock >= 0) {
			close(lock);
		}
	}
	return rc;
}

/* Whether this is the file that bind() made. Its inode is not used again while it is bound. */
static bool is_bound(const struct cn_daemon *d, const struct stat *st)
{
	return d->unlink_socket && st->st_dev == d->socket_device && st->st_ino == d->socket_inode;
}

bool cn_listen_set_mode(const struct cn_daemon *d, uint32_t mode)
{
	char name[32]; /* chmod() needs one */
	struct stat st;
	const int fd = open_path(d->config.socket, &st);
	bool done;

	if (fd < 0) {
		return false;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	done = is_bound(d, &st) && chmod(name, mode) == 0;
	close(fd);
	return done;
}

void cn_listen_close(struct cn_daemon *d)
{
	struct stat st;

	/* Another program's may be there by now. */
	if (lstat(d->config.socket, &st) == 0 && is_bound(d, &st) &&
	    unlink(d->config.socket) != 0) {
		/* In a directory of root's: the next start replaces it. */
		cn_log(COLLNET_LOG_DEBUG, "cannot remove socket %s: %s", d->config.socket,
		       cn_strerror(errno));
	}
	d->unlink_socket = false;
	if (d->reserve_fd >= 0) {
		close(d->reserve_fd); /* a second descriptor of the socket */
		d->reserve_fd = -1;
	}
	if (d->listen_fd >= 0 && d->guarded) {
		close(d->listen_fd);
	}
	d->listen_fd = -1; /* unguarded, the exit of the process closes it, which never blocks */
}
