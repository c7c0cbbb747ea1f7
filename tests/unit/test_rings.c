/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/rings.c: a client's requests are taken from its ring in order with its messages, and
 * whatever it writes there, it harms only itself.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "ring_client.h"

static struct cn_daemon *d;
static struct ring_client a, b;

static int setup(void **state)
{
	(void)state;
	d = ring_daemon();
	ring_client_connect(&a, d, 1000);
	ring_client_connect(&b, d, 1000);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cn_client_end(d);
	cn_mapping_end(d);
	assert_int_equal(d->memory.used, 0);
	assert_int_equal(d->npolled, 0);
	ring_client_free(&a);
	ring_client_free(&b);
	free(d);
	return 0;
}

static void expect_served(struct ring_client *e)
{
	assert_int_equal(ring_client_post(e, 7, 0), CN_SHM_RING_OK);
	assert_true(cn_rings_poll(d));
	ring_client_expect_done(e, 7, COLLNET_EIFACE);
	assert_false(e->client->marked);
}

static void poll__requests_become_completions(void **state)
{
	(void)state;
	assert_false(cn_rings_poll(d));
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
			assert_int_equal(ring_client_post(&a, i, 0), CN_SHM_RING_OK);
		}
		while (cn_rings_poll(d)) {
		}
		for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
			ring_client_expect_done(&a, i, COLLNET_EIFACE);
		}
	}
	assert_int_equal(ring_client_recv(&a, NULL), 0); /* nobody slept */
	assert_int_equal(a.client->user->used[CN_QUOTA_REQUESTS], 0);
}

/* One client that fills its ring does not keep another waiting. */
static void poll__is_bounded_per_client(void **state)
{
	const void *slot;

	(void)state;
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		assert_int_equal(ring_client_post(&a, i, 0), CN_SHM_RING_OK);
	}
	assert_int_equal(ring_client_post(&b, 1, 0), CN_SHM_RING_OK);
	assert_true(cn_rings_poll(d));
	ring_client_expect_done(&b, 1, COLLNET_EIFACE);
	for (uint32_t i = 0; i < 32; i++) {
		ring_client_expect_done(&a, i, COLLNET_EIFACE);
	}
	assert_int_equal(cn_shm_ring_front(&a.completions, &slot), CN_SHM_RING_NONE);
}

/* LEAVE comes after the COLL that was put into the ring before it: else the team would be gone. */
static void readable__serves_the_ring_first(void **state)
{
	const struct cn_msg_leave leave = { .head = { .type = CN_MSG_LEAVE } };

	(void)state;
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		assert_int_equal(ring_client_post(&a, i, 0), CN_SHM_RING_OK);
	}
	ring_client_send(&a, &leave, sizeof(leave));
	assert_int_equal(ring_client_recv(&a, NULL), CN_MSG_REPLY);
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		ring_client_expect_done(&a, i, COLLNET_EIFACE);
	}
	assert_false(a.client->marked);
	assert_int_equal(ring_client_post(&a, 0, 0), CN_SHM_RING_OK);
	assert_true(cn_rings_poll(d));
	assert_true(a.client->marked); /* the team is gone now */
}

static void sleep__doorbell_and_event(void **state)
{
	const struct cn_msg_head doorbell = { .type = CN_MSG_DOORBELL };

	(void)state;
	assert_true(cn_rings_sleep(d));
	assert_int_equal(ring_client_post(&a, 1, 0), CN_SHM_RING_OK);
	assert_true(cn_shm_ring_wake(&a.requests));
	assert_true(cn_shm_ring_sleep(&a.completions, CN_SHM_RING_ON_MESSAGE));
	ring_client_send(&a, &doorbell, sizeof(doorbell));
	assert_int_equal(ring_client_recv(&a, NULL), CN_MSG_EVENT);
	ring_client_expect_done(&a, 1, COLLNET_EIFACE);
	assert_int_equal(ring_client_recv(&a, NULL), 0);
	cn_rings_awake(d);
	assert_int_equal(ring_client_post(&a, 2, 0), CN_SHM_RING_OK);
	assert_false(cn_shm_ring_wake(&a.requests));
	assert_false(cn_rings_sleep(d));
	assert_false(cn_shm_ring_wake(&b.requests)); /* nobody is left asleep */
	assert_true(cn_rings_poll(d));
	ring_client_expect_done(&a, 2, COLLNET_EIFACE);
}

