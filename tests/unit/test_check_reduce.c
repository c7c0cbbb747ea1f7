/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker on reductions: schedules of the planners are right, with their guarantees, in both
 * orders of combination; and with any one action spoilt they are not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "reduction.h"
#include "sched/allreduce/power.h"
#include "sched_fixture.h"
#include "tools/plan/check.h"

static uint64_t seed = 20261122;

/* One spoilt action: action `at` of node `node`. */
struct spoilt {
	uint32_t node, at;
	/* Changes the action; false: it has nothing to spoil. */
	bool (*spoil)(struct cn_action *a, uint32_t i, const struct cn_sched *s);
	const enum cn_order *order; /* the node sends in this order; NULL: its own */
};

static const enum cn_order any = CN_ORDER_ANY, interleaved = CN_ORDER_INTERLEAVED;

static bool twice(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	(void)i;
	(void)s;
	a->right = a->src;
	return a->kind == CN_ACT_REDUCE;
}

static bool other_bytes(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	(void)i;
	(void)s;
	if (a->kind != CN_ACT_REDUCE || a->right.buffer != CN_BUF_SEND || a->len < 2) {
		return false;
	}
	a->right.offset ^= 1;
	a->len--;
	return true;
}

static bool swapped(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	const struct cn_span left = a->src;

	(void)i;
	(void)s;
	a->src = a->right;
	a->right = left;
	return a->kind == CN_ACT_REDUCE;
}

/* A copy in its place: the contribution is missing. */
static bool left_out(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	(void)s;
	if (a->kind != CN_ACT_REDUCE) {
		return false;
	}
	*a = (struct cn_action){ .kind = CN_ACT_COPY,
				 .peer = a->peer,
				 .dep = a->dep != CN_DEP_NONE ? CN_DEP_COMPLETE : CN_DEP_NONE,
				 .dep_on = a->dep_on,
				 .after = i,
				 .src = a->src,
				 .dst = a->dst,
				 .len = a->len };
	return true;
}

static bool sent_too_early(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	if (a->kind != CN_ACT_SEND || a->dep == CN_DEP_NONE) {
		return false;
	}
	/* sends in turn: it follows one that waits */
	for (uint32_t k = 0; s->order == CN_ORDER_IN_TURN && k < i; k++) {
		const struct cn_action *b = &s->actions[k];

		if (b->kind == CN_ACT_SEND && b->dep != CN_DEP_NONE && b->dep_on >= a->dep_on) {
			return false;
		}
	}
	a->dep = CN_DEP_NONE;
	return true;
}

/* Likewise, but an earlier send, to another node, waits for the same: in turn it is not too early.
 */
static bool sent_after_another(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	bool waits = false;

	for (uint32_t k = 0; a->kind == CN_ACT_SEND && a->dep != CN_DEP_NONE && k < i; k++) {
		const struct cn_action *b = &s->actions[k];

		waits = waits || (b->kind == CN_ACT_SEND && b->dep != CN_DEP_NONE &&
				  b->dep_on == a->dep_on && b->peer != a->peer);
	}
	a->dep = CN_DEP_NONE;
	return waits;
}

/* The result of a REDUCE goes to where a send before it has its data. */
static bool over_what_was_sent(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	for (uint32_t k = 0; a->kind == CN_ACT_REDUCE && k < i; k++) {
		const struct cn_action *b = &s->actions[k];

		if (b->kind == CN_ACT_SEND && b->src.buffer == CN_BUF_SCRATCH &&
		    b->src.rank == a->dst.rank && b->len == a->len) {
			a->dst = b->src;
			return true;
		}
	}
	return false;
}

