/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is written about a schedule is the schedule: text that is read back gives the same parts,
 * for every algorithm on random trees; JSON has every action; and the steps of a written MPI
 * routine, run one after another by ranks whose messages nobody buffers, deliver every block.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/schedule/command.h"
#include "tools/plan/random.h"

#define SEED	  20261121u
#define TREES	  12
#define HOSTS_MAX 11u

static uint32_t below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(cn_random(seed) % n);
}

/* ---- a plan, and its text ----------------------------------------------------------------- */

struct plan {
	struct cn_topo *topo;
	struct subject s;
	struct cn_sched *parts;
};

/* A random tree and a plan on it; false: the algorithm says that it cannot. */
static bool make(struct plan *p, const struct cn_algorithm *a, uint64_t *seed)
{
	struct cn_topo_random r = { .hosts = 2 + below(seed, HOSTS_MAX - 1),
				    .switches = 1 + below(seed, 5),
				    .degree = 2,
				    .seed = cn_random(seed),
				    .rate = 1000000000 };
	struct cn_err err = { 0 };
	int rc;

	memset(p, 0, sizeof(*p));
	if (cn_topo_random(&r, &p->topo, &err) ||
	    subject_init(&p->s, p->topo, p->topo->hosts, p->topo->nhosts, &err)) {
		fail_msg("%s", err.text);
	}
	p->s.algorithm = a;
	p->s.guarantees = a->guarantees;
	snprintf(p->s.name, sizeof(p->s.name), "%s", a->name);
	p->s.plan.op = a->op;
	p->s.plan.algorithm = a->id;
	p->s.plan.bytes = a->op == CN_OP_BARRIER ? 0 : 1 + below(seed, 20000);
	p->s.plan.root = a->op >= CN_OP_BCAST ? below(seed, p->s.layout.nranks) : 0;
	p->parts = calloc(p->s.layout.nnodes, sizeof(*p->parts));
	assert_non_null(p->parts);
	rc = subject_plan_all(&p->s, p->parts, &err);
	if (rc != COLLNET_OK && rc != COLLNET_ETOPO) {
		fail_msg("%s: %s", a->name, err.text);
	}
	return rc == COLLNET_OK;
}

static void unmake(struct plan *p)
{
	subject_free_parts(&p->s, p->parts);
	subject_done(&p->s);
	cn_topo_free(p->topo);
}

static struct emit emit_of(const struct plan *p)
{
	return (struct emit){ .layout = &p->s.layout,
			      .plan = &p->s.plan,
			      .algorithm = p->s.name,
			      .source = "here",
			      .guarantees = p->s.guarantees,
			      .only = EMIT_ALL,
			      .parts = p->parts };
}

typedef int writer(const struct emit *e, FILE *f, struct cn_err *err);

static int write_mpi(const struct emit *e, FILE *f, struct cn_err *err)
{
	return emit_mpi(e, NULL, f, err);
}

static char *written(const struct emit *e, writer *w)
{
	static char *text; /* static: gcc 12 takes it for what the stream points into */
	static size_t len;
	struct cn_err err = { 0 };
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	if (w(e, f, &err) != COLLNET_OK) {
		fail_msg("%s: %s", e->algorithm, err.text);
	}
	fclose(f);
	return text;
}

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
		struct plan p, q = { 0 };
		struct cn_err err = { 0 };
		struct cn_check_report ours, theirs;
		struct emit e;
		char *text, *again;
		bool checked;

		if (!make(&p, a, &seed)) {
			unmake(&p);
			continue;
		}
		e = emit_of(&p);
		text = written(&e, emit_text);
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
		e = emit_of(&q);
		again = written(&e, emit_text);
		assert_string_equal(text, again);
		if (subject_check(&p.s, p.parts, a->guarantees, &ours, &checked, &err) ||
		    subject_check(&q.s, q.parts, q.s.guarantees, &theirs, &checked, &err)) {
			fail_msg("%s on tree %zu: %s\n%s", a->name, k % TREES, err.text, text);
		}
		assert_memory_equal(&ours, &theirs, sizeof(ours));
		free(text);
		free(again);
		unmake(&p);
		subject_free_parts(&q.s, q.parts);
		subject_done(&q.s);
	}
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (const char *p = text; (p = strstr(p, what)) != NULL; p += strlen(what)) {
		n++;
	}
	return n;
}

