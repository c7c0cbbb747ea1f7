/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions: the planners on the interpreter, in the order of the ranks too, and the engine on the
 * hub for 1 to 17 ranks and several ranks per node, with ranks that combine at once or later, and
 * with frames lost, so that what was sent must not change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "coll/combine.h"
#include "coll/op.h"
#include "coll/engine_state.h"
#include "engine_fixture.h"
#include "reduction.h"
#include "sched/reduction.h"
#include "sched_fixture.h"

static uint64_t seed = SEED;

/* ---- planners --------------------------------------------------------------------------- */

static void plan__in_the_order_of_the_ranks(void **state)
{
	static const uint64_t sizes[] = { 0, 2, 30, 2 * 701 };
	size_t rows;
	const struct cn_algorithm *a = cn_algorithms(&rows);

	(void)state;
	for (size_t k = 0; k < rows; k++) {
		for (uint32_t n = 1; cn_op_reduces(a[k].op) && n <= W_NODES; n++) {
			for (int i = 0; i < 4; i++) {
				struct cn_plan p = { .op = a[k].op,
						     .algorithm = a[k].id,
						     .bytes = sizes[(n + (uint32_t)i) % 4],
						     .element = 2,
						     .ordered = 1 };
				struct sched_fixture *w;
				struct w_team t;

				w_team_init(&t, n, (enum w_placement)i, &seed);
				if (!reduction_takes(&a[k], true, p.bytes, t.layout.nranks)) {
					w_team_done(&t);
					continue;
				}
				p.root = (uint32_t)(cn_random(&seed) % t.layout.nranks);
				w = w_new(&t, &p);
				w_check(w, false);
				w_run(w, &seed, 50, W_NOBODY);
				for (uint32_t b = 0; b < n; b++) {
					assert_true(w_complete(w, b));
				}
				w_check_data(w);
				w_free(w);
				w_team_done(&t);
			}
		}
	}
}

/* On 3x2, a node's messages go to the one switch and the other in turn. */
static void plan__exchange_goes_by_the_numbers(void **state)
{
	static const uint32_t logical[] = { 0, 2, 4, 1, 3, 5 };
	struct cn_plan p = { .op = CN_OP_REDUCE_SCATTER,
			     .algorithm = cn_algorithm_find(CN_OP_REDUCE_SCATTER, "exchange")->id,
			     .contention_aware = 1,
			     .bytes = 8 };
	struct cn_sched s = { 0 };
	struct cn_err err = { 0 };
	struct w_team t;

	(void)state;
	w_team_init(&t, 6, W_ONE, &seed);
	t.layout.logical = logical;
	for (uint32_t me = 0; me < 6; me++) {
		uint32_t last = me, sends = 0;

		assert_int_equal(cn_sched_plan(&t.layout, &p, me, &s, &err), COLLNET_OK);
		for (uint32_t i = 0; i < s.n; i++) {
			if (s.actions[i].kind == CN_ACT_SEND) {
				assert_int_not_equal(s.actions[i].peer / 3, last / 3);
				last = s.actions[i].peer;
				sends++;
			}
		}
		assert_int_equal(sends, 5);
	}
	cn_sched_reset(&s);
	w_team_done(&t);
}

/* Blocks that are halved: in each phase a node sends to one other node and receives from one, and
 * some node does. */
static void plan__halving_by_phases(void **state)
{
	static const enum cn_op_kind ops[] = { CN_OP_ALLREDUCE, CN_OP_REDUCE };

	(void)state;
	for (uint32_t n = 2; n <= W_NODES; n++) {
		for (uint32_t k = 0; k < 2; k++) {
			const struct cn_plan p = {
				.op = ops[k],
				.algorithm = cn_algorithm_find(ops[k], "halving")->id,
				.bytes = CN_REDUCTION_SMALL,
				.element = 8,
				.root = 5 * n / 7,
			};
			struct sched_fixture *w;
			uint32_t used = 0, last = 0;
			struct w_team t;

			w_team_init(&t, n, W_ONE, &seed);
			w = w_new(&t, &p);
			w_check(w, true);
			for (uint32_t b = 0; b < n; b++) {
				const struct cn_sched *s = w_sched(w, b);

				for (uint32_t i = 0; i < s->n; i++) {
					if (s->actions[i].kind == CN_ACT_SEND) {
						assert_uint_in_range(s->actions[i].phase, 0, 31);
						used |= 1u << s->actions[i].phase;
						last = s->actions[i].phase > last
							       ? s->actions[i].phase
							       : last;
					}
				}
			}
			assert_int_equal(used, (uint32_t)(((uint64_t)2 << last) - 1));
			w_free(w);
			w_team_done(&t);
		}
	}
}

