/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/client.c: who cannot be admitted is told why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"

static struct cn_daemon *d;
static bool out_of_memory;

/* Linked with --wrap. */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return out_of_memory ? NULL : __real_calloc(n, size);
}

static int setup(void **state)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };

	(void)state;
	d = calloc(1, sizeof(*d));
	assert_non_null(d);
	cn_config_init(&d->config);
	d->config.socket_mode = 0666;
	d->memory.usage_fd = -1;
	d->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->guarded = cn_receive_guard(d->listen_fd);
	cn_client_open(d);
	return bind(d->listen_fd, (const struct sockaddr *)&any, sizeof(sa_family_t)) != 0 ||
	       listen(d->listen_fd, 1) != 0;
}

static int teardown(void **state)
{
	(void)state;
	cn_client_end(d);
	close(d->reserve_fd);
	close(d->listen_fd);
	close(d->epoll_fd);
	free(d);
	return 0;
}

static int connect_client(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t size = sizeof(name);

	assert_int_equal(getsockname(d->listen_fd, (struct sockaddr *)&name, &size), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&name, size), 0);
	return fd;
}

static void accept__without_memory(void **state)
{
	const int refused = connect_client();
	struct cn_msg_welcome m;
	int fd;

	(void)state;
	out_of_memory = true;
	cn_client_accept(d);
	out_of_memory = false;
	assert_int_equal(recv(refused, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	assert_int_equal(m.head.type, CN_MSG_WELCOME);
	assert_int_equal(m.status, COLLNET_ENOMEM);
	assert_string_equal(m.text, "collnetd is out of memory");
	assert_int_equal(recv(refused, &m, sizeof(m), MSG_DONTWAIT), 0);
	assert_int_equal(d->nclients, 0);
	assert_int_equal(cn_user_find(d, getuid())->used[CN_QUOTA_CONNECTIONS], 0);
	/* The next one has a place. */
	fd = connect_client();
	cn_client_accept(d);
	assert_int_equal(d->nclients, 1);
	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), -1);
	close(fd);
	close(refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(accept__without_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
