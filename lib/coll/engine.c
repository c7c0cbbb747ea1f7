/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's life, the transport's four calls and upcalls, and what the node knows. */
#include <stdlib.h>
#include <string.h>

#include "coll/control.h"
#include "coll/endpoint.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/stream.h"
#include "proto/wire.h"
#include "coll/version_mismatch.h"

void cn_engine_config_init(struct cn_engine_config *c)
{
	memset(c, 0, sizeof(*c));
	cn_node_config_init(&c->node);
	c->window = COLLNET_WINDOW_AUTO;
	c->max_teams = 64;
	c->max_endpoints = 1024;
}

/* ---- upcalls of the transport ------------------------------------------------------------ */

uint32_t cn_engine_quantum(const struct cn_engine *e, uint32_t window)
{
	uint32_t limit = cn_node_window(e->node)->limit;

	limit = window < limit ? window : limit;
	if (e->config.node.encapsulation == CN_ENCAPSULATION_RAW || limit < 16) {
		return 1;
	}
	return limit / 8 < CN_SUPER_FRAME_MAX ? limit / 8 : CN_SUPER_FRAME_MAX;
}

static bool on_pull(void *ctx, cn_time now, struct cn_tx *out)
{
	struct cn_engine *e = ctx;

	return cn_source_pull(&e->sources, now, cn_engine_quantum(e, e->window), out);
}

static bool on_control(struct cn_engine *e, cn_time now, struct cn_peer *p, const struct cn_rx *rx)
{
	if (rx->len == 0) { /* a tombstone: the operation of the frame failed at the sender */
		struct cn_team *t = cn_team_by_slot(e, cn_stream_slot(rx->stream));

		if (t != NULL && (rx->flags & CN_FLAG_LAST) != 0) {
			cn_op_tombstone(t, p);
		}
		return true;
	}
	if (rx->payload[0] >= CN_CONTROL_ENDPOINT) {
		return cn_endpoints_control(e, now, p, rx->payload, rx->len);
	}
	return cn_control_deliver(e, now, p, rx->payload, rx->len);
}

static bool on_deliver(void *ctx, cn_time now, struct cn_peer *p, const struct cn_rx *rx)
{
	struct cn_engine *e = ctx;
	struct cn_team *t;

	switch (rx->type) {
	case CN_TYPE_CONTROL:
		return on_control(e, now, p, rx);
	case CN_TYPE_COLL:
		t = cn_team_by_slot(e, cn_stream_slot(rx->stream));
		/* A team that is gone here: its peers are notified; the frame has no reader. */
		return t == NULL || cn_op_deliver(t, p, rx);
	case CN_TYPE_MESSAGE:
		return cn_endpoints_deliver(e, now, p, rx);
	default:
		return true;
	}
}

static void on_acked(void *ctx, void *token, bool refused)
{
	struct cn_engine *e = ctx;
	struct cn_source *s = token;

	cn_flight_acked(&s->flight, cn_node_window(e->node), 1, refused);
	s->acked(s);
}

static void on_refused(void *ctx, void *token)
{
	struct cn_engine *e = ctx;
	struct cn_source *s = token;

	cn_flight_refused(&s->flight, cn_node_window(e->node));
}

static bool on_resend(void *ctx, void *token, uint8_t *flags)
{
	struct cn_engine *e = ctx;
	struct cn_source *s = token;
	struct cn_window *w = cn_node_window(e->node);

	if (!cn_flight_resend(&s->flight, w)) {
		return false;
	}
	if (!cn_window_open(w, s->flight.limit)) {
		*flags |= CN_FLAG_ACKREQ; /* only an acknowledgement opens it */
	}
	return true;
}

struct cn_engine_peer *cn_engine_peer_of(struct cn_peer *p)
{
	return cn_peer_user(p);
}

