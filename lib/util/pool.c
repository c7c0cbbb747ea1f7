/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collnet/collnet.h"

#define PAGES_MIN (64u << 10) /* less is not worth a system call */

static void *get_memory(size_t bytes)
{
	void *p;

	if (bytes < PAGES_MIN) {
		return malloc(bytes);
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		return NULL;
	}
	madvise(p, bytes, MADV_NOHUGEPAGE); /* a huge page is touched as a whole */
	return p;
}

static void put_memory(void *p, size_t bytes)
{
	if (bytes < PAGES_MIN) {
		free(p);
	} else {
		munmap(p, bytes);
	}
}

int cn_pool_init(struct cn_pool *p, size_t item, uint32_t count)
{
	memset(p, 0, sizeof(*p));
	p->item = (item + 15) & ~(size_t)15;
	if (count == 0 || p->item == 0 || p->item > SIZE_MAX / count) {
		return COLLNET_EINVAL;
	}
	p->memory = get_memory(p->item * count);
	if (p->memory == NULL) {
		return COLLNET_ENOMEM;
	}
	p->count = count;
	p->free = count;
	return COLLNET_OK;
}

void cn_pool_fini(struct cn_pool *p)
{
	if (p->memory != NULL) {
		put_memory(p->memory, p->item * p->count);
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
