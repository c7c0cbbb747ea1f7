/* SPDX-License-Identifier: BSD-2-Clause */
#include "teams.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void advance(void *arg);
static void strike(struct process *p, uint32_t number);

void teams_kick(struct process *p)
{
	cn_sim_kick(p->fixture->fixture.sim, p->host);
	teams_submit_task(p->fixture, p->host);
}

bool teams_open_endpoint(struct process *p)
{
	struct fixture *fx = &p->fixture->fixture;
	struct cn_err err = { 0 };

	if (cn_endpoint_open(cn_sim_engine(fx->sim, p->host), 1000, 1,
			     (uint16_t)(FIRST_ENDPOINT + p->rank), &p->endpoint,
			     &err) != COLLNET_OK) {
		fixture_report(fx, "rank %u has no endpoint: %s", p->rank, err.text);
		return false;
	}
	return true;
}

void teams_advance_later(struct process *p)
{
	struct teams_fixture *w = p->fixture;
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

	for (uint32_t h = 0; h < p->fixture->script.nhandles; h++) {
		if (p->fixture->script.handles[h].team == team) {
			release(p, h);
		}
	}
	p->members[team] = NULL;
	p->failed[team] = false;
	p->left[team] |= m != NULL;
	if (m != NULL) {
		cn_team_leave(m, teams_now(p->fixture), dead);
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
	p->died = dead;
	stop_waiting(p);
	for (uint32_t t = 0; t < p->fixture->script.nteams; t++) {
		leave(p, t, dead);
	}
	if (p->endpoint != NULL) {
		struct cn_endpoint *ep = p->endpoint;

		p->endpoint = NULL;
		cn_endpoint_close(ep, teams_now(p->fixture));
	}
	teams_kick(p);
}

/* ---- steps ---------------------------------------------------------------------------- */

static bool is_outstanding(const struct team_call *c)
{
	return c != NULL && c->completions == 0;
}

static bool must_wait(const struct process *p, const struct step *x)
{
	const uint32_t next = p->called[x->team] % COLLNET_OUTSTANDING_MAX;

	switch (x->kind) {
	case STEP_LATE:
	case STEP_REOPEN:
		return false;
	case STEP_LEAVE:
		return p->outstanding > 0 && !x->hasty;
	case STEP_RELEASE:
		return (p->outstanding >= p->fixture->depth || p->handles[x->handle].busy) &&
		       !x->hasty;
	case STEP_START:
		return p->outstanding >= p->fixture->depth || p->handles[x->handle].busy ||
		       is_outstanding(p->last[x->team][next]);
	case STEP_CALL:
	case STEP_SPLIT:
		return p->outstanding >= p->fixture->depth ||
		       is_outstanding(p->last[x->team][next]);
	default:
		return p->outstanding >= p->fixture->depth;
	}
}

static void reopen(struct process *p)
{
	struct cn_endpoint *ep = p->endpoint;

	p->endpoint = NULL;
	p->reopened = true;
	cn_endpoint_close(ep, teams_now(p->fixture));
	if (!teams_open_endpoint(p)) {
		p->fixture->over = true;
	}
}

/* A step that is no call. False: it is one. */
static bool make_other_step(struct process *p, const struct step *x)
{
	struct teams_fixture *w = p->fixture;

	switch (x->kind) {
	case STEP_LEAVE:
		leave(p, x->team, false);
		return true;
	case STEP_RELEASE:
		release(p, x->handle);
		return true;
	case STEP_LATE:
		p->scheduled = true;
		cn_sim_at(w->fixture.sim, teams_now(w) + x->late, advance, p);
		return true;
	case STEP_REOPEN:
		reopen(p);
		return true;
	default:
		return false;
	}
}

static void begin_step(struct process *p, uint32_t number)
{
	struct teams_fixture *w = p->fixture;
	const struct step *x = &w->script.steps[number];
	struct team_call *c = &w->calls[(size_t)number * w->s->ranks + p->rank];

	if (make_other_step(p, x)) {
		return;
	}
	*c = (struct team_call){
		.process = p,
		.step = x,
		.number = number,
		.team = teams_team_of(p, x),
		.seq = UINT32_MAX,
		.at = teams_now(w),
		.deadline = teams_now(w) + (w->must_succeed ? SUCCESS_DEADLINE : w->s->deadline),
	};
	p->outstanding++;
	if (teams_makes(x)) {
		p->blocked = c;
	}
	if (!teams_begin_call(c)) {
		teams_report(c, "no memory");
		w->over = true;
		return;
	}
	teams_make_call(c);
}

/* Event: the process leaves teams that failed, and continues. */
static void advance(void *arg)
{
	struct process *p = arg;
	struct teams_fixture *w = p->fixture;

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
		strike(p, p->next - 1);
		if (x->kind == STEP_LATE) {
			break;
		}
	}
	teams_kick(p);
}

