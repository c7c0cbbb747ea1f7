/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs an experiment: its table and the script of its plot into files, and the plot by gnuplot. */
#include "tools/papers/papers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/gnuplot.h"
#include "tools/papers/rings.h"
#include "tools/papers/sim.h"

#define PATH_BYTES 4096

static const struct experiment {
	const char *name, *description;
	int (*run)(uint64_t seed, FILE *csv, struct cn_err *err);
	experiment_simulation *simulate; /* one of the two */
	const char *plot;		 /* gnuplot; `csv` is the table's name */
} experiments[] = {
	{ "allgather-rings-11",
	  "longest path of the rings LR1 and LR3 on random clusters: "
	  "Figure 11 of Faraj, Patarasuk and Yuan",
	  experiment_rings, NULL, experiment_rings_plot },
	{ "smp-broadcast-random",
	  "modelled time of broadcasts between the switches of 1,000 random "
	  "networks",
	  experiment_bcast, NULL,
	  "set xlabel 'tree of shortest paths alone: time in us'\n"
	  "set ylabel 'time in us'\n"
	  "set logscale xy\n"
	  "set key top left\n"
	  "plot csv using 4:7 with points pt 7 ps 0.3 lc rgb '#bbbbbb' title 'binomial tree', \\\n"
	  "     csv using 4:6 with points pt 7 ps 0.4 lc rgb '#0072b2' title 'both heuristics', \\\n"
	  "     x with lines lc rgb 'black' title 'the same'\n" },
	{ "exchange-5", "Figure 5 of Tam and Wang: the exchange on 16 hosts, one switch", NULL,
	  experiment_exchange, experiment_exchange_single_plot },
	{ "exchange-6", "Figure 6 of Tam and Wang: what an uplink carries, 10x2", NULL,
	  experiment_flows, experiment_flows_plot },
	{ "exchange-7", "Figure 7 of Tam and Wang: the exchange on 8x2", NULL, experiment_exchange,
	  experiment_exchange_plot },
	{ "exchange-8", "Figure 8 of Tam and Wang: the exchange on 8x3", NULL, experiment_exchange,
	  experiment_exchange_plot },
	{ "exchange-9", "Figure 9 of Tam and Wang: the exchange on 6x4", NULL, experiment_exchange,
	  experiment_exchange_plot },
	{ "exchange-10", "Figure 10 of Tam and Wang: the exchange on 8x4", NULL,
	  experiment_exchange, experiment_exchange_plot },
	{ "aapc-6", "Figure 6 of Faraj and Yuan: all-to-all on 24 hosts, one switch", NULL,
	  experiment_aapc, experiment_aapc_plot },
	{ "aapc-7", "Figure 7 of Faraj and Yuan: all-to-all on 32 hosts, a star of switches", NULL,
	  experiment_aapc, experiment_aapc_plot },
	{ "aapc-8", "Figure 8 of Faraj and Yuan: all-to-all on 32 hosts, a chain of switches", NULL,
	  experiment_aapc, experiment_aapc_plot },
	{ "rings-9", "Figure 9 of Faraj, Patarasuk and Yuan: allgather on 16 hosts, four networks",
	  NULL, experiment_allgather, experiment_rings_9_plot },
	{ "rings-10",
	  "Figure 10 of Faraj, Patarasuk and Yuan: allgather on 32 hosts, two numberings", NULL,
	  experiment_allgather, experiment_rings_10_plot },
	{ "rings-table-1", "Table 1 of Faraj, Patarasuk and Yuan: LR1 and LR2", NULL,
	  experiment_allgather, experiment_rings_table_plot },
	{ "smp-5.1", "Figure 5.1 of Sun, Bader, Lin and Ling: broadcast to up to 64 nodes", NULL,
	  experiment_smp, experiment_smp_plot },
	{ "smp-5.2", "Figure 5.2 of Sun, Bader, Lin and Ling: broadcast to up to 44 nodes", NULL,
	  experiment_smp, experiment_smp_plot },
	{ "smp-5.3", "Figure 5.3 of Sun, Bader, Lin and Ling: broadcast to up to 38 nodes", NULL,
	  experiment_smp, experiment_smp_plot },
	{ "smp-5.4", "Figure 5.4 of Sun, Bader, Lin and Ling: broadcast to up to 28 nodes", NULL,
	  experiment_smp, experiment_smp_plot },
	{ "loss", "what lost frames cost an exchange of 16 hosts", NULL, experiment_loss,
	  experiment_loss_plot },
	{ "scale", "an exchange of 4 to 1,024 hosts (some minutes)", NULL, experiment_scale,
	  experiment_scale_plot },
};

#define NEXPERIMENTS (sizeof(experiments) / sizeof(experiments[0]))

