/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport of one node: its life, its output, its timers. Input is in input.c. */
#include <stdlib.h>
#include <string.h>

#include "proto/peer.h"
#include "proto/serial.h"

void cn_node_config_init(struct cn_node_config *c)
{
	memset(c, 0, sizeof(*c));
	c->ethertype = 0x88b5;
	c->cluster = 1;
	c->mtu = 1500;
	/* Enough for the bandwidth of unshaped links times the time until a busy machine runs the
	 * receiver; where buffers are small, losses keep the flight small. */
	c->window = 256;
	/* Switches hold some tens of frames. Where all began with a whole window to all, they would
	 * lose nearly everything. */
	c->burst = 16;
	/* Linux may send consecutive frames by different processors, and they overtake each other. */
	c->reorder = CN_HELD_MAX;
	c->max_peers = 4096;
	c->pool_frames = 1024;
	c->rto_min = 60 * CN_MS;
	c->query_after = 5 * CN_MS;
	c->rto_first = 120 * CN_MS;
	c->ack_delay = 20 * CN_MS;
	c->dead_after = 1500 * CN_MS;
	c->hello_interval = 500 * CN_MS;
}

static int check_config(const struct cn_node_config *c, struct cn_err *err)
{
	if (c->epoch == 0 || !cn_valid_name(c->name)) {
		return cn_fail(err, COLLNET_EINVAL, "a node needs an epoch and a valid name");
	}
	if (c->mtu < 576 || c->mtu > 65000) {
		return cn_fail(err, COLLNET_EINVAL, "MTU %u: must be 576 .. 65000", c->mtu);
	}
	if (c->reorder > CN_HELD_MAX || c->window < 2 || c->burst < 2 || c->window > 1024 || c->max_peers < 1 || c->max_peers > 65535 ||
	    c->pool_frames < 16 || c->rto_min == 0 || c->rto_first == 0 || c->query_after == 0 ||
	    c->dead_after < 100 * CN_US || c->hello_interval < 100 * CN_US) {
		return cn_fail(err, COLLNET_EINVAL, "a bound of the transport is out of range");
	}
	return COLLNET_OK;
}

/*
 * In a larger cluster, what every node would do at once (the first hellos, the answers to one) is
 * spread over so much for each node that there is. It is ten times what a small frame takes at 100
 * Mbit/s.
 */
static const cn_time spread_each = 100 * CN_US;
#define SPREAD_FROM 8u

/* Buffers that only control messages and tails may use: a few for every peer. Untouched ones cost
 * address space, not memory. */
static uint32_t control_reserve(const struct cn_node_config *c)
{
	return 2 * c->max_peers;
}

/* Bytes of a buffer for a control message of the usual length, with its link in the list. */
#define SMALL 128

void cn_node_put(struct cn_node *n, const void *buffer)
{
	void *b = (void *)(uintptr_t)buffer;

	cn_pool_put(cn_pool_owns(&n->small, b) ? &n->small : &n->pool, b);
}

int cn_node_new(const struct cn_node_config *c, const struct cn_node_ops *ops, void *ctx,
		struct cn_node **out, struct cn_err *err)
{
	struct cn_node *n;
	uint32_t slots = 16;
	int r = check_config(c, err);

	if (r != COLLNET_OK) {
		return r;
	}
	while (slots < 2 * c->max_peers) {
		slots *= 2;
	}
	n = calloc(1, sizeof(*n));
	if (n == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the transport");
	}
	n->config = *c;
	n->ops = ops;
	n->ctx = ctx;
	n->payload = c->mtu - CN_WIRE_HEADER;
	n->hash_mask = slots - 1;
	n->window.limit = COLLNET_WINDOW_OFF;
	n->peers = calloc(c->max_peers, sizeof(struct cn_peer *));
	n->hash = calloc(slots, sizeof(*n->hash));
	/* a buffer: room for its list's link and length, and a frame's payload */
	if (n->peers == NULL || n->hash == NULL ||
	    cn_heap_init(&n->timers, c->max_peers + 2) != COLLNET_OK ||
	    cn_pool_init(&n->pool, c->mtu, c->pool_frames + control_reserve(c)) != COLLNET_OK ||
	    cn_pool_init(&n->small, SMALL, control_reserve(c)) != COLLNET_OK ||
	    cn_pool_init(&n->rings, CN_RING_FEW * sizeof(struct cn_sent), c->max_peers) !=
		    COLLNET_OK) {
		cn_node_free(n);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the transport");
	}
	n->quiet_timer.at = CN_NEVER;
	cn_heap_set(&n->timers, &n->hello_timer, 0);
	*out = n;
	return COLLNET_OK;
}

