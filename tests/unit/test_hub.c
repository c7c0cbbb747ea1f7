/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/unit/hub.c: the in-process hub: switching, bounded queues, seeded faults, cut cables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/hub.h"

#define MTU  1500
#define SEED 20240611u

static const uint8_t everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
static uint8_t bytes[MTU];

/* A frame with `len` bytes after the Ethernet header, the first four of them a number. */
static struct cn_frame make(const struct cn_link *from, const uint8_t to[6], uint32_t number,
			    size_t len)
{
	struct cn_frame f = { .head_len = CN_ETH_HEADER + 4 };

	memcpy(f.head, to, 6);
	memcpy(f.head + 6, from->mac, 6);
	f.head[12] = 0x88;
	f.head[13] = 0xb5;
	f.head[14] = (uint8_t)(number >> 24);
	f.head[15] = (uint8_t)(number >> 16);
	f.head[16] = (uint8_t)(number >> 8);
	f.head[17] = (uint8_t)number;
	f.payload = bytes;
	f.payload_len = (uint16_t)(len - 4);
	return f;
}

static uint32_t number_of(const struct cn_rx_frame *f)
{
	return (uint32_t)f->data[0] << 24 | (uint32_t)f->data[1] << 16 | (uint32_t)f->data[2] << 8 |
	       f->data[3];
}

static void send_one(struct cn_link *from, const uint8_t to[6], uint32_t number, size_t len)
{
	struct cn_frame f = make(from, to, number, len);

	assert_int_equal(cn_link_send(from, &f, 1), 1);
}

static void assert_silent(struct cn_link *l)
{
	struct cn_rx_frame f;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(cn_link_recv(l, &f, 1), 0);
	}
}

static void hub__addresses_and_bounds(void **state)
{
	struct cn_hub *h = cn_hub_new(300, MTU, 4);
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0x01, 0x2c };

	(void)state;
	assert_non_null(h);
	assert_memory_equal(cn_hub_port(h, 299)->mac, mac, 6);
	assert_int_equal(cn_hub_port(h, 0)->mac[5], 1);
	assert_int_equal(cn_hub_port(h, 0)->mtu, MTU);
	assert_int_equal(cn_hub_port(h, 0)->recv_fd, -1);
	assert_null(cn_hub_port(h, 300));
	cn_hub_free(h);
	assert_null(cn_hub_new(0, MTU, 4));
	assert_null(cn_hub_new(2, MTU, 0));
	assert_null(cn_hub_new(2, 0, 4));
	cn_hub_free(NULL);
}

static void switching__to_the_address_or_to_all_others(void **state)
{
	struct cn_hub *h = cn_hub_new(3, MTU, 8);
	struct cn_link *a = cn_hub_port(h, 0), *b = cn_hub_port(h, 1), *c = cn_hub_port(h, 2);
	static const uint8_t nobody[6] = { 2, 9, 9, 9, 9, 9 };
	struct cn_rx_frame f;

	(void)state;
	send_one(a, b->mac, 1, 100);
	assert_silent(a);
	assert_silent(c);
	assert_int_equal(cn_link_recv(b, &f, 1), 1);
	assert_int_equal(number_of(&f), 1);
	assert_memory_equal(f.ether + 6, a->mac, 6);
	cn_link_release(b);
	for (uint32_t i = 0; i < 2; i++) {
		send_one(c, i == 0 ? everyone : nobody, 2 + i, 100);
		assert_silent(c);
		assert_int_equal(cn_link_recv(a, &f, 1), 1);
		assert_int_equal(number_of(&f), 2 + i);
		cn_link_release(a);
		assert_int_equal(cn_link_recv(b, &f, 1), 1);
		cn_link_release(b);
	}
	send_one(a, a->mac, 9, 100);
	assert_silent(a);
	assert_silent(b);
	cn_hub_free(h);
}

