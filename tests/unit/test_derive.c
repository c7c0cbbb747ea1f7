/* SPDX-License-Identifier: BSD-2-Clause */
/* cn_team_derive(): teams made of some ranks of a team; ranks that are late or die meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"
#include "log_capture.h"

static uint64_t data_sent(struct engine_fixture *w, uint32_t node)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_engine_stats(w->engines[node], &s, false);
	return s.data_sent;
}

/* Frames of the node's own transport that are not acknowledged. */
static uint32_t unacked(struct engine_fixture *w, uint32_t node)
{
	struct cn_node *n = cn_engine_node(w->engines[node]);
	uint32_t frames = 0;

	for (uint32_t i = 0; i < cn_node_peers(n); i++) {
		frames += cn_peer_in_flight(cn_node_peer(n, i));
	}
	return frames;
}

/* The members of the fixture's team, which makes room for those of a team that is made of it. */
static void take_parents(struct engine_fixture *w, struct cn_member **parents)
{
	for (uint32_t r = 0; r < w->ranks; r++) {
		parents[r] = w->rank[r].member;
		w->rank[r].member = NULL;
	}
}

/* Rank r of the fixture becomes this one of team "child". */
static void derive_child(struct engine_fixture *w, struct cn_member *parent, uint32_t r,
			 uint32_t rank, uint32_t ranks, uint64_t members, cn_time deadline)
{
	struct cn_err err = { 0 };

	if (cn_team_derive(parent, w->now, "child", rank, ranks, &members, deadline,
			   engine_begin_wait(w, &w->rank[r].joined), &w->rank[r].member,
			   &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

/* The new team ends, and its parent, whose ranks that have left are NULL. */
static void end(struct engine_fixture *w, struct cn_member **parents, uint32_t n)
{
	engine_leave_all(w);
	for (uint32_t r = 0; r < n; r++) {
		if (parents[r] != NULL) {
			cn_team_leave(parents[r], w->now, false);
		}
	}
	engine_fixture_free(w);
}

/* A rank of the parent leaves, or dies. */
static void leave_parent(struct engine_fixture *w, struct cn_member **parent, bool dead)
{
	cn_team_leave(*parent, w->now, dead);
	*parent = NULL;
}

/* A team of six of eight ranks: one message per pair of its three nodes, and none to the fourth,
 * unless a rank is late. They are acknowledged before the team's data goes. */
static void derive(bool late)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(3000);
	const uint64_t members = 0x3f;
	struct cn_member *parents[8], *none = NULL;
	uint64_t before[4];
	struct cn_err err = { 0 };

	engine_join_all(w, 2, false, "job");
	take_parents(w, parents);
	for (uint32_t r = 0; r < 8; r++) {
		assert_true(cn_member_run(parents[r]) == cn_member_run(parents[0]));
	}
	for (uint32_t i = 0; i < 4; i++) {
		before[i] = data_sent(w, i);
	}
	assert_int_equal(cn_team_derive(parents[0], w->now, "child", 0, 5, &members,
					w->now + SECOND, NULL, &none, &err),
			 COLLNET_EINVAL);
	assert_int_equal(cn_team_derive(parents[7], w->now, "child", 0, 6, &members,
					w->now + SECOND, NULL, &none, &err),
			 COLLNET_EINVAL);
	w->ranks = 6;
	for (uint32_t r = 6; r-- > 0;) {
		if (late && r == 2) {
			engine_run(w, 3 * SECOND);
		}
		derive_child(w, parents[r], r, r, 6, members, w->now + 10 * SECOND);
	}
	engine_wait_all(w, -1, late ? 3 * SECOND : 10 * CN_MS);
	engine_run(w, CN_MS);
	for (uint32_t r = 0; r < 6; r++) {
		assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		assert_int_equal(cn_member_nodes(w->rank[r].member), 3);
	}
	for (uint32_t i = 0; i < 4 && !late; i++) {
		assert_int_equal(data_sent(w, i) - before[i], i < 3 ? 2 : 0);
		assert_int_equal(unacked(w, i), 0);
	}
	engine_collective(w, &a, SECOND);
	end(w, parents, 8);
}

static void derive__messages(void **state)
{
	(void)state;
	derive(false);
	derive(true);
}

/* A rank dies while a team is made of its team: before it has called, so that the others fail long
 * before their deadline, or after, so that the new team forms all the same. */
static void derive_of_failed(bool called)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_member *parents[8];

	engine_join_all(w, 2, false, "job");
	take_parents(w, parents);
	for (uint32_t r = 0; r < 8; r++) {
		if (called || r != 5) {
			derive_child(w, parents[r], r, r, 8, 0xff, CN_NEVER);
		}
	}
	leave_parent(w, &parents[5], true);
	engine_wait_all(w, -1, 3 * SECOND);
	for (uint32_t r = 0; r < 8; r++) {
		if (called) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		} else if (r != 5) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_ERANK);
			assert_non_null(strstr(w->rank[r].joined.text, "rank 5 on node"));
		}
	}
	end(w, parents, 8);
}

