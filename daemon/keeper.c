/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A keeper: a child process that drops the last reference to something in its exit, where that can
 * take long or block, so that its parent does not. It has what the parent had when it was made, and
 * exits when the parent has let go of it. Nobody waits for keepers.
 *
 * It is told by a signal: a pipe needs descriptors, and there may be none until it has closed some.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ascending(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* The descriptors become the first ones, and the others are closed. */
static void keep(int *fds, uint32_t n, const sigset_t *told)
{
	if (n > 0) {
		qsort(fds, n, sizeof(*fds), ascending);
	}
	for (uint32_t i = 0; i < n; i++) {
		dup2(fds[i], (int)i); /* at most fds[i] */
	}
#ifdef SYS_close_range
	syscall(SYS_close_range, n, ~0u, 0u); /* Linux 5.9; else they end with it */
#endif
	while (sigwaitinfo(told, NULL) < 0 && errno == EINTR) {
	}
	_exit(0);
}

pid_t cn_keeper_begin(int *fds, uint32_t n)
{
	const pid_t parent = getpid();
	sigset_t told, before;
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	sigprocmask(SIG_BLOCK, &told, &before);
	pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGUSR1) != 0 || getppid() != parent) {
			_exit(0);
		}
		keep(fds, n, &told);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

void cn_keeper_end(pid_t keeper)
{
	if (keeper > 0) {
		kill(keeper, SIGUSR1);
	}
}
