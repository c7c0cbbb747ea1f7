/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation and end of the engine, the transport's four calls and upcalls, and the node's tables. */
#include <stdlib.h>
#include <string.h>

#include "coll/control.h"
#include "coll/endpoint.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "coll/split.h"
#include "proto/wire.h"

void cn_engine_config_init(struct cn_engine_config *c)
{
	memset(c, 0, sizeof(*c));
	cn_node_config_init(&c->node);
	c->advice = "see whether collnet status shows their nodes";
	c->window = COLLNET_WINDOW_AUTO;
	c->max_teams = 64;
	c->max_endpoints = 1024;
}

/* ---- upcalls of the transport ------------------------------------------------------------ */

uint32_t cn_engine_quantum(const struct cn_engine *e, uint32_t window)
{
	uint32_t limit = cn_node_window(e->own.node)->limit, quantum;

	limit = window < limit ? window : limit;
	if (e->config.node.encapsulation == CN_ENCAPSULATION_RAW || limit < 16) {
		return 1;
	}
	quantum = limit < e->brief ? limit : e->brief;
	quantum = limit / 8 > quantum ? limit / 8 : quantum;
	return quantum < e->burst ? quantum : e->burst;
}

#define BRIEF_TIME     (100 * CN_US)
#define BURST_TIME     (500 * CN_US)
#define FRAME_OVERHEAD 38 /* bytes on the wire besides the MTU: headers, preamble, gap */

/* bit/s of this node's link, from the topology or else from the interface; 0: unknown. */
static uint64_t link_rate(const struct cn_engine_config *c)
{
	const struct cn_topo *t = c->topo;
	uint64_t rate = t != NULL ? cn_topo_host_rate(t, cn_topo_find(t, c->node.name)) : 0;

	return rate != 0 ? rate : c->rate;
}

/* Frames that the link carries in `time`: 1 to CN_SUPER_FRAME_MAX. */
static uint32_t frames_in(const struct cn_engine_config *c, cn_time time)
{
	const uint64_t rate = link_rate(c);
	uint64_t frames = rate / 8 * time / (1000 * CN_MS) / (c->node.mtu + FRAME_OVERHEAD);

	return rate == 0 || frames > CN_SUPER_FRAME_MAX ? CN_SUPER_FRAME_MAX
	       : frames > 0				? (uint32_t)frames
							: 1;
}

static void measure_link(struct cn_engine *e)
{
	e->brief = e->config.topo != NULL ? frames_in(&e->config, BRIEF_TIME) : 0;
	e->burst = frames_in(&e->config, BURST_TIME);
	e->link_mbit = (uint32_t)((link_rate(&e->config) + 999999) / 1000000);
}

uint32_t cn_engine_burst(const struct cn_engine *e)
{
	return e->burst;
}

struct cn_engine_peer *cn_engine_peer_of(const struct cn_peer *p)
{
	return cn_peer_user(p);
}

/* The record of the peer's node; NULL: no memory. */
static struct cn_engine_peer *remember(struct cn_peer *p)
{
	struct cn_engine_peer *m = cn_engine_peer_of(p);

	if (m == NULL) {
		m = calloc(1, sizeof(*m));
		if (m == NULL) {
			cn_log(COLLNET_LOG_ERROR, "no memory for node %s", cn_peer_name(p));
			return NULL;
		}
		m->peer = p;
		cn_peer_set_user(p, m);
	}
	return m;
}

static bool on_control(struct cn_engine *e, cn_time now, struct cn_peer *p, const struct cn_rx *rx)
{
	if (rx->len == 0) {
		return true; /* a tombstone */
	}
	if (remember(p) == NULL) {
		return false; /* the node retransmits it */
	}
	if (rx->payload[0] >= CN_CONTROL_ENDPOINT) {
		return cn_endpoints_control(e, now, p, rx->payload, rx->len);
	}
	return cn_control_deliver(e, now, p, rx->payload, rx->len);
}

static bool on_deliver(void *ctx, cn_time now, struct cn_peer *p, const struct cn_rx *rx)
{
	struct cn_engine *e = ((struct cn_transport *)ctx)->engine;

	switch (rx->type) {
	case CN_TYPE_CONTROL:
		return on_control(e, now, p, rx);
	case CN_TYPE_MESSAGE:
		return cn_endpoints_deliver(e, now, p, rx);
	default:
		return true;
	}
}