/* A rank died before: a team that is made without it forms, one that needs it fails. */
static void derive_after_death(bool needed)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_member *parents[8];

	engine_join_all(w, 2, false, "job");
	take_parents(w, parents);
	leave_parent(w, &parents[5], true);
	engine_run(w, SECOND);
	for (uint32_t r = 0; r < 8; r++) {
		if (r != 5 && needed) {
			derive_child(w, parents[r], r, r, 8, 0xff, CN_NEVER);
		} else if (r != 5) {
			derive_child(w, parents[r], r, r < 5 ? r : r - 1, 7, 0xdf, CN_NEVER);
		}
	}
	engine_wait_all(w, -1, 3 * SECOND);
	for (uint32_t r = 0; r < 8; r++) {
		if (r != 5 && needed) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_ERANK);
			assert_non_null(strstr(w->rank[r].joined.text, "rank 5 on node n2 died"));
		} else if (r != 5) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		}
	}
	end(w, parents, 8);
}

/* A rank dies that was the last of the parent on its node, where another rank of the new team
 * waits for it. */
static void derive__last_of_the_parent_dies(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_member *parents[4];
	struct cn_team *t;

	(void)state;
	engine_join_all(w, 2, false, "job");
	take_parents(w, parents);
	for (uint32_t r = 1; r < 4; r++) {
		derive_child(w, parents[r], r, r, 4, 0xf, CN_NEVER);
	}
	leave_parent(w, &parents[1], false);
	leave_parent(w, &parents[0], true);
	engine_run(w, 10 * CN_MS);
	t = w->rank[3].member->team;
	t->wireup
		.wake_at = CN_NEVER; /* its end is a deadline, also if nothing else is to be done */
	assert_uint_in_range(cn_team_deadline(t), w->now + 1900 * CN_MS, w->now + 2 * SECOND);
	engine_wait_all(w, -1, 3 * SECOND);
	for (uint32_t r = 1; r < 4; r++) {
		assert_int_equal(w->rank[r].joined.status, COLLNET_ERANK);
		assert_non_null(strstr(w->rank[r].joined.text, "rank 0 on node n0 died"));
	}
	end(w, parents, 4);
}

/* Rank 2 dies when so many ranks have called, itself first, and its node has not the new team yet.
 * Those that have the team are told at once, and others after the grace period. */
static void dies_while_it_is_made(uint32_t called)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(100);
	struct cn_member *parents[3];
	struct cn_err err;

	engine_join_all(w, 1, false, "job");
	take_parents(w, parents);
	for (uint32_t r = 3; r-- > 0;) {
		if (r + called == 2) {
			engine_run(w, CN_MS);
			engine_leave(w, 2, true);
			leave_parent(w, &parents[2], true);
			engine_run(w, CN_MS);
		}
		derive_child(w, parents[r], r, r, 3, 0x7, CN_NEVER);
	}
	if (called == 3) { /* what the nodes say of the team is under way */
		engine_leave(w, 2, true);
		leave_parent(w, &parents[2], true);
	}
	engine_wait_all(w, -1, called == 3 ? CN_MS : 3 * SECOND);
	for (uint32_t r = 0; r < 2 && called == 3; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	engine_run(w, CN_MS);
	for (uint32_t r = 0; r < 2; r++) {
		const struct engine_rank *x = &w->rank[r];

		assert_non_null(strstr(called == 3 ? x->op[0].text : x->joined.text,
				       "rank 2 on node n2 died"));
	}
	end(w, parents, 3);
}

static void derive__rank_dies(void **state)
{
	(void)state;
	for (uint32_t called = 1; called <= 3; called++) {
		dies_while_it_is_made(called);
	}
}

static void derive__parent_has_lost_a_rank(void **state)
{
	(void)state;
	derive_after_death(false);
	derive_after_death(true);
}

