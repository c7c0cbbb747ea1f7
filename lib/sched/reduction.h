/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the planners of reductions.
 *
 * Every node lets the whole team's algorithm run, move by move, and keeps the actions that are its
 * own. So both ends of a message agree on its locations, and an algorithm is written once, as
 * operations on values.
 *
 * A value is a combination of contributions in some rank's memory. Contributions are combined in
 * parts: the ranks of one node, or, where the operation is not commutative, ranks that follow one
 * another and are on one node. A part's ranks are combined on their node before anything is sent.
 *
 * Each value has its own slot. It is combined in the slot where its last operand arrived, and
 * immutable after it was sent.
 */
#ifndef CN_REDUCTION_H
#define CN_REDUCTION_H

#include "sched/sched.h"

#define CN_REDUCTION_ALIGN 16u	  /* bytes: of every place in the scratch buffer */
#define CN_REDUCTION_SMALL 65536u /* bytes: larger blocks go by algorithms that need few places */
#define CN_REDUCTION_NONE  UINT32_MAX

struct cn_part {
	uint32_t node;
	const uint32_t *ranks; /* ascending; part of the layout's */
	uint32_t n;
};

struct cn_value {
	struct cn_span at;
	uint32_t made; /* by this action of this node; CN_REDUCTION_NONE: of another, or always
			* there */
};

struct cn_reduction {
	const struct cn_layout *l;
	const struct cn_plan *p;
	uint32_t me;
	struct cn_sched *out;
	struct cn_err *err;
	int rc; /* of the first failure; nothing is added after it */
	struct cn_part *parts;
	uint32_t nparts;
	uint64_t digest;	/* of the blocks' sizes, if they have sizes of their own */
	uint64_t *used;		/* [nranks] bytes of scratch */
	struct cn_value *value; /* [nparts] for the planners */
	struct cn_value *in;	/* [nparts] likewise */
};

/* Parts are consecutive ranks if `ordered`, in their order; else nodes, in the order of the ring.
 */
int cn_reduction_init(struct cn_reduction *r, const struct cn_layout *l, const struct cn_plan *p,
		      uint32_t me, bool ordered, struct cn_sched *out, struct cn_err *err);
/* Frees it, and returns the first failure. */
int cn_reduction_done(struct cn_reduction *r);

/* The part of a rank. */
uint32_t cn_reduction_part_of(const struct cn_reduction *r, uint32_t rank);
/* The rank that combines for a part: the root where it is one of them. */
uint32_t cn_reduction_handler(const struct cn_reduction *r, const struct cn_part *part);
/* Checks whether an algorithm that needs many places, or a commutative operation, can be used. */
int cn_reduction_small(const struct cn_plan *p, const char *algorithm, struct cn_err *err);
int cn_reduction_unordered(const struct cn_plan *p, const char *algorithm, struct cn_err *err);

/* The bytes that a place of `len` takes in the scratch buffer. */
static inline uint64_t cn_reduction_room(uint64_t len)
{
	return (len + CN_REDUCTION_ALIGN - 1) / CN_REDUCTION_ALIGN * CN_REDUCTION_ALIGN;
}

/* True if an algorithm can be used that needs a place per rank. */
static inline bool cn_reduction_gathers(uint32_t ranks, uint64_t bytes)
{
	return bytes <= CN_REDUCTION_SMALL / ranks;
}

/* The block of a rank in a reduce-scatter: where it begins in the send buffers, and its bytes. */
struct cn_block cn_reduction_block(const struct cn_reduction *r, uint32_t rank);

/* A place in a rank's scratch buffer. */
struct cn_span cn_reduction_slot(struct cn_reduction *r, uint32_t rank, uint64_t len);
/* A rank's contribution: `len` bytes of its send buffer. */
struct cn_value cn_reduction_own(uint32_t rank, uint64_t offset);
/* The value in another rank's memory: by a message, or by a copy on one node. */
struct cn_value cn_reduction_move(struct cn_reduction *r, struct cn_value v, struct cn_span to,
				  uint64_t len, uint32_t phase);
/* left op right, both in the memory of the rank of `to`, which may be the place of one of them. */
struct cn_value cn_reduction_combine(struct cn_reduction *r, struct cn_value left,
				     struct cn_value right, struct cn_span to, uint64_t len);
/* Sends a digest of the blocks' sizes from one node to another, which compares it with its own;
 * nothing if no block has a size of its own. */
void cn_reduction_agree(struct cn_reduction *r, uint32_t from, uint32_t to, uint32_t phase);
/* The sends that follow wait for the value, which is on this node. */
void cn_reduction_wait(struct cn_reduction *r, struct cn_value v);
/*
 * The contributions of a part's ranks from `offset` on, combined in the memory of its rank
 * `handler`; in the place *to, unless it is NULL.
 */
struct cn_value cn_reduction_fold(struct cn_reduction *r, const struct cn_part *part,
				  uint32_t handler, uint64_t offset, uint64_t len,
				  const struct cn_span *to);
/* The result in receive buffer of `rank` to those of the part's other ranks. */
void cn_reduction_share(struct cn_reduction *r, const struct cn_part *part, struct cn_value v,
			uint64_t len);

/* A place in the receive buffer of a rank. */
static inline struct cn_span cn_reduction_result(uint32_t rank, uint64_t offset)
{
	return (struct cn_span){ CN_BUF_RECV, rank, offset };
}

#endif
