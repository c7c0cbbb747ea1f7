/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/hello.c: the handshake, restarts, and hellos that are forged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 515u

static struct pair *up(uint32_t nodes, void (*change)(struct cn_node_config *))
{
	struct pair *p = pair_new(nodes, SEED, change);

	assert_true(pair_run_up(p, 2000 * CN_MS));
	pair_run(p, 1000 * CN_MS);
	pair_log_clear(p);
	return p;
}

static void talks(struct pair *p)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct pair_flow *f = &p->flows[i][1 - i];

		f->sent = f->total = f->received = f->acked = 0;
		pair_send(p, i, 1 - i, 20, 500);
	}
	if (!pair_run_flows(p, 1500 * CN_MS)) {
		fail_msg("seed %u: they do not talk\n%s", SEED, p->log);
	}
}

/* ---- the handshake ------------------------------------------------------------------------ */

/* Writes down hellos as "a>b hello nonce echo"; a nonce by the node whose present one it is. */
static bool note_hello(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	static uint64_t sent[2];
	struct cn_wire w;
	struct cn_hello h;
	uint64_t nonce, echo;

	assert_int_equal(cn_wire_get(f + CN_ETH_HEADER, len - CN_ETH_HEADER, &w), CN_WIRE_OK);
	if (w.type != CN_TYPE_HELLO) {
		return true;
	}
	assert_true(cn_hello_get(f + CN_HEAD, w.length, &h));
	nonce = (uint64_t)w.stream << 32 | h.nonce;
	echo = (uint64_t)w.seq << 32 | w.ack;
	sent[from] = nonce != 0 ? nonce : sent[from];
	pair_log(p, "%c>%c hello%s%s%s\n", 'a' + (int)from, 'a' + (int)to,
		 nonce != 0 ? " nonce" : "",
		 echo == 0	    ? ""
		 : echo == sent[to] ? " echo"
				    : " stale",
		 (w.flags & CN_FLAG_SOLICIT) != 0 ? " want" : "");
	return true;
}

/* A node that runs discovers one that starts. */
static void hello__three_ways(void **state)
{
	struct pair *p = pair_new(2, SEED, NULL);

	(void)state;
	pair_stop(p, 1);
	pair_run(p, 1900 * CN_MS);
	p->filter = note_hello;
	pair_start(p, 1);
	assert_true(pair_run_up(p, 10 * CN_MS));
	assert_string_equal(p->log, "b>a hello want\n"
				    "a>b hello nonce want\n"
				    "b>a hello nonce echo want\n"
				    "a: up b\n"
				    "a>b hello nonce echo\n"
				    "b: up a\n");
	pair_free(p);
}

/* It restarts: the challenge carries the nonce of the session, and the new one echoes it. As that
 * is no proof, a second one carries a fresh nonce. */
static void hello__restart(void **state)
{
	struct pair *p = up(2, NULL);

	(void)state;
	pair_stop(p, 1);
	p->filter = note_hello;
	pair_start(p, 1);
	assert_true(pair_run_up(p, 10 * CN_MS));
	assert_string_equal(p->log, "b>a hello want\n"
				    "a>b hello nonce stale\n"
				    "b>a hello nonce echo want\n"
				    "a>b hello nonce echo\n"
				    "b: up a\n"
				    "b>a hello nonce echo\n"
				    "a: down b restarted\n"
				    "a: up b\n");
	pair_free(p);
}

/* Any one hello of the handshake or of a restart is lost: it takes until the next one. */
static uint32_t nth;

static bool lose_nth(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	(void)p;
	(void)from;
	(void)to;
	(void)len;
	return (f[CN_ETH_HEADER + 2] & 15) != CN_TYPE_HELLO || nth-- != 0;
}

static void hello__any_one_is_lost(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 16; k++) {
		struct pair *p = pair_new(2, SEED + k, NULL);

		p->filter = lose_nth;
		nth = k;
		assert_true(pair_run_up(p, 700 * CN_MS));
		talks(p);
		pair_stop(p, 1);
		nth = k;
		memset(p->flows[1][0].taken, 0, PAIR_SLOTS);
		pair_start(p, 1);
		pair_run(p, 700 * CN_MS);
		assert_true(pair_run_up(p, 100 * CN_MS));
		talks(p);
		pair_free(p);
	}
}

/* ---- forgers ------------------------------------------------------------------------------ */

/* What an off-path attacker can send in the name of b, or of a new node: everything but the echo.
 */
