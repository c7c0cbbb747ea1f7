/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll: ranks that leave teams: in what order, with others of their node, and before a team is
 * ready; and what else nodes say to one whose team still forms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"
#include "util/bits.h"

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

/* Messages that node 0 sends when its ranks, so many, leave: the first of them, then all died. */
static uint64_t messages_of_leaving(uint32_t a_node, uint32_t alive)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct collnet_stats before = { .size = sizeof(before) }, after = before;
	const struct cn_team *other;

	engine_join_all(w, a_node, false, "job");
	engine_run(w, 100 * CN_MS);
	other = w->engines[1]->teams[0];
	assert_int_equal(other->wireup.nadvertised, 3); /* by peers, not by the table's size */
	cn_engine_stats(w->engines[0], &before, false);
	for (uint32_t r = 0; r < a_node; r++) {
		assert_int_equal(w->rank[r].node, 0);
		engine_leave(w, r, r >= alive);
	}
	engine_run(w, 100 * CN_MS);
	cn_engine_stats(w->engines[0], &after, false);
	assert_true(other->nodes[0].left.any && other->nodes[0].left.rank == 0);
	for (uint32_t r = 0; r < a_node; r++) {
		assert_int_equal(other->dead != NULL && cn_bit(other->dead, r), r >= alive);
	}
	engine_fixture_free(w);
	return after.data_sent - before.data_sent;
}

/* All ranks of a node that leave after as many operations are one message to each other node, those
 * that died one each. */
static void engine__ranks_of_a_node_leave_together(void **state)
{
	(void)state;
	assert_int_equal(messages_of_leaving(1, 1), 9); /* LEAVE, and END on both transports */
	assert_int_equal(messages_of_leaving(3, 3), 9);
	assert_int_equal(messages_of_leaving(3, 1), 15);
	assert_int_equal(messages_of_leaving(3, 0), 15);
}

/* Polls node 0, which hears nothing of node 2. */
static void poll_deaf(struct engine_fixture *w)
{
	const uint8_t *mac = w->engines[2]->config.node.mac;
	struct cn_link *l = cn_hub_port(w->hub, 0);
	struct cn_rx_frame in[32];
	struct cn_frame out;
	size_t n;

	while ((n = cn_link_recv(l, in, 32)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (memcmp(in[i].ether + 6, mac, 6) != 0) {
				cn_engine_input(w->engines[0], w->now, &in[i]);
			}
		}
		cn_link_release(l);
	}
	cn_engine_expire(w->engines[0], w->now);
	while (cn_engine_output(w->engines[0], w->now, &out)) {
		assert_int_equal(cn_link_send(l, &out, 1), 1);
	}
}

/* All ranks of three nodes have joined, and their first one still waits for node 2. */
static struct engine_fixture *node_0_still_waits(void)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);

	w->ranks = 3;
	engine_join(w, 1, 1, "job", 10 * SECOND);
	engine_join(w, 2, 2, "job", 10 * SECOND);
	engine_run(w, SECOND);
	engine_join(w, 0, 0, "job", 10 * SECOND);
	return w;
}

/* Polls all nodes for a while, in which the team of node 0 does not become ready. */
static void poll_all(struct engine_fixture *w)
{
	for (int i = 0; i < 1000; i++) {
		const struct cn_wireup *wireup = &w->rank[0].member->team->wireup;

		if (wireup->complete && wireup->npaths == 0) { /* it has committed */
			poll_deaf(w);
		} else {
			cn_poller_poll(w->pollers[0], w->now);
		}
		cn_poller_poll(w->pollers[1], w->now);
		cn_poller_poll(w->pollers[2], w->now);
		w->now += CN_US;
	}
	assert_int_equal(w->rank[0].joined.calls, 0);
}

/* A rank leaves while another node still waits for a third one: that has its team, too, and what it
 * calls then fails at once. */
