/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/node.c: control messages, detached and abandoned streams, hellos, bounds, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 31337u

/* Linked with --wrap: every allocation of this program is counted. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
static uint64_t allocations;

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

static int control(struct pair *p, uint32_t from, uint32_t to, const char *text)
{
	return cn_node_control(p->nodes[from].node, pair_peer(p, from, to), text, strlen(text));
}

/* ---- configuration ----------------------------------------------------------------------- */

static const struct cn_node_ops no_ops;

static int with(void (*change)(struct cn_node_config *))
{
	struct cn_node_config c;
	struct cn_node *n = NULL;
	struct cn_err err = { 0 };
	int r;

	cn_node_config_init(&c);
	c.epoch = 1;
	c.name[0] = 'n';
	change(&c);
	r = cn_node_new(&c, &no_ops, NULL, &n, &err);
	assert_int_equal(n != NULL, r == COLLNET_OK);
	assert_int_equal(err.text[0] != '\0', r != COLLNET_OK);
	cn_node_free(n);
	return r;
}

#define CASE(name, code)                                                                           \
	static void name(struct cn_node_config *c)                                                 \
	{                                                                                          \
		code;                                                                              \
	}
CASE(nothing, (void)c)
CASE(no_epoch, c->epoch = 0)
CASE(no_name, c->name[0] = '\0')
CASE(bad_name, c->name[0] = ' ')
CASE(small_mtu, c->mtu = 575)
CASE(big_mtu, c->mtu = 65001)
CASE(small_udp, (c->mtu = 603, c->encapsulation = CN_ENCAPSULATION_UDP))
CASE(least_udp, (c->mtu = 604, c->encapsulation = CN_ENCAPSULATION_UDP))
CASE(no_window, c->send_window = 1)
CASE(big_window, c->send_window = 1025)
CASE(no_peers, c->max_peers = 0)
CASE(many_peers, c->max_peers = 65536)
CASE(no_pool, c->pool_frames = 15)
CASE(no_time, c->dead_after = 0)
CASE(no_hello, c->hello_interval = 0)
CASE(no_rto, c->rto_min = 0)
CASE(least, (c->mtu = 576, c->send_window = 2, c->max_peers = 1, c->pool_frames = 16))
CASE(most_bytes, (c->mtu = 65000, c->send_window = 1024, c->max_peers = 16))
CASE(most_peers, (c->mtu = 576, c->max_peers = 65535))

static void node_new__bounds(void **state)
{
	void (*const bad[])(struct cn_node_config *) = {
		no_epoch,   no_name,  bad_name,	  small_udp, small_mtu, big_mtu,  no_window,
		big_window, no_peers, many_peers, no_pool,   no_time,	no_hello, no_rto,
	};

	(void)state;
	assert_int_equal(with(nothing), COLLNET_OK);
	assert_int_equal(with(least), COLLNET_OK);
	assert_int_equal(with(least_udp), COLLNET_OK);
	assert_int_equal(with(most_bytes), COLLNET_OK);
	assert_int_equal(with(most_peers), COLLNET_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(with(bad[i]), COLLNET_EINVAL);
	}
}

/* ---- control messages -------------------------------------------------------------------- */

static void node_control__in_order_with_data(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_log_clear(p);
	p->ns_per_byte = 0;
	p->loss = 200000;
	pair_send(p, 0, 1, 3, 1000);
	pair_poke(p);
	assert_int_equal(control(p, 0, 1, "one"), COLLNET_OK);
	assert_int_equal(control(p, 0, 1, "two"), COLLNET_OK);
	pair_send(p, 0, 1, 40, 1000);
	pair_poke(p);
	assert_int_equal(control(p, 0, 1, "three"), COLLNET_OK);
	pair_send(p, 0, 1, 3, 1000);
	assert_true(pair_run_flows(p, 60 * 1000 * CN_MS));
	assert_string_equal(p->log, "b: control \"one\" after 3\n"
				    "b: control \"two\" after 3\n"
				    "b: control \"three\" after 43\n");
	assert_int_equal(p->nodes[0].node->pool.free, p->nodes[0].node->pool.count);
	pair_free(p);
}

/* More than a window of them, with losses: all, in order, and the buffers come back. */
static void node_control__many(void **state)
{
	struct pair *p = pair_up(2, SEED);
	char text[64];

	(void)state;
	p->loss = 50000;
	for (int i = 0; i < 500; i++) {
		snprintf(text, sizeof(text), "a message of more than forty bytes, number %d", i);
		assert_int_equal(control(p, i % 2, 1 - i % 2, text), COLLNET_OK);
	}
	pair_run(p, 60 * 1000 * CN_MS);
	assert_int_equal(p->nodes[0].control_received, 250);
	assert_int_equal(p->nodes[1].control_received, 250);
	assert_int_equal(p->nodes[0].node->pool.free, p->nodes[0].node->pool.count);
	pair_free(p);
}

