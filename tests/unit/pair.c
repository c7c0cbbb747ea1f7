/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "proto/serial.h"

/* ---- the application --------------------------------------------------------------------- */

static uint32_t id_of(const struct cn_peer *peer)
{
	return peer->mac[5] - 1u;
}

static uint16_t length_of(const struct pair *p, const struct pair_flow *f, uint32_t number)
{
	uint32_t most = cn_node_payload(p->nodes[0].node != NULL ? p->nodes[0].node
								 : p->nodes[1].node);

	return f->len != 0 ? f->len : (uint16_t)(cn_mix64(number) % (most + 1));
}

static uint8_t byte_of(uint32_t from, uint32_t to, uint32_t number, uint32_t at)
{
	return (uint8_t)(number * 131 + (number >> 8) * 17 + at * 7 + from * 3 + to * 5);
}

/* Whether the sender's global window has room, if there is one. */
static bool has_window(struct pair_node *me)
{
	struct cn_window *w = cn_node_window(me->node);
	const uint32_t own = me->pair->own_limit;

	if (own > 0 && !cn_window_open(w, NULL, own)) {
		w->blocked = true;
		return false;
	}
	return true;
}

static bool pull(void *ctx, cn_time now, struct cn_tx *out)
{
	struct pair_node *me = ctx;
	struct pair *p = me->pair;

	(void)now;
	for (uint32_t k = 0; k < p->count; k++) {
		uint32_t to = (me->turn + k) % p->count;
		struct pair_flow *f = &p->flows[me->id][to];
		struct cn_peer *peer = to != me->id ? pair_peer(p, me->id, to) : NULL;
		uint32_t slot = f->sent % PAIR_SLOTS;
		uint32_t payload = cn_node_payload(me->node);

		if (peer == NULL || f->sent == f->total || cn_peer_room(peer) == 0 ||
		    f->taken[slot] || !has_window(me)) {
			continue;
		}
		if (peer->tx.queue.end - peer->tx.queue.una >= me->config.send_window) {
			me->room_broken++;
		}
		if (f->slots == NULL) {
			f->slots = malloc((size_t)PAIR_SLOTS * payload);
			assert_non_null(f->slots);
		}
		*out = (struct cn_tx){
			.peer = peer,
			.type = CN_TYPE_MESSAGE,
			.len = length_of(p, f, f->sent),
			.stream = f->sent,
			.payload = f->slots + (size_t)slot * payload,
			.flags = CN_FLAG_FIRST,
			.token = &f->taken[slot],
		};
		for (uint32_t i = 0; i < out->len; i++) {
			f->slots[(size_t)slot * payload + i] = byte_of(me->id, to, f->sent, i);
		}
		f->taken[slot] = 1;
		f->sent++;
		if (p->own_limit > 0 &&
		    cn_flight_sent(&f->flight, cn_node_window(me->node), p->own_limit)) {
			out->flags |= CN_FLAG_ACKREQ;
		}
		me->turn = to + 1;
		return true;
	}
	return false;
}

static void check_control(struct pair_node *me, const struct cn_rx *rx, uint32_t after)
{
	if (rx->len == 0) {
		return; /* an abandoned frame */
	}
	me->control_received++;
	if (rx->len < 40) {
		pair_log(me->pair, "%c: control \"%.*s\" after %u\n", pair_names[me->id],
			 (int)rx->len, (const char *)rx->payload, after);
	}
}

static bool deliver(void *ctx, cn_time now, struct cn_peer *peer, const struct cn_rx *rx)
{
	struct pair_node *me = ctx;
	struct pair *p = me->pair;
	uint32_t from = id_of(peer);
	struct pair_flow *f = &p->flows[from][me->id];

	(void)now;
	if (me->refuse != 0) {
		me->refuse -= me->refuse != UINT32_MAX;
		return false;
	}
	if (rx->type == CN_TYPE_CONTROL) {
		check_control(me, rx, f->received);
		return true;
	}
	if (p->reply_soon) {
		cn_peer_reply_soon(peer);
	}
	if (p->no_reply) {
		cn_peer_no_reply(peer);
	}
	f->received++;
	if (p->garble != 0) {
		return true;
	}
	assert_int_equal(rx->type, CN_TYPE_MESSAGE);
	if (!p->gaps_allowed) {
		assert_int_equal(rx->stream, f->received - 1);
	}
	assert_int_equal(rx->flags, CN_FLAG_FIRST);
	assert_int_equal(rx->len, length_of(p, f, rx->stream));
	for (uint32_t i = 0; i < rx->len; i++) {
		if (rx->payload[i] != byte_of(from, me->id, rx->stream, i)) {
			fail_msg("%c: frame %u of %c, byte %u is wrong", pair_names[me->id],
				 rx->stream, pair_names[from], i);
		}
	}
	return true;
}