struct sleeper {
	uint32_t *futex;
	long result; /* of the system call */
};

static void *sleep_on_futex(void *arg)
{
	struct sleeper *s = arg;

	s->result = syscall(SYS_futex, s->futex, FUTEX_WAIT, CN_SHM_RING_ON_FUTEX, NULL, NULL, 0);
	return NULL;
}

/* A client that sleeps on the futex of its ring is woken there, without a message. */
static void sleep__futex(void **state)
{
	struct sleeper s = { .futex = &a.completions.shared->asleep };
	pthread_t thread;

	(void)state;
	alarm(60);
	assert_true(cn_shm_ring_sleep(&a.completions, CN_SHM_RING_ON_FUTEX));
	assert_int_equal(pthread_create(&thread, NULL, sleep_on_futex, &s), 0);
	/* Until there is a sleeper, which could be moved, from this futex to this futex. */
	while (syscall(SYS_futex, s.futex, FUTEX_CMP_REQUEUE, 0, (void *)1, s.futex,
		       CN_SHM_RING_ON_FUTEX) == 0) {
		sched_yield();
	}
	assert_int_equal(ring_client_post(&a, 1, 0), CN_SHM_RING_OK);
	assert_true(cn_rings_poll(d));
	pthread_join(thread, NULL);
	assert_int_equal(s.result, 0);
	ring_client_expect_done(&a, 1, COLLNET_EIFACE);
	assert_int_equal(ring_client_recv(&a, NULL), 0);
	alarm(0);
}

/* A client that sleeps on this processor or another one is woken at once, or after frames. */
static void assert_woken(int processor, bool at_once)
{
	const struct cn_msg_done done = { .head = { .type = CN_MSG_DONE, .tag = 1 } };

	cn_shm_ring_set_processor(&a.completions, processor);
	assert_true(cn_shm_ring_sleep(&a.completions, CN_SHM_RING_ON_MESSAGE));
	for (int i = 0; i < 2; i++) {
		cn_client_complete(a.client, &done, true);
	}
	assert_int_equal(ring_client_recv(&a, NULL), at_once ? CN_MSG_EVENT : 0);
	cn_rings_wake(d);
	assert_int_equal(ring_client_recv(&a, NULL), at_once ? 0 : CN_MSG_EVENT);
	cn_rings_wake(d);
	assert_int_equal(ring_client_recv(&a, NULL), 0);
	ring_client_expect_done(&a, 1, COLLNET_OK);
	ring_client_expect_done(&a, 1, COLLNET_OK);
}

