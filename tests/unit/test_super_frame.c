/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/link/super_frame.c: which frames form a super-frame, and how a received one is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "link/super_frame.h"

#define MOST 1472

static struct cn_frame frames[100];

/* n frames of this length, behind 24 bytes of Ethernet header and others, to one address. */
static void fill(size_t n, size_t len)
{
	memset(frames, 0, sizeof(frames));
	for (size_t i = 0; i < n; i++) {
		frames[i].head_len = CN_ETH_HEADER + 24;
		frames[i].payload_len = (uint16_t)(len - 24);
		frames[i].head[5] = 7;
	}
}

static void length__equal_ones(void **state)
{
	(void)state;
	fill(100, MOST);
	for (size_t n = 1; n <= 100; n++) {
		assert_int_equal(cn_super_frame_length(frames, n, MOST),
				 n < CN_SUPER_FRAME_MAX ? n : CN_SUPER_FRAME_MAX);
	}
	/* what an IPv4 datagram holds */
	fill(100, 8972);
	assert_int_equal(cn_super_frame_length(frames, 100, 8972), 7);
	fill(100, 40000);
	assert_int_equal(cn_super_frame_length(frames, 100, 40000), 1);
}

static void length__the_last_may_be_shorter(void **state)
{
	(void)state;
	fill(20, MOST);
	frames[5].payload_len = 0;
	assert_int_equal(cn_super_frame_length(frames, 20, MOST), 6);
	assert_int_equal(cn_super_frame_length(frames, 6, MOST), 6);
	assert_int_equal(cn_super_frame_length(frames + 5, 15, MOST), 1);
	fill(20, 100);
	frames[3].payload_len++;
	assert_int_equal(cn_super_frame_length(frames, 20, MOST), 3);
}

static void length__one_destination(void **state)
{
	(void)state;
	for (size_t at = 0; at < 12; at++) {
		fill(20, MOST);
		frames[4].head[at] ^= 1;
		assert_int_equal(cn_super_frame_length(frames, 20, MOST), 4);
	}
}

/* A long one ends where a frame says so. */
static void length__as_a_frame_says(void **state)
{
	(void)state;
	for (size_t at = 1; at <= CN_SUPER_FRAME_MAX; at++) {
		fill(100, MOST);
		frames[at - 1].ends = true;
		assert_int_equal(cn_super_frame_length(frames, 100, MOST),
				 at < CN_SUPER_FRAME_LEAST ? CN_SUPER_FRAME_MAX : at);
	}
}

/* The kernel has to see and refuse it. */
static void length__too_long_for_the_mtu(void **state)
{
	(void)state;
	fill(20, MOST + 1);
	assert_int_equal(cn_super_frame_length(frames, 20, MOST), 1);
	fill(20, MOST);
	frames[3].payload_len++;
	assert_int_equal(cn_super_frame_length(frames, 20, MOST), 3);
}

/* A batch that ends within a super-frame is as long as those before it. */
static void whole__without_the_last_part(void **state)
{
	(void)state;
	fill(100, MOST);
	assert_int_equal(cn_super_frame_whole(frames, 88), 88);
	assert_int_equal(cn_super_frame_whole(frames, 44), 44);
	assert_int_equal(cn_super_frame_whole(frames, 100), 88);
	assert_int_equal(cn_super_frame_whole(frames, 30), 30); /* all are one */
	frames[3].head[0] ^= 2;
	assert_int_equal(cn_super_frame_whole(frames, 88), 48);
	assert_int_equal(cn_super_frame_whole(frames, 4), 3);
	frames[3].payload_len--; /* it is the last of its super-frame */
	assert_int_equal(cn_super_frame_whole(frames, 4), 3);
	assert_int_equal(cn_super_frame_whole(frames, 0), 0);
}

/* Cuts `left` bytes by `size`, at most `max` at a time; checks that nothing is left out. */
static void cut(size_t left, size_t size, size_t max)
{
	static uint8_t bytes[65536];
	uint8_t ether[CN_ETH_HEADER];
	struct cn_super_frame s = {
		.ether = ether,
		.at = bytes,
		.left = left,
		.size = size,
		.encapsulation = CN_ENCAPSULATION_UDP,
	};
	struct cn_rx_frame out[70];
	size_t at = 0, n, count = 0, wanted = size == 0 ? left > 0 : (left + size - 1) / size;

	while ((n = cn_super_frame_next(&s, out, max)) > 0) {
		assert_true(n <= max);
		for (size_t i = 0; i < n; i++) {
			assert_ptr_equal(out[i].ether, ether);
			assert_ptr_equal(out[i].data, bytes + at);
			assert_int_equal(out[i].encapsulation, CN_ENCAPSULATION_UDP);
			assert_true(out[i].len > 0);
			at += out[i].len;
			assert_true(at == left || out[i].len == size);
		}
		count += n;
	}
	assert_int_equal(at, left);
	assert_int_equal(count, wanted);
	assert_int_equal(s.left, 0);
}

/* Also what no sender of ours makes: a size that is 0, or more than there is. */
static void take__every_length(void **state)
{
	static const size_t sizes[] = { 0, 1, 23, 24, 1471, 1472, 65535 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t left = 0; left <= 3000; left += left < 60 || left > 2900 ? 1 : 7) {
			cut(left, sizes[i], 1);
			cut(left, sizes[i], 70);
		}
		cut(65507, sizes[i], 44);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(length__equal_ones),
		cmocka_unit_test(length__the_last_may_be_shorter),
		cmocka_unit_test(length__one_destination),
		cmocka_unit_test(length__as_a_frame_says),
		cmocka_unit_test(length__too_long_for_the_mtu),
		cmocka_unit_test(whole__without_the_last_part),
		cmocka_unit_test(take__every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
