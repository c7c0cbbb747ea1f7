/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures log lines, for tests of their text and number. */
#ifndef TESTS_LOG_CAPTURE_H
#define TESTS_LOG_CAPTURE_H

#include <stdint.h>

#include "collnet/collnet.h"

/* Since log_capture(): concatenated, as far as there is room; their number. */
extern char logged[4096];
extern uint32_t logged_lines;
extern enum collnet_log_level logged_level; /* the most severe */

void log_capture(void);
/* Restores the log callback. */
void log_capture_end(void);

#endif
