/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/serial.h: differences and ranges around the wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/serial.h"

static const uint32_t starts[] = { 0, 1, 1000, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff };
#define STARTS (sizeof(starts) / sizeof(starts[0]))

static void serial_diff__wraps(void **state)
{
	(void)state;
	for (size_t i = 0; i < STARTS; i++) {
		for (int32_t d = -2000; d <= 2000; d += 7) {
			assert_int_equal(cn_serial_diff(starts[i], starts[i] + (uint32_t)d), d);
		}
	}
}

static void serial_before__wraps(void **state)
{
	(void)state;
	for (size_t i = 0; i < STARTS; i++) {
		uint32_t a = starts[i];

		assert_false(cn_serial_before(a, a));
		assert_true(cn_serial_before(a, a + 1));
		assert_false(cn_serial_before(a + 1, a));
		assert_true(cn_serial_before(a, a + 0x7fffffff));
		assert_false(cn_serial_before(a, a + 0x80000001));
	}
}

static void serial_within__wraps(void **state)
{
	(void)state;
	for (size_t i = 0; i < STARTS; i++) {
		uint32_t a = starts[i];

		assert_true(cn_serial_within(a, a, a));
		assert_false(cn_serial_within(a, a + 1, a));
		assert_false(cn_serial_within(a, a - 1, a));
		assert_true(cn_serial_within(a, a + 16, a + 16));
		assert_false(cn_serial_within(a, a + 17, a + 16));
		assert_false(cn_serial_within(a, a - 1, a + 16));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serial_diff__wraps),
		cmocka_unit_test(serial_before__wraps),
		cmocka_unit_test(serial_within__wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
