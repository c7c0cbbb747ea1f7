/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reaper: a child process whose exit drops the last reference to descriptors or memory, which can
 * take long or block, in place of its parent. It inherits them from the parent and exits when the
 * parent has dropped its own references. Nobody waits for reapers.
 *
 * A signal notifies it: a pipe needs descriptors, and there may be none until it has closed some.
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

/* Renumbers the descriptors from 0 on and closes all others. */
static void hold_references(int *fds, uint32_t n, const sigset_t *exit_signal)
{
	if (n > 0) {
		qsort(fds, n, sizeof(*fds), ascending);
	}
	for (uint32_t i = 0; i < n; i++) {
		dup2(fds[i], (int)i); /* at most fds[i] */
	}
#ifdef SYS_close_range
	syscall(SYS_close_range, n, ~0u, 0u); /* Linux 5.9; else its exit closes them */
#endif
	while (sigwaitinfo(exit_signal, NULL) < 0 && errno == EINTR) {
	}
	_exit(0);
}

pid_t cn_reaper_begin(int *fds, uint32_t n)
{
	const pid_t parent = getpid();
	sigset_t exit_signal, before;
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&exit_signal);
	sigaddset(&exit_signal, SIGUSR1);
	sigprocmask(SIG_BLOCK, &exit_signal, &before);
	pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGUSR1) != 0 || getppid() != parent) {
			_exit(0);
		}
		hold_references(fds, n, &exit_signal);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

void cn_reaper_end(pid_t reaper)
{
	if (reaper > 0) {
		kill(reaper, SIGUSR1);
	}
}
