/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll: losses, nodes that are cut off, end or restart, and ranks that die during operations:
 * all others are notified, in time and with the name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coll/team.h"
#include "engine_fixture.h"
#include "log_capture.h"

static void engine__losses(void **state)
{
	static const uint32_t loss[] = { 10000, 50000, 10000, 50000, 200000 };

	(void)state;
	for (uint32_t k = 0; k < 5; k++) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);
		struct cn_hub_faults faults = {
			.seed = SEED + k,
			.loss = loss[k],
			.duplicate = 5000,
			.reorder = 5000,
		};

		print_message("seed %llu, loss %u ppm\n", (unsigned long long)faults.seed, loss[k]);
		cn_hub_set_faults(w->hub, &faults);
		engine_join_all(w, 1 + k % 3, k % 2, "job");
		engine_every_algorithm(w, engine_sizes, 4, 100 * SECOND);
		engine_leave_all(w);
		engine_fixture_free(w);
	}
}

/* The same where some may have had all they need before; the others must have the right bytes.
 * Returns how many failed. */
static uint32_t assert_done_or_failed(struct engine_fixture *w, uint32_t gone,
				      const struct cn_coll_args *a, int status, const char *text,
				      cn_time most)
{
	uint32_t failed = 0;
	cn_time from = w->now;

	engine_wait_all(w, 0, most);
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct engine_waiter *x = &w->rank[r].op[0];

		if (w->rank[r].node == gone || w->rank[r].member == NULL) {
			continue;
		}
		assert_true(x->at <= from + most);
		if (x->status == COLLNET_OK) {
			engine_check(w, r, 0, a);
			continue;
		}
		failed++;
		if (x->status != status || (text != NULL && strstr(x->text, text) == NULL)) {
			fail_msg("rank %u: status %d, \"%s\"", r, x->status, x->text);
		}
	}
	return failed;
}

/* A node is cut off at any moment of an exchange: all others are told, with its name, in time. */
static void engine__node_is_cut_off(void **state)
{
	uint32_t cases = 0;

	(void)state;
	for (uint32_t k = 0; k < 36; k++) {
		struct engine_fixture *w = engine_fixture(6, NULL, NULL);
		bool over = false;
		struct cn_coll_args a = engine_alltoall(200000);
		struct cn_err err = { 0 };

		a.algorithm = engine_exchanges[k % 3];
		if (k % 4 == 3) {
			a.op = CN_OP_ALLGATHER;
			a.algorithm = "ring";
		}
		engine_join_all(w, 1 + k % 2, false, "job");
		for (uint32_t r = 0; r < w->ranks; r++) {
			/* in a third of the cases it has not even called */
			if (k / 12 != 1 || w->rank[r].node != 2) {
				assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
			}
		}
		for (uint32_t i = 0; i < k / 3; i++) {
			engine_step(w, w->now + 1000 * SECOND);
		}
		if (k / 12 == 1) {
			engine_run(w, SECOND);
			for (uint32_t r = 0; r < w->ranks; r++) {
				if (w->rank[r].node == 2) {
					assert_int_equal(engine_post(w, r, 0, &a, &err),
							 COLLNET_OK);
				}
			}
		}
		for (uint32_t r = 0; r < w->ranks; r++) {
			over |= w->rank[r].op[0].calls != 0;
		}
		cn_hub_cut(w->hub, 2, true);
		if (!over) {
			cases += assert_done_or_failed(w, 2, &a, COLLNET_EPEER, "n2", 2 * SECOND) >
				 0;
			assert_done_or_failed(w, NODES, &a, COLLNET_EPEER, NULL, 2 * SECOND);
		}
		engine_fixture_free(w);
	}
	assert_true(cases >= 24);
}

/* Both peers of node 0 in a job are cut off: it is not, as it goes on with node 3 in another one.
 */
