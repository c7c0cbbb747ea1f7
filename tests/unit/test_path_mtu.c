/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/proto/path_mtu.c: which frames get through to a peer, found by probes and by retransmissions,
 * between nodes in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"

#define SEED  1191u
#define SHORT 1000u /* bytes after the Ethernet header that a narrow path carries */

/* A switch that drops what is longer, towards b. */
static bool narrow(struct pair *p, uint32_t from, uint32_t to, const uint8_t *f, size_t len)
{
	(void)p;
	(void)from;
	(void)f;
	return to != 1 || len <= CN_ETH_HEADER + SHORT;
}

static struct pair *up(uint32_t nodes, uint64_t seed)
{
	struct pair *p = pair_up(nodes, seed);

	pair_run(p, 100 * CN_MS);
	pair_log_clear(p);
	return p;
}

static void validate(struct pair *p, uint32_t from, uint32_t to)
{
	cn_peer_validate(p->nodes[from].node, p->now, pair_peer(p, from, to));
	pair_poke(p);
}

/* One probe and its answer. */
static void path__valid(void **state)
{
	struct pair *p = up(2, SEED);
	uint64_t sent = pair_stats(p, 0).acks_sent, answered = pair_stats(p, 1).acks_sent;
	uint64_t bytes = pair_stats(p, 0).bytes_sent;

	(void)state;
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_UNKNOWN);
	validate(p, 0, 1);
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_PROBING);
	pair_run(p, CN_MS);
	assert_string_equal(p->log, "a: path b valid\n");
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_VALID);
	assert_int_equal(cn_peer_path(pair_peer(p, 1, 0)), CN_PATH_UNKNOWN);
	assert_int_equal(pair_stats(p, 0).acks_sent - sent, 1);
	assert_int_equal(pair_stats(p, 0).bytes_sent - bytes, CN_ETH_HEADER + 1500);
	assert_int_equal(pair_stats(p, 1).acks_sent - answered, 1);
	validate(p, 0, 1); /* known already */
	pair_run(p, 100 * CN_MS);
	assert_int_equal(pair_stats(p, 0).acks_sent - sent, 1);
	assert_int_equal(pair_peer(p, 0, 1)->live.expecting, 0);
	pair_free(p);
}

static void encapsulated(struct cn_node_config *c)
{
	c->encapsulation = CN_ENCAPSULATION_UDP;
}

/* The headers of the encapsulation, which the link adds, are a part of the MTU. */
static void path__encapsulated(void **state)
{
	struct pair *p = pair_new(2, SEED, encapsulated);
	uint64_t bytes;

	(void)state;
	assert_true(pair_run_up(p, 2000 * CN_MS));
	pair_run(p, 100 * CN_MS);
	pair_log_clear(p);
	assert_int_equal(cn_node_payload(p->nodes[0].node), 1448);
	bytes = pair_stats(p, 0).bytes_sent;
	validate(p, 0, 1);
	pair_run(p, CN_MS);
	assert_string_equal(p->log, "a: path b valid\n");
	assert_int_equal(pair_stats(p, 0).bytes_sent - bytes, CN_ETH_HEADER + 1500);
	pair_send(p, 0, 1, 10, 1448);
	assert_true(pair_run_flows(p, 100 * CN_MS));
	assert_int_equal(pair_stats(p, 0).bytes_sent - bytes, 11 * (CN_ETH_HEADER + 1500));
	pair_free(p);
}

/* By 16 strikes: 16 pairs of probes behind the first one. The peer stays. */
static void path__drops_large_frames(void **state)
{
	struct pair *p = up(2, SEED);
	uint64_t sent = pair_stats(p, 0).acks_sent;

	(void)state;
	p->filter = narrow;
	validate(p, 0, 1);
	validate(p, 1, 0);
	pair_run(p, 1000 * CN_MS);
	assert_string_equal(p->log, "b: path a valid\na: path b drops 1500\n");
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_FAILED);
	assert_true(pair_is_up(p, 0, 1));
	assert_true(pair_stats(p, 0).acks_sent - sent <= 1 + 2 * 16 + 8);
	/* It is mended, and found so. */
	p->filter = NULL;
	pair_log_clear(p);
	validate(p, 0, 1);
	pair_run(p, 100 * CN_MS);
	assert_string_equal(p->log, "a: path b valid\n");
	pair_free(p);
}

/* Whatever is lost, size is not why. Each probe is lost with a chance of one in five, each answer
 * too. */
static void path__loss_is_no_reason(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct pair *p = up(3, seed);

		p->loss = 200000;
		for (uint32_t from = 0; from < 3; from++) {
			validate(p, from, (from + 1) % 3);
			validate(p, from, (from + 2) % 3);
		}
		pair_run(p, 2500 * CN_MS);
		if (strstr(p->log, "drops") != NULL || strstr(p->log, "down") != NULL) {
			fail_msg("seed %llu: %s", (unsigned long long)seed, p->log);
		}
		for (uint32_t from = 0; from < 3; from++) {
			assert_int_equal(cn_peer_path(pair_peer(p, from, (from + 1) % 3)),
					 CN_PATH_VALID);
		}
		pair_free(p);
	}
}

