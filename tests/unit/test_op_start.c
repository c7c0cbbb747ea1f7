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
		assert_uint_in_range(before, 1, 4 * A_POLL);
		while (op_of(c)->state == OP_STARTING) {
			cn_poller_poll(w->pollers[0], w->now);
			assert_uint_in_range(looked_at(op_of(c)) - before, 0, A_POLL);
			before = looked_at(op_of(c));
			polls++;
		}
		assert_uint_in_range(polls, ACTIONS * 2 / A_POLL - 4, 1000);
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

/* ---- operations of one team --------------------------------------------------------------- */

static struct engine_waiter second[CROWD_RANKS], third[CROWD_RANKS];
static uint8_t small[CROWD_RANKS];

static struct cn_coll_args small_bcast(uint32_t rank, uint32_t root)
{
	static const uint8_t byte = 42;

	small[rank] = 0;
	return (struct cn_coll_args){ .op = CN_OP_BCAST,
				      .bytes = 1,
				      .root = root,
				      .send = &byte,
				      .recv = &small[rank],
				      .window = COLLNET_WINDOW_AUTO,
				      .deadline = CN_NEVER };
}

/* The ranks call the long all-to-all, a short broadcast, and start a persistent one. */
static void call_three(struct crowd *c, uint32_t from, uint32_t to, struct cn_prepared **prepared)
{
	struct cn_err err;

	for (uint32_t r = from; r < to; r++) {
		const struct cn_coll_args a = crowd_alltoall(c, r, false), b = small_bcast(r, 0);

		assert_int_equal(crowd_call(c, r, &a, &err), COLLNET_OK);
		assert_int_equal(cn_coll_post(c->rank[r].member, c->w->now, &b,
					      engine_begin_wait(c->w, &second[r]), &err),
				 COLLNET_OK);
		assert_int_equal(cn_prepared_start(prepared[r], c->w->now, CN_NEVER,
						   engine_begin_wait(c->w, &third[r]), &err),
				 COLLNET_OK);
	}
}

static enum op_state state_of(const struct crowd *c, uint32_t seq)
{
	const struct cn_op *op = c->rank[0].member->team->ops[seq % CN_OPS];

	return op != NULL ? op->state : OP_FREE;
}

/* Short ones that were called after a long one start after it, and no poll looks at them before:
 * where they ended first, frames of the long one seemed to be late. */
static void start__in_the_order_of_calls(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct crowd *c = crowd_join(w, "long", HERE, THERE, 1);
	struct cn_prepared *prepared[HERE + THERE];
	struct cn_err err;

	(void)state;
	for (uint32_t r = 0; r < c->ranks; r++) {
		const struct cn_coll_args a = small_bcast(r, 0);

		assert_int_equal(cn_coll_prepare(c->rank[r].member, &a, &prepared[r], &err),
				 COLLNET_OK);
	}
	call_three(c, 0, HERE, prepared);
	for (int i = 0; i < 4; i++) {
		cn_poller_poll(w->pollers[0], w->now);
	}
	call_three(c, HERE, HERE + THERE, prepared); /* its frames come before node 0 has started */
	while (state_of(c, 0) == OP_STARTING) {
		assert_int_equal(state_of(c, 1), OP_STARTING);
		assert_int_equal(state_of(c, 2), OP_STARTING);
		assert_null(c->rank[0].member->team->ops[1]->copies.next);
		assert_null(c->rank[0].member->team->ops[2]->copies.next);
		engine_step(w, CN_NEVER);
	}
	engine_run(w, SECOND);
	crowd_check(c);
	for (uint32_t r = 0; r < c->ranks; r++) {
		assert_int_equal(second[r].calls, 1);
		assert_int_equal(second[r].status, COLLNET_OK);
		assert_int_equal(third[r].calls, 1);
		assert_int_equal(third[r].status, COLLNET_OK);
		assert_int_equal(small[r], 42);
		cn_prepared_release(prepared[r]);
	}
	assert_int_equal(w->engines[0]->copies.used, 0);
	crowd_free(c);
	engine_fixture_free(w);
}

#define MIDDLE	 40u
#define FORWARDS (512u << 10)

/* A rank on node 0, MIDDLE on node 1, and one on node 2. */
struct forward {
	struct engine_fixture *w;
	struct cn_member *member[MIDDLE + 2];
	struct engine_waiter joined[MIDDLE + 2], first[MIDDLE + 2];
	uint8_t *block[MIDDLE + 2];
};