static void on_peer_up(void *ctx, cn_time now, struct cn_peer *p)
{
	struct cn_engine *e = ctx;
	struct cn_engine_peer *m = cn_engine_peer_of(p);

	(void)now;
	if (m == NULL) {
		m = calloc(1, sizeof(*m));
		if (m == NULL) {
			cn_log(COLLNET_LOG_ERROR, "no memory for node %s", cn_peer_name(p));
			return;
		}
		m->peer = p;
		cn_peer_set_user(p, m);
	}
	cn_peer_log(p, COLLNET_LOG_INFO, "node %s is there", cn_peer_name(p));
	m->complaints = 0;
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		if (e->teams[i] != NULL) {
			cn_wireup_peer_up(e->teams[i], p);
		}
	}
}

static void on_path(void *ctx, cn_time now, struct cn_peer *p, uint32_t bytes)
{
	if (bytes == 0) {
		cn_wireup_path_valid(ctx, now, p);
	} else {
		cn_wireup_path_drops(ctx, p, bytes);
	}
}

static void on_peer_down(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why)
{
	static const char *const reason[] = {
		[CN_PEER_SILENT] = "stopped answering",
		[CN_PEER_RESTARTED] = "restarted",
		[CN_PEER_RESET] = "did not hear this node for long",
		[CN_PEER_BYE] = "ended its daemon",
		[CN_PEER_PATH] = "answers, but large frames do not reach it",
		[CN_PEER_MOVED] = "replaced its interface",
	};
	struct cn_engine *e = ctx;
	struct cn_engine_peer *m = cn_engine_peer_of(p);

	cn_peer_log(p, COLLNET_LOG_WARNING, "node %s %s", cn_peer_name(p), reason[why]);
	if (m != NULL) {
		cn_join_remove_all(&m->joins);
	}
	cn_pending_drop(&e->pending, p);
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		if (e->teams[i] != NULL) {
			cn_team_peer_down(e->teams[i], now, p, why);
		}
	}
	cn_endpoints_peer_down(e, now, p);
}

static const struct cn_node_ops node_ops = {
	.pull = on_pull,
	.deliver = on_deliver,
	.acked = on_acked,
	.refused = on_refused,
	.resend = on_resend,
	.peer_up = on_peer_up,
	.peer_down = on_peer_down,
	.path = on_path,
};

/* ---- life ----------------------------------------------------------------------------- */

uint32_t cn_engine_topology_hash(const struct cn_topo *t)
{
	uint64_t h = 1;

	if (t == NULL) {
		return 0;
	}
	for (uint32_t i = 0; i < t->nvertices; i++) {
		for (const char *s = t->vertices[i].name; *s != '\0'; s++) {
			h = cn_mix64(h ^ (uint8_t)*s);
		}
		h = cn_mix64(h ^ (t->vertices[i].is_switch ? 0x100u : 0x200u));
	}
	for (uint32_t i = 0; i < t->nlinks; i++) {
		h = cn_mix64(h ^ ((uint64_t)t->links[i].a << 32 | t->links[i].b));
		h = cn_mix64(h ^ t->links[i].rate ^ (uint64_t)t->links[i].buffer << 40);
		h = cn_mix64(h ^ t->links[i].channels);
	}
	return (uint32_t)(h >> 32) | 1;
}

/* W_g of the node: what is configured, else Eq. 4 for all hosts of the topology. */
static uint32_t node_window(const struct cn_engine_config *c)
{
	if (c->window != COLLNET_WINDOW_AUTO) {
		return c->window;
	}
	if (c->topo == NULL) {
		return COLLNET_WINDOW_OFF;
	}
	return cn_topo_window(c->topo, c->topo->hosts, c->topo->nhosts, 2, NULL);
}

