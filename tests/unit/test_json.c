/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON writer: commas, nesting, escapes, and what is not a number. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/tool.h"

struct text {
	char *data;
	size_t len;
	FILE *f;
	struct json j;
};

static void begin(struct text *t)
{
	t->f = open_memstream(&t->data, &t->len);
	assert_non_null(t->f);
	json_begin(&t->j, t->f);
}

static void expect(struct text *t, const char *text)
{
	assert_true(json_end(&t->j));
	fclose(t->f);
	assert_string_equal(t->data, text);
	free(t->data);
}

static void json__nesting_and_commas(void **state)
{
	struct text t;

	(void)state;
	begin(&t);
	json_object(&t.j, NULL);
	json_uint(&t.j, "a", UINT64_MAX);
	json_array(&t.j, "b");
	json_array_end(&t.j);
	json_array(&t.j, "c");
	json_uint(&t.j, NULL, 1);
	json_object(&t.j, NULL);
	json_bool(&t.j, "d", true);
	json_null(&t.j, "e");
	json_object_end(&t.j);
	json_bool(&t.j, NULL, false);
	json_array_end(&t.j);
	json_object(&t.j, "f");
	json_object_end(&t.j);
	json_object_end(&t.j);
	expect(&t, "{\"a\": 18446744073709551615, \"b\": [], "
		   "\"c\": [1, {\"d\": true, \"e\": null}, false], \"f\": {}}\n");
}

static void json_double__not_finite_is_null(void **state)
{
	struct text t;

	(void)state;
	begin(&t);
	json_array(&t.j, NULL);
	json_double(&t.j, NULL, 1.25, 1);
	json_double(&t.j, NULL, -3, 0);
	json_double(&t.j, NULL, NAN, 2);
	json_double(&t.j, NULL, INFINITY, 2);
	json_array_end(&t.j);
	expect(&t, "[1.2, -3, null, null]\n");
}

static void json_string__escapes(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain", "\"plain\"\n" },
		{ "a\"b\\c/", "\"a\\\"b\\\\c/\"\n" },
		{ "tab\tnew\n\x7f", "\"tab\\u0009new\\u000a\\u007f\"\n" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x84",
		  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x84\"\n" },
		{ "\xff", "\"\\u00ff\"\n" },
		{ "\xc3", "\"\\u00c3\"\n" },			   /* cut short */
		{ "\xc0\xaf", "\"\\u00c0\\u00af\"\n" },		   /* overlong */
		{ "\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\"\n" }, /* a surrogate */
		{ "\xf4\x90\x80\x80", "\"\\u00f4\\u0090\\u0080\\u0080\"\n" },
		{ "", "\"\"\n" },
	};
	struct text t;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&t);
		json_string(&t.j, NULL, cases[i].in);
		expect(&t, cases[i].out);
	}
	begin(&t);
	json_string(&t.j, NULL, NULL);
	expect(&t, "null\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json__nesting_and_commas),
		cmocka_unit_test(json_double__not_finite_is_null),
		cmocka_unit_test(json_string__escapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
