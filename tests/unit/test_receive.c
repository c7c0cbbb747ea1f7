/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors on a client's socket do not come in, and none can block the daemon, on kernels that
 * refuse them for us and on those that do not.
 */
#include "daemon/daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define FDS_MAX 253 /* SCM_MAX_FD of the kernel */

static int send_descriptors(int to, const char *text, int fd, size_t n)
{
	static union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};

	memset(&control, 0, sizeof(control));
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (size_t i = 0; i < n; i++) {
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)) + i * sizeof(int), &fd, sizeof(fd));
	}
	/* By the kernel, as sendmsg() of musl refuses this many. */
	return syscall(SYS_sendmsg, to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

/* On kernels that refuse descriptors, and on those that do not. */
static void close_socket(int fd, bool guarded)
{
	static struct cn_daemon d;

	d.guarded = guarded;
	cn_receive_close(&d, fd);
	assert_int_equal(d.nclosing, guarded ? 0 : 1);
	assert_true(cn_receive_close_pending(&d));
	assert_int_equal(d.nclosing, 0);
}

static int lowest_free(void)
{
	int fd = dup(STDERR_FILENO);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

static void receive__messages_pass(void **state)
{
	char in[8];
	bool descriptors;
	int p[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	for (int guarded = 0; guarded < 2; guarded++) {
		assert_int_equal(cn_receive(p[0], guarded, in, sizeof(in), &descriptors), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(send(p[1], "first", 5, 0), 5);
		assert_int_equal(send(p[1], "the second", 10, 0), 10);
		assert_int_equal(cn_receive(p[0], guarded, in, sizeof(in), &descriptors), 5);
		assert_memory_equal(in, "first", 5);
		assert_false(descriptors);
		assert_int_equal(cn_receive(p[0], guarded, in, sizeof(in), &descriptors), 10);
		assert_memory_equal(in, "the seco", 8);
		assert_false(descriptors);
	}
	close(p[1]);
	assert_int_equal(cn_receive(p[0], false, in, sizeof(in), &descriptors), 0);
	assert_false(descriptors);
	close(p[0]);
}

static void receive__descriptors_stay_out(void **state)
{
	static const size_t counts[] = { 1, 2, 3, FDS_MAX };
	const int before = lowest_free();
	char in[8];
	bool descriptors;
	int p[2];

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
		assert_int_equal(send_descriptors(p[1], "x", p[1], counts[i]), 0);
		assert_int_equal(cn_receive(p[0], false, in, sizeof(in), &descriptors), 1);
		assert_true(descriptors);
		close_socket(p[0], false);
		close(p[1]);
		assert_int_equal(lowest_free(), before);
	}
}

static void receive__guarded_kernel_refuses_at_the_sender(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int n = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1, "collnet-test-%ld",
			 (long)getpid());
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), end;

	(void)state;
	if (!cn_receive_guard(listener)) {
		close(listener);
		close(client);
		print_message("skipped: this kernel has no SO_PASSRIGHTS (Linux 6.16)\n");
		skip();
	}
	assert_int_equal(bind(listener, (struct sockaddr *)&sun, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&sun, len), 0);
	/* Before it is accepted, and after. */
	assert_int_equal(send_descriptors(client, "x", client, 1), EPERM);
	end = accept(listener, NULL, NULL);
	assert_true(end >= 0);
	assert_int_equal(send_descriptors(client, "x", client, 1), EPERM);
	assert_int_equal(send_descriptors(client, "x", client, FDS_MAX), EPERM);
	close_socket(end, true);
	close(client);
	close(listener);
}

/* A TCP socket whose last close() waits for hours: its peer does not read. */
static int lingering(int *peer)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	const struct linger hours = { .l_onoff = 1, .l_linger = 30000 };
	static const char data[65536];
	socklen_t len = sizeof(to);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (listener < 0 || fd < 0 || bind(listener, (struct sockaddr *)&to, len) != 0 ||
	    listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&to, &len) != 0 ||
	    connect(fd, (struct sockaddr *)&to, len) != 0) {
		print_message("skipped: there is no loopback here\n");
		skip();
	}
	*peer = accept(listener, NULL, NULL);
	close(listener);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hours, sizeof(hours)), 0);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0) {
	}
	return fd;
}

/* What blocks is killed by the alarm. */
static void receive__lingering_socket_blocks_nothing(void **state)
{
	char in[8];
	bool descriptors;
	int p[2], peer, fd;

	(void)state;
	for (int unread = 0; unread < 2; unread++) {
		fd = lingering(&peer);
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
		assert_int_equal(send_descriptors(p[1], "x", fd, 1), 0);
		close(fd);
		alarm(20);
		if (unread == 0) {
			assert_int_equal(cn_receive(p[0], false, in, sizeof(in), &descriptors), 1);
			assert_true(descriptors);
		}
		close_socket(p[0], false);
		alarm(0);
		close(p[1]);
		close(peer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive__messages_pass),
		cmocka_unit_test(receive__descriptors_stay_out),
		cmocka_unit_test(receive__guarded_kernel_refuses_at_the_sender),
		cmocka_unit_test(receive__lingering_socket_blocks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
