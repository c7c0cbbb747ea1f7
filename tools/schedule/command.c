/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet schedule`: plans on a topology, prints and proves. No network is used.
 *
 * One rank's part is planned alone; a check plans rank after rank and keeps what the checker
 * keeps; only writing a whole schedule holds all of it in memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "sched/select.h"
#include "tools/papers/papers.h"
#include "tools/schedule/command.h"
#include "tools/topo/command.h"

struct run {
	const struct schedule_options *o;
	struct cn_topo *topo;
	struct subject s;
	struct cn_sched *parts; /* of a file, or all planned; NULL: not needed so far */
	struct cn_err err;
};

/* A command line that the network shows to be wrong, or a failure. */
static int status_of(const struct run *r, int rc)
{
	if (rc == COLLNET_OK) {
		return TOOL_OK;
	}
	tool_complain("%s", r->err.text);
	return TOOL_FAILED;
}

static int read_topology(struct run *r)
{
	if (r->o->topology != NULL) {
		const struct topo_options file = { .file = r->o->topology };

		return topo_open(&file, &r->topo, &r->err);
	}
	return cn_topo_shape(r->o->shape, 1000000000, 0, 0, 0, &r->topo, &r->err);
}

/* "h3", or "3". */
static int parse_node(struct run *r, const char *option, const char *text, uint32_t *node)
{
	struct cn_err why = { 0 };
	uint64_t n;

	if (subject_find(&r->s, text, node, &why) == COLLNET_OK) {
		return COLLNET_OK;
	}
	if (cn_parse_uint(text, 0, r->s.layout.nranks - 1, &n)) {
		*node = r->s.layout.node_of[n];
		return COLLNET_OK;
	}
	return cn_fail(&r->err, COLLNET_EINVAL,
		       "%s: %.200s; specify a host's name, or a rank from 0 "
		       "to %u",
		       option, why.text, r->s.layout.nranks - 1);
}

/* The algorithm: the one that was named, or the selection's. */
static int choose(struct run *r)
{
	struct subject *s = &r->s;

	s->algorithm = r->o->algorithm != NULL ? cn_algorithm_find(r->o->op, r->o->algorithm)
					       : cn_select(&s->layout, &s->plan);
	if (s->algorithm == NULL) {
		return cn_fail(&r->err, COLLNET_EINVAL, "no algorithm for %s",
			       cn_op_name(r->o->op));
	}
	s->plan.algorithm = s->algorithm->id;
	s->guarantees = cn_algorithm_guarantees(s->algorithm, &s->layout);
	snprintf(s->name, sizeof(s->name), "%s", s->algorithm->name);
	return COLLNET_OK;
}

static void parse_encapsulation(struct run *r)
{
	r->s.encapsulation = r->o->encapsulation;
	r->s.layout.headers = cn_wire_overhead(r->o->encapsulation, r->o->authenticated);
}

static int make_subject(struct run *r)
{
	uint32_t *hosts = calloc((size_t)r->topo->nhosts + 1, sizeof(*hosts)), n = 0, root = 0;
	int rc;

	if (hosts == NULL) {
		return cn_fail(&r->err, COLLNET_ENOMEM, "no memory for a team");
	}
	rc = topo_hosts(r->topo, schedule_source(r->o), r->o->hosts, hosts, &n, &r->err);
	rc = rc == COLLNET_OK ? subject_init(&r->s, r->topo, hosts, n, &r->err) : rc;
	free(hosts);
	if (rc != COLLNET_OK) {
		return rc;
	}
	parse_encapsulation(r);
	r->s.plan.op = r->o->op;
	r->s.plan.bytes = r->o->op == CN_OP_BARRIER ? 0 : r->o->size;
	r->s.plan.segment = r->o->segment;
	if (r->o->root != NULL) {
		rc = parse_node(r, "--root", r->o->root, &root);
		r->s.plan.root = r->s.layout.ranks[r->s.layout.first[root]];
	}
	return rc == COLLNET_OK ? choose(r) : rc;
}

static int read_schedule(struct run *r)
{
	int rc = schedule_read(r->o->schedule, r->topo, &r->s, &r->parts, &r->err);

	parse_encapsulation(r);
	if (rc == COLLNET_OK && r->s.plan.op != r->o->op) {
		return cn_fail(&r->err, COLLNET_EINVAL, "%.100s is a schedule of %s, not of %s",
			       r->o->schedule, cn_op_name(r->s.plan.op), cn_op_name(r->o->op));
	}
	return rc;
}

/* ---- what is shown ------------------------------------------------------------------------ */

/* The parts that are shown: one rank's, or all. */
static int plan_parts(struct run *r, uint32_t *only)
{
	uint32_t n = r->s.layout.nnodes;

	*only = EMIT_ALL;
	if (r->parts != NULL) {
		return COLLNET_OK;
	}
	r->parts = calloc(n, sizeof(*r->parts));
	if (r->parts == NULL) {
		return cn_fail(&r->err, COLLNET_ENOMEM, "no memory for the parts of %u hosts", n);
	}
	if (r->o->rank == NULL) {
		return subject_plan_all(&r->s, r->parts, &r->err);
	}
	if (parse_node(r, "--rank", r->o->rank, only) != COLLNET_OK) {
		return r->err.code;
	}
	return cn_sched_plan(&r->s.layout, &r->s.plan, *only, &r->parts[*only], &r->err);
}

static int emit(struct run *r)
{
	struct emit e = { .layout = &r->s.layout,
			  .plan = &r->s.plan,
			  .algorithm = r->s.name,
			  .source = schedule_source(r->o),
			  .guarantees = r->s.guarantees };
	uint32_t phases;
	bool ring;
	int rc = plan_parts(r, &e.only);

	if (rc != COLLNET_OK) {
		return rc;
	}
	e.parts = r->parts;
	switch (r->o->emit) {
	case EMIT_JSON:
		return emit_json(&e, stdout, &r->err);
	case EMIT_DOT:
		/* The first phase of an allgather on a ring is the ring. */
		ring = r->s.plan.op == CN_OP_ALLGATHER && !r->o->phase_given;
		phases = r->parts[e.only == EMIT_ALL ? 0 : e.only].phases;
		if (r->o->phase > 0 && r->o->phase >= phases) {
			return cn_fail(&r->err, COLLNET_EINVAL,
				       "--phase: there are %u phases, "
				       "numbered from 0",
				       phases);
		}
		return emit_dot(&e, r->o->phase, ring, stdout, &r->err);
	case EMIT_MPI:
		return emit_mpi(&e, r->o->name, stdout, &r->err);
	case EMIT_TEXT:
	case EMIT_SUMMARY:
		break;
	}
	return emit_text(&e, stdout, &r->err);
}

/* Check, explanation, summary. The guarantees are checked where that was asked for. */
static int report(struct run *r)
{
	bool check = r->o->check || r->o->schedule != NULL, checked = false, written = true;
	struct cn_check_report rep;
	struct cn_err why = { 0 };
	int rc = subject_check(&r->s, r->parts, check ? r->s.guarantees : 0, &rep, &checked, &why);
	const char *broken = rc == COLLNET_OK ? NULL : why.text;

	if (!checked) { /* it could not be planned, or there was no memory */
		r->err = why;
		return status_of(r, rc);
	}
	if (r->o->json) {
		written = schedule_summary_json(&r->s, &rep, check, broken, stdout);
	} else if (r->o->explain) {
		schedule_explain(&r->s, r->o, &rep, stdout);
	} else {
		schedule_summary(&r->s, &rep, stdout);
	}
	if (check && broken == NULL && !r->o->json) {
		puts("OK");
	}
	if (!written || fflush(stdout) != 0 || ferror(stdout)) {
		tool_complain("standard output: %s", strerror(errno));
		return TOOL_FAILED;
	}
	r->err = why;
	return status_of(r, rc);
}

static int run(struct run *r)
{
	int rc = read_topology(r);

	if (rc != COLLNET_OK && r->o->shape != NULL) {
		return tool_usage("%s", r->err.text);
	}
	if (rc == COLLNET_OK) {
		rc = r->o->schedule != NULL ? read_schedule(r) : make_subject(r);
	}
	if (rc == COLLNET_OK && r->o->emit == EMIT_MPI) {
		rc = emit_mpi_check(&r->s.layout, &r->s.plan, &r->err);
	}
	if (rc != COLLNET_OK) {
		return status_of(r, rc);
	}
	if (r->o->emit == EMIT_SUMMARY && r->o->rank == NULL) {
		return report(r);
	}
	if (r->o->check || r->o->schedule != NULL) {
		/* Nothing is emitted that does not hold. */
		struct cn_check_report rep;
		bool checked;

		rc = subject_check(&r->s, r->parts, r->s.guarantees, &rep, &checked, &r->err);
	}
	return status_of(r, rc == COLLNET_OK ? emit(r) : rc);
}

int collnet_cmd_schedule(int argc, char **argv)
{
	struct schedule_options o;
	struct run r = { .o = &o };
	int rc = schedule_options_parse(&o, argc, argv);

	if (rc != TOOL_OK) {
		return rc < 0 ? TOOL_OK : rc;
	}
	if (o.experiment != NULL) {
		rc = status_of(&r, experiment_run(o.experiment, o.seed, false, o.output, stdout,
						  &r.err));
		return r.err.code == COLLNET_EINVAL ? TOOL_USAGE : rc;
	}
	rc = run(&r);
	subject_free_parts(&r.s, r.parts);
	subject_done(&r.s);
	cn_topo_free(r.topo);
	return rc;
}
