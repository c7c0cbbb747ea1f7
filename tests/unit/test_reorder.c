/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/reorder.c: frames in and out by number, and the SACK bitmap of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/reorder.h"

#define EXPECTED 0xfffffffcu /* numbers wrap within the buffer */

static uint8_t buffers[CN_REORDER_MAX][16];

/* The i-th frame after the expected one. */
static void put(struct cn_reorder *r, uint32_t i)
{
	const struct cn_wire w = { .seq = EXPECTED + i, .length = 3 };
	const uint8_t payload[3] = { (uint8_t)i, 7, 9 };

	assert_true(cn_reorder_put(r, &w, payload, buffers[i - 1]));
}

static void reorder__empty(void **state)
{
	struct cn_reorder r = { 0 };
	struct cn_reorder_frame f;

	(void)state;
	assert_false(cn_reorder_has(&r, EXPECTED + 1));
	assert_false(cn_reorder_remove(&r, EXPECTED + 1, &f));
	assert_null(cn_reorder_drop(&r));
	assert_int_equal(cn_reorder_sack(&r, EXPECTED), 0);
	cn_reorder_free(&r);
}

/* In by any order, out by number. */
static void reorder__take(void **state)
{
	static const uint8_t order[CN_REORDER_MAX] = { 5, 1, 8, 2, 7, 3, 6, 4 };
	struct cn_reorder r = { 0 };
	struct cn_reorder_frame f;

	(void)state;
	for (int i = 0; i < CN_REORDER_MAX; i++) {
		put(&r, order[i]);
	}
	assert_int_equal(r.count, CN_REORDER_MAX);
	for (uint32_t i = 1; i <= CN_REORDER_MAX; i++) {
		assert_true(cn_reorder_remove(&r, EXPECTED + i, &f));
		assert_false(cn_reorder_has(&r, EXPECTED + i));
		assert_ptr_equal(f.data, buffers[i - 1]);
		assert_memory_equal(f.data, ((uint8_t[]){ (uint8_t)i, 7, 9 }), 3);
		assert_int_equal(f.wire.seq, EXPECTED + i);
	}
	assert_int_equal(r.count, 0);
	cn_reorder_free(&r);
}

/* A number eight further has the same slot, and is another frame. */
static void reorder__same_slot(void **state)
{
	struct cn_reorder r = { 0 };
	struct cn_reorder_frame f;

	(void)state;
	put(&r, 3);
	assert_true(cn_reorder_has(&r, EXPECTED + 3));
	assert_false(cn_reorder_has(&r, EXPECTED + 3 + CN_REORDER_MAX));
	assert_false(cn_reorder_remove(&r, EXPECTED + 3 + CN_REORDER_MAX, &f));
	assert_ptr_equal(cn_reorder_drop(&r), buffers[2]);
	cn_reorder_free(&r);
}

static void reorder__sack(void **state)
{
	struct cn_reorder r = { 0 };

	(void)state;
	put(&r, 1);
	assert_int_equal(cn_reorder_sack(&r, EXPECTED), CN_SACK_VALID | 0x01);
	put(&r, 8);
	put(&r, 3);
	assert_int_equal(cn_reorder_sack(&r, EXPECTED), CN_SACK_VALID | 0x85);
	assert_int_equal(cn_reorder_sack(&r, EXPECTED + 1), CN_SACK_VALID | 0x42);
	while (cn_reorder_drop(&r) != NULL) {
	}
	assert_int_equal(cn_reorder_sack(&r, EXPECTED), 0);
	cn_reorder_free(&r);
}

/* Every buffer comes back once. */
static void reorder__drop(void **state)
{
	struct cn_reorder r = { 0 };
	uint32_t seen = 0;

	(void)state;
	put(&r, 2);
	put(&r, 4);
	put(&r, 7);
	for (uint8_t *b; (b = cn_reorder_drop(&r)) != NULL;) {
		seen |= 1u << (b - buffers[0]) / (ptrdiff_t)sizeof(buffers[0]);
	}
	assert_int_equal(seen, 1u << 1 | 1u << 3 | 1u << 6);
	assert_int_equal(r.count, 0);
	cn_reorder_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reorder__empty),     cmocka_unit_test(reorder__take),
		cmocka_unit_test(reorder__same_slot), cmocka_unit_test(reorder__sack),
		cmocka_unit_test(reorder__drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
