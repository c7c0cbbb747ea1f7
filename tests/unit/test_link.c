/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link/link.c, packet.c and pcap.c on a pair of veth interfaces in a namespace of its own:
 * the same battery over both links. Exit 77 where the system refuses namespaces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "link/kinds.h"
#include "link/link.h"
#include "namespace.h"

#define ETHERTYPE  0x88b5
#define WAIT_MS	   2000
#define SILENCE_MS 30
#define BATCH	   32
#define WAKES_MAX  200

static const uint8_t everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static const char *kind;

static struct cn_link *a, *b;

static uint8_t bytes[70000];

static struct cn_link *open_link(const char *interface, uint32_t ring_frames)
{
	struct cn_link_config c = { .kind = kind,
				    .interface = interface,
				    .ethertype = ETHERTYPE,
				    .ring_frames = ring_frames };
	struct cn_link *l = NULL;
	struct cn_err err = { 0 };

	if (cn_link_open(&c, &l, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return l;
}

/* A pair of interfaces, and a link on each. */
static int set_up(void **state)
{
	kind = *state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)cn_mix64(i);
	}
	if (!run_command("ip link add a0 type veth peer name b0 && ip link set a0 up && "
			 "ip link set b0 up")) {
		return -1;
	}
	a = open_link("a0", 0);
	b = open_link("b0", 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cn_link_close(a);
	cn_link_close(b);
	a = b = NULL;
	return run_command("ip link delete a0") ? 0 : -1;
}

/* As set_up(), but a test that deletes or opens things itself. */
static int tear_down_gone(void **state)
{
	(void)state;
	cn_link_close(a);
	cn_link_close(b);
	a = b = NULL;
	(void)run_command("ip link delete a0");
	return 0;
}

static bool readable(const struct cn_link *l, int ms)
{
	struct pollfd p = { .fd = l->recv_fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static bool writable(const struct cn_link *l, int ms)
{
	struct pollfd p = { .fd = l->send_fd, .events = POLLOUT };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLOUT) != 0;
}

/* The next frame, within the time. Waking up for nothing is allowed, but not for ever. */
static bool next_frame(struct cn_link *l, struct cn_rx_frame *f, int ms)
{
	for (int i = 0; i < WAKES_MAX; i++) {
		if (cn_link_recv(l, f, 1) == 1) {
			return true;
		}
		if (!readable(l, ms)) {
			return false;
		}
	}
	fail_msg("%s on %s: wakes up again and again for nothing", kind, l->interface);
	return false;
}

static uint32_t number_of(const struct cn_rx_frame *f)
{
	return (uint32_t)f->data[0] << 24 | (uint32_t)f->data[1] << 16 | (uint32_t)f->data[2] << 8 |
	       f->data[3];
}

static void assert_silent(struct cn_link *l)
{
	struct cn_rx_frame f;

	if (next_frame(l, &f, SILENCE_MS)) {
		fail_msg("%s on %s: frame %u, %zu bytes, where silence should be", kind,
			 l->interface, number_of(&f), f.len);
	}
}

static struct cn_frame make(const uint8_t from[6], const uint8_t to[6], uint16_t type,
			    uint32_t number, size_t payload)
{
	struct cn_frame f = { .head_len = CN_ETH_HEADER + 4,
			      .payload_len = (uint16_t)payload,
			      .payload = bytes };

	memcpy(f.head, to, 6);
	memcpy(f.head + 6, from, 6);
	f.head[12] = (uint8_t)(type >> 8);
	f.head[13] = (uint8_t)type;
	for (int i = 0; i < 4; i++) {
		f.head[14 + i] = (uint8_t)(number >> (24 - 8 * i));
	}
	return f;
}

static void send_from(struct cn_link *l, const uint8_t from[6], const uint8_t to[6], uint16_t type,
		      uint32_t number, size_t payload)
{
	struct cn_frame f = make(from, to, type, number, payload);

	assert_int_equal(cn_link_send(l, &f, 1), 1);
}

static void expect(struct cn_link *l, uint32_t number)
{
	struct cn_rx_frame f;

	assert_true(next_frame(l, &f, WAIT_MS));
	assert_int_equal(number_of(&f), number);
	cn_link_release(l);
}

static void open__addresses_and_descriptors(void **state)
{
	(void)state;
	assert_string_equal(a->ops->name, kind);
	assert_string_equal(a->interface, "a0");
	assert_int_equal(a->mtu, 1500);
	assert_true(a->recv_fd >= 0 && a->send_fd >= 0);
	assert_memory_not_equal(a->mac, b->mac, 6);
	/* libpcap may have caught something before its filter was in place, and wake up for it. */
	assert_silent(a);
	assert_false(readable(a, 0));
	assert_true(writable(a, 0));
}

static void sizes__every_one_arrives_and_is_padded(void **state)
{
	static const uint8_t zeros[CN_ETH_MIN];

	(void)state;
	for (size_t len = 0; len <= a->mtu; len++) {
		struct cn_frame f = make(a->mac, b->mac, ETHERTYPE, 0, len);
		struct cn_rx_frame r;

		f.head_len = CN_ETH_HEADER;
		assert_int_equal(cn_link_send(a, &f, 1), 1);
		assert_true(next_frame(b, &r, WAIT_MS));
		assert_int_equal(r.len, len < 46 ? 46 : len);
		assert_memory_equal(r.ether, f.head, CN_ETH_HEADER);
		assert_memory_equal(r.data, bytes, len);
		assert_memory_equal(r.data + len, zeros, r.len - len);
		cn_link_release(b);
	}
	/* All in the head, nothing in the payload, up to the largest head. */
	for (size_t len = 0; len <= CN_FRAME_HEAD - CN_ETH_HEADER; len++) {
		struct cn_frame f = make(a->mac, b->mac, ETHERTYPE, 0, 0);
		struct cn_rx_frame r;

		memcpy(f.head + CN_ETH_HEADER, bytes, len);
		f.head_len = (uint16_t)(CN_ETH_HEADER + len);
		f.payload = NULL;
		assert_int_equal(cn_link_send(a, &f, 1), 1);
		assert_true(next_frame(b, &r, WAIT_MS));
		assert_memory_equal(r.ether, f.head, CN_ETH_HEADER);
		assert_memory_equal(r.data, f.head + CN_ETH_HEADER, len);
		cn_link_release(b);
	}
}

/* Sends `count` numbered full frames in batches, waiting for room when there is none. */
static void send_burst(struct cn_link *l, const uint8_t to[6], uint32_t count)
{
	static struct cn_frame f[BATCH];

	for (uint32_t sent = 0; sent < count;) {
		size_t n = count - sent < BATCH ? count - sent : BATCH;
		int r;

		for (size_t i = 0; i < n; i++) {
			f[i] = make(l->mac, to, ETHERTYPE, sent + (uint32_t)i, l->mtu - 4);
		}
		r = cn_link_send(l, f, n);
		assert_in_range(r, 0, n);
		if ((size_t)r < n) {
			assert_true(writable(l, WAIT_MS));
		}
		sent += (uint32_t)r;
	}
}

static uint32_t count_in_order(struct cn_link *l, int ms)
{
	struct cn_rx_frame f[BATCH];
	uint32_t next = 0, wakes = 0;
	size_t n;

	while ((n = cn_link_recv(l, f, BATCH)) > 0 || readable(l, ms)) {
		wakes = n > 0 ? 0 : wakes + 1;
		assert_in_range(wakes, 0, WAKES_MAX);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(number_of(&f[i]), next++);
			assert_int_equal(f[i].len, l->mtu);
			assert_memory_equal(f[i].data + 4, bytes, l->mtu - 4);
		}
		cn_link_release(l);
	}
	return next;
}

static void burst__all_in_order(void **state)
{
	struct cn_link_counters n;

	(void)state;
	/* Three times, so that the ring of 2,048 slots wraps. */
	for (int round = 0; round < 3; round++) {
		send_burst(a, b->mac, 1000);
		assert_int_equal(count_in_order(b, SILENCE_MS), 1000);
	}
	cn_link_counters(b, &n);
	assert_int_equal(n.ring_drops, 0);
	cn_link_counters(a, &n);
	assert_int_equal(n.send_errors, 0);
}

static void borrow__frames_stay_until_released(void **state)
{
	struct cn_rx_frame first, second;

	(void)state;
	send_burst(a, b->mac, 2);
	assert_true(next_frame(b, &first, WAIT_MS));
	assert_true(next_frame(b, &second, WAIT_MS));
	assert_int_equal(number_of(&first), 0);
	assert_int_equal(number_of(&second), 1);
	send_burst(a, b->mac, 40);
	assert_int_equal(number_of(&first), 0);
	assert_int_equal(number_of(&second), 1);
	cn_link_release(b);
	assert_int_equal(count_in_order(b, SILENCE_MS), 40);
}

static void broadcast__others_only(void **state)
{
	(void)state;
	send_from(a, a->mac, everyone, ETHERTYPE, 5, 100);
	expect(b, 5);
	assert_silent(a);
}

static void filter__own_foreign_and_tagged_frames_are_not_seen(void **state)
{
	static const uint8_t third[6] = { 2, 1, 2, 3, 4, 5 };
	struct cn_frame tagged = make(a->mac, b->mac, 0x8100, 5u << 16 | ETHERTYPE, 100);
	struct cn_link_counters n;

	(void)state;
	assert_true(run_command("ip link set b0 promisc on"));
	send_from(a, a->mac, b->mac, 0x88b6, 1, 100);
	send_from(a, a->mac, b->mac, 0x0800, 2, 100);
	send_from(a, a->mac, third, ETHERTYPE, 3, 100);
	/* A frame of its own that comes back, by a loop in the network. */
	send_from(a, b->mac, everyone, ETHERTYPE, 4, 100);
	send_from(a, b->mac, b->mac, ETHERTYPE, 5, 100);
	assert_int_equal(cn_link_send(a, &tagged, 1), 1);
	assert_silent(b);
	send_from(a, a->mac, b->mac, ETHERTYPE, 7, 100);
	expect(b, 7);
	assert_silent(b);
	assert_silent(a);
	cn_link_counters(b, &n);
	assert_int_equal(n.ring_drops, 0);
}

static void ring__drops_are_counted(void **state)
{
	struct cn_link_counters n;
	struct cn_rx_frame f[BATCH];
	uint32_t seen = 0;
	size_t k;

	(void)state;
	cn_link_close(b);
	b = open_link("b0", 64);
	send_burst(a, b->mac, 1000);
	while ((k = cn_link_recv(b, f, BATCH)) > 0 || readable(b, SILENCE_MS)) {
		seen += (uint32_t)k;
		cn_link_release(b);
	}
	assert_in_range(seen, 32, 200);
	cn_link_counters(b, &n);
	assert_int_equal(n.ring_drops, 1000 - seen);
	/* Counted once, and it goes on. */
	cn_link_counters(b, &n);
	assert_int_equal(n.ring_drops, 1000 - seen);
	send_burst(a, b->mac, 20);
	assert_int_equal(count_in_order(b, SILENCE_MS), 20);
}

static void send__too_long_is_lost_and_counted(void **state)
{
	struct cn_frame f[3];
	struct cn_link_counters n;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		f[i] = make(a->mac, b->mac, ETHERTYPE, i, i == 1 ? a->mtu - 3 : 100);
	}
	assert_int_equal(cn_link_send(a, f, 3), 3);
	expect(b, 0);
	expect(b, 2);
	assert_silent(b);
	cn_link_counters(a, &n);
	assert_int_equal(n.send_errors, 1);
	assert_int_equal(n.send_full, 0);
}

