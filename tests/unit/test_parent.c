/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/parent.c: the worker's requests, of a parent that is this test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"

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

static void socket__a_late_response_is_dropped(void **state)
{
	struct cn_parent p = { .fd = -1 };
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
	assert_int_equal(cn_parent_socket(&p), -1);
	assert_int_equal(errno, ETIMEDOUT);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(socket__a_late_response_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
