/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/client.c: who is admitted, who cannot be is told why, and what is closed is closed. */
#include <errno.h>
#include <fcntl.h>
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
static bool out_of_memory, no_process, no_epoll;
static unsigned forks;
static uint32_t ngroups; /* of the client, the last of them the daemon's; 0: as they are */
static uid_t uid;	 /* with groups: of the client */

/* Linked with --wrap. */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

void *__wrap_calloc(size_t n, size_t size)
{
	return out_of_memory ? NULL : __real_calloc(n, size);
}

/* A client of another user with many groups, as only root could make one. */
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct ucred *cred = value;
	gid_t *groups = value;
	const socklen_t need = (socklen_t)(ngroups * sizeof(*groups));
	int rc = 0;

	if (ngroups == 0 || level != SOL_SOCKET || name != SO_PEERGROUPS) {
		rc = __real_getsockopt(fd, level, name, value, len);
		if (ngroups > 0 && name == SO_PEERCRED) {
			cred->uid = cred->gid = uid;
		}
		return rc;
	}
	if (*len < need) {
		errno = ERANGE;
		rc = -1;
	}
	for (uint32_t i = 0; rc == 0 && i < ngroups; i++) {
		groups[i] = i + 1 < ngroups ? 70000 + i : d->group;
	}
	*len = need;
	return rc;
}

/* Its name in the C library where a long has 32 bits, and times 64. */
int __wrap___getsockopt64(int fd, int level, int name, void *value, socklen_t *len);

int __wrap___getsockopt64(int fd, int level, int name, void *value, socklen_t *len)
{
	return __wrap_getsockopt(fd, level, name, value, len);
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
	forks++;
	errno = EAGAIN;
	return no_process ? -1 : __real_fork();
}

int __real_epoll_ctl(int epoll_fd, int how, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int how, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll_fd, int how, int fd, struct epoll_event *event)
{
	errno = ENOSPC;
	return no_epoll ? -1 : __real_epoll_ctl(epoll_fd, how, fd, event);
}

static int setup(void **state)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };

	(void)state;
	uid = 65001;
	d = calloc(1, sizeof(*d));
	assert_non_null(d);
	cn_config_init(&d->config);
	d->config.socket_mode = 0666;
	d->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->guarded = cn_receive_guard(d->listen_fd);
	cn_client_open(d);
	return bind(d->listen_fd, (const struct sockaddr *)&any, sizeof(sa_family_t)) != 0 ||
	       listen(d->listen_fd, 64) != 0;
}

static int teardown(void **state)
{
	(void)state;
	cn_client_end(d);
	cn_mapping_end(d);
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

/* The client is refused if it is in none of the daemon's groups; a user has up to 65,536. */
static void accept__of_a_group(void **state)
{
	static const uint32_t sizes[] = { 1, 64, 65, 65536 };
	struct cn_msg_welcome m;

	(void)state;
	d->config.socket_mode = 0660;
	d->group = 60000;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const int fd = connect_client();

		ngroups = sizes[i];
		cn_client_accept(d);
		ngroups = 0;
		assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), -1);
		assert_int_equal(d->nclients, i + 1);
		close(fd);
	}
}

static void must_receive_error(int fd, int status, const char *text)
{
	struct cn_msg_welcome m;

	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	assert_int_equal(m.head.type, CN_MSG_WELCOME);
	assert_int_equal(m.status, status);
	assert_non_null(strstr(m.text, text));
	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), 0);
	close(fd);
}

/* They may be several users. */
static void accept__refuses_users_that_are_not_mapped(void **state)
{
	const uid_t before = uid;
	int fd;

	(void)state;
	d->config.socket_mode = 0666;
	uid = CN_UNMAPPED_USER;
	ngroups = 1;
	fd = connect_client();
	cn_client_accept(d);
	assert_int_equal(d->nclients, 1);
	close(fd);
	d->subuids.lacks_users = true;
	fd = connect_client();
	cn_client_accept(d);
	assert_int_equal(d->nclients, 1);
	must_receive_error(fd, COLLNET_EPERM, "a user namespace that does not map this user");
	uid = before;
	fd = connect_client();
	cn_client_accept(d);
	assert_int_equal(d->nclients, 2);
	ngroups = 0;
	close(fd);
}

