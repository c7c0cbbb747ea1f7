/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a user may have, and the memory of clients under it.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static struct cn_daemon *new_daemon(void)
{
	struct cn_daemon *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	cn_config_init(&d->config);
	d->now = 1000 * CN_MS;
	d->memory.base = 64 * MIB;
	d->memory.total = 48 * MIB;
	d->memory.usage_fd = -1;
	return d;
}

static void take__up_to_the_limit(void **state)
{
	struct cn_daemon *d = new_daemon();
	struct cn_user *u = cn_user_find(d, 1000), *root = cn_user_find(d, 0);
	struct cn_err err;

	(void)state;
	d->config.limits[CN_QUOTA_ENDPOINTS] = 3;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 1, &err), COLLNET_OK);
	}
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 1, &err), COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "user 1000 has 3 endpoints"));
	assert_non_null(strstr(err.text, "max-endpoints"));
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 0, &err), COLLNET_OK);
	cn_quota_uncharge(d, u, CN_QUOTA_ENDPOINTS, 1);
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 1, &err), COLLNET_OK);
	d->config.limits[CN_QUOTA_ENDPOINTS] = 2; /* by a reload */
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_ENDPOINTS, 1, &err), COLLNET_ELIMIT);
	d->config.limits[CN_QUOTA_ENDPOINTS] = 3;
	/* Nobody else has less for that, and root has no limit. */
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 1001), CN_QUOTA_ENDPOINTS, 3, &err),
			 COLLNET_OK);
	assert_int_equal(cn_quota_charge(d, root, CN_QUOTA_ENDPOINTS, 1000, &err), COLLNET_OK);
	assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_MEMORY, UINT64_MAX, &err), COLLNET_ELIMIT);
	free(d);
}

static void take__memory_of_all(void **state)
{
	struct cn_daemon *d = new_daemon();
	struct cn_err err;

	(void)state;
	/* Half of it each, and three quarters together; also for root. */
	assert_int_equal(cn_quota_limit(d, CN_QUOTA_MEMORY), 32 * MIB);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 1), CN_QUOTA_MEMORY, 33 * MIB, &err),
			 COLLNET_ELIMIT);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 1), CN_QUOTA_MEMORY, 32 * MIB, &err),
			 COLLNET_OK);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_MEMORY, 17 * MIB, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "all users together"));
	assert_non_null(strstr(err.text, "three quarters of its memory (50331648)"));
	d->memory.usage_fd = 0; /* the memory is that of a control group */
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_MEMORY, 17 * MIB, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text,
			       "quarters of the memory limit of the daemon's control group"));
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 2), CN_QUOTA_MEMORY, 16 * MIB, &err),
			 COLLNET_OK);
	assert_int_equal(d->memory.used, 48 * MIB);
	free(d);
}

static void take__regions_of_all(void **state)
{
	const uint64_t most = CN_REGIONS_MAX / 3;
	struct cn_daemon *d = new_daemon();
	struct cn_err err;

	(void)state;
	for (uid_t uid = 1; uid <= 3; uid++) {
		struct cn_user *u = cn_user_find(d, uid);

		assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_REGIONS, most, &err), COLLNET_OK);
		assert_int_equal(cn_quota_charge(d, u, CN_QUOTA_REGIONS, 1, &err), COLLNET_ELIMIT);
		assert_non_null(strstr(err.text, "max-regions"));
	}
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_REGIONS, 1, &err),
			 COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "all users together have 49152 regions"));
	cn_quota_uncharge(d, cn_user_find(d, 2), CN_QUOTA_REGIONS, 1);
	assert_int_equal(cn_quota_charge(d, cn_user_find(d, 0), CN_QUOTA_REGIONS, 1, &err),
			 COLLNET_OK);
	free(d);
}

/* ---- regions --------------------------------------------------------------------------- */

/* The answer about a region: its descriptor, or -1 and the text of the refusal. */
static int answer(int fd, char text[CN_ERR_TEXT])
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct cn_msg_reply r;
	struct iovec iov = { .iov_base = &r, .iov_len = sizeof(r) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	int memory;

	assert_int_equal(recvmsg(fd, &msg, MSG_DONTWAIT), sizeof(r));
	assert_int_equal(r.head.tag, 9);
	memcpy(text, r.text, CN_ERR_TEXT);
	if (r.status != COLLNET_OK) {
		assert_null(CMSG_FIRSTHDR(&msg));
		return -1;
	}
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&memory, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(memory));
	return memory;
}