static void forge(struct pair *p, uint32_t kind)
{
	struct cn_peer *b = pair_peer(p, 0, 1);
	struct cn_hello h = { .epoch = b->epoch, .mtu = 1500, .nonce = 1, .name = "b" };
	static const uint8_t flags[] = {
		0,
		CN_FLAG_SOLICIT,
		CN_FLAG_UNICAST,
		CN_FLAG_UNICAST | CN_FLAG_SOLICIT,
		CN_FLAG_UNICAST | CN_FLAG_ACKREQ,
		CN_FLAG_BYE,
		CN_FLAG_BYE | CN_FLAG_UNICAST,
	};
	uint8_t f[CN_FRAME_HEAD];
	size_t len;

	if (kind % 3 == 1) {
		h.epoch++;
	} else if (kind % 3 == 2) {
		h.name[0] = 'z';
		h.mtu = 9000;
	}
	len = pair_hello(p, 0, b->mac, &h, flags[kind / 3 % sizeof(flags)], false, f);
	pair_inject(p, 0, f, len, p->now + CN_US);
}

#define KINDS 21u

/* Nothing of it changes anything, in the middle of traffic; and answers keep their distance. */
static void hello__forged(void **state)
{
	struct pair *p = up(2, NULL);
	uint64_t sent;

	(void)state;
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		for (uint32_t i = 0; i < 100; i++) {
			forge(p, kind);
			pair_run(p, 100 * CN_US);
		}
	}
	assert_string_equal(p->log, "");
	assert_string_equal(cn_peer_name(pair_peer(p, 0, 1)), "b");
	talks(p);
	sent = p->frames;
	for (uint32_t i = 0; i < 10000; i++) {
		forge(p, i % KINDS);
		pair_run(p, 20 * CN_US);
	}
	/* 200 ms: 10 times 20 ms, two kinds of causes, a hello and its answer */
	assert_uint_in_range(p->frames - sent, 10, 10 * 2 * 2 + 6);
	assert_string_equal(p->log, "");
	talks(p);
	pair_free(p);
}

/* The same while b is not up, and wants to be. */
static void hello__forged_while_it_comes(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		struct pair *p = up(2, NULL);

		pair_stop(p, 1);
		pair_run(p, kind * CN_MS);
		for (uint32_t i = 0; i < 50; i++) {
			forge(p, kind);
			pair_run(p, 50 * CN_US);
		}
		pair_start(p, 1);
		for (uint32_t i = 0; i < 2000; i++) {
			forge(p, kind);
			pair_run(p, 50 * CN_US);
		}
		assert_true(pair_is_up(p, 0, 1) && pair_is_up(p, 1, 0));
		assert_int_equal(p->nodes[0].downs, 1);
		assert_int_equal(p->nodes[1].downs, 0);
		talks(p);
		pair_free(p);
	}
}

/* ---- inventors ---------------------------------------------------------------------------- */

static uint32_t lines;
static char last_line[256];

