/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/util/pool.c: every buffer once, its own memory, and an end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool__all_and_no_more),
		cmocka_unit_test(pool__random_use),
		cmocka_unit_test(pool__impossible_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
