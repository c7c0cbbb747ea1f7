/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptor.h"
#include "region_daemon.h"

struct cn_daemon *region_daemon(void)
{
	struct cn_daemon *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	cn_config_init(&d->config);
	d->now = 1000 * CN_MS;
	d->memory.base = 64 * MIB;
	d->memory.total = 48 * MIB;
	return d;
}

int region_answer(int fd, char text[CN_ERR_TEXT])
{
	struct cn_msg_reply r;
	int memory;

	assert_int_equal(receive_descriptor(fd, &r, sizeof(r), MSG_DONTWAIT, &memory), sizeof(r));
	assert_int_equal(r.head.tag, 9);
	memcpy(text, r.text, CN_ERR_TEXT);
	assert_int_equal(memory >= 0, r.status == COLLNET_OK);
	return memory;
}

int region_ask(struct cn_client *c, int fd, uint64_t bytes, char text[CN_ERR_TEXT])
{
	const struct cn_msg_region m = { .head = { .type = CN_MSG_REGION, .tag = 9 },
					 .bytes = bytes };

	assert_true(cn_mapping_create(c, &m));
	return region_answer(fd, text);
}

struct cn_client *region_client_of(struct cn_daemon *d, uid_t uid, int *fd)
{
	struct cn_client *c;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	d->guarded = cn_receive_guard(p[0]);
	c = cn_client_new(d, p[0], uid);
	assert_non_null(c);
	*fd = p[1];
	return c;
}

struct cn_client *region_client(struct cn_daemon *d, int *fd)
{
	return region_client_of(d, 1000, fd);
}

struct cn_daemon *region_loop(void)
{
	struct cn_daemon *d = region_daemon();

	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->config.limits[CN_QUOTA_MEMORY] = d->memory.total = 1024 * MIB;
	return d;
}

void region_loop_end(struct cn_daemon *d)
{
	cn_client_end(d);
	cn_mapping_end(d);
	assert_int_equal(d->memory.used, 0);
	assert_int_equal(d->memory.regions, 0);
	close(d->epoll_fd);
	free(d);
}

uint8_t *region_map(struct cn_client *c, int fd, uint64_t bytes)
{
	char text[CN_ERR_TEXT];
	const int memory = region_ask(c, fd, bytes, text);
	uint8_t *p = cn_memfd_map(memory, bytes, 0);

	assert_non_null(p);
	close(memory);
	p[0] = p[bytes - 1] = 7;
	return p;
}

bool region_has_events(const struct cn_daemon *d)
{
	struct epoll_event event;

	return epoll_wait(d->epoll_fd, &event, 1, 0) > 0;
}
