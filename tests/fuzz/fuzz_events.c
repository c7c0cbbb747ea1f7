/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two or three transports, and a channel between them that does what the input says: frames are
 * lost, doubled, garbled, and delivered in any order at any time. Where nothing was garbled, every
 * frame must come once, in order and with its own bytes, and when the channel is good again all
 * that was sent must arrive. At all times: never more frames under way than the window, no
 * acknowledgement of what has not come, frames in flight as counted anew and never beyond its
 * limit, no buffer lost.
 *
 * The first four bytes: nodes and window; reorder and W_g; buffers; first number. Then steps, a
 * byte each (low three bits; the rest is x), with arguments where it says so:
 *
 *   0  node x puts a frame on the channel, if it has one
 *   1  the frame x of those on the channel arrives
 *   2  ... is lost
 *   3  ... is there twice
 *   4  at bits   ... has these bits of a byte flipped
 *   5  2^x * 1 us pass (x < 24), and who wants to be called is
 *   6  n    node x has n frames more for everybody; the first bit of n: and a control message
 *   7  n    node x refuses the next n frames (n < 64), or n % 8 of them after n / 8 % 8 others
 *           (n < 128), says that it has room again (128 ..), or starts anew (255)
 */
#include <stdlib.h>
#include <string.h>

#include "mutate.h"
#include "proto/node_impl.h"
#include "proto/serial.h"
#include "script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NODES	   3u
#define CHANNEL	   48u
#define FRAME_MAX  700u
#define STEPS_MAX  4000u
#define SETTLE_MAX 20000u
#define TABLE	   4096u

static const struct mutate_step steps[] = {
	{ 0, MUTATE_ANY, 20, "" }, { 1, MUTATE_ANY, 20, "" },  { 2, MUTATE_ANY, 5, "" },
	{ 3, MUTATE_ANY, 3, "" },  { 4, MUTATE_ANY, 1, "bb" }, { 5, MUTATE_ANY, 8, "" },
	{ 6, MUTATE_ANY, 6, "b" }, { 7, MUTATE_ANY, 2, "b" },
};
const struct mutate_grammar mutate_grammar = {
	.head = 4,
	.mask = 7,
	.sub = 1,
	.n = sizeof(steps) / sizeof(steps[0]),
	.steps = steps,
};

struct channel_frame {
	uint32_t to, len;
	uint8_t data[FRAME_MAX];
};

struct flow {
	uint32_t wanted, sent, received, acked; /* in this session */
	uint32_t controls_sent, controls_received;
};

struct node {
	struct fixture *fixture;
	struct cn_node *node;
	uint32_t id, turn, accept, refuse, starts; /* it refuses after `accept` more */
	uint64_t flights_sent, flights_received, flights_unacked, flights_refused;
	struct cn_flight flight;
	struct flow out[NODES], in[NODES];
};

struct fixture {
	struct script s;
	struct node nodes[NODES];
	uint32_t n, window, reorder, limit, pool;
	uint32_t first; /* sequence number of every session; 0: the transport's own */
	struct channel_frame channel[CHANNEL];
	uint32_t nin_flight;
	bool garbled;
};

static uint8_t table[TABLE + 256];

/* ---- the application ------------------------------------------------------------------ */

static const uint8_t *bytes_of(uint32_t from, uint32_t to, uint32_t number, uint16_t *len)
{
	*len = (uint16_t)(number % 7 == 0 ? 0 : number * 13 % 200);
	return table + (from * 1031 + to * 337 + number * 17) % TABLE;
}

static uint32_t index_of(const struct fixture *w, const struct cn_peer *p)
{
	uint32_t i = (uint32_t)(cn_peer_name(p)[0] - 'a');

	script_check(i < w->n || w->garbled);
	return i < NODES ? i : 0;
}

static bool pull(void *ctx, cn_time now, struct cn_tx *out)
{
	struct node *n = ctx;
	struct fixture *w = n->fixture;

	(void)now;
	for (uint32_t k = 0; k < w->n; k++) {
		uint32_t to = n->turn++ % w->n;
		struct flow *f = &n->out[to];
		char name[2] = { (char)('a' + to), 0 };
		struct cn_peer *p = to != n->id ? cn_node_find(n->node, name) : NULL;

		if (p == NULL || f->sent == f->wanted || cn_peer_room(p) == 0 ||
		    !cn_window_open(cn_node_window(n->node), &n->flight, w->limit)) {
			continue;
		}
		out->peer = p;
		out->type = CN_TYPE_COLL;
		out->payload = bytes_of(n->id, to, f->sent, &out->len);
		out->stream = f->sent++;
		out->token = f;
		out->flags = cn_flight_sent(&n->flight, cn_node_window(n->node), w->limit)
				     ? CN_FLAG_ACKREQ
				     : 0;
		n->flights_sent++;
		n->flights_unacked++;
		return true;
	}
	return false;
}

