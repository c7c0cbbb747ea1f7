/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/operation.c and client.c: a client's call that waits for a task, and what is behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "daemon_fixture.h"

static struct daemon_fixture fixture;
static struct cn_daemon *d;
static struct cn_client *c;
static union cn_msg answer; /* the last one */
static int fd;		    /* the client's */
static bool drops;	    /* teams fail in each pass over the calls that wait */

static int setup(void **state)
{
	(void)state;
	drops = false;
	daemon_fixture_begin(&fixture);
	d = fixture.daemon;
	c = fixture.client;
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

static const struct cn_msg_open open_endpoint = { .head = { .type = CN_MSG_OPEN }, .number = 7 };
static const struct cn_msg_head ping = { .type = CN_MSG_PING }, bell = { .type = CN_MSG_DOORBELL };

#define REGION 16384u /* of a client */

void __real_cn_helper_submit(struct cn_helper *h, struct cn_engine *e);
void __wrap_cn_helper_submit(struct cn_helper *h, struct cn_engine *e);

void __wrap_cn_helper_submit(struct cn_helper *h, struct cn_engine *e)
{
	__real_cn_helper_submit(h, e);
	e->tasks.dropped |= drops;
}

/* The type of what is on the client's socket; 0: nothing. */
static uint32_t heard(int at)
{
	return recv(at, &answer, sizeof(answer), MSG_DONTWAIT) > 0 ? answer.head.type : 0;
}

static void expect_done(int at, int status)
{
	assert_int_equal(heard(at), CN_MSG_DONE);
	assert_int_equal(answer.done.status, status);
}

/* How many PONG are on the client's socket, in front of other messages or alone. */
static uint32_t pongs(int at)
{
	uint32_t n = 0, type;

	while ((type = heard(at)) != 0) {
		assert_int_equal(type, CN_MSG_PONG);
		n++;
	}
	return n;
}

/* A call waits for a task, and what the client sends after it; other clients do not. */
static void call__waits_alone(void **state)
{
	const struct cn_msg_open open_other = { .head = { .type = CN_MSG_OPEN }, .number = 8 };
	struct cn_client *other;
	int end;

	(void)state;
	other = daemon_fixture_another(d, 1001, &end);
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	daemon_fixture_alltoall(c, 0, false);
	assert_non_null(c->call.op);
	assert_int_equal(send(fd, &ping, sizeof(ping), 0), sizeof(ping));
	assert_int_equal(send(fd, &open_endpoint, sizeof(open_endpoint), 0), sizeof(open_endpoint));
	assert_int_equal(send(end, &open_other, sizeof(open_other), 0), sizeof(open_other));
	for (int i = 0; i < 3; i++) {
		cn_client_readable(c);
	}
	assert_int_not_equal(pongs(fd), 0); /* and nothing else */
	cn_client_readable(other);
	assert_int_equal(heard(end), CN_MSG_REPLY);
	assert_int_equal(cn_member_local(c->teams[0]), DAEMON_FIXTURE_CROWD);
	daemon_fixture_run_task(d);
	assert_null(c->call.op);
	cn_client_readable(c);
	assert_int_equal(heard(fd), CN_MSG_REPLY);
	for (uint32_t r = 1; r < DAEMON_FIXTURE_CROWD; r++) {
		daemon_fixture_alltoall(c, r, false);
		assert_null(c->call.op);
	}
	while (cn_engine_deadline(d->runtime.engine) == 0) { /* it starts, and copies */
		cn_engine_expire(d->runtime.engine, d->now);
	}
	for (uint32_t r = 0; r < DAEMON_FIXTURE_CROWD; r++) {
		assert_int_equal(heard(fd), CN_MSG_DONE);
	}
	assert_int_equal(fixture.user->used[CN_QUOTA_REQUESTS], 0);
	close(end);
}

/* A client whose call waits learns that the daemon lives, whatever it has sent before it asks. The
 * loop may say once that several messages have come. */
static void call__ping_behind_others(void **state)
{
	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	daemon_fixture_alltoall(c, 0, false);
	cn_client_readable(c);
	assert_int_equal(pongs(fd), 0);
	assert_int_equal(send(fd, &bell, sizeof(bell), 0), sizeof(bell));
	assert_int_equal(send(fd, &ping, sizeof(ping), 0), sizeof(ping));
	cn_client_readable(c);
	assert_int_not_equal(pongs(fd), 0);
	assert_int_equal(send(fd, &open_endpoint, sizeof(open_endpoint), 0), sizeof(open_endpoint));
	cn_client_readable(c);
	assert_int_not_equal(pongs(fd), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send(fd, &ping, sizeof(ping), 0), sizeof(ping));
		cn_client_readable(c);
		assert_int_not_equal(pongs(fd), 0);
	}
	daemon_fixture_run_task(d);
	assert_null(c->call.op);
	cn_client_readable(c);
	assert_int_equal(heard(fd), CN_MSG_REPLY);
	for (int i = 0; i < 4; i++) {
		cn_client_readable(c);
		assert_int_equal(heard(fd), i < 3 ? CN_MSG_PONG : 0);
	}
	assert_false(c->marked);
}

