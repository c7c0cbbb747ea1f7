/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/liveness.c: a peer that is waited for and silent is probed, and lost in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "proto/node_impl.h"

#define SEED 4242u

/* A silent peer that nothing waits for costs nothing and does not go down. */
static void liveness__silent_and_not_needed(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_stop(p, 1);
	pair_run(p, 60 * 1000 * CN_MS);
	assert_true(pair_is_up(p, 0, 1));
	assert_int_equal(pair_stats(p, 0).acks_sent, 0);
	pair_free(p);
}

/* Waited for, and gone: known within dead_after and a little, and not before. */
static void liveness__silent_and_expected(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 30; k++) {
		struct pair *p = pair_up(2, SEED);
		cn_time t;

		pair_run(p, k * 37 * CN_MS);
		pair_expect(p, 0, 1);
		pair_run(p, k * 113 * CN_MS);
		assert_int_equal(p->nodes[0].downs, 0);
		pair_stop(p, 1);
		t = pair_run_down(p, 0, 1, 5000 * CN_MS);
		if (t < 1100 * CN_MS || t > 1900 * CN_MS) {
			fail_msg("case %u: %llu ms", k, (unsigned long long)(t / CN_MS));
		}
		pair_free(p);
	}
}

/* What waits ends at a short deadline, over and over, with pauses: the peer is lost all the same,
 * and as soon. One that answers is not. */
static void liveness__short_waits(void **state)
{
	static const cn_time waits[] = { 10, 100, 400, 1000 }, pauses[] = { 0, 30, 500 };

	(void)state;
	for (uint32_t k = 0; k < 2 * 4 * 3; k++) {
		struct pair *p = pair_up(2, SEED);
		struct cn_peer *b = pair_peer(p, 0, 1);
		cn_time from = p->now, silent;

		if (k % 2 == 1) {
			pair_stop(p, 1);
		}
		while (p->nodes[0].downs == 0 && p->now < from + 10000 * CN_MS) {
			cn_peer_expect(p->nodes[0].node, p->now, b, 1);
			pair_run(p, waits[k / 2 % 4] * CN_MS);
			cn_peer_expect(p->nodes[0].node, p->now, b, -1);
			pair_run(p, pauses[k / 8] * CN_MS);
		}
		silent = (p->now - from) / CN_MS;
		if (k % 2 == 0 ? silent < 10000 : silent < 1400 || silent > 3000) {
			fail_msg("case %u: %llu ms", k, (unsigned long long)silent);
		}
		pair_free(p);
	}
}

/* Frames of one direction are lost, with data or without: the node that hears the other one all the
 * time knows as soon as that one that its session was given up. */
static void liveness__frames_of_one_direction_are_lost(void **state)
{
	(void)state;
	for (uint32_t frames = 0; frames < 2; frames++) {
		struct pair *p = pair_up(2, SEED);
		cn_time t;

		pair_exchange(p, 0, 1);
		p->gaps_allowed = true;
		p->cut[1][0] = true;
		pair_expect(p, 0, 1);
		pair_expect(p, 1, 0);
		pair_send(p, 1, 0, 3 * frames, 100);
		t = pair_run_down(p, 1, 0, 5000 * CN_MS);
		assert_uint_in_range(t / CN_MS, 1400, 1900);
		assert_non_null(strstr(p->log, "a: down b silent\n"));
		assert_non_null(strstr(p->log, "b: down a unheard\n"));
		p->cut[1][0] = false;
		assert_true(pair_run_up(p, 5000 * CN_MS));
		pair_exchange(p, 0, 1);
		pair_free(p);
	}
}

/* A wait that is over at once, since what it waited for had come before it. */
static struct cn_peer *short_wait(struct pair *p)
{
	struct cn_peer *b = pair_peer(p, 0, 1);

	b->live.last_node_rx = b->live.last_rx = b->live.last_session_rx = p->now - 20 * CN_US;
	cn_peer_expect(p->nodes[0].node, p->now, b, 1);
	cn_peer_expect(p->nodes[0].node, p->now, b, -1);
	return b;
}

/* Behind such a wait the peer is paused, and nobody waits for it: it is not lost. Or this node is
 * paused, and waits then: the peer has as long as otherwise. */
