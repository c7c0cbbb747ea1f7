/* SPDX-License-Identifier: BSD-2-Clause */
/* See threads_pthreads_mutex.h. */
#ifndef COLLNET_THREADS_PTHREADS_THREADS_H
#define COLLNET_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

static inline void opal_thread_yield(void)
{
	sched_yield();
}

#endif
