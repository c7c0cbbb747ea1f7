/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link/udp_socket.c: two links on the loopback interface of a namespace of its own. Exit 77
 * where the system refuses namespaces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "link/link.h"
#include "link/udp_address.h"
#include "log_capture.h"
#include "namespace.h"

#define SEED	   5u
#define PORT_A	   40000
#define PORT_B	   40001
#define WAIT_MS	   20000 /* for what comes; never reached */
#define SILENCE_MS 30
#define HEAD	   (CN_ETH_HEADER + 4)

static char hosts[] = "/tmp/collnet-hosts.XXXXXX";
static struct cn_link *a, *b;
static uint8_t bytes[65536];
static const uint8_t everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static int open_with(const char *peers, uint16_t port, struct cn_link **out, struct cn_err *err)
{
	struct cn_udp_peers list = { 0 };
	struct cn_link_config c = {
		.kind = "udp", .interface = "lo", .ethertype = port, .peers = &list
	};
	int rc = cn_udp_peers_read(peers, port, &list, err);

	if (rc == COLLNET_OK) {
		rc = cn_link_open(&c, out, err);
	}
	free(list.list);
	return rc;
}

static int try_open(uint16_t port, struct cn_link **out, struct cn_err *err)
{
	return open_with(hosts, port, out, err);
}

