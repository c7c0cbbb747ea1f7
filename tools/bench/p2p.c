/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from rank 0 to rank 1: pingpong and stream, and the same frames on raw sockets, the
 * baseline.
 *
 * A size is measured in ten rounds, or fewer of one iteration. With --baseline each round has its
 * share of both, so that they are measured under the same conditions; medians are compared. The
 * other ranks wait in the barrier before a round. While the baseline is measured nothing drives the
 * transport of a direct context, so that these rounds stay well below the time after which a silent
 * node counts as dead.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/pair.h"

#define ROUND_NS	    200000000u /* what a round should take */
#define PINGPONG_MAX	    1000u      /* round trips in a round */
#define STREAM_MAX	    10000u     /* messages in a round */
#define ASSUMED_BITS_PER_US 20.0       /* for deadlines */

/* Whether the baseline can do the same: one frame per message. */
static bool comparable(const struct pair *q)
{
	return q->b->o->baseline &&
	       (q->b->o->m.op == MEASURE_STREAM || q->bytes + PAIR_HEADER <= q->mtu);
}

/* The number of iterations before a round. */
static uint32_t begin(const struct pair *q, uint32_t round)
{
	return (uint32_t)((uint64_t)q->iterations * round / q->rounds);
}

static int run_round(struct pair *q, uint32_t round)
{
	struct bench *b = q->b;
	const uint32_t from = begin(q, round), n = begin(q, round + 1) - from;
	struct collnet_stats before;
	int rc = bench_barrier(b);

	if (rc == TOOL_OK) {
		rc = bench_count_begin(b, &before);
	}
	if (rc == TOOL_OK && q->active) {
		rc = b->o->m.op == MEASURE_PINGPONG ? pingpong(q, n, q->ns + from)
						    : stream_round(q, round, n);
	}
	if (rc == TOOL_OK) {
		rc = bench_count_end(b, &before, q->counters);
	}
	if (rc != TOOL_OK || !comparable(q)) {
		return rc;
	}
	rc = bench_barrier(b);
	if (rc == TOOL_OK && q->active) {
		rc = b->o->m.op == MEASURE_PINGPONG ? pingpong_baseline(q, n)
						    : stream_baseline(q, round);
	}
	return rc;
}

