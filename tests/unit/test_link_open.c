/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link/link.c: links that cannot be opened, for packet and pcap, in a namespace of its own.
 * Exit 77 where the system refuses namespaces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "link/kinds.h"
#include "link/link.h"
#include "log_capture.h"
#include "namespace.h"

#define ETHERTYPE 0x88b5

static const char *kind;

/* An option of sockets that the system refuses, with this errno; 0: none. */
static int refused, refusal;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (refusal != 0 && name == refused) {
		errno = refusal;
		return -1;
	}
	return __real_setsockopt(fd, level, name, value, len);
}

/* Its name in the C library where a long has 32 bits, and times 64. */
int __wrap___setsockopt64(int fd, int level, int name, const void *value, socklen_t len);

int __wrap___setsockopt64(int fd, int level, int name, const void *value, socklen_t len)
{
	return __wrap_setsockopt(fd, level, name, value, len);
}

/* A pair of interfaces. */
static int set_up(void **state)
{
	kind = *state;
	return run_command("ip link add a0 type veth peer name b0 && ip link set a0 up && "
			   "ip link set b0 up")
		       ? 0
		       : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return run_command("ip link delete a0") ? 0 : -1;
}

static void assert_refused(const char *name, int code, const char *message)
{
	struct cn_link_config c = { .kind = kind, .interface = name, .ethertype = ETHERTYPE };
	struct cn_link *l = NULL;
	struct cn_err err = { 0 };

	assert_int_equal(cn_link_open(&c, &l, &err), code);
	assert_null(l);
	assert_string_equal(err.text, message);
}

static void open__refusals_say_what_to_do(void **state)
{
	struct cn_link_config c = { .kind = kind, .ethertype = ETHERTYPE };
	struct cn_link *l = NULL;
	struct cn_err err = { 0 };

	(void)state;
	assert_refused(NULL, COLLNET_EIFACE,
		       "several Ethernet interfaces (b0, a0): specify one, with collnetd "
		       "--interface or, in direct mode, COLLNET_INTERFACE");
	assert_refused("foo", COLLNET_EIFACE, "no such interface 'foo' (available: lo, b0, a0)");
	assert_refused("lo", COLLNET_EIFACE, "interface lo is not Ethernet");
	assert_true(run_command("ip link set a0 mtu 575"));
	assert_refused("a0", COLLNET_EIFACE,
		       "interface a0 has an MTU of 575, and at least 576 is required with the "
		       "encapsulation raw: 'ip link set a0 mtu 1500'");
	assert_true(run_command("ip link set a0 mtu 599"));
	c.interface = "a0";
	c.auth = 24;
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EIFACE);
	assert_string_equal(err.text,
			    "interface a0 has an MTU of 599, and at least 600 is required with the "
			    "encapsulation raw and a key: 'ip link set a0 mtu 1500'");
	c.interface = NULL;
	c.auth = 0;
	assert_true(run_command("ip link set a0 mtu 1500 && ip link set b0 down"));
	assert_refused("b0", COLLNET_EIFACE,
		       "interface b0 is down: bring it up with 'ip link set "
		       "b0 up'");
	assert_refused(NULL, COLLNET_EIFACE,
		       "no Ethernet interface is up and has a carrier (available: lo, b0 "
		       "(down), a0 (no carrier)): bring one up with 'ip "
		       "link set NAME up', or look at its cable");
	assert_true(run_command("ip link set b0 up"));
	if (run_command("ip link add br0 type bridge && ip link set b0 master br0")) {
		assert_refused("b0", COLLNET_EIFACE,
			       "interface b0 is a port of a bridge or bond: "
			       "use the bridge or bond instead");
		/* Only one is left then. */
		assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_OK);
		assert_string_equal(l->interface, "a0");
		cn_link_close(l);
		assert_true(run_command("ip link delete br0"));
	}
}

static void open__no_permission(void **state)
{
	pid_t child;
	int status;

	(void)state;
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct cn_link_config c = { .kind = kind,
					    .interface = "a0",
					    .ethertype = ETHERTYPE };
		struct cn_link *l = NULL;
		struct cn_err err = { 0 };

		/* In a user namespace of its own, this process has no power over the network. */
		if (unshare(CLONE_NEWUSER) < 0) {
			_exit(77);
		}
		if (cn_link_open(&c, &l, &err) != COLLNET_EPERM) {
			_exit(1);
		}
		_exit(strcmp(err.text, "no permission for raw sockets on a0: run as root or with "
				       "CAP_NET_RAW (setcap cap_net_raw+ep); without it, programs "
				       "use collnetd") == 0
			      ? 0
			      : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: no user namespace inside a user namespace\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void open__bad_configuration(void **state)
{
	struct cn_link_config c = { .kind = "pigeon", .interface = "a0", .ethertype = ETHERTYPE };
	struct cn_link *l = NULL;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EINVAL);
	assert_string_equal(err.text, "unknown link 'pigeon' (available: packet, udp, pcap)");
	c.kind = kind;
	c.ethertype = 1500;
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "0x05dc is not an EtherType"));
	c.ethertype = 0x0800;
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "0x0800 belongs to IPv4"));
	c.ethertype = ETHERTYPE;
	c.ring_frames = 65537;
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EINVAL);
	c.ring_frames = 0;
	c.queue_frames = 1025;
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_EINVAL);
	assert_null(l);
}

