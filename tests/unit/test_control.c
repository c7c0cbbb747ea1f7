/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/control.c on a simulated cluster: how a team forms while nodes are lost and found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "control_team.h"

#define LOST 5u /* the host that is cut off */

static void join_all(struct cn_sim *s, struct control_rank *rank)
{
	struct cn_err err;

	memset(rank, 0, CONTROL_HOSTS * sizeof(*rank));
	for (uint32_t i = 0; i < CONTROL_HOSTS; i++) {
		rank[i].done.fn = control_joined;
		if (cn_team_join(cn_sim_engine(s, i), cn_sim_now(s), CONTROL_OWNER, "job", i,
				 CONTROL_HOSTS, cn_sim_now(s) + 60000 * CN_MS, &rank[i].done,
				 &rank[i].member, &err) != COLLNET_OK) {
			fail_msg("%s", err.text);
		}
		cn_sim_kick(s, i);
	}
}

static uint32_t told(const struct control_rank *rank)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < CONTROL_HOSTS; i++) {
		n += rank[i].told;
	}
	return n;
}

/*
 * A node is cut off for so long that it is lost, at any moment while the team forms. If nobody took
 * the team for complete before, all join when it is back; if somebody did, it fails and names it.
 */
static void control__a_node_is_lost_and_found(void **state)
{
	uint32_t all = 0, some = 0;
	struct cn_topo *t;
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_topo_shape("24", 10000000, 0, 10000000, 0, &t, &err), COLLNET_OK);
	for (uint32_t k = 0; k < 40; k++) {
		struct cn_sim_config c;
		struct control_rank rank[CONTROL_HOSTS];
		struct cn_sim *s;
		bool ready = false;

		cn_sim_config_init(&c);
		c.topo = t;
		c.seed = k + 1;
		c.engine.node.max_peers = CONTROL_HOSTS;
		assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_OK);
		cn_sim_run(s, cn_sim_now(s) + 2000 * CN_MS); /* all have met */
		join_all(s, rank);
		cn_sim_run(s, cn_sim_now(s) + k * 4 * CN_MS);
		cn_sim_cut(s, control_link_of(t, LOST), 2, true);
		cn_sim_run(s, cn_sim_now(s) + 3000 * CN_MS);
		ready = told(rank) > 0;
		cn_sim_cut(s, control_link_of(t, LOST), 2, false);
		cn_sim_run(s, cn_sim_now(s) + 5000 * CN_MS);
		for (uint32_t i = 0; i < CONTROL_HOSTS; i++) {
			if (!ready && (rank[i].told != 1 || rank[i].status != COLLNET_OK)) {
				fail_msg("cut %u us after the calls: rank %u told %u times, \"%s\"",
					 4000 * k, i, rank[i].told, rank[i].text);
			}
			if (ready && rank[i].told == 1 && rank[i].status != COLLNET_OK) {
				assert_non_null(strstr(rank[i].text, "h5"));
			}
		}
		all += !ready;
		some += ready;
		for (uint32_t i = 0; i < CONTROL_HOSTS; i++) {
			cn_team_leave(rank[i].member, cn_sim_now(s), false);
		}
		cn_sim_free(s);
	}
	print_message("%u times all joined, %u times it was too late\n", all, some);
	assert_true(all >= 10 && some >= 5);
	cn_topo_free(t);
}

static void join_as(struct cn_sim *s, uint64_t owner, uint32_t host, uint32_t rank, uint32_t ranks,
		    struct control_rank *r)
{
	struct cn_err err;