int cn_engine_new(const struct cn_engine_config *c, struct cn_engine **out, struct cn_err *err)
{
	struct cn_engine *e;
	int r;

	if (c->max_teams < 1 || c->max_teams > CN_TEAMS_MAX) {
		return cn_fail(err, COLLNET_EINVAL, "teams: 1 .. %u", CN_TEAMS_MAX);
	}
	e = calloc(1, sizeof(*e));
	if (e == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the engine");
	}
	e->config = *c;
	e->window = node_window(c);
	e->topology = cn_engine_topology_hash(c->topo);
	e->deadline = CN_NEVER;
	e->teams = calloc(c->max_teams, sizeof(struct cn_team *));
	e->generation = calloc(c->max_teams, 1);
	if (e->teams == NULL || e->generation == NULL) {
		cn_engine_free(e);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the engine");
	}
	e->last_team_id = (uint32_t)cn_mix64(c->node.epoch);
	if (c->topo != NULL && e->config.node.expected == 0) {
		e->config.node.expected = c->topo->nhosts > 0 ? c->topo->nhosts - 1 : 0;
	}
	r = cn_node_new(&e->config.node, &node_ops, e, &e->node, err);
	if (r == COLLNET_OK && !cn_pending_init(&e->pending, e->node, c->node.max_peers)) {
		r = cn_fail(err, COLLNET_ENOMEM, "no memory for the engine");
	}
	if (r == COLLNET_OK) {
		r = cn_endpoints_new(e, err);
	}
	if (r != COLLNET_OK) {
		cn_engine_free(e);
		return r;
	}
	if (c->window != COLLNET_WINDOW_AUTO) {
		cn_node_window(e->node)->limit = c->window;
	}
	*out = e;
	return COLLNET_OK;
}

static void end_teams(struct cn_engine *e)
{
	for (uint32_t i = 0; i < e->config.max_teams && e->teams != NULL; i++) {
		struct cn_team *t = e->teams[i];

		/* The last member takes the team with it. */
		while (t != NULL && e->teams[i] == t && t->members != NULL) {
			cn_team_leave(t->members, 0, false);
		}
	}
}

void cn_engine_free(struct cn_engine *e)
{
	if (e == NULL) {
		return;
	}
	if (e->node != NULL) {
		cn_engine_shutdown(e, 0);
		end_teams(e);
		if (e->endpoints != NULL) {
			cn_endpoints_free(e);
		}
		cn_pending_fini(&e->pending);
		for (uint32_t i = 0; i < cn_node_peers(e->node); i++) {
			struct cn_engine_peer *m = cn_engine_peer_of(cn_node_peer(e->node, i));

			if (m != NULL) {
				cn_join_remove_all(&m->joins);
				free(m);
			}
		}
		cn_node_free(e->node);
	}
	free(e->teams);
	free(e->generation);
	free(e);
}

void cn_engine_shutdown(struct cn_engine *e, cn_time now)
{
	(void)now;
	if (e->closing) {
		return;
	}
	e->closing = true;
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		if (e->teams[i] != NULL) {
			cn_team_fail(e->teams[i], false, COLLNET_EDAEMON,
				     "the daemon of node %s is ending", e->config.node.name);
		}
	}
	if (e->endpoints != NULL) {
		cn_endpoints_abort(e, COLLNET_EDAEMON, "the node's daemon is ending");
	}
	cn_node_bye(e->node);
}

void cn_engine_fail(struct cn_engine *e, cn_time now, int status, const char *text)
{
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		if (e->teams[i] != NULL) {
			cn_team_fail(e->teams[i], true, status, "%s", text);
		}
	}
	cn_endpoints_fail(e, now, status, text);
}

void cn_engine_reconfigure(struct cn_engine *e, const struct cn_topo *topo, uint32_t window)
{
	e->config.topo = topo;
	e->config.window = window;
	e->window = node_window(&e->config);
	e->topology = cn_engine_topology_hash(topo);
	cn_node_window(e->node)->limit = window != COLLNET_WINDOW_AUTO ? window
								       : COLLNET_WINDOW_OFF;
}

uint32_t cn_engine_teams(const struct cn_engine *e)
{
	return e->nteams;
}

struct cn_node *cn_engine_node(struct cn_engine *e)
{
	return e->node;
}

/* ---- the four calls ------------------------------------------------------------------- */

void cn_engine_touch(struct cn_engine *e)
{
	e->touched = true;
}

void cn_engine_input(struct cn_engine *e, cn_time now, const struct cn_rx_frame *f)
{
	cn_node_input(e->node, now, f);
}

bool cn_engine_output(struct cn_engine *e, cn_time now, struct cn_frame *out)
{
	return cn_node_output(e->node, now, out);
}

