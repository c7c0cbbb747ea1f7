/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MPI routine that is written about a schedule: its steps, run one after another by ranks whose
 * messages nobody buffers, deliver every block.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emit_plan.h"

#define SEED  20261121u
#define TREES 12

static int write_mpi(const struct emit *e, FILE *f, struct cn_err *err)
{
	return emit_mpi(e, NULL, f, err);
}

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
	struct step *all = calloc(emit_count(text, "{") + 1, sizeof(*all));
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
		struct emit_plan p;

		if (emit_plan_make(&p, &rows[k / TREES], &seed)) {
			struct emit e = emit_plan_emit(&p);
			char *text = emit_written(&e, write_mpi);
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
		emit_plan_done(&p);
	}
}

/* Without a plan, which takes long for so many hosts. */
static void emit_mpi_check__counts_the_blocks(void **state)
{
	struct cn_layout l = { .nnodes = 2049 };
	struct cn_plan plan = { .op = CN_OP_ALLTOALL };
	struct cn_err err = { .code = COLLNET_OK };

	(void)state;
	assert_int_equal(emit_mpi_check(&l, &plan, &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "more than 8388608 steps"));
	l.nnodes = 2048;
	assert_int_equal(emit_mpi_check(&l, &plan, &err), COLLNET_OK);
	l.nnodes = 2049;
	plan.op = CN_OP_BARRIER;
	assert_int_equal(emit_mpi_check(&l, &plan, &err), COLLNET_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(emit_mpi__steps_deliver_without_buffers),
		cmocka_unit_test(emit_mpi_check__counts_the_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
