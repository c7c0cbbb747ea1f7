/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `collnet bench plan`: the processor time that planning takes, on large networks. It needs no
 * network and no ranks. Every row counts what one process does from the topology in memory to the
 * result: making the team's tree is part of it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/check.h"
#include "sched/allgather/ring.h"
#include "tools/bench/command.h"
#include "tools/schedule/command.h"
#include "tools/plan/random.h"

#define SEED 20261121u

struct row {
	const char *name, *description;
	uint32_t hosts, switches; /* of a random cluster; 0: the shape */
	const char *shape;
	uint32_t runs;
	/* Seconds of processor time, of the topology's hosts. */
	int (*run)(const struct cn_topo *t, double *seconds, struct cn_err *err);
};

static double cpu_seconds(uint64_t since)
{
	return (double)(bench_cpu() - since) / 1e9;
}

/* lr: 1 or 3 */
static int run_ring(const struct cn_topo *t, int lr, double *seconds, struct cn_err *err)
{
	uint32_t *ring = calloc((size_t)t->nhosts + 1, sizeof(*ring));
	struct cn_tree *tree = NULL;
	uint64_t began = bench_cpu();
	int rc;

	if (ring == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a ring of %u hosts", t->nhosts);
	}
	rc = cn_tree_make(t, t->hosts, t->nhosts, CN_TOPO_NONE, &tree, err);
	if (rc == COLLNET_OK) {
		if (lr == 1) {
			cn_ring_lr1(tree, ring);
		} else {
			rc = cn_ring_lr3(tree, ring, err);
		}
	}
	*seconds = cpu_seconds(began);
	cn_tree_free(tree);
	free(ring);
	return rc;
}

static int run_lr1(const struct cn_topo *t, double *seconds, struct cn_err *err)
{
	return run_ring(t, 1, seconds, err);
}

static int run_lr3(const struct cn_topo *t, double *seconds, struct cn_err *err)
{
	return run_ring(t, 3, seconds, err);
}

static int run_aapc(const struct cn_topo *t, bool all, double *seconds, struct cn_err *err)
{
	const struct cn_algorithm *a = cn_algorithm_find(CN_OP_ALLTOALL, "aapc");
	struct cn_sched mine = { 0 };
	struct cn_check_report report;
	struct subject s;
	uint64_t began = bench_cpu();
	bool checked;
	int rc = subject_init(&s, t, t->hosts, t->nhosts, err);

	if (rc == COLLNET_OK && a == NULL) {
		rc = cn_fail(err, COLLNET_EINVAL, "there is no algorithm aapc");
	}
	if (rc == COLLNET_OK) {
		s.plan.op = CN_OP_ALLTOALL;
		s.plan.algorithm = a->id;
		s.plan.bytes = 65536;
		rc = all ? subject_check(&s, NULL, a->guarantees, &report, &checked, err)
			 : cn_sched_plan(&s.layout, &s.plan, s.layout.nnodes / 2, &mine, err);
	}
	*seconds = cpu_seconds(began);
	cn_sched_reset(&mine);
	subject_done(&s);
	return rc;
}

static int run_aapc_one(const struct cn_topo *t, double *seconds, struct cn_err *err)
{
	return run_aapc(t, false, seconds, err);
}

static int run_aapc_all(const struct cn_topo *t, double *seconds, struct cn_err *err)
{
	return run_aapc(t, true, seconds, err);
}

static const struct row rows[] = {
	{ "lr1", "the ring LR1 of a random cluster", 100000, 20000, NULL, 5, run_lr1 },
	{ "lr3", "the ring LR3 of a random cluster", 5000, 1000, NULL, 5, run_lr3 },
	{ "aapc-rank", "one rank's part of aapc, 16x64", 0, 0, "16x64", 5, run_aapc_one },
	{ "aapc-check", "all parts of aapc checked, 16x64", 0, 0, "16x64", 1, run_aapc_all },
};

#define NROWS (sizeof(rows) / sizeof(rows[0]))

