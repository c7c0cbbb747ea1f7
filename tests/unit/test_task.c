/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/task.c, op_plan.c: what is left to tasks, what goes on meanwhile, and what they leave.
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
#include "coll/op.h"
#include "crowd.h"

#define HERE  140u
#define THERE 2u

static void with_tasks(struct cn_engine_config *c)
{
	c->task_min = CN_TASK_MIN;
}

static const struct cn_op *op_of(const struct crowd *c)
{
	const struct cn_member *m = c->rank[0].member;

	return m->team->ops[(m->posted - 1) % CN_OPS];
}

/* Runs the tasks of node 0 that are there. Returns how many. */
static uint32_t run_tasks(struct engine_fixture *w)
{
	struct cn_task *x;
	uint32_t n = 0;

	while ((x = cn_engine_next_task(w->engines[0])) != NULL) {
		cn_task_run(x);
		cn_engine_task_done(w->engines[0], x);
		n++;
	}
	return n;
}

static int call(struct crowd *c, uint32_t rank, bool vector)
{
	const struct cn_coll_args a = crowd_alltoall(c, rank, vector);
	struct cn_err err;

	return crowd_call(c, rank, &a, &err);
}

/* The schedule is that of the planner, action by action. */
static void assert_planned(const struct crowd *c, bool vector)
{
	const struct cn_op *op = op_of(c);
	struct cn_blocks blocks[HERE];
	struct cn_sched s = { 0 };
	struct cn_plan p = op->plan;

	for (uint32_t r = 0; r < HERE; r++) {
		blocks[r] = (struct cn_blocks){ .send = c->rank[r].blocks,
						.recv = c->rank[r].blocks };
	}
	p.blocks = vector ? blocks : NULL;
	assert_int_equal(cn_sched_plan(&op->team->layout, &p, op->team->me, &s, NULL), COLLNET_OK);
	assert_int_equal(s.n, op->sched.n);
	assert_int_equal(s.order, op->sched.order);
	assert_memory_equal(s.actions, op->sched.actions, s.n * sizeof(*s.actions));
	cn_sched_reset(&s);
}

/* A call waits for one task; another job's operation begins and ends before that was run. */
static void call__waits_for_a_task(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1),
		     *other = crowd_join(w, "other", 2, 2, 2);
	struct cn_task *x;

	(void)state;
	assert_null(cn_engine_next_task(w->engines[0]));
	assert_int_equal(call(c, 0, false), COLLNET_INPROGRESS); /* selected, */
	assert_int_equal(run_tasks(w), 1);
	assert_int_equal(call(c, 0, false), COLLNET_INPROGRESS); /* and planned */
	assert_int_equal(call(c, 1, false), COLLNET_INPROGRESS);
	x = cn_engine_next_task(w->engines[0]);
	assert_non_null(x);
	assert_null(cn_engine_next_task(w->engines[0]));
	assert_int_equal(call(c, 1, false), COLLNET_INPROGRESS);
	assert_int_equal(c->rank[0].member->posted, 0);
	assert_int_equal(w->engines[0]->plans, 0);
	crowd_call_all(other, 0, false);
	engine_run(w, SECOND);
	crowd_check(other);

	cn_task_run(x);
	cn_engine_task_done(w->engines[0], x);
	assert_null(cn_engine_next_task(w->engines[0]));
	crowd_call_all(c, 0, false);
	assert_planned(c, false);
	engine_run(w, SECOND);
	crowd_check(c);
	crowd_call_all(c, 0, false); /* the plan is kept */
	engine_run(w, SECOND);
	crowd_check(c);
	assert_int_equal(w->engines[0]->plans, 2); /* one of the other job */
	crowd_free(other);
	crowd_free(c);
	engine_fixture_free(w);
}

/* Of a vector operation the last call waits. */
static void call__of_a_vector(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (uint32_t r = 0; r < HERE - 1; r++) {
			assert_int_equal(call(c, r, true), COLLNET_OK);
		}
		assert_int_equal(run_tasks(w), 0);
		assert_int_equal(call(c, HERE - 1, true), COLLNET_INPROGRESS);
		assert_int_equal(call(c, HERE - 1, true), COLLNET_INPROGRESS);
		assert_int_equal(op_of(c)->state, OP_POSTED);
		assert_int_equal(run_tasks(w), 1 + i); /* the first schedule is freed */
		assert_int_equal(call(c, HERE - 1, true), COLLNET_OK);
		assert_planned(c, true);
		crowd_call_all(c, HERE, true);
		engine_run(w, SECOND);
		crowd_check(c);
	}
	crowd_free(c);
	engine_fixture_free(w);
}