	*r = (struct control_rank){ .done = { .fn = control_joined } };
	if (cn_team_join(cn_sim_engine(s, host), cn_sim_now(s), owner, "job", rank, ranks,
			 cn_sim_now(s) + 10000 * CN_MS, &r->done, &r->member, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_kick(s, host);
}

static void join(struct cn_sim *s, uint32_t host, uint32_t rank, uint32_t ranks,
		 struct control_rank *r)
{
	join_as(s, CONTROL_OWNER, host, rank, ranks, r);
}

/*
 * Two owners have jobs of one name on the same nodes, of different sizes and with the same ranks:
 * both become ready, and each owner is shown its own one only.
 */
static void control__owners_do_not_meet(void **state)
{
	struct collnet_job_info jobs[4];
	struct control_rank mine[3], other[4];
	struct cn_sim_config c;
	struct cn_topo *t;
	struct cn_sim *s;
	struct cn_err err;
	size_t n = 4;

	(void)state;
	assert_int_equal(cn_topo_shape("4", 10000000, 0, 10000000, 0, &t, &err), COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = t;
	assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_OK);
	cn_sim_run(s, cn_sim_now(s) + 1000 * CN_MS);
	for (uint32_t i = 0; i < 4; i++) {
		join_as(s, CONTROL_OWNER + 1, i, i, 4, &other[i]);
		if (i == 2) { /* beyond the time in which a contradiction is borne */
			cn_sim_run(s, cn_sim_now(s) + 1000 * CN_MS);
		}
	}
	for (uint32_t i = 0; i < 3; i++) {
		join(s, i, i, 3, &mine[i]);
	}
	cn_sim_run(s, cn_sim_now(s) + 2000 * CN_MS);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(other[i].told, 1);
		assert_int_equal(other[i].status, COLLNET_OK);
		assert_int_equal(cn_member_nodes(other[i].member), 4);
		if (i < 3) {
			assert_int_equal(mine[i].told, 1);
			assert_int_equal(mine[i].status, COLLNET_OK);
			assert_int_equal(cn_member_nodes(mine[i].member), 3);
		}
	}
	cn_engine_jobs(cn_sim_engine(s, 0), CONTROL_OWNER, 0, jobs, &n);
	assert_int_equal(n, 1);
	assert_int_equal(jobs[0].ranks, 3);
	n = 4;
	cn_engine_jobs(cn_sim_engine(s, 0), CONTROL_OWNER + 2, 0, jobs, &n);
	assert_int_equal(n, 0);
	n = 4;
	cn_engine_jobs(cn_sim_engine(s, 0), CN_OWNER_ROOT, 0, jobs, &n);
	assert_int_equal(n, 2);
	for (uint32_t i = 0; i < 4; i++) {
		cn_team_leave(other[i].member, cn_sim_now(s), false);
		if (i < 3) {
			cn_team_leave(mine[i].member, cn_sim_now(s), false);
		}
	}
	cn_sim_free(s);
	cn_topo_free(t);
}

/* As many hosts as there are ranks, which have found each other. */
static struct cn_sim *all_hosts(struct cn_topo **t)
{
	struct cn_sim_config c;
	struct cn_sim *s;
	struct cn_err err;

	assert_int_equal(cn_topo_shape("24", 10000000, 0, 10000000, 0, t, &err), COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = *t;
	c.engine.node.max_peers = CONTROL_HOSTS;
	assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_OK);
	cn_sim_run(s, cn_sim_now(s) + 2000 * CN_MS);
	return s;
}

/* There was no memory for the records of nodes when they were discovered: a team forms as soon as
 * there is. */
static void control__nodes_without_records(void **state)
{
	struct control_rank rank[CONTROL_HOSTS];
	struct cn_topo *t;
	struct cn_sim *s = all_hosts(&t);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct cn_node *n = cn_engine_node(cn_sim_engine(s, i));

		for (uint32_t k = 0; k < cn_node_peers(n); k++) {
			free(cn_engine_peer_of(cn_node_peer(n, k)));
			cn_peer_set_user(cn_node_peer(n, k), NULL);
		}
	}
	join_all(s, rank);
	cn_sim_run(s, cn_sim_now(s) + 1000 * CN_MS);
	for (uint32_t i = 0; i < CONTROL_HOSTS; i++) {
		assert_int_equal(rank[i].told, 1);
		assert_int_equal(rank[i].status, COLLNET_OK);
		cn_team_leave(rank[i].member, cn_sim_now(s), false);
	}
	cn_sim_free(s);
	cn_topo_free(t);
}

/*
 * A rank leaves before the job is complete, and another one comes in its place, before all nodes
 * were told: they were told of as many ranks, but not of these.
 */
static void control__another_rank_in_its_place(void **state)
{
	struct control_rank rank[CONTROL_HOSTS + 1], first;
	struct cn_topo *t;
	struct cn_sim *s = all_hosts(&t);

	(void)state;
	join(s, 0, 0, CONTROL_HOSTS + 1, &rank[0]);
	join(s, 0, 1, CONTROL_HOSTS + 1, &first);
	cn_sim_run(s, cn_sim_now(s) + 10 * CN_MS);
	cn_team_leave(first.member, cn_sim_now(s), false); /* more nodes than are told at once */
	join(s, 0, 2, CONTROL_HOSTS + 1, &rank[2]);
	cn_sim_run(s, cn_sim_now(s) + 1000 * CN_MS);
	join(s, 1, 1, CONTROL_HOSTS + 1, &rank[1]);
	for (uint32_t i = 3; i <= CONTROL_HOSTS; i++) {
		join(s, i - 1, i, CONTROL_HOSTS + 1, &rank[i]);
	}
	cn_sim_run(s, cn_sim_now(s) + 1000 * CN_MS);
	for (uint32_t i = 0; i <= CONTROL_HOSTS; i++) {
		if (rank[i].told != 1 || rank[i].status != COLLNET_OK) {
			fail_msg("rank %u told %u times, \"%s\"", i, rank[i].told, rank[i].text);
		}
		cn_team_leave(rank[i].member, cn_sim_now(s), false);
	}
	cn_sim_free(s);
	cn_topo_free(t);
}

