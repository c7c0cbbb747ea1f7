/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of the log, for tests of what is said and how often. */
#ifndef TESTS_LOG_CAPTURE_H
#define TESTS_LOG_CAPTURE_H

#include <stdint.h>

#include "collnet/collnet.h"

/* Since log_capture(): one behind the other, as far as there is room; how many. */
extern char logged[4096];
extern uint32_t logged_lines;
extern enum collnet_log_level logged_level; /* the most severe */

void log_capture(void);
/* The log goes where it went. */
void log_capture_end(void);

#endif
