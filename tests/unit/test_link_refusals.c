/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/link: the system refuses to send. Nothing is waited for that never comes, one host that
 * cannot be reached changes nothing for others, and the log says why. Exit 77 where the system
 * refuses namespaces.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "link/kinds.h"
#include "link/packet_impl.h"
#include "link/udp_address.h"
#include "link_pair.h"
#include "log_capture.h"
#include "namespace.h"
#include "util/clock.h"

#define PORT   40000
#define FRAMES 8u

/* What is refused: with this errno (0: nothing), for this host alone if there is one, and
 * super-frames only. */
static int refusal;
static in_addr_t refused_host;
static bool refuse_super_only;
/* Messages that the system took. */
static uint32_t supers, singles;

static bool is_super(const struct msghdr *m)
{
	struct virtio_net_hdr vnet;

	if (m->msg_name == NULL) { /* of the packet link */
		memcpy(&vnet, m->msg_iov[0].iov_base, sizeof(vnet));
		return link_encapsulation != CN_ENCAPSULATION_RAW &&
		       vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE;
	}
	return m->msg_controllen > CMSG_SPACE(sizeof(struct in_pktinfo));
}

static bool is_refused(const struct msghdr *m)
{
	const struct sockaddr_in *to = m->msg_name;

	if (refusal != 0 && (refused_host == 0 || to->sin_addr.s_addr == refused_host) &&
	    (!refuse_super_only || is_super(m))) {
		errno = refusal;
		return true;
	}
	*(is_super(m) ? &supers : &singles) += 1;
	return false;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	return is_refused(m) ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

#ifdef __GLIBC__
typedef int sendmmsg_flags;
#else
typedef unsigned int sendmmsg_flags;
#endif

int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, sendmmsg_flags flags)
{
	unsigned int taken = 0;

	while (taken < n && !is_refused(&m[taken].msg_hdr)) {
		taken++;
	}
	return taken == 0 ? -1 : (int)syscall(SYS_sendmmsg, fd, m, taken, flags);
}

/* A short frame of the packet link. */
ssize_t send(int fd, const void *data, size_t len, int flags)
{
	const struct iovec v = { (void *)(uintptr_t)data, len };
	const struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)&v, .msg_iovlen = 1 };

	return is_refused(&m) ? -1 : syscall(SYS_sendto, fd, data, len, flags, NULL, 0);
}

/* What libnet calls, which is loaded. */
__attribute__((visibility("default"))) ssize_t
sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to, socklen_t tolen)
{
	if (refusal != 0) {
		errno = refusal;
		return -1;
	}
	return syscall(SYS_sendto, fd, data, len, flags, to, tolen);
}

static cn_time clock_shows = 3600 * 1000 * CN_MS; /* it stands still, however busy the machine is */

int clock_gettime(clockid_t which, struct timespec *ts)
{
	(void)which;
	*ts = cn_timespec(clock_shows);
	return 0;
}

static void begin(void)
{
	refusal = 0;
	refused_host = 0;
	refuse_super_only = false;
	supers = singles = 0;
	log_capture();
}