static void emit_text__of_one_rank_has_its_messages(void **state)
{
	uint64_t seed = SEED + 1;
	struct plan p;
	struct emit e;
	char *text;

	(void)state;
	assert_true(make(&p, cn_algorithm_find(CN_OP_ALLTOALL, "pairwise"), &seed));
	e = emit_of(&p);
	e.only = 1;
	text = written(&e, emit_text);
	assert_int_equal(count(text, " -> "), 2 * (p.s.layout.nnodes - 1));
	assert_non_null(strstr(text, "\npart "));
	free(text);
	unmake(&p);
}

static void emit_json__has_every_action(void **state)
{
	size_t n;
	const struct cn_algorithm *rows = cn_algorithms(&n);
	uint64_t seed = SEED + 2;

	(void)state;
	for (size_t k = 0; k < n; k++) {
		struct plan p;

		if (make(&p, &rows[k], &seed)) {
			struct emit e = emit_of(&p);
			char *text = written(&e, emit_json);
			uint32_t actions = 0;

			for (uint32_t b = 0; b < p.s.layout.nnodes; b++) {
				actions += p.parts[b].n;
			}
			assert_int_equal(count(text, "\"action\": "), actions);
			assert_int_equal(count(text, "{"), count(text, "}"));
			assert_int_equal(count(text, "["), count(text, "]"));
			free(text);
		}
		unmake(&p);
	}
}

static void emit_order__names_a_deadlock_and_what_does_not_match(void **state)
{
	uint64_t seed = SEED + 3;
	struct emit_order order;
	struct cn_err err = { 0 };
	struct plan p;
	struct emit e;
	uint32_t last;

	(void)state;
	assert_true(make(&p, cn_algorithm_find(CN_OP_ALLGATHER, "ring"), &seed));
	e = emit_of(&p);
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
	unmake(&p);
}

/* ---- the steps of an MPI routine ---------------------------------------------------------- */

enum kind { K_SEND, K_FORWARD, K_RECV, K_NOTE, K_AWAIT, K_WAIT, K_COPY, KINDS };

static const char *const kinds[] = { "SEND", "FORWARD", "RECV", "NOTE", "AWAIT", "WAIT", "COPY" };

struct step {
	enum kind kind;
	uint32_t peer, unit, n;
};

/*
 * A rank that goes through its steps, each complete before the next but for receives, which are
 * posted and filled in later. A message moves only when its send is the sender's present step and
 * the receiver's step has been reached: no buffers, no look-ahead.
 */
struct rank {
	struct step *steps;
	uint32_t n, at;
	bool *done;		   /* by step: a receive is filled */
	uint32_t *receives, nrecv; /* steps of the receives */
	uint32_t *in, *out;	   /* units: who and what; 0: nothing */
};

struct routine {
	uint32_t ranks, pieces;
	struct rank *rank;
};

static uint32_t number(const char **p)
{
	char *end;
	unsigned long n = strtoul(*p, &end, 10);

	assert_true(end != *p);
	*p = *end == ',' || *end == '}' ? end + 1 : end;
	return (uint32_t)n;
}

static uint32_t after(const char *text, const char *what)
{
	const char *p = strstr(text, what);

	assert_non_null(p);
	p += strlen(what);
	return number(&p);
}