static bool deliver(void *ctx, cn_time now, struct cn_peer *p, const struct cn_rx *rx)
{
	struct node *n = ctx;
	struct fixture *w = n->fixture;
	uint32_t from = index_of(w, p);
	struct flow *f = &n->in[from];
	const uint8_t *want;
	uint16_t len;

	(void)now;
	if (n->accept > 0) {
		n->accept--;
	} else if (n->refuse > 0) {
		n->refuse--;
		return false;
	}
	if (rx->type == CN_TYPE_CONTROL) {
		script_check(w->garbled ||
			     (rx->len == 2 && rx->payload[1] == (uint8_t)f->controls_received));
		f->controls_received++;
		return true;
	}
	want = bytes_of(from, n->id, f->received, &len);
	script_check(w->garbled || (rx->type == CN_TYPE_COLL && rx->stream == f->received &&
				    rx->len == len && memcmp(rx->payload, want, len) == 0));
	f->received++;
	cn_flight_received(&n->flight, cn_node_window(n->node));
	n->flights_received++;
	return true;
}

static void acked(void *ctx, void *token, bool refused)
{
	struct node *n = ctx;
	struct flow *f = token;

	script_check(n->fixture->garbled || f->acked < f->sent); /* a name may be garbled, too */
	f->acked++;
	n->flights_unacked--;
	n->flights_refused -= refused;
	cn_flight_acked(&n->flight, cn_node_window(n->node), 1, refused);
}

static void refused(void *ctx, void *token)
{
	struct node *n = ctx;

	(void)token;
	n->flights_refused++;
	cn_flight_refused(&n->flight, cn_node_window(n->node));
}

static bool resend(void *ctx, void *token, uint8_t *flags)
{
	struct node *n = ctx;

	(void)token;
	(void)flags;
	if (!cn_flight_resend(&n->flight, cn_node_window(n->node))) {
		return false;
	}
	n->flights_refused--;
	return true;
}

static void peer_up(void *ctx, cn_time now, struct cn_peer *p)
{
	struct node *n = ctx;
	uint32_t other = index_of(n->fixture, p);
	uint32_t left = n->out[other].wanted - n->out[other].sent;

	(void)now;
	n->out[other] = (struct flow){ .wanted = left };
	n->in[other] = (struct flow){ 0 };
	if (n->fixture->first != 0) {
		cn_sender_init(p, n->fixture->first);
		cn_receiver_init(p, n->fixture->first);
	}
}

static void peer_down(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why)
{
	struct node *n = ctx;

	(void)now;
	(void)why;
	script_check(n->fixture->garbled ||
		     n->out[index_of(n->fixture, p)].acked == n->out[index_of(n->fixture, p)].sent);
}

static const struct cn_node_ops ops = {
	.pull = pull,
	.deliver = deliver,
	.acked = acked,
	.refused = refused,
	.resend = resend,
	.peer_up = peer_up,
	.peer_down = peer_down,
};

static void start(struct fixture *w, uint32_t id)
{
	struct node *n = &w->nodes[id];
	struct cn_node_config c;
	uint32_t starts = n->starts + 1;

	cn_node_free(n->node);
	memset(n, 0, sizeof(*n));
	n->fixture = w;
	n->id = id;
	n->starts = starts;
	cn_node_config_init(&c);
	memcpy(c.mac, "\x02\0\0\0\0", 5);
	c.mac[5] = (uint8_t)(id + 1);
	c.name[0] = (char)('a' + id);
	c.epoch = 1000 * starts + id + 1;
	c.mtu = 576;
	c.send_window = w->window;
	c.reorder = w->reorder;
	c.pool_frames = w->pool;
	c.max_peers = 4;
	script_check(cn_node_new(&c, &ops, n, &n->node, NULL) == COLLNET_OK);
}

/* ---- the channel ---------------------------------------------------------------------- */

static void put(struct fixture *w, uint32_t to, const struct cn_frame *f)
{
	struct channel_frame *c = &w->channel[w->nin_flight];

	if (w->nin_flight == CHANNEL) {
		return; /* full: lost */
	}
	w->nin_flight++;
	c->to = to;
	c->len = (uint32_t)f->head_len + f->payload_len;
	script_check(c->len <= FRAME_MAX && f->head_len >= CN_ETH_HEADER);
	memcpy(c->data, f->head, f->head_len);
	if (f->payload_len > 0) {
		memcpy(c->data + f->head_len, f->payload, f->payload_len);
	}
}

