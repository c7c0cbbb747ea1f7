/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/peer.c: sessions begin and end, and begin again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED 4242u

static void peer__two_meet(void **state)
{
	struct pair *p = pair_new(2, SEED, NULL);

	(void)state;
	assert_true(pair_run_up(p, CN_MS));
	assert_string_equal(p->log, "b: up a\na: up b\n");
	assert_int_equal(pair_peer(p, 0, 1)->session_out, pair_peer(p, 1, 0)->session_in);
	assert_int_equal(pair_peer(p, 0, 1)->session_in, pair_peer(p, 1, 0)->session_out);
	assert_int_equal(pair_peer(p, 0, 1)->tx.queue.end, pair_peer(p, 1, 0)->rx.expected);
	assert_ptr_equal(cn_node_find(p->nodes[0].node, "b"), pair_peer(p, 0, 1));
	assert_null(cn_node_find(p->nodes[0].node, "c"));
	assert_int_equal(pair_stats(p, 0).nodes, 2);
	pair_exchange(p, 0, 1);
	pair_free(p);
}

static void peer__four_meet(void **state)
{
	struct pair *p = pair_up(4, SEED);

	(void)state;
	for (uint32_t a = 0; a < 4; a++) {
		assert_int_equal(p->nodes[a].ups, 3);
		assert_int_equal(cn_node_peers(p->nodes[a].node), 3);
	}
	pair_run(p, 10 * 1000 * CN_MS);
	for (uint32_t a = 0; a < 4; a++) {
		assert_int_equal(p->nodes[a].ups, 3);
		assert_int_equal(p->nodes[a].downs, 0);
	}
	/* hellos stay a trickle */
	assert_true(pair_stats(p, 0).frames_sent < 50);
	pair_free(p);
}

/* A third of all frames is lost: it takes longer, no more. */
static void peer__meet_with_losses(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 50; seed++) {
		struct pair *p = pair_new(3, seed, NULL);

		p->loss = 330000;
		p->duplicate = p->reorder = 100000;
		if (!pair_run_up(p, 6000 * CN_MS)) {
			fail_msg("seed %u: not up\n%s", seed, p->log);
		}
		p->loss = p->duplicate = p->reorder = 0;
		pair_exchange(p, 0, 1);
		pair_free(p);
	}
}

static void peer__late_comer(void **state)
{
	struct pair *p = pair_new(3, SEED, NULL);

	(void)state;
	pair_stop(p, 2);
	assert_true(pair_run_up(p, 100 * CN_MS));
	pair_run(p, 60 * 1000 * CN_MS);
	pair_start(p, 2);
	assert_true(pair_run_up(p, CN_MS)); /* the new node solicits hellos */
	pair_free(p);
}

static void peer__restart_is_seen(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_exchange(p, 0, 1);
	pair_log_clear(p);
	pair_stop(p, 1);
	pair_run(p, 50 * CN_MS);
	pair_start(p, 1);
	assert_true(pair_run_up(p, 100 * CN_MS));
	pair_run(p, 5 * CN_MS);
	assert_string_equal(p->log, "b: up a\na: down b restarted\na: up b\n");
	pair_exchange(p, 0, 1);
	assert_int_equal(p->nodes[0].downs, 1);
	pair_free(p);
}

/* Both restart at any moment of the handshake, with frames of the old sessions in flight. */
static void peer__restart_at_any_moment(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 400; k++) {
		struct pair *p = pair_new(2, SEED + k, NULL);

		pair_run(p, k % 100 * 2 * CN_US);
		if (k < 300) {
			pair_stop(p, 0);
			pair_start(p, 0);
		}
		pair_run(p, k / 100 * 7 * CN_US);
		if (k >= 100) {
			pair_stop(p, 1);
			pair_start(p, 1);
		}
		if (!pair_run_up(p, 100 * CN_MS)) {
			fail_msg("moment %u: not up\n%s", k, p->log);
		}
		pair_exchange(p, 0, 1);
		pair_log_clear(p);
		pair_run(p, 3000 * CN_MS);
		assert_string_equal(p->log, "");
		pair_free(p);
	}
}

