/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/client/rings.c: what a daemon that is not ours may put into the ring of completions ends the
 * context, and changes neither its requests nor its teams. And how often a test yields.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/daemon.h"

#define RANKS 4u
#define TAG   5u

static struct collnet *c;
static struct cn_daemon_side side;
static struct cn_shm_ring requests, completions; /* the daemon's */
static struct collnet_team team, parent;
static char names[2][RANKS][COLLNET_NAME_MAX + 1];
static uint8_t sums[8], terms[8];
static uint32_t yields;

/* The library's calls come here, too. */
int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

/* A context with a parent that is ready, and a request to join a team that is made of it. */
static int setup(void **state)
{
	int p[2];

	(void)state;
	c = calloc(1, sizeof(*c));
	assert_non_null(c);
	c->backend = &cn_backend_daemon;
	c->impl = &side;
	assert_int_equal(cn_threads_init(c, &c->err), COLLNET_OK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	memset(&side, 0, sizeof(side));
	side.fd = p[0];
	side.in_fd = -1;
	*state = (void *)(intptr_t)p[1];
	side.regions[CN_MSG_RINGS].p = calloc(1, CN_MSG_RINGS_BYTES);
	assert_non_null(side.regions[CN_MSG_RINGS].p);
	cn_msg_rings_init(side.regions[CN_MSG_RINGS].p, &side.requests, &side.completions);
	requests = side.requests;
	completions = side.completions;
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		c->requests[i].c = c;
		c->requests[i].number = i;
	}
	memset(names, 0, sizeof(names));
	parent = (struct collnet_team){
		.c = c, .job = "job", .ranks = 2, .nodes = 2, .named = 2, .names = names[0]
	};
	strcpy(names[0][0], "h0");
	strcpy(names[0][1], "h1");
	team = (struct collnet_team){
		.c = c, .job = "made", .rank = 0, .ranks = 2, .names = names[1], .parent = &parent
	};
	c->requests[TAG].state = CN_REQUEST_PENDING;
	c->requests[TAG].team = &team;
	return 0;
}

static int teardown(void **state)
{
	close((int)(intptr_t)*state);
	if (side.fd >= 0) {
		close(side.fd);
	}
	free(side.regions[CN_MSG_RINGS].p);
	cn_threads_fini(c);
	free(c);
	return 0;
}

static struct cn_msg_joined joined_message(void)
{
	return (struct cn_msg_joined){ .head = { .type = CN_MSG_JOINED, .tag = TAG },
				       .run = 99,
				       .rank = 1,
				       .ranks = 2,
				       .nodes = 2,
				       .mapped = 2,
				       .in_parent = { 1, 0 } };
}

static void put(const void *m, size_t len)
{
	assert_int_equal(cn_shm_ring_put(&completions, m, len), CN_SHM_RING_OK);
}

/* It ends the context, and the team is as it was. */
static void refuses(const struct cn_msg_joined *m)
{
	const struct collnet_team before = team;

	put(m, sizeof(*m));
	assert_int_equal(cn_rings_completions(c), -1);
	assert_int_equal(c->gone.code, COLLNET_EPROTO);
	assert_int_equal(team.rank, before.rank);
	assert_int_equal(team.ranks, before.ranks);
	assert_int_equal(team.run, before.run);
	assert_int_equal(team.named, before.named);
}

static void joined__is_taken_once(void **state)
{
	const struct cn_msg_joined m = joined_message();

	(void)state;
	put(&m, sizeof(m));
	assert_int_equal(cn_rings_completions(c), 1);
	assert_int_equal(c->requests[TAG].status, COLLNET_OK);
	assert_int_equal(team.run, 99);
	assert_string_equal(names[1][0], "h1");
	assert_string_equal(names[1][1], "h0");
	/* Another request of a team whose ranks are known cannot join it. */
	c->requests[TAG].state = CN_REQUEST_PENDING;
	team.run = 0;
	refuses(&m);
}

static void joined__without_a_team(void **state)
{
	const struct cn_msg_joined m = joined_message();

	(void)state;
	c->requests[TAG].team = NULL; /* a message, or of a team that is destroyed */
	refuses(&m);
}

static void joined__of_more_ranks(void **state)
{
	struct cn_msg_joined m = joined_message();

	(void)state;
	m.ranks = m.mapped = RANKS;
	refuses(&m);
}

static void joined__ranks_that_the_parent_does_not_have(void **state)
{
	struct cn_msg_joined m = joined_message();

	(void)state;
	m.in_parent[1] = (uint16_t)parent.ranks;
	refuses(&m);
}

static void joined__ranks_of_no_parent(void **state)
{
	struct cn_msg_joined m = joined_message();

	(void)state;
	team.parent = NULL;
	refuses(&m);
}

/* ---- pieces of reductions ------------------------------------------------------------- */

/* The request reduces eight elements of a byte: the sum of both blocks goes to the first one. */
static struct cn_msg_combine begin_reduction(void)
{
	struct collnet_request *r = &c->requests[TAG];