static void liveness__pauses(void **state)
{
	struct pair *p = pair_up(2, SEED);
	struct cn_peer *b = short_wait(p);
	cn_time from;

	(void)state;
	pair_run(p, 200 * CN_MS);
	p->cut[1][0] = p->cut[0][1] = true;
	pair_run(p, 2500 * CN_MS);
	p->cut[1][0] = p->cut[0][1] = false;
	pair_run(p, 2500 * CN_MS);
	cn_peer_expect(p->nodes[0].node, p->now, b, 1);
	pair_run(p, 2500 * CN_MS);
	assert_int_equal(p->nodes[0].downs, 0);
	pair_free(p);
	p = pair_up(2, SEED);
	b = short_wait(p);
	p->now += 10000 * CN_MS;
	p->cut[1][0] = p->cut[0][1] = true;
	from = p->now;
	cn_peer_expect(p->nodes[0].node, p->now, b, 1);
	while (p->nodes[0].downs == 0 && p->now < from + 5000 * CN_MS) {
		pair_run(p, 5 * CN_MS);
	}
	assert_uint_in_range((p->now - from) / CN_MS, 1400, 2000);
	pair_free(p);
}

#define PROBES_MAX 64

struct probes {
	cn_time at[PAIR_NODES][PROBES_MAX];
	uint32_t n[PAIR_NODES];
};

static void note(struct probes *seen, uint32_t node, cn_time at)
{
	if (seen->n[node] < PROBES_MAX) {
		seen->at[node][seen->n[node]++] = at;
	}
}

/* Frames to node 0 by their senders. */
static bool note_probe(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	(void)f;
	(void)len;
	if (to == 0) {
		note(p->filter_arg, from, p->now);
	}
	return true;
}

static bool is_ack(const uint8_t *f)
{
	return (f[CN_ETH_HEADER + 2] & 7) == CN_TYPE_ACK;
}

/* Frames of node 0 by their receivers, but for hellos. */
static bool note_asked(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	(void)len;
	if (from == 0 && is_ack(f)) {
		note(p->filter_arg, to, p->now);
	}
	return true;
}

/* Three nodes begin to wait for a silent one at the same moment: their probes do not stay together,
 * or short queues between them would lose the same ones each time. All give it up in time. */
static void liveness__probes_do_not_coincide(void **state)
{
	struct pair *p = pair_up(4, SEED);
	struct probes seen = { 0 };
	uint32_t all = 0, together = 0;
	cn_time from = p->now;

	(void)state;
	pair_stop(p, 0);
	p->filter = note_probe;
	p->filter_arg = &seen;
	for (uint32_t a = 1; a < 4; a++) {
		pair_expect(p, a, 0);
	}
	pair_poke(p);
	pair_run(p, p->nodes[1].config.dead_after + CN_MS - (p->now - from));
	for (uint32_t a = 1; a < 4; a++) {
		uint32_t b = a % 3 + 1;

		assert_false(pair_is_up(p, a, 0));
		assert_true(seen.n[a] >= 10);
		for (uint32_t i = 0; i < seen.n[a]; i++) {
			for (uint32_t k = 0; k < seen.n[b]; k++) {
				cn_time x = seen.at[a][i], y = seen.at[b][k];

				together += (x > y ? x - y : y - x) < 200 * CN_US;
			}
		}
		all += seen.n[a];
	}
	if (together * 5 > all) {
		fail_msg("%u of %u probes coincide with another node's", together, all);
	}
	pair_free(p);
}

/* A peer that died has its name contested by its new card, also when what waited for it ended
 * before it was given up. */
static void liveness__a_contested_name(void **state)
{
	struct pair *p = pair_up(3, SEED);
	struct cn_peer *b = pair_peer(p, 0, 1);
	const cn_time died = p->now + 1000 * CN_MS;

	(void)state;
	pair_stop(p, 2);
	pair_run(p, 1000 * CN_MS);
	pair_stop(p, 1);
	pair_expect(p, 0, 1);
	memcpy(p->nodes[2].config.name, p->nodes[1].config.name, sizeof(p->nodes[2].config.name));
	pair_start(p, 2);
	pair_run(p, 800 * CN_MS);
	cn_peer_expect(p->nodes[0].node, p->now, b, -1);
	while (!pair_is_up(p, 0, 2) && pair_step(p, died + 10000 * CN_MS)) {
	}
	assert_true(pair_is_up(p, 0, 2));
	pair_free(p);
}

/* One whose name another node claims answers, and keeps it: nobody waits for it any more. */
static void liveness__a_contested_name_is_kept(void **state)
{
	struct pair *p = pair_up(2, SEED);
	struct cn_peer *b = pair_peer(p, 0, 1);

	(void)state;
	cn_liveness_contest(b);
	pair_run(p, 1000 * CN_MS);
	assert_false(b->live.contested);
	pair_stop(p, 1);
	pair_run(p, 10 * 1000 * CN_MS);
	assert_int_equal(p->nodes[0].downs, 0);
	pair_free(p);
}

