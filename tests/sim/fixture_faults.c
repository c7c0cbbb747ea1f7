/* SPDX-License-Identifier: BSD-2-Clause */
/* The faults of a scenario, at their times. */
#include "fixture.h"

#include <stdio.h>

void fixture_rank_leaves(struct rank *r, bool failed)
{
	struct cn_member *m = r->member;

	r->member = NULL;
	fixture_stop_calling(r);
	if (m != NULL) {
		cn_team_leave(m, cn_sim_now(r->fixture->sim), failed);
		cn_sim_kick(r->fixture->sim, r->host);
	}
}

static void crash(struct fixture *fx, const struct fault_plan *f)
{
	fx->crashed[f->host] = true;
	for (uint32_t i = 0; i < fx->s->ranks; i++) {
		if (fx->ranks[i].host == f->host) {
			fx->ranks[i].member = NULL; /* goes with the engine */
			fixture_stop_calling(&fx->ranks[i]);
		}
	}
	cn_sim_crash(fx->sim, f->host);
}

bool fixture_fault_network(struct fixture *fx, const struct fault_plan *f, bool end)
{
	static const struct cn_sim_faults none;

	switch (f->kind) {
	case FAULT_LINK:
		cn_sim_fault(fx->sim, f->link, f->end, end ? &none : &f->link_faults);
		return true;
	case FAULT_CUT:
		cn_sim_cut(fx->sim, f->link, f->end, !end);
		return true;
	case FAULT_PAUSE:
		if (!end) {
			fx->frozen[f->host] = cn_sim_now(fx->sim) + f->until - f->at;
			cn_sim_pause(fx->sim, f->host, f->until - f->at);
		}
		return true;
	default:
		return false;
	}
}

void fixture_restart(struct fixture *fx, uint32_t host)
{
	struct cn_err err = { 0 };

	if (cn_sim_restart(fx->sim, host, &err) != COLLNET_OK) {
		fixture_report(fx, "host %u does not start again: %s", host, err.text);
	}
}

static void begin(struct fixture *fx, const struct fault_plan *f)
{
	if (fixture_fault_network(fx, f, false)) {
		return;
	}
	if (f->kind == FAULT_CRASH) {
		crash(fx, f);
	} else if (f->kind != FAULT_NO_CALL) { /* whose calls stop by themselves: call_later() */
		fixture_rank_leaves(&fx->ranks[f->rank], f->kind == FAULT_DIE);
	}
}

static void end(struct fixture *fx, const struct fault_plan *f)
{
	if (!fixture_fault_network(fx, f, true) && f->kind == FAULT_CRASH) {
		fixture_restart(fx, f->host);
	}
}

static void on_fault_event(void *arg)
{
	struct fault_event *h = arg;

	if (h->fixture->verbose) {
		printf("  %.6f ms: fault %d %s\n",
		       (double)cn_sim_now(h->fixture->sim) / 1e6 - 1000.0, h->plan->kind,
		       h->end ? "ends" : "begins");
	}
	(h->end ? end : begin)(h->fixture, h->plan);
}

cn_time fixture_schedule_faults(struct fixture *fx, struct fault_event *events)
{
	cn_time last = fx->start;
	uint32_t n = 0;

	for (uint32_t i = 0; i < fx->s->nfaults; i++) {
		const struct fault_plan *f = &fx->s->faults[i];
		cn_time end = fx->start + (f->until != CN_NEVER ? f->until : f->at);

		events[n] = (struct fault_event){ fx, f, false };
		cn_sim_at(fx->sim, fx->start + f->at, on_fault_event, &events[n++]);
		if (f->until != CN_NEVER) {
			events[n] = (struct fault_event){ fx, f, true };
			cn_sim_at(fx->sim, end, on_fault_event, &events[n++]);
		}
		last = end > last ? end : last;
		if (f->kind == FAULT_NO_CALL) {
			fx->ranks[f->rank].stop = f->number;
		}
	}
	return last;
}

void fixture_begin_link_faults(struct fixture *fx)
{
	for (uint32_t i = 0; fx->s->profile == PROFILE_LOSS && i < fx->s->nfaults; i++) {
		begin(fx, &fx->s->faults[i]);
	}
}

void fixture_repair(struct fixture *fx)
{
	static const struct cn_sim_faults none;

	cn_sim_fault(fx->sim, CN_TOPO_NONE, 2, &none);
	for (uint32_t h = 0; h < fx->s->hosts; h++) {
		if (cn_sim_engine(fx->sim, h) == NULL) {
			fixture_restart(fx, h);
		}
		fx->crashed[h] = false;
	}
}
