/* SPDX-License-Identifier: BSD-2-Clause */
/* Schedules of every algorithm: sound on paper, and right when carried out (sched_fixture.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduction.h"
#include "sched_fixture.h"

static uint64_t seed = 20010519;

static const uint64_t sizes[] = { 0, 1, 5, 3000 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static struct cn_plan plan_of(const char *name, enum cn_op_kind op, uint64_t bytes)
{
	return (struct cn_plan){
		.op = op,
		.algorithm = cn_algorithm_find(op, name)->id,
		.permutation = CN_PERM_AUTO,
		.bytes = bytes,
	};
}

static void run_and_check(const struct w_team *t, const struct cn_plan *p, const char *name)
{
	static const uint32_t eager[] = { 0, 50, 100 };
	struct sched_fixture *w = w_new(t, p);
	uint64_t mood = cn_random(&seed);

	/* A scan's nodes are in a phase as often as they have ranks that follow one another. */
	w_check(w, strcmp(name, "linear") != 0 && p->op != CN_OP_SCAN && p->op != CN_OP_EXSCAN);
	w_run(w, &seed, eager[mood % 3], W_NOBODY);
	for (uint32_t b = 0; b < t->layout.nnodes; b++) {
		if (!w_complete(w, b)) {
			fail_msg("%s on %u nodes: node %u hangs", name, t->layout.nnodes, b);
		}
	}
	w_check_data(w);
	w_free(w);
}

/* LR2 exists where Theorem 2 says so, and says so where it does not. */
static bool exists(const struct w_team *t, const struct cn_plan *p, const char *name)
{
	struct cn_sched s = { 0 };
	struct cn_err err = { 0 };
	int rc = cn_sched_plan(&t->layout, p, 0, &s, &err);

	cn_sched_reset(&s);
	return !(rc == COLLNET_ETOPO && strcmp(name, "lr2") == 0);
}

/* Every permutation of one algorithm, for a team and size. */
static void check_team(const struct cn_algorithm *a, uint32_t n, enum w_placement where,
		       uint64_t size)
{
	for (uint8_t k = 0; k <= CN_PERM_EDGE_COLOUR; k++) {
		struct cn_plan p = plan_of(a->name, a->op, size);
		struct w_team t;

		if ((k == CN_PERM_XOR && (n & (n - 1))) ||
		    (k != 0 && (a->op != CN_OP_ALLTOALL || a->needs_tree))) {
			continue;
		}
		w_team_init(&t, n, where, &seed);
		p.permutation = k;
		p.contention_aware = cn_random(&seed) & 1;
		p.root = (uint32_t)(cn_random(&seed) % t.layout.nranks);
		p.segment = cn_random(&seed) & 1 ? 0 : 1 + cn_random(&seed) % 1000;
		if (exists(&t, &p, a->name) &&
		    (!cn_op_reduces(a->op) || reduction_takes(a, false, size, t.layout.nranks))) {
			run_and_check(&t, &p, a->name);
		}
		w_team_done(&t);
	}
}

/* Every algorithm, number of nodes, placement and size. */
static void cn_algorithms__right_everywhere(void **state)
{
	size_t count;
	const struct cn_algorithm *a = cn_algorithms(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		for (uint32_t n = 1; n <= W_NODES; n++) {
			for (int where = 0; where < W_PLACEMENTS; where++) {
				for (size_t z = 0; z < NSIZES; z++) {
					/* Many ranks: one placement a size, for the time. */
					if (n > 5 && (uint32_t)where != (n + z) % W_PLACEMENTS) {
						continue;
					}
					check_team(&a[i], n, (enum w_placement)where, sizes[z]);
				}
			}
		}
	}
}

