/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/util: parsing of numbers, rates, sizes and names; errors; the log callback. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/ascending.h"
#include "util/bits.h"
#include "util/util.h"

static void parse_uint__whole_string_within_bounds(void **state)
{
	uint64_t n = 77;

	(void)state;
	assert_true(cn_parse_uint("0", 0, 9, &n));
	assert_int_equal(n, 0);
	assert_true(cn_parse_uint("18446744073709551615", 0, UINT64_MAX, &n));
	assert_true(n == UINT64_MAX);
	n = 77;
	assert_false(cn_parse_uint("18446744073709551616", 0, UINT64_MAX, &n));
	assert_false(cn_parse_uint("", 0, 9, &n));
	assert_false(cn_parse_uint("-1", 0, 9, &n));
	assert_false(cn_parse_uint("+1", 0, 9, &n));
	assert_false(cn_parse_uint(" 1", 0, 9, &n));
	assert_false(cn_parse_uint("1 ", 0, 9, &n));
	assert_false(cn_parse_uint("0x1", 0, 9, &n));
	assert_false(cn_parse_uint("10", 0, 9, &n));
	assert_false(cn_parse_uint("1", 2, 9, &n));
	assert_int_equal(n, 77);
}

static void parse_rate__units(void **state)
{
	static const struct {
		const char *text;
		uint64_t rate;
	} good[] = {
		{ "9600bit", 9600 },	    { "1bit", 1 },	    { "64kbit", 64000 },
		{ "20mbit", 20000000 },	    { "20Mbit", 20000000 }, { "1gbit", 1000000000 },
		{ "2.5gbit", 2500000000 },  { "0.5mbit", 500000 },  { "1.000000000mbit", 1000000 },
		{ "1tbit", 1000000000000 },
	};
	uint64_t rate;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		rate = 0;
		assert_true(cn_parse_rate(good[i].text, &rate));
		assert_true(rate == good[i].rate);
	}
}

static void parse_rate__refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"0",
		"9600",
		"0mbit",
		"mbit",
		"20 mbit",
		"20mbits",
		"20mb",
		"-1mbit",
		"1.5",
		"1.5bit",
		"1.",
		"1.mbit",
		".5mbit",
		"1..5mbit",
		"1.5.5mbit",
		"1e3",
		"none",
		"20mbit ",
		"1.00000001mbit",
		"1.0001kbit",
		"18446744073709551615kbit",
		"99999999999999999999",
	};
	uint64_t rate = 77;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(cn_parse_rate(bad[i], &rate));
	}
	assert_int_equal(rate, 77);
}

static void parse_size__powers_of_1024(void **state)
{
	uint64_t n = 0;

	(void)state;
	assert_true(cn_parse_size("512", &n));
	assert_int_equal(n, 512);
	assert_true(cn_parse_size("0", &n));
	assert_int_equal(n, 0);
	assert_true(cn_parse_size("64k", &n));
	assert_int_equal(n, 65536);
	assert_true(cn_parse_size("1M", &n));
	assert_int_equal(n, 1048576);
	assert_true(cn_parse_size("17179869183g", &n));
	assert_true(n == 0xffffffffc0000000u);
	n = 77;
	assert_false(cn_parse_size("17179869184g", &n));
	assert_false(cn_parse_size("", &n));
	assert_false(cn_parse_size("k", &n));
	assert_false(cn_parse_size("1kb", &n));
	assert_false(cn_parse_size("1.5k", &n));
	assert_false(cn_parse_size("-1", &n));
	assert_int_equal(n, 77);
}

static void valid_name__length_and_letters(void **state)
{
	char longest[COLLNET_NAME_MAX + 2];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[COLLNET_NAME_MAX + 1] = '\0';
	assert_false(cn_valid_name(longest));
	longest[COLLNET_NAME_MAX] = '\0';
	assert_true(cn_valid_name(longest));
	assert_true(cn_valid_name("job/12.3:a@B_c-d"));
	assert_false(cn_valid_name(""));
	assert_false(cn_valid_name("two words"));
	assert_false(cn_valid_name("new\nline"));
	assert_false(cn_valid_name("\xc3\xa4"));
	for (int i = 1; i < 256; i++) {
		const char name[] = { (char)i, '\0' };

		assert_int_equal(cn_valid_name(name), isalnum(i) || strchr("._:@/-", i) != NULL);
	}
}

