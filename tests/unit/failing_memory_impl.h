/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that fails, for tests that are linked with --wrap=malloc, calloc, realloc and free: while
 * `counted`, allocations are numbered, and the one with the number `failing` fails.
 */
#ifndef TEST_FAILING_MEMORY_IMPL_H
#define TEST_FAILING_MEMORY_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static int64_t allocations, failing = -1, live;
static bool counted;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __real_free(void *p);
void __wrap_free(void *p);

static bool fails(void)
{
	return counted && allocations++ == failing;
}

static void *got(void *p)
{
	live += p != NULL;
	return p;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : got(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : got(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	void *q = fails() ? NULL : __real_realloc(p, size);

	live += p == NULL && q != NULL;
	return q;
}

void __wrap_free(void *p)
{
	live -= p != NULL;
	__real_free(p);
}

#endif
