/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the frames of forge.h with the library's own encoders. */
#include "forge.h"

#include <stdio.h>
#include <string.h>

#include "coll/endpoint.h"
#include "coll/op.h"
#include "coll/stream.h"
#include "proto/node_impl.h"

struct forge {
	struct script *s;
	struct cn_engine *e;
	uint64_t owner;
	uint8_t peer, wrong, at, value, a, b, c, seq;
	struct cn_node *node; /* the transport that the frame is for */
	struct cn_peer *from; /* of it; NULL: not known there */
	struct cn_wire wire;
	uint8_t payload[1600];
	struct cn_cursor out;
};

/* The job of this number; with the second bit, a division, if there is one. */
static struct cn_team *team(const struct forge *f)
{
	struct cn_engine *e = f->e;
	struct cn_team *t = NULL;
	char name[8];

	snprintf(name, sizeof(name), "j%u", f->a % 2u);
	for (uint32_t i = 0; i < e->places; i++) {
		if (e->teams[i] && (f->a & 2) != 0 && e->teams[i]->division) {
			return e->teams[i];
		}
		if (e->teams[i] && !t && strcmp(e->teams[i]->job, name) == 0) {
			t = e->teams[i];
		}
	}
	return t;
}

/* The frame is for the team's transport. */
static void to_team(struct forge *f, const struct cn_team *t)
{
	if (t) {
		f->node = t->transport->node;
	}
}

static uint32_t team_id(const struct forge *f)
{
	return 1000u * (f->peer % SCRIPT_PEERS + 1u) + 4u * (f->a % 2u) + f->b % 4u;
}

/* ---- control messages ------------------------------------------------------------------- */

/* The ranks that this node does not have: all in ranges (0), the peer's own share (1), each by
 * itself (2), or none (3). */
static void put_ranges(struct forge *f, const struct cn_team *t, uint32_t ranks)
{
	uint32_t share = f->peer % SCRIPT_PEERS, count = 0, seen = 0;
	uint8_t *count_at = f->out.at;

	cn_put16(&f->out, 0);
	for (uint32_t r = 0; r < ranks && r < 8; r++) {
		bool here = false;

		for (const struct cn_member *m = t ? t->members : NULL; m; m = m->next) {
			here |= m->rank == r;
		}
		if (here || (f->c % 4 == 1 && seen++ != share) || f->c % 4 == 3) {
			continue;
		}
		if (count > 0 && f->c % 4 == 0 && count_at[9 + 8 * (count - 1)] < 8 &&
		    count_at[5 + 8 * (count - 1)] + count_at[9 + 8 * (count - 1)] == r) {
			count_at[9 + 8 * (count - 1)]++; /* the low byte of its count */
			continue;
		}
		cn_put32(&f->out, r);
		cn_put32(&f->out, 1);
		count++;
	}
	count_at[1] = (uint8_t)count;
}

static void put_join(struct forge *f)
{
	const struct cn_team *t = team(f);
	uint32_t ranks = t ? t->ranks : 2;
	char name[8];

	snprintf(name, sizeof(name), "j%u", f->a % 2u);
	cn_put8(&f->out, CN_CONTROL_JOIN);
	cn_put32(&f->out, team_id(f));
	cn_put16(&f->out, f->b % 4u);
	cn_put32(&f->out, ranks);
	cn_put32(&f->out, f->e->topology);
	cn_put64(&f->out, f->owner);
	cn_put32(&f->out, t && f->value % 2 ? t->id : f->value / 2);
	cn_put_text(&f->out, name);
	put_ranges(f, t, ranks);
	cn_put32(&f->out, f->value % 3 == 0 ? f->value : 10000);
}

static void put_commit(struct forge *f)
{
	const struct cn_team *t = team(f);

	cn_put8(&f->out, CN_CONTROL_COMMIT);
	cn_put32(&f->out, team_id(f));
	cn_put32(&f->out, t ? t->id : f->c);
	cn_put8(&f->out, f->value % 2);
}

static void put_team_control(struct forge *f, uint8_t kind)
{
	if (f->value % 4u != 1) {
		to_team(f, team(f));
	}
	cn_put8(&f->out, kind);
	cn_put32(&f->out, team_id(f));
	if (kind == CN_CONTROL_LEAVE) {
		cn_put32(&f->out, f->c);
		cn_put32(&f->out, f->value);
		cn_put8(&f->out, f->value % 3 == 1);
	} else if (kind == CN_CONTROL_STARTED) {
		cn_put32(&f->out, f->value);
	} else if (kind == CN_CONTROL_CALLED) {
		cn_put32(&f->out, f->value);
		cn_put64(&f->out, f->c);
		cn_put8(&f->out, f->value % 2);
	} else if (kind == CN_CONTROL_END) {
		cn_put8(&f->out, f->c / 4u % 2u); /* it never was ready */
	} else if (kind == CN_CONTROL_FAIL) {
		cn_put8(&f->out, f->c);
		cn_put_text(&f->out, f->value % 4 ? "it failed" : "");
	}
}

