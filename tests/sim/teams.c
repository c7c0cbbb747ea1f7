/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts of several teams (script.h) on the networks and under the faults of scenarios: teams that
 * are split, derived and left, persistent operations, messages, and calls that wait for tasks.
 * A rank leaves a team in which a call has failed, and continues with its other teams.
 *
 * Every done function is called once, no call outlives its deadline, received bytes are right, no
 * buffer is touched after its call has ended, and nothing is left behind. Where nothing fails for
 * long, all succeeds; after all faults have ended a second script does. Errors are true
 * (teams_errors.c), and a call is refused for its options on all ranks or on none.
 *
 *   teams [--seeds N] [--first N] [--verbose]   seeds first .. first + N - 1 (from WIDE + 1 on 200,
 *                                               with sanitizers 80)
 *   teams --seed N [--verbose]                  one of them
 *   teams --seconds N [--first N]               as many as there is time for
 *
 * Exit status 1: a seed failed. It is printed with the command that replays it.
 */
#include "draw.h"
#include "seeds.h"
#include "teams.h"
#include "util/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#define SEEDS 80
#else
#define SEEDS 200
#endif
#define TICK (5 * CN_MS)
/* From these seeds on scripts are WIDE or LATE (script.h), and some of them go on. */
#define WIDE  10000000u
#define AGAIN 50000000u

/* ---- a run ---------------------------------------------------------------------------- */

static bool is_done(const struct process *p)
{
	return p->gone || (p->outstanding == 0 && p->blocked == NULL && !p->scheduled &&
			   (p->next >= p->stop || p->next >= p->fixture->script.nsteps));
}

static void check_deadlines(struct process *p)
{
	struct teams_fixture *w = p->fixture;

	for (uint32_t i = 0; i < p->next && p->outstanding > 0; i++) {
		struct team_call *c = &w->calls[(size_t)i * w->s->ranks + p->rank];
		cn_time deadline = c->deadline;

		if (!c->posted || c->completions > 0) {
			continue;
		}
		if (deadline < w->fixture.frozen[p->host]) {
			deadline = w->fixture.frozen[p->host];
		}
		if (teams_now(w) > deadline + w->fixture.limit_slack + TICK) {
			teams_report(c, "it is active past its deadline");
			w->over = true;
		}
	}
}

/* Event: calls keep to their deadlines, and calls wait for tasks that are there. */
static void tick(void *arg)
{
	struct teams_fixture *w = arg;
	bool done = true;

	for (uint32_t h = 0; h < w->s->hosts; h++) {
		if (teams_somebody_waits(w, h)) {
			teams_call_late(w, h);
			teams_submit_task(w, h);
		}
	}
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		done &= is_done(&w->processes[i]);
	}
	for (uint32_t i = 0; i < w->s->ranks && !done; i++) {
		check_deadlines(&w->processes[i]);
	}
	w->over |= done || w->fixture.findings > 0;
	if (!w->over) {
		cn_sim_at(w->fixture.sim, teams_now(w) + TICK, tick, w);
	}
}

static bool begin_processes(struct teams_fixture *w)
{
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		struct process *p = &w->processes[i];

		*p = (struct process){
			.fixture = w,
			.rank = i,
			.host = w->in_turn ? i % w->s->hosts : i / w->s->local,
			.stop = UINT32_MAX,
		};
		if (!teams_open_endpoint(p)) {
			return false;
		}
		teams_advance_later(p);
	}
	return true;
}

/* Until no frame is in flight, but at most a minute. */
static void drain(struct teams_fixture *w)
{
	for (int i = 0; i < 60; i++) {
		cn_sim_run(w->fixture.sim, teams_now(w) + 1000 * CN_MS);
		for (uint32_t h = 0; h < w->s->hosts; h++) {
			teams_submit_task(w, h);
		}
		if (i > 0 && oracle_is_idle(&w->fixture)) {
			return;
		}
	}
}

static void free_calls(struct teams_fixture *w)
{
	for (size_t i = 0; i < (size_t)w->script.nsteps * w->s->ranks; i++) {
		struct team_call *c = &w->calls[i];

		if (c->work == &c->own) {
			teams_report(c, buffers_check(&c->own.buffers));
			buffers_free(&c->own.buffers);
		}
		free(c->message);
	}
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		for (uint32_t h = 0; h < w->script.nhandles; h++) {
			buffers_free(&w->processes[i].handles[h].work.buffers);
		}
	}
	free(w->calls);
	w->calls = NULL;
}