static void sizes__every_one_is_delivered_and_padded(void **state)
{
	struct cn_hub *h = cn_hub_new(2, MTU, 2);
	struct cn_link *a = cn_hub_port(h, 0), *b = cn_hub_port(h, 1);
	struct cn_link_counters n;
	struct cn_rx_frame f;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)(i * 7 + 1);
	}
	for (size_t len = 4; len <= MTU; len++) {
		send_one(a, b->mac, (uint32_t)len, len);
		assert_int_equal(cn_link_recv(b, &f, 1), 1);
		assert_int_equal(f.len, len < 46 ? 46 : len);
		assert_int_equal(number_of(&f), len);
		assert_memory_equal(f.data + 4, bytes, len - 4);
		for (size_t i = len; i < f.len; i++) {
			assert_int_equal(f.data[i], 0);
		}
		cn_link_release(b);
	}
	send_one(a, b->mac, 1, MTU + 1);
	assert_silent(b);
	cn_link_counters(a, &n);
	assert_int_equal(n.send_errors, 1);
	cn_hub_free(h);
}

static void queue__bounded_in_order_and_drops_are_counted(void **state)
{
	struct cn_hub *h = cn_hub_new(2, MTU, 5);
	struct cn_link *a = cn_hub_port(h, 0), *b = cn_hub_port(h, 1);
	struct cn_link_counters n;
	struct cn_rx_frame f[8];

	(void)state;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 7; i++) {
			send_one(a, b->mac, i, 64);
		}
		assert_int_equal(cn_link_recv(b, f, 2), 2);
		assert_int_equal(number_of(&f[0]), 0);
		assert_int_equal(number_of(&f[1]), 1);
		/* What is borrowed keeps its place until it is released. */
		send_one(a, b->mac, 99, 64);
		assert_int_equal(number_of(&f[0]), 0);
		cn_link_release(b);
		assert_int_equal(cn_link_recv(b, f, 8), 3);
		assert_int_equal(number_of(&f[2]), 4);
		cn_link_release(b);
		assert_silent(b);
	}
	cn_link_counters(b, &n);
	assert_int_equal(n.ring_drops, 9);
	cn_hub_free(h);
}

struct tally {
	uint32_t received, lost, twice, swapped, corrupt;
	uint64_t digest;
};

/* What a frame is filled with, so that a bit flipped in its number shows too. */
static uint8_t fill_of(uint32_t number)
{
	return (uint8_t)cn_mix64(number);
}

/* Sends `count` numbered frames, drains as they come, and tells what the faults did. */
static struct tally run_faults(const struct cn_hub_faults *faults, uint32_t count)
{
	struct cn_hub *h = cn_hub_new(2, MTU, 16);
	struct cn_link *a = cn_hub_port(h, 0), *b = cn_hub_port(h, 1);
	static uint8_t seen[20000];
	struct tally t = { 0 };
	struct cn_rx_frame f[8];
	uint32_t newest = 0;

	memset(seen, 0, sizeof(seen));
	cn_hub_set_faults(h, faults);
	for (uint32_t i = 0; i < count + 4; i++) {
		size_t k;

		if (i < count) {
			memset(bytes, fill_of(i), sizeof(bytes));
			send_one(a, b->mac, i, 200);
		}
		k = cn_link_recv(b, f, 8);
		for (size_t j = 0; j < k; j++) {
			uint32_t number = number_of(&f[j]);
			bool bad = number >= count || f[j].len != 200;

			for (size_t at = 4; at < f[j].len && !bad; at++) {
				bad = f[j].data[at] != fill_of(number);
			}
			t.received++;
			t.digest = cn_mix64(t.digest ^ number ^ (bad ? 1u << 31 : 0));
			if (bad) {
				t.corrupt++;
				continue;
			}
			t.twice += seen[number]++ > 0;
			t.swapped += number < newest;
			newest = number > newest ? number : newest;
		}
		cn_link_release(b);
	}
	for (uint32_t i = 0; i < count; i++) {
		t.lost += seen[i] == 0;
	}
	cn_hub_free(h);
	return t;
}

static void faults__none_by_default(void **state)
{
	struct cn_hub_faults none = { .seed = SEED };
	struct tally t = run_faults(&none, 10000);

	(void)state;
	assert_int_equal(t.received, 10000);
	assert_int_equal(t.lost + t.twice + t.swapped + t.corrupt, 0);
}

