/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link/packet_send.c and packet_recv.c with the encapsulations udp and tcp, on a pair of veth
 * interfaces: damaged frames, super-frames, offloads that are missing. Exit 77 where the system
 * refuses namespaces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/packet_impl.h"
#include "link_pair.h"
#include "namespace.h"

/* A link beside a, which sends frames as they are. */
static struct cn_link *open_injector(void)
{
	struct cn_link_config c = { .interface = "a0", .ethertype = ETHERTYPE };
	struct cn_link *l = NULL;

	assert_int_equal(cn_link_open(&c, &l, NULL), 0);
	return l;
}

/* A frame of `payload` bytes behind the headers of the encapsulation. */
static struct cn_frame datagram(uint32_t number, size_t payload, uint8_t *memory)
{
	static uint8_t flat[2000];
	struct cn_frame f = link_frame(link_a->mac, link_b->mac, ETHERTYPE, number, 0),
			out = { .head_len = 0 };
	size_t len;

	memcpy(flat, f.head, f.head_len);
	memcpy(flat + f.head_len, link_bytes, payload);
	len = cn_encapsulate(memory, link_encapsulation, flat, f.head_len + payload, ETHERTYPE);
	memcpy(out.head, memory, CN_ETH_HEADER);
	out.head_len = CN_ETH_HEADER;
	out.payload = memory + CN_ETH_HEADER;
	out.payload_len = (uint16_t)(len - CN_ETH_HEADER);
	return out;
}