/* An error is found by all calls that have waited, and not afterwards. */
static void call__fails_by_a_task(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1),
		     *other = crowd_join(w, "other", HERE, 1, 2);
	struct cn_engine *e = w->engines[0];

	(void)state;
	e->config.max_schedules = 1 << 20;
	assert_int_equal(call(c, 0, false), COLLNET_INPROGRESS);
	run_tasks(w);
	assert_int_equal(call(c, 0, false), COLLNET_INPROGRESS);
	run_tasks(w);
	assert_int_equal(call(c, 0, false), COLLNET_ELIMIT);
	assert_int_equal(call(c, 1, false), COLLNET_ELIMIT);
	assert_null(cn_engine_next_task(e));
	assert_int_equal(call(c, 0, false), COLLNET_ELIMIT);
	cn_engine_discard(e, malloc(1 << 20), 1 << 20);
	assert_int_equal(run_tasks(w), 1); /* frees that */
	assert_int_equal(call(c, 0, false), COLLNET_ELIMIT);
	/* another schedule is planned: the error is forgotten */
	assert_int_equal(call(other, 0, false), COLLNET_INPROGRESS);
	assert_int_equal(run_tasks(w), 1);
	e->config.max_schedules = 0;
	assert_int_equal(call(c, 0, false), COLLNET_INPROGRESS);
	run_tasks(w);
	crowd_call_all(c, 0, false);
	engine_run(w, SECOND);
	crowd_check(c);

	e->config.max_schedules = 1 << 20; /* a vector operation's fails the team */
	for (uint32_t r = 0; r < HERE - 1; r++) {
		assert_int_equal(call(c, r, true), COLLNET_OK);
	}
	assert_int_equal(call(c, HERE - 1, true), COLLNET_INPROGRESS);
	run_tasks(w);
	assert_int_equal(call(c, HERE - 1, true), COLLNET_OK);
	for (uint32_t r = 0; r < HERE; r++) {
		assert_int_equal(c->rank[r].done.calls, 1);
		assert_int_equal(c->rank[r].done.status, COLLNET_ELIMIT);
	}
	engine_run(w, SECOND);
	crowd_free(other);
	crowd_free(c);
	engine_fixture_free(w);
}

/* There is memory for the schedule, but not for what runs it: it is not even planned. */
static void call__too_long_to_be_run(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);
	struct cn_engine *e = w->engines[0];

	(void)state;
	e->config.max_schedules = HERE * (HERE + 2 * THERE) * (sizeof(struct cn_action) + 10);
	while (call(c, 0, false) == COLLNET_INPROGRESS) {
		run_tasks(w);
	}
	assert_int_equal(call(c, 0, false), COLLNET_ELIMIT);
	assert_int_equal(e->plans, 0);
	crowd_free(c);
	engine_fixture_free(w);
}

/* A team ends while its task waits, and is run: what the task reads stays until it is done. */
static void task__outlives_its_team(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct cn_task *x;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct crowd *c = crowd_join(w, i % 2 == 0 ? "even" : "odd", HERE, THERE, 1);
		const bool vector = i >= 2, waits = i % 2 == 0;
		struct cn_block *blocks;

		for (uint32_t r = 0; vector && r < HERE - 1; r++) {
			assert_int_equal(call(c, r, true), COLLNET_OK);
		}
		assert_int_equal(call(c, HERE - 1, vector), COLLNET_INPROGRESS);
		x = waits ? NULL : cn_engine_next_task(w->engines[0]);
		for (uint32_t r = 0; r < HERE; r++) {
			cn_team_leave(c->rank[r].member, w->now, true);
			c->rank[r].member = NULL;
		}
		assert_int_equal(crowd_done(c), vector ? HERE - 1 : 0);
		blocks = c->rank[0].blocks;
		c->rank[0].blocks = NULL;
		cn_engine_discard(w->engines[0], blocks, c->ranks * sizeof(*blocks));
		engine_run(w, SECOND);
		if (!waits) {
			const uint32_t *read = x->storage;

			/* the next team is likely to be at the same address */
			crowd_free(crowd_join(w, "next", HERE, THERE, 1));
			assert_ptr_equal(x->storage, read);
			cn_task_run(x);
			cn_engine_task_done(w->engines[0], x);
		}
		assert_int_equal(run_tasks(w), waits || !vector ? 0 : 1); /* blocks that it read */
		crowd_free(c);
	}
	engine_fixture_free(w);
}

