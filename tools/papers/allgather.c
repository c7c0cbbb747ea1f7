/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings-9, rings-10, rings-table-1: allgather on the networks of Figure 8 of Faraj, Patarasuk and
 * Yuan, "Bandwidth Efficient All-to-All Broadcast on Switched Clusters".
 *
 * LAM's routine is a tree's: what comes nearest here is a gather to rank 0 and a binomial broadcast
 * of all it has gathered, one after the other. MPICH's for long blocks is `ring`, in the order of
 * the numbers; for blocks below 16 or 32 KiB it was recursive doubling; the ring is run
 * there too. Theirs were on TCP; ours run without a global window as they
 * did. In the files of examples/topologies consecutive numbers are on one switch, and the ring by
 * numbers is LR1's; the paper's MPICH was slower on (b) to (d), so its numbers were otherwise:
 * "MPICH dealt" has them dealt out over the switches in turn. The paper does not give the switches'
 * buffers: 43 frames per port in shared memory with dynamic thresholds are collnet's assumption.
 */
#include <math.h>
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/papers/sim.h"

#define BUFFER 43u

#define PLOT(network)                                                                              \
	"plot for [l in \"LAM MPICH 'MPICH dealt' LR1\"] csv using ($3/1024):"                     \
	"(strcol(1) eq '" network "' && strcol(2) eq l ? $4 : NaN) with linespoints title l\n"
#define AXES                                                                                       \
	"set xlabel 'block of each node, KiB'\n"                                                   \
	"set ylabel 'ms'\n"                                                                        \
	"set key top left\n"

const char experiment_rings_9_plot[] =
	"set multiplot layout 2,2\n" AXES
	"set title '(a)'\n" PLOT("a") "set title '(b)'\n" PLOT("b") "set title '(c)'\n" PLOT(
		"c") "set title '(d)'\n" PLOT("d") "unset multiplot\n";
const char experiment_rings_10_plot[] = "set multiplot layout 1,2\n" AXES "set title '(e)'\n" PLOT(
	"e") "set title '(f)'\n" PLOT("f") "unset multiplot\n";
const char experiment_rings_table_plot[] = AXES
	"plot for [n in 'a d'] for [l in 'LR1 LR2'] csv using ($3/1024):"
	"(strcol(1) eq n && strcol(2) eq l ? $4 : NaN) with linespoints title l.' on ('.n.')', \\\n"
	"     for [n in 'a d'] for [l in 'LR1 LR2'] csv using ($3/1024):"
	"(strcol(1) eq n && strcol(2) eq l ? $5 : NaN) with linespoints dt 2 "
	"title l.' on ('.n.'), paper'\n";

/* Milliseconds from the paper's text. */
static const struct quoted {
	char network;
	const char *label;
	uint64_t bytes;
	double ms;
} quoted[] = {
	{ 'd', "LR1", 32768, 50.9 },   { 'd', "LR2", 32768, 48.0 },
	{ 'a', "LR1", 32768, 47.0 },   { 'd', "LR1", 49152, 72.9 },
	{ 'd', "LR2", 49152, 68.4 },   { 'a', "LR1", 49152, 67.2 },
	{ 'd', "LR1", 65536, 116.9 },  { 'd', "LR2", 65536, 95.7 },
	{ 'a', "LR1", 65536, 90.8 },   { 'd', "LR1", 98304, 180.0 },
	{ 'd', "LR2", 98304, 172.7 },  { 'a', "LR1", 98304, 162.6 },
	{ 'd', "LR1", 131072, 236.8 }, { 'd', "LR2", 131072, 233.7 },
	{ 'a', "LR1", 131072, 220.6 }, { 'f', "LR1", 131072, 473.7 },
	{ 'f', "LAM", 131072, 5346 },  { 'f', "MPICH", 131072, 3595 },
};

static const struct routine {
	const char *label, *algorithm; /* NULL: gather, then broadcast */
	const char *networks;
	bool dealt;
} routines[] = {
	{ "LR1", "lr1", "abcdef", false }, { "MPICH", "ring", "abcdef", false },
	{ "LAM", NULL, "abcdef", false },  { "MPICH dealt", "ring", "bcd", true },
	{ "LR2", "lr2", "d", false },
};

static const struct figure {
	const char *name, *networks;
	uint32_t routines; /* bit i: routines[i] */
	const uint64_t *sizes;
} figures[] = {
	{ "rings-9", "abcd", 15,
	  (const uint64_t[]){ 4096, 16384, 32768, 65536, 98304, 131072, 0 } },
	{ "rings-10", "ef", 7, (const uint64_t[]){ 4096, 16384, 32768, 65536, 131072, 0 } },
	{ "rings-table-1", "da", 17, (const uint64_t[]){ 32768, 49152, 65536, 98304, 131072, 0 } },
};