static void count_line(void *arg, enum collnet_log_level level, const char *line)
{
	(void)level;
	(void)arg;
	lines++;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static void many_peers(struct cn_node_config *c)
{
	c->max_peers = 4096;
}

/* Nodes that echo nothing: no entry, no upcall, no line; answers are bounded. */
static void hello__invented_nodes(void **state)
{
	struct pair *p = up(2, many_peers);
	struct cn_hello h = { .epoch = 9, .mtu = 1500, .nonce = 1, .name = "nobody" };
	uint64_t sent = p->frames;

	(void)state;
	lines = 0;
	collnet_set_log(count_line, NULL);
	for (uint32_t i = 0; i < 100000; i++) {
		const uint8_t mac[6] = { 0x0a,	    0, 0, (uint8_t)(i >> 16), (uint8_t)(i >> 8),
					 (uint8_t)i };
		uint8_t f[CN_FRAME_HEAD];
		size_t len = pair_hello(p, 0, mac, &h,
					i % 2 == 0 ? CN_FLAG_UNICAST : CN_FLAG_SOLICIT, false, f);

		pair_inject(p, 0, f, len, p->now + CN_US);
		pair_run(p, 10 * CN_US);
	}
	collnet_set_log(NULL, NULL);
	assert_int_equal(cn_node_peers(p->nodes[0].node), 1);
	assert_int_equal(pair_stats(p, 0).nodes, 2);
	assert_int_equal(lines, 0);
	assert_uint_in_range(p->frames - sent, 1000, 2 * 4096 + 20); /* of 100,000 in a second */
	assert_string_equal(p->log, "");
	talks(p);
	pair_free(p);
}

/* One that echoes, with another epoch each time: it is believed, and its lines are few. */
static void hello__log_is_bounded(void **state)
{
	struct pair *p = up(2, NULL);
	struct cn_hello h = { .epoch = 9, .mtu = 9000, .nonce = 1, .name = "x" };
	const uint8_t mac[6] = { 0x0a, 1, 1, 1, 1, 1 };

	(void)state;
	lines = 0;
	collnet_set_log(count_line, NULL);
	for (uint32_t i = 0; i < 10000; i++) {
		uint8_t f[CN_FRAME_HEAD];
		size_t len;

		h.epoch++;
		len = pair_hello(p, 0, mac, &h, CN_FLAG_UNICAST, true, f);
		pair_input(p, 0, f, len);
	}
	assert_uint_in_range(lines, 1, 10);
	pair_run(p, 20 * 1000 * CN_MS);
	lines = 0;
	for (uint32_t i = 0; i < 2; i++) {
		uint8_t f[CN_FRAME_HEAD];
		size_t len;

		h.epoch++;
		len = pair_hello(p, 0, mac, &h, CN_FLAG_UNICAST, true, f);
		pair_input(p, 0, f, len);
	}
	collnet_set_log(NULL, NULL);
	assert_uint_in_range(lines, 2, 3); /* "9992 more lines ...", and its own */
	assert_non_null(strstr(last_line, "MTU 9000"));
	pair_free(p);
}

/* ---- names -------------------------------------------------------------------------------- */

static void two_of_a_name(struct cn_node_config *c)
{
	c->name[0] = c->name[0] == 'c' ? 'b' : c->name[0];
}

/* What the node knows of one with which no session is possible. */
static void assert_mismatch(struct pair *p, uint32_t at, uint32_t of, const char *text)
{
	struct cn_node *n = p->nodes[at].node;
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];
	char out[CN_FOREIGN_VERSION_TEXT];

	assert_int_equal(cn_node_foreign_versions(n, p->now, s), 1);
	assert_memory_equal(s[0].mac, p->nodes[of].config.mac, 6);
	assert_null(s[0].peer);
	cn_foreign_version_text(n, &s[0].what, out);
	assert_string_equal(out, text);
}

/*
 * The first node keeps the name while it answers, also if no operation waits for it. A third node
 * says so once. The other one has the name, and nothing is said of it, once it is free.
 */
static void hello__name_is_taken(void **state)
{
	struct pair *p = pair_new(3, SEED, two_of_a_name);
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];

	(void)state;
	pair_stop(p, 2);
	assert_true(pair_run_up(p, 100 * CN_MS));
	pair_run(p, 1000 * CN_MS);
	pair_log_clear(p);
	lines = 0;
	collnet_set_log(count_line, NULL);
	pair_start(p, 2);
	pair_run(p, 60000 * CN_MS);
	collnet_set_log(NULL, NULL);
	assert_string_equal(p->log, "");
	assert_int_equal(lines, 3); /* one on each node */
	assert_mismatch(p, 0, 2, "is called b, as another node");
	assert_mismatch(p, 1, 2, "is called b, as this node");
	assert_mismatch(p, 2, 1, "is called b, as this node");
	assert_true(cn_peer_is_replaced(pair_peer(p, 0, 2)));
	assert_ptr_equal(cn_node_find(p->nodes[0].node, "b"), pair_peer(p, 0, 1));
	talks(p);
	pair_stop(p, 1);
	pair_run(p, 5000 * CN_MS);
	assert_ptr_equal(cn_node_find(p->nodes[0].node, "b"), pair_peer(p, 0, 2));
	assert_true(pair_is_up(p, 0, 2) && pair_is_up(p, 2, 0));
	assert_int_equal(cn_node_foreign_versions(p->nodes[0].node, p->now, s), 0);
	assert_true(cn_peer_is_replaced(pair_peer(p, 0, 1)));
	pair_free(p);
}

/*
 * A node crashes and comes back with another address: until the first one is given up it is
 * refused, which is no conflict. The former entry is not listed, also after the new one is down;
 * and it is again with the former address.
 */
