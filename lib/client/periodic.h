/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that calls a function periodically. It has no descriptor, which the program could close.
 */
#ifndef CN_PERIODIC_H
#define CN_PERIODIC_H

#include <pthread.h>

#include "util/util.h"

struct cn_periodic {
	bool runs; /* false: nothing of it exists */
	bool stop; /* under the mutex */
	cn_time interval;
	void (*call)(void *arg);
	void *arg;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t stopped;
};

/* Starts *p, which is zero, with all signals blocked: call(arg) after each interval. */
int cn_periodic_start(struct cn_periodic *p, cn_time interval, void (*call)(void *arg), void *arg,
		      struct cn_err *err);
/* Waits for the end of a call that runs; nothing if it was not started. */
void cn_periodic_stop(struct cn_periodic *p);

#endif
