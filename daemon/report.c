/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients' queries about the node: counters, nodes, jobs, and whether the daemon runs. */
#include "daemon/daemon.h"

/* Without an interface there is no engine: the client is sent the reason. */
static bool attached(struct cn_client *c, uint32_t tag)
{
	if (c->daemon->runtime.engine == NULL) {
		cn_client_reply(c, tag, COLLNET_EIFACE, 0, c->daemon->iface.text);
		return false;
	}
	return true;
}

/* The peak of the window since the client reset it; the engine's is since the last query alone. */
static uint32_t peak_of(struct cn_client *c, const struct collnet_stats *s, bool reset)
{
	struct cn_daemon *d = c->daemon;
	uint32_t peak;

	d->peak = s->window_peak > d->peak ? s->window_peak : d->peak;
	for (uint32_t i = 0; i < CN_CLIENTS_MAX; i++) {
		if (d->clients[i] != NULL && d->clients[i]->peak < s->window_peak) {
			d->clients[i]->peak = s->window_peak;
		}
	}
	peak = c->peak;
	c->peak = reset ? s->window_now : peak;
	return peak;
}

void cn_report_stats(struct cn_client *c, const struct cn_msg_stats *m)
{
	struct cn_msg_stats_reply a = { .head = { .type = CN_MSG_STATS_REPLY,
						  .tag = m->head.tag } };

	if (!attached(c, m->head.tag)) {
		return;
	}
	cn_runtime_stats(&c->daemon->runtime, &a.stats, true);
	a.stats.window_peak = peak_of(c, &a.stats, m->reset_peak != 0);
	a.stats.down = c->daemon->iface.down;
	cn_client_send(c, &a, sizeof(a));
}

/* The number of entries from `first` on, limited by the room. */
static uint32_t part(size_t total, uint32_t first, size_t room)
{
	const size_t rest = total > first ? total - first : 0;

	return (uint32_t)(rest < room ? rest : room);
}

/* With many jobs, the client gets few nodes at once, and requests more. */
static size_t nodes_at_once(const struct cn_daemon *d)
{
	const uint32_t n = cn_engine_nodes_at_once(d->runtime.engine);

	return n < CN_MSG_PAGE ? n : CN_MSG_PAGE;
}

void cn_report_nodes(struct cn_client *c, const struct cn_msg_table *m)
{
	struct cn_msg_node_table a = { .head = { .type = CN_MSG_NODE_TABLE, .tag = m->head.tag } };
	size_t room, count;

	if (!attached(c, m->head.tag)) {
		return;
	}
	count = room = nodes_at_once(c->daemon);
	cn_engine_nodes(c->daemon->runtime.engine, c->daemon->now, m->first, a.nodes, &count);
	a.total = (uint32_t)count;
	a.count = part(count, m->first, room);
	cn_client_send(c, &a, sizeof(a));
}

void cn_report_jobs(struct cn_client *c, const struct cn_msg_table *m)
{
	struct cn_msg_job_table a = { .head = { .type = CN_MSG_JOB_TABLE, .tag = m->head.tag } };
	size_t count = CN_MSG_PAGE;

	if (!attached(c, m->head.tag)) {
		return;
	}
	cn_engine_jobs(c->daemon->runtime.engine, c->uid, m->first, a.jobs, &count);
	a.total = (uint32_t)count;
	a.count = part(count, m->first, CN_MSG_PAGE);
	cn_client_send(c, &a, sizeof(a));
}

void cn_report_alive(struct cn_client *c, const struct cn_msg_head *m)
{
	const struct cn_msg_head a = { .type = CN_MSG_PONG, .tag = m->tag };

	cn_client_send(c, &a, sizeof(a));
}