static bool send_one(struct fixture *w, uint32_t id)
{
	struct cn_frame f;

	memset(&f, 0, sizeof(f));
	if (!cn_node_output(w->nodes[id].node, w->s.now, &f)) {
		return false;
	}
	for (uint32_t to = 0; to < w->n; to++) {
		if (to != id && ((f.head[0] & 1) != 0 || f.head[5] == to + 1)) {
			put(w, to, &f);
		}
	}
	return true;
}

static void remove_in_flight(struct fixture *w, uint32_t i)
{
	w->nin_flight--;
	memmove(&w->channel[i], &w->channel[i + 1], (w->nin_flight - i) * sizeof(w->channel[0]));
}

static void arrive(struct fixture *w, uint32_t i)
{
	uint32_t len = w->channel[i].len, to = w->channel[i].to;
	uint8_t *copy = malloc(len); /* of exact size */
	struct cn_rx_frame f;

	script_check(copy != NULL);
	memcpy(copy, w->channel[i].data, len);
	remove_in_flight(w, i);
	f = cn_rx_frame_raw(copy, len);
	cn_node_input(w->nodes[to].node, w->s.now, &f);
	free(copy);
}

static void pass(struct fixture *w, cn_time t)
{
	w->s.now += t;
	for (uint32_t i = 0; i < w->n; i++) {
		if (cn_node_deadline(w->nodes[i].node) <= w->s.now) {
			cn_node_expire(w->nodes[i].node, w->s.now);
		}
	}
}

/* ---- oracles -------------------------------------------------------------------------- */

static const struct cn_peer *peer_of(const struct fixture *w, uint32_t at, uint32_t of)
{
	const struct cn_node *n = w->nodes[at].node;

	for (uint32_t i = 0; i < n->npeers; i++) {
		if (n->peers[i]->state == CN_PEER_UP && n->peers[i]->name[0] == (char)('a' + of)) {
			return n->peers[i];
		}
	}
	return NULL;
}

static void check_pair(const struct fixture *w, uint32_t a, uint32_t b)
{
	const struct cn_peer *p = peer_of(w, a, b), *q = peer_of(w, b, a);

	if (p == NULL) {
		return;
	}
	script_check(p->tx.queue.end - p->tx.queue.una <= w->window);
	script_check(cn_serial_within(p->tx.queue.una, p->tx.queue.next, p->tx.queue.end));
	script_check(p->rx.reorder.count <= w->reorder);
	if (q != NULL && p->session_out == q->session_in && !w->garbled) {
		/* what came lies between what is known to have come and what was sent */
		script_check(cn_serial_within(p->tx.queue.una, q->rx.expected, p->tx.queue.end));
	}
}

static void check_fixture(const struct fixture *w)
{
	for (uint32_t a = 0; a < w->n; a++) {
		const struct node *n = &w->nodes[a];
		uint64_t sent = n->flights_sent - n->flights_refused;
		uint64_t unacked = n->flights_unacked - n->flights_refused;
		uint64_t in_flight = sent > n->flights_received ? sent - n->flights_received : 0;

		in_flight = in_flight < unacked ? in_flight : unacked;
		/* beyond the limit, frames that were acknowledged as refused wait to be counted */
		script_check(n->node->window->in_flight ==
			     (in_flight < w->limit ? in_flight : w->limit));
		for (uint32_t b = 0; b < w->n; b++) {
			if (a != b) {
				check_pair(w, a, b);
			}
		}
	}
}

static cn_time until_next(const struct fixture *w)
{
	cn_time at = w->s.now + 100 * CN_MS;

	for (uint32_t i = 0; i < w->n; i++) {
		at = cn_min_time(at, cn_node_deadline(w->nodes[i].node));
	}
	return at > w->s.now + 100 * CN_US ? at - w->s.now : 100 * CN_US;
}

