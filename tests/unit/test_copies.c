/* SPDX-License-Identifier: BSD-2-Clause */
/* cn_op_run_copies(): what all operations copy within a node in one poll, and whose turn it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"

#define TEAMS  40u
#define CHUNKS 4u
#define BLOCK  ((size_t)CHUNKS * CN_COPY_CHUNK)

/* Teams of one rank each, on node 0; the last one has another payer than the others. */
struct local {
	struct engine_fixture *w;
	struct cn_member *member[TEAMS];
	struct engine_waiter waiter[TEAMS];
	uint8_t *send, *recv[TEAMS];
};

static struct local *local_teams(uint32_t nodes)
{
	struct local *m = calloc(1, sizeof(*m));
	struct cn_err err;
	char job[16];

	m->w = engine_fixture(nodes, NULL, NULL);
	m->send = malloc(BLOCK);
	memset(m->send, 1, BLOCK);
	for (uint32_t t = 0; t < TEAMS; t++) {
		m->recv[t] = calloc(1, BLOCK);
		snprintf(job, sizeof(job), "j%u", t);
		cn_engine_set_payer(m->w->engines[0], t == TEAMS - 1 ? 2 : 1);
		assert_int_equal(cn_team_join(m->w->engines[0], m->w->now, OWNER, job, 0, 1,
					      m->w->now + SECOND,
					      engine_begin_wait(m->w, &m->waiter[t]), &m->member[t],
					      &err),
				 COLLNET_OK);
	}
	engine_run(m->w, SECOND);
	return m;
}

static void call(struct local *m, uint32_t t, size_t bytes, cn_time deadline)
{
	struct cn_coll_args a = engine_alltoall(bytes);
	struct cn_err err;

	a.send = m->send;
	a.recv = m->recv[t];
	a.deadline = deadline;
	memset(m->recv[t], 0, BLOCK);
	assert_int_equal(cn_coll_post(m->member[t], m->w->now, &a,
				      engine_begin_wait(m->w, &m->waiter[t]), &err),
			 COLLNET_OK);
}

static size_t copied(const struct local *m, uint32_t t)
{
	size_t n = 0;

	for (size_t i = 0; i < BLOCK; i += 1024) {
		n += m->recv[t][i] != 0 ? 1024 : 0;
	}
	return n;
}

static uint32_t done(const struct local *m)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < TEAMS; t++) {
		n += m->waiter[t].calls;
	}
	return n;
}

/* So many teams take part in the polls of node 0. */
static uint32_t active(const struct local *m)
{
	uint32_t n = 0;

	for (const struct cn_transport *x = m->w->engines[0]->own.next_active; x != NULL;
	     x = x->next_active) {
		n++;
	}
	return n;
}

static void local_end(struct local *m)
{
	for (uint32_t t = 0; t < TEAMS; t++) {
		cn_team_leave(m->member[t], m->w->now, false);
		free(m->recv[t]);
	}
	engine_fixture_free(m->w);
	free(m->send);
	free(m);
}

/* One poll copies one chunk for all; payers take turns, and the operations of each. */
static void copies__in_turns(void **state)
{
	struct local *m = local_teams(1);
	uint32_t polls = 0;

	(void)state;
	for (uint32_t t = 0; t < TEAMS; t++) {
		call(m, t, BLOCK, CN_NEVER);
	}
	while (done(m) < TEAMS) {
		size_t all = 0, most = 0, least = SIZE_MAX;

		cn_poller_poll(m->w->pollers[0], m->w->now);
		polls++;
		for (uint32_t t = 0; t < TEAMS; t++) {
			const size_t n = copied(m, t);

			all += n;
			if (t < TEAMS - 1) {
				most = n > most ? n : most;
				least = n < least ? n : least;
			}
		}
		assert_int_equal(all, (size_t)polls * CN_COPY_CHUNK);
		assert_uint_in_range(most - least, 0, CN_COPY_CHUNK);
		if (polls == 2 * CHUNKS - 2) {
			assert_int_equal(done(m), 0);
		}
		if (polls == 2 * CHUNKS) {
			assert_int_equal(m->waiter[TEAMS - 1].calls, 1);
			assert_int_equal(done(m), 1);
		}
	}
	assert_int_equal(polls, TEAMS * CHUNKS);
	assert_int_equal(m->w->engines[0]->copies.used, 0);
	local_end(m);
}

/* Short copies: many in one poll. */
static void copies__many_short_ones(void **state)
{
	struct local *m = local_teams(1);

	(void)state;
	for (uint32_t t = 0; t < TEAMS; t++) {
		call(m, t, 100, CN_NEVER);
	}
	cn_poller_poll(m->w->pollers[0], m->w->now);
	assert_int_equal(done(m), TEAMS);
	local_end(m);
}

