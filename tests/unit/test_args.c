/* SPDX-License-Identifier: BSD-2-Clause */
/* What a person types: lists, switches, windows, seconds; and what is refused. */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tools/tool.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void parse_sizes__lists(void **state)
{
	struct cn_err err = { 0 };
	uint64_t v[4];
	size_t n = 0;

	(void)state;
	assert_int_equal(tool_parse_sizes("1k,64k,1m,0", 1 << 20, v, 4, &n, &err), COLLNET_OK);
	assert_int_equal(n, 4);
	assert_int_equal(v[0], 1024);
	assert_int_equal(v[1], 65536);
	assert_int_equal(v[2], 1048576);
	assert_int_equal(v[3], 0);
}

/* Outputs are written only on success. */
static void parse_sizes__refused(void **state)
{
	static const char *const bad[] = { "",		",",  "1k,", ",1k",
					   "1k,,2k",	"x",  "-1",  "1k 2k",
					   "1,2,3,4,5", "2m", "1kk", "18446744073709551616" };
	uint64_t v[4] = { 7, 7, 7, 7 };
	size_t n = 9, i;

	(void)state;
	for (i = 0; i < COUNT(bad); i++) {
		struct cn_err err = { 0 };

		assert_int_equal(tool_parse_sizes(bad[i], 1 << 20, v, 4, &n, &err), COLLNET_EINVAL);
		assert_true(strlen(err.text) > 10);
		assert_int_equal(n, 9);
		assert_int_equal(v[0], 7);
	}
}

static void parse_switch__on_off(void **state)
{
	struct cn_err err = { 0 };
	bool v = false;

	(void)state;
	assert_int_equal(tool_parse_switch("on", &v, &err), COLLNET_OK);
	assert_true(v);
	assert_int_equal(tool_parse_switch("off", &v, &err), COLLNET_OK);
	assert_false(v);
	assert_int_equal(tool_parse_switch("yes", &v, &err), COLLNET_EINVAL);
}

static void parse_name__index_or_list(void **state)
{
	static const char *const names[] = { "text", "json", "dot", NULL };
	struct cn_err err = { 0 };
	uint32_t i = 9;

	(void)state;
	assert_int_equal(tool_parse_name("dot", names, &i, &err), COLLNET_OK);
	assert_int_equal(i, 2);
	assert_int_equal(tool_parse_name("text ", names, &i, &err), COLLNET_EINVAL);
	assert_string_equal(err.text, "'text ' is unknown; there are text, json, dot");
	assert_int_equal(i, 2);
}

static void list__is_cut(void **state)
{
	char list[8] = "";

	(void)state;
	assert_string_equal(tool_list(list, sizeof(list), "ab"), "ab");
	assert_string_equal(tool_list(list, sizeof(list), "cdefg"), "ab, cde");
	assert_string_equal(tool_list(list, sizeof(list), "h"), "ab, cde");
}

static void parse_window__values(void **state)
{
	struct cn_err err = { 0 };
	uint32_t v = 0;

	(void)state;
	assert_int_equal(tool_parse_window("off", &v, &err), COLLNET_OK);
	assert_int_equal(v, COLLNET_WINDOW_OFF);
	assert_int_equal(tool_parse_window("auto", &v, &err), COLLNET_OK);
	assert_int_equal(v, COLLNET_WINDOW_AUTO);
	assert_int_equal(tool_parse_window("65535", &v, &err), COLLNET_OK);
	assert_int_equal(v, 65535);
	assert_int_equal(tool_parse_window("0", &v, &err), COLLNET_EINVAL);
	assert_int_equal(tool_parse_window("65536", &v, &err), COLLNET_EINVAL);
	assert_int_equal(tool_parse_window("5x", &v, &err), COLLNET_EINVAL);
}

static void parse_seconds__values(void **state)
{
	static const char *const bad[] = { "",	    ".",	   "0",	       "0.000",
					   "1.2.3", "0.0001",	   "1.0001",   "-1",
					   "1s",    "99999999999", "86400.001" };
	struct cn_err err = { 0 };
	uint32_t ms = 0;
	size_t i;

	(void)state;
	assert_int_equal(tool_parse_seconds("30", &ms, &err), COLLNET_OK);
	assert_int_equal(ms, 30000);
	assert_int_equal(tool_parse_seconds("0.5", &ms, &err), COLLNET_OK);
	assert_int_equal(ms, 500);
	assert_int_equal(tool_parse_seconds("1.025", &ms, &err), COLLNET_OK);
	assert_int_equal(ms, 1025);
	assert_int_equal(tool_parse_seconds("86400.000", &ms, &err), COLLNET_OK);
	assert_int_equal(ms, 86400000);
	for (i = 0; i < COUNT(bad); i++) {
		assert_int_equal(tool_parse_seconds(bad[i], &ms, &err), COLLNET_EINVAL);
		assert_int_equal(ms, 86400000);
	}
}