/* Warms up, and chooses the number of iterations by what that took, if the user has not. */
static int warm_up(struct pair *q)
{
	struct bench *b = q->b;
	const uint32_t n = b->o->m.warmup;
	uint32_t most = b->o->m.op == MEASURE_PINGPONG ? PINGPONG_MAX : STREAM_MAX, i;
	uint64_t iterations = b->o->m.iterations, ns = 0, wrong;
	int rc = bench_barrier(b);

	for (i = 0; i < n && rc == TOOL_OK && q->active && b->o->m.op == MEASURE_PINGPONG; i++) {
		rc = pingpong(q, 1, &ns);
	}
	if (rc == TOOL_OK && n > 0 && q->active && b->o->m.op == MEASURE_STREAM) {
		rc = stream(q, n, &ns);
		ns /= n;
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	wrong = q->counters[BENCH_WRONG];
	memset(q->counters, 0, sizeof(q->counters));
	q->counters[BENCH_WRONG] = wrong;
	if (b->o->m.iterations == MEASURE_DEFAULT) {
		iterations = ROUND_NS / (ns > 0 ? ns : 1);
		iterations = ROUNDS * (iterations < 1 ? 1 : iterations > most ? most : iterations);
	}
	rc = bench_agree(b, &iterations);
	if (rc == TOOL_OK && (iterations < 1 || iterations > MEASURE_ITERATIONS_MAX)) {
		return bench_fail(b, COLLNET_EPROTO, "rank 0 wants %llu iterations",
				  (unsigned long long)iterations);
	}
	q->iterations = (uint32_t)iterations;
	q->rounds = q->iterations < ROUNDS ? q->iterations : ROUNDS;
	return rc;
}

/* Rank 1 knows what the baseline received; rank 0 reports. */
static int gather_baseline(struct pair *q)
{
	uint64_t mine[ROUNDS], *all = malloc(q->b->m.place.ranks * sizeof(mine));
	int rc;

	if (all == NULL) {
		return bench_fail(q->b, COLLNET_ENOMEM, "gathering results");
	}
	memcpy(mine, q->baseline_per_s, sizeof(mine));
	rc = bench_gather(q->b, mine, ROUNDS, all);
	if (rc == TOOL_OK) {
		memcpy(q->baseline_per_s, all + ROUNDS, sizeof(mine));
	}
	free(all);
	return rc;
}

static int finish(struct pair *q)
{
	struct bench *b = q->b;
	struct collnet_stats s = { .size = sizeof(s) };
	uint64_t total[BENCH_COUNTERS];
	struct measure_result r;
	bool verified;
	double each;
	int rc = bench_count_gather(b, q->counters, total);

	if (rc == TOOL_OK && b->o->m.op == MEASURE_STREAM && comparable(q)) {
		rc = gather_baseline(q);
	}
	verified = rc == TOOL_OK && total[BENCH_WRONG] == 0;
	if (rc == TOOL_OK && !verified) {
		b->wrong = true;
	}
	bench_progress_end(b);
	if (rc != TOOL_OK || b->m.rank != 0) {
		return rc;
	}
	rc = collnet_get_stats(b->c, &s, 0);
	if (rc != COLLNET_OK) {
		return bench_fail(b, rc, "reading the counters");
	}
	measure_result_init(&r, &b->m, q->bytes);
	r.window = s.window;
	r.iterations = q->iterations;
	r.verified = b->o->m.verify ? &verified : NULL;
	bench_count_report(total,
			   measure_payload(b->o->m.op, b->m.place.ranks, q->bytes) *
				   (double)r.iterations,
			   &r);
	if (b->o->m.op == MEASURE_PINGPONG) {
		r.ns = measure_summary(q->ns, q->iterations);
		r.baseline_ns = measure_summary(q->baseline_ns, q->nbaseline);
		r.baseline_ratio = r.ns.median / r.baseline_ns.median;
		each = r.ns.median / 2;
	} else {
		r.ns = measure_summary(q->ns, q->rounds);
		r.frames_per_s = measure_median(q->frames_per_s, q->rounds);
		if (comparable(q)) {
			r.baseline_frames_per_s = measure_median(q->baseline_per_s, q->rounds);
		}
		r.baseline_ratio = r.frames_per_s / r.baseline_frames_per_s;
		each = r.ns.median;
	}
	r.bandwidth = (double)q->bytes * 8 / (each / 1e3);
	return bench_report(b, &r) ? TOOL_OK : TOOL_FAILED;
}

static int run_size(struct pair *q)
{
	struct bench *b = q->b;
	char size[TOOL_TEXT];
	uint32_t round;
	int rc;

	b->expected_us = (double)q->bytes * 8 / ASSUMED_BITS_PER_US * IN_FLIGHT;
	if (q->active) {
		pair_fill(q, b->serial, q->data[0]);
		pair_fill(q, b->serial, q->data[1]);
	}
	rc = warm_up(q);
	if (rc != TOOL_OK) {
		return rc;
	}
	b->expected_us *= (q->iterations + q->rounds - 1) / q->rounds;
	q->ns = calloc(q->iterations, sizeof(*q->ns));
	q->baseline_ns = calloc(q->iterations, sizeof(*q->baseline_ns));
	if (q->ns == NULL || q->baseline_ns == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "no memory for times");
	}
	for (round = 0; round < q->rounds && rc == TOOL_OK; round++) {
		bench_progress(b, "%s: round %u of %u", tool_format_size(q->bytes, size), round + 1,
			       q->rounds);
		rc = run_round(q, round);
	}
	return rc == TOOL_OK ? finish(q) : rc;
}

/* What the others must know. */
enum { NUMBER, MAC, MTU, FACTS };

