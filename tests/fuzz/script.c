/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a script (see script.h) on a transport, and looks at every frame that goes out. */
#include "script.h"

#include <stdlib.h>
#include <string.h>

#include "proto/node_impl.h"

#define FRAME_MAX 2048

void script_check(bool holds)
{
	if (!holds) {
		abort();
	}
}

uint8_t script_byte(struct script *s)
{
	return s->at < s->len ? s->data[s->at++] : 0;
}

static size_t take(struct script *s, uint8_t *out, size_t want)
{
	size_t left = s->len - s->at, n = want < left ? want : left;

	memcpy(out, s->data + s->at, n);
	s->at += n;
	return n;
}

void script_ethernet(const struct script *s, uint8_t peer, uint8_t frame[CN_ETH_HEADER])
{
	const struct cn_node_config *c = cn_node_config(s->node);
	const uint8_t mac[6] = { 2, 0, 0, 0, 1, (uint8_t)(peer % SCRIPT_PEERS) };

	memcpy(frame, c->mac, 6);
	memcpy(frame + 6, mac, 6);
	frame[12] = (uint8_t)(c->ethertype >> 8);
	frame[13] = (uint8_t)c->ethertype;
}

/* In memory of exact size, so that a sanitizer sees a read past the end. */
void script_deliver(struct script *s, const uint8_t *frame, size_t len)
{
	uint8_t *copy = malloc(len);

	script_check(copy != NULL && len >= CN_ETH_HEADER);
	memcpy(copy, frame, len);
	s->input(s->machine, s->now, copy, len);
	free(copy);
}

static void raw_frame(struct script *s)
{
	uint8_t frame[FRAME_MAX];

	script_ethernet(s, script_byte(s), frame);
	script_deliver(s, frame, CN_ETH_HEADER + take(s, frame + CN_ETH_HEADER, script_byte(s)));
}

void script_session_frame(struct script *s, struct cn_node *node, uint8_t peer,
			  const struct cn_wire *wire, const uint8_t *payload, size_t len)
{
	uint8_t frame[FRAME_MAX];
	struct cn_wire w = *wire;
	const struct cn_peer *p;

	script_check(len <= sizeof(frame) - CN_HEAD);
	script_ethernet(s, peer, frame);
	p = cn_peer_by_mac(node, frame + 6);
	w.port_to = cn_node_config(node)->port;
	if (p) {
		w.session = p->session_in;
		w.seq += p->rx.expected;
		w.ack += p->tx.queue.una;
	}
	w.length = (uint16_t)(w.length + len);
	if (len > 0) {
		memcpy(frame + CN_HEAD, payload, len);
	}
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	script_deliver(s, frame, CN_HEAD + len);
}

static void session_frame(struct script *s, bool large)
{
	uint8_t payload[FRAME_MAX], peer = script_byte(s), kind = script_byte(s);
	struct cn_wire w = { .type = kind & 15, .length = (uint16_t)((kind >> 4) * 9u) };
	size_t n;

	w.flags = script_byte(s);
	w.seq = (uint32_t)(int8_t)script_byte(s);
	w.ack = (uint32_t)(int8_t)script_byte(s);
	for (int i = 0; i < 4; i++) {
		w.stream = w.stream << 8 | script_byte(s);
	}
	if (large) {
		n = script_byte(s) * 256u;
		n = (n + script_byte(s)) % (cn_node_payload(s->node) + 8);
		memset(payload, (int)n, n);
	} else {
		n = take(s, payload, script_byte(s));
	}
	script_session_frame(s, s->node, peer, &w, payload, n);
}

/* Nonce and echo of a unicast hello: those of the session, or, bit by bit, others. */
static void nonces(const struct script *s, const uint8_t *frame, uint8_t how, struct cn_wire *w,
		   struct cn_hello *h)
{
	const struct cn_peer *p = cn_peer_by_mac(s->node, frame + 6);
	uint64_t nonce = 1 + how % 16, echo = cn_nonce(s->node, frame + 6, s->node->evicted << 32);

	if (p) {
		nonce += p->nonce_in - 1;
		echo = (how & 64) ? cn_nonce(s->node, p->mac, ~p->generation) : p->nonce_out;
		h->epoch = (how & 32) ? h->epoch : p->epoch;
	}
	echo += how >> 7;
	w->stream = (uint32_t)(nonce >> 32);
	h->nonce = (uint32_t)nonce;
	w->seq = (uint32_t)(echo >> 32);
	w->ack = (uint32_t)echo;
	if (p && (w->flags & CN_FLAG_BYE) != 0) {
		w->session = p->session_in;
		w->seq = p->bye_in + (how & 1);
	}
}

