/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll: teams that wait for others take no part in polls (cn_transport_deactivate_idle()),
 * whatever they wait for, and go on at once when it comes.
 */
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

#define TEAMS 100u
#define HOSTS 3u
#define LAST  (HOSTS - 1)

struct many {
	struct engine_fixture *w;
	struct cn_member *member[TEAMS][HOSTS];
	struct engine_waiter waiter[TEAMS][HOSTS];
};

/* So many transports of teams take part in the polls of node i. */
static uint32_t active(const struct many *m, uint32_t i)
{
	uint32_t n = 0;

	for (const struct cn_transport *x = m->w->engines[i]->own.next_active; x != NULL;
	     x = x->next_active) {
		n++;
	}
	return n;
}

static void await(struct many *m, uint32_t from, uint32_t to, cn_time within)
{
	const cn_time limit = m->w->now + within;
	bool all;

	do {
		all = true;
		for (uint32_t t = 0; t < TEAMS; t++) {
			for (uint32_t i = from; i < to; i++) {
				all = all && m->waiter[t][i].calls > 0;
			}
		}
	} while (!all && engine_step(m->w, limit));
	assert_true(all);
}

static void allow(struct cn_engine_config *c)
{
	c->max_teams = TEAMS;
}

/* Teams of all nodes, each with one rank there. */
static struct many *many_teams(void)
{
	struct many *m = calloc(1, sizeof(*m));
	struct cn_err err;
	char job[16];

	m->w = engine_fixture(HOSTS, NULL, allow);
	for (uint32_t t = 0; t < TEAMS; t++) {
		snprintf(job, sizeof(job), "j%u", t);
		for (uint32_t i = 0; i < HOSTS; i++) {
			assert_int_equal(cn_team_join(m->w->engines[i], m->w->now, OWNER, job, i,
						      HOSTS, m->w->now + 10 * SECOND,
						      engine_begin_wait(m->w, &m->waiter[t][i]),
						      &m->member[t][i], &err),
					 COLLNET_OK);
		}
	}
	await(m, 0, HOSTS, SECOND);
	return m;
}

static void barriers(struct many *m, uint32_t i, cn_time deadline)
{
	const struct cn_coll_args a = { .op = CN_OP_BARRIER,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = deadline };
	struct cn_err err;

	for (uint32_t t = 0; t < TEAMS; t++) {
		assert_int_equal(cn_coll_post(m->member[t][i], m->w->now, &a,
					      engine_begin_wait(m->w, &m->waiter[t][i]), &err),
				 COLLNET_OK);
	}
}

static void many_end(struct many *m)
{
	for (uint32_t t = 0; t < TEAMS; t++) {
		for (uint32_t i = 0; i < HOSTS; i++) {
			if (m->member[t][i] != NULL) {
				cn_team_leave(m->member[t][i], m->w->now, false);
			}
		}
	}
	engine_fixture_free(m->w);
	free(m);
}

static void wait__for_a_late_rank(void **state)
{
	struct many *m = many_teams();

	(void)state;
	barriers(m, 0, CN_NEVER);
	barriers(m, 1, CN_NEVER);
	engine_run(m->w, 500 * CN_MS); /* with the probes of all teams' sessions */
	for (uint32_t i = 0; i < HOSTS; i++) {
		assert_uint_in_range(active(m, i), 0, 2);
	}
	barriers(m, LAST, CN_NEVER);
	await(m, 0, HOSTS, 10 * CN_MS);
	for (uint32_t t = 0; t < TEAMS; t++) {
		assert_int_equal(m->waiter[t][0].status, COLLNET_OK);
	}
	many_end(m);
}

static uint64_t acks_sent(const struct many *m)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_engine_stats(m->w->engines[0], &s, false);
	return s.acks_sent;
}

/* All teams wait for the same nodes: together they probe these as often as 16 teams do, five times
 * in dead_after each. */
static void wait__for_long(void **state)
{
	struct many *m = many_teams();
	uint64_t before;

	(void)state;
	barriers(m, 0, CN_NEVER);
	barriers(m, 1, CN_NEVER);
	engine_run(m->w, 10 * SECOND);
	before = acks_sent(m);
	engine_run(m->w, 30 * SECOND);
	print_message("%llu frames in 30 s\n", (unsigned long long)(acks_sent(m) - before));
	assert_uint_in_range(acks_sent(m) - before, 100, 2 * 2 * 16 * 100);
	barriers(m, LAST, CN_NEVER);
	await(m, 0, HOSTS, 10 * CN_MS);
	many_end(m);
}

static void wait__until_the_deadline(void **state)
{
	struct many *m = many_teams();
	const cn_time deadline = m->w->now + 700 * CN_MS;

	(void)state;
	barriers(m, 0, deadline);
	engine_run(m->w, 300 * CN_MS);
	assert_uint_in_range(active(m, 0), 0, 2);
	await(m, 0, 1, SECOND);
	for (uint32_t t = 0; t < TEAMS; t++) {
		assert_int_equal(m->waiter[t][0].status, COLLNET_ETIMEOUT);
		assert_uint_in_range(m->waiter[t][0].at, deadline, deadline + CN_MS);
	}
	many_end(m);
}

static void wait__for_a_node_that_dies(void **state)
{
	struct many *m = many_teams();

	(void)state;
	barriers(m, 0, CN_NEVER);
	barriers(m, 1, CN_NEVER);
	engine_run(m->w, 300 * CN_MS);
	engine_stop_node(m->w, LAST);
	await(m, 0, LAST, 2 * SECOND);
	for (uint32_t t = 0; t < TEAMS; t++) {
		assert_int_equal(m->waiter[t][0].status, COLLNET_EPEER);
		m->member[t][LAST] = NULL;
	}
	many_end(m);
}

/* Which are closed, and end when the last node has left them, too. */
static void wait__for_others_to_leave(void **state)
{
	struct many *m = many_teams();

	(void)state;
	for (uint32_t t = 0; t < TEAMS; t++) {
		for (uint32_t i = 0; i < LAST; i++) {
			cn_team_leave(m->member[t][i], m->w->now, false);
			m->member[t][i] = NULL;
		}
	}
	engine_run(m->w, SECOND);
	assert_non_null(m->w->engines[0]->own.next);
	assert_uint_in_range(active(m, 0), 0, TEAMS / 4);
	for (uint32_t t = 0; t < TEAMS; t++) {
		cn_team_leave(m->member[t][LAST], m->w->now, false);
		m->member[t][LAST] = NULL;
	}
	engine_run(m->w, 200 * CN_MS);
	for (uint32_t i = 0; i < HOSTS; i++) {
		assert_null(m->w->engines[i]->own.next);
	}
	many_end(m);
}

/* Of two ranks of a node, one calls much later. */
static void wait__for_the_other_rank_of_the_node(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(100);
	struct cn_err err;

	(void)state;
	engine_join_all(w, 2, true, "job");
	for (uint32_t r = 0; r < 4; r++) {
		if (r == 2) {
			engine_run(w, 400 * CN_MS);
			assert_null(w->engines[0]->own.next_active);
		}
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	engine_wait_all(w, 0, CN_MS);
	for (uint32_t r = 0; r < 4; r++) {
		engine_check(w, r, 0, &a);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait__for_a_late_rank),
		cmocka_unit_test(wait__for_long),
		cmocka_unit_test(wait__until_the_deadline),
		cmocka_unit_test(wait__for_a_node_that_dies),
		cmocka_unit_test(wait__for_others_to_leave),
		cmocka_unit_test(wait__for_the_other_rank_of_the_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
