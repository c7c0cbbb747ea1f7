/* SPDX-License-Identifier: BSD-2-Clause */
#include "node/pages.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PAGES_MIN (64u << 10) /* less is not worth a system call */

static void *get(size_t bytes)
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

static void put(void *p, size_t bytes)
{
	if (bytes < PAGES_MIN) {
		free(p);
	} else {
		munmap(p, bytes);
	}
}

const struct cn_pool_memory cn_pages = { get, put };
