/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/request.c, and close.c as clients go: the numbers that a client has taken, what it is
 * charged for them, and what a turn of the loop lets go of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "coll/team.h"
#include "daemon_fixture.h"
#include "log_capture.h"

#define HIGH 40u /* number of an endpoint, of more than 32 bits */

static struct daemon_fixture fixture;
static struct cn_daemon *d;
static struct cn_client *c;
static struct cn_user *user;
static int fd; /* the client's */

static int setup(void **state)
{
	(void)state;
	daemon_fixture_begin(&fixture);
	d = fixture.daemon;
	c = fixture.client;
	user = fixture.user;
	fd = fixture.fd;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fixture.fd = fd;
	daemon_fixture_end(&fixture);
	return 0;
}

/* What the daemon's stack holds when it answers: data of other clients, as far as one can tell. */
static __attribute__((noinline)) void paint_stack(void)
{
	volatile uint8_t used[16384];

	for (size_t i = 0; i < sizeof(used); i++) {
		used[i] = 0xa5;
	}
}

static void assert_clear_behind(const char *text, size_t size)
{
	for (size_t i = strnlen(text, size); i < size; i++) {
		assert_int_equal(text[i], 0);
	}
}

static union cn_msg answer; /* the last one */

/* The status of the answer, of this type; INT32_MAX: there is none. Its text shows nothing else. */
static int32_t ask(const void *m, size_t len, enum cn_msg_type type)
{
	memset(&answer, 0, sizeof(answer));
	paint_stack();
	cn_client_message(c, m, len);
	if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) <= 0) {
		return INT32_MAX;
	}
	assert_int_equal(answer.head.type, type);
	if (type == CN_MSG_DONE) {
		assert_clear_behind(answer.done.text, sizeof(answer.done.text));
	} else if (type == CN_MSG_REPLY) {
		assert_clear_behind(answer.reply.text, sizeof(answer.reply.text));
	}
	return type == CN_MSG_REPLY  ? answer.reply.status
	       : type == CN_MSG_DONE ? answer.done.status
				     : COLLNET_OK;
}

static int32_t open_endpoint(uint32_t endpoint, uint32_t number)
{
	const struct cn_msg_open m = { .head = { .type = CN_MSG_OPEN },
				       .endpoint = endpoint,
				       .number = number };

	return ask(&m, sizeof(m), CN_MSG_REPLY);
}

static int32_t close_endpoint(uint32_t endpoint)
{
	const struct cn_msg_close m = { .head = { .type = CN_MSG_CLOSE }, .endpoint = endpoint };

	return ask(&m, sizeof(m), CN_MSG_REPLY);
}

static int32_t receive(uint32_t endpoint, uint32_t tag)
{
	const struct cn_msg_recv m = { .head = { .type = CN_MSG_RECV, .tag = tag },
				       .endpoint = endpoint,
				       .timeout_ms = 1000,
				       .data = { .region = CN_MSG_NO_REGION } };

	return ask(&m, sizeof(m), CN_MSG_DONE);
}

static uint64_t endpoints(void)
{
	return user->used[CN_QUOTA_ENDPOINTS];
}

static void endpoint__is_given_back(void **state)
{
	(void)state;
	assert_int_equal(open_endpoint(0, 7), COLLNET_OK);
	assert_int_equal(endpoints(), 1);
	assert_int_not_equal(open_endpoint(1, 7), COLLNET_OK); /* the number is taken */
	assert_int_equal(endpoints(), 1);
	assert_int_equal(close_endpoint(0), COLLNET_OK);
	assert_int_equal(endpoints(), 0);
	d->config.limits[CN_QUOTA_ENDPOINTS] = 1;
	assert_int_equal(open_endpoint(0, 7), COLLNET_OK);
	assert_int_equal(open_endpoint(1, 8), COLLNET_ELIMIT);
	assert_int_equal(endpoints(), 1);
	/* The client ends with it: teardown(). */
}

