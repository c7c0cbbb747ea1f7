/* SPDX-License-Identifier: BSD-2-Clause */
/* What a start meets: the listening socket's path, and a standard error that nobody reads. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "namespace.h"

#define STARTS	40
#define AT_ONCE 4

static char dir[64];
static struct cn_daemon *d;
static void (*after_bind)(void); /* NULL: nothing */

/* Linked with --wrap. */
int __real_bind(int fd, const struct sockaddr *at, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len);

int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len)
{
	const int rc = __real_bind(fd, at, len);

	if (rc == 0 && after_bind != NULL) {
		after_bind();
	}
	return rc;
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test_listen.XXXXXX");
	d = calloc(1, sizeof(*d));
	if (d == NULL || mkdtemp(dir) == NULL) {
		return -1;
	}
	cn_config_init(&d->config);
	snprintf(d->config.socket, sizeof(d->config.socket), "%s/sock", dir);
	d->listen_fd = d->reserve_fd = -1;
	d->owner = geteuid();
	d->group = getegid();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(d);
	after_bind = NULL;
	return run_command("rm -rf %s", dir) ? 0 : -1;
}

/* A socket at the path, of this type; nobody listens. */
static int bound(int type)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(sun.sun_path, d->config.socket);
	assert_int_equal(bind(fd, (const struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

/* When `go` ends. Status 0: it listens, and does so until `end` ends; 1: somebody else does. */
static pid_t start_one(const int go[2], const int ready[2], const int end[2])
{
	const pid_t pid = fork();
	struct cn_err err;
	char c;
	int rc;

	if (pid != 0) {
		return pid;
	}
	close(go[1]);
	close(ready[0]);
	close(end[1]);
	if (read(go[0], &c, 1) != 0) {
		_exit(3);
	}
	rc = cn_listen_open(d, &err);
	if (write(ready[1], "x", 1) != 1 || read(end[0], &c, 1) != 0) {
		_exit(3);
	}
	_exit(rc == COLLNET_OK ? 0 : rc == COLLNET_EDAEMON ? 1 : 2);
}

/* Daemons replace one stale socket: one of them listens, the others are told. */
static void open__many_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < STARTS; i++) {
		int go[2], ready[2], end[2], status, listening = 0;
		pid_t pid[AT_ONCE];
		char c;

		close(bound(SOCK_SEQPACKET));
		assert_int_equal(pipe(go) | pipe(ready) | pipe(end), 0);
		for (int k = 0; k < AT_ONCE; k++) {
			pid[k] = start_one(go, ready, end);
		}
		close(go[1]);
		for (int k = 0; k < AT_ONCE; k++) {
			assert_int_equal(read(ready[0], &c, 1), 1);
		}
		close(end[1]);
		for (int k = 0; k < AT_ONCE; k++) {
			assert_int_equal(waitpid(pid[k], &status, 0), pid[k]);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
			listening += WEXITSTATUS(status) == 0;
		}
		assert_int_equal(listening, 1);
		close(go[0]);
		close(end[0]);
		close(ready[0]);
		close(ready[1]);
		assert_int_equal(unlink(d->config.socket), 0);
	}
}

/* A socket that is in use is not replaced, whatever its type. */
static void open__of_another_program(void **state)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const int fd = bound(types[i]);
		struct stat before, after;
		struct cn_err err;

		assert_int_equal(listen(fd, 4), 0);
		assert_int_equal(stat(d->config.socket, &before), 0);
		assert_int_equal(cn_listen_open(d, &err), COLLNET_EDAEMON);
		assert_non_null(strstr(err.text, "another program"));
		close(d->listen_fd);
		assert_int_equal(stat(d->config.socket, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(unlink(d->config.socket), 0);
		close(fd);
	}
}

/* There is no descriptor to ask who listens: the socket may be in use, and is not to be removed. */
static void open__too_few_descriptors(void **state)
{
	const int fd = bound(SOCK_SEQPACKET);
	struct rlimit before, few;
	struct cn_err err;
	int rc;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)fd + 3; /* for the directory and the socket */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	rc = cn_listen_open(d, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, COLLNET_ESYSTEM);
	assert_non_null(strstr(err.text,
			       "cannot be tested for another listener: too many open files"));
	assert_null(strstr(err.text, "remove it"));
	close(d->listen_fd);
	close(fd);
}

/* The path is removed at the end, unless another socket is there by then. */
static void close__removes_its_own(void **state)
{
	struct cn_err err;
	int fd, old;

	(void)state;
	assert_int_equal(cn_listen_open(d, &err), COLLNET_OK);
	cn_listen_close(d);
	assert_int_equal(access(d->config.socket, F_OK), -1);
	assert_int_equal(cn_listen_open(d, &err), COLLNET_OK);
	old = dup(d->listen_fd); /* its inode is not used again */
	assert_int_equal(unlink(d->config.socket), 0);
	fd = bound(SOCK_STREAM);
	cn_listen_close(d);
	assert_int_equal(access(d->config.socket, F_OK), 0);
	close(fd);
	close(old);
}

/* ---- who may write to the directory ----------------------------------------------------- */

static char other[80]; /* a file that is not the daemon's socket */

static void put_symlink(void)
{
	assert_int_equal(unlink(d->config.socket), 0);
	assert_int_equal(symlink(other, d->config.socket), 0);
}

static void put_link(void)
{
	assert_int_equal(unlink(d->config.socket), 0);
	assert_int_equal(link(other, d->config.socket), 0);
}

