/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/util/pqueue.h and lib/util/vector.c: items come out in order, arrays keep what they hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/pqueue.h"
#include "util/vector.h"

struct item {
	uint32_t key, order;
};

static bool before(const void *x, const void *y)
{
	const struct item *a = x, *b = y;

	return a->key != b->key ? a->key < b->key : a->order < b->order;
}

/* Pushes and pops at random; what comes out is the least of what is in, by a linear search. */
static void pqueue__least_first(void **state)
{
	struct item heap[200], all[200];
	size_t n = 0;
	uint64_t seed = 7;

	(void)state;
	for (uint32_t step = 0; step < 20000; step++) {
		if (n == 0 || (n < 200 && cn_random(&seed) % 2 == 0)) {
			struct item i = { (uint32_t)(cn_random(&seed) % 50), step };

			cn_pqueue_push(heap, n, sizeof(i), &i, before);
			all[n++] = i;
		} else {
			struct item out;
			size_t least = 0;

			for (size_t k = 1; k < n; k++) {
				least = before(&all[k], &all[least]) ? k : least;
			}
			cn_pqueue_pop(heap, n, sizeof(out), &out, before);
			assert_int_equal(out.key, all[least].key);
			assert_int_equal(out.order, all[least].order);
			all[least] = all[--n];
		}
	}
}

static void vector__keeps_its_items(void **state)
{
	uint32_t *items = NULL, cap = 0;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		uint32_t *p = cn_vector_grow(items, n, &cap, sizeof(*items));

		assert_non_null(p);
		assert_true(cap > n);
		items = p;
		items[n] = n * n;
	}
	for (uint32_t n = 0; n < 1000; n++) {
		assert_int_equal(items[n], n * n);
	}
	assert_int_equal(cap, 1024);
	free(items);
}

/* A capacity that cannot be doubled is refused, and left as it is. */
static void vector__refuses_what_overflows(void **state)
{
	uint32_t cap = UINT32_MAX / 2 + 2;

	(void)state;
	assert_null(cn_vector_grow(NULL, cap, &cap, 1));
	assert_int_equal(cap, UINT32_MAX / 2 + 2);
	cap = 1u << 30;
	assert_null(cn_vector_grow(NULL, cap, &cap, SIZE_MAX / 1024));
	assert_int_equal(cap, 1u << 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pqueue__least_first),
		cmocka_unit_test(vector__keeps_its_items),
		cmocka_unit_test(vector__refuses_what_overflows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