/* Checks the plan with one action spoilt; NULL: none. *had: there was something to spoil. */
static int check(const struct w_team *t, const struct cn_plan *p, const struct spoilt *x, bool *had,
		 uint32_t *actions, struct cn_err *err)
{
	const struct cn_algorithm *a = cn_algorithm_by_id(p->op, p->algorithm);
	struct cn_check_report report;
	struct cn_check *c = NULL;
	struct cn_sched s = { 0 };
	int rc = cn_check_new(&t->layout, p, &c, err);

	*had = false;
	for (uint32_t b = 0; rc == COLLNET_OK && b < t->layout.nnodes; b++) {
		rc = cn_sched_plan(&t->layout, p, b, &s, err);
		if (actions != NULL) {
			actions[b] = s.n;
		}
		if (rc == COLLNET_OK && x != NULL && x->node == b && x->at < s.n) {
			struct cn_action spoilt = s.actions[x->at];

			*had = x->spoil(&spoilt, x->at, &s);
			if (*had) {
				s.actions[x->at] = spoilt;
			}
			s.order = x->order != NULL ? *x->order : s.order;
		}
		if (rc == COLLNET_OK) {
			rc = cn_check_add(c, b, &s, err);
		}
	}
	if (rc == COLLNET_OK) {
		rc = cn_check_run(c, p->ordered ? 0 : a->guarantees, &report, err);
	}
	cn_check_free(c);
	cn_sched_reset(&s);
	return rc;
}

static struct cn_plan plan_of(const struct cn_algorithm *a, uint32_t ordered)
{
	return (struct cn_plan){ .op = a->op,
				 .algorithm = a->id,
				 .bytes = 40,
				 .element = 2,
				 .ordered = ordered ? 1 : 0,
				 .root = 1 };
}

static void reductions__are_right(void **state)
{
	size_t rows;
	const struct cn_algorithm *a = cn_algorithms(&rows);

	(void)state;
	for (size_t k = 0; k < rows; k++) {
		for (uint32_t i = 0; cn_op_reduces(a[k].op) && i < 2 * W_NODES; i++) {
			struct cn_plan p = plan_of(&a[k], i & 1);
			struct cn_err err = { 0 };
			struct w_team t;
			bool had;

			if (!reduction_takes(&a[k], p.ordered, p.bytes, 1)) {
				continue;
			}
			w_team_init(&t, 1 + i / 2, (enum w_placement)(i / 2 % W_PLACEMENTS), &seed);
			p.root %= t.layout.nranks;
			if (check(&t, &p, NULL, &had, NULL, &err) != COLLNET_OK) {
				fail_msg("%s by %s on %u nodes: %s", cn_op_name(p.op), a[k].name,
					 t.layout.nnodes, err.text);
			}
			w_team_done(&t);
		}
	}
}

/* Ranges are halved in some rounds, and both of a pair combine all of one in the others. */
static void halving__is_right(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes <= W_NODES; nodes++) {
		for (uint32_t i = 0; i < 2; i++) {
			struct cn_plan p = plan_of(cn_algorithm_find(i == 0 ? CN_OP_ALLREDUCE
									    : CN_OP_REDUCE,
								     "halving"),
						   0);
			struct cn_err err = { 0 };
			struct w_team t;
			bool had;

			w_team_init(&t, nodes, (enum w_placement)(nodes % W_PLACEMENTS), &seed);
			p.bytes = CN_REDUCTION_SMALL;
			p.root %= t.layout.nranks;
			if (check(&t, &p, NULL, &had, NULL, &err) != COLLNET_OK) {
				fail_msg("%s on %u nodes: %s", cn_op_name(p.op), nodes, err.text);
			}
			w_team_done(&t);
		}
	}
}

static bool fits(const struct cn_span *at, uint64_t len, const uint64_t *room)
{
	return at->buffer != CN_BUF_SCRATCH || at->offset + len <= room[at->rank];
}

