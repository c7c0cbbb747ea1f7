/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link/link.c, packet.c and pcap.c on a pair of veth interfaces in a namespace of its own:
 * the same battery over both links, and over the packet link with the encapsulations udp and tcp
 * (more of which is in test_link_encapsulated). Exit 77 where the system refuses namespaces.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "link/kinds.h"
#include "link/super_frame.h"
#include "link_pair.h"
#include "namespace.h"

static void open__addresses_and_descriptors(void **state)
{
	(void)state;
	assert_string_equal(link_a->ops->name, link_kind);
	assert_string_equal(link_a->interface, "a0");
	assert_int_equal(link_a->mtu, 1500);
	assert_true(link_a->recv_fd >= 0 && link_a->send_fd >= 0);
	assert_memory_not_equal(link_a->mac, link_b->mac, 6);
	/* libpcap may have caught something before its filter was in place, and wake up for it. */
	link_assert_silent(link_a);
	assert_false(link_readable(link_a, 0));
	assert_true(link_writable(link_a, 0));
}

static void sizes__every_one_arrives_and_is_padded(void **state)
{
	static const uint8_t zeros[CN_ETH_MIN];
	const size_t padded = link_encapsulation == CN_ENCAPSULATION_RAW ? 46 : 0;

	(void)state;
	for (size_t len = padded == 0; len <= link_frame_max(link_a); len++) {
		struct cn_frame f = link_frame(link_a->mac, link_b->mac, ETHERTYPE, 0, len);
		struct cn_rx_frame r;

		f.head_len = CN_ETH_HEADER;
		assert_int_equal(cn_link_send(link_a, &f, 1), 1);
		assert_true(link_next(link_b, &r, WAIT_MS));
		assert_int_equal(r.len, len < padded ? padded : len);
		assert_memory_equal(r.ether, f.head, 12);
		assert_int_equal(r.encapsulation, link_encapsulation);
		assert_memory_equal(r.data, link_bytes, len);
		assert_memory_equal(r.data + len, zeros, r.len - len);
		cn_link_release(link_b);
	}
	/* All in the head, nothing in the payload, up to the largest head. */
	for (size_t len = padded == 0; len <= CN_FRAME_HEAD - CN_ETH_HEADER; len++) {
		struct cn_frame f = link_frame(link_a->mac, link_b->mac, ETHERTYPE, 0, 0);
		struct cn_rx_frame r;

		memcpy(f.head + CN_ETH_HEADER, link_bytes, len);
		f.head_len = (uint16_t)(CN_ETH_HEADER + len);
		f.payload = NULL;
		assert_int_equal(cn_link_send(link_a, &f, 1), 1);
		assert_true(link_next(link_b, &r, WAIT_MS));
		assert_memory_equal(r.ether, f.head, 12);
		assert_memory_equal(r.data, f.head + CN_ETH_HEADER, len);
		cn_link_release(link_b);
	}
}

static void burst__all_in_order(void **state)
{
	const uint32_t burst = link_burst(link_b, 1000);
	struct cn_link_counters n;

	(void)state;
	/* So many that the ring of 2,048 slots wraps. */
	for (uint32_t sent = 0; sent < 3000; sent += burst) {
		link_send_burst(link_a, link_b->mac, burst);
		link_expect_burst(link_b, burst);
	}
	cn_link_counters(link_b, &n);
	assert_int_equal(n.ring_drops, 0);
	cn_link_counters(link_a, &n);
	assert_int_equal(n.send_errors, 0);
}

static void borrow__frames_stay_until_released(void **state)
{
	struct cn_rx_frame first, second;

	(void)state;
	link_send_burst(link_a, link_b->mac, 2);
	assert_true(link_next(link_b, &first, WAIT_MS));
	assert_true(link_next(link_b, &second, WAIT_MS));
	assert_int_equal(link_number(&first), 0);
	assert_int_equal(link_number(&second), 1);
	link_send_burst(link_a, link_b->mac, 40);
	assert_int_equal(link_number(&first), 0);
	assert_int_equal(link_number(&second), 1);
	cn_link_release(link_b);
	link_expect_burst(link_b, 40);
}

static void broadcast__others_only(void **state)
{
	(void)state;
	link_send_from(link_a, link_a->mac, link_everyone, ETHERTYPE, 5, 100);
	link_expect(link_b, 5);
	link_assert_silent(link_a);
}

