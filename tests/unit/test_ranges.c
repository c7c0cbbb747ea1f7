/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/ranges.c: lists of ranks and names as ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/ranges.h"

static const char *ranks(const uint32_t *r, uint32_t n, size_t cap)
{
	static char text[64];
	struct cn_rank_list l = { .text = text, .cap = cap };

	text[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		cn_rank_list_add(&l, r[i]);
	}
	cn_rank_list_end(&l);
	return text;
}

static void rank_list__ranges(void **state)
{
	(void)state;
	assert_string_equal(ranks(NULL, 0, 64), "");
	assert_string_equal(ranks((uint32_t[]){ 3 }, 1, 64), "3");
	assert_string_equal(ranks((uint32_t[]){ 3, 5, 7, 8, 9 }, 5, 64), "3, 5, 7-9");
	assert_string_equal(ranks((uint32_t[]){ 0, 1, 3, 4 }, 4, 64), "0-1, 3-4");
	assert_string_equal(ranks((uint32_t[]){ 10, 20, 30, 40 }, 4, 9), "10, 20, ");
	assert_string_equal(ranks((uint32_t[]){ 10, 20 }, 2, 1), "");
}

static const char *names(const char *const *n)
{
	static struct cn_name_list l;

	memset(&l, 0, sizeof(l));
	for (; *n != NULL; n++) {
		cn_name_list_add(&l, *n);
	}
	cn_name_list_end(&l);
	return l.text;
}
#define NAMES(...) names((const char *const[]){ __VA_ARGS__, NULL })

static void name_list__ranges(void **state)
{
	(void)state;
	assert_string_equal(NAMES("h8", "h9", "h10", "h20"), "h8-h10, h20");
	assert_string_equal(NAMES("a", "b"), "a, b");
	assert_string_equal(NAMES("a1", "b2"), "a1, b2");
	assert_string_equal(NAMES("r1h9", "r2h1"), "r1h9, r2h1");
	assert_string_equal(NAMES("h1", "h3", "h2"), "h1, h3, h2");
	assert_string_equal(NAMES("1", "2", "3"), "1-3");
	assert_string_equal(NAMES("h", "h1"), "h, h1");
}

/* More than the text holds is cut, and the text ends. */
static void name_list__is_cut(void **state)
{
	static char name[100][8];
	const char *list[101] = { NULL };

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(name[i], sizeof(name[i]), "h%u", 2 * i);
		list[i] = name[i];
	}
	assert_int_equal(strlen(names(list)), 199);
	assert_int_equal(strncmp(names(list), "h0, h2, h4, ", 12), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rank_list__ranges),
		cmocka_unit_test(name_list__ranges),
		cmocka_unit_test(name_list__is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
