/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/peer.c: who has a place in a table of nodes that is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "log_capture.h"
#include "pair.h"
#include "proto/connect.h"

#define SEED 4242u

static void one_peer(struct cn_node_config *c)
{
	c->max_peers = 1;
}

static void peer__table_is_full(void **state)
{
	struct pair *p = pair_new(3, SEED, one_peer);

	(void)state;
	pair_run(p, 3000 * CN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(cn_node_peers(p->nodes[i].node), 1);
	}
	pair_free(p);
}

/*
 * A hello in the name of an invented node; with `proof`, of one that receives what is sent to it.
 */
static void invent_as(struct pair *p, uint32_t to, const char *name, uint32_t number, bool proof)
{
	struct cn_hello h = { .epoch = 1000 + number, .mtu = p->nodes[to].config.mtu, .nonce = 1 };
	const uint8_t mac[6] = { 0x0a, 0, 0, 0, (uint8_t)(number >> 8), (uint8_t)number };
	uint8_t f[CN_FRAME_HEAD];
	size_t len;

	snprintf(h.name, sizeof(h.name), "%s", name);
	len = pair_hello(p, to, mac, &h, CN_FLAG_UNICAST, proof, f);
	pair_inject(p, to, f, len, p->now + 1);
}

static void invent(struct pair *p, uint32_t to, uint32_t number, bool proof)
{
	char name[16];

	snprintf(name, sizeof(name), "nobody%u", number);
	invent_as(p, to, name, number, proof);
}

/* Fills a's table with invented nodes, whose sessions are established at both ends. */
static void fill_table(struct pair *p)
{
	struct cn_node *n = p->nodes[0].node;

	for (uint32_t i = 0; n->npeers < n->config.max_peers; i++) {
		invent(p, 0, i, true);
		pair_run(p, 10 * CN_US);
	}
	for (uint32_t i = 0; i < n->npeers; i++) {
		n->peers[i]->validated = true;
	}
}

/* Invented nodes that answer go on to do so. */
static void run_with_answers(struct pair *p, cn_time duration)
{
	struct cn_node *n = p->nodes[0].node;

	for (cn_time end = p->now + duration; p->now < end;) {
		pair_run(p, 100 * CN_MS);
		for (uint32_t i = 0; i < n->npeers; i++) {
			n->peers[i]->live.last_rx = p->now;
		}
	}
}

static void few_peers(struct cn_node_config *c)
{
	c->max_peers = 8;
}

/*
 * Invented nodes fill the table; those who are there stay, and one who comes later finds a place.
 */
static void peer__full_table(void **state)
{
	struct pair *p = pair_new(3, SEED, few_peers);

	(void)state;
	pair_stop(p, 2);
	assert_true(pair_run_up(p, 2000 * CN_MS));
	pair_exchange(p, 0, 1);
	for (uint32_t i = 0; i < 100; i++) {
		invent(p, 0, i, true);
	}
	pair_run(p, 10 * CN_MS);
	assert_int_equal(cn_node_peers(p->nodes[0].node), 8);
	pair_start(p, 2);
	for (uint32_t i = 0; i < 10; i++) { /* and they do not cease to come */
		pair_run(p, 500 * CN_MS);
		invent(p, 0, 200 + i, true);
	}
	assert_true(pair_is_up(p, 0, 2));
	assert_true(pair_is_up(p, 0, 1));
	assert_int_equal(cn_node_peers(p->nodes[0].node), 8);
	pair_exchange(p, 0, 2);
	pair_exchange(p, 0, 1);
	pair_free(p);
}

/* Invented nodes come and go in a full table, which is logged once a minute. */
static void peer__full_table_is_logged_rarely(void **state)
{
	struct pair *p = pair_new(2, SEED, few_peers);
	uint32_t lines = 0;

	(void)state;
	assert_true(pair_run_up(p, 2000 * CN_MS));
	log_capture();
	for (uint32_t i = 0; i < 300; i++) {
		invent(p, 0, i, true);
		pair_run(p, 100 * CN_MS);
	}
	log_capture_end();
	for (const char *at = logged; (at = strstr(at, "is full")) != NULL; at++) {
		lines++;
	}
	assert_int_equal(lines, 1);
	pair_free(p);
}

/* A node that was switched off, while nobody waited for it, keeps its place for a while only. */
static void peer__place_of_one_that_is_gone(void **state)
{
	struct pair *p = pair_new(3, SEED, one_peer);

	(void)state;
	pair_stop(p, 2);
	assert_true(pair_run_up(p, 2000 * CN_MS));
	pair_exchange(p, 0, 1);
	pair_stop(p, 1);
	pair_start(p, 2);
	pair_run(p, 5000 * CN_MS);
	assert_false(pair_is_up(p, 0, 2));
	pair_run(p, 300 * 1000 * CN_MS);
	assert_true(pair_is_up(p, 0, 2));
	assert_int_equal(p->nodes[0].node->peers[0]->data_sent, 0); /* the other one's were */
	pair_free(p);
}

static void many_peers(struct cn_node_config *c)
{
	c->max_peers = 500;
}

/* Invented nodes that fill a large table, and are silent, do not keep their places for longer than
 * in a small one, although the nodes' hellos are rarer. */
static void peer__places_of_many_that_are_gone(void **state)
{
	struct pair *p = pair_new(3, SEED, many_peers);

	(void)state;
	pair_stop(p, 2);
	assert_true(pair_run_up(p, 2000 * CN_MS));
	fill_table(p);
	pair_start(p, 2);
	pair_run(p, 50 * 1000 * CN_MS);
	assert_false(pair_is_up(p, 0, 2));
	pair_run(p, 20 * 1000 * CN_MS);
	assert_true(pair_is_up(p, 0, 2) && pair_is_up(p, 0, 1));
	pair_free(p);
}

