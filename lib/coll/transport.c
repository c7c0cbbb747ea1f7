/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/transport.h"

#include <stdlib.h>
#include <string.h>

#include "coll/control.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "proto/wire.h"

/* A closing transport is checked at this interval, which doubles. */
static const cn_time check_first = 2 * CN_MS, check_most = 100 * CN_MS;
/* An idle transport stays active for this long, because most waits are short. */
static const cn_time idle_after = 500 * CN_US;
/* Linger time, in multiples of the peer timeout. */
#define LINGER 4u
#define PLACE  (CN_TRANSPORTS_MAX - 1) /* bits of a port */
/* FAIL without memory is retried at this interval. */
static const cn_time fail_every = 5 * CN_MS;

/* ---- upcalls ----------------------------------------------------------------------------- */

bool cn_transport_pull(void *ctx, cn_time now, struct cn_tx *out)
{
	struct cn_transport *x = ctx;

	return x->sources.n > 0 &&
	       cn_source_pull(&x->sources, now, cn_engine_quantum(x->engine, x->engine->window),
			      out);
}

void cn_transport_acked(void *ctx, void *token, bool refused)
{
	struct cn_transport *x = ctx;
	struct cn_source *s = token;

	cn_flight_acked(&s->flight, cn_node_window(x->node), 1, refused);
	if (s->adaptive != NULL) {
		cn_adaptive_window_acked(s->adaptive);
	}
	s->acked(s);
}

void cn_transport_refused(void *ctx, void *token)
{
	struct cn_transport *x = ctx;
	struct cn_source *s = token;

	cn_flight_refused(&s->flight, cn_node_window(x->node));
}

bool cn_transport_resend(void *ctx, void *token, uint8_t *flags)
{
	struct cn_transport *x = ctx;
	struct cn_source *s = token;
	struct cn_window *w = cn_node_window(x->node);

	if (!cn_flight_resend(&s->flight, w)) {
		return false;
	}
	if (!cn_window_open(w, NULL, s->flight.limit)) {
		*flags |= CN_FLAG_ACKREQ; /* only an acknowledgement opens it */
	}
	return true;
}

/* True if a running operation has an adaptive window. */
static bool any_adapts(const struct cn_transport *x)
{
	const struct cn_turn *at = x->sources.current;

	for (uint32_t n = x->sources.n; n > 0; n--, at = at->next) {
		const struct cn_source *s = at->owner;

		if (s->adaptive != NULL) {
			return true;
		}
	}
	return false;
}

void cn_transport_lost(void *ctx, void *token)
{
	struct cn_transport *x = ctx;
	const struct cn_source *s = token;

	if (x->team != NULL && x->team->adaptive != NULL &&
	    (s != NULL ? s->adaptive != NULL : any_adapts(x))) {
		cn_adaptive_window_lost(x->team->adaptive);
	}
}

bool cn_transport_request_acks(struct cn_engine *e)
{
	struct cn_node *own = e->own.node;
	/* Frames of messages: their flights are in no ring, and nothing else has tokens there. */
	bool any = !cn_node_is_acked_soon(own, NULL) && cn_node_request_acks(own, NULL);

	for (int request = 0; request < 2; request++) {
		for (struct cn_transport *x = e->own.next; x != NULL; x = x->next) {
			const struct cn_turn *at = x->sources.current;

			for (uint32_t n = x->sources.n; n > 0; n--, at = at->next) {
				const struct cn_source *s = at->owner;
				const struct cn_flight *f = &s->flight;

				if (f->unacked == 0 || (!f->by_acks && f->in_flight == 0)) {
					continue; /* no acknowledgement opens a window */
				}
				if (request == 0) {
					if (cn_node_is_acked_soon(x->node, s)) {
						return any;
					}
				} else if (cn_node_request_acks(x->node, s)) {
					cn_transport_activate(x);
					any = true;
				}
			}
		}
	}
	return any;
}

/* Schedules an early check whether a closing transport is finished. */
static void check_soon(struct cn_transport *x, cn_time now)
{
	if (x->close_at != CN_NEVER) {
		x->check_every = check_first;
		x->check_at = now + check_first;
	}
}

static bool on_control(struct cn_transport *x, cn_time now, struct cn_peer *p,
		       const struct cn_rx *rx)
{
	if (rx->len == 0) { /* a tombstone: the operation of the frame failed at the sender */
		if (x->team != NULL && (rx->flags & CN_FLAG_LAST) != 0) {
			cn_op_tombstone(x->team, p);
		}
	} else if (rx->payload[0] == CN_CONTROL_END) {
		x->ended[cn_peer_index(p)] = true;
		cn_peer_ended(p);
		check_soon(x, now);
		if (x->team != NULL) {
			cn_control_team_ended(x->team, now, p);
		}
	} else if (x->team != NULL) {
		cn_control_deliver_team(x->team, p, rx->payload, rx->len);
	}
	return true;
}

