/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/mapping.c and unmap.c: the life of clients' regions, and what their user is charged. */
#include "daemon/daemon.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
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
	return d;
}

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
	void *p;

	(void)state;
	c = new_client(d, &fd);
	assert_int_equal(ask(c, fd, 64 * MIB, text), -1);
	assert_non_null(strstr(text, "max-memory"));
	assert_int_equal(d->memory.used, 0);
	memory = ask(c, fd, MIB, text);
	assert_true(memory >= 0);
	p = cn_memfd_map(memory, MIB, 0);
	assert_non_null(p);
	assert_int_equal(c->user->used[CN_QUOTA_MEMORY], MIB);
	munmap(p, MIB);
	close(memory);
	/* It is charged until it is unmapped. */
	assert_true(cn_mapping_drop(c, 0));
	assert_int_equal(d->memory.used, MIB);
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 0);
	cn_client_end(d);
	close(fd);
	free(d);
}

/* A daemon whose loop watches memory. */
static struct cn_daemon *new_loop(void)
{
	struct cn_daemon *d = new_daemon();

	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->config.limits[CN_QUOTA_MEMORY] = d->memory.total = 1024 * MIB;
	return d;
}

static void end_loop(struct cn_daemon *d)
{
	cn_client_end(d);
	cn_mapping_end(d);
	assert_int_equal(d->memory.used, 0);
	assert_int_equal(d->memory.regions, 0);
	close(d->epoll_fd);
	free(d);
}

/* A region as the client maps it, and how the daemon accesses it. */
static uint8_t *mapped_region(struct cn_client *c, int fd, uint64_t bytes)
{
	char text[CN_ERR_TEXT];
	const int memory = ask(c, fd, bytes, text);
	uint8_t *p = cn_memfd_map(memory, bytes, 0);

	assert_non_null(p);
	close(memory);
	p[0] = p[bytes - 1] = 7;
	return p;
}

static bool has_events(const struct cn_daemon *d)
{
	struct epoll_event event;

	return epoll_wait(d->epoll_fd, &event, 1, 0) > 0;
}

/* It is dropped in parts. As long as the client has it, it is readable there, and charged. */
static void region__is_charged_until_it_is_freed(void **state)
{
	const uint64_t bytes = 160 * MIB;
	struct cn_daemon *d = new_loop();
	struct epoll_event event;
	struct cn_client *c;
	int fd, parts;
	uint8_t *p;

	(void)state;
	c = new_client(d, &fd);
	for (int later = 0; later < 2; later++) {
		p = mapped_region(c, fd, bytes);
		if (!later) {
			munmap(p, bytes);
		}
		assert_true(cn_mapping_drop(c, 0));
		for (parts = 1; cn_mapping_unmap(d); parts++) {
		}
		assert_int_equal(parts, 3);
		if (later) {
			for (int turns = 0; turns < 3; turns++) { /* time does not change it */
				d->now += 1000 * CN_MS;
				assert_false(cn_mapping_unmap(d));
				assert_false(has_events(d));
				assert_int_equal(d->memory.used, bytes);
			}
			assert_int_equal(p[0], 7);
			assert_int_equal(p[bytes - 1], 7);
			munmap(p, bytes);
		}
		/* A child process may have to drop the last reference. */
		if (d->memory.used > 0) {
			assert_int_equal(epoll_wait(d->epoll_fd, &event, 1, 20000), 1);
			cn_mapping_collect(d);
		}
		assert_int_equal(d->memory.used, 0);
		assert_int_equal(d->memory.regions, 0);
	}
	end_loop(d);
	close(fd);
}

/* The connection has ended, the process has not. O_PATH is another way to keep it. */
static void region__of_a_process_that_lives_on(void **state)
{
	struct cn_daemon *d = new_loop();
	struct cn_user *user;
	struct cn_client *c;
	char path[32];
	uint8_t *p;
	int fd, other;

	(void)state;
	c = new_client(d, &fd);
	user = c->user;
	p = mapped_region(c, fd, MIB);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->regions[0]->fd);
	other = open(path, O_PATH | O_CLOEXEC);
	assert_true(other >= 0);
	cn_client_mark(c, NULL);
	cn_client_reap(d);
	assert_int_equal(d->nclients, 0);
	assert_int_equal(user->used[CN_QUOTA_CONNECTIONS], 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(user->used[CN_QUOTA_MEMORY], MIB);
		assert_int_equal(user->used[CN_QUOTA_REGIONS], 1);
		if (i == 0) {
			assert_int_equal(p[0], 7);
			munmap(p, MIB);
		}
		assert_false(has_events(d));
	}
	close(other);
	assert_true(has_events(d));
	cn_mapping_collect(d);
	assert_int_equal(user->used[CN_QUOTA_MEMORY], 0);
	assert_int_equal(user->used[CN_QUOTA_REGIONS], 0);
	end_loop(d);
	close(fd);
}

