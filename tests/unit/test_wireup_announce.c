/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/wireup_announce.c on a simulated cluster: whatever a node has lost of what others said
 * is said again, those that do not answer keep nobody from being told, and little is sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "control_team.h"

#define HOSTS_MAX 116u
#define AT_ONCE	  16u
#define EVERY	  (100 * CN_US) /* beyond these, a message */

static struct cn_topo *topo;
static struct cn_sim *sim;
static struct control_rank rank[HOSTS_MAX];

static void run(cn_time t)
{
	cn_sim_run(sim, cn_sim_now(sim) + t);
}

/* Of the first hosts. */
static uint32_t sessions(uint32_t hosts)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < hosts; h++) {
		struct cn_node *node = cn_engine_node(cn_sim_engine(sim, h));

		for (uint32_t k = 0; k < cn_node_peers(node); k++) {
			n += cn_peer_alive(cn_node_peer(node, k));
		}
	}
	return n;
}

/* So many hosts, which have met. */
static void begin(uint32_t hosts)
{
	struct cn_sim_config c;
	char shape[8];
	struct cn_err err;

	snprintf(shape, sizeof(shape), "%u", hosts);
	assert_int_equal(cn_topo_shape(shape, 100000000, 0, 100000000, 0, &topo, &err), COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = topo;
	c.engine.node.max_peers = hosts;
	assert_int_equal(cn_sim_new(&c, &sim, &err), COLLNET_OK);
	memset(rank, 0, sizeof(rank));
	for (uint32_t i = 0; sessions(hosts) < hosts * (hosts - 1); i++) {
		assert_true(i < 60);
		run(1000 * CN_MS);
	}
}

static void end(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		cn_team_leave(rank[i].member, cn_sim_now(sim), false);
	}
	cn_sim_free(sim);
	cn_topo_free(topo);
}

