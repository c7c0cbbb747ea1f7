/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's log: whole lines to standard error, with the journal's level prefix when that is
 * where standard error goes.
 */
#include "daemon/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
	enum collnet_log_level level;
	bool journal;
} log_state = { .level = COLLNET_LOG_INFO };

static void write_line(void *arg, enum collnet_log_level level, const char *line)
{
	static const char *const prefix[2][4] = {
		{ "collnetd: error: ", "collnetd: warning: ", "collnetd: ", "collnetd: debug: " },
		{ "<3>", "<4>", "<6>", "<7>" },
	};
	struct iovec iov[3];

	(void)arg;
	if (level > log_state.level) {
		return;
	}
	iov[0].iov_base = (void *)(uintptr_t)prefix[log_state.journal][level];
	iov[0].iov_len = strlen(iov[0].iov_base);
	iov[1].iov_base = (void *)(uintptr_t)line;
	iov[1].iov_len = strlen(line);
	iov[2].iov_base = (void *)(uintptr_t) "\n";
	iov[2].iov_len = 1;
	if (writev(STDERR_FILENO, iov, 3) < 0) {
		return; /* there is nowhere to complain */
	}
}

void cn_log_open(void)
{
	log_state.journal = getenv("JOURNAL_STREAM") != NULL;
	collnet_set_log(write_line, NULL);
}

void cn_log_set_level(enum collnet_log_level level)
{
	log_state.level = level;
}
