/* SPDX-License-Identifier: BSD-2-Clause */
/* Capture files as tcpdump writes them, of Ethernet frames with times in nanoseconds. */
#ifndef CN_SIM_CAPTURE_H
#define CN_SIM_CAPTURE_H

#include <stdio.h>

#include "util/util.h"

/* Writes the file's header. Errors show at the end, in the stream. */
void sim_capture_begin(FILE *f);
/* `len` is at most SIM_CAPTURE_MAX; `at` counts from 1970. */
void sim_capture_frame(FILE *f, cn_time at, const void *frame, size_t len);

#define SIM_CAPTURE_MAX 65535u

#endif
