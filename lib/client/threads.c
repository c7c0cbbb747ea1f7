/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that share a context: its lock, who waits for the backend, and whose error is whose.
 *
 * One thread at a time polls for all (c->polling): it takes the completions of all threads, and
 * releases the lock while it sleeps or yields. The others wait on a condition variable until a
 * request has ended or the polling thread returns; then one of them polls. A thread that does not
 * wait can take completions, too, and wakes the thread that sleeps if a completion or a new
 * deadline concerns it (cn_wake()).
 *
 * A mutex is not fair: a thread that polls without sleeping would take it again before any other
 * thread gets it. It therefore checks whether others wait for the lock (`entering`, `called`), and
 * yields until they have had it.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/backend.h"

#define YIELDS 100 /* at most, for others to get the lock */

/* ---- life ----------------------------------------------------------------------------- */

/* A socket that receives what it sends, and nothing else, because it is connected. -1: errno.
 * Unlike an eventfd it can be told from others of the program, and unlike a pipe it takes one
 * descriptor. */
static int open_wake(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), e;

	/* The kernel chooses the name. */
	if (fd < 0 || (bind(fd, (struct sockaddr *)&name, sizeof(name.sun_family)) == 0 &&
		       getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
		       connect(fd, (struct sockaddr *)&name, len) == 0)) {
		return fd;
	}
	e = errno;
	close(fd);
	errno = e;
	return -1;
}

int cn_threads_init(struct collnet *c, struct cn_err *err)
{
	pthread_mutexattr_t checks;
	pthread_condattr_t attr;

	/* exit() in a signal handler cannot wait for the thread that it has interrupted. */
	pthread_mutexattr_init(&checks);
	pthread_mutexattr_settype(&checks, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&c->lock, &checks);
	pthread_mutexattr_destroy(&checks);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	c->wake_fd = open_wake();
	cn_descriptor_identify(c->wake_fd, &c->wake_id);
	return c->wake_fd >= 0 ? COLLNET_OK
			       : cn_fail(err, COLLNET_ESYSTEM, "cannot open a Unix socket: %s",
					 cn_strerror(errno));
}

void cn_threads_close(struct collnet *c)
{
	cn_descriptor_close(c->wake_fd, &c->wake_id);
	c->wake_fd = -1;
}

void cn_threads_fini(struct collnet *c)
{
	struct cn_thread_error *e;

	while ((e = c->errors.next) != NULL) {
		c->errors.next = e->next;
		free(e);
	}
	cn_threads_close(c);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
}

/* ---- errors --------------------------------------------------------------------------- */

unsigned long cn_thread_serial(void)
{
	static _Thread_local unsigned long mine;
	static unsigned long last;

	if (mine == 0) {
		mine = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	}
	return mine;
}

/* The entry of this thread, or of one that has ended, whose place it takes. */
static struct cn_thread_error *find_error(struct collnet *c)
{
	const pthread_t self = pthread_self();
	struct cn_thread_error *e = &c->errors;

	while (e != NULL && (!e->used || !pthread_equal(e->thread, self))) {
		e = e->next;
	}
	return e;
}

/* c->err is this thread's error. Without memory, threads share an entry. */
static void record_error(struct collnet *c)
{
	struct cn_thread_error *e = find_error(c);

	if (e == NULL && c->errors.used) {
		e = calloc(1, sizeof(*e));
		if (e != NULL) {
			e->next = c->errors.next;
			c->errors.next = e;
		}
	}
	if (e == NULL) {
		e = &c->errors;
	}
	e->used = true;
	e->thread = pthread_self();
	e->serial = cn_thread_serial();
	e->err = c->err;
}

const char *cn_thread_error(struct collnet *c)
{
	struct cn_thread_error *e;

	if (cn_may_enter(c) != COLLNET_OK) {
		return collnet_error(NULL);
	}
	cn_lock(c);
	e = find_error(c);
	pthread_mutex_unlock(&c->lock);
	return e != NULL && e->serial == cn_thread_serial() ? e->err.text : "";
}

/* ---- the lock ------------------------------------------------------------------------- */

void cn_set_combining(struct collnet *c, bool on)
{
	__atomic_store_n(&c->combiner, on ? cn_thread_serial() : 0, __ATOMIC_RELAXED);
}

int cn_may_enter(const struct collnet *c)
{
	return __atomic_load_n(&c->combiner, __ATOMIC_RELAXED) != cn_thread_serial()
		       ? COLLNET_OK
		       : cn_argument_error(
				 "a function that combines must not call the library with the "
				 "same context");
}