/* The hello that a node of this script would send. A known peer keeps its epoch and nonce. */
static void greet(struct script *s, uint8_t peer)
{
	uint8_t frame[FRAME_MAX];
	struct cn_wire w = { .type = CN_TYPE_HELLO, .flags = CN_FLAG_UNICAST };
	struct cn_hello h = { .epoch = 100u + peer % SCRIPT_PEERS,
			      .mtu = cn_node_config(s->node)->mtu,
			      .cluster = cn_node_config(s->node)->cluster };

	script_ethernet(s, peer, frame);
	nonces(s, frame, 0, &w, &h);
	memset(h.name, 'a' + peer % SCRIPT_PEERS, 2);
	w.length = (uint16_t)cn_hello_put(frame + CN_HEAD, &h);
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	script_deliver(s, frame, CN_HEAD + w.length);
}

static void hello_frame(struct script *s)
{
	uint8_t frame[FRAME_MAX];
	struct cn_wire w = { .type = CN_TYPE_HELLO };
	struct cn_hello h = { .mtu = cn_node_config(s->node)->mtu,
			      .cluster = cn_node_config(s->node)->cluster };
	uint8_t peer = script_byte(s), n;

	script_ethernet(s, peer, frame);
	w.flags = script_byte(s);
	h.epoch = script_byte(s);
	nonces(s, frame, script_byte(s), &w, &h);
	n = script_byte(s) % (COLLNET_NAME_MAX + 1);
	memset(h.name, 'a' + peer % SCRIPT_PEERS, n);
	w.length = (uint16_t)cn_hello_put(frame + CN_HEAD, &h);
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	script_deliver(s, frame, CN_HEAD + w.length);
}

/* What every frame on its way out keeps. */
static void check_frame(const struct script *s, const struct cn_frame *f)
{
	uint8_t flat[FRAME_MAX];
	struct cn_wire w;
	size_t len = (size_t)f->head_len + f->payload_len;

	script_check(f->head_len >= CN_HEAD && f->head_len <= CN_FRAME_HEAD);
	script_check(len <= CN_ETH_HEADER + cn_node_config(s->node)->mtu && len <= sizeof(flat));
	script_check(f->payload_len == 0 || f->payload);
	memcpy(flat, f->head, f->head_len);
	if (f->payload_len) {
		memcpy(flat + f->head_len, f->payload, f->payload_len);
	}
	script_check(cn_wire_get(flat + CN_ETH_HEADER, len - CN_ETH_HEADER, &w) == CN_WIRE_OK);
	/* Only a probe of the path MTU is padded. */
	script_check(w.length == len - CN_HEAD ||
		     (w.type == CN_TYPE_ACK && (w.flags & CN_FLAG_MTU_PROBE) != 0));
}

/* A probe of the path MTU to a peer of the script is to be answered. */
static void note_probe(struct script *s, const struct cn_frame *f)
{
	size_t len = (size_t)f->head_len + f->payload_len - CN_ETH_HEADER;
	uint32_t *probe;
	struct cn_wire w;

	if (cn_wire_get(f->head + CN_ETH_HEADER, f->head_len - CN_ETH_HEADER, &w) != CN_WIRE_OK ||
	    w.type != CN_TYPE_ACK || (w.flags & CN_FLAG_MTU_PROBE) == 0 ||
	    f->head[5] >= SCRIPT_PEERS || f->head[4] != 1) {
		return;
	}
	probe = &s->probe[f->head[5]];
	if (*probe >> 16 != w.stream >> 16 || (*probe & 0xffff) < len) {
		*probe = (w.stream & 0xffff0000u) | (uint32_t)len;
	}
}

static void answer_probes(struct script *s)
{
	for (uint8_t i = 0; i < SCRIPT_PEERS; i++) {
		struct cn_wire w = { .type = CN_TYPE_ACK,
				     .flags = CN_FLAG_MTU_REPLY,
				     .stream = s->probe[i] };

		if (s->probe[i]) {
			s->probe[i] = 0;
			script_session_frame(s, s->node, i, &w, NULL, 0);
		}
	}
}

static void send_some(struct script *s, unsigned n, bool answer)
{
	struct cn_frame f;

	while (n-- && s->output(s->machine, s->now, &f)) {
		check_frame(s, &f);
		note_probe(s, &f);
	}
	if (answer) {
		answer_probes(s);
	}
}

static void send_step(struct script *s)
{
	uint8_t n = script_byte(s);

	send_some(s, n, n < 128);
}

/* The deadline passes, and then lies ahead, or the machine would spin. What is sent may be the last
 * of an operation, which then ends at once, and lets the next one go on: a deadline that has come
 * again, but for no more operations than a client has. */
