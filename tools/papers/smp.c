/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smp-5.1 .. smp-5.4: broadcasts of 200,000 bytes, Figures 5.1 to 5.4 of Sun, Bader, Lin and Ling,
 * "Broadcast on Clusters of SMPs with Optimal Concurrency": `smp` and the topology-unaware
 * `binomial`, which stands for MPI_Bcast.
 *
 * The network is Myrinet's, as far as the paper describes it: four switches with 16 nodes each,
 * links of 1.2 Gbit/s, cutting through, no loss (queues without a limit here). How the eight
 * back-ports of a switch are connected is not in the paper: a star with two cables to each of the
 * others is an assumption, and so are the numbers of nodes per switch in all cases but the first.
 * The paper's text gives differences, not the numbers of the figures. Nodes are numbered switch by
 * switch ("in order"), or distributed over the switches, as a batch system may do ("dealt").
 */
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/papers/sim.h"

#define MESSAGE 200000u

const char experiment_smp_plot[] =
	"set xlabel 'nodes'\n"
	"set ylabel 'ms'\n"
	"set yrange [0:*]\n"
	"set key top left\n"
	"plot for [o in 'ordered dealt'] csv using 1:(strcol(3) eq o ? $4 : NaN) "
	"with linespoints title 'smp, '.o, \\\n"
	"     for [o in 'ordered dealt'] csv using 1:(strcol(3) eq o ? $5 : NaN) "
	"with linespoints dt 2 title 'binomial, '.o\n";

static const struct figure {
	const char *name;
	uint32_t block[4]; /* nodes of each switch */
} figures[] = {
	{ "smp-5.1", { 16, 16, 16, 16 } },
	{ "smp-5.2", { 16, 16, 12, 0 } },
	{ "smp-5.3", { 12, 10, 8, 8 } },
	{ "smp-5.4", { 8, 8, 6, 6 } },
};

static int measure(const struct cn_sim_config *cluster, const char *algorithm, double *ms,
		   struct cn_err *err)
{
	const struct experiment_point p = { .cluster = cluster,
					    .op = MEASURE_BCAST,
					    .algorithm = algorithm,
					    .contention_aware = true,
					    .window = COLLNET_WINDOW_AUTO,
					    .bytes = MESSAGE };
	struct experiment_result r;
	int rc = experiment_measure(&p, &r, err);

	*ms = r.out.slowest_ns / 1e6; /* a broadcast is over when the last one has it */
	return rc;
}

/* The first `hosts` nodes of the figure's cluster. */
static int run_point(const struct figure *f, uint32_t hosts, bool dealt, uint64_t seed, FILE *csv,
		     struct cn_err *err)
{
	struct experiment_network n = {
		.hosts = hosts, .dealt = dealt, .block = f->block, .rate = 1200000000, .channels = 2
	};
	struct cn_sim_config cluster;
	struct cn_topo *t;
	double smp = 0, binomial = 0;
	int rc;

	for (uint32_t s = 0, below = 0; s < 4 && below < hosts; below += f->block[s++]) {
		n.switches = s + 1;
	}
	rc = experiment_network(&n, &t, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	cn_sim_config_init(&cluster);
	cluster.topo = t;
	cluster.cut_through = true;
	cluster.delay = 500;
	cluster.o_send = cluster.o_recv = 4 * CN_US;
	cluster.seed = seed;
	rc = measure(&cluster, "smp", &smp, err);
	rc = rc == COLLNET_OK ? measure(&cluster, "binomial", &binomial, err) : rc;
	if (rc == COLLNET_OK) {
		fprintf(csv, "%u,%u,%s", hosts, n.switches, dealt ? "dealt" : "ordered");
		experiment_cell(csv, smp, 4);
		experiment_cell(csv, binomial, 4);
		experiment_cell(csv, 100 - smp / binomial * 100, 1);
		putc('\n', csv);
	}
	cn_topo_free(t);
	return rc;
}

int experiment_smp(const char *name, uint64_t seed, bool quick, FILE *csv, struct cn_err *err)
{
	const struct figure *f = figures;
	uint32_t all, step;
	int rc = COLLNET_OK;

	while (strcmp(f->name, name) != 0) {
		f++;
	}
	all = f->block[0] + f->block[1] + f->block[2] + f->block[3];
	step = quick ? all - 8 : 4;
	fprintf(csv, "nodes,switches,numbers,smp_ms,binomial_ms,saved_percent\n");
	for (int dealt = 0; dealt < 2; dealt++) {
		for (uint32_t n = 8; n <= all && rc == COLLNET_OK;
		     n = n < all && n + step > all ? all : n + step) {
			rc = run_point(f, n, dealt != 0, seed, csv, err);
		}
	}
	return rc == COLLNET_OK && ferror(csv)
		       ? cn_fail(err, COLLNET_ESYSTEM, "the table cannot be written")
		       : rc;
}