/* ---- tasks ---------------------------------------------------------------------------- */

static void make_waiting(struct teams_fixture *w, uint32_t host)
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

static void run_task(struct teams_fixture *w, uint32_t host)
{
	struct cn_task *x = w->tasks[host];

	w->tasks[host] = NULL;
	cn_task_run(x);
	cn_engine_task_done(cn_sim_engine(w->fixture.sim, host), x);
}

struct task_event {
	struct teams_fixture *fixture;
	uint32_t host;
};

/* Event: the task of a host is done, unless the host has crashed. */
static void on_task_done(void *arg)
{
	struct task_event *t = arg;

	if (t->fixture->tasks[t->host] != NULL) {
		run_task(t->fixture, t->host);
		make_waiting(t->fixture, t->host);
		teams_submit_task(t->fixture, t->host);
	}
	free(t);
}

bool teams_somebody_waits(const struct teams_fixture *w, uint32_t host)
{
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		if (w->processes[i].host == host && w->processes[i].waits) {
			return true;
		}
	}
	return false;
}

void teams_call_late(struct teams_fixture *w, uint32_t host)
{
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		struct process *p = &w->processes[i];

		if (p->host == host && p->waits && p->blocked->deadline <= teams_now(w)) {
			teams_make_call(p->blocked);
			teams_advance_later(p);
			cn_sim_kick(w->fixture.sim, host);
		}
	}
}

static void begin_task(struct teams_fixture *w, uint32_t host)
{
	struct task_event *t;

	if (w->tasks[host] == NULL) {
		w->tasks[host] = cn_engine_next_task(cn_sim_engine(w->fixture.sim, host));
		if (w->tasks[host] == NULL) {
			return;
		}
		t = malloc(sizeof(*t));
		if (t == NULL) {
			abort();
		}
		*t = (struct task_event){ w, host };
		cn_sim_at(w->fixture.sim,
			  teams_now(w) + cn_random(&w->fixture.random) % w->task_most, on_task_done,
			  t);
	}
}

/* The next task of a host, as in collnetd: where there is none, or one was dropped, calls that wait
 * are made again, since theirs may have gone with its team. */
void teams_submit_task(struct teams_fixture *w, uint32_t host)
{
	struct cn_engine *e = cn_sim_engine(w->fixture.sim, host);

	if (w->fixture.s->config.engine.task_min == 0 || e == NULL) {
		return;
	}
	begin_task(w, host);
	for (int i = 0; i < 2 && teams_somebody_waits(w, host) &&
			(cn_engine_tasks_dropped(e) || w->tasks[host] == NULL);
	     i++) {
		make_waiting(w, host);
		begin_task(w, host);
	}
}

/* ---- faults --------------------------------------------------------------------------- */

static void crash(struct teams_fixture *w, uint32_t host)
{
	if (w->tasks[host] != NULL) {
		run_task(w, host);
	}
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		struct process *p = &w->processes[i];

		if (p->host != host) {
			continue;
		}
		p->gone = p->died = true; /* what it has goes with the engine */
		memset(p->left, true, sizeof(p->left));
		p->endpoint = NULL;
		stop_waiting(p);
		for (uint32_t h = 0; h < w->script.nhandles; h++) {
			release(p, h);
		}
		memset(p->members, 0, sizeof(p->members));
	}
	cn_sim_crash(w->fixture.sim, host);
}

/* Its calls went with the engine. */
static void forget_calls(struct process *p)
{
	struct teams_fixture *w = p->fixture;

	for (uint32_t i = 0; i < p->next; i++) {
		struct team_call *c = &w->calls[(size_t)i * w->s->ranks + p->rank];

		if (c->posted && c->completions == 0) {
			c->completions = 1;
			c->status = COLLNET_EDAEMON;
		}
	}
	for (uint32_t h = 0; h < w->script.nhandles; h++) {
		p->handles[h].busy = false;
	}
	p->outstanding = 0;
	p->blocked = NULL;
}

