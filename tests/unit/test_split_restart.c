/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/split.c: a node restarts while a team is divided. Frames and claims of the old process
 * are never taken for those of the new one, though its address is the same: sessions tell them
 * apart. Or its ranks die before it acts on the claims.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"

#define PARENTS_MAX 8u
#define BATCH	    32

static struct cn_member *parents[PARENTS_MAX];
static uint32_t a_node; /* ranks */

/* Four nodes with so many ranks each: all call. */
static struct engine_fixture *split_all(uint32_t ranks)
{
	const struct cn_split_call call = { "child", CN_MAKING_SPLIT, 0, 0 };
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_err err;

	a_node = ranks;
	engine_join_all(w, a_node, false, "job");
	engine_run(w, SECOND);
	for (uint32_t r = 0; r < 4 * a_node; r++) {
		parents[r] = w->rank[r].member;
		assert_int_equal(cn_team_split(parents[r], w->now, &call, w->now + 10 * SECOND,
					       engine_begin_wait(w, &w->rank[r].joined),
					       &w->rank[r].member, &err),
				 COLLNET_OK);
	}
	return w;
}

/* Node 3 receives and sends, but its timers do not expire, as under a flood of frames. */
static void move_frames(struct engine_fixture *w)
{
	struct cn_link *l = cn_hub_port(w->hub, 3);
	struct cn_rx_frame in[BATCH];
	struct cn_frame out;
	size_t n;

	while ((n = cn_link_recv(l, in, BATCH)) > 0) {
		for (size_t i = 0; i < n; i++) {
			cn_engine_input(w->engines[3], w->now, &in[i]);
		}
		cn_link_release(l);
	}
	while (cn_engine_output(w->engines[3], w->now, &out)) {
		assert_int_equal(cn_link_send(l, &out, 1), 1);
	}
}

static void poll_others(struct engine_fixture *w)
{
	for (uint32_t i = 0; i < 3; i++) {
		if (w->engines[i] != NULL) {
			cn_poller_poll(w->pollers[i], w->now);
		}
	}
}

/* Until the node has sent another frame with data. */
static void poll_until_sent(struct engine_fixture *w, uint32_t node)
{
	struct collnet_stats before = { .size = sizeof(before) }, s = before;

	cn_engine_stats(w->engines[node], &before, false);
	do {
		cn_poller_poll(w->pollers[node], w->now);
		cn_engine_stats(w->engines[node], &s, false);
	} while (s.data_sent == before.data_sent);
}

static bool has_session(struct engine_fixture *w, uint32_t node, uint32_t with)
{
	struct cn_node *n = cn_engine_node(w->engines[node]);
	char name[8];

	snprintf(name, sizeof(name), "n%u", with);
	for (uint32_t k = 0; k < cn_node_peers(n); k++) {
		const struct cn_peer *p = cn_node_peer(n, k);

		if (strcmp(cn_peer_name(p), name) == 0) {
			return cn_peer_alive(p);
		}
	}
	return false;
}

/* Node 0 ends without a word, another process begins with its address, and node 3 has a session
 * with that one before its own timers expire and before others say anything. */
static void wait_for_restart(struct engine_fixture *w)
{
	engine_stop_node(w, 0);
	for (uint32_t r = 0; r < a_node; r++) {
		w->rank[r].member = parents[r] = NULL;
	}
	engine_start_node(w, 0);
	for (int i = 0; i < 100; i++) {
		cn_poller_poll(w->pollers[0], w->now);
		move_frames(w);
		w->now += CN_MS;
	}
	assert_true(has_session(w, 3, 0));
}

/* The ranks of other nodes get the error that names node 0; then a job with node 0 works. */
static void assert_fails(struct engine_fixture *w)
{
	struct cn_coll_args a = engine_alltoall(3000);

	engine_run(w, SECOND);
	for (uint32_t r = a_node; r < 4 * a_node; r++) {
		struct cn_err err;

		assert_int_equal(w->rank[r].joined.calls, 1);
		if (w->rank[r].joined.status == COLLNET_OK) { /* it was ready before */
			assert_int_equal(cn_member_check(w->rank[r].member, &err), COLLNET_EPEER);
			assert_non_null(strstr(err.text, "node n0"));
		} else {
			assert_int_equal(w->rank[r].joined.status, COLLNET_EPEER);
			assert_non_null(strstr(w->rank[r].joined.text, "node n0"));
		}
		cn_team_leave(w->rank[r].member, w->now, false);
		cn_team_leave(parents[r], w->now, false);
		w->rank[r].member = NULL;
	}
	assert_int_equal(w->engines[3]->deferred_frames, 0);
	engine_run(w, SECOND);
	engine_join_all(w, a_node, false, "child");
	engine_collective(w, &a, SECOND);
	engine_leave_all(w);
	engine_run(w, SECOND);
	engine_fixture_free(w);
}