static int own_facts(struct pair *q, uint64_t mine[FACTS])
{
	struct bench *b = q->b;
	struct collnet_node_info *nodes;
	struct collnet_stats s = { .size = sizeof(s) };
	size_t n = COLLNET_RANKS_MAX, i;
	int rc;

	rc = collnet_endpoint_open(b->c, 0, &q->ep);
	if (rc != COLLNET_OK) {
		return bench_fail(b, rc, "opening an endpoint");
	}
	mine[NUMBER] = collnet_endpoint_number(q->ep);
	rc = collnet_get_stats(b->c, &s, 0);
	if (rc != COLLNET_OK) {
		return bench_fail(b, rc, "reading the counters");
	}
	mine[MTU] = s.mtu;
	nodes = calloc(n, sizeof(*nodes));
	if (nodes == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "reading the node table");
	}
	rc = collnet_get_nodes(b->c, nodes, &n);
	for (i = 0; rc == COLLNET_OK && i < n && i < COLLNET_RANKS_MAX; i++) {
		if (nodes[i].self) {
			memcpy(&mine[MAC], nodes[i].mac, 6); /* as bytes, there and back */
		}
	}
	free(nodes);
	return rc == COLLNET_OK ? TOOL_OK : bench_fail(b, rc, "reading the node table");
}

static int setup(struct pair *q)
{
	struct bench *b = q->b;
	uint64_t mine[FACTS] = { 0 }, *all;
	uint32_t other = b->m.rank == 0 ? 1 : 0;
	struct cn_err err = { 0 };
	int rc = TOOL_OK;

	if (b->o->baseline && b->node_of[0] == b->node_of[1]) {
		return bench_fail(b, COLLNET_EINVAL,
				  "--baseline requires ranks 0 and 1 on different nodes");
	}
	if (q->active) {
		rc = own_facts(q, mine);
	}
	all = malloc(b->m.place.ranks * sizeof(mine));
	if (rc != TOOL_OK || all == NULL) {
		free(all);
		return rc != TOOL_OK ? rc : bench_fail(b, COLLNET_ENOMEM, "no memory");
	}
	rc = bench_gather(b, mine, FACTS, all);
	if (rc == TOOL_OK) {
		/* Every rank knows what these two can do: the steps of all must be the same. */
		q->mtu = (uint32_t)(all[MTU] < all[FACTS + MTU] ? all[MTU] : all[FACTS + MTU]);
	}
	if (rc == TOOL_OK && q->active) {
		snprintf(q->peer.node, sizeof(q->peer.node), "%s",
			 collnet_team_node(b->team, other));
		q->peer.endpoint = (uint16_t)all[other * FACTS + NUMBER];
		memcpy(q->peer_mac, &all[other * FACTS + MAC], 6);
	}
	free(all);
	if (rc == TOOL_OK && q->active && b->o->baseline &&
	    baseline_open(b->o->open.interface, BASELINE_ETHERTYPE, &q->baseline, &err) !=
		    COLLNET_OK) {
		tool_complain("rank %u on node %s: --baseline: %s", b->m.rank,
			      collnet_node_name(b->c), err.text);
		return TOOL_FAILED;
	}
	return rc;
}

static int buffers(struct pair *q)
{
	const struct measure_options *o = &q->b->o->m;
	uint64_t largest = 1;
	size_t i;

	for (i = 0; i < o->nsizes; i++) {
		largest = o->sizes[i] > largest ? o->sizes[i] : largest;
	}
	for (i = 0; i < IN_FLIGHT && q->active; i++) {
		q->data[i] = collnet_alloc(q->b->c, largest);
		if (q->data[i] == NULL) {
			return bench_fail(q->b, COLLNET_ENOMEM, "a buffer");
		}
	}
	return TOOL_OK;
}

int bench_messages(struct bench *b)
{
	struct pair q = { .b = b, .active = b->m.rank < 2 };
	size_t i;
	int rc;

	if (b->m.place.ranks < 2) {
		tool_complain("%s needs two ranks, and there is one; start it on two nodes",
			      measure_op_name(b->o->m.op));
		return TOOL_FAILED;
	}
	rc = setup(&q);
	if (rc == TOOL_OK) {
		rc = buffers(&q);
	}
	for (i = 0; i < b->o->m.nsizes && rc == TOOL_OK; i++) {
		q.bytes = b->o->m.sizes[i];
		q.nbaseline = 0;
		memset(q.counters, 0, sizeof(q.counters));
		rc = run_size(&q);
		free(q.ns);
		free(q.baseline_ns);
		q.ns = q.baseline_ns = NULL;
	}
	if (q.baseline != NULL) {
		baseline_close(q.baseline);
	}
	if (q.ep != NULL) {
		collnet_endpoint_close(q.ep);
	}
	return rc;
}