static void node_control__bounds(void **state)
{
	static uint8_t big[1477];
	struct pair *p = pair_up(3, SEED);
	struct cn_node *n = p->nodes[0].node;
	struct cn_peer *peer = pair_peer(p, 0, 1);
	uint32_t sent = 0;

	(void)state;
	assert_int_equal(cn_node_payload(n), 1476);
	assert_int_equal(cn_node_control(n, peer, big, 0), COLLNET_EINVAL);
	assert_int_equal(cn_node_control(n, peer, big, 1477), COLLNET_EINVAL);
	while (cn_node_control(n, peer, big, 1476) == COLLNET_OK) {
		sent++;
	}
	assert_int_equal(sent, CN_CONTROL_WAITING);
	assert_int_equal(cn_node_control(n, peer, big, 10), COLLNET_ELIMIT);
	/* the others have theirs */
	assert_int_equal(cn_node_control(n, pair_peer(p, 0, 2), big, 1476), COLLNET_OK);
	pair_run(p, 10 * 1000 * CN_MS);
	assert_int_equal(p->nodes[1].control_received, sent);
	assert_int_equal(n->pool.free, n->pool.count);
	/* what waits when the peer dies is given back, too */
	p->cut[0][1] = p->cut[1][0] = true;
	for (uint32_t i = 0; i < CN_CONTROL_WAITING; i++) {
		assert_int_equal(cn_node_control(n, peer, big, 1476), COLLNET_OK);
	}
	pair_run(p, 3000 * CN_MS);
	assert_int_equal(n->pool.free, n->pool.count);
	assert_int_equal(cn_node_control(n, peer, big, 10), COLLNET_EPEER);
	pair_free(p);
}

/* ---- streams whose buffers are wanted back ------------------------------------------------ */

static void node_detach__copies(void **state)
{
	struct pair *p = pair_up(2, SEED);
	struct pair_flow *f = &p->flows[0][1];

	(void)state;
	p->cut[0][1] = true;
	p->ns_per_byte = 0;
	pair_send(p, 0, 1, 6, 900);
	pair_poke(p);
	assert_int_equal(f->sent, 6);
	for (int i = 0; i < 6; i++) {
		assert_true(cn_node_detach(p->nodes[0].node, &f->taken[i], 1));
	}
	memset(f->slots, 0xee, 6 * 1476);
	assert_int_equal(p->nodes[0].node->pool.free, p->nodes[0].node->pool.count - 6);
	p->cut[0][1] = false;
	pair_run(p, 1000 * CN_MS); /* every byte is compared where it arrives */
	assert_int_equal(f->received, 6);
	assert_int_equal(f->acked, 0); /* tokens are not given back */
	assert_int_equal(p->nodes[0].node->pool.free, p->nodes[0].node->pool.count);
	pair_free(p);
}

static void tight_pool(struct cn_node_config *c)
{
	c->pool_frames = 16;
	c->max_peers = 2;
}

static void node_detach__all_or_nothing(void **state)
{
	struct pair *p = pair_new(2, SEED, tight_pool);
	struct pair_flow *f = &p->flows[0][1];
	struct cn_node *n = p->nodes[0].node;
	void *held[64];
	uint32_t count = 0;

	(void)state;
	assert_true(pair_run_up(p, 100 * CN_MS));
	p->cut[0][1] = true;
	p->ns_per_byte = 0;
	pair_send(p, 0, 1, 1, 900);
	pair_poke(p);
	assert_false(cn_node_detach(n, &f->taken[0], 0));
	while (count < 64 && (held[count] = cn_pool_get(&n->pool)) != NULL) {
		count++;
	}
	assert_false(cn_node_detach(n, &f->taken[0], 10));
	cn_pool_put(&n->pool, held[--count]);
	while (count > 0) {
		cn_pool_put(&n->pool, held[--count]);
	}
	assert_true(cn_node_detach(n, &f->taken[0], 1));
	assert_true(cn_node_detach(n, &f->taken[1], 0)); /* nothing under way: nothing to do */
	pair_free(p);
}

