/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/link/encapsulation.c: headers and checksums of the encapsulations udp and tcp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "link/encapsulation.h"
#include "util/byteorder.h"
#include "util/util.h"

#define PORT 0x88b5
#define MOST 1472

static const uint8_t addresses[12] = { 2, 0, 0, 0, 0x12, 0x34, 2, 0, 0, 0, 0xab, 0xcd };
static const enum cn_encapsulation udp = CN_ENCAPSULATION_UDP, tcp = CN_ENCAPSULATION_TCP;
static uint8_t frame[CN_ETH_HEADER + MOST], out[sizeof(frame) + CN_TCP_HEADER];

static size_t make(enum cn_encapsulation e, size_t bytes)
{
	memcpy(frame, addresses, sizeof(addresses));
	cn_put_be16(frame + 12, PORT);
	for (size_t i = 0; i < bytes; i++) {
		frame[CN_ETH_HEADER + i] = (uint8_t)cn_mix64(i * 3001 + bytes);
	}
	return cn_encapsulate(out, e, frame, CN_ETH_HEADER + bytes, PORT);
}

static bool taken(size_t len, bool trusted)
{
	enum cn_encapsulation e;
	const uint8_t *payload;
	size_t bytes;

	return cn_headers_get(out, len, PORT, trusted, &e, &payload, &bytes);
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

/* The checksum of the UDP or TCP header is not compared. */
static void assert_headers(const uint8_t *wanted, const struct cn_headers *h)
{
	const size_t at = CN_CHECKSUM_START + cn_checksum_offset(h->encapsulation);
	uint8_t head[CN_HEAD_MAX];

	cn_headers_put(head, h);
	assert_memory_equal(head, wanted, at);
	assert_memory_equal(head + at + 2, wanted + at + 2,
			    cn_head_bytes(h->encapsulation) - at - 2);
	assert_int_equal(checksum(head + 14, 20, 0), 0);
}

static void put__udp(void **state)
{
	static const uint8_t
		wanted[CN_ETH_HEADER + CN_UDP_HEADER] = {
			2,    0,    0,	  0,	0x12, 0x34, 2,	  0, 0, 0,
			0xab, 0xcd, 8,	  0,				    /* Ethernet */
			0x45, 0,    0,	  128,	0,    0,    0x40, 0, 1, 17, /* IPv4: DF, TTL 1 */
			0xfc, 0xa1, 239,  255,	0xab, 0xcd, 224,  0, 0, 254,
			0xd2, 0x34, 0x88, 0xb5, 0,    108, /* UDP */
		};
	const struct cn_headers h = {
		.encapsulation = udp, .addresses = addresses, .port = PORT, .bytes = 100
	};

	(void)state;
	assert_headers(wanted, &h);
}

static void put__tcp(void **state)
{
	static uint8_t
		wanted[CN_ETH_HEADER + CN_TCP_HEADER] = {
			2,    0,    0,	  0,	0x12, 0x34, 2,	  0, 0, 0,   0xab,
			0xcd, 8,    0,					   /* Ethernet */
			0x45, 0,    0,	  140,	0,    0,    0x40, 0, 1, 6, /* IPv4: DF, TTL 1 */
			0xfc, 0xa0, 239,  255,	0xab, 0xcd, 224,  0, 0, 254, 0xd2,
			0x30, 0x88, 0xb5, 1,	2,    3,    4,	  0, 0, 0,   0, /* TCP */
			0x50, 0x18, 0xff, 0xff, 0,    0,    0,	  0,
		};
	struct cn_headers h = {
		.encapsulation = tcp,
		.addresses = addresses,
		.port = PORT,
		.flow = 4,
		.bytes = 100,
		.sequence = 0x01020304,
		.push = true,
	};

	(void)state;
	assert_headers(wanted, &h);
	h.push = false;
	wanted[CN_CHECKSUM_START + 13] = 0x10;
	assert_headers(wanted, &h);
}

static void raw__is_copied(void **state)
{
	(void)state;
	assert_int_equal(make(CN_ENCAPSULATION_RAW, 100), CN_ETH_HEADER + 100);
	assert_memory_equal(out, frame, CN_ETH_HEADER + 100);
	assert_int_equal(cn_encapsulation_of(out), CN_ENCAPSULATION_RAW);
	assert_false(taken(CN_ETH_HEADER + 100, true));
}

static void checksums_of_every_length(enum cn_encapsulation e, uint8_t protocol)
{
	const size_t head = cn_head_bytes(e), l4 = head - CN_CHECKSUM_START;

	for (size_t bytes = 0; bytes <= MOST; bytes += bytes < 200 ? 1 : 53) {
		size_t len = make(e, bytes);
		enum cn_encapsulation found;
		const uint8_t *payload;
		size_t got;

		assert_int_equal(len, head + bytes);
		assert_int_equal(cn_encapsulation_of(out), e);
		/* addresses, protocol, length; then the header with its checksum, and the rest */
		assert_int_equal(checksum(out + 26, 8 + l4 + bytes,
					  protocol + (uint32_t)(l4 + bytes)),
				 0);
		assert_true(cn_headers_get(out, len, PORT, false, &found, &payload, &got));
		assert_int_equal(found, e);
		assert_int_equal(got, bytes);
		assert_memory_equal(payload, frame + CN_ETH_HEADER, bytes);
	}
}

static void checksum__every_length(void **state)
{
	(void)state;
	checksums_of_every_length(udp, 17);
	checksums_of_every_length(tcp, 6);
}

/* In UDP a sum of 0 would say that there is no checksum. */
static void checksum__is_never_absent(void **state)
{
	uint32_t found = 0, zero = 0;

	(void)state;
	for (uint32_t word = 0; word < 65536; word++) {
		make(udp, 2);
		cn_put_be16(frame + CN_ETH_HEADER, (uint16_t)word);
		cn_encapsulate(out, udp, frame, CN_ETH_HEADER + 2, PORT);
		assert_int_not_equal(cn_get_be16(out + 40), 0);
		found += cn_get_be16(out + 40) == 0xffff;
		assert_true(taken(cn_head_bytes(udp) + 2, false));
		cn_encapsulate(out, tcp, frame, CN_ETH_HEADER + 2, PORT);
		zero += cn_get_be16(out + 50) == 0;
		assert_true(taken(cn_head_bytes(tcp) + 2, false));
	}
	assert_int_equal(found, 1);
	assert_int_equal(zero, 1);
}

/*
 * Every bit behind the Ethernet header is covered; of a trusted frame, those of the IP header. The
 * protocol is one of them: a bit makes no other encapsulation of a frame.
 */
static void damaged_frames_are_refused(enum cn_encapsulation e)
{
	size_t len = make(e, 61);

	for (size_t bit = CN_ETH_HEADER * 8; bit < len * 8; bit++) {
		out[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(taken(len, false));
		if (bit / 8 < CN_CHECKSUM_START) {
			assert_false(taken(len, true));
		}
		out[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(taken(len, false));
	memset(out + CN_CHECKSUM_START + cn_checksum_offset(e), 0, 2);
	assert_false(taken(len, false));
	assert_true(taken(len, true));
}

static void get__damaged(void **state)
{
	(void)state;
	damaged_frames_are_refused(udp);
	damaged_frames_are_refused(tcp);
}

/* With this IP header, whose checksum is made right. */
static void with(size_t offset, uint16_t value)
{
	cn_put_be16(out + offset, value);
	cn_put_be16(out + 24, 0);
	cn_put_be16(out + 24, checksum(out + 14, 20, 0));
}

static void malformed_frames_are_refused(enum cn_encapsulation e)
{
	const uint32_t whole = cn_encapsulation_bytes(e) + 100;
	size_t len = make(e, 100);

	for (size_t short_by = 1; short_by <= len; short_by++) {
		assert_false(taken(len - short_by, true));
	}
	assert_true(taken(len + 2, true)); /* padded */
	for (uint32_t total = 0; total < 65536; total++) {
		with(16, (uint16_t)total);
		/* the length of a segment is only here, that of a datagram also in its header */
		assert_int_equal(taken(len, true),
				 total == whole ||
					 (e == tcp && total >= CN_TCP_HEADER && total < whole));
	}
	make(e, 100);
	with(20, 0); /* without DF */
	assert_true(taken(len, true));
	with(20, 0x2000); /* more fragments */
	assert_false(taken(len, true));
	with(20, 0x4001); /* a fragment */
	assert_false(taken(len, true));
	make(e, 100);
	with(14, 0x4600); /* options */
	assert_false(taken(len, true));
	for (uint16_t protocol = 0; protocol < 256; protocol++) {
		make(e, 100);
		with(22, (uint16_t)(1 << 8 | protocol));
		assert_int_equal(taken(len, true), protocol == (e == tcp ? 6 : 17));
	}
	make(e, 100);
	with(32, 253); /* another group */
	assert_false(taken(len, true));
	make(e, 100);
	cn_put_be16(out + 36, PORT + 1);
	assert_false(taken(len, true));
	make(e, 100);
	cn_put_be16(out + 12, 0x86dd);
	assert_false(taken(len, true));
}

static void get__malformed(void **state)
{
	(void)state;
	malformed_frames_are_refused(udp);
	malformed_frames_are_refused(tcp);
}

static void get__udp_length(void **state)
{
	size_t len = make(udp, 100);

	(void)state;
	for (uint32_t bytes = 0; bytes < 65536; bytes++) {
		cn_put_be16(out + 38, (uint16_t)bytes);
		assert_int_equal(taken(len, true), bytes == 108);
	}
}

/* No options, and no flags but ACK, and PSH beside it. */
static void get__tcp_flags(void **state)
{
	size_t len = make(tcp, 100);

	(void)state;
	for (uint32_t value = 0; value < 65536; value++) {
		cn_put_be16(out + CN_CHECKSUM_START + 12, (uint16_t)value);
		assert_int_equal(taken(len, true), value == 0x5010 || value == 0x5018);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__udp),
		cmocka_unit_test(put__tcp),
		cmocka_unit_test(raw__is_copied),
		cmocka_unit_test(checksum__every_length),
		cmocka_unit_test(checksum__is_never_absent),
		cmocka_unit_test(get__damaged),
		cmocka_unit_test(get__malformed),
		cmocka_unit_test(get__udp_length),
		cmocka_unit_test(get__tcp_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
