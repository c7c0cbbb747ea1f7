/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/link/udp_address.c: the addresses that stand for MAC addresses, and files of hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "link/udp_address.h"

#define SEED 77u

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

static bool is(const struct sockaddr_in *a, const char *text, uint16_t port)
{
	struct sockaddr_in b = address(text, port);

	return a->sin_addr.s_addr == b.sin_addr.s_addr && a->sin_port == b.sin_port;
}

/* Every node has an address of its own, which is no group's and leads back to it. */
static void udp_address__and_back(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		uint64_t x = cn_mix64(SEED + i);
		struct sockaddr_in a = {
			.sin_family = AF_INET,
			.sin_port = htons((uint16_t)(CN_UDP_PORT_MIN | (x >> 32 & 0x7fff))),
			.sin_addr.s_addr = htonl((uint32_t)(x % 0xdfffffff) + 1),
		}, b;
		uint8_t mac[6];

		cn_udp_address_put(mac, &a);
		assert_int_equal(mac[0] & 1, 0);
		assert_true(cn_udp_address_get(mac, &b));
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void udp_address__of_no_node(void **state)
{
	static const uint8_t none[][6] = {
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		{ 2, 0, 0, 0, 0, 0 },
		{ 2, 0, 224, 0, 0, 1 },
		{ 2, 0, 255, 255, 255, 255 },
		{ 3, 0, 10, 0, 0, 1 },
	};
	struct sockaddr_in a;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(cn_udp_address_get(none[i], &a));
	}
}

/* Reads a file of this text; the status. */
static int read_text(const char *text, struct cn_udp_peers *out, struct cn_err *err)
{
	char name[] = "/tmp/collnet-hosts.XXXXXX";
	int fd = mkstemp(name), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	rc = cn_udp_peers_read(name, 35001, out, err);
	unlink(name);
	return rc;
}

static void udp_peers_read__hosts(void **state)
{
	struct cn_udp_peers p;
	struct cn_err err;

	(void)state;
	assert_int_equal(read_text("# nodes\n10.0.0.1\n\n 10.0.0.2:40000  # the second\r\n"
				   "localhost:65535",
				   &p, &err),
			 COLLNET_OK);
	assert_int_equal(p.n, 3);
	assert_false(p.group);
	assert_true(is(&p.list[0], "10.0.0.1", 35001));
	assert_true(is(&p.list[1], "10.0.0.2", 40000));
	assert_true(is(&p.list[2], "127.0.0.1", 65535));
	free(p.list);
	assert_int_equal(cn_udp_peers_read("239.1.2.3", 35001, &p, &err), COLLNET_OK);
	assert_true(p.group && p.n == 1);
	assert_true(is(&p.list[0], "239.1.2.3", 35001));
	free(p.list);
}

static void udp_peers_read__list(void **state)
{
	static const char *const bad[][2] = {
		{ "10.0.0.1,", NULL },
		{ ",", "found its end" },
		{ "10.0.0.1,,10.0.0.2", "found ',10.0.0.2'" },
		{ "10.0.0.[1-", "found '10.0.0.[1-'" },
		{ "10.0.0.1:80,", "'80' is not a port from 32768" },
		{ "10.0.0.[1-3],224.0.0.1", "'224.0.0.1' is not the address of a host" },
		{ "10.0.[0-9].[0-200]", "more than 1024 nodes" },
	};
	struct cn_udp_peers p;
	struct cn_err err;

	(void)state;
	assert_int_equal(
		cn_udp_peers_read("10.0.0.[1,9-10],localhost:40000,10.0.0.9,10.0.0.9:40000", 35001,
				  &p, &err),
		COLLNET_OK);
	assert_int_equal(p.n, 5);
	assert_true(is(&p.list[0], "10.0.0.1", 35001) && is(&p.list[2], "10.0.0.10", 35001));
	assert_true(is(&p.list[3], "127.0.0.1", 40000) && is(&p.list[4], "10.0.0.9", 40000));
	free(p.list);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = cn_udp_peers_read(bad[i][0], 35001, &p, &err);

		if ((rc == COLLNET_OK) != (bad[i][1] == NULL) ||
		    (rc != COLLNET_OK && strstr(err.text, bad[i][1]) == NULL)) {
			fail_msg("%s: %d, %s", bad[i][0], rc, err.text);
		}
		free(p.list);
	}
}

static void udp_peers_read__refuses(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "no host: write one per line" },
		{ "# nothing\n", "no host: write one per line" },
		{ "10.0.0.1 10.0.0.2\n", ":1: one HOST or HOST:PORT per line" },
		{ "10.0.0.1\n10.0.0.2:80\n", ":2: host '10.0.0.2': '80' is not a port from 32768" },
		{ "10.0.0.1:40000x\n", "'40000x' is not a port" },
		{ "224.0.0.1\n", ":1: '224.0.0.1' is not the address of a host" },
		{ "0.0.0.0\n", ":1: '0.0.0.0' is not the address of a host" },
	};
	struct cn_udp_peers p;
	struct cn_err err;
	char *many;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read_text(bad[i].text, &p, &err), COLLNET_EINVAL);
		if (strstr(err.text, bad[i].why) == NULL) {
			fail_msg("%s", err.text);
		}
		assert_null(p.list);
	}
	assert_int_equal(cn_udp_peers_read("/nonexistent/hosts", 35001, &p, &err), COLLNET_ESYSTEM);
	assert_non_null(strstr(err.text, "/nonexistent/hosts: No such file"));
	assert_null(strstr(err.text, "comma"));
	assert_int_equal(cn_udp_peers_read("h0", 35001, &p, &err), COLLNET_ESYSTEM);
	assert_non_null(strstr(
		err.text, "h0: No such file or directory; a list of one host ends with a comma"));
	/* It may resolve later. */
	assert_int_equal(read_text("no-such-host.invalid\n", &p, &err), COLLNET_ESYSTEM);
	assert_non_null(strstr(err.text, ":1: host 'no-such-host.invalid': "));
	assert_null(p.list);
	assert_int_equal(cn_udp_peers_read("10.0.0.1", 35001, &p, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "not a multicast group"));
	many = calloc(CN_UDP_PEERS_MAX + 1, 12);
	assert_non_null(many);
	for (uint32_t i = 0, at = 0; i <= CN_UDP_PEERS_MAX; i++) {
		at += (uint32_t)sprintf(many + at, "10.0.%u.%u\n", i / 256, i % 256);
	}
	assert_int_equal(read_text(many, &p, &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, ":1025: more than 1024 nodes"));
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(udp_address__and_back),
		cmocka_unit_test(udp_address__of_no_node),
		cmocka_unit_test(udp_peers_read__hosts),
		cmocka_unit_test(udp_peers_read__list),
		cmocka_unit_test(udp_peers_read__refuses),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
