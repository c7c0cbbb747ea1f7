/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/util/pool.c: every buffer once, its own memory, and an end. What is not touched takes no
 * memory, and a large pool that is freed keeps none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collnet/collnet.h"
#include "util/pool.h"
#include "util/util.h"

#define COUNT 50

static void pool__all_and_no_more(void **state)
{
	struct cn_pool p;
	uint8_t *item[COUNT];

	(void)state;
	assert_int_equal(cn_pool_init(&p, 33, COUNT), COLLNET_OK);
	assert_int_equal(p.item, 48);
	for (int i = 0; i < COUNT; i++) {
		item[i] = cn_pool_get(&p);
		assert_non_null(item[i]);
		assert_int_equal((uintptr_t)item[i] % 16, 0);
		memset(item[i], i, 33);
		assert_int_equal(p.free, COUNT - i - 1);
	}
	assert_null(cn_pool_get(&p));
	for (int i = 0; i < COUNT; i++) {
		for (int k = 0; k < 33; k++) {
			assert_int_equal(item[i][k], i);
		}
		cn_pool_put(&p, item[i]);
	}
	assert_int_equal(p.free, COUNT);
	cn_pool_fini(&p);
}

static void pool__random_use(void **state)
{
	struct cn_pool p;
	uint8_t *item[COUNT] = { 0 };
	uint64_t random = 5;
	uint32_t out = 0;

	(void)state;
	assert_int_equal(cn_pool_init(&p, 16, COUNT), COLLNET_OK);
	for (int step = 0; step < 20000; step++) {
		uint32_t k = cn_random(&random) % COUNT;

		if (item[k] == NULL) {
			item[k] = cn_pool_get(&p);
			assert_non_null(item[k]);
			memset(item[k], (int)k, 16);
			out++;
		} else {
			for (int i = 0; i < 16; i++) {
				assert_int_equal(item[k][i], k);
			}
			cn_pool_put(&p, item[k]);
			item[k] = NULL;
			out--;
		}
		assert_int_equal(p.free, COUNT - out);
	}
	cn_pool_fini(&p);
}

static void pool__impossible_sizes(void **state)
{
	struct cn_pool p;

	(void)state;
	assert_int_equal(cn_pool_init(&p, 0, 5), COLLNET_EINVAL);
	assert_int_equal(cn_pool_init(&p, 5, 0), COLLNET_EINVAL);
	assert_int_equal(cn_pool_init(&p, SIZE_MAX / 2, 5), COLLNET_EINVAL);
	assert_int_equal(cn_pool_init(&p, SIZE_MAX, 1), COLLNET_EINVAL);
	cn_pool_fini(&p);
}

/* ---- memory ------------------------------------------------------------------------------- */

#define BUFFERS 1024u

/* Resident pages of a pool of 4 pages a buffer; -1: it is not mapped. */
static int resident(const void *memory, size_t page)
{
	static unsigned char in[4 * BUFFERS];
	int n = 0;

	if (mincore((void *)(uintptr_t)memory, 4 * BUFFERS * page, in) != 0) {
		assert_int_equal(errno, ENOMEM);
		return -1;
	}
	for (size_t i = 0; i < 4 * BUFFERS; i++) {
		n += in[i] & 1;
	}
	return n;
}

static void pool__only_what_is_touched(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct cn_pool p;
	const void *memory;

	(void)state;
	/* The second pool is where the first, which was touched, has been. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cn_pool_init(&p, 4 * page, BUFFERS), COLLNET_OK);
		memory = p.memory;
		assert_int_equal(resident(memory, page), 0);
		for (uint32_t k = 0; k < (i == 0 ? BUFFERS : 1); k++) {
			*(uint8_t *)cn_pool_get(&p) = 1;
		}
		assert_int_equal(resident(memory, page), i == 0 ? BUFFERS : 1);
		cn_pool_fini(&p);
		assert_int_equal(resident(memory, page), -1);
	}
}

static void pool__refused(void **state)
{
	struct cn_pool p;

	(void)state;
	assert_int_equal(cn_pool_init(&p, SIZE_MAX / 2, 1), COLLNET_ENOMEM);
	cn_pool_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool__all_and_no_more),
		cmocka_unit_test(pool__random_use),
		cmocka_unit_test(pool__impossible_sizes),
		cmocka_unit_test(pool__only_what_is_touched),
		cmocka_unit_test(pool__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