/* Asks for a region. */
static int ask(struct cn_client *c, int fd, uint64_t bytes, char text[CN_ERR_TEXT])
{
	const struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 },
					 .bytes = bytes };

	assert_true(cn_mapping_create(c, &m));
	return answer(fd, text);
}

static struct cn_client *new_client(struct cn_daemon *d, int *fd)
{
	struct cn_client *c;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	d->guarded = cn_receive_guard(p[0]);
	c = cn_client_new(d, p[0], 1000);
	assert_non_null(c);
	*fd = p[1];
	return c;
}

static void region__is_made_sealed_and_charged(void **state)
{
	struct cn_daemon *d = new_daemon();
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd, memory;

	(void)state;
	c = new_client(d, &fd);
	assert_int_equal(ask(c, fd, 64 * MIB, text), -1);
	assert_non_null(strstr(text, "max-memory"));
	assert_int_equal(d->memory.used, 0);
	memory = ask(c, fd, MIB, text);
	assert_true(memory >= 0);
	assert_int_equal(ftruncate(memory, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(memory, 2 * MIB), -1);
	assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(c->user->used[CN_QUOTA_MEMORY], MIB);
	/* It is charged until it is unmapped. */
	assert_true(cn_mapping_drop(c, 0));
	assert_int_equal(d->memory.used, MIB);
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 0);
	close(memory);
	cn_client_end(d);
	close(fd);
	free(d);
}

/* A control group that has more than an eighth of its limit. */
static void make_short(struct cn_daemon *d)
{
	char path[] = "/tmp/test_quota.XXXXXX";

	d->memory.usage_fd = mkstemp(path);
	unlink(path);
	assert_int_equal(write(d->memory.usage_fd, "60000000\n", 9), 9);
}

/*
 * It is let go of in parts. Pages that the daemon may have been charged for: kept, and cleared when
 * memory is short.
 */
static void region__is_given_back_when_memory_is_short(void **state)
{
	struct cn_daemon *d = new_daemon();
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd, memory, parts;
	uint8_t *p;

	(void)state;
	d->config.limits[CN_QUOTA_MEMORY] = d->memory.total = 1024 * MIB;
	c = new_client(d, &fd);
	for (int is_short = 0; is_short < 2; is_short++) {
		memory = ask(c, fd, 160 * MIB, text);
		p = mmap(NULL, 160 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
		assert_ptr_not_equal(p, MAP_FAILED);
		p[0] = p[160 * MIB - 1] = 7;
		if (is_short) {
			make_short(d);
		}
		assert_true(cn_mapping_drop(c, 0));
		for (parts = 1; cn_mapping_unmap(d); parts++) {
		}
		assert_int_equal(parts, 3);
		assert_int_equal(p[0], is_short ? 0 : 7);
		assert_int_equal(p[160 * MIB - 1], is_short ? 0 : 7);
		assert_int_equal(d->memory.used, 0);
		munmap(p, 160 * MIB);
		close(memory);
	}
	cn_client_end(d);
	cn_quota_close(d);
	close(fd);
	free(d);
}

/* A region that the client has written to, as its process sees it. */
static uint8_t *written_region(struct cn_client *c, int fd)
{
	char text[CN_ERR_TEXT];
	const int memory = ask(c, fd, MIB, text);
	uint8_t *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	close(memory);
	memset(p, 7, MIB);
	return p;
}

static pid_t new_process(void)
{
	const pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

/* The connection has ended, the process has not: what it received stays, and is charged. */
static void region__stays_with_its_process(void **state)
{
	struct cn_daemon *d = new_daemon();
	const pid_t pid = new_process(); /* without the descriptors that follow */
	struct epoll_event event;
	struct cn_user *user;
	struct cn_client *c;
	uint8_t *p;
	int fd, reapers;

	(void)state;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c = new_client(d, &fd);
	user = c->user;
	c->pid = pid;
	p = written_region(c, fd);
	make_short(d);
	cn_client_mark(c, NULL);
	cn_client_reap(d);
	assert_int_equal(recv(fd, &event, 1, MSG_DONTWAIT), 0);
	for (int turns = 0; turns < 2; turns++) { /* others that end change nothing */
		assert_int_equal(p[0], 7);
		assert_int_equal(d->memory.used, MIB);
		assert_int_equal(user->used[CN_QUOTA_CONNECTIONS], 1);
		assert_int_equal(d->nclients, 0);
		assert_int_equal(d->ndisconnected, 1);
		assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 0), 0);
		d->marked_clients = true;
		cn_client_reap(d);
	}
	reapers = dup(c->fd); /* a child process that was made meanwhile has it */
	kill(pid, SIGKILL);
	assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 20000), 1);
	assert_ptr_equal(event.data.ptr, c);
	cn_client_readable(c);
	cn_client_reap(d);
	assert_int_equal(p[0], 0);
	assert_int_equal(d->memory.used, 0);
	assert_int_equal(user->used[CN_QUOTA_CONNECTIONS], 0);
	assert_int_equal(d->ndisconnected, 0);
	assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 0), 0);
	close(reapers);
	munmap(p, MIB);
	cn_quota_close(d);
	close(d->epoll_fd);
	close(fd);
	free(d);
}

