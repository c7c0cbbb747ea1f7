/* SPDX-License-Identifier: BSD-2-Clause */
/* Round trips of a message between ranks 0 and 1, and of a frame on raw sockets. */
#include <string.h>

#include "tools/bench/pair.h"

int pingpong(struct pair *q, uint32_t n, uint64_t *ns)
{
	struct bench *b = q->b;
	uint64_t cpu = bench_cpu();
	uint32_t i;
	int rc = TOOL_OK;

	for (i = 0; i < n && rc == TOOL_OK; i++) {
		cn_time from;

		b->serial++;
		if (b->m.rank != 0) {
			rc = pair_recv(q, q->data[0], q->bytes);
			if (rc == TOOL_OK) {
				rc = pair_send(q, q->data[0], q->bytes);
			}
			continue;
		}
		if (b->o->m.verify) {
			pair_fill(q, b->serial, q->data[0]);
			memset(q->data[1], 0, q->bytes);
		}
		from = cn_now();
		rc = pair_send(q, q->data[0], q->bytes);
		if (rc == TOOL_OK) {
			rc = pair_recv(q, q->data[1], q->bytes);
		}
		ns[i] = cn_now() - from;
		if (b->o->m.verify && rc == TOOL_OK) {
			pair_check(q, "echo", b->serial, 1, q->data[1]);
		}
	}
	q->counters[BENCH_CPU] += bench_cpu() - cpu;
	return rc;
}

int pingpong_baseline(struct pair *q, uint32_t n)
{
	struct cn_err err = { 0 };
	uint64_t lost = 0;
	int rc;

	rc = baseline_pingpong(q->baseline, q->peer_mac, q->b->m.rank == 0,
			       pair_baseline_payload(q), n,
			       q->b->m.rank == 0 ? q->baseline_ns + q->nbaseline : NULL, &lost,
			       pair_baseline_deadline(q), &err);
	if (rc != COLLNET_OK) {
		return pair_baseline_failed(q, &err);
	}
	q->nbaseline += n;
	return TOOL_OK;
}
