/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/team_jobs.c: teams are found by owner and job in few steps, however many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"

#define MANY 1000u

static void many_teams(struct cn_engine_config *c)
{
	c->max_teams = MANY;
}

static void ignore(struct cn_done *done, int status, const char *text)
{
	(void)done;
	(void)status;
	(void)text;
}

/* The i-th team of one owner, or of its own; its members wait for others. */
static uint64_t owner_of(uint32_t i)
{
	return i < MANY / 2 ? OWNER : OWNER + i;
}

static const char *job_of(uint32_t i)
{
	static char job[16];

	snprintf(job, sizeof(job), "job%u", i < MANY / 2 ? i : 0);
	return job;
}

static void of_job__few_steps(void **state)
{
	static struct cn_done done[MANY];
	static struct cn_member *m[MANY];
	struct engine_fixture *w = engine_fixture(1, NULL, many_teams);
	struct cn_engine *e = w->engines[0];

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		assert_null(cn_team_of_job(e, NULL, owner_of(i), job_of(i)));
		done[i].fn = ignore;
		assert_int_equal(cn_team_join(e, w->now, owner_of(i), job_of(i), 0, 2, CN_NEVER,
					      &done[i], &m[i], NULL),
				 COLLNET_OK);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		struct cn_team *t = cn_team_of_job(e, NULL, owner_of(i), job_of(i));

		assert_ptr_equal(t, m[i]->team);
		assert_ptr_equal(cn_team_forming(e, owner_of(i), job_of(i)), t);
		assert_null(cn_team_of_job(e, t, owner_of(i), job_of(i)));
	}
	for (uint32_t i = 0; i < CN_JOB_SLOTS; i++) {
		uint32_t steps = 0;

		for (const struct cn_team *t = e->jobs[i]; t != NULL; t = t->in_job_slot) {
			steps++;
		}
		assert_uint_in_range(steps, 0, 8);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		cn_team_leave(m[i * 7 % MANY], w->now, false);
		assert_null(cn_team_of_job(e, NULL, owner_of(i * 7 % MANY), job_of(i * 7 % MANY)));
	}
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(of_job__few_steps) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