static int set_up(void **state)
{
	struct cn_err err = { 0 };

	(void)state;
	if (try_open(PORT_A, &a, &err) != COLLNET_OK || try_open(PORT_B, &b, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cn_link_close(a);
	cn_link_close(b);
	return 0;
}

static struct cn_frame make(const uint8_t to[6], uint32_t number, uint16_t payload)
{
	struct cn_frame f = { .head_len = HEAD,
			      .payload_len = payload,
			      .payload = payload > 0 ? bytes + number % 1000 : NULL };

	memcpy(f.head, to, 6);
	memcpy(f.head + 6, a->mac, 6);
	memcpy(f.head + CN_ETH_HEADER, &number, sizeof(number));
	return f;
}

/* The next frame on a link, within the time. */
static bool next(struct cn_link *l, struct cn_rx_frame *f, int ms)
{
	struct pollfd p = { .fd = l->recv_fd, .events = POLLIN };

	cn_link_release(l);
	while (cn_link_recv(l, f, 1) == 0) {
		if (poll(&p, 1, ms) != 1) {
			return false;
		}
	}
	return true;
}

static void assert_next(struct cn_link *l, const struct cn_frame *sent)
{
	struct cn_rx_frame f;

	if (!next(l, &f, WAIT_MS)) {
		fail_msg("a frame of %u bytes did not come", sent->payload_len);
	}
	assert_int_equal(f.len, 4u + sent->payload_len);
	assert_int_equal(f.encapsulation, CN_ENCAPSULATION_UDP);
	assert_memory_equal(f.ether, l->mac, 6);
	assert_memory_equal(f.ether + 6, sent->head + 6, 6);
	assert_memory_equal(f.data, sent->head + CN_ETH_HEADER, 4);
	if (sent->payload_len > 0) {
		assert_memory_equal(f.data + 4, sent->payload, sent->payload_len);
	}
}

static void assert_silent(struct cn_link *l)
{
	struct cn_rx_frame f;

	assert_false(next(l, &f, SILENCE_MS));
}

static void udp_link__every_size(void **state)
{
	(void)state;
	for (uint32_t n = 0; n <= 3 * 1500; n += n < 100 ? 1 : 37) {
		struct cn_frame f = make(b->mac, n, (uint16_t)n);

		assert_int_equal(cn_link_send(a, &f, 1), 1);
		assert_next(b, &f);
	}
	assert_silent(a);
	assert_silent(b);
}

/* Runs of equal frames, which become super-frames, and others, in batches of every length. */
static void udp_link__order_of_batches(void **state)
{
	static struct cn_frame f[300];

	(void)state;
	for (uint32_t round = 0; round < 40; round++) {
		uint32_t n = 1 + (uint32_t)(cn_mix64(SEED + round) % 300), done = 0, taken = 0;

		for (uint32_t i = 0; i < n; i++) {
			uint16_t len = cn_mix64(i * 40 + round) % 8 == 0 ? (uint16_t)(i * 3) : 1400;

			f[i] = make(b->mac, i, len);
		}
		while (taken < n) {
			struct pollfd p = { .fd = a->send_fd, .events = POLLOUT };
			int r = cn_link_send(a, f + done, n - done);

			assert_true(r >= 0);
			done += (uint32_t)r;
			while (taken < done) {
				assert_next(b, &f[taken++]);
			}
			if (done < n) {
				assert_int_equal(poll(&p, 1, WAIT_MS), 1);
			}
		}
	}
	assert_silent(b);
}

/* Frames to a port on which nobody listens are lost, and no errors of the link. */
static void udp_link__nobody_listens(void **state)
{
	struct cn_link_counters counters;
	struct sockaddr_in to;
	struct cn_frame f;
	uint8_t mac[6];

	(void)state;
	assert_true(cn_udp_address_get(b->mac, &to));
	to.sin_port = htons(PORT_B + 7);
	cn_udp_address_put(mac, &to);
	f = make(mac, 1, 100);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(cn_link_send(a, &f, 1), 1);
		assert_silent(a);
	}
	cn_link_counters(a, &counters);
	assert_int_equal(counters.send_errors, 0);
}

/* To all nodes of the list, but not back; among frames to one of them. */
static void udp_link__broadcast(void **state)
{
	struct cn_frame f[3] = { make(b->mac, 1, 100), make(everyone, 2, 100),
				 make(b->mac, 3, 100) };

	(void)state;
	assert_int_equal(cn_link_send(a, f, 3), 3);
	for (int i = 0; i < 3; i++) {
		assert_next(b, &f[i]);
	}
	assert_silent(a);
}

/* Opens a with another list. */
static void open_again(const char *peers)
{
	struct cn_err err = { 0 };

	cn_link_close(a);
	a = NULL;
	if (open_with(peers, PORT_A, &a, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

/* A host that nothing can be sent to does not hide those after it in the list. */
static void udp_link__broadcast_past_a_host_without_route(void **state)
{
	struct cn_frame f = make(everyone, 2, 100);

	(void)state;
	open_again("10.9.9.[0-3],127.0.0.1:40001");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cn_link_send(a, &f, 1), 1);
		assert_next(b, &f);
	}
}

/* Hosts that do not answer leave room in the send buffer for those that do: for messages to them,
 * and for broadcasts. */
static void udp_link__silent_hosts_leave_room(void **state)
{
	struct cn_frame hello = make(everyone, 2, 100), f = make(b->mac, 3, 1400);
	struct cn_link_counters n;
	struct cn_rx_frame got;
	int hellos = 0;

	(void)state;
	assert_true(run_command("ip link add dummy7 type veth peer name dummy6 && "
				"ip link set dummy6 up && ip link set dummy7 up && "
				"ip addr add 10.8.0.1/24 dev dummy7"));
	if (!run_command("echo 1 > /proc/sys/net/ipv4/conf/dummy7/route_localnet")) {
		assert_true(run_command("ip link del dummy7"));
		print_message("skipped: the source 127.0.0.1 is refused there\n");
		skip();
	}
	open_again("10.8.0.[2-60],127.0.0.1:40001");
	for (int i = 0; i < 20; i++) {
		struct cn_frame answer = make(a->mac, 1, 100);

		assert_int_equal(cn_link_send(b, &answer, 1), 1);
		assert_true(next(a, &got, WAIT_MS));
		assert_int_equal(cn_link_send(a, &hello, 1), 1);
	}
	cn_link_counters(a, &n);
	assert_int_equal(n.send_errors, 0); /* they wait for an answer to ARP */
	assert_int_equal(cn_link_send(a, &f, 1), 1);
	while (next(b, &got, WAIT_MS) && got.len != 1404) {
		hellos++;
	}
	assert_int_equal(got.len, 1404);
	assert_int_equal(hellos, 20);
	assert_true(run_command("ip link del dummy7"));
}

/* The loss of the address is an error of the interface, also of a broadcast. */
static void udp_link__moves(void **state)
{
	struct cn_frame f[2] = { make(b->mac, 1, 100), make(everyone, 2, 100) };

	(void)state;
	assert_true(run_command("ip addr del 127.0.0.1/8 dev lo && "
				"ip addr add 10.7.0.1/32 dev lo"));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cn_link_send(a, &f[i], 1), COLLNET_EIFACE);
		assert_true(a->moved);
	}
	assert_true(run_command("ip addr del 10.7.0.1/32 dev lo && "
				"ip addr add 127.0.0.1/8 dev lo"));
}

