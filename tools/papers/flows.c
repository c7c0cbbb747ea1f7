/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange-6: what two uplinks carry. Pairs of hosts, one behind each switch of a 10x2 network,
 * send each other a long message at the same time; the sum of what all of them receive per second
 * is Figure 6 of Tam and Wang, "Contention-Aware Communication Schedule for High-Speed
 * Communication" (there "cross-switch"), and the same on one switch ("local"). Their uplink modules
 * carried 103 MB/s at most; "slow" are uplinks of half of that each way.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/papers/papers.h"
#include "tools/papers/sim.h"

#define PAIRS	      10u
#define MESSAGE	      ((uint64_t)4 << 20)
#define QUICK_MESSAGE ((uint64_t)256 << 10)
#define PAPER_PEAK    103 /* MB/s */

const char experiment_flows_plot[] =
	"set xlabel 'pairs of hosts'\n"
	"set ylabel 'MB/s, all together'\n"
	"set yrange [0:*]\n"
	"set key top left\n"
	"plot for [l in 'local cross-switch slow'] csv using 2:(strcol(1) eq l ? $5 : NaN) "
	"with linespoints title l, 103 with lines dt 2 title 'their peak'\n";

/* One host's end of a pair. */
struct end {
	struct cn_done sent, received;
	struct cn_endpoint *ep;
	struct cn_received what;
	uint8_t *data;
	uint32_t host, peer;
	struct flows *all;
};

struct flows {
	struct cn_sim *sim;
	struct end ends[2 * PAIRS];
	uint32_t n, pending;
	int status;
	char text[CN_ERR_TEXT];
};

static void ended(struct flows *all, int status, const char *text)
{
	all->pending--;
	if (status != COLLNET_OK && all->status == COLLNET_OK) {
		all->status = status;
		memcpy(all->text, text, strnlen(text, CN_ERR_TEXT - 1));
	}
}

static void sent(struct cn_done *d, int status, const char *text)
{
	ended(((struct end *)((char *)d - offsetof(struct end, sent)))->all, status, text);
}

static void received(struct cn_done *d, int status, const char *text)
{
	ended(((struct end *)((char *)d - offsetof(struct end, received)))->all, status, text);
}

/* Every end posts its receive and its send. */
static int post(struct flows *all, const struct cn_topo *t, uint64_t bytes, struct cn_err *err)
{
	cn_time now = cn_sim_now(all->sim), deadline = now + 3600 * 1000 * CN_MS;
	int rc = COLLNET_OK;

	for (uint32_t i = 0; i < all->n && rc == COLLNET_OK; i++) {
		struct end *e = &all->ends[i];

		rc = cn_endpoint_recv(e->ep, now, e->data + bytes, bytes, deadline, &e->what,
				      &e->received, err);
		if (rc == COLLNET_OK) {
			all->pending++;
			rc = cn_endpoint_send(e->ep, now, t->vertices[t->hosts[e->peer]].name, 1,
					      e->data, bytes, deadline, &e->sent, err);
			all->pending += rc == COLLNET_OK;
		}
		cn_sim_kick(all->sim, e->host);
	}
	return rc;
}

/* Milliseconds until all have received; the first message is not counted. */
static int run(struct flows *all, const struct cn_topo *t, uint64_t bytes, double *ms,
	       struct cn_err *err)
{
	for (int round = 0; round < 2; round++) {
		cn_time began = cn_sim_now(all->sim);
		int rc = post(all, t, round == 0 ? 1024 : bytes, err);

		if (rc != COLLNET_OK) {
			return rc;
		}
		while (all->pending > 0 && cn_sim_step(all->sim, CN_NEVER)) {
		}
		if (all->status != COLLNET_OK || all->pending > 0) {
			return cn_fail(err, COLLNET_EPROTO, "exchange-6: %.250s",
				       all->pending > 0 ? "a message never ended" : all->text);
		}
		*ms = (double)(cn_sim_now(all->sim) - began) / 1e6;
	}
	return COLLNET_OK;
}

