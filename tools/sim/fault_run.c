/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of `collnet sim --fault` at their times, and the errors that follow from them. Time 0 is
 * when the counted iterations begin. Faults that overlap add up: a link is cut while one cut of it
 * lasts, and shares of lost, duplicated, reordered and corrupted frames are summed.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/case.h"

struct edge {
	struct sim_armed *armed;
	uint32_t fault;
	bool end;
};

struct sim_armed {
	struct cn_sim *sim;
	const struct sim_case *c;
	cn_time zero;
	struct edge *edges;		/* [2 nfaults] */
	bool *active;			/* [nfaults] */
	struct sim_fault_state *states; /* [nfaults] */
};

/* What the active faults and those of the whole run make of a link. */
static void set_link(const struct sim_armed *a, uint32_t link)
{
	struct cn_sim_faults sum = a->c->faults;
	uint32_t *const into[] = {
		[SIM_FAULT_LOSS] = &sum.loss,
		[SIM_FAULT_DUPLICATE] = &sum.duplicate,
		[SIM_FAULT_REORDER] = &sum.reorder,
		[SIM_FAULT_CORRUPT] = &sum.corrupt,
	};
	bool cut = false;

	for (uint32_t i = 0; i < a->c->nfaults; i++) {
		const struct sim_fault *f = &a->c->timed[i];

		if (!a->active[i] || (f->link != CN_TOPO_NONE && f->link != link)) {
			continue;
		}
		if (f->kind == SIM_FAULT_CUT) {
			cut = true;
		} else if (f->kind >= SIM_FAULT_LOSS) {
			*into[f->kind] += f->ppm;
			*into[f->kind] = *into[f->kind] > 1000000 ? 1000000 : *into[f->kind];
		}
	}
	cn_sim_cut(a->sim, link, 2, cut);
	cn_sim_fault(a->sim, link, 2, &sum);
}

static void set_links(const struct sim_armed *a, uint32_t link)
{
	for (uint32_t i = 0; i < a->c->cluster.topo->nlinks; i++) {
		if (link == CN_TOPO_NONE || link == i) {
			set_link(a, i);
		}
	}
}

static void repair(struct sim_armed *a, uint32_t link)
{
	for (uint32_t i = 0; i < a->c->nfaults; i++) {
		const struct sim_fault *f = &a->c->timed[i];

		if (a->active[i] && f->kind == SIM_FAULT_CUT && f->link == link) {
			a->active[i] = false;
		}
	}
	set_link(a, link);
}

static void crash(struct sim_armed *a, uint32_t host)
{
	if (cn_sim_engine(a->sim, host) != NULL) {
		cn_sim_crash(a->sim, host);
	}
}

/* A host that runs stays as it is. */
static void restart(struct sim_armed *a, uint32_t i)
{
	if (cn_sim_restart(a->sim, a->c->timed[i].host, NULL) != COLLNET_OK) {
		/* At the end of a crash another fault has restarted it. */
		a->states[i].host_was_running = a->c->timed[i].kind == SIM_FAULT_RESTART;
	}
}

static void edge(void *arg)
{
	const struct edge *e = arg;
	struct sim_armed *a = e->armed;
	const struct sim_fault *f = &a->c->timed[e->fault];

	a->active[e->fault] = !e->end && f->kind != SIM_FAULT_RESTART &&
			      f->kind != SIM_FAULT_REPAIR;
	if (!e->end) {
		a->states[e->fault].began = true;
		a->states[e->fault].at = cn_sim_now(a->sim);
	}
	switch (f->kind) {
	case SIM_FAULT_CRASH:
		if (e->end) {
			restart(a, e->fault);
		} else {
			crash(a, f->host);
		}
		break;
	case SIM_FAULT_RESTART:
		restart(a, e->fault);
		break;
	case SIM_FAULT_PAUSE:
		if (!e->end) {
			cn_sim_pause(a->sim, f->host, f->lasts);
		}
		break;
	case SIM_FAULT_REPAIR:
		repair(a, f->link);
		break;
	case SIM_FAULT_PARTITION:
		cn_sim_partition(a->sim, e->fault, e->end ? NULL : f->side);
		break;
	default:
		set_links(a, f->link);
		break;
	}
}

