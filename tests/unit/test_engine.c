/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll: every algorithm at every size, windows, and many operations at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "engine_fixture.h"

static void engine__every_algorithm_one_rank_a_node(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes <= NODES; nodes++) {
		struct engine_fixture *w = engine_fixture(nodes, NULL, NULL);

		engine_join_all(w, 1, false, "job");
		engine_every_algorithm(w, engine_sizes, 4, SECOND);
		engine_leave_all(w);
		engine_run(w, SECOND);
		for (uint32_t i = 0; i < nodes; i++) {
			struct collnet_stats s = { .size = sizeof(s) };

			cn_engine_stats(w->engines[i], &s, false);
			assert_int_equal(s.jobs, 0);
			assert_int_equal(s.window_now, 0);
			assert_int_equal(s.data_resent, 0);
		}
		engine_fixture_free(w);
	}
}

static void engine__every_algorithm_on_a_tree(void **state)
{
	static const char *const shapes[] = { "4", "2x2", "3x2", "2x3", "1x2", "1" };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct cn_topo *t = NULL;
		struct engine_fixture *w;

		assert_int_equal(cn_topo_shape(shapes[i], 0, 0, 0, 0, &t, NULL), COLLNET_OK);
		assert_true(t->nhosts <= NODES);
		w = engine_fixture(t->nhosts, shapes[i], NULL);
		cn_topo_free(t);
		engine_join_all(w, 1 + i % 2, i % 3 == 0, "job");
		engine_every_algorithm(w, engine_sizes, 4, SECOND);
		engine_leave_all(w);
		engine_run(w, SECOND);
		engine_fixture_free(w);
	}
}

static void engine__every_algorithm_many_ranks_a_node(void **state)
{
	static const uint32_t nodes[] = { 1, 2, 3, 5, 8 };

	(void)state;
	for (int i = 0; i < 5; i++) {
		for (uint32_t a_node = 2; a_node <= 3; a_node++) {
			struct engine_fixture *w = engine_fixture(nodes[i], NULL, NULL);

			engine_join_all(w, a_node, (i + a_node) % 2, "job");
			engine_every_algorithm(w, engine_sizes, 4, SECOND);
			engine_leave_all(w);
			engine_fixture_free(w);
		}
	}
}

static void engine__every_size(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);

	(void)state;
	engine_join_all(w, 1, false, "job");
	for (uint64_t bytes = 0; bytes <= 3 * MTU + 1; bytes++) {
		struct cn_coll_args a = engine_alltoall(bytes);

		a.algorithm = engine_exchanges[bytes % 3];
		engine_collective(w, &a, SECOND);
		a.op = CN_OP_ALLGATHER;
		a.algorithm = "ring";
		engine_collective(w, &a, SECOND);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* With a topology: the window of Eq. 4 holds all the time, and leaves nothing behind. */
static void engine__window_of_the_topology(void **state)
{
	struct engine_fixture *w = engine_fixture(8, "4x2", NULL);
	struct cn_coll_args a = engine_alltoall(20000);

	(void)state;
	engine_join_all(w, 2, false, "job");
	engine_every_algorithm(w, engine_sizes, 4, SECOND);
	a.contention_aware = true;
	for (int i = 0; i < 3; i++) {
		engine_collective(w, &a, SECOND);
	}
	for (uint32_t i = 0; i < w->nodes; i++) {
		struct collnet_stats s = { .size = sizeof(s) };

		cn_engine_stats(w->engines[i], &s, false);
		assert_true(s.window > 0 && s.window < 100);
		assert_int_equal(s.window_now, 0);
	}
	engine_fixture_free(w);
}

/* A program that has calls of two sizes in turn: for each the algorithm is selected once. */
static void engine__selects_once_for_calls_alike(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t root;
	} calls[] = { { 8, 0 }, { 4096, 0 }, { 8, 1 } };
	const size_t n = sizeof(calls) / sizeof(calls[0]);
	struct engine_fixture *w = engine_fixture(4, "4", NULL);
	struct cn_coll_args a = engine_alltoall(0);

	(void)state;
	engine_join_all(w, 1, false, "job");
	a.op = CN_OP_BCAST;
	a.algorithm = NULL;
	for (size_t i = 0; i < 5 * n; i++) {
		a.bytes = calls[i % n].bytes;
		a.root = calls[i % n].root;
		engine_collective(w, &a, SECOND);
	}
	assert_int_equal(w->engines[0]->selections, n);
	engine_leave_all(w);
	engine_fixture_free(w);
}

