/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token bucket (as the generic cell rate algorithm keeps it, in one number): `burst` at once, and
 * one more for every `each` that passes. Begins full when it is all 0.
 */
#ifndef CN_BUCKET_H
#define CN_BUCKET_H

#include "util/util.h"

struct cn_bucket {
	cn_time full_at; /* when it is full again */
};

/* Takes a token. False: there is none. */
static inline bool cn_bucket_take(struct cn_bucket *b, cn_time now, uint32_t burst, cn_time each)
{
	cn_time from = b->full_at > now ? b->full_at : now;

	if (from - now > (burst - 1) * each) {
		return false;
	}
	b->full_at = from + each;
	return true;
}

#endif