/* A schedule that nobody waits for any more is not planned to its end. */
static void task__of_a_team_that_failed(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);
	struct cn_coll_args a = crowd_alltoall(c, 0, false);
	struct cn_task *x;
	struct cn_err err;

	(void)state;
	a.deadline = w->now + CN_MS;
	assert_int_equal(crowd_call(c, 0, &a, &err), COLLNET_INPROGRESS);
	run_tasks(w);
	assert_int_equal(crowd_call(c, 0, &a, &err), COLLNET_INPROGRESS);
	x = cn_engine_next_task(w->engines[0]);
	w->now += 2 * CN_MS;
	assert_int_equal(crowd_call(c, 0, &a, &err), COLLNET_ETIMEOUT);
	cn_task_run(x);
	assert_int_equal(x->rc, COLLNET_ERANK);
	assert_null(x->sched.actions);
	cn_engine_task_done(w->engines[0], x);
	assert_null(cn_engine_next_task(w->engines[0]));
	crowd_free(c);
	engine_fixture_free(w);
}

/* An operation fails while it is planned: the next one is planned for itself. */
static void task__of_an_operation_that_failed(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);
	struct cn_task *x;

	(void)state;
	for (uint32_t r = 0; r < HERE - 1; r++) {
		struct cn_coll_args a = crowd_alltoall(c, r, true);

		a.deadline = w->now + CN_MS;
		assert_int_equal(crowd_call(c, r, &a, NULL), COLLNET_OK);
	}
	assert_int_equal(call(c, HERE - 1, true), COLLNET_INPROGRESS);
	x = cn_engine_next_task(w->engines[0]);
	w->now += 2 * CN_MS;
	engine_run(w, CN_MS);
	assert_int_equal(crowd_done(c), HERE - 1);
	assert_int_equal(c->rank[0].done.status, COLLNET_ETIMEOUT);
	cn_task_run(x);
	cn_engine_task_done(w->engines[0], x);
	assert_int_equal(call(c, HERE - 1, true), COLLNET_ETIMEOUT);
	assert_int_equal(w->engines[0]->plans, 0);
	crowd_free(c);
	engine_fixture_free(w);
}

/* The tasks of one user do not keep another one's waiting. */
static void task__in_turns(void **state)
{
	static const uint64_t order[] = { 1, 2, 1, 2, 1 };
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c[5];
	char job[8];

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		snprintf(job, sizeof(job), "j%u", i);
		c[i] = crowd_join(w, job, HERE, 1, i < 3 ? 1 : 2);
		assert_int_equal(call(c[i], 0, false), COLLNET_INPROGRESS);
	}
	for (uint32_t i = 0; i < 5; i++) {
		struct cn_task *x = cn_engine_next_task(w->engines[0]);

		assert_int_equal(x->payer, order[i]);
		cn_task_run(x);
		cn_engine_task_done(w->engines[0], x);
	}
	for (uint32_t i = 0; i < 5; i++) {
		crowd_free(c[i]);
	}
	engine_fixture_free(w);
}

/* Much memory is given back by a task. */
static void task__frees(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);

	(void)state;
	while (call(c, 0, false) == COLLNET_INPROGRESS) {
		run_tasks(w);
	}
	crowd_free(c);
	assert_int_equal(w->engines[0]->scheduled, 0);
	assert_non_null(w->engines[0]->tasks.discarded);
	assert_int_equal(run_tasks(w), 1);
	assert_null(w->engines[0]->tasks.discarded);
	engine_fixture_free(w);
}

