/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/op_start.c: what a poll does of the start of a long operation, and what goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/op.h"
#include "crowd.h"

#define HERE	200u
#define THERE	60u
#define ACTIONS (HERE * HERE + 2 * HERE * THERE) /* of node 0 */
#define A_POLL	5000u				 /* actions of them, at most */

static const struct cn_op *op_of(const struct crowd *c)
{
	const struct cn_member *m = c->rank[0].member;

	return m->team->ops[(m->posted - 1) % CN_OPS];
}

/* Actions that were looked at, in both passes, and whose frames were counted. */
static uint64_t looked_at(const struct cn_op *op)
{
	return op->sched.n - op->starting.streamed + op->starting.listed;
}

/* A poll looks at some thousand actions; the bytes are right, and so are those of a vector. */
static void start__in_steps(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);

	(void)state;
	for (int i = 0; i < 4; i++) {
		uint64_t before;
		uint32_t polls = 0;

		crowd_call_all(c, 0, i >= 2);
		assert_int_equal(op_of(c)->sched.n, ACTIONS + (i >= 2 ? 2 : 0)); /* digests */
		assert_int_equal(op_of(c)->state, OP_STARTING);
		before = looked_at(op_of(c));
		assert_in_range(before, 1, 4 * A_POLL);
		while (op_of(c)->state == OP_STARTING) {
			cn_poller_poll(w->pollers[0], w->now);
			assert_in_range(looked_at(op_of(c)) - before, 0, A_POLL);
			before = looked_at(op_of(c));
			polls++;
		}
		assert_in_range(polls, ACTIONS * 2 / A_POLL - 4, 1000);
		engine_run(w, SECOND);
		crowd_check(c);
	}
	assert_int_equal(w->engines[0]->copies.used, 0);
	crowd_free(c);
	engine_fixture_free(w);
}

/* A short one is started in the call. */
static void start__at_once(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct crowd *c = crowd_join(w, "short", 20, 20, 1);

	(void)state;
	crowd_call_all(c, 0, false);
	assert_int_equal(op_of(c)->state, OP_RUNNING);
	engine_run(w, SECOND);
	crowd_check(c);
	crowd_free(c);
	engine_fixture_free(w);
}

/* Another job's operation is over before the long one has started. */
static void start__beside_others(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1),
		     *other = crowd_join(w, "other", 1, 1, 2);

	(void)state;
	crowd_call_all(c, HERE, false); /* the other node is early */
	engine_run(w, 10 * CN_MS);
	for (uint32_t r = 0; r < HERE; r++) {
		const struct cn_coll_args a = crowd_alltoall(c, r, false);

		assert_int_equal(crowd_call(c, r, &a, NULL), COLLNET_OK);
	}
	crowd_call_all(other, 0, false);
	while (crowd_done(other) < 2) {
		engine_step(w, CN_NEVER);
		assert_int_equal(op_of(c)->state, OP_STARTING);
	}
	assert_int_equal(crowd_done(c), 0);
	engine_run(w, SECOND);
	crowd_check(other);
	crowd_check(c);
	crowd_free(other);
	crowd_free(c);
	engine_fixture_free(w);
}

/* It fails before it has started: by its deadline, and with a rank. */
static void start__of_what_fails(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct crowd *c = crowd_join(w, i == 0 ? "late" : "dead", HERE, THERE, 1);

		for (uint32_t r = 0; r < HERE; r++) {
			struct cn_coll_args a = crowd_alltoall(c, r, false);

			a.deadline = i == 0 ? w->now + CN_MS : CN_NEVER;
			assert_int_equal(crowd_call(c, r, &a, NULL), COLLNET_OK);
		}
		cn_poller_poll(w->pollers[0], w->now);
		assert_int_equal(op_of(c)->state, OP_STARTING);
		if (i == 0) {
			w->now += 2 * CN_MS;
			cn_poller_poll(w->pollers[0], w->now);
		} else {
			cn_team_leave(c->rank[1].member, w->now, true);
			c->rank[1].member = NULL;
		}
		assert_int_equal(crowd_done(c), HERE);
		assert_int_equal(c->rank[0].done.status, i == 0 ? COLLNET_ETIMEOUT : COLLNET_ERANK);
		assert_int_equal(w->engines[0]->copies.used, 0);
		engine_run(w, SECOND);
		crowd_free(c);
	}
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start__in_steps),
		cmocka_unit_test(start__at_once),
		cmocka_unit_test(start__beside_others),
		cmocka_unit_test(start__of_what_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