/* In the middle of traffic in both directions: frames of the old session are stale. */
static void peer__restart_in_traffic(void **state)
{
	(void)state;
	for (uint32_t k = 1; k < 20; k++) {
		struct pair *p = pair_new(2, SEED + k, NULL);

		assert_true(pair_run_up(p, 100 * CN_MS));
		p->delay = k * 100 * CN_US;
		pair_send(p, 0, 1, 5000, 1000);
		pair_send(p, 1, 0, 5000, 1000);
		pair_run(p, 5 * CN_MS + k * 77 * CN_US);
		pair_stop(p, 1);
		p->flows[0][1].total = p->flows[0][1].sent; /* no new ones for the next session */
		p->flows[1][0].total = p->flows[1][0].sent;
		pair_start(p, 1);
		pair_run(p, 1000 * CN_MS);
		assert_int_equal(p->flows[0][1].acked, p->flows[0][1].sent);
		if (p->nodes[0].downs != 1 || p->nodes[1].downs > 1) {
			fail_msg("seed %u: %s", SEED + k, p->log);
		}
		assert_true(pair_stats(p, 0).stale_frames + pair_stats(p, 1).stale_frames > 0);
		memset(p->flows[1][0].taken, 0, sizeof(p->flows[1][0].taken));
		pair_exchange(p, 0, 1);
		pair_free(p);
	}
}

static void peer__bye(void **state)
{
	struct pair *p = pair_up(3, SEED);

	(void)state;
	pair_log_clear(p);
	cn_node_bye(p->nodes[1].node, CN_BYE_DAEMON);
	pair_run(p, CN_MS);
	pair_stop(p, 1);
	assert_string_equal(p->log, "a: down b bye\nc: down b bye\n");
	pair_run(p, 5000 * CN_MS);
	assert_null(cn_node_find(p->nodes[0].node, "b"));
	pair_start(p, 1);
	assert_true(pair_run_up(p, 10 * CN_MS));
	pair_exchange(p, 0, 1);
	pair_free(p);
}

/* A goodbye of a node that goes on after all: a new session is established. */
static void peer__bye_taken_back(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_exchange(p, 0, 1);
	cn_node_bye(p->nodes[1].node, CN_BYE_DAEMON);
	pair_run(p, 3000 * CN_MS);
	assert_false(pair_is_up(p, 0, 1));
	p->nodes[1].node->leaving = false;
	pair_run(p, 3000 * CN_MS);
	assert_true(pair_is_up(p, 0, 1) && pair_is_up(p, 1, 0));
	pair_exchange(p, 0, 1);
	pair_free(p);
}

/* Our frames reach it and nothing comes back, or the other way round: hellos heard on a broken
 * cable are no answer. */
static void peer__one_way_cable(void **state)
{
	(void)state;
	for (int broken = 0; broken < 2; broken++) {
		struct pair *p = pair_up(2, SEED);
		cn_time t;

		pair_expect(p, 0, 1);
		p->cut[broken][1 - broken] = true;
		t = pair_run_down(p, 0, 1, 5000 * CN_MS);
		assert_uint_in_range(t / CN_MS, 1400, 2000);
		p->cut[broken][1 - broken] = false;
		assert_true(pair_run_up(p, 3000 * CN_MS));
		pair_exchange(p, 0, 1);
		pair_free(p);
	}
}

/* A partition that one side noticed heals: both start afresh, once. */
static void peer__partition_noticed_by_one(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_exchange(p, 0, 1);
	pair_expect(p, 0, 1);
	pair_log_clear(p);
	p->cut[0][1] = p->cut[1][0] = true;
	pair_run(p, 2500 * CN_MS);
	assert_string_equal(p->log, "a: down b silent\n");
	assert_true(pair_is_up(p, 1, 0));
	p->cut[0][1] = p->cut[1][0] = false;
	pair_run(p, 1500 * CN_MS);
	assert_string_equal(p->log, "a: down b silent\na: up b\nb: down a gave up\nb: up a\n");
	pair_exchange(p, 0, 1);
	pair_run(p, 10 * 1000 * CN_MS);
	assert_int_equal(p->nodes[0].downs + p->nodes[1].downs, 2);
	pair_free(p);
}