static void encapsulated__damaged_frames_are_dropped(void **state)
{
	struct cn_link *injector = open_injector();
	uint8_t memory[2000];
	struct cn_frame f = datagram(1, 40, memory);
	uint8_t *p = memory + CN_ETH_HEADER;

	(void)state;
	assert_int_equal(cn_link_send(injector, &f, 1), 1);
	link_expect(link_b, 1);
	for (size_t bit = 0; bit < (size_t)f.payload_len * 8; bit++) {
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(cn_link_send(injector, &f, 1), 1);
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	memset(p + 20 + cn_checksum_offset(link_encapsulation), 0, 2); /* without a checksum */
	assert_int_equal(cn_link_send(injector, &f, 1), 1);
	link_assert_silent(link_b);
	f = datagram(2, 40, memory);
	assert_int_equal(cn_link_send(injector, &f, 1), 1);
	link_expect(link_b, 2);
	cn_link_close(injector);
}

/* The status of the frame that comes next, as Linux before 6.1 sets it for a network card that has
 * summed the frame up. */
static void encapsulated__sums_that_nobody_compared_are_not_trusted(void **state)
{
	struct packet_link *p = (struct packet_link *)link_b;
	struct cn_link *injector = open_injector();
	uint8_t memory[2000];
	struct cn_frame f = datagram(1, 40, memory);
	struct tpacket2_hdr *h;

	(void)state;
	for (int damaged = 1; damaged >= 0; damaged--) {
		memory[f.payload_len] ^= (uint8_t)damaged;
		assert_int_equal(cn_link_send(injector, &f, 1), 1);
		memory[f.payload_len] ^= (uint8_t)damaged;
		assert_true(link_readable(link_b, WAIT_MS));
		h = (struct tpacket2_hdr *)(void *)(p->ring +
						    (size_t)p->head.block * p->block_bytes +
						    (size_t)p->head.slot * p->slot_bytes);
		h->tp_status |= TP_STATUS_CSUM_VALID;
		if (damaged) {
			link_assert_silent(link_b);
		} else {
			link_expect(link_b, 1);
		}
	}
	cn_link_close(injector);
}

static void encapsulated__frames_of_another_encapsulation_are_marked(void **state)
{
	struct cn_link *injector = open_injector();
	struct cn_rx_frame f;

	(void)state;
	link_send_from(injector, link_a->mac, link_b->mac, ETHERTYPE, 3, 100);
	assert_true(link_next(link_b, &f, WAIT_MS));
	assert_int_equal(link_number(&f), 3);
	assert_int_equal(f.encapsulation, CN_ENCAPSULATION_RAW);
	cn_link_release(link_b);
	link_send_from(link_b, link_b->mac, link_everyone, ETHERTYPE, 4, 100);
	assert_true(link_next(injector, &f, WAIT_MS));
	assert_int_equal(link_number(&f), 4);
	assert_int_equal(f.encapsulation, link_encapsulation);
	cn_link_close(injector);
}

/* Where payloads are received: with room for a random part of a super-frame. Only when all frames
 * before it have been processed is it known where it belongs. */
static struct {
	uint8_t memory[70000];
	uint64_t random;
	uint32_t asked, next; /* super-frames; the number of the frame that is next */
} place;

static bool any_room(void *ctx, const struct cn_rx_frame *first, struct cn_rx_place *out)
{
	assert_ptr_equal(ctx, &place);
	assert_int_equal(link_number(first), place.next);
	place.asked++;
	memset(place.memory, 0xee, sizeof(place.memory));
	*out = (struct cn_rx_place){ place.memory, cn_random(&place.random) % sizeof(place.memory),
				     4 };
	return cn_random(&place.random) % 8 != 0;
}

/* A frame with its number and link_bytes, whole or in two pieces. Returns how many are apart. */
static uint32_t assert_frame(const struct cn_rx_frame *f, uint32_t number)
{
	assert_int_equal(link_number(f), number);
	assert_memory_equal(f->payload != NULL ? f->payload : f->data + 4, link_bytes, f->len - 4);
	if (f->payload != NULL) {
		assert_uint_in_range((uintptr_t)f->payload, (uintptr_t)place.memory,
				     (uintptr_t)place.memory + sizeof(place.memory) - (f->len - 4));
	}
	return f->payload != NULL;
}

/* Runs of equal frames, shorter ones and other destinations, in batches of any size. */
static void mixed_batches_arrive_in_order(bool placed)
{
	static const uint8_t third[6] = { 2, 1, 2, 3, 4, 5 };
	static struct cn_frame f[200];
	struct cn_rx_frame r[7];
	uint64_t random = 11;
	uint32_t next = 0, count = 0, apart = 0;
	size_t k;

	place.random = 17;
	place.asked = place.next = 0;
	cn_link_set_place(link_b, placed ? any_room : NULL, &place);
	for (int round = 0; round < 20; round++) {
		size_t n = 1 + cn_random(&random) % 200;

		for (size_t i = 0; i < n; i++) {
			bool other = cn_random(&random) % 8 == 0;
			size_t len = cn_random(&random) % 4 != 0 ? link_frame_max(link_a) - 4
								 : cn_random(&random) % 900;

			f[i] = link_frame(link_a->mac, other ? third : link_b->mac, ETHERTYPE,
					  other ? 0 : count, len);
			count += !other;
		}
		for (size_t sent = 0; sent < n;) {
			int s = cn_link_send(link_a, f + sent, n - sent);

			assert_true(s >= 0);
			sent += (size_t)s;
		}
		while ((k = cn_link_recv(link_b, r, 1 + cn_random(&random) % 7)) > 0 ||
		       (next < count && link_readable(link_b, WAIT_MS))) {
			for (size_t i = 0; i < k; i++) {
				apart += assert_frame(&r[i], next++);
			}
			place.next = next;
			cn_link_release(link_b);
		}
		assert_int_equal(next, count);
	}
	assert_true(placed ? apart > count / 8 && apart < count : apart == 0);
	assert_int_equal(place.asked > 0, placed);
}

/* Skips a test of super-frames where the kernel refuses those of the encapsulation. */
static void need_super_frames(void)
{
	link_send_burst(link_a, link_b->mac, 2);
	link_expect_burst(link_b, 2);
	if (((struct packet_link *)link_a)->single_until != 0) {
		assert_int_equal(link_encapsulation, CN_ENCAPSULATION_UDP);
		print_message(
			"skipped: no super-frames of the encapsulation udp before Linux 6.2\n");
		skip();
	}
}

static void offload__mixed_batches_arrive_in_order(void **state)
{
	(void)state;
	mixed_batches_arrive_in_order(false);
}

static void offload__payloads_are_received_in_their_place(void **state)
{
	(void)state;
	need_super_frames();
	mixed_batches_arrive_in_order(true);
}

/* Slots and queued super-frames stay together when the socket reports that the interface is down.
 */
static void offload__frames_that_came_before_the_end_of_the_interface(void **state)
{
	(void)state;
	need_super_frames();
	link_send_burst(link_a, link_b->mac, 132);
	assert_true(run_command("ip link set b0 down"));
	link_expect_burst(link_b, 132);
}

/* Frames of two flows share no super-frame, and no source port, by which GRO would merge them. */
static void offload__flows_are_not_merged(void **state)
{
	struct cn_frame f[12];
	struct cn_rx_frame r;
	uint8_t port[2][2];
	const uint32_t head = cn_encapsulation_bytes(link_encapsulation);
	uint32_t bytes;

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		f[i] = link_frame(link_a->mac, link_b->mac, ETHERTYPE, i, 100);
		f[i].flow = i / 2 % 2 != 0 ? 0x2001 : 1;
	}
	assert_int_equal(cn_link_send(link_a, f, 12), 12);
	for (uint32_t i = 0; i < 12; i++) {
		uint32_t flow = i / 2 % 2;

		assert_true(link_next(link_b, &r, WAIT_MS));
		assert_int_equal(link_number(&r), i);
		if (i < 4 && i % 2 == 0) {
			memcpy(port[flow], r.ether + CN_ETH_HEADER + 20, 2);
		}
		assert_memory_equal(r.ether + CN_ETH_HEADER + 20, port[flow], 2);
		/* The length of the datagram: two frames, merged or cut. */
		bytes = (uint32_t)(r.ether[CN_ETH_HEADER + 2] << 8 | r.ether[CN_ETH_HEADER + 3]);
		assert_uint_in_range(bytes, head + r.len, head + 2 * r.len);
		cn_link_release(link_b);
	}
	assert_memory_not_equal(port[0], port[1], 2);
}