static void join_forward(struct forward *f)
{
	struct cn_err err;

	for (uint32_t r = 0; r < MIDDLE + 2; r++) {
		f->block[r] = calloc(1, FORWARDS);
		assert_non_null(f->block[r]);
		assert_int_equal(cn_team_join(f->w->engines[r == 0	  ? 0
							    : r <= MIDDLE ? 1
									  : 2],
					      f->w->now, OWNER, "forward", r, MIDDLE + 2,
					      f->w->now + SECOND,
					      engine_begin_wait(f->w, &f->joined[r]), &f->member[r],
					      &err),
				 COLLNET_OK);
	}
	memset(f->block[0], 7, FORWARDS);
	engine_run(f->w, SECOND);
}

static void call_forward(struct forward *f, uint32_t from, uint32_t to, bool is_long)
{
	struct cn_err err;

	for (uint32_t r = from; r < to; r++) {
		struct cn_coll_args a = small_bcast(r, 1);

		if (is_long) {
			a.algorithm = "chain";
			a.bytes = FORWARDS;
			a.root = 0;
			a.send = f->block[0];
			a.recv = f->block[r];
		}
		a.deadline = f->w->now + SECOND;
		assert_int_equal(cn_coll_post(f->member[r], f->w->now, &a,
					      engine_begin_wait(f->w, is_long ? &f->first[r]
									      : &second[r]),
					      &err),
				 COLLNET_OK);
	}
}

/*
 * The node in the middle is about to forward a long broadcast, and the root of a short one that is
 * called next. The last node calls the short one when it has the long one: a frame of the short one
 * must not come before those of the long one.
 */
static void start__before_a_frame_of_the_next(void **state)
{
	struct forward f = { .w = engine_fixture(3, "3", NULL) };

	(void)state;
	join_forward(&f);
	call_forward(&f, MIDDLE + 1, MIDDLE + 2, true);
	engine_run(f.w, CN_MS);
	call_forward(&f, 1, MIDDLE + 1, true);
	assert_int_equal(f.member[1]->team->ops[0]->state, OP_STARTING);
	call_forward(&f, 1, MIDDLE + 1, false);
	engine_run(f.w, 10 * CN_MS);
	call_forward(&f, 0, 1, true);
	call_forward(&f, 0, 1, false);
	engine_run(f.w, SECOND / 2);
	assert_int_equal(f.first[MIDDLE + 1].calls, 1);
	assert_int_equal(f.first[MIDDLE + 1].status, COLLNET_OK);
	call_forward(&f, MIDDLE + 1, MIDDLE + 2, false);
	engine_run(f.w, SECOND / 4);
	for (uint32_t r = 0; r < MIDDLE + 2; r++) {
		assert_int_equal(f.first[r].status, COLLNET_OK);
		assert_int_equal(second[r].calls, 1);
		assert_int_equal(second[r].status, COLLNET_OK);
		assert_int_equal(f.block[r][FORWARDS - 1], 7);
		assert_int_equal(small[r], 42);
		cn_team_leave(f.member[r], f.w->now, false);
	}
	for (uint32_t r = 0; r < MIDDLE + 2; r++) {
		free(f.block[r]);
	}
	engine_fixture_free(f.w);
}

/* ---- ends --------------------------------------------------------------------------------- */

/* It fails before it has started: by its deadline, and with a rank; and so does one that waits for
 * it. */
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
			a = small_bcast(r, 0);
			assert_int_equal(cn_coll_post(c->rank[r].member, w->now, &a,
						      engine_begin_wait(w, &second[r]), NULL),
					 COLLNET_OK);
		}
		cn_poller_poll(w->pollers[0], w->now);
		assert_int_equal(state_of(c, 0), OP_STARTING);
		assert_int_equal(state_of(c, 1), OP_STARTING);
		if (i == 0) {
			w->now += 2 * CN_MS;
			cn_poller_poll(w->pollers[0], w->now);
		} else {
			cn_team_leave(c->rank[1].member, w->now, true);
			c->rank[1].member = NULL;
		}
		assert_int_equal(crowd_done(c), HERE);
		assert_int_equal(c->rank[0].done.status, i == 0 ? COLLNET_ETIMEOUT : COLLNET_ERANK);
		assert_int_equal(second[0].calls, 1);
		assert_int_equal(second[0].status, c->rank[0].done.status);
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
		cmocka_unit_test(start__in_the_order_of_calls),
		cmocka_unit_test(start__before_a_frame_of_the_next),
		cmocka_unit_test(start__of_what_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
