/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/link/load.c: libraries that are there, that are not, and that lack a function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "link/load.h"

static double (*cosine)(double);
static void *nothing;

static void load__functions(void **state)
{
	static const struct cn_load_symbol symbols[] = { { "cos", (void **)&cosine } };
	struct cn_err err = { .code = 0 };

	(void)state;
	assert_int_equal(cn_load("a test", "libm.so.6", "libc6", symbols, 1, &err), COLLNET_OK);
	assert_true(cosine(0) == 1);
}

static void load__missing_library_is_named_with_its_package(void **state)
{
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_load("link pcap", "libnone.so.7", "libnone7", NULL, 0, &err),
			 COLLNET_EUNSUPPORTED);
	assert_string_equal(err.text,
			    "link pcap needs libnone.so.7: install the Debian package libnone7");
}

static void load__missing_function_is_named(void **state)
{
	static const struct cn_load_symbol symbols[] = { { "cos", (void **)&cosine },
							 { "no_such_function", &nothing } };
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_load("a test", "libm.so.6", "libc6", symbols, 2, &err),
			 COLLNET_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "a test needs no_such_function() of libm.so.6"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load__functions),
		cmocka_unit_test(load__missing_library_is_named_with_its_package),
		cmocka_unit_test(load__missing_function_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
