/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's log: whole lines to standard error, with a level prefix if standard error is the
 * journal.
 */
#include "daemon/daemon.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
	enum collnet_log_level level;
	bool journal;
	uint64_t lost; /* lines, since one was written */
} log_state = { .level = COLLNET_LOG_INFO };

static bool has_room(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) == 1;
}

/* False: it is lost, at least its end. */
static bool write_out(enum collnet_log_level level, const char *line)
{
	static const char *const prefix[2][4] = {
		{ "collnetd: error: ", "collnetd: warning: ", "collnetd: ", "collnetd: debug: " },
		{ "<3>", "<4>", "<6>", "<7>" },
	};
	struct iovec iov[3];

	iov[0].iov_base = (void *)(uintptr_t)prefix[log_state.journal][level];
	iov[0].iov_len = strlen(iov[0].iov_base);
	iov[1].iov_base = (void *)(uintptr_t)line;
	iov[1].iov_len = strlen(line);
	iov[2].iov_base = (void *)(uintptr_t) "\n";
	iov[2].iov_len = 1;
	return writev(STDERR_FILENO, iov, 3) ==
	       (ssize_t)(iov[0].iov_len + iov[1].iov_len + iov[2].iov_len);
}

/* A log that nobody reads, or a full disk, does not block the daemon: lines without room are
 * lost. */
static void write_line(void *arg, enum collnet_log_level level, const char *line)
{
	char text[64];

	(void)arg;
	if (level > log_state.level) {
		return;
	}
	if (log_state.lost > 0 && has_room()) {
		snprintf(text, sizeof(text), "%llu lines of the log were lost",
			 (unsigned long long)log_state.lost);
		log_state.lost = write_out(COLLNET_LOG_WARNING, text) ? 0 : log_state.lost;
	}
	if (log_state.lost > 0 || !has_room() || !write_out(level, line)) {
		log_state.lost++;
	}
}

/* Whether standard error is still connected to the journal; see systemd.exec(5). */
static bool goes_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void cn_log_open(void)
{
	log_state.journal = goes_to_journal();
	collnet_set_log(write_line, NULL);
}

void cn_log_set_level(enum collnet_log_level level)
{
	log_state.level = level;
}
