/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange-5, exchange-7 .. exchange-10: the exchange on the networks of Figures 5 and 7 to 10 of
 * Tam and Wang, "Contention-Aware Communication Schedule for High-Speed Communication", with the
 * buffers of their Table 1. The paper does not give processor times and delays; those below are an
 * assumption for a 733 MHz machine: in all 35 us of a frame's 123 us, and a delay of up to 0.2 ms
 * at one in 200 wake-ups.
 *
 * Their uplink modules carried 103 MB/s in both directions together at most (their Figure 6). The
 * lines @412mbit have uplinks of half of that each way, 412 Mbit/s; the others the nominal 1
 * Gbit/s.
 *
 * The backbone switch has a shared memory of 820 frames (Table 1); on lines "root 45", it has input
 * buffers of 45 frames instead, which is harder.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/papers/sim.h"

#define HOST_RATE     100000000u
#define UPLINK_RATE   1000000000u
#define UPLINK_SLOW   412000000u
#define HOST_BUFFER   43u  /* Table 1: IBM 8275-326 */
#define UPLINK_BUFFER 45u  /* ... and its uplink */
#define ROOT_MEMORY   820u /* Alcatel PR2200 */

#define PLOT(labels)                                                                               \
	"set xlabel 'block for each node, KiB'\n"                                                  \
	"set ylabel 'MB/s a node'\n"                                                               \
	"set logscale x 2\n"                                                                       \
	"set yrange [0:*]\n"                                                                       \
	"set key below\n"                                                                          \
	"set termoption noenhanced\n"                                                              \
	"plot for [l in '" labels "'] csv using ($4/1024):(strcol(3) eq l ? $6 : NaN) "            \
	"with linespoints title l\n"

const char experiment_exchange_single_plot[] = PLOT("sync+GW sync pair");
const char experiment_exchange_plot[] =
	PLOT("sync+GW+CA sync+GW sync+CA pair pair+CA sync+GW+CA@412mbit pair@412mbit");

static const struct figure {
	const char *name, *shape;
	double paper_percent; /* of the best: sync+GW+CA (16x1: sync+GW), long blocks */
} figures[] = {
	{ "exchange-5", "16x1", 97 }, { "exchange-7", "8x2", 93 },  { "exchange-8", "8x3", 89 },
	{ "exchange-9", "6x4", 88 },  { "exchange-10", "8x4", 92 },
};

/* The legends of the figures. */
static const struct line {
	const char *label, *algorithm;
	bool window, aware, single; /* single: on one switch too, where there is no CA */
	uint64_t uplink;
	bool root_input;
} lines[] = {
	{ "sync+GW+CA", "shuffle", true, true, false, UPLINK_RATE, false },
	{ "sync+GW", "shuffle", true, false, true, UPLINK_RATE, false },
	{ "sync+CA", "shuffle", false, true, false, UPLINK_RATE, false },
	{ "sync", "shuffle", false, false, true, UPLINK_RATE, false },
	{ "pair", "pairwise", false, false, true, UPLINK_RATE, false },
	{ "pair+CA", "pairwise", false, true, false, UPLINK_RATE, false },
	{ "sync+GW+CA root 45", "shuffle", true, true, false, UPLINK_RATE, true },
	{ "sync+GW+CA@412mbit", "shuffle", true, true, false, UPLINK_SLOW, false },
	{ "sync+GW@412mbit", "shuffle", true, false, false, UPLINK_SLOW, false },
	{ "pair@412mbit", "pairwise", false, false, false, UPLINK_SLOW, false },
	{ "pair+CA@412mbit", "pairwise", false, true, false, UPLINK_SLOW, false },
	{ "sync+GW+CA@412mbit root 45", "shuffle", true, true, false, UPLINK_SLOW, true },
};

