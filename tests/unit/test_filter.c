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
#include "link/udp.h"

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

static bool passes_udp(const uint8_t *frame)
{
	uint8_t got[CN_UDP_HEAD + 1];
	ssize_t n;

	(void)!send(sockets[0], frame, CN_UDP_HEAD, 0);
	n = recv(sockets[1], got, sizeof(got), MSG_DONTWAIT);
	assert_true(n < 0 || n == CN_UDP_HEAD);
	return n == CN_UDP_HEAD;
}

static void make_udp(uint8_t frame[CN_UDP_HEAD], const uint8_t to[6], const uint8_t from[6])
{
	uint8_t addresses[12];

	memcpy(addresses, to, 6);
	memcpy(addresses + 6, from, 6);
	cn_udp_put(frame, addresses, 0x88b5, 0, 0);
}

/* Each byte that is the same in all frames of ours; the others may have any value. */
static void filter__udp(void **state)
{
	static const uint8_t fixed[] = { 12, 13, 14, 21, 23, 30, 31, 32, 33, 36, 37 };
	uint8_t frame[CN_UDP_HEAD];

	(void)state;
	make_udp(frame, own, other);
	assert_true(passes_udp(frame));
	for (uint8_t at = 12; at < CN_UDP_HEAD; at++) {
		bool counts = at == 20; /* DF may be there or not; no other bit may */

		for (size_t i = 0; i < sizeof(fixed); i++) {
			counts |= fixed[i] == at;
		}
		frame[at] ^= 0x20;
		assert_int_equal(passes_udp(frame), !counts);
		frame[at] ^= 0x20;
	}
	frame[20] = 0;
	assert_true(passes_udp(frame));
	make_udp(frame, all, other);
	assert_true(passes_udp(frame));
	make_udp(frame, other, other);
	assert_false(passes_udp(frame));
	make_udp(frame, own, own);
	assert_false(passes_udp(frame));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(filter__type, set_up, tear_down),
		cmocka_unit_test_setup_teardown(filter__destination, set_up, tear_down),
		cmocka_unit_test_setup_teardown(filter__own_frames_do_not_pass, set_up, tear_down),
		cmocka_unit_test_setup_teardown(filter__udp, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
