/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/wire.c: the bytes of proto/wire.h, one by one, and all that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/wire.h"

static const struct cn_wire sample = {
	.type = CN_TYPE_COLL,
	.flags = 0x31,
	.length = 5,
	.port_to = 0x0405,
	.session = 0x08090a0b,
	.seq = 0x0c0d0e0f,
	.ack = 0x10111213,
	.stream = 0x14151617,
};

static const uint8_t bytes[CN_WIRE_HEADER] = {
	0xc0, 0x11, 0x34, 0x31, 0,  5,	4,  5,	8,  9,	10, 11,
	12,   13,   14,	  15,	16, 17, 18, 19, 20, 21, 22, 23,
};

static void wire_put__bytes(void **state)
{
	uint8_t out[CN_WIRE_HEADER];

	(void)state;
	cn_wire_put(out, &sample);
	assert_memory_equal(out, bytes, sizeof(bytes));
}

static void wire_get__bytes(void **state)
{
	uint8_t in[60] = { 0 };
	struct cn_wire w;

	(void)state;
	memcpy(in, bytes, sizeof(bytes));
	assert_int_equal(cn_wire_get(in, sizeof(in), &w), CN_WIRE_OK);
	assert_int_equal(w.type, sample.type);
	assert_int_equal(w.flags, sample.flags);
	assert_int_equal(w.length, sample.length);
	assert_int_equal(w.port_to, sample.port_to);
	assert_int_equal(w.session, sample.session);
	assert_int_equal(w.seq, sample.seq);
	assert_int_equal(w.ack, sample.ack);
	assert_int_equal(w.stream, sample.stream);
}

static enum cn_wire_fault with(unsigned at, uint8_t value, size_t len)
{
	uint8_t *in = malloc(len ? len : 1);
	enum cn_wire_fault fault;
	struct cn_wire w;

	assert_non_null(in);
	for (size_t i = 0; i < len; i++) {
		in[i] = i < sizeof(bytes) ? bytes[i] : 0;
	}
	if (at < len) {
		in[at] = value;
	}
	fault = cn_wire_get(in, len, &w);
	free(in);
	return fault;
}

static void wire_get__strangers(void **state)
{
	(void)state;
	assert_int_equal(with(0, 0xc1, 60), CN_WIRE_FOREIGN);
	assert_int_equal(with(1, 0x10, 60), CN_WIRE_FOREIGN);
	assert_int_equal(with(99, 0, 0), CN_WIRE_FOREIGN);
	assert_int_equal(with(99, 0, 1), CN_WIRE_FOREIGN);
}

static void wire_get__short(void **state)
{
	(void)state;
	for (size_t len = 2; len < CN_WIRE_HEADER + 5; len++) {
		assert_int_equal(with(99, 0, len), CN_WIRE_BAD);
	}
	assert_int_equal(with(99, 0, CN_WIRE_HEADER + 5), CN_WIRE_OK);
	assert_int_equal(with(5, 36, 60), CN_WIRE_OK);
	assert_int_equal(with(5, 37, 60), CN_WIRE_BAD);
	assert_int_equal(with(4, 0xff, 60), CN_WIRE_BAD);
	for (size_t len = CN_WIRE_HEADER; len < CN_WIRE_HEADER + CN_WIRE_AUTH + 6; len++) {
		assert_int_equal(with(2, CN_WIRE_VERSION << 4 | 0x08 | CN_TYPE_COLL, len),
				 len < CN_WIRE_HEADER + CN_WIRE_AUTH + 5 ? CN_WIRE_BAD
									 : CN_WIRE_OK);
	}
}

/* Bit 3 says that the frame is authenticated: counter and tag must be there. The port is not 0
 * here, and a hello has none. */
static void wire_get__versions_and_types(void **state)
{
	(void)state;
	for (unsigned v = 0; v < 256; v++) {
		bool good = v >> 4 == CN_WIRE_VERSION && (v & 7) > CN_TYPE_HELLO &&
			    (v & 7) <= CN_TYPE_MESSAGE && (v & 7) != CN_TYPE_ACK;

		assert_int_equal(with(2, (uint8_t)v, 60), v >> 4 != CN_WIRE_VERSION
								  ? CN_WIRE_FOREIGN_VERSION
							  : good ? CN_WIRE_OK
								 : CN_WIRE_BAD);
	}
}

