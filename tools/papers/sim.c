/* SPDX-License-Identifier: BSD-2-Clause */
/* Networks of the papers, and one measured point on a cluster in virtual time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/command.h"
#include "tools/papers/sim.h"

#define LONG_BLOCK 131072u

static uint32_t switch_of(const struct experiment_network *n, uint32_t host)
{
	uint32_t s = 0, below = 0;

	if (n->dealt) {
		return host % n->switches;
	}
	if (n->block == NULL) {
		return (uint32_t)((uint64_t)host * n->switches / n->hosts);
	}
	while (s + 1 < n->switches && host >= below + n->block[s]) {
		below += n->block[s++];
	}
	return s;
}

static void write_link(const struct experiment_network *n, FILE *f, const char *peer,
		       uint32_t number, uint32_t sw, uint32_t channels)
{
	fprintf(f, "link %s%u s%u rate %llubit", peer, number, sw, (unsigned long long)n->rate);
	if (n->buffer != 0) {
		fprintf(f, " buffer %u", n->buffer);
	}
	fprintf(f, " channels %u\n", channels);
}

/* As text, so that the reader checks it. */
int experiment_network(const struct experiment_network *n, struct cn_topo **out, struct cn_err *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int rc;

	if (f == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a network");
	}
	for (uint32_t s = 0; s < n->switches; s++) {
		fprintf(f, "switch s%u\n", s);
	}
	for (uint32_t h = 0; h < n->hosts; h++) {
		fprintf(f, "host n%u\n", h);
	}
	for (uint32_t s = 1; s < n->switches; s++) {
		write_link(n, f, "s", s, n->chain ? s - 1 : 0, n->channels != 0 ? n->channels : 1);
	}
	for (uint32_t h = 0; h < n->hosts; h++) {
		write_link(n, f, "n", h, switch_of(n, h), 1);
	}
	if (fclose(f) != 0) {
		free(text);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a network");
	}
	rc = cn_topo_parse(text, len, "the experiment's network", out, err);
	free(text);
	return rc;
}

void experiment_cluster(struct cn_sim_config *c, const struct cn_topo *t, uint64_t seed)
{
	cn_sim_config_init(c);
	c->topo = t;
	c->kind = CN_SIM_DYNAMIC;
	c->o_send = c->o_recv = 5 * CN_US;
	c->seed = seed;
}

static int model_of(const struct experiment_point *p, struct experiment_result *r,
		    struct cn_err *err)
{
	const struct cn_topo *t = p->cluster->topo;
	uint32_t *node_of = calloc((size_t)t->nhosts + 1, sizeof(*node_of));
	struct measure_layout place = { .ranks = t->nhosts,
					.nodes = t->nhosts,
					.node_of = node_of,
					.topo = t,
					.vertex = t->hosts };

	if (node_of == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u hosts", t->nhosts);
	}
	for (uint32_t i = 0; i < t->nhosts; i++) {
		node_of[i] = i;
	}
	sim_model(p->cluster, &place, p->op, p->bytes, &r->model);
	free(node_of);
	return COLLNET_OK;
}

int experiment_measure(const struct experiment_point *p, struct experiment_result *r,
		       struct cn_err *err)
{
	const struct sim_case c = {
		.cluster = *p->cluster,
		.local = 1,
		.iterations = p->iterations != 0 ? p->iterations : 1,
		.warmup = !p->cold && (p->bytes < LONG_BLOCK || p->iterations > 1),
		.faults = p->faults != NULL ? *p->faults : (struct cn_sim_faults){ 0 },
		.args = { .op = measure_op_kind(p->op),
			  .algorithm = p->algorithm,
			  .permutation = p->permutation,
			  .contention_aware = p->contention_aware,
			  .window = p->window,
			  .bytes = p->bytes },
	};
	int rc = sim_run(&c, &r->out, err);

	r->ms = r->out.ns.median / 1e6;
	return rc == COLLNET_OK ? model_of(p, r, err) : rc;
}

void experiment_cell(FILE *csv, double value, int decimals)
{
	if (isfinite(value)) {
		fprintf(csv, ",%.*f", decimals, value);
	} else {
		putc(',', csv);
	}
}

int experiment_end_row(FILE *csv, const struct sim_outcome *out, struct cn_err *err)
{
	fprintf(csv, ",%llu,%llu,%u\n", (unsigned long long)out->data_resent,
		(unsigned long long)out->drops, out->failed);
	return ferror(csv) ? cn_fail(err, COLLNET_ESYSTEM, "the table cannot be written")
			   : COLLNET_OK;
}
