/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of a rank's buffers in an operation that is measured, with root 0. Pure. */
#ifndef COLLNET_BENCH_BLOCKS_H
#define COLLNET_BENCH_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/sched.h"

/* What the ranks agree on, and one of them. */
struct bench_call {
	enum cn_op_kind op;
	uint64_t bytes; /* of a block; in vector operations in the mean */
	uint64_t seed;	/* of the lengths of their blocks */
	uint32_t rank, ranks, nodes;
};

/* The room that its buffers need, which does not depend on the seed. */
uint64_t bench_send_room(const struct bench_call *c);
uint64_t bench_recv_room(const struct bench_call *c);

/*
 * The block from one rank to another. In vector operations it has 0 to twice as many bytes: drawn
 * for the two in an alltoallv, else for the one whose length the call takes, so that the mean of
 * two neighbouring ranks is `bytes`.
 */
uint64_t bench_length(const struct bench_call *c, uint32_t source, uint32_t destination);

struct bench_blocks {
	uint32_t nsends, nrecvs; /* blocks in the buffers; 0 with `bytes` 0 */
	size_t *sends, *send_at; /* [ranks] length and place of each, one after another */
	size_t *recvs, *recv_at; /* [ranks]; where nrecvs is 1, the first one is it */
};

/* False: no memory. */
bool bench_blocks_init(struct bench_blocks *b, const struct bench_call *c);
void bench_blocks_free(struct bench_blocks *b);

#endif