/* Host 0 of two, which have met, has rank 0 of a job of two; returns the other one there. */
static struct cn_peer *half_a_job(struct cn_topo **t, struct cn_sim **s, struct control_rank *rank)
{
	struct cn_sim_config c;
	struct cn_err err;

	assert_int_equal(cn_topo_shape("2", 10000000, 0, 10000000, 0, t, &err), COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = *t;
	assert_int_equal(cn_sim_new(&c, s, &err), COLLNET_OK);
	cn_sim_run(*s, cn_sim_now(*s) + 1000 * CN_MS);
	join(*s, 0, 0, 2, rank);
	return cn_node_peer(cn_engine_node(cn_sim_engine(*s, 0)), 0);
}

/* Team 7 of the peer has one rank of the job. */
static void take_join(struct cn_sim *s, struct cn_peer *peer, const struct cn_topo *t,
		      uint32_t ranks, uint32_t rank)
{
	uint8_t m[64];
	struct cn_cursor w = { m, m + sizeof(m), false };

	cn_put8(&w, CN_CONTROL_JOIN);
	cn_put32(&w, 7);
	cn_put16(&w, 0);
	cn_put32(&w, ranks);
	cn_put32(&w, cn_topo_hash(t));
	cn_put64(&w, CONTROL_OWNER);
	cn_put32(&w, 0);
	cn_put_text(&w, "job");
	cn_put16(&w, 1);
	cn_put32(&w, rank);
	cn_put32(&w, 1);
	assert_false(w.bad);
	assert_true(cn_control_deliver(cn_sim_engine(s, 0), cn_sim_now(s), peer, m,
				       (size_t)(w.at - m)));
}

/* A node says, of the team that it told of, other ranks of a larger job: nobody does so, and it is
 * not believed, or ranks would be marked beyond the end of what is kept of this one. */
static void control__a_team_does_not_change_its_size(void **state)
{
	struct control_rank rank;
	struct cn_topo *t;
	struct cn_sim *s;
	struct cn_peer *peer = half_a_job(&t, &s, &rank);

	(void)state;
	take_join(s, peer, t, 2, 1);
	take_join(s, peer, t, 200, 100);
	assert_int_equal(cn_join_by_id(&cn_engine_peer_of(peer)->joins, 7)->ranges[0].first, 1);
	/* The peer has no such team, and says so when it is asked. */
	cn_sim_kick(s, 0);
	cn_sim_run(s, cn_sim_now(s) + 200 * CN_MS);
	assert_null(cn_join_by_id(&cn_engine_peer_of(peer)->joins, 7));
	assert_int_equal(rank.told, 0); /* it is still there, and waits */
	cn_team_leave(rank.member, cn_sim_now(s), false);
	cn_sim_free(s);
	cn_topo_free(t);
}

/* The peer's team of this id failed while it formed. */
static void take_fail(struct cn_sim *s, struct cn_peer *peer, uint32_t id, uint8_t code)
{
	uint8_t m[16];
	struct cn_cursor w = { m, m + sizeof(m), false };

	cn_put8(&w, CN_CONTROL_FAIL);
	cn_put32(&w, id);
	cn_put8(&w, CN_FAIL_FORMING | code);
	cn_put_text(&w, "why");
	assert_true(cn_control_deliver(cn_sim_engine(s, 0), cn_sim_now(s), peer, m,
				       (size_t)(w.at - m)));
}

/* A FAIL has an error of a later version: a process would give up its daemon, and all its jobs, for
 * a completion with a status that it does not know. */
static void control__a_later_version_has_more_errors(void **state)
{
	(void)state;
	for (uint8_t code = 1; code < CN_FAIL_CONTRADICTION; code++) {
		const int status = code <= -COLLNET_EUNSUPPORTED ? -code : COLLNET_EPROTO;
		struct control_rank rank;
		struct cn_topo *t;
		struct cn_sim *s;
		struct cn_peer *peer = half_a_job(&t, &s, &rank);

		take_fail(s, peer, 8, code); /* of a split whose claims are under way */
		assert_int_equal(cn_join_failure(&cn_engine_peer_of(peer)->joins, 8)->code, status);
		take_join(s, peer, t, 2, 1);
		take_fail(s, peer, 7, code);
		assert_int_equal(rank.told, 1);
		assert_int_equal(rank.status, status);
		assert_string_equal(rank.text, "why");
		cn_team_leave(rank.member, cn_sim_now(s), false);
		cn_sim_free(s);
		cn_topo_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control__a_node_is_lost_and_found),
		cmocka_unit_test(control__owners_do_not_meet),
		cmocka_unit_test(control__nodes_without_records),
		cmocka_unit_test(control__another_rank_in_its_place),
		cmocka_unit_test(control__a_team_does_not_change_its_size),
		cmocka_unit_test(control__a_later_version_has_more_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
