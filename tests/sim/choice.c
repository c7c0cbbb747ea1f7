/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of algorithms against the simulator: on random networks of 4 to 32 hosts (shapes and
 * trees, 100 Mbit/s to 25 Gbit/s, uplinks equal to ten times as fast, channels), for every
 * operation and sizes of 64 B to 1 MiB, the simulated time of the algorithm that is chosen over
 * that of the fastest one.
 *
 *   choice                                        the short form of `make check`
 *   choice --networks N [--first N] [--frames N] [--operation NAME] [--verbose]
 *
 * A case of more than --frames frames (200,000) is left out. The misses, ratios above 1.1, are
 * printed, and the worst. Exit status 1: more than 2 % are misses, or one is above 1.5; in the
 * short form, which has few cases, more than 3 %, or one above 1.5.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/reduction.h"
#include "sched/select.h"
#include "tools/plan/random.h"
#include "tools/plan/span.h"
#include "tools/sim/case.h"

/* What the cost model counts for hosts, whose processors cost nothing here: the processing of a
 * message at its ends, in the cables, and of a piece of a reduction. */
#define LATENCY	  (5 * CN_US)
#define COMBINING (40 * CN_US)
#define SHORT	  (1 * CN_US) /* the daemon combines it */
#define MISS	  1.1

struct options {
	uint64_t networks, first, frames;
	const char *operation; /* NULL: all */
	bool verbose, brief;
};

struct totals {
	uint32_t cases, misses;
	double worst;
};

struct network {
	uint64_t seed;
	struct cn_topo *topo;
	char text[160];
	uint32_t *numbers; /* [hosts + 1] */
	struct cn_tree *tree;
	struct cn_layout layout;
};

static uint64_t between(uint64_t *r, uint64_t least, uint64_t most)
{
	return least + cn_random(r) % (most - least + 1);
}

static const uint64_t rates[] = { 100000000, 1000000000, 2500000000, 10000000000, 25000000000 };

static int draw_shape(struct network *n, uint64_t *r, struct cn_err *err)
{
	uint64_t rate = rates[cn_random(r) % 5], factor = between(r, 1, 10);
	uint32_t switches = (uint32_t)between(r, 1, 4);
	uint32_t hosts = (uint32_t)between(r, 4 / switches + (4 % switches > 0), 32 / switches);
	char shape[32];

	snprintf(shape, sizeof(shape), switches > 1 ? "%ux%u" : "%u", hosts, switches);
	snprintf(n->text, sizeof(n->text), "%s, %llu Mbit/s, uplinks %llu times", shape,
		 (unsigned long long)rate / 1000000, (unsigned long long)factor);
	return cn_topo_shape(shape, rate, 43, rate * factor, 45, &n->topo, err);
}

static int draw_tree(struct network *n, uint64_t *r, struct cn_err *err)
{
	uint64_t rate = rates[cn_random(r) % 5], factor = between(r, 1, 10);
	const struct cn_topo_random how = {
		.hosts = (uint32_t)between(r, 4, 32),
		.switches = (uint32_t)between(r, 2, 6),
		.degree = 2,
		.seed = cn_random(r),
		.rate = rate,
		.buffer = 43,
	};
	struct cn_topo *graph;
	uint32_t channels = (uint32_t)between(r, 1, 2);
	int rc = cn_topo_random(&how, &graph, err);

	snprintf(n->text, sizeof(n->text),
		 "%u hosts on a tree of %u switches, %llu Mbit/s, between switches %llu times, %u "
		 "channels",
		 how.hosts, how.switches, (unsigned long long)rate / 1000000,
		 (unsigned long long)factor, channels);
	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = cn_topo_span(graph, CN_TREE_SHORTEST, CN_TOPO_NONE, how.seed, &n->topo, err);
	cn_topo_free(graph);
	for (uint32_t i = 0; rc == COLLNET_OK && i < n->topo->nlinks; i++) {
		struct cn_topo_link *l = &n->topo->links[i];

		if (n->topo->vertices[l->a].is_switch && n->topo->vertices[l->b].is_switch) {
			l->rate = rate * factor;
			l->channels = channels;
		}
	}
	return rc;
}