/* An address that is no longer the interface's first, where one host cannot be reached. */
static void udp_link__another_address_is_first(void **state)
{
	struct sockaddr_in nowhere = { .sin_family = AF_INET, .sin_port = htons(40000) };
	struct cn_frame f = make(b->mac, 1, 100), lost;
	struct cn_link_counters n;
	uint8_t mac[6];

	(void)state;
	nowhere.sin_addr.s_addr = htonl(0x0a420001); /* 10.66.0.1 */
	cn_udp_address_put(mac, &nowhere);
	lost = make(mac, 2, 100);
	assert_true(run_command(
		"ip addr add 10.7.0.1/8 scope host dev lo && ip addr del 127.0.0.1/8 dev lo && "
		"ip addr add 127.0.0.1/8 dev lo && ip route add blackhole 10.66.0.1"));
	assert_int_equal(cn_link_send(a, &lost, 1), 1);
	assert_false(a->moved);
	cn_link_counters(a, &n);
	assert_int_equal(n.send_errors, 1);
	assert_int_equal(cn_link_send(a, &f, 1), 1);
	assert_true(
		run_command("ip route del blackhole 10.66.0.1 && ip addr del 10.7.0.1/8 dev lo"));
}

/* What is dropped does not keep the caller. */
static void udp_link__drops_in_parts(void **state)
{
	struct cn_frame f = make(b->mac, 9, 10);
	struct pollfd p = { .fd = b->recv_fd, .events = POLLIN };
	struct sockaddr_in to;
	struct cn_rx_frame got;
	uint32_t empty = 0;

	(void)state;
	assert_true(cn_udp_address_get(b->mac, &to));
	for (int i = 0; i < 100; i++) {
		assert_int_equal(sendto(a->send_fd, "", 0, 0, (struct sockaddr *)&to, sizeof(to)),
				 0);
	}
	assert_int_equal(cn_link_send(a, &f, 1), 1);
	while (cn_link_recv(b, &got, 1) == 0) {
		assert_true(++empty < 100);
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	}
	assert_true(empty > 0);
	assert_silent(b);
}

/* What the kernel drops because nobody reads is counted. */
static void udp_link__counts_what_the_kernel_drops(void **state)
{
	const int least = 1;
	struct cn_frame f;
	struct cn_link_counters n;
	struct cn_rx_frame got[16];
	uint32_t seen = 0;
	size_t k;

	(void)state;
	assert_int_equal(setsockopt(b->recv_fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
	for (uint32_t i = 0; i < 100; i++) {
		f = make(b->mac, i, 1000);
		assert_int_equal(cn_link_send(a, &f, 1), 1);
	}
	while ((k = cn_link_recv(b, got, 16)) > 0) {
		seen += (uint32_t)k;
		cn_link_release(b);
	}
	assert_uint_in_range(seen, 1, 50);
	cn_link_counters(b, &n);
	assert_int_equal(n.ring_drops, 100 - seen);
}

static void share_port(int fd)
{
	const int on = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
}

/* A socket on this address sends to a link. */
static void send_from(const char *address, uint16_t port, const struct cn_link *l)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(port) }, to;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	share_port(fd);
	assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
	assert_true(cn_udp_address_get(l->mac, &to));
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(sendto(fd, "stranger", 8, 0, (struct sockaddr *)&to, sizeof(to)), 8);
	close(fd);
}

/* A list says who takes part: frames of others are dropped, and few lines say so. */
static void udp_link__not_in_the_list(void **state)
{
	struct cn_frame f = make(b->mac, 9, 10);

	(void)state;
	log_capture();
	send_from("127.0.0.1", PORT_B + 1, b);
	send_from("127.0.0.1", PORT_B + 1, b);
	assert_silent(b);
	assert_int_equal(logged_lines, 1);
	assert_non_null(strstr(logged,
			       "interface lo: 127.0.0.1:40002 is not in the list of peers"));
	for (uint16_t i = 0; i < 4; i++) { /* two in turns */
		send_from("127.0.0.1", PORT_B + 1 + i % 2, b);
	}
	assert_silent(b);
	assert_int_equal(logged_lines, 2);
	for (uint16_t i = 1; i < 100; i++) {
		send_from("127.0.0.1", PORT_B + 1 + i, b);
	}
	assert_silent(b);
	assert_int_equal(logged_lines, 4);
	assert_non_null(strstr(logged, "127.0.0.1:40005"));
	assert_non_null(strstr(logged, "others are not logged"));
	assert_int_equal(cn_link_send(a, &f, 1), 1);
	assert_next(b, &f);
	assert_silent(b);
	log_capture_end();
}