void cn_node_free(struct cn_node *n)
{
	if (n == NULL) {
		return;
	}
	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		cn_sender_free(p);
		free(p->rx.held);
		free(p->past);
		free(p);
	}
	free(n->peers);
	free(n->hash);
	cn_heap_fini(&n->timers);
	cn_pool_fini(&n->pool);
	cn_pool_fini(&n->small);
	cn_pool_fini(&n->rings);
	free(n);
}

/* ---- output --------------------------------------------------------------------------- */

static void build(struct cn_node *n, const uint8_t mac[6], const struct cn_wire *w,
		  const uint8_t *payload, struct cn_frame *out)
{
	size_t len = CN_HEAD + (size_t)w->length;

	memcpy(out->head, mac, 6);
	memcpy(out->head + 6, n->config.mac, 6);
	out->head[12] = (uint8_t)(n->config.ethertype >> 8);
	out->head[13] = (uint8_t)n->config.ethertype;
	cn_wire_put(out->head + CN_ETH_HEADER, w);
	out->head_len = CN_HEAD;
	out->payload = payload;
	out->payload_len = payload != NULL ? w->length : 0;
	n->stats.frames_sent++;
	n->stats.bytes_sent += len < CN_ETH_MIN ? CN_ETH_MIN : len;
}

static void build_hello(struct cn_node *n, struct cn_peer *p, uint8_t flags, struct cn_frame *out)
{
	static const uint8_t everyone[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct cn_hello h = {.epoch = n->config.epoch, .mtu = n->config.mtu,
			     .life = p != NULL ? p->life_out : 0};
	struct cn_wire w = {.type = CN_TYPE_HELLO, .flags = flags, .cluster = n->config.cluster};
	size_t len;

	memcpy(h.name, n->config.name, sizeof(h.name));
	len = cn_hello_put(out->head + CN_HEAD, &h);
	w.length = (uint16_t)len;
	build(n, p != NULL ? p->mac : everyone, &w, NULL, out);
	out->head_len = (uint16_t)(CN_HEAD + len);
}

static void build_ack(struct cn_peer *p, struct cn_frame *out)
{
	struct cn_node *n = p->node;
	struct cn_wire w = {.type = CN_TYPE_ACK, .cluster = n->config.cluster,
			    .session = p->session_out, .seq = p->tx.end, .ack = p->rx.expected};

#ifdef CN_BREAK
	w.ack += CN_BREAK(2) ? p->rx.nheld : 0;
#endif
	if (p->busy_due) {
		w.flags |= CN_FLAG_BUSY;
	} else if (p->nak_due) {
		w.flags |= CN_FLAG_NAK;
		w.stream = cn_receiver_map(p);
		n->stats.naks_sent++;
	}
	if (p->probe_due) {
		w.flags |= CN_FLAG_ASK;
	}
	p->nak_due = p->busy_due = p->probe_due = false;
	cn_receiver_acked(p);
	cn_peer_reschedule(p);
	build(n, p->mac, &w, NULL, out);
	n->stats.acks_sent++;
	n->stats.ack_bytes_sent += CN_ETH_MIN;
}

static void build_data(struct cn_peer *p, uint32_t seq, struct cn_frame *out)
{
	struct cn_node *n = p->node;
	const struct cn_sent *s = cn_sender_entry(p, seq);
	struct cn_wire w = {.type = s->type, .flags = s->flags, .cluster = n->config.cluster,
			    .length = s->len, .session = p->session_out, .seq = seq,
			    .ack = p->rx.expected, .stream = s->stream};

	/* A refusal or a gap is said by an ACK frame of its own; all else this frame says too. */
	if (!p->busy_due && !p->nak_due) {
		cn_receiver_acked(p);
	}
	cn_peer_reschedule(p);
	build(n, p->mac, &w, s->payload, out);
}

static void build_again(struct cn_peer *p, struct cn_frame *out)
{
	struct cn_sender *t = &p->tx;
	uint32_t seq = t->next;
	struct cn_sent *s = cn_sender_entry(p, seq);

	s->again = true;
	s->at = p->node->now;
	cn_sender_advance(p);
	if (t->next == t->end || t->next - t->una >= t->cwnd) {
		s->flags |= CN_FLAG_ASK; /* the last one for now: an answer is needed to go on */
	}
	p->data_resent++;
	p->node->stats.data_resent++;
	build_data(p, seq, out);
}

static bool control_room(struct cn_peer *p)
{
	return p->control_first != NULL && p->tx.next == p->tx.end && p->tx.hold_until == 0 &&
	       p->tx.end - p->tx.una < p->tx.cwnd && cn_sender_reserve(p);
}

/* The list link and the length live in the first bytes of the buffer, the message after them. */
struct control {
	uint8_t *next;
	uint16_t len;
};
#define CONTROL_HEAD 16

static void build_control(struct cn_peer *p, struct cn_frame *out)
{
	uint8_t *b = p->control_first;
	struct control c;
	struct cn_tx tx = {.peer = p, .type = CN_TYPE_CONTROL};

	memcpy(&c, b, sizeof(c));
	p->control_first = c.next;
	if (c.next == NULL) {
		p->control_last = NULL;
	}
	memmove(b, b + CONTROL_HEAD, c.len);
	tx.payload = b;
	tx.len = c.len;
	build_data(p, cn_sender_take(p, &tx, true), out);
}

/* What a ready peer is to be told next; false: nothing any more. */
static bool output_peer(struct cn_peer *p, struct cn_frame *out)
{
	if (p->hello_due) {
		uint8_t flags = CN_FLAG_UNICAST | (p->hello_want ? CN_FLAG_WANT : 0);

		p->hello_due = p->hello_want = false;
		build_hello(p->node, p, flags, out);
		return true;
	}
	if (p->state != CN_PEER_UP) {
		return false;
	}
	if (p->nak_due || p->busy_due || p->probe_due || p->ack_due) {
		build_ack(p, out);
		return true;
	}
	if (cn_sender_again(p)) {
		build_again(p, out);
		return true;
	}
	if (control_room(p)) {
		build_control(p, out);
		return true;
	}
	return false;
}

bool cn_node_output(struct cn_node *n, cn_time now, struct cn_frame *out)
{
	struct cn_tx tx;

	n->now = now;
	if (n->byes_due > 0 || n->hello_due) {
		uint8_t flags = n->leaving ? CN_FLAG_BYE : n->hellos_sent < 2 ? CN_FLAG_WANT : 0;

		n->byes_due -= n->byes_due > 0;
		n->hello_due = false;
		n->hellos_sent++;
		build_hello(n, NULL, flags, out);
		return true;
	}
	while (n->ready_first != NULL) {
		struct cn_peer *p = n->ready_first;

		n->ready_first = p->ready_next;
		if (n->ready_first == NULL) {
			n->ready_last = NULL;
		}
		p->ready = false;
		if (output_peer(p, out)) {
			cn_peer_ready(p); /* to the end of the line, until it has nothing to say */
			return true;
		}
	}
	memset(&tx, 0, sizeof(tx));
	if (n->ops->pull(n->ctx, now, &tx)) {
		build_data(tx.peer, cn_sender_take(tx.peer, &tx, tx.owned), out);
		return true;
	}
	return false;
}

int cn_node_control(struct cn_node *n, struct cn_peer *p, const void *data, size_t len)
{
	struct control c = {.len = (uint16_t)len};
	uint8_t *b;

	if (p->state != CN_PEER_UP) {
		return COLLNET_EPEER;
	}
	if (len == 0 || len > n->payload || len + CONTROL_HEAD > n->pool.item) {
		return COLLNET_EINVAL;
	}
	b = len + CONTROL_HEAD <= n->small.item ? cn_pool_get(&n->small) : NULL;
	if (b == NULL) {
		b = cn_pool_get(&n->pool);
	}
	if (b == NULL) {
		return COLLNET_ELIMIT;
	}
	memcpy(b, &c, sizeof(c));
	memcpy(b + CONTROL_HEAD, data, len);
	if (p->control_last != NULL) {
		memcpy(p->control_last, &b, sizeof(b));
	} else {
		p->control_first = b;
	}
	p->control_last = b;
	cn_peer_ready(p);
	return COLLNET_OK;
}

/* ---- timers --------------------------------------------------------------------------- */

cn_time cn_node_spread(const struct cn_node *n, const struct cn_peer *p)
{
	uint32_t others = n->npeers > n->config.expected ? n->npeers : n->config.expected;
	uint64_t h = n->config.epoch ^ n->hellos_sent;

	if (others <= SPREAD_FROM) {
		return 0;
	}
	for (int i = 0; p != NULL && i < 6; i++) {
		h = h << 8 ^ h >> 56 ^ p->mac[i];
	}
	return cn_mix64(h) % (others * spread_each);
}

cn_time cn_node_deadline(const struct cn_node *n)
{
	return cn_heap_next(&n->timers);
}

/* Hellos thin out in large clusters, so that all of them together stay a trickle; the first few
 * are quicker, so that a lost one does not hold up the start. */
cn_time cn_hello_interval(const struct cn_node *n)
{
	cn_time spread = (cn_time)n->npeers * 5 * CN_MS + cn_node_spread(n, NULL);

	if (n->hellos_sent < 4) {
		return n->config.hello_interval / 5 + spread / 4;
	}
	return n->config.hello_interval > spread ? n->config.hello_interval : spread;
}

/* By up to a quarter shorter or longer, another time for every node and hello: nodes that were
 * started at one moment would else meet at the same full port each time, and the same hellos be lost. */
static cn_time hello_wait(const struct cn_node *n)
{
	cn_time interval = cn_hello_interval(n);

	return interval - interval / 4 +
	       cn_mix64(n->config.epoch + n->hellos_sent) % (interval / 2 + 1);
}

static void probe(struct cn_node *n, struct cn_peer *p)
{
	cn_time since = p->answered > p->expect_since ? p->answered : p->expect_since;
	cn_time silent = n->now > since ? n->now - since : 0;
	/* One probe may be lost; the first one without an answer is followed by many. */
	cn_time interval = n->config.dead_after / (p->probes == 0 ? 5 : 20);

	if (silent >= n->config.dead_after && p->probes >= 3) {
		cn_peer_down(p, CN_PEER_SILENT);
		return;
	}
	if (silent >= interval) {
		if (p->probes++ == 0) {
			interval = n->config.dead_after / 20;
		}
		p->probe_due = true;
		cn_peer_ready(p);
	}
	p->probe_at = n->now + interval;
}

/*
 * Data of this peer is waited for, and for a while nothing has come from anyone: perhaps the last
 * frames were lost, which no later frame can tell. Ask; a sender that has frames out goes back.
 * This finds a lost tail much earlier than the sender's timer, which must allow for
 * acknowledgements that wait.
 */
static void query(struct cn_node *n, struct cn_peer *p)
{
	cn_time since = n->data_last > p->expect_since ? n->data_last : p->expect_since;
	cn_time least = 2 * p->tx.rtt.least;

	least = least > cn_quiet_after(n) ? least : cn_quiet_after(n);
	if (n->data_last + cn_quiet_after(n) > n->now) {
		p->query_at = CN_NEVER; /* until it is quiet again */
		p->query_wait = 0;
		return;
	}
	if (p->query_wait < least || n->data_last + least > n->now) {
		p->query_wait = least;
	}
	if (n->now < since + p->query_wait) {
		p->query_at = since + p->query_wait;
		return;
	}
	p->probe_due = true;
	cn_peer_ready(p);
	p->query_wait = cn_min_time(2 * p->query_wait, n->config.dead_after / 5);
	p->query_at = n->now + p->query_wait;
}

/*
 * Somebody is waited for. While data comes nobody is asked, and no peer's timer runs for it: in an
 * exchange of a thousand nodes they would be many more than its frames.
 */
static void look_whether_quiet(struct cn_node *n)
{
	cn_time since = n->data_last + cn_quiet_after(n);

	for (uint32_t i = 0; since <= n->now && i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (p->expecting > 0 && p->query_at == CN_NEVER) {
			query(n, p);
			cn_peer_reschedule(p);
		}
	}
	since = since > n->now ? since : n->now + cn_quiet_after(n);
	cn_heap_set(&n->timers, &n->quiet_timer, n->nexpecting > 0 ? since : CN_NEVER);
}

static void expire_peer(struct cn_node *n, struct cn_peer *p)
{
	if (p->hello_at <= n->now) {
		p->hello_at = CN_NEVER;
		if (p->state != CN_PEER_UP || !p->proven) {
			cn_hello_ask(p, p->state != CN_PEER_UP, false);
		}
	}
	if (p->state != CN_PEER_UP) {
		cn_peer_set_timer(p);
		return;
	}
	if (p->rx.ack_at <= n->now) {
		p->rx.ack_at = CN_NEVER;
		p->ack_due = true;
		cn_peer_ready(p);
	}
	if (p->rx.gap_at <= n->now) {
		cn_receiver_gap(p);
	}
	if (p->tx.rto_at <= n->now) {
		/* Unacknowledged frames are waiting too, even if no operation does. */
		if (p->probe_at == CN_NEVER) {
			p->expect_since = cn_sender_entry(p, p->tx.una)->at;
			p->probes = 0;
			p->probe_at = n->now + n->config.dead_after / 5;
		}
		cn_sender_timeout(p);
	}
	if (p->probe_at <= n->now) {
		if (p->expecting == 0 && p->tx.una == p->tx.end) {
			p->probe_at = CN_NEVER;
		} else {
			probe(n, p);
		}
	}
	if (p->query_at <= n->now) {
		query(n, p);
	}
	cn_peer_set_timer(p);
}

void cn_node_expire(struct cn_node *n, cn_time now)
{
	struct cn_timer *t;
	uint32_t bound = n->npeers + 2; /* every timer moves into the future; once each is enough */

	n->now = now;
	while (cn_heap_next(&n->timers) <= now && bound-- > 0) {
		t = cn_heap_first(&n->timers);
		if (t->owner != NULL) {
			expire_peer(n, t->owner);
		} else if (t == &n->quiet_timer) {
			look_whether_quiet(n);
		} else if (!n->begun && cn_node_spread(n, NULL) > 0) {
			cn_heap_set(&n->timers, t, now + cn_node_spread(n, NULL));
			n->begun = true;
		} else {
			n->begun = true;
			n->hello_due = !n->leaving;
			cn_heap_set(&n->timers, t, now + hello_wait(n));
		}
	}
}

/* ---- the rest ------------------------------------------------------------------------- */

void cn_node_bye(struct cn_node *n)
{
	n->leaving = true;
	n->hello_due = false;
	n->byes_due = 3; /* nobody acknowledges them */
}

bool cn_node_settle(struct cn_node *n)
{
	bool settled = true;

	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (p->state != CN_PEER_UP) {
			continue;
		}
		if (p->rx.ack_at != CN_NEVER) {
			p->rx.ack_at = CN_NEVER;
			p->ack_due = true;
			cn_peer_ready(p);
		}
		if (p->ack_due || p->tx.una != p->tx.end || p->control_first != NULL) {
			settled = false;
		}
	}
	return settled;
}