static void engine__peers_of_a_job_are_cut_off(void **state)
{
	const struct cn_coll_args a = { .op = CN_OP_BARRIER,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = CN_NEVER };
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct engine_waiter joined[2] = { 0 };
	struct cn_member *other[2];
	struct cn_err err;

	(void)state;
	w->ranks = 3;
	for (uint32_t r = 0; r < 3; r++) {
		engine_join(w, r, r, "job", SECOND);
	}
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(cn_team_join(w->engines[3 * r], w->now, OWNER, "other", r, 2,
					      w->now + SECOND, engine_begin_wait(w, &joined[r]),
					      &other[r], &err),
				 COLLNET_OK);
	}
	engine_run(w, SECOND);
	cn_hub_cut(w->hub, 1, true);
	cn_hub_cut(w->hub, 2, true);
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	for (uint32_t i = 0; i < 8 && w->rank[0].op[0].calls == 0; i++) {
		for (uint32_t r = 0; r < 2; r++) {
			assert_int_equal(cn_coll_post(other[r], w->now, &a,
						      engine_begin_wait(w, &joined[r]), &err),
					 COLLNET_OK);
		}
		engine_run(w, 250 * CN_MS);
	}
	assert_string_equal(w->rank[0].op[0].text,
			    "2 of 2 peers stopped answering: n1-n2 (seen by node n0)");
	for (uint32_t r = 0; r < 2; r++) {
		cn_team_leave(other[r], w->now, false);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* It is cut off while it keeps the others waiting for its call; and after it comes back, a new
 * job works. */
static void engine__absent_caller_is_cut_off(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(1000);
	struct cn_err err = { 0 };

	(void)state;
	a.op = CN_OP_BARRIER;
	a.algorithm = NULL;
	a.bytes = 0;
	engine_join_all(w, 1, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		if (r != 1) {
			assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
		}
	}
	engine_run(w, 30 * SECOND);
	assert_int_equal(w->rank[0].op[0].calls, 0); /* slow is not dead */
	cn_hub_cut(w->hub, 1, true);
	w->rank[1].op[0].calls = 1; /* it does not wait for anything */
	w->rank[1].node = NODES;
	engine_assert_all_fail(w, NODES, COLLNET_EPEER, "n1", 2 * SECOND);
	engine_leave_all(w);
	cn_hub_cut(w->hub, 1, false);
	engine_run(w, 3 * SECOND);
	engine_join_all(w, 1, false, "job");
	a = engine_alltoall(1000);
	engine_collective(w, &a, SECOND);
	engine_fixture_free(w);
}

/* The root's node ends after the root's last operation, which the others have not called yet: its
 * data is there. */
static void engine__node_ends_before_its_data_is_taken(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(5000);
	struct cn_err err = { 0 };

	(void)state;
	a.op = CN_OP_BCAST;
	a.algorithm = "binomial"; /* rank 2 passes on what it receives */
	engine_join_all(w, 1, false, "job");
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	while (w->rank[0].op[0].calls == 0) {
		assert_true(engine_step(w, w->now + SECOND));
	}
	engine_leave(w, 0, false);
	engine_run(w, 10 * CN_MS);
	cn_engine_shutdown(w->engines[0], CN_BYE_DAEMON);
	engine_run(w, 10 * CN_MS);
	for (uint32_t r = 1; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 1; r < w->ranks; r++) {
		engine_check(w, r, 0, &a);
	}
	engine_fixture_free(w);
}

/* A rank dies as soon as its last operation is complete: all others complete it, too, and fail in
 * the next one, whether they have called it already or not. */
static void engine__rank_dies_after_its_last_operation(void **state)
{
	static const enum cn_op_kind kinds[] = { CN_OP_BCAST, CN_OP_ALLTOALL, CN_OP_ALLREDUCE };
	uint32_t earlier = 0;

	(void)state;
	for (uint32_t k = 0; k < 24; k++) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);
		const struct cn_hub_faults faults = { .seed = SEED + k, .loss = 50000 };
		struct cn_coll_args a = engine_alltoall(5000), next = engine_alltoall(100);
		const bool called = k % 2 == 0;
		struct cn_err err = { 0 };

		a.op = kinds[k % 3];
		a.algorithm = NULL;
		engine_join_all(w, 1 + k / 3 % 2, false, "job");
		cn_hub_set_faults(w->hub, &faults);
		for (uint32_t r = 0; r < w->ranks; r++) {
			assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
		}
		while (w->rank[0].op[0].calls == 0) {
			assert_true(engine_step(w, w->now + SECOND));
		}
		for (uint32_t r = 1; r < w->ranks && !called; r++) {
			earlier += w->rank[r].op[0].calls == 0;
		}
		if (!called) {
			engine_leave(w, 0, true);
		}
		engine_wait_all(w, 0, SECOND);
		for (uint32_t r = 1; r < w->ranks; r++) {
			struct engine_waiter *x = &w->rank[r].op[1];
			int rc;

			if (w->rank[r].op[0].status != COLLNET_OK) {
				fail_msg("case %u, rank %u: %s", k, r, w->rank[r].op[0].text);
			}
			engine_check(w, r, 0, &a);
			rc = engine_post(w, r, 1, &next, &err);
			if (rc != COLLNET_OK) { /* at once */
				assert_false(called);
				x->calls = 1;
				x->status = rc;
				memcpy(x->text, err.text, sizeof(x->text));
			}
		}
		if (called) {
			engine_leave(w, 0, true);
		}
		engine_wait_all(w, 1, SECOND);
		for (uint32_t r = 1; r < w->ranks; r++) {
			assert_int_equal(w->rank[r].op[1].status, COLLNET_ERANK);
			assert_non_null(strstr(w->rank[r].op[1].text,
					       "rank 0 on node n0 died after 1"));
		}
		engine_leave_all(w);
		engine_fixture_free(w);
	}
	assert_true(earlier > 12); /* it was often the first one */
}