static void engine__rank_leaves_before_others_are_ready(void **state)
{
	const struct cn_coll_args a = { .op = CN_OP_BARRIER,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = CN_NEVER };
	struct engine_fixture *w = node_0_still_waits();
	struct engine_rank *x = w->rank;
	struct cn_err err;

	(void)state;
	poll_all(w);
	assert_int_equal(x[1].joined.calls, 1);
	engine_leave(w, 1, false);
	poll_all(w);
	engine_wait_all(w, -1, SECOND);
	assert_int_equal(x[0].joined.status, COLLNET_OK);
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	assert_int_equal(x[0].op[0].calls, 1);
	assert_int_equal(x[0].op[0].status, COLLNET_ERANK);
	assert_non_null(strstr(x[0].op[0].text, "rank 1 on node n1 left the team after 0"));
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* Operations without a frame. */
static void call_empty(struct engine_fixture *w, uint32_t rank, uint32_t calls)
{
	const struct cn_coll_args a = { .op = CN_OP_ALLREDUCE,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = CN_NEVER };
	struct cn_err err;

	for (uint32_t i = 0; i < calls; i++) {
		assert_int_equal(engine_post(w, rank, 1, &a, &err), COLLNET_OK);
		cn_engine_expire(w->engines[rank], w->now);
	}
}

/* A node says what it has started, while the team of another one still forms, and not again. */
static void engine__starts_before_others_are_ready(void **state)
{
	const uint32_t before = CN_UNEXPECTED_RENEW - CN_OPS / 2;
	struct engine_fixture *w = node_0_still_waits();
	struct cn_coll_args a = engine_alltoall(200 * PAYLOAD);
	struct cn_err err;

	(void)state;
	a.op = CN_OP_BCAST;
	a.algorithm = NULL;
	poll_all(w);
	for (uint32_t r = 3; r-- > 0;) {
		if (r == 0) {
			engine_wait_all(w, -1, SECOND);
		}
		call_empty(w, r, before);
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
		call_empty(w, r, CN_OPS / 2);
		if (r == 1) {
			poll_all(w);
		}
	}
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 1; r < 3; r++) {
		engine_check(w, r, 0, &a);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

static void call_barrier(struct engine_fixture *w, uint32_t rank, cn_time deadline)
{
	const struct cn_coll_args a = { .op = CN_OP_BARRIER,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = deadline };
	struct cn_err err = { 0 };

	assert_int_equal(engine_post(w, rank, 0, &a, &err), COLLNET_OK);
}

/* A node whose team still forms says that its ranks have not called. */
static void engine__late_before_it_is_ready(void **state)
{
	struct engine_fixture *w = node_0_still_waits();
	const struct engine_waiter *x;

	(void)state;
	poll_all(w);
	call_barrier(w, 1, w->now + 20 * CN_MS);
	call_barrier(w, 2, w->now + SECOND);
	for (int i = 0; i < 17; i++) {
		poll_all(w);
	}
	engine_wait_all(w, -1, SECOND);
	for (uint32_t r = 1; r < 3; r++) {
		x = &w->rank[r].op[0];
		while (x->calls == 0) {
			assert_true(engine_step(w, w->now + SECOND));
		}
		assert_int_equal(x->status, COLLNET_ETIMEOUT);
		if (strstr(x->text, "not called in time by rank 0 (node n0)") == NULL) {
			fail_msg("rank %u: %s", r, x->text);
		}
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* It is asked before it is ready, and its rank calls in time: the one that never calls is named. */
static void engine__calls_after_it_was_asked(void **state)
{
	struct engine_fixture *w = node_0_still_waits();
	const struct engine_waiter *x = &w->rank[1].op[0];
	cn_time deadline;

	(void)state;
	poll_all(w);
	deadline = w->now + 100 * CN_MS;
	call_barrier(w, 1, deadline);
	for (int i = 0; i < 77; i++) {
		poll_all(w);
	}
	while (w->rank[0].joined.calls == 0) { /* when node 2 sends its COMMIT again */
		assert_true(engine_step(w, deadline));
	}
	call_barrier(w, 0, deadline + SECOND);
	engine_wait_all(w, -1, SECOND);
	while (x->calls == 0) {
		assert_true(engine_step(w, deadline + SECOND));
	}
	if (strstr(x->text, "not called in time by rank 2 (node n2)") == NULL) {
		fail_msg("%s", x->text);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

static struct cn_member *derive_of_all(struct engine_fixture *w, uint32_t rank)
{
	const uint64_t members = 7;
	struct cn_member *m = NULL;
	struct cn_err err = { 0 };

	assert_int_equal(cn_team_derive(w->rank[rank].member, w->now, "derived", rank, 3, &members,
					w->now + SECOND, engine_begin_wait(w, &w->rank[rank].op[0]),
					&m, &err),
			 COLLNET_OK);
	return m;
}

/* A rank calls a derive and leaves at once, before its node knows of the others' calls, which have
 * both from it while they wait for each other. They do not go on without it. */
static void engine__leaves_a_derived_team(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	struct cn_member *m[3];

	(void)state;
	engine_join_all(w, 1, false, "job");
	engine_run(w, 100 * CN_MS);
	m[0] = derive_of_all(w, 0);
	cn_poller_poll(w->pollers[0], w->now);
	cn_team_leave(m[0], w->now, false);
	cn_poller_poll(w->pollers[0], w->now);
	for (uint32_t r = 1; r < 3; r++) {
		m[r] = derive_of_all(w, r);
		cn_poller_poll(w->pollers[r], w->now);
	}
	engine_wait_all(w, 0, 2 * SECOND);
	for (uint32_t r = 1; r < 3; r++) {
		const struct engine_waiter *x = &w->rank[r].op[0];

		assert_int_equal(x->status, COLLNET_ETIMEOUT);
		if (strstr(x->text, "job derived: 1 of 3 ranks") == NULL) {
			fail_msg("rank %u: %s", r, x->text);
		}
		cn_team_leave(m[r], w->now, false);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* COMMITs between nodes 1 and 2 are lost. */
static bool commits_lost;
static const struct cn_link_ops *hub_ops;

static int send_lossy(struct cn_link *l, const struct cn_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct cn_frame *f = &frames[i];
		const bool control = (f->head[CN_ETH_HEADER + 2] & 0x7) == CN_TYPE_CONTROL;

		if (!commits_lost || l->mac[5] == 1 || f->head[5] == 1 || !control ||
		    f->payload[0] != CN_CONTROL_COMMIT) {
			hub_ops->send(l, f, 1);
		}
	}
	return (int)n;
}

static struct cn_peer *session(struct engine_fixture *w, uint32_t at, const char *with)
{
	struct cn_peer *own = cn_node_find(cn_engine_node(w->engines[at]), with);

	return own != NULL ? cn_node_connected(w->engines[at]->teams[0]->transport->node, own)
			   : NULL;
}

/* A node is ready before the others, sends to them, and crashes. It starts again, and its rank
 * joins the job that the others still form: nobody reads what it sent before. */
static void engine__crashes_while_others_form(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(100);
	struct cn_link_ops lossy;
	struct cn_err err = { 0 };
	const struct cn_team *t;

	(void)state;
	hub_ops = cn_hub_port(w->hub, 0)->ops;
	lossy = *hub_ops;
	lossy.send = send_lossy;
	commits_lost = true;
	w->ranks = 3;
	for (uint32_t r = 0; r < w->ranks; r++) {
		cn_hub_port(w->hub, r)->ops = &lossy;
		engine_join(w, r, r, "job", 60 * SECOND);
	}
	while (w->rank[0].joined.calls == 0) {
		assert_true(engine_step(w, 1000 * SECOND));
	}
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	t = w->engines[1]->teams[0];
	while (t->unexpected.first == NULL) {
		assert_true(engine_step(w, 1000 * SECOND));
	}
	assert_int_equal(t->state, CN_TEAM_FORMING);
	engine_stop_node(w, 0);
	engine_start_node(w, 0);
	engine_join(w, 0, 0, "job", 60 * SECOND);
	while (session(w, 1, "n0") != NULL || session(w, 2, "n0") != NULL) {
		assert_true(engine_step(w, 1000 * SECOND));
	}
	commits_lost = false;
	engine_wait_all(w, -1, 60 * SECOND);
	engine_collective(w, &a, SECOND);
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* ---- messages that are lost --------------------------------------------------------------- */

/* Messages wait for each peer, as many as may; or none does. */
static void set_full(struct cn_transport *x, bool full)
{
	for (uint32_t i = 0; i < cn_node_peers(x->node); i++) {
		x->pending.of_peer[i] = full ? CN_PENDING_OF_PEER : 0;
	}
}

/* The others wait for a rank that has gone, and are told. */
static void expect_failure(struct engine_fixture *w, uint32_t gone, const char *text)
{
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (r != gone) {
			call_barrier(w, r, CN_NEVER);
		}
	}
	engine_assert_all_fail(w, gone, COLLNET_ENOMEM, text, SECOND);
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* A rank leaves a team that is ready at the others: its LEAVE is lost, before the team is ready
 * here its END, too. */
static void engine__leave_is_lost(void **state)
{
	(void)state;
	for (int forming = 0; forming < 2; forming++) {
		struct engine_fixture *w = forming ? node_0_still_waits()
						   : engine_fixture(3, NULL, NULL);
		struct cn_transport *x;

		if (forming) {
			poll_all(w);
			x = &w->engines[0]->own;
		} else {
			engine_join_all(w, 1, false, "job");
			x = w->rank[0].member->team->transport;
		}
		set_full(x, true);
		engine_leave(w, 0, true);
		set_full(x, false);
		expect_failure(w, 0, "node n0 lost a message about the team");
	}
}

/* So is STARTED, without which the others stop after some hundred operations. */
static void engine__started_is_lost(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	const struct cn_member *m;
	struct cn_err err;

	(void)state;
	engine_join_all(w, 1, false, "job");
	m = w->rank[1].member;
	set_full(m->team->transport, true);
	for (uint32_t i = 0; i < 2 * CN_UNEXPECTED_RENEW && cn_member_check(m, &err) == COLLNET_OK;
	     i++) {
		call_empty(w, 1, 1);
	}
	set_full(m->team->transport, false);
	assert_int_equal(cn_member_check(m, &err), COLLNET_ENOMEM);
	engine_leave(w, 1, false);
	expect_failure(w, 1, "node n1 lost a message about the team");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine__rank_leaves_in_order),
		cmocka_unit_test(engine__ranks_of_a_node_leave_together),
		cmocka_unit_test(engine__rank_leaves_before_others_are_ready),
		cmocka_unit_test(engine__starts_before_others_are_ready),
		cmocka_unit_test(engine__late_before_it_is_ready),
		cmocka_unit_test(engine__calls_after_it_was_asked),
		cmocka_unit_test(engine__leaves_a_derived_team),
		cmocka_unit_test(engine__crashes_while_others_form),
		cmocka_unit_test(engine__leave_is_lost),
		cmocka_unit_test(engine__started_is_lost),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
