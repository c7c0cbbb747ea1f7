/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing arrays. */
#ifndef CN_VECTOR_H
#define CN_VECTOR_H

#include "util/util.h"

/*
 * Room for item n, counted from 0, in an array of *cap items of `size` bytes: the capacity doubles
 * when it is used up. Returns the array, which may have moved, and sets *cap; NULL: no memory, and
 * the old array stays as it is. New items are not initialised.
 *
 *	p = cn_vector_grow(v->items, v->n, &v->cap, sizeof(*v->items));
 *	if (p == NULL) { ... }
 *	v->items = p;
 */
void *cn_vector_grow(void *items, uint32_t n, uint32_t *cap, size_t size);

#endif