static void open_udp(const char *interface, const char *peers, uint16_t port, struct cn_link **out)
{
	struct cn_udp_peers list = { 0 };
	struct cn_link_config c = {
		.kind = "udp", .interface = interface, .ethertype = port, .peers = &list
	};
	struct cn_err err = { 0 };

	if (cn_udp_peers_read(peers, port, &list, &err) != COLLNET_OK ||
	    cn_link_open(&c, out, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	free(list.list);
}

/* *state is a kind of link, or an encapsulation of the packet link; "socket": link udp, on lo. */
static int set_up(void **state)
{
	int r;

	begin();
	if (strcmp(*state, "socket") != 0) {
		r = link_set_up(state);
		supers = singles = 0; /* requests to the kernel about the interfaces */
		return r;
	}
	link_encapsulation = CN_ENCAPSULATION_UDP;
	if (!run_command("ip link set lo up")) {
		return -1;
	}
	open_udp("lo", "127.0.0.1:40000,127.0.0.1:40001", PORT, &link_a);
	open_udp("lo", "127.0.0.1:40000,127.0.0.1:40001", PORT + 1, &link_b);
	return 0;
}

static int tear_down(void **state)
{
	const bool pair = strcmp(*state, "socket") != 0;

	log_capture_end();
	if (pair) {
		return link_tear_down(state);
	}
	cn_link_close(link_a);
	cn_link_close(link_b);
	link_a = link_b = NULL;
	return 0;
}

/* FRAMES frames to the same node, which can be a super-frame. */
static int send_frames(const uint8_t to[6], size_t payload)
{
	struct cn_frame f[FRAMES];

	for (uint32_t i = 0; i < FRAMES; i++) {
		f[i] = link_frame(link_a->mac, to, ETHERTYPE, i, payload);
	}
	return cn_link_send(link_a, f, FRAMES);
}

static void expect_frames(void)
{
	for (uint32_t i = 0; i < FRAMES; i++) {
		link_expect(link_b, i);
	}
	link_assert_silent(link_b);
}

/* A link that kept such a frame would wait until the socket is writable, which it always is: a loop
 * without a pause. The frames are lost, and what follows is not. */
static void no_memory__is_not_waited_for(void **state)
{
	static const int errors[] = { ENOMEM, ENOBUFS };
	struct cn_link_counters n;
	struct cn_frame f = link_frame(link_a->mac, link_b->mac, ETHERTYPE, 0, 10);

	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		refusal = errors[k];
		assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
		assert_int_equal(cn_link_send(link_a, &f, 1), 1);
		assert_true(link_writable(link_a, 0));
		refusal = 0;
		link_assert_silent(link_b);
		assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
		expect_frames();
		cn_link_counters(link_a, &n);
		assert_int_equal(n.send_errors, (k + 1) * (FRAMES + 1));
		assert_int_equal(n.send_full, 0);
	}
	assert_non_null(strstr(logged, "refused a frame"));
	assert_non_null(strstr(logged, strerror(ENOMEM)));
	assert_non_null(strstr(logged, strerror(ENOBUFS)));
}

/* Each reason is logged once, and not every reason that there could be. */
static void log__has_each_reason_once(void **state)
{
	static const int errors[] = { EHOSTUNREACH, EPERM, EMSGSIZE, EACCES, EIO, ENOMEM };

	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		struct cn_frame f = link_frame(link_a->mac, link_b->mac, ETHERTYPE, i, 1000);

		refusal = errors[i % 6];
		assert_int_equal(cn_link_send(link_a, &f, 1), 1);
	}
	assert_int_equal(logged_lines, CN_REFUSALS);
	assert_non_null(strstr(logged, "Operation not permitted"));
	refusal = 0;
	assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
	expect_frames();
}

/* Its frames go one by one, at once, and super-frames are tried again after a while. */
static void super_frame__that_was_refused(void **state)
{
	static const int errors[] = { EIO, EINVAL, EMSGSIZE, ENOMEM };
	struct cn_link_counters n;

	(void)state;
	for (uint32_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
		refusal = errors[k];
		refuse_super_only = true;
		supers = singles = 0;
		assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
		assert_int_equal(singles, FRAMES);
		expect_frames();
		refusal = 0;
		assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
		assert_int_equal(supers, 0);
		expect_frames();
		clock_shows += CN_SUPER_FRAME_RETRY - 1;
		assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
		assert_int_equal(supers, 0);
		expect_frames();
		clock_shows++;
		assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
		assert_int_equal(supers, 1);
		expect_frames();
	}
	cn_link_counters(link_a, &n);
	assert_int_equal(n.send_errors, 0);
	assert_int_equal(logged_lines, 1);
	assert_non_null(strstr(logged, "refused a super-frame"));
}

/* A kernel that takes no super-frames of the encapsulation udp says so to the first frame, which is
 * short, and the log says what to do. The frame is not lost. */
static void first_frame__asks_for_super_frames(void **state)
{
	const bool udp = link_encapsulation == CN_ENCAPSULATION_UDP;
	struct cn_link_counters n;

	(void)state;
	refusal = EINVAL;
	refuse_super_only = true;
	for (uint32_t i = 0; i < 3; i++) {
		link_send_from(link_a, link_a->mac, link_everyone, ETHERTYPE, i, 10);
		link_expect(link_b, i);
		assert_int_equal(logged_lines, udp ? 1 : 0);
	}
	assert_int_equal(supers, 0);
	assert_true(!udp || strstr(logged, "encapsulation tcp on all nodes") != NULL);
	assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
	expect_frames();
	assert_int_equal(logged_lines, 1);
	cn_link_counters(link_a, &n);
	assert_int_equal(n.send_errors, 0);
}

/* A kernel that takes them is asked once, and has nothing to say. */
static void first_frame__that_is_taken(void **state)
{
	(void)state;
	link_send_from(link_a, link_a->mac, link_everyone, ETHERTYPE, 0, 10);
	link_expect(link_b, 0);
	if (logged_lines > 0) {
		print_message(
			"skipped: no super-frames of the encapsulation udp before Linux 6.2\n");
		skip();
	}
	assert_int_equal(supers, 1);
	link_send_from(link_a, link_a->mac, link_everyone, ETHERTYPE, 1, 10);
	link_expect(link_b, 1);
	assert_int_equal(supers, 1);
	assert_int_equal(singles, 1);
	assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
	assert_int_equal(supers, 2);
	expect_frames();
	assert_int_equal(logged_lines, 0);
}