static bool on_place(void *ctx, struct cn_peer *p, const struct cn_rx *rx, struct cn_rx_place *out)
{
	struct cn_engine *e = ((struct cn_transport *)ctx)->engine;

	return rx->type == CN_TYPE_MESSAGE && cn_endpoints_place(e, p, rx, out);
}

static void on_peer_up(void *ctx, cn_time now, struct cn_peer *p)
{
	struct cn_engine *e = ((struct cn_transport *)ctx)->engine;
	struct cn_engine_peer *m = remember(p);

	(void)now;
	cn_peer_log(p, COLLNET_LOG_INFO, "node %s is there", cn_peer_name(p));
	if (m != NULL) { /* else its messages are refused until there is memory */
		m->warnings = 0;
	}
	for (uint32_t i = 0; i < e->places; i++) {
		if (e->teams[i] != NULL) {
			cn_wireup_peer_up(e->teams[i], p);
		}
	}
}

static void on_path(void *ctx, cn_time now, struct cn_peer *p, uint32_t bytes)
{
	struct cn_engine *e = ((struct cn_transport *)ctx)->engine;

	if (bytes == 0) {
		cn_wireup_path_valid(e, now, p);
	} else {
		cn_wireup_path_drops(e, p, bytes);
	}
}

static void on_peer_down(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why)
{
	struct cn_engine *e = ((struct cn_transport *)ctx)->engine;
	struct cn_engine_peer *m = cn_engine_peer_of(p);

	/* Without a daemon, nodes end with their processes. Jobs that needed one report it. */
	cn_peer_log(p, why == CN_PEER_PROCESS ? COLLNET_LOG_INFO : COLLNET_LOG_WARNING,
		    "node %s %s", cn_peer_name(p), cn_peer_loss_text(why));
	if (m != NULL) {
		cn_join_remove_all(&m->joins);
	}
	cn_pending_drop(&e->own.pending, p);
	for (uint32_t i = 0; i < e->places; i++) {
		if (e->teams[i] != NULL) {
			cn_wireup_peer_down(e->teams[i], p, why);
		}
	}
	for (struct cn_transport *x = e->own.next; x != NULL; x = x->next) {
		cn_transport_activate(x);
		cn_node_disconnect(x->node, now, p, why);
	}
	cn_endpoints_peer_down(e, now, p);
}

static const struct cn_node_ops node_ops = {
	CN_TRANSPORT_UPCALLS,  .deliver = on_deliver,	  .place = on_place,
	.peer_up = on_peer_up, .peer_down = on_peer_down, .path = on_path,
};

/* ---- life ----------------------------------------------------------------------------- */

/* W_g of the node: as configured, else Eq. 4 for all hosts of the topology; without memory 1, the
 * safest. */
static uint32_t node_window(const struct cn_engine_config *c)
{
	uint32_t window;

	if (c->window != COLLNET_WINDOW_AUTO) {
		return c->window;
	}
	if (c->topo == NULL) {
		return COLLNET_WINDOW_OFF;
	}
	window = cn_topo_window(c->topo, c->topo->hosts, c->topo->nhosts, 2, NULL);
	return window > 0 ? window : 1;
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
	cn_adaptive_window_init(&e->adaptive);
	measure_link(e);
	e->topology = cn_topo_hash(c->topo);
	e->deadline = CN_NEVER;
	e->teams = calloc(c->max_teams, sizeof(struct cn_team *));
	if (e->teams == NULL || cn_heap_init(&e->waiting, CN_TRANSPORTS_MAX) != COLLNET_OK) {
		cn_engine_free(e);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the engine");
	}
	e->last_team_id = (uint32_t)cn_mix64(c->node.epoch);
	if (c->topo != NULL && e->config.node.expected == 0) {
		e->config.node.expected = c->topo->nhosts > 0 ? c->topo->nhosts - 1 : 0;
	}
	r = cn_transport_open_own(&e->own, e, &node_ops, err);
	if (r == COLLNET_OK) {
		r = cn_endpoints_new(e, err);
	}
	if (r != COLLNET_OK) {
		cn_engine_free(e);
		return r;
	}
	if (c->window != COLLNET_WINDOW_AUTO) {
		cn_node_window(e->own.node)->limit = c->window;
	}
	*out = e;
	return COLLNET_OK;
}