/* A node reloads its topology before the others do: teams of running jobs are made all the same. */
static void derive__keeps_the_topology(void **state)
{
	struct engine_fixture *w = engine_fixture(4, "2x2", NULL);
	struct cn_member *parents[4];
	struct cn_coll_args a = engine_alltoall(600);

	(void)state;
	engine_join_all(w, 1, false, "job");
	cn_engine_reconfigure(w->engines[1], NULL, COLLNET_WINDOW_AUTO, 0);
	take_parents(w, parents);
	for (uint32_t r = 0; r < 4; r++) {
		derive_child(w, parents[r], r, r, 4, 0xf, CN_NEVER);
	}
	engine_wait_all(w, -1, SECOND);
	for (uint32_t r = 0; r < 4; r++) {
		assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
	}
	engine_collective(w, &a, SECOND);
	end(w, parents, 4);
}

/* What is predicted for links of which the topology does not know the rate goes by the slowest
 * node's interface, on all nodes, also for teams made of a team. */
static void derive__keeps_the_slowest_link(void **state)
{
	static const uint32_t mbit[4] = { 40000, 0, 10000, 25000 };
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_member *parents[4];

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		w->engines[i]->link_mbit = mbit[i];
	}
	engine_join_all(w, 1, false, "job");
	take_parents(w, parents);
	for (uint32_t r = 0; r < 4; r++) {
		assert_int_equal(parents[r]->team->layout.rate, UINT64_C(10000000000));
	}
	w->ranks = 2; /* on the nodes 0 and 1 */
	for (uint32_t r = 0; r < 2; r++) {
		derive_child(w, parents[r], r, r, 2, 0x3, CN_NEVER);
	}
	engine_wait_all(w, -1, SECOND);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(w->rank[r].member->team->layout.rate, UINT64_C(10000000000));
	}
	end(w, parents, 4);
}

static void derive__parent_fails(void **state)
{
	(void)state;
	derive_of_failed(false);
	derive_of_failed(true);
}

/*
 * A rank gives up when the others' JOINs are on their way: theirs are ready, since it was there
 * before, and are told.
 */
static void derive__given_up_when_others_are_ready(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_member *parents[2];
	struct cn_err err = { 0 };
	cn_time deadline;

	(void)state;
	engine_join_all(w, 1, false, "job");
	take_parents(w, parents);
	deadline = w->now + SECOND;
	derive_child(w, parents[1], 1, 1, 2, 3, deadline);
	while (engine_step(w, deadline - 1)) {
	}
	w->now = deadline - 1;
	derive_child(w, parents[0], 0, 0, 2, 3, w->now + 10 * SECOND);
	w->now = deadline;
	cn_engine_expire(w->engines[1], w->now);
	assert_int_equal(w->rank[0].joined.status, COLLNET_OK);
	assert_int_equal(w->rank[1].joined.status, COLLNET_ETIMEOUT);
	engine_leave(w, 1, false);
	engine_run(w, 100 * CN_MS);
	assert_int_equal(cn_member_check(w->rank[0].member, &err), COLLNET_ERANK);
	assert_non_null(strstr(err.text, "abandoned job child before it was ready"));
	end(w, parents, 2);
}

/* Two ranks call with lists of another order, of which the names are made: each is rank 0. */
static void derive__other_lists(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_member *parents[2];
	const uint64_t members = 3;
	struct cn_err err = { 0 };

	(void)state;
	engine_join_all(w, 1, false, "job");
	take_parents(w, parents);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(cn_team_derive(parents[r], w->now, r == 0 ? "first" : "second", 0,
						2, &members, w->now + SECOND,
						engine_begin_wait(w, &w->rank[r].joined),
						&w->rank[r].member, &err),
				 COLLNET_OK);
	}
	log_capture();
	engine_wait_all(w, -1, 2 * SECOND);
	log_capture_end();
	assert_non_null(strstr(logged, "job first failed: 1 of 2 ranks missing at the deadline"));
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(w->rank[r].joined.status, COLLNET_ETIMEOUT);
		assert_non_null(strstr(w->rank[r].joined.text,
				       "; every rank of a new team must call with the same list"));
	}
	end(w, parents, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(derive__given_up_when_others_are_ready),
		cmocka_unit_test(derive__messages),
		cmocka_unit_test(derive__other_lists),
		cmocka_unit_test(derive__parent_fails),
		cmocka_unit_test(derive__keeps_the_topology),
		cmocka_unit_test(derive__keeps_the_slowest_link),
		cmocka_unit_test(derive__parent_has_lost_a_rank),
		cmocka_unit_test(derive__last_of_the_parent_dies),
		cmocka_unit_test(derive__rank_dies),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
