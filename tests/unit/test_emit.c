/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is written about a schedule is the schedule: text that is read back gives the same parts,
 * for every algorithm on random trees; JSON has every action.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emit_plan.h"

#define SEED  20261121u
#define TREES 12

/* The k-th of its kind, with the same peer, before action i. */
static uint32_t place_of(const struct cn_sched *s, uint32_t i)
{
	uint32_t k = 0;

	for (uint32_t j = 0; j < i; j++) {
		k += s->actions[j].kind == s->actions[i].kind &&
		     s->actions[j].peer == s->actions[i].peer;
	}
	return k;
}

static uint32_t next_of(const struct cn_sched *s, enum cn_action_kind kind, uint32_t from)
{
	while (from < s->n && s->actions[from].kind != kind) {
		from++;
	}
	return from;
}

static void same_span(const struct cn_span *a, const struct cn_span *b)
{
	assert_int_equal(a->buffer, b->buffer);
	if (a->buffer != CN_BUF_NONE) {
		assert_int_equal(a->rank, b->rank);
		assert_int_equal(a->offset, b->offset);
	}
}

/* Two actions of two lists, with what they depend on. */
static void same_action(const struct cn_sched *a, uint32_t i, const struct cn_sched *b, uint32_t j)
{
	const struct cn_action *x = &a->actions[i], *y = &b->actions[j];

	assert_int_equal(x->kind, y->kind);
	assert_int_equal(x->dep, y->dep);
	if (x->dep != CN_DEP_NONE) {
		const struct cn_action *on_x = &a->actions[x->dep_on];
		const struct cn_action *on_y = &b->actions[y->dep_on];

		assert_int_equal(on_x->kind, on_y->kind);
		assert_int_equal(on_x->peer, on_y->peer);
		assert_int_equal(on_x->phase, on_y->phase);
		assert_int_equal(place_of(a, x->dep_on), place_of(b, y->dep_on));
	}
	if (x->kind != CN_ACT_WAIT) {
		assert_int_equal(x->peer, y->peer);
		assert_int_equal(x->phase, y->phase);
		assert_int_equal(x->len, y->len);
		same_span(&x->src, &y->src);
		same_span(&x->dst, &y->dst);
	}
}

/* Sends in their order with the waits before each; copies in theirs; receives peer by peer. */
static void same_part(const struct cn_sched *a, const struct cn_sched *b, uint32_t nnodes)
{
	assert_int_equal(a->order, b->order);
	assert_int_equal(a->phases, b->phases);
	for (enum cn_action_kind kind = CN_ACT_SEND; kind <= CN_ACT_COPY; kind++) {
		uint32_t i = next_of(a, kind, 0), j = next_of(b, kind, 0);

		if (kind == CN_ACT_RECV) {
			continue;
		}
		for (; i < a->n && j < b->n;
		     i = next_of(a, kind, i + 1), j = next_of(b, kind, j + 1)) {
			same_action(a, i, b, j);
		}
		assert_true(i >= a->n && j >= b->n);
	}
	for (uint32_t peer = 0; peer < nnodes; peer++) {
		uint32_t i = 0, j = 0;

		for (;; i++, j++) {
			while (i < a->n &&
			       (a->actions[i].kind != CN_ACT_RECV || a->actions[i].peer != peer)) {
				i++;
			}
			while (j < b->n &&
			       (b->actions[j].kind != CN_ACT_RECV || b->actions[j].peer != peer)) {
				j++;
			}
			assert_int_equal(i < a->n, j < b->n);
			if (i >= a->n) {
				break;
			}
			same_action(a, i, b, j);
		}
	}
}

/* How many waits stand before the last send, and a sum of what they wait for and hold back. */
static uint64_t waits(const struct cn_sched *s)
{
	uint64_t sum = 0, sends = 0, total = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		total += s->actions[i].kind == CN_ACT_SEND;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		sends += a->kind == CN_ACT_SEND;
		if (a->kind == CN_ACT_WAIT && sends < total) {
			const struct cn_action *on = &s->actions[a->dep_on];

			sum += cn_mix64(sends << 40 ^ (uint64_t)on->peer << 20 ^
					(uint64_t)on->phase << 2 ^ (uint64_t)on->kind) +
			       place_of(s, a->dep_on);
		}
	}
	return sum;
}

