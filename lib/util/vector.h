/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic arrays. */
#ifndef CN_VECTOR_H
#define CN_VECTOR_H

#include "util/util.h"

/*
 * Ensures room for item n, from 0, in an array of *cap items of `size` bytes by doubling its
 * capacity. Returns the array, which may have moved, and sets *cap; NULL: no memory, and the array
 * is unchanged. New items are not initialised.
 *
 * 	p = cn_vector_grow(v->items, v->n, &v->cap, sizeof(*v->items));
 * 	if (p == NULL) { ... }
 * 	v->items = p;
 */
void *cn_vector_grow(void *items, uint32_t n, uint32_t *cap, size_t size);

#endif