bool script_pass_deadline(struct script *s, cn_time until)
{
	cn_time at = s->deadline(s->machine);

	if (at == CN_NEVER || at > until) {
		return false;
	}
	s->now = at > s->now ? at : s->now;
	for (int turns = 0; turns < COLLNET_OUTSTANDING_MAX; turns++) {
		s->expire(s->machine, s->now);
		send_some(s, 100000, true);
		if (s->deadline(s->machine) > s->now) {
			if (s->expired) {
				s->expired(s);
			}
			return true;
		}
	}
	script_check(false);
	return false;
}

/* What holds of every peer between two steps. */
static void check_peers(const struct script *s)
{
	const struct cn_node_config *c = cn_node_config(s->node);

	for (uint32_t i = 0; i < cn_node_peers(s->node); i++) {
		struct cn_peer *p = cn_node_peer(s->node, i);
		const struct cn_sender *t = &p->tx;

		script_check(t->queue.end - t->queue.una <= c->send_window &&
			     t->queue.next - t->queue.una <= t->queue.end - t->queue.una);
		if (p->state == CN_PEER_UP) {
			script_check(t->cc.cwnd >= 2 && t->cc.cwnd <= c->send_window);
			script_check((t->queue.una == t->queue.end) == (t->rto_at == CN_NEVER));
			script_check(cn_peer_room(p) <=
				     c->send_window - (t->queue.end - t->queue.una));
		} else {
			script_check(t->queue.una == t->queue.end && p->control_first == NULL);
			script_check(cn_peer_room(p) == 0);
		}
	}
	script_check(cn_node_peers(s->node) <= c->max_peers);
	script_check(s->node->pool.free <= s->node->pool.count);
}

/* ---- afterwards ----------------------------------------------------------------------- */

void script_end_peers(struct script *s)
{
	const struct cn_node *n = s->node;

	for (uint32_t i = 0; i < cn_node_peers(s->node); i++) {
		cn_peer_down(cn_node_peer(s->node, i), CN_PEER_SILENT);
	}
	check_peers(s);
	script_check(n->pool.free == n->pool.count && n->small.free == n->small.count &&
		     n->rings.free == n->rings.count);
	script_check(n->nexpecting == 0 && n->window->in_flight == 0);
}

static void carry(struct script *from, struct script *to)
{
	const uint8_t *mac = cn_node_config(to->node)->mac;
	uint8_t flat[FRAME_MAX];
	struct cn_frame f;

	for (uint32_t n = 0; n < 1000 && from->output(from->machine, from->now, &f); n++) {
		check_frame(from, &f);
		if ((f.head[0] & 1) == 0 && memcmp(f.head, mac, 6) != 0) {
			continue;
		}
		memcpy(flat, f.head, f.head_len);
		if (f.payload_len) {
			memcpy(flat + f.head_len, f.payload, f.payload_len);
		}
		script_deliver(to, flat, (size_t)f.head_len + f.payload_len);
	}
}

#define EXCHANGE_ROUNDS 4000
#define EXCHANGE_TIME	(30000 * CN_MS)

bool script_exchange(struct script *a, struct script *b, bool (*over)(void *ctx), void *ctx)
{
	cn_time end;

	a->now = b->now = a->now > b->now ? a->now : b->now;
	end = a->now + EXCHANGE_TIME;
	for (uint32_t round = 0; round < EXCHANGE_ROUNDS; round++) {
		cn_time at = cn_min_time(a->deadline(a->machine), b->deadline(b->machine));

		if (over(ctx)) {
			return true;
		}
		if (at > end) {
			return false;
		}
		a->now = b->now = at > a->now ? at : a->now;
		a->expire(a->machine, a->now);
		b->expire(b->machine, b->now);
		carry(a, b);
		carry(b, a);
		carry(a, b);
	}
	return false;
}

void script_run(struct script *s)
{
	while (s->at < s->len) {
		uint8_t step = script_byte(s);

		switch (step % 16) {
		case 0:
			raw_frame(s);
			break;
		case 1:
			session_frame(s, false);
			break;
		case 2:
			hello_frame(s);
			break;
		case 3:
			s->now += (cn_time)1 << (script_byte(s) % 36);
			break;
		case 4:
			send_step(s);
			break;
		case 5:
			script_pass_deadline(s, CN_NEVER - 1);
			break;
		case 13:
			greet(s, script_byte(s));
			break;
		case 14:
			session_frame(s, true);
			break;
		default:
			s->other(s, step);
			break;
		}
		check_peers(s);
	}
}