/* While one node has not come, nobody leaves, whatever the order of events. */
static void holds_everybody(const char *algorithm)
{
	for (uint32_t n = 2; n <= W_NODES; n++) {
		struct cn_plan p = plan_of(algorithm, CN_OP_BARRIER, 0);
		struct w_team t;

		w_team_init(&t, n, W_ONE, &seed);
		for (uint32_t frozen = 0; frozen < n; frozen++) {
			for (uint32_t eager = 0; eager <= 100; eager += 50) {
				struct sched_fixture *w = w_new(&t, &p);

				w_run(w, &seed, eager, frozen);
				for (uint32_t b = 0; b < n; b++) {
					assert_false(w_complete(w, b));
				}
				w_free(w);
			}
		}
		w_team_done(&t);
	}
}

static void cn_plan_barrier__holds_everybody(void **state)
{
	(void)state;
	holds_everybody("dissemination");
	holds_everybody("doubling");
}

static void cn_plan_barrier_dissemination__rounds(void **state)
{
	static const uint32_t want[] = { 0, 0, 1, 2, 2, 3, 3, 3, 3, 4 };

	(void)state;
	for (uint32_t n = 1; n < 10; n++) {
		struct cn_plan p = plan_of("dissemination", CN_OP_BARRIER, 0);
		struct cn_sched s = { 0 };
		struct w_team t;

		w_team_init(&t, n, W_TWO, &seed);
		assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, NULL), COLLNET_OK);
		assert_int_equal(s.phases, want[n]);
		assert_int_equal(s.n, 2 * want[n]);
		cn_sched_reset(&s);
		w_team_done(&t);
	}
}

/* Messages of all nodes, and phases: those of a power of two exchange; others have one each way. */
static void cn_plan_barrier_doubling__messages(void **state)
{
	static const uint32_t phases[] = { 0, 0, 1, 3, 2, 4, 4, 4, 3, 5 },
			      messages[] = { 0, 0, 2, 4, 8, 10, 12, 14, 24, 26 };

	(void)state;
	for (uint32_t n = 1; n < 10; n++) {
		struct cn_plan p = plan_of("doubling", CN_OP_BARRIER, 0);
		uint32_t actions = 0;
		struct w_team t;

		w_team_init(&t, n, W_TWO, &seed);
		for (uint32_t me = 0; me < n; me++) {
			struct cn_sched s = { 0 };

			assert_int_equal(cn_sched_plan(&t.layout, &p, me, &s, NULL), COLLNET_OK);
			assert_int_equal(s.phases, phases[n]);
			actions += s.n;
			cn_sched_reset(&s);
		}
		assert_int_equal(actions, 2 * messages[n]);
		w_team_done(&t);
	}
}

/* The sends name destinations in the order of the permutation, on the logical numbers if asked. */
static void cn_plan_alltoall_shuffle__permutation_order(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= W_NODES; n++) {
		for (uint8_t aware = 0; aware < 2; aware++) {
			struct cn_plan p = plan_of("shuffle", CN_OP_ALLTOALL, 5);
			enum cn_permutation kind;
			struct cn_sched s = { 0 };
			struct w_team t;

			w_team_init(&t, n, W_ONE, &seed);
			p.contention_aware = aware;
			assert_int_equal(cn_perm_resolve(CN_PERM_AUTO, n, &kind, NULL), 0);
			for (uint32_t me = 0; me < n; me++) {
				uint32_t step = 1;

				assert_int_equal(cn_sched_plan(&t.layout, &p, me, &s, NULL), 0);
				assert_int_equal(s.order, CN_ORDER_INTERLEAVED);
				for (uint32_t i = 0; i < s.n; i++) {
					const struct cn_action *a = &s.actions[i];
					uint32_t mine = aware ? t.logical[me] : me, to;

					assert_int_equal(a->dep, CN_DEP_NONE);
					if (a->kind != CN_ACT_SEND) {
						continue;
					}
					while (cn_perm_to(kind, n, mine, step) == CN_IDLE) {
						step++;
					}
					to = cn_perm_to(kind, n, mine, step);
					assert_int_equal(aware ? t.logical[a->peer] : a->peer, to);
					assert_int_equal(a->phase, step - 1);
					step++;
				}
			}
			cn_sched_reset(&s);
			w_team_done(&t);
		}
	}
}

