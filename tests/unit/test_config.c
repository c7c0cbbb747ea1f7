/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/config.c: the configuration file and the command line; listen.c: who may connect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"

static int parse(struct cn_config *c, const char *text, struct cn_err *err)
{
	cn_config_init(c);
	return cn_config_parse(c, text, strlen(text), "file", err);
}

static void parse__every_key(void **state)
{
	static const char text[] = "# a comment\n"
				   "\n"
				   "interface eth1\n"
				   "link = pcap   # another\n"
				   "encapsulation udp\n"
				   "node=h0\n"
				   "\ttopology\t=\t/etc/a b \r\n"
				   "socket /tmp/s\n"
				   "socket-mode 0660\n"
				   "cluster 7\n"
				   "ethertype 0x88B6\n"
				   "window off\n"
				   "peer-timeout 300\n"
				   "user me\n"
				   "group us\n"
				   "max-connections 5\n"
				   "max-teams 6\n"
				   "max-endpoints 7\n"
				   "max-requests 8\n"
				   "max-regions 9\n"
				   "max-memory 9m\n"
				   "log-level debug"; /* and no newline at the end */
	struct cn_config c;

	(void)state;
	assert_int_equal(parse(&c, text, NULL), COLLNET_OK);
	assert_string_equal(c.interface, "eth1");
	assert_string_equal(c.link, "pcap");
	assert_int_equal(c.encapsulation, CN_ENCAPSULATION_UDP);
	assert_string_equal(c.node, "h0");
	assert_string_equal(c.topology, "/etc/a b");
	assert_string_equal(c.socket, "/tmp/s");
	assert_int_equal(c.socket_mode, 0660);
	assert_int_equal(c.cluster, 7);
	assert_int_equal(c.ethertype, 0x88B6);
	assert_int_equal(c.window, COLLNET_WINDOW_OFF);
	assert_int_equal(c.peer_timeout_ms, 300);
	assert_string_equal(c.user, "me");
	assert_string_equal(c.group, "us");
	assert_int_equal(c.limits[CN_QUOTA_CONNECTIONS], 5);
	assert_int_equal(c.limits[CN_QUOTA_TEAMS], 6);
	assert_int_equal(c.limits[CN_QUOTA_ENDPOINTS], 7);
	assert_int_equal(c.limits[CN_QUOTA_REQUESTS], 8);
	assert_int_equal(c.limits[CN_QUOTA_REGIONS], 9);
	assert_int_equal(c.limits[CN_QUOTA_MEMORY], 9 << 20);
	assert_int_equal(c.log_level, COLLNET_LOG_DEBUG);
}

static void parse__errors_name_file_and_line(void **state)
{
	static const struct {
		const char *text, *begin, *word;
	} bad[] = {
		{ "interface\n", "file:1: ", "no value" },
		{ "\n\nfrobnicate 1\n", "file:3: ", "frobnicate" },
		{ "node h0\nwindow 0\n", "file:2: ", "window is '0'" },
		{ "window 65536\n", "file:1: ", "65535" },
		{ "peer-timeout 299\n", "file:1: ", "300 to 60000" },
		{ "peer-timeout 60001\n", "file:1: ", "300 to 60000" },
		{ "window = \n", "file:1: ", "no value" },
		{ "cluster 65536\n", "file:1: ", "cluster" },
		{ "cluster 1 2\n", "file:1: ", "'1 2'" },
		{ "ethertype 0x10\n", "file:1: ", "0x0600" },
		{ "\nethertype 0x0800\n", "file:2: ", "no other protocol" },
		{ "socket-mode 888\n", "file:1: ", "octal" },
		{ "socket-mode 7777\n", "file:1: ", "octal" },
		{ "log-level loud\n", "file:1: ", "debug" },
		{ "link mem\n", "file:1: ", "packet, udp or pcap" },
		{ "encapsulation ip\n", "file:1: ", "raw, udp or tcp" },
		{ "node a b\n", "file:1: ", "node" },
		{ "interface sixteen-letters-\n", "file:1: ", "interface" },
		{ "interface eth0,eth1\n", "file:1: ", "one Ethernet interface" },
		{ "interface eth0 eth1\n", "file:1: ", "one Ethernet interface" },
		{ "foreground yes\n", "file:1: ", "unknown key" },
		{ "config x\n", "file:1: ", "unknown key" },
		{ "ready-fd 1\n", "file:1: ", "unknown key" },
		{ "window 7\n#\nnode h0\nwindow 7\n", "file:4: ", "twice, first in line 1" },
		{ "node h0\nnode h1\n", "file:2: ", "node is specified twice, first in line 1" },
	};
	struct cn_config c;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cn_err err = { .code = 0 };

		assert_int_equal(parse(&c, bad[i].text, &err), COLLNET_ETOPO);
		assert_memory_equal(err.text, bad[i].begin, strlen(bad[i].begin));
		assert_non_null(strstr(err.text, bad[i].word));
	}
}

static void parse__no_text(void **state)
{
	static const char zero[] = "node h0\nno\0de h1\n";
	struct cn_config c;
	struct cn_err err;
	char line[3000];

	(void)state;
	cn_config_init(&c);
	assert_int_equal(cn_config_parse(&c, zero, sizeof(zero) - 1, "f", &err), COLLNET_ETOPO);
	assert_memory_equal(err.text, "f:2:", 4);
	memset(line, 'x', sizeof(line));
	assert_int_equal(cn_config_parse(&c, line, sizeof(line), "f", &err), COLLNET_ETOPO);
	assert_non_null(strstr(err.text, "longer"));
	assert_int_equal(cn_config_parse(&c, "", 0, "f", &err), COLLNET_OK);
}