static void cluster_of(struct cn_sim_config *c, const struct cn_topo *t, const struct line *l,
		       uint64_t seed)
{
	cn_sim_config_init(c);
	c->topo = t;
	c->kind = CN_SIM_INPUT;
	if (t->nvertices > t->nhosts + 1 && !l->root_input) {
		c->root = (struct cn_sim_root){ true, CN_SIM_SHARED, ROOT_MEMORY };
	}
	c->o_send = 10 * CN_US;
	c->o_recv = 20 * CN_US;
	c->u_recv = 5 * CN_US;
	c->jitter = 200 * CN_US;
	c->jitter_ppm = 5000;
	c->delay = 5 * CN_US;
	c->seed = seed;
}

static int write_row(const struct figure *f, const struct line *l, const struct cn_topo *t,
		     uint64_t bytes, uint64_t seed, bool longest, FILE *csv, struct cn_err *err)
{
	struct cn_sim_config cluster;
	struct experiment_point p = {
		.cluster = &cluster,
		.op = MEASURE_ALLTOALL,
		.algorithm = l->algorithm,
		.contention_aware = l->aware,
		.bytes = bytes,
		.window = l->window ? COLLNET_WINDOW_AUTO : COLLNET_WINDOW_OFF,
	};
	struct experiment_result r;
	bool headline = strncmp(l->label, "sync+GW", 7) == 0 &&
			(l->aware || strcmp(f->shape, "16x1") == 0);
	int rc;

	cluster_of(&cluster, t, l, seed);
	rc = experiment_measure(&p, &r, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	fprintf(csv, "%s,%s,%s,%llu", f->name, f->shape, l->label, (unsigned long long)bytes);
	experiment_cell(csv, r.ms, 4);
	experiment_cell(csv, (double)bytes * (t->nhosts - 1) / r.ms / 1e3, 4);
	experiment_cell(csv, r.model.eq2 / 1e3, 4);
	experiment_cell(csv, r.model.eq6 / 1e3, 4);
	experiment_cell(csv, r.model.eq7 / 1e3, 4);
	experiment_cell(csv, r.model.best / 10 / r.ms, 2);
	experiment_cell(csv, headline && longest ? f->paper_percent : NAN, 0);
	fprintf(csv, ",%llu,%llu,%llu,%llu,%u,%u\n", (unsigned long long)r.out.data_sent,
		(unsigned long long)r.out.data_resent, (unsigned long long)r.out.drops,
		(unsigned long long)r.out.longest.count, r.out.window_peak, r.out.failed);
	return ferror(csv) ? cn_fail(err, COLLNET_ESYSTEM, "the table cannot be written")
			   : COLLNET_OK;
}

static int run_line(const struct figure *f, const struct line *l, uint64_t seed, bool quick,
		    FILE *csv, struct cn_err *err)
{
	static const uint64_t sizes[] = { 1024, 4096, 16384, 65536, 262144, 1228800 };
	static const uint64_t quick_sizes[] = { 1024, 16384 };
	const uint64_t *size = quick ? quick_sizes : sizes;
	size_t n = quick ? 2 : sizeof(sizes) / sizeof(sizes[0]);
	struct cn_topo *t = NULL;
	int rc = cn_topo_shape(f->shape, HOST_RATE, HOST_BUFFER, l->uplink, UPLINK_BUFFER, &t, err);

	if (rc == COLLNET_OK) {
		cn_topo_input_buffered(t);
	}
	for (size_t i = 0; i < n && rc == COLLNET_OK; i++) {
		rc = write_row(f, l, t, size[i], seed, i + 1 == n, csv, err);
	}
	cn_topo_free(t);
	return rc;
}

int experiment_exchange(const char *name, uint64_t seed, bool quick, FILE *csv, struct cn_err *err)
{
	const struct figure *f = figures;
	int rc = COLLNET_OK;

	while (strcmp(f->name, name) != 0) {
		f++;
	}
	fprintf(csv, "figure,shape,line,bytes,ms,mb_per_s,eq2_ms,eq6_ms,eq7_ms,percent_of_best,"
		     "paper_percent,frames,resent,drops,peak_queue,window_peak,failed_ranks\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && rc == COLLNET_OK; i++) {
		bool single = strcmp(f->shape, "16x1") == 0;

		if (lines[i].single || !single) {
			rc = run_line(f, &lines[i], seed, quick, csv, err);
		}
	}
	return rc;
}
