/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll: teams whose ranks are missing, late or differ in what they join or call, and
 * jobs one after the other.
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
	/* Host 2 is alive, and has no rank. */
	assert_non_null(strstr(w->rank[0].joined.text,
			       "; start them, with the same COLLNET_JOB and "
			       "user ID (or COLLNET_SECRET), or see whether"));
	engine_leave_all(w);
	engine_run(w, 100 * CN_MS);
	/* Every host has a rank; one has heard another cluster. */
	cn_other_cluster_record(cn_engine_node(w->engines[3]), 7);
	for (uint32_t r = 0; r < 7; r++) {
		engine_join(w, r, r % 4, "seven", 2 * SECOND);
	}
	engine_wait_all(w, -1, 2100 * CN_MS);
	for (uint32_t r = 0; r < 7; r++) {
		assert_non_null(strstr(w->rank[r].joined.text,
				       r != 3 ? "missing at the deadline: 7; start them, or see "
					      : "missing at the deadline: 7; nodes of cluster 7 "
						"were heard, this node is of cluster 0; start "
						"them, or see "));
	}
	engine_leave_all(w);
	w->ranks = 4; /* the same name, another size: nothing of the first run is in the way */
	engine_run(w, 100 * CN_MS);
	engine_join_all(w, 1, false, "job");
	engine_fixture_free(w);
}

/* The deadline passes before anything was announced to the node that is there. */
static void engine__deadline_at_once(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_wireup *wireup;

	(void)state;
	engine_run(w, SECOND);
	w->ranks = 2;
	engine_join(w, 0, 0, "job", 0);
	wireup = &w->engines[0]->teams[0]->wireup;
	free(wireup->advertised); /* as if it had come up in this moment */
	wireup->advertised = NULL;
	wireup->nadvertised = 0;
	cn_engine_expire(w->engines[0], w->now);
	assert_int_equal(w->rank[0].joined.status, COLLNET_ETIMEOUT);
	assert_non_null(strstr(w->rank[0].joined.text, "with the same COLLNET_JOB"));
	engine_leave_all(w);
	engine_fixture_free(w);
}

static void advise(struct cn_engine_config *c)
{
	c->advice = "look there";
}

static void engine__advises_what_is_configured(void **state)
{
	struct engine_fixture *w = engine_fixture(1, NULL, advise);

	(void)state;
	w->ranks = 2;
	engine_join(w, 0, 0, "job", SECOND);
	engine_wait_all(w, -1, 2 * SECOND);
	assert_string_equal(w->rank[0].joined.text,
			    "job job: 1 of 2 ranks missing at the deadline: "
			    "1; node n0 exchanges frames with no other node; start them, or look "
			    "there");
	engine_leave_all(w);
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
	engine_join(w, 1, 1, "job", 10 * SECOND); /* it comes and goes, and its team with it */
	engine_leave(w, 1, false);
	engine_run(w, 9 * SECOND);
	assert_int_equal(w->engines[1]->nforming, 0);
	engine_join(w, 1, 1, "job", 10 * SECOND);
	engine_wait_all(w, -1, 100 * CN_MS);
	engine_collective(w, &a, SECOND);
	engine_fixture_free(w);
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
		{ CN_OP_BARRIER, "dissemination", 0 }, { CN_OP_BARRIER, "doubling", 0 },
		{ CN_OP_ALLGATHER, "doubling", 0 },
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
	assert_string_equal(err.text, "job job has 4 ranks for rank 1 and 3 for others of node n0: "
				      "start all with the same size");
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
	cn_engine_shutdown(w->engines[0], CN_BYE_DAEMON);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "new", 0, 3, CN_NEVER,
				      engine_begin_wait(w, &x), &m, &err),
			 COLLNET_EDAEMON);
	assert_string_equal(err.text, "the daemon of node n0 is shutting down");
	engine_fixture_free(w);
}

/*
 * A process of a node does not agree with the ranks there: it is refused at once, and they fail
 * half a second later, as on the other nodes, unless all ranks are there by then.
 */
static void engine__disagrees_with_its_node(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const uint32_t rank = i < 2 ? 2 : 0, ranks = i < 2 ? 4 : 3;
		const char *text = i < 2 ? "job job has 4 ranks for rank 2 and 3 for others of "
					   "node n0: start all with the same size"
					 : "rank 0 of job job is on node n0 already: give every "
					   "process its own rank, every run its own job name";
		const bool comes = i % 2 == 1; /* the rank that was missing */
		struct engine_fixture *w = engine_fixture(2, NULL, NULL);
		struct engine_waiter x = { .calls = 0 };
		struct cn_err err = { 0 };
		struct cn_member *m;

		w->ranks = 3;
		engine_join(w, 0, 0, "job", 30 * SECOND);
		engine_join(w, 1, 1, "job", 30 * SECOND);
		engine_run(w, 2 * SECOND);
		assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "job", rank, ranks,
					      w->now + 30 * SECOND, engine_begin_wait(w, &x), &m,
					      &err),
				 COLLNET_EMISMATCH);
		assert_string_equal(err.text, text);
		engine_run(w, 450 * CN_MS);
		assert_int_equal(w->rank[0].joined.calls + w->rank[1].joined.calls, 0);
		if (comes) {
			engine_join(w, 2, 1, "job", 30 * SECOND);
		}
		engine_run(w, 100 * CN_MS);
		for (uint32_t r = 0; r < 2; r++) {
			assert_int_equal(w->rank[r].joined.calls, 1);
			assert_int_equal(w->rank[r].joined.status,
					 comes ? COLLNET_OK : COLLNET_EMISMATCH);
			assert_string_equal(w->rank[r].joined.text, comes ? "" : text);
		}
		engine_fixture_free(w);
	}
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
 * the same cause, in one of two texts, and long before the deadline. */