/* The host has crashed and restarted: its processes, too. */
static void begin_again(struct teams_fixture *w, uint32_t host)
{
	for (uint32_t i = 0; i < w->s->ranks && !w->over; i++) {
		struct process *p = &w->processes[i];
		const uint32_t step = script_next_join(&w->script, p->next);

		if (p->host != host || step == UINT32_MAX) {
			continue;
		}
		forget_calls(p);
		memset(p->failed, false, sizeof(p->failed));
		for (uint32_t t = w->script.steps[step].child; t < SCRIPT_TEAMS; t++) {
			p->left[t] = false;
		}
		p->next = step;
		p->gone = false;
		if (!teams_open_endpoint(p)) {
			w->over = true;
		}
		teams_advance_later(p);
	}
}

/* All teams of the host fail, and its endpoints' messages; the processes continue. */
static void fail_interface(struct teams_fixture *w, uint32_t host)
{
	struct cn_engine *e = cn_sim_engine(w->fixture.sim, host);
	char text[128];

	snprintf(text, sizeof(text), "interface eth0 of node %s is down",
		 w->s->topo->vertices[w->s->topo->hosts[host]].name);
	cn_engine_fail(e, teams_now(w), COLLNET_EIFACE, text);
	cn_sim_kick(w->fixture.sim, host);
	teams_submit_task(w, host);
}

static void on_fault(void *arg)
{
	struct fault_event *h = arg;
	struct teams_fixture *w = (struct teams_fixture *)((char *)h->fixture -
							   offsetof(struct teams_fixture, fixture));
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
		if (w->again) {
			begin_again(w, f->host);
		}
	} else if (f->kind == FAULT_CRASH) {
		crash(w, f->host);
	} else if (f->kind == FAULT_NO_CALL) { /* after the next step */
		w->processes[f->rank].stop = w->processes[f->rank].next + 1;
	} else if (w->interface_fails) {
		fail_interface(w, w->processes[f->rank].host);
	} else if (!w->processes[f->rank].gone) {
		teams_end_process(&w->processes[f->rank], f->kind == FAULT_DIE);
	}
}

static void schedule(struct teams_fixture *w, uint32_t fault, bool end, cn_time at)
{
	struct fault_event *h = &w->events[2 * fault + end];

	*h = (struct fault_event){ &w->fixture, &w->s->faults[fault], end };
	cn_sim_at(w->fixture.sim, at, on_fault, h);
	w->quiet = at > w->quiet ? at : w->quiet;
}

/* A process that fails, does so in the step that was chosen, if one was. */
static bool strikes(const struct teams_fixture *w, const struct fault_plan *f)
{
	return f->kind >= FAULT_CRASH && w->script.strike != UINT32_MAX;
}

/* Its call of this step was made. */
static void strike(struct process *p, uint32_t number)
{
	struct teams_fixture *w = p->fixture;
	for (uint32_t i = 0; i < w->s->nfaults && number == w->script.strike && !w->struck; i++) {
		const cn_time at = teams_now(w) + 1 + cn_random(&w->fixture.random) % CN_MS;
		const struct fault_plan *f = &w->s->faults[i];

		if (f->kind == FAULT_NO_CALL || !strikes(w, f) ||
		    (f->kind == FAULT_CRASH ? f->host != p->host : f->rank != p->rank)) {
			continue;
		}
		w->struck = true;
		schedule(w, i, false, at);
		if (f->kind == FAULT_CRASH && f->until != CN_NEVER) {
			schedule(w, i, true, at + f->until - f->at);
		}
	}
}

void teams_schedule_faults(struct teams_fixture *w)
{
	for (uint32_t i = 0; i < w->s->nfaults && w->s->profile != PROFILE_LOSS; i++) {
		const struct fault_plan *f = &w->s->faults[i];

		if (strikes(w, f)) {
			if (f->kind == FAULT_NO_CALL) {
				w->processes[f->rank].stop = w->script.strike;
			}
			continue;
		}
		schedule(w, i, false, teams_now(w) + f->at);
		if (f->until != CN_NEVER && f->kind < FAULT_DIE) {
			schedule(w, i, true, teams_now(w) + f->until);
		}
	}
}