/* What went with the interface keeps its number until it is closed, and counts no more. */
static void endpoint__that_is_lost(void **state)
{
	(void)state;
	assert_int_equal(open_endpoint(HIGH, 7), COLLNET_OK);
	cn_client_detach(c);
	snprintf(d->iface.lost, sizeof(d->iface.lost), "interface eth0 was removed on node h1");
	assert_int_equal(endpoints(), 0);
	assert_int_equal(receive(HIGH, 1), COLLNET_EIFACE);
	assert_string_equal(answer.done.text, d->iface.lost);
	assert_false(c->marked);
	assert_int_equal(close_endpoint(HIGH), COLLNET_OK);
	assert_int_equal(endpoints(), 0);
	assert_int_equal(open_endpoint(HIGH, 7), COLLNET_OK);
	assert_int_equal(receive(HIGH, 1), INT32_MAX); /* it waits */
	assert_false(c->marked);
}

static void endpoint__lost_and_opened_again(void **state)
{
	(void)state;
	assert_int_equal(open_endpoint(HIGH, 7), COLLNET_OK);
	cn_client_detach(c);
	assert_int_equal(open_endpoint(HIGH - 1, 8), COLLNET_OK);
	assert_int_equal(open_endpoint(HIGH - 32, 9), COLLNET_OK);
	assert_false(c->marked);
	assert_int_equal(open_endpoint(HIGH, 7), INT32_MAX);
	assert_true(c->marked);
}

/* The number of a persistent operation is taken, also when it is not outstanding. */
static void persistent__keeps_its_number(void **state)
{
	const struct cn_msg_join join = { .head = { .type = CN_MSG_JOIN, .tag = 1 },
					  .ranks = 1,
					  .timeout_ms = 1000,
					  .job = "job" };
	const struct cn_msg_coll barrier = { .head = { .type = CN_MSG_COLL, .tag = 1 },
					     .op = CN_OP_BARRIER,
					     .timeout_ms = 1000,
					     .persistent = 1,
					     .send = { .region = CN_MSG_NO_REGION },
					     .recv = { .region = CN_MSG_NO_REGION },
					     .blocks = { .region = CN_MSG_NO_REGION },
					     .scratch = { .region = CN_MSG_NO_REGION } };
	const struct cn_msg_release release = { .head = { .type = CN_MSG_RELEASE, .tag = 1 } };

	(void)state;
	assert_int_equal(ask(&join, sizeof(join), CN_MSG_JOINED), COLLNET_OK);
	assert_int_equal(ask(&barrier, sizeof(barrier), CN_MSG_DONE), COLLNET_OK);
	assert_int_equal(user->used[CN_QUOTA_REQUESTS], 1);
	assert_int_equal(ask(&release, sizeof(release), CN_MSG_DONE), INT32_MAX);
	assert_int_equal(user->used[CN_QUOTA_REQUESTS], 0);
	assert_int_equal(ask(&barrier, sizeof(barrier), CN_MSG_DONE), COLLNET_OK);
	assert_false(c->marked);
	assert_int_equal(ask(&barrier, sizeof(barrier), CN_MSG_DONE), INT32_MAX);
	assert_true(c->marked);
}

static void request__refused_by_a_quota(void **state)
{
	(void)state;
	assert_int_equal(open_endpoint(0, 7), COLLNET_OK);
	d->config.limits[CN_QUOTA_REQUESTS] = 1;
	assert_int_equal(receive(0, 1), INT32_MAX); /* it waits */
	assert_int_equal(receive(0, 2), COLLNET_ELIMIT);
}

/* A rank of as many joins; where there are more, they do not come. */
static void join_team(struct cn_client *of, uint32_t team, const char *job, uint32_t ranks)
{
	struct cn_msg_join m = { .head = { .type = CN_MSG_JOIN, .tag = 100 + team % 100 },
				 .team = team,
				 .ranks = ranks,
				 .timeout_ms = 1000 };

	snprintf(m.job, sizeof(m.job), "%s", job);
	cn_client_message(of, (const union cn_msg *)(const void *)&m, sizeof(m));
	assert_non_null(of->teams[team]);
}

static uint32_t teams_of(const struct cn_client *of)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < CN_MSG_TEAMS; i++) {
		n += of->teams[i] != NULL;
	}
	return n;
}

