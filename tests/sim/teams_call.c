/* SPDX-License-Identifier: BSD-2-Clause */
#include "teams.h"
#include "tests/unit/reduction.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ends of calls -------------------------------------------------------------------- */

static bool is_message_right(const struct team_call *c)
{
	struct teams_fixture *w = c->process->fixture;
	const uint32_t from = c->received.from.endpoint - FIRST_ENDPOINT;
	uint32_t number;

	if (from >= w->s->ranks || c->received.bytes < sizeof(number)) {
		return false;
	}
	memcpy(&number, c->message, sizeof(number));
	if (number >= w->script.nsteps || w->script.steps[number].kind != STEP_MESSAGE ||
	    w->script.steps[number].from != from ||
	    w->script.steps[number].to != c->process->rank || number <= c->process->heard[from] ||
	    c->received.bytes != sizeof(number) + w->script.steps[number].bytes) {
		return false;
	}
	c->process->heard[from] = number;
	for (uint64_t i = sizeof(number); i < c->received.bytes; i++) {
		if (c->message[i] != (uint8_t)(number + i)) {
			return false;
		}
	}
	return true;
}

/* What is wrong with the result of a call that succeeded; NULL: nothing. */
static const char *wrong(const struct team_call *c)
{
	const struct process *p = c->process;
	uint64_t which[2];

	switch (c->step->kind) {
	case STEP_CALL:
	case STEP_START:
		return buffers_wrong(&c->work->buffers, which) != 0 ? "bytes are wrong" : NULL;
	case STEP_MESSAGE:
		return c->step->to == p->rank && c->message != NULL && c->received.bytes > 0 &&
				       !is_message_right(c)
			       ? "a message is wrong"
			       : NULL;
	case STEP_JOIN:
		if (p->fixture->mixed) {
			return "it has nodes of different MTUs";
		}
		/* fall through */
	case STEP_SPLIT:
	case STEP_DERIVE: {
		const struct script_team *t = &p->fixture->script.teams[c->team];
		const struct cn_member *m = p->members[c->team];

		return m != NULL && (cn_member_rank(m) != script_rank(t, p->rank) ||
				     cn_member_ranks(m) != t->n)
			       ? "the new team has other ranks"
			       : NULL;
	}
	default:
		return NULL;
	}
}

void teams_report(struct team_call *c, const char *what)
{
	if (what != NULL) {
		fixture_report(&c->process->fixture->fixture, "rank %u, step %u (%s): %s",
			       c->process->rank, c->number, script_name(c->step->kind), what);
	}
}

static void note_failure(struct team_call *c, int status, const char *text)
{
	struct process *p = c->process;
	struct teams_fixture *w = p->fixture;
	const char *wrong;

	w->fixture.hints |= teams_makes(c->step);
	if (p->gone) {
		return;
	}
	wrong = w->must_succeed ? "it failed" : teams_check_error(c, status, text);
	if (wrong != NULL) {
		fixture_report(&w->fixture, "rank %u, step %u (%s): %s: %d %s", p->rank, c->number,
			       script_name(c->step->kind), wrong, status, text);
	}
	p->failed[c->team] |= c->step->kind != STEP_MESSAGE;
}

static void finish(struct team_call *c, int status, const char *text)
{
	struct process *p = c->process;
	struct teams_fixture *w = p->fixture;

	if (w->fixture.verbose) {
		printf("  %.6f ms: rank %u, step %u (%s): %d %s\n",
		       (double)teams_now(w) / 1e6 - 1000.0, p->rank, c->number,
		       script_name(c->step->kind), status, text);
	}
	if (c->completions++ > 0) {
		teams_report(c, "it ended a second time");
		return;
	}
	c->status = status;
	p->outstanding--;
	if (p->blocked == c) {
		p->blocked = NULL;
		p->waits = false;
	}
	if (status == COLLNET_OK) {
		teams_report(c, wrong(c));
	} else if (!c->refused) {
		note_failure(c, status, text);
	}
	if (c->work != NULL && c->step->kind != STEP_PREPARE) {
		teams_report(c, buffers_release(&c->work->buffers));
	}
	if (c->step->kind == STEP_START) {
		p->handles[c->step->handle].busy = false;
	}
	teams_advance_later(p);
}