/* At the daemon's end nothing is taken, neither from clients nor from those that left. */
static void region__stays_at_the_end(void **state)
{
	struct cn_daemon *d = new_daemon();
	const pid_t pid = new_process();
	struct cn_client *c;
	uint8_t *p[2];
	int fd[2];

	(void)state;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	make_short(d);
	for (int i = 0; i < 2; i++) {
		c = new_client(d, &fd[i]);
		c->pid = pid;
		p[i] = written_region(c, fd[i]);
		if (i == 0) {
			cn_client_mark(c, NULL);
			cn_client_reap(d);
		}
	}
	cn_quota_close(d);
	cn_client_end(d);
	assert_int_equal(d->nclients + d->ndisconnected, 0);
	assert_int_equal(d->memory.used, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p[i][0], 7);
		munmap(p[i], MIB);
		close(fd[i]);
	}
	kill(pid, SIGKILL);
	close(d->epoll_fd);
	free(d);
}

/* What it gave back as it ended is served, also if it left messages unread. */
static void region__given_back_at_the_end(void **state)
{
	const struct cn_msg_unregion m = { .head = { .type = CN_MSG_UNREGION } };
	struct cn_daemon *d = new_daemon();
	struct cn_client *c;
	int fd;

	(void)state;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c = new_client(d, &fd);
	c->greeted = true;
	c->pid = getpid();
	munmap(written_region(c, fd), MIB);
	make_short(d);
	cn_client_reply(c, 1, COLLNET_OK, 0, "");
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	close(fd);
	for (int turns = 0; turns < 3 && d->nclients + d->ndisconnected > 0; turns++) {
		cn_client_readable(c);
		cn_client_reap(d);
	}
	assert_int_equal(d->nclients + d->ndisconnected, 0);
	assert_int_equal(d->memory.used, 0);
	cn_quota_close(d);
	close(d->epoll_fd);
	free(d);
}

static void region__waits_for_what_is_unmapped(void **state)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 } };
	struct cn_daemon *d = new_daemon();
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd, memory;

	(void)state;
	d->config.limits[CN_QUOTA_MEMORY] = 200 * MIB;
	d->memory.total = 1024 * MIB;
	c = new_client(d, &fd);
	c->greeted = true;
	close(ask(c, fd, 160 * MIB, text));
	assert_true(cn_mapping_drop(c, 0));
	m.bytes = 100 * MIB;
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	for (int turns = 0; turns < 2; turns++) {
		cn_client_readable(c);
		assert_int_equal(recv(fd, text, 1, MSG_DONTWAIT | MSG_PEEK), -1);
		assert_true(cn_mapping_unmap(d));
	}
	assert_false(cn_mapping_unmap(d));
	cn_client_readable(c);
	memory = answer(fd, text);
	assert_true(memory >= 0);
	close(memory);
	/* What is not enough then is refused, and what is enough already does not wait. */
	assert_true(cn_mapping_drop(c, 0));
	m.bytes = 40 * MIB;
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	cn_client_readable(c);
	memory = answer(fd, text);
	assert_true(memory >= 0);
	close(memory);
	while (cn_mapping_unmap(d)) {
	}
	assert_int_equal(d->memory.used, m.bytes);
	m.region = 1;
	m.bytes = 200 * MIB;
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	cn_client_readable(c);
	assert_int_equal(answer(fd, text), -1);
	cn_client_end(d);
	close(fd);
	free(d);
}