/* Every send waits for all that came in the rounds before; rounds without a receive are skipped. */
static void cn_plan_alltoall_pairwise__rounds_wait(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= W_NODES; n++) {
		struct cn_plan p = plan_of("pairwise", CN_OP_ALLTOALL, 5);
		struct cn_sched s = { 0 };
		struct w_team t;

		w_team_init(&t, n, W_UNEVEN, &seed);
		for (uint32_t me = 0; me < n; me++) {
			uint32_t last_recv = UINT32_MAX, barrier = UINT32_MAX, phase = UINT32_MAX;

			assert_int_equal(cn_sched_plan(&t.layout, &p, me, &s, NULL), 0);
			assert_int_equal(s.order, CN_ORDER_IN_TURN);
			assert_int_equal(s.phases, n % 2 ? n : n - 1); /* edge-colour */
			for (uint32_t i = 0; i < s.n; i++) {
				const struct cn_action *a = &s.actions[i];

				if (a->kind == CN_ACT_COPY) {
					continue;
				}
				if (a->phase != phase) {
					phase = a->phase;
					barrier = last_recv;
				}
				if (a->kind == CN_ACT_RECV) {
					last_recv = i;
				} else if (barrier == UINT32_MAX) {
					assert_int_equal(a->dep, CN_DEP_NONE);
				} else {
					assert_int_equal(a->dep, CN_DEP_COMPLETE);
					assert_int_equal(a->dep_on, barrier);
				}
			}
		}
		cn_sched_reset(&s);
		w_team_done(&t);
	}
}

static void cn_plan_alltoall_linear__rank_order_at_once(void **state)
{
	struct cn_plan p = plan_of("linear", CN_OP_ALLTOALL, 5);
	struct cn_sched s = { 0 };
	struct w_team t;

	(void)state;
	p.contention_aware = 1;
	w_team_init(&t, 5, W_ONE, &seed);
	for (uint32_t me = 0; me < 5; me++) {
		uint32_t next = 0;

		assert_int_equal(cn_sched_plan(&t.layout, &p, me, &s, NULL), 0);
		assert_int_equal(s.order, CN_ORDER_ANY);
		for (uint32_t i = 0; i < s.n; i++) {
			assert_int_equal(s.actions[i].dep, CN_DEP_NONE);
			if (s.actions[i].kind == CN_ACT_SEND) {
				next += next == me;
				assert_int_equal(s.actions[i].peer, next++);
			}
		}
	}
	cn_sched_reset(&s);
	w_team_done(&t);
}

/*
 * To the right only, in node order even where contention-aware numbers exist; forwarding streams.
 */
static void cn_plan_allgather_ring__forwards_as_it_comes(void **state)
{
	struct cn_plan p = plan_of("ring", CN_OP_ALLGATHER, 3000);
	struct cn_sched s = { 0 };
	struct w_team t;

	(void)state;
	p.contention_aware = 1;
	w_team_init(&t, 7, W_UNEVEN, &seed);
	for (uint32_t me = 0; me < 7; me++) {
		assert_int_equal(cn_sched_plan(&t.layout, &p, me, &s, NULL), 0);
		assert_int_equal(s.order, CN_ORDER_IN_TURN);
		assert_int_equal(s.phases, 6);
		for (uint32_t i = 0; i < s.n; i++) {
			const struct cn_action *a = &s.actions[i];

			if (a->kind == CN_ACT_SEND) {
				assert_int_equal(a->peer, (me + 1) % 7);
				assert_int_equal(a->dep, a->phase ? CN_DEP_STREAM : CN_DEP_NONE);
				assert_int_equal(a->dst.rank, t.ranks[t.first[a->peer]]);
			}
		}
	}
	cn_sched_reset(&s);
	w_team_done(&t);
}