	r->reduction.call.element = 1;
	r->reduction.call.combine = cn_combine_find(COLLNET_UINT8, COLLNET_SUM);
	r->reduction.buffers.recv = (struct cn_memory){ sums, sizeof(sums) };
	r->reduction.buffers.send = (struct cn_memory){ terms, sizeof(terms) };
	memset(sums, 1, sizeof(sums));
	memset(terms, 2, sizeof(terms));
	return (struct cn_msg_combine){ .head = { .type = CN_MSG_COMBINE, .tag = TAG },
					.piece = 7,
					.operands = 1,
					.left = { .buffer = CN_BUF_RECV },
					.right = { .buffer = CN_BUF_SEND },
					.out = { .buffer = CN_BUF_RECV },
					.bytes = sizeof(sums) };
}

static void combine__is_done_and_said(void **state)
{
	struct cn_msg_combine m = begin_reduction();
	struct cn_msg_combined said;
	const void *slot;

	(void)state;
	put(&m, sizeof(m));
	assert_int_equal(cn_rings_completions(c), 1);
	assert_int_equal(sums[0], 3);
	assert_int_equal(sums[7], 3);
	assert_int_equal(cn_shm_ring_front(&requests, &slot), CN_SHM_RING_OK);
	memcpy(&said, slot, sizeof(said));
	assert_int_equal(said.head.type, CN_MSG_COMBINED);
	assert_int_equal(said.head.tag, TAG);
	assert_int_equal(said.piece, 7);
	cn_shm_ring_pop(&requests);
	m.last = 1;
	put(&m, sizeof(m));
	assert_int_equal(cn_rings_completions(c), 1);
	assert_int_equal(sums[0], 5);
	assert_int_equal(cn_shm_ring_front(&requests, &slot), CN_SHM_RING_NONE);
}

/* The buffers of a request that has ended are the caller's, who may have freed them. */
static void combine__of_a_request_that_has_ended(void **state)
{
	static const enum cn_request_state ended[] = { CN_REQUEST_FREE, CN_REQUEST_DONE,
						       CN_REQUEST_INACTIVE, CN_REQUEST_DETACHED };
	const struct cn_msg_combine m = begin_reduction();

	for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++) {
		if (i > 0) {
			teardown(state);
			setup(state);
			begin_reduction();
		}
		c->requests[TAG].state = ended[i];
		put(&m, sizeof(m));
		assert_int_equal(cn_rings_completions(c), -1);
		assert_int_equal(c->gone.code, COLLNET_EPROTO);
		assert_int_equal(sums[0], 1);
	}
}

static void combine__of_no_reduction(void **state)
{
	const struct cn_msg_combine m = begin_reduction();

	(void)state;
	memset(&c->requests[TAG].reduction.call, 0, sizeof(c->requests[TAG].reduction.call));
	put(&m, sizeof(m));
	assert_int_equal(cn_rings_completions(c), -1);
	assert_int_equal(c->gone.code, COLLNET_EPROTO);
	assert_int_equal(c->requests[TAG].status, COLLNET_EPROTO);
}

/* ---- tests ---------------------------------------------------------------------------- */

/* One that finds nothing yields the processor, but not again so soon. */
static void test__yields_from_time_to_time(void **state)
{
	collnet_request_t *const r = &c->requests[TAG];

	(void)state;
	yields = 0;
	c->yielded_at = cn_now() + 3600 * 1000 * CN_MS;
	assert_int_equal(collnet_test(r), COLLNET_INPROGRESS);
	assert_int_equal(yields, 0);
	c->yielded_at = 0;
	assert_int_equal(collnet_test(r), COLLNET_INPROGRESS);
	assert_int_equal(yields, 1);
	assert_int_not_equal(c->yielded_at, 0);
	assert_true(c->yielded_at <= cn_now());
}

/* The next request of the client, which is a call: how many that were refused it knew of. */
static uint32_t take_call(void)
{
	struct cn_msg_coll m;
	const void *slot;

	assert_int_equal(cn_shm_ring_front(&requests, &slot), CN_SHM_RING_OK);
	memcpy(&m, slot, sizeof(m));
	cn_shm_ring_pop(&requests);
	assert_int_equal(m.head.type, CN_MSG_COLL);
	return m.refused;
}

/* Of calls at once, the daemon has no room for the first: the others are not to take its place
 * before the program knows, though the library does. */
static void refused__counts_when_it_is_collected(void **state)
{
	struct cn_msg_done m = { .head = { .type = CN_MSG_DONE }, .status = COLLNET_ELIMIT };
	collnet_request_t *r[3], *again;

	(void)state;
	c->timeout_ms = 1000;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(collnet_ibarrier(&parent, NULL, &r[i]), COLLNET_OK);
		assert_int_equal(take_call(), 0);
		m.head.tag = r[i]->number;
		put(&m, sizeof(m));
		assert_int_equal(cn_rings_completions(c), 1);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(collnet_wait(r[i], 0), COLLNET_ELIMIT);
	}
	assert_int_equal(parent.operations, 0);
	assert_int_equal(collnet_ibarrier(&parent, NULL, &again), COLLNET_OK);
	assert_int_equal(take_call(), 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(joined__is_taken_once),
		TEST(joined__without_a_team),
		TEST(joined__of_more_ranks),
		TEST(joined__ranks_that_the_parent_does_not_have),
		TEST(joined__ranks_of_no_parent),
		TEST(combine__is_done_and_said),
		TEST(combine__of_a_request_that_has_ended),
		TEST(combine__of_no_reduction),
		TEST(test__yields_from_time_to_time),
		TEST(refused__counts_when_it_is_collected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