/* The copies take more than half of what is free: still all of it, and it says so. */
static void node_detach__nearly_all_buffers(void **state)
{
	struct pair *p = pair_new(2, SEED, tight_pool);
	struct pair_flow *f = &p->flows[0][1];
	struct cn_node *n = p->nodes[0].node;
	uint32_t half = n->pool.count / 2;

	(void)state;
	assert_true(pair_run_up(p, 100 * CN_MS));
	p->cut[0][1] = true;
	p->ns_per_byte = 0;
	pair_send(p, 0, 1, half, 900);
	pair_poke(p);
	for (uint32_t i = 0; i < half; i++) { /* as one stream, by the first one's token */
		const struct cn_rtx_queue *q = &pair_peer(p, 0, 1)->tx.queue;

		cn_rtx_at(q, q->una + i)->token = &f->taken[0];
	}
	assert_false(cn_node_detach(n, &f->taken[0], half - 1));
	assert_true(cn_node_detach(n, &f->taken[0], half));
	assert_int_equal(n->pool.free, n->pool.count - half);
	assert_int_equal(f->acked, 0);
	pair_free(p);
}

/* Peers with frames of this token are asked, but not for those that were asked for. */
static void node_request_acks__of_a_token(void **state)
{
	struct pair *p = pair_up(3, SEED);
	struct cn_node *n = p->nodes[0].node;

	(void)state;
	p->ns_per_byte = 0;
	pair_trace(p);
	pair_send(p, 0, 1, 2, 100);
	pair_send(p, 0, 2, 1, 100);
	pair_poke(p);
	pair_assert_trace(p, "a: DATA 0; a: DATA 0; a: DATA 1");
	cn_node_request_acks(n, &p->flows[0][1].taken[0]);
	pair_poke(p);
	pair_assert_trace(p, "a: ACK 0 ACKREQ");
	cn_node_request_acks(n, &p->flows[0][1].taken[1]);
	cn_node_request_acks(n, &p->flows[0][1].taken[2]);
	pair_poke(p);
	pair_assert_trace(p, "");
	pair_run(p, 5 * CN_MS);
	pair_assert_trace(p, "b: ACK 2");
	assert_int_equal(cn_peer_in_flight(pair_peer(p, 0, 2)), 1);
	pair_free(p);
}

/* Tombstones: the sequence goes on, and the data that arrives is right. */
static void node_abandon__sequence_goes_on(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 30; seed++) {
		struct pair *p = pair_new(2, seed, NULL);
		struct pair_flow *f = &p->flows[0][1];

		assert_true(pair_run_up(p, 2000 * CN_MS));
		p->gaps_allowed = true;
		p->loss = seed % 3 * 50000;
		p->cut[0][1] = seed % 2;
		pair_send(p, 0, 1, 100, 900);
		pair_run(p, seed * 30 * CN_US);
		for (uint32_t i = 10; i < f->sent && i < 60; i++) {
			if (f->taken[i]) {
				cn_node_abandon(p->nodes[0].node, &f->taken[i]);
				memset(f->slots + i * 1476, 0xee, 1476);
				f->taken[i] = 0;
				f->acked++;
			}
		}
		p->cut[0][1] = false;
		for (int i = 0; i < 3000 && f->acked < 100; i++) {
			pair_run(p, 10 * CN_MS);
		}
		assert_int_equal(f->acked, 100);
		assert_true(f->received >= 50);
		assert_int_equal(control(p, 0, 1, "after all"), COLLNET_OK);
		pair_run(p, 3000 * CN_MS);
		assert_non_null(strstr(p->log, "after all"));
		pair_free(p);
	}
}

/* A stream in buffers of the pool that was handed over: they come back whatever happens to it. */
static struct cn_peer *owned_peer;
static uint32_t owned_left, owned_acks;
static uint8_t owned_token;

static bool owned_pull(void *ctx, cn_time now, struct cn_tx *out)
{
	struct pair_node *me = ctx;
	uint8_t *b;

	(void)now;
	if (owned_left == 0 || cn_peer_room(owned_peer) == 0) {
		return false;
	}
	owned_left--;
	b = cn_node_buffer_get(me->node);
	assert_non_null(b);
	memset(b, 7, 500);
	*out = (struct cn_tx){ .peer = owned_peer,
			       .type = CN_TYPE_CONTROL,
			       .len = 500,
			       .payload = b,
			       .owned = true,
			       .token = &owned_token };
	return true;
}

static void owned_acked(void *ctx, void *token, bool refused)
{
	(void)ctx;
	(void)refused;
	assert_ptr_equal(token, &owned_token);
	owned_acks++;
}