static void ended(struct cn_done *d, int status, const char *text)
{
	finish((struct team_call *)((char *)d - offsetof(struct team_call, done)), status, text);
}

/* ---- reductions ----------------------------------------------------------------------- */

static void combine_late(void *arg)
{
	struct work *x = arg;

	if (x->reducer.op != NULL) {
		buffers_combine(&x->buffers, &x->piece);
		cn_coll_combined(&x->reducer);
		teams_kick(x->process);
	}
}

static bool combine(struct cn_reducer *r, const struct cn_combine *piece)
{
	struct work *x = (struct work *)((char *)r - offsetof(struct work, reducer));
	struct fixture *fx = &x->process->fixture->fixture;

	x->piece = *piece;
	if (fx->s->late && cn_random(&fx->random) % 2 == 0 &&
	    cn_sim_at(fx->sim, cn_sim_now(fx->sim) + cn_random(&fx->random) % FIXTURE_LATE,
		      combine_late, x) == COLLNET_OK) {
		return false;
	}
	buffers_combine(&x->buffers, piece);
	return true;
}

/* ---- calls ---------------------------------------------------------------------------- */

static bool prepare_work(struct process *p, struct work *x, const struct op_plan *o, uint32_t team,
			 uint32_t number)
{
	struct cn_member *m = p->members[team];

	x->process = p;
	x->reducer.combine = combine;
	x->buffers = (struct buffers){ .plan = o,
				       .number = number,
				       .rank = cn_member_rank(m),
				       .ranks = cn_member_ranks(m),
				       .nodes = cn_member_nodes(m),
				       .local = cn_member_local(m) };
	if (!buffers_prepare(&x->buffers)) {
		return false;
	}
	x->args = (struct cn_coll_args){
		.op = o->op,
		.algorithm = o->algorithm,
		.permutation = o->permutation,
		.contention_aware = o->contention_aware,
		.window = o->window,
		.root = o->root,
		.bytes = cn_op_is_vector(o->op) ? 0 : o->bytes,
		.blocks = x->buffers.blocks,
		.send = x->buffers.send,
		.recv = x->buffers.recv,
		.element = cn_op_reduces(o->op) ? reduction_element(o->ordered) : 0,
		.ordered = o->ordered,
		.scratch = x->buffers.scratch,
		.reducer = cn_op_reduces(o->op) ? &x->reducer : NULL,
	};
	return true;
}

/* Once, before the call is made. */
bool teams_begin_call(struct team_call *c)
{
	struct process *p = c->process;
	struct handle *h = &p->handles[c->step->handle];
	const struct script *script = &p->fixture->script;

	c->done.fn = ended;
	switch (c->step->kind) {
	case STEP_CALL:
		c->work = &c->own;
		return prepare_work(p, c->work, &c->step->op, c->step->team, c->number);
	case STEP_PREPARE:
		c->work = &h->work;
		return prepare_work(p, c->work, &script->handles[c->step->handle].op, c->step->team,
				    c->number);
	case STEP_START:
		c->work = &h->work;
		h->busy = true;
		buffers_renew(&c->work->buffers, c->number);
		return true;
	case STEP_MESSAGE:
		c->message = malloc(SCRIPT_MESSAGE + sizeof(c->number));
		if (c->message == NULL) {
			return false;
		}
		memcpy(c->message, &c->number, sizeof(c->number));
		for (uint64_t i = sizeof(c->number); i < sizeof(c->number) + c->step->bytes; i++) {
			c->message[i] = (uint8_t)(c->number + i);
		}
		return true;
	default:
		return true;
	}
}

