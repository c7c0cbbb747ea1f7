/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from rank 0 to rank 1: pingpong and stream, and the same frames on raw sockets, the
 * baseline.
 *
 * A size is measured in ten rounds. With --bare each round has its share of both, so that they
 * are measured under the same conditions; medians are compared. The other ranks wait in the barrier
 * before a round. While the baseline is measured nothing drives the transport of a direct context,
 * so that these rounds stay well below the time after which a silent node counts as dead.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/baseline.h"
#include "tools/bench/command.h"
#include "tools/bench/pattern.h"

#define ROUNDS		    10u
#define ROUND_NS	    200000000u /* what a round should take */
#define BASELINE_NS	    200000000u
#define PINGPONG_MAX	    1000u  /* round trips in a round */
#define STREAM_MAX	    10000u /* messages in a round */
#define IN_FLIGHT	    2u
#define ASSUMED_BITS_PER_US 20.0 /* for deadlines */
#define HEADER		    24u	 /* of the transport, so that frames of the baseline are as long */

struct pair {
	struct bench *b;
	collnet_endpoint_t *ep;
	struct collnet_address peer;
	uint8_t peer_mac[6];
	uint32_t mtu; /* the smaller one of ranks 0 and 1, on every rank */
	struct baseline *baseline;
	uint8_t *data[IN_FLIGHT];
	uint64_t bytes;
	uint32_t share;		    /* round trips or messages in a round */
	uint64_t *ns, *baseline_ns; /* [ROUNDS * share] of pingpong, [ROUNDS] of stream */
	size_t nbaseline;
	double frames_per_s[ROUNDS], baseline_per_s[ROUNDS];
	uint64_t counters[BENCH_COUNTERS];
	bool active; /* rank 0 or 1 */
};

static int failed(const struct pair *q, int status, const char *what)
{
	char size[TOOL_TEXT];

	return bench_fail(q->b, status, "%s a message of %s", what,
			  tool_format_size(q->bytes, size));
}

static int send_message(const struct pair *q, const void *data, size_t bytes)
{
	int rc = collnet_send(q->ep, &q->peer, data, bytes, bench_timeout(q->b));

	return rc == COLLNET_OK ? TOOL_OK : failed(q, rc, "sending");
}

