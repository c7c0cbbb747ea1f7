/* SPDX-License-Identifier: BSD-2-Clause */
#include "log_capture.h"

#include <stdio.h>
#include <string.h>

char logged[4096];
uint32_t logged_lines;
enum collnet_log_level logged_level;

static void take_line(void *ctx, enum collnet_log_level level, const char *line)
{
	const size_t n = strlen(logged);

	(void)ctx;
	logged_level = level < logged_level ? level : logged_level;
	snprintf(logged + n, sizeof(logged) - n, "%s\n", line);
	logged_lines++;
}

void log_capture(void)
{
	logged[0] = '\0';
	logged_lines = 0;
	logged_level = COLLNET_LOG_DEBUG;
	collnet_set_log(take_line, NULL);
}

void log_capture_end(void)
{
	collnet_set_log(NULL, NULL);
}