static int rmem_max; /* of the machine: older kernels show it in the first network namespace only */

/* Without CAP_NET_ADMIN the receive buffer ends at net.core.rmem_max, which is logged. */
static void open__small_receive_buffer(void **state)
{
	struct cn_link_config c = { .kind = kind,
				    .interface = "a0",
				    .ethertype = ETHERTYPE,
				    .encapsulation = CN_ENCAPSULATION_UDP };
	struct cn_link *l = NULL;
	struct cn_err err;

	(void)state;
	if (rmem_max < 0) {
		print_message("skipped: this network namespace does not show rmem_max\n");
		skip();
	}
	refused = SO_RCVBUFFORCE;
	refusal = EPERM;
	log_capture();
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_OK);
	assert_string_equal(logged, ""); /* others may have the interface */
	cn_link_advise(l);
	log_capture_end();
	refusal = 0;
	cn_link_close(l);
	if (rmem_max < 16 << 20) {
		char text[64];

		snprintf(text, sizeof(text), "the receive buffer is %d KiB", rmem_max / 1024);
		assert_non_null(strstr(logged, text));
		assert_non_null(strstr(logged, "set net.core.rmem_max to 16777216"));
	} else {
		assert_string_equal(logged, "");
	}
}

/* Before Linux 4.20. */
static void open__without_ignore_outgoing(void **state)
{
	struct cn_link_config c = { .kind = kind, .interface = "a0", .ethertype = ETHERTYPE };
	struct cn_link *l = NULL;
	struct cn_err err;

	(void)state;
	refused = PACKET_IGNORE_OUTGOING;
	refusal = ENOPROTOOPT;
	assert_int_equal(cn_link_open(&c, &l, &err), COLLNET_OK);
	refusal = 0;
	cn_link_close(l);
}

static void prepare__unknown_and_missing(void **state)
{
	struct cn_link_config c = { .ethertype = ETHERTYPE, .encapsulation = CN_ENCAPSULATION_RAW };
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_link_prepare(&c, &err), COLLNET_OK);
	c.kind = "packet";
	assert_int_equal(cn_link_prepare(&c, &err), COLLNET_OK);
	c.kind = "pigeon";
	assert_int_equal(cn_link_prepare(&c, &err), COLLNET_EINVAL);
	c.kind = "udp";
	c.ethertype = 0x1234;
	assert_int_equal(cn_link_prepare(&c, &err), COLLNET_EINVAL);
	assert_non_null(strstr(err.text, "too low a port"));
	c.ethertype = ETHERTYPE;
	c.kind = "pcap";
#ifdef HAVE_PCAP
	assert_int_equal(cn_link_prepare(&c, &err), COLLNET_OK);
	c.encapsulation = CN_ENCAPSULATION_UDP;
	assert_int_equal(cn_link_prepare(&c, &err), COLLNET_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "link pcap has no encapsulation udp"));
#else
	assert_int_equal(cn_link_prepare(&c, &err), COLLNET_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "this build has no link pcap"));
#endif
}

#define BATTERY(k)                                                                                 \
	TEST(open__refusals_say_what_to_do, k), TEST(open__no_permission, k),                      \
		TEST(open__bad_configuration, k)
#define TEST(name, k) cmocka_unit_test_prestate_setup_teardown(name, set_up, tear_down, k)

static int read_rmem_max(void)
{
	FILE *f = fopen("/proc/sys/net/core/rmem_max", "r");
	int bytes = -1;

	if (f != NULL) {
		if (fscanf(f, "%d", &bytes) != 1) {
			bytes = -1;
		}
		fclose(f);
	}
	return bytes;
}

int main(void)
{
	static char packet[] = "packet";
#ifdef HAVE_PCAP
	static char pcap[] = "pcap";
#endif
	const struct CMUnitTest tests[] = {
		BATTERY(packet),
		TEST(open__small_receive_buffer, packet),
		TEST(open__without_ignore_outgoing, packet),
		cmocka_unit_test(prepare__unknown_and_missing),
#ifdef HAVE_PCAP
		BATTERY(pcap),
#endif
	};
	const char *why;

	rmem_max = read_rmem_max();
	why = enter_namespace();

	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
