/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any frames into the transport: what it delivers fits a frame, every frame that it sends is well
 * formed, and every frame that it took is given back exactly once.
 *
 * Steps of its own: 6 n: n frames of the engine wait for a peer; 7 peer n: a control message;
 * 8 peer: something waits for the peer; 9: no more; 10: buffers are refused, or not any more;
 * 11 n: after n more frames they are.
 *
 * Before, the input itself is a received frame: what is behind its headers lies within it, and what
 * is encapsulated comes out again.
 *
 * Afterwards the peers of the script are gone and every buffer is back; a node that keeps the rules
 * comes up and gets its frames through, in order, both ways.
 */
#include <stdlib.h>
#include <string.h>

#include "link/kinds.h"
#include "link/encapsulation.h"
#include "mutate.h"
#include "proto/node.h"
#include "script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKENS	    256u
#define GOOD_FRAMES 20u

static const struct mutate_step steps[] = {
	SCRIPT_STEPS,
	{ 6, MUTATE_ANY, 8, "b" },
	{ 7, MUTATE_ANY, 6, "ib" },
	{ 8, MUTATE_ANY, 2, "i" },
	{ 9, MUTATE_ANY, 2, "i" },
	{ 10, MUTATE_ANY, 3, "" },
	{ 11, MUTATE_ANY, 4, "i" },
};
const struct mutate_grammar mutate_grammar = {
	.mask = 15,
	.sub = 1,
	.n = sizeof(steps) / sizeof(steps[0]),
	.steps = steps,
};

struct fixture {
	struct cn_node *node;
	bool refuse;
	uint32_t room;	  /* frames until they are refused; 0: no such limit */
	uint32_t waiting; /* frames that pull may hand out */
	uint32_t peer;	  /* whom to, in turn */
	int expected[SCRIPT_PEERS];
	uint32_t out;	       /* tokens handed out and not given back */
	uint8_t token[TOKENS]; /* 1: handed out */
	uint8_t payload[1500];
	uint32_t received; /* collective frames */
};

static bool pull(void *ctx, cn_time now, struct cn_tx *tx)
{
	struct fixture *w = ctx;
	uint32_t n = cn_node_peers(w->node), t = 0;

	(void)now;
	if (!w->waiting || !n || w->out == TOKENS) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct cn_peer *p = cn_node_peer(w->node, (w->peer + i) % n);

		if (!p || !cn_peer_alive(p) || !cn_peer_room(p)) {
			continue;
		}
		while (w->token[t]) {
			t++;
		}
		w->token[t] = 1;
		w->out++;
		w->waiting--;
		w->peer++;
		*tx = (struct cn_tx){ .peer = p,
				      .type = CN_TYPE_COLL,
				      .flags = CN_FLAG_FIRST | CN_FLAG_LAST,
				      .len = (uint16_t)(w->peer * 97 % 1400),
				      .stream = w->peer,
				      .payload = w->payload,
				      .token = &w->token[t] };
		return true;
	}
	return false;
}

static bool deliver(void *ctx, cn_time now, struct cn_peer *p, const struct cn_rx *rx)
{
	struct fixture *w = ctx;
	volatile uint8_t sum = 0;

	(void)now;
	script_check(p && cn_peer_alive(p));
	script_check(rx->type == CN_TYPE_CONTROL || rx->type == CN_TYPE_COLL ||
		     rx->type == CN_TYPE_MESSAGE);
	script_check(rx->len <= cn_node_payload(w->node));
	for (uint16_t i = 0; i < rx->len; i++) {
		sum ^= rx->payload[i];
	}
	(void)sum;
	if (w->refuse) {
		return false;
	}
	w->received += rx->type == CN_TYPE_COLL;
	w->refuse = w->room == 1;
	w->room -= w->room > 0;
	return true;
}

static void acked(void *ctx, void *token, bool refused)
{
	struct fixture *w = ctx;

	(void)refused;
	script_check(token && *(uint8_t *)token == 1);
	*(uint8_t *)token = 0;
	w->out--;
}

static void peer_up(void *ctx, cn_time now, struct cn_peer *p)
{
	(void)ctx;
	(void)now;
	script_check(cn_peer_alive(p) && cn_valid_name(cn_peer_name(p)));
}

static void peer_down(void *ctx, cn_time now, struct cn_peer *p, enum cn_peer_loss why)
{
	(void)ctx;
	(void)now;
	(void)why;
	script_check(!cn_peer_alive(p));
}

static void other(struct script *s, uint8_t step)
{
	struct fixture *w = s->machine;
	struct cn_peer *p = NULL;
	uint8_t which;

	switch (step % 16) {
	case 6:
		w->waiting += script_byte(s);
		return;
	case 10:
		w->refuse = !w->refuse;
		if (!w->refuse) {
			cn_node_ready(w->node);
		}
		return;
	case 11:
		w->room = script_byte(s) % 16u;
		return;
	default:
		break;
	}
	which = script_byte(s) % SCRIPT_PEERS;
	if (which < cn_node_peers(w->node)) {
		p = cn_node_peer(w->node, which);
	}
	if (!p) {
		return;
	}
	if (step % 16 == 7 && cn_peer_alive(p)) {
		(void)cn_node_control(w->node, p, w->payload, script_byte(s));
	} else if (step % 16 == 8 && w->expected[which] < 100) {
		w->expected[which]++;
		cn_peer_expect(w->node, s->now, p, 1);
	} else if (step % 16 == 9 && w->expected[which] > 0) {
		w->expected[which]--;
		cn_peer_expect(w->node, s->now, p, -1);
	}
}