static void remove_path(void)
{
	assert_int_equal(unlink(d->config.socket), 0);
}

static void other_file(void)
{
	int fd;

	snprintf(other, sizeof(other), "%s/other", dir);
	fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0640), 0);
	close(fd);
}

static void other_socket(void)
{
	char path[sizeof(d->config.socket)];

	other_file();
	assert_int_equal(unlink(other), 0);
	memcpy(path, d->config.socket, sizeof(path));
	snprintf(d->config.socket, sizeof(d->config.socket), "%s", other);
	close(bound(SOCK_SEQPACKET));
	memcpy(d->config.socket, path, sizeof(path));
	assert_int_equal(chmod(other, 0640), 0);
}

static void assert_as_it_was(const struct stat *before)
{
	struct stat st;

	assert_int_equal(lstat(other, &st), 0);
	assert_int_equal(st.st_mode, before->st_mode);
	assert_int_equal(st.st_uid, before->st_uid);
	assert_int_equal(st.st_gid, before->st_gid);
}

/* What takes the place of the socket before its owner is set keeps its owner and mode. */
static void open__replaced_after_bind(void **state)
{
	static const struct {
		void (*make)(void), (*put)(void);
	} cases[] = {
		{ other_file, put_symlink },   { other_file, put_link },
		{ other_socket, put_symlink }, { other_socket, put_link },
		{ other_file, remove_path },
	};

	(void)state;
	d->group = getegid() + 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cn_err err;
		struct stat before;

		cases[i].make();
		assert_int_equal(lstat(other, &before), 0);
		after_bind = cases[i].put;
		assert_int_equal(cn_listen_open(d, &err), COLLNET_EPERM);
		after_bind = NULL;
		assert_non_null(strstr(err.text, "was replaced while collnetd started"));
		assert_as_it_was(&before);
		cn_listen_close(d);
		close(d->listen_fd);
		assert_int_equal(lstat(d->config.socket, &before),
				 cases[i].put == remove_path ? -1 : 0);
		unlink(d->config.socket);
		assert_int_equal(unlink(other), 0);
	}
}

static void mode_is(const char *path, mode_t mode)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
}

/* At a reload, too. */
static void mode__of_its_own_file(void **state)
{
	const mode_t mask = umask(0077);
	struct stat before;
	struct cn_err err;

	(void)state;
	d->config.socket_mode = 0664;
	snprintf(d->config.socket, sizeof(d->config.socket), "%s/new/sock", dir);
	assert_int_equal(cn_listen_open(d, &err), COLLNET_OK);
	umask(mask);
	mode_is(d->config.socket, 0664);
	*strrchr(d->config.socket, '/') = '\0';
	mode_is(d->config.socket, 0755);
	d->config.socket[strlen(d->config.socket)] = '/';
	assert_true(cn_listen_set_mode(d, 0606));
	mode_is(d->config.socket, 0606);
	other_file();
	assert_int_equal(lstat(other, &before), 0);
	put_symlink();
	assert_false(cn_listen_set_mode(d, 0666));
	assert_as_it_was(&before);
	assert_int_equal(unlink(other), 0);
	other_socket();
	assert_int_equal(lstat(other, &before), 0);
	put_link();
	assert_false(cn_listen_set_mode(d, 0666));
	assert_as_it_was(&before);
	remove_path();
	assert_false(cn_listen_set_mode(d, 0666));
	cn_listen_close(d);
}

/* ---- the log ---------------------------------------------------------------------------- */

static void log__nobody_reads_it(void **state)
{
	static char text[1 << 20];
	int p[2], before = dup(STDERR_FILENO);
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(dup2(p[1], STDERR_FILENO), STDERR_FILENO);
	cn_log_open();
	alarm(20);
	for (int i = 0; i < 10000; i++) {
		cn_log(COLLNET_LOG_WARNING, "line %d is written, or lost", i);
	}
	n = read(p[0], text, sizeof(text) - 1);
	assert_true(n > 1000);
	cn_log(COLLNET_LOG_WARNING, "read again");
	n = read(p[0], text, sizeof(text) - 1);
	alarm(0);
	collnet_set_log(NULL, NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	close(p[0]);
	close(p[1]);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, " lines of the log were lost\n"));
	assert_non_null(strstr(text, "read again\n"));
}

static void log__the_disk_is_full(void **state)
{
	char text[256];
	int p[2], full = open("/dev/full", O_WRONLY | O_CLOEXEC), before = dup(STDERR_FILENO);
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(dup2(full, STDERR_FILENO), STDERR_FILENO);
	cn_log_open();
	for (int i = 0; i < 3; i++) {
		cn_log(COLLNET_LOG_WARNING, "line %d", i);
	}
	dup2(p[1], STDERR_FILENO);
	cn_log(COLLNET_LOG_WARNING, "there is room again");
	cn_log(COLLNET_LOG_WARNING, "and more");
	collnet_set_log(NULL, NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	close(full);
	n = read(p[0], text, sizeof(text) - 1);
	close(p[0]);
	close(p[1]);
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, "collnetd: warning: 3 lines of the log were lost\n"
				  "collnetd: warning: there is room again\n"
				  "collnetd: warning: and more\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(open__many_at_once),	 CASE(open__of_another_program),
		CASE(open__too_few_descriptors), CASE(close__removes_its_own),
		CASE(open__replaced_after_bind), CASE(mode__of_its_own_file),

		CASE(log__nobody_reads_it),	 CASE(log__the_disk_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