/* Of another version, nothing beyond the version is read. */
static void wire_get__other_version(void **state)
{
	uint8_t in[4] = { 0xc0, 0x11, 0x2f, 0 };
	struct cn_wire w = { 0 };

	(void)state;
	assert_int_equal(cn_wire_get(in, 1, &w), CN_WIRE_FOREIGN);
	assert_int_equal(cn_wire_get(in, 2, &w), CN_WIRE_BAD);
	assert_int_equal(cn_wire_get(in, 3, &w), CN_WIRE_FOREIGN_VERSION);
	assert_int_equal(w.version, 2);
	in[1] = 0x10;
	assert_int_equal(cn_wire_get(in, 3, &w), CN_WIRE_FOREIGN);
}

/* A hello is for the node's own transport. */
static void wire_get__hello_with_port(void **state)
{
	uint8_t in[60] = { 0 };
	struct cn_wire w = sample;

	(void)state;
	w.type = CN_TYPE_HELLO;
	w.port_to = 0;
	cn_wire_put(in, &w);
	assert_int_equal(cn_wire_get(in, 60, &w), CN_WIRE_OK);
	w.port_to = 1;
	cn_wire_put(in, &w);
	assert_int_equal(cn_wire_get(in, 60, &w), CN_WIRE_BAD);
	w.port_to = 0x100;
	cn_wire_put(in, &w);
	assert_int_equal(cn_wire_get(in, 60, &w), CN_WIRE_BAD);
}

static void wire_port__any_length(void **state)
{
	uint8_t in[60] = { 0 };

	(void)state;
	memcpy(in, bytes, sizeof(bytes));
	assert_int_equal(cn_wire_port(in, sizeof(in)), 0x0405);
	assert_int_equal(cn_wire_port(in, CN_WIRE_HEADER), 0x0405);
	for (size_t len = 0; len < CN_WIRE_HEADER; len++) {
		assert_int_equal(cn_wire_port(in, len), 0);
	}
	in[2] = 0x24;
	assert_int_equal(cn_wire_port(in, sizeof(in)), 0);
	in[2] = 0x34;
	in[0] = 0;
	assert_int_equal(cn_wire_port(in, sizeof(in)), 0);
}

static void wire_requests_ack__any_length(void **state)
{
	uint8_t in[60] = { 0 };

	(void)state;
	cn_wire_put(in, &(struct cn_wire){ .type = CN_TYPE_COLL, .flags = CN_FLAG_ACKREQ });
	for (size_t len = 0; len < sizeof(in); len++) {
		assert_true(cn_wire_requests_ack(in, len) == (len >= CN_WIRE_HEADER));
	}
	in[3] = (uint8_t)~CN_FLAG_ACKREQ;
	assert_false(cn_wire_requests_ack(in, sizeof(in)));
	in[3] = CN_FLAG_ACKREQ;
	in[0] ^= 1;
	assert_false(cn_wire_requests_ack(in, sizeof(in)));
}

/* An acknowledgement carries nothing. */
static void wire_get__ack_with_body(void **state)
{
	uint8_t in[60] = { 0 };
	struct cn_wire w = sample;

	(void)state;
	w.type = CN_TYPE_ACK;
	cn_wire_put(in, &w);
	assert_int_equal(cn_wire_get(in, 60, &w), CN_WIRE_BAD);
	w.length = 0;
	cn_wire_put(in, &w);
	assert_int_equal(cn_wire_get(in, 60, &w), CN_WIRE_OK);
}