static void queue__full_is_said_and_nothing_is_lost(void **state)
{
	static struct cn_frame f[BATCH];
	struct cn_link_counters n;
	int r;

	(void)state;
	if (!run_command("tc qdisc add dev a0 root tbf rate 1mbit burst 2000 limit 10000000")) {
		print_message("skipped: no tbf here\n");
		skip();
	}
	for (uint32_t i = 0; i < BATCH; i++) {
		f[i] = make(a->mac, b->mac, ETHERTYPE, i, a->mtu - 4);
	}
	r = cn_link_send(a, f, BATCH);
	/* Eight in the queue, one on the wire at once, one more if a token came meanwhile. */
	assert_in_range(r, 8, 10);
	assert_int_equal(cn_link_send(a, f + r, 1), 0);
	cn_link_counters(a, &n);
	assert_in_range(n.send_full, 1, 2);
	assert_false(writable(a, 0));
	assert_true(writable(a, WAIT_MS));
	for (uint32_t sent = (uint32_t)r; sent < BATCH;) {
		assert_true(writable(a, WAIT_MS));
		r = cn_link_send(a, f + sent, BATCH - sent);
		assert_true(r >= 0);
		sent += (uint32_t)r;
	}
	assert_int_equal(count_in_order(b, 500), BATCH);
	cn_link_counters(a, &n);
	assert_int_equal(n.send_errors, 0);
}