static void fail__writes_code_and_message(void **state)
{
	char longer[CN_ERR_TEXT * 2];
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_fail(&err, COLLNET_EPEER, "node %s is silent", "h3"), COLLNET_EPEER);
	assert_int_equal(err.code, COLLNET_EPEER);
	assert_string_equal(err.text, "node h3 is silent");
	assert_int_equal(cn_fail(NULL, COLLNET_ENOMEM, "nobody reads this"), COLLNET_ENOMEM);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	cn_fail(&err, COLLNET_EINVAL, "%s", longer);
	assert_int_equal(strlen(err.text), CN_ERR_TEXT - 1);
}

struct heard {
	unsigned int n;
	enum collnet_log_level level;
	char line[100];
};

static void hear(void *arg, enum collnet_log_level level, const char *line)
{
	struct heard *h = arg;

	h->n++;
	h->level = level;
	strncpy(h->line, line, sizeof(h->line) - 1);
}

static void log__goes_to_the_callback(void **state)
{
	struct heard h = { 0 };

	(void)state;
	cn_log(COLLNET_LOG_ERROR, "to nobody");
	collnet_set_log(hear, &h);
	cn_log(COLLNET_LOG_WARNING, "peer %d", 7);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.level, COLLNET_LOG_WARNING);
	assert_string_equal(h.line, "peer 7");
	collnet_set_log(NULL, NULL);
	cn_log(COLLNET_LOG_ERROR, "to nobody again");
	assert_int_equal(h.n, 1);
}

static void random__is_a_seeded_stream(void **state)
{
	uint64_t a = 1, b = 1, c = 2;

	(void)state;
	assert_true(cn_random(&a) == cn_random(&b));
	assert_true(cn_random(&a) == cn_random(&b));
	assert_true(cn_random(&a) != cn_random(&c));
	/* the first value of the published splitmix64 for the seed 0 */
	assert_true(cn_mix64(0) == 0xe220a8397b1dcdafu);
}

static void parse_ethertype__decimal_and_hexadecimal(void **state)
{
	uint64_t n = 0;

	(void)state;
	assert_true(cn_parse_ethertype("0x0600", &n) && n == 0x600);
	assert_true(cn_parse_ethertype("0XfFfF", &n) && n == 0xFFFF);
	assert_true(cn_parse_ethertype("34997", &n) && n == 0x88B5);
	assert_false(cn_parse_ethertype("0x05ff", &n));
	assert_false(cn_parse_ethertype("1535", &n));
	assert_false(cn_parse_ethertype("0x10000", &n));
	assert_false(cn_parse_ethertype("0x88\x11", &n));
	assert_false(cn_parse_ethertype("", &n));
}

static void ascending__orders_extremes(void **state)
{
	const uint32_t u[] = { 0, 1, UINT32_MAX };
	const uint64_t v[] = { 0, UINT32_MAX, UINT64_MAX };
	const double d[] = { -1e300, 0.25, 0.5 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 3; k++) {
			const int expected = (i > k) - (i < k);

			assert_int_equal(cn_ascending_u32(&u[i], &u[k]), expected);
			assert_int_equal(cn_ascending_u64(&v[i], &v[k]), expected);
			assert_int_equal(cn_ascending_double(&d[i], &d[k]), expected);
		}
	}
}

static void bits__each_by_itself(void **state)
{
	uint64_t set[CN_BIT_WORDS(129)] = { 0 };

	(void)state;
	assert_int_equal(sizeof(set), 3 * sizeof(*set));
	assert_int_equal(CN_BIT_WORDS(128), 2);
	for (uint32_t i = 0; i < 129; i++) {
		cn_bit_set(set, i);
		for (uint32_t k = 0; k < 129; k++) {
			assert_int_equal(cn_bit(set, k), k == i);
		}
		cn_bit_clear(set, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_uint__whole_string_within_bounds),
		cmocka_unit_test(parse_rate__units),
		cmocka_unit_test(parse_rate__refuses),
		cmocka_unit_test(parse_size__powers_of_1024),
		cmocka_unit_test(valid_name__length_and_letters),
		cmocka_unit_test(fail__writes_code_and_message),
		cmocka_unit_test(log__goes_to_the_callback),
		cmocka_unit_test(random__is_a_seeded_stream),
		cmocka_unit_test(ascending__orders_extremes),
		cmocka_unit_test(bits__each_by_itself),
		cmocka_unit_test(parse_ethertype__decimal_and_hexadecimal),
	};

	return cmocka_run_group_tests_name("util", tests, NULL, NULL);
}
