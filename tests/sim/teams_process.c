/* SPDX-License-Identifier: BSD-2-Clause */
#include "teams.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void advance(void *arg);

void teams_kick(struct process *p)
{
	cn_sim_kick(p->world->fixture.sim, p->host);
	teams_give_task(p->world, p->host);
}

void teams_advance_later(struct process *p)
{
	struct world *w = p->world;
	const cn_time think = w->s->think > 0 ? cn_random(&w->fixture.random) % w->s->think : 0;

	if (!p->scheduled && !w->over) {
		p->scheduled = true;
		cn_sim_at(w->fixture.sim, teams_now(w) + think, advance, p);
	}
}

/* ---- leaving -------------------------------------------------------------------------- */

static void release(struct process *p, uint32_t handle)
{
	struct handle *h = &p->handles[handle];

	if (h->prepared != NULL) {
		cn_prepared_release(h->prepared);
		h->prepared = NULL;
	}
}

static void leave(struct process *p, uint32_t team, bool dead)
{
	struct cn_member *m = p->members[team];

	for (uint32_t h = 0; h < p->world->script.nhandles; h++) {
		if (p->world->script.handles[h].team == team) {
			release(p, h);
		}
	}
	p->members[team] = NULL;
	p->failed[team] = false;
	if (m != NULL) {
		cn_team_leave(m, teams_now(p->world), dead);
	}
}

/* A call that waits for a task is not made again, as its process ends. */
static void stop_waiting(struct process *p)
{
	if (p->waits) {
		p->waits = false;
		p->outstanding--;
		p->blocked->completions++;
		p->blocked = NULL;
	}
}

void teams_end_process(struct process *p, bool dead)
{
	p->gone = true;
	stop_waiting(p);
	for (uint32_t t = 0; t < p->world->script.nteams; t++) {
		leave(p, t, dead);
	}
	if (p->endpoint != NULL) {
		struct cn_endpoint *ep = p->endpoint;

		p->endpoint = NULL;
		cn_endpoint_close(ep, teams_now(p->world));
	}
	teams_kick(p);
}

/* ---- steps ---------------------------------------------------------------------------- */

static bool must_wait(const struct process *p, const struct step *x)
{
	return p->outstanding >= p->world->depth || (x->kind == STEP_LEAVE && p->outstanding > 0) ||
	       ((x->kind == STEP_START || x->kind == STEP_RELEASE) && p->handles[x->handle].busy);
}

static void begin_step(struct process *p, uint32_t number)
{
	struct world *w = p->world;
	const struct step *x = &w->script.steps[number];
	struct team_call *c = &w->calls[(size_t)number * w->s->ranks + p->rank];

	if (x->kind == STEP_LEAVE) {
		leave(p, x->team, false);
		return;
	}
	if (x->kind == STEP_RELEASE) {
		release(p, x->handle);
		return;
	}
	*c = (struct team_call){
		.process = p,
		.step = x,
		.number = number,
		.team = teams_team_of(p, x),
		.deadline = teams_now(w) + (w->must_succeed ? SUCCESS_DEADLINE : w->s->deadline),
	};
	p->outstanding++;
	if (x->kind == STEP_JOIN || x->kind == STEP_SPLIT || x->kind == STEP_DERIVE) {
		p->blocked = c;
	}
	if (!teams_begin_call(c)) {
		teams_report(c, "no memory");
		w->over = true;
		return;
	}
	teams_make_call(c);
}

/* Event: the process leaves teams that failed, and goes on. */
static void advance(void *arg)
{
	struct process *p = arg;
	struct world *w = p->world;

	p->scheduled = false;
	for (uint32_t t = 0; t < w->script.nteams && !p->gone && !p->waits; t++) {
		if (p->failed[t]) {
			leave(p, t, false);
		}
	}
	while (!p->gone && p->blocked == NULL && p->next < w->script.nsteps && p->next < p->stop) {
		const struct step *x = &w->script.steps[p->next];

		if (!teams_takes_part(p, x)) {
			p->next++;
			continue;
		}
		if (must_wait(p, x)) {
			break;
		}
		begin_step(p, p->next++);
	}
	teams_kick(p);
}

/* ---- tasks ---------------------------------------------------------------------------- */

static void make_waiting(struct world *w, uint32_t host)
{
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		struct process *p = &w->processes[i];

		if (p->host == host && p->waits) {
			teams_make_call(p->blocked);
			teams_advance_later(p);
		}
	}
	cn_engine_task_over(cn_sim_engine(w->fixture.sim, host));
	cn_sim_kick(w->fixture.sim, host);
}