static void sleep__on_the_daemons_processor(void **state)
{
	const struct cn_msg_done done = { .head = { .type = CN_MSG_DONE, .tag = 1 } };
	const int here = sched_getcpu();
	cpu_set_t all, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(here, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_woken(here, false);
	assert_woken(here + 1, true);
	assert_woken(-1, true);
	/* It makes requests at once after each completion, for a while. */
	for (int i = 0; i < 16; i++) {
		assert_woken(here, false);
		expect_served(&a);
	}
	assert_woken(here, true);
	d->now += CN_MS;
	expect_served(&a);
	assert_woken(here, false);
	/* Its connection is closed before. */
	assert_true(cn_shm_ring_sleep(&a.completions, CN_SHM_RING_ON_MESSAGE));
	cn_client_complete(a.client, &done, true);
	cn_client_mark(a.client, NULL);
	cn_client_reap(d);
	cn_rings_wake(d);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* Of several requests after a completion only the first one shows how soon it was. */
static void prompt__is_the_first_request(void **state)
{
	struct cn_msg_release m = { .head = { .type = CN_MSG_RELEASE } };

	(void)state;
	for (; m.head.tag < 2; m.head.tag++) { /* they complete nothing */
		a.client->ops[m.head.tag].client = a.client;
		a.client->ops[m.head.tag].kept = true;
		a.client->user->used[CN_QUOTA_REQUESTS]++;
		assert_int_equal(cn_shm_ring_put(&a.requests, &m, sizeof(m)), CN_SHM_RING_OK);
	}
	a.client->done_at = d->now;
	assert_true(cn_rings_poll(d));
	assert_false(a.client->marked);
	assert_int_equal(a.client->prompt, 1);
}

/* The end of an operation whose caller went on wakes him only if he waits for such ends. */
static void sleep__what_is_not_urgent_wakes_nobody(void **state)
{
	const struct cn_msg_done done = { .head = { .type = CN_MSG_DONE, .tag = 1 } };

	(void)state;
	assert_true(cn_shm_ring_sleep(&a.completions, CN_SHM_RING_ON_MESSAGE));
	cn_client_complete(a.client, &done, false);
	assert_int_equal(ring_client_recv(&a, NULL), 0);
	cn_client_complete(a.client, &done, true);
	assert_int_equal(ring_client_recv(&a, NULL), CN_MSG_EVENT);
	ring_client_expect_done(&a, 1, COLLNET_OK);
	ring_client_expect_done(&a, 1, COLLNET_OK);
	assert_true(cn_shm_ring_sleep(&a.completions,
				      CN_SHM_RING_ON_MESSAGE | CN_SHM_RING_FOR_ALL));
	cn_client_complete(a.client, &done, false);
	assert_int_equal(ring_client_recv(&a, NULL), CN_MSG_EVENT);
	ring_client_expect_done(&a, 1, COLLNET_OK);
}

/* A ring that nobody uses is polled no more, until there is a doorbell. */
static void poll__forgets_idle_clients(void **state)
{
	const struct cn_msg_head doorbell = { .type = CN_MSG_DOORBELL };

	(void)state;
	assert_int_equal(d->npolled, 2);
	for (uint32_t i = 0; i < 100000 && d->npolled == 2; i++) {
		expect_served(&b);
	}
	assert_int_equal(d->npolled, 1);
	assert_int_equal(ring_client_post(&a, 1, 0), CN_SHM_RING_OK);
	assert_true(cn_shm_ring_wake(&a.requests));
	ring_client_send(&a, &doorbell, sizeof(doorbell));
	ring_client_expect_done(&a, 1, COLLNET_EIFACE);
	assert_int_equal(d->npolled, 2);
	expect_served(&a);
}

/* ---- descriptors ------------------------------------------------------------------------ */

/* A client that takes none of its descriptors cannot use up what the daemon can send. */
static void hand_out__unread(void **state)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 1 }, .bytes = 4096 };

	(void)state;
	for (; m.region < 17; m.region++) {
		int fd = -1;

		assert_false(a.client->marked);
		ring_client_send(&a, &m, sizeof(m));
		if (m.region < 8) {
			assert_int_equal(ring_client_recv(&a, &fd), CN_MSG_REPLY);
			assert_int_equal(close(fd), 0);
		}
	}
	assert_true(a.client->marked);
}

/* Another process can hold a closed client's socket for a while; see receive.c. */
static void close__leaves_the_loop(void **state)
{
	struct epoll_event event;
	int held;

	(void)state;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(d->epoll_fd >= 0);
	assert_int_equal(cn_event_add_client(d, a.client), COLLNET_OK);
	held = dup(a.client->fd);
	cn_client_mark(a.client, NULL);
	assert_true(cn_client_reap(d));
	a.client = NULL;
	assert_int_equal(shutdown(held, SHUT_RDWR), 0);
	assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 0), 0);
	close(held);
	close(d->epoll_fd);
	d->epoll_fd = -1;
}

/* ---- what a client can write ------------------------------------------------------------ */

/* The client is disconnected, its memory given back, and the other one served. */
static void expect_end_of_a(void)
{
	assert_true(a.client->marked);
	expect_served(&b);
	assert_true(cn_client_reap(d));
	a.client = NULL;
	assert_int_equal(d->npolled, 1);
	expect_served(&b);
}

