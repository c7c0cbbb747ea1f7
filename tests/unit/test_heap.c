/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/util/heap.c against a list that is searched: set, move, remove, earliest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/heap.h"

#define COUNT 60u

static void check(const struct cn_heap *h, struct cn_timer t[COUNT])
{
	cn_time least = CN_NEVER;
	uint32_t in = 0;

	for (uint32_t i = 0; i < COUNT; i++) {
		least = cn_min_time(least, t[i].at);
		in += t[i].at != CN_NEVER;
		assert_int_equal(t[i].place != 0, t[i].at != CN_NEVER);
		if (t[i].place != 0) {
			assert_ptr_equal(h->slots[t[i].place].timer, &t[i]);
			assert_true(h->slots[t[i].place].at == t[i].at);
		}
	}
	assert_int_equal(h->count, in);
	if (in == 0) {
		assert_null(cn_heap_first(h));
	} else {
		assert_int_equal(cn_heap_first(h)->at, least);
	}
}

static void heap__random_use(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct cn_timer t[COUNT];
		uint64_t random = seed;
		struct cn_heap h;

		assert_int_equal(cn_heap_init(&h, COUNT), COLLNET_OK);
		for (uint32_t i = 0; i < COUNT; i++) {
			t[i] = (struct cn_timer){ .at = CN_NEVER };
		}
		for (int step = 0; step < 1000; step++) {
			struct cn_timer *x = &t[cn_random(&random) % COUNT];
			cn_time at = cn_random(&random) % 100;

			cn_heap_set(&h, x, at < 30 ? CN_NEVER : at);
			check(&h, t);
		}
		while (cn_heap_first(&h) != NULL) {
			cn_heap_set(&h, cn_heap_first(&h), CN_NEVER);
			check(&h, t);
		}
		cn_heap_fini(&h);
	}
}

static void heap__sorts(void **state)
{
	struct cn_timer t[COUNT] = { 0 };
	uint64_t random = 3;
	struct cn_heap h;
	cn_time last = 0;

	(void)state;
	assert_int_equal(cn_heap_init(&h, COUNT), COLLNET_OK);
	for (uint32_t i = 0; i < COUNT; i++) {
		cn_heap_set(&h, &t[i], cn_random(&random) >> 1);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_true(cn_heap_first(&h)->at >= last);
		last = cn_heap_first(&h)->at;
		cn_heap_set(&h, cn_heap_first(&h), CN_NEVER);
	}
	assert_null(cn_heap_first(&h));
	cn_heap_fini(&h);
}

static void heap__never_of_one_outside(void **state)
{
	struct cn_timer t = { 0 };
	struct cn_heap h;

	(void)state;
	assert_int_equal(cn_heap_init(&h, 1), COLLNET_OK);
	cn_heap_set(&h, &t, CN_NEVER);
	assert_null(cn_heap_first(&h));
	cn_heap_set(&h, &t, 0);
	assert_ptr_equal(cn_heap_first(&h), &t);
	cn_heap_set(&h, &t, 0);
	assert_int_equal(h.count, 1);
	cn_heap_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap__random_use),
		cmocka_unit_test(heap__sorts),
		cmocka_unit_test(heap__never_of_one_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
