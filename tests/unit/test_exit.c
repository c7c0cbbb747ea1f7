/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exit() in a signal handler that has interrupted a call of the library. test_request.c has other
 * threads.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/backend.h"

/* Sleeps without the lock, and is interrupted; well, if the process polls again, for what is
 * buffered. */
static void progress(struct collnet *c, cn_time until)
{
	static int polled;

	if (until == 0) {
		return;
	}
	if (polled++ > 0) {
		_exit(0);
	}
	pthread_mutex_unlock(&c->lock);
	exit(3);
}

static const struct cn_backend backend = { .progress = progress };

static void init(struct collnet *c)
{
	assert_int_equal(cn_threads_init(c, &c->err), COLLNET_OK);
	c->backend = &backend;
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		c->requests[i].c = c;
	}
}

/* Waits for the end of an operation that is buffered, and exits meanwhile. */
static void wait_and_exit(struct collnet *c)
{
	struct collnet_team team = { .c = c, .job = "job" };
	struct collnet_request *r;

	if (cn_fork_watch(c, &c->err) != COLLNET_OK) {
		_exit(2);
	}
	cn_lock(c);
	r = cn_request_get(c, &team, NULL, 1000, &c->err);
	if (r == NULL || cn_request_admit(r, &team, &c->err) != COLLNET_OK) {
		_exit(2);
	}
	cn_request_buffered(r);
	cn_wait_for_buffered(&team);
	_exit(4);
}

static void exit__in_the_thread_that_polls(void **state)
{
	static struct collnet c;
	int status = 1;
	pid_t child;

	(void)state;
	init(&c);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		wait_and_exit(&c);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	cn_threads_fini(&c);
}

/* Which the interrupted call holds. */
static void exit__does_not_wait_for_its_own_lock(void **state)
{
	static struct collnet c;
	const struct timespec past = { 0, 0 };

	(void)state;
	init(&c);
	cn_lock(&c);
	assert_int_equal(pthread_mutex_timedlock(&c.lock, &past), EDEADLK);
	pthread_mutex_unlock(&c.lock);
	cn_threads_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit__in_the_thread_that_polls),
		cmocka_unit_test(exit__does_not_wait_for_its_own_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