/* The number of a peer in the script; SCRIPT_PEERS: it is not one of the script's. */
static uint8_t number_of(const struct forge *f, const struct cn_peer *p)
{
	uint8_t header[CN_ETH_HEADER], i = 0;

	for (; i < SCRIPT_PEERS; i++) {
		script_ethernet(f->s, i, header);
		if (memcmp(header + 6, p->mac, 6) == 0) {
			break;
		}
	}
	return i;
}

/* The flow of these numbers, else any with a peer: the frame is then for that one. */
static struct cn_flow *flow(struct forge *f)
{
	struct cn_flow *w = NULL;
	uint32_t skip = f->b % 4u;

	if (f->from) {
		w = cn_flow_find(f->e->endpoints, f->from, f->a % 8u, f->b % 8u);
	}
	for (struct cn_endpoint *ep = f->e->endpoints->list; ep && !w; ep = ep->next) {
		for (w = ep->flows; w && (!w->peer || w->gone || skip > 0); w = w->next) {
			skip -= skip > 0;
		}
	}
	if (w) {
		f->from = w->peer;
		f->peer = number_of(f, w->peer);
		f->a = (uint8_t)w->local;
		f->b = (uint8_t)w->remote;
	}
	return w;
}

static void put_endpoint_control(struct forge *f, uint8_t kind)
{
	const struct cn_flow *w = flow(f);
	uint32_t value = f->c;

	if (w && kind == CN_EP_ABORT) {
		value += w->in_number;
	} else if (w && kind != CN_EP_GRANT && w->first) {
		value += w->first->number;
	}
	cn_put8(&f->out, kind);
	cn_put16(&f->out, f->a % 8u);
	cn_put16(&f->out, f->b % 8u);
	cn_put32(&f->out, value);
	if (kind == CN_EP_GRANT && f->value % 4u != 1) {
		cn_put32(&f->out, w ? w->numbers.next - 1 - f->value / 4u % 4u : value);
	}
}

/* ---- data ----------------------------------------------------------------------------- */

static void put_bytes(struct forge *f, uint64_t n)
{
	uint64_t most = cn_node_payload(f->s->node);

	for (n = n < most ? n : most; n > 0; n--) {
		cn_put8(&f->out, (uint8_t)n);
	}
}

/* A node of the team from which the operation waits for a frame; UINT32_MAX: none. */
static uint32_t node_of(struct forge *f, const struct cn_team *t, const struct cn_op *op)
{
	for (uint32_t i = 0; op && op->state == OP_RUNNING && i < t->layout.nnodes; i++) {
		uint32_t k = (i + f->c) % t->layout.nnodes;
		struct cn_peer *p = t->nodes[k].peer;

		if (p && op->streams[k].recv != CN_NONE && number_of(f, p) < SCRIPT_PEERS) {
			f->from = p;
			f->peer = number_of(f, p);
			return k;
		}
	}
	return UINT32_MAX;
}

static void put_next(struct forge *f, const struct cn_team *t, const struct cn_op *op, uint32_t k)
{
	const struct cn_action *a = &op->sched.actions[op->streams[k].recv];
	const struct cn_progress *p = &op->progress[op->streams[k].recv];
	uint64_t left = a->len - p->done, most = cn_node_payload(f->s->node);
	uint64_t frames = (a->len + most - 1) / most;

	most = frames > 1 ? (a->len + frames - 1) / frames : most;
	to_team(f, t);
	f->wire.stream = cn_stream(op->seq, cn_op_signature(op));
	if (left <= most && p->next == CN_NONE) {
		f->wire.flags |= CN_FLAG_LAST;
	}
	put_bytes(f, left < most ? left : most);
}

static void next_of_operation(struct forge *f)
{
	f->wire.type = CN_TYPE_COLL;
	f->wire.stream = cn_stream(f->b, f->c);
	for (uint32_t i = 0; i < f->e->places * CN_OPS; i++) {
		const struct cn_team *t = f->e->teams[i / CN_OPS];
		const struct cn_op *op = t && t->nodes ? t->ops[(i + f->b) % CN_OPS] : NULL;
		uint32_t k = op ? node_of(f, t, op) : UINT32_MAX;

		if (k != UINT32_MAX) {
			put_next(f, t, op, k);
			return;
		}
	}
}