/* One script, from the first join until everybody has left. */
static void run_script(struct teams_fixture *w, bool faults)
{
	w->over = false;
	w->struck = !faults;
	w->round++;
	memset(w->verdicts, 0, sizeof(w->verdicts));
	script_draw(w->s->seed * 2 + w->round, w->s->ranks,
		    w->style == SCRIPT_LATE && w->must_succeed ? SCRIPT_WIDE : w->style, w->again,
		    w->s->deadline, &w->script);
	w->calls = calloc((size_t)w->script.nsteps * w->s->ranks, sizeof(*w->calls));
	if (w->calls == NULL) {
		fixture_report(&w->fixture, "no memory for calls");
		return;
	}
	if (begin_processes(w)) {
		if (faults) {
			teams_schedule_faults(w);
		}
		cn_sim_at(w->fixture.sim, teams_now(w) + TICK, tick, w);
		while (!w->over && cn_sim_step(w->fixture.sim, CN_NEVER)) {
		}
		if (w->quiet > teams_now(w)) {
			cn_sim_run(w->fixture.sim, w->quiet + 1);
		}
	}
	for (uint32_t i = 0; i < w->s->ranks; i++) {
		if (!w->processes[i].gone) {
			teams_end_process(&w->processes[i], false);
		}
	}
	drain(w);
	free_calls(w);
}

static void run(struct teams_fixture *w)
{
	const bool must_succeed = scenario_must_succeed(w->s) && !w->mixed;

	fixture_begin_link_faults(&w->fixture);
	w->must_succeed = must_succeed;
	run_script(w, true);
	if (w->fixture.findings == 0 && !must_succeed) {
		fixture_repair(&w->fixture);
		if (!w->soon) {
			cn_sim_run(w->fixture.sim, teams_now(w) + 3000 * CN_MS);
		}
		w->must_succeed = !w->mixed;
		run_script(w, false);
	}
	if (w->fixture.findings == 0) {
		oracle_check_leaks(&w->fixture);
	}
}

/* More ranks than the scenario has, other calls than at first, and ranks that are too late where
 * nothing else fails. */
static void widen(struct teams_fixture *w, struct scenario *s, uint64_t *r)
{
	static const uint32_t depths[] = { 1, 2, 4, 16, 64 };
	const bool host_fails = s->nfaults > 0 && s->faults[0].kind < FAULT_DIE;

	w->style = SCRIPT_WIDE;
	w->depth = PICK(r, depths);
	w->in_turn = chance(r, 30);
	w->task_most = chance(r, 20) ? 500 * CN_MS : w->task_most;
	if (chance(r, 40)) {
		s->local = (uint32_t)between(r, 1, 4);
		s->ranks = s->hosts * s->local;
		s->faults[0].rank %= s->ranks;
	}
	switch (s->profile) {
	case PROFILE_NONE:
		w->style = chance(r, 75) ? SCRIPT_LATE : SCRIPT_WIDE;
		break;
	case PROFILE_LOSS:
		w->style = chance(r, 25) ? SCRIPT_LATE : SCRIPT_WIDE;
		break;
	case PROFILE_FAILURE:
		w->style = !host_fails && chance(r, 75) ? SCRIPT_LATE : SCRIPT_WIDE;
		w->interface_fails = !host_fails && chance(r, 30);
		break;
	default:
		break;
	}
	if (w->style == SCRIPT_LATE && s->profile != PROFILE_FAILURE) {
		s->profile = PROFILE_FAILURE;
		s->deadline = between(r, 50, 2000) * CN_MS;
	}
}

/* Ports that hold a few frames, hosts of different MTUs, ranks that join again, and jobs that do at
 * once after a fault. */
static void go_on(struct teams_fixture *w, struct scenario *s, uint64_t *r)
{
	static const uint32_t mtus[] = { 1500, 1500, 1500, 9000 };
	const bool small = chance(r, 15);

	w->again = chance(r, 75);
	w->soon = chance(r, 50);
	if (chance(r, 5)) {
		for (uint32_t h = 0; h < s->hosts; h++) {
			w->mtus[h] = PICK(r, mtus);
			w->mixed |= w->mtus[h] != w->mtus[0];
		}
		s->config.engine.node.mtu = 9000;
		s->config.mtus = w->mtus;
	}
	for (uint32_t i = 0; small && i < s->topo->nlinks; i++) {
		s->topo->links[i].buffer = (uint32_t)between(r, 1, 4);
	}
}