/* The table "steps" and the table "first" of the C file. */
static void parse_routine(struct routine *r, const char *text)
{
	const char *p = strstr(text, "steps[] = {"), *f = strstr(text, "first[RANKS + 1] = {");
	struct step *all = calloc(count(text, "{") + 1, sizeof(*all));
	uint32_t n = 0, first;

	assert_non_null(p);
	assert_non_null(f);
	assert_non_null(all);
	r->ranks = after(text, "RANKS = ");
	r->pieces = after(text, "PIECES = ");
	for (p = strchr(p, '{') + 1; (p = strchr(p, '{')) != NULL && p < f; n++) {
		size_t len = strcspn(++p, ",");
		uint32_t k = 0;

		while (k < KINDS && (strlen(kinds[k]) != len || strncmp(kinds[k], p, len) != 0)) {
			k++;
		}
		assert_true(k < KINDS);
		p += len + 1;
		all[n].kind = (enum kind)k;
		all[n].peer = number(&p);
		all[n].unit = number(&p);
		all[n].n = number(&p);
	}
	r->rank = calloc(r->ranks, sizeof(*r->rank));
	assert_non_null(r->rank);
	f = strchr(f, '{') + 1;
	first = number(&f);
	for (uint32_t b = 0; b < r->ranks; b++) {
		uint32_t end = number(&f);
		struct rank *x = &r->rank[b];

		assert_true(end >= first && end <= n);
		x->n = end - first;
		x->steps = calloc(x->n + 1, sizeof(*x->steps));
		x->done = calloc(x->n + 1, sizeof(*x->done));
		x->receives = calloc(x->n + 1, sizeof(*x->receives));
		x->in = calloc((size_t)r->ranks * r->pieces, sizeof(*x->in));
		x->out = calloc((size_t)r->ranks * r->pieces, sizeof(*x->out));
		assert_true(x->steps && x->done && x->receives && x->in && x->out);
		memcpy(x->steps, all + first, x->n * sizeof(*x->steps));
		for (uint32_t i = 0; i < x->n; i++) {
			if (x->steps[i].kind == K_RECV || x->steps[i].kind == K_AWAIT) {
				x->receives[x->nrecv++] = i;
			}
		}
		first = end;
	}
	assert_int_equal(first, n);
	free(all);
}

static void free_routine(struct routine *r)
{
	for (uint32_t b = 0; b < r->ranks; b++) {
		free(r->rank[b].steps);
		free(r->rank[b].done);
		free(r->rank[b].receives);
		free(r->rank[b].in);
		free(r->rank[b].out);
	}
	free(r->rank);
}

/* The first receive of rank `to`, among the steps that it has come to, for the present send of
 * rank `from`; it must be the first from there that is not done. */
static bool deliver(struct routine *r, uint32_t from)
{
	struct rank *x = &r->rank[from];
	const struct step *s = &x->steps[x->at];
	struct rank *y = &r->rank[s->peer];
	enum kind wanted = s->kind == K_NOTE ? K_AWAIT : K_RECV;

	for (uint32_t i = 0; i < y->n && i <= y->at; i++) {
		const struct step *t = &y->steps[i];

		if (t->kind != wanted || t->peer != from || y->done[i]) {
			continue;
		}
		assert_int_equal(t->n, s->n);
		for (uint32_t u = 0; u < s->n; u++) {
			assert_int_equal(y->out[t->unit + u], 0); /* nothing twice */
			y->out[t->unit + u] = (s->kind == K_SEND ? x->in : x->out)[s->unit + u];
			assert_int_not_equal(y->out[t->unit + u], 0); /* the sender has it */
		}
		return y->done[i] = true;
	}
	return false;
}