/* Frames received by a closing transport are discarded. */
static bool on_deliver(void *ctx, cn_time now, struct cn_peer *p, const struct cn_rx *rx)
{
	struct cn_transport *x = ctx;

	switch (rx->type) {
	case CN_TYPE_CONTROL:
		return on_control(x, now, p, rx);
	case CN_TYPE_COLL:
		return x->team == NULL || cn_op_deliver(x->team, p, rx);
	default:
		return true;
	}
}

static bool on_place(void *ctx, struct cn_peer *p, const struct cn_rx *rx, struct cn_rx_place *out)
{
	struct cn_transport *x = ctx;

	return rx->type == CN_TYPE_COLL && x->team != NULL && cn_op_place(x->team, p, rx, out);
}

static void on_peer_up(void *ctx, cn_time now, struct cn_peer *p)
{
	struct cn_transport *x = ctx;

	(void)now;
	x->ended[cn_peer_index(p)] = false;
}

static void on_peer_down(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why)
{
	struct cn_transport *x = ctx;

	cn_pending_drop(&x->pending, p);
	if (x->team != NULL) {
		cn_team_peer_down(x->team, now, p, why);
	}
}

static void on_path(void *ctx, cn_time now, struct cn_peer *p, uint32_t bytes)
{
	struct cn_transport *x = ctx;

	(void)now;
	if (bytes != 0 && x->team != NULL) {
		cn_team_path_drops(x->team, p, bytes);
	}
}

bool cn_transport_listed(void *ctx, const char *name)
{
	const struct cn_topo *t = ((struct cn_transport *)ctx)->engine->config.topo;
	const uint32_t v = t != NULL ? cn_topo_find(t, name) : CN_TOPO_NONE;

	return v != CN_TOPO_NONE && !t->vertices[v].is_switch;
}

static const struct cn_node_ops node_ops = {
	CN_TRANSPORT_UPCALLS,  .deliver = on_deliver,	  .place = on_place,
	.peer_up = on_peer_up, .peer_down = on_peer_down, .path = on_path,
};

/* ---- life -------------------------------------------------------------------------------- */

static int init(struct cn_transport *x, struct cn_engine *e, const struct cn_node_config *c,
		const struct cn_node_ops *ops, struct cn_err *err)
{
	int r;

	x->engine = e;
	x->port = c->port;
	x->active = x == &e->own;
	x->check_at = x->close_at = x->fail_at = CN_NEVER;
	x->timer = (struct cn_timer){ .at = CN_NEVER, .owner = x };
	r = cn_node_new(c, ops, x, &x->node, err);
	if (r == COLLNET_OK) {
		x->ended = calloc(c->max_peers, sizeof(*x->ended));
	}
	if (r == COLLNET_OK &&
	    (x->ended == NULL || !cn_pending_init(&x->pending, x->node, c->max_peers))) {
		r = cn_fail(err, COLLNET_ENOMEM, "no memory for a transport");
	}
	return r;
}

void cn_transport_fini(struct cn_transport *x)
{
	cn_pending_fini(&x->pending);
	cn_node_free(x->node);
	free(x->ended);
	x->node = NULL;
	x->ended = NULL;
}

int cn_transport_open_own(struct cn_transport *x, struct cn_engine *e,
			  const struct cn_node_ops *ops, struct cn_err *err)
{
	const int r = init(x, e, &e->config.node, ops, err);

	if (r == COLLNET_OK) {
		cn_turns_enter(&e->turns, &x->turn, x);
	}
	return r;
}

void cn_transport_activate(struct cn_transport *x)
{
	struct cn_transport *own = &x->engine->own;

	x->activated = true;
	if (x->active) {
		return;
	}
	x->active = true;
	x->next_active = own->next_active;
	x->prev_active = own;
	if (x->next_active != NULL) {
		x->next_active->prev_active = x;
	}
	own->next_active = x;
	cn_turns_enter(&x->engine->turns, &x->turn, x);
	cn_heap_set(&x->engine->waiting, &x->timer, CN_NEVER);
	cn_engine_touch(x->engine); /* its team's deadline counts again */
}