static void node_owned__buffers_return(void **state)
{
	(void)state;
	for (int how = 0; how < 6; how++) {
		struct pair *p = pair_up(2, SEED);
		struct cn_node *n = p->nodes[0].node;
		const uint32_t fits = cn_encapsulation_bytes(n->config.encapsulation) +
				      CN_WIRE_HEADER + 500;
		struct cn_node_ops ops = *n->ops;

		ops.pull = owned_pull;
		ops.acked = owned_acked;
		n->ops = &ops;
		owned_peer = pair_peer(p, 0, 1);
		owned_left = 10;
		owned_acks = 0;
		p->cut[0][1] = true;
		p->ns_per_byte = 0;
		pair_poke(p);
		assert_int_equal(n->pool.free, n->pool.count - 10);
		if (how == 1) {
			assert_true(cn_node_detach(n, &owned_token, 0));
		} else if (how == 2) {
			cn_node_abandon(n, &owned_token);
		} else if (how == 3 || how == 4) { /* those that do not fit, and only those */
			assert_true(cn_node_detach(n, &owned_token, 0));
			cn_node_abandon_longer(n, how == 3 ? fits - 1 : fits);
		} else if (how == 5) { /* of messages to endpoints, which are not detached */
			cn_node_abandon_longer(n, fits - 1);
			assert_int_equal(owned_acks, 10);
		}
		p->cut[0][1] = false;
		pair_run(p, 2000 * CN_MS);
		assert_int_equal(p->nodes[1].control_received,
				 how == 2 || how == 3 || how == 5 ? 0 : 10);
		assert_int_equal(owned_acks, how == 0 || how == 5 ? 10 : 0);
		assert_int_equal(n->pool.free, n->pool.count);
		pair_free(p);
	}
}

/* ---- memory and time ---------------------------------------------------------------------- */

static void node__no_allocation_a_frame(void **state)
{
	struct pair *p = pair_up(3, SEED);

	(void)state;
	pair_reserve(p);
	for (int round = 0; round < 2; round++) {
		uint64_t before = allocations;

		p->loss = 10000;
		pair_send(p, 0, 1, 3000, 1400);
		pair_send(p, 1, 2, 3000, 0);
		pair_send(p, 2, 0, 3000, 0);
		assert_true(pair_run_flows(p, 600 * 1000 * CN_MS));
		for (int i = 0; i < 100; i++) {
			assert_int_equal(control(p, 0, 2, "a control message"), COLLNET_OK);
		}
		pair_run(p, 3000 * CN_MS);
		if (round == 1) { /* the first one was the harness's own, too */
			assert_true(allocations == before);
		} else {
			assert_true(allocations > 0); /* and they are counted at all */
		}
	}
	pair_free(p);
}

/* A peer that does not answer does not delay the others. */
static void node__dead_peer_does_not_starve(void **state)
{
	struct pair *p = pair_up(3, SEED);
	cn_time from = p->now;

	(void)state;
	p->cut[0][1] = p->cut[1][0] = true;
	pair_send(p, 0, 1, 1000, 1400);
	pair_send(p, 0, 2, 1000, 1400);
	pair_poke(p);
	while (p->flows[0][2].received < 1000 && pair_step(p, from + 1000 * CN_MS)) {
	}
	assert_int_equal(p->flows[0][2].received, 1000);
	assert_uint_in_range((p->now - from) / CN_US, 1, 50000);
	pair_free(p);
}

/* Late calls, as of a process that was stopped: no storm, and no peer goes down. */
static void node__stopped_for_long(void **state)
{
	struct pair *p = pair_up(2, SEED);
	uint64_t frames;

	(void)state;
	pair_send(p, 0, 1, 10, 100);
	cn_peer_expect(p->nodes[0].node, p->now, pair_peer(p, 0, 1), 1);
	pair_run(p, CN_MS);
	p->now += 3600 * 1000 * CN_MS;
	frames = p->frames;
	pair_run(p, 100 * CN_MS);
	assert_true(p->frames - frames < 60);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	assert_int_equal(p->nodes[0].downs + p->nodes[1].downs, 0);
	pair_free(p);
}

static void many(struct cn_node_config *c)
{
	c->max_peers = 2000;
}

