/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One case: a cluster is made, its ranks join, and one operation runs some times. Every case has a
 * cluster of its own, so that a row does not depend on the rows before it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/sim/case.h"
#include "tools/sim/progress.h"
#include "tools/sim/trace.h"

#define JOIN_WITHIN (600 * 1000 * CN_MS)
#define NEXT_WITHIN (60 * 1000 * CN_MS)	  /* a job after faults */
#define DEADLINE    (3600 * 1000 * CN_MS) /* of an iteration */

/* What is counted, as it was before. */
struct before {
	struct collnet_stats stats;
	struct cn_sim_totals totals;
	struct cn_sim_port *ports; /* [2 nlinks] */
};

static void sum_stats(struct cn_sim *s, struct collnet_stats *sum, bool reset_peak)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < cn_sim_hosts(s); i++) {
		struct collnet_stats one = { .size = sizeof(one) };

		if (cn_sim_engine(s, i) == NULL) { /* a fault */
			continue;
		}
		cn_engine_stats(cn_sim_engine(s, i), &one, reset_peak);
		sum->data_sent += one.data_sent;
		sum->data_resent += one.data_resent;
		sum->bytes_sent += one.bytes_sent;
		sum->ack_bytes_sent += one.ack_bytes_sent;
		sum->window_peak = one.window_peak > sum->window_peak ? one.window_peak
								      : sum->window_peak;
	}
}

static void begin(struct cn_sim *s, const struct cn_topo *t, struct before *b)
{
	sum_stats(s, &b->stats, true);
	cn_sim_totals(s, &b->totals);
	cn_sim_reset_peaks(s);
	for (uint32_t d = 0; d < 2 * t->nlinks; d++) {
		cn_sim_port(s, d / 2, d % 2, &b->ports[d]);
	}
}

/* The queue of directed link d at its sending end; `input`: at its receiving end. */
static void spot(const struct cn_sim *s, const struct cn_topo *t, uint32_t d, bool input,
		 uint64_t count, struct sim_spot *worst)
{
	const struct cn_topo_link *l = &t->links[d / 2];
	uint32_t near = d % 2 == 0 ? l->a : l->b, far = d % 2 == 0 ? l->b : l->a;
	uint32_t at = input ? far : near, memory;
	enum cn_sim_kind kind;

	if (count <= worst->count || !t->vertices[at].is_switch) {
		return;
	}
	kind = cn_sim_switch(s, at, &memory);
	*worst = (struct sim_spot){
		.at = at, .peer = input ? near : far, .count = count, .input = input
	};
	worst->shared = kind == CN_SIM_SHARED || kind == CN_SIM_DYNAMIC;
	worst->room = worst->shared ? memory : cn_topo_port_frames(l->buffer, l->channels);
}

/* The counters of a host that a fault took begin again. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void finish(struct cn_sim *s, const struct sim_case *c, const struct before *b,
		   struct sim_outcome *out)
{
	const struct cn_topo *t = c->cluster.topo;
	struct collnet_stats now;
	struct cn_sim_totals totals;

	sum_stats(s, &now, false);
	cn_sim_totals(s, &totals);
	out->data_sent = since(now.data_sent, b->stats.data_sent);
	out->data_resent = since(now.data_resent, b->stats.data_resent);
	out->bytes_sent = since(now.bytes_sent, b->stats.bytes_sent);
	out->ack_bytes = since(now.ack_bytes_sent, b->stats.ack_bytes_sent);
	out->window_peak = (uint32_t)now.window_peak;
	out->drops = totals.drops - b->totals.drops;
	out->lost = totals.lost - b->totals.lost;
	out->ring_drops = totals.ring_drops - b->totals.ring_drops;
	out->frame_events = totals.frame_events; /* from the beginning on */
	for (uint32_t d = 0; d < 2 * t->nlinks; d++) {
		struct cn_sim_port p;

		cn_sim_port(s, d / 2, d % 2, &p);
		spot(s, t, d, false, p.drops - b->ports[d].drops, &out->worst_drops);
		spot(s, t, d, true, p.input_drops - b->ports[d].input_drops, &out->worst_drops);
		spot(s, t, d, false, p.peak, &out->longest);
		spot(s, t, d, true, p.input_peak, &out->longest);
	}
}