static void deactivate(struct cn_transport *x)
{
	struct cn_engine *e = x->engine;

	if (!x->active) {
		return;
	}
	x->active = false;
	x->prev_active->next_active = x->next_active;
	if (x->next_active != NULL) {
		x->next_active->prev_active = x->prev_active;
	}
	cn_turns_leave(&e->turns, &x->turn);
	e->sending = e->sending != x ? e->sending : NULL;
}

/* True if a frame may become sendable when others' frames are acknowledged. */
static bool waits_for_window(const struct cn_transport *x)
{
	const struct cn_turn *at = x->sources.current;

	for (uint32_t n = x->sources.n; n > 0; n--, at = at->next) {
		const struct cn_source *s = at->owner;

		if (s->window_closed) {
			return true;
		}
	}
	return false;
}

/* True if its team is on this node alone: it waits for calls and copies, which polls do not bring,
 * and never for frames. */
static bool is_of_one_node(const struct cn_transport *x)
{
	return x->team != NULL && x->team->layout.nnodes == 1;
}

void cn_transport_deactivate_idle(struct cn_engine *e, cn_time now)
{
	struct cn_transport *next;

	for (struct cn_transport *x = e->own.next_active; x != NULL; x = next) {
		bool soon;
		cn_time at;

		next = x->next_active;
		if (x->activated) {
			x->activated = false;
			x->idle_at = now + idle_after;
		}
		soon = x->idle_at > now && !is_of_one_node(x);
		if ((soon && x->sources.n > 0) || x->pending.n > 0 || waits_for_window(x) ||
		    !cn_node_is_idle(x->node)) {
			continue;
		}
		x->team_at = x->team != NULL ? cn_team_deadline(x->team) : CN_NEVER;
		at = cn_min_time(cn_transport_deadline(x), x->team_at);
		if (at == CN_NEVER || (at > now && !soon)) {
			deactivate(x);
			cn_heap_set(&e->waiting, &x->timer, at);
		}
	}
}

cn_time cn_transport_wake_at(const struct cn_engine *e)
{
	return cn_heap_next(&e->waiting);
}

void cn_transport_wake(struct cn_engine *e, cn_time now)
{
	for (uint32_t bound = e->waiting.count; bound > 0 && cn_heap_next(&e->waiting) <= now;
	     bound--) {
		struct cn_transport *x = cn_heap_first(&e->waiting)->owner;
		cn_time at;

		if (x->check_at <= now || x->team_at <= now) {
			cn_transport_activate(x);
			continue;
		}
		cn_transport_expire(x, now);
		at = cn_min_time(cn_transport_deadline(x), x->team_at);
		if (x->active) {
			continue;
		}
		if (cn_node_is_idle(x->node) && at > now) {
			cn_heap_set(&e->waiting, &x->timer, at);
		} else {
			cn_transport_activate(x);
		}
	}
}

/* No port is free: ends the transport that has been closing for the longest time. Returns its table
 * index; CN_TRANSPORTS_MAX: none is closing. */
static uint32_t reap_oldest(struct cn_engine *e)
{
	struct cn_transport *oldest = NULL;
	uint32_t place;

	for (struct cn_transport *x = e->own.next; x != NULL; x = x->next) {
		if (x->team == NULL && (oldest == NULL || x->close_at < oldest->close_at)) {
			oldest = x;
		}
	}
	if (oldest == NULL) {
		return CN_TRANSPORTS_MAX;
	}
	cn_transport_activate(oldest);
	place = oldest->port & PLACE;
	oldest->check_at = oldest->close_at = 0;
	cn_transport_reap(e, 0, false);
	return place;
}

struct cn_transport *cn_transport_open(struct cn_engine *e, struct cn_team *t)
{
	struct cn_node_config c = e->config.node;
	struct cn_transport *x;
	struct cn_err err;
	uint32_t i = e->last_port, n = 0;

	/* The next index, round robin, so that a port is not soon reused. */
	do {
		i = (i + 1) % CN_TRANSPORTS_MAX;
	} while (e->ports[i] != NULL && ++n < CN_TRANSPORTS_MAX);
	if (e->ports[i] != NULL) {
		i = reap_oldest(e);
	}
	x = i < CN_TRANSPORTS_MAX ? calloc(1, sizeof(*x)) : NULL;
	if (x == NULL) {
		return NULL;
	}
	e->last_port = i;
	e->generations[i] = e->generations[i] % 15 + 1; /* never 0 */
	c.port = (uint16_t)(i | (uint32_t)e->generations[i] << 12);
	c.goodbyes = NULL;
	c.window_shared = cn_node_window(e->own.node);
	if (t->ranks < c.max_peers) {
		c.max_peers = t->ranks;
	}
	if (init(x, e, &c, &node_ops, &err) != COLLNET_OK) {
		cn_transport_fini(x);
		free(x);
		return NULL;
	}
	x->team = t;
	x->id = t->id;
	x->turn.payer = cn_turn_of(e->payer);
	x->next = e->own.next;
	x->prev = &e->own;
	if (x->next != NULL) {
		x->next->prev = x;
	}
	e->own.next = x;
	e->ports[i] = x;
	cn_transport_activate(x);
	return x;
}