static void faults__each_at_its_rate(void **state)
{
	struct cn_hub_faults loss = { .seed = SEED, .loss = 50000 };
	struct cn_hub_faults twice = { .seed = SEED, .duplicate = 50000 };
	struct cn_hub_faults swap = { .seed = SEED, .reorder = 50000 };
	struct cn_hub_faults corrupt = { .seed = SEED, .corrupt = 50000 };
	struct tally t;

	(void)state;
	print_message("seed %u\n", SEED);
	t = run_faults(&loss, 10000);
	assert_uint_in_range(t.lost, 400, 600);
	assert_int_equal(t.received, 10000 - t.lost);
	assert_int_equal(t.twice + t.swapped + t.corrupt, 0);
	t = run_faults(&twice, 10000);
	assert_uint_in_range(t.twice, 400, 600);
	assert_int_equal(t.received, 10000 + t.twice);
	assert_int_equal(t.lost + t.swapped + t.corrupt, 0);
	t = run_faults(&swap, 10000);
	assert_uint_in_range(t.swapped, 400, 600);
	assert_int_equal(t.received, 10000);
	assert_int_equal(t.lost + t.twice + t.corrupt, 0);
	t = run_faults(&corrupt, 10000);
	assert_uint_in_range(t.corrupt, 400, 600);
	assert_int_equal(t.received, 10000);
	assert_int_equal(t.twice + t.swapped, 0);
}

static void faults__same_seed_same_faults(void **state)
{
	struct cn_hub_faults all = {
		.seed = SEED, .loss = 30000, .duplicate = 30000, .reorder = 30000, .corrupt = 30000
	};
	uint64_t first = run_faults(&all, 5000).digest;

	(void)state;
	assert_true(run_faults(&all, 5000).digest == first);
	all.seed++;
	assert_true(run_faults(&all, 5000).digest != first);
}

static void reorder__the_last_frame_is_not_kept_for_ever(void **state)
{
	struct cn_hub *h = cn_hub_new(2, MTU, 4);
	struct cn_link *a = cn_hub_port(h, 0), *b = cn_hub_port(h, 1);
	struct cn_hub_faults always = { .seed = SEED, .reorder = 1000000 };
	struct cn_rx_frame f[4];

	(void)state;
	cn_hub_set_faults(h, &always);
	send_one(a, b->mac, 1, 64);
	assert_int_equal(cn_link_recv(b, f, 4), 0);
	assert_int_equal(cn_link_recv(b, f, 4), 1);
	assert_int_equal(number_of(&f[0]), 1);
	cn_link_release(b);
	send_one(a, b->mac, 2, 64);
	send_one(a, b->mac, 3, 64);
	assert_int_equal(cn_link_recv(b, f, 4), 2);
	assert_int_equal(number_of(&f[0]), 3);
	assert_int_equal(number_of(&f[1]), 2);
	cn_hub_free(h);
}

static void cut__nothing_passes_until_the_cable_is_back(void **state)
{
	struct cn_hub *h = cn_hub_new(3, MTU, 4);
	struct cn_link *a = cn_hub_port(h, 0), *b = cn_hub_port(h, 1), *c = cn_hub_port(h, 2);
	struct cn_rx_frame f;

	(void)state;
	cn_hub_cut(h, 1, true);
	send_one(a, b->mac, 1, 64);
	send_one(b, a->mac, 2, 64);
	send_one(a, everyone, 3, 64);
	assert_silent(b);
	assert_silent(a);
	assert_int_equal(cn_link_recv(c, &f, 1), 1);
	cn_link_release(c);
	cn_hub_cut(h, 1, false);
	send_one(a, b->mac, 4, 64);
	assert_int_equal(cn_link_recv(b, &f, 1), 1);
	assert_int_equal(number_of(&f), 4);
	cn_hub_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hub__addresses_and_bounds),
		cmocka_unit_test(switching__to_the_address_or_to_all_others),
		cmocka_unit_test(sizes__every_one_is_delivered_and_padded),
		cmocka_unit_test(queue__bounded_in_order_and_drops_are_counted),
		cmocka_unit_test(faults__none_by_default),
		cmocka_unit_test(faults__each_at_its_rate),
		cmocka_unit_test(faults__same_seed_same_faults),
		cmocka_unit_test(reorder__the_last_frame_is_not_kept_for_ever),
		cmocka_unit_test(cut__nothing_passes_until_the_cable_is_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