static int make_network(const struct row *r, uint64_t seed, struct cn_topo **out,
			struct cn_err *err)
{
	struct cn_topo_random random = { .hosts = r->hosts,
					 .switches = r->switches,
					 .degree = 4,
					 .seed = seed,
					 .rate = 1000000000 };

	if (r->shape != NULL) {
		return cn_topo_shape(r->shape, 1000000000, 0, 0, 0, out, err);
	}
	return cn_topo_random(&random, out, err);
}

/* The smallest time of the runs. */
static int measure(const struct row *r, uint64_t seed, double *best, uint32_t *hosts,
		   uint32_t *switches, struct cn_err *err)
{
	struct cn_topo *t = NULL;
	int rc = make_network(r, seed, &t, err);

	if (rc == COLLNET_OK) {
		*hosts = t->nhosts;
		*switches = t->nvertices - t->nhosts;
	}
	for (uint32_t i = 0; rc == COLLNET_OK && i < r->runs; i++) {
		double seconds = 0;

		rc = r->run(t, &seconds, err);
		*best = i == 0 || seconds < *best ? seconds : *best;
	}
	cn_topo_free(t);
	return rc;
}

static void put_json(const struct row *r, uint64_t seed, uint32_t hosts, uint32_t switches,
		     double seconds)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "plan", r->name);
	json_string(&j, "description", r->description);
	json_uint(&j, "hosts", hosts);
	json_uint(&j, "switches", switches);
	json_uint(&j, "seed", seed);
	json_uint(&j, "runs", r->runs);
	json_double(&j, "cpu_s", seconds, 6);
	json_object_end(&j);
	json_end(&j);
}

static int run_all(bool json, uint64_t seed)
{
	if (!json) {
		printf("%-34s %7s %8s %4s %11s\n", "plan", "hosts", "switches", "runs", "cpu");
	}
	for (size_t i = 0; i < NROWS; i++) {
		uint32_t hosts = 0, switches = 0;
		struct cn_err err = { 0 };
		double seconds = 0;

		if (measure(&rows[i], seed, &seconds, &hosts, &switches, &err) != COLLNET_OK) {
			tool_complain("%s: %s", rows[i].name, err.text);
			return TOOL_FAILED;
		}
		if (json) {
			put_json(&rows[i], seed, hosts, switches, seconds);
		} else {
			printf("%-34s %7u %8u %4u %9.4f s\n", rows[i].description, hosts, switches,
			       rows[i].runs, seconds);
			fflush(stdout);
		}
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		tool_complain("standard output: %s", strerror(errno));
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

struct plan_options {
	uint64_t seed;
	bool json;
};

static int parse_option(void *into, int opt, char *arg, struct cn_err *err)
{
	struct plan_options *o = into;

	if (opt == 's') {
		return tool_parse_number(arg, 0, UINT64_MAX, &o->seed, err);
	}
	o->json = true;
	return COLLNET_OK;
}

bool bench_plans(int argc, char **argv)
{
	int i = 1;

	while (i < argc && (strcmp(argv[i], "--json") == 0 || strncmp(argv[i], "--seed", 6) == 0)) {
		i += strcmp(argv[i], "--seed") == 0 ? 2 : 1;
	}
	return i < argc && strcmp(argv[i], "plan") == 0;
}

int bench_plan(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "seed", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	struct plan_options o = { .seed = SEED };
	int rc = tool_options(argc, argv, options, parse_option, &o);

	if (rc < 0) {
		puts("usage: collnet bench plan [--json] [--seed N]\n"
		     "\n"
		     "Measures the processor time of planning on large networks, the smallest of\n"
		     "several runs. Needs no network and no ranks.\n"
		     "\n"
		     "  --json    print one JSON object per row\n"
		     "  --seed N  of the random networks (20261121)\n"
		     "  --help    print this text");
		return TOOL_OK;
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	return optind + 1 < argc ? tool_usage("unexpected argument '%.40s'", argv[optind + 1])
				 : run_all(o.json, o.seed);
}
