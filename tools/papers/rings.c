/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allgather-rings-11: Figure 11 of Faraj, Patarasuk and Yuan, "Bandwidth Efficient All-to-All
 * Broadcast on Switched Clusters": the longest path of the rings of LR1 and LR3 on random clusters,
 * by three constructions of the spanning tree.
 */
#include "tools/papers/rings.h"

#include <stdlib.h>

#include "sched/allgather/ring.h"
#include "tools/papers/papers.h"
#include "tools/plan/random.h"
#include "tools/plan/span.h"

#define CLUSTERS	  50u /* a point, as in the paper */
#define MACHINES_A_SWITCH 5u
#define DEGREE		  4.0

const char experiment_rings_plot[] =
	"set multiplot layout 1,2\n"
	"set xlabel 'machines'\n"
	"set xtics 320\n"
	"set yrange [0:*]\n"
	"set key top left\n"
	"set title '(a) LR1: longest path'\n"
	"set ylabel 'switches, mean of 50 clusters'\n"
	"plot for [t in 'dfs random bfs'] csv using 1:(strcol(3) eq t ? $4 : NaN) "
	"with linespoints title t\n"
	"set title '(b) LR3: longest path'\n"
	"unset ylabel\n"
	"set yrange [0:5]\n"
	"plot for [t in 'dfs random bfs'] csv using 1:(strcol(3) eq t ? $6 : NaN) "
	"with linespoints title t\n"
	"unset multiplot\n";

/* The longest paths of both rings on one spanning tree. */
static int measure(const struct cn_topo *span, uint32_t *lr1, uint32_t *lr3, struct cn_err *err)
{
	uint32_t *ring = calloc(span->nhosts, sizeof(*ring));
	struct cn_tree *t = NULL;
	int rc;

	if (ring == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a ring of %u hosts",
			       span->nhosts);
	}
	rc = cn_tree_make(span, span->hosts, span->nhosts, CN_TOPO_NONE, &t, err);
	if (rc == COLLNET_OK) {
		cn_ring_lr1(t, ring);
		*lr1 = cn_ring_longest(t, ring, NULL);
		rc = cn_ring_lr3(t, ring, err);
	}
	if (rc == COLLNET_OK) {
		*lr3 = cn_ring_longest(t, ring, NULL);
	}
	cn_tree_free(t);
	free(ring);
	return rc;
}

/* One cluster, its spanning tree from a switch drawn at random, and the rings. */
static int one_cluster(const struct cn_topo_random *r, enum cn_tree_kind kind, uint32_t *lr1,
		       uint32_t *lr3, struct cn_err *err)
{
	struct cn_topo *cluster, *span = NULL;
	uint32_t nth, root = 0;
	int rc = cn_topo_random(r, &cluster, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	nth = (uint32_t)(cn_mix64(r->seed ^ 1) % r->switches);
	while (!cluster->vertices[root].is_switch || nth-- > 0) {
		root++;
	}
	rc = cn_topo_span(cluster, kind, root, cn_mix64(r->seed ^ 2), &span, err);
	cn_topo_free(cluster);
	if (rc == COLLNET_OK) {
		rc = measure(span, lr1, lr3, err);
	}
	cn_topo_free(span);
	return rc;
}

int experiment_rings_point(uint32_t machines, enum cn_tree_kind kind, uint32_t clusters,
			   uint64_t seed, struct experiment_rings_point *out, struct cn_err *err)
{
	struct cn_topo_random r = { .hosts = machines, .degree = DEGREE };
	uint64_t lr1_sum = 0, lr3_sum = 0, state = cn_mix64(seed) ^ machines;

	r.switches = (machines + MACHINES_A_SWITCH - 1) / MACHINES_A_SWITCH;
	*out = (struct experiment_rings_point){ .machines = machines, .switches = r.switches };
	for (uint32_t i = 0; i < clusters; i++) {
		uint32_t lr1 = 0, lr3 = 0;
		int rc;

		r.seed = cn_random(&state);
		rc = one_cluster(&r, kind, &lr1, &lr3, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		lr1_sum += lr1;
		lr3_sum += lr3;
		out->lr1_max = lr1 > out->lr1_max ? lr1 : out->lr1_max;
		out->lr3_max = lr3 > out->lr3_max ? lr3 : out->lr3_max;
	}
	out->lr1_mean = (double)lr1_sum / clusters;
	out->lr3_mean = (double)lr3_sum / clusters;
	return COLLNET_OK;
}

int experiment_rings(uint64_t seed, FILE *csv, struct cn_err *err)
{
	static const uint32_t machines[] = { 40, 80, 160, 240, 320, 480, 640, 960, 1280 };
	static const struct {
		enum cn_tree_kind kind;
		const char *name;
	} trees[] = { { CN_TREE_BFS, "bfs" },
		      { CN_TREE_DFS, "dfs" },
		      { CN_TREE_RANDOM, "random" } };

	fprintf(csv, "machines,switches,tree,lr1_mean,lr1_max,lr3_mean,lr3_max\n");
	for (size_t t = 0; t < sizeof(trees) / sizeof(trees[0]); t++) {
		for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
			struct experiment_rings_point p;
			int rc = experiment_rings_point(machines[i], trees[t].kind, CLUSTERS, seed,
							&p, err);

			if (rc != COLLNET_OK) {
				return rc;
			}
			fprintf(csv, "%u,%u,%s,%.2f,%u,%.2f,%u\n", p.machines, p.switches,
				trees[t].name, p.lr1_mean, p.lr1_max, p.lr3_mean, p.lr3_max);
		}
	}
	return ferror(csv) ? cn_fail(err, COLLNET_ESYSTEM, "the table cannot be written")
			   : COLLNET_OK;
}