static void hello__another_address(void **state)
{
	struct pair *p = up(3, NULL);
	struct cn_peer *former = pair_peer(p, 0, 1), *peer;
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];

	(void)state;
	pair_stop(p, 1);
	pair_run(p, 200 * CN_MS);
	assert_true(pair_is_up(p, 0, 1));
	lines = 0;
	collnet_set_log(count_line, NULL);
	p->nodes[1].config.mac[4] = 7;
	pair_start(p, 1);
	pair_run(p, 700 * CN_MS);
	peer = pair_peer(p, 0, 1);
	assert_int_equal(peer->state, CN_PEER_DOWN);
	assert_int_equal(cn_node_foreign_versions(p->nodes[0].node, p->now, s), 0);
	pair_run(p, 4000 * CN_MS);
	collnet_set_log(NULL, NULL);
	assert_int_equal(lines, 0);
	assert_true(pair_is_up(p, 0, 1));
	assert_true(cn_peer_is_replaced(former));
	assert_false(cn_peer_is_replaced(peer));
	pair_stop(p, 1);
	pair_expect(p, 0, 1);
	pair_run(p, 4000 * CN_MS);
	assert_int_equal(peer->state, CN_PEER_DOWN);
	assert_true(cn_peer_is_replaced(former));
	assert_false(cn_peer_is_replaced(peer));
	p->nodes[1].config.mac[4] = 0;
	pair_start(p, 1);
	pair_run(p, 4000 * CN_MS);
	assert_int_equal(former->state, CN_PEER_UP);
	assert_true(cn_peer_is_replaced(peer));
	assert_false(cn_peer_is_replaced(former));
	pair_free(p);
}

/* A node that was known by a name of its own comes back with one that is taken, and then with its
 * own again. */
static void hello__known_node_takes_a_name(void **state)
{
	struct pair *p = up(3, NULL);
	struct cn_peer *c = pair_peer(p, 0, 2);

	(void)state;
	for (uint32_t own = 0; own < 2; own++) {
		pair_stop(p, 2);
		p->nodes[2].config.name[0] = own ? 'c' : 'b';
		pair_start(p, 2);
		pair_run(p, 3000 * CN_MS);
		assert_int_equal(c->state, own ? CN_PEER_UP : CN_PEER_DOWN);
		assert_int_equal(cn_peer_is_replaced(c), !own);
	}
	pair_free(p);
}

/* A mismatch is forgotten as soon as a session is established. */
static void hello__mismatch_is_repaired(void **state)
{
	const struct cn_mismatch udp = { .version = CN_WIRE_VERSION,
					 .encapsulation = CN_ENCAPSULATION_UDP };
	struct pair *p = up(2, NULL);
	struct cn_foreign_version s[CN_FOREIGN_VERSIONS];

	(void)state;
	pair_stop(p, 1);
	pair_run(p, CN_MS);
	cn_foreign_version_record(p->nodes[0].node, p->nodes[1].config.mac, &udp);
	assert_int_equal(cn_node_foreign_versions(p->nodes[0].node, p->now, s), 1);
	pair_start(p, 1);
	pair_run(p, 1000 * CN_MS);
	assert_true(pair_is_up(p, 0, 1));
	assert_int_equal(cn_node_foreign_versions(p->nodes[0].node, p->now, s), 0);
	pair_free(p);
}

static void all_of_a_name(struct cn_node_config *c)
{
	strcpy(c->name, "twin");
}

/* Two nodes of one name refuse each other: each says why, once, and so can errors. */
static void hello__name_of_this_node(void **state)
{
	struct pair *p = pair_new(2, SEED, all_of_a_name);

	(void)state;
	lines = 0;
	collnet_set_log(count_line, NULL);
	pair_run(p, 5000 * CN_MS);
	collnet_set_log(NULL, NULL);
	assert_int_equal(lines, 2);
	assert_true(p->frames < 40); /* broadcasts, to which nobody replies */
	assert_non_null(strstr(last_line, " is called twin, as this node: give every node a name"));
	for (uint32_t i = 0; i < 2; i++) {
		assert_false(pair_is_up(p, i, 1 - i));
		assert_mismatch(p, i, 1 - i, "is called twin, as this node");
	}
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello__three_ways),
		cmocka_unit_test(hello__restart),
		cmocka_unit_test(hello__any_one_is_lost),
		cmocka_unit_test(hello__forged),
		cmocka_unit_test(hello__forged_while_it_comes),
		cmocka_unit_test(hello__invented_nodes),
		cmocka_unit_test(hello__log_is_bounded),
		cmocka_unit_test(hello__name_is_taken),
		cmocka_unit_test(hello__another_address),
		cmocka_unit_test(hello__known_node_takes_a_name),
		cmocka_unit_test(hello__mismatch_is_repaired),
		cmocka_unit_test(hello__name_of_this_node),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
