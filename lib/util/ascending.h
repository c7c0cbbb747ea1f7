/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in ascending order: for qsort() and bsearch(). Not for doubles that may be NaN. */
#ifndef CN_ASCENDING_H
#define CN_ASCENDING_H

#include <stdint.h>

static inline int cn_ascending_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static inline int cn_ascending_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static inline int cn_ascending_double(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#endif