static void end_teams(struct cn_engine *e)
{
	for (uint32_t i = 0; i < e->places && e->teams != NULL; i++) {
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
	if (e->own.node != NULL) {
		cn_engine_shutdown(e, CN_BYE_DAEMON);
		end_teams(e);
		if (e->endpoints != NULL) {
			cn_endpoints_free(e);
		}
		cn_transport_reap(e, 0, true);
		for (uint32_t i = 0; i < cn_node_peers(e->own.node); i++) {
			struct cn_engine_peer *m = cn_engine_peer_of(cn_node_peer(e->own.node, i));

			if (m != NULL) {
				cn_join_remove_all(&m->joins);
				free(m);
			}
		}
	}
	cn_tasks_end(e);
	cn_transport_fini(&e->own);
	cn_heap_fini(&e->waiting);
	free(e->teams);
	free(e);
}

int cn_engine_refuse(const struct cn_engine *e, struct cn_err *err)
{
	return cn_fail(err, COLLNET_EDAEMON, "the daemon of node %s is shutting down",
		       e->config.node.name);
}

void cn_engine_shutdown(struct cn_engine *e, enum cn_bye why)
{
	struct cn_err end;

	if (e->closing) {
		return;
	}
	e->closing = true;
	cn_engine_refuse(e, &end);
	for (uint32_t i = 0; i < e->places; i++) {
		if (e->teams[i] != NULL) {
			cn_team_fail(e->teams[i], false, end.code, "%s", end.text);
		}
	}
	if (e->endpoints != NULL) {
		cn_endpoints_abort(e, end.code, end.text);
	}
	cn_node_bye(e->own.node, why);
}

void cn_engine_fail(struct cn_engine *e, cn_time now, int status, const char *text)
{
	for (uint32_t i = 0; i < e->places; i++) {
		if (e->teams[i] != NULL) {
			cn_team_fail(e->teams[i], true, status, "%s", text);
		}
	}
	cn_endpoints_fail(e, now, status, text);
}

void cn_engine_abandon_longer(struct cn_engine *e, uint32_t mtu)
{
	for (struct cn_transport *x = &e->own; x != NULL; x = x->next) {
		cn_node_abandon_longer(x->node, mtu);
		cn_transport_activate(x);
	}
}

void cn_engine_reconfigure(struct cn_engine *e, const struct cn_topo *topo, uint32_t window,
			   uint64_t max_schedules)
{
	e->config.topo = topo;
	e->config.window = window;
	e->config.max_schedules = max_schedules;
	e->window = node_window(&e->config);
	cn_adaptive_window_init(&e->adaptive);
	measure_link(e);
	e->topology = cn_topo_hash(topo);
	cn_node_window(e->own.node)->limit = window != COLLNET_WINDOW_AUTO ? window
									   : COLLNET_WINDOW_OFF;
}

struct cn_node *cn_engine_node(struct cn_engine *e)
{
	return e->own.node;
}

/* ---- the four calls ------------------------------------------------------------------- */

void cn_engine_touch(struct cn_engine *e)
{
	e->touched = true;
}

void cn_engine_input(struct cn_engine *e, cn_time now, const struct cn_rx_frame *f)
{
	struct cn_transport *x = cn_transport_of_port(e, cn_wire_port(f->data, f->len));

	cn_transport_activate(x);
	if (x->team != NULL && x->team->division != NULL && cn_division_defer(x->team, f)) {
		return;
	}
	cn_node_input(x->node, now, f);
}

bool cn_engine_place(void *engine, const struct cn_rx_frame *first, struct cn_rx_place *out)
{
	struct cn_engine *e = engine;
	struct cn_transport *x = cn_transport_of_port(e, cn_wire_port(first->data, first->len));

	return cn_node_place(x->node, first, out);
}

bool cn_engine_output(struct cn_engine *e, cn_time now, struct cn_frame *out)
{
	if (e->closing) {
		return cn_node_output(e->own.node, now, out); /* goodbyes */
	}
	if (cn_transport_output(e, now, out) ||
	    (e->starved && cn_transport_request_acks(e) && cn_transport_output(e, now, out))) {
		return true;
	}
	cn_transport_deactivate_idle(e, now);
	return false;
}

bool cn_engine_drain(struct cn_engine *e)
{
	bool drained = true;

	for (struct cn_transport *x = &e->own; x != NULL; x = x->next) {
		drained = cn_node_drain(x->node) && drained;
		if (!cn_node_is_idle(x->node)) {
			cn_transport_activate(x);
		}
	}
	return drained;
}

/* Cached, and recomputed if touched. */
static cn_time teams_deadline(const struct cn_engine *of)
{
	struct cn_engine *e = (struct cn_engine *)(uintptr_t)of;

	if (e->touched) {
		e->touched = false;
		e->deadline = CN_NEVER;
		for (const struct cn_transport *x = e->own.next_active; x != NULL;
		     x = x->next_active) {
			if (x->team != NULL) {
				e->deadline = cn_min_time(e->deadline, cn_team_deadline(x->team));
			}
		}
	}
	return e->deadline;
}

static cn_time own_deadline(const struct cn_engine *e)
{
	if (e->copies.used != 0) {
		return CN_AFTER_FRAMES;
	}
	return cn_min_time(teams_deadline(e), cn_endpoints_deadline(e));
}

cn_time cn_engine_deadline(const struct cn_engine *e)
{
	cn_time at = cn_min_time(own_deadline(e), cn_transport_wake_at(e));

	for (const struct cn_transport *x = &e->own; x != NULL; x = x->next_active) {
		at = cn_min_time(at, cn_transport_deadline(x));
	}
	return at;
}

bool cn_engine_has_copies(const struct cn_engine *e)
{
	return own_deadline(e) == CN_AFTER_FRAMES;
}

void cn_engine_expire(struct cn_engine *e, cn_time now)
{
	cn_transport_wake(e, now);
	for (struct cn_transport *x = &e->own, *next; x != NULL; x = next) {
		next = x->next_active;
		cn_transport_expire(x, now);
	}
	cn_transport_reap(e, now, false);
	cn_op_run_copies(e, now);
	if (teams_deadline(e) <= now) {
		for (struct cn_transport *x = e->own.next_active, *next; x != NULL; x = next) {
			next = x->next_active;
			if (x->team != NULL) {
				cn_team_expire(x->team, now);
			}
		}
		cn_engine_touch(e);
	}
	if (cn_endpoints_deadline(e) <= now) {
		cn_endpoints_expire(e, now);
	}
}

/* ---- statistics, nodes and jobs ------------------------------------------------------- */

void cn_engine_stats(struct cn_engine *e, struct collnet_stats *s, bool reset_peak)
{
	const struct cn_engine_config *c = &e->config;
	const size_t size = s->size;

	*s = e->ended;
	s->size = size;
	for (const struct cn_transport *x = e->own.next; x != NULL; x = x->next) {
		cn_node_stats(x->node, s);
	}
	cn_node_stats(e->own.node, s);
	s->window = e->window;
	s->adaptive_window = c->topo == NULL && c->window == COLLNET_WINDOW_AUTO
				     ? e->adaptive.window
				     : 0;
	s->jobs = e->nteams;
	s->no_carrier = e->no_carrier;
	s->plans = e->plans;
	s->link_rate = link_rate(c);
	if (reset_peak) {
		cn_node_window(e->own.node)->peak = cn_node_window(e->own.node)->in_flight;
	}
}

void cn_engine_peer_info(const struct cn_engine *e, cn_time now, const struct cn_peer *p,
			 struct collnet_node_info *out)
{
	struct collnet_node_info more;

	cn_peer_info(p, now, out);
	for (const struct cn_transport *x = e->own.next; x != NULL; x = x->next) {
		const struct cn_peer *q = cn_node_connected(x->node, p);

		if (q == NULL) {
			continue;
		}
		cn_peer_info(q, now, &more);
		out->data_sent += more.data_sent;
		out->data_resent += more.data_resent;
		out->data_received += more.data_received;
		if (more.heard_ns < out->heard_ns) {
			out->heard_ns = more.heard_ns;
			out->rtt_ns = more.rtt_ns;
		}
	}
}

void cn_engine_jobs(struct cn_engine *e, uint64_t viewer, size_t first,
		    struct collnet_job_info *out, size_t *count)
{
	const size_t cap = *count;
	size_t n = 0;

	for (uint32_t i = 0; i < e->places; i++) {
		const struct cn_team *t = e->teams[i];

		if (t == NULL || (viewer != CN_OWNER_ROOT && t->owner != viewer)) {
			continue;
		}
		if (n >= first && n - first < cap) {
			struct collnet_job_info *j = &out[n - first];

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
