/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A keeper: a child process that drops the last reference to something in its exit, where that can
 * take long or block, so that its parent does not. It has what the parent had when it was made, and
 * exits when the parent has let go of it. Nobody waits for keepers.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static void keep(int fd, int pipe_fd)
{
	const unsigned kept = fd >= 0 ? 2 : 1;
	char none;

	if (dup2(pipe_fd, 0) == 0 && (fd < 0 || dup2(fd, 1) == 1)) {
#ifdef SYS_close_range
		syscall(SYS_close_range, kept, ~0u, 0u); /* Linux 5.9; else they end with it */
#else
		(void)kept;
#endif
		while (read(0, &none, 1) < 0 && errno == EINTR) {
		}
	}
	_exit(0);
}

int cn_keeper_begin(int fd)
{
	int ends[2];
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	if (pipe(ends) != 0) {
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		keep(fd, ends[0]);
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return -1;
	}
	return ends[1];
}

void cn_keeper_end(int keeper)
{
	if (keeper >= 0) {
		close(keeper);
	}
}
