/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/client/rings.c and wait.c: requests behind one that waits for its plan. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_daemon.h"

#define TEAMS_MAX  33
#define MANY_PINGS 30 /* a tenth of a second apart */

/* ---- the daemon ----------------------------------------------------------------------- */

static struct cn_shm_ring requests, completions;
static uint32_t joins[TEAMS_MAX], njoins, leaves[TEAMS_MAX], nleaves; /* that wait */
static int told[2];

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

		for (uint32_t i = 0; i < njoins; i++) {
			if (joins[i] == m->head.tag) {
				_exit(1); /* its number is in use: the JOIN was sent before */
			}
		}
		complete(m->head.tag, late ? COLLNET_ETIMEOUT : COLLNET_EIFACE,
			 late ? "it was late" : "it was taken");
		cn_shm_ring_pop(&requests);
	}
	cn_shm_ring_sleep(&requests, CN_SHM_RING_ON_MESSAGE);
}

static void take_all(int fd)
{
	cn_shm_ring_set_blocked_on(&requests, 0);
	take_requests(true);
	for (uint32_t i = 0; i < njoins; i++) {
		complete(joins[i], COLLNET_ETIMEOUT, "it was late");
	}
	for (uint32_t i = 0; i < nleaves; i++) {
		fake_respond(fd, CN_MSG_REPLY, leaves[i]);
	}
	njoins = nleaves = 0;
	fake_respond(fd, CN_MSG_EVENT, 0);
}

/* Memory for copies. */
static int make_memory(const struct cn_msg_region *m)
{
	const int memory = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(memory, (off_t)m->bytes) != 0 ||
	    fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
		_exit(1);
	}
	return memory;
}

/* Takes no requests before STATS, as if one waited; or before so many PINGs, but for a JOIN; or, if
 * that is less than 0, before so many LEAVEs, and says so. */
