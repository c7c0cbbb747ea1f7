/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/report.c: a message about a part of a table costs that part; a client has its own peak. */
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

#include "daemon/daemon.h"
#include "engine_fixture.h"

#define JOBS 3u
#define MANY 1000u /* jobs more */

static uint32_t looked; /* sessions whose state was read */

/* Linked with --wrap. */
void __real_cn_peer_info(const struct cn_peer *p, cn_time now, struct collnet_node_info *out);
void __wrap_cn_peer_info(const struct cn_peer *p, cn_time now, struct collnet_node_info *out);

void __wrap_cn_peer_info(const struct cn_peer *p, cn_time now, struct collnet_node_info *out)
{
	looked++;
	__real_cn_peer_info(p, now, out);
}

static struct cn_daemon *d;
static struct cn_client *client;
static struct engine_fixture *w;
static int fd;

static void many_teams(struct cn_engine_config *c)
{
	c->max_teams = JOBS + MANY;
}

static void ignore(struct cn_done *done, int status, const char *text)
{
	(void)done;
	(void)status;
	(void)text;
}

/* The daemon of the first of 17 nodes, which all share some jobs. */
static int setup(void **state)
{
	int p[2];

	(void)state;
	w = engine_fixture(NODES, NULL, many_teams);
	for (uint32_t i = 0; i < JOBS; i++) {
		engine_join_all(w, 1, false, (const char *const[]){ "a", "b", "c" }[i]);
	}
	d = calloc(1, sizeof(*d));
	assert_non_null(d);
	cn_config_init(&d->config);
	d->now = w->now;
	d->runtime.engine = w->engines[0];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	client = cn_client_new(d, p[0], OWNER);
	assert_non_null(client);
	fd = p[1];
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cn_client_end(d);
	close(fd);
	free(d);
	engine_fixture_free(w);
	return 0;
}

static uint32_t peak(struct cn_client *c, int end, bool reset)
{
	const struct cn_msg_stats request = { .head = { .type = CN_MSG_STATS },
					      .reset_peak = reset };
	struct cn_msg_stats_reply reply;

	cn_report_stats(c, &request);
	assert_int_equal(recv(end, &reply, sizeof(reply), MSG_DONTWAIT), sizeof(reply));
	return reply.stats.window_peak;
}

/* A client that resets the peak changes what it sees itself, and no other. */
static void stats__peak_of_each_client(void **state)
{
	struct cn_window *window = cn_node_window(cn_engine_node(d->runtime.engine));
	struct cn_client *other;
	int p[2];

	(void)state;
	d->runtime.link = cn_hub_port(w->hub, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p), 0);
	window->peak = 70;
	assert_int_equal(peak(client, fd, true), 70);
	other = cn_client_new(d, p[0], OWNER + 1);
	assert_non_null(other);
	assert_int_equal(peak(other, p[1], false), 70);
	window->peak = 50;
	assert_int_equal(peak(client, fd, false), 50);
	assert_int_equal(peak(other, p[1], true), 70);
	assert_int_equal(peak(other, p[1], false), window->in_flight);
	assert_int_equal(peak(client, fd, false), 50);
	window->peak = 60;
	assert_int_equal(peak(other, p[1], true), 60);
	assert_int_equal(peak(client, fd, true), 60);
	assert_int_equal(peak(client, fd, false), window->in_flight);
	close(p[1]);
}

/* The entries from `first` on; counts the sessions that were looked at. */
static const struct cn_msg_node_table *nodes_from(uint32_t first)
{
	static union cn_msg m;
	const struct cn_msg_table request = { .head = { .type = CN_MSG_NODES }, .first = first };

	looked = 0;
	cn_report_nodes(client, &request);
	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m.node_table));
	assert_int_equal(m.head.type, CN_MSG_NODE_TABLE);
	assert_int_equal(m.node_table.total, NODES);
	return &m.node_table;
}

/* Each entry but the node itself is read from its own session and from those of all jobs. */
static void nodes__a_part_costs_its_own(void **state)
{
	const struct cn_msg_node_table all = *nodes_from(0), *part;

	(void)state;
	assert_int_equal(all.count, NODES);
	assert_int_equal(looked, (NODES - 1) * (1 + JOBS));
	assert_true(all.nodes[0].self);
	for (uint32_t first = 1; first < NODES + 2; first++) {
		const uint32_t n = first < NODES ? NODES - first : 0;

		part = nodes_from(first);
		assert_int_equal(part->count, n);
		assert_memory_equal(part->nodes, &all.nodes[first], n * sizeof(all.nodes[0]));
		assert_int_equal(looked, n * (1 + JOBS));
	}
	assert_int_equal(nodes_from(UINT32_MAX)->count, 0);
}

/* With many jobs here, as each node is looked for in the sessions of all of them, a message has few
 * nodes; the messages together have them all. */
static void nodes__few_at_once(void **state)
{
	struct cn_member *m[MANY];
	struct cn_done done[MANY];
	const struct cn_msg_node_table *t;
	char job[16], names[NODES][COLLNET_NAME_MAX + 1];
	uint32_t n = 0;

	(void)state;
	t = nodes_from(0);
	for (uint32_t i = 0; i < NODES; i++) {
		memcpy(names[i], t->nodes[i].name, sizeof(names[i]));
	}
	for (uint32_t i = 0; i < MANY; i++) {
		done[i].fn = ignore;
		snprintf(job, sizeof(job), "many%u", i);
		assert_int_equal(cn_team_join(d->runtime.engine, w->now, OWNER, job, 0, 2, CN_NEVER,
					      &done[i], &m[i], NULL),
				 COLLNET_OK);
	}
	assert_uint_in_range(cn_engine_nodes_at_once(d->runtime.engine), 1, NODES / 2);
	while (n < NODES) {
		t = nodes_from(n);
		assert_uint_in_range(t->count, 1, cn_engine_nodes_at_once(d->runtime.engine));
		for (uint32_t i = 0; i < t->count; i++) {
			assert_string_equal(t->nodes[i].name, names[n++]);
		}
	}
	assert_int_equal(nodes_from(NODES)->count, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		cn_team_leave(m[i], w->now, false);
	}
}

static void jobs__a_part(void **state)
{
	static union cn_msg m;

	(void)state;
	for (uint32_t first = 0; first < JOBS + 2; first++) {
		const struct cn_msg_table request = { .head = { .type = CN_MSG_JOBS },
						      .first = first };
		const struct cn_msg_job_table *t = &m.job_table;

		cn_report_jobs(client, &request);
		assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(*t));
		assert_int_equal(t->total, JOBS);
		assert_int_equal(t->count, first < JOBS ? JOBS - first : 0);
		for (uint32_t i = 0; i < t->count; i++) {
			assert_string_equal(t->jobs[i].name,
					    ((const char *const[]){ "a", "b", "c" })[first + i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats__peak_of_each_client),
		cmocka_unit_test(nodes__a_part_costs_its_own),
		cmocka_unit_test(jobs__a_part),
		cmocka_unit_test(nodes__few_at_once),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