int sim_faults_arm(struct cn_sim *s, const struct sim_case *c, struct sim_fault_state *states,
		   struct sim_armed **out, struct cn_err *err)
{
	struct sim_armed *a = calloc(1, sizeof(*a));
	bool ok = a != NULL;

	if (ok) {
		*a = (struct sim_armed){
			.sim = s, .c = c, .zero = cn_sim_now(s), .states = states
		};
		a->edges = calloc(2 * (size_t)c->nfaults + 1, sizeof(*a->edges));
		a->active = calloc(c->nfaults + 1, sizeof(*a->active));
		ok = a->edges != NULL && a->active != NULL;
	}
	for (uint32_t i = 0; ok && i < 2 * c->nfaults; i++) {
		const struct sim_fault *f = &c->timed[i / 2];

		a->edges[i] = (struct edge){ .armed = a, .fault = i / 2, .end = i % 2 == 1 };
		if (i % 2 == 0 || f->lasts > 0) {
			ok = cn_sim_at(s, a->zero + f->at + (i % 2 == 1 ? f->lasts : 0), edge,
				       &a->edges[i]) == COLLNET_OK;
		}
	}
	if (!ok) {
		sim_faults_free(a);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u faults", c->nfaults);
	}
	*out = a;
	return COLLNET_OK;
}

void sim_faults_free(struct sim_armed *a)
{
	if (a != NULL) {
		free(a->edges);
		free(a->active);
		free(a);
	}
}

bool sim_faults_over(struct sim_armed *a)
{
	cn_time last = a->zero;

	for (uint32_t i = 0; i < a->c->nfaults; i++) {
		const struct sim_fault *f = &a->c->timed[i];
		cn_time end = a->zero + f->at + f->lasts;

		last = end > last ? end : last;
	}
	if (last >= cn_sim_now(a->sim)) {
		cn_sim_run(a->sim, last + 1);
	}
	for (uint32_t i = 0; i < cn_sim_hosts(a->sim); i++) {
		if (cn_sim_engine(a->sim, i) == NULL) {
			return false;
		}
	}
	for (uint32_t i = 0; i < a->c->nfaults; i++) {
		/* a crashed host that was restarted by another fault runs; so does the network */
		if (a->active[i] && (a->c->timed[i].kind == SIM_FAULT_CUT ||
				     a->c->timed[i].kind == SIM_FAULT_PARTITION)) {
			return false;
		}
	}
	return true;
}

/* ---- what the errors say -------------------------------------------------------------- */