static void filter__own_foreign_and_tagged_frames_are_not_seen(void **state)
{
	static const uint8_t third[6] = { 2, 1, 2, 3, 4, 5 };
	struct cn_frame tagged = link_frame(link_a->mac, link_b->mac, 0x8100, 5u << 16 | ETHERTYPE,
					    100);
	struct cn_link_counters n;

	(void)state;
	assert_true(run_command("ip link set b0 promisc on"));
	link_send_from(link_a, link_a->mac, link_b->mac, 0x88b6, 1, 100);
	link_send_from(link_a, link_a->mac, link_b->mac, 0x0800, 2, 100);
	link_send_from(link_a, link_a->mac, third, ETHERTYPE, 3, 100);
	/* A frame of its own that comes back, by a loop in the network. */
	link_send_from(link_a, link_b->mac, link_everyone, ETHERTYPE, 4, 100);
	link_send_from(link_a, link_b->mac, link_b->mac, ETHERTYPE, 5, 100);
	assert_int_equal(cn_link_send(link_a, &tagged, 1), 1);
	link_assert_silent(link_b);
	link_send_from(link_a, link_a->mac, link_b->mac, ETHERTYPE, 7, 100);
	link_expect(link_b, 7);
	link_assert_silent(link_b);
	link_assert_silent(link_a);
	cn_link_counters(link_b, &n);
	assert_int_equal(n.ring_drops, 0);
}

/* Frames of nothing but headers, which another host can send, and the one after them. */
static void empty__is_not_seen(void **state)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETHERTYPE),
				  .sll_ifindex = (int)if_nametoindex("a0") };
	struct cn_frame f = link_frame(link_a->mac, link_b->mac, ETHERTYPE, 0, 0);
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);

	(void)state;
	f.head_len = CN_ETH_HEADER;
	assert_int_equal(sendto(fd, f.head, CN_ETH_HEADER, 0, (void *)&to, sizeof(to)),
			 CN_ETH_HEADER);
	close(fd);
	if (link_encapsulation != CN_ENCAPSULATION_RAW) {
		assert_int_equal(cn_link_send(link_a, &f, 1), 1);
	}
	link_send_from(link_a, link_a->mac, link_b->mac, ETHERTYPE, 7, 100);
	link_expect(link_b, 7);
	link_assert_silent(link_b);
}

/* A full frame with a tag of VLAN 0, as a switch or a card sends it, is a frame of this network. */
static void priority_tag__is_taken_out(void **state)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_8021Q),
				  .sll_ifindex = (int)if_nametoindex("a0") };
	const struct cn_frame tagged = link_frame(link_a->mac, link_b->mac, ETH_P_8021Q,
						  5u << 29 | ETHERTYPE, 0);
	const uint32_t len = link_frame_max(link_b), number = htonl(9);
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);
	static uint8_t bytes[sizeof(link_bytes)];
	struct cn_rx_frame f;

	(void)state;
	memcpy(bytes, tagged.head, CN_ETH_HEADER + 4);
	memcpy(bytes + CN_ETH_HEADER + 4, &number, 4);
	memcpy(bytes + CN_ETH_HEADER + 8, link_bytes, len - 4);
	assert_int_equal(sendto(fd, bytes, CN_ETH_HEADER + 4 + len, 0, (void *)&to, sizeof(to)),
			 CN_ETH_HEADER + 4 + len);
	close(fd);
	assert_true(link_next(link_b, &f, WAIT_MS));
	assert_int_equal(f.len, len);
	assert_int_equal(link_number(&f), 9);
	assert_memory_equal(f.data + 4, link_bytes, len - 4);
	cn_link_release(link_b);
}

static void ring__drops_are_counted(void **state)
{
	struct cn_link_counters n;
	uint32_t seen;

	(void)state;
	cn_link_close(link_b);
	link_b = link_open("b0", 64);
	link_send_burst(link_a, link_b->mac, 1000);
	seen = link_count_received(link_b, 1000);
	assert_uint_in_range(seen, 32, 200);
	/* Counted once, and it goes on. */
	cn_link_counters(link_b, &n);
	assert_int_equal(n.ring_drops, 1000 - seen);
	link_send_burst(link_a, link_b->mac, 20);
	link_expect_burst(link_b, 20);
}

static void send__too_long_is_lost_and_counted(void **state)
{
	struct cn_frame f[3];
	struct cn_link_counters n;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		f[i] = link_frame(link_a->mac, link_b->mac, ETHERTYPE, i,
				  i == 1 ? link_frame_max(link_a) - 3 : 100);
	}
	assert_int_equal(cn_link_send(link_a, f, 3), 3);
	link_expect(link_b, 0);
	link_expect(link_b, 2);
	link_assert_silent(link_b);
	cn_link_counters(link_a, &n);
	assert_int_equal(n.send_errors, 1);
	assert_int_equal(n.send_full, 0);
}