static void later_operation(struct forge *f)
{
	const struct cn_team *t = team(f);
	uint32_t number = f->b;

	for (const struct cn_member *m = t ? t->members : NULL; m; m = m->next) {
		number += m->posted;
	}
	to_team(f, t);
	f->wire.type = CN_TYPE_COLL;
	f->wire.stream = cn_stream(number, f->c);
	put_bytes(f, f->value * 6u);
}

static void message(struct forge *f, bool first)
{
	const struct cn_flow *w = flow(f);
	uint32_t room = cn_node_payload(f->s->node) - CN_EP_HEAD, bytes = f->value * 40u, left;

	f->wire.type = CN_TYPE_MESSAGE;
	f->wire.stream = (uint32_t)(f->a % 8u) << 16 | f->b % 8u;
	left = w && w->coming ? w->left : bytes;
	if (first) {
		f->wire.flags |= CN_FLAG_FIRST;
		cn_put32(&f->out, bytes | (f->c & 1 ? CN_EP_GRANTREQ : 0));
		cn_put32(&f->out, w ? w->in_number + 1 : f->c);
		cn_put64(&f->out, f->owner + (f->c & 2) / 2);
		left = bytes;
	}
	f->wire.flags |= left <= room ? CN_FLAG_LAST : 0;
	put_bytes(f, left < room ? left : room);
}

/* ---- the frame ------------------------------------------------------------------------ */

static void make_wrong(struct forge *f, size_t *len)
{
	size_t n = *len;

	switch (f->wrong % 8) {
	case 1:
		*len = n > 0 ? f->at % n : 0;
		break;
	case 2:
	case 7:
		if (n > 0) {
			f->payload[f->at % n] = f->wrong % 8 == 2
							? f->value
							: (uint8_t)(f->payload[f->at % n] ^
								    1u << f->value % 8);
		}
		break;
	case 3:
		memset(f->payload + n, f->value, f->at);
		*len = n + f->at;
		break;
	case 4:
		f->wire.flags ^= f->value;
		break;
	case 5:
		f->wire.stream ^= (uint32_t)f->value << f->at % 25;
		break;
	case 6:
		f->wire.length = f->value;
		break;
	default:
		break;
	}
}

static void send(struct forge *f)
{
	size_t len = (size_t)(f->out.at - f->payload);

	f->wire.seq = (uint32_t)(int8_t)f->seq;
	make_wrong(f, &len);
	script_session_frame(f->s, f->node, f->peer, &f->wire, f->payload, len);
}

static void begin(struct forge *f)
{
	f->wire = (struct cn_wire){ .type = CN_TYPE_CONTROL };
	f->node = f->s->node;
	f->out = (struct cn_cursor){ f->payload, f->payload + sizeof(f->payload) - 256, false };
}

static void build(struct forge *f, uint8_t kind)
{
	const struct cn_team *t;

	begin(f);
	switch (kind) {
	case 0:
		put_join(f);
		break;
	case 1:
		put_commit(f);
		break;
	case 10:
		next_of_operation(f);
		break;
	case 11:
		later_operation(f);
		break;
	case 12:
	case 13:
		message(f, kind == 12);
		break;
	case 14:
		t = team(f);
		to_team(f, t);
		f->wire.flags = CN_FLAG_LAST;
		f->wire.stream = cn_stream(f->b, f->c);
		break;
	default:
		if (kind < 5) { /* the controls' numbers begin with 1 */
			kind = kind != 3	? kind + 1
			       : f->c % 4u == 3 ? CN_CONTROL_STARTED
			       : f->c % 4u == 2 ? CN_CONTROL_CALLED
						: CN_CONTROL_END;
			put_team_control(f, kind);
		} else {
			put_endpoint_control(f, (uint8_t)(CN_EP_GRANT + kind - 5));
		}
		break;
	}
}

void forge_frame(struct script *s, struct cn_engine *e, uint64_t owner)
{
	static struct forge f;
	uint8_t kind = script_byte(s) % 16, mac[CN_ETH_HEADER];

	f = (struct forge){ .s = s, .e = e, .owner = owner };
	f.peer = script_byte(s);
	f.wrong = script_byte(s);
	f.at = script_byte(s);
	f.value = script_byte(s);
	f.a = script_byte(s);
	f.b = script_byte(s);
	f.c = script_byte(s);
	f.seq = script_byte(s);
	script_ethernet(s, f.peer, mac);
	f.from = cn_peer_by_mac(s->node, mac + 6);
	if (kind == 15) {
		f.value |= 1; /* it knows our team id */
		build(&f, 0);
		send(&f);
		f.wrong = 0;
	}
	build(&f, kind == 15 ? 1 : kind);
	send(&f);
}