static void window_of_three(struct cn_engine_config *c)
{
	c->window = 3;
}

/* A window as configured is never passed, not even with losses, and losses leak nothing. */
static void engine__window_holds_with_losses(void **state)
{
	struct engine_fixture *w = engine_fixture(5, NULL, window_of_three);
	struct cn_hub_faults faults = { .seed = SEED, .loss = 20000, .duplicate = 5000 };

	(void)state;
	engine_join_all(w, 1, false, "job");
	cn_hub_set_faults(w->hub, &faults);
	engine_every_algorithm(w, engine_sizes, 4, 100 * SECOND);
	for (uint32_t i = 0; i < w->nodes; i++) {
		struct collnet_stats s = { .size = sizeof(s) };

		cn_engine_stats(w->engines[i], &s, false);
		assert_int_equal(s.window, 3);
		assert_uint_in_range(s.window_peak, 1, 3);
		assert_int_equal(s.window_now, 0);
	}
	engine_fixture_free(w);
}

static void tiny_pool(struct cn_engine_config *c)
{
	c->node.pool_frames = 16;
}

/* Ranks call at different times, and several operations at once: frames that come early wait in a
 * pool of 16, and what does not fit is refused until there is room. */
static void engine__early_frames_and_many_operations(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 12; seed++) {
		struct engine_fixture *w = engine_fixture(4, NULL, tiny_pool);
		struct cn_coll_args a = engine_alltoall(5 * PAYLOAD + 3);
		uint32_t posted[RANKS] = { 0 }, left;
		uint64_t random = SEED + seed;
		struct cn_err err = { 0 };
		int ops = 8;

		a.algorithm = engine_exchanges[seed % 3];
		engine_join_all(w, 1 + seed % 2, false, "job");
		left = w->ranks * (uint32_t)ops;
		while (left > 0) {
			uint32_t r = cn_random(&random) % w->ranks;

			if (posted[r] < (uint32_t)ops) {
				if (engine_post(w, r, (int)posted[r], &a, &err) != COLLNET_OK) {
					fail_msg("%s", err.text);
				}
				posted[r]++;
				left--;
			}
			engine_run(w, cn_random(&random) % 5 * CN_MS);
		}
		for (int k = 0; k < ops; k++) {
			engine_wait_all(w, k, 20 * SECOND);
			for (uint32_t r = 0; r < w->ranks; r++) {
				engine_check(w, r, k, &a);
			}
		}
		engine_leave_all(w);
		engine_fixture_free(w);
	}
}

static void post_as(struct engine_fixture *w, struct cn_member *m, uint32_t rank, int k,
		    const struct cn_coll_args *a)
{
	struct cn_member *own = w->rank[rank].member;
	struct cn_err err = { 0 };

	w->rank[rank].member = m;
	assert_int_equal(engine_post(w, rank, k, a, &err), COLLNET_OK);
	w->rank[rank].member = own;
}

/* Frames of one job that wait for its other nodes do not close the smaller window of another job:
 * their acknowledgement is requested. Clocks move by timers only, as that of a delayed one. */
static void engine__window_closed_by_another_job(void **state)
{
	struct engine_fixture *w = engine_fixture(5, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(3 * PAYLOAD), b = engine_alltoall(5 * PAYLOAD);
	struct cn_member *other[5];

	(void)state;
	a.op = CN_OP_ALLGATHER;
	a.algorithm = "ring";
	a.window = 64;
	b.window = 2;
	engine_join_all(w, 1, false, "other");
	for (uint32_t r = 0; r < w->ranks; r++) {
		other[r] = w->rank[r].member;
	}
	engine_join_all(w, 1, false, "job");
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t r = 1; r < w->ranks; r++) {
			post_as(w, other[r], r, 1, &a);
		}
		engine_run(w, CN_MS);
		assert_int_equal(cn_node_window(cn_engine_node(w->engines[1]))->in_flight, 3);
		if (k == 1) {
			b.op = CN_OP_BCAST;
			b.algorithm = "binomial";
			b.root = 1;
		}
		engine_collective(w, &b, 3 * CN_MS); /* a probe comes after 5 */
		post_as(w, other[0], 0, 1, &a);
		engine_run(w, SECOND);
	}
	engine_leave_all(w);
	for (uint32_t r = 0; r < 5; r++) {
		cn_team_leave(other[r], w->now, false);
	}
	engine_fixture_free(w);
}