static void plan__refused(void **state)
{
	struct cn_plan p = { .op = CN_OP_ALLREDUCE, .bytes = 8, .element = 2, .ordered = 1 };
	struct cn_sched s = { 0 };
	struct cn_err err = { 0 };
	struct w_team t;

	(void)state;
	w_team_init(&t, 3, W_TWO, &seed);
	p.algorithm = cn_algorithm_find(CN_OP_ALLREDUCE, "ring")->id;
	assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "commutative"));
	p.ordered = 0;
	assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_OK);
	p.bytes = 7;
	assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_EINVAL);
	p.algorithm = cn_algorithm_find(CN_OP_ALLREDUCE, "doubling")->id;
	p.bytes = CN_REDUCTION_SMALL + 2;
	assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "65536"));
	p.algorithm = cn_algorithm_find(CN_OP_ALLREDUCE, "allgather")->id;
	p.bytes = CN_REDUCTION_SMALL / t.layout.nranks / 2 * 2;
	assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_OK);
	p.bytes += 2;
	assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "together"));
	cn_sched_reset(&s);
	w_team_done(&t);
}

/* ---- the engine ------------------------------------------------------------------------- */

static void every_reduction(struct engine_fixture *w, const uint64_t *sizes, int nsizes,
			    cn_time within)
{
	size_t rows;
	const struct cn_algorithm *a = cn_algorithms(&rows);

	for (size_t k = 0; k < rows; k++) {
		for (int s = 0; cn_op_reduces(a[k].op) && s < nsizes; s++) {
			struct cn_coll_args args = engine_alltoall(sizes[s]);

			args.op = a[k].op;
			args.algorithm = a[k].name;
			args.root = a[k].op == CN_OP_REDUCE
					    ? (uint32_t)(cn_random(&seed) % w->ranks)
					    : 0;
			if (reduction_takes(&a[k], w->ordered, sizes[s], w->ranks)) {
				engine_collective(w, &args, within);
			}
		}
	}
}

static void engine__every_team(void **state)
{
	static const uint64_t sizes[] = { 2, 8, 1000, 3 * PAYLOAD + 4 };

	(void)state;
	for (uint32_t nodes = 1; nodes <= NODES; nodes++) {
		for (uint32_t way = 0; way < 4; way++) {
			const uint32_t a_node = nodes > 6 || way < 2 ? 1 : way;
			struct engine_fixture *w;

			if (nodes > 6 && way % 2 != nodes % 2) {
				continue;
			}
			w = engine_fixture(nodes, NULL, NULL);
			w->later = way % 2 != 0;
			w->ordered = (nodes + way) % 3 == 0;
			engine_join_all(w, a_node, nodes % 2 != 0, "job");
			every_reduction(w, sizes, 4, SECOND);
			engine_leave_all(w);
			engine_fixture_free(w);
		}
	}
}

/* Two ranks per node in both placements, either order of combination. */
static void engine__two_ranks_per_node(void **state)
{
	static const uint64_t sizes[] = { 4, 70002 };

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct engine_fixture *w = engine_fixture(4, i & 1 ? "2x2" : NULL, NULL);

		w->later = (i & 2) != 0;
		w->ordered = (i & 4) != 0;
		engine_join_all(w, 2, i % 3 == 0, "job");
		every_reduction(w, sizes, 2, 10 * SECOND);
		engine_leave_all(w);
		engine_fixture_free(w);
	}
}

static void engine__lost_frames(void **state)
{
	static const uint64_t sizes[] = { 8, 5000, 40000 };

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		struct engine_fixture *w = engine_fixture(3 + i, NULL, NULL);
		struct cn_hub_faults faults = {
			.seed = SEED + i, .loss = 50000, .duplicate = 10000, .reorder = 10000
		};

		w->later = i % 2 != 0;
		w->ordered = i % 3 == 0;
		engine_join_all(w, 1 + i % 2, false, "job");
		cn_hub_set_faults(w->hub, &faults);
		every_reduction(w, sizes, 3, 200 * SECOND);
		engine_fixture_free(w);
	}
}