static int recv_message(const struct pair *q, void *data, size_t bytes)
{
	size_t got = bytes;
	int rc = collnet_recv(q->ep, NULL, data, &got, bench_timeout(q->b));

	if (rc != COLLNET_OK) {
		return failed(q, rc, "receiving");
	}
	if (got != bytes) {
		tool_complain("rank %u: a message of %zu bytes came as %zu", q->b->m.rank, bytes,
			      got);
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

static void check(struct pair *q, const char *what, uint64_t serial, uint32_t source,
		  const uint8_t *data)
{
	struct bench_pattern p = bench_pattern(q->b->o->m.seed, serial, 0, 1);
	size_t at;

	if (bench_pattern_check(&p, data, q->bytes, &at)) {
		return;
	}
	if (q->counters[BENCH_WRONG] == 0) {
		bench_wrong(q->b, what, source, at, bench_pattern_byte(&p, at), data[at]);
	}
	q->counters[BENCH_WRONG] = 1;
}

static void fill(const struct pair *q, uint64_t serial, uint8_t *data)
{
	struct bench_pattern p = bench_pattern(q->b->o->m.seed, serial, 0, 1);

	bench_pattern_fill(&p, data, q->bytes);
}

/* ---- pingpong ------------------------------------------------------------------------- */

/* n round trips; rank 1 returns what it gets, rank 0 checks it. */
static int pingpong(struct pair *q, uint32_t n, uint64_t *ns)
{
	struct bench *b = q->b;
	uint64_t cpu = bench_cpu();
	uint32_t i;
	int rc = TOOL_OK;

	for (i = 0; i < n && rc == TOOL_OK; i++) {
		cn_time from;

		b->serial++;
		if (b->m.rank != 0) {
			rc = recv_message(q, q->data[0], q->bytes);
			if (rc == TOOL_OK) {
				rc = send_message(q, q->data[0], q->bytes);
			}
			continue;
		}
		if (b->o->m.verify) {
			fill(q, b->serial, q->data[0]);
			memset(q->data[1], 0, q->bytes);
		}
		from = bench_now();
		rc = send_message(q, q->data[0], q->bytes);
		if (rc == TOOL_OK) {
			rc = recv_message(q, q->data[1], q->bytes);
		}
		ns[i] = bench_now() - from;
		if (b->o->m.verify && rc == TOOL_OK) {
			check(q, "echo", b->serial, 1, q->data[1]);
		}
	}
	q->counters[BENCH_CPU] += bench_cpu() - cpu;
	return rc;
}

static uint32_t baseline_payload(const struct pair *q)
{
	uint64_t n = q->bytes + HEADER;

	return n < q->mtu ? (uint32_t)n : q->mtu;
}

static int baseline_round_pingpong(struct pair *q, uint32_t n)
{
	struct cn_err err = { 0 };
	uint64_t lost = 0;
	cn_time deadline = bench_now() + (cn_time)bench_timeout(q->b) * CN_MS;
	int rc;

	rc = baseline_pingpong(q->baseline, q->peer_mac, q->b->m.rank == 0, baseline_payload(q), n,
			       q->b->m.rank == 0 ? q->baseline_ns + q->nbaseline : NULL, &lost,
			       deadline, &err);
	if (rc != COLLNET_OK) {
		tool_complain("rank %u: raw sockets: %s", q->b->m.rank, err.text);
		return TOOL_FAILED;
	}
	q->nbaseline += n;
	return TOOL_OK;
}

/* ---- stream --------------------------------------------------------------------------- */

static int wait_for(const struct pair *q, collnet_request_t **r, const char *what)
{
	int rc;

	if (*r == NULL) {
		return TOOL_OK;
	}
	rc = collnet_wait(*r, 0);
	*r = NULL;
	return rc == COLLNET_OK ? TOOL_OK : failed(q, rc, what);
}

static int stream_send(struct pair *q, uint32_t n)
{
	struct bench *b = q->b;
	collnet_request_t *in_flight[IN_FLIGHT] = { NULL };
	uint8_t done;
	uint32_t i;
	int rc = TOOL_OK;

	for (i = 0; i < n + IN_FLIGHT && rc == TOOL_OK; i++) {
		collnet_request_t **r = &in_flight[i % IN_FLIGHT];
		uint8_t *data = q->data[i % IN_FLIGHT];
		int status;

		rc = wait_for(q, r, "sending");
		if (rc != TOOL_OK || i >= n) {
			continue;
		}
		if (b->o->m.verify) {
			fill(q, b->serial + i, data);
		}
		status = collnet_isend(q->ep, &q->peer, data, q->bytes, bench_timeout(b), r);
		if (status != COLLNET_OK) {
			*r = NULL;
			rc = failed(q, status, "sending");
		}
	}
	return rc == TOOL_OK ? recv_message(q, &done, 1) : rc;
}

static int stream_recv(struct pair *q, uint32_t n)
{
	struct bench *b = q->b;
	collnet_request_t *in_flight[IN_FLIGHT] = { NULL };
	size_t got[IN_FLIGHT] = { 0 };
	uint8_t done = 1;
	uint32_t i;
	int rc = TOOL_OK;

	for (i = 0; i < n + IN_FLIGHT && rc == TOOL_OK; i++) {
		uint32_t slot = i % IN_FLIGHT;
		int status;

		if (i >= IN_FLIGHT && i - IN_FLIGHT < n) {
			rc = wait_for(q, &in_flight[slot], "receiving");
			if (rc != TOOL_OK) {
				break;
			}
			if (got[slot] != q->bytes) {
				tool_complain("rank 1: a message of %llu bytes came as %zu",
					      (unsigned long long)q->bytes, got[slot]);
				return TOOL_FAILED;
			}
			if (b->o->m.verify) {
				check(q, "message", b->serial + i - IN_FLIGHT, 0, q->data[slot]);
			}
		}
		if (i < n) {
			got[slot] = q->bytes;
			status = collnet_irecv(q->ep, NULL, q->data[slot], &got[slot],
					       bench_timeout(b), &in_flight[slot]);
			if (status != COLLNET_OK) {
				rc = failed(q, status, "receiving");
			}
		}
	}
	return rc == TOOL_OK ? send_message(q, &done, 1) : rc;
}

/* n messages; on rank 0 *ns is the time until rank 1 has confirmed all of them. */
static int stream(struct pair *q, uint32_t n, uint64_t *ns)
{
	struct bench *b = q->b;
	uint64_t cpu = bench_cpu();
	cn_time from = bench_now();
	int rc = b->m.rank == 0 ? stream_send(q, n) : stream_recv(q, n);

	*ns = bench_now() - from;
	q->counters[BENCH_CPU] += bench_cpu() - cpu;
	b->serial += n;
	return rc;
}

/* One round; rank 0 knows its own frames per second. */
static int stream_round(struct pair *q, uint32_t round)
{
	struct collnet_stats before = { .size = sizeof(before) }, after = before;
	uint64_t ns;
	int rc, status = COLLNET_OK;

	if (q->b->m.rank == 0) {
		status = collnet_get_stats(q->b->c, &before, 0);
	}
	if (status != COLLNET_OK) {
		return bench_fail(q->b, status, "reading the counters");
	}
	rc = stream(q, q->share, &ns);
	if (rc != TOOL_OK || q->b->m.rank != 0) {
		return rc;
	}
	status = collnet_get_stats(q->b->c, &after, 0);
	if (status != COLLNET_OK) {
		return bench_fail(q->b, status, "reading the counters");
	}
	q->ns[round] = ns / q->share;
	q->frames_per_s[round] = (double)(after.data_sent - before.data_sent) / ((double)ns / 1e9);
	return TOOL_OK;
}

static int baseline_round_stream(struct pair *q, uint32_t round)
{
	struct cn_err err = { 0 };
	struct baseline_rate rate = { 0 };
	cn_time deadline = bench_now() + (cn_time)bench_timeout(q->b) * CN_MS;
	uint64_t sent;
	int rc;

	if (q->b->m.rank == 0) {
		rc = baseline_stream_send(q->baseline, q->peer_mac, baseline_payload(q),
					  BASELINE_NS, &sent, deadline, &err);
	} else {
		rc = baseline_stream_recv(q->baseline, q->peer_mac, &rate, deadline, &err);
		q->baseline_per_s[round] = rate.per_second;
	}
	if (rc != COLLNET_OK) {
		tool_complain("rank %u: raw sockets: %s", q->b->m.rank, err.text);
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

/* ---- both ----------------------------------------------------------------------------- */

/* Whether the baseline can do the same: one frame per message. */
static bool comparable(const struct pair *q)
{
	return q->b->o->baseline &&
	       (q->b->o->m.op == MEASURE_STREAM || q->bytes + HEADER <= q->mtu);
}

static int run_round(struct pair *q, uint32_t round)
{
	struct bench *b = q->b;
	struct collnet_stats before;
	int rc = bench_barrier(b);

	if (rc == TOOL_OK) {
		rc = bench_count_begin(b, &before);
	}
	if (rc == TOOL_OK && q->active) {
		rc = b->o->m.op == MEASURE_PINGPONG
			     ? pingpong(q, q->share, q->ns + (size_t)round * q->share)
			     : stream_round(q, round);
	}
	if (rc == TOOL_OK) {
		rc = bench_count_end(b, &before, q->counters);
	}
	if (rc != TOOL_OK || !comparable(q)) {
		return rc;
	}
	rc = bench_barrier(b);
	if (rc == TOOL_OK && q->active) {
		rc = b->o->m.op == MEASURE_PINGPONG ? baseline_round_pingpong(q, q->share)
						    : baseline_round_stream(q, round);
	}
	return rc;
}

/* Warms up, and chooses the share of a round by what that took. */
static int warm_up(struct pair *q)
{
	struct bench *b = q->b;
	uint32_t n = b->o->m.warmup > 0 ? b->o->m.warmup : 1, i;
	uint32_t most = b->o->m.op == MEASURE_PINGPONG ? PINGPONG_MAX : STREAM_MAX;
	uint64_t share = 0, ns = 0, wrong;
	int rc = bench_barrier(b);

	for (i = 0; i < n && rc == TOOL_OK && q->active && b->o->m.op == MEASURE_PINGPONG; i++) {
		rc = pingpong(q, 1, &ns);
	}
	if (rc == TOOL_OK && q->active && b->o->m.op == MEASURE_STREAM) {
		rc = stream(q, n, &ns);
		ns /= n;
	}
	if (rc != TOOL_OK) {
		return rc;
	}
	wrong = q->counters[BENCH_WRONG];
	memset(q->counters, 0, sizeof(q->counters));
	q->counters[BENCH_WRONG] = wrong;
	if (b->o->m.iterations != MEASURE_DEFAULT) {
		share = (b->o->m.iterations + ROUNDS - 1) / ROUNDS;
	} else if (b->m.rank == 0) {
		share = ROUND_NS / (ns > 0 ? ns : 1);
		share = share < 1 ? 1 : share > most ? most : share;
	}
	rc = bench_agree(b, &share);
	if (rc == TOOL_OK && (share < 1 || share > MEASURE_ITERATIONS_MAX)) {
		return bench_fail(b, COLLNET_EPROTO, "rank 0 wants %llu iterations",
				  (unsigned long long)share);
	}
	q->share = (uint32_t)share;
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
	r.iterations = (uint64_t)ROUNDS * q->share;
	r.verified = b->o->m.verify ? &verified : NULL;
	bench_count_report(total,
			   measure_payload(b->o->m.op, b->m.place.ranks, q->bytes) *
				   (double)r.iterations,
			   &r);
	if (b->o->m.op == MEASURE_PINGPONG) {
		r.ns = measure_summary(q->ns, (size_t)ROUNDS * q->share);
		r.baseline_ns = measure_summary(q->baseline_ns, q->nbaseline);
		r.baseline_ratio = r.ns.median / r.baseline_ns.median;
		each = r.ns.median / 2;
	} else {
		r.ns = measure_summary(q->ns, ROUNDS);
		r.frames_per_s = measure_median(q->frames_per_s, ROUNDS);
		if (comparable(q)) {
			r.baseline_frames_per_s = measure_median(q->baseline_per_s, ROUNDS);
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
		fill(q, b->serial, q->data[0]);
		fill(q, b->serial, q->data[1]);
	}
	rc = warm_up(q);
	if (rc != TOOL_OK) {
		return rc;
	}
	b->expected_us *= q->share;
	q->ns = calloc((size_t)ROUNDS * q->share, sizeof(*q->ns));
	q->baseline_ns = calloc((size_t)ROUNDS * q->share, sizeof(*q->baseline_ns));
	if (q->ns == NULL || q->baseline_ns == NULL) {
		return bench_fail(b, COLLNET_ENOMEM, "no memory for times");
	}
	for (round = 0; round < ROUNDS && rc == TOOL_OK; round++) {
		bench_progress(b, "%s: round %u of %u", tool_format_size(q->bytes, size), round + 1,
			       ROUNDS);
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
				  "--bare needs ranks 0 and 1 on different nodes");
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
		tool_complain("rank %u on node %s: --bare: %s", b->m.rank, collnet_node_name(b->c),
			      err.text);
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