/* A message per round; where the ranks of a range of nodes do not follow one another, or the range
 * goes beyond the last node, one per piece. */
static void cn_plan_allgather_doubling__few_messages(void **state)
{
	struct cn_plan p = plan_of("doubling", CN_OP_ALLGATHER, 8);
	struct cn_sched s = { 0 };

	(void)state;
	for (uint32_t nodes = 1; nodes <= W_NODES; nodes++) {
		for (int where = W_ONE; where <= W_ROUND; where++) {
			const uint32_t pieces = ((nodes & (nodes - 1)) != 0 ? 2u : 1u) *
						(where == W_ROUND ? 3u : 1u);
			uint32_t rounds = 0;
			struct w_team t;

			while (nodes > 1u << rounds) {
				rounds++;
			}
			w_team_init(&t, nodes, (enum w_placement)where, &seed);
			for (uint32_t me = 0; me < nodes; me++) {
				uint32_t sends = 0;

				assert_int_equal(cn_sched_plan(&t.layout, &p, me, &s, NULL), 0);
				assert_int_equal(s.phases, rounds);
				for (uint32_t i = 0; i < s.n; i++) {
					sends += s.actions[i].kind == CN_ACT_SEND;
				}
				assert_uint_in_range(sends, rounds, pieces * rounds);
			}
			w_team_done(&t);
		}
	}
	cn_sched_reset(&s);
}

/* ---- the door ----------------------------------------------------------------------------- */

static void cn_sched_plan__a_node_of_4096(void **state)
{
	static uint32_t same[COLLNET_RANKS_MAX + 1];
	struct cn_layout l = { .nranks = COLLNET_RANKS_MAX,
			       .nnodes = COLLNET_RANKS_MAX,
			       .node_of = same,
			       .first = same,
			       .ranks = same };
	struct cn_plan p = plan_of("shuffle", CN_OP_ALLTOALL, COLLNET_BLOCK_MAX);
	struct cn_sched s = { 0 };

	(void)state;
	for (uint32_t i = 0; i <= COLLNET_RANKS_MAX; i++) {
		same[i] = i;
	}
	assert_int_equal(cn_sched_plan(&l, &p, 4095, &s, NULL), COLLNET_OK);
	assert_int_equal(s.n, 1 + 2 * 4095);
	assert_true(s.cap <= 16384);
	assert_int_equal(s.actions[1].kind, CN_ACT_SEND);
	assert_int_equal(s.actions[1].src.offset, (uint64_t)s.actions[1].peer * COLLNET_BLOCK_MAX);
	cn_sched_reset(&s);
	assert_null(s.actions);
	assert_int_equal(s.n, 0);
}

static void cn_sched_plan__storage_is_used_again(void **state)
{
	struct cn_plan p = plan_of("shuffle", CN_OP_ALLTOALL, 5);
	struct cn_sched s = { 0 };
	struct cn_action *first;
	struct w_team t;
	uint32_t n;

	(void)state;
	w_team_init(&t, 16, W_ONE, &seed);
	assert_int_equal(cn_sched_plan(&t.layout, &p, 3, &s, NULL), COLLNET_OK);
	first = s.actions;
	n = s.n;
	assert_int_equal(cn_sched_plan(&t.layout, &p, 4, &s, NULL), COLLNET_OK);
	assert_ptr_equal(s.actions, first);
	assert_int_equal(s.n, n);
	cn_sched_reset(&s);
	w_team_done(&t);
}

