/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/gnuplot.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

bool tool_gnuplot(const char *dir, const char *script)
{
	int status = 1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (chdir(dir) == 0) {
			execlp("gnuplot", "gnuplot", script, (char *)NULL);
		}
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