static void input(void *machine, cn_time now, const uint8_t *frame, size_t len)
{
	const struct cn_rx_frame f = cn_rx_frame_raw(frame, len);

	cn_node_input(((struct fixture *)machine)->node, now, &f);
}

static bool output(void *machine, cn_time now, struct cn_frame *out)
{
	return cn_node_output(((struct fixture *)machine)->node, now, out);
}

static cn_time deadline(const void *machine)
{
	return cn_node_deadline(((const struct fixture *)machine)->node);
}

static void expire(void *machine, cn_time now)
{
	cn_node_expire(((struct fixture *)machine)->node, now);
}

static struct script script_of(struct fixture *w, const char *mac, const char *name)
{
	static const struct cn_node_ops ops = { .pull = pull,
						.deliver = deliver,
						.acked = acked,
						.peer_up = peer_up,
						.peer_down = peer_down };
	struct cn_node_config c;

	cn_node_config_init(&c);
	memcpy(c.mac, mac, 6);
	memcpy(c.name, name, strlen(name) + 1);
	c.epoch = 7u + (uint8_t)mac[4];
	c.max_peers = SCRIPT_PEERS;
	c.send_window = 8;
	c.reorder = 8; /* as the daemon has it */
	c.pool_frames = 16;
	script_check(cn_node_new(&c, &ops, w, &w->node, NULL) == COLLNET_OK);
	return (struct script){ .now = CN_MS,
				.machine = w,
				.node = w->node,
				.input = input,
				.output = output,
				.deadline = deadline,
				.expire = expire,
				.other = other };
}

static bool good_is_known(void *ctx)
{
	struct fixture *const *w = ctx;

	return cn_node_find(w[0]->node, "good") && cn_node_find(w[1]->node, "self");
}

static bool all_received(void *ctx)
{
	struct fixture *const *w = ctx;

	return w[0]->received == GOOD_FRAMES && w[1]->received == GOOD_FRAMES && w[0]->out == 0 &&
	       w[1]->out == 0;
}

static void good_node(struct script *s, struct fixture *w)
{
	struct fixture good = { 0 }, *both[2] = { w, &good };
	struct script g = script_of(&good, "\x02\0\0\0\2\1", "good");

	script_check(script_exchange(s, &g, good_is_known, both));
	w->received = 0;
	w->waiting = good.waiting = GOOD_FRAMES;
	script_check(script_exchange(s, &g, all_received, both));
	cn_node_free(good.node);
}

static void decapsulate(const uint8_t *frame, size_t len, size_t size)
{
	struct cn_super_frame s;
	struct cn_rx_frame out[3];
	uint64_t sum = 0;
	size_t n;

	for (int trusted = 0; trusted < 2; trusted++) {
		if (!cn_link_decapsulate(frame, len, 0x88b5, trusted, &s)) {
			continue;
		}
		s.size = size;
		while ((n = cn_super_frame_next(&s, out, 3)) > 0) {
			for (size_t i = 0; i < n; i++) {
				script_check(out[i].ether == frame && out[i].len > 0 &&
					     out[i].data >= frame + CN_ETH_HEADER &&
					     out[i].data + out[i].len <= frame + len);
				sum = cn_ip_sum(sum, out[i].data, out[i].len);
			}
		}
	}
	script_check(sum != UINT64_MAX); /* every byte was read */
}

static void received_frame(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + CN_TCP_HEADER);
	struct cn_super_frame s;
	size_t len;

	script_check(copy != NULL);
	memcpy(copy, data, size);
	decapsulate(copy, size, size > 0 ? data[size - 1] : 0);
	if (size > CN_ETH_HEADER && size < 2000) {
		len = cn_encapsulate(copy,
				     size % 2 == 0 ? CN_ENCAPSULATION_UDP : CN_ENCAPSULATION_TCP,
				     data, size, 0x88b5);
		script_check(cn_link_decapsulate(copy, len, 0x88b5, false, &s) &&
			     s.left == size - CN_ETH_HEADER &&
			     memcmp(s.at, data + CN_ETH_HEADER, s.left) == 0);
		/* headers as a sender makes them, lengths of the input */
		memcpy(copy + 16, data, 2);
		memcpy(copy + 38, data, 2);
		decapsulate(copy, len, data[0]);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fixture w = { 0 };
	struct script s = script_of(&w, "\x02\0\0\0\0\1", "self");
	cn_time until;

	received_frame(data, size);
	s.data = data;
	s.len = size;
	script_run(&s);
	w.waiting = 0;
	w.refuse = false;
	w.room = 0;
	cn_node_ready(w.node);
	until = s.now + 4 * cn_node_config(w.node)->dead_after;
	while (script_pass_deadline(&s, until)) {
	}
	s.now = until;
	script_end_peers(&s);
	script_check(w.out == 0);
	good_node(&s, &w);
	cn_node_free(w.node);
	return 0;
}
