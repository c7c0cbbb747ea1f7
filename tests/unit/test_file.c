/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/util/file.c: files of all lengths, and one that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/file.h"

#define MAX 200000

static void read_all__every_length(void **state)
{
	static const size_t lengths[] = { 0, 1, 65535, 65536, 65537, 131072, MAX };
	static char text[MAX];

	(void)state;
	for (size_t i = 0; i < MAX; i++) {
		text[i] = (char)(i * 7 + i / 256);
	}
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		FILE *f = tmpfile();
		size_t len = 99;
		char *got;

		assert_non_null(f);
		assert_int_equal(fwrite(text, 1, lengths[i], f), lengths[i]);
		rewind(f);
		got = cn_read_all(f, MAX, &len);
		assert_non_null(got);
		assert_int_equal(len, lengths[i]);
		assert_memory_equal(got, text, len);
		assert_int_equal(got[len], '\0');
		free(got);
		fclose(f);
	}
}

/* It ends, and the length shows that the file is too long. */
static void read_all__too_long(void **state)
{
	FILE *f = fopen("/dev/zero", "r");
	size_t len = 0;
	char *got;

	(void)state;
	assert_non_null(f);
	got = cn_read_all(f, MAX, &len);
	assert_non_null(got);
	assert_true(len > MAX && len < 4 * MAX);
	free(got);
	fclose(f);
}

static void read_all__error(void **state)
{
	FILE *f = fopen("/", "r");
	size_t len;

	(void)state;
	assert_non_null(f);
	assert_null(cn_read_all(f, MAX, &len));
	assert_int_equal(errno, EISDIR);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_all__every_length),
		cmocka_unit_test(read_all__too_long),
		cmocka_unit_test(read_all__error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
