/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pool of equal buffers, allocated once; get and put are O(1) and never allocate. A large pool
 * has pages of its own: buffers that are never used take no memory, and a pool that is freed keeps
 * none. malloc() would place large pools among the remains of earlier ones, until the heap has been
 * touched everywhere.
 */
#ifndef CN_POOL_H
#define CN_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_pool {
	uint8_t *memory;
	size_t item;	/* bytes a buffer, multiple of 16 */
	uint32_t count; /* buffers */
	uint32_t free;	/* of those, free ones */
	uint32_t fresh; /* buffers never allocated yet: untouched memory costs nothing */
	void *head;	/* list of returned ones, linked through their first bytes */
};

/* 0, COLLNET_ENOMEM, or COLLNET_EINVAL: no bytes, or too many to count. */
int cn_pool_init(struct cn_pool *p, size_t item, uint32_t count);
void cn_pool_fini(struct cn_pool *p);
void *cn_pool_get(struct cn_pool *p); /* NULL: none free */
void cn_pool_put(struct cn_pool *p, void *item);
bool cn_pool_owns(const struct cn_pool *p, const void *item);

#endif