/* Several at once: pieces of each, and no piece of one that has failed is missed. */
static void engine__outstanding(void **state)
{
	struct engine_fixture *w = engine_fixture(3, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(20000);
	struct cn_err err = { 0 };

	(void)state;
	a.op = CN_OP_ALLREDUCE;
	a.algorithm = "ring";
	w->later = true;
	engine_join_all(w, 2, false, "job");
	for (int k = 0; k < 8; k++) {
		for (uint32_t r = 0; r < w->ranks; r++) {
			assert_int_equal(engine_post(w, r, k, &a, &err), COLLNET_OK);
		}
	}
	for (int k = 0; k < 8; k++) {
		engine_wait_all(w, k, SECOND);
		for (uint32_t r = 0; r < w->ranks; r++) {
			engine_check(w, r, k, &a);
		}
	}
	/* A rank leaves while others have pieces: they fail, and what comes late is ignored. */
	for (uint32_t r = 1; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	for (int i = 0; i < 20; i++) {
		engine_step(w, w->now + SECOND);
	}
	engine_leave(w, 0, true);
	engine_assert_all_fail(w, UINT32_MAX, COLLNET_ERANK, NULL, SECOND);
	for (uint32_t r = 1; r < w->ranks; r++) {
		cn_coll_combined(&w->rank[r].op[0].reducer);
	}
	engine_run(w, SECOND);
	engine_fixture_free(w);
}

/* Pieces that all ranks together are given to combine; *last: those after which nothing remains. */
static uint32_t pieces_of(uint32_t nodes, uint32_t local, enum cn_op_kind op, const char *algorithm,
			  uint32_t *last)
{
	struct engine_fixture *w = engine_fixture(nodes, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(24);
	struct cn_err err = { 0 };
	uint32_t pieces = 0;

	*last = 0;
	a.op = op;
	a.algorithm = algorithm;
	w->ordered = nodes % 2 != 0;
	w->later = true;
	engine_join_all(w, local, false, "job");
	for (uint32_t r = 0; r < w->ranks; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 0; r < w->ranks; r++) {
		engine_check(w, r, 0, &a);
		pieces += w->rank[r].op[0].pieces;
		*last += w->rank[r].op[0].last;
	}
	engine_leave_all(w);
	engine_fixture_free(w);
	return pieces;
}

/*
 * Blocks that have all come are combined as one piece, by the first rank of every node. If others
 * are further and their blocks come before this node's has left, it leaves first: then the piece is
 * the operation's end, and the rank's answer is not waited for.
 */
static void engine__one_piece(void **state)
{
	uint32_t last;

	(void)state;
	for (uint32_t nodes = 2; nodes <= NODES; nodes++) {
		for (uint32_t local = 1; local <= 2 && local * nodes <= RANKS; local++) {
			assert_int_equal(pieces_of(nodes, local, CN_OP_ALLREDUCE, "allgather",
						   &last),
					 nodes);
			assert_int_equal(last, local == 1 ? nodes : 0);
		}
		assert_int_equal(pieces_of(nodes, 1, CN_OP_REDUCE_SCATTER, "exchange", &last),
				 nodes);
		assert_int_equal(last, nodes);
	}
}

/* Bytes that have come to the ranks that another one combines for. Their memory was spoilt. */
static uint64_t came(const struct engine_fixture *w, uint8_t *const *want, uint64_t bytes)
{
	uint64_t sum = 0;

	for (uint32_t r = 1; r < w->ranks; r++) {
		const struct engine_waiter *x = &w->rank[r].op[0];
		const uint8_t *recv = x->calls > 0 ? x->got : x->recv;
		uint64_t n = 0;

		while (n < bytes && recv[n] == want[r][n]) {
			n++;
		}
		sum += n;
	}
	return sum;
}

/* What a rank combines in one piece is copied to the other ranks in turns. */
static void copies_in_turns(const struct cn_algorithm *by, bool ordered)
{
	const uint64_t bytes = 500000, turn = 65536;
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(bytes);
	uint64_t before = 0, now = 0;
	struct cn_err err = { 0 };
	uint8_t *want[4], *send[4];

	a.op = by->op;
	a.algorithm = by->name;
	w->later = true;
	w->ordered = ordered;
	engine_join_all(w, 4, false, "job");
	for (uint32_t r = 0; r < 4; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
		send[r] = w->rank[r].send[0];
	}
	for (uint32_t r = 0; r < 4; r++) {
		want[r] = malloc(bytes);
		assert_non_null(want[r]);
		reduction_expect(a.op, ordered, r, 4, bytes, send, want[r]);
		for (uint64_t i = 0; r > 0 && i < bytes; i++) {
			w->rank[r].recv[0][i] = (uint8_t)~want[r][i];
		}
	}
	for (uint32_t turns = 0; now < 3 * bytes; turns++, before = now) {
		engine_step(w, w->now + SECOND);
		now = came(w, want, bytes);
		assert_uint_in_range(now - before, 0, turn);
		assert_uint_in_range(turns, 0, 100);
	}
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 0; r < 4; r++) {
		engine_check(w, r, 0, &a);
		free(want[r]);
	}
	engine_leave_all(w);
	engine_fixture_free(w);
}

static void engine__copies_results_in_turns(void **state)
{
	size_t rows;
	const struct cn_algorithm *a = cn_algorithms(&rows);

	(void)state;
	for (size_t k = 0; k < rows; k++) {
		for (int ordered = 0; ordered < 2; ordered++) {
			/* Of others each rank combines its own result, or the root does. */
			if ((a[k].op == CN_OP_ALLREDUCE || a[k].op == CN_OP_SCAN) &&
			    reduction_takes(&a[k], ordered != 0, 500000, 4)) {
				copies_in_turns(&a[k], ordered != 0);
			}
		}
	}
}

static void post__nobody_to_combine(void **state)
{
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(4);
	struct cn_err err = { 0 };
	uint8_t memory[4];

	(void)state;
	engine_join_all(w, 1, false, "job");
	a.op = CN_OP_ALLREDUCE;
	a.algorithm = NULL;
	a.send = a.recv = memory;
	assert_int_equal(cn_coll_post(w->rank[0].member, w->now, &a, NULL, &err), COLLNET_EINVAL);
	engine_fixture_free(w);
}

/* A piece of a long block has whole elements. */
static void post__pieces_are_whole_elements(void **state)
{
	struct engine_fixture *w = engine_fixture(1, NULL, NULL);
	struct cn_coll_args a = engine_alltoall(12);
	struct cn_reducer reducer = { .combine = NULL };
	struct cn_err err = { 0 };
	struct engine_waiter x = { 0 };
	uint8_t memory[12];

	(void)state;
	engine_join_all(w, 2, false, "job");
	a.op = CN_OP_ALLREDUCE;
	a.algorithm = NULL;
	a.element = 12;
	a.send = a.recv = memory;
	a.reducer = &reducer;
	assert_int_equal(cn_coll_post(w->rank[0].member, w->now, &a, engine_begin_wait(w, &x),
				      &err),
			 COLLNET_OK);
	assert_int_equal(reducer.op->combine_max % 12, 0);
	engine_fixture_free(w);
}

/* One rank says that its function is not commutative: schedules differ, so nobody gets a result. */
static void engine__different_orders_are_a_mismatch(void **state)
{
	struct cn_coll_args a = { .op = CN_OP_ALLREDUCE,
				  .bytes = 32,
				  .window = COLLNET_WINDOW_AUTO };

	(void)state;
	for (uint32_t odd = 0; odd < 4; odd++) {
		struct engine_fixture *w = engine_fixture(4, NULL, NULL);
		struct cn_err err = { 0 };

		a.algorithm = "doubling";
		a.deadline = w->now + 5 * SECOND;
		engine_join_all(w, 1, false, "job");
		for (uint32_t r = 0; r < 4; r++) {
			w->ordered = r == odd;
			assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
		}
		engine_wait_all(w, 0, SECOND);
		for (uint32_t r = 0; r < 4; r++) {
			assert_int_equal(w->rank[r].op[0].status, COLLNET_EMISMATCH);
			assert_non_null(strstr(w->rank[r].op[0].text,
					       "commutative on one of them only; every rank"));
		}
		engine_leave_all(w);
		engine_fixture_free(w);
	}
}

/* What was selected for a call is not for one whose function is not commutative. */
static void engine__selects_by_order(void **state)
{
	struct engine_fixture *w = engine_fixture(4, "4", NULL);
	struct cn_coll_args a = engine_alltoall(120000);

	(void)state;
	engine_join_all(w, 1, false, "job");
	a.op = CN_OP_ALLREDUCE;
	a.algorithm = NULL;
	for (uint32_t i = 0; i < 6; i++) {
		w->ordered = i % 2 != 0;
		engine_collective(w, &a, SECOND);
	}
	assert_true(w->engines[0]->selections > 1);
	engine_leave_all(w);
	engine_fixture_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan__in_the_order_of_the_ranks),
		cmocka_unit_test(plan__exchange_goes_by_the_numbers),
		cmocka_unit_test(plan__halving_by_phases),
		cmocka_unit_test(plan__refused),
		cmocka_unit_test(engine__every_team),
		cmocka_unit_test(engine__two_ranks_per_node),
		cmocka_unit_test(engine__lost_frames),
		cmocka_unit_test(engine__outstanding),
		cmocka_unit_test(engine__one_piece),
		cmocka_unit_test(engine__copies_results_in_turns),
		cmocka_unit_test(engine__different_orders_are_a_mismatch),
		cmocka_unit_test(engine__selects_by_order),
		cmocka_unit_test(post__nobody_to_combine),
		cmocka_unit_test(post__pieces_are_whole_elements),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
