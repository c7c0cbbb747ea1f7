/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers of calls: every byte is a function of operation, source and destination. Guards behind
 * them detect writes out of bounds, and buffers given back are overwritten at once, so that a frame
 * sent from one later is wrong.
 */
#ifndef TESTS_BUFFERS_H
#define TESTS_BUFFERS_H

#include "scenario.h"

struct buffers {
	/* set before buffers_prepare() */
	const struct op_plan *plan;
	uint32_t number; /* of the operation: other ones have other bytes */
	uint32_t rank, ranks;
	uint32_t nodes, local; /* of the team; ranks on the rank's node */

	uint64_t send_bytes, recv_bytes, scratch_bytes;
	uint8_t *send, *recv, *scratch; /* NULL: none */
	struct cn_block *memory;	/* of `blocks`; NULL: no vector operation */
	struct cn_blocks blocks;
	bool released;
};

/* What sizes depend on. */
struct cn_call buffers_shape(const struct buffers *c);
/* Allocates and fills them; false: no memory. */
bool buffers_prepare(struct buffers *c);
/* Fills them for another operation of this plan. */
void buffers_renew(struct buffers *c, uint32_t number);
/* Received blocks that are wrong; *which has the ranks below 128 that they are of. */
uint64_t buffers_wrong(const struct buffers *c, uint64_t which[2]);
void buffers_combine(struct buffers *c, const struct cn_combine *p);
/* The call has ended: overwrites the buffers. NULL, or the error in the guards. */
const char *buffers_release(struct buffers *c);
/* At the end of the run. NULL, or what was written since. */
const char *buffers_check(const struct buffers *c);
void buffers_free(struct buffers *c);

#endif