static struct pair_flow *flow_of(struct pair_node *me, const void *token)
{
	for (uint32_t to = 0; to < me->pair->count; to++) {
		struct pair_flow *f = &me->pair->flows[me->id][to];

		if ((const uint8_t *)token >= f->taken &&
		    (const uint8_t *)token < f->taken + PAIR_SLOTS) {
			return f;
		}
	}
	fail_msg("a token that nobody gave");
	return NULL;
}

static void acked(void *ctx, void *token, bool refused)
{
	struct pair_node *me = ctx;
	struct pair_flow *f = flow_of(me, token);

	assert_int_equal(*(uint8_t *)token, 1); /* given back once */
	*(uint8_t *)token = 0;
	f->acked++;
	if (me->pair->own_limit > 0) {
		cn_flight_acked(&f->flight, cn_node_window(me->node), 1, refused);
	}
}

static void refused(void *ctx, void *token)
{
	struct pair_node *me = ctx;

	if (me->pair->own_limit > 0) {
		cn_flight_refused(&flow_of(me, token)->flight, cn_node_window(me->node));
	}
}

static bool resend(void *ctx, void *token, uint8_t *flags)
{
	struct pair_node *me = ctx;

	(void)flags;
	return me->pair->own_limit == 0 ||
	       cn_flight_resend(&flow_of(me, token)->flight, cn_node_window(me->node));
}

static void peer_up(void *ctx, cn_time now, struct cn_peer *peer)
{
	struct pair_node *me = ctx;

	(void)now;
	assert_true(cn_peer_alive(peer));
	me->ups++;
	if (me->pair->first_seq != 0) {
		cn_sender_init(peer, me->pair->first_seq);
		cn_receiver_init(peer, me->pair->first_seq);
	}
	pair_log(me->pair, "%c: up %s\n", pair_names[me->id], cn_peer_name(peer));
}

static void peer_down(void *ctx, cn_time now, struct cn_peer *peer, enum cn_peer_loss why)
{
	static const char *const whys[] = { "silent", "restarted", "bye",     "gave up",
					    "path",   "moved",	   "process", "address",
					    "mtu",    "acks",	   "unheard" };
	struct pair_node *me = ctx;

	(void)now;
	assert_false(cn_peer_alive(peer));
	me->downs++;
	pair_log(me->pair, "%c: down %s %s\n", pair_names[me->id], cn_peer_name(peer), whys[why]);
}

static void path(void *ctx, cn_time now, struct cn_peer *peer, uint32_t bytes)
{
	struct pair_node *me = ctx;

	(void)now;
	if (bytes == 0) {
		pair_log(me->pair, "%c: path %s valid\n", pair_names[me->id], cn_peer_name(peer));
	} else {
		pair_log(me->pair, "%c: path %s drops %u\n", pair_names[me->id], cn_peer_name(peer),
			 bytes);
	}
}

static bool listed(void *ctx, const char *name)
{
	return ((struct pair_node *)ctx)->pair->listed && strlen(name) == 1;
}

static const struct cn_node_ops ops = {
	.pull = pull,
	.deliver = deliver,
	.acked = acked,
	.refused = refused,
	.resend = resend,
	.peer_up = peer_up,
	.peer_down = peer_down,
	.path = path,
	.listed = listed,
};

/* ---- the network ------------------------------------------------------------------------- */

static bool chance(struct pair *p, uint32_t ppm)
{
	return ppm != 0 && cn_random(&p->random) % 1000000 < ppm;
}

static bool sooner(const struct pair_packet *a, const struct pair_packet *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void queue_put(struct pair *p, struct pair_packet x)
{
	uint32_t i = p->queued++;

	if (p->queued > p->queue_cap) {
		p->queue_cap = p->queue_cap * 2 + 4096;
		p->queue = realloc(p->queue, p->queue_cap * sizeof(*p->queue));
		assert_non_null(p->queue);
	}
	for (; i > 0 && sooner(&x, &p->queue[(i - 1) / 2]); i = (i - 1) / 2) {
		p->queue[i] = p->queue[(i - 1) / 2];
	}
	p->queue[i] = x;
}

static struct pair_packet queue_get(struct pair *p)
{
	struct pair_packet first = p->queue[0], last = p->queue[--p->queued];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c < p->queued && c + 1 < p->queued && sooner(&p->queue[c + 1], &p->queue[c])) {
			c++;
		}
		if (c >= p->queued || !sooner(&p->queue[c], &last)) {
			break;
		}
		p->queue[i] = p->queue[c];
		i = c;
	}
	p->queue[i] = last;
	return first;
}