/* Persistent operations, and a split: the call changes nothing until it is made again. */
static void call__of_other_kinds(void **state)
{
	const struct cn_split_call split = { "half", CN_MAKING_SPLIT, 0, 0 };
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);
	const struct cn_coll_args a = crowd_alltoall(c, 0, false);
	struct cn_member *out = NULL;
	struct cn_prepared *p[2];
	struct cn_err err;

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t n = 0;

		while (cn_coll_prepare(c->rank[0].member, &a, &p[i], &err) == COLLNET_INPROGRESS) {
			assert_int_equal(run_tasks(w), 1);
			n++;
		}
		assert_int_equal(n, i == 0 ? 2 : 1);
	}
	cn_prepared_release(p[1]);
	assert_int_equal(cn_prepared_start(p[0], w->now, CN_NEVER,
					   engine_begin_wait(w, &c->rank[0].done), &err),
			 COLLNET_OK);
	crowd_call_all(c, 1, false);
	memset(c->rank[0].recv, 0, (size_t)c->ranks * CROWD_BYTES);
	engine_run(w, SECOND);
	crowd_check(c);
	cn_prepared_release(p[0]);
	run_tasks(w);

	while (cn_team_split(c->rank[0].member, w->now, &split, w->now + SECOND,
			     engine_begin_wait(w, &c->rank[0].done), &out,
			     &err) == COLLNET_INPROGRESS) {
		assert_null(out);
		assert_int_equal(w->engines[0]->nteams, 1);
		assert_int_equal(run_tasks(w), 1);
	}
	assert_non_null(out);
	assert_int_equal(w->engines[0]->nteams, 2);
	cn_team_leave(out, w->now, false);
	engine_run(w, SECOND);
	crowd_free(c);
	engine_fixture_free(w);
}

/* The first start of a persistent vector operation, whose last call is made again because another
 * user's task is done: its own is not. */
static void call__made_again_early(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, 0, 1),
		     *other = crowd_join(w, "other", HERE, 1, 2);
	struct cn_prepared *p[HERE];
	struct cn_err err;
	struct cn_task *x;

	(void)state;
	assert_int_equal(call(other, 0, false), COLLNET_INPROGRESS);
	x = cn_engine_next_task(w->engines[0]);
	for (uint32_t r = 0; r < HERE; r++) {
		const struct cn_coll_args a = crowd_alltoall(c, r, true);

		assert_int_equal(cn_coll_prepare(c->rank[r].member, &a, &p[r], &err), COLLNET_OK);
		memset(c->rank[r].recv, 0, (size_t)c->ranks * CROWD_BYTES);
		assert_int_equal(cn_prepared_start(p[r], w->now, CN_NEVER,
						   engine_begin_wait(w, &c->rank[r].done), &err),
				 r < HERE - 1 ? COLLNET_OK : COLLNET_INPROGRESS);
	}
	cn_task_run(x);
	cn_engine_task_done(w->engines[0], x);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cn_prepared_start(p[HERE - 1], w->now, CN_NEVER,
						   &c->rank[HERE - 1].done.done, &err),
				 i == 0 ? COLLNET_INPROGRESS : COLLNET_OK);
		run_tasks(w);
	}
	engine_run(w, SECOND);
	crowd_check(c);
	for (uint32_t r = 0; r < HERE; r++) {
		cn_prepared_release(p[r]);
	}
	crowd_free(other);
	crowd_free(c);
	engine_fixture_free(w);
}

/* What a user lets go of while a task is run is not kept, uncounted, until it is done. */
static void memory__is_freed_meanwhile(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1),
		     *other = crowd_join(w, "other", 120, 2, 2);
	const struct cn_coll_args a = crowd_alltoall(other, 0, false);
	struct cn_prepared *p;
	struct cn_task *x;
	struct cn_err err;

	(void)state;
	assert_int_equal(call(c, 0, false), COLLNET_INPROGRESS);
	x = cn_engine_next_task(w->engines[0]);
	assert_int_equal(cn_coll_prepare(other->rank[0].member, &a, &p, &err), COLLNET_OK);
	assert_uint_in_range(w->engines[0]->scheduled, 1 << 20, 4 << 20);
	cn_prepared_release(p);
	assert_null(w->engines[0]->tasks.discarded);
	cn_task_run(x);
	cn_engine_task_done(w->engines[0], x);
	crowd_free(other);
	crowd_free(c);
	engine_fixture_free(w);
}

static void all_are_tasks(struct cn_engine_config *c)
{
	c->task_min = 1;
}

static int prepare_short(struct crowd *c, uint32_t rank, struct cn_prepared **out)
{
	const struct cn_coll_args a = crowd_alltoall(c, rank, false);
	struct cn_err err;
	int rc;

	while ((rc = cn_coll_prepare(c->rank[rank].member, &a, out, &err)) == COLLNET_INPROGRESS) {
		run_tasks(c->w);
	}
	cn_engine_task_over(c->w->engines[0]);
	return rc;
}

