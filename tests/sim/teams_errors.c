/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The errors of scripts are true: a node that is silent or gone had a fault, a rank that is late
 * had not called, one that left or died did, and the late rank is named where the network lets the
 * others know it. A team that is made of another one may fail with the error of that, which has its
 * ranks and operations.
 */
#include "teams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What others say of their calls is older than the deadline: ask_before of op_deadline.c, of which
 * an earlier question of the team serves for a half. */
#define KNOWN_BEFORE (80 * CN_MS)
/* What nodes say of a new team may wait in full queues, and be lost. */
#define HEARD_BEFORE (1000 * CN_MS)
#define SMALL_POOL   128u
#define SLOW	     (5000 * CN_MS) /* dead_after on links of less than 100 Mbit/s (scenario.c) */

/* A claim about ranks of a team, in the error of a call. */
struct claim {
	const struct team_call *c;
	uint32_t team;
	const struct script_team *of;
	uint32_t seq; /* of the operation that is late; of a team that is made: none */
	cn_time deadline;
};

typedef bool true_of(const struct claim *k, const struct process *p);

static uint32_t after(const char *text, const char *words)
{
	const char *at = strstr(text, words);

	return at != NULL && at[strlen(words)] >= '0' && at[strlen(words)] <= '9'
		       ? (uint32_t)strtoul(at + strlen(words), NULL, 10)
		       : UINT32_MAX;
}

/* The rank's call of operation `seq` of a team; NULL: it has not called. */
static const struct team_call *call_of(const struct claim *k, uint32_t rank)
{
	const struct teams_fixture *w = k->c->process->fixture;

	for (uint32_t i = 0; i < w->script.nsteps; i++) {
		const struct team_call *c = &w->calls[(size_t)i * w->s->ranks + rank];

		if (c->posted && c->seq == k->seq && c->step->team == k->team) {
			return c;
		}
	}
	return NULL;
}

/* The rank's call that makes the team. */
static const struct team_call *making_of(const struct claim *k, uint32_t rank)
{
	const struct teams_fixture *w = k->c->process->fixture;

	for (uint32_t i = 0; i < w->script.nsteps; i++) {
		const struct team_call *c = &w->calls[(size_t)i * w->s->ranks + rank];

		if (c->posted && teams_makes(c->step) && c->team == k->team) {
			return c;
		}
	}
	return NULL;
}

static bool called_late(const struct claim *k, const struct process *p)
{
	const struct team_call *c = call_of(k, p->rank);

	return c == NULL || c->at + KNOWN_BEFORE > k->deadline;
}

static bool has_called(const struct claim *k, const struct process *p)
{
	return call_of(k, p->rank) != NULL;
}

/* A fault explains that the rank's call, if it made one, is not known: not one that was over for
 * long when it called, where ranks join again. */
static bool is_unheard(const struct claim *k, const struct process *p, const struct team_call *c)
{
	const struct teams_fixture *w = p->fixture;
	bool over = w->again && c != NULL &&
		    c->at > w->quiet + 2 * w->s->config.engine.node.dead_after + HEARD_BEFORE;

	for (uint32_t i = 0; i < w->s->nfaults; i++) {
		over &= w->s->faults[i].until != CN_NEVER;
	}
	return !over && oracle_silence_explained(&w->fixture, p->host, k->c->process->host);
}

/* Or its call has failed: then it has left, or is about to. Where it failed at once, as the parent
 * had, nobody was told of it. */
static bool joined_late(const struct claim *k, const struct process *p)
{
	const struct team_call *c = making_of(k, p->rank);

	return c == NULL || c->at + HEARD_BEFORE > k->deadline || p->left[k->team] ||
	       (c->completions > 0 && c->status != COLLNET_OK) || is_unheard(k, p, c);
}