/* Older kernels have no PACKET_VNET_HDR, or take no super-frame: single frames, summed here. */
static void offload__without_offload(void **state)
{
	struct packet_link *p = (struct packet_link *)link_a;
	const int off = 0;

	(void)state;
	assert_true(p->vnet);
	p->gso = false;
	link_send_burst(link_a, link_b->mac, 200);
	link_expect_burst(link_b, 200);
	assert_int_equal(setsockopt(link_a->send_fd, SOL_PACKET, PACKET_VNET_HDR, &off,
				    sizeof(off)),
			 0);
	p->vnet = false;
	link_send_burst(link_a, link_b->mac, 200);
	link_expect_burst(link_b, 200);
}

/* The network card's part is done by the kernel: single frames are what arrives. */
static void offload__cut_on_the_way(void **state)
{
	(void)state;
	if (!run_command("tc qdisc add dev a0 root tbf rate 1gbit burst 3000 limit 10000000")) {
		print_message("skipped: no tbf here\n");
		skip();
	}
	link_send_burst(link_a, link_b->mac, 300);
	link_expect_burst(link_b, 300);
}

/* Super-frames that the receive buffer has no room for are counted by the frames in them; those of
 * the encapsulation that the link does not use are not. */
static void offload__super_frames_without_room(void **state)
{
	const int least = 1;
	struct cn_link_counters n;
	struct cn_rx_frame f[BATCH];
	uint32_t seen;

	(void)state;
	need_super_frames();
	assert_int_equal(setsockopt(link_b->recv_fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)),
			 0);
	link_send_burst(link_a, link_b->mac, 300);
	seen = link_count_received(link_b, 300);
	assert_uint_in_range(seen, 0, 250);
	link_b->encapsulation = CN_ENCAPSULATION_RAW;
	link_send_burst(link_a, link_b->mac, 300);
	while (cn_link_recv(link_b, f, BATCH) > 0 || link_readable(link_b, SILENCE_MS)) {
		cn_link_release(link_b);
	}
	cn_link_counters(link_b, &n);
	assert_int_equal(n.ring_drops, 300 - seen);
	link_b->encapsulation = link_encapsulation;
}

