/* SPDX-License-Identifier: BSD-2-Clause */
/* Dominoes in a ring: the heart of LR3 (ring_lr3.c says what they stand for). */
#ifndef CN_DOMINOES_H
#define CN_DOMINOES_H

#include "util/util.h"

struct cn_domino {
	uint32_t end[2];
};

/* Work space for rings of up to `cap` dominoes; begins zeroed. */
struct cn_dominoes {
	uint32_t cap;
	uint64_t *keys;	       /* [2 cap] */
	uint32_t *mate, *root; /* [2 cap], [cap] */
};

int cn_dominoes_reserve(struct cn_dominoes *w, uint32_t n, struct cn_err *err);
void cn_dominoes_done(struct cn_dominoes *w);

/*
 * Whether the n >= 1 dominoes can be laid in one ring, each either way round, such that two ends
 * that touch are never more than `most` together. Exact. Then order[] (may be NULL) has the ring:
 * 2 * domino + 1 if it is turned, so that its end[1] comes first.
 */
bool cn_dominoes_ring(struct cn_dominoes *w, const struct cn_domino *d, uint32_t n, uint32_t most,
		      uint32_t *order);

#endif