static int send_message(struct team_call *c, struct cn_err *err)
{
	struct teams_fixture *w = c->process->fixture;
	const uint32_t host = w->processes[c->step->to].host;

	return cn_endpoint_send(c->process->endpoint, teams_now(w),
				w->s->topo->vertices[w->s->topo->hosts[host]].name,
				(uint16_t)(FIRST_ENDPOINT + c->step->to), c->message,
				sizeof(c->number) + c->step->bytes, c->deadline, &c->done, err);
}

static int split(struct team_call *c, struct cn_err *err)
{
	struct process *p = c->process;
	struct cn_member *parent = p->members[c->step->team], *none = NULL;
	const uint32_t rank = cn_member_rank(parent);
	const int32_t color = script_color(c->step, rank);
	char job[64];
	const struct cn_split_call call = { job, c->step->making, color,
					    script_key(c->step, rank) };

	snprintf(job, sizeof(job), "%llx/%u.%d", (unsigned long long)cn_member_run(parent),
		 c->number, color);
	return cn_team_split(parent, teams_now(p->fixture), &call, c->deadline, &c->done,
			     color < 0 ? &none : &p->members[c->team], err);
}

static int derive(struct team_call *c, struct cn_err *err)
{
	struct process *p = c->process;
	const struct script *script = &p->fixture->script;
	const struct script_team *t = &script->teams[c->team],
				 *parent = &script->teams[c->step->team];
	struct cn_member *m = p->members[c->step->team];
	uint64_t members[COLLNET_RANKS_MAX / 64] = { 0 };
	char job[64];

	for (uint32_t i = 0; i < t->n; i++) {
		const uint32_t r = script_rank(parent, t->ranks[i]);

		members[r / 64] |= (uint64_t)1 << r % 64;
	}
	snprintf(job, sizeof(job), "%llx/%u", (unsigned long long)cn_member_run(m), c->number);
	return cn_team_derive(m, teams_now(p->fixture), job, script_rank(t, p->rank), t->n, members,
			      c->deadline, &c->done, &p->members[c->team], err);
}

static int try_call(struct team_call *c, struct cn_err *err)
{
	struct process *p = c->process;
	struct teams_fixture *w = p->fixture;
	struct cn_engine *e = cn_sim_engine(w->fixture.sim, p->host);
	struct handle *h = &p->handles[c->step->handle];
	const uint32_t team = c->step->team;
	char job[16];

	if (c->step->kind != STEP_JOIN && c->step->kind != STEP_MESSAGE &&
	    p->members[team] == NULL) {
		return cn_fail(err, COLLNET_ERANK, "it has left meanwhile");
	}
	switch (c->step->kind) {
	case STEP_JOIN:
		/* A second script has the names of the first one, of which records may be left. */
		snprintf(job, sizeof(job), "job%u", w->again ? c->number : w->round);
		cn_engine_set_payer(e, p->rank % 2);
		return cn_team_join(e, teams_now(w), 1000, job, p->rank, w->s->ranks, c->deadline,
				    &c->done, &p->members[c->team], err);
	case STEP_CALL:
		c->work->args.deadline = c->deadline;
		return cn_coll_post(p->members[team], teams_now(w), &c->work->args, &c->done, err);
	case STEP_PREPARE:
		return cn_coll_prepare(p->members[team], &c->work->args, &h->prepared, err);
	case STEP_START:
		return cn_prepared_start(h->prepared, teams_now(w), c->deadline, &c->done, err);
	case STEP_SPLIT:
		return split(c, err);
	case STEP_DERIVE:
		return derive(c, err);
	default:
		return c->step->to == p->rank
			       ? cn_endpoint_recv(p->endpoint, teams_now(w), c->message,
						  SCRIPT_MESSAGE + sizeof(c->number), c->deadline,
						  &c->received, &c->done, err)
			       : send_message(c, err);
	}
}

static bool calls_operation(const struct step *x)
{
	return x->kind == STEP_CALL || x->kind == STEP_START;
}

/* As collnetd: to prepare an operation is no part of one, and the engine does not know of its
 * deadline. */
