/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monotonic clock, for callers that pass the time on. Modules without I/O must not include it:
 * tests/meta/modules.sh detects clock_gettime() in them.
 */
#ifndef CN_CLOCK_H
#define CN_CLOCK_H

#include <time.h>

#include "util/util.h"

static inline cn_time cn_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (cn_time)ts.tv_sec * 1000000000u + (cn_time)ts.tv_nsec;
}

/* For ppoll() and the like; at most 68 years, as time_t may have 32 bits. */
static inline struct timespec cn_timespec(cn_time t)
{
	const cn_time s = t / 1000000000u;

	return (struct timespec){
		.tv_sec = (time_t)(s < INT32_MAX ? s : INT32_MAX),
		.tv_nsec = (long)(t % 1000000000u),
	};
}

#endif
