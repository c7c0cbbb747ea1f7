/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bare Ethernet frames, and a TCP stream, for the tests of the lab itself.
 *
 *   frames send NAME MAC COUNT BYTES     waits until NAME is ready, sends, prints "sent N us T"
 *   frames receive NAME SILENCE          says that NAME is ready, prints "received N" when no
 *                                        frame has come for SILENCE milliseconds after the first
 *
 *   frames hello VERSION NAME            sends a hello of this wire version ten times a second
 * until NAME is ready
 *
 *   frames joined GROUP PORT COMMAND...  joins the group on eth0, sends one datagram to it, runs
 * the command, prints "joined N", the datagrams that came
 *
 *   frames tcp-send HOST                 sends to port 5001 of HOST until that closes the stream
 *   frames tcp-receive NAME              receives until NAME is ready, prints "N Mbit/s"
 *
 * "Ready" is a file in the lab's private directory, so the script need not guess how long to wait.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

#define ETHERTYPE_TEST 0x88b6
#define WAIT_MS	       60000 /* never reached */

static uint64_t now_us(void)
{
	return cn_now() / CN_US;
}

static int fail(const char *what)
{
	fprintf(stderr, "frames: %s: %s\n", what, strerror(errno));
	return 1;
}

static void ready_file(const char *name, char *out, size_t size)
{
	const char *dir = getenv("COLLNET_LAB_DIR");

	snprintf(out, size, "%s/ready-%s", dir == NULL ? "." : dir, name);
}

/* Of the path of a ready file: a file with a byte of each sender that has sent all. */
static const char *sent_file(char *path, size_t size)
{
	const size_t len = strlen(path);

	snprintf(path + len, size - len, ".sent");
	return path;
}

static int open_socket(void)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(ETHERTYPE_TEST),
				 .sll_ifindex = (int)if_nametoindex("eth0") };
	int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (s >= 0 && bind(s, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(s);
		return -1;
	}
	return s;
}

static bool wait_for(const char *path)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	uint64_t until = now_us() + WAIT_MS * 1000u;

	while (access(path, F_OK) < 0) {
		if (now_us() > until) {
			errno = ETIMEDOUT;
			return false;
		}
		nanosleep(&pause, NULL);
	}
	return true;
}

