/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a script (see script.h) on a transport, and looks at every frame that goes out. */
#include "script.h"

#include <stdlib.h>
#include <string.h>

#include "proto/peer.h"

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

static void ethernet(const struct script *s, uint8_t peer, uint8_t frame[CN_ETH_HEADER])
{
	const struct cn_node_config *c = cn_node_config(s->node);
	const uint8_t mac[6] = { 2, 0, 0, 0, 1, (uint8_t)(peer % SCRIPT_PEERS) };

	memcpy(frame, c->mac, 6);
	memcpy(frame + 6, mac, 6);
	frame[12] = (uint8_t)(c->ethertype >> 8);
	frame[13] = (uint8_t)c->ethertype;
}

/* In memory of exact size, so that a sanitizer sees a read past the end. */
static void deliver(struct script *s, const uint8_t *frame, size_t len)
{
	uint8_t *copy = malloc(len);

	script_check(copy != NULL);
	memcpy(copy, frame, len);
	s->input(s->machine, s->now, copy, len);
	free(copy);
}

static void raw_frame(struct script *s)
{
	uint8_t frame[FRAME_MAX];

	ethernet(s, script_byte(s), frame);
	deliver(s, frame, CN_ETH_HEADER + take(s, frame + CN_ETH_HEADER, script_byte(s)));
}

static void session_frame(struct script *s)
{
	uint8_t frame[FRAME_MAX];
	const struct cn_peer *p;
	struct cn_wire w = { 0 };
	uint8_t kind;
	size_t n;

	ethernet(s, script_byte(s), frame);
	p = cn_peer_by_mac(s->node, frame + 6);
	kind = script_byte(s);
	w.type = kind & 15;
	w.flags = script_byte(s);
	w.cluster = cn_node_config(s->node)->cluster;
	w.seq = (uint32_t)(int8_t)script_byte(s);
	w.ack = (uint32_t)(int8_t)script_byte(s);
	if (p) {
		w.session = p->session_in;
		w.seq += p->rx.expected;
		w.ack += p->tx.una;
	}
	for (int i = 0; i < 4; i++) {
		w.stream = w.stream << 8 | script_byte(s);
	}
	n = take(s, frame + CN_HEAD, script_byte(s));
	w.length = (uint16_t)(n + (kind >> 4) * 9u);
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	deliver(s, frame, CN_HEAD + n);
}

static void hello_frame(struct script *s)
{
	uint8_t frame[FRAME_MAX];
	struct cn_wire w = { .type = CN_TYPE_HELLO, .cluster = cn_node_config(s->node)->cluster };
	struct cn_hello h = { .mtu = cn_node_config(s->node)->mtu };
	uint8_t peer = script_byte(s), n;

	ethernet(s, peer, frame);
	w.flags = script_byte(s);
	h.epoch = script_byte(s);
	h.life = script_byte(s);
	n = script_byte(s) % (COLLNET_NAME_MAX + 1);
	memset(h.name, 'a' + peer % SCRIPT_PEERS, n);
	w.length = (uint16_t)cn_hello_put(frame + CN_HEAD, &h);
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	deliver(s, frame, CN_HEAD + w.length);
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
	script_check(cn_wire_get(flat + CN_ETH_HEADER, len - CN_ETH_HEADER,
				 cn_node_config(s->node)->cluster, &w) == CN_WIRE_OK);
	/* Only a probe of the path MTU is padded. */
	script_check(w.length == len - CN_HEAD ||
		     (w.type == CN_TYPE_ACK && (w.flags & CN_FLAG_SIZE) != 0));
}

static void send_some(struct script *s, unsigned n)
{
	struct cn_frame f;

	while (n-- && s->output(s->machine, s->now, &f)) {
		check_frame(s, &f);
	}
}

/* The deadline passes, and then lies ahead, or the machine would spin. What is sent may be the last of
 * an operation, which then ends at once: a deadline that has come again, but not for ever. */
static void pass_deadline(struct script *s)
{
	cn_time at = s->deadline(s->machine);

	if (at == CN_NEVER) {
		return;
	}
	s->now = at > s->now ? at : s->now;
	for (int turns = 0; turns < 4; turns++) {
		s->expire(s->machine, s->now);
		send_some(s, 100000);
		if (s->deadline(s->machine) > s->now) {
			return;
		}
	}
	script_check(false);
}

/* What holds of every peer between two steps. */
static void check_peers(const struct script *s)
{
	const struct cn_node_config *c = cn_node_config(s->node);

	for (uint32_t i = 0; i < cn_node_peers(s->node); i++) {
		const struct cn_peer *p = cn_node_peer(s->node, i);
		const struct cn_sender *t = &p->tx;

		script_check(t->end - t->una <= c->window && t->next - t->una <= t->end - t->una);
		if (p->state == CN_PEER_UP) {
			script_check(t->cwnd >= 2 && t->cwnd <= c->window);
			script_check((t->una == t->end) == (t->rto_at == CN_NEVER));
			script_check(cn_peer_room(p) <= c->window - (t->end - t->una));
		} else {
			script_check(t->una == t->end && p->control_first == NULL);
			script_check(cn_peer_room(p) == 0);
		}
	}
	script_check(s->node->pool.free <= s->node->pool.count);
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
			session_frame(s);
			break;
		case 2:
			hello_frame(s);
			break;
		case 3:
			s->now += (cn_time)1 << (script_byte(s) % 36);
			break;
		case 4:
			send_some(s, script_byte(s));
			break;
		case 5:
			pass_deadline(s);
			break;
		default:
			s->other(s, step);
			break;
		}
		check_peers(s);
	}
}