uint32_t cn_node_payload(const struct cn_node *n)
{
	return n->payload;
}

void cn_node_ready(struct cn_node *n)
{
	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		if (p->state == CN_PEER_UP && p->rx.refused) {
			p->rx.refused = false;
			p->busy_due = false;
			p->ack_due = true;
			cn_peer_ready(p);
		}
	}
}

bool cn_node_detach(struct cn_node *n, void *token, uint32_t limit)
{
	uint32_t found = 0;

	/* First count, then copy: all or nothing. */
	for (int copy = 0; copy < 2; copy++) {
		for (uint32_t i = 0; i < n->npeers; i++) {
			struct cn_peer *p = n->peers[i];

			for (uint32_t seq = p->tx.una; seq != p->tx.end; seq++) {
				struct cn_sent *s = cn_sender_entry(p, seq);
				uint8_t *b;

				if (s->token != token) {
					continue;
				}
				if (copy == 0) {
					found += !s->owned;
					continue;
				}
				s->token = NULL;
				if (s->len > 0 && !s->owned) {
					b = cn_pool_get(&n->pool);
					memcpy(b, s->payload, s->len);
					s->payload = b;
					s->owned = true;
				}
			}
		}
		if (copy == 0 && (found > limit || found > n->pool.free / 2)) {
			return false;
		}
	}
	return true;
}

