/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/vector.h"

#include <stdlib.h>

#define FIRST 64u

void *cn_vector_grow(void *items, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t more = *cap < FIRST / 2 ? FIRST : *cap * 2;
	void *p;

	if (n < *cap) {
		return items;
	}
	if (more <= n || more > SIZE_MAX / size) {
		return NULL;
	}
	p = realloc(items, more * size);
	if (p != NULL) {
		*cap = more;
	}
	return p;
}