/* The queue of a0 becomes faster, with the next frame that enters it: one that nobody takes. */
static void hurry_queue(void)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_LOOPBACK),
				  .sll_ifindex = (int)if_nametoindex("a0") };
	const struct cn_frame f = link_frame(link_a->mac, link_b->mac, ETH_P_LOOPBACK, 0, 0);
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);

	assert_true(run_command("tc qdisc change dev a0 root tbf rate 1mbit burst 2000 "
				"limit 10000000"));
	assert_int_equal(sendto(fd, f.head, f.head_len, 0, (void *)&to, sizeof(to)), f.head_len);
	close(fd);
}

/* A super-frame is taken whole as long as there is room for anything. */
static void queue__full_is_said_and_nothing_is_lost(void **state)
{
	const uint32_t more = link_encapsulation != CN_ENCAPSULATION_RAW ? CN_SUPER_FRAME_MAX : 0;
	const uint32_t frames = BATCH + more;
	static struct cn_frame f[BATCH + CN_SUPER_FRAME_MAX];
	struct cn_link_counters n;
	int r;

	(void)state;
	/* A frame takes 12 s, longer than the test is kept waiting. */
	if (!run_command("tc qdisc add dev a0 root tbf rate 1kbit burst 2000 limit 10000000")) {
		print_message("skipped: no tbf here\n");
		skip();
	}
	for (uint32_t i = 0; i < frames; i++) {
		f[i] = link_frame(link_a->mac, link_b->mac, ETHERTYPE, i,
				  link_frame_max(link_a) - 4);
	}
	r = cn_link_send(link_a, f, frames);
	/* Eight in the queue, one on the wire at once. */
	assert_uint_in_range(r, 8, 9 + more);
	assert_int_equal(cn_link_send(link_a, f + r, 1), 0);
	cn_link_counters(link_a, &n);
	assert_uint_in_range(n.send_full, 1, 2);
	assert_false(link_writable(link_a, 0));
	hurry_queue();
	assert_true(link_writable(link_a, WAIT_MS));
	for (uint32_t sent = (uint32_t)r; sent < frames;) {
		assert_true(link_writable(link_a, WAIT_MS));
		r = cn_link_send(link_a, f + sent, frames - sent);
		assert_true(r >= 0);
		sent += (uint32_t)r;
	}
	link_expect_burst(link_b, frames);
	cn_link_counters(link_a, &n);
	assert_int_equal(n.send_errors, 0);
}

static int send_buffer_of(const struct cn_link *l)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);

	assert_int_equal(getsockopt(l->send_fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len), 0);
	return bytes;
}

/* A queue shorter than ours drops; the packet link notices and lives with less, until the queue is
 * long enough again. */
static void queue__shorter_than_asked_for(void **state)
{
	const int full = send_buffer_of(link_a);
	struct cn_link_counters n;

	(void)state;
	if (!run_command("tc qdisc add dev a0 root tbf rate 2mbit burst 2000 limit 8000")) {
		print_message("skipped: no tbf here\n");
		skip();
	}
	link_send_burst(link_a, link_b->mac, 10);
	assert_true(send_buffer_of(link_a) < full);
	link_expect_burst(link_b, 10);
	link_send_burst(link_a, link_b->mac, 60);
	link_expect_burst(link_b, 60);
	cn_link_counters(link_a, &n);
	assert_int_equal(n.send_errors, 0);
	assert_true(n.send_full > 0);
	assert_true(run_command("tc qdisc del dev a0 root"));
	for (uint32_t i = 0; i < WAIT_MS / 10 && send_buffer_of(link_a) < full; i++) {
		link_send_from(link_a, link_a->mac, link_b->mac, ETHERTYPE, i, 100);
		link_expect(link_b, i);
		link_assert_silent(link_b);
	}
	assert_int_equal(send_buffer_of(link_a), full);
}

/* Sends until it arrives: the kernel takes its time to see that the carrier is back. */
static void assert_works_again(struct cn_link *from, struct cn_link *to, uint32_t number)
{
	struct cn_rx_frame f;

	for (int i = 0; i < WAIT_MS / 10; i++) {
		link_send_from(from, from->mac, to->mac, ETHERTYPE, number, 100);
		if (link_next(to, &f, 10)) {
			assert_int_equal(link_number(&f), number);
			cn_link_release(to);
			return;
		}
	}
	fail_msg("nothing comes from %s to %s any more", from->interface, to->interface);
}