void cn_transport_close(struct cn_transport *x, cn_time now)
{
	uint8_t end = CN_CONTROL_END;

	cn_transport_activate(x);
	for (uint32_t i = 0; i < cn_node_peers(x->node); i++) {
		struct cn_peer *p = cn_node_peer(x->node, i);

		if (cn_peer_alive(p)) { /* lost: it lingers */
			(void)cn_pending_send(&x->pending, p, &end, 1);
		}
	}
	x->team = NULL;
	x->close_at = now + LINGER * x->engine->config.node.dead_after;
	check_soon(x, now);
}

void cn_transport_fail_team(struct cn_transport *x)
{
	x->failed = 0;
	x->fail_at = 0;
	cn_transport_activate(x);
}

static void fail_team(struct cn_transport *x, cn_time now)
{
	struct cn_err err;

	cn_fail(&err, COLLNET_ENOMEM, "node %s lost a message about the team for want of memory",
		x->engine->config.node.name);
	if (x->team != NULL) {
		cn_team_fail(x->team, false, err.code, "%s", err.text);
	}
	x->fail_at = cn_control_fail_peers(x, &err) ? CN_NEVER : now + fail_every;
}

static bool finished(struct cn_transport *x)
{
	if (!cn_node_drain(x->node) || x->pending.n > 0 || x->fail_at != CN_NEVER) {
		return false;
	}
	for (uint32_t i = 0; i < cn_node_peers(x->node); i++) {
		if (cn_peer_alive(cn_node_peer(x->node, i)) && !x->ended[i]) {
			return false;
		}
	}
	return true;
}

static void end(struct cn_engine *e, struct cn_transport *x)
{
	deactivate(x);
	cn_heap_set(&e->waiting, &x->timer, CN_NEVER);
	x->prev->next = x->next;
	if (x->next != NULL) {
		x->next->prev = x->prev;
	}
	e->ports[x->port & PLACE] = NULL;
	cn_node_stats(x->node, &e->ended);
	cn_node_add_counters(e->own.node, x->node);
	cn_transport_fini(x);
	free(x);
}

/* One that is closing is active. */
void cn_transport_reap(struct cn_engine *e, cn_time now, bool all)
{
	struct cn_transport *next;

	while (all && e->own.next != NULL) {
		end(e, e->own.next);
	}
	for (struct cn_transport *x = e->own.next_active; x != NULL; x = next) {
		next = x->next_active;
		if (x->check_at <= now && (x->close_at <= now || finished(x))) {
			end(e, x);
		} else if (x->check_at <= now) {
			x->check_at = now + x->check_every;
			x->check_every = cn_min_time(2 * x->check_every, check_most);
		}
	}
}

/* ---- sessions ---------------------------------------------------------------------------- */

bool cn_transport_connect(struct cn_transport *x, cn_time now, struct cn_peer *with,
			  const struct cn_join *j)
{
	const struct cn_port to = { .port = j->port, .id = j->id };
	struct cn_peer *p;

	cn_transport_activate(x);
	p = cn_node_connect(x->node, now, with, x->team->id, &to);

	if (p != NULL) {
		cn_peer_set_user(p, cn_engine_peer_of(with));
	}
	return p != NULL;
}

struct cn_transport *cn_transport_of_port(struct cn_engine *e, uint16_t port)
{
	struct cn_transport *x = port != 0 ? e->ports[port & PLACE] : NULL;

	return x != NULL && x->port == port ? x : &e->own;
}

cn_time cn_transport_deadline(const struct cn_transport *x)
{
	return cn_min_time(cn_min_time(x->check_at, x->fail_at),
			   cn_min_time(cn_pending_deadline(&x->pending),
				       cn_node_deadline(x->node)));
}

void cn_transport_expire(struct cn_transport *x, cn_time now)
{
	cn_node_expire(x->node, now);
	cn_pending_expire(&x->pending, now);
	if (x->fail_at <= now) {
		fail_team(x, now);
	}
}