/* Frames do not wait for the copies within their node. */
static void engine__frames_go_before_copies(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	const struct cn_coll_args a = engine_alltoall(PAYLOAD);
	const uint8_t *send, *recv;
	struct cn_frame out;
	struct cn_err err;

	(void)state;
	engine_join_all(w, 1, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	send = w->rank[0].send[0];
	recv = w->rank[0].recv[0];
	do {
		assert_true(cn_engine_output(w->engines[0], w->now, &out));
	} while (out.payload != send + PAYLOAD);
	assert_memory_not_equal(recv, send, PAYLOAD);
	assert_true(cn_engine_deadline(w->engines[0]) <= w->now);
	cn_engine_expire(w->engines[0], w->now);
	assert_memory_equal(recv, send, PAYLOAD);
	engine_wait_all(w, 0, SECOND); /* the frame is lost, and sent again */
	engine_leave_all(w);
	engine_fixture_free(w);
}

static void engine__too_many_operations(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(10);
	struct cn_err err = { 0 };

	(void)state;
	engine_join_all(w, 1, false, "job");
	for (int k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		assert_int_equal(engine_post(w, 0, k, &a, &err), COLLNET_OK);
	}
	a.send = a.recv = w->rank[0].recv[0];
	assert_int_equal(cn_coll_post(w->rank[0].member, w->now, &a, NULL, &err), COLLNET_ELIMIT);
	engine_stop_node(w, 0); /* each operation completes once */
	for (int k = 0; k < COLLNET_OUTSTANDING_MAX; k++) {
		assert_int_equal(w->rank[0].op[k].calls, 1);
		assert_int_equal(w->rank[0].op[k].status, COLLNET_EDAEMON);
	}
	engine_fixture_free(w);
}

/* The topology's rate counts, and where it has none that of the interface. */
static void engine__link_rate(void **state)
{
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);
	struct cn_engine *e = w->engines[0];
	struct collnet_stats s = { .size = sizeof(s) };

	(void)state;
	snprintf(e->config.node.name, sizeof(e->config.node.name), "h0");
	e->config.rate = 10000000000;
	for (uint64_t rate = 0; rate <= 20000000; rate += 20000000) {
		struct cn_topo *t;

		assert_int_equal(cn_topo_shape("2", rate, 43, rate, 45, &t, NULL), COLLNET_OK);
		cn_engine_reconfigure(e, t, COLLNET_WINDOW_OFF, 0);
		cn_engine_stats(e, &s, false);
		assert_int_equal(s.link_rate, rate != 0 ? rate : e->config.rate);
		cn_engine_reconfigure(e, NULL, COLLNET_WINDOW_OFF, 0);
		cn_engine_stats(e, &s, false);
		assert_int_equal(s.link_rate, e->config.rate);
		cn_topo_free(t);
	}
	engine_fixture_free(w);
}

/* Frames to one node in a row: one where the link sends single frames or W_g is small. */
static void engine__quantum(void **state)
{
	static const struct {
		uint32_t limit, own, quantum;
	} rows[] = {
		{ COLLNET_WINDOW_OFF, COLLNET_WINDOW_OFF, CN_SUPER_FRAME_MAX },
		{ COLLNET_WINDOW_OFF, 5, 1 },
		{ 5, COLLNET_WINDOW_OFF, 1 },
		{ COLLNET_WINDOW_OFF, 15, 1 },
		{ COLLNET_WINDOW_OFF, 21, 2 },
		{ 176, 400, 22 },
		{ 500, COLLNET_WINDOW_OFF, CN_SUPER_FRAME_MAX },
	};
	static const struct {
		uint64_t rate;
		uint32_t quantum, of_21; /* without a window; with one of 21, on a known network */
	} bursts[] = {
		{ 10000000, 1, 1 },
		{ 100000000, 4, 2 },
		{ 1000000000, 40, 8 },
		{ 2500000000, CN_SUPER_FRAME_MAX, 20 },
		{ 10000000000, CN_SUPER_FRAME_MAX, 21 },
		{ 0, CN_SUPER_FRAME_MAX, 21 },
	};
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);
	struct cn_engine *e = w->engines[0];
	struct cn_topo *known;

	(void)state;
	assert_int_equal(cn_topo_shape("2", 0, 43, 0, 45, &known, NULL), COLLNET_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cn_node_window(e->own.node)->limit = rows[i].limit;
		e->config.node.encapsulation = CN_ENCAPSULATION_RAW;
		assert_int_equal(cn_engine_quantum(e, rows[i].own), 1);
		e->config.node.encapsulation = CN_ENCAPSULATION_UDP;
		assert_int_equal(cn_engine_quantum(e, rows[i].own), rows[i].quantum);
	}
	for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		e->config.node.mtu = 1500;
		e->config.rate = bursts[i].rate;
		cn_engine_reconfigure(e, NULL, COLLNET_WINDOW_OFF, 0);
		assert_int_equal(cn_engine_quantum(e, COLLNET_WINDOW_OFF), bursts[i].quantum);
		assert_int_equal(cn_engine_quantum(e, 21), bursts[i].quantum < 2 ? 1 : 2);
		cn_engine_reconfigure(e, known, COLLNET_WINDOW_OFF, 0);
		assert_int_equal(cn_engine_quantum(e, 21), bursts[i].of_21);
	}
	engine_fixture_free(w);
	cn_topo_free(known);
}

