/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of the benchmark. Pure: no clock, no wire; the caller passes the nodes of the
 * ranks.
 */
#include "tools/measure/measure.h"

#include <math.h>
#include <stdlib.h>

#include "util/ascending.h"

#define ASSUMED_RATE   20e6
#define RUN_US	       3e6
#define ITERATIONS_MIN 3
#define ITERATIONS_MAX 200

/* Of blocks of different sizes, the mean counts. 0: messages between two ranks. */
static enum cn_op_kind base_of(enum measure_op op)
{
	return cn_op_base(measure_op_kind(op));
}

/* Blocks that cross a link with r of p ranks on one side, the root among them or not, in the busier
 * direction. */
static double crossing(enum measure_op op, double r, double p, bool root)
{
	if (r == 0 || r == p) {
		return 0;
	}
	switch (base_of(op)) {
	case CN_OP_ALLTOALL:
		return r * (p - r);
	case CN_OP_ALLGATHER:
	case CN_OP_REDUCE_SCATTER: /* each side sends the other's sums of its blocks */
		return r > p - r ? r : p - r;
	case CN_OP_BCAST:
	case CN_OP_REDUCE:
	case CN_OP_ALLREDUCE: /* the sum of one side, and what all branches send together */
	case CN_OP_SCAN:
	case CN_OP_EXSCAN: /* the side without the last rank has a part of its result */
		return 1;
	case CN_OP_SCATTER:
	case CN_OP_GATHER:
		return root ? p - r : r;
	default:
		return 0;
	}
}

/* Blocks that n parts of a network send together, at least: in an allreduce 2 (n - 1) (Patarasuk
 * and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations). */
static double sent_together(enum measure_op op, uint32_t n)
{
	return op == MEASURE_ALLREDUCE && n > 1 ? 2.0 * (n - 1) : 0;
}

/* The blocks on the busiest of the nodes' own links, which are equal. NAN: no memory. */
static double node_blocks(enum measure_op op, const struct measure_layout *p)
{
	uint32_t *count = calloc(p->nodes > 0 ? p->nodes : 1, sizeof(*count));
	double most = p->nodes > 0 ? sent_together(op, p->nodes) / p->nodes : 0;
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

/* A vertex of the tree, and the link to its parent. */
struct place {
	uint32_t below;	   /* ranks */
	bool root;	   /* is below */
	uint32_t branches; /* with ranks, the parent's included */
	double capacity;   /* of the links to them */
};

/* False: a rank is in no place. */
static bool place_ranks(const struct measure_layout *p, struct place *places)
{
	for (uint32_t i = 0; i < p->ranks; i++) {
		uint32_t v = p->vertex[p->node_of[i]];

		if (v == CN_TOPO_NONE) {
			return false;
		}
		for (; v != CN_TOPO_NONE; v = p->topo->vertices[v].parent) {
			places[v].below++;
			places[v].root |= i == 0;
		}
	}
	return true;
}

/* Seconds that a block of one bit takes on the busiest link, which *most cross; it also counts
 * branches. NAN: a rate is not known. */
static double busiest_link(enum measure_op op, const struct measure_layout *p, struct place *places,
			   double *most)
{
	const struct cn_topo *t = p->topo;
	double worst = 0;

	for (uint32_t v = 0; v < t->nvertices; v++) {
		const uint32_t parent = t->vertices[v].parent;
		const double blocks = crossing(op, places[v].below, p->ranks, places[v].root);
		const struct cn_topo_link *l;
		double capacity;

		if (parent == CN_TOPO_NONE || blocks == 0) {
			continue;
		}
		l = &t->links[t->vertices[v].parent_link];
		capacity = (double)l->rate * l->channels;
		if (l->rate == 0) {
			return NAN;
		}
		places[v].branches++;
		places[v].capacity += capacity;
		places[parent].branches++;
		places[parent].capacity += capacity;
		if (blocks / capacity > worst) {
			worst = blocks / capacity;
			*most = blocks;
		}
	}
	return worst;
}

/* Seconds that a block of one bit takes, over all links and all branches of a vertex; *blocks cross
 * the busiest link. */
static double tree_seconds_a_bit(enum measure_op op, const struct measure_layout *p, double *blocks)
{
	const uint32_t n = p->topo->nvertices;
	struct place *places = calloc(n > 0 ? n : 1, sizeof(*places));
	double worst = NAN;

	if (places != NULL && place_ranks(p, places)) {
		worst = busiest_link(op, p, places, blocks);
		for (uint32_t v = 0; v < n && !isnan(worst); v++) {
			const struct place *at = &places[v];

			if (at->branches > 1) {
				worst = fmax(worst, sent_together(op, at->branches) / at->capacity);
			}
		}
	}
	free(places);
	return worst;
}

double measure_limit_us(enum measure_op op, const struct measure_layout *p, uint64_t bytes)
{
	double seconds, blocks;

	if (p->nodes < 2) {
		return NAN;
	}
	if (p->rate != 0) {
		seconds = node_blocks(op, p) / (double)p->rate;
	} else if (p->topo != NULL) {
		seconds = tree_seconds_a_bit(op, p, &blocks);
	} else {
		return NAN;
	}
	seconds *= (double)bytes * 8;
	return seconds > 0 ? seconds * 1e6 : NAN; /* NAN stays NAN */
}

double measure_limit_blocks(enum measure_op op, const struct measure_layout *p)
{
	double blocks = NAN;

	(void)tree_seconds_a_bit(op, p, &blocks);
	return blocks;
}

double measure_payload(enum measure_op op, uint32_t ranks, uint64_t bytes)
{
	double p = ranks;

	if (op == MEASURE_PINGPONG) {
		return 2 * (double)bytes;
	}
	if (op == MEASURE_STREAM) {
		return (double)bytes;
	}
	switch (base_of(op)) {
	case CN_OP_ALLTOALL:
	case CN_OP_ALLGATHER:
	case CN_OP_REDUCE_SCATTER:
		return p * (p - 1) * (double)bytes;
	case CN_OP_BCAST:
	case CN_OP_REDUCE:
	case CN_OP_SCATTER:
	case CN_OP_GATHER:
	case CN_OP_SCAN:
	case CN_OP_EXSCAN:
		return (p - 1) * (double)bytes;
	case CN_OP_ALLREDUCE:
		return 2 * (p - 1) * (double)bytes;
	default:
		return 0;
	}
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