/* Many small ones are not much memory, but many mappings of the daemon. */
static void region__is_one_of_a_number(void **state)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 }, .bytes = 4096 };
	struct cn_daemon *d = new_daemon();
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd, memory;

	(void)state;
	d->config.limits[CN_QUOTA_REGIONS] = 3;
	c = new_client(d, &fd);
	c->greeted = true;
	for (m.region = 0; m.region < 3; m.region++) {
		assert_true(cn_mapping_create(c, &m));
		close(answer(fd, text));
	}
	assert_true(cn_mapping_create(c, &m));
	assert_int_equal(answer(fd, text), -1);
	assert_non_null(strstr(text, "user 1000 has 3 regions of shared memory"));
	assert_non_null(strstr(text, "max-regions"));
	/* What is refused for another reason is not one. */
	assert_true(cn_mapping_drop(c, 2));
	assert_int_equal(c->user->used[CN_QUOTA_REGIONS], 3);
	assert_false(cn_mapping_unmap(d));
	m.bytes = 40 * MIB;
	assert_true(cn_mapping_create(c, &m));
	assert_int_equal(answer(fd, text), -1);
	assert_non_null(strstr(text, "max-memory"));
	m.bytes = 4096;
	assert_true(cn_mapping_create(c, &m));
	close(answer(fd, text));
	/* One that is to be unmapped is waited for. */
	assert_true(cn_mapping_drop(c, 3));
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	cn_client_readable(c);
	assert_int_equal(recv(fd, text, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	assert_false(cn_mapping_unmap(d));
	cn_client_readable(c);
	memory = answer(fd, text);
	assert_true(memory >= 0);
	close(memory);
	cn_client_end(d);
	assert_int_equal(d->memory.regions, 0);
	close(fd);
	free(d);
}

/* ---- blocks ---------------------------------------------------------------------------- */

/* Copies of blocks are the user's memory as his regions are, until the request has ended. */
static void blocks__are_charged(void **state)
{
	struct cn_daemon *d = new_daemon();
	struct cn_call call = { .op = CN_OP_ALLTOALLV, .ranks = 4096 };
	const uint64_t bytes = 2 * 4096 * sizeof(struct cn_block);
	const struct cn_msg_coll m = { .op = CN_OP_ALLTOALLV };
	static struct cn_op_slot ops[16];
	struct cn_err err = { 0 };
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd, memory, n = 0;

	(void)state;
	c = new_client(d, &fd);
	memory = ask(c, fd, MIB, text);
	d->config.limits[CN_QUOTA_MEMORY] = MIB + 3 * bytes;
	while (n < 16) {
		ops[n].client = c;
		if (cn_blocks_copy(c, &ops[n], &m, &call, &err) != COLLNET_OK) {
			break;
		}
		n++;
	}
	assert_int_equal(n, 3);
	assert_int_equal(err.code, COLLNET_ELIMIT);
	assert_non_null(strstr(err.text, "max-memory"));
	cn_blocks_free(&ops[3]); /* the one that was refused */
	assert_int_equal(d->memory.used, MIB + 3 * bytes);
	cn_blocks_free(&ops[0]);
	assert_int_equal(cn_blocks_copy(c, &ops[0], &m, &call, &err), COLLNET_OK);
	for (int i = 0; i < 3; i++) {
		cn_blocks_free(&ops[i]);
	}
	assert_int_equal(d->memory.used, MIB);
	close(memory);
	cn_client_end(d);
	close(fd);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__up_to_the_limit),
		cmocka_unit_test(take__memory_of_all),
		cmocka_unit_test(take__regions_of_all),
		cmocka_unit_test(region__is_made_sealed_and_charged),
		cmocka_unit_test(region__is_given_back_when_memory_is_short),
		cmocka_unit_test(region__stays_with_its_process),
		cmocka_unit_test(region__stays_at_the_end),
		cmocka_unit_test(region__given_back_at_the_end),
		cmocka_unit_test(region__waits_for_what_is_unmapped),
		cmocka_unit_test(region__is_one_of_a_number),
		cmocka_unit_test(blocks__are_charged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