/* No place is beyond the scratch buffer of its rank. */
static void check_scratch(const struct w_team *t, const struct cn_plan *p)
{
	uint64_t room[W_RANKS];
	struct cn_sched s = { 0 };
	struct cn_err err = { 0 };

	for (uint32_t r = 0; r < t->layout.nranks; r++) {
		const uint32_t node = t->node_of[r];
		struct cn_call c = {
			.op = p->op,
			.rank = r,
			.ranks = t->layout.nranks,
			.nodes = t->layout.nnodes,
			.local = t->first[node + 1] - t->first[node],
			.element = p->element,
			.bytes = p->bytes,
			.root = p->root,
		};

		if (p->blocks != NULL) {
			c.blocks = p->blocks[r];
		}
		room[r] = cn_call_scratch_bytes(&c);
	}
	for (uint32_t b = 0; b < t->layout.nnodes; b++) {
		assert_int_equal(cn_sched_plan(&t->layout, p, b, &s, &err), COLLNET_OK);
		for (uint32_t i = 0; i < s.n; i++) {
			const struct cn_action *a = &s.actions[i];

			if (!fits(&a->src, a->len, room) || !fits(&a->right, a->len, room) ||
			    !fits(&a->dst, a->len, room)) {
				fail_msg("action %u of node %u is beyond a scratch buffer", i, b);
			}
		}
	}
	cn_sched_reset(&s);
}

/* The digest of the sizes at one end of a message. */
static bool other_digest(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	(void)i;
	(void)s;
	a->src.offset ^= 1;
	a->dst.offset ^= 1;
	return a->src.buffer == CN_BUF_DIGEST;
}

static bool short_digest(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	(void)i;
	(void)s;
	a->len--;
	return a->src.buffer == CN_BUF_DIGEST;
}

static void spoil_digests(const struct w_team *t, const struct cn_plan *p, uint32_t actions)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < 2 * actions; i++) {
		const struct spoilt x = { 0, i / 2, i % 2 == 0 ? other_digest : short_digest,
					  NULL };
		struct cn_err err = { 0 };
		bool had;
		const int rc = check(t, p, &x, &had, NULL, &err);

		assert_true(!had || rc == COLLNET_EINVAL);
		found += had;
	}
	assert_true(found > 0 || t->layout.nnodes == 1);
}

/* Blocks of sizes of their own, some of no bytes, one of them long, on every team; and what does
 * not fit together. */
static void reduce_scatterv__is_right(void **state)
{
	static const char *const names[] = { "ring", "exchange" };

	(void)state;
	for (uint32_t i = 0; i < 4 * W_NODES; i++) {
		const struct cn_algorithm *a = cn_algorithm_find(CN_OP_REDUCE_SCATTERV,
								 names[i & 1]);
		struct cn_plan p = plan_of(a, (i & 1) != 0 && (i & 2) != 0);
		struct cn_block blocks[2][W_RANKS];
		struct cn_blocks all[W_RANKS];
		struct cn_sched s = { 0 };
		struct cn_err err = { 0 };
		struct w_team t;
		uint32_t actions[W_NODES];
		uint64_t at = 0;
		bool had;

		w_team_init(&t, 1 + i / 4, (enum w_placement)(i / 4 % W_PLACEMENTS), &seed);
		for (uint32_t r = 0; r < t.layout.nranks; r++) {
			blocks[0][r] = (struct cn_block){
				at, cn_random(&seed) % 4 * (r == t.layout.nranks / 2 ? 500 : 10)
			};
			at += blocks[0][r].len;
			all[r] = (struct cn_blocks){ .send = blocks[0] };
		}
		p.op = CN_OP_REDUCE_SCATTERV;
		p.bytes = 0;
		p.root = 0;
		p.blocks = all;
		if (check(&t, &p, NULL, &had, actions, &err) != COLLNET_OK) {
			fail_msg("reduce_scatterv by %s on %u nodes: %s", a->name, t.layout.nnodes,
				 err.text);
		}
		if (i < 24) {
			spoil_digests(&t, &p, actions[0]);
		}
		check_scratch(&t, &p);
		memcpy(blocks[1], blocks[0], sizeof(blocks[1]));
		blocks[1][t.layout.nranks - 1].len += 2;
		if (t.first[1] > 1) { /* two ranks of a node that do not agree */
			all[1].send = blocks[1];
			assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err),
					 COLLNET_EMISMATCH);
		}
		for (uint32_t r = 0; r < t.layout.nranks; r++) {
			all[r].send = blocks[1];
		}
		blocks[1][t.layout.nranks - 1].at += 2;
		assert_int_equal(cn_sched_plan(&t.layout, &p, 0, &s, &err), COLLNET_EINVAL);
		cn_sched_reset(&s);
		w_team_done(&t);
	}
}

