/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "collnet/collnet.h"
#include "util/pool.h"

int cn_pool_init(struct cn_pool *p, size_t item, uint32_t count)
{
	return cn_pool_init_from(p, NULL, item, count);
}

int cn_pool_init_from(struct cn_pool *p, const struct cn_pool_memory *from, size_t item,
		      uint32_t count)
{
	memset(p, 0, sizeof(*p));
	p->from = from;
	p->item = (item + 15) & ~(size_t)15;
	if (count == 0 || p->item == 0 || p->item > SIZE_MAX / count) {
		return COLLNET_EINVAL;
	}
	p->memory = from != NULL ? from->get(p->item * count) : malloc(p->item * count);
	if (p->memory == NULL) {
		return COLLNET_ENOMEM;
	}
	p->count = count;
	p->free = count;
	return COLLNET_OK;
}

void cn_pool_fini(struct cn_pool *p)
{
	if (p->from != NULL && p->memory != NULL) {
		p->from->put(p->memory, p->item * p->count);
	} else {
		free(p->memory);
	}
	memset(p, 0, sizeof(*p));
}

void *cn_pool_get(struct cn_pool *p)
{
	void *item = p->head;

	if (item != NULL) {
		memcpy(&p->head, item, sizeof(p->head));
	} else if (p->fresh < p->count) {
		item = p->memory + p->item * p->fresh++;
	} else {
		return NULL;
	}
	p->free--;
	return item;
}

void cn_pool_put(struct cn_pool *p, void *item)
{
	memcpy(item, &p->head, sizeof(p->head));
	p->head = item;
	p->free++;
}

bool cn_pool_owns(const struct cn_pool *p, const void *item)
{
	uintptr_t first = (uintptr_t)p->memory, at = (uintptr_t)item;

	return at >= first && at - first < p->item * p->count;
}