static void read__no_such_file(void **state)
{
	struct cn_config c;
	struct cn_err err;

	(void)state;
	cn_config_init(&c);
	assert_int_equal(cn_config_read(&c, "/nonexistent/c", &err), COLLNET_ETOPO);
	assert_non_null(strstr(err.text, "configuration /nonexistent/c: "));
}

#define ARGS(c, err, ...)                                                                          \
	run((c), (err), (char *[]){ (char *)(uintptr_t) "collnetd", __VA_ARGS__, NULL })
#define A(s) ((char *)(uintptr_t)(s))

static int run(struct cn_config *c, struct cn_err *err, char **argv)
{
	const char *text = NULL;
	int argc = 0, rc;

	while (argv[argc] != NULL) {
		argc++;
	}
	cn_config_init(c);
	rc = cn_config_args(c, argc, argv, &text, err);
	assert_int_equal(rc == COLLNET_INPROGRESS, text != NULL);
	return rc;
}

static void args__as_the_lab_calls_it(void **state)
{
	struct cn_config c;

	(void)state;
	assert_int_equal(ARGS(&c, NULL, A("--interface"), A("eth0"), A("--node"), A("h3"),
			      A("--topology"), A("/t"), A("--socket"), A("/s"), A("--cluster"),
			      A("9"), A("--user"), A("none"), A("--ready-fd"), A("4")),
			 COLLNET_OK);
	assert_string_equal(c.interface, "eth0");
	assert_string_equal(c.node, "h3");
	assert_string_equal(c.topology, "/t");
	assert_string_equal(c.socket, "/s");
	assert_int_equal(c.cluster, 9);
	assert_string_equal(c.user, "none");
	assert_int_equal(c.ready_fd, 4);
	assert_int_equal(c.socket_mode, 0660);
	assert_int_equal(c.window, COLLNET_WINDOW_AUTO);
	assert_int_equal(c.peer_timeout_ms, 1500);
}

static void args__over_the_file_wherever_it_stands(void **state)
{
	char path[] = "/tmp/test_config.XXXXXX";
	int fd = mkstemp(path);
	static const char text[] = "interface eth5\ncluster 3\n";
	struct cn_config c;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(ARGS(&c, NULL, A("--cluster=4"), A("--config"), path), COLLNET_OK);
	close(fd);
	unlink(path);
	assert_string_equal(c.interface, "eth5");
	assert_int_equal(c.cluster, 4);
}

static void args__wrong_ones(void **state)
{
	struct cn_config c;
	struct cn_err err;

	(void)state;
	assert_int_equal(ARGS(&c, &err, A("--nonsense")), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "unknown or ambiguous option '--nonsense'"));
	assert_int_equal(ARGS(&c, &err, A("--max"), A("1")), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "unknown or ambiguous option '--max'"));
	assert_int_equal(ARGS(&c, &err, A("eth0")), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "eth0"));
	assert_int_equal(ARGS(&c, &err, A("-i")), COLLNET_EINVAL);
	assert_int_equal(ARGS(&c, &err, A("--window"), A("big")), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "--window is 'big'"));
	assert_int_equal(ARGS(&c, &err, A("--ready-fd"), A("x")), COLLNET_EINVAL);
	assert_int_equal(ARGS(&c, &err, A("--config"), A("/nonexistent/c")), COLLNET_ETOPO);
}

static void args__help_and_version(void **state)
{
	struct cn_config c;

	(void)state;
	assert_int_equal(ARGS(&c, NULL, A("--help")), COLLNET_INPROGRESS);
	assert_int_equal(ARGS(&c, NULL, A("-V")), COLLNET_INPROGRESS);
}

static void peer_allowed__by_mode_and_group(void **state)
{
	const gid_t groups[] = { 100, 50 };

	(void)state;
	assert_true(cn_listen_allowed(0600, 7, 50, 0, groups, 2));
	assert_true(cn_listen_allowed(0600, 7, 50, 7, groups, 2));
	assert_false(cn_listen_allowed(0600, 7, 50, 8, groups, 2));
	assert_true(cn_listen_allowed(0660, 7, 50, 8, groups, 2));
	assert_false(cn_listen_allowed(0660, 7, 51, 8, groups, 2));
	assert_true(cn_listen_allowed(0666, 7, 51, 8, groups, 2));
	assert_true(cn_listen_allowed(0666, 7, 51, 8, groups, 0));
	/* As for files: the group's bits count for its members, even when others may more. */
	assert_false(cn_listen_allowed(0606, 7, 50, 8, groups, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__every_key),
		cmocka_unit_test(parse__errors_name_file_and_line),
		cmocka_unit_test(parse__no_text),
		cmocka_unit_test(read__no_such_file),
		cmocka_unit_test(args__as_the_lab_calls_it),
		cmocka_unit_test(args__over_the_file_wherever_it_stands),
		cmocka_unit_test(args__wrong_ones),
		cmocka_unit_test(args__help_and_version),
		cmocka_unit_test(peer_allowed__by_mode_and_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