static void engine__daemon_restarts(void **state)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(400000);
	struct cn_err err = { 0 };

	(void)state;
	engine_join_all(w, 1, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	engine_step(w, w->now + SECOND);
	engine_stop_node(w, 3); /* its rank is told that its daemon is gone, and its team with it */
	assert_int_equal(w->rank[3].op[0].status, COLLNET_EDAEMON);
	w->rank[3].member = NULL;
	engine_start_node(w, 3);
	engine_assert_all_fail(w, 3, COLLNET_EPEER, "n3", 2 * SECOND);
	engine_leave_all(w);
	engine_run(w, SECOND);
	engine_join_all(w, 1, false, "job");
	a.bytes = 5000;
	engine_collective(w, &a, SECOND);
	engine_fixture_free(w);
}

/* An orderly end is known at once, not after a silence. */
static void node_ends(enum cn_bye why, const char *text)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(100000);
	struct cn_err err = { 0 };

	engine_join_all(w, 2, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	engine_step(w, w->now + SECOND);
	cn_engine_shutdown(w->engines[2], why);
	assert_int_equal(w->rank[4].op[0].status, COLLNET_EDAEMON);
	assert_int_equal(w->rank[5].op[0].status, COLLNET_EDAEMON);
	engine_assert_all_fail(w, 2, COLLNET_EPEER, text, 10 * CN_MS);
	engine_fixture_free(w);
}

static void engine__a_node_says_why_it_ends(void **state)
{
	(void)state;
	node_ends(CN_BYE_DAEMON, "node n2 ended its daemon");
	node_ends(CN_BYE_MOVED, "node n2 replaced its interface");
	node_ends(CN_BYE_PROCESS, "node n2 ended its process");
	node_ends(CN_BYE_ADDRESS, "node n2 changed the address of its interface");
	node_ends(CN_BYE_MTU, "node n2 changed the MTU of its interface");
	node_ends((enum cn_bye)(CN_BYE_MTU + 1), "node n2 ended its daemon");
}

/* Without a daemon, nodes come and go with their processes. */
static void engine__logs_an_end(void **state)
{
	static const struct {
		enum cn_bye why;
		enum collnet_log_level level;
		const char *text;
	} ends[] = {
		{ CN_BYE_PROCESS, COLLNET_LOG_INFO, "node n2 ended its process" },
		{ CN_BYE_DAEMON, COLLNET_LOG_WARNING, "node n2 ended its daemon" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);

		engine_run(w, SECOND);
		log_capture();
		cn_engine_shutdown(w->engines[2], ends[i].why);
		engine_run(w, 10 * CN_MS);
		log_capture_end();
		assert_non_null(strstr(logged, ends[i].text));
		assert_int_equal(logged_level, ends[i].level);
		engine_fixture_free(w);
	}
}

static void engine__rank_dies(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 8; k++) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);
		struct cn_coll_args a = engine_alltoall(100000);
		struct cn_err err = { 0 };
		char name[32];

		engine_join_all(w, 2, k % 2, "job");
		for (uint32_t r = 0; r < w->ranks; r++) {
			if (r != 5 || k >= 4) {
				assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
			}
		}
		for (uint32_t i = 0; i < k; i++) {
			engine_step(w, w->now + SECOND);
		}
		engine_leave(w, 5, k % 4 < 2); /* died, or left in an orderly way without calling */
		snprintf(name, sizeof(name), "rank 5 on node n%u", w->rank[5].node);
		if (k < 4) {
			engine_assert_all_fail(w, NODES, COLLNET_ERANK, name, 100 * CN_MS);
		} else {
			assert_done_or_failed(w, NODES, &a, COLLNET_ERANK, name, 100 * CN_MS);
		}
		engine_leave_all(w);
		engine_run(w, 100 * CN_MS);
		engine_join_all(w, 1, false, "job");
		engine_fixture_free(w);
	}
}

