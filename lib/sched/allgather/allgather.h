/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the algorithms of allgather: the location of blocks, and the copies on a node. Blocks
 * are received by the lowest rank of a node, forwarded from there, and copied to its other ranks.
 */
#ifndef CN_ALLGATHER_H
#define CN_ALLGATHER_H

#include "sched/planners.h"

struct cn_allgather {
	const struct cn_layout *l;
	uint64_t bytes;
	const struct cn_blocks *blocks; /* vector variant: of this node's ranks; else NULL */
	uint32_t me;
	struct cn_sched *out;
	struct cn_err *err;
};

/* Length of a rank's block. */
uint64_t cn_allgather_length(const struct cn_allgather *g, uint32_t origin);
/* The block of `origin` in the receive buffer of rank i of a node. */
struct cn_span cn_allgather_place(const struct cn_allgather *g, uint32_t node, uint32_t i,
				  uint32_t origin);
/* Adds an action for a block; in the vector variant those of no bytes are left out. */
int cn_allgather_add(const struct cn_allgather *g, const struct cn_action *a);
/* Copies each rank's own block into all receive buffers of the node; in the vector variant, first
 * checks that its ranks agree about all blocks. */
int cn_allgather_own(const struct cn_allgather *g);
/* Copies the blocks of ranks origin .. origin + n - 1 (vector variant: n is 1), received by action
 * `received`, to the node's other ranks. */
int cn_allgather_share(const struct cn_allgather *g, uint32_t origin, uint32_t n, uint32_t phase,
		       uint32_t received);

#endif