static void call__to_prepare(void **state)
{
	const struct cn_msg_release release = { .head = { .type = CN_MSG_RELEASE, .tag = 3 } };

	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	daemon_fixture_alltoall(c, 3, true);
	daemon_fixture_run_task(d);
	assert_int_equal(heard(fd), CN_MSG_DONE);
	assert_true(c->ops[3].kept && !c->ops[3].busy && c->ops[3].prepared != NULL);
	cn_client_message(c, (const union cn_msg *)(const void *)&release, sizeof(release));
	assert_int_equal(heard(fd), 0);
	assert_false(c->marked);
}

/* The client, or the interface, goes: teardown() sees that nothing remains. */
static void call__of_a_client_that_ends(void **state)
{
	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	daemon_fixture_alltoall(c, 0, false);
	cn_client_mark(c, NULL);
	daemon_fixture_run_task(d);
	cn_client_end(d);
	assert_int_equal(d->nwaiting, 0);
}

static void call__of_a_team_that_is_lost(void **state)
{
	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	daemon_fixture_alltoall(c, 0, true);
	cn_client_detach(c);
	assert_int_equal(d->nwaiting, 0);
	expect_done(fd, COLLNET_EIFACE);
	assert_false(c->ops[0].kept || c->ops[0].busy);
}

/* Clients whose calls wait die: that is not found out after the task only, nor behind what one of
 * them sent before. */
static void call__of_clients_that_die(void **state)
{
	struct cn_client *other;
	int end;

	(void)state;
	other = daemon_fixture_another(d, 1000, &end);
	daemon_fixture_crowd(&fixture, other, end, 1);
	daemon_fixture_alltoall(other, 0, false);
	daemon_fixture_alltoall(c, 1, false);
	assert_int_equal(send(fd, &open_endpoint, sizeof(open_endpoint), 0), sizeof(open_endpoint));
	close(end);
	close(fd);
	fd = -1;
	cn_client_readable(other);
	cn_client_readable(c);
	assert_true(other->marked && c->marked);
}

static void make_region(struct cn_client *of, uint32_t number, uint64_t bytes)
{
	const struct cn_msg_region m = { .head = { .type = CN_MSG_REGION },
					 .region = number,
					 .bytes = bytes };

	cn_client_message(of, (const union cn_msg *)(const void *)&m, sizeof(m));
	if (of->regions[number] != NULL) { /* as if the client had mapped it */
		of->regions[number]->sealed = true;
	}
	cn_client_rings_open(of);
}

/* Memory does not wait for a call, whatever came before that does not either; and the ring says
 * which call the others wait for. */
static void call__region_behind_another(void **state)
{
	const struct cn_msg_region m = { { .type = CN_MSG_REGION }, .region = 1, .bytes = REGION };

	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	make_region(c, CN_MSG_RINGS, (CN_MSG_RINGS_BYTES + REGION - 1) / REGION * REGION);
	assert_int_equal(heard(fd), CN_MSG_REPLY);
	daemon_fixture_alltoall(c, 5, false);
	assert_int_equal(c->requests.shared->blocked_on, 6);
	assert_int_equal(send(fd, &bell, sizeof(bell), 0), sizeof(bell));
	assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
	cn_client_readable(c);
	assert_non_null(c->call.op);
	assert_int_equal(c->requests.shared->consumed_oob, 2);
	assert_non_null(c->regions[1]);
	assert_int_equal(heard(fd), CN_MSG_REPLY);
	daemon_fixture_run_task(d);
	assert_null(c->call.op);
	assert_int_equal(c->requests.shared->blocked_on, 0);
}