/* The last places are root's. */
static void accept__keeps_places_for_root(void **state)
{
	int fds[3];

	(void)state;
	ngroups = 1;
	d->nclients = CN_CLIENTS_MAX - CN_CLIENTS_RESERVE - 1; /* others */
	for (int i = 0; i < 2; i++) {
		fds[i] = connect_client();
		cn_client_accept(d);
		assert_int_equal(d->nclients, CN_CLIENTS_MAX - CN_CLIENTS_RESERVE);
	}
	must_receive_error(fds[1], COLLNET_ELIMIT, "limit of 992 connections");
	uid = 0;
	fds[1] = connect_client();
	cn_client_accept(d);
	assert_int_equal(d->nclients, CN_CLIENTS_MAX - CN_CLIENTS_RESERVE + 1);
	d->nclients = CN_CLIENTS_MAX;
	fds[2] = connect_client();
	cn_client_accept(d);
	assert_int_equal(d->nclients, CN_CLIENTS_MAX);
	must_receive_error(fds[2], COLLNET_ELIMIT, "limit of 1024 connections");
	d->nclients = 2;
	ngroups = 0;
	close(fds[0]);
	close(fds[1]);
}

/* What kernels before 6.16 need: one process closes all sockets of a round. */
static void accept__refuses_many_with_one_process(void **state)
{
	int fds[32];

	(void)state;
	d->guarded = false;
	for (int i = 0; i < 32; i++) {
		fds[i] = connect_client();
	}
	forks = 0;
	out_of_memory = true;
	cn_client_accept(d);
	out_of_memory = false;
	assert_int_equal(forks, 1);
	for (int i = 0; i < 32; i++) {
		must_receive_error(fds[i], COLLNET_ENOMEM, "out of memory");
	}
}

static void accept__without_epoll(void **state)
{
	const int fd = connect_client();

	(void)state;
	no_epoll = true;
	cn_client_accept(d);
	cn_client_reap(d);
	no_epoll = false;
	must_receive_error(fd, COLLNET_ENOMEM, "No space left on device");
	assert_int_equal(d->nclients, 0);
}

/* A socket that no process can be made to close is closed as soon as one can. */
static void reap__without_a_process(void **state)
{
	const int fd = connect_client();
	int ours;

	(void)state;
	d->guarded = false;
	cn_client_accept(d);
	assert_int_equal(d->nclients, 1);
	ours = d->clients[0]->fd;
	no_process = true;
	cn_client_mark(d->clients[0], NULL);
	cn_client_reap(d);
	assert_int_equal(d->nclients, 0);
	assert_true(fcntl(ours, F_GETFD) >= 0);
	/* It is not tried again and again. */
	forks = 0;
	cn_client_reap(d);
	assert_int_equal(forks, 0);
	d->now += 1000 * CN_MS;
	cn_client_reap(d);
	assert_int_equal(forks, 1);
	assert_true(fcntl(ours, F_GETFD) >= 0);
	no_process = false;
	d->now += 1000 * CN_MS;
	cn_client_reap(d);
	assert_int_equal(fcntl(ours, F_GETFD), -1);
	close(fd);
}