static int open_ends(struct flows *all, uint32_t pairs, uint32_t apart, uint64_t bytes,
		     struct cn_err *err)
{
	all->n = 2 * pairs;
	for (uint32_t i = 0; i < all->n; i++) {
		struct end *e = &all->ends[i];

		e->host = i / 2 + (i % 2) * apart;
		e->peer = i / 2 + (i % 2 == 0 ? apart : 0);
		e->all = all;
		e->sent.fn = sent;
		e->received.fn = received;
		e->data = calloc(2, bytes);
		if (e->data == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory for messages");
		}
	}
	for (uint32_t i = 0; i < all->n; i++) {
		struct end *e = &all->ends[i];
		int rc = cn_endpoint_open(cn_sim_engine(all->sim, e->host), 0, 0, 1, &e->ep, err);

		if (rc != COLLNET_OK) {
			return rc;
		}
	}
	return COLLNET_OK;
}

static int run_point(const char *label, const struct cn_sim_config *cluster, uint32_t pairs,
		     uint64_t bytes, FILE *csv, struct cn_err *err)
{
	const struct cn_job_config everyone = { .local = 1, .bytes = 1, .shared = true };
	struct flows all = { .n = 0 };
	struct cn_sim_totals before = { 0 }, totals = { 0 };
	struct cn_job *job = NULL;
	double ms = 0;
	int rc = cn_sim_new(cluster, &all.sim, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = cn_job_new(all.sim, &everyone, &job, err);
	rc = rc == COLLNET_OK ? cn_job_join(job, 60000 * CN_MS, err) : rc; /* all know all now */
	rc = rc == COLLNET_OK ? open_ends(&all, pairs, PAIRS, bytes, err) : rc;
	cn_sim_totals(all.sim, &before);
	rc = rc == COLLNET_OK ? run(&all, cluster->topo, bytes, &ms, err) : rc;
	cn_sim_totals(all.sim, &totals);
	if (rc == COLLNET_OK) {
		double rate = 2.0 * pairs * (double)bytes / ms / 1e3;

		fprintf(csv, "%s,%u,%llu,%.4f,%.3f,", label, pairs, (unsigned long long)bytes, ms,
			rate);
		if (strcmp(label, "slow") == 0 && pairs == PAIRS) {
			fprintf(csv, "%d", PAPER_PEAK);
		}
		fprintf(csv, ",%llu\n", (unsigned long long)(totals.drops - before.drops));
	}
	cn_job_free(job);
	cn_sim_free(all.sim);
	for (uint32_t i = 0; i < 2 * PAIRS; i++) {
		free(all.ends[i].data);
	}
	return rc;
}

int experiment_flows(const char *name, uint64_t seed, bool quick, FILE *csv, struct cn_err *err)
{
	static const struct {
		const char *label, *shape;
		uint64_t uplink;
	} networks[] = {
		{ "local", "20", 0 },
		{ "cross-switch", "10x2", 1000000000 },
		{ "slow", "10x2", 412000000 },
	};
	int rc = COLLNET_OK;

	(void)name; /* there is one of this kind */
	fprintf(csv, "network,pairs,bytes,ms,mb_per_s,paper_mb_per_s,drops\n");
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]) && rc == COLLNET_OK; i++) {
		struct cn_sim_config cluster;
		struct cn_topo *t;

		rc = cn_topo_shape(networks[i].shape, 100000000, 43, networks[i].uplink, 45, &t,
				   err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		cn_sim_config_init(&cluster);
		cluster.topo = t;
		cluster.kind = CN_SIM_INPUT;
		cluster.o_send = 10 * CN_US;
		cluster.o_recv = 20 * CN_US;
		cluster.u_recv = 5 * CN_US;
		cluster.seed = seed;
		cluster.engine.node.max_peers = t->nhosts + 8;
		cluster.engine.window = COLLNET_WINDOW_OFF; /* the wires alone, as there */
		for (uint32_t p = quick ? 5 : 1; p <= PAIRS && rc == COLLNET_OK;
		     p += quick ? 5 : 1) {
			rc = run_point(networks[i].label, &cluster, p,
				       quick ? QUICK_MESSAGE : MESSAGE, csv, err);
		}
		cn_topo_free(t);
	}
	return rc == COLLNET_OK && ferror(csv)
		       ? cn_fail(err, COLLNET_ESYSTEM, "the table cannot be written")
		       : rc;
}
