/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/request.c and operation.c: requests that say when they were called, and may be late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "daemon_fixture.h"

#define NOWHERE                                                                                    \
	{                                                                                          \
		.region = CN_MSG_NO_REGION                                                         \
	}
#define NO_MORE                                                                                    \
	{                                                                                          \
		.region = 9                                                                        \
	} /* a region that the client does not have any more */

static struct daemon_fixture fixture;
static struct cn_daemon *d;
static struct cn_client *c;

static int setup(void **state)
{
	(void)state;
	daemon_fixture_begin(&fixture);
	d = fixture.daemon;
	c = fixture.client;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	daemon_fixture_end(&fixture);
	return 0;
}

static void say(const void *m, size_t len)
{
	cn_client_message(c, m, len);
	assert_false(c->marked);
}

/* The next message to the client is a DONE or JOINED of this request, with this status. */
static void expect(uint32_t tag, int status)
{
	static union cn_msg m;

	assert_true(recv(fixture.fd, &m, sizeof(m), MSG_DONTWAIT) > 0);
	assert_int_equal(m.head.tag, tag);
	assert_int_equal(m.head.type == CN_MSG_JOINED ? COLLNET_OK : m.done.status, status);
}

static void expect_nothing(void)
{
	char byte;

	assert_int_equal(recv(fixture.fd, &byte, 1, MSG_DONTWAIT), -1);
}

/* A team of one rank. */
static void join(uint32_t team, uint64_t called)
{
	const struct cn_msg_join m = { .head = { .type = CN_MSG_JOIN, .tag = 1 },
				       .team = team,
				       .ranks = 1,
				       .timeout_ms = 500,
				       .job = "one",
				       .called = called };

	say(&m, sizeof(m));
}

/* Divides team 1. */
static struct cn_msg_join split(uint32_t tag, uint64_t called)
{
	return (struct cn_msg_join){ .head = { .type = CN_MSG_JOIN, .tag = tag },
				     .team = 2,
				     .derived = 1,
				     .parent = 1,
				     .making = CN_MAKING_SPLIT,
				     .ranks = 1,
				     .timeout_ms = 500,
				     .job = "half",
				     .called = called };
}

static struct cn_msg_coll barrier(uint32_t tag, uint64_t called)
{
	return (struct cn_msg_coll){ .head = { .type = CN_MSG_COLL, .tag = tag },
				     .team = 1,
				     .op = CN_OP_BARRIER,
				     .timeout_ms = 500,
				     .called = called,
				     .send = NOWHERE,
				     .recv = NOWHERE,
				     .blocks = NOWHERE,
				     .scratch = NOWHERE };
}

static const struct cn_msg_open open_endpoint = { .head = { .type = CN_MSG_OPEN }, .number = 7 };

static void open_one(void)
{
	static union cn_msg m;

	say(&open_endpoint, sizeof(open_endpoint));
	assert_true(recv(fixture.fd, &m, sizeof(m), MSG_DONTWAIT) > 0);
	assert_int_equal(m.head.type, CN_MSG_REPLY);
}

/* The timeout counts from the call: of these three, one has ended. */
static void late__timeouts_count_from_the_call(void **state)
{
	struct cn_msg_recv m = { .head = { .type = CN_MSG_RECV },
				 .timeout_ms = 500,
				 .data = NOWHERE };
	const cn_time called[] = { 0, d->now - 400 * CN_MS, d->now + 400 * CN_MS };

	(void)state;
	open_one();
	for (uint32_t i = 0; i < 3; i++) {
		m.head.tag = i;
		m.called = called[i];
		say(&m, sizeof(m));
	}
	expect_nothing();
	cn_engine_expire(d->runtime.engine, d->now + 100 * CN_MS);
	expect(1, COLLNET_ETIMEOUT);
	cn_engine_expire(d->runtime.engine, d->now + 499 * CN_MS);
	expect_nothing();
	cn_engine_expire(d->runtime.engine, d->now + 500 * CN_MS);
	expect(0, COLLNET_ETIMEOUT);
	expect(2, COLLNET_ETIMEOUT);
}

/* The client ended them before, and has let go of their memory. */
static void late__messages_touch_no_memory(void **state)
{
	const struct cn_msg_recv in = { .head = { .type = CN_MSG_RECV, .tag = 1 },
					.timeout_ms = 500,
					.data = NO_MORE,
					.capacity = 8,
					.called = d->now - 500 * CN_MS };
	const struct cn_msg_send out = { .head = { .type = CN_MSG_SEND, .tag = 2 },
					 .to = 1,
					 .node = "self",
					 .timeout_ms = 500,
					 .data = NO_MORE,
					 .bytes = 8,
					 .called = d->now - 500 * CN_MS };

	(void)state;
	open_one();
	say(&in, sizeof(in));
	expect(1, COLLNET_ETIMEOUT);
	say(&out, sizeof(out));
	expect(2, COLLNET_ETIMEOUT);
}