/* Node 0 has its team and sends to node 3, which keeps the frames because claims are missing. */
static void restart__after_early_frames(void **state)
{
	struct cn_coll_args a = { .op = CN_OP_SCATTER,
				  .bytes = 300,
				  .window = COLLNET_WINDOW_AUTO,
				  .deadline = CN_NEVER };
	struct engine_fixture *w = split_all(2);
	struct cn_err err;

	(void)state;
	poll_until_sent(w, 3);
	poll_until_sent(w, 1); /* node 3 lacks the claims that node 1 is to pass on */
	for (int i = 0; i < 100 && w->rank[0].joined.calls == 0; i++) {
		cn_poller_poll(w->pollers[2], w->now);
		cn_poller_poll(w->pollers[0], w->now);
	}
	assert_int_equal(w->rank[0].joined.status, COLLNET_OK);
	assert_int_equal(w->rank[6].joined.calls, 0);
	w->number++;
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	assert_int_equal(engine_post(w, 1, 0, &a, &err), COLLNET_OK);
	for (int i = 0; i < 100; i++) {
		cn_poller_poll(w->pollers[0], w->now);
	}
	move_frames(w);
	assert_true(w->engines[3]->deferred_frames > 0);
	wait_for_restart(w);
	assert_true(w->engines[3]->deferred_frames > 0);
	assert_fails(w);
}

/* Node 3 has all claims, and has not acted on them. */
static struct engine_fixture *split_until_claimed(void)
{
	struct engine_fixture *w = split_all(1);

	cn_poller_poll(w->pollers[3], w->now); /* its own claim is copied */
	for (int i = 0; i < 100 && parents[3]->done_ops == 0; i++) {
		cn_team_expire(parents[3]->team, w->now); /* not the new team */
		poll_others(w);
		move_frames(w);
	}
	assert_int_equal(parents[3]->done_ops, 1);
	assert_int_equal(w->rank[3].joined.calls, 0);
	return w;
}

/* ... and before it does, node 0 has restarted and is there again. */
static void restart__after_the_claims(void **state)
{
	struct engine_fixture *w = split_until_claimed();

	(void)state;
	wait_for_restart(w);
	assert_int_equal(w->rank[3].joined.calls, 0);
	cn_poller_poll(w->pollers[3], w->now);
	assert_int_equal(w->rank[3].joined.calls, 1);
	assert_string_equal(w->rank[3].joined.text, "node n0 stopped answering node n3");
	assert_fails(w);
}

/* ... and before it does, its rank dies, which leaves the parent first: the others, whose teams are
 * ready, are told. */
static void restart__dies_after_the_claims(void **state)
{
	const struct cn_coll_args a = { .op = CN_OP_BARRIER,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = CN_NEVER };
	struct engine_fixture *w = split_until_claimed();
	struct cn_err err;

	(void)state;
	cn_team_leave(parents[3], w->now, true);
	engine_leave(w, 3, true);
	engine_run(w, 100 * CN_MS);
	assert_int_equal(w->rank[0].joined.status, COLLNET_OK);
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	engine_run(w, 10 * CN_MS);
	assert_int_equal(w->rank[0].op[0].calls, 1);
	for (uint32_t r = 0; r < 3; r++) {
		assert_int_equal(cn_member_check(w->rank[r].member, &err), COLLNET_ERANK);
		assert_non_null(strstr(err.text, "rank 3 on node n3 died"));
		cn_team_leave(parents[r], w->now, false);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restart__after_early_frames),
		cmocka_unit_test(restart__after_the_claims),
		cmocka_unit_test(restart__dies_after_the_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