static void engine__deadline_of_an_operation(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(1000);
	struct cn_err err = { 0 };

	(void)state;
	engine_join_all(w, 1, false, "job");
	a.deadline = w->now + 3 * SECOND;
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	assert_int_equal(engine_post(w, 2, 0, &a, &err), COLLNET_OK);
	w->rank[1].op[0].calls = 1;
	w->rank[1].op[0].status = COLLNET_ETIMEOUT;
	engine_run(w, 2900 * CN_MS);
	assert_int_equal(w->rank[0].op[0].calls, 0);
	engine_assert_all_fail(w, 1, COLLNET_ETIMEOUT, "1 (node n1)", 200 * CN_MS);
	engine_fixture_free(w);
}

/* Both nodes have committed, and only one has its team when the other fails. That one has no
 * record of the team's nodes yet. */
static void engine__fails_when_another_is_ready(void **state)
{
	const struct cn_coll_args a = { .op = CN_OP_BARRIER,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = CN_NEVER };
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_err err = { 0 };
	uint32_t ready = 0;

	(void)state;
	w->ranks = 2;
	engine_join(w, 0, 0, "job", 60 * SECOND);
	engine_join(w, 1, 1, "job", 60 * SECOND);
	for (uint32_t i = 0; w->rank[0].joined.calls + w->rank[1].joined.calls == 0; i++) {
		ready = i % 2;
		assert_true(i < 10000);
		assert_true(cn_poller_poll(w->pollers[ready], w->now) >= 0);
		w->now += 100 * CN_US;
	}
	cn_team_fail(w->rank[1 - ready].member->team, true, COLLNET_ENOMEM, "no memory for it");
	assert_int_equal(w->rank[ready].joined.status, COLLNET_OK);
	assert_int_equal(w->rank[1 - ready].joined.status, COLLNET_ENOMEM);
	w->number++;
	assert_int_equal(engine_post(w, ready, 0, &a, &err), COLLNET_OK);
	engine_run(w, 100 * CN_MS);
	assert_int_equal(w->rank[ready].op[0].calls, 1);
	assert_int_equal(w->rank[ready].op[0].status, COLLNET_ENOMEM);
	assert_string_equal(w->rank[ready].op[0].text, "no memory for it");
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* A node is started again under the name of node 0: that lists it by its address, as others do. */
static void engine__node_takes_the_name_of_another(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	struct collnet_node_info info[4];
	struct cn_err err;

	(void)state;
	engine_run(w, SECOND);
	engine_stop_node(w, 2);
	engine_run(w, SECOND);
	memcpy(w->config.node.mac, cn_hub_port(w->hub, 2)->mac, 6);
	w->config.node.epoch++;
	snprintf(w->config.node.name, sizeof(w->config.node.name), "n0");
	assert_int_equal(cn_engine_new(&w->config, &w->engines[2], &err), COLLNET_OK);
	assert_int_equal(cn_poller_new(cn_hub_port(w->hub, 2), w->engines[2], &w->pollers[2], &err),
			 COLLNET_OK);
	engine_run(w, 5 * SECOND);
	for (uint32_t i = 0; i < 2; i++) {
		size_t n = 4;

		cn_engine_nodes(w->engines[i], w->now, 0, info, &n);
		assert_int_equal(n, 3);
		assert_string_equal(info[2].name, "02:00:00:00:00:03");
		assert_non_null(strstr(info[2].mismatch, "is called n0"));
		assert_false(info[2].alive);
	}
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine__losses),
		cmocka_unit_test(engine__node_is_cut_off),
		cmocka_unit_test(engine__peers_of_a_job_are_cut_off),
		cmocka_unit_test(engine__absent_caller_is_cut_off),
		cmocka_unit_test(engine__rank_dies_after_its_last_operation),
		cmocka_unit_test(engine__node_ends_before_its_data_is_taken),
		cmocka_unit_test(engine__daemon_restarts),
		cmocka_unit_test(engine__a_node_says_why_it_ends),
		cmocka_unit_test(engine__logs_an_end),
		cmocka_unit_test(engine__node_takes_the_name_of_another),
		cmocka_unit_test(engine__rank_dies),
		cmocka_unit_test(engine__deadline_of_an_operation),
		cmocka_unit_test(engine__fails_when_another_is_ready),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
