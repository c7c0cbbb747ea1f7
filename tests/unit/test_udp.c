/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/link/udp.c: headers and checksums of the encapsulation udp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "link/udp.h"
#include "util/byteorder.h"
#include "util/util.h"

#define PORT 0x88b5
#define MOST 1472

static const uint8_t addresses[12] = { 2, 0, 0, 0, 0x12, 0x34, 2, 0, 0, 0, 0xab, 0xcd };
static uint8_t frame[CN_ETH_HEADER + MOST], out[sizeof(frame) + CN_UDP_HEADER];

static size_t make(size_t bytes)
{
	memcpy(frame, addresses, sizeof(addresses));
	cn_put_be16(frame + 12, PORT);
	for (size_t i = 0; i < bytes; i++) {
		frame[CN_ETH_HEADER + i] = (uint8_t)cn_mix64(i * 3001 + bytes);
	}
	return cn_udp_encapsulate(out, frame, CN_ETH_HEADER + bytes, PORT);
}

static bool taken(size_t len, bool trusted)
{
	const uint8_t *payload;
	size_t bytes;

	return cn_udp_get(out, len, PORT, trusted, &payload, &bytes);
}

/* The Internet checksum as RFC 1071 defines it, word by word. */
static uint16_t checksum(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i += 2) {
		sum += (uint32_t)p[i] << 8 | (i + 1 < len ? p[i + 1] : 0);
	}
	while (sum >> 16 != 0) {
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)~sum;
}

static void put__headers(void **state)
{
	static const uint8_t
		wanted[CN_UDP_HEAD - 2] = {
			2,    0,    0,	  0,	0x12, 0x34, 2,	  0, 0, 0,
			0xab, 0xcd, 8,	  0, /* Ethernet */
			0x45, 0,    0,	  128,	0,    0,    0x40, 0, 1, 17,
			0x9c, 0xbe, 169,  254,	0xab, 0xcd, 224,  0, 0, 254, /* IPv4: DF, TTL 1 */
			0xd2, 0x34, 0x88, 0xb5, 0,    108,		     /* UDP */
		};
	uint8_t head[CN_UDP_HEAD];

	(void)state;
	cn_udp_put(head, addresses, PORT, 0, 100);
	assert_memory_equal(head, wanted, 24);
	assert_memory_equal(head + 26, wanted + 26, sizeof(wanted) - 26);
	assert_int_equal(checksum(head + 14, 20, 0), 0);
}

static void checksum__every_length(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes <= MOST; bytes += bytes < 200 ? 1 : 53) {
		size_t len = make(bytes);
		const uint8_t *payload;
		size_t got;

		assert_int_equal(len, CN_UDP_HEAD + bytes);
		/* addresses, protocol, length; then the datagram with its checksum */
		assert_int_equal(checksum(out + 26, 16 + bytes, 17 + 8 + (uint32_t)bytes), 0);
		assert_int_not_equal(cn_get_be16(out + 40), 0);
		assert_true(cn_udp_get(out, len, PORT, false, &payload, &got));
		assert_int_equal(got, bytes);
		assert_memory_equal(payload, frame + CN_ETH_HEADER, bytes);
	}
}

/* A sum of 0 would say that there is no checksum. */
static void checksum__is_never_absent(void **state)
{
	uint32_t found = 0;

	(void)state;
	make(2);
	for (uint32_t word = 0; word < 65536; word++) {
		cn_put_be16(frame + CN_ETH_HEADER, (uint16_t)word);
		cn_udp_encapsulate(out, frame, CN_ETH_HEADER + 2, PORT);
		assert_int_not_equal(cn_get_be16(out + 40), 0);
		found += cn_get_be16(out + 40) == 0xffff;
		assert_true(taken(CN_UDP_HEAD + 2, false));
	}
	assert_int_equal(found, 1);
}

/* Every bit behind the Ethernet header is covered; of a trusted frame, those of the IP header. */
static void get__damaged(void **state)
{
	size_t len = make(61);

	(void)state;
	for (size_t bit = CN_ETH_HEADER * 8; bit < len * 8; bit++) {
		out[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(taken(len, false));
		if (bit / 8 < CN_ETH_HEADER + 20) {
			assert_false(taken(len, true));
		}
		out[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(taken(len, false));
	memset(out + 40, 0, 2); /* no checksum */
	assert_false(taken(len, false));
	assert_true(taken(len, true));
}

/* With this IP header, whose checksum is made right. */
static void with(size_t offset, uint16_t value)
{
	cn_put_be16(out + offset, value);
	cn_put_be16(out + 24, 0);
	cn_put_be16(out + 24, checksum(out + 14, 20, 0));
}

static void get__malformed(void **state)
{
	size_t len = make(100);

	(void)state;
	for (size_t short_by = 1; short_by <= len; short_by++) {
		assert_false(taken(len - short_by, true));
	}
	assert_true(taken(len + 2, true)); /* padded */
	for (uint32_t total = 0; total < 65536; total++) {
		with(16, (uint16_t)total);
		assert_int_equal(taken(len, true), total == 128);
	}
	with(16, 128);
	for (uint32_t bytes = 0; bytes < 65536; bytes++) {
		cn_put_be16(out + 38, (uint16_t)bytes);
		assert_int_equal(taken(len, true), bytes == 108);
	}
	make(100);
	with(20, 0); /* without DF */
	assert_true(taken(len, true));
	with(20, 0x2000); /* more fragments */
	assert_false(taken(len, true));
	with(20, 0x4001); /* a fragment */
	assert_false(taken(len, true));
	make(100);
	with(14, 0x4600); /* options */
	assert_false(taken(len, true));
	make(100);
	with(22, 1 << 8 | 6); /* TCP */
	assert_false(taken(len, true));
	make(100);
	with(32, 253); /* another group */
	assert_false(taken(len, true));
	make(100);
	cn_put_be16(out + 36, PORT + 1);
	assert_false(taken(len, true));
	make(100);
	cn_put_be16(out + 12, 0x86dd);
	assert_false(taken(len, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__headers),
		cmocka_unit_test(checksum__every_length),
		cmocka_unit_test(checksum__is_never_absent),
		cmocka_unit_test(get__damaged),
		cmocka_unit_test(get__malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