static void network_free(struct network *n)
{
	cn_tree_free(n->tree);
	cn_topo_free(n->topo);
	free(n->numbers);
}

static bool network_draw(uint64_t seed, struct network *n, struct cn_err *err)
{
	uint64_t r = cn_mix64(seed);
	uint32_t hosts;

	*n = (struct network){ .seed = seed };
	if ((seed % 2 == 0 ? draw_shape(n, &r, err) : draw_tree(n, &r, err)) != COLLNET_OK ||
	    cn_tree_make(n->topo, n->topo->hosts, n->topo->nhosts, CN_TOPO_NONE, &n->tree, err) !=
		    COLLNET_OK) {
		return false;
	}
	hosts = n->topo->nhosts;
	n->numbers = calloc(2 * (size_t)hosts + 1, sizeof(*n->numbers));
	if (n->numbers == NULL || cn_number_nodes(n->topo, n->topo->hosts, hosts,
						  n->numbers + hosts + 1, err) != COLLNET_OK) {
		return false;
	}
	for (uint32_t i = 0; i <= hosts; i++) {
		n->numbers[i] = i;
	}
	n->layout = (struct cn_layout){ .nranks = hosts,
					.nnodes = hosts,
					.node_of = n->numbers,
					.first = n->numbers,
					.ranks = n->numbers,
					.logical = n->numbers + hosts + 1,
					.tree = n->tree };
	return true;
}

/* Frames that hosts send for data, about. */
static uint64_t frames_of(enum cn_op_kind op, uint64_t n, uint64_t bytes)
{
	uint64_t frames = (bytes + 1475) / 1476 + (bytes == 0);

	switch (op) {
	case CN_OP_ALLTOALL:
	case CN_OP_ALLGATHER:
	case CN_OP_REDUCE_SCATTER:
		return n * (n - 1) * frames;
	case CN_OP_ALLREDUCE:
		return 2 * n * frames;
	default:
		return n * frames;
	}
}

/* Nanoseconds; 0: it cannot run here. */
static double simulate(const struct network *n, const struct cn_algorithm *g, uint64_t bytes)
{
	struct sim_case c = { .local = 1, .iterations = 1, .warmup = 1 };
	struct sim_outcome out;
	struct cn_err err = { 0 };
	double ns = 0;

	cn_sim_config_init(&c.cluster);
	c.cluster.topo = n->topo;
	c.cluster.latency = LATENCY;
	c.combining = cn_op_is_combined_by_daemon(g->op, bytes, false) ? SHORT : COMBINING;
	c.args = (struct cn_coll_args){
		.op = g->op, .algorithm = g->name, .contention_aware = true, .bytes = bytes
	};
	if (cn_op_reduces(g->op)) {
		c.args.element = 1;
	}
	if (sim_run(&c, &out, &err) == COLLNET_OK && out.failed == 0) {
		ns = out.slowest_ns;
	}
	sim_outcome_free(&out);
	return ns;
}

