/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/time_slice.c: how much of one user's requests is served before another user's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ring_client.h"

#define MANY 8u

static struct cn_daemon *d;
static struct ring_client many[MANY], one; /* of a user, and of another */
static cn_time now, cost[2];		   /* of a request of theirs */
static uint32_t served[MANY + 1];	   /* requests of each; the last: of `one` */

/* Linked with --wrap. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap___clock_gettime64(clockid_t clock, struct timespec *ts);
void __real_cn_client_complete(struct cn_client *c, const struct cn_msg_done *m, bool urgent);
void __wrap_cn_client_complete(struct cn_client *c, const struct cn_msg_done *m, bool urgent);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = (time_t)(now / (1000 * CN_MS));
	ts->tv_nsec = (long)(now % (1000 * CN_MS));
	return 0;
}

/* Its name in the C library where a long has 32 bits, and times 64. */
int __wrap___clock_gettime64(clockid_t clock, struct timespec *ts)
{
	return __wrap_clock_gettime(clock, ts);
}

void __wrap_cn_client_complete(struct cn_client *c, const struct cn_msg_done *m, bool urgent)
{
	uint32_t i = 0;

	while (i < MANY && many[i].client != c) {
		i++;
	}
	served[i]++;
	now += cost[i == MANY];
	__real_cn_client_complete(c, m, urgent);
}

static int setup(void **state)
{
	(void)state;
	d = ring_daemon();
	now = d->now;
	cost[0] = cost[1] = 10 * CN_US;
	for (uint32_t i = 0; i < MANY; i++) {
		ring_client_connect(&many[i], d, 1001);
	}
	ring_client_connect(&one, d, 1002);
	memset(served, 0, sizeof(served));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cn_client_end(d);
	for (uint32_t i = 0; i < MANY; i++) {
		ring_client_free(&many[i]);
	}
	ring_client_free(&one);
	free(d);
	return 0;
}

/* Its ring is full, and it has taken its completions. */
static void fill(struct ring_client *e)
{
	const void *slot;

	while (cn_shm_ring_front(&e->completions, &slot) == CN_SHM_RING_OK) {
		cn_shm_ring_pop(&e->completions);
	}
	while (ring_client_post(e, 0, 0) == CN_SHM_RING_OK) {
	}
}

static void fill_many(void)
{
	for (uint32_t i = 0; i < MANY; i++) {
		fill(&many[i]);
	}
}

static bool poll_rings(void)
{
	d->now = now;
	cn_slice_new_round(d);
	return cn_rings_poll(d);
}

/* All of its user's. */
static uint32_t served_many(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		n += served[i];
	}
	return n;
}

/* With any number of connections a user has one turn; the other one is served in each round. */
static void rings__of_many_connections(void **state)
{
	(void)state;
	for (uint32_t round = 1; round <= 1000; round++) {
		fill_many();
		assert_int_equal(ring_client_post(&one, 0, 0), CN_SHM_RING_OK);
		assert_true(poll_rings());
		ring_client_expect_done(&one, 0, COLLNET_EIFACE);
		assert_int_equal(served[MANY], round);
		assert_int_equal(served_many(), round * (CN_TIME_SLICE / cost[0]));
	}
	/* They take turns, too. */
	for (uint32_t i = 0; i < MANY; i++) {
		assert_uint_in_range(served[i], served_many() / MANY * 9 / 10,
				     served_many() / MANY * 11 / 10);
	}
}

/* As long as a request was too long, requests of others are served, and none of its user. */
static void rings__of_long_requests(void **state)
{
	uint32_t before;

	(void)state;
	cost[0] = 500 * CN_MS;
	cost[1] = CN_MS / 10;
	for (uint32_t n = 1; n <= 3; n++) {
		before = served[MANY];
		while (served_many() < n) {
			fill_many();
			assert_int_equal(ring_client_post(&one, 0, 0), CN_SHM_RING_OK);
			assert_true(poll_rings());
			ring_client_expect_done(&one, 0, COLLNET_EIFACE);
		}
		assert_int_equal(served_many(), n);
		assert_uint_in_range(served[MANY] - before, n == 1 ? 1 : 4990, 5010);
	}
}