/* "wait for operations first": the caller did. */
static void call__again_after_an_error(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, all_are_tasks);
	struct crowd *c = crowd_join(w, "short", 4, 2, 1);
	struct cn_prepared *p[2];

	(void)state;
	assert_int_equal(prepare_short(c, 0, &p[0]), COLLNET_OK);
	w->engines[0]->config.max_schedules = w->engines[0]->scheduled + 100;
	assert_int_equal(prepare_short(c, 1, &p[1]), COLLNET_ELIMIT);
	cn_prepared_release(p[0]);
	assert_int_equal(prepare_short(c, 1, &p[1]), COLLNET_OK);
	cn_prepared_release(p[1]);
	crowd_free(c);
	engine_fixture_free(w);
}

/* The deadline of a call counts while it waits for a task, and the team fails with it. */
static void call__passes_its_deadline(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
		struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);
		struct cn_coll_args a = crowd_alltoall(c, 0, i > 0);
		struct cn_err err;

		a.deadline = w->now + CN_MS;
		for (uint32_t r = 1; r < HERE && i > 0; r++) {
			assert_int_equal(call(c, r, true), COLLNET_OK);
		}
		assert_int_equal(crowd_call(c, 0, &a, &err), COLLNET_INPROGRESS);
		assert_false(cn_engine_tasks_dropped(w->engines[0]));
		w->now += 2 * CN_MS;
		assert_int_equal(crowd_call(c, 0, &a, &err), COLLNET_ETIMEOUT);
		assert_non_null(strstr(err.text, "operation 1 (alltoall"));
		assert_non_null(strstr(err.text, "on node n0: not planned in time"));
		assert_true(cn_engine_tasks_dropped(w->engines[0]));
		assert_false(cn_engine_tasks_dropped(w->engines[0]));
		assert_null(cn_engine_next_task(w->engines[0]));
		assert_int_equal(crowd_done(c), i > 0 ? HERE - 1 : 0);
		assert_int_equal(call(c, 1, i > 0), COLLNET_ETIMEOUT);
		engine_run(w, SECOND);
		crowd_free(c);
		engine_fixture_free(w);
	}
}

/* The deadline of others passes: here of a vector operation's earlier calls, or on the other node.
 */
static void deadline__while_a_call_waits(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct engine_fixture *w = engine_fixture(2, NULL, with_tasks);
		const bool vector = i > 0, here = i > 1;
		struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);
		const struct engine_waiter *late = &c->rank[here ? 1 : HERE].done;
		struct cn_err err;

		for (uint32_t r = 1; r < c->ranks; r++) {
			struct cn_coll_args a = crowd_alltoall(c, r, vector);

			if ((r >= HERE) != here) {
				a.deadline = w->now + 200 * CN_MS;
			}
			if (vector || r >= HERE) {
				assert_int_equal(crowd_call(c, r, &a, &err), COLLNET_OK);
			}
		}
		for (uint32_t r = 0; r < (vector ? 1 : HERE); r++) {
			assert_int_equal(call(c, r, vector), COLLNET_INPROGRESS);
		}
		engine_run(w, SECOND);
		assert_int_equal(late->calls, 1);
		assert_int_equal(late->status, COLLNET_ETIMEOUT);
		if (strstr(late->text, here ? "n0: not planned in time"
					    : "n1, waiting for data of rank") == NULL) {
			fail_msg("%s", late->text);
		}
		assert_int_equal(call(c, 0, vector), COLLNET_ETIMEOUT);
		crowd_free(c);
		engine_fixture_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call__waits_for_a_task),
		cmocka_unit_test(call__of_a_vector),
		cmocka_unit_test(call__fails_by_a_task),
		cmocka_unit_test(call__too_long_to_be_run),
		cmocka_unit_test(task__outlives_its_team),
		cmocka_unit_test(task__of_a_team_that_failed),
		cmocka_unit_test(task__of_an_operation_that_failed),
		cmocka_unit_test(task__in_turns),
		cmocka_unit_test(task__frees),
		cmocka_unit_test(call__of_other_kinds),
		cmocka_unit_test(call__again_after_an_error),
		cmocka_unit_test(memory__is_freed_meanwhile),
		cmocka_unit_test(call__made_again_early),
		cmocka_unit_test(call__passes_its_deadline),
		cmocka_unit_test(deadline__while_a_call_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