static bool of_name(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* The first word of the text that is the name of a host; a point may end a sentence. */
static uint32_t culprit_of(const struct cn_topo *t, const char *text)
{
	while (*text != '\0') {
		char name[COLLNET_NAME_MAX + 1];
		size_t n = 0;
		uint32_t v;

		while (of_name(text[n])) {
			n++;
		}
		while (n > 0 && n <= COLLNET_NAME_MAX) {
			memcpy(name, text, n);
			name[n] = '\0';
			v = cn_topo_find(t, name);
			if (v != CN_TOPO_NONE && !t->vertices[v].is_switch) {
				return v;
			}
			/* The end of a sentence is not part of a name; a group begins with its
			 * first. */
			if (text[n - 1] == '.') {
				n--;
				continue;
			}
			while (n > 0 && text[n - 1] != '-') {
				n--;
			}
			n -= n > 0;
		}
		text += strcspn(text, " \t,;:()'\"") + 1;
		if (text[-1] == '\0') {
			break;
		}
	}
	return CN_TOPO_NONE;
}

/* The fault is of the host, of its link, or of a link above it. */
static bool concerns(const struct cn_topo *t, const struct sim_fault *f, uint32_t v)
{
	if (f->host != CN_TOPO_NONE) {
		return t->hosts[f->host] == v;
	}
	if (f->side != NULL) {
		for (uint32_t i = 0; i < t->nhosts; i++) {
			if (t->hosts[i] == v) {
				return f->side[i] != 0;
			}
		}
	}
	for (; f->link != CN_TOPO_NONE && v != t->root; v = t->vertices[v].parent) {
		if (t->vertices[v].parent_link == f->link) {
			return true;
		}
	}
	return f->link == CN_TOPO_NONE;
}

/* The two hosts are on different sides of the link. */
static bool divides(const struct cn_topo *t, const struct sim_fault *f, uint32_t a, uint32_t b)
{
	return f->link != CN_TOPO_NONE && concerns(t, f, a) != concerns(t, f, b);
}

/* The last fault of the culprit before the error, or else the first fault of all. */
static uint32_t fault_of(const struct sim_armed *a, uint32_t culprit, cn_time to)
{
	uint32_t found = SIM_NO_FAULT, first = SIM_NO_FAULT;

	for (uint32_t i = 0; i < a->c->nfaults; i++) {
		const struct sim_fault_state *s = &a->states[i];
		const struct sim_fault *f = &a->c->timed[i];

		if (!s->began || s->at > to || f->kind == SIM_FAULT_RESTART ||
		    f->kind == SIM_FAULT_REPAIR) {
			continue;
		}
		if (first == SIM_NO_FAULT || s->at < a->states[first].at) {
			first = i;
		}
		if (culprit != CN_TOPO_NONE && concerns(a->c->cluster.topo, f, culprit) &&
		    (found == SIM_NO_FAULT || s->at >= a->states[found].at)) {
			found = i;
		}
	}
	return found != SIM_NO_FAULT ? found : first;
}

/* Whether the error names a host that had the fault; of a link between switches that is any host
 * on its other side. */
static void set_faulted(const struct cn_topo *t, const struct sim_fault *f, struct sim_error *e)
{
	const struct cn_topo_link *l = f != NULL && f->link != CN_TOPO_NONE ? &t->links[f->link]
									    : NULL;

	e->own = f != NULL && f->host != CN_TOPO_NONE && t->hosts[f->host] == e->host;
	if (f == NULL || e->culprit == CN_TOPO_NONE) {
		return;
	}
	e->faulted = l != NULL && t->vertices[l->a].is_switch && t->vertices[l->b].is_switch
			     ? divides(t, f, e->host, e->culprit)
			     : concerns(t, f, e->culprit);
}

int sim_faults_errors(const struct sim_armed *a, const struct cn_job *j, struct sim_outcome *out,
		      struct cn_err *err)
{
	const struct cn_topo *t = a->c->cluster.topo;

	out->errors = calloc(cn_job_ranks(j) + 1, sizeof(*out->errors));
	if (out->errors == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the errors of %u ranks",
			       cn_job_ranks(j));
	}
	for (uint32_t i = 0; i < cn_job_ranks(j); i++) {
		const struct cn_job_rank *k = cn_job_rank(j, i);
		struct sim_error *e = &out->errors[out->nerrors];

		if (k->done && k->status == COLLNET_OK) {
			continue;
		}
		out->nerrors++;
		*e = (struct sim_error){ .rank = i,
					 .host = t->hosts[k->host],
					 .status = k->status,
					 .culprit = CN_TOPO_NONE,
					 .fault = SIM_NO_FAULT,
					 .pending = !k->done };
		snprintf(e->text, sizeof(e->text), "%s",
			 k->done ? k->text : "the operation did not end");
		if (k->done) {
			e->culprit = culprit_of(t, k->text);
			e->fault = fault_of(a, e->culprit, k->to);
			e->after = e->fault != SIM_NO_FAULT ? k->to - a->states[e->fault].at : 0;
			set_faulted(t, e->fault != SIM_NO_FAULT ? &a->c->timed[e->fault] : NULL, e);
		}
	}
	return COLLNET_OK;
}