static void format__units(void **state)
{
	char b[TOOL_TEXT];

	(void)state;
	assert_string_equal(tool_format_size(1024, b), "1 KiB");
	assert_string_equal(tool_format_size(1000, b), "1000 B");
	assert_string_equal(tool_format_size(3 << 20, b), "3 MiB");
	assert_string_equal(tool_format_size(0, b), "0 B");
	assert_string_equal(tool_format_rate(20000000, b), "20 Mbit/s");
	assert_string_equal(tool_format_rate(2500000000u, b), "2.5 Gbit/s");
	assert_string_equal(tool_format_ns(1500, b), "1.5 us");
	assert_string_equal(tool_format_ns(2500000, b), "2.50 ms");
	assert_string_equal(tool_format_ns(3000000000u, b), "3.00 s");
}

static void parse_u32__bounds(void **state)
{
	struct cn_err err = { 0 };
	uint32_t n = 7;

	(void)state;
	assert_int_equal(tool_parse_u32("5", 2, 9, &n, &err), COLLNET_OK);
	assert_int_equal(n, 5);
	assert_int_equal(tool_parse_u32("4294967295", 0, UINT32_MAX, &n, &err), COLLNET_OK);
	assert_int_equal(n, UINT32_MAX);
	assert_int_equal(tool_parse_u32("1", 2, 9, &n, &err), COLLNET_EINVAL);
	assert_string_equal(err.text, "'1' is not a number from 2 to 9");
	assert_int_equal(tool_parse_u32("4294967296", 0, UINT32_MAX, &n, &err), COLLNET_EINVAL);
	assert_int_equal(n, UINT32_MAX);
}

struct taken {
	char text[64];
};

/* "a=ARG;" and "b;": c is refused. */
static int take(void *into, int opt, char *arg, struct cn_err *err)
{
	struct taken *t = into;
	size_t len = strlen(t->text);

	if (opt == 'c') {
		return cn_fail(err, COLLNET_EINVAL, "not c");
	}
	snprintf(t->text + len, sizeof(t->text) - len, "%c%s%s;", opt, arg != NULL ? "=" : "",
		 arg != NULL ? arg : "");
	return COLLNET_OK;
}

static void options__in_order_and_refused(void **state)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "alpha", required_argument, NULL, 'a' },
		{ "beta", no_argument, NULL, 'b' },
		{ "gamma", no_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	static const struct {
		int rc;
		const char *argv[5], *taken;
	} cases[] = {
		{ TOOL_OK, { "v", "--alpha", "1", "word", "--beta" }, "a=1;b;" },
		{ TOOL_OK, { "v", "--beta", "--alpha=x" }, "b;a=x;" },
		{ -1, { "v", "--beta", "-h", "--gamma" }, "b;" },
		{ TOOL_USAGE, { "v", "--beta", "--gamma" }, "b;" },
		{ TOOL_USAGE, { "v", "--beta", "--delta" }, "b;" },
		{ TOOL_USAGE, { "v", "--beta", "--alpha" }, "b;" },
		{ TOOL_USAGE, { "v", "--alpha", "--beta", "1" }, "" },
		{ TOOL_OK, { "v", "--alpha=--beta", "--alpha", "-1" }, "a=--beta;a=-1;" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct taken t = { "" };
		char *argv[6] = { NULL };
		int argc = 0;

		for (; argc < 5 && cases[i].argv[argc] != NULL; argc++) {
			argv[argc] = (char *)(uintptr_t)cases[i].argv[argc];
		}
		assert_int_equal(tool_options(argc, argv, options, take, &t), cases[i].rc);
		assert_string_equal(t.text, cases[i].taken);
		if (i == 0) {
			assert_string_equal(argv[optind], "word");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_sizes__lists),
		cmocka_unit_test(parse_sizes__refused),
		cmocka_unit_test(parse_switch__on_off),
		cmocka_unit_test(parse_name__index_or_list),
		cmocka_unit_test(list__is_cut),
		cmocka_unit_test(parse_window__values),
		cmocka_unit_test(parse_seconds__values),
		cmocka_unit_test(format__units),
		cmocka_unit_test(parse_u32__bounds),
		cmocka_unit_test(options__in_order_and_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