static int prepare_in_time(const struct team_call *c, int rc, struct cn_err *err)
{
	return rc == COLLNET_INPROGRESS && c->step->kind == STEP_PREPARE &&
			       c->deadline <= teams_now(c->process->fixture)
		       ? cn_fail(err, COLLNET_ETIMEOUT,
				 "the operation was not planned before the deadline")
		       : rc;
}

/* Whether the call is refused for its options, as on all ranks. */
static bool is_refused(const struct team_call *c, int rc)
{
	struct teams_fixture *w = c->process->fixture;
	enum verdict *v = &w->verdicts[c->number];
	const bool refused = rc == COLLNET_ETOPO || rc == COLLNET_EINVAL || rc == COLLNET_ELIMIT;

	if ((c->step->kind != STEP_CALL && c->step->kind != STEP_PREPARE) ||
	    (c->work->args.algorithm == NULL && c->work->args.permutation == CN_PERM_AUTO) ||
	    (rc != COLLNET_OK && !refused)) {
		return false;
	}
	if (*v != VERDICT_NONE && *v != (refused ? VERDICT_REFUSED : VERDICT_TAKEN)) {
		fixture_report(&w->fixture, "rank %u, step %u (%s): %s on other ranks only",
			       c->process->rank, c->number, script_name(c->step->kind),
			       refused ? "taken" : "refused");
	}
	*v = refused ? VERDICT_REFUSED : VERDICT_TAKEN;
	return refused;
}

/* It may wait for a task: then it is made again. */
void teams_make_call(struct team_call *c)
{
	struct process *p = c->process;
	const uint32_t team = c->step->team;
	struct cn_err err = { 0 };
	int rc;

	if (!c->posted && (calls_operation(c->step) || c->step->kind == STEP_SPLIT)) {
		c->seq = p->called[team]++;
		p->last[team][c->seq % COLLNET_OUTSTANDING_MAX] = c;
	}
	c->posted = true;
	rc = prepare_in_time(c, try_call(c, &err), &err);
	p->waits = rc == COLLNET_INPROGRESS;
	if (p->waits) {
		p->blocked = c;
		return;
	}
	if (p->blocked == c && calls_operation(c->step)) {
		p->blocked = NULL;
	}
	if (rc != COLLNET_OK && p->members[team] != NULL) {
		cn_member_drops_call(p->members[team]);
	}
	if (is_refused(c, rc)) {
		p->called[team] -= c->seq != UINT32_MAX;
		c->seq = UINT32_MAX;
		c->refused = true;
	}
	if (rc != COLLNET_OK || c->step->kind == STEP_PREPARE) {
		finish(c, rc, err.text);
	}
}

bool teams_makes(const struct step *x)
{
	return x->kind == STEP_JOIN || x->kind == STEP_SPLIT || x->kind == STEP_DERIVE;
}

/* The team that a step is of, or makes. */
uint32_t teams_team_of(const struct process *p, const struct step *x)
{
	const struct script *script = &p->fixture->script;

	for (uint32_t i = 0; i < x->children; i++) {
		if (script_rank(&script->teams[x->child + i], p->rank) != UINT32_MAX) {
			return x->child + i;
		}
	}
	return x->team;
}

bool teams_takes_part(const struct process *p, const struct step *x)
{
	switch (x->kind) {
	case STEP_JOIN:
		return true;
	case STEP_MESSAGE:
		return x->from == p->rank || (x->to == p->rank && !x->hasty);
	case STEP_LATE:
	case STEP_REOPEN:
		return x->from == p->rank;
	case STEP_START:
	case STEP_RELEASE:
		return p->handles[x->handle].prepared != NULL && !p->failed[x->team];
	case STEP_DERIVE:
		return p->members[x->team] != NULL && !p->failed[x->team] &&
		       teams_team_of(p, x) == x->child;
	default:
		return p->members[x->team] != NULL && !p->failed[x->team];
	}
}
