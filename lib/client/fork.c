/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The open contexts of the process: at a fork(), and at its end.
 *
 * Children of fork(). A child shares its parent's descriptors: while it lives, the other side would
 * not see the parent die, and would attribute the child's messages to the parent. So in a child all
 * contexts that were open are gone, and their descriptors closed. Their memory is not freed:
 * another thread may have been changing it during the fork(). A child may open contexts of its own.
 */
#include <string.h>
#include <unistd.h>

#include "client/backend.h"
#include "util/clock.h"

#define AT_EXIT (5000 * CN_MS)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct collnet *contexts;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered; /* 0, or an error number */

/* ---- a backend that does nothing ------------------------------------------------------ */

static void gone_close(struct collnet *c)
{
	c->impl = NULL;
}

static void gone_progress(struct collnet *c, cn_time until)
{
	(void)c;
	(void)until;
}

static void gone_timed_out(struct collnet *c, const char *what)
{
	(void)c;
	(void)what;
}

static void gone_free(struct collnet *c, uint32_t index, struct cn_allocation *piece)
{
	(void)c;
	(void)index;
	(void)piece;
}

static void gone_leave(struct collnet_team *t)
{
	(void)t;
}

static void gone_request(struct collnet_request *r)
{
	(void)r;
}

static void gone_endpoint_close(struct collnet_endpoint *e)
{
	(void)e;
}

/* All other functions are only called for a context that is not gone. */
static const struct cn_backend backend_gone = {
	.close = gone_close,
	.progress = gone_progress,
	.timed_out = gone_timed_out,
	.free = gone_free,
	.leave = gone_leave,
	.release = gone_request,
	.endpoint_close = gone_endpoint_close,
	.collect = gone_request,
};

/* ---- the handlers --------------------------------------------------------------------- */

static void before(void)
{
	pthread_mutex_lock(&mutex);
}

static void after(void)
{
	pthread_mutex_unlock(&mutex);
}

static void end_in_child(struct collnet *c)
{
	struct cn_err why;

	/* Threads that held the lock or waited do not exist in the child. */
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->waiting = c->called = c->entering = 0;
	c->polling = 0;
	c->asleep = false;
	cn_threads_close(c);
	c->backend->forked(c);
	c->backend = &backend_gone;
	memset(&c->gone, 0, sizeof(c->gone));
	cn_fail(&why, COLLNET_EINVAL,
		"the context was opened before fork(): the child must open its own");
	cn_context_gone(c, &why);
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) { /* the parent's, if they have ended, too */
		struct collnet_request *r = &c->requests[i];

		if (r->state == CN_REQUEST_DONE && r->status == COLLNET_OK) {
			r->status = why.code;
			memcpy(r->text, why.text, sizeof(r->text));
		}
	}
}

static void in_child(void)
{
	struct collnet *next;

	for (struct collnet *c = contexts; c != NULL; c = next) {
		next = c->next_open;
		end_in_child(c);
	}
	contexts = NULL;
	pthread_mutex_init(&mutex, NULL);
}

static void register_handlers(void)
{
	registered = pthread_atfork(before, after, in_child);
}

/* False: it is held until then. */
static bool lock_until(pthread_mutex_t *m, cn_time until)
{
	const cn_time now = cn_now();
	const struct timespec left = cn_timespec(until > now ? until - now : 0);
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts); /* that of pthread_mutex_timedlock() */
	ts.tv_sec += left.tv_sec;
	ts.tv_nsec += left.tv_nsec;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	return pthread_mutex_timedlock(m, &ts) == 0;
}

/* The context's: the polling thread gives it to those that wait for it. */
static bool enter_until(struct collnet *c, cn_time until)
{
	bool entered;

	__atomic_add_fetch(&c->entering, 1, __ATOMIC_RELAXED);
	entered = lock_until(&c->lock, until);
	__atomic_sub_fetch(&c->entering, 1, __ATOMIC_RELAXED);
	return entered;
}

/*
 * At exit, waits for buffered operations, which have completed for the process but must still reach
 * the others. Other threads that are in the library leave it, or sleep without the lock. Not if
 * this thread has the lock, because a user-defined operation has called exit(), or a signal handler
 * that has interrupted the library.
 */
static void __attribute__((destructor)) at_exit(void)
{
	const cn_time until = cn_now() + AT_EXIT;

	if (!lock_until(&mutex, until)) {
		return;
	}
	for (struct collnet *c = contexts; c != NULL; c = c->next_open) {
		if (cn_may_enter(c) == COLLNET_OK && enter_until(c, until)) {
			if (c->polling == cn_thread_serial()) {
				c->polling = 0; /* a signal handler called exit() */
			}
			cn_wait_at_exit(c, until);
			pthread_mutex_unlock(&c->lock);
		}
	}
	pthread_mutex_unlock(&mutex);
}

int cn_fork_watch(struct collnet *c, struct cn_err *err)
{
	pthread_once(&once, register_handlers);
	if (registered != 0) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a context");
	}
	pthread_mutex_lock(&mutex);
	c->next_open = contexts;
	contexts = c;
	pthread_mutex_unlock(&mutex);
	return COLLNET_OK;
}

void cn_fork_await_exit(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

void cn_fork_forget(struct collnet *c)
{
	struct collnet **at;

	pthread_mutex_lock(&mutex);
	for (at = &contexts; *at != NULL && *at != c; at = &(*at)->next_open) {
	}
	if (*at != NULL) { /* else it was opened before a fork */
		*at = c->next_open;
	}
	pthread_mutex_unlock(&mutex);
}
