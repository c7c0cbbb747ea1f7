/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smp-broadcast-random: what the heuristics of Sun, Bader, Lin and Ling ("Broadcast on Clusters of
 * SMPs with Optimal Concurrency") gain over the tree of shortest paths, and over a binomial tree,
 * on random networks.
 */
#include <stdlib.h>

#include "sched/cost.h"
#include "tools/papers/papers.h"
#include "tools/papers/bcast.h"

#define SWITCHES_MAX 40u

static void link_line(FILE *f, uint64_t *seed, uint32_t a, uint32_t b)
{
	static const char *const rates[] = { "100mbit", "1gbit", "2500mbit", "10gbit" };

	fprintf(f, "link s%u s%u rate %s channels %u\n", a, b, rates[cn_below(seed, 4)],
		1 + cn_below(seed, 2));
}

/* As text, so that the reader checks it. */
static int draw_network(uint64_t *seed, uint32_t n, struct cn_topo **out, struct cn_err *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	uint32_t more;
	int rc;

	if (f == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a network");
	}
	for (uint32_t i = 0; i < n; i++) {
		fprintf(f, "switch s%u\n", i);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (i < 2 || cn_below(seed, 4) > 0) { /* at least two work */
			fprintf(f, "host h%u\nlink h%u s%u rate 1gbit\n", i, i, i);
		}
	}
	for (uint32_t i = 1; i < n; i++) {
		link_line(f, seed, i, cn_below(seed, i));
	}
	more = n > 2 ? cn_below(seed, n) : 0;
	while (more-- > 0) {
		uint32_t a = cn_below(seed, n), b = cn_below(seed, n - 1);

		link_line(f, seed, a, b < a ? b : b + 1);
	}
	if (fclose(f) != 0) {
		free(text);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a network");
	}
	rc = cn_topo_parse(text, len, "random network", out, err);
	free(text);
	return rc;
}

/* What the message costs on links and at switches, and who has members; then the model. */
static int model(uint64_t *seed, const struct cn_topo *t, struct cn_bswitch_times *out,
		 struct cn_err *err)
{
	uint64_t *weight = calloc((size_t)t->nlinks + t->nvertices, sizeof(*weight));
	uint64_t *startup = weight == NULL ? NULL : weight + t->nlinks;
	bool *working = calloc(t->nvertices, sizeof(*working));
	uint64_t bytes = (uint64_t)1024 << cn_below(seed, 11);
	struct cn_bswitch net = { .topo = t, .weight = weight, .working = working };
	uint32_t source;
	int rc;

	if (weight == NULL || working == NULL) {
		free(weight);
		free(working);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a network");
	}
	for (uint32_t i = 0; i < t->nlinks; i++) {
		double seconds = cn_cost_wire(&cn_cost_default, bytes, t->links[i].rate);

		weight[i] = (uint64_t)((seconds + cn_cost_default.hop) * 1e9 + 0.5);
	}
	for (uint32_t v = 0; v < t->nvertices; v++) {
		startup[v] = 5000 + cn_below(seed, 195001);
	}
	for (uint32_t i = 0; i < t->nhosts; i++) {
		working[cn_topo_switch_of(t, t->hosts[i])] = true;
	}
	source = cn_topo_switch_of(t, t->hosts[cn_below(seed, t->nhosts)]);
	rc = cn_bswitch_broadcast(&net, startup, source, out, err);
	free(weight);
	free(working);
	return rc;
}

int experiment_bcast_network(uint64_t *seed, uint32_t *switches, struct cn_bswitch_times *out,
			     struct cn_err *err)
{
	struct cn_topo *t;
	int rc;

	*switches = 2 + cn_below(seed, SWITCHES_MAX - 1);
	rc = draw_network(seed, *switches, &t, err);
	if (rc) {
		return rc;
	}
	rc = model(seed, t, out, err);
	cn_topo_free(t);
	return rc;
}

int experiment_bcast(uint64_t seed, FILE *csv, struct cn_err *err)
{
	uint32_t better = 0, worse = 0, beats = 0, n = EXPERIMENT_BCAST_NETWORKS;
	double gain = 0, against = 0;

	fprintf(csv, "network,switches,working,spt_us,down_up_us,final_us,binomial_us\n");
	for (uint32_t i = 0; i < n; i++) {
		struct cn_bswitch_times t;
		uint32_t switches;
		int rc = experiment_bcast_network(&seed, &switches, &t, err);

		if (rc) {
			return rc;
		}
		fprintf(csv, "%u,%u,%u,%.3f,%.3f,%.3f,%.3f\n", i, switches, t.working,
			(double)t.shortest / 1e3, (double)t.down_up / 1e3, (double)t.final / 1e3,
			(double)t.binomial / 1e3);
		better += t.final < t.shortest;
		worse += t.final > t.shortest;
		beats += t.final < t.binomial;
		gain += (double)t.final / (double)t.shortest;
		against += (double)t.final / (double)t.binomial;
	}
	fprintf(csv,
		"# of %u networks: %u improved over the tree of shortest paths, %u worse; "
		"time %.3f of it on average; faster than binomial on %u, time %.3f of it\n",
		n, better, worse, gain / n, beats, against / n);
	return ferror(csv) ? cn_fail(err, COLLNET_ESYSTEM, "the table cannot be written")
			   : COLLNET_OK;
}