/* Others of the user may end again and again. */
static void join__waits_for_clients_in_close(void **state)
{
	const struct cn_msg_join join = { .head = { .type = CN_MSG_JOIN, .tag = 1 },
					  .ranks = 1,
					  .timeout_ms = 1000,
					  .job = "job" };
	static union cn_msg m;
	int end;

	(void)state;
	cn_client_mark(daemon_fixture_another(d, 1000, &end), NULL);
	assert_int_equal(send(fd, &join, sizeof(join), MSG_DONTWAIT), sizeof(join));
	for (int turns = 0; turns < 2; turns++) {
		cn_client_readable(c);
		assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), -1);
		d->now += d->config.peer_timeout_ms * CN_MS / 4;
	}
	cn_client_readable(c);
	assert_true(recv(fd, &m, sizeof(m), MSG_DONTWAIT) > 0);
	assert_int_equal(m.head.type, CN_MSG_JOINED);
	close(end);
}

/* A client without rings joins a job as n ranks, from `first` on, which waits for others. */
static void join_ranks(struct cn_client *of, uint32_t first, uint32_t n)
{
	struct cn_msg_join m = { .head = { .type = CN_MSG_JOIN },
				 .ranks = COLLNET_RANKS_MAX,
				 .timeout_ms = 1000,
				 .job = "job" };

	for (uint32_t i = 0; i < n; i++) {
		m.head.tag = m.team = i;
		m.rank = first + i;
		cn_client_message(of, (const union cn_msg *)(const void *)&m, sizeof(m));
	}
}

/* All of them may end at once, each by a system call. */
static void request__few_of_a_user_on_sockets(void **state)
{
	void *memory = aligned_alloc(CN_SHM_RING_LINE, CN_MSG_RINGS_BYTES);
	struct cn_client *of[4];
	struct cn_shm_ring none;
	int end[4];

	(void)state;
	assert_non_null(memory);
	memset(memory, 0, CN_MSG_RINGS_BYTES);
	for (uint32_t i = 0; i < 4; i++) {
		of[i] = daemon_fixture_another(d, i < 3 ? 2000 : 2001, &end[i]);
	}
	join_ranks(of[0], 0, CN_MSG_REQUESTS);
	join_ranks(of[1], CN_MSG_REQUESTS, CN_MSG_REQUESTS);
	assert_int_equal(of[0]->user->on_socket, CN_ON_SOCKET_MAX);
	join_ranks(of[2], 2 * CN_MSG_REQUESTS, 2);
	assert_int_equal(teams_of(of[2]), 0);
	cn_msg_rings_init(memory, &none, &of[2]->completions);
	join_ranks(of[2], 2 * CN_MSG_REQUESTS, 2);
	assert_int_equal(teams_of(of[2]), 2);
	of[2]->completions.shared = NULL;
	join_ranks(of[3], 0, 2); /* another user */
	assert_int_equal(teams_of(of[3]), 2);
	cn_client_mark(of[1], NULL);
	cn_client_reap(d);
	assert_int_equal(of[0]->user->on_socket, CN_ON_SOCKET_MAX / 2);
	cn_client_mark(of[0], NULL);
	cn_client_mark(of[2], NULL);
	cn_client_reap(d);
	assert_int_equal(of[3]->user->on_socket, 2);
	for (uint32_t i = 0; i < 4; i++) {
		close(end[i]);
	}
	free(memory);
}

/* A user that invents secrets, and so owners, has no more lines of the log, and takes none of
 * another user's. */
static void join__lines_of_a_user(void **state)
{
	enum { JOBS = 300 };
	struct cn_msg_join join = { .head = { .type = CN_MSG_JOIN, .tag = 1 },
				    .ranks = 1, /* ready at once */
				    .timeout_ms = 1000,
				    .job = "job" };
	const struct cn_msg_leave leave = { .head = { .type = CN_MSG_LEAVE } };
	struct cn_client *other;
	int end;

	(void)state;
	log_capture();
	for (uint32_t i = 0; i < JOBS; i++) {
		join.secret = CN_OWNER_SECRET | cn_mix64(i);
		assert_int_equal(ask(&join, sizeof(join), CN_MSG_JOINED), COLLNET_OK);
		assert_int_equal(ask(&leave, sizeof(leave), CN_MSG_REPLY), COLLNET_OK);
	}
	assert_uint_in_range(logged_lines, 50, JOBS / 2);
	other = daemon_fixture_another(d, 1001, &end);
	log_capture();
	join_team(other, 0, "other", 1);
	assert_non_null(strstr(logged, "job other: 1 rank on 1 node is there"));
	log_capture_end();
	close(end);
}