void cn_node_abandon(struct cn_node *n, void *token)
{
	for (uint32_t i = 0; i < n->npeers; i++) {
		struct cn_peer *p = n->peers[i];

		for (uint32_t seq = p->tx.una; seq != p->tx.end; seq++) {
			struct cn_sent *s = cn_sender_entry(p, seq);

			if (s->token == token) {
				if (s->owned) {
					cn_node_put(n, s->payload);
					s->owned = false;
				}
				s->token = NULL;
				s->payload = NULL;
				s->len = 0;
				s->flags &= CN_FLAG_ASK;
				s->flags |= s->type == CN_TYPE_COLL ? CN_FLAG_LAST : 0;
				s->type = CN_TYPE_CONTROL;
			}
		}
	}
}

void *cn_node_buffer_get(struct cn_node *n)
{
	return n->pool.free > control_reserve(&n->config) ? cn_pool_get(&n->pool) : NULL;
}

void cn_node_buffer_put(struct cn_node *n, void *buffer)
{
	cn_pool_put(&n->pool, buffer);
}

uint32_t cn_node_peers(const struct cn_node *n)
{
	return n->npeers;
}

struct cn_peer *cn_node_peer(struct cn_node *n, uint32_t index)
{
	return index < n->npeers ? n->peers[index] : NULL;
}

struct cn_peer *cn_node_find(struct cn_node *n, const char *name)
{
	for (uint32_t i = 0; i < n->npeers; i++) {
		if (n->peers[i]->state == CN_PEER_UP && strcmp(n->peers[i]->name, name) == 0) {
			return n->peers[i];
		}
	}
	return NULL;
}

struct cn_window *cn_node_window(struct cn_node *n)
{
	return &n->window;
}

void cn_node_stats(const struct cn_node *n, struct collnet_stats *s)
{
	size_t size = s->size;

	*s = n->stats;
	s->size = size;
	s->window = n->window.limit;
	s->window_now = n->window.now;
	s->window_peak = n->window.peak;
	s->mtu = n->config.mtu;
	s->nodes = 1;
	for (uint32_t i = 0; i < n->npeers; i++) {
		s->nodes += n->peers[i]->state == CN_PEER_UP;
	}
}

const struct cn_node_config *cn_node_config(const struct cn_node *n)
{
	return &n->config;
}