/* Frames that wait to be acknowledged are a reason to wait, too. */
static void liveness__silent_with_frames(void **state)
{
	struct pair *p = pair_up(2, SEED);
	cn_time t;

	(void)state;
	pair_stop(p, 1);
	pair_send(p, 0, 1, 1, 100);
	t = pair_run_down(p, 0, 1, 5000 * CN_MS);
	assert_uint_in_range(t / CN_MS, 1400, 2000);
	assert_int_equal(p->flows[0][1].acked, 1);
	pair_free(p);
}

/* Waited for and alive, without any traffic: probes are answered for ever. */
static void liveness__expected_and_alive(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_expect(p, 0, 1);
	p->loss = 200000;
	pair_run(p, 120 * 1000 * CN_MS);
	assert_int_equal(p->nodes[0].downs, 0);
	print_message("%llu probes in 400 intervals\n",
		      (unsigned long long)pair_stats(p, 0).acks_sent);
	assert_true(pair_stats(p, 0).acks_sent < 400 * 2);
	cn_peer_expect(p->nodes[0].node, p->now, pair_peer(p, 0, 1), -1);
	p->loss = 0;
	pair_stop(p, 1);
	pair_run(p, 10 * 1000 * CN_MS);
	assert_int_equal(p->nodes[0].downs, 0);
	pair_free(p);
}

/* Of a thousand sessions that wait for a node, one. The others hear it all the time. */
static void run_with_others(struct pair *p, struct cn_liveness *own, cn_time duration)
{
	const cn_time until = p->now + duration;

	while (p->now < until && p->nodes[0].downs == 0) {
		own->last_rx = own->last_node_rx = p->now;
		pair_run(p, 5 * CN_MS);
	}
}

/* Each is probed rarely, and nevertheless lost when it alone is silent. */
static void liveness__many_sessions_with_a_node(void **state)
{
	struct pair *p = pair_up(2, SEED);
	struct cn_peer *b = pair_peer(p, 0, 1);
	struct cn_liveness own = b->live;
	uint64_t sent;
	cn_time from;

	(void)state;
	own.own = b->live.own = &own;
	own.waiting = 999;
	pair_expect(p, 0, 1);
	assert_int_equal(own.waiting, 1000);
	run_with_others(p, &own, 5000 * CN_MS); /* the first ones, with the waits of TLP */
	sent = pair_stats(p, 0).acks_sent;
	run_with_others(p, &own, 60 * 1000 * CN_MS);
	assert_int_equal(p->nodes[0].downs, 0);
	assert_uint_in_range(pair_stats(p, 0).acks_sent - sent, 8, 24);
	from = p->now;
	p->cut[1][0] = p->cut[0][1] = true;
	run_with_others(p, &own, 60 * 1000 * CN_MS);
	assert_int_equal(p->nodes[0].downs, 1);
	assert_uint_in_range((p->now - from) / CN_MS, 5000, 9000);
	assert_int_equal(own.waiting, 999);
	pair_free(p);
}

/* With thousands of them a dead node is lost as soon as with one. The count of its silence goes on
 * when another session begins to wait, and those that end are not counted any more. */
static void liveness__many_sessions_with_a_dead_node(void **state)
{
	struct pair *p = pair_up(2, SEED);
	struct cn_peer *b = pair_peer(p, 0, 1);
	struct cn_liveness own = b->live;
	cn_time t;

	(void)state;
	own.own = b->live.own = &own;
	own.waiting = 3999;
	own.last_rx = own.last_node_rx = p->now;
	pair_expect(p, 0, 1);
	pair_run(p, 100 * CN_MS);
	own.last_rx = own.last_node_rx = b->live.last_session_rx = p->now;
	pair_stop(p, 1);
	t = pair_run_down(p, 0, 1, 10000 * CN_MS);
	assert_uint_in_range(t / CN_MS, 1400, 2000);
	assert_int_equal(own.waiting, 3999);
	pair_free(p);

	p = pair_up(2, SEED);
	b = pair_peer(p, 0, 1);
	own = b->live;
	own.own = b->live.own = &own;
	own.waiting = 3999;
	own.node_probes = 7;
	own.last_node_rx = p->now;
	pair_run(p, 1000 * CN_MS);
	own.node_probes = 7;
	own.last_node_rx = p->now - 1000 * CN_MS;
	pair_expect(p, 0, 1);
	assert_int_equal(own.node_probes, 7);
	assert_int_equal(own.waiting, 4000);
	pair_free(p);
	assert_int_equal(own.waiting, 3999);
}

