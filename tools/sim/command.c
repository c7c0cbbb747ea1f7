/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet sim`: puts the network together, goes through sizes and algorithms, and reports.
 */
#include "tools/sim/command.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "tools/papers/papers.h"
#include "tools/sim/parse.h"
#include "tools/sim/progress.h"
#include "tools/sim/trace.h"
#include "tools/topo/command.h"

#define RATE_DEFAULT  1000000000u
#define UPLINK_FACTOR 10u
#define BUFFERS_MAX   ((uint64_t)8 << 30) /* bytes of all ranks' buffers */

/* The fastest so far with the largest blocks that there were: the closing line is about it. */
struct best {
	uint32_t rivals; /* 0: there is none */
	struct measure_result res;
	struct sim_outcome out;
	struct sim_model model;
};

/* The run: what bench's report and choice of algorithms want to know, and the topology. */
struct run {
	const struct sim_options *o;
	struct measure m;
	struct cn_topo *topo;
	uint32_t *node_of, *vertex;
	uint32_t port; /* link that is captured */
	bool alone;    /* one size, one algorithm */
	bool failed;
	struct best best;
};

static int complain(const struct cn_err *err)
{
	tool_complain("%s", err->text);
	return err->code == COLLNET_EINVAL ? TOOL_USAGE : TOOL_FAILED;
}

/* Rates and buffers where the file says none. */
static void fill_in(const struct sim_options *o, struct cn_topo *t, uint64_t rate, uint64_t uplink)
{
	for (uint32_t i = 0; i < t->nlinks; i++) {
		struct cn_topo_link *l = &t->links[i];
		bool up = t->vertices[l->a].is_switch && t->vertices[l->b].is_switch;

		if (l->rate == 0) {
			l->rate = up ? uplink : rate;
		}
		if (l->buffer == 0 && (up ? o->uplink_buffer_set : o->buffer_set)) {
			l->buffer = up ? o->uplink_buffer : o->buffer;
		}
	}
}

static int make_topology(const struct sim_options *o, struct cn_topo **out, struct cn_err *err)
{
	uint64_t rate = o->rate != 0 ? o->rate : RATE_DEFAULT;
	uint64_t uplink = o->uplink != 0 ? o->uplink : rate * UPLINK_FACTOR;
	int rc;

	if (o->shape != NULL) {
		rc = cn_topo_shape(o->shape, rate, o->buffer, uplink, o->uplink_buffer, out, err);
	} else {
		const struct topo_options file = { .file = o->topology };

		rc = topo_open(&file, out, err);
		if (rc == COLLNET_OK) {
			fill_in(o, *out, rate, uplink);
		}
	}
	if (rc == COLLNET_OK && o->cluster.kind == CN_SIM_INPUT) {
		cn_topo_input_buffered(*out);
	}
	return rc;
}

/* Ranks go round the hosts as core/job.h numbers them: `local` on the first, and so on. */
static int locate(struct run *r, struct cn_err *err)
{
	const struct cn_topo *t = r->topo;
	uint64_t ranks = (uint64_t)t->nhosts * r->o->local;

	if (ranks > COLLNET_RANKS_MAX) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%u hosts with %u ranks each are more than the "
			       "largest team, %u ranks",
			       t->nhosts, r->o->local, COLLNET_RANKS_MAX);
	}
	r->node_of = calloc(ranks + 1, sizeof(*r->node_of));
	r->vertex = calloc(t->nhosts + 1, sizeof(*r->vertex));
	if (r->node_of == NULL || r->vertex == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u hosts", t->nhosts);
	}
	for (uint32_t i = 0; i < ranks; i++) {
		r->node_of[i] = i / r->o->local;
	}
	memcpy(r->vertex, t->hosts, t->nhosts * sizeof(*r->vertex));
	r->m = (struct measure){
		.o = &r->o->measure,
		.headers = cn_wire_overhead(r->o->cluster.engine.node.encapsulation,
					    r->o->cluster.engine.node.authenticated),
	};
	r->m.place = (struct measure_layout){ .ranks = (uint32_t)ranks,
					      .nodes = t->nhosts,
					      .node_of = r->node_of,
					      .topo = t,
					      .vertex = r->vertex,
					      .unaware = r->o->cluster.topology_unaware };
	r->m.node_window = r->m.place.unaware ? COLLNET_WINDOW_OFF
					      : cn_topo_window(t, t->hosts, t->nhosts, 2, NULL);
	return COLLNET_OK;
}

/* Whether the buffers of a size fit, those of every rank or those that all share. Of a reduction
 * every rank has partial results, but of those of a reduce-scatter it touches few. */
static int check_memory(const struct run *r, uint64_t bytes, struct cn_err *err)
{
	const enum cn_op_kind op = measure_op_kind(r->o->measure.op);
	const uint32_t ranks = r->m.place.ranks;
	const struct cn_call call = { .op = op,
				      .bytes = bytes,
				      .ranks = ranks,
				      .nodes = r->m.place.nodes,
				      .local = r->o->local };
	uint64_t send, recv, all;
	char text[TOOL_TEXT];

	cn_job_room(op, bytes, ranks, &send, &recv);
	all = (send + recv) * (r->o->measure.verify ? ranks : 1);
	if (op != CN_OP_REDUCE_SCATTER) {
		all += cn_call_scratch_bytes(&call) * ranks;
	}
	if (all > BUFFERS_MAX) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "blocks of %s for %u ranks need more than 8 GiB "
			       "of buffers%s",
			       tool_format_size(bytes, text), ranks,
			       r->o->measure.verify ? "; without --verify all ranks share them"
						    : "");
	}
	return COLLNET_OK;
}

static void result_init(const struct run *r, const struct cn_algorithm *row, uint64_t bytes,
			struct measure_result *res)
{
	const struct measure *m = &r->m;

	measure_result_init(res, m, bytes);
	res->algorithm = row->name;
	res->permutation = measure_permutation(m, row);
	res->contention_aware = measure_contention_aware(m, row);
	res->window = measure_window(m, row);
	res->iterations = m->o->iterations;
	res->limit_us = measure_limit_us(m->o->op, &m->place, bytes);
}

static void result_of(const struct run *r, const struct sim_outcome *out, const bool *verified,
		      struct measure_result *res)
{
	const struct measure *m = &r->m;

	res->window_peak = out->window_peak;
	res->ns = out->ns;
	res->slowest_ns = out->slowest_ns;
	res->bandwidth = measure_node_bytes(m->o->op, &m->place, res->bytes) * 8 /
			 (out->ns.median / 1e3);
	res->frames_sent = out->data_sent + out->data_resent;
	res->frames_resent = out->data_resent;
	res->ring_drops = out->ring_drops;
	res->ack_bytes_share = out->bytes_sent > 0
				       ? (double)out->ack_bytes / (double)out->bytes_sent
				       : NAN;
	res->verified = verified;
}

static int trace_open(struct run *r, struct sim_trace **out, struct cn_err *err)
{
	const struct sim_options *o = r->o;

	*out = NULL;
	return o->trace == NULL && o->pcap == NULL
		       ? COLLNET_OK
		       : sim_trace_open(r->topo, o->trace, o->pcap, r->port, out, err);
}

static int run_case(struct run *r, const struct cn_algorithm *row, uint64_t bytes,
		    struct sim_outcome *out, struct cn_err *err)
{
	const struct sim_options *o = r->o;
	const struct cn_choice choice = measure_choice(&r->m, row);
	struct sim_case c = {
		.cluster = o->cluster,
		.faults = o->faults,
		.local = o->local,
		.timed = o->timed,
		.nfaults = o->nfaults,
		.iterations = o->measure.iterations,
		.warmup = o->measure.warmup,
		.verify = o->measure.verify,
		.args = { .op = row->op,
			  .algorithm = row->name,
			  .permutation = choice.permutation,
			  .contention_aware = choice.contention_aware,
			  .window = o->measure.window,
			  .bytes = bytes },
	};
	struct sim_progress progress = { .records = 0 };
	char size[TOOL_TEXT];
	bool cut = false;
	int rc = check_memory(r, bytes, err), closed;

	c.cluster.topo = r->topo;
	rc = rc == COLLNET_OK ? trace_open(r, &c.trace, err) : rc;
	if (sim_progress_wanted()) {
		snprintf(progress.what, sizeof(progress.what), "%s by %s, %s",
			 measure_op_name(o->measure.op), row->name, tool_format_size(bytes, size));
		progress.trace = c.trace;
		c.progress = &progress;
	}
	rc = rc == COLLNET_OK ? sim_run(&c, out, err) : rc;
	sim_progress_end(&progress);
	closed = sim_trace_close(c.trace, &cut, rc == COLLNET_OK ? err : NULL);
	if (cut) {
		tool_complain("--trace: the first %u events are in it, and there were more",
			      SIM_TRACE_MAX);
	}
	return rc == COLLNET_OK ? closed : rc;
}

/* Whose bytes are wrong is no candidate. */
static void compare(struct run *r, const struct measure_result *res, const struct sim_outcome *out,
		    const struct sim_model *model)
{
	struct best *best = &r->best;

	if (best->rivals > 0 && res->bytes < best->res.bytes) {
		return;
	}
	if (best->rivals > 0 && res->bytes > best->res.bytes) {
		best->rivals = 0;
	}
	if (best->rivals++ == 0 || res->ns.median < best->res.ns.median) {
		best->res = *res;
		best->res.verified = NULL;
		best->out = *out;
		best->model = *model;
	}
}

/* A case that cannot be run, or fails, is a row without numbers; the others go on. */
static void case_failed(struct run *r, const struct measure_result *res, const char *why)
{
	char size[TOOL_TEXT];

	if (res->op == MEASURE_BARRIER) {
		tool_complain("%s: %s", res->algorithm, why);
	} else {
		tool_complain("%s of %s: %s", res->algorithm, tool_format_size(res->bytes, size),
			      why);
	}
	r->failed = true;
}

static int run_one(struct run *r, const struct cn_algorithm *row, uint64_t bytes)
{
	struct sim_outcome out = { 0 };
	struct measure_result res;
	struct sim_model model;
	struct sim_row shown = { r->o, &res, &out, &model, NAN };
	struct cn_err err = { 0 };
	char why[sizeof(out.why) + 64];
	bool verified;
	int rc = run_case(r, row, bytes, &out, &err);

	if (rc != COLLNET_OK && r->alone) {
		sim_outcome_free(&out);
		return complain(&err);
	}
	result_init(r, row, bytes, &res);
	sim_model(&r->o->cluster, &r->m.place, r->o->measure.op, bytes, &model);
	if (rc != COLLNET_OK) {
		res.failed = err.text;
	} else if (out.failed > 0) {
		snprintf(why, sizeof(why), "%u of %u ranks failed, first %s", out.failed,
			 r->m.place.ranks, out.why);
		res.failed = why;
	}
	if (res.failed != NULL) {
		case_failed(r, &res, res.failed);
	} else {
		verified = out.wrong == 0;
		r->failed |= !verified;
		result_of(r, &out,
			  r->o->measure.verify && r->o->measure.op != MEASURE_BARRIER ? &verified
										      : NULL,
			  &res);
		if (verified) {
			compare(r, &res, &out, &model);
		}
	}
	rc = measure_predict(&r->m, bytes, row, &shown.predicted_us);
	rc = rc == TOOL_OK && !sim_report(&r->m, &shown) ? TOOL_FAILED : rc;
	sim_outcome_free(&out);
	return rc;
}

static int run_sizes(struct run *r)
{
	const struct measure_options *o = &r->o->measure;
	const struct sim_row best = { r->o, &r->best.res, &r->best.out, &r->best.model, NAN };
	int rc = TOOL_OK;

	for (size_t i = 0; i < o->nsizes && rc == TOOL_OK; i++) {
		const struct cn_algorithm *rows[CN_ALGORITHMS_MAX];
		size_t n;

		rc = measure_choose(&r->m, o->sizes[i], rows, &n);
		r->alone = o->nsizes == 1 && n == 1;
		for (size_t k = 0; k < n && rc == TOOL_OK; k++) {
			rc = run_one(r, rows[k], o->sizes[i]);
		}
	}
	if (rc == TOOL_OK && !o->json && r->best.rivals > 0) {
		sim_report_end(&r->m, &best, r->best.rivals);
	}
	return rc == TOOL_OK && r->failed ? TOOL_FAILED : rc;
}

static int start(struct run *r, struct sim_options *o)
{
	struct cn_err err = { 0 };
	int rc = make_topology(o, &r->topo, &err);

	if (rc == COLLNET_OK) {
		rc = locate(r, &err);
	}
	if (rc == COLLNET_OK && o->port != NULL) {
		rc = sim_find_port(r->topo, o->port, &r->port, &err);
	}
	for (uint32_t i = 0; rc == COLLNET_OK && i < o->nfaults; i++) {
		rc = sim_fault_parse(r->topo, o->fault_texts[i], &o->timed[i], &err);
	}
	if (rc == COLLNET_ETOPO && o->shape != NULL) {
		return tool_usage("--%s", err.text);
	}
	if (rc != COLLNET_OK) {
		return complain(&err);
	}
	if (o->measure.csv != NULL) {
		r->m.csv = fopen(o->measure.csv, "we");
		if (r->m.csv == NULL) {
			tool_complain("--csv: %s: %s", o->measure.csv, strerror(errno));
			return TOOL_FAILED;
		}
	}
	return TOOL_OK;
}

int collnet_cmd_sim(int argc, char **argv)
{
	struct sim_options o;
	struct run r = { .o = &o };
	struct cn_err err = { 0 };
	int rc = sim_options_parse(&o, argc, argv);

	if (rc != TOOL_OK) {
		return rc < 0 ? TOOL_OK : rc;
	}
	if (o.experiment != NULL) {
		rc = experiment_run(o.experiment, o.measure.seed, o.quick, o.output, stdout, &err);
		return rc == COLLNET_OK ? TOOL_OK : complain(&err);
	}
	rc = start(&r, &o);
	if (rc == TOOL_OK) {
		rc = run_sizes(&r);
	}
	if (r.m.csv != NULL && fclose(r.m.csv) != 0) {
		tool_complain("--csv: %s: %s", o.measure.csv, strerror(errno));
		rc = TOOL_FAILED;
	}
	for (uint32_t i = 0; i < o.nfaults; i++) {
		free(o.timed[i].side);
	}
	cn_topo_free(r.topo);
	free(r.node_of);
	free(r.vertex);
	return rc;
}
