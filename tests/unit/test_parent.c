/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/parent.c: the worker's requests, of a parent that is this test; a parent's goodbyes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <signal.h>

#include "daemon/daemon.h"
#include "link/udp_address.h"

#define PORT 0x9d17

/* A response repeats its request, which says nothing of an error. */
struct heard {
	uint8_t bytes[64];
	ssize_t n;
};

static void hear(int fd, struct heard *m)
{
	m->n = recv(fd, m->bytes, sizeof(m->bytes), 0);
	if (m->n <= 0) {
		_exit(1);
	}
}

static void respond(int fd, const struct heard *m, int opened)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .space = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)m->bytes, .iov_len = (size_t)m->n };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};

	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(opened));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &opened, sizeof(opened));
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) != m->n) {
		_exit(1);
	}
}

/* The first request is responded to when the second one has come. */
static void respond_late(int fd, const int opened[3])
{
	struct heard first, second, third;

	hear(fd, &first);
	hear(fd, &second);
	respond(fd, &first, opened[0]);
	respond(fd, &second, opened[1]);
	hear(fd, &third);
	respond(fd, &third, opened[2]);
	_exit(0);
}

static void expect_socket(struct cn_parent *p, int same_as)
{
	const int fd = cn_parent_socket(p);
	struct stat got, want;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(fstat(same_as, &want), 0);
	assert_int_equal(got.st_ino, want.st_ino);
	close(fd);
}

static char line[256];

static void keep_line(void *arg, enum collnet_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	snprintf(line, sizeof(line), "%s", text);
}

static void socket__a_late_response_is_dropped(void **state)
{
	struct cn_parent p = { .fd = -1, .pid = 77, .timeout_ms = 100 };
	int pair[2], opened[3], status, before;
	pid_t child;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (int i = 0; i < 3; i++) {
		opened[i] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_true(opened[i] >= 0);
	}
	before = dup(0);
	close(before);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(pair[1]);
		respond_late(pair[0], opened);
	}
	p.fd = pair[1];
	collnet_set_log(keep_line, NULL);
	assert_int_equal(cn_parent_socket(&p), -1);
	assert_int_equal(errno, ETIMEDOUT);
	collnet_set_log(NULL, NULL);
	assert_string_equal(line, "the parent process, 77, has not opened a socket within 0.1 s: "
				  "it is stopped, or the machine is overloaded");
	p.timeout_ms = CN_PARENT_TIMEOUT;
	expect_socket(&p, opened[1]);
	expect_socket(&p, opened[2]);
	/* What came late is not kept. */
	assert_int_equal(dup(0), before);
	close(before);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(pair[0]);
	close(pair[1]);
	for (int i = 0; i < 3; i++) {
		close(opened[i]);
	}
}

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

/* A daemon with link udp whose worker dies; its address is not that of the route. */
static void die_at(const struct sockaddr_in *self, const struct sockaddr_in *peer)
{
	const struct cn_identity id = { .keep = true };
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = self->sin_port };
	struct cn_parent p = { .fd = -1, .udp = true };
	struct cn_node_config c;
	uint8_t to[6];
	int status = 1, fd;

	if (cn_parent_fork(&id, -1, &p, &status, NULL) != COLLNET_OK) {
		_exit(status);
	}
	fd = cn_parent_socket(&p);
	cn_node_config_init(&c);
	c.epoch = 7;
	c.name[0] = 'n';
	cn_udp_address_put(c.mac, self);
	cn_udp_address_put(to, peer);
	cn_goodbye_list_init(p.goodbyes, &c);
	cn_goodbye_list_set(p.goodbyes, 0, to, 1, 2);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0) {
		raise(SIGKILL);
	}
	_exit(0);
}

static void goodbye__comes_from_the_address_of_the_node(void **state)
{
	const struct sockaddr_in self = address("127.0.0.2", PORT),
				 peer = address("127.0.0.3", PORT + 1);
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char text[INET_ADDRSTRLEN];
	uint8_t bytes[256];
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(bind(fd, (const struct sockaddr *)&peer, sizeof(peer)), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		die_at(&self, &peer);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(poll(&wait, 1, 0), 1);
	assert_true(recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size) > 0);
	assert_string_equal(inet_ntop(AF_INET, &from.sin_addr, text, sizeof(text)), "127.0.0.2");
	assert_int_equal(ntohs(from.sin_port), PORT);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(socket__a_late_response_is_dropped),
		cmocka_unit_test(goodbye__comes_from_the_address_of_the_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