/* Hellos are lost while the session is replaced: both end in the same one, without traffic. */
static void peer__partition_noticed_by_one_in_loss(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 60; seed++) {
		struct pair *p = pair_up(2, seed);
		const struct cn_peer *a, *b;

		pair_expect(p, 0, 1);
		p->cut[0][1] = p->cut[1][0] = true;
		pair_run(p, 2500 * CN_MS);
		assert_false(pair_is_up(p, 0, 1));
		p->cut[0][1] = p->cut[1][0] = false;
		p->loss = 200000;
		pair_run(p, 2000 * CN_MS);
		p->loss = 0;
		pair_run(p, 20 * 1000 * CN_MS);
		assert_true(pair_is_up(p, 0, 1) && pair_is_up(p, 1, 0));
		a = pair_peer(p, 0, 1);
		b = pair_peer(p, 1, 0);
		if (a->nonce_in != b->nonce_out || a->nonce_out != b->nonce_in) {
			fail_msg("seed %u: two sessions\n%s", seed, p->log);
		}
		pair_free(p);
	}
}

static void peer__partition_noticed_by_both(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 20; k++) {
		struct pair *p = pair_new(2, SEED + k, NULL);

		assert_true(pair_run_up(p, 2000 * CN_MS));
		pair_exchange(p, 0, 1);
		pair_expect(p, 0, 1);
		pair_run(p, k * 31 * CN_MS);
		pair_expect(p, 1, 0);
		p->cut[0][1] = p->cut[1][0] = true;
		pair_run(p, 2500 * CN_MS);
		assert_false(pair_is_up(p, 0, 1) || pair_is_up(p, 1, 0));
		p->cut[0][1] = p->cut[1][0] = false;
		assert_true(pair_run_up(p, 1500 * CN_MS));
		pair_exchange(p, 0, 1);
		pair_run(p, 10 * 1000 * CN_MS);
		assert_int_equal(p->nodes[0].downs + p->nodes[1].downs, 2);
		pair_free(p);
	}
}

/* Cables that come and go while faults of all kinds happen: at the end all agree and talk. */
static void peer__flapping_cables_settle(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 60; seed++) {
		struct pair *p = pair_new(3, seed, NULL);
		uint64_t random = seed;
		uint32_t downs = 0;

		p->gaps_allowed = true;
		p->jitter = 5 * CN_MS;
		p->duplicate = p->reorder = 50000;
		p->loss = 50000;
		for (int i = 0; i < 40; i++) {
			uint32_t a = cn_random(&random) % 3, b = cn_random(&random) % 3;

			p->cut[a][b] = cn_random(&random) % 2 == 0;
			if (a != b && pair_is_up(p, a, b)) {
				pair_send(p, a, b, 10, 100);
				pair_expect(p, a, b);
			}
			if (cn_random(&random) % 8 == 0) {
				pair_stop(p, a);
				pair_start(p, a);
				for (uint32_t k = 0; k < 3; k++) {
					memset(p->flows[a][k].taken, 0, PAIR_SLOTS);
				}
			}
			pair_run(p, cn_random(&random) % 700 * CN_MS);
		}
		memset(p->cut, 0, sizeof(p->cut));
		p->loss = p->duplicate = p->reorder = p->jitter = 0;
		for (uint32_t k = 0; k < 9; k++) {
			p->flows[k / 3][k % 3].total = p->flows[k / 3][k % 3].sent;
		}
		pair_run(p, 10 * 1000 * CN_MS);
		for (uint32_t k = 0; k < 9; k++) {
			p->flows[k / 3][k % 3].received = p->flows[k / 3][k % 3].acked =
				p->flows[k / 3][k % 3].total;
		}
		downs = p->nodes[0].downs + p->nodes[1].downs + p->nodes[2].downs;
		p->gaps_allowed = false;
		if (!pair_run_up(p, 100 * CN_MS)) {
			fail_msg("seed %u: not up", seed);
		}
		pair_exchange(p, 0, 1);
		pair_exchange(p, 1, 2);
		pair_exchange(p, 2, 0);
		pair_run(p, 10 * 1000 * CN_MS);
		assert_int_equal(p->nodes[0].downs + p->nodes[1].downs + p->nodes[2].downs, downs);
		pair_free(p);
	}
}

static void other_mtu(struct cn_node_config *c)
{
	if (c->name[0] == 'b') {
		c->mtu = 9000;
	}
}

/* Short frames get through; the engine refuses to run a job on them and says why. */
static void peer__other_mtu_is_known(void **state)
{
	struct pair *p = pair_new(2, SEED, other_mtu);

	(void)state;
	assert_true(pair_run_up(p, 3000 * CN_MS));
	assert_int_equal(cn_peer_mtu(pair_peer(p, 0, 1)), 9000);
	assert_int_equal(cn_peer_mtu(pair_peer(p, 1, 0)), 1500);
	pair_free(p);
}

