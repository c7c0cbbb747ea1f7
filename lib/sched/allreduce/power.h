/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal to lib/sched: a reduction in rounds among the largest power of two of the parts: the
 * members. Each part beyond these forms a pair with a neighbour. The upper part of a pair, or the
 * root's, is the member.
 */
#ifndef CN_POWER_H
#define CN_POWER_H

#include "sched/reduction.h"

#define CN_POWER_NO_ROOT UINT32_MAX

struct cn_power {
	uint32_t members; /* a power of two */
	uint32_t pairs;
	uint32_t root; /* a part that is a member; CN_POWER_NO_ROOT */
};

/* Determines the members, the largest power of two of `parts`, and the pairs. */
struct cn_power cn_power_of(uint32_t parts, uint32_t root);
/* The part of member i. */
uint32_t cn_power_part(const struct cn_power *w, uint32_t i);
/* The part of a pair that is no member. */
uint32_t cn_power_other(const struct cn_power *w, uint32_t pair);
/* The member whose part is the root's. */
uint32_t cn_power_root(const struct cn_power *w);
/* The number of chunks of a block in recursive halving, by the cost model: a power of two, less
 * than the members unless there is one. */
uint32_t cn_power_chunks(const struct cn_layout *l, const struct cn_plan *p, uint32_t members);
/*
 * True if member i sends in the round of `bit`, to member i ^ bit, which combines. All do while
 * ranges are halved, and in an allreduce. Then, in a reduce, one of two does, and only the other
 * goes on.
 */
bool cn_power_sends(const struct cn_plan *p, uint32_t chunks, uint32_t i, uint32_t bit);
/* The rank that combines for a part. */
uint32_t cn_power_handler(const struct cn_reduction *r, uint32_t part);
/* The values of the parts are those of their ranks, at their handlers; of one part, the result. */
void cn_power_fold(struct cn_reduction *r);
/* The value of a part, and what has arrived for it, in r->in: its value, in the place *to or, if
 * that is NULL, of what has arrived. */
void cn_power_combine(struct cn_reduction *r, uint32_t part, bool from_below,
		      const struct cn_span *to, uint64_t len);

#endif
