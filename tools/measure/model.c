/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of the benchmark. Pure: no clock, no wire; the caller passes the nodes of the
 * ranks.
 */
#include "tools/measure/model.h"

#include <math.h>
#include <stdlib.h>

#include "util/ascending.h"

#define ASSUMED_RATE   20e6
#define RUN_US	       3e6
#define ITERATIONS_MIN 3
#define ITERATIONS_MAX 200

/* Blocks that cross a link with r of p ranks on one side, the root among them or not, in the busier
 * direction. */
static double crossing(enum measure_op op, double r, double p, bool root)
{
	if (r == 0 || r == p) {
		return 0;
	}
	switch (op) {
	case MEASURE_ALLTOALL:
	case MEASURE_ALLTOALLV: /* in the mean */
		return r * (p - r);
	case MEASURE_ALLGATHER:
	case MEASURE_REDUCE_SCATTER: /* each side sends the other's sums of its blocks */
		return r > p - r ? r : p - r;
	case MEASURE_BCAST:
	case MEASURE_REDUCE:
		return 1;
	case MEASURE_SCATTER:
	case MEASURE_GATHER:
		return root ? p - r : r;
	case MEASURE_ALLREDUCE: /* Patarasuk and Yuan; and each side must learn the other's sum */
		return fmax(1, 2 * (p - r) / p);
	case MEASURE_BARRIER:
	case MEASURE_PINGPONG:
	case MEASURE_STREAM:
		break;
	}
	return 0;
}

/* The largest crossing of any node's own link. NAN: no memory. */
static double node_blocks(enum measure_op op, const struct measure_layout *p)
{
	uint32_t *count = calloc(p->nodes > 0 ? p->nodes : 1, sizeof(*count));
	double most = 0;
	uint32_t i;

	if (count == NULL) {
		return NAN;
	}
	for (i = 0; i < p->ranks; i++) {
		count[p->node_of[i]]++;
	}
	for (i = 0; i < p->nodes; i++) {
		most = fmax(most, crossing(op, count[i], p->ranks, i == p->node_of[0]));
	}
	free(count);
	return most;
}

double measure_node_bytes(enum measure_op op, const struct measure_layout *p, uint64_t bytes)
{
	return node_blocks(op, p) * (double)bytes;
}

/* Seconds that a block of one bit takes on the busiest link of the tree, over all links. */
static double tree_seconds_a_bit(enum measure_op op, const struct measure_layout *p)
{
	const struct cn_topo *t = p->topo;
	uint32_t *below = calloc(t->nvertices > 0 ? t->nvertices : 1, sizeof(*below));
	bool *root = calloc(t->nvertices > 0 ? t->nvertices : 1, sizeof(*root));
	double worst = 0;
	uint32_t i, v;

	if (below == NULL || root == NULL) {
		free(below);
		free(root);
		return NAN;
	}
	for (i = 0; i < p->ranks; i++) {
		v = p->vertex[p->node_of[i]];
		if (v == CN_TOPO_NONE) {
			free(below);
			free(root);
			return NAN;
		}
		for (; v != CN_TOPO_NONE; v = t->vertices[v].parent) {
			below[v]++;
			root[v] |= i == 0;
		}
	}
	for (v = 0; v < t->nvertices; v++) {
		uint32_t link = t->vertices[v].parent_link;
		double blocks = crossing(op, below[v], p->ranks, root[v]);

		if (t->vertices[v].parent == CN_TOPO_NONE || blocks == 0) {
			continue;
		}
		if (t->links[link].rate == 0) {
			worst = NAN;
			break;
		}
		worst = fmax(worst, blocks / t->links[link].channels / (double)t->links[link].rate);
	}
	free(below);
	free(root);
	return worst;
}

double measure_limit_us(enum measure_op op, const struct measure_layout *p, uint64_t bytes)
{
	double seconds;

	if (p->nodes < 2) {
		return NAN;
	}
	if (p->rate != 0) {
		seconds = node_blocks(op, p) / (double)p->rate;
	} else if (p->topo != NULL) {
		seconds = tree_seconds_a_bit(op, p);
	} else {
		return NAN;
	}
	seconds *= (double)bytes * 8;
	return seconds > 0 ? seconds * 1e6 : NAN; /* NAN stays NAN */
}

double measure_payload(enum measure_op op, uint32_t ranks, uint64_t bytes)
{
	double p = ranks;

	switch (op) {
	case MEASURE_ALLTOALL:
	case MEASURE_ALLTOALLV: /* in the mean */
	case MEASURE_ALLGATHER:
	case MEASURE_REDUCE_SCATTER:
		return p * (p - 1) * (double)bytes;
	case MEASURE_BCAST:
	case MEASURE_REDUCE:
	case MEASURE_SCATTER:
	case MEASURE_GATHER:
		return (p - 1) * (double)bytes;
	case MEASURE_ALLREDUCE:
		return 2 * (p - 1) * (double)bytes;
	case MEASURE_PINGPONG:
		return 2 * (double)bytes;
	case MEASURE_STREAM:
		return (double)bytes;
	case MEASURE_BARRIER:
		break;
	}
	return 0;
}

uint32_t measure_iterations(enum measure_op op, const struct measure_layout *p, uint64_t bytes,
			    double limit_us)
{
	double each = limit_us, n;

	if (!isfinite(each)) {
		each = measure_node_bytes(op, p, bytes) * 8 / ASSUMED_RATE * 1e6;
	}
	n = each > 0 ? ceil(RUN_US / each) : ITERATIONS_MAX;
	if (!(n < ITERATIONS_MAX)) {
		return ITERATIONS_MAX;
	}
	return n > ITERATIONS_MIN ? (uint32_t)n : ITERATIONS_MIN;
}

struct measure_times measure_summary(uint64_t *v, size_t n)
{
	struct measure_times t = { NAN, NAN, NAN };
	size_t at;

	if (n == 0) {
		return t;
	}
	qsort(v, n, sizeof(*v), cn_ascending_u64);
	t.min = (double)v[0];
	t.median = ((double)v[(n - 1) / 2] + (double)v[n / 2]) / 2;
	at = n - n / 100; /* the smallest rank with at least 99 % at or below it */
	t.p99 = (double)v[at - 1];
	return t;
}

double measure_median(double *v, size_t n)
{
	if (n == 0) {
		return NAN;
	}
	qsort(v, n, sizeof(*v), cn_ascending_double);
	return (v[(n - 1) / 2] + v[n / 2]) / 2;
}