/* More than a watch may be added for, or than the queue of events has room for. */
static void region__waits_for_a_watch(void **state)
{
	struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 }, .bytes = 4096 };
	struct cn_daemon *d = new_loop();
	char text[CN_ERR_TEXT];
	struct cn_client *c;
	int fd;

	(void)state;
	c = new_client(d, &fd);
	assert_true(cn_mapping_create(c, &m));
	close(answer(fd, text));
	assert_true(cn_mapping_drop(c, 0));
	d->nwatched = 4096;
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 4096);
	assert_int_equal(cn_mapping_deadline(d), d->now + 100 * CN_MS);
	d->nwatched = 4000; /* the user has as many as are left */
	c->user->watches = 96;
	d->now = cn_mapping_deadline(d);
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 4096);
	d->nwatched = 4095;
	c->user->watches = 0;
	assert_false(cn_mapping_unmap(d)); /* not yet */
	assert_int_equal(d->memory.used, 4096);
	d->now = cn_mapping_deadline(d);
	assert_false(cn_mapping_unmap(d));
	assert_int_equal(d->memory.used, 0);
	assert_true(cn_mapping_deadline(d) == CN_NEVER);
	assert_int_equal(d->nwatched, 4095);
	d->nwatched = 0;
	end_loop(d);
	close(fd);
}

/* ---- regions that are not sealed ------------------------------------------------------- */

/* Nothing reads, writes or unmaps it as long as the client could punch a hole. */
static void region__is_not_used_before_it_is_sealed(void **state)
{
	const struct cn_msg_buffer_ref place = { .region = 0 };
	struct cn_daemon *d = new_loop();
	char text[CN_ERR_TEXT];
	struct cn_mapping *s, *ref;
	struct cn_client *c;
	int fd, memory;
	uint8_t *p;
	bool ok;

	(void)state;
	for (int sealed = 0; sealed < 2; sealed++) {
		c = new_client(d, &fd);
		memory = ask(c, fd, MIB, text);
		s = c->regions[0];
		assert_null(cn_mapping_resolve(c, &place, 1, &ref, &ok));
		assert_false(ok);
		cn_client_mark(c, NULL);
		cn_client_reap(d);
		for (int turns = 0; turns < 3; turns++) {
			assert_false(cn_mapping_unmap(d));
			assert_non_null(s->p);
			s->p[0] = 7; /* it is mapped */
			assert_int_equal(d->memory.used, MIB);
			d->now = cn_mapping_deadline(d);
		}
		if (sealed) {
			p = cn_memfd_map(memory, MIB, 0);
			assert_non_null(p);
			close(memory);
			assert_false(cn_mapping_unmap(d));
			assert_null(s->p);
			assert_int_equal(p[0], 7);
			assert_int_equal(d->memory.used, MIB);
			munmap(p, MIB);
			cn_mapping_collect(d);
		} else { /* it ends without having mapped it */
			close(memory);
			assert_false(cn_mapping_unmap(d));
		}
		assert_int_equal(d->memory.used, 0);
		close(fd);
	}
	end_loop(d);
}

/* At the daemon's end nothing is taken, neither from clients nor from those that left. */
static void region__stays_at_the_end(void **state)
{
	struct cn_daemon *d = new_loop();
	struct cn_client *c;
	uint8_t *p[2];
	int fd[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		c = new_client(d, &fd[i]);
		p[i] = mapped_region(c, fd[i], MIB);
		if (i == 0) {
			cn_client_mark(c, NULL);
			cn_client_reap(d);
		}
	}
	end_loop(d);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p[i][0], 7);
		munmap(p[i], MIB);
		close(fd[i]);
	}
}

/* What it returned as it ended is processed, also if it left messages unread. */
static void region__given_back_at_the_end(void **state)
{
	const struct cn_msg_unregion m = { .head = { .type = CN_MSG_UNREGION } };
	struct cn_daemon *d = new_loop();
	struct cn_client *c;
	int fd;

	(void)state;
	c = new_client(d, &fd);
	c->greeted = true;
	munmap(mapped_region(c, fd, MIB), MIB);
	cn_client_reply(c, 1, COLLNET_OK, 0, "");
	assert_int_equal(send(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	close(fd);
	for (int turns = 0; turns < 3 && d->nclients > 0; turns++) {
		cn_client_readable(c);
		cn_client_reap(d);
	}
	assert_int_equal(d->nclients, 0);
	assert_int_equal(d->memory.used, 0);
	end_loop(d);
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
	munmap(mapped_region(c, fd, 160 * MIB), 160 * MIB);
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
	struct cn_client *c;
	int fd, n = 0;
	uint8_t *p;

	(void)state;
	c = new_client(d, &fd);
	p = mapped_region(c, fd, MIB);
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
	munmap(p, MIB);
	cn_client_end(d);
	close(fd);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(region__is_made_sealed_and_charged),
		cmocka_unit_test(region__is_charged_until_it_is_freed),
		cmocka_unit_test(region__of_a_process_that_lives_on),
		cmocka_unit_test(region__waits_for_a_watch),
		cmocka_unit_test(region__is_not_used_before_it_is_sealed),
		cmocka_unit_test(region__stays_at_the_end),
		cmocka_unit_test(region__given_back_at_the_end),
		cmocka_unit_test(region__waits_for_what_is_unmapped),
		cmocka_unit_test(region__is_one_of_a_number),
		cmocka_unit_test(blocks__are_charged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
