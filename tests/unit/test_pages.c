/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of buffers: what is not touched takes no memory, and what is freed keeps none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collnet/collnet.h"
#include "node/pages.h"

#define COUNT 1024u

/* Resident pages of a pool of 4 pages a buffer; -1: it is not mapped. */
static int resident(const void *memory, size_t page)
{
	static unsigned char in[4 * COUNT];
	int n = 0;

	if (mincore((void *)(uintptr_t)memory, 4 * COUNT * page, in) != 0) {
		assert_int_equal(errno, ENOMEM);
		return -1;
	}
	for (size_t i = 0; i < 4 * COUNT; i++) {
		n += in[i] & 1;
	}
	return n;
}

static void cn_pages__only_what_is_touched(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct cn_pool p;
	const void *memory;

	(void)state;
	/* The second pool is where the first, which was touched, has been. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cn_pool_init_from(&p, &cn_pages, 4 * page, COUNT), COLLNET_OK);
		memory = p.memory;
		assert_int_equal(resident(memory, page), 0);
		for (uint32_t k = 0; k < (i == 0 ? COUNT : 1); k++) {
			*(uint8_t *)cn_pool_get(&p) = 1;
		}
		assert_int_equal(resident(memory, page), i == 0 ? COUNT : 1);
		cn_pool_fini(&p);
		assert_int_equal(resident(memory, page), -1);
	}
}

static void cn_pages__small_ones(void **state)
{
	struct cn_pool p;

	(void)state;
	assert_int_equal(cn_pool_init_from(&p, &cn_pages, 16, 4), COLLNET_OK);
	for (int i = 0; i < 4; i++) {
		assert_non_null(cn_pool_get(&p));
	}
	assert_null(cn_pool_get(&p));
	cn_pool_fini(&p);
}

static void cn_pages__refused(void **state)
{
	struct cn_pool p;

	(void)state;
	assert_int_equal(cn_pool_init_from(&p, &cn_pages, SIZE_MAX / 2, 1), COLLNET_ENOMEM);
	cn_pool_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_pages__only_what_is_touched),
		cmocka_unit_test(cn_pages__small_ones),
		cmocka_unit_test(cn_pages__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
