/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments in a ring: the heart of LR3 (ring_lr3.c says what they stand for). */
#ifndef CN_RING_MATCHING_H
#define CN_RING_MATCHING_H

#include "util/util.h"

struct cn_ring_segment {
	uint32_t end[2];
};

/* Work space for rings of up to `cap` segments; begins zeroed. */
struct cn_ring_matching {
	uint32_t cap;
	uint64_t *keys;	      /* [2 cap] */
	uint32_t *mate, *set; /* [2 cap], [cap] union-find of the cycles */
};

int cn_ring_matching_reserve(struct cn_ring_matching *w, uint32_t n, struct cn_err *err);
void cn_ring_matching_done(struct cn_ring_matching *w);

/*
 * True if the n >= 1 segments can be laid in one ring, each either way round, such that two ends
 * that touch are never more than `most` together. Exact. Then order[] (may be NULL) has the ring:
 * 2 * segment + 1 if it is turned, so that its end[1] comes first.
 */
bool cn_ring_matching_ring(struct cn_ring_matching *w, const struct cn_ring_segment *d, uint32_t n,
			   uint32_t most, uint32_t *order);

#endif
