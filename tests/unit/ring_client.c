/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptor.h"
#include "ring_client.h"

struct cn_daemon *ring_daemon(void)
{
	struct cn_daemon *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	cn_config_init(&d->config);
	d->now = 1000 * CN_MS;
	d->memory.base = d->memory.total = (uint64_t)64 << 20;
	strcpy(d->iface.name, "eth0");
	return d;
}

void ring_client_send(struct ring_client *e, const void *m, size_t len)
{
	assert_int_equal(send(e->fd, m, len, MSG_DONTWAIT), len);
	cn_client_readable(e->client);
}

uint32_t ring_client_recv(struct ring_client *e, int *fd)
{
	static union cn_msg m;
	int none;

	return receive_descriptor(e->fd, &m, sizeof(m), MSG_DONTWAIT, fd != NULL ? fd : &none) > 0
		       ? m.head.type
		       : 0;
}

void ring_client_connect(struct ring_client *e, struct cn_daemon *d, uid_t uid)
{
	const struct cn_msg_hello hello = { .head = { .type = CN_MSG_HELLO },
					    .magic = CN_MSG_MAGIC,
					    .version = CN_MSG_VERSION };
	static const struct cn_msg_head doorbell = { .type = CN_MSG_DOORBELL };
	const struct cn_msg_region rings = { .head = { .type = CN_MSG_REGION },
					     .region = CN_MSG_RINGS,
					     .bytes = RING_CLIENT_BYTES };
	int p[2], memory = -1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	d->guarded = cn_receive_guard(p[0]);
	e->fd = p[1];
	e->client = cn_client_new(d, p[0], uid);
	assert_non_null(e->client);
	ring_client_send(e, &hello, sizeof(hello));
	assert_int_equal(ring_client_recv(e, NULL), CN_MSG_WELCOME);
	ring_client_send(e, &rings, sizeof(rings));
	assert_int_equal(ring_client_recv(e, &memory), CN_MSG_REPLY);
	assert_true(memory >= 0);
	e->memory = cn_memfd_map(memory, RING_CLIENT_BYTES, 0);
	assert_non_null(e->memory);
	close(memory);
	cn_msg_rings_init(e->memory, &e->requests, &e->completions);
	ring_client_send(e, &doorbell, sizeof(doorbell));
	e->client->lost_teams[0] = 1;
}

enum cn_shm_ring_status ring_client_post(struct ring_client *e, uint32_t tag, uint32_t team)
{
	const struct cn_msg_coll m = { .head = { .type = CN_MSG_COLL, .tag = tag },
				       .team = team,
				       .op = CN_OP_BARRIER,
				       .timeout_ms = 1000,
				       .send = { .region = CN_MSG_NO_REGION },
				       .recv = { .region = CN_MSG_NO_REGION } };

	return cn_shm_ring_put(&e->requests, &m, sizeof(m));
}

void ring_client_expect_done(struct ring_client *e, uint32_t tag, int status)
{
	const struct cn_msg_done *m;
	const void *slot;

	assert_int_equal(cn_shm_ring_front(&e->completions, &slot), CN_SHM_RING_OK);
	m = slot;
	assert_null(cn_msg_check(slot, sizeof(*m), true));
	assert_int_equal(m->head.tag, tag);
	assert_int_equal(m->status, status);
	cn_shm_ring_pop(&e->completions);
}

void ring_client_free(struct ring_client *e)
{
	munmap(e->memory, RING_CLIENT_BYTES);
	close(e->fd);
}
