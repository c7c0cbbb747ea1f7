/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce-scatter of blocks that have sizes of their own: results, and nodes that disagree about the
 * sizes. Some node finds out at once, and no rank has a wrong result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/op.h"
#include "engine_fixture.h"
#include "reduction.h"
#include "tools/plan/random.h"

#define SMALL 8u /* ranks, at most */

static const char *const algorithms[] = { "exchange", "ring" };

/* The blocks as a node knows them. */
static struct cn_block known[NODES][SMALL];
static uint64_t seed = SEED;

static void set_sizes(const struct engine_fixture *w, const uint64_t *sizes)
{
	for (uint32_t k = 0; k < w->nodes; k++) {
		uint64_t at = 0;

		for (uint32_t r = 0; r < w->ranks; r++) {
			known[k][r] = (struct cn_block){ at, sizes[r] };
			at += sizes[r];
		}
	}
}

/* One node believes that `from` has some bytes less, and `to` more. */
static void shift(uint32_t node, uint32_t from, uint32_t to, uint64_t bytes)
{
	uint64_t at = 0;

	known[node][from].len -= bytes;
	known[node][to].len += bytes;
	for (uint32_t r = 0; r < SMALL; r++) {
		known[node][r].at = at;
		at += known[node][r].len;
	}
}

/* What a rank is to receive of what all send. */
static void expect(const struct engine_fixture *w, uint32_t rank, uint8_t *const *sent,
		   uint8_t *want)
{
	const struct cn_block *b = &known[w->rank[rank].node][rank];

	for (uint32_t r = 0; r < w->ranks && b->len > 0; r++) {
		if (r == 0) {
			memcpy(want, sent[r] + b->at, b->len);
		} else {
			reduction_combine(w->ordered, want, sent[r] + b->at, want, b->len);
		}
	}
}

/* All ranks call. Returns those with EMISMATCH; the others have the right result. */
static uint32_t call(struct engine_fixture *w, const char *algorithm)
{
	uint8_t *sent[SMALL];
	uint32_t found = 0;
	struct cn_err err;

	w->number++;
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct cn_block *b = known[w->rank[r].node];
		const struct cn_coll_args a = { .op = CN_OP_REDUCE_SCATTERV,
						.algorithm = algorithm,
						.window = COLLNET_WINDOW_AUTO,
						.blocks.send = b,
						.deadline = CN_NEVER };
		const uint64_t bytes = b[w->ranks - 1].at + b[w->ranks - 1].len;

		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
		sent[r] = malloc(bytes + 1);
		assert_non_null(sent[r]);
		memcpy(sent[r], w->rank[r].send[0], bytes);
	}
	engine_wait_all(w, 0, SECOND);
	for (uint32_t r = 0; r < w->ranks; r++) {
		const struct engine_waiter *x = &w->rank[r].op[0];
		const uint64_t bytes = known[w->rank[r].node][r].len;
		uint8_t *want = malloc(bytes + 1);

		assert_non_null(want);
		if (x->status == COLLNET_OK) {
			expect(w, r, sent, want);
			assert_int_equal(x->received, bytes);
			assert_memory_equal(x->got, want, bytes);
		} else {
			assert_int_equal(x->status, COLLNET_EMISMATCH);
			assert_non_null(strstr(x->text, "does not match"));
			found++;
		}
		free(want);
	}
	for (uint32_t r = 0; r < w->ranks; r++) {
		free(sent[r]);
	}
	return found;
}

static struct engine_fixture *begin(uint32_t nodes, uint32_t a_node, bool in_turn, bool ordered)
{
	struct engine_fixture *w = engine_fixture(nodes, NULL, NULL);

	engine_join_all(w, a_node, in_turn, "job");
	assert_true(w->ranks <= SMALL);
	w->ordered = ordered;
	memset(known, 0, sizeof(known));
	return w;
}

static void end(struct engine_fixture *w)
{
	engine_leave_all(w);
	engine_fixture_free(w);
}

/* Sizes from 0 to several frames. */
static void reduce_scatterv__results(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 24; i++) {
		const bool ring = i / 2 % 2 != 0, ordered = !ring && i % 2 != 0;
		struct engine_fixture *w = begin(2 + i % 3, 1 + i / 4 % 2, i / 8 % 2 != 0, ordered);
		uint64_t sizes[SMALL];

		for (int k = 0; k < 4; k++) {
			for (uint32_t r = 0; r < w->ranks; r++) {
				sizes[r] = cn_random(&seed) % 3 * (cn_random(&seed) % 2000) * 2;
			}
			set_sizes(w, sizes);
			assert_int_equal(call(w, algorithms[ring]), 0);
		}
		end(w);
	}
}

/* Every node in turn has other sizes for two ranks, of which one may be 0, with the same sum. */
static void disagree(uint32_t nodes, uint32_t a_node, bool in_turn, const char *algorithm,
		     bool ordered)
{
	static const uint64_t equal[SMALL] = { 8, 8, 8, 8, 8, 8, 8, 8 };
	const uint32_t ranks = nodes * a_node;

	for (uint32_t i = 0; i < nodes * ranks * ranks; i++) {
		const uint32_t from = i % ranks, to = i / ranks % ranks;
		struct engine_fixture *w;

		if (from == to) {
			continue;
		}
		w = begin(nodes, a_node, in_turn, ordered);
		set_sizes(w, equal);
		shift(i / ranks / ranks, from, to, i % 2 == 0 ? 8 : 2);
		assert_true(call(w, algorithm) > 0);
		end(w);
	}
}

static void reduce_scatterv__nodes_that_disagree(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		disagree(2, 2, i != 0, "exchange", false);
		disagree(2, 2, i != 0, "exchange", true);
		disagree(2, 2, i != 0, "ring", false);
		disagree(3, 2, i != 0, algorithms[i], false);
		disagree(4, 1, false, algorithms[i], false);
	}
}

/* Digests that the first node sent in its last operation. */
static uint32_t digests(const struct engine_fixture *w)
{
	const struct cn_sched *s = &w->rank[0].member->team->idle->sched;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		n += s->actions[i].kind == CN_ACT_SEND && s->actions[i].src.buffer == CN_BUF_DIGEST;
	}
	return n;
}

/* One to each node of several ranks, else one, as round a ring; none where all blocks are equal. */
static void reduce_scatterv__digests(void **state)
{
	static const uint64_t equal[SMALL] = { 8, 8, 8, 8, 8, 8, 8, 8 };

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct engine_fixture *w = begin(4, 1 + i / 2, false, false);
		struct cn_coll_args a = { .op = CN_OP_REDUCE_SCATTER,
					  .algorithm = algorithms[i % 2],
					  .bytes = 8,
					  .window = COLLNET_WINDOW_AUTO,
					  .deadline = CN_NEVER };

		set_sizes(w, equal);
		assert_int_equal(call(w, algorithms[i % 2]), 0);
		assert_int_equal(digests(w), i == 2 ? 3 : 1);
		engine_collective(w, &a, SECOND);
		assert_int_equal(digests(w), 0);
		end(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reduce_scatterv__results),
		cmocka_unit_test(reduce_scatterv__nodes_that_disagree),
		cmocka_unit_test(reduce_scatterv__digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
