/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between ranks 0 and 1: sending, receiving, filling and checking one. */
#include "tools/bench/pair.h"
#include "tools/bench/pattern.h"

int pair_failed(const struct pair *q, int status, const char *what)
{
	char size[TOOL_TEXT];

	return bench_fail(q->b, status, "%s a message of %s", what,
			  tool_format_size(q->bytes, size));
}

int pair_send(const struct pair *q, const void *data, size_t bytes)
{
	int rc = collnet_send(q->ep, &q->peer, data, bytes, bench_timeout(q->b));

	return rc == COLLNET_OK ? TOOL_OK : pair_failed(q, rc, "sending");
}

int pair_recv(const struct pair *q, void *data, size_t bytes)
{
	size_t got = bytes;
	int rc = collnet_recv(q->ep, NULL, data, &got, bench_timeout(q->b));

	if (rc != COLLNET_OK) {
		return pair_failed(q, rc, "receiving");
	}
	if (got != bytes) {
		tool_complain("rank %u: a message of %zu bytes arrived with %zu", q->b->m.rank,
			      bytes, got);
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

void pair_check(struct pair *q, const char *what, uint64_t serial, uint32_t source,
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

void pair_fill(const struct pair *q, uint64_t serial, uint8_t *data)
{
	struct bench_pattern p = bench_pattern(q->b->o->m.seed, serial, 0, 1);

	bench_pattern_fill(&p, data, q->bytes);
}

uint32_t pair_baseline_payload(const struct pair *q)
{
	uint64_t n = q->bytes + PAIR_HEADER;

	return n < q->mtu ? (uint32_t)n : q->mtu;
}

cn_time pair_baseline_deadline(const struct pair *q)
{
	return cn_now() + (cn_time)bench_timeout(q->b) * CN_MS;
}

int pair_baseline_failed(const struct pair *q, const struct cn_err *err)
{
	tool_complain("rank %u: raw sockets: %s", q->b->m.rank, err->text);
	return TOOL_FAILED;
}