/* An interface t0 whose cable is a descriptor; -1: the system has none for us. */
static int open_tap(void)
{
	struct ifreq r = { .ifr_name = "t0", .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd >= 0 && (ioctl(fd, TUNSETIFF, &r) != 0 || !run_command("ip link set t0 up"))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A frame of so many bytes comes by the cable, or one as with UDP fragmentation offload. */
static void put_on_cable(int tap, const struct cn_link *l, size_t bytes, uint8_t gso)
{
	static uint8_t out[sizeof(struct virtio_net_hdr) + CN_HEAD_MAX + 4000];
	const struct virtio_net_hdr vnet = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.hdr_len = (uint16_t)cn_head_bytes(link_encapsulation),
		.csum_start = CN_CHECKSUM_START,
		.csum_offset = (uint16_t)cn_checksum_offset(link_encapsulation),
		.gso_type = gso,
		.gso_size = gso != 0 ? 1000 : 0,
	};
	uint8_t addresses[12] = { 0 };
	const struct cn_headers h = {
		.encapsulation = link_encapsulation,
		.addresses = addresses,
		.port = ETHERTYPE,
		.bytes = bytes,
	};
	const size_t len = sizeof(vnet) + cn_head_bytes(link_encapsulation) + bytes;

	memcpy(addresses, l->mac, 6);
	addresses[6] = 2;
	memcpy(out, &vnet, sizeof(vnet));
	cn_headers_put(out + sizeof(vnet), &h);
	assert_int_equal(write(tap, out, len), len);
}

/* Linux drops it, and keeps its slot of the ring: all that follows would be dropped, too. */
static void offload__a_frame_that_the_kernel_cannot_describe(void **state)
{
	const enum cn_encapsulation e = link_encapsulation;
	const int tap = open_tap();
	struct cn_rx_frame f;
	struct cn_link *l;
	bool came = false;

	(void)state;
	if (tap < 0) {
		print_message("no interface of the kind tap\n");
		skip();
	}
	l = link_open("t0", 0);
	put_on_cable(tap, l, 100, 0);
	assert_true(link_next(l, &f, WAIT_MS));
	link_encapsulation = CN_ENCAPSULATION_UDP;
	put_on_cable(tap, l, 4000, VIRTIO_NET_HDR_GSO_UDP);
	link_encapsulation = e;
	for (int i = 0; i < 20 && !came; i++) {
		cn_link_release(l);
		link_send_from(l, l->mac, link_everyone, ETHERTYPE, 1, 100);
		put_on_cable(tap, l, 100, 0);
		came = link_next(l, &f, SILENCE_MS);
	}
	assert_true(came);
	for (int i = 0; i < 20; i++) {
		cn_link_release(l);
		put_on_cable(tap, l, 100, 0);
		assert_true(link_next(l, &f, WAIT_MS));
	}
	cn_link_close(l);
	close(tap);
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_prestate_setup_teardown(name, link_set_up, link_tear_down, udp),          \
		cmocka_unit_test_prestate_setup_teardown(name, link_set_up, link_tear_down, tcp)

int main(void)
{
	static char udp[] = "udp", tcp[] = "tcp";
	const struct CMUnitTest tests[] = {
		TEST(encapsulated__damaged_frames_are_dropped),
		TEST(encapsulated__sums_that_nobody_compared_are_not_trusted),
		TEST(encapsulated__frames_of_another_encapsulation_are_marked),
		TEST(offload__mixed_batches_arrive_in_order),
		TEST(offload__payloads_are_received_in_their_place),
		TEST(offload__frames_that_came_before_the_end_of_the_interface),
		TEST(offload__flows_are_not_merged),
		TEST(offload__without_offload),
		TEST(offload__cut_on_the_way),
		TEST(offload__super_frames_without_room),
		TEST(offload__a_frame_that_the_kernel_cannot_describe),
	};
	const char *why = enter_namespace();

	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