/* The first rank that did not end well. */
static void blame(const struct sim_case *c, const struct cn_job *j, const struct cn_job_result *r,
		  struct sim_outcome *out)
{
	const struct cn_topo *t = c->cluster.topo;

	out->failed = r->failed + r->pending;
	for (uint32_t i = 0; i < cn_job_ranks(j); i++) {
		const struct cn_job_rank *k = cn_job_rank(j, i);

		if (!k->done || k->status != COLLNET_OK) {
			snprintf(out->why, sizeof(out->why), "rank %u on %.63s: %.*s", i,
				 t->vertices[t->hosts[k->host]].name, CN_ERR_TEXT,
				 k->done ? k->text : "the operation did not end");
			return;
		}
	}
}

/* One call of the job; false in *well: a rank failed. */
static int turns(struct cn_job *j, const struct sim_case *c, uint32_t times, uint64_t *ns,
		 uint64_t *slowest, bool *well, struct sim_outcome *out, struct cn_err *err)
{
	struct cn_coll_args args = c->args;
	struct cn_job_result r;
	int rc;

	args.deadline = DEADLINE * (cn_op_is_one_way(args.op) ? 1 : times);
	/* Who only sends may be far ahead: the iterations are kept apart. */
	for (uint32_t i = 0; i < (cn_op_is_one_way(args.op) ? times : 1) && *well; i++) {
		if (cn_op_is_one_way(args.op)) {
			rc = cn_job_run(j, &args, args.deadline + 1000 * CN_MS, &r, err);
		} else {
			rc = cn_job_repeat(j, &args, times, args.deadline + 1000 * CN_MS, ns,
					   slowest, &r, err);
		}
		if (rc != COLLNET_OK) {
			return rc;
		}
		out->wrong += r.wrong;
		*well = r.failed + r.pending == 0;
		if (!*well) {
			blame(c, j, &r, out);
		} else if (cn_op_is_one_way(args.op) && ns != NULL) {
			ns[i] = slowest[i] = r.slowest;
		}
	}
	return COLLNET_OK;
}

/* When the faults are over: a new job, once. */
static int next_job(struct cn_sim *s, const struct sim_case *c, struct sim_armed *armed,
		    struct sim_outcome *out, struct cn_err *err)
{
	const struct cn_job_config jc = {
		.local = c->local,
		.bytes = c->args.bytes,
		.op = c->args.op,
		.shared = !c->verify,
		.name = "next",
	};
	struct cn_coll_args args = c->args;
	struct cn_err why = { 0 };
	struct cn_job_result r;
	struct cn_job *j = NULL;
	int rc;

	if (!sim_faults_over(armed)) {
		out->next = SIM_NEXT_NEVER;
		return COLLNET_OK;
	}
	rc = cn_job_new(s, &jc, &j, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	args.deadline = NEXT_WITHIN;
	rc = cn_job_join(j, NEXT_WITHIN, &why);
	if (rc == COLLNET_OK) {
		rc = cn_job_run(j, &args, NEXT_WITHIN + 1000 * CN_MS, &r, &why);
	}
	if (rc != COLLNET_OK) {
		snprintf(out->next_why, sizeof(out->next_why), "%s", why.text);
	} else if (r.failed + r.pending > 0 || r.wrong > 0) {
		snprintf(out->next_why, sizeof(out->next_why),
			 "%u ranks failed, %u did not end, "
			 "%llu bytes are wrong",
			 r.failed, r.pending, (unsigned long long)r.wrong);
	}
	out->next = out->next_why[0] == '\0' ? SIM_NEXT_RIGHT : SIM_NEXT_FAILED;
	cn_job_free(j);
	return COLLNET_OK;
}

static int arm(struct cn_sim *s, const struct sim_case *c, struct sim_armed **armed,
	       struct sim_outcome *out, struct cn_err *err)
{
	if (c->nfaults == 0) {
		return COLLNET_OK;
	}
	out->fault_states = calloc(c->nfaults, sizeof(*out->fault_states));
	return out->fault_states != NULL
		       ? sim_faults_arm(s, c, out->fault_states, armed, err)
		       : cn_fail(err, COLLNET_ENOMEM, "no memory for %u faults", c->nfaults);
}

/* A rank failed; with timed faults: which one, why, and whether the next job works. */
static int failed(struct cn_sim *s, struct cn_job *j, const struct sim_case *c,
		  struct sim_armed *armed, struct sim_outcome *out, struct cn_err *err)
{
	int rc = COLLNET_OK;

