/* SPDX-License-Identifier: BSD-2-Clause */
/* Reduce-scatter round a ring of nodes, of which allreduce by a ring is the first half. */
#ifndef CN_REDUCE_SCATTER_RING_H
#define CN_REDUCE_SCATTER_RING_H

#include "sched/reduction.h"

struct cn_chunk {
	uint64_t offset, len;  /* in every rank's send buffer */
	uint32_t owner;	       /* the part where it ends */
	uint32_t rank;	       /* of the owner: whose result it is */
	uint64_t result;       /* offset in that rank's receive buffer */
	struct cn_value value; /* of what was combined; at the end the result */
};

/* The rank of a part that combines chunk c. */
static inline uint32_t cn_chunk_handler(const struct cn_part *part, uint32_t c)
{
	return part->ranks[c % part->n];
}

/*
 * A reduction round a ring, and `n` chunks to be filled in and freed. NULL: r->rc is the failure,
 * and *r is done with.
 */
struct cn_chunk *cn_ring_begin(struct cn_reduction *r, const struct cn_layout *l,
			       const struct cn_plan *p, uint32_t me, uint32_t n,
			       struct cn_sched *out, struct cn_err *err);
/* Combines each chunk on its way from the part after its owner round to the owner; phases 0 on. */
void cn_ring_reduce_scatter(struct cn_reduction *r, struct cn_chunk *chunks, uint32_t n);

#endif