/* Rank r of n, on the host. */
static void join(uint32_t r, uint32_t n, uint32_t host)
{
	struct cn_err err;

	rank[r].done.fn = control_joined;
	if (cn_team_join(cn_sim_engine(sim, host), cn_sim_now(sim), CONTROL_OWNER, "job", r, n,
			 cn_sim_now(sim) + 120000 * CN_MS, &rank[r].done, &rank[r].member,
			 &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_kick(sim, host);
}

/* All of n ranks are told this status, within the time. */
static void assert_told(uint32_t n, int status, cn_time within)
{
	run(within);
	for (uint32_t i = 0; i < n; i++) {
		if (rank[i].told != 1 || rank[i].status != status) {
			fail_msg("rank %u told %u times, \"%s\"", i, rank[i].told, rank[i].text);
		}
	}
}

static uint64_t sent(uint32_t host)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_engine_stats(cn_sim_engine(sim, host), &s, false);
	return s.data_sent;
}

/* The record of the other host's team; *of: the list that it is in. */
static struct cn_join *record(uint32_t host, const char *other, struct cn_join_list **of)
{
	struct cn_peer *p = cn_node_find(cn_engine_node(cn_sim_engine(sim, host)), other);

	*of = &cn_engine_peer_of(p)->joins;
	return cn_join_find(*of, CONTROL_OWNER, "job");
}

static void lose_record(uint32_t host, const char *other)
{
	struct cn_join_list *of;
	struct cn_join *j = record(host, other, &of);

	assert_non_null(j);
	cn_join_remove(of, j);
}

/* A node loses what the other one said of its ranks, which that knows to have arrived. */
static void announce__to_one_that_lost_it(void **state)
{
	(void)state;
	begin(3);
	join(0, 3, 0);
	join(1, 3, 1);
	run(1000 * CN_MS);
	lose_record(1, "h0");
	join(2, 3, 2);
	assert_told(3, COLLNET_OK, 2000 * CN_MS);
	end(3);
}

/* Then the other node's ranks come, and what they say is lost, too: neither knows that the other
 * one has ranks. */
static void announce__to_all_again(void **state)
{
	struct cn_join_list *of;

	(void)state;
	begin(3);
	join(0, 3, 0);
	run(500 * CN_MS);
	lose_record(1, "h0");
	join(1, 3, 1);
	while (record(0, "h1", &of) == NULL) {
		assert_true(cn_sim_step(sim, cn_sim_now(sim) + 10 * CN_MS));
	}
	lose_record(0, "h1");
	while (record(1, "h0", &of) == NULL) {
		assert_true(cn_sim_step(sim, cn_sim_now(sim) + 10 * CN_MS));
	}
	lose_record(1, "h0");
	join(2, 3, 2);
	run(1400 * CN_MS);
	assert_int_equal(rank[0].told, 0);
	assert_told(3, COLLNET_OK, 200 * CN_MS); /* 2 s after the first */
	end(3);
}

/* COMMIT is lost, when the node that sent it has its team already. */
static void commit__again(void **state)
{
	struct cn_join_list *of;
	struct cn_join *j;
	uint32_t other;

	(void)state;
	begin(3);
	for (uint32_t r = 0; r < 3; r++) {
		join(r, 3, r);
	}
	do { /* until the first of two has come */
		assert_true(cn_sim_step(sim, cn_sim_now(sim) + 10 * CN_MS));
		other = 0;
		j = record(1, "h0", &of);
		if (j == NULL || j->commit_received == 0) {
			other = 2;
			j = record(1, "h2", &of);
		}
	} while (j == NULL || j->commit_received == 0);
	assert_int_equal(rank[1].told, 0);
	cn_join_commit(of, j, 0, j->commit_sent);
	run(10 * CN_MS);
	assert_int_equal(rank[other].told, 1);
	assert_int_equal(rank[1].told, 0);
	assert_told(3, COLLNET_OK, 100 * CN_MS);
	end(3);
}

/* A rank that waits says so to all others now and then, and no more than that to those that wait,
 * too. */
static void announce__little_meanwhile(void **state)
{
	const uint32_t hosts = 12;
	uint64_t before[2];

	(void)state;
	begin(hosts);
	before[0] = sent(0);
	before[1] = sent(1);
	join(0, 3, 0);
	join(1, 3, 1);
	run(60000 * CN_MS); /* at 0, 2, 6, 14 and 30 s, and at first again to the one that waits */
	for (uint32_t h = 0; h < 2; h++) {
		assert_uint_in_range(sent(h) - before[h], 5 * (hosts - 2) + 1, 5 * (hosts - 2) + 3);
	}
	join(2, 3, 2);
	assert_told(3, COLLNET_OK, 10 * CN_MS);
	end(3);
}

/* In a large cluster a node sends a few messages at once, and the others at a pace. */
static void announce__at_a_pace(void **state)
{
	uint64_t before;

	(void)state;
	begin(HOSTS_MAX);
	before = sent(7);
	join(0, 2, 7);
	run(20 * EVERY);
	assert_uint_in_range(sent(7) - before, AT_ONCE, AT_ONCE + 20 + 1);
	run((HOSTS_MAX - AT_ONCE - 1 - 20) * EVERY);
	assert_uint_in_range(sent(7) - before, HOSTS_MAX - 1 - AT_ONCE / 2, HOSTS_MAX - 1);
	run(CN_MS);
	assert_int_equal(sent(7) - before, HOSTS_MAX - 1);
	end(1);
}

/* Nodes that are gone keep nobody from being told. */
static void announce__beside_lost_nodes(void **state)
{
	const uint32_t hosts = 40, left = 4;

	(void)state;
	begin(hosts);
	for (uint32_t h = left; h < hosts; h++) {
		cn_sim_cut(sim, control_link_of(topo, h), 2, true);
	}
	for (int more = 1; more >= -1;
	     more -= 2) { /* answers are waited for, until there are none */
		for (uint32_t h = 0; h < left; h++) {
			struct cn_node *node = cn_engine_node(cn_sim_engine(sim, h));

			for (uint32_t k = 0; k < cn_node_peers(node); k++) {
				cn_peer_expect(node, cn_sim_now(sim), cn_node_peer(node, k), more);
			}
			cn_sim_kick(sim, h);
		}
		run(10000 * CN_MS);
	}
	assert_int_equal(sessions(left), left * (left - 1));
	for (uint32_t r = 0; r < left; r++) {
		join(r, left, r);
	}
	assert_told(left, COLLNET_OK, 10 * CN_MS);
	end(left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(announce__to_one_that_lost_it),
		cmocka_unit_test(announce__to_all_again),
		cmocka_unit_test(commit__again),
		cmocka_unit_test(announce__little_meanwhile),
		cmocka_unit_test(announce__at_a_pace),
		cmocka_unit_test(announce__beside_lost_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