/* Clients that end have many teams: a turn that is over leaves one, of each of them by turns. */
static void close__in_turns(void **state)
{
	enum { TEAMS = 5 };
	struct cn_client *other;
	uint32_t left[2];
	char job[16];
	int end;

	(void)state;
	other = daemon_fixture_another(d, 1000, &end);
	for (uint32_t i = 0; i < TEAMS; i++) {
		snprintf(job, sizeof(job), "job%u", i);
		join_team(c, 201 * i, job, 2);
		snprintf(job, sizeof(job), "other%u", i);
		join_team(other, i, job, 2);
	}
	assert_int_equal(open_endpoint(HIGH, 7), COLLNET_OK);
	cn_client_mark(c, NULL);
	cn_client_mark(other, NULL);
	d->closing_ends = 1;
	for (uint32_t n = 1; n <= 2 * TEAMS; n++) {
		assert_true(cn_client_reap(d));
		left[0] = teams_of(c);
		left[1] = teams_of(other);
		assert_int_equal(left[0] + left[1], 2 * TEAMS - n);
		assert_uint_in_range(left[0] + 1 - left[1], 0, 2);
	}
	/* Neither is closed before all is let go of. */
	assert_int_equal(d->nclients, 2);
	assert_int_equal(endpoints(), 1);
	for (uint32_t n = 0; n < 3; n++) {
		assert_true(cn_client_reap(d));
	}
	assert_int_equal(d->nclients, 0);
	assert_int_equal(endpoints(), 0);
	cn_client_reap(d);
	assert_false(cn_client_reap(d));
	assert_int_equal(user->closing, 0);
	d->closing_ends = 0;
	close(end);
}

/* A job that starts again at once finds its names, numbers and places free. */
static void close__before_others_come(void **state)
{
	const struct cn_msg_open open = { .head = { .type = CN_MSG_OPEN }, .number = 7 };
	struct cn_msg_join join = { .head = { .type = CN_MSG_JOIN, .tag = 1 },
				    .ranks = 2,
				    .timeout_ms = 1000,
				    .job = "job" };
	struct cn_client *other;
	struct cn_msg_reply reply;
	int end, old = fd;

	(void)state;
	other = daemon_fixture_another(d, 1000, &end);
	join_team(c, 0, "first", 2);
	join_team(c, 1, "job", 2);
	assert_int_equal(open_endpoint(HIGH, 7), COLLNET_OK);
	cn_client_mark(c, NULL);
	d->closing_ends = 1;
	assert_true(cn_client_reap(d));
	assert_int_equal(user->closing, 1);
	d->closing_ends = 0;
	assert_int_equal(send(end, &join, sizeof(join), 0), sizeof(join));
	assert_int_equal(send(end, &open, sizeof(open), 0), sizeof(open));
	cn_client_readable(other);
	cn_client_readable(other);
	assert_int_equal(teams_of(other), 0);
	assert_int_equal(recv(end, &reply, sizeof(reply), MSG_DONTWAIT), -1);
	assert_true(cn_client_reap(d));
	assert_int_equal(user->closing, 0);
	cn_client_readable(other);
	cn_client_readable(other);
	assert_int_equal(teams_of(other), 1);
	assert_int_equal(recv(end, &reply, sizeof(reply), MSG_DONTWAIT), sizeof(reply));
	assert_int_equal(reply.status, COLLNET_OK);
	assert_false(other->marked);
	c = other;
	fd = end;
	close(old);
}

