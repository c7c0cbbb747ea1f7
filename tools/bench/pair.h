/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between ranks 0 and 1, inside: what pingpong.c and stream.c measure and p2p.c reports.
 * Functions return an exit status after a complaint, 0 for success.
 */
#ifndef COLLNET_BENCH_PAIR_H
#define COLLNET_BENCH_PAIR_H

#include "tools/bench/baseline.h"
#include "tools/bench/command.h"

#define ROUNDS	  10u /* at most */
#define IN_FLIGHT 2u  /* messages of a stream */

struct pair {
	struct bench *b;
	collnet_endpoint_t *ep;
	struct collnet_address peer;
	uint8_t peer_mac[6];
	uint32_t mtu; /* the smaller one of ranks 0 and 1, on every rank */
	struct baseline *baseline;
	uint8_t *data[IN_FLIGHT];
	uint64_t bytes;
	uint32_t iterations, rounds; /* round trips or messages, and what they are cut into */
	uint64_t *ns, *baseline_ns;  /* [iterations] of pingpong, [rounds] of stream */
	size_t nbaseline;
	double frames_per_s[ROUNDS], baseline_per_s[ROUNDS];
	uint64_t counters[BENCH_COUNTERS];
	bool active; /* rank 0 or 1 */
};

/* pair.c: the message as it is sent and checked. */
int pair_failed(const struct pair *q, int status, const char *what);
int pair_send(const struct pair *q, const void *data, size_t bytes);
int pair_recv(const struct pair *q, void *data, size_t bytes);
void pair_fill(const struct pair *q, uint64_t serial, uint8_t *data);
/* Counts and reports a wrong byte of a message that `source` sent or returned. */
void pair_check(struct pair *q, const char *what, uint64_t serial, uint32_t source,
		const uint8_t *data);
/* Bytes after the Ethernet header of a baseline frame: as long as one of the transport. */
uint32_t pair_baseline_payload(const struct pair *q);
/* When a measurement of the baseline gives up. */
cn_time pair_baseline_deadline(const struct pair *q);
int pair_baseline_failed(const struct pair *q, const struct cn_err *err);
#define PAIR_HEADER 24u /* of the transport */

/* n round trips; rank 1 returns what it gets, rank 0 checks it. ns[n] on rank 0. */
int pingpong(struct pair *q, uint32_t n, uint64_t *ns);
int pingpong_baseline(struct pair *q, uint32_t n);
/* n messages; on rank 0 *ns is the time until rank 1 has confirmed all of them. */
int stream(struct pair *q, uint32_t n, uint64_t *ns);
/* One round, of n messages; rank 0 knows its own frames per second. */
int stream_round(struct pair *q, uint32_t round, uint32_t n);
int stream_baseline(struct pair *q, uint32_t round);

#endif
