/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Experiments of our own: what loss costs an exchange, with the reorder buffer and by Go-Back-N
 * alone (loss), and how an exchange grows with the cluster (scale).
 */
#include <math.h>
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/papers/sim.h"

#define HOST_RATE     100000000u
#define UPLINK_RATE   1000000000u
#define HOST_BUFFER   43u
#define UPLINK_BUFFER 45u

const char experiment_loss_plot[] =
	"set xlabel 'lost frames, %'\n"
	"set ylabel '% of the best without loss'\n"
	"set yrange [0:105]\n"
	"set key bottom left\n"
	"plot for [s in '16384 131072 1048576'] csv using "
	"(strcol(1) eq 'reorder' && strcol(3) eq s ? $2 : NaN):5 smooth unique with linespoints lw 2 "
	"title gprintf('%.0f KiB', s/1024), \\\n"
	"     for [s in '16384 131072 1048576'] csv using "
	"(strcol(1) eq 'Go-Back-N' && strcol(3) eq s ? $2 : NaN):5 smooth unique "
	"with linespoints dt 2 title gprintf('%.0f KiB, Go-Back-N alone', s/1024)\n";
const char experiment_scale_plot[] =
	"set xlabel 'hosts'\n"
	"set ylabel '% of the best'\n"
	"set logscale x 2\n"
	"set yrange [0:105]\n"
	"set key bottom left\n"
	"plot for [n in '\"one switch\" \"8 per switch\"'] csv using "
	"(strcol(1) eq n ? $2 : NaN):6 with linespoints lw 2 title n\n";

static int exchange(const struct cn_sim_config *cluster, uint64_t bytes, uint32_t iterations,
		    const struct cn_sim_faults *faults, struct experiment_result *r,
		    struct cn_err *err)
{
	const struct experiment_point p = {
		.cluster = cluster,
		.op = MEASURE_ALLTOALL,
		.algorithm = "shuffle",
		.contention_aware = true,
		.window = COLLNET_WINDOW_AUTO,
		.bytes = bytes,
		.iterations = iterations,
		.cold = iterations == 1,
		.faults = faults,
	};

	return experiment_measure(&p, r, err);
}

/* A frame passes two links; each loses half of what is lost. */
static int loss_row(const struct cn_topo *t, uint64_t seed, bool reorder, uint32_t ppm,
		    uint64_t bytes, FILE *csv, struct cn_err *err)
{
	const struct cn_sim_faults faults = { .loss = ppm / 2 };
	struct cn_sim_config c;
	struct experiment_result r;
	int rc;

	cn_sim_config_init(&c);
	c.topo = t;
	c.seed = seed;
	c.engine.node.reorder = reorder ? c.engine.node.reorder : 0;
	rc = exchange(&c, bytes, bytes > 131072 ? 3 : 9, &faults, &r, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	fprintf(csv, "%s,%.1f,%llu", reorder ? "reorder" : "Go-Back-N", ppm / 1e4,
		(unsigned long long)bytes);
	experiment_cell(csv, r.ms, 4);
	experiment_cell(csv, r.model.best / 10 / r.ms, 2);
	return experiment_end_row(csv, &r.out, err);
}

int experiment_loss(const char *name, uint64_t seed, bool quick, FILE *csv, struct cn_err *err)
{
	static const uint32_t ppm[] = { 0, 10000, 1000, 2000, 5000, 20000, 50000 };
	static const uint64_t sizes[] = { 1024, 16384, 131072, 1048576 };
	size_t nloss = quick ? 2 : 7, nsizes = quick ? 2 : 4;
	struct cn_topo *t;
	int rc = cn_topo_shape("16", HOST_RATE, HOST_BUFFER, 0, 0, &t, err);

	(void)name;
	if (rc != COLLNET_OK) {
		return rc;
	}
	fprintf(csv, "transport,lost_percent,bytes,ms,percent_of_best,resent,drops,failed_ranks\n");
	for (size_t i = 0; i < 2 * nsizes * nloss && rc == COLLNET_OK; i++) {
		rc = loss_row(t, seed, i % 2 == 0, ppm[i / 2 % nloss], sizes[i / 2 / nloss], csv,
			      err);
	}
	cn_topo_free(t);
	return rc;
}

int experiment_scale(const char *name, uint64_t seed, bool quick, FILE *csv, struct cn_err *err)
{
	int rc = COLLNET_OK;

	(void)name;
	fprintf(csv, "network,hosts,bytes,window_peak,ms,percent_of_best,frame_events,resent,drops,"
		     "failed_ranks\n");
	for (uint32_t k = 0; k < 2 * 9 && rc == COLLNET_OK; k++) {
		uint32_t hosts = 4u << k / 2;
		bool tree = k % 2 == 1;
		struct cn_sim_config c;
		struct experiment_result r;
		struct cn_topo *t;
		char shape[32];

		if ((tree && hosts < 16) || (quick && hosts > 32)) {
			continue;
		}
		snprintf(shape, sizeof(shape), tree ? "8x%u" : "%u", tree ? hosts / 8 : hosts);
		rc = cn_topo_shape(shape, HOST_RATE, HOST_BUFFER, UPLINK_RATE, UPLINK_BUFFER, &t,
				   err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		cn_sim_config_init(&c);
		c.topo = t;
		c.seed = seed;
		rc = exchange(&c, 16384, 1, NULL, &r, err);
		if (rc == COLLNET_OK) {
			fprintf(csv, "%s,%u,16384,%u", tree ? "8 per switch" : "one switch", hosts,
				r.out.window_peak);
			experiment_cell(csv, r.ms, 4);
			experiment_cell(csv, r.model.best / 10 / r.ms, 2);
			fprintf(csv, ",%llu", (unsigned long long)r.out.frame_events);
			rc = experiment_end_row(csv, &r.out, err);
		}
		cn_topo_free(t);
	}
	return rc;
}