/* A queue shorter than ours drops; the packet link notices and lives with less. */
static void queue__shorter_than_asked_for(void **state)
{
	struct cn_link_counters n;

	(void)state;
	if (!run_command("tc qdisc add dev a0 root tbf rate 2mbit burst 2000 limit 8000")) {
		print_message("skipped: no tbf here\n");
		skip();
	}
	send_burst(a, b->mac, 60);
	assert_int_equal(count_in_order(b, 500), 60);
	cn_link_counters(a, &n);
	assert_int_equal(n.send_errors, 0);
	assert_true(n.send_full > 0);
}

/* Sends until it arrives: the kernel takes its time to see that the carrier is back. */
static void assert_works_again(struct cn_link *from, struct cn_link *to, uint32_t number)
{
	struct cn_rx_frame f;

	for (int i = 0; i < WAIT_MS / 10; i++) {
		send_from(from, from->mac, to->mac, ETHERTYPE, number, 100);
		if (next_frame(to, &f, 10)) {
			assert_int_equal(number_of(&f), number);
			cn_link_release(to);
			return;
		}
	}
	fail_msg("nothing comes from %s to %s any more", from->interface, to->interface);
}

static void down__said_once_and_back_again(void **state)
{
	struct cn_frame f = make(a->mac, b->mac, ETHERTYPE, 1, 100);
	struct cn_rx_frame r;

	(void)state;
	assert_true(run_command("ip link set a0 down"));
	assert_int_equal(cn_link_send(a, &f, 1), COLLNET_EIFACE);
	/* The error that the kernel left on the socket must not keep waiting loops awake. */
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(cn_link_recv(a, &r, 1), 0);
	}
	assert_false(readable(a, 0));
	assert_true(run_command("ip link set a0 up"));
	assert_works_again(a, b, 2);
	assert_works_again(b, a, 3);
}

