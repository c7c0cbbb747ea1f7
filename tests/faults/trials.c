/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time from a fault to an error at every other rank, one kind of fault, many trials on one lab: a
 * job forms, runs alltoalls, a victim is drawn, and when all others have an error the fault is
 * healed; the next trial's job must form.
 */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "util/ascending.h"

#define FORM_MS 20000u
#define OP_MS	15000u
#define BLOCK	4096u

struct tally {
	uint32_t trials, errors, named, silent, failed;
	double *ms; /* [trials * ranks] */
	uint32_t n;
};

static void count(struct cluster *c, const struct fault *f, struct tally *t, FILE *csv)
{
	const struct job *j = &c->shared->job;
	uint32_t errors = 0, named = 0;
	double ms[RANKS_MAX], own = -1;

	for (uint32_t i = 0; i < j->ranks; i++) {
		struct slot *s = &c->shared->slots[i];
		bool error = atomic_load(&s->ended) && s->status != 0;
		double took = ((double)s->at_us - (double)f->at_us) / 1e3;

		if (fault_own(c, f, i)) {
			own = error ? took : own;
			continue;
		}
		if (!error) {
			t->silent++;
			printf("  trial %u: rank %u has no error\n", t->trials, i);
			continue;
		}
		ms[errors++] = t->ms[t->n++] = took;
		if (fault_named(c, f, i, s->text)) {
			named++;
		} else {
			printf("  trial %u (%s h%u): rank %u: %s\n", t->trials, kind_name(f->kind),
			       f->host, i, s->text);
		}
	}
	t->errors += errors;
	t->named += named;
	qsort(ms, errors, sizeof(*ms), cn_ascending_double);
	if (csv != NULL && errors > 0) {
		fprintf(csv, "%s,%u,%u,%s,%u,%u,%.3f,%.3f,%.3f,%.3f\n", kind_name(f->kind),
			t->trials, f->rank, c->hosts[f->host].name, errors, named, ms[0],
			ms[errors / 2], ms[errors - 1], own);
		fflush(csv);
	}
}

/* False: the job did not form, or the lab is not as it was. */
static bool trial(struct cluster *c, enum kind k, struct tally *t, FILE *csv)
{
	struct job *j = &c->shared->job;
	struct fault f;
	bool ok;

	*j = (struct job){ .seed = c->random,
			   .ranks = c->nhosts,
			   .local = 1,
			   .bytes = BLOCK,
			   .form_ms = FORM_MS,
			   .op_ms = OP_MS };
	atomic_init(&j->stop, UINT32_MAX);
	ok = job_start(c) && job_progress(c, NULL, 2, FORM_MS, NOBODY) &&
	     !atomic_load(&c->shared->slots[0].ended);
	if (!ok) {
		printf("FAIL: trial %u: the job did not form or run\n", t->trials);
		job_print(c, stdout);
		job_reap(c);
		return false;
	}
	ok = fault_draw(c, k, &f) && fault_begin(c, &f);
	if (ok) {
		/* a stopped daemon's own rank waits until it goes on */
		job_ended(c, OP_MS + 5000,
			  k == FAULT_STOP_DAEMON || k == FAULT_RANK ? f.rank : NOBODY);
		count(c, &f, t, csv);
		ok = fault_heal(c, &f);
		t->trials++;
	}
	job_reap(c);
	if (!ok) {
		printf("FAIL: trial %u: %s cannot be made or healed\n", t->trials, kind_name(k));
	}
	return ok;
}

int trials(struct cluster *c, enum kind k, uint32_t n, const char *path)
{
	struct tally t = { .ms = calloc((size_t)n * c->nhosts + 1, sizeof(double)) };
	FILE *csv = path != NULL ? fopen(path, "ae") : NULL;
	uint64_t begin = now_us();
	struct fault f;
	bool ok = t.ms != NULL && (path == NULL || csv != NULL);

	c->shared->job.ranks = c->nhosts;
	c->shared->job.local = 1;
	if (ok && !fault_draw(c, k, &f)) {
		printf("%-15s is left out: this lab has no such fault\n", kind_name(k));
		n = 0;
	}
	for (uint32_t i = 0; i < n && ok; i++) {
		ok = trial(c, k, &t, csv);
	}
	if (t.n > 0) {
		qsort(t.ms, t.n, sizeof(*t.ms), cn_ascending_double);
		printf("%-15s %6u %8u %10.1f %10.1f %10.1f %8u %8u   %.0f s\n", kind_name(k),
		       t.trials, t.errors, t.ms[0], t.ms[t.n / 2], t.ms[t.n - 1], t.named, t.silent,
		       (double)(now_us() - begin) / 1e6);
	}
	if (csv != NULL) {
		fclose(csv);
	}
	free(t.ms);
	return ok && t.silent == 0 && t.named == t.errors ? 0 : 1;
}