/* Nothing else is to be done meanwhile: the loop sleeps until the user is served again. */
static void rings__sleep_while_their_user_waits(void **state)
{
	(void)state;
	cost[0] = 500 * CN_MS;
	fill_many();
	assert_true(poll_rings());
	assert_false(poll_rings());
	assert_int_equal(cn_rings_sleep(d), now + cost[0] - CN_TIME_SLICE);
	cn_rings_awake(d);
	assert_int_equal(ring_client_post(&one, 0, 0), CN_SHM_RING_OK);
	assert_int_equal(cn_rings_sleep(d), 0);
	assert_true(poll_rings());
	now += cost[0] - CN_TIME_SLICE;
	d->now = now;
	assert_int_equal(cn_rings_sleep(d), 0);
	assert_true(poll_rings());
	assert_int_equal(served_many(), 2);
}

/* Nobody else is connected: nobody waits. */
static void rings__of_the_only_user(void **state)
{
	(void)state;
	cn_client_mark(one.client, NULL);
	cn_client_reap(d);
	cost[0] = 500 * CN_MS;
	for (uint32_t n = 1; n <= 2 * MANY; n++) {
		fill_many();
		assert_true(poll_rings());
		assert_int_equal(served_many(), n);
		assert_int_equal(served[(n - 1) % MANY], (n + MANY - 1) / MANY);
	}
}

/* A message of a user whose turn is over stays, unless it is a PING or a DOORBELL. */
static void sockets__after_a_long_request(void **state)
{
	const struct cn_msg_leave leave = { .head = { .type = CN_MSG_LEAVE } };
	const struct cn_msg_head ping = { .type = CN_MSG_PING }, bell = { .type = CN_MSG_DOORBELL };

	(void)state;
	cost[0] = 500 * CN_MS;
	fill(&many[0]);
	cn_slice_new_round(d);
	ring_client_send(&many[0], &leave, sizeof(leave));
	ring_client_send(&many[1], &leave, sizeof(leave));
	ring_client_send(&many[2], &ping, sizeof(ping));
	ring_client_send(&many[3], &bell, sizeof(bell));
	ring_client_send(&many[3], &ping, sizeof(ping));
	ring_client_send(&one, &leave, sizeof(leave));
	assert_int_equal(served_many(), 1);
	assert_int_equal(ring_client_recv(&many[0], NULL), 0);
	assert_int_equal(ring_client_recv(&many[1], NULL), 0);
	assert_int_equal(ring_client_recv(&many[2], NULL), CN_MSG_PONG);
	assert_int_equal(ring_client_recv(&many[3], NULL), CN_MSG_PONG);
	assert_int_equal(ring_client_recv(&one, NULL), CN_MSG_REPLY);
	cn_slice_new_round(d);
	cn_client_readable(many[1].client);
	assert_int_equal(ring_client_recv(&many[1], NULL), 0);
	now += cost[0];
	cn_slice_new_round(d);
	cn_client_readable(many[1].client);
	assert_int_equal(ring_client_recv(&many[1], NULL), CN_MSG_REPLY);
	cn_client_readable(many[0].client);
	assert_int_equal(ring_client_recv(&many[0], NULL), 0); /* its ring is not empty yet */
	assert_int_equal(served_many(), 2);
}

/* The DOORBELL of a client that waits has its ring polled. */
static void sockets__doorbell(void **state)
{
	const struct cn_msg_head bell = { .type = CN_MSG_DOORBELL };

	(void)state;
	while (d->npolled > 0) {
		assert_false(poll_rings());
	}
	cost[0] = 500 * CN_MS;
	assert_int_equal(ring_client_post(&many[0], 0, 0), CN_SHM_RING_OK);
	assert_int_equal(ring_client_post(&many[1], 0, 0), CN_SHM_RING_OK);
	cn_slice_new_round(d);
	ring_client_send(&many[0], &bell, sizeof(bell));
	ring_client_send(&many[1], &bell, sizeof(bell));
	assert_int_equal(served[0], 1);
	assert_int_equal(served[1], 0);
	assert_int_equal(d->npolled, 2);
	now += cost[0];
	assert_true(poll_rings());
	assert_int_equal(served[1], 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(rings__of_many_connections),	   CASE(rings__of_long_requests),
		CASE(rings__sleep_while_their_user_waits), CASE(rings__of_the_only_user),
		CASE(sockets__after_a_long_request),	   CASE(sockets__doorbell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
