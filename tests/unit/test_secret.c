/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/client/secret.c: owners by secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/env.h"
#include "coll/engine.h"

static void secret__names_an_owner(void **state)
{
	uint64_t a, b, c;
	struct cn_err err;

	(void)state;
	unsetenv("COLLNET_SECRET");
	assert_int_equal(cn_secret(NULL, &a, &err), COLLNET_OK);
	assert_int_equal(a, 0);
	assert_int_equal(cn_secret("", &a, &err), COLLNET_OK);
	assert_int_equal(a, 0);
	assert_int_equal(cn_secret("correct horse", &a, &err), COLLNET_OK);
	assert_int_equal(cn_secret("correct horsf", &b, &err), COLLNET_OK);
	assert_true((a & CN_OWNER_SECRET) != 0 && (b & CN_OWNER_SECRET) != 0 && a != b);
	setenv("COLLNET_SECRET", "correct horse", 1);
	assert_int_equal(cn_secret(NULL, &c, &err), COLLNET_OK);
	assert_true(a == c);
	assert_int_equal(cn_secret("correct horsf", &c, &err), COLLNET_OK);
	assert_true(b == c);
	unsetenv("COLLNET_SECRET");
}

static void secret__is_not_shown(void **state)
{
	uint64_t a;
	struct cn_err err;
	char longer[257];

	(void)state;
	memset(longer, 'x', 256);
	longer[256] = '\0';
	assert_int_equal(cn_secret("qwertyu", &a, &err), COLLNET_EINVAL);
	assert_null(strstr(err.text, "qwertyu"));
	assert_non_null(strstr(err.text, "COLLNET_SECRET"));
	assert_non_null(strstr(err.text, "is too short: expected 8 to 255 characters"));
	assert_int_equal(cn_secret(longer, &a, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "is too long"));
	assert_int_equal(cn_secret(longer + 1, &a, &err), COLLNET_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secret__names_an_owner),
		cmocka_unit_test(secret__is_not_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
