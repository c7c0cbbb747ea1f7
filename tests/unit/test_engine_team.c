/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll: teams whose ranks are missing, late, leave or differ in what they join or call, and
 * jobs one after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"

static void engine__rank_is_missing(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);

	(void)state;
	w->ranks = 8;
	for (uint32_t r = 0; r < 8; r++) {
		if (r != 2 && r != 5 && r != 6) {
			engine_join(w, r, r % 4, "job", 2 * SECOND);
		}
	}
	engine_run(w, 1900 * CN_MS);
	assert_int_equal(w->rank[0].joined.calls, 0);
	engine_wait_all(w, -1, 200 * CN_MS);
	for (uint32_t r = 0; r < 8; r++) {
		if (r != 2 && r != 5 && r != 6) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_ETIMEOUT);
			assert_non_null(strstr(w->rank[r].joined.text, "2, 5-6"));
		}
	}
	engine_leave_all(w);
	w->ranks = 4; /* the same name, another size: nothing of the first run is in the way */
	engine_run(w, 100 * CN_MS);
	engine_join_all(w, 1, false, "job");
	engine_fixture_free(w);
}

static void engine__late_rank_is_in_time(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(100);

	(void)state;
	w->ranks = 3;
	engine_join(w, 0, 0, "job", 10 * SECOND);
	engine_join(w, 2, 2, "job", 10 * SECOND);
	engine_run(w, 9 * SECOND);
	engine_join(w, 1, 1, "job", 10 * SECOND);
	engine_wait_all(w, -1, 100 * CN_MS);
	engine_collective(w, &a, SECOND);
	engine_fixture_free(w);
}

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
	engine_leave_all(w);
	for (uint32_t r = 0; r < 8; r++) {
		cn_team_leave(parents[r], w->now, false);
	}
	engine_fixture_free(w);
}

static void engine__derived_team(void **state)
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
	cn_team_leave(parents[5], w->now, true);
	engine_wait_all(w, -1, 3 * SECOND);
	for (uint32_t r = 0; r < 8; r++) {
		if (called) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		} else if (r != 5) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_ERANK);
			assert_non_null(strstr(w->rank[r].joined.text, "rank 5 on node"));
		}
	}
	engine_leave_all(w);
	for (uint32_t r = 0; r < 8; r++) {
		if (r != 5) {
			cn_team_leave(parents[r], w->now, false);
		}
	}
	engine_fixture_free(w);
}

/* A rank died before: a team that is made without it forms, one that needs it fails. */
static void derive_after_death(bool needed)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_member *parents[8];

	engine_join_all(w, 2, false, "job");
	take_parents(w, parents);
	cn_team_leave(parents[5], w->now, true);
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
	engine_leave_all(w);
	for (uint32_t r = 0; r < 8; r++) {
		if (r != 5) {
			cn_team_leave(parents[r], w->now, false);
		}
	}
	engine_fixture_free(w);
}

/* A rank dies that was the last of the parent on its node, where another rank of the new team
 * waits for it. */
static void engine__last_of_the_parent_dies(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_member *parents[4];

	(void)state;
	engine_join_all(w, 2, false, "job");
	take_parents(w, parents);
	for (uint32_t r = 1; r < 4; r++) {
		derive_child(w, parents[r], r, r, 4, 0xf, CN_NEVER);
	}
	cn_team_leave(parents[1], w->now, false);
	cn_team_leave(parents[0], w->now, true);
	engine_wait_all(w, -1, 3 * SECOND);
	for (uint32_t r = 1; r < 4; r++) {
		assert_int_equal(w->rank[r].joined.status, COLLNET_ERANK);
		assert_non_null(strstr(w->rank[r].joined.text, "rank 0 on node n0 died"));
	}
	engine_leave_all(w);
	cn_team_leave(parents[2], w->now, false);
	cn_team_leave(parents[3], w->now, false);
	engine_fixture_free(w);
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
			cn_team_leave(parents[2], w->now, true);
			engine_run(w, CN_MS);
		}
		derive_child(w, parents[r], r, r, 3, 0x7, CN_NEVER);
	}
	if (called == 3) { /* what the nodes say of the team is under way */
		engine_leave(w, 2, true);
		cn_team_leave(parents[2], w->now, true);
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
	engine_leave_all(w);
	cn_team_leave(parents[0], w->now, false);
	cn_team_leave(parents[1], w->now, false);
	engine_fixture_free(w);
}