	if (armed != NULL) {
		rc = sim_faults_errors(armed, j, out, err);
		cn_job_leave(j);
		rc = rc == COLLNET_OK ? next_job(s, c, armed, out, err) : rc;
	}
	return rc;
}

static int iterate(struct cn_sim *s, struct cn_job *j, const struct sim_case *c, uint64_t *ns,
		   uint64_t *slowest, struct before *b, struct sim_armed **armed,
		   struct sim_outcome *out, struct cn_err *err)
{
	bool well = true;
	int rc = COLLNET_OK;

	if (c->warmup > 0) {
		rc = turns(j, c, c->warmup, NULL, NULL, &well, out, err);
	}
	if (rc != COLLNET_OK || !well) {
		return rc;
	}
	begin(s, c->cluster.topo, b);
	if (c->trace != NULL) {
		sim_trace_measure(c->trace, true);
	}
	rc = arm(s, c, armed, out, err);
	rc = rc == COLLNET_OK ? turns(j, c, c->iterations, ns, slowest, &well, out, err) : rc;
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (!well) {
		return failed(s, j, c, *armed, out, err);
	}
	finish(s, c, b, out);
	out->ns = measure_summary(ns, c->iterations);
	out->slowest_ns = measure_summary(slowest, c->iterations).median;
	return COLLNET_OK;
}

static int run_job(struct cn_sim *s, const struct sim_case *c, struct sim_armed **armed,
		   struct sim_outcome *out, struct cn_err *err)
{
	const struct cn_job_config jc = { .local = c->local,
					  .bytes = c->args.bytes,
					  .op = c->args.op,
					  .combining = c->combining,
					  .shared = !c->verify };
	uint64_t *ns = calloc(2 * (size_t)c->iterations, sizeof(*ns));
	struct before b = { .ports = calloc(2 * (size_t)c->cluster.topo->nlinks + 1,
					    sizeof(*b.ports)) };
	struct cn_job *j = NULL;
	int rc = ns != NULL && b.ports != NULL
			 ? COLLNET_OK
			 : cn_fail(err, COLLNET_ENOMEM, "no memory for %u iterations",
				   c->iterations);

	if (rc == COLLNET_OK) {
		rc = cn_job_new(s, &jc, &j, err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_job_join(j, JOIN_WITHIN, err);
	}
	if (rc == COLLNET_OK) {
		rc = iterate(s, j, c, ns, ns + c->iterations, &b, armed, out, err);
	}
	cn_job_free(j);
	free(ns);
	free(b.ports);
	return rc;
}

int sim_run(const struct sim_case *c, struct sim_outcome *out, struct cn_err *err)
{
	struct cn_sim_config config = c->cluster;
	struct sim_armed *armed = NULL;
	struct cn_sim *s;
	int rc;

	memset(out, 0, sizeof(*out));
	out->ns = (struct measure_times){ NAN, NAN, NAN };
	out->slowest_ns = NAN;
	out->worst_drops.at = out->longest.at = CN_TOPO_NONE;
	config.engine.node.max_peers = config.topo->nhosts + 8;
	rc = cn_sim_new(&config, &s, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	cn_sim_fault(s, CN_TOPO_NONE, 2, &c->faults);
	if (c->progress != NULL) {
		cn_sim_trace(s, sim_progress_record, c->progress);
	} else if (c->trace != NULL) {
		cn_sim_trace(s, sim_trace_record, c->trace);
	}
	rc = run_job(s, c, &armed, out, err);
	cn_sim_free(s);
	sim_faults_free(armed);
	return rc;
}

void sim_outcome_free(struct sim_outcome *out)
{
	free(out->fault_states);
	free(out->errors);
	out->fault_states = NULL;
	out->errors = NULL;
	out->nerrors = 0;
}