/* A region that its user's time slice has no time for is reported again: an event per message. */
static void call__region_in_another_slice(void **state)
{
	const struct cn_msg_region m = { { .type = CN_MSG_REGION }, .region = 1, .bytes = REGION };
	struct epoll_event event;

	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	daemon_fixture_alltoall(c, 5, false);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(cn_event_add_client(d, c), COLLNET_OK);
	cn_event_client_waits(d, c, true);
	assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 0), 1);
	for (int i = 0; i < 5000; i++, d->now += 10 * CN_US) { /* of the loop */
		cn_slice_new_round(d);
		c->user->round = d->slice.round;
		c->user->used_up = CN_TIME_SLICE;
		cn_client_readable(c);
		assert_null(c->regions[1]);
		assert_false(c->marked); /* although the client does not read */
		assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 0), 1);
	}
	cn_slice_new_round(d);
	cn_client_readable(c);
	assert_non_null(c->regions[1]);
	assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 0), 0);
	daemon_fixture_run_task(d);
	close(d->epoll_fd);
	d->epoll_fd = -1;
}

/* The crowd, of which rank 0 is another client's, joins, and calls an all-to-all of no bytes. The
 * last call waits for its plan. */
static void call_vector(struct cn_client *other, int end)
{
	struct cn_msg_coll coll = { .head = { .type = CN_MSG_COLL },
				    .op = CN_OP_ALLTOALLV,
				    .timeout_ms = 1000,
				    .send = { .region = CN_MSG_NO_REGION },
				    .recv = { .region = CN_MSG_NO_REGION },
				    .blocks = { .region = 1 },
				    .scratch = { .region = CN_MSG_NO_REGION } };

	daemon_fixture_crowd(&fixture, other, end, 1);
	make_region(other, 1, REGION);
	make_region(c, 1, REGION);
	for (uint32_t r = 0; r < DAEMON_FIXTURE_CROWD; r++) {
		coll.head.tag = coll.team = r;
		cn_client_message(r == 0 ? other : c, (const union cn_msg *)(const void *)&coll,
				  sizeof(coll));
	}
	while (heard(fd) != 0 || heard(end) != 0) {
	}
	assert_non_null(c->call.op);
}

/* The team fails before the task is run that a call waits for. */
static void call__whose_task_is_dropped(void **state)
{
	struct cn_client *other;
	int end;

	(void)state;
	other = daemon_fixture_another(d, 1000, &end);
	call_vector(other, end);
	cn_client_mark(other, NULL);
	cn_client_reap(d);
	cn_call_submit_task(d);
	assert_null(c->call.op);
	for (uint32_t r = 1; r < DAEMON_FIXTURE_CROWD; r++) {
		assert_int_equal(heard(fd), CN_MSG_DONE);
	}
	close(end);
}

/* Where more are dropped than the loop looks after at a time, it does not sleep. */
static void call__whose_task_is_dropped_late(void **state)
{
	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	daemon_fixture_alltoall(c, 0, false);
	for (int i = 0; i < 3; i++) {
		drops = i == 1;
		cn_call_submit_task(d);
		assert_non_null(c->call.op);
		assert_int_equal(cn_call_deadline(d) <= d->now, drops);
	}
}

/* A rank of its own prepares an all-to-all of blocks of this size. */
static void prepare_alltoall(struct cn_client *of, uint32_t team, uint64_t bytes,
			     uint32_t timeout_ms)
{
	const struct cn_msg_coll m = { .head = { .type = CN_MSG_COLL },
				       .team = team,
				       .op = CN_OP_ALLTOALL,
				       .bytes = bytes,
				       .timeout_ms = timeout_ms,
				       .persistent = 1,
				       .send = { .region = 1 },
				       .recv = { .region = 1,
						 .offset = bytes * DAEMON_FIXTURE_CROWD },
				       .blocks = { .region = CN_MSG_NO_REGION },
				       .scratch = { .region = CN_MSG_NO_REGION } };

	cn_client_message(of, (const union cn_msg *)(const void *)&m, sizeof(m));
}

/* Calls that gave up leave nothing that grows: a program that prepares again and again with a
 * deadline that is too short. */