static cn_time own_deadline(struct cn_engine *e)
{
	if (e->touched) {
		e->touched = false;
		e->deadline = CN_NEVER;
		for (uint32_t i = 0; i < e->config.max_teams; i++) {
			if (e->teams[i] != NULL) {
				e->deadline = cn_min_time(e->deadline,
							  cn_team_deadline(e->teams[i]));
			}
		}
	}
	return cn_min_time(cn_min_time(e->deadline, cn_pending_deadline(&e->pending)),
			   cn_endpoints_deadline(e));
}

cn_time cn_engine_deadline(const struct cn_engine *e)
{
	/* The cached deadline is found anew where it was touched; nothing else changes. */
	return cn_min_time(own_deadline((struct cn_engine *)(uintptr_t)e),
			   cn_node_deadline(e->node));
}

void cn_engine_expire(struct cn_engine *e, cn_time now)
{
	cn_node_expire(e->node, now);
	if (own_deadline(e) > now) {
		return;
	}
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		if (e->teams[i] != NULL) {
			cn_team_expire(e->teams[i], now);
		}
	}
	cn_endpoints_expire(e, now);
	cn_pending_expire(&e->pending, now);
	cn_engine_touch(e);
}

/* ---- what the node knows -------------------------------------------------------------- */

void cn_engine_stats(struct cn_engine *e, struct collnet_stats *s, bool reset_peak)
{
	const struct cn_engine_config *c = &e->config;

	cn_node_stats(e->node, s);
	s->window = e->window;
	s->jobs = e->nteams;
	if (c->topo != NULL) {
		uint32_t v = cn_topo_find(c->topo, c->node.name);

		s->link_rate = v != CN_TOPO_NONE ? cn_topo_host_rate(c->topo, v) : 0;
	}
	if (reset_peak) {
		cn_node_window(e->node)->peak = cn_node_window(e->node)->in_flight;
	}
}

void cn_engine_nodes(struct cn_engine *e, cn_time now, struct collnet_node_info *out, size_t *count)
{
	const struct cn_node_config *c = cn_node_config(e->node);
	size_t cap = *count;
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];
	uint32_t n = cn_node_foreign_versions(e->node, now, s);

	*count = (size_t)cn_node_peers(e->node) + 1;
	for (size_t i = 0; i < *count && i < cap; i++) {
		if (i > 0) {
			cn_peer_info(cn_node_peer(e->node, (uint32_t)i - 1), now, &out[i]);
			continue;
		}
		memset(&out[0], 0, sizeof(out[0]));
		memcpy(out[0].name, c->name, sizeof(c->name));
		memcpy(out[0].mac, c->mac, 6);
		out[0].mtu = c->mtu;
		out[0].wire_version = cn_node_wire_version();
		out[0].alive = out[0].self = 1;
	}
	for (uint32_t k = 0; k < n; k++) {
		size_t i = s[k].peer != NULL ? (size_t)cn_peer_index(s[k].peer) + 1 : (*count)++;

		if (i < cap && s[k].peer == NULL) {
			memset(&out[i], 0, sizeof(out[i]));
			cn_version_mismatch_name(e, &s[k], out[i].name);
			memcpy(out[i].mac, s[k].mac, 6);
		}
		if (i < cap) {
			out[i].wire_version = s[k].version;
		}
	}
}

void cn_engine_jobs(struct cn_engine *e, uint64_t viewer, struct collnet_job_info *out,
		    size_t *count)
{
	size_t cap = *count, n = 0;

	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		const struct cn_team *t = e->teams[i];

		if (t == NULL || (viewer != CN_OWNER_ROOT && t->owner != viewer)) {
			continue;
		}
		if (n < cap) {
			struct collnet_job_info *j = &out[n];

			memset(j, 0, sizeof(*j));
			memcpy(j->name, t->job, sizeof(j->name));
			j->ranks = t->ranks;
			j->local = t->nlocal;
			j->ready = t->state == CN_TEAM_READY;
			j->present = j->ready ? t->ranks : t->nlocal;
			j->operations = t->operations;
		}
		n++;
	}
	*count = n;
}
