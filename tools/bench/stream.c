/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages from rank 0 to rank 1, some in flight, and frames on raw sockets. */
#include "tools/bench/pair.h"

#define BASELINE_NS 200000000u

static int wait_for(const struct pair *q, collnet_request_t **r, const char *what)
{
	int rc;

	if (*r == NULL) {
		return TOOL_OK;
	}
	rc = collnet_wait(*r, 0);
	*r = NULL;
	return rc == COLLNET_OK ? TOOL_OK : pair_failed(q, rc, what);
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
			pair_fill(q, b->serial + i, data);
		}
		status = collnet_isend(q->ep, &q->peer, data, q->bytes, bench_timeout(b), r);
		if (status != COLLNET_OK) {
			*r = NULL;
			rc = pair_failed(q, status, "sending");
		}
	}
	return rc == TOOL_OK ? pair_recv(q, &done, 1) : rc;
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
				tool_complain("rank 1: a message of %llu bytes arrived with %zu",
					      (unsigned long long)q->bytes, got[slot]);
				return TOOL_FAILED;
			}
			if (b->o->m.verify) {
				pair_check(q, "message", b->serial + i - IN_FLIGHT, 0,
					   q->data[slot]);
			}
		}
		if (i < n) {
			got[slot] = q->bytes;
			status = collnet_irecv(q->ep, NULL, q->data[slot], &got[slot],
					       bench_timeout(b), &in_flight[slot]);
			if (status != COLLNET_OK) {
				rc = pair_failed(q, status, "receiving");
			}
		}
	}
	return rc == TOOL_OK ? pair_send(q, &done, 1) : rc;
}

int stream(struct pair *q, uint32_t n, uint64_t *ns)
{
	struct bench *b = q->b;
	uint64_t cpu = bench_cpu();
	cn_time from = cn_now();
	int rc = b->m.rank == 0 ? stream_send(q, n) : stream_recv(q, n);

	*ns = cn_now() - from;
	q->counters[BENCH_CPU] += bench_cpu() - cpu;
	b->serial += n;
	return rc;
}

int stream_round(struct pair *q, uint32_t round, uint32_t n)
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
	rc = stream(q, n, &ns);
	if (rc != TOOL_OK || q->b->m.rank != 0) {
		return rc;
	}
	status = collnet_get_stats(q->b->c, &after, 0);
	if (status != COLLNET_OK) {
		return bench_fail(q->b, status, "reading the counters");
	}
	q->ns[round] = ns / n;
	q->frames_per_s[round] = (double)(after.data_sent - before.data_sent) / ((double)ns / 1e9);
	return TOOL_OK;
}

int stream_baseline(struct pair *q, uint32_t round)
{
	struct cn_err err = { 0 };
	struct baseline_rate rate = { 0 };
	uint64_t sent;
	int rc;

	if (q->b->m.rank == 0) {
		rc = baseline_stream_send(q->baseline, q->peer_mac, pair_baseline_payload(q),
					  BASELINE_NS, &sent, pair_baseline_deadline(q), &err);
	} else {
		rc = baseline_stream_recv(q->baseline, q->peer_mac, &rate,
					  pair_baseline_deadline(q), &err);
		q->baseline_per_s[round] = rate.per_second;
	}
	if (rc != COLLNET_OK) {
		return pair_baseline_failed(q, &err);
	}
	return TOOL_OK;
}