/* The scenario of a seed, of few hosts, some of which leave plans to tasks. */
static bool draw(struct teams_fixture *w, uint64_t seed, struct scenario *s)
{
	uint64_t r = cn_mix64(seed ^ 0x7465616d73);

	while (scenario_draw(cn_random(&r), s)) {
		if (s->hosts > TEAMS_HOSTS) {
			scenario_free(s);
			continue;
		}
		s->seed = seed;
		s->config.engine.task_min = seed % 2 == 0 ? 1 + cn_random(&r) % 500 : 0;
		w->s = w->fixture.s = s;
		w->depth = 1 + (uint32_t)(cn_random(&r) % 4);
		w->task_most = 2 * CN_MS;
		if (seed >= WIDE) {
			widen(w, s, &r);
		}
		if (seed >= AGAIN) {
			go_on(w, s, &r);
		}
		return true;
	}
	return false;
}

static bool run_seed(const char *program, uint64_t seed, bool verbose)
{
	struct teams_fixture *w = calloc(1, sizeof(*w));
	struct scenario s;
	struct cn_err err = { 0 };
	bool ok;

	if (w == NULL || !draw(w, seed, &s)) {
		printf("seed %llu: it cannot be drawn\n", (unsigned long long)seed);
		free(w);
		return false;
	}
	if (verbose) {
		scenario_print(&s);
	}
	w->fixture.verbose = verbose;
	w->fixture.random = cn_mix64(seed ^ 0x776f726c64);
	w->fixture.limit_slack = 50 * CN_MS + 2 * s.config.jitter +
				 2 * s.config.ring *
					 (s.config.o_recv + s.config.u_recv + s.config.o_send);
	w->fixture.frozen = calloc(s.hosts, sizeof(*w->fixture.frozen));
	w->fixture.crashed = calloc(s.hosts, sizeof(*w->fixture.crashed));
	if (w->fixture.frozen == NULL || w->fixture.crashed == NULL ||
	    cn_sim_new(&s.config, &w->fixture.sim, &err) != COLLNET_OK) {
		fixture_report(&w->fixture, "cannot begin: %s", err.text);
	} else {
		run(w);
	}
	cn_sim_free(w->fixture.sim);
	ok = w->fixture.findings == 0;
	if (!ok) {
		printf("seed %llu (%s) failed: %s\n  again: %s --seed %llu --verbose\n",
		       (unsigned long long)seed, profile_name(s.profile), w->fixture.finding,
		       program, (unsigned long long)seed);
		fflush(stdout);
	}
	free(w->fixture.frozen);
	free(w->fixture.crashed);
	scenario_free(&s);
	free(w);
	return ok;
}

/* Seeds that failed once: without arguments they run behind the others. */
static const uint64_t findings[] = {
	1355, /* a rank waited for what another one on its node had combined */
	1802,	  4140,
	200183,	 /* frames to a team that was not ready kept back what its nodes needed to be */
	303937,	 /* what had started at a node was not noted, as it said so before this was ready */
	147,	 /* ranks whose node was cut off had "left" */
	1002162, /* ranks that had called were missing, as another one of their node had not */
	1007370, /* a node that had stopped said of others that they were gone */
	10000036, /* a call was refused on one rank of a node, and did not match on the other */
	14003217, /* frames to several teams that were not ready took turns to fill a window */
	12000617, /* a node that heard others of another team was said to be cut off */
	12000041, /* a rank died with a split in its last step, and the others were not told */
	40002868, /* a frame that had given way waited for room that one behind it took */
	52000569, /* a derived team was ready without a rank that had left */
	56002651, /* a window filled a port each time, whose NAKs restarted the timer */
	57013184, /* only frames from a node were lost, and it waited for its deadline */
	30265769, /* the test took a call that was refused, as its parent had failed, for one */
};

int main(int argc, char **argv)
{
	struct seed_options o = { .first = WIDE + 1, .seeds = SEEDS };
	uint64_t run = 0, failed = 0;
	cn_time begin = cn_now();

	if (!seed_options_parse(argc, argv, false, &o)) {
		fprintf(stderr,
			"usage: %s [--seeds N] [--first N] [--seed N] [--seconds N] [--verbose]\n",
			argv[0]);
		return 2;
	}
	while (run < o.seeds && (o.seconds == 0 || cn_now() - begin < o.seconds * 1000 * CN_MS)) {
		failed += !run_seed(argv[0], o.first + run++, o.verbose);
	}
	for (size_t i = 0; argc == 1 && i < sizeof(findings) / sizeof(findings[0]); i++) {
		failed += !run_seed(argv[0], findings[i], o.verbose);
	}
	printf("%llu scripts from seed %llu; %llu failed\n", (unsigned long long)run,
	       (unsigned long long)o.first, (unsigned long long)failed);
	return failed > 0;
}