static void run_task(struct world *w, uint32_t host)
{
	struct cn_task *x = w->tasks[host];

	w->tasks[host] = NULL;
	cn_task_run(x);
	cn_engine_task_done(cn_sim_engine(w->fixture.sim, host), x);
}

struct task_event {
	struct world *world;
	uint32_t host;
};

/* Event: the task of a host is done, unless the host has crashed. */
static void on_task_done(void *arg)
{
	struct task_event *t = arg;

	if (t->world->tasks[t->host] != NULL) {
		run_task(t->world, t->host);
		make_waiting(t->world, t->host);
		teams_give_task(t->world, t->host);
	}
	free(t);
}

bool teams_somebody_waits(const struct world *w, uint32_t host)
{
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		if (w->processes[i].host == host && w->processes[i].waits) {
			return true;
		}
	}
	return false;
}

/* The next task of a host, as in collnetd: where there is none, calls that wait for one are made
 * again, since it went with its team. */
void teams_give_task(struct world *w, uint32_t host)
{
	struct cn_engine *e = cn_sim_engine(w->fixture.sim, host);
	struct task_event *t;

	if (w->fixture.s->config.engine.task_min == 0 || e == NULL || w->tasks[host] != NULL) {
		return;
	}
	w->tasks[host] = cn_engine_next_task(e);
	if (w->tasks[host] == NULL && teams_somebody_waits(w, host)) {
		make_waiting(w, host);
		w->tasks[host] = cn_engine_next_task(e);
	}
	if (w->tasks[host] == NULL) {
		return;
	}
	t = malloc(sizeof(*t));
	if (t == NULL) {
		abort();
	}
	*t = (struct task_event){ w, host };
	cn_sim_at(w->fixture.sim, teams_now(w) + cn_random(&w->fixture.random) % (2 * CN_MS),
		  on_task_done, t);
}

/* ---- faults --------------------------------------------------------------------------- */

static void crash(struct world *w, uint32_t host)
{
	if (w->tasks[host] != NULL) {
		run_task(w, host);
	}
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		struct process *p = &w->processes[i];

		if (p->host != host) {
			continue;
		}
		p->gone = true; /* what it has goes with the engine */
		p->endpoint = NULL;
		stop_waiting(p);
		for (uint32_t h = 0; h < w->script.nhandles; h++) {
			release(p, h);
		}
		memset(p->members, 0, sizeof(p->members));
	}
	cn_sim_crash(w->fixture.sim, host);
}

static void on_fault(void *arg)
{
	struct fault_event *h = arg;
	struct world *w = (struct world *)((char *)h->fixture - offsetof(struct world, fixture));
	const struct fault_plan *f = h->plan;

	if (w->fixture.verbose) {
		printf("  %.6f ms: fault %d %s\n", (double)teams_now(w) / 1e6 - 1000.0, f->kind,
		       h->end ? "ends" : "begins");
	}
	if (fixture_fault_network(&w->fixture, f, h->end)) {
		return;
	}
	if (f->kind == FAULT_CRASH && h->end) {
		fixture_restart(&w->fixture, f->host);
	} else if (f->kind == FAULT_CRASH) {
		crash(w, f->host);
	} else if (f->kind == FAULT_NO_CALL) { /* after the next step */
		w->processes[f->rank].stop = w->processes[f->rank].next + 1;
	} else if (!w->processes[f->rank].gone) {
		teams_end_process(&w->processes[f->rank], f->kind == FAULT_DIE);
	}
}

/* The time of the last event. */
cn_time teams_schedule_faults(struct world *w, struct fault_event *events)
{
	cn_time last = teams_now(w);
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->s->nfaults && w->s->profile != PROFILE_LOSS; i++) {
		const struct fault_plan *f = &w->s->faults[i];
		const cn_time times[2] = { teams_now(w) + f->at, teams_now(w) + f->until };

		for (uint32_t k = 0; k < (f->until != CN_NEVER ? 2u : 1u); k++) {
			if (k == 1 && f->kind >= FAULT_DIE) {
				continue;
			}
			events[n] = (struct fault_event){ &w->fixture, f, k == 1 };
			cn_sim_at(w->fixture.sim, times[k], on_fault, &events[n++]);
			last = times[k] > last ? times[k] : last;
		}
	}
	return last;
}