static int send_frames(const char *name, const char *mac, uint64_t count, size_t bytes)
{
	unsigned char frame[65536] = { 0 };
	unsigned int m[6], i;
	char path[4096];
	uint64_t n, start;
	int s = open_socket(), fd;

	if (s < 0) {
		return fail("socket");
	}
	if (sscanf(mac, "%2x:%2x:%2x:%2x:%2x:%2x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]) != 6) {
		return fail("address");
	}
	for (i = 0; i < 6; i++) {
		frame[i] = (unsigned char)m[i];
	}
	frame[6] = 0x02; /* anybody's */
	frame[12] = ETHERTYPE_TEST >> 8;
	frame[13] = ETHERTYPE_TEST & 0xff;
	ready_file(name, path, sizeof(path));
	if (!wait_for(path)) {
		return fail(path);
	}
	start = now_us();
	for (n = 0; n < count; n++) {
		if (send(s, frame, bytes, 0) != (ssize_t)bytes) {
			return fail("send");
		}
	}
	printf("sent %llu us %llu from %llu\n", (unsigned long long)n,
	       (unsigned long long)(now_us() - start), (unsigned long long)start);
	fd = open(sent_file(path, sizeof(path)), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	return fd < 0 || write(fd, "", 1) != 1 ? fail(path) : 0;
}

/* Until all senders have sent, however slow the machine is, and then for a silence. */
static int receive_frames(const char *name, int silence_ms, uint64_t senders)
{
	unsigned char frame[65536];
	struct pollfd p = { .fd = open_socket(), .events = POLLIN };
	struct tpacket_stats st;
	socklen_t len = sizeof(st);
	const uint64_t until = now_us() + WAIT_MS * 1000u;
	bool sent, came;
	struct stat sender;
	char path[4096];
	int fd;

	ready_file(name, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (p.fd < 0 || fd < 0) {
		return fail(path);
	}
	sent_file(path, sizeof(path));
	do {
		sent = (stat(path, &sender) == 0 && (uint64_t)sender.st_size >= senders) ||
		       now_us() > until;
		came = poll(&p, 1, silence_ms) > 0;
		if (came && recv(p.fd, frame, sizeof(frame), 0) < 0) {
			return fail("receive");
		}
	} while (came || !sent);
	/* with those that found no room in the socket: this tests the wire */
	if (getsockopt(p.fd, SOL_PACKET, PACKET_STATISTICS, &st, &len) < 0) {
		return fail("statistics");
	}
	printf("received %u\n", st.tp_packets);
	return 0;
}

/* Of the header only the magic and the version: of another version, nothing else is read. */
static int send_hellos(uint8_t version, const char *name)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	unsigned char frame[60] = { 0 };
	struct ifreq r = { .ifr_name = "eth0" };
	const uint64_t until = now_us() + WAIT_MS * 1000u;
	char path[4096];
	int s = open_socket();

	if (s < 0 || ioctl(s, SIOCGIFHWADDR, &r) < 0) {
		return fail("eth0");
	}
	memset(frame, 0xff, 6);
	memcpy(frame + 6, r.ifr_hwaddr.sa_data, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	frame[14] = 0xc0;
	frame[15] = 0x11;
	frame[16] = (unsigned char)(version << 4 | 1);
	ready_file(name, path, sizeof(path));
	while (access(path, F_OK) < 0) {
		if (now_us() > until) {
			errno = ETIMEDOUT;
			return fail(path);
		}
		if (send(s, frame, sizeof(frame), 0) < 0) {
			return fail("send");
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int tcp_send(const char *host)
{
	static const char data[65536];
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	const struct timespec pause = { .tv_nsec = 20000000 };
	uint64_t until = now_us() + WAIT_MS * 1000u;
	struct addrinfo *a;
	int s = -1;

	if (getaddrinfo(host, "5001", &hints, &a) != 0) {
		return fail(host);
	}
	while (s < 0 && now_us() < until) {
		s = socket(a->ai_family, a->ai_socktype, 0);
		if (s >= 0 &&
		    connect(s, a->ai_addr, a->ai_addrlen) < 0) { /* it does not listen yet */
			close(s);
			s = -1;
			nanosleep(&pause, NULL);
		}
	}
	freeaddrinfo(a);
	if (s < 0) {
		return fail("connect");
	}
	while (send(s, data, sizeof(data), MSG_NOSIGNAL) > 0) {
	}
	close(s);
	return 0;
}

static int tcp_receive(const char *name)
{
	static char data[65536];
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(5001) };
	int s = socket(AF_INET, SOCK_STREAM, 0), c;
	uint64_t bytes = 0, begin;
	char path[4096];
	ssize_t n = 0;

	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(s, 1) < 0) {
		return fail("listen");
	}
	c = accept(s, NULL, NULL);
	if (c < 0) {
		return fail("accept");
	}
	ready_file(name, path, sizeof(path));
	begin = now_us();
	while (access(path, F_OK) < 0 && (n = recv(c, data, sizeof(data), 0)) > 0) {
		bytes += (uint64_t)n;
	}
	printf("%.1f Mbit/s\n", (double)bytes * 8 / (double)(now_us() - begin));
	close(c);
	close(s);
	return n < 0 ? fail("recv") : 0;
}

/* Any user may receive datagrams to a group. The first one shows that this socket does. */
static int joined(const char *group, uint16_t port, char **command)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct ip_mreqn m = { .imr_ifindex = (int)if_nametoindex("eth0") };
	const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned char data[65536];
	pid_t child;
	int n = 0, status;

	if (inet_pton(AF_INET, group, &m.imr_multiaddr) != 1) {
		return fail(group);
	}
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)) < 0 ||
	    setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m)) < 0) {
		return fail("joining");
	}
	a.sin_addr = m.imr_multiaddr;
	if (sendto(s, "", 1, 0, (struct sockaddr *)&a, sizeof(a)) < 0) {
		return fail("sending to the group");
	}
	child = fork();
	if (child == 0) {
		execvp(command[0], command);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		return fail(command[0]);
	}
	while (recv(s, data, sizeof(data), MSG_DONTWAIT) >= 0) {
		n++;
	}
	printf("joined %d\n", n);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	uint64_t count, bytes;

	if (argc == 6 && strcmp(argv[1], "send") == 0 &&
	    cn_parse_uint(argv[4], 1, UINT32_MAX, &count) &&
	    cn_parse_uint(argv[5], 14, 65536, &bytes)) {
		return send_frames(argv[2], argv[3], count, (size_t)bytes);
	}
	if (argc == 5 && strcmp(argv[1], "receive") == 0 &&
	    cn_parse_uint(argv[3], 1, 60000, &count) && cn_parse_uint(argv[4], 1, 1000, &bytes)) {
		return receive_frames(argv[2], (int)count, bytes);
	}
	if (argc == 4 && strcmp(argv[1], "hello") == 0 && cn_parse_uint(argv[2], 0, 15, &count)) {
		return send_hellos((uint8_t)count, argv[3]);
	}
	if (argc > 4 && strcmp(argv[1], "joined") == 0 &&
	    cn_parse_uint(argv[3], 1, UINT16_MAX, &count)) {
		return joined(argv[2], (uint16_t)count, argv + 4);
	}
	if (argc == 3 && strcmp(argv[1], "tcp-send") == 0) {
		return tcp_send(argv[2]);
	}
	if (argc == 3 && strcmp(argv[1], "tcp-receive") == 0) {
		return tcp_receive(argv[2]);
	}
	fputs("usage: frames send NAME MAC COUNT BYTES | frames receive NAME SILENCE SENDERS | "
	      "frames hello VERSION NAME | frames joined GROUP PORT COMMAND... | "
	      "frames tcp-send HOST | frames tcp-receive NAME\n",
	      stderr);
	return 2;
}
