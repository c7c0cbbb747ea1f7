/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/cursor.c: fields in network byte order, and never beyond the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/cursor.h"

static void cursor__network_byte_order(void **state)
{
	static const uint8_t want[] = { 1,  2,	3,  4,	5,  6,	7, 8,	9,
					10, 11, 12, 13, 14, 15, 2, 'h', '0' };
	uint8_t m[sizeof(want)];
	struct cn_cursor w = { m, m + sizeof(m), false }, r;
	char text[3];

	(void)state;
	cn_put8(&w, 1);
	cn_put16(&w, 0x0203);
	cn_put32(&w, 0x04050607);
	cn_put64(&w, 0x08090a0b0c0d0e0f);
	cn_put_text(&w, "h0");
	assert_false(w.bad);
	assert_ptr_equal(w.at, w.end);
	assert_memory_equal(m, want, sizeof(want));
	r = cn_cursor_of(m, sizeof(m));
	assert_int_equal(cn_get8(&r), 1);
	assert_int_equal(cn_get16(&r), 0x0203);
	assert_int_equal(cn_get32(&r), 0x04050607);
	assert_true(cn_get64(&r) == 0x08090a0b0c0d0e0f);
	assert_true(cn_get_text(&r, text, sizeof(text)));
	assert_string_equal(text, "h0");
	assert_false(r.bad);
}

/* One byte too few for each field: nothing is written beyond, and the cursor stays bad. */
static void cursor__stays_bad(void **state)
{
	uint8_t m[16];

	(void)state;
	for (size_t cap = 0; cap < 8; cap++) {
		struct cn_cursor w = { m, m + cap, false };

		memset(m, 0xee, sizeof(m));
		cn_put64(&w, 0);
		assert_true(w.bad);
		cn_put8(&w, 0);
		assert_true(w.bad);
		for (size_t i = cap; i < sizeof(m); i++) {
			assert_int_equal(m[i], 0xee);
		}
	}
	for (size_t len = 0; len < 4; len++) {
		struct cn_cursor r = cn_cursor_of(m, len);

		cn_get32(&r);
		assert_true(r.bad);
		assert_int_equal(cn_get8(&r), 0);
		assert_int_equal(cn_get16(&r), 0);
		assert_true(cn_get64(&r) == 0);
	}
}

static void cursor_text__refuses(void **state)
{
	static const struct {
		uint8_t m[4];
		size_t len, cap;
	} bad[] = {
		{ { 0 }, 0, 8 },		/* no length */
		{ { 3, 'a', 'b' }, 3, 8 },	/* shorter than it says */
		{ { 3, 'a', 'b', 'c' }, 4, 3 }, /* no room for the zero */
		{ { 2, 'a', 0 }, 3, 8 },	/* a zero inside */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cn_cursor r = cn_cursor_of(bad[i].m, bad[i].len);
		char text[8] = "kept";

		assert_false(cn_get_text(&r, text, bad[i].cap));
		assert_true(r.bad);
		assert_string_equal(text, "kept");
	}
}

static void cursor_text__is_cut_at_255(void **state)
{
	uint8_t m[300];
	char in[300], out[300];
	struct cn_cursor w = { m, m + sizeof(m), false }, r;

	(void)state;
	memset(in, 'x', sizeof(in) - 1);
	in[sizeof(in) - 1] = '\0';
	cn_put_text(&w, in);
	assert_int_equal(w.at - m, 256);
	r = cn_cursor_of(m, sizeof(m));
	assert_true(cn_get_text(&r, out, sizeof(out)));
	assert_int_equal(strlen(out), 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cursor__network_byte_order),
		cmocka_unit_test(cursor__stays_bad),
		cmocka_unit_test(cursor_text__refuses),
		cmocka_unit_test(cursor_text__is_cut_at_255),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
