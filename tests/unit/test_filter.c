/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link/filter.c: the kernel runs the filter on datagrams of a Unix socket, which needs no
 * privilege.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/filter.h"
#include "link/encapsulation.h"

#define LEN 60

static const uint8_t own[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
static const uint8_t other[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x56 };
static int sockets[2];

static int set_up(void **state)
{
	struct sock_filter filter[CN_LINK_FILTER];
	const struct sock_fprog program = { .len = CN_LINK_FILTER, .filter = filter };

	(void)state;
	cn_link_filter(filter, 0x88b5, own);
	return socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0 &&
			       setsockopt(sockets[1], SOL_SOCKET, SO_ATTACH_FILTER, &program,
					  sizeof(program)) == 0
		       ? 0
		       : -1;
}

static int tear_down(void **state)
{
	(void)state;
	close(sockets[0]);
	close(sockets[1]);
	return 0;
}

/* Whether a frame passes, whole. */
static bool passes(const uint8_t to[6], const uint8_t from[6], uint16_t type)
{
	uint8_t frame[LEN] = { 0 }, got[LEN + 1];
	ssize_t n;

	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	frame[12] = (uint8_t)(type >> 8);
	frame[13] = (uint8_t)type;
	(void)!send(sockets[0], frame, LEN, 0); /* EPERM: refused by the filter */
	n = recv(sockets[1], got, sizeof(got), MSG_DONTWAIT);
	assert_true(n < 0 || n == LEN);
	return n == LEN;
}

static void filter__type(void **state)
{
	(void)state;
	assert_true(passes(own, other, 0x88b5));
	assert_false(passes(own, other, 0x88b6));
	assert_false(passes(own, other, 0x89b5));
	assert_false(passes(all, other, 0x0800));
	assert_false(passes(own, other, 0x8100));
}

/* Every bit of the address counts. */
static void filter__destination(void **state)
{
	(void)state;
	assert_true(passes(all, other, 0x88b5));
	for (int bit = 0; bit < 48; bit++) {
		uint8_t to[6];

		memcpy(to, own, 6);
		to[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(passes(to, other, 0x88b5));
		memcpy(to, all, 6);
		to[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(passes(to, other, 0x88b5));
	}
}

static void filter__own_frames_do_not_pass(void **state)
{
	(void)state;
	assert_false(passes(own, own, 0x88b5));
	assert_false(passes(all, own, 0x88b5));
	for (int bit = 0; bit < 48; bit++) {
		uint8_t from[6];

		memcpy(from, own, 6);
		from[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(passes(own, from, 0x88b5));
		assert_true(passes(all, from, 0x88b5));
	}
}

static bool passes_head(const uint8_t *frame, enum cn_encapsulation e)
{
	const ssize_t len = (ssize_t)cn_head_bytes(e);
	uint8_t got[CN_HEAD_MAX + 1];
	ssize_t n;

	(void)!send(sockets[0], frame, (size_t)len, 0);
	n = recv(sockets[1], got, sizeof(got), MSG_DONTWAIT);
	assert_true(n < 0 || n == len);
	return n == len;
}

static void make_head(uint8_t *frame, enum cn_encapsulation e, const uint8_t to[6],
		      const uint8_t from[6])
{
	uint8_t addresses[12];

	memcpy(addresses, to, 6);
	memcpy(addresses + 6, from, 6);
	cn_headers_put(frame, &(struct cn_headers){
				      .encapsulation = e, .addresses = addresses, .port = 0x88b5 });
}

/* Each byte that is the same in all frames of ours; the others may have any value. */
static void encapsulation_passes(enum cn_encapsulation e)
{
	static const uint8_t fixed[] = { 12, 13, 14, 21, 23, 30, 31, 32, 33, 36, 37 };
	uint8_t frame[CN_HEAD_MAX];

	make_head(frame, e, own, other);
	assert_true(passes_head(frame, e));
	for (uint8_t at = 12; at < cn_head_bytes(e); at++) {
		bool counts = at == 20; /* DF may be there or not; no other bit may */

		for (size_t i = 0; i < sizeof(fixed); i++) {
			counts |= fixed[i] == at;
		}
		frame[at] ^= 0x20;
		assert_int_equal(passes_head(frame, e), !counts);
		frame[at] ^= 0x20;
	}
	frame[20] = 0;
	assert_true(passes_head(frame, e));
	make_head(frame, e, all, other);
	assert_true(passes_head(frame, e));
	make_head(frame, e, other, other);
	assert_false(passes_head(frame, e));
	make_head(frame, e, own, own);
	assert_false(passes_head(frame, e));
}

static void filter__udp(void **state)
{
	(void)state;
	encapsulation_passes(CN_ENCAPSULATION_UDP);
}

static void filter__tcp(void **state)
{
	(void)state;
	encapsulation_passes(CN_ENCAPSULATION_TCP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(filter__type, set_up, tear_down),
		cmocka_unit_test_setup_teardown(filter__destination, set_up, tear_down),
		cmocka_unit_test_setup_teardown(filter__own_frames_do_not_pass, set_up, tear_down),
		cmocka_unit_test_setup_teardown(filter__udp, set_up, tear_down),
		cmocka_unit_test_setup_teardown(filter__tcp, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