/* The queue has no room for so much at once, because others fill it, perhaps. */
static void super_frame__longer_than_the_queue(void **state)
{
	(void)state;
	refusal = ENOBUFS;
	refuse_super_only = true;
	assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
	assert_int_equal(singles, FRAMES);
	expect_frames();
	refusal = 0;
	assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
	assert_int_equal(supers, 1);
	expect_frames();
}

/* What the system refuses for one host, others still get; and the interface is not to blame. */
static void udp_link__one_host_is_refused(void **state)
{
	static const int errors[] = { EINVAL,	EIO,	EMSGSIZE, ENETUNREACH,
				      ENETDOWN, ENODEV, ENXIO,	  EPERM };
	struct sockaddr_in host = { .sin_port = htons(PORT), .sin_addr.s_addr = htonl(0x7f000002) };
	struct cn_link_counters n;
	uint8_t mac[6];

	(void)state;
	cn_udp_address_put(mac, &host);
	refused_host = host.sin_addr.s_addr;
	for (uint32_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
		refusal = errors[k];
		supers = singles = 0;
		assert_int_equal(send_frames(mac, 1000), FRAMES);
		assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
		assert_int_equal(supers, 1);
		assert_int_equal(singles, 0);
		expect_frames();
		cn_link_counters(link_a, &n);
		assert_int_equal(n.send_errors, (k + 1) * FRAMES);
		assert_false(link_a->moved);
	}
}

/* The system itself refuses: EINVAL. */
static void udp_link__one_host_in_a_black_hole(void **state)
{
	struct sockaddr_in host = { .sin_port = htons(PORT), .sin_addr.s_addr = htonl(0x0a090902) };
	uint8_t mac[6];

	(void)state;
	cn_udp_address_put(mac, &host);
	assert_true(run_command("ip route add blackhole 10.9.9.2/32"));
	assert_int_equal(send_frames(mac, 1000), FRAMES);
	assert_true(run_command("ip route del blackhole 10.9.9.2/32"));
	supers = 0;
	assert_int_equal(send_frames(link_b->mac, 1000), FRAMES);
	assert_int_equal(supers, 1);
	expect_frames();
}

static void udp_link__interface_is_down(void **state)
{
	struct sockaddr_in host = { .sin_port = htons(PORT), .sin_addr.s_addr = htonl(0x0a080002) };
	uint8_t mac[6];

	(void)state;
	cn_udp_address_put(mac, &host);
	assert_true(add_pair());
	assert_true(run_command("ip addr add 10.8.0.1/24 dev a0"));
	cn_link_close(link_a);
	open_udp("a0", "10.8.0.2,", PORT, &link_a);
	assert_true(run_command("ip link set a0 down"));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send_frames(mac, 1000), COLLNET_EIFACE);
	}
	assert_false(link_a->moved);
	assert_int_equal(logged_lines, 1);
	assert_non_null(strstr(logged, "interface a0: Network is down"));
	assert_true(run_command("ip link set a0 up"));
	assert_int_equal(send_frames(mac, 1000), FRAMES);
	assert_true(run_command("ip link delete a0"));
}

#define TEST(name, kind) cmocka_unit_test_prestate_setup_teardown(name, set_up, tear_down, kind)

int main(void)
{
	static char packet[] = "packet", udp[] = "udp", tcp[] = "tcp", link_udp[] = "socket";
#ifdef HAVE_PCAP
	static char pcap[] = "pcap";
#endif
	const struct CMUnitTest tests[] = {
		TEST(no_memory__is_not_waited_for, packet),
		TEST(no_memory__is_not_waited_for, udp),
		TEST(no_memory__is_not_waited_for, tcp),
		TEST(no_memory__is_not_waited_for, link_udp),
#ifdef HAVE_PCAP
		TEST(no_memory__is_not_waited_for, pcap),
		TEST(log__has_each_reason_once, pcap),
#endif
		TEST(log__has_each_reason_once, packet),
		TEST(log__has_each_reason_once, link_udp),
		TEST(super_frame__that_was_refused, udp),
		TEST(super_frame__that_was_refused, link_udp),
		TEST(first_frame__asks_for_super_frames, udp),
		TEST(first_frame__asks_for_super_frames, tcp),
		TEST(first_frame__that_is_taken, udp),
		TEST(super_frame__longer_than_the_queue, udp),
		TEST(udp_link__one_host_is_refused, link_udp),
		TEST(udp_link__one_host_in_a_black_hole, link_udp),
		TEST(udp_link__interface_is_down, link_udp),
	};
	const char *why = enter_namespace();

	if (why != NULL) {
		printf("skipped: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
