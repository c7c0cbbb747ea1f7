/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the filter of system calls lets through, refuses, and ends the process for; each in a child.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The wait status of a child that does this under the filter. */
static int under_filter(int (*what)(void))
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		_exit(cn_seccomp_install(NULL) == COLLNET_OK ? what() : 100);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void need_filter(void)
{
	if (!cn_seccomp_available()) {
		print_message("skipped: this build has no filter (sanitizers)\n");
		skip();
	}
}

static int daemons_work(void)
{
	int p[2], fd = memfd_create("test", MFD_CLOEXEC);
	char in[2];

	if (fd < 0 || ftruncate(fd, 4096) != 0 ||
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED) {
		return 1;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p) != 0 || send(p[1], "x", 1, 0) != 1 ||
	    recv(p[0], in, sizeof(in), 0) != 1) {
		return 2;
	}
	return 0;
}

static int reads_file(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0 ? 0 : 1;
}

static int writes_file(void)
{
	return open("/dev/null", O_WRONLY | O_CLOEXEC) < 0 && errno == EPERM ? 0 : 1;
}

static int changes_file(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC) < 0 && errno == EPERM ? 0 : 1;
}

static int creates_file(void)
{
	return open("/dev/null", O_RDONLY | O_CREAT | O_CLOEXEC, 0600) < 0 && errno == EPERM ? 0
											     : 1;
}

static int mounts(void)
{
	return mount("none", "/", "tmpfs", 0, NULL) != 0 && errno == EPERM ? 0 : 1;
}

static int closes_by_child(void)
{
	static struct cn_daemon d;
	int p[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) != 0) {
		return 1;
	}
	cn_receive_close(&d, p[0]);
	return cn_receive_close_pending(&d) && fcntl(p[0], F_GETFD) < 0 && errno == EBADF ? 0 : 2;
}

/* A reaper sleeps and ends under the filter, too. */
static int keeps_in_child(void)
{
	struct pollfd in = { .events = POLLIN };
	pid_t reaper;
	int p[2];

	if (pipe(p) != 0) {
		return 1;
	}
	reaper = cn_reaper_begin(&p[1], 1);
	close(p[1]);
	in.fd = p[0];
	if (reaper < 0 || poll(&in, 1, 50) != 0) {
		return 2;
	}
	cn_reaper_end(reaper);
	return poll(&in, 1, 20000) == 1 && in.revents == POLLHUP ? 0 : 3;
}

static int watches_memory(void)
{
	const int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct cn_memfd m;

	if (!cn_memfd_new(&m, 4096, MAP_POPULATE) || cn_memfd_is_sealed(m.own) ||
	    cn_memfd_unmap_alone(m.own, m.p, 4096)) {
		return 1;
	}
	return cn_memfd_watch(inotify, m.own) >= 0 ? 0 : 2;
}

static int runs_program(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return 1;
}

static int traces(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 1 : 2;
}

static void install__what_the_daemon_does(void **state)
{
	(void)state;
	need_filter();
	assert_int_equal(under_filter(daemons_work), 0);
	assert_int_equal(under_filter(reads_file), 0);
	assert_int_equal(under_filter(closes_by_child), 0);
	assert_int_equal(under_filter(keeps_in_child), 0);
	assert_int_equal(under_filter(watches_memory), 0);
}

static void install__refuses_files_and_mounts(void **state)
{
	(void)state;
	need_filter();
	assert_int_equal(under_filter(writes_file), 0);
	assert_int_equal(under_filter(changes_file), 0);
	assert_int_equal(under_filter(creates_file), 0);
	assert_int_equal(under_filter(mounts), 0);
}

static void install__ends_with_another_program(void **state)
{
	int status;

	(void)state;
	need_filter();
	status = under_filter(runs_program);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	status = under_filter(traces);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(install__what_the_daemon_does),
		cmocka_unit_test(install__refuses_files_and_mounts),
		cmocka_unit_test(install__ends_with_another_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