/* A new incarnation has another MTU: the old session ends all the same. */
static void peer__restart_with_other_mtu(void **state)
{
	struct pair *p = pair_up(2, SEED);

	(void)state;
	pair_log_clear(p);
	pair_stop(p, 1);
	p->nodes[1].config.mtu = 9000;
	pair_start(p, 1);
	pair_run(p, 1000 * CN_MS);
	assert_string_equal(p->log, "b: up a\na: down b restarted\na: up b\n");
	assert_int_equal(cn_peer_mtu(pair_peer(p, 0, 1)), 9000);
	pair_free(p);
}

static void other_cluster(struct cn_node_config *c)
{
	c->cluster = c->name[0];
}

static void peer__other_cluster_is_not_heard(void **state)
{
	struct pair *p = pair_new(2, SEED, other_cluster);

	(void)state;
	pair_run(p, 3000 * CN_MS);
	assert_int_equal(cn_node_peers(p->nodes[0].node), 0);
	assert_true(pair_stats(p, 0).foreign_frames > 3);
	assert_int_equal(pair_stats(p, 0).frames_received, 0);
	pair_free(p);
}

static void peer__info(void **state)
{
	struct pair *p = pair_up(2, SEED);
	struct collnet_node_info info;

	(void)state;
	pair_exchange(p, 0, 1);
	cn_peer_info(pair_peer(p, 0, 1), p->now, &info);
	assert_string_equal(info.name, "b");
	assert_int_equal(info.alive, 1);
	assert_int_equal(info.mtu, 1500);
	assert_int_equal(info.data_sent, 20);
	assert_int_equal(info.data_received, 20);
	assert_true(info.rtt_ns > 0);
	pair_stop(p, 1);
	pair_run(p, 10 * 1000 * CN_MS);
	cn_peer_info(pair_peer(p, 0, 1), p->now, &info);
	assert_int_equal(info.alive, 0);
	assert_true(info.heard_ns >= 9000 * CN_MS);
	pair_free(p);
}

/* Who waits until fewer frames are in flight asks for an acknowledgement, unless it was asked for,
 * and not while the receiver is not ready. */
static void peer_request_ack__once(void **state)
{
	struct pair *p = pair_up(2, SEED);
	struct cn_peer *to = pair_peer(p, 0, 1);

	(void)state;
	p->ns_per_byte = 0;
	pair_trace(p);
	cn_peer_request_ack(to); /* nothing is in flight */
	pair_poke(p);
	pair_send(p, 0, 1, 2, 100);
	pair_poke(p);
	assert_false(cn_peer_ack_requested(to));
	cn_peer_request_ack(to);
	pair_poke(p);
	assert_true(cn_peer_ack_requested(to));
	cn_peer_request_ack(to);
	pair_poke(p);
	pair_run(p, 5 * CN_MS);
	assert_false(cn_peer_ack_requested(to));
	pair_assert_trace(p, "a: DATA 0; a: DATA 1; a: ACK 0 ACKREQ; b: ACK 2");
	p->nodes[1].refuse = 1;
	pair_send(p, 0, 1, 1, 100);
	pair_run(p, 2 * CN_MS);
	cn_peer_request_ack(to);
	pair_run(p, 2 * CN_MS);
	pair_assert_trace(p, "a: DATA 2; b: RNR 2");
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer__two_meet),
		cmocka_unit_test(peer__four_meet),
		cmocka_unit_test(peer__meet_with_losses),
		cmocka_unit_test(peer__late_comer),
		cmocka_unit_test(peer__restart_is_seen),
		cmocka_unit_test(peer__restart_at_any_moment),
		cmocka_unit_test(peer__restart_in_traffic),
		cmocka_unit_test(peer__bye),
		cmocka_unit_test(peer__bye_taken_back),
		cmocka_unit_test(peer__one_way_cable),
		cmocka_unit_test(peer__partition_noticed_by_one),
		cmocka_unit_test(peer__partition_noticed_by_one_in_loss),
		cmocka_unit_test(peer__partition_noticed_by_both),
		cmocka_unit_test(peer__flapping_cables_settle),
		cmocka_unit_test(peer__other_mtu_is_known),
		cmocka_unit_test(peer__restart_with_other_mtu),
		cmocka_unit_test(peer__other_cluster_is_not_heard),
		cmocka_unit_test(peer__info),
		cmocka_unit_test(peer_request_ack__once),
	};

	print_message("seed %u\n", SEED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