/* Node 0 waits for node 1, which stops; 2 stops `later`, 3 does not. Is 2 silent, too? */
static bool is_silent_with(cn_time later)
{
	struct pair *p = pair_up(4, SEED);
	bool silent;

	pair_expect(p, 0, 1);
	pair_stop(p, 1);
	pair_poke(p);
	pair_run(p, later);
	pair_stop(p, 2);
	assert_int_equal(p->nodes[0].downs, 0);
	pair_run_down(p, 0, 1, 5000 * CN_MS);
	assert_int_equal(p->nodes[0].node->nexpecting, 0);
	silent = cn_peer_is_silent(pair_peer(p, 0, 2));
	assert_int_equal(cn_node_silent_peers(p->nodes[0].node), 1 + silent); /* not 3 */
	cn_peer_ended(pair_peer(p, 0, 2)); /* which is no silence */
	assert_int_equal(cn_node_silent_peers(p->nodes[0].node), 1);
	assert_true(pair_is_up(p, 0, 2) && pair_is_up(p, 0, 3));
	pair_free(p);
	return silent;
}

/* A node whose cable is cut may have been without an answer of one peer before. */
static void liveness__others_silent_later(void **state)
{
	(void)state;
	assert_true(is_silent_with(0) && is_silent_with(250 * CN_MS));
	assert_true(is_silent_with(600 * CN_MS) && !is_silent_with(1400 * CN_MS));
}

/* One peer is silent. The others are probed at different times in every round: in a burst a short
 * queue would lose the probes of the same peers each time. */
static void liveness__others_are_not_probed_at_once(void **state)
{
	uint32_t all = 0, apart = 0, first = 0;

	(void)state;
	for (uint32_t k = 0; k < 5; k++) {
		struct pair *p = pair_up(4, SEED);
		struct probes seen = { 0 };
		uint32_t rounds = 0;

		pair_run(p, k * 37 * CN_MS);
		pair_expect(p, 0, 1);
		pair_stop(p, 1);
		p->filter = note_asked;
		p->filter_arg = &seen;
		pair_poke(p);
		pair_run_down(p, 0, 1, 5000 * CN_MS);
		for (; rounds < seen.n[2] && rounds < seen.n[3]; rounds++) {
			cn_time x = seen.at[2][rounds], y = seen.at[3][rounds];

			apart += (x > y ? x - y : y - x) > 500 * CN_US;
			first += x < y;
		}
		assert_true(rounds >= 3);
		all += rounds;
		pair_free(p);
	}
	print_message("%u of %u rounds apart, %u in one order\n", apart, all, first);
	assert_true(apart * 10 >= all * 9 && first * 4 > all && first * 4 < all * 3);
}

/* Probes of the only idle peer, of which all but each `every`-th are lost. */
static bool lose_probes(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	const uint32_t *every = p->filter_arg;
	static uint32_t n;

	(void)to;
	(void)len;
	return from != 0 || !is_ack(f) || ++n % *every == 0;
}

/* The node sees no loss, but a path loses five of six probes: its peer is given more of them. */
static void liveness__tries_follow_probes(void **state)
{
	struct pair *p = pair_up(3, SEED);
	uint32_t every = 6;
	cn_time from;

	(void)state;
	p->filter = lose_probes;
	p->filter_arg = &every;
	pair_expect(p, 0, 1);
	pair_run(p, 30000 * CN_MS);
	assert_int_equal(p->nodes[0].downs, 0);
	assert_int_equal(cn_node_min_tries(p->nodes[0].node), 3);
	assert_uint_in_range(cn_peer_min_tries(pair_peer(p, 0, 1)), 40, 120);
	assert_int_equal(cn_peer_min_tries(pair_peer(p, 0, 2)), 3);
	pair_stop(p, 1);
	from = p->now;
	pair_run_down(p, 0, 1, 30000 * CN_MS);
	assert_uint_in_range((p->now - from) / CN_MS, 1500, 6000);
	pair_free(p);
}

/* A pause is no loss: the peer that has missed dozens of probes is given hardly more of them. */
static void liveness__a_pause_is_no_loss(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_expect(p, 0, 1);
	p->cut[1][0] = true;
	pair_run(p, 1450 * CN_MS);
	p->cut[1][0] = false;
	pair_run(p, 100 * CN_MS);
	assert_int_equal(p->nodes[0].downs, 0);
	assert_uint_in_range(cn_peer_min_tries(pair_peer(p, 0, 1)), 3, 30);
	pair_free(p);
}