static void engine__rank_dies_while_a_team_is_made(void **state)
{
	(void)state;
	for (uint32_t called = 1; called <= 3; called++) {
		dies_while_it_is_made(called);
	}
}

static void engine__parent_has_lost_a_rank(void **state)
{
	(void)state;
	derive_after_death(false);
	derive_after_death(true);
}

/* A node reloads its topology before the others do: teams of running jobs are made all the same. */
static void engine__derived_team_keeps_the_topology(void **state)
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
	engine_leave_all(w);
	for (uint32_t r = 0; r < 4; r++) {
		cn_team_leave(parents[r], w->now, false);
	}
	engine_fixture_free(w);
}

/* What is predicted for links of which the topology does not know the rate goes by the slowest
 * node's interface, on all nodes, also for teams made of a team. */
static void engine__slowest_link_is_the_teams(void **state)
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
	engine_leave_all(w);
	for (uint32_t r = 0; r < 4; r++) {
		cn_team_leave(parents[r], w->now, false);
	}
	engine_fixture_free(w);
}

static void engine__parent_fails(void **state)
{
	(void)state;
	derive_of_failed(false);
	derive_of_failed(true);
}

static void engine__mismatches(void **state)
{
	static const struct {
		enum cn_op_kind op;
		const char *algorithm;
		uint64_t bytes;
	} calls[] = {
		{ CN_OP_ALLTOALL, "shuffle", 100 },    { CN_OP_ALLTOALL, "shuffle", 101 },
		{ CN_OP_ALLTOALL, "shuffle", 0 },      { CN_OP_ALLTOALL, "shuffle", PAYLOAD },
		{ CN_OP_ALLTOALL, "shuffle", 5000 },   { CN_OP_ALLTOALL, "pairwise", 100 },
		{ CN_OP_ALLTOALL, "linear", 100 },     { CN_OP_ALLGATHER, "ring", 100 },
		{ CN_OP_ALLGATHER, "ring", 0 },	       { CN_OP_ALLGATHER, "ring", 3 * PAYLOAD },
		{ CN_OP_BARRIER, "dissemination", 0 }, { CN_OP_ALLGATHER, "doubling", 0 },
	};
	const uint32_t n = sizeof(calls) / sizeof(calls[0]);
	struct cn_err err;

	(void)state;
	for (uint32_t k = 0; k < n * n; k++) {
		struct engine_fixture *w;
		uint32_t odd = k % 4;

		if (k / n == k % n) {
			continue;
		}
		w = engine_fixture(4, NULL, NULL);
		engine_join_all(w, 1 + k % 2, false, "job");
		for (uint32_t r = 0; r < w->ranks; r++) {
			uint32_t c = w->rank[r].node == odd ? k / n : k % n;
			struct cn_coll_args a = engine_alltoall(calls[c].bytes);

			a.op = calls[c].op;
			a.algorithm = calls[c].algorithm;
			if (engine_post(w, r, 0, &a, &err) != COLLNET_OK) {
				assert_int_equal(err.code, COLLNET_EMISMATCH);
				w->rank[r].op[0].calls = 1;
				w->rank[r].op[0].status = COLLNET_EMISMATCH;
			}
			engine_run(w, k % 3 * CN_MS);
		}
		engine_assert_all_fail(w, NODES, COLLNET_EMISMATCH, NULL, SECOND);
		engine_leave_all(w);
		engine_run(w, SECOND);
		engine_join_all(w, 1, false, "job");
		engine_fixture_free(w);
	}
}

