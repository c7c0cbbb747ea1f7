/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans of any algorithm on random trees, and their emitted text. */
#ifndef EMIT_PLAN_H
#define EMIT_PLAN_H

#include "tools/schedule/command.h"

struct emit_plan {
	struct cn_topo *topo;
	struct subject s;
	struct cn_sched *parts;
};

/* A random tree and a plan on it; false: the algorithm refuses it. */
bool emit_plan_make(struct emit_plan *p, const struct cn_algorithm *a, uint64_t *seed);
void emit_plan_done(struct emit_plan *p);
struct emit emit_plan_emit(const struct emit_plan *p);

typedef int emit_writer(const struct emit *e, FILE *f, struct cn_err *err);
char *emit_written(const struct emit *e, emit_writer *w);
uint32_t emit_count(const char *text, const char *what);

#endif