/* Nor does an operation, which fails its team. */
static void late__operations_fail_their_team(void **state)
{
	struct cn_msg_coll m = barrier(2, d->now - 500 * CN_MS);

	(void)state;
	join(1, 0);
	expect(1, COLLNET_OK);
	m.op = CN_OP_ALLTOALLV;
	m.blocks.region = 9;
	say(&m, sizeof(m));
	expect(2, COLLNET_ETIMEOUT);
	assert_int_equal(cn_member_check(c->teams[1], NULL), COLLNET_ETIMEOUT);
}

/* To prepare an operation fails nothing else; to start it does. */
static void late__persistent_operations(void **state)
{
	struct cn_msg_coll m = barrier(2, d->now - 500 * CN_MS);
	struct cn_msg_start start = { .head = { .type = CN_MSG_START, .tag = 2 },
				      .timeout_ms = 500,
				      .called = d->now - 500 * CN_MS };
	const struct cn_msg_release release = { .head = { .type = CN_MSG_RELEASE, .tag = 2 } };

	(void)state;
	join(1, 0);
	expect(1, COLLNET_OK);
	m.persistent = 1;
	say(&m, sizeof(m));
	expect(2, COLLNET_ETIMEOUT);
	assert_false(c->ops[2].kept);
	assert_int_equal(cn_member_check(c->teams[1], NULL), COLLNET_OK);
	m.called = d->now - 499 * CN_MS;
	say(&m, sizeof(m));
	expect(2, COLLNET_OK);
	say(&start, sizeof(start));
	expect(2, COLLNET_ETIMEOUT);
	assert_int_equal(cn_member_check(c->teams[1], NULL), COLLNET_ETIMEOUT);
	say(&release, sizeof(release));
	expect_nothing();
}

/* A rank that joins late is not there; to divide a team is an operation of it. */
static void late__joins(void **state)
{
	const struct cn_msg_join m = split(3, d->now - 500 * CN_MS);

	(void)state;
	join(1, d->now - 500 * CN_MS);
	expect(1, COLLNET_ETIMEOUT);
	assert_null(c->teams[1]);
	join(1, 0);
	expect(1, COLLNET_OK);
	say(&m, sizeof(m));
	expect(3, COLLNET_ETIMEOUT);
	assert_null(c->teams[2]);
	assert_int_equal(cn_member_check(c->teams[1], NULL), COLLNET_ETIMEOUT);
}

/* They fail it also behind a call that was refused, and where there are too many requests: their
 * callers have ended them, and do not repeat them. */
static void late__behind_one_that_is_refused(void **state)
{
	const cn_time called = d->now - 500 * CN_MS;
	const struct cn_msg_start start = { .head = { .type = CN_MSG_START, .tag = 2 },
					    .timeout_ms = 500,
					    .called = called };
	const struct cn_msg_join half = split(2, called);
	struct cn_msg_coll m;

	for (int kind = 0; kind < 4; kind++) {
		join(1, 0);
		expect(1, COLLNET_OK);
		if (kind == 1 || kind == 3) {
			m = barrier(2, 0);
			m.persistent = 1;
			say(&m, sizeof(m));
			expect(2, COLLNET_OK);
		}
		c->refused[1] = 1;
		m = barrier(2, called);
		if (kind == 0) {
			say(&m, sizeof(m));
		} else if (kind == 1) {
			say(&start, sizeof(start));
		} else if (kind == 2) {
			say(&half, sizeof(half));
		} else {
			d->config.limits[CN_QUOTA_REQUESTS] = 1; /* the persistent one */
			m.head.tag = 3;
			say(&m, sizeof(m));
		}
		expect(kind < 3 ? 2 : 3, kind < 3 ? COLLNET_ETIMEOUT : COLLNET_ELIMIT);
		assert_int_equal(cn_member_check(c->teams[1], NULL), COLLNET_ETIMEOUT);
		assert_int_equal(c->refused[1], 1);
		teardown(state);
		setup(state);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(late__timeouts_count_from_the_call),
		CASE(late__messages_touch_no_memory),
		CASE(late__operations_fail_their_team),
		CASE(late__persistent_operations),
		CASE(late__joins),
		CASE(late__behind_one_that_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
