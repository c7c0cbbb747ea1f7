/* SPDX-License-Identifier: BSD-2-Clause */
#include "client/periodic.h"

#include "node/thread.h"
#include "util/clock.h"

/* Sleeps for the interval. False: the thread is to end. */
static bool sleep_once(struct cn_periodic *p)
{
	const struct timespec until = cn_timespec(cn_now() + p->interval);
	bool stop;

	pthread_mutex_lock(&p->mutex);
	while (!p->stop && pthread_cond_timedwait(&p->stopped, &p->mutex, &until) == 0) {
	}
	stop = p->stop;
	pthread_mutex_unlock(&p->mutex);
	return !stop;
}

static void *run(void *arg)
{
	struct cn_periodic *p = arg;

	while (sleep_once(p)) {
		p->call(p->arg);
	}
	return NULL;
}

static void destroy(struct cn_periodic *p)
{
	pthread_cond_destroy(&p->stopped);
	pthread_mutex_destroy(&p->mutex);
}

int cn_periodic_start(struct cn_periodic *p, cn_time interval, void (*call)(void *arg), void *arg,
		      struct cn_err *err)
{
	pthread_condattr_t attr;
	int e;

	p->interval = interval;
	p->call = call;
	p->arg = arg;
	pthread_mutex_init(&p->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->stopped, &attr);
	pthread_condattr_destroy(&attr);
	e = cn_thread_start(&p->thread, run, p);
	if (e != 0) {
		destroy(p);
		return cn_fail(err, COLLNET_ESYSTEM, "cannot start a thread: %s", cn_strerror(e));
	}
	p->runs = true;
	return COLLNET_OK;
}

void cn_periodic_stop(struct cn_periodic *p)
{
	if (!p->runs) {
		return;
	}
	pthread_mutex_lock(&p->mutex);
	p->stop = true;
	pthread_cond_signal(&p->stopped);
	pthread_mutex_unlock(&p->mutex);
	pthread_join(p->thread, NULL);
	destroy(p);
	p->runs = p->stop = false;
}
