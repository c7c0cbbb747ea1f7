/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon_fixture.h"

static struct cn_engine *engine(const struct cn_link *l)
{
	struct cn_engine_config config;
	struct cn_engine *e = NULL;

	cn_engine_config_init(&config);
	memcpy(config.node.mac, l->mac, 6);
	config.node.epoch = 1;
	config.node.mtu = 1500;
	config.task_min = CN_TASK_MIN;
	snprintf(config.node.name, sizeof(config.node.name), "self");
	assert_int_equal(cn_engine_new(&config, &e, NULL), COLLNET_OK);
	return e;
}

void daemon_fixture_begin(struct daemon_fixture *f)
{
	const struct cn_msg_hello hello = { .head = { .type = CN_MSG_HELLO },
					    .magic = CN_MSG_MAGIC,
					    .version = CN_MSG_VERSION };
	struct cn_daemon *d = calloc(1, sizeof(*d));
	struct cn_msg_welcome welcome;
	int p[2];

	f->daemon = d;
	f->hub = cn_hub_new(1, 1500, 8);
	assert_true(d != NULL && f->hub != NULL);
	cn_config_init(&d->config);
	d->now = 1000 * CN_MS;
	d->memory.base = d->memory.total = (uint64_t)64 << 20;
	d->runtime.link = cn_hub_port(f->hub, 0);
	d->runtime.engine = engine(d->runtime.link);
	assert_int_equal(cn_helper_new(&d->helper, NULL), COLLNET_OK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	d->guarded = cn_receive_guard(p[0]);
	f->fd = p[1];
	f->client = cn_client_new(d, p[0], 1000);
	assert_non_null(f->client);
	f->user = f->client->user;
	cn_client_message(f->client, (const union cn_msg *)(const void *)&hello, sizeof(hello));
	assert_int_equal(recv(f->fd, &welcome, sizeof(welcome), MSG_DONTWAIT), sizeof(welcome));
}

void daemon_fixture_end(struct daemon_fixture *f)
{
	cn_client_end(f->daemon);
	cn_mapping_end(f->daemon);
	for (int q = 0; q < CN_QUOTAS; q++) {
		assert_int_equal(f->user->used[q], 0);
	}
	cn_helper_wait(f->daemon->helper, f->daemon->runtime.engine);
	cn_helper_free(f->daemon->helper);
	cn_engine_free(f->daemon->runtime.engine);
	cn_hub_free(f->hub);
	close(f->fd);
	free(f->daemon);
}

struct cn_client *daemon_fixture_another(struct cn_daemon *d, uid_t uid, int *end)
{
	struct cn_client *other;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	other = cn_client_new(d, p[0], uid);
	assert_non_null(other);
	other->greeted = true;
	*end = p[1];
	return other;
}

void daemon_fixture_crowd(struct daemon_fixture *f, struct cn_client *other, int end, uint32_t n)
{
	static union cn_msg answer;
	struct cn_msg_join m = { .ranks = DAEMON_FIXTURE_CROWD,
				 .timeout_ms = 1000,
				 .job = "crowd" };

	m.head.type = CN_MSG_JOIN;
	for (uint32_t r = 0; r < DAEMON_FIXTURE_CROWD; r++) {
		m.head.tag = m.team = m.rank = r;
		cn_client_message(r < n ? other : f->client, (const union cn_msg *)(const void *)&m,
				  sizeof(m));
	}
	for (uint32_t r = 0; r < DAEMON_FIXTURE_CROWD; r++) {
		assert_true(recv(r < n ? end : f->fd, &answer, sizeof(answer), MSG_DONTWAIT) > 0);
		assert_int_equal(answer.head.type, CN_MSG_JOINED);
	}
}

void daemon_fixture_alltoall(struct cn_client *of, uint32_t rank, bool persistent)
{
	const struct cn_msg_coll m = { .head = { .type = CN_MSG_COLL, .tag = rank },
				       .team = rank,
				       .op = CN_OP_ALLTOALL,
				       .algorithm = "shuffle",
				       .timeout_ms = 1000 * (rank + 1),
				       .persistent = persistent,
				       .send = { .region = CN_MSG_NO_REGION },
				       .recv = { .region = CN_MSG_NO_REGION },
				       .blocks = { .region = CN_MSG_NO_REGION },
				       .scratch = { .region = CN_MSG_NO_REGION } };

	cn_client_message(of, (const union cn_msg *)(const void *)&m, sizeof(m));
}

void daemon_fixture_run_task(struct cn_daemon *d)
{
	struct pollfd p = { .fd = cn_helper_fd(d->helper), .events = POLLIN };

	cn_call_submit_task(d);
	assert_true(cn_helper_busy(d->helper));
	assert_int_equal(poll(&p, 1, -1), 1);
	cn_call_collect_task(d);
}