/* A thousand nodes: hellos become rare, and no peer goes down for that. */
static void node__hellos_thin_out(void **state)
{
	struct pair *p = pair_new(2, SEED, many);
	uint8_t f[CN_FRAME_HEAD], mac[6] = { 2 };
	struct cn_hello h = { .mtu = 1500, .nonce = 1 };
	struct collnet_node_info info;
	uint64_t before;

	(void)state;
	assert_true(pair_run_up(p, 100 * CN_MS));
	for (uint32_t i = 0; i < 1999; i++) { /* node a's only */
		size_t len;

		mac[4] = (uint8_t)(1 + i / 250);
		mac[5] = (uint8_t)(i % 250);
		h.epoch = i + 1;
		snprintf(h.name, sizeof(h.name), "x%u", i);
		len = pair_hello(p, 0, mac, &h, CN_FLAG_UNICAST, true, f);
		pair_input(p, 0, f, len);
	}
	assert_int_equal(cn_node_peers(p->nodes[0].node), 2000);
	pair_run(p, 60 * 1000 * CN_MS);
	before = pair_stats(p, 0).frames_sent;
	pair_run(p, 60 * 1000 * CN_MS);
	assert_uint_in_range(pair_stats(p, 0).frames_sent - before, 5, 7);
	pair_stop(p, 1);
	pair_run(p, 25 * 1000 * CN_MS);
	cn_peer_info(pair_peer(p, 0, 1), p->now, &info);
	assert_int_equal(info.alive, 1);
	pair_run(p, 25 * 1000 * CN_MS);
	cn_peer_info(pair_peer(p, 0, 1), p->now, &info);
	assert_int_equal(info.alive, 0);
	pair_free(p);
}

/* Bits flip anywhere in frames, beyond what any wire does: nothing breaks, and afterwards, at
 * most after new lives, they talk again. */
static void node__garbled_frames(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 40; seed++) {
		struct pair *p = pair_new(2, seed, NULL);

		assert_true(pair_run_up(p, 2000 * CN_MS));
		p->gaps_allowed = true;
		p->garble = 100000;
		p->loss = 20000;
		pair_send(p, 0, 1, 300, 300);
		pair_send(p, 1, 0, 300, 300);
		cn_peer_expect(p->nodes[0].node, p->now, pair_peer(p, 0, 1), 1);
		pair_run(p, 2000 * CN_MS);
		p->loss = 0;
		for (uint32_t i = 0; i < 2; i++) { /* no new frames; the old ones run out */
			p->flows[i][1 - i].total = p->flows[i][1 - i].sent;
		}
		p->garble = 1; /* only so that bytes are not compared */
		pair_run(p, 30 * 1000 * CN_MS);
		p->garble = 0;
		p->flows[0][1].acked = p->flows[0][1].received = p->flows[0][1].total;
		p->flows[1][0].acked = p->flows[1][0].received = p->flows[1][0].total;
		if (!pair_run_up(p, 3000 * CN_MS)) {
			fail_msg("seed %u: not up again", seed);
		}
		pair_free(p);
	}
}

static void node_stats__counts(void **state)
{
	struct pair *p = pair_up(2, SEED);
	struct collnet_stats s;

	(void)state;
	pair_send(p, 0, 1, 100, 0);
	assert_true(pair_run_flows(p, 1000 * CN_MS));
	s = pair_stats(p, 0);
	assert_int_equal(s.size, sizeof(s));
	assert_int_equal(s.data_sent, 100);
	assert_int_equal(s.nodes, 2);
	assert_int_equal(s.mtu, 1500);
	assert_true(s.frames_sent >= 100 && s.bytes_sent >= 100 * 60);
	assert_int_equal(pair_stats(p, 1).frames_received, s.frames_sent);
	assert_int_equal(pair_stats(p, 1).bytes_received, s.bytes_sent);
	assert_int_equal(pair_stats(p, 1).data_received, 100);
	assert_int_equal(s.bad_frames + s.foreign_frames + s.stale_frames, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_new__bounds),
		cmocka_unit_test(node_control__in_order_with_data),
		cmocka_unit_test(node_control__many),
		cmocka_unit_test(node_control__bounds),
		cmocka_unit_test(node_detach__copies),
		cmocka_unit_test(node_detach__all_or_nothing),
		cmocka_unit_test(node_detach__nearly_all_buffers),
		cmocka_unit_test(node_request_acks__of_a_token),
		cmocka_unit_test(node_abandon__sequence_goes_on),
		cmocka_unit_test(node_owned__buffers_return),
		cmocka_unit_test(node__no_allocation_a_frame),
		cmocka_unit_test(node__dead_peer_does_not_starve),
		cmocka_unit_test(node__stopped_for_long),
		cmocka_unit_test(node__hellos_thin_out),
		cmocka_unit_test(node__garbled_frames),
		cmocka_unit_test(node_stats__counts),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