/* Regions that hardly have a byte take time, too: many are unmapped in turns. */
static void reap__unmaps_in_turns(void **state)
{
	const uint32_t many = 300;
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION }, .bytes = 4096 };
	struct cn_msg_reply reply;
	int fd[2];

	(void)state;
	d->memory.base = d->memory.total = (uint64_t)64 << 20;
	for (int i = 0; i < 2; i++) {
		fd[i] = connect_client();
		cn_client_accept(d);
		for (m.region = 0; m.region < many; m.region++) {
			assert_true(cn_mapping_create(d->clients[i], &m));
			assert_true(recv(fd[i], &reply, sizeof(reply), 0) > 0);
			assert_int_equal(reply.status, COLLNET_OK);
		}
	}
	assert_int_equal(d->memory.used, 2 * many * m.bytes);
	cn_client_mark(d->clients[0], NULL);
	cn_client_mark(d->clients[1], NULL);
	assert_true(cn_client_reap(d));
	assert_uint_in_range(d->memory.used, m.bytes, (2 * many - 1) * m.bytes);
	while (cn_client_reap(d)) {
	}
	assert_int_equal(d->memory.used, 0);
	close(fd[0]);
	close(fd[1]);
}

/* Memory that no address space of 32 bits has is refused there, and not mapped in part. */
static void region__of_more_than_4_gib(void **state)
{
	const struct cn_msg_region m = { .head = { .type = CN_MSG_REGION },
					 .bytes = ((uint64_t)1 << 32) + 4096 };
	const bool fits = m.bytes <= SIZE_MAX;
	struct cn_msg_buffer_ref end = { .offset = m.bytes - 1 };
	struct epoll_event event;
	struct cn_mapping *ref;
	struct cn_msg_reply reply;
	int fd = connect_client();
	uint8_t *p;
	bool ok;

	(void)state;
	d->memory.base = d->memory.total = (uint64_t)1 << 40;
	cn_client_accept(d);
	assert_true(cn_mapping_create(d->clients[0], &m));
	assert_true(recv(fd, &reply, sizeof(reply), 0) > 0);
	assert_int_equal(reply.status, fits ? COLLNET_OK : COLLNET_ENOMEM);
	assert_int_equal(d->memory.used, fits ? m.bytes : 0);
	if (fits) {
		d->clients[0]->regions[0]->sealed = true;
	}
	p = cn_mapping_resolve(d->clients[0], &end, 1, &ref, &ok);
	assert_int_equal(ok, fits);
	if (fits) {
		*p = 1;
		cn_mapping_put(d, ref);
	}
	cn_client_mark(d->clients[0], NULL);
	while (cn_client_reap(d)) {
	}
	if (d->memory.used > 0) { /* a child process drops the last reference */
		assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 20000), 1);
		cn_mapping_collect(d);
	}
	assert_int_equal(d->memory.used, 0);
	close(fd);
}

/* The sum of a client's regions is limited, and what it gives back is not in it. */
static void region__beside_others(void **state)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION }, .bytes = 4096 };
	const int fd = connect_client();
	struct cn_client *c;

	(void)state;
	d->memory.base = d->memory.total = (uint64_t)64 << 30;
	cn_client_accept(d);
	c = d->clients[0];
	c->bytes = CN_MSG_BYTES - 2 * m.bytes; /* of others */
	for (m.region = 0; m.region < 2; m.region++) {
		assert_true(cn_mapping_create(c, &m));
		assert_false(c->marked);
	}
	assert_true(cn_mapping_drop(c, 0));
	m.region = 0;
	assert_true(cn_mapping_create(c, &m));
	m.region = 2;
	assert_false(cn_mapping_create(c, &m));
	assert_true(c->marked);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(accept__without_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(accept__of_a_group, setup, teardown),
		cmocka_unit_test_setup_teardown(accept__refuses_many_with_one_process, setup,
						teardown),
		cmocka_unit_test_setup_teardown(accept__refuses_users_that_are_not_mapped, setup,
						teardown),
		cmocka_unit_test_setup_teardown(accept__keeps_places_for_root, setup, teardown),
		cmocka_unit_test_setup_teardown(accept__without_epoll, setup, teardown),
		cmocka_unit_test_setup_teardown(reap__without_a_process, setup, teardown),
		cmocka_unit_test_setup_teardown(reap__unmaps_in_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(region__of_more_than_4_gib, setup, teardown),
		cmocka_unit_test_setup_teardown(region__beside_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