static void gone__interface_deleted(void **state)
{
	struct cn_frame f = make(a->mac, b->mac, ETHERTYPE, 1, 100);
	struct cn_rx_frame r;

	(void)state;
	assert_true(run_command("ip link delete a0"));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cn_link_send(a, &f, 1), COLLNET_EIFACE);
		assert_int_equal(cn_link_recv(a, &r, 1), 0);
	}
}

static void jumbo__whole_frames(void **state)
{
	(void)state;
	cn_link_close(a);
	cn_link_close(b);
	a = b = NULL;
	for (uint32_t mtu = 576; mtu <= 65000; mtu = mtu * 4 - 304) {
		assert_true(run_command("ip link set a0 mtu %u && ip link set b0 mtu %u", mtu,
					mtu));
		a = open_link("a0", 0);
		b = open_link("b0", 0);
		assert_int_equal(a->mtu, mtu);
		send_burst(a, b->mac, 100);
		assert_int_equal(count_in_order(b, SILENCE_MS), 100);
		cn_link_close(a);
		cn_link_close(b);
		a = b = NULL;
	}
}

static void jumbo__queue_holds_what_was_asked_for(void **state)
{
	static struct cn_frame f[BATCH];

	(void)state;
	cn_link_close(a);
	cn_link_close(b);
	assert_true(run_command("ip link set a0 mtu 9000 && ip link set b0 mtu 9000"));
	a = open_link("a0", 0);
	b = open_link("b0", 0);
	if (!run_command("tc qdisc add dev a0 root tbf rate 1mbit burst 10000 limit 10000000")) {
		print_message("skipped: no tbf here\n");
		skip();
	}
	for (uint32_t i = 0; i < BATCH; i++) {
		f[i] = make(a->mac, b->mac, ETHERTYPE, i, a->mtu - 4);
	}
	assert_in_range(cn_link_send(a, f, BATCH), 8, 10);
}

#define BATTERY(k)                                                                                 \
	TEST(open__addresses_and_descriptors, k), TEST(sizes__every_one_arrives_and_is_padded, k), \
		TEST(burst__all_in_order, k), TEST(borrow__frames_stay_until_released, k),         \
		TEST(broadcast__others_only, k),                                                   \
		TEST(filter__own_foreign_and_tagged_frames_are_not_seen, k),                       \
		TEST(ring__drops_are_counted, k), TEST(send__too_long_is_lost_and_counted, k),     \
		TEST(queue__full_is_said_and_nothing_is_lost, k),                                  \
		TEST(down__said_once_and_back_again, k), TEST(jumbo__whole_frames, k),             \
		TEST(jumbo__queue_holds_what_was_asked_for, k),                                    \
		cmocka_unit_test_prestate_setup_teardown(gone__interface_deleted, set_up,          \
							 tear_down_gone, k)

#define TEST(name, k) cmocka_unit_test_prestate_setup_teardown(name, set_up, tear_down, k)

int main(void)
{
	static char packet[] = "packet";
#ifdef HAVE_PCAP
	static char pcap[] = "pcap";
#endif
	const struct CMUnitTest tests[] = {
		BATTERY(packet),
		TEST(queue__shorter_than_asked_for, packet),
#ifdef HAVE_PCAP
		BATTERY(pcap),
#endif
	};
	const char *why = enter_namespace();

	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