/* The channel is good again: everything arrives, and no buffer stays in use. */
static void settle(struct fixture *w)
{
	bool done = false;

	for (uint32_t i = 0; i < w->n; i++) {
		w->nodes[i].refuse = 0;
		cn_node_ready(w->nodes[i].node);
	}
	for (uint32_t round = 0; round < SETTLE_MAX && !done; round++) {
		bool more = true;

		while (more || w->nin_flight > 0) {
			while (w->nin_flight > 0) {
				arrive(w, 0);
			}
			more = false;
			for (uint32_t i = 0; i < w->n; i++) {
				more |= w->nin_flight < CHANNEL / 2 && send_one(w, i);
			}
		}
		check_fixture(w);
		done = true;
		for (uint32_t a = 0; a < w->n; a++) {
			for (uint32_t b = 0; b < w->n; b++) {
				const struct flow *f = &w->nodes[a].out[b];

				done &= a == b ||
					(peer_of(w, a, b) != NULL && f->acked == f->wanted &&
					 w->nodes[b].in[a].received == f->sent &&
					 w->nodes[b].in[a].controls_received == f->controls_sent &&
					 peer_of(w, a, b)->tx.queue.una ==
						 peer_of(w, a, b)->tx.queue.end);
			}
		}
		pass(w, until_next(w));
	}
	script_check(done);
	for (uint32_t i = 0; i < w->n; i++) {
		script_check(w->nodes[i].node->pool.free == w->nodes[i].node->pool.count);
		script_check(w->nodes[i].node->window->in_flight == 0);
	}
}

/* ---- steps ---------------------------------------------------------------------------- */

static void ask_for(struct fixture *w, uint32_t x)
{
	struct node *n = &w->nodes[x % w->n];
	uint8_t more = script_byte(&w->s);

	for (uint32_t to = 0; to < w->n; to++) {
		struct flow *f = &n->out[to];
		struct cn_peer *p = (struct cn_peer *)(uintptr_t)peer_of(w, n->id, to);
		uint8_t message[2] = { 1, (uint8_t)f->controls_sent };

		if (to == n->id) {
			continue;
		}
		f->wanted += more / 2;
		if ((more & 1) != 0 && p != NULL &&
		    cn_node_control(n->node, p, message, sizeof(message)) == COLLNET_OK) {
			f->controls_sent++;
		}
	}
}

static void trouble(struct fixture *w, uint32_t x)
{
	struct node *n = &w->nodes[x % w->n];
	uint8_t what = script_byte(&w->s);

	if (what < 128) {
		n->accept = what < 64 ? 0 : what / 8u % 8u;
		n->refuse = what < 64 ? what : what % 8u;
	} else if (what < 255) {
		n->refuse = 0;
		cn_node_ready(n->node);
	} else if (n->starts < 4) {
		start(w, n->id);
	}
}

static void step(struct fixture *w)
{
	uint8_t b = script_byte(&w->s), x = b >> 3;
	uint32_t i = w->nin_flight > 0 ? x % w->nin_flight : 0;

	switch (b & 7) {
	case 0:
		send_one(w, x % w->n);
		break;
	case 1:
		if (w->nin_flight > 0) {
			arrive(w, i);
		}
		break;
	case 2:
		if (w->nin_flight > 0) {
			remove_in_flight(w, i);
		}
		break;
	case 3:
		if (w->nin_flight > 0 && w->nin_flight < CHANNEL) {
			w->channel[w->nin_flight++] = w->channel[i];
		}
		break;
	case 4:
		if (w->nin_flight > 0) {
			uint8_t at = script_byte(&w->s);

			w->channel[i].data[at % w->channel[i].len] ^= script_byte(&w->s);
			w->garbled = true;
		}
		break;
	case 5:
		pass(w, CN_US << x % 24);
		break;
	case 6:
		ask_for(w, x);
		break;
	default:
		trouble(w, x);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t firsts[] = { 0, 0, 0xfffffff0u, 0x7ffffff0u };
	struct fixture *w = calloc(1, sizeof(*w));
	uint8_t b;

	script_check(w != NULL);
	for (uint32_t i = 0; i < sizeof(table); i++) {
		table[i] = (uint8_t)cn_mix64(i);
	}
	w->s = (struct script){ .data = data, .len = size, .now = CN_MS };
	b = script_byte(&w->s);
	w->n = 2 + b % 2;
	w->window = 2 + b / 2 % 40;
	b = script_byte(&w->s);
	w->reorder = b % (CN_REORDER_MAX + 1);
	w->limit = b / 16 == 0 ? COLLNET_WINDOW_OFF : b / 16;
	w->pool = 16 + script_byte(&w->s) % 64;
	w->first = firsts[script_byte(&w->s) % 4];
	for (uint32_t i = 0; i < w->n; i++) {
		start(w, i);
	}
	for (uint32_t i = 0; i < STEPS_MAX && w->s.at < w->s.len; i++) {
		step(w);
		if (!w->garbled) {
			check_fixture(w);
		}
	}
	if (!w->garbled) {
		settle(w);
	}
	for (uint32_t i = 0; i < w->n; i++) {
		cn_node_free(w->nodes[i].node);
	}
	free(w);
	return 0;
}