/* How long a silent node is waited for: three probes where nothing is lost, more where much is. */
static void liveness__tries_follow_loss(void **state)
{
	struct pair *p = pair_up(3, SEED);
	cn_time from;

	(void)state;
	assert_int_equal(cn_node_min_tries(p->nodes[0].node), 3);
	p->loss = 500000;
	pair_send(p, 0, 1, 400, 100);
	assert_true(pair_run_flows(p, 3600 * 1000 * CN_MS));
	assert_int_equal(p->nodes[0].downs, 0);
	assert_uint_in_range(cn_node_min_tries(p->nodes[0].node), 12, 120);
	/* One that is gone is lost all the same, in bounded time. */
	p->loss = 0;
	pair_stop(p, 2);
	cn_peer_expect(p->nodes[0].node, p->now, pair_peer(p, 0, 2), 1);
	from = p->now;
	while (p->nodes[0].downs == 0 && pair_step(p, from + 30000 * CN_MS)) {
	}
	assert_uint_in_range((p->now - from) / CN_MS, 1500, 10000);
	/* and when nothing is lost any more, it is as before */
	pair_send(p, 0, 1, 1000, 100);
	assert_true(pair_run_flows(p, 10000 * CN_MS));
	assert_int_equal(cn_node_min_tries(p->nodes[0].node), 3);
	pair_free(p);
}

static bool lose_from_others, silent_two;

/* A third of the data, of one direction; and all that node 2 sends. */
static bool lose_one_way(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	static uint32_t n;

	(void)p;
	(void)to;
	(void)len;
	if (silent_two && from == 2) {
		return false;
	}
	return is_ack(f) || (from != 0) != lose_from_others || ++n % 3 != 0;
}

/* Ports drop a third of the frames, and all that one node sends for half a second more than it
 * takes to find a dead one. It lives, and what is lost says so, whichever direction loses it. */
static void liveness__silent_behind_full_ports(void **state)
{
	(void)state;
	for (int direction = 0; direction < 2; direction++) {
		struct pair *p = pair_up(3, SEED);
		cn_time from;

		lose_from_others = direction == 1;
		silent_two = false;
		p->filter = lose_one_way;
		pair_send(p, direction, 1 - direction, 200, 100);
		assert_true(pair_run_flows(p, 60 * 1000 * CN_MS));
		silent_two = true;
		pair_expect(p, 0, 2);
		pair_run(p, 2000 * CN_MS);
		assert_int_equal(p->nodes[0].downs, 0);
		silent_two = false;
		pair_run(p, 500 * CN_MS);
		assert_int_equal(p->nodes[0].downs, 0);
		/* One that is dead is found nevertheless; without loss as soon as ever. */
		pair_stop(p, 2);
		from = p->now;
		pair_run_down(p, 0, 2, 30000 * CN_MS);
		assert_uint_in_range((p->now - from) / CN_MS, 1500, 8000);
		p->filter = NULL;
		pair_send(p, direction, 1 - direction, 1000, 100);
		assert_true(pair_run_flows(p, 60 * 1000 * CN_MS));
		pair_expect(p, 0, 1);
		pair_stop(p, 1);
		from = p->now;
		pair_run_down(p, 0, 1, 30000 * CN_MS);
		assert_uint_in_range((p->now - from) / CN_MS, 1400, 1600);
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(liveness__silent_and_not_needed),
		cmocka_unit_test(liveness__silent_and_expected),
		cmocka_unit_test(liveness__short_waits),
		cmocka_unit_test(liveness__frames_of_one_direction_are_lost),
		cmocka_unit_test(liveness__pauses),
		cmocka_unit_test(liveness__probes_do_not_coincide),
		cmocka_unit_test(liveness__a_contested_name),
		cmocka_unit_test(liveness__a_contested_name_is_kept),
		cmocka_unit_test(liveness__silent_with_frames),
		cmocka_unit_test(liveness__expected_and_alive),
		cmocka_unit_test(liveness__many_sessions_with_a_node),
		cmocka_unit_test(liveness__many_sessions_with_a_dead_node),
		cmocka_unit_test(liveness__others_silent_later),
		cmocka_unit_test(liveness__others_are_not_probed_at_once),
		cmocka_unit_test(liveness__tries_follow_loss),
		cmocka_unit_test(liveness__tries_follow_probes),
		cmocka_unit_test(liveness__a_pause_is_no_loss),
		cmocka_unit_test(liveness__silent_behind_full_ports),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
