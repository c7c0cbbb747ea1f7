/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token bucket (GCRA, one number of state): a burst of `burst` tokens, and one more per `each`.
 * All zero: full.
 */
#ifndef CN_BUCKET_H
#define CN_BUCKET_H

#include "util/util.h"

struct cn_bucket {
	cn_time full_at; /* when it will be full */
};

/* Consumes a token. False: none left. */
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
