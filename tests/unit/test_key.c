/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/node/key.c: what is a file with a key, and what is said of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/key.h"

static char path[] = "/tmp/collnet-key-XXXXXX";
static struct cn_err err;

static int begin(void **state)
{
	const int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
	(void)state;
	return unlink(path);
}

static int read_key(const char *text, mode_t mode, uint8_t out[CN_SIPHASH_KEY])
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	memset(&err, 0, sizeof(err));
	return cn_key_read(path, 0, out, &err);
}

static void key__digits(void **state)
{
	static const uint8_t expected[CN_SIPHASH_KEY] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
							  0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98,
							  0x76, 0x54, 0x32, 0x10 };
	uint8_t out[CN_SIPHASH_KEY];

	(void)state;
	for (int line = 0; line < 2; line++) {
		memset(out, 0, sizeof(out));
		assert_int_equal(read_key(line == 1 ? "0123456789abcdefFEDCBA9876543210\n"
						    : "0123456789abcdefFEDCBA9876543210",
					  0600, out),
				 COLLNET_OK);
		assert_memory_equal(out, expected, sizeof(out));
	}
}

static void key__other_text(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"0123456789abcdefFEDCBA987654321",
		"0123456789abcdefFEDCBA987654321\n",
		"0123456789abcdefFEDCBA98765432100",
		"0123456789abcdefFEDCBA9876543210\n\n",
		"0123456789abcdefFEDCBA9876543210 ",
		"0123456789abcdefgEDCBA9876543210",
		"0x23456789abcdefFEDCBA9876543210",
		" 123456789abcdefFEDCBA9876543210",
	};
	uint8_t out[CN_SIPHASH_KEY];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(read_key(texts[i], 0600, out), COLLNET_EINVAL);
		assert_non_null(strstr(err.text, "expected one line of 32 hexadecimal digits"));
	}
}

static void key__of_its_owner_alone(void **state)
{
	uint8_t out[CN_SIPHASH_KEY];

	(void)state;
	for (mode_t bit = 01; bit <= 040; bit <<= 1) {
		assert_int_equal(read_key("0123456789abcdef0123456789abcdef\n", 0600 | bit, out),
				 COLLNET_EPERM);
		assert_non_null(strstr(err.text, "chmod 600"));
	}
	assert_int_equal(cn_key_read("/", 0, out, &err), COLLNET_EINVAL);
	assert_int_equal(cn_key_read("/nonexistent", 0, out, &err), COLLNET_ESYSTEM);
	assert_non_null(strstr(err.text, "/nonexistent: No such file"));
}

/* Another user's file is a key that he knows. */
static void key__of_another_user(void **state)
{
	static const char digits[] = "0123456789abcdef0123456789abcdef\n";
	uint8_t out[CN_SIPHASH_KEY];

	(void)state;
	assert_int_equal(read_key(digits, 0600, out), COLLNET_OK);
	if (geteuid() != 0 || chown(path, 12345, (gid_t)-1) != 0) {
		print_message("skipped: only root has files of others, and can read them\n");
		skip();
	}
	assert_int_equal(cn_key_read(path, 0, out, &err), COLLNET_EPERM);
	assert_non_null(strstr(err.text, "belongs to user 12345"));
	assert_int_equal(cn_key_read(path, 12345, out, &err), COLLNET_OK);
	assert_int_equal(chown(path, 0, (gid_t)-1), 0);
	assert_int_equal(cn_key_read(path, 12345, out, &err), COLLNET_OK);
}

static void key__is_in_no_core_dump(void **state)
{
#ifdef CN_SANITIZED
	const int dumpable = 1; /* sanitizers trace the process */
#else
	const int dumpable = 0;
#endif

	(void)state;
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	cn_key_protect();
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), dumpable);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key__digits),
		cmocka_unit_test(key__other_text),
		cmocka_unit_test(key__of_its_owner_alone),
		cmocka_unit_test(key__of_another_user),
		cmocka_unit_test(key__is_in_no_core_dump),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