void pair_reserve(struct pair *p)
{
	while (p->nspare < PAIR_SPARE) {
		p->spare[p->nspare] = malloc(65536);
		assert_non_null(p->spare[p->nspare]);
		p->nspare++;
	}
}

void pair_inject(struct pair *p, uint32_t to, const uint8_t *frame, size_t len, cn_time at)
{
	struct pair_packet x = { .at = at, .order = p->order++, .to = to, .len = (uint32_t)len };

	x.data = p->nspare > 0 ? p->spare[--p->nspare] : malloc(65536);
	assert_non_null(x.data);
	memcpy(x.data, frame, len);
	queue_put(p, x);
}

static void travel(struct pair *p, uint32_t from, uint32_t to, uint8_t *f, size_t len)
{
	cn_time at = p->now + p->delay + len * p->ns_per_byte;
	unsigned copies = 1;

	if (to == from || p->cut[from][to] || chance(p, p->loss) ||
	    (p->filter != NULL && !p->filter(p, from, to, f, len))) {
		return;
	}
	if (p->jitter != 0) {
		at += cn_random(&p->random) % p->jitter;
	}
	if (chance(p, p->reorder)) {
		at += 20 * CN_US + cn_random(&p->random) % (200 * CN_US);
	} else {
		at = at < p->last_at[from][to] ? p->last_at[from][to] : at;
		p->last_at[from][to] = at;
	}
	if (chance(p, p->garble)) {
		f[cn_random(&p->random) % len] ^= (uint8_t)(1 + cn_random(&p->random) % 255);
	}
	copies += chance(p, p->duplicate);
	while (copies-- > 0) {
		pair_inject(p, to, f, len, at);
	}
}

static void output(struct pair *p, uint32_t from)
{
	struct pair_node *me = &p->nodes[from];
	uint8_t f[65536];
	struct cn_frame out;

	while (me->node != NULL && me->line_free <= p->now &&
	       cn_node_output(me->node, p->now, &out)) {
		size_t len = out.head_len;

		assert_true(len >= CN_HEAD && len <= CN_FRAME_HEAD);
		assert_true(len + out.payload_len <= CN_ETH_HEADER + me->config.mtu);
		memset(f, 0, CN_ETH_MIN);
		memcpy(f, out.head, len);
		if (out.payload_len > 0) {
			memcpy(f + len, out.payload, out.payload_len);
			len += out.payload_len;
		}
		len = len < CN_ETH_MIN ? CN_ETH_MIN : len;
		p->frames++;
		if (p->tracing) {
			pair_trace_frame(p, from, f, len);
		}
		me->line_free = p->now + len * p->ns_per_byte;
		for (uint32_t to = 0; to < p->count; to++) {
			if ((f[0] & 1) != 0 || p->nodes[to].config.mac[5] == f[5]) {
				travel(p, from, to, f, len);
			}
		}
	}
}

void pair_poke(struct pair *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		output(p, i);
	}
}

/* What must hold of every peer at any time. */
static void check_peers(struct pair *p, uint32_t i)
{
	struct cn_node *n = p->nodes[i].node;

	for (uint32_t k = 0; n != NULL && k < cn_node_peers(n); k++) {
		const struct cn_sender *t = &cn_node_peer(n, k)->tx;

		assert_true(cn_serial_within(t->queue.una, t->queue.next, t->queue.end));
		assert_true(t->queue.end - t->queue.una <= p->nodes[i].config.send_window);
		if (cn_node_peer(n, k)->state == CN_PEER_UP) {
			assert_true(t->cc.cwnd >= 2 &&
				    t->cc.cwnd <= p->nodes[i].config.send_window);
			assert_true((t->queue.una == t->queue.end) == (t->rto_at == CN_NEVER));
		}
	}
}

bool pair_step(struct pair *p, cn_time limit)
{
	cn_time next = p->queued > 0 ? p->queue[0].at : CN_NEVER;

	for (uint32_t i = 0; i < p->count; i++) {
		struct pair_node *me = &p->nodes[i];

		if (me->node != NULL) {
			next = cn_min_time(next, cn_node_deadline(me->node));
			if (me->line_free > p->now) {
				next = cn_min_time(next, me->line_free);
			}
		}
	}
	if (next > limit) {
		p->now = limit;
		return false;
	}
	p->now = next > p->now ? next : p->now;
	while (p->queued > 0 && p->queue[0].at <= p->now) {
		struct pair_packet x = queue_get(p);

		if (p->nodes[x.to].node != NULL) {
			pair_input(p, x.to, x.data, x.len);
			check_peers(p, x.to);
		}
		if (p->nspare < PAIR_SPARE) {
			p->spare[p->nspare++] = x.data;
		} else {
			free(x.data);
		}
	}
	for (uint32_t i = 0; i < p->count; i++) {
		struct cn_node *n = p->nodes[i].node;

		if (n != NULL && cn_node_deadline(n) <= p->now) {
			cn_node_expire(n, p->now);
			check_peers(p, i);
		}
	}
	pair_poke(p);
	return true;
}