int experiment_allgather_network(char which, bool dealt, struct cn_topo **out, struct cn_err *err)
{
	const struct experiment_network n = {
		.switches = which == 'a'   ? 1
			    : which == 'b' ? 2
					   : 4,
		.hosts = which < 'e' ? 16 : 32,
		.chain = which != 'c',
		.dealt = dealt || which == 'f',
		.rate = 100000000,
		.buffer = BUFFER,
	};

	return experiment_network(&n, out, err);
}

/* The rest of r is the allgather's, or the broadcast's and the gather's together. */
static int measure(const struct routine *w, const struct cn_sim_config *cluster, uint64_t bytes,
		   struct experiment_result *r, struct cn_err *err)
{
	struct experiment_point p = { .cluster = cluster,
				      .op = MEASURE_ALLGATHER,
				      .algorithm = w->algorithm,
				      .contention_aware = true,
				      .window = COLLNET_WINDOW_OFF,
				      .bytes = bytes };
	struct experiment_result gather;
	int rc;

	if (w->algorithm != NULL) {
		return experiment_measure(&p, r, err);
	}
	p.op = MEASURE_GATHER;
	p.algorithm = "nearest";
	rc = experiment_measure(&p, &gather, err);
	if (rc == COLLNET_OK) {
		p.op = MEASURE_BCAST;
		p.algorithm = "binomial";
		p.bytes = bytes * cluster->topo->nhosts;
		rc = experiment_measure(&p, r, err);
	}
	if (rc == COLLNET_OK) {
		r->ms += gather.ms;
		r->out.data_resent += gather.out.data_resent;
		r->out.drops += gather.out.drops;
		r->out.failed += gather.out.failed;
	}
	return rc;
}

static int write_row(char network, const struct routine *w, uint64_t bytes,
		     const struct cn_sim_config *cluster, FILE *csv, struct cn_err *err)
{
	double bound = (double)(cluster->topo->nhosts - 1) * (double)bytes * 8 / 100e6 * 1e3;
	double paper = NAN;
	struct experiment_result r;
	int rc = measure(w, cluster, bytes, &r, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	for (size_t i = 0; i < sizeof(quoted) / sizeof(quoted[0]); i++) {
		if (quoted[i].network == network && quoted[i].bytes == bytes &&
		    strcmp(quoted[i].label, w->label) == 0) {
			paper = quoted[i].ms;
		}
	}
	fprintf(csv, "%c,%s,%llu", network, w->label, (unsigned long long)bytes);
	experiment_cell(csv, r.ms, 4);
	experiment_cell(csv, paper, 1);
	experiment_cell(csv, bound, 4);
	experiment_cell(csv, bound * 100 / r.ms, 2);
	return experiment_end_row(csv, &r.out, err);
}

/* One routine on one network, all sizes. */
static int run_line(const struct figure *f, char network, const struct routine *w, uint64_t seed,
		    bool quick, FILE *csv, struct cn_err *err)
{
	struct cn_sim_config cluster;
	struct cn_topo *t;
	int rc = experiment_allgather_network(network, w->dealt, &t, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	experiment_cluster(&cluster, t, seed);
	for (size_t i = 0; f->sizes[i] != 0 && rc == COLLNET_OK; i++) {
		if (!quick || i < 2) {
			rc = write_row(network, w, f->sizes[i], &cluster, csv, err);
		}
	}
	cn_topo_free(t);
	return rc;
}

int experiment_allgather(const char *name, uint64_t seed, bool quick, FILE *csv, struct cn_err *err)
{
	const struct figure *f = figures;
	int rc = COLLNET_OK;

	while (strcmp(f->name, name) != 0) {
		f++;
	}
	fprintf(csv,
		"network,routine,bytes,ms,paper_ms,bound_ms,percent_of_bound,resent,drops,failed_ranks\n");
	for (const char *n = f->networks; *n != '\0'; n++) {
		for (size_t w = 0; w < sizeof(routines) / sizeof(routines[0]); w++) {
			if (rc == COLLNET_OK && (f->routines >> w & 1) != 0 &&
			    strchr(routines[w].networks, *n) != NULL) {
				rc = run_line(f, *n, &routines[w], seed, quick, csv, err);
			}
		}
	}
	return rc;
}