/* One try is under way, not more, and the others follow. */
static void path__slots(void **state)
{
	struct pair *p = up(4, SEED);

	(void)state;
	for (uint32_t to = 1; to < 4; to++) {
		cn_peer_validate(p->nodes[0].node, p->now, pair_peer(p, 0, to));
	}
	assert_non_null(p->nodes[0].node->paths.probing);
	pair_run(p, CN_MS);
	assert_null(p->nodes[0].node->paths.probing);
	assert_null(p->nodes[0].node->paths.first);
	pair_free(p);
}

/* The peer ends while it is probed. */
static void path__peer_goes(void **state)
{
	struct pair *p = up(2, SEED);

	(void)state;
	p->filter = narrow;
	validate(p, 0, 1);
	cn_node_bye(p->nodes[1].node, CN_BYE_DAEMON);
	pair_run(p, 50 * CN_MS);
	assert_string_equal(p->log, "a: down b bye\n");
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_UNKNOWN);
	assert_null(p->nodes[0].node->paths.probing);
	assert_int_equal(p->nodes[0].node->nexpecting, 0);
	pair_free(p);
}

/*
 * The path narrows while frames go, and the receiver waits for them: its requests make the sender
 * retransmit before its timer runs out. It counts, probes, and gives up all the same.
 */
static void path__narrows_under_requests(void **state)
{
	struct pair *p = up(2, SEED);
	struct collnet_stats s;

	(void)state;
	pair_send(p, 0, 1, 100, 1400);
	pair_run(p, 20 * CN_MS);
	assert_int_equal(p->flows[0][1].received, 100);
	cn_peer_expect(p->nodes[1].node, p->now, pair_peer(p, 1, 0), 1);
	p->filter = narrow;
	p->gaps_allowed = true;
	pair_send(p, 0, 1, 100, 1400);
	pair_run(p, 3000 * CN_MS);
	assert_non_null(strstr(p->log, "a: path b drops 1424\na: down b path\n"));
	s = pair_stats(p, 0);
	print_message("%llu frames sent again, %llu timeouts\n", (unsigned long long)s.data_resent,
		      (unsigned long long)s.timeouts);
	assert_true(s.timeouts <= 8);
	pair_free(p);
}

/* A shorter frame is suspected and gets through while the MTU is to be validated: that is found out
 * behind it. */
static void path__a_shorter_frame_says_nothing_of_the_mtu(void **state)
{
	struct pair *p = up(2, SEED);

	(void)state;
	p->filter = narrow;
	cn_path_suspect(pair_peer(p, 0, 1), SHORT - 100);
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_UNKNOWN);
	validate(p, 0, 1);
	pair_run(p, 1000 * CN_MS);
	assert_string_equal(p->log, "a: path b drops 1500\n");
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_FAILED);
	/* What is valid stays so while a frame is suspected. */
	p->filter = NULL;
	validate(p, 0, 1);
	pair_run(p, 100 * CN_MS);
	pair_log_clear(p);
	cn_path_suspect(pair_peer(p, 0, 1), SHORT - 100);
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_VALID);
	pair_poke(p);
	pair_run(p, 100 * CN_MS);
	assert_int_equal(cn_peer_path(pair_peer(p, 0, 1)), CN_PATH_VALID);
	assert_string_equal(p->log, ""); /* of a path that was to be validated alone */
	assert_int_equal(pair_peer(p, 0, 1)->live.expecting, 0);
	pair_free(p);
}

/*
 * A peer that receives nothing, and whose ACK requests arrive: it is silent, and its path not
 * narrow.
 */
static void path__deaf_peer_is_silent(void **state)
{
	struct pair *p = up(2, SEED);

	(void)state;
	cn_peer_expect(p->nodes[1].node, p->now, pair_peer(p, 1, 0), 1);
	p->gaps_allowed = true;
	p->cut[0][1] = true;
	pair_send(p, 0, 1, 100, 1400);
	pair_run(p, 5000 * CN_MS);
	assert_null(strstr(p->log, "drops"));
	assert_non_null(strstr(p->log, "down"));
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path__valid),
		cmocka_unit_test(path__encapsulated),
		cmocka_unit_test(path__drops_large_frames),
		cmocka_unit_test(path__loss_is_no_reason),
		cmocka_unit_test(path__slots),
		cmocka_unit_test(path__peer_goes),
		cmocka_unit_test(path__narrows_under_requests),
		cmocka_unit_test(path__a_shorter_frame_says_nothing_of_the_mtu),
		cmocka_unit_test(path__deaf_peer_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
