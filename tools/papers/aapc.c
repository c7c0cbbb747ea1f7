/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aapc-6 .. aapc-8: all-to-all on the networks of Figure 5 of Faraj and Yuan, "Message Scheduling
 * for All-to-All Personalized Communication on Ethernet Switched Clusters", compared with the times
 * of their tables.
 *
 * LAM's routine is `linear`: all messages at once, from 0 to N - 1. MPICH's for blocks beyond 32
 * KiB is `pairwise`: by exclusive or, for a power of two, else the ring i + step; for smaller ones
 * it was linear beginning with i + 1, which collnet does not have, and the same is run instead.
 * They ran on TCP. The paper does not give the switches' buffers: queues in a shared memory of 43
 * frames per port with dynamic thresholds are collnet's assumption.
 */
#include <math.h>
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/papers/sim.h"

#define SIZES  6
#define BUFFER 43u

const char experiment_aapc_plot[] =
	"set xlabel 'block for each node, KiB'\n"
	"set ylabel 'ms'\n"
	"set logscale xy 2\n"
	"set key top left\n"
	"plot for [l in 'LAM MPICH aapc'] csv using ($3/1024):(strcol(2) eq l ? $7 : NaN) "
	"with linespoints dt 2 title l.', paper', \\\n"
	"     for [l in 'LAM MPICH aapc shuffle'] csv using ($3/1024):(strcol(2) eq l ? $6 : NaN) "
	"with linespoints lw 2 title l\n";

static const uint64_t sizes[SIZES] = { 8192, 16384, 32768, 65536, 131072, 262144 };

/* Milliseconds, by size: LAM, MPICH, the paper's own. */
static const struct figure {
	const char *name;
	char network;
	double ms[SIZES][3];
} figures[] = {
	{ "aapc-6",
	  'a',
	  { { 29.7, 30.7, 56.5 },
	    { 61.4, 58.1, 71.4 },
	    { 128.2, 117.6, 86.0 },
	    { 468.8, 309.7, 217.7 },
	    { 633.7, 410.0, 398.0 },
	    { 1157, 721, 715 } } },
	{ "aapc-7",
	  'b',
	  { { 199, 155, 212 },
	    { 403, 308, 341 },
	    { 848, 613, 632 },
	    { 1827, 1374, 1428 },
	    { 3338, 2989, 2595 },
	    { 6550, 5405, 4836 } } },
	{ "aapc-8",
	  'c',
	  { { 242, 238, 271 },
	    { 495, 476, 443 },
	    { 1034, 958, 868 },
	    { 2127, 2061, 1700 },
	    { 4080, 4379, 3372 },
	    { 8375, 8210, 6396 } } },
};

static const struct routine {
	const char *label, *algorithm;
	int column; /* of the paper; -1: none */
	bool mpich; /* xor on a power of two of hosts, else shift, as MPICH does */
	bool contention_aware;
} routines[] = {
	{ "LAM", "linear", 0, false, false },
	{ "MPICH", "pairwise", 1, true, false },
	{ "aapc", "aapc", 2, false, false },
	{ "shuffle", "shuffle", -1, false, true },
};

int experiment_aapc_network(char which, struct cn_topo **out, struct cn_err *err)
{
	const struct experiment_network n = { .switches = which == 'a' ? 1 : 4,
					      .hosts = which == 'a' ? 24 : 32,
					      .chain = which == 'c',
					      .rate = 100000000,
					      .buffer = BUFFER };

	return experiment_network(&n, out, err);
}

static int write_row(const struct figure *f, const struct routine *w, size_t size,
		     const struct cn_sim_config *cluster, FILE *csv, struct cn_err *err)
{
	bool power = (cluster->topo->nhosts & (cluster->topo->nhosts - 1)) == 0;
	struct experiment_point p = {
		.cluster = cluster,
		.op = MEASURE_ALLTOALL,
		.algorithm = w->algorithm,
		.permutation = !w->mpich ? CN_PERM_AUTO
			       : power	 ? CN_PERM_XOR
					 : CN_PERM_SHIFT,
		.contention_aware = w->contention_aware,
		.window = COLLNET_WINDOW_AUTO,
		.bytes = sizes[size],
	};
	struct experiment_result r;
	int rc = experiment_measure(&p, &r, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	fprintf(csv, "%c,%s,%llu,%s,%s", f->network, w->label, (unsigned long long)sizes[size],
		w->algorithm, p.permutation == CN_PERM_AUTO ? "" : cn_perm_name(p.permutation));
	experiment_cell(csv, r.ms, 4);
	experiment_cell(csv, w->column >= 0 ? f->ms[size][w->column] : NAN, 1);
	experiment_cell(csv, r.model.best / 1e3, 4);
	experiment_cell(csv, r.model.best / 10 / r.ms, 2);
	return experiment_end_row(csv, &r.out, err);
}

int experiment_aapc(const char *name, uint64_t seed, bool quick, FILE *csv, struct cn_err *err)
{
	const struct figure *f = figures;
	struct cn_sim_config cluster;
	struct cn_topo *t;
	int rc;

	while (strcmp(f->name, name) != 0) {
		f++;
	}
	rc = experiment_aapc_network(f->network, &t, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	experiment_cluster(&cluster, t, seed);
	fprintf(csv, "network,routine,bytes,algorithm,permutation,ms,paper_ms,best_ms,"
		     "percent_of_best,resent,drops,failed_ranks\n");
	for (size_t w = 0; w < sizeof(routines) / sizeof(routines[0]); w++) {
		for (size_t i = 0; i < (quick ? 2 : SIZES) && rc == COLLNET_OK; i++) {
			rc = write_row(f, &routines[w], i, &cluster, csv, err);
		}
	}
	cn_topo_free(t);
	return rc;
}
