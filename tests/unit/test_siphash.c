/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/util/siphash.c against the values of the paper and of its reference implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/siphash.h"

static const uint8_t key[CN_SIPHASH_KEY] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
static const uint8_t data[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

/* Appendix A of the paper. */
static void siphash__paper(void **state)
{
	(void)state;
	assert_true(cn_siphash(key, data, 15) == 0xa129ca6149be45e5u);
}

/* vectors_sip64 of the reference implementation: the first so many bytes of `data`. */
static void siphash__reference(void **state)
{
	static const uint64_t expected[] = {
		0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu, 0x0d6c8009d9a94f5au, 0x85676696d7fb7e2du,
		0xcf2794e0277187b7u, 0x18765564cd99a68du, 0xcbc9466e58fee3ceu, 0xab0200f58b01d137u,
		0x93f5f5799a932462u, 0x9e0082df0ba9e4b0u,
	};

	(void)state;
	for (size_t len = 0; len < sizeof(expected) / sizeof(expected[0]); len++) {
		assert_true(cn_siphash(key, data, len) == expected[len]);
	}
}

/* vectors_sip128 of the reference implementation, and values of `openssl mac SIPHASH`, in two
 * pieces. */
static void siphash__tag(void **state)
{
	static const struct {
		size_t first, len;
		uint8_t tag[CN_SIPHASH_TAG];
	} cases[] = {
		{ 0,
		  0,
		  { 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7,
		    0x55, 0x02, 0x93 } },
		{ 0,
		  1,
		  { 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b,
		    0x22, 0xfc, 0x45 } },
		{ 0,
		  15,
		  { 0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97,
		    0xcf, 0xc3, 0xd9 } },
		{ 8,
		  7,
		  { 0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97,
		    0xcf, 0xc3, 0xd9 } },
		{ 8,
		  0,
		  { 0x3b, 0x62, 0xa9, 0xba, 0x62, 0x58, 0xf5, 0x61, 0x0f, 0x83, 0xe2, 0x64, 0xf3,
		    0x14, 0x97, 0xb4 } },
		{ 8,
		  8,
		  { 0x6e, 0xe2, 0xa4, 0xca, 0x67, 0xb0, 0x54, 0xbb, 0xfd, 0x33, 0x15, 0xbf, 0x85,
		    0x23, 0x05, 0x77 } },
	};
	uint8_t out[CN_SIPHASH_TAG];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cn_siphash_tag(key, data, cases[i].first, data + cases[i].first, cases[i].len, out);
		assert_memory_equal(out, cases[i].tag, sizeof(out));
	}
}

/* Another bit of the key or of the data changes about half of the value's bits. */
static void siphash__every_bit_counts(void **state)
{
	uint64_t value = cn_siphash(key, data, 16);

	(void)state;
	for (unsigned int bit = 0; bit < 256; bit++) {
		uint8_t k[16], d[16];
		int differ;

		for (int i = 0; i < 16; i++) {
			k[i] = key[i] ^
			       (bit < 128 && bit / 8 == (unsigned int)i ? 1 << bit % 8 : 0);
			d[i] = data[i] ^
			       (bit >= 128 && bit / 8 - 16 == (unsigned int)i ? 1 << bit % 8 : 0);
		}
		differ = __builtin_popcountll(cn_siphash(k, d, 16) ^ value);
		assert_uint_in_range(differ, 10, 54);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash__paper),
		cmocka_unit_test(siphash__reference),
		cmocka_unit_test(siphash__tag),
		cmocka_unit_test(siphash__every_bit_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