/* Two ranks of one node do not agree: known without a frame. */
static void engine__mismatch_on_one_node(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(100), b = engine_alltoall(99);
	struct cn_err err = { 0 };

	(void)state;
	engine_join_all(w, 2, false, "job");
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	assert_int_equal(engine_post(w, 1, 0, &b, &err), COLLNET_EMISMATCH);
	assert_true(err.text[0] != '\0');
	assert_int_equal(w->rank[0].op[0].status, COLLNET_EMISMATCH);
	engine_run(w, 100 * CN_MS);
	assert_int_equal(engine_post(w, 2, 0, &a, &err), COLLNET_EMISMATCH);
	engine_fixture_free(w);
}

static void engine__join_mistakes(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_member *m;
	struct engine_waiter x = { 0 };
	struct cn_err err = { 0 };

	(void)state;
	w->ranks = 3;
	engine_join(w, 0, 0, "job", 5 * SECOND);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "job", 0, 3, CN_NEVER,
				      engine_begin_wait(w, &x), &m, &err),
			 COLLNET_EMISMATCH);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "job", 1, 4, CN_NEVER,
				      engine_begin_wait(w, &x), &m, &err),
			 COLLNET_EMISMATCH);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "job", 3, 3, CN_NEVER,
				      engine_begin_wait(w, &x), &m, &err),
			 COLLNET_EINVAL);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "", 1, 3, CN_NEVER,
				      engine_begin_wait(w, &x), &m, &err),
			 COLLNET_EINVAL);
	engine_run(w, 100 * CN_MS);
	/* the same rank, and another size, on another node */
	engine_join(w, 1, 1, "job", 5 * SECOND);
	assert_int_equal(cn_team_join(w->engines[1], w->now, OWNER, "job", 0, 3,
				      w->now + 5 * SECOND, engine_begin_wait(w, &x), &m, &err),
			 COLLNET_OK);
	engine_wait_all(w, -1, SECOND);
	assert_int_equal(x.status, COLLNET_EMISMATCH);
	assert_int_equal(w->rank[0].joined.status, COLLNET_EMISMATCH);
	assert_int_equal(w->rank[1].joined.status, COLLNET_EMISMATCH);
	engine_fixture_free(w);
}

/* Four ranks, one per node, that join 7 ms apart; `odd` says that it is `rank` of `ranks`. */
static void join_four(struct engine_fixture *w, uint32_t odd, uint32_t rank, uint32_t ranks)
{
	struct cn_err err = { 0 };

	w->ranks = 4;
	for (uint32_t r = 0; r < 4; r++) {
		struct engine_rank *x = &w->rank[r];

		x->node = r;
		assert_int_equal(cn_team_join(w->engines[r], w->now, OWNER, "job",
					      r == odd ? rank : r, r == odd ? ranks : 4,
					      w->now + 30 * SECOND,
					      engine_begin_wait(w, &x->joined), &x->member, &err),
				 COLLNET_OK);
		engine_run(w, 7 * CN_MS);
	}
}

/* The first rank to fail leaves at once, as a process does that ends. All others fail, too, with
 * the same cause and long before the deadline. */
static void assert_contradiction(struct engine_fixture *w, const char *text)
{
	const cn_time limit = w->now + SECOND;
	uint32_t left = 4;

	while (left > 0) {
		if (!engine_step(w, limit)) {
			fail_msg("%u ranks still wait", left);
		}
		for (uint32_t r = 0; r < 4; r++) {
			const struct engine_waiter *x = &w->rank[r].joined;

			if (w->rank[r].member == NULL || x->calls == 0) {
				continue;
			}
			if (x->status != COLLNET_EMISMATCH || strstr(x->text, text) == NULL) {
				fail_msg("rank %u: status %d, \"%s\"", r, x->status, x->text);
			}
			engine_leave(w, r, false);
			left--;
		}
	}
	engine_fixture_free(w);
}