void pair_run(struct pair *p, cn_time duration)
{
	cn_time limit = p->now + duration;

	pair_poke(p);
	while (pair_step(p, limit)) {
	}
}

struct cn_peer *pair_peer(struct pair *p, uint32_t at, uint32_t of)
{
	struct cn_node *n = p->nodes[at].node;

	return n != NULL ? cn_peer_by_mac(n, p->nodes[of].config.mac) : NULL;
}

void pair_input(struct pair *p, uint32_t to, const uint8_t *frame, size_t len)
{
	struct cn_rx_frame f = cn_rx_frame_raw(frame, len);

	f.encapsulation = p->nodes[to].config.encapsulation;
	cn_node_input(p->nodes[to].node, p->now, &f);
}

size_t pair_hello(struct pair *p, uint32_t to, const uint8_t mac[6], const struct cn_hello *h,
		  uint8_t flags, bool proof, uint8_t *frame)
{
	struct cn_node *n = p->nodes[to].node;
	const struct cn_peer *peer = cn_peer_by_mac(n, mac);
	/* of an established peer the one that ends the session */
	uint64_t echo = peer == NULL		    ? cn_nonce(n, mac, n->evicted << 32)
			: peer->state == CN_PEER_UP ? cn_nonce(n, mac, ~peer->generation)
						    : peer->nonce_out;
	struct cn_wire w = {
		.type = CN_TYPE_HELLO,
		.flags = flags,
		.seq = proof ? (uint32_t)(echo >> 32) : 0,
		.ack = proof ? (uint32_t)echo : 0,
	};
	struct cn_hello body = *h;

	body.cluster = n->config.cluster;
	memset(frame, 0, CN_FRAME_HEAD);
	memset(frame, 0xff, 6);
	if ((flags & CN_FLAG_UNICAST) != 0) {
		memcpy(frame, n->config.mac, 6);
	}
	memcpy(frame + 6, mac, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	w.length = (uint16_t)cn_hello_put(frame + CN_HEAD, &body);
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	return CN_HEAD + (size_t)w.length;
}

void pair_send(struct pair *p, uint32_t from, uint32_t to, uint32_t frames, uint16_t len)
{
	p->flows[from][to].total += frames;
	p->flows[from][to].len = len;
}

struct collnet_stats pair_stats(struct pair *p, uint32_t node)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_node_stats(p->nodes[node].node, &s);
	return s;
}

/* ---- start and stop ---------------------------------------------------------------------- */

void pair_start(struct pair *p, uint32_t node)
{
	struct pair_node *me = &p->nodes[node];
	struct cn_err err = { 0 };

	me->config.epoch++;
	me->line_free = 0;
	if (cn_node_new(&me->config, &ops, me, &me->node, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
}

void pair_stop(struct pair *p, uint32_t node)
{
	cn_node_free(p->nodes[node].node);
	p->nodes[node].node = NULL;
}

struct pair *pair_new(uint32_t nodes, uint64_t seed, void (*change)(struct cn_node_config *))
{
	struct pair *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->now = CN_MS; /* not 0, as no clock is */
	p->count = nodes;
	p->seed = p->random = seed;
	p->delay = 20 * CN_US;
	p->ns_per_byte = 8; /* 1 Gbit/s */
	for (uint32_t i = 0; i < nodes; i++) {
		struct pair_node *me = &p->nodes[i];

		me->pair = p;
		me->id = i;
		cn_node_config_init(&me->config);
		/* where a test does not say otherwise: pure Go-Back-N without slow start */
		me->config.reorder = 0;
		me->config.send_window = 128;
		me->config.cluster = 1;
		me->config.initial_cwnd = 128;
		me->config.mac[0] = 2;
		me->config.mac[5] = (uint8_t)(i + 1);
		me->config.epoch = cn_mix64(seed * 16 + i);
		me->config.max_peers = 8;
		me->config.name[0] = pair_names[i];
		if (change != NULL) {
			change(&me->config);
		}
		pair_start(p, i);
	}
	return p;
}

void pair_free(struct pair *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		pair_stop(p, i);
		for (uint32_t k = 0; k < p->count; k++) {
			free(p->flows[i][k].slots);
		}
	}
	while (p->queued > 0) {
		free(p->queue[--p->queued].data);
	}
	while (p->nspare > 0) {
		free(p->spare[--p->nspare]);
	}
	free(p->queue);
	free(p);
}
