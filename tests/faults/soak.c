/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random faults under all operations. Each job runs until its fault has done what it must: a lethal
 * one ends every rank with an error that names the victim, within a bound; a short one is survived
 * without an error. Then it is healed, and the next job must form, run and be right.
 */
#include "cluster.h"

#include <signal.h>

#define FORM_MS	 20000u
#define OP_MS	 8000u
#define BOUND_MS 12000u /* from a lethal fault to the last error */
#define AHEAD	 12u	/* operations that a rank can be ahead of another, and some */

/* The plan: how often each is drawn, how long it lasts (0: lethal, healed when all know). */
static const struct {
	enum kind kind;
	uint32_t weight, ms;
} plans[] = {
	{ FAULT_NONE, 2, 0 },	       { FAULT_RANK, 3, 0 },	    { FAULT_DAEMON, 3, 0 },
	{ FAULT_WORKER, 2, 0 },	       { FAULT_PARENT, 1, 0 },	    { FAULT_STOP_DAEMON, 2, 0 },
	{ FAULT_STOP_DAEMON, 2, 300 }, { FAULT_STOP_RANK, 2, 500 }, { FAULT_LINK, 2, 0 },
	{ FAULT_LINK, 2, 300 },	       { FAULT_UPLINK, 2, 0 },	    { FAULT_UPLINK, 2, 300 },
	{ FAULT_INTERFACE, 2, 0 },
};
#define PLANS (sizeof(plans) / sizeof(plans[0]))

struct tally {
	uint32_t by_plan[PLANS], errors;
	uint64_t ops;
	double worst_ms;
	long fds, kib;
};

static size_t draw_plan(struct cluster *c, struct fault *f)
{
	for (;;) {
		uint32_t sum = 0, at;
		size_t i;

		for (i = 0; i < PLANS; i++) {
			sum += plans[i].weight;
		}
		at = draw(c, sum);
		i = 0;

		while (i + 1 < PLANS && at >= plans[i].weight) {
			at -= plans[i++].weight;
		}
		if (fault_draw(c, plans[i].kind, f)) {
			return i;
		}
	}
}

static bool bad(const struct cluster *c, const char *what, uint32_t rank)
{
	printf("FAIL: job %u: rank %u %s\n", c->shared->job.number, rank, what);
	return false;
}

/* All stop at an operation that none has reached. */
static bool finish(struct cluster *c)
{
	struct job *j = &c->shared->job;
	uint32_t most = 0;
	bool ok = true;

	for (uint32_t i = 0; i < j->ranks; i++) {
		uint32_t n = atomic_load(&c->shared->slots[i].ops);

		most = n > most ? n : most;
	}
	atomic_store(&j->stop, most + AHEAD);
	job_ended(c, OP_MS + FORM_MS, NOBODY);
	for (uint32_t i = 0; i < j->ranks; i++) {
		const struct slot *s = &c->shared->slots[i];

		if (!atomic_load(&s->ended)) {
			ok = bad(c, "hangs", i);
		} else if (s->status != 0) {
			ok = bad(c, "has an error, and nothing was to end it", i);
		}
	}
	return ok;
}

static bool survived(struct cluster *c, struct fault *f, uint32_t ms)
{
	uint32_t than[RANKS_MAX];

	if (f->kind != FAULT_NONE && !fault_begin(c, f)) {
		return bad(c, "cannot have this fault", f->rank);
	}
	pause_ms(ms);
	if (f->kind != FAULT_NONE && !fault_heal(c, f)) {
		return bad(c, "cannot be healed", f->rank);
	}
	for (uint32_t i = 0; i < c->shared->job.ranks; i++) {
		than[i] = atomic_load(&c->shared->slots[i].ops);
	}
	if (!job_progress(c, than, 4, OP_MS + FORM_MS, NOBODY)) {
		printf("FAIL: job %u: nothing moves after a fault that is over\n",
		       c->shared->job.number);
		return false;
	}
	return finish(c);
}