static void assert_contradiction(struct engine_fixture *w, const char *text, const char *other)
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
			if (x->status != COLLNET_EMISMATCH ||
			    (strstr(x->text, text) == NULL && strstr(x->text, other) == NULL)) {
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
	static const char format[] =
		"rank %u of job job is on node n%u and on node n%u: give every "
		"process its own rank";
	char text[120], other[120];

	(void)state;
	for (uint32_t odd = 0; odd < 4; odd++) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);
		const uint32_t twice = (odd + 1) % 4;

		join_four(w, odd, odd, 5);
		assert_contradiction(w, "job job has ", "job job has ");
		w = engine_fixture(4, NULL, NULL);
		join_four(w, odd, twice, 4);
		snprintf(text, sizeof(text), format, twice, odd, twice);
		snprintf(other, sizeof(other), format, twice, twice, odd);
		assert_contradiction(w, text, other);
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

/* A team that has failed holds no frames of operations that never start here. */
static void engine__failed_team_holds_no_frames(void **state)
{
	const struct cn_coll_args a = {
		.op = CN_OP_BCAST, .bytes = 300, .window = COLLNET_WINDOW_AUTO, .deadline = CN_NEVER
	};
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_team *t;
	struct cn_err err;

	(void)state;
	engine_join_all(w, 1, false, "job");
	w->number = 2; /* the root is rank 0 */
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	engine_run(w, 10 * CN_MS);
	t = w->rank[1].member->team;
	assert_non_null(t->unexpected.first);
	cn_team_fail(t, true, COLLNET_ERANK, "it has failed");
	assert_null(t->unexpected.first);
	engine_leave_all(w);
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

/* Rank 2 leaves after `calls` of three operations, whose numbers wrap, while rank 1 has not
 * called. */
static void leave_at_the_wrap(uint32_t calls)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	struct cn_coll_args a = { .op = CN_OP_GATHER,
				  .window = COLLNET_WINDOW_AUTO,
				  .bytes = 100,
				  .deadline = 10 * SECOND };
	struct cn_err err = { 0 };

	engine_join_all(w, 1, false, "job");
	engine_set_numbers(w, UINT32_MAX - 1);
	w->number++;
	for (uint32_t r = 0; r <= 2; r += 2) {
		for (uint32_t k = 0; k < (r == 0 ? 3 : calls); k++) {
			assert_int_equal(engine_post(w, r, (int)k, &a, &err), COLLNET_OK);
		}
	}
	engine_run(w, SECOND);
	for (uint32_t k = 0; k < calls; k++) {
		assert_int_equal(w->rank[2].op[k].calls, 1);
		assert_int_equal(w->rank[2].op[k].status, COLLNET_OK);
	}
	engine_leave(w, 2, false);
	engine_run(w, SECOND);
	if (calls < 3) {
		assert_int_equal(w->rank[0].op[calls].calls, 1);
		assert_int_equal(w->rank[0].op[calls].status, COLLNET_ERANK);
	} else {
		for (int k = 0; k < 3; k++) {
			assert_int_equal(w->rank[0].op[k].calls, 0);
			assert_int_equal(engine_post(w, 1, k, &a, &err), COLLNET_OK);
		}
		engine_run(w, SECOND);
		for (int k = 0; k < 3; k++) {
			assert_int_equal(w->rank[0].op[k].calls, 1);
			engine_check(w, 0, k, &a);
		}
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* Two ranks of a node are there; one leaves within the operation after whose call numbers are 0: it
 * ends, as any other that a rank leaves, and nothing points to what the rank had. */
static void leave_within_the_last(bool all_called)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	const struct cn_coll_args a = engine_alltoall(100);
	struct cn_err err = { 0 };

	engine_join_all(w, 2, false, "job");
	engine_set_numbers(w, UINT32_MAX);
	w->number++;
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	if (all_called) {
		assert_int_equal(engine_post(w, 1, 0, &a, &err), COLLNET_OK);
	}
	engine_leave(w, 0, false);
	assert_int_equal(w->rank[0].op[0].calls, 1);
	assert_int_equal(w->rank[0].op[0].status, COLLNET_ERANK);
	engine_run(w, SECOND);
	for (uint32_t r = 1; r < 4; r++) {
		assert_int_equal(cn_member_check(w->rank[r].member, &err), COLLNET_ERANK);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* Numbers of operations wrap, after twelve hours of a barrier every 10 us. */
static void engine__numbers_wrap(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	const struct cn_coll_args a = engine_alltoall(100), bcast = { .op = CN_OP_BCAST,
								      .window = COLLNET_WINDOW_AUTO,
								      .bytes = 5000,
								      .root = 1,
								      .deadline = CN_NEVER };

	(void)state;
	w->engines[0]->last_team_id = UINT32_MAX;
	memset(w->engines[0]->generations, 15, sizeof(w->engines[0]->generations));
	engine_join_all(w, 2, false, "job");
	assert_int_equal(w->engines[0]->last_team_id, 1); /* 0 is none */
	assert_int_equal(w->engines[0]->own.next->port >> 12, 1);
	engine_set_numbers(w, UINT32_MAX - 20);
	for (int i = 0; i < 20; i++) {
		engine_collective(w, &a, SECOND);
		engine_collective(w, &bcast, SECOND);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
	for (uint32_t calls = 1; calls <= 3; calls++) {
		leave_at_the_wrap(calls);
	}
	leave_within_the_last(false);
	leave_within_the_last(true);
}

static uint32_t lines[2], suppressed; /* of the log, about the jobs of two payers */

static void count_line(void *ctx, enum collnet_log_level level, const char *line)
{
	(void)ctx;
	(void)level;
	lines[0] += strstr(line, "job first") != NULL;
	lines[1] += strstr(line, "job second") != NULL;
	suppressed += strstr(line, "more lines about jobs were suppressed") != NULL;
}

/* A job of one rank, which is ready at once, and ends. */
static void one_job(struct engine_fixture *w, uint64_t payer, uint64_t owner, const char *job)
{
	struct engine_waiter x = { 0 };
	struct cn_member *m;
	struct cn_err err = { 0 };

	cn_engine_set_payer(w->engines[0], payer);
	assert_int_equal(cn_team_join(w->engines[0], w->now, owner, job, 0, 1, CN_NEVER,
				      engine_begin_wait(w, &x), &m, &err),
			 COLLNET_OK);
	while (x.calls == 0) {
		assert_true(engine_step(w, w->now + SECOND));
	}
	assert_int_equal(x.status, COLLNET_OK);
	cn_team_leave(m, w->now, false);
}

/* A user's jobs do not fill the log, or keep those of others out of it, whatever his secrets are.
 */
static void engine__lines_about_jobs(void **state)
{
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);

	(void)state;
	collnet_set_log(count_line, NULL);
	lines[0] = lines[1] = suppressed = 0;
	for (uint32_t i = 0; i < 1000; i++) {
		one_job(w, 1, CN_OWNER_SECRET | cn_mix64(i), "first");
	}
	one_job(w, 2, OWNER, "second");
	assert_uint_in_range(lines[0], 50, 200);
	assert_int_equal(lines[1], 1);
	assert_int_equal(suppressed, 1);
	engine_run(w, 10 * SECOND);
	lines[0] = 0;
	one_job(w, 1, OWNER, "first");
	assert_int_equal(lines[0], 1);
	collnet_set_log(NULL, NULL);
	engine_fixture_free(w);
}

/* The lines that tell how many were suppressed do not fill it either. */
static void engine__lines_about_lines(void **state)
{
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);

	(void)state;
	collnet_set_log(count_line, NULL);
	lines[0] = lines[1] = suppressed = 0;
	for (int i = 0; i < 200; i++) {
		one_job(w, 1, OWNER, "first");
	}
	for (int second = 1; second <= 3; second++) {
		for (int i = 0; i < 20; i++) {
			one_job(w, 1, OWNER, "first");
			one_job(w, 2, OWNER, "second");
		}
		assert_int_equal(lines[1], 20 * second);
		assert_int_equal(suppressed, second);
		engine_run(w, SECOND);
	}
	collnet_set_log(NULL, NULL);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine__rank_is_missing),
		cmocka_unit_test(engine__deadline_at_once),
		cmocka_unit_test(engine__advises_what_is_configured),
		cmocka_unit_test(engine__late_rank_is_in_time),
		cmocka_unit_test(engine__mismatches),
		cmocka_unit_test(engine__join_mistakes),
		cmocka_unit_test(engine__disagrees_with_its_node),
		cmocka_unit_test(engine__contradiction_ends_all),
		cmocka_unit_test(engine__earlier_run_that_waits),
		cmocka_unit_test(engine__numbers_wrap),
		cmocka_unit_test(engine__failed_team_holds_no_frames),
		cmocka_unit_test(engine__jobs_one_after_the_other),
		cmocka_unit_test(engine__lines_about_jobs),
		cmocka_unit_test(engine__lines_about_lines),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