/* An operation that ends by its deadline, or with its team, has no turn any more. */
static void copies__that_end(void **state)
{
	struct local *m = local_teams(1);

	(void)state;
	for (uint32_t t = 0; t < 4; t++) {
		call(m, t, BLOCK, t == 1 ? m->w->now + CN_MS : CN_NEVER);
	}
	cn_poller_poll(m->w->pollers[0], m->w->now);
	m->w->now += 2 * CN_MS;
	cn_poller_poll(m->w->pollers[0], m->w->now);
	assert_int_equal(m->waiter[1].status, COLLNET_ETIMEOUT);
	cn_team_leave(m->member[2], m->w->now, true);
	cn_team_leave(m->member[1], m->w->now, false);
	for (uint32_t i = 0; i < 4 * CHUNKS; i++) {
		cn_poller_poll(m->w->pollers[0], m->w->now);
	}
	assert_int_equal(m->waiter[0].status, COLLNET_OK);
	assert_int_equal(m->waiter[3].calls, 1);
	assert_int_equal(m->w->engines[0]->copies.used, 0);
	assert_uint_in_range(copied(m, 2), 0, CN_COPY_CHUNK);
	m->member[1] = m->member[TEAMS - 1];
	m->member[2] = m->member[TEAMS - 2];
	for (uint32_t t = 0; t < TEAMS; t++) {
		if (t < TEAMS - 2) {
			cn_team_leave(m->member[t], m->w->now, false);
		}
		free(m->recv[t]);
	}
	engine_fixture_free(m->w);
	free(m->send);
	free(m);
}

/* Teams take no part in polls while they wait for their turns, until they are done. */
static void copies__polls_without_teams(void **state)
{
	struct local *m = local_teams(1);

	(void)state;
	for (uint32_t t = 0; t < TEAMS; t++) {
		call(m, t, BLOCK, t % 2 == 0 ? CN_NEVER : m->w->now + SECOND);
	}
	while (done(m) < TEAMS) {
		const uint32_t before = done(m);

		cn_poller_poll(m->w->pollers[0], m->w->now);
		assert_int_equal(active(m), done(m) - before);
	}
	local_end(m);
}

/* Nor does a team of two nodes, two of whose ranks are here, when what is left of its operation is
 * copies: they wait for those of the others. */
static void copies__after_frames(void **state)
{
	struct local *m = local_teams(2);
	struct cn_coll_args a = engine_alltoall(2 * CN_COPY_CHUNK);
	struct engine_waiter waiter[3] = { 0 };
	struct cn_member *member[3];
	uint8_t *send = calloc(3, a.bytes), *recv[3];
	struct cn_err err;

	(void)state;
	memset(send, 1, 3 * a.bytes);
	for (uint32_t r = 0; r < 3; r++) {
		recv[r] = calloc(3, a.bytes);
		cn_engine_set_payer(m->w->engines[r / 2], 1);
		assert_int_equal(cn_team_join(m->w->engines[r / 2], m->w->now, OWNER, "both", r, 3,
					      m->w->now + SECOND,
					      engine_begin_wait(m->w, &waiter[r]), &member[r],
					      &err),
				 COLLNET_OK);
	}
	engine_run(m->w, SECOND);
	for (uint32_t t = 0; t < TEAMS; t++) {
		call(m, t, BLOCK, CN_NEVER);
	}
	for (uint32_t r = 0; r < 3; r++) {
		a.send = send;
		a.recv = recv[r];
		a.deadline = m->w->now + SECOND;
		assert_int_equal(cn_coll_post(member[r], m->w->now, &a,
					      engine_begin_wait(m->w, &waiter[r]), &err),
				 COLLNET_OK);
	}
	while (waiter[2].calls == 0) {
		assert_true(engine_step(m->w, m->w->now + SECOND));
	}
	while (active(m) > 0 && waiter[0].calls == 0) { /* the last acknowledgements */
		m->w->now += CN_MS;
		engine_step(m->w, m->w->now + SECOND);
	}
	assert_int_equal(waiter[0].calls, 0);
	while (waiter[0].calls == 0) {
		const uint32_t before = done(m);

		cn_poller_poll(m->w->pollers[0], m->w->now);
		assert_int_equal(active(m), done(m) - before + waiter[0].calls);
	}
	for (uint32_t r = 0; r < 3; r++) {
		assert_int_equal(waiter[r].status, COLLNET_OK);
		assert_memory_equal(recv[r], send, 3 * a.bytes);
		cn_team_leave(member[r], m->w->now, false);
		free(recv[r]);
	}
	free(send);
	local_end(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies__in_turns),
		cmocka_unit_test(copies__many_short_ones),
		cmocka_unit_test(copies__that_end),
		cmocka_unit_test(copies__polls_without_teams),
		cmocka_unit_test(copies__after_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
