/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CN_PRIORITY_H
#define CN_PRIORITY_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* True if this thread runs until it sleeps or yields: under SCHED_FIFO or SCHED_RR. By pthread's
 * function, because musl has no sched_getscheduler(). */
static inline bool cn_is_real_time(void)
{
	struct sched_param param;
	int policy;

	return pthread_getschedparam(pthread_self(), &policy, &param) == 0 &&
	       (policy == SCHED_FIFO || policy == SCHED_RR);
}

#endif