/* A team of two ranks, whose numbers are the team's, both of the client. */
static void join_two(void)
{
	struct cn_msg_join m = {
		.head = { .type = CN_MSG_JOIN }, .ranks = 2, .timeout_ms = 1000, .job = "two"
	};

	for (uint32_t r = 0; r < 2; r++) {
		m.head.tag = m.team = m.rank = r;
		cn_client_message(c, (const union cn_msg *)(const void *)&m, sizeof(m));
	}
	for (uint32_t r = 0; r < 2; r++) {
		assert_true(recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) > 0);
		assert_int_equal(answer.head.type, CN_MSG_JOINED);
	}
}

/* The status of a barrier of this rank; INT32_MAX: it has not ended. */
static int32_t call_barrier(uint32_t rank, uint32_t tag, uint32_t refused, bool buffered)
{
	const struct cn_msg_coll m = { .head = { .type = CN_MSG_COLL, .tag = tag },
				       .team = rank,
				       .op = CN_OP_BARRIER,
				       .timeout_ms = 1000,
				       .buffered = buffered,
				       .send = { .region = CN_MSG_NO_REGION },
				       .recv = { .region = CN_MSG_NO_REGION },
				       .blocks = { .region = CN_MSG_NO_REGION },
				       .scratch = { .region = CN_MSG_NO_REGION },
				       .refused = refused };

	return ask(&m, sizeof(m), CN_MSG_DONE);
}

/* Rank 0 has called as much as it may, and more. */
static void call_too_much(bool buffered)
{
	join_two();
	for (uint32_t i = 0; i < COLLNET_OUTSTANDING_MAX; i++) {
		assert_int_equal(call_barrier(0, i, 0, false), INT32_MAX);
	}
	assert_int_equal(call_barrier(0, 64, 0, buffered), COLLNET_ELIMIT);
}

/* A call that is behind one that is refused does not take its place, unless its client knew. */
static void operation__behind_one_that_is_refused(void **state)
{
	const struct cn_msg_join split = { .head = { .type = CN_MSG_JOIN, .tag = 65 },
					   .team = 2,
					   .derived = 1,
					   .making = CN_MAKING_DUP,
					   .ranks = 2,
					   .timeout_ms = 1000,
					   .job = "dup" };

	(void)state;
	call_too_much(false);
	assert_int_equal(call_barrier(1, 70, 0, false), COLLNET_OK); /* the first one ends */
	assert_true(recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) > 0);
	assert_int_equal(call_barrier(0, 65, 0, false), COLLNET_ELIMIT);
	assert_non_null(strstr(answer.done.text, "an earlier operation"));
	assert_int_equal(ask(&split, sizeof(split), CN_MSG_DONE), COLLNET_ELIMIT);
	assert_int_equal(call_barrier(0, 65, 1, false), COLLNET_ELIMIT);
	assert_int_equal(cn_member_called(c->teams[0]), 64);
	assert_int_equal(call_barrier(0, 65, 3, false), INT32_MAX);
	assert_int_equal(cn_member_called(c->teams[0]), 65);
	assert_int_equal(cn_member_check(c->teams[0], NULL), COLLNET_OK);
}

/* Its caller cannot call it again. */
static void operation__refused_after_it_has_returned(void **state)
{
	struct cn_err err;

	(void)state;
	call_too_much(true);
	assert_int_equal(cn_member_check(c->teams[0], &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "operation 65 (barrier) of rank 0 was refused"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(endpoint__is_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(endpoint__that_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(endpoint__lost_and_opened_again, setup, teardown),
		cmocka_unit_test_setup_teardown(persistent__keeps_its_number, setup, teardown),
		cmocka_unit_test_setup_teardown(request__refused_by_a_quota, setup, teardown),
		cmocka_unit_test_setup_teardown(request__few_of_a_user_on_sockets, setup, teardown),
		cmocka_unit_test_setup_teardown(join__waits_for_clients_in_close, setup, teardown),
		cmocka_unit_test_setup_teardown(operation__behind_one_that_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(operation__refused_after_it_has_returned, setup,
						teardown),
		cmocka_unit_test_setup_teardown(join__lines_of_a_user, setup, teardown),
		cmocka_unit_test_setup_teardown(close__in_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(close__before_others_come, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