/* Nodes that are listed take the places of invented ones, also if those answer, and of those that
 * had the name of one that is listed, but have no session any more. */
static void listed_ones_come_first(bool sessions)
{
	struct pair *p = pair_new(4, SEED, few_peers);
	struct cn_node *n = p->nodes[0].node;

	pair_stop(p, 2);
	pair_stop(p, 3);
	assert_true(pair_run_up(p, 2000 * CN_MS));
	fill_table(p);
	for (uint32_t i = 0; i < n->npeers && !sessions; i++) {
		if (n->peers[i] != pair_peer(p, 0, 1)) {
			memcpy(n->peers[i]->name, "x", 2);
			cn_peer_down(n->peers[i], CN_PEER_SILENT);
		}
	}
	pair_start(p, 2);
	run_with_answers(p, 5000 * CN_MS);
	assert_false(pair_is_up(p, 0, 2)); /* none is listed */
	p->listed = true;
	pair_start(p, 3);
	for (uint32_t i = 0; i < 50; i++) { /* others keep trying, also with a name that is taken */
		invent(p, 0, 200 + i, true);
		invent_as(p, 0, "b", 300 + i, true);
		run_with_answers(p, 100 * CN_MS);
	}
	assert_true(pair_is_up(p, 0, 2) && pair_is_up(p, 0, 3));
	assert_int_equal(n->evicted, 2);
	assert_true(pair_is_up(p, 0, 1));
	pair_exchange(p, 0, 2);
	pair_exchange(p, 0, 3);
	pair_free(p);
}

static void peer__listed_ones_come_first(void **state)
{
	(void)state;
	listed_ones_come_first(true);
	listed_ones_come_first(false);
}

/* ... but not those of each other. */
static void peer__listed_ones_keep_their_places(void **state)
{
	struct pair *p = pair_new(3, SEED, one_peer);

	(void)state;
	p->listed = true;
	pair_stop(p, 2);
	assert_true(pair_run_up(p, 2000 * CN_MS));
	pair_exchange(p, 0, 1);
	pair_start(p, 2);
	pair_run(p, 5000 * CN_MS);
	assert_false(pair_is_up(p, 0, 2));
	assert_true(pair_is_up(p, 0, 1));
	pair_free(p);
}

static void nothing(void *ctx, cn_time now, struct cn_peer *peer)
{
	(void)ctx;
	(void)now;
	(void)peer;
}

/* A team's transport has a port of its own: what it waits for is not to be seen in the session of
 * the node's. */
static void peer__a_node_that_a_team_waits_for_keeps_its_place(void **state)
{
	const struct cn_node_ops ops = { .peer_up = nothing };
	struct pair *p = pair_new(2, SEED, one_peer);
	struct cn_node_config config = p->nodes[0].config;
	const struct cn_port to = { .port = 7, .id = 8 };
	struct cn_node *team;
	struct cn_peer *node, *peer;

	(void)state;
	pair_stop(p, 1);
	fill_table(p);
	node = p->nodes[0].node->peers[0];
	config.port = 5;
	assert_int_equal(cn_node_new(&config, &ops, NULL, &team, NULL), COLLNET_OK);
	peer = cn_node_connect(team, p->now, node, 6, &to);
	assert_non_null(peer);
	cn_peer_expect(team, p->now, peer, 1);
	p->listed = true; /* b is, and what was invented is not */
	pair_start(p, 1);
	run_with_answers(p, 5000 * CN_MS);
	assert_false(pair_is_up(p, 0, 1));
	assert_true(cn_peer_alive(node));
	cn_peer_expect(team, p->now, peer, -1);
	run_with_answers(p, 5000 * CN_MS);
	assert_true(pair_is_up(p, 0, 1));
	cn_node_free(team);
	pair_free(p);
}

static void a_secret(struct cn_node_config *c)
{
	c->max_peers = 256;
	memset(c->key, 0x5a, sizeof(c->key));
}

/* Who does not know the secret cannot choose addresses that share a place in the hash table: every
 * frame would go past all of them. */
static void peer__chosen_addresses(void **state)
{
	struct pair *p = pair_new(1, SEED, a_secret);
	struct cn_node *n = p->nodes[0].node;
	uint64_t address = 0x0a0000000000u;
	uint32_t longest = 0, run = 0;

	(void)state;
	for (uint32_t i = 0; i < n->config.max_peers; address++) {
		uint8_t mac[6];

		if ((cn_mix64(address) & n->hash_mask) == 0) {
			for (uint32_t k = 0; k < 6; k++) {
				mac[k] = (uint8_t)(address >> (40 - 8 * k));
			}
			assert_non_null(cn_peer_add(n, mac, NULL));
			i++;
		}
	}
	for (uint32_t i = 0; i <= n->hash_mask; i++) {
		run = n->hash[i] != 0 ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	assert_uint_in_range(longest, 1, n->config.max_peers / 4);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer__table_is_full),
		cmocka_unit_test(peer__full_table),
		cmocka_unit_test(peer__full_table_is_logged_rarely),
		cmocka_unit_test(peer__place_of_one_that_is_gone),
		cmocka_unit_test(peer__places_of_many_that_are_gone),
		cmocka_unit_test(peer__listed_ones_come_first),
		cmocka_unit_test(peer__listed_ones_keep_their_places),
		cmocka_unit_test(peer__a_node_that_a_team_waits_for_keeps_its_place),
		cmocka_unit_test(peer__chosen_addresses),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