void cn_lock(struct collnet *c)
{
	if (pthread_mutex_trylock(&c->lock) != 0) {
		__atomic_add_fetch(&c->entering, 1, __ATOMIC_RELAXED);
		pthread_mutex_lock(&c->lock);
		__atomic_sub_fetch(&c->entering, 1, __ATOMIC_RELAXED);
	}
}

int cn_enter(struct collnet *c)
{
	if (c == NULL) {
		return cn_argument_error("the context is NULL");
	}
	if (cn_may_enter(c) != COLLNET_OK) {
		return COLLNET_EINVAL;
	}
	cn_lock(c);
	if (c->gone.code != COLLNET_OK) {
		c->err = c->gone;
		return cn_leave(c, c->err.code);
	}
	return COLLNET_OK;
}

int cn_leave(struct collnet *c, int code)
{
	if (code < 0) {
		record_error(c);
	}
	pthread_mutex_unlock(&c->lock);
	return code;
}

static bool wanted(const struct collnet *c)
{
	return __atomic_load_n(&c->entering, __ATOMIC_RELAXED) > 0 ||
	       __atomic_load_n(&c->called, __ATOMIC_RELAXED) > 0;
}

void cn_yield(struct collnet *c)
{
	int n = 0;

	pthread_mutex_unlock(&c->lock);
	do {
		sched_yield();
	} while (wanted(c) && ++n < YIELDS);
	pthread_mutex_lock(&c->lock);
}

void cn_yield_lock(struct collnet *c)
{
	if (wanted(c)) {
		cn_yield(c);
	}
}

/* ---- waiting -------------------------------------------------------------------------- */

void cn_wake(struct collnet *c)
{
	if (c->asleep && c->futex != NULL) {
		c->asleep = false;
		/* It has another value before it is woken: a sleep that has not begun does not. */
		__atomic_store_n(c->futex, 0, __ATOMIC_RELAXED);
		syscall(SYS_futex, c->futex, FUTEX_WAKE, 1, NULL, NULL, 0);
	} else if (c->asleep) {
		c->asleep = false;
		/* Where the program has closed it, the thread sleeps until its time. */
		if (cn_descriptor_is(c->wake_fd, &c->wake_id)) {
			(void)send(c->wake_fd, "", 1, MSG_NOSIGNAL);
		}
	}
}

bool cn_sleep(struct collnet *c, struct pollfd *fds, nfds_t n, cn_time duration)
{
	const bool ours = cn_descriptor_is(c->wake_fd, &c->wake_id);
	struct timespec ts = cn_timespec(duration);
	char none;
	int ready;

	fds[n] = (struct pollfd){ .fd = ours ? c->wake_fd : -1, .events = POLLIN };
	c->asleep = true;
	pthread_mutex_unlock(&c->lock);
	ready = ppoll(fds, n + 1, &ts, NULL);
	pthread_mutex_lock(&c->lock);
	/* Also one of a stranger's, which came before the socket was connected. */
	if (ours && (!c->asleep || fds[n].revents != 0)) {
		(void)recv(c->wake_fd, &none, 1, 0);
	}
	c->asleep = false;
	return ready > 0 && fds[0].revents != 0;
}

void cn_sleep_on(struct collnet *c, uint32_t *futex, uint32_t value, cn_time duration)
{
	/* What this system call takes on all machines; a struct timespec may have wider fields. */
	const struct {
		long s, ns;
	} ts = { (long)(duration / (1000 * CN_MS)), (long)(duration % (1000 * CN_MS)) };

	c->asleep = true;
	c->futex = futex;
	pthread_mutex_unlock(&c->lock);
	syscall(SYS_futex, futex, FUTEX_WAIT, value, &ts, NULL, 0);
	pthread_mutex_lock(&c->lock);
	c->asleep = false;
	c->futex = NULL;
}

void cn_wake_waiting(struct collnet *c)
{
	if (c->waiting > 0) {
		__atomic_store_n(&c->called, c->waiting, __ATOMIC_RELAXED);
		pthread_cond_broadcast(&c->changed);
	}
}

void cn_wait_for_poller(struct collnet *c, cn_time until)
{
	const struct timespec ts = cn_timespec(until);

	c->waiting++;
	if (until == CN_NEVER) {
		pthread_cond_wait(&c->changed, &c->lock);
	} else {
		pthread_cond_timedwait(&c->changed, &c->lock, &ts);
	}
	c->waiting--;
	if (c->called > 0) {
		__atomic_sub_fetch(&c->called, 1, __ATOMIC_RELAXED);
	}
}