/* One step of a rank, if it can do it now. */
static bool do_step(struct routine *r, uint32_t b)
{
	struct rank *x = &r->rank[b];
	const struct step *s = &x->steps[x->at];

	switch (s->kind) {
	case K_SEND:
	case K_FORWARD:
	case K_NOTE:
		if (!deliver(r, b)) {
			return false;
		}
		break;
	case K_WAIT:
		assert_true(s->unit < x->nrecv && x->receives[s->unit] < x->at);
		if (!x->done[x->receives[s->unit]]) {
			return false;
		}
		break;
	case K_COPY:
		for (uint32_t u = 0; u < s->n; u++) {
			assert_int_equal(x->out[s->peer + u], 0);
			x->out[s->peer + u] = x->in[s->unit + u];
		}
		break;
	default:
		break;
	}
	x->at++;
	return true;
}

/* A unit's content: where it was first, and which it was. Not 0. */
static uint32_t content(uint32_t rank, uint32_t unit)
{
	return 1 + rank * 100000 + unit;
}

static void fill(struct routine *r, const struct cn_plan *p)
{
	for (uint32_t b = 0; b < r->ranks; b++) {
		uint32_t blocks = p->op == CN_OP_ALLTOALL || p->op == CN_OP_SCATTER ? r->ranks : 1;

		if ((p->op == CN_OP_SCATTER || p->op == CN_OP_BCAST) && b != p->root) {
			continue;
		}
		for (uint32_t u = 0; u < blocks * r->pieces && p->op != CN_OP_BARRIER; u++) {
			r->rank[b].in[u] = content(b, u);
		}
	}
}

static void check_units(const struct routine *r, const struct cn_plan *p, const char *name)
{
	for (uint32_t b = 0; b < r->ranks; b++) {
		for (uint32_t u = 0; u < r->ranks * r->pieces; u++) {
			uint32_t block = u / r->pieces, piece = u % r->pieces, want = 0;

			if (p->op == CN_OP_ALLTOALL) {
				want = content(block, b * r->pieces + piece);
			} else if (p->op == CN_OP_ALLGATHER ||
				   (p->op == CN_OP_GATHER && b == p->root)) {
				want = content(block, piece);
			} else if (p->op == CN_OP_SCATTER && block == 0) {
				want = content(p->root, b * r->pieces + piece);
			} else if (p->op == CN_OP_BCAST && block == 0 && b != p->root) {
				want = content(p->root, piece); /* the root's is where it was */
			}
			if (r->rank[b].out[u] != want) {
				fail_msg("%s: unit %u of rank %u is %u, not %u", name, u, b,
					 r->rank[b].out[u], want);
			}
		}
	}
}

static void emit_mpi__steps_deliver_without_buffers(void **state)
{
	size_t n;
	const struct cn_algorithm *rows = cn_algorithms(&n);
	uint64_t seed = SEED + 4;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (size_t k = 0; k < n * TREES; k++) {
		struct plan p;

		if (make(&p, &rows[k / TREES], &seed)) {
			struct emit e = emit_of(&p);
			char *text = written(&e, write_mpi);
			struct routine r;
			bool moved = true;

			parse_routine(&r, text);
			assert_int_equal(r.ranks, p.s.layout.nranks);
			fill(&r, &p.s.plan);
			while (moved) {
				moved = false;
				for (uint32_t b = 0; b < r.ranks; b++) {
					while (r.rank[b].at < r.rank[b].n && do_step(&r, b)) {
						moved = true;
					}
				}
			}
			for (uint32_t b = 0; b < r.ranks; b++) {
				if (r.rank[b].at < r.rank[b].n) {
					fail_msg("%s: rank %u of %u is stuck at step %u",
						 rows[k / TREES].name, b, r.ranks, r.rank[b].at);
				}
			}
			check_units(&r, &p.s.plan, rows[k / TREES].name);
			free_routine(&r);
			free(text);
		}
		unmake(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(emit_text__is_read_back_as_the_same_schedule),
		cmocka_unit_test(emit_text__of_one_rank_has_its_messages),
		cmocka_unit_test(emit_json__has_every_action),
		cmocka_unit_test(emit_order__names_a_deadlock_and_what_does_not_match),
		cmocka_unit_test(emit_mpi__steps_deliver_without_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