/* Nodes that find each other by a group have the same port, which no other program can have. */
static void udp_link__other_port_in_a_group(void **state)
{
	struct cn_link *l = NULL;
	struct cn_err err = { 0 };
	struct cn_rx_frame got;

	(void)state;
	log_capture();
	if (open_with("239.1.2.3", PORT_B + 1, &l, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	send_from("127.0.0.1", PORT_B + 2, l);
	send_from("127.0.0.9", PORT_B + 3, l);
	send_from("127.0.0.9", 2000, l);
	assert_silent(l);
	assert_non_null(strstr(logged, "127.0.0.1:40003 has another port than this node"));
	assert_int_equal(logged_lines, 3);
	share_port(l->recv_fd);
	send_from("127.0.0.9", PORT_B + 1, l);
	assert_true(next(l, &got, WAIT_MS));
	assert_int_equal(got.len, 8);
	assert_silent(l);
	log_capture_end();
	cn_link_close(l);
}

/* A datagram from a port that no node has, and one without a byte. */
static void udp_link__strangers(void **state)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(2000) }, to;
	struct cn_frame f = make(b->mac, 9, 10);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	(void)state;
	assert_true(cn_udp_address_get(b->mac, &to));
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
	close(fd);
	assert_true(cn_udp_address_get(b->mac, &to));
	assert_int_equal(sendto(a->send_fd, "", 0, 0, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(cn_link_send(a, &f, 1), 1);
	assert_next(b, &f);
	assert_silent(b);
}

static void udp_link__refuses(void **state)
{
	struct cn_link_config c = { .kind = "udp", .interface = "lo", .ethertype = 0x7fff };
	struct cn_link *l = NULL;
	struct cn_err err;

	(void)state;
	assert_int_equal(try_open(PORT_A, &l, &err), COLLNET_EIFACE);
	assert_non_null(strstr(err.text, "UDP port 40000 of interface lo is in use"));
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "too low a port"));
	c.ethertype = PORT_A + 2;
	c.interface = "dummy9";
	assert_true(run_command("ip link add dummy9 type veth peer name dummy8 && "
				"ip link set dummy9 up"));
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EIFACE);
	assert_non_null(strstr(err.text, "interface dummy9 has no IPv4 address"));
	assert_null(l);
}

/* Between the choice of the interface and the link's first look at it. */
static int replace_interface(void *arg)
{
	(void)arg;
	assert_true(run_command("ip link del dummy7 && ip link add dummy7 type veth peer name "
				"dummy6 && ip addr add 10.7.0.1/24 dev dummy7"));
	return socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* A daemon waits for its interface after this error, and ends after others. */
static void udp_link__opens_while_its_interface_is_replaced(void **state)
{
	struct cn_link_config c = { .kind = "udp",
				    .interface = "dummy7",
				    .ethertype = PORT_A + 3,
				    .open_socket = replace_interface };
	struct cn_link *l = NULL;
	struct cn_err err;

	(void)state;
	assert_true(run_command("ip link add dummy7 type veth peer name dummy6 && "
				"ip addr add 10.7.0.1/24 dev dummy7 && ip link set dummy7 up"));
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EIFACE);
	assert_non_null(strstr(err.text, "interface dummy7: multicast group"));
	assert_null(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(udp_link__every_size, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__order_of_batches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__nobody_listens, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__broadcast, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__broadcast_past_a_host_without_route,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__silent_hosts_leave_room, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(udp_link__moves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__another_address_is_first, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(udp_link__drops_in_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__counts_what_the_kernel_drops, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(udp_link__not_in_the_list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__other_port_in_a_group, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__strangers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(udp_link__refuses, set_up, tear_down),
		cmocka_unit_test(udp_link__opens_while_its_interface_is_replaced),
	};
	const char *why = enter_namespace();
	static const char text[] = "127.0.0.9:40000\n127.0.0.1:40001\n127.0.0.1:40000\n";
	int fd, failed;

	if (why == NULL && !run_command("ip link set lo up")) {
		why = "the loopback interface cannot be brought up";
	}
	if (why != NULL) {
		printf("skip: %s\n", why);
		return 77;
	}
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)cn_mix64(SEED + i);
	}
	print_message("seed %u\n", SEED);
	fd = mkstemp(hosts);
	if (fd < 0 || write(fd, text, sizeof(text) - 1) != (ssize_t)sizeof(text) - 1) {
		return 1;
	}
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(hosts);
	return failed;
}