/* Or another rank of the team on its node. */
static bool node_joined_late(const struct claim *k, const struct process *p)
{
	bool late = false;

	for (uint32_t r = 0; r < k->of->n; r++) {
		const struct process *other = &p->fixture->processes[k->of->ranks[r]];

		late |= other->host == p->host && joined_late(k, other);
	}
	return late;
}

static bool has_gone(const struct claim *k, const struct process *p)
{
	return p->left[k->team] || p->failed[k->team] ||
	       oracle_silence_explained(&p->fixture->fixture, p->host, k->c->process->host);
}

static bool has_left(const struct claim *k, const struct process *p)
{
	return p->left[k->team];
}

static bool has_died(const struct claim *k, const struct process *p)
{
	return p->left[k->team] && p->died;
}

/* Whether it is true of each rank of a list such as "3, 5-7", of which there is one. */
static bool is_true_of(const struct claim *k, const char *list, true_of *is)
{
	char *at = (char *)(uintptr_t)list;
	bool all = *at >= '0' && *at <= '9';

	while (*at >= '0' && *at <= '9' && all) {
		unsigned long first = strtoul(at, &at, 10), last = first;

		if (*at == '-') {
			last = strtoul(at + 1, &at, 10);
		}
		for (unsigned long r = first; r <= last && all; r++) {
			all = r < k->of->n &&
			      is(k, &k->c->process->fixture->processes[k->of->ranks[r]]);
		}
		at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
	}
	return all;
}

/* Nothing happens to hosts and links, whose full queues take less time than an answer may. */
static bool is_calm(const struct teams_fixture *w)
{
	if (w->s->config.engine.node.dead_after >= SLOW) {
		return false;
	}
	for (uint32_t i = 0; i < w->s->nfaults; i++) {
		if (w->s->faults[i].kind < FAULT_DIE) {
			return false;
		}
	}
	return true;
}

/* "not called in time by rank 3 (node h1)", or what the operation waited for. */
static const char *check_late_call_error(struct claim *k, const char *text)
{
	const struct teams_fixture *w = k->c->process->fixture;
	const uint32_t by = oracle_host_named(&w->fixture, text, "on node ");
	const char *list = strstr(text, "not called in time by rank"),
		   *data = strstr(text, "waiting for data of rank");
	bool late = false;

	k->seq = after(text, "operation ") - 1;
	k->deadline = CN_NEVER;
	for (uint32_t r = 0; r < k->of->n; r++) {
		const struct team_call *c = call_of(k, k->of->ranks[r]);

		if (c != NULL && c->process->host == by) {
			k->deadline = cn_min_time(k->deadline, c->deadline);
		}
		late |= c == NULL;
	}
	if (k->deadline > teams_now(w)) {
		return "nobody there has called, or its deadline has not passed";
	}
	if (list != NULL) {
		list += strlen("not called in time by rank");
		return is_true_of(k, list + strspn(list, "s "), called_late)
			       ? NULL
			       : "that rank is not late";
	}
	if (data != NULL) {
		data += strlen("waiting for data of rank");
		late &= is_true_of(k, data + strspn(data, "s "), has_called);
	}
	/* Small pools may be full of frames for the late rank: its node is not heard, then. */
	return late && is_calm(w) && w->s->config.engine.node.pool_frames >= SMALL_POOL &&
			       strstr(text, "not planned in time") == NULL
		       ? "it does not name the late rank"
		       : NULL;
}

static const char *check_timeout_error(struct claim *k, const char *text)
{
	const char *missing = strstr(text, "missing at the deadline: "),
		   *waiting = strstr(text, "another one of their node: "),
		   *gone = strstr(text, "were gone again before the team was ready: ");

	if (strstr(text, "passed its deadline on node ") != NULL) {
		return check_late_call_error(k, text);
	}
	k->deadline = teams_now(k->c->process->fixture);
	if (missing != NULL) {
		missing += strlen("missing at the deadline: ");
		return is_true_of(k, missing, joined_late) ? NULL : "that rank is not missing";
	}
	if (waiting != NULL) {
		waiting += strlen("another one of their node: ");
		return is_true_of(k, waiting, node_joined_late) ? NULL : "that node is not late";
	}
	if (gone != NULL) {
		gone += strlen("were gone again before the team was ready: ");
		return is_true_of(k, gone, has_gone) ? NULL : "that rank is not gone";
	}
	return NULL;
}

