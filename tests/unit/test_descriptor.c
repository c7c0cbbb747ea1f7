/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/node/descriptor.c, and that a context whose descriptors the program has closed leaves alone
 * what the program has opened under their numbers. Exit 77 where the system refuses namespaces.
 */
#include "node/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/backend.h"
#include "fake_daemon.h"
#include "namespace.h"
#include "runtime_pair.h"

#define DESCRIPTORS_MAX 64
#define HANG_S		120 /* then a signal ends the test */

static void is__the_same_only(void **state)
{
	struct cn_descriptor_id id, none;
	int ends[2], other[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	cn_descriptor_identify(ends[0], &id);
	assert_true(cn_descriptor_is(ends[0], &id));
	assert_true(cn_descriptor_is(ends[1], &id)); /* the same pipe */
	assert_int_equal(pipe(other), 0);
	assert_false(cn_descriptor_is(other[0], &id));
	assert_int_equal(dup2(other[0], ends[0]), ends[0]);
	assert_false(cn_descriptor_is(ends[0], &id));
	cn_descriptor_close(ends[0], &id);
	assert_true(fcntl(ends[0], F_GETFD) >= 0);
	cn_descriptor_close(ends[1], &id);
	assert_int_equal(fcntl(ends[1], F_GETFD), -1);
	assert_false(cn_descriptor_is(ends[1], &id));
	cn_descriptor_identify(-1, &none);
	assert_false(cn_descriptor_is(-1, &none));
	close(ends[0]);
	close(other[0]);
	close(other[1]);
}

static void note_open(bool open[DESCRIPTORS_MAX])
{
	for (int i = 0; i < DESCRIPTORS_MAX; i++) {
		open[i] = fcntl(i, F_GETFD) >= 0;
	}
}

/* A daemon that only greets. */
static void serve(int fd, int arg)
{
	char bytes[sizeof(struct cn_msg_head)];

	(void)arg;
	while (recv(fd, bytes, sizeof(bytes), 0) > 0) {
	}
}

static collnet_t *open_context(bool direct)
{
	struct collnet_options o;
	collnet_t *c = NULL;
	int rc;

	collnet_options_init(&o);
	o.mode = COLLNET_MODE_DIRECT;
	o.interface = "a0";
	rc = direct ? collnet_open(&o, &c) : fake_open(serve, 0, NULL, 10000, &c);
	if (rc != COLLNET_OK) {
		fail_msg("%s", collnet_error(NULL));
	}
	return c;
}

/* All descriptors of a context become others of the program: a file, or an end of a pair of
 * sockets. */
static void close__leaves_what_the_program_opened(void **state)
{
	bool before[DESCRIPTORS_MAX], after[DESCRIPTORS_MAX];
	char name[] = "/tmp/test_descriptor.XXXXXX", byte;
	const int file = mkstemp(name);
	struct stat st;
	int pair[2];

	(void)state;
	assert_true(file >= 0 && unlink(name) == 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	alarm(HANG_S);
	for (int i = 0; i < 4; i++) {
		const bool direct = (i & 1) != 0, sockets = (i & 2) != 0;
		uint32_t replaced = 0;
		collnet_t *c;

		note_open(before);
		c = open_context(direct);
		note_open(after);
		for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
			after[fd] = after[fd] && !before[fd];
			if (after[fd]) {
				assert_int_equal(dup2(sockets ? pair[0] : file, fd), fd);
				replaced++;
			}
		}
		/* What wakes, and the connection; or the lock, its name, and the link's two. */
		assert_true(replaced >= (direct ? 5 : 2));
		if (direct) {
			collnet_close(c);
		} else {
			fake_end(c);
		}
		for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
			if (after[fd]) {
				assert_true(fcntl(fd, F_GETFD) >= 0);
				close(fd);
			}
		}
		assert_int_equal(fstat(file, &st), 0);
		assert_int_equal(st.st_size, 0);
		assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
	}
	alarm(0);
	close(file);
	close(pair[0]);
	close(pair[1]);
}

static void *wake(void *arg)
{
	struct collnet *c = arg;
	bool asleep;

	do {
		cn_lock(c);
		asleep = c->asleep;
		cn_wake(c);
		pthread_mutex_unlock(&c->lock);
		sched_yield();
	} while (!asleep);
	return NULL;
}

static void assert_sleeps(struct collnet *c)
{
	const cn_time until = cn_now() + 20 * CN_MS;
	struct pollfd p[1];

	assert_false(cn_sleep(c, p, 0, 20 * CN_MS));
	assert_true(cn_now() >= until);
}

/* Another thread wakes one that sleeps. Once the program has closed the socket for that, neither
 * uses what has its number. */
static void wake__after_it_was_closed(void **state)
{
	static struct collnet c;
	const int other = open("/dev/null", O_RDWR);
	struct pollfd p[1];
	pthread_t thread;

	(void)state;
	assert_int_equal(cn_threads_init(&c, &c.err), COLLNET_OK);
	cn_lock(&c);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, wake, &c), 0);
		assert_true(cn_sleep(&c, p, 0, HANG_S * 1000 * CN_MS));
		pthread_mutex_unlock(&c.lock);
		assert_int_equal(pthread_join(thread, NULL), 0);
		cn_lock(&c);
	}
	assert_sleeps(&c);
	assert_int_equal(send(c.wake_fd, "", 1, 0), 1); /* a stranger's */
	assert_true(cn_sleep(&c, p, 0, HANG_S * 1000 * CN_MS));
	assert_sleeps(&c);
	assert_int_equal(dup2(other, c.wake_fd), c.wake_fd);
	c.asleep = true;
	cn_wake(&c);
	assert_sleeps(&c);
	pthread_mutex_unlock(&c.lock);
	close(c.wake_fd);
	close(other);
	cn_threads_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is__the_same_only),
		cmocka_unit_test(close__leaves_what_the_program_opened),
		cmocka_unit_test(wake__after_it_was_closed),
	};
	const char *why = runtime_namespace();
	int failed;

	if (why == NULL && !add_pair()) {
		why = "no pair of interfaces can be made here";
	}
	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	fake_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	fake_finish();
	return failed;
}