static void call__gives_up_again_and_again(void **state)
{
	enum { MANY = 4000 };
	const struct cn_task *x;
	struct cn_client *other;
	uint32_t n = 0;
	int end;

	(void)state;
	other = daemon_fixture_another(d, 1000, &end);
	daemon_fixture_crowd(&fixture, other, end, 10);
	daemon_fixture_alltoall(other, 9, true); /* it waits for longer, in the same team */
	make_region(c, 1, 1 << 21);
	for (uint32_t i = 0; i < MANY; i++) {
		prepare_alltoall(c, 10, i + 1, 1);
		cn_call_submit_task(d);
		d->now += CN_MS;
		cn_call_submit_task(d);
		while (heard(fd) != 0) {
		}
	}
	assert_false(c->marked);
	assert_int_equal(d->nwaiting, 1);
	for (x = d->runtime.engine->tasks.first; x != NULL; x = x->next) {
		n++;
	}
	assert_uint_in_range(n, 1000, 1024);
	close(end);
}

/* What a call that gave up asked for is not planned, unless another one of its team waits. */
static void call__that_gives_up_is_not_planned(void **state)
{
	struct cn_client *other;
	int end;

	(void)state;
	other = daemon_fixture_another(d, 1000, &end);
	daemon_fixture_crowd(&fixture, other, end, 1);
	make_region(c, 1, REGION);
	for (uint32_t i = 0; i < 3; i++) {
		if (i == 2) {
			daemon_fixture_alltoall(other, 0, true);
		}
		prepare_alltoall(c, 1, i + 1, 1);
		cn_call_submit_task(d); /* the first one is begun */
		d->now += CN_MS;
		cn_call_submit_task(d);
		assert_null(c->call.op);
		assert_true((d->runtime.engine->tasks.first != NULL) == (i == 2));
	}
	assert_non_null(other->call.op);
	close(end);
}

/* More calls wait than the team keeps selections for, and the limit does not allow their plans:
 * each is selected once, planned once, and refused. */
static void call__many_are_refused(void **state)
{
	enum { MANY = CN_SELECTED + 8 };
	struct cn_msg_join join = { .head = { .type = CN_MSG_JOIN },
				    .ranks = DAEMON_FIXTURE_CROWD,
				    .timeout_ms = 1000,
				    .job = "crowd" };
	struct cn_client *one[MANY];
	int end[MANY];
	uint32_t tasks = 0;

	(void)state;
	d->runtime.engine->config.max_schedules = 256 << 10;
	for (uint32_t r = 0; r < DAEMON_FIXTURE_CROWD; r++) {
		struct cn_client *of = c;

		if (r < MANY) {
			one[r] = of = daemon_fixture_another(d, 1000, &end[r]);
			make_region(of, 1, REGION);
		}
		join.head.tag = join.team = join.rank = r;
		cn_client_message(of, (const union cn_msg *)(const void *)&join, sizeof(join));
	}
	for (uint32_t r = 0; r < MANY; r++) {
		while (heard(end[r]) != 0) {
		}
		prepare_alltoall(one[r], r, r + 1, 1000);
	}
	assert_int_equal(d->nwaiting, MANY);
	while (d->nwaiting > 0 && tasks < 4 * MANY) {
		daemon_fixture_run_task(d);
		tasks++;
	}
	assert_int_equal(d->nwaiting, 0);
	assert_int_equal(d->runtime.engine->selections, MANY);
	assert_int_equal(tasks, 2 * MANY);
	for (uint32_t r = 0; r < MANY; r++) {
		expect_done(end[r], COLLNET_ELIMIT);
		close(end[r]);
	}
}

/* A call ends when its own deadline passes, whatever the thread does. */
static void call__passes_its_deadline(void **state)
{
	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	for (int i = 0; i < 2; i++) {
		assert_true(cn_call_deadline(d) == CN_NEVER);
		daemon_fixture_alltoall(c, 0, i == 0); /* to prepare it fails nothing else */
		assert_true(cn_call_deadline(d) == d->now + 1000 * CN_MS);
		cn_call_submit_task(d);
		assert_non_null(c->call.op);
		d->now += 1000 * CN_MS;
		cn_call_submit_task(d);
		assert_null(c->call.op);
		expect_done(fd, COLLNET_ETIMEOUT);
		assert_int_equal(cn_member_check(c->teams[1], NULL),
				 i == 0 ? COLLNET_OK : COLLNET_ETIMEOUT);
	}
	assert_int_equal(fixture.user->used[CN_QUOTA_REQUESTS], 0);
}