static void engine__contradiction_ends_all(void **state)
{
	(void)state;
	for (uint32_t odd = 0; odd < 4; odd++) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);

		join_four(w, odd, odd, 5);
		assert_contradiction(w, "job job has ");
		w = engine_fixture(4, NULL, NULL);
		join_four(w, odd, (odd + 1) % 4, 4);
		assert_contradiction(w, "give every process its own rank");
	}
}

/* What a rank of an earlier run says, which waits still, does not end the next run. */
static void engine__earlier_run_that_waits(void **state)
{
	(void)state;
	for (uint32_t ranks = 3; ranks <= 5; ranks++) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);
		struct engine_waiter x = { .calls = 0 };
		struct cn_member *m;
		struct cn_err err = { 0 };

		assert_int_equal(cn_team_join(w->engines[3], w->now, OWNER, "job", 1, ranks,
					      w->now + 30 * SECOND, engine_begin_wait(w, &x), &m,
					      &err),
				 COLLNET_OK);
		engine_run(w, 5 * SECOND);
		w->ranks = 3;
		for (uint32_t r = 0; r < 3; r++) {
			engine_join(w, r, r, "job", 30 * SECOND);
			if (r == 1) { /* the other is told, and ends; the last one is late */
				engine_run(w, 100 * CN_MS);
				assert_int_equal(x.status, COLLNET_EMISMATCH);
				cn_team_leave(m, w->now, false);
				engine_run(w, 2 * SECOND);
			}
		}
		engine_wait_all(w, -1, SECOND);
		for (uint32_t r = 0; r < 3; r++) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		}
		engine_leave_all(w);
		engine_fixture_free(w);
	}
}

/* A rank that leaves after the last operation disturbs nobody, however far the others are. */
static void engine__rank_leaves_in_order(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_hub_faults faults = { .seed = SEED, .loss = 50000 };
	struct cn_coll_args a = engine_alltoall(3000);
	struct cn_err err = { 0 };

	(void)state;
	engine_join_all(w, 1, false, "job");
	cn_hub_set_faults(w->hub, &faults);
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	for (uint32_t left = w->ranks; left > 0;) {
		assert_true(engine_step(w, 1000 * SECOND));
		for (uint32_t r = 0; r < w->ranks; r++) {
			if (w->rank[r].member != NULL && w->rank[r].op[0].calls > 0) {
				engine_check(w, r, 0, &a);
				engine_leave(w, r, false);
				left--;
			}
		}
	}
	engine_fixture_free(w);
}

static void engine__jobs_one_after_the_other(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(600);

	(void)state;
	for (int i = 0; i < 600; i++) { /* more than a slot has generations */
		engine_join_all(w, 1 + i % 2, false, "job");
		engine_collective(w, &a, SECOND);
		engine_leave_all(w);
	}
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine__rank_is_missing),
		cmocka_unit_test(engine__derived_team),
		cmocka_unit_test(engine__parent_fails),
		cmocka_unit_test(engine__derived_team_keeps_the_topology),
		cmocka_unit_test(engine__slowest_link_is_the_teams),
		cmocka_unit_test(engine__parent_has_lost_a_rank),
		cmocka_unit_test(engine__last_of_the_parent_dies),
		cmocka_unit_test(engine__rank_dies_while_a_team_is_made),
		cmocka_unit_test(engine__late_rank_is_in_time),
		cmocka_unit_test(engine__mismatches),
		cmocka_unit_test(engine__mismatch_on_one_node),
		cmocka_unit_test(engine__join_mistakes),
		cmocka_unit_test(engine__contradiction_ends_all),
		cmocka_unit_test(engine__earlier_run_that_waits),
		cmocka_unit_test(engine__rank_leaves_in_order),
		cmocka_unit_test(engine__jobs_one_after_the_other),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