/* Acknowledgements in ten gathers after one. */
static uint64_t acks_in_gathers(struct engine_fixture *w, uint64_t bytes)
{
	const struct cn_coll_args a = { .op = CN_OP_GATHER,
					.contention_aware = true,
					.window = COLLNET_WINDOW_AUTO,
					.bytes = bytes,
					.deadline = CN_NEVER };
	uint64_t before = 0;

	for (int i = 0; i <= 10; i++) {
		before = i == 1 ? engine_acks(w) : before;
		engine_collective(w, &a, SECOND);
	}
	return engine_acks(w) - before;
}

/*
 * The root's port of 43 frames has room for two from each of 15 nodes. The only frame of a gather
 * is acknowledged with that of the next one; of two frames, they are in each gather.
 */
static void engine__one_frame_is_acknowledged_later(void **state)
{
	struct engine_fixture *w = engine_fixture(16, "16", NULL);

	(void)state;
	engine_join_all(w, 1, false, "job");
	assert_int_equal(acks_in_gathers(w, 8), 10 / 2 * 15);
	assert_int_equal(acks_in_gathers(w, 2 * PAYLOAD), 10 * 15);
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* The frame of a barrier beside a gather closes the small window of the gather, which has no frame
 * left for it: neither requests an acknowledgement. The root calls last. */
static void engine__what_has_no_frames_left_requests_nothing(void **state)
{
	struct engine_fixture *w = engine_fixture(16, "16", NULL);
	const struct cn_coll_args gather = { .op = CN_OP_GATHER,
					     .contention_aware = true,
					     .window = COLLNET_WINDOW_AUTO,
					     .bytes = 8,
					     .deadline = CN_NEVER };
	struct cn_coll_args barrier = gather;
	uint64_t before;

	(void)state;
	barrier.op = CN_OP_BARRIER;
	barrier.bytes = 0;
	engine_join_all(w, 1, false, "job");
	engine_collective(w, &barrier, SECOND);
	before = engine_acks(w);
	for (uint32_t r = w->ranks; r-- > 0;) {
		assert_int_equal(engine_post(w, r, 0, &gather, NULL), COLLNET_OK);
		assert_int_equal(engine_post(w, r, 1, &barrier, NULL), COLLNET_OK);
		if (r == 1) {
			engine_run(w, CN_US);
			assert_int_equal(engine_acks(w), before);
		}
	}
	engine_wait_all(w, 0, SECOND);
	engine_wait_all(w, 1, SECOND);
	engine_leave_all(w);
	engine_fixture_free(w);
}

static void little_for_schedules(struct cn_engine_config *c)
{
	c->max_schedules =
		300000; /* bytes; an all-to-all of 3 ranks on 17 nodes each takes 13,000 */
}

/* Operations whose schedules would be too much together are refused, one by one they are not; and
 * so are those of other sizes, whose schedules are kept for calls alike. */
static void engine__bounds_schedules(void **state)
{
	struct engine_fixture *w = engine_fixture(17, NULL, little_for_schedules);
	struct cn_coll_args a = engine_alltoall(1);
	struct cn_err err = { 0 };
	int k = 0;

	(void)state;
	engine_join_all(w, 3, false, "job");
	while (k < COLLNET_OUTSTANDING_MAX && engine_post(w, 0, k, &a, &err) == COLLNET_OK) {
		a = engine_alltoall((uint64_t)++k + 1);
	}
	assert_uint_in_range(k, 2, COLLNET_OUTSTANDING_MAX - 1);
	assert_int_equal(err.code, COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "schedules"));
	assert_true(w->engines[0]->scheduled <= 300000);
	engine_leave_all(w);
	assert_int_equal(w->engines[0]->scheduled, 0);
	engine_join_all(w, 3, false, "next");
	for (k = 0; k < 2 * COLLNET_OUTSTANDING_MAX; k++) {
		a = engine_alltoall((uint64_t)k + 1);
		engine_collective(w, &a, SECOND);
	}
	assert_true(w->engines[0]->scheduled <= 300000);
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* So are persistent operations whose schedules are made later, but which take memory already. */
static void engine__bounds_persistent_operations(void **state)
{
	struct engine_fixture *w = engine_fixture(17, NULL, little_for_schedules);
	struct cn_block blocks[RANKS] = { { .at = 0 } };
	const struct cn_coll_args a = { .op = CN_OP_ALLTOALLV,
					.blocks = { .send = blocks, .recv = blocks } };
	struct cn_prepared *p[1000];
	struct cn_err err = { 0 };
	uint64_t one, full;
	uint32_t n = 0;

	(void)state;
	engine_join_all(w, 3, false, "job");
	while (n < 1000 && cn_coll_prepare(w->rank[0].member, &a, &p[n], &err) == COLLNET_OK) {
		n++;
	}
	assert_uint_in_range(n, 2, 999);
	assert_int_equal(err.code, COLLNET_ELIMIT);
	full = w->engines[0]->scheduled;
	assert_true(full <= 300000);
	/* What is released is free for others. */
	cn_prepared_release(p[--n]);
	one = full - w->engines[0]->scheduled;
	assert_true(one > 0 && full + one > 300000);
	assert_int_equal(cn_coll_prepare(w->rank[0].member, &a, &p[n], &err), COLLNET_OK);
	assert_int_equal(w->engines[0]->scheduled, full);
	for (uint32_t i = 0; i <= n; i++) {
		cn_prepared_release(p[i]);
	}
	assert_int_equal(w->engines[0]->scheduled, 0);
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* A rank alone calls, and it ends. */
static void call_alone(struct engine_fixture *w, uint32_t rank, const struct cn_coll_args *a)
{
	struct cn_err err = { 0 };

	if (engine_post(w, rank, 0, a, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	while (w->rank[rank].op[0].calls == 0 && engine_step(w, w->now + SECOND)) {
	}
	if (w->rank[rank].op[0].calls == 0 || w->rank[rank].op[0].status != COLLNET_OK) {
		fail_msg("rank %u: %s", rank, w->rank[rank].op[0].text);
	}
}

/* Operations without frames end on one node, so many that numbers on the wire wrap, before the
 * other one calls. */
static void engine__ranks_far_apart(void **state)
{
	struct engine_fixture *w = engine_fixture(2, NULL, NULL);
	struct cn_coll_args empty = { .op = CN_OP_ALLREDUCE,
				      .window = COLLNET_WINDOW_AUTO,
				      .deadline = CN_NEVER },
			    bcast = { .op = CN_OP_BCAST,
				      .window = COLLNET_WINDOW_AUTO,
				      .bytes = 100,
				      .deadline = CN_NEVER };
	struct cn_err err = { 0 };

	(void)state;
	engine_join_all(w, 1, false, "apart");
	w->number++;
	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t i = 0; i < 5000; i++) {
			call_alone(w, r, &empty);
		}
		assert_int_equal(engine_post(w, r, 0, &bcast, &err), COLLNET_OK);
		engine_run(w, SECOND);
	}
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(w->rank[r].op[0].calls, 1);
		engine_check(w, r, 0, &bcast);
	}
	engine_collective(w, &bcast, SECOND);
	engine_leave_all(w);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine__every_algorithm_one_rank_a_node),
		cmocka_unit_test(engine__every_algorithm_on_a_tree),
		cmocka_unit_test(engine__every_algorithm_many_ranks_a_node),
		cmocka_unit_test(engine__every_size),
		cmocka_unit_test(engine__window_of_the_topology),
		cmocka_unit_test(engine__selects_once_for_calls_alike),
		cmocka_unit_test(engine__window_holds_with_losses),
		cmocka_unit_test(engine__early_frames_and_many_operations),
		cmocka_unit_test(engine__window_closed_by_another_job),
		cmocka_unit_test(engine__frames_go_before_copies),
		cmocka_unit_test(engine__too_many_operations),
		cmocka_unit_test(engine__link_rate),
		cmocka_unit_test(engine__quantum),
		cmocka_unit_test(engine__one_frame_is_acknowledged_later),
		cmocka_unit_test(engine__what_has_no_frames_left_requests_nothing),
		cmocka_unit_test(engine__bounds_schedules),
		cmocka_unit_test(engine__bounds_persistent_operations),
		cmocka_unit_test(engine__ranks_far_apart),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
