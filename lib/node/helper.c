/* SPDX-License-Identifier: BSD-2-Clause */
#include "node/helper.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "node/thread.h"
#include "util/priority.h"

struct cn_helper {
	pthread_t thread;
	bool started;
	bool busy; /* owner thread only: it has a task, or has run one */
	int fd;
	pthread_mutex_t lock; /* of the fields below */
	pthread_cond_t changed;
	struct cn_task *task, *done;
	bool stop;
};

static void signal_done(const struct cn_helper *h)
{
	const uint64_t one = 1;

	if (write(h->fd, &one, sizeof(one)) < 0) {
		/* Its counter is never full. */
		return;
	}
}

static bool was_told(const struct cn_helper *h)
{
	uint64_t n;

	return read(h->fd, &n, sizeof(n)) == (ssize_t)sizeof(n);
}

/* A task can last for seconds. At a real-time priority, which its process may have to move frames
 * at once, it would keep a processor from all others for that long. */
static void drop_priority(void)
{
	const struct sched_param none = { 0 };

	if (cn_is_real_time()) {
		pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
	}
}

static void *run(void *arg)
{
	struct cn_helper *h = arg;

	drop_priority();
	pthread_mutex_lock(&h->lock);
	while (!h->stop) {
		struct cn_task *x = h->task;

		if (x == NULL) {
			pthread_cond_wait(&h->changed, &h->lock);
			continue;
		}
		h->task = NULL;
		pthread_mutex_unlock(&h->lock);
		cn_task_run(x);
		pthread_mutex_lock(&h->lock);
		h->done = x;
		pthread_cond_broadcast(&h->changed);
		signal_done(h);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

int cn_helper_new(struct cn_helper **out, struct cn_err *err)
{
	struct cn_helper *h = calloc(1, sizeof(*h));

	if (h == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a thread");
	}
	h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->fd < 0) {
		free(h);
		return cn_fail(err, COLLNET_ESYSTEM, "eventfd: %s", strerror(errno));
	}
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	*out = h;
	return COLLNET_OK;
}

void cn_helper_free(struct cn_helper *h)
{
	if (h == NULL) {
		return;
	}
	if (h->started) {
		pthread_mutex_lock(&h->lock);
		h->stop = true;
		pthread_cond_broadcast(&h->changed);
		pthread_mutex_unlock(&h->lock);
		pthread_join(h->thread, NULL);
	}
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	close(h->fd);
	free(h);
}

int cn_helper_fd(const struct cn_helper *h)
{
	return h->fd;
}

bool cn_helper_busy(const struct cn_helper *h)
{
	return h->busy;
}

static bool start(struct cn_helper *h)
{
	h->started = cn_thread_start(&h->thread, run, h) == 0;
	return h->started;
}

void cn_helper_submit(struct cn_helper *h, struct cn_engine *e)
{
	struct cn_task *x = h->busy ? NULL : cn_engine_next_task(e);

	if (x == NULL) {
		return;
	}
	h->busy = true;
	if (!h->started && !start(h)) {
		cn_task_run(x);
		h->done = x;
		signal_done(h);
		return;
	}
	pthread_mutex_lock(&h->lock);
	h->task = x;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

bool cn_helper_reap(struct cn_helper *h, struct cn_engine *e)
{
	struct cn_task *x;

	if (!h->busy || !was_told(h)) {
		return false;
	}
	pthread_mutex_lock(&h->lock);
	x = h->done;
	h->done = NULL;
	pthread_mutex_unlock(&h->lock);
	h->busy = false;
	cn_engine_task_done(e, x);
	return true;
}

void cn_helper_wait(struct cn_helper *h, struct cn_engine *e)
{
	if (!h->busy) {
		return;
	}
	cn_engine_cancel_task(e);
	pthread_mutex_lock(&h->lock);
	while (h->done == NULL) {
		pthread_cond_wait(&h->changed, &h->lock);
	}
	pthread_mutex_unlock(&h->lock);
	/* It signals with the lock held. */
	cn_helper_reap(h, e);
}