/* Long blocks, of elements down to one that is the whole block. */
static void reductions__stay_in_their_scratch(void **state)
{
	size_t rows;
	const struct cn_algorithm *a = cn_algorithms(&rows);

	(void)state;
	for (size_t k = 0; k < rows; k++) {
		for (uint32_t i = 0; cn_op_reduces(a[k].op) && i < 3 * W_NODES; i++) {
			struct cn_plan p = plan_of(&a[k], 0);
			struct w_team t;

			w_team_init(&t, 1 + i / 3, (enum w_placement)(i % W_PLACEMENTS), &seed);
			p.bytes = CN_REDUCTION_SMALL;
			p.element = CN_REDUCTION_SMALL >> i % 3;
			p.root %= t.layout.nranks;
			if (reduction_takes(&a[k], false, p.bytes, t.layout.nranks)) {
				check_scratch(&t, &p);
			}
			w_team_done(&t);
		}
	}
}

/* No more chunks than elements: 63 nodes would need more than the scratch buffer has. */
static void cn_power_chunks__elements(void **state)
{
	const struct cn_layout l = { .nnodes = 63, .nranks = 63 };
	struct cn_plan p = { .op = CN_OP_REDUCE, .bytes = CN_REDUCTION_SMALL, .element = 4 };

	(void)state;
	assert_true(cn_power_chunks(&l, &p, 32) > 2);
	for (uint32_t elements = 1; elements <= 2; elements++) {
		p.element = CN_REDUCTION_SMALL / elements;
		assert_int_equal(cn_power_chunks(&l, &p, 32), elements);
	}
}

static void spoil_all(bool (*spoil)(struct cn_action *, uint32_t, const struct cn_sched *),
		      uint32_t ordered)
{
	size_t rows;
	const struct cn_algorithm *a = cn_algorithms(&rows);
	uint32_t spoilt = 0, actions[W_NODES];

	for (size_t k = 0; k < rows; k++) {
		struct cn_plan p = plan_of(&a[k], ordered);
		struct cn_err err = { 0 };
		struct w_team t;
		bool had;

		if (!cn_op_reduces(a[k].op) || !reduction_takes(&a[k], ordered, p.bytes, 1)) {
			continue;
		}
		w_team_init(&t, 5, W_UNEVEN, &seed);
		assert_int_equal(check(&t, &p, NULL, &had, actions, &err), COLLNET_OK);
		for (uint32_t b = 0; b < 5; b++) {
			for (uint32_t i = 0; i < actions[b]; i++) {
				const struct spoilt x = { b, i, spoil, NULL };
				int rc = check(&t, &p, &x, &had, NULL, &err);

				if (had && rc != COLLNET_EINVAL) {
					fail_msg("%s by %s: action %u of node %u is spoilt, and "
						 "nothing said",
						 cn_op_name(p.op), a[k].name, i, b);
				}
				spoilt += had;
			}
		}
		w_team_done(&t);
	}
	assert_true(spoilt > 10);
}

static void reductions__twice(void **state)
{
	(void)state;
	spoil_all(twice, 0);
}

static void reductions__other_bytes(void **state)
{
	(void)state;
	spoil_all(other_bytes, 0);
}

static void reductions__wrong_order(void **state)
{
	(void)state;
	spoil_all(swapped, 1);
}