static bool lethal(struct cluster *c, struct fault *f, struct tally *t)
{
	/* The rank that is killed, or above a stopped daemon, does not tell. */
	uint32_t mute = f->kind == FAULT_RANK || f->kind == FAULT_STOP_DAEMON ? f->rank : NOBODY;
	bool ok = true, own_mute = f->kind == FAULT_STOP_DAEMON;

	if (!fault_begin(c, f)) {
		return bad(c, "cannot have this fault", f->rank);
	}
	for (uint32_t i = 0; i < c->shared->job.ranks; i++) {
		/* one by one, since several ranks can be above a stopped daemon */
		uint64_t left = f->at_us / 1000 + BOUND_MS;

		while (i != mute && !(own_mute && fault_own(c, f, i)) &&
		       !atomic_load(&c->shared->slots[i].ended) && now_us() / 1000 < left) {
			pause_ms(2);
		}
	}
	ok = fault_heal(c, f) || bad(c, "cannot be healed", f->rank);
	if (own_mute) {
		job_ended(c, OP_MS + BOUND_MS, NOBODY);
	}
	for (uint32_t i = 0; i < c->shared->job.ranks; i++) {
		const struct slot *s = &c->shared->slots[i];
		double ms = ((double)s->at_us - (double)f->at_us) / 1e3;

		if (i == mute && f->kind == FAULT_RANK) {
			continue;
		}
		if (!atomic_load(&s->ended) || s->status == 0) {
			ok = bad(c, "has no error", i);
		} else if (!fault_own(c, f, i)) {
			t->errors++;
			t->worst_ms = ms > t->worst_ms ? ms : t->worst_ms;
			ok = fault_named(c, f, i, s->text) ? ok : bad(c, "names no culprit", i);
		}
	}
	return ok;
}

static bool run_job(struct cluster *c, uint64_t seed, struct tally *t)
{
	struct job *j = &c->shared->job;
	struct fault f;
	size_t plan;
	bool ok;

	*j = (struct job){ .seed = seed,
			   .local = 1 + draw(c, 2),
			   .mixed = true,
			   .form_ms = FORM_MS,
			   .op_ms = OP_MS };
	j->ranks = c->nhosts * j->local;
	atomic_init(&j->stop, UINT32_MAX);
	plan = draw_plan(c, &f);
	t->by_plan[plan]++;
	printf("job %u: %u ranks, %s", c->jobs, j->ranks, kind_name(f.kind));
	if (f.kind != FAULT_NONE) {
		printf(" of %s (rank %u)%s", c->hosts[f.host].name, f.rank,
		       plans[plan].ms > 0 ? ", short" : "");
	}
	printf("\n");
	ok = job_start(c);
	if (ok && !job_progress(c, NULL, 2 + draw(c, 12), FORM_MS + OP_MS, NOBODY)) {
		printf("FAIL: job %u does not form or run\n", j->number);
		ok = false;
	}
	if (ok && (plans[plan].ms > 0 || f.kind == FAULT_NONE)) {
		ok = survived(c, &f, plans[plan].ms);
	} else if (ok) {
		ok = lethal(c, &f, t);
	}
	for (uint32_t i = 0; i < j->ranks; i++) {
		t->ops += atomic_load(&c->shared->slots[i].ops);
		if (c->shared->slots[i].wrong > 0) {
			ok = bad(c, "has wrong bytes", i);
		}
	}
	if (!ok) {
		job_print(c, stdout);
	}
	job_reap(c);
	return ok;
}

int soak(struct cluster *c, uint64_t seed, uint32_t jobs)
{
	struct tally t = { 0 };
	bool ok = daemons_usage(c, &t.fds, &t.kib);

	for (uint32_t i = 0; i < jobs && ok; i++) {
		ok = run_job(c, seed, &t) && daemons_usage(c, &t.fds, &t.kib);
	}
	/* for the summary of tests/soak */
	printf("SUM jobs %u ops %llu errors %u worst_ms %.0f fds %ld kib %ld", c->jobs,
	       (unsigned long long)t.ops, t.errors, t.worst_ms, t.fds, t.kib);
	for (size_t i = 0; i < PLANS; i++) {
		printf(" %s%s %u", kind_name(plans[i].kind), plans[i].ms > 0 ? "-short" : "",
		       t.by_plan[i]);
	}
	printf("\n");
	return ok ? 0 : 1;
}
