/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/client/rings.c and wait.c: requests behind one that waits for its plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_daemon.h"

#define BEFORE_JOIN 30u /* times PING; the peer timeout is three times the time between them */

/* ---- the daemon ----------------------------------------------------------------------- */

static struct cn_shm_ring requests, completions;

static void complete(uint32_t tag, int status, const char *text)
{
	struct cn_msg_done done = { .head = { .type = CN_MSG_DONE, .tag = tag }, .status = status };

	strcpy(done.text, text);
	cn_shm_ring_put(&completions, &done, sizeof(done));
}

/* Takes what is in the ring: what came while it took nothing is late. */
static void take_requests(bool late)
{
	const void *slot;

	while (cn_shm_ring_front(&requests, &slot) == CN_SHM_RING_OK) {
		const struct cn_msg_recv *m = slot;

		complete(m->head.tag, late ? COLLNET_ETIMEOUT : COLLNET_EIFACE,
			 late ? "it was late" : "it was taken");
		cn_shm_ring_pop(&requests);
	}
	cn_shm_ring_sleep(&requests, CN_SHM_RING_ON_MESSAGE);
}

/* Takes no requests before STATS, as if one waited; a JOIN ends late. */
static void serve(int fd, int arg)
{
	uint32_t join = UINT32_MAX, pings = 0;
	int memory;
	union cn_msg m;

	(void)arg;
	while (recv(fd, &m, sizeof(m), 0) > 0) {
		switch (m.head.type) {
		case CN_MSG_REGION:
			memory = fake_rings(&m.region, true, &requests, &completions);
			cn_shm_ring_hold(&requests, 1);
			fake_hand_out(fd, m.head.tag, memory);
			break;
		case CN_MSG_PING:
			fake_respond(fd, CN_MSG_PONG, m.head.tag);
			if (join != UINT32_MAX && ++pings == BEFORE_JOIN) {
				complete(join, COLLNET_ETIMEOUT, "it was late");
				fake_respond(fd, CN_MSG_EVENT, 0);
			}
			break;
		case CN_MSG_OPEN:
		case CN_MSG_LEAVE:
			fake_respond(fd, CN_MSG_REPLY, m.head.tag);
			break;
		case CN_MSG_JOIN:
			join = m.head.tag;
			break;
		case CN_MSG_STATS:
			cn_shm_ring_hold(&requests, 0);
			take_requests(true);
			fake_respond(fd, CN_MSG_STATS_REPLY, m.head.tag);
			break;
		case CN_MSG_DOORBELL:
			take_requests(false);
			fake_respond(fd, CN_MSG_EVENT, 0);
			break;
		default:
			_exit(1);
		}
	}
	_exit(0);
}

/* ---- the program ---------------------------------------------------------------------- */

static collnet_t *open_context(void)
{
	collnet_t *c = NULL;

	assert_int_equal(fake_open(serve, 0, NULL, 300, &c), COLLNET_OK);
	return c;
}

static int receive_nothing(collnet_endpoint_t *e)
{
	size_t bytes = 0;

	return collnet_recv(e, NULL, NULL, &bytes, 50);
}

/* A request behind one that waits for its plan ends at its deadline, and the next one has its
 * number. The daemon completes both. */
static void held__a_request_ends_at_its_deadline(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context();
	collnet_endpoint_t *e;

	(void)state;
	assert_int_equal(collnet_endpoint_open(c, 0, &e), COLLNET_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(receive_nothing(e), COLLNET_ETIMEOUT);
		assert_non_null(strstr(collnet_error(c), "waited behind another request"));
	}
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_OK);
	assert_int_equal(receive_nothing(e), COLLNET_EIFACE);
	assert_non_null(strstr(collnet_error(c), "it was taken"));
	fake_end(c);
}

/* There is room for so many in the ring. */
static void held__too_many_requests_that_have_ended(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context();
	collnet_request_t *r[64];
	collnet_endpoint_t *e;
	size_t bytes = 0;

	(void)state;
	assert_int_equal(collnet_endpoint_open(c, 0, &e), COLLNET_OK);
	for (int i = 0; i < 8; i++) {
		for (int k = 0; k < 64; k++) {
			assert_int_equal(collnet_irecv(e, NULL, NULL, &bytes, 1, &r[k]),
					 COLLNET_OK);
		}
		assert_int_equal(collnet_waitall(64, r, NULL, 0), COLLNET_ETIMEOUT);
	}
	assert_int_equal(receive_nothing(e), COLLNET_ELIMIT);
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_OK);
	assert_int_equal(receive_nothing(e), COLLNET_EIFACE);
	fake_end(c);
}

/* One on the socket may have been taken. It ends when the daemon says so, later than a daemon is
 * believed in that takes requests. */
static void held__a_join_ends_late(void **state)
{
	struct collnet_team_options o;
	collnet_t *c = open_context();
	collnet_team_t *t;

	(void)state;
	collnet_team_options_init(&o);
	o.timeout_ms = 100;
	o.job = "job";
	o.rank = 0;
	o.ranks = 2;
	assert_int_equal(collnet_team_create(c, &o, &t), COLLNET_ETIMEOUT);
	assert_non_null(strstr(collnet_error(c), "it was late"));
	fake_end(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held__a_request_ends_at_its_deadline),
		cmocka_unit_test(held__too_many_requests_that_have_ended),
		cmocka_unit_test(held__a_join_ends_late),
	};
	int status;

	fake_begin();
	status = cmocka_run_group_tests(tests, NULL, NULL);
	fake_finish();
	return status;
}