static void evaluate(const struct options *o, const struct network *n, enum cn_op_kind op,
		     uint64_t bytes, struct totals *t)
{
	const struct cn_plan p = { .op = op, .bytes = bytes };
	const struct cn_algorithm *chosen = cn_select(&n->layout, &p), *fastest = NULL;
	struct cn_prediction all[CN_ALGORITHMS_MAX];
	size_t count = cn_predict(&n->layout, &p, &cn_cost_default, all);
	double best = 0, took = 0, ratio;
	char times[512] = "";

	for (size_t i = 0; i < count; i++) {
		double ns = all[i].seconds < 0 ? 0 : simulate(n, all[i].algorithm, bytes);
		size_t at = strlen(times);

		if (ns > 0 && (fastest == NULL || ns < best)) {
			best = ns;
			fastest = all[i].algorithm;
		}
		took = all[i].algorithm == chosen ? ns : took;
		if (ns > 0) {
			snprintf(times + at, sizeof(times) - at, " %s %.1f (%.1f)",
				 all[i].algorithm->name, ns / 1e3, all[i].seconds * 1e6);
		}
	}
	if (fastest == NULL || took <= 0) {
		printf("seed %llu, %s of %llu bytes: nothing ran\n", (unsigned long long)n->seed,
		       cn_op_name(op), (unsigned long long)bytes);
		t->misses++;
		return;
	}
	ratio = took / best;
	t->cases++;
	t->misses += ratio > MISS;
	t->worst = ratio > t->worst ? ratio : t->worst;
	if (ratio > MISS || o->verbose) {
		printf("%.2f seed %llu (%s), %s of %llu bytes: %s, %s is faster; us (predicted):%s\n",
		       ratio, (unsigned long long)n->seed, n->text, cn_op_name(op),
		       (unsigned long long)bytes, chosen->name, fastest->name, times);
		fflush(stdout);
	}
}

static const uint64_t sizes[] = { 64, 1024, 16384, 131072, 1048576 };

static void run_network(const struct options *o, const struct network *n, struct totals *t)
{
	for (int op = 1; op < CN_OP_KINDS; op++) {
		enum cn_op_kind kind = (enum cn_op_kind)op;

		if (cn_op_is_vector(kind) ||
		    (o->operation != NULL && strcmp(o->operation, cn_op_name(kind)) != 0)) {
			continue;
		}
		for (size_t i = 0; i < (kind == CN_OP_BARRIER ? 1 : sizeof(sizes) / 8); i++) {
			uint64_t bytes = kind == CN_OP_BARRIER ? 0 : sizes[i];

			if (frames_of(kind, n->layout.nnodes, bytes) <= o->frames) {
				evaluate(o, n, kind, bytes, t);
			}
		}
	}
}

static bool parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		uint64_t *into = NULL;

		if (strcmp(argv[i], "--verbose") == 0) {
			o->verbose = true;
			continue;
		}
		if (strcmp(argv[i], "--operation") == 0 && i + 1 < argc) {
			o->operation = argv[++i];
			continue;
		}
		if (strcmp(argv[i], "--networks") == 0) {
			into = &o->networks;
			o->brief = false;
		} else if (strcmp(argv[i], "--first") == 0) {
			into = &o->first;
		} else if (strcmp(argv[i], "--frames") == 0) {
			into = &o->frames;
		}
		if (into == NULL || i + 1 == argc ||
		    !cn_parse_uint(argv[++i], 0, UINT64_MAX, into)) {
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options o = { .networks = 100, .first = 1, .frames = 200000, .brief = argc == 1 };
	struct totals t = { 0 };

	if (!parse(argc, argv, &o)) {
		fprintf(stderr,
			"usage: %s [--networks N] [--first N] [--frames N] [--operation NAME] "
			"[--verbose]\n",
			argv[0]);
		return 2;
	}
	if (o.brief) {
		o.networks = 3;
		o.frames = 800;
	}
	for (uint64_t i = 0; i < o.networks; i++) {
		struct network n;
		struct cn_err err = { 0 };

		if (!network_draw(o.first + i, &n, &err)) {
			printf("seed %llu: %s\n", (unsigned long long)(o.first + i), err.text);
			return 1;
		}
		run_network(&o, &n, &t);
		network_free(&n);
	}
	printf("%u cases, %u misses (%.1f %%), worst ratio %.2f\n", t.cases, t.misses,
	       t.cases > 0 ? 100.0 * t.misses / t.cases : 0.0, t.worst);
	return t.cases == 0 || t.misses * 100 > t.cases * (o.brief ? 3 : 2) || t.worst > 1.5;
}