static const char *check_rank_error(const struct claim *k, const char *text)
{
	const char *rank = strstr(text, "rank ");

	if (rank == NULL || after(rank, "rank ") == UINT32_MAX) {
		return NULL; /* of the rank itself */
	}
	return is_true_of(k, rank + strlen("rank "),
			  strstr(text, "died") != NULL ? has_died : has_left)
		       ? NULL
		       : "that rank has not left, or died";
}

/* "node h1 has MTU 1500, node h0 9000". */
static const char *check_mtus(const struct teams_fixture *w, const char *text)
{
	const uint32_t a = oracle_host_named(&w->fixture, text, "node "),
		       b = oracle_host_named(&w->fixture, text, ", node ");

	return w->mixed && a != UINT32_MAX && b != UINT32_MAX && w->mtus[a] != w->mtus[b] &&
			       w->mtus[a] == after(text, "has MTU ")
		       ? NULL
		       : "their MTUs do not differ";
}

/* Of an endpoint's message: "node h3 is gone ...", or "no endpoint 105 is open on node h3". Nodes
 * know each other from the first team on. */
static const char *check_message_error(const struct team_call *c, int status, const char *text)
{
	const struct teams_fixture *w = c->process->fixture;
	const struct fixture *fx = &w->fixture;
	const uint32_t rank = c->process->rank, named = oracle_host_named(fx, text, "node ");
	const struct process
		*other = &w->processes[c->step->to == rank ? c->step->from : c->step->to];
	bool explained = true;

	if (status == COLLNET_ENOENT) {
		explained = other->gone || other->reopened || !is_calm(w) ||
			    w->calls[rank].status != COLLNET_OK;
	} else if (status == COLLNET_EMISMATCH) {
		return check_mtus(w, text);
	} else if (status == COLLNET_EPEER) {
		explained = named != UINT32_MAX &&
			    oracle_silence_explained(fx, named, c->process->host);
	}
	return explained ? NULL : "no fault explains it";
}

/* The interface of a node failed. */
static const char *check_interface_error(const struct teams_fixture *w, const char *text)
{
	return w->interface_fails && oracle_host_named(&w->fixture, text, "of node ") ==
					     w->processes[w->s->faults[0].rank].host
		       ? NULL
		       : "it did not fail";
}

static const char *check_error(struct claim *k, int status, const char *text)
{
	switch (status) {
	case COLLNET_EIFACE:
		return check_interface_error(k->c->process->fixture, text);
	case COLLNET_EMISMATCH:
		return check_mtus(k->c->process->fixture, text);
	case COLLNET_EPEER:
		return oracle_check_peer_error(&k->c->process->fixture->fixture, text);
	case COLLNET_ETIMEOUT:
		return check_timeout_error(k, text);
	case COLLNET_ERANK:
		return check_rank_error(k, text);
	default:
		return "this cannot happen";
	}
}

const char *teams_check_error(const struct team_call *c, int status, const char *text)
{
	const struct script *script = &c->process->fixture->script;
	struct claim k = { .c = c, .team = c->team, .of = &script->teams[c->team] };
	const char *wrong;
	bool is_true;

	if (c->step->kind == STEP_MESSAGE && status != COLLNET_EIFACE) {
		return check_message_error(c, status, text);
	}
	wrong = check_error(&k, status, text);
	is_true = wrong == NULL;
	while (!is_true && k.team != 0 && !k.of->joined) {
		k.team = k.of->parent;
		k.of = &script->teams[k.team];
		is_true = check_error(&k, status, text) == NULL;
	}
	return is_true ? NULL : wrong;
}