static void emit_text__is_read_back_as_the_same_schedule(void **state)
{
	size_t n;
	const struct cn_algorithm *rows = cn_algorithms(&n);
	uint64_t seed = SEED;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (size_t k = 0; k < n * TREES; k++) {
		const struct cn_algorithm *a = &rows[k / TREES];
		struct emit_plan p, q = { 0 };
		struct cn_err err = { 0 };
		struct cn_check_report ours, theirs;
		struct emit e;
		char *text, *again;
		bool checked;

		if (!emit_plan_make(&p, a, &seed)) {
			emit_plan_done(&p);
			continue;
		}
		e = emit_plan_emit(&p);
		text = emit_written(&e, emit_text);
		if (schedule_parse(text, strlen(text), "text", p.topo, &q.s, &q.parts, &err)) {
			fail_msg("%s: %s", a->name, err.text);
		}
		assert_int_equal(q.s.layout.nnodes, p.s.layout.nnodes);
		assert_int_equal(q.s.plan.bytes, p.s.plan.bytes);
		assert_int_equal(q.s.plan.root, p.s.plan.root);
		assert_int_equal(q.s.guarantees, p.s.guarantees);
		assert_string_equal(q.s.name, p.s.name);
		for (uint32_t b = 0; b < p.s.layout.nnodes; b++) {
			same_part(&p.parts[b], &q.parts[b], p.s.layout.nnodes);
			assert_int_equal(waits(&p.parts[b]), waits(&q.parts[b]));
		}
		e = emit_plan_emit(&q);
		again = emit_written(&e, emit_text);
		assert_string_equal(text, again);
		if (subject_check(&p.s, p.parts, a->guarantees, &ours, &checked, &err) ||
		    subject_check(&q.s, q.parts, q.s.guarantees, &theirs, &checked, &err)) {
			fail_msg("%s on tree %zu: %s\n%s", a->name, k % TREES, err.text, text);
		}
		assert_memory_equal(&ours, &theirs, sizeof(ours));
		free(text);
		free(again);
		emit_plan_done(&p);
		subject_free_parts(&q.s, q.parts);
		subject_done(&q.s);
	}
}

static void emit_text__of_one_rank_has_its_messages(void **state)
{
	uint64_t seed = SEED + 1;
	struct emit_plan p;
	struct emit e;
	char *text;

	(void)state;
	assert_true(emit_plan_make(&p, cn_algorithm_find(CN_OP_ALLTOALL, "pairwise"), &seed));
	e = emit_plan_emit(&p);
	e.only = 1;
	text = emit_written(&e, emit_text);
	assert_int_equal(emit_count(text, " -> "), 2 * (p.s.layout.nnodes - 1));
	assert_non_null(strstr(text, "\npart "));
	free(text);
	emit_plan_done(&p);
}

static void emit_json__has_every_action(void **state)
{
	size_t n;
	const struct cn_algorithm *rows = cn_algorithms(&n);
	uint64_t seed = SEED + 2;

	(void)state;
	for (size_t k = 0; k < n; k++) {
		struct emit_plan p;

		if (emit_plan_make(&p, &rows[k], &seed)) {
			struct emit e = emit_plan_emit(&p);
			char *text = emit_written(&e, emit_json);
			uint32_t actions = 0;

			for (uint32_t b = 0; b < p.s.layout.nnodes; b++) {
				actions += p.parts[b].n;
			}
			assert_int_equal(emit_count(text, "\"action\": "), actions);
			assert_int_equal(emit_count(text, "{"), emit_count(text, "}"));
			assert_int_equal(emit_count(text, "["), emit_count(text, "]"));
			free(text);
		}
		emit_plan_done(&p);
	}
}

static void emit_order__names_a_deadlock_and_what_does_not_match(void **state)
{
	uint64_t seed = SEED + 3;
	struct emit_order order;
	struct cn_err err = { 0 };
	struct emit_plan p;
	struct emit e;
	uint32_t last;

	(void)state;
	assert_true(emit_plan_make(&p, cn_algorithm_find(CN_OP_ALLGATHER, "ring"), &seed));
	e = emit_plan_emit(&p);
	/* Every first send waits for the first receive: nobody begins. */
	for (uint32_t b = 0; b < p.s.layout.nnodes; b++) {
		struct cn_sched *s = &p.parts[b];
		uint32_t send = next_of(s, CN_ACT_SEND, 0);

		s->actions[send].dep = CN_DEP_COMPLETE;
		s->actions[send].dep_on = next_of(s, CN_ACT_RECV, 0);
	}
	assert_int_equal(emit_order_make(&e, &order, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "waits for an action that waits for it: deadlock"));
	/* A receive without its message. */
	last = p.parts[0].n - 1;
	while (p.parts[0].actions[last].kind != CN_ACT_SEND) {
		last--;
	}
	p.parts[0].actions[last].kind = CN_ACT_WAIT;
	p.parts[0].actions[last].dep = CN_DEP_NONE;
	assert_int_equal(emit_order_make(&e, &order, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "received, but not sent"));
	emit_plan_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(emit_text__is_read_back_as_the_same_schedule),
		cmocka_unit_test(emit_text__of_one_rank_has_its_messages),
		cmocka_unit_test(emit_json__has_every_action),
		cmocka_unit_test(emit_order__names_a_deadlock_and_what_does_not_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
