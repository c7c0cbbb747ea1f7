/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/client/periodic.c: calls until it is stopped, and no signal of the program is handled by the
 * thread. */
#include "client/periodic.h"

#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct calls {
	sem_t called;
	sigset_t blocked;
	uint32_t n; /* the thread's until it has ended */
};

static void call(void *arg)
{
	struct calls *c = arg;

	c->n++;
	pthread_sigmask(SIG_SETMASK, NULL, &c->blocked);
	sem_post(&c->called);
}

static void periodic__calls_until_it_is_stopped(void **state)
{
	struct cn_periodic p = { .runs = false };
	struct calls c = { .n = 0 };
	uint32_t n;

	(void)state;
	cn_periodic_stop(&p); /* which was not started */
	assert_int_equal(sem_init(&c.called, 0, 0), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(cn_periodic_start(&p, CN_MS, call, &c, NULL), COLLNET_OK);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(sem_wait(&c.called), 0);
		}
		cn_periodic_stop(&p);
		n = c.n;
		assert_true(n >= 3);
		assert_int_equal(sigismember(&c.blocked, SIGTERM), 1);
		while (sem_trywait(&c.called) == 0) {
		}
		cn_periodic_stop(&p);
		assert_int_equal(c.n, n);
	}
	sem_destroy(&c.called);
}

/* It does not wait for the interval to end. */
static void periodic__stops_at_once(void **state)
{
	struct cn_periodic p = { .runs = false };
	struct calls c = { .n = 0 };

	(void)state;
	assert_int_equal(cn_periodic_start(&p, 86400 * 1000 * CN_MS, call, &c, NULL), COLLNET_OK);
	cn_periodic_stop(&p);
	assert_int_equal(c.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periodic__calls_until_it_is_stopped),
		cmocka_unit_test(periodic__stops_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