static void down__said_once_and_back_again(void **state)
{
	const struct cn_frame one = link_frame(link_a->mac, link_b->mac, ETHERTYPE, 1, 100);
	struct cn_frame f[3] = { one, one, one };
	struct cn_link_counters n;
	struct cn_rx_frame r;

	(void)state;
	assert_true(run_command("ip link set a0 down"));
	assert_int_equal(cn_link_send(link_a, f, 3), COLLNET_EIFACE);
	cn_link_counters(link_a, &n);
	assert_int_equal(n.send_errors, 3);
	/* The error that the kernel left on the socket must not keep waiting loops awake. */
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(cn_link_recv(link_a, &r, 1), 0);
	}
	assert_false(link_readable(link_a, 0));
	assert_true(run_command("ip link set a0 up"));
	assert_works_again(link_a, link_b, 2);
	assert_works_again(link_b, link_a, 3);
}

static void gone__interface_deleted(void **state)
{
	struct cn_frame f = link_frame(link_a->mac, link_b->mac, ETHERTYPE, 1, 100);
	struct cn_rx_frame r;

	(void)state;
	assert_true(run_command("ip link delete a0"));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cn_link_send(link_a, &f, 1), COLLNET_EIFACE);
		assert_int_equal(cn_link_recv(link_a, &r, 1), 0);
	}
}

static void jumbo__whole_frames(void **state)
{
	const uint32_t least = CN_FRAME_MTU_MIN + cn_encapsulation_bytes(link_encapsulation);

	(void)state;
	cn_link_close(link_a);
	cn_link_close(link_b);
	link_a = link_b = NULL;
	for (uint32_t mtu = least; mtu <= 65000; mtu = mtu * 4 - 304) {
		uint32_t burst;

		assert_true(run_command("ip link set a0 mtu %u && ip link set b0 mtu %u", mtu,
					mtu));
		link_a = link_open("a0", 0);
		link_b = link_open("b0", 0);
		assert_int_equal(link_a->mtu, mtu);
		burst = link_burst(link_b, 100);
		link_send_burst(link_a, link_b->mac, burst);
		link_expect_burst(link_b, burst);
		cn_link_close(link_a);
		cn_link_close(link_b);
		link_a = link_b = NULL;
	}
}

static void jumbo__queue_holds_what_was_asked_for(void **state)
{
	static struct cn_frame f[BATCH];

	(void)state;
	cn_link_close(link_a);
	cn_link_close(link_b);
	assert_true(run_command("ip link set a0 mtu 9000 && ip link set b0 mtu 9000"));
	link_a = link_open("a0", 0);
	link_b = link_open("b0", 0);
	if (!run_command("tc qdisc add dev a0 root tbf rate 1kbit burst 10000 limit 10000000")) {
		print_message("skipped: no tbf here\n");
		skip();
	}
	for (uint32_t i = 0; i < BATCH; i++) {
		f[i] = link_frame(link_a->mac, link_b->mac, ETHERTYPE, i,
				  link_frame_max(link_a) - 4);
	}
	/* two super-frames of seven, if there are any */
	assert_uint_in_range(cn_link_send(link_a, f, BATCH), 8,
			     link_encapsulation != CN_ENCAPSULATION_RAW ? 14 : 10);
}

#define COMMON(k)                                                                                  \
	TEST(open__addresses_and_descriptors, k), TEST(sizes__every_one_arrives_and_is_padded, k), \
		TEST(burst__all_in_order, k), TEST(borrow__frames_stay_until_released, k),         \
		TEST(broadcast__others_only, k), TEST(send__too_long_is_lost_and_counted, k),      \
		TEST(queue__full_is_said_and_nothing_is_lost, k),                                  \
		TEST(down__said_once_and_back_again, k), TEST(jumbo__whole_frames, k),             \
		TEST(empty__is_not_seen, k), TEST(jumbo__queue_holds_what_was_asked_for, k),       \
		cmocka_unit_test_prestate_setup_teardown(gone__interface_deleted, link_set_up,     \
							 link_tear_down_gone, k)

#define BATTERY(k)                                                                                 \
	COMMON(k), TEST(filter__own_foreign_and_tagged_frames_are_not_seen, k),                    \
		TEST(priority_tag__is_taken_out, k), TEST(ring__drops_are_counted, k)

#define TEST(name, k) cmocka_unit_test_prestate_setup_teardown(name, link_set_up, link_tear_down, k)

int main(void)
{
	static char packet[] = "packet", udp[] = "udp", tcp[] = "tcp";
#ifdef HAVE_PCAP
	static char pcap[] = "pcap";
#endif
	const struct CMUnitTest tests[] = {
		BATTERY(packet), TEST(queue__shorter_than_asked_for, packet),
		COMMON(udp),	 COMMON(tcp),
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
