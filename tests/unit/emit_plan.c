/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emit_plan.h"
#include "tools/plan/random.h"

#define HOSTS_MAX 11u

bool emit_plan_make(struct emit_plan *p, const struct cn_algorithm *a, uint64_t *seed)
{
	struct cn_topo_random r = { .hosts = 2 + cn_below(seed, HOSTS_MAX - 1),
				    .switches = 1 + cn_below(seed, 5),
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
	if (cn_op_reduces(a->op)) {
		return false; /* the formats have no word for them */
	}
	p->s.algorithm = a;
	p->s.guarantees = a->guarantees;
	snprintf(p->s.name, sizeof(p->s.name), "%s", a->name);
	p->s.plan.op = a->op;
	p->s.plan.algorithm = a->id;
	p->s.plan.bytes = a->op == CN_OP_BARRIER ? 0 : 1 + cn_below(seed, 20000);
	p->s.plan.root = a->op >= CN_OP_BCAST ? cn_below(seed, p->s.layout.nranks) : 0;
	p->parts = calloc(p->s.layout.nnodes, sizeof(*p->parts));
	assert_non_null(p->parts);
	rc = subject_plan_all(&p->s, p->parts, &err);
	if (rc != COLLNET_OK && rc != COLLNET_ETOPO) {
		fail_msg("%s: %s", a->name, err.text);
	}
	return rc == COLLNET_OK;
}

void emit_plan_done(struct emit_plan *p)
{
	subject_free_parts(&p->s, p->parts);
	subject_done(&p->s);
	cn_topo_free(p->topo);
}

struct emit emit_plan_emit(const struct emit_plan *p)
{
	return (struct emit){ .layout = &p->s.layout,
			      .plan = &p->s.plan,
			      .algorithm = p->s.name,
			      .source = "here",
			      .guarantees = p->s.guarantees,
			      .only = EMIT_ALL,
			      .parts = p->parts };
}

char *emit_written(const struct emit *e, emit_writer *w)
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

uint32_t emit_count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (const char *p = text; (p = strstr(p, what)) != NULL; p += strlen(what)) {
		n++;
	}
	return n;
}