static void hello__round_trip(void **state)
{
	uint8_t out[CN_HELLO_MAX];
	struct cn_hello h = {
		.epoch = 0x0102030405060708u, .nonce = 9, .mtu = 1500, .cluster = 0x0203
	};
	struct cn_hello back;

	(void)state;
	for (size_t n = 1; n <= COLLNET_NAME_MAX; n++) {
		memset(h.name, 'x', n);
		assert_int_equal(cn_hello_put(out, &h), CN_HELLO_FIXED + n);
		assert_int_equal(out[0], 1);
		assert_int_equal(out[7], 8);
		assert_int_equal(out[11], 9);
		assert_int_equal(out[16], 2);
		assert_int_equal(out[17], 3);
		assert_int_equal(out[18], n);
		assert_true(cn_hello_get(out, CN_HELLO_FIXED + n, &back));
		assert_true(back.epoch == h.epoch && back.nonce == 9 && back.mtu == 1500);
		assert_int_equal(back.cluster, 0x0203);
		assert_string_equal(back.name, h.name);
	}
}

static void hello_get__refuses(void **state)
{
	uint8_t out[CN_HELLO_MAX + 300] = { 0 };
	struct cn_hello h = { .epoch = 5, .nonce = 9, .mtu = 1500, .name = "node" }, back;
	size_t len = cn_hello_put(out, &h);

	(void)state;
	assert_true(cn_hello_get(out, len, &back));
	for (size_t n = 0; n < sizeof(out); n++) {
		assert_int_equal(cn_hello_get(out, n, &back), n == len);
	}
	out[19] = '\0';
	assert_false(cn_hello_get(out, len, &back));
	out[19] = ' ';
	assert_false(cn_hello_get(out, len, &back));
	out[19] = 'n';
	out[18] = 0;
	assert_false(cn_hello_get(out, CN_HELLO_FIXED, &back));
	for (unsigned n = 64; n < 256; n++) {
		memset(out + 19, 'n', 255);
		out[18] = (uint8_t)n;
		assert_false(cn_hello_get(out, CN_HELLO_FIXED + n, &back));
	}
	memset(out, 0, 8);
	out[18] = 4;
	assert_false(cn_hello_get(out, len, &back));
}

/* Each byte of the cluster counts. A body that ends before it is of no other one. */
static void hello_is_foreign__cluster(void **state)
{
	uint8_t out[CN_HELLO_MAX];
	struct cn_hello h = { .epoch = 5, .cluster = 0x0203, .name = "node" };
	size_t len = cn_hello_put(out, &h);

	(void)state;
	assert_false(cn_hello_is_foreign(out, len, 0x0203));
	assert_true(cn_hello_is_foreign(out, len, 3));
	assert_true(cn_hello_is_foreign(out, len, 0x0200));
	assert_true(cn_hello_is_foreign(out, 18, 3));
	for (size_t n = 0; n < 18; n++) {
		assert_false(cn_hello_is_foreign(out, n, 3));
	}
}

static bool differ(struct cn_session a, struct cn_session b)
{
	return a.id != b.id && a.first != b.first && a.bye != b.bye;
}

/* Each of the four numbers counts, every bit of it, and so does who is who. */
static void session__depends_on_all(void **state)
{
	const struct cn_end a = { 1, 2 }, b = { 3, 4 };
	struct cn_session s = cn_session(&a, &b);

	(void)state;
	assert_true(s.id != 0);
	assert_false(differ(s, cn_session(&a, &b)));
	assert_true(differ(s, cn_session(&b, &a)));
	for (int bit = 0; bit < 256; bit++) {
		uint64_t of[4] = { 1, 2, 3, 4 };
		struct cn_end c, d;

		of[bit / 64] ^= (uint64_t)1 << bit % 64;
		c = (struct cn_end){ of[0], of[1] };
		d = (struct cn_end){ of[2], of[3] };
		assert_true(differ(s, cn_session(&c, &d)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire_put__bytes),
		cmocka_unit_test(wire_get__bytes),
		cmocka_unit_test(wire_get__strangers),
		cmocka_unit_test(wire_get__short),
		cmocka_unit_test(wire_get__versions_and_types),
		cmocka_unit_test(wire_get__other_version),
		cmocka_unit_test(wire_get__hello_with_port),
		cmocka_unit_test(wire_port__any_length),
		cmocka_unit_test(wire_requests_ack__any_length),
		cmocka_unit_test(wire_get__ack_with_body),
		cmocka_unit_test(hello__round_trip),
		cmocka_unit_test(hello_get__refuses),
		cmocka_unit_test(hello_is_foreign__cluster),
		cmocka_unit_test(session__depends_on_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