static void serve(int fd, int before)
{
	uint32_t pings = 0;
	union cn_msg m;
	int memory;

	while (recv(fd, &m, sizeof(m), 0) > 0) {
		const bool blocked_on = requests.shared != NULL && requests.shared->blocked_on != 0;

		switch (m.head.type) {
		case CN_MSG_REGION:
			if (m.region.region != CN_MSG_RINGS) {
				memory = make_memory(&m.region);
			} else {
				memory = fake_rings(&m.region, true, &requests, &completions);
				cn_shm_ring_set_blocked_on(&requests, 1);
			}
			fake_hand_out(fd, m.head.tag, memory);
			break;
		case CN_MSG_PING:
			fake_respond(fd, CN_MSG_PONG, m.head.tag);
			if (before > 0 && ++pings == (uint32_t)before) {
				take_all(fd);
			}
			break;
		case CN_MSG_JOIN:
			joins[njoins++] = m.head.tag;
			cn_shm_ring_set_consumed_oob(&requests, before > 0 ? INT32_MAX : 0);
			if (!blocked_on) {
				complete(joins[--njoins], COLLNET_EIFACE, "it was taken");
				fake_respond(fd, CN_MSG_EVENT, 0);
			}
			break;
		case CN_MSG_LEAVE:
			leaves[nleaves++] = m.head.tag;
			if (!blocked_on) {
				fake_respond(fd, CN_MSG_REPLY, leaves[--nleaves]);
			} else if (before < 0 && nleaves == (uint32_t)-before) {
				take_all(fd);
				if (write(told[1], "", 1) != 1) {
					_exit(1);
				}
			}
			break;
		case CN_MSG_OPEN:
			fake_respond(fd, CN_MSG_REPLY, m.head.tag);
			break;
		case CN_MSG_STATS:
			take_all(fd);
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

static collnet_t *open_context(int before)
{
	collnet_t *c = NULL;

	assert_int_equal(fake_open(serve, before, NULL, 300, &c), COLLNET_OK);
	return c;
}

static int receive_nothing(collnet_endpoint_t *e)
{
	size_t bytes = 0;

	return collnet_recv(e, NULL, NULL, &bytes, 50);
}

/* A request behind one that waits for its plan ends at its deadline, and the next one has its
 * number. The daemon completes both. */
static void blocked__a_request_ends_at_its_deadline(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context(0);
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

/* A region that is too small is kept: the daemon, which does not take that it is given up, would
 * not make the larger one. */
static void blocked__larger_memory_for_copies(void **state)
{
	static char to[1 << 20];
	collnet_t *c = open_context(0);
	collnet_endpoint_t *e;

	(void)state;
	assert_int_equal(collnet_endpoint_open(c, 0, &e), COLLNET_OK);
	for (uint64_t bytes = 8; bytes <= sizeof(to); bytes *= 131072) {
		size_t n = (size_t)bytes;

		assert_int_equal(collnet_recv(e, NULL, to, &n, 5), COLLNET_ETIMEOUT);
	}
	fake_end(c);
}

/* There is room for so many in the ring. */
static void blocked__too_many_requests_that_have_ended(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context(0);
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

static int create_team(collnet_t *c, uint32_t timeout_ms)
{
	struct collnet_team_options o;
	collnet_team_t *t;

	collnet_team_options_init(&o);
	o.timeout_ms = timeout_ms;
	o.job = "job";
	o.rank = 0;
	o.ranks = 2;
	return collnet_team_create(c, &o, &t);
}

/* So does one on the socket, whose team is left without an answer, up to a number of them. */
static void blocked__a_join_ends_at_its_deadline(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context(0);

	(void)state;
	for (int i = 0; i < TEAMS_MAX - 1; i++) {
		assert_int_equal(create_team(c, 5), COLLNET_ETIMEOUT);
		assert_non_null(strstr(collnet_error(c), "waited behind another request"));
	}
	assert_int_equal(create_team(c, 5), COLLNET_ELIMIT);
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_OK);
	assert_int_equal(create_team(c, 1000), COLLNET_EIFACE);
	assert_non_null(strstr(collnet_error(c), "it was taken"));
	fake_end(c);
}

/* The daemon takes the ring before what came on the socket: no other request has its number there.
 */
static void blocked__the_number_of_a_join_is_not_given_out(void **state)
{
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_t *c = open_context(0);
	collnet_endpoint_t *e;

	(void)state;
	assert_int_equal(collnet_endpoint_open(c, 0, &e), COLLNET_OK);
	assert_int_equal(create_team(c, 5), COLLNET_ETIMEOUT);
	assert_int_equal(receive_nothing(e), COLLNET_ETIMEOUT);
	assert_int_equal(collnet_get_stats(c, &s, 0), COLLNET_OK);
	assert_int_equal(create_team(c, 1000), COLLNET_EIFACE);
	assert_int_equal(receive_nothing(e), COLLNET_EIFACE);
	fake_end(c);
}

/* A program that does nothing else can make teams again. */
static void blocked__joins_go_on_when_they_are_taken(void **state)
{
	collnet_t *c = open_context(1 - TEAMS_MAX);
	char byte;

	(void)state;
	for (int i = 0; i < TEAMS_MAX - 1; i++) {
		assert_int_equal(create_team(c, 5), COLLNET_ETIMEOUT);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(create_team(c, 1000), COLLNET_EIFACE);
	fake_end(c);
}

/* One that was taken ends when the daemon says so, be that later than a daemon is believed in that
 * takes requests. */
static void blocked__a_join_that_was_taken(void **state)
{
	collnet_t *c = open_context(MANY_PINGS);

	(void)state;
	assert_int_equal(create_team(c, 100), COLLNET_ETIMEOUT);
	assert_non_null(strstr(collnet_error(c), "it was late"));
	fake_end(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocked__a_request_ends_at_its_deadline),
		cmocka_unit_test(blocked__larger_memory_for_copies),
		cmocka_unit_test(blocked__too_many_requests_that_have_ended),
		cmocka_unit_test(blocked__a_join_ends_at_its_deadline),
		cmocka_unit_test(blocked__the_number_of_a_join_is_not_given_out),
		cmocka_unit_test(blocked__joins_go_on_when_they_are_taken),
		cmocka_unit_test(blocked__a_join_that_was_taken),
	};
	int status;

	if (pipe(told) != 0) {
		return 1;
	}
	fake_begin();
	status = cmocka_run_group_tests(tests, NULL, NULL);
	fake_finish();
	return status;
}