/* Every node combines all, and one of them with two operands swapped. */
static void reductions__combined_in_another_way(void **state)
{
	const struct cn_plan p = plan_of(cn_algorithm_find(CN_OP_ALLREDUCE, "allgather"), 0);
	uint32_t found = 0, actions[W_NODES];
	struct cn_err err = { 0 };
	struct w_team t;
	bool had;

	(void)state;
	w_team_init(&t, 5, W_UNEVEN, &seed);
	assert_int_equal(check(&t, &p, NULL, &had, actions, &err), COLLNET_OK);
	for (uint32_t b = 0; b < 5; b++) {
		for (uint32_t i = 0; i < actions[b]; i++) {
			const struct spoilt x = { b, i, swapped, NULL };
			const int rc = check(&t, &p, &x, &had, NULL, &err);

			if (had) {
				assert_int_equal(rc, COLLNET_EINVAL);
				assert_non_null(strstr(err.text, "is not combined as that of"));
				found++;
			}
		}
	}
	assert_true(found >= 5 * 4);
	w_team_done(&t);
}

static void reductions__left_out(void **state)
{
	(void)state;
	spoil_all(left_out, 0);
	spoil_all(left_out, 1);
}

static void reductions__sent_too_early(void **state)
{
	(void)state;
	spoil_all(sent_too_early, 0);
}

/* Of sends in any order, none waits because an earlier one does. */
static void reductions__sent_in_any_order(void **state)
{
	struct cn_plan p = plan_of(cn_algorithm_find(CN_OP_SCAN, "doubling"), 0);
	uint32_t found = 0, actions[W_NODES];

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct cn_err err = { 0 };
		struct w_team t;
		bool had;

		w_team_init(&t, 5, W_UNEVEN, &seed);
		assert_int_equal(check(&t, &p, NULL, &had, actions, &err), COLLNET_OK);
		for (uint32_t b = 0; b < 5; b++) {
			for (uint32_t k = 0; k < actions[b]; k++) {
				struct spoilt x = { b, k, sent_after_another, NULL };
				int rc = check(&t, &p, &x, &had, NULL, &err);

				if (had) {
					assert_int_equal(rc, COLLNET_OK);
					x.order = &any;
					rc = check(&t, &p, &x, &had, NULL, &err);
					assert_int_equal(rc, COLLNET_EINVAL);
					found++;
				}
			}
		}
		w_team_done(&t);
	}
	assert_true(found > 0);
}

static bool as_it_is(struct cn_action *a, uint32_t i, const struct cn_sched *s)
{
	(void)a;
	(void)i;
	(void)s;
	return true;
}

/* A node that takes turns over nodes must not wait for a message. */
static void reductions__sent_frame_by_frame(void **state)
{
	const struct cn_plan waits = plan_of(cn_algorithm_find(CN_OP_SCAN, "doubling"), 0),
			     waits_not = plan_of(cn_algorithm_find(CN_OP_REDUCE_SCATTER,
								   "exchange"),
						 0);
	const struct spoilt x = { 1, 0, as_it_is, &interleaved };
	struct cn_err err = { 0 };
	struct w_team t;
	bool had;

	(void)state;
	w_team_init(&t, 5, W_UNEVEN, &seed);
	assert_int_equal(check(&t, &waits_not, &x, &had, NULL, &err), COLLNET_OK);
	assert_true(had);
	assert_int_equal(check(&t, &waits, &x, &had, NULL, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "waits in between: nothing proves that it proceeds"));
	w_team_done(&t);
}

static void reductions__changed_after_sending(void **state)
{
	(void)state;
	spoil_all(over_what_was_sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reductions__are_right),
		cmocka_unit_test(halving__is_right),
		cmocka_unit_test(reduce_scatterv__is_right),
		cmocka_unit_test(reductions__stay_in_their_scratch),
		cmocka_unit_test(cn_power_chunks__elements),
		cmocka_unit_test(reductions__twice),
		cmocka_unit_test(reductions__other_bytes),
		cmocka_unit_test(reductions__wrong_order),
		cmocka_unit_test(reductions__combined_in_another_way),
		cmocka_unit_test(reductions__left_out),
		cmocka_unit_test(reductions__sent_too_early),
		cmocka_unit_test(reductions__sent_in_any_order),
		cmocka_unit_test(reductions__sent_frame_by_frame),
		cmocka_unit_test(reductions__changed_after_sending),
	};

	print_message("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