static bool is_kind(const struct experiment *x, enum experiment_kind kind)
{
	return (x->simulate != NULL) == (kind == EXPERIMENT_SIMULATED);
}

void experiment_list(enum experiment_kind kind, FILE *out)
{
	for (size_t i = 0; i < NEXPERIMENTS; i++) {
		if (is_kind(&experiments[i], kind)) {
			fprintf(out, "  %-20s  %s\n", experiments[i].name,
				experiments[i].description);
		}
	}
}

const char *experiment_name(enum experiment_kind kind, size_t n)
{
	for (size_t i = 0; i < NEXPERIMENTS; i++) {
		if (is_kind(&experiments[i], kind) && n-- == 0) {
			return experiments[i].name;
		}
	}
	return NULL;
}

/* DIR/NAME.ENDING replaces an older one only when it is complete. */
static int write_file(const char *dir, const char *name, const char *ending, const char *text,
		      FILE *out, struct cn_err *err)
{
	char path[PATH_BYTES], part[PATH_BYTES];
	int n = snprintf(path, sizeof(path), "%s/%s.%s", dir, name, ending);
	int m = snprintf(part, sizeof(part), "%s/.%s.%s.part", dir, name, ending);
	FILE *f;
	bool well;

	if (n < 0 || n >= PATH_BYTES || m < 0 || m >= PATH_BYTES) {
		return cn_fail(err, COLLNET_EINVAL, "--output: the path is too long");
	}
	f = fopen(part, "we");
	well = f != NULL && fputs(text, f) >= 0;
	well = f != NULL && fclose(f) == 0 && well && rename(part, path) == 0;
	if (!well) {
		cn_fail(err, COLLNET_ESYSTEM, "%.250s: %s", path, strerror(errno));
		if (f != NULL) {
			unlink(part);
		}
		return COLLNET_ESYSTEM;
	}
	fprintf(out, "%s\n", path);
	return COLLNET_OK;
}

/* The table; it may take minutes, and until it is there nothing is written. The caller frees it. */
static int make_table(const struct experiment *x, uint64_t seed, bool quick, char **text,
		      struct cn_err *err)
{
	size_t len = 0;
	FILE *f = open_memstream(text, &len);
	int rc;

	if (f == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a table");
	}
	rc = x->run != NULL ? x->run(seed, f, err) : x->simulate(x->name, seed, quick, f, err);
	if (fclose(f) != 0 && rc == COLLNET_OK) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory for a table");
	}
	return rc;
}

static int make_script(const struct experiment *x, char **text, struct cn_err *err)
{
	const char *name = x->name;
	int n = asprintf(text,
			 "# gnuplot %s.gp\nset datafile separator ','\n"
			 "set key autotitle columnhead\n"
			 "set terminal svg size 800,500 background 'white' font 'sans,14'\n"
			 "set output '%s.svg'\ncsv = '%s.csv'\n%s",
			 name, name, name, x->plot);

	if (n < 0) {
		*text = NULL;
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a plot's script");
	}
	return COLLNET_OK;
}

static const struct experiment *find(const char *name)
{
	for (size_t i = 0; i < NEXPERIMENTS; i++) {
		if (strcmp(experiments[i].name, name) == 0) {
			return &experiments[i];
		}
	}
	return NULL;
}

int experiment_run(const char *name, uint64_t seed, bool quick, const char *dir, FILE *out,
		   struct cn_err *err)
{
	const struct experiment *x = find(name);
	char script[128], *table = NULL, *text = NULL;
	int rc;

	if (x == NULL) {
		return cn_fail(err, COLLNET_EINVAL,
			       "unknown experiment '%.40s'; see collnet "
			       "sim --help and collnet schedule --help",
			       name);
	}
	if (access(dir, W_OK | X_OK) != 0) { /* known before all is computed */
		return cn_fail(err, COLLNET_ESYSTEM, "%.250s/%s.csv: %s", dir, name,
			       strerror(errno));
	}
	rc = make_table(x, seed, quick, &table, err);
	rc = rc == COLLNET_OK ? write_file(dir, name, "csv", table, out, err) : rc;
	rc = rc == COLLNET_OK ? make_script(x, &text, err) : rc;
	rc = rc == COLLNET_OK ? write_file(dir, name, "gp", text, out, err) : rc;
	free(table);
	free(text);
	if (rc != COLLNET_OK) {
		return rc;
	}
	snprintf(script, sizeof(script), "%s.gp", name);
	if (tool_gnuplot(dir, script)) {
		fprintf(out, "%s/%s.svg\n", dir, name);
	} else {
		fprintf(out, "(no plot: gnuplot is missing or failed)\n");
	}
	return COLLNET_OK;
}