/* and only that one is made again then: many may wait. */
static void call__passes_its_deadline_alone(void **state)
{
	struct cn_client *other;
	int end;

	(void)state;
	other = daemon_fixture_another(d, 1000, &end);
	daemon_fixture_crowd(&fixture, other, end, 2);
	daemon_fixture_alltoall(other, 1, true);
	daemon_fixture_alltoall(c, 2, true);
	cn_call_submit_task(d);
	assert_int_equal(d->nwaiting, 2);
	c->call.args.root = DAEMON_FIXTURE_CROWD; /* it would be refused */
	d->now += 2000 * CN_MS;
	cn_call_submit_task(d);
	assert_null(other->call.op);
	assert_non_null(c->call.op);
	assert_true(cn_call_deadline(d) == d->now + 1000 * CN_MS);
	assert_int_equal(heard(fd), 0);
	assert_int_equal(heard(end), CN_MSG_DONE);
	close(end);
}

static const struct cn_msg_join split = { .head = { .type = CN_MSG_JOIN, .tag = 200 },
					  .team = 200,
					  .derived = 1,
					  .making = CN_MAKING_SPLIT,
					  .ranks = DAEMON_FIXTURE_CROWD,
					  .timeout_ms = 1000,
					  .job = "half" };

/* Nor is the deadline of a split begun again with the call. */
static void call__of_a_split_passes_its_deadline(void **state)
{
	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	cn_client_message(c, (const union cn_msg *)(const void *)&split, sizeof(split));
	assert_non_null(c->call.op);
	d->now += 999 * CN_MS;
	daemon_fixture_run_task(d);
	assert_non_null(c->call.op);
	d->now += CN_MS;
	cn_call_submit_task(d);
	assert_null(c->call.op);
	expect_done(fd, COLLNET_ETIMEOUT);
}

/* A split that waited is refused: its rank has not called, and is named if others wait for it. */
static void call__of_a_split_is_refused(void **state)
{
	(void)state;
	daemon_fixture_crowd(&fixture, NULL, -1, 0);
	d->config.limits[CN_QUOTA_TEAMS] = 2;
	cn_client_message(c, (const union cn_msg *)(const void *)&split, sizeof(split));
	assert_non_null(c->call.op);
	d->config.limits[CN_QUOTA_TEAMS] = 1; /* or others have made a team */
	while (c->call.op != NULL) {
		daemon_fixture_run_task(d);
	}
	expect_done(fd, COLLNET_ELIMIT);
	assert_int_equal(cn_member_called(c->teams[0]), 0);
}

/* The team of a call that waits fails by another one's deadline. */
static void call__of_a_team_that_fails(void **state)
{
	struct cn_client *other;
	int end;

	(void)state;
	other = daemon_fixture_another(d, 1000, &end);
	daemon_fixture_crowd(&fixture, other, end, 2);
	daemon_fixture_alltoall(other, 1, false);
	daemon_fixture_alltoall(c, 2, false);
	assert_int_equal(d->nwaiting, 2);
	cn_call_submit_task(d);
	assert_int_equal(d->nwaiting, 2);
	d->now += 2000 * CN_MS;
	cn_call_submit_task(d);
	assert_int_equal(d->nwaiting, 0);
	assert_int_equal(heard(fd), CN_MSG_DONE);
	assert_int_equal(heard(end), CN_MSG_DONE);
	close(end);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(call__waits_alone),
		CASE(call__ping_behind_others),
		CASE(call__to_prepare),
		CASE(call__of_a_client_that_ends),
		CASE(call__of_a_team_that_is_lost),
		CASE(call__of_clients_that_die),
		CASE(call__region_behind_another),
		CASE(call__region_in_another_slice),
		CASE(call__whose_task_is_dropped),
		CASE(call__whose_task_is_dropped_late),
		CASE(call__many_are_refused),
		CASE(call__gives_up_again_and_again),
		CASE(call__that_gives_up_is_not_planned),
		CASE(call__passes_its_deadline),
		CASE(call__passes_its_deadline_alone),
		CASE(call__of_a_split_passes_its_deadline),
		CASE(call__of_a_split_is_refused),
		CASE(call__of_a_team_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