static void hostile__counter_of_requests(void **state)
{
	(void)state;
	a.requests.shared->tail = CN_MSG_RING_SLOTS + 1;
	assert_true(cn_rings_poll(d));
	expect_end_of_a();
}

static void hostile__counter_of_completions(void **state)
{
	(void)state;
	a.completions.shared->head = 1;
	assert_int_equal(ring_client_post(&a, 1, 0), CN_SHM_RING_OK);
	assert_true(cn_rings_poll(d));
	expect_end_of_a();
}

/* Its own `head`, which the daemon does not read back, changes nothing. */
static void hostile__the_daemons_counters(void **state)
{
	(void)state;
	expect_served(&a);
	a.requests.shared->head = 99;
	a.completions.shared->tail = 99;
	a.requests.at = 1;
	assert_int_equal(cn_shm_ring_put(&a.requests, "", 1), CN_SHM_RING_BROKEN);
	assert_false(cn_rings_poll(d));
	assert_false(a.client->marked);
	expect_served(&b);
}

static void hostile__types_that_do_not_belong_there(void **state)
{
	static const uint32_t types[] = {
		0, CN_MSG_HELLO, CN_MSG_REGION, CN_MSG_LEAVE, CN_MSG_STATS, CN_MSG_DONE, UINT32_MAX
	};
	uint8_t slot[CN_MSG_REQUEST_SLOT] = { 0 };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (i > 0) {
			teardown(state);
			setup(state);
		}
		memcpy(slot, &types[i], sizeof(types[i]));
		assert_int_equal(cn_shm_ring_put(&a.requests, slot, sizeof(slot)), CN_SHM_RING_OK);
		assert_true(cn_rings_poll(d));
		expect_end_of_a();
	}
}

/* It takes no completions, and uses its request numbers again. */
static void hostile__a_ring_of_completions_that_is_full(void **state)
{
	uint32_t n = 0;

	(void)state;
	while (!a.client->marked && n <= CN_MSG_RING_SLOTS) {
		assert_int_equal(ring_client_post(&a, 1, 0), CN_SHM_RING_OK);
		assert_true(cn_rings_poll(d));
		n++;
	}
	assert_int_equal(n, CN_MSG_RING_SLOTS + 1);
	expect_end_of_a();
}

/* A second region of rings. */
static void hostile__second_rings(void **state)
{
	const struct cn_msg_region again = { .head = { .type = CN_MSG_REGION },
					     .region = CN_MSG_RINGS,
					     .bytes = RING_CLIENT_BYTES };

	(void)state;
	ring_client_send(&a, &again, sizeof(again));
	expect_end_of_a();
}

/* Its outstanding requests would be completed on the socket, however many there are. */
static void hostile__returned_rings(void **state)
{
	const struct cn_msg_unregion back = { .head = { .type = CN_MSG_UNREGION },
					      .region = CN_MSG_RINGS };

	(void)state;
	assert_int_equal(ring_client_post(&a, 1, 0), CN_SHM_RING_OK);
	ring_client_send(&a, &back, sizeof(back));
	expect_end_of_a();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(poll__requests_become_completions),
		CASE(poll__is_bounded_per_client),
		CASE(readable__serves_the_ring_first),
		CASE(sleep__doorbell_and_event),
		CASE(sleep__futex),
		CASE(sleep__on_the_daemons_processor),
		CASE(prompt__is_the_first_request),
		CASE(sleep__what_is_not_urgent_wakes_nobody),
		CASE(poll__forgets_idle_clients),
		CASE(hand_out__unread),
		CASE(close__leaves_the_loop),
		CASE(hostile__counter_of_requests),
		CASE(hostile__counter_of_completions),
		CASE(hostile__the_daemons_counters),
		CASE(hostile__types_that_do_not_belong_there),
		CASE(hostile__a_ring_of_completions_that_is_full),
		CASE(hostile__second_rings),
		CASE(hostile__returned_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