/* One that is too long is refused before anything is planned; one that fits is not. */
static void cn_sched_plan__too_long(void **state)
{
	size_t count;
	const struct cn_algorithm *a = cn_algorithms(&count);
	struct w_team t;

	(void)state;
	w_team_init(&t, 5, W_UNEVEN, &seed);
	for (size_t i = 0; i < count; i++) {
		const struct cn_plan p = plan_of(a[i].name, a[i].op, 8);
		const uint32_t mine = t.layout.first[1];
		struct cn_sched all = { 0 }, s = { 0 };
		struct cn_err err;

		if (a[i].op != CN_OP_ALLTOALL) {
			continue;
		}
		assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &all, &err), COLLNET_OK);
		s.most = all.n;
		assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_OK);
		cn_sched_reset(&s);
		s.most = mine * (2 * t.layout.nranks - mine) - 1;
		assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_ELIMIT);
		assert_non_null(strstr(err.text, "too long"));
		assert_null(s.actions);
		cn_sched_reset(&all);
	}
	w_team_done(&t);
}

static void refuse(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, const char *why)
{
	struct cn_sched s = { 0 };
	struct cn_err err = { 0 };

	assert_int_equal(cn_sched_plan(l, p, me, &s, &err), COLLNET_EINVAL);
	assert_int_equal(err.code, COLLNET_EINVAL);
	if (!strstr(err.text, why)) {
		fail_msg("\"%s\" does not say \"%s\"", err.text, why);
	}
	assert_int_equal(s.n, 0);
	cn_sched_reset(&s);
}

static void cn_sched_plan__refuses(void **state)
{
	struct cn_plan good = plan_of("shuffle", CN_OP_ALLTOALL, 5), p;
	struct cn_layout l;
	struct w_team t;

	(void)state;
	w_team_init(&t, 6, W_ONE, &seed);
	refuse(&t.layout, &good, 6, "node 6");
	p = good;
	p.algorithm = 30;
	refuse(&t.layout, &p, 0, "id 30");
	p = good;
	p.op = CN_OP_BARRIER;
	refuse(&t.layout, &p, 0, "no algorithm");
	p = good;
	p.bytes = (uint64_t)COLLNET_BLOCK_MAX + 1;
	refuse(&t.layout, &p, 0, "longer than");
	p = good;
	p.permutation = CN_PERM_XOR;
	refuse(&t.layout, &p, 0, "power of two");
	p = good;
	p.permutation = 200;
	refuse(&t.layout, &p, 0, "permutation 200");
	p = plan_of("ring", CN_OP_ALLGATHER, 5);
	p.root = 6;
	refuse(&t.layout, &p, 0, "root 6");
	p = good;
	p.contention_aware = 1;
	t.logical[2] = t.logical[3];
	refuse(&t.layout, &p, 0, "no permutation");
	t.logical[2] = 6;
	refuse(&t.layout, &p, 0, "no permutation");
	l = t.layout;
	l.nranks = 0;
	refuse(&l, &good, 0, "0 ranks");
	t.first[2] = t.first[3];
	refuse(&t.layout, &good, 0, "no rank");
	w_team_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_algorithms__right_everywhere),
		cmocka_unit_test(cn_plan_barrier__holds_everybody),
		cmocka_unit_test(cn_plan_barrier_dissemination__rounds),
		cmocka_unit_test(cn_plan_barrier_doubling__messages),
		cmocka_unit_test(cn_plan_alltoall_shuffle__permutation_order),
		cmocka_unit_test(cn_plan_alltoall_pairwise__rounds_wait),
		cmocka_unit_test(cn_plan_alltoall_linear__rank_order_at_once),
		cmocka_unit_test(cn_plan_allgather_ring__forwards_as_it_comes),
		cmocka_unit_test(cn_plan_allgather_doubling__few_messages),
		cmocka_unit_test(cn_sched_plan__a_node_of_4096),
		cmocka_unit_test(cn_sched_plan__storage_is_used_again),
		cmocka_unit_test(cn_sched_plan__too_long),
		cmocka_unit_test(cn_sched_plan__refuses),
	};
	const char *given = getenv("TEST_SEED");

	if (given) {
		(void)cn_parse_uint(given, 0, UINT64_MAX, &seed);
	}
	printf("seed %llu (set TEST_SEED for another)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
