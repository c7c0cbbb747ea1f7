/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/control.c on a simulated cluster: how a team forms while nodes are lost and found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include "coll/control.h"
#include "coll/engine_state.h"
#include "tools/sim/core/sim.h"

#define OWNER 1000u
#define HOSTS 24u
#define LOST  5u /* the host that is cut off */

struct rank {
	struct cn_done done; /* first */
	uint32_t told;
	int status;
	char text[CN_ERR_TEXT];
	struct cn_member *member;
};

static void joined(struct cn_done *d, int status, const char *text)
{
	struct rank *r = (struct rank *)(void *)d;

	r->told++;
	r->status = status;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

static void join_all(struct cn_sim *s, struct rank *rank)
{
	struct cn_err err;

	memset(rank, 0, HOSTS * sizeof(*rank));
	for (uint32_t i = 0; i < HOSTS; i++) {
		rank[i].done.fn = joined;
		if (cn_team_join(cn_sim_engine(s, i), cn_sim_now(s), OWNER, "job", i, HOSTS,
				 cn_sim_now(s) + 60000 * CN_MS, &rank[i].done, &rank[i].member,
				 &err) != COLLNET_OK) {
			fail_msg("%s", err.text);
		}
		cn_sim_kick(s, i);
	}
}

static uint32_t told(const struct rank *rank)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < HOSTS; i++) {
		n += rank[i].told;
	}
	return n;
}

static uint32_t link_of(const struct cn_topo *t, uint32_t host)
{
	uint32_t k = 0;

	while (t->links[k].a != t->hosts[host] && t->links[k].b != t->hosts[host]) {
		k++;
	}
	return k;
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
		struct rank rank[HOSTS];
		struct cn_sim *s;
		bool ready = false;

		cn_sim_config_init(&c);
		c.topo = t;
		c.seed = k + 1;
		c.engine.node.max_peers = HOSTS;
		assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_OK);
		cn_sim_run(s, cn_sim_now(s) + 2000 * CN_MS); /* all have met */
		join_all(s, rank);
		cn_sim_run(s, cn_sim_now(s) + k * 4 * CN_MS);
		cn_sim_cut(s, link_of(t, LOST), 2, true);
		cn_sim_run(s, cn_sim_now(s) + 3000 * CN_MS);
		ready = told(rank) > 0;
		cn_sim_cut(s, link_of(t, LOST), 2, false);
		cn_sim_run(s, cn_sim_now(s) + 5000 * CN_MS);
		for (uint32_t i = 0; i < HOSTS; i++) {
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
		for (uint32_t i = 0; i < HOSTS; i++) {
			cn_team_leave(rank[i].member, cn_sim_now(s), false);
		}
		cn_sim_free(s);
	}
	print_message("%u times all joined, %u times it was too late\n", all, some);
	assert_true(all >= 10 && some >= 5);
	cn_topo_free(t);
}

static void join_as(struct cn_sim *s, uint64_t owner, uint32_t host, uint32_t rank, uint32_t ranks,
		    struct rank *r)
{
	struct cn_err err;

	*r = (struct rank){ .done = { .fn = joined } };
	if (cn_team_join(cn_sim_engine(s, host), cn_sim_now(s), owner, "job", rank, ranks,
			 cn_sim_now(s) + 10000 * CN_MS, &r->done, &r->member, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	cn_sim_kick(s, host);
}

static void join(struct cn_sim *s, uint32_t host, uint32_t rank, uint32_t ranks, struct rank *r)
{
	join_as(s, OWNER, host, rank, ranks, r);
}

/*
 * Two owners have jobs of one name on the same nodes, of different sizes and with the same ranks:
 * both become ready, and each owner is shown its own one only.
 */
static void control__owners_do_not_meet(void **state)
{
	struct collnet_job_info jobs[4];
	struct rank mine[3], other[4];
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
		join_as(s, OWNER + 1, i, i, 4, &other[i]);
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
	cn_engine_jobs(cn_sim_engine(s, 0), OWNER, jobs, &n);
	assert_int_equal(n, 1);
	assert_int_equal(jobs[0].ranks, 3);
	n = 4;
	cn_engine_jobs(cn_sim_engine(s, 0), OWNER + 2, jobs, &n);
	assert_int_equal(n, 0);
	n = 4;
	cn_engine_jobs(cn_sim_engine(s, 0), CN_OWNER_ROOT, jobs, &n);
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

/*
 * A rank leaves before the job is complete, and another one comes in its place, before all nodes
 * were told: they were told of as many ranks, but not of these.
 */
static void control__another_rank_in_its_place(void **state)
{
	struct rank rank[HOSTS + 1], first;
	struct cn_sim_config c;
	struct cn_topo *t;
	struct cn_sim *s;
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_topo_shape("24", 10000000, 0, 10000000, 0, &t, &err), COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = t;
	c.engine.node.max_peers = HOSTS;
	assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_OK);
	cn_sim_run(s, cn_sim_now(s) + 2000 * CN_MS);
	join(s, 0, 0, HOSTS + 1, &rank[0]);
	join(s, 0, 1, HOSTS + 1, &first);
	cn_sim_run(s, cn_sim_now(s) + 10 * CN_MS);
	cn_team_leave(first.member, cn_sim_now(s), false); /* more nodes than are told at once */
	join(s, 0, 2, HOSTS + 1, &rank[2]);
	cn_sim_run(s, cn_sim_now(s) + 1000 * CN_MS);
	join(s, 1, 1, HOSTS + 1, &rank[1]);
	for (uint32_t i = 3; i <= HOSTS; i++) {
		join(s, i - 1, i, HOSTS + 1, &rank[i]);
	}
	cn_sim_run(s, cn_sim_now(s) + 1000 * CN_MS);
	for (uint32_t i = 0; i <= HOSTS; i++) {
		if (rank[i].told != 1 || rank[i].status != COLLNET_OK) {
			fail_msg("rank %u told %u times, \"%s\"", i, rank[i].told, rank[i].text);
		}
		cn_team_leave(rank[i].member, cn_sim_now(s), false);
	}
	cn_sim_free(s);
	cn_topo_free(t);
}

/* A node says, of the team that it told of, other ranks of a larger job: nobody does so, and it is
 * not believed, or ranks would be marked beyond the end of what is kept of this one. */
static void control__a_team_does_not_change_its_size(void **state)
{
	struct cn_sim_config c;
	struct rank rank;
	struct cn_topo *t;
	struct cn_sim *s;
	struct cn_err err;
	struct cn_peer *peer;

	(void)state;
	assert_int_equal(cn_topo_shape("2", 10000000, 0, 10000000, 0, &t, &err), COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = t;
	assert_int_equal(cn_sim_new(&c, &s, &err), COLLNET_OK);
	cn_sim_run(s, cn_sim_now(s) + 1000 * CN_MS);
	join(s, 0, 0, 2, &rank);
	peer = cn_node_peer(cn_engine_node(cn_sim_engine(s, 0)), 0);
	for (int k = 0; k < 2; k++) {
		uint8_t m[64];
		struct cn_cursor w = { m, m + sizeof(m), false };

		cn_put8(&w, CN_CONTROL_JOIN);
		cn_put32(&w, 7);
		cn_put16(&w, 0);
		cn_put32(&w, k == 0 ? 2 : 200);
		cn_put32(&w, cn_engine_topology_hash(t));
		cn_put64(&w, OWNER);
		cn_put32(&w, 0);
		cn_put_text(&w, "job");
		cn_put16(&w, 1);
		cn_put32(&w, k == 0 ? 1 : 100);
		cn_put32(&w, 1);
		assert_false(w.bad);
		assert_true(cn_control_deliver(cn_sim_engine(s, 0), cn_sim_now(s), peer, m,
					       (size_t)(w.at - m)));
	}
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

/* ---- path MTU -------------------------------------------------------------------------- */

#define NODES 8u

struct mtu_team {
	struct cn_sim *sim;
	struct cn_topo *topo;
	struct rank rank[HOSTS];
	cn_time begin;
};

static void mtu_sim(struct mtu_team *m, const uint32_t *mtus, uint64_t seed, uint32_t loss,
		    uint32_t narrow_end)
{
	const struct cn_sim_faults all = { .loss = loss };
	struct cn_sim_faults narrow = { .loss = loss, .mtu = 1400 };
	struct cn_sim_config c;
	struct cn_err err;

	assert_int_equal(cn_topo_shape("4x2", 100000000, 0, 100000000, 0, &m->topo, &err),
			 COLLNET_OK);
	cn_sim_config_init(&c);
	c.topo = m->topo;
	c.seed = seed;
	c.mtus = mtus;
	c.engine.node.mtu = mtus != NULL ? 9000 : 1500;
	c.engine.node.max_peers = NODES;
	assert_int_equal(cn_sim_new(&c, &m->sim, &err), COLLNET_OK);
	cn_sim_fault(m->sim, CN_TOPO_NONE, 2, &all);
	if (narrow_end < 3) { /* 0 or 1: one direction of a trunk; 2: both */
		uint32_t link = 0;

		while (!m->topo->vertices[m->topo->links[link].a].is_switch ||
		       !m->topo->vertices[m->topo->links[link].b].is_switch) {
			link++;
		}
		cn_sim_fault(m->sim, link, narrow_end, &narrow);
	}
	cn_sim_run(m->sim, cn_sim_now(m->sim) + 2000 * CN_MS); /* all have met */
	m->begin = cn_sim_now(m->sim);
	memset(m->rank, 0, sizeof(m->rank));
}

static void mtu_team(struct mtu_team *m, const uint32_t *mtus, uint64_t seed, uint32_t loss,
		     uint32_t narrow_end)
{
	struct cn_err err;

	mtu_sim(m, mtus, seed, loss, narrow_end);
	for (uint32_t i = 0; i < NODES; i++) {
		m->rank[i].done.fn = joined;
		assert_int_equal(cn_team_join(cn_sim_engine(m->sim, i), m->begin, OWNER, "job", i,
					      NODES, m->begin + 30000 * CN_MS, &m->rank[i].done,
					      &m->rank[i].member, &err),
				 COLLNET_OK);
		cn_sim_kick(m->sim, i);
	}
}

/* Until all ranks are told. How long it took. */
static cn_time mtu_told(struct mtu_team *m)
{
	uint32_t n = 0;

	while (n < NODES && cn_sim_step(m->sim, m->begin + 40000 * CN_MS)) {
		n = 0;
		for (uint32_t i = 0; i < NODES; i++) {
			n += m->rank[i].told;
		}
	}
	return cn_sim_now(m->sim) - m->begin;
}

static void mtu_end(struct mtu_team *m)
{
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(m->rank[i].told, 1);
		cn_team_leave(m->rank[i].member, cn_sim_now(m->sim), false);
	}
	cn_sim_free(m->sim);
	cn_topo_free(m->topo);
}

/* Every rank is told of two nodes on different sides of the trunk, the size and the word. */
static void control__path_drops_large_frames(void **state)
{
	(void)state;
	for (uint32_t end = 0; end < 3; end++) {
		struct mtu_team m;
		cn_time took;

		mtu_team(&m, NULL, 5, 0, end);
		took = mtu_told(&m);
		print_message("end %u: %llu ms: %s\n", end, (unsigned long long)(took / CN_MS),
			      m.rank[0].text);
		assert_true(took < 1000 * CN_MS);
		for (uint32_t i = 0; i < NODES; i++) {
			unsigned from, to;
			const char *at = strstr(m.rank[i].text, "from node h");

			assert_int_equal(m.rank[i].status, COLLNET_EPEER);
			assert_non_null(strstr(m.rank[i].text, "frames of 1500 bytes"));
			assert_non_null(strstr(m.rank[i].text, "carry MTU 1500"));
			assert_non_null(at);
			assert_int_equal(sscanf(at, "from node h%u do not reach node h%u,", &from,
						&to),
					 2);
			assert_true((from < 4) != (to < 4));
		}
		mtu_end(&m);
	}
}

static void control__nodes_of_different_mtu(void **state)
{
	static const uint32_t mtus[NODES] = { 1500, 1500, 1500, 9000, 1500, 1500, 1500, 1500 };
	struct mtu_team m;
	cn_time took;

	(void)state;
	mtu_team(&m, mtus, 6, 0, 3);
	took = mtu_told(&m);
	print_message("%llu ms: %s\n", (unsigned long long)(took / CN_MS), m.rank[0].text);
	assert_true(took < 200 * CN_MS);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(m.rank[i].status, COLLNET_EMISMATCH);
		/* found here, or told by the other: which is first differs */
		assert_non_null(strstr(m.rank[i].text, "node h3"));
		assert_non_null(strstr(m.rank[i].text, "9000"));
		assert_non_null(strstr(m.rank[i].text, "1500"));
		assert_non_null(strstr(m.rank[i].text, "set them alike"));
	}
	mtu_end(&m);
}

/* What it costs: the team is ready as soon without losses, and with them no path is taken for
 * narrow. */
static void control__path_is_no_hindrance(void **state)
{
	cn_time took;
	struct mtu_team m;

	(void)state;
	mtu_team(&m, NULL, 7, 0, 3);
	took = mtu_told(&m);
	print_message("ready after %llu us\n", (unsigned long long)(took / CN_US));
	assert_true(took < 10 * CN_MS);
	mtu_end(&m);
	for (uint64_t seed = 1; seed <= 100; seed++) {
		mtu_team(&m, NULL, seed, 50000, 3);
		mtu_told(&m);
		for (uint32_t i = 0; i < NODES; i++) {
			if (m.rank[i].status != COLLNET_OK) {
				fail_msg("seed %llu: %s", (unsigned long long)seed, m.rank[i].text);
			}
		}
		mtu_end(&m);
	}
}

/* ---- silence --------------------------------------------------------------------------- */

/* A hello of wire version 2 from an address comes to a host. */
static void version_two(struct cn_sim *s, uint32_t host, const uint8_t mac[6])
{
	uint8_t frame[60] = { [12] = 0x88, [13] = 0xb5, [14] = 0xc0, [15] = 0x11, [16] = 0x21 };

	memset(frame, 0xff, 6);
	memcpy(frame + 6, mac, 6);
	cn_engine_input(cn_sim_engine(s, host), cn_sim_now(s), frame, sizeof(frame));
	cn_sim_kick(s, host);
}

/* A ready team of 8 on 4x2 runs a barrier while the link is cut; every rank's error. upgraded: what
 * comes from the host then is of wire version 2. */
static void cut_under_barrier(uint32_t host, bool upgraded, struct rank *op)
{
	struct mtu_team m;
	struct cn_err err;
	uint32_t n = 0, link;

	mtu_team(&m, NULL, 9, 0, 3);
	mtu_told(&m);
	link = host < NODES ? link_of(m.topo, host) : 0;
	while (host == NODES && (!m.topo->vertices[m.topo->links[link].a].is_switch ||
				 !m.topo->vertices[m.topo->links[link].b].is_switch)) {
		link++; /* the link of the first switch to the root */
	}
	cn_sim_cut(m.sim, link, 2, true);
	memset(op, 0, NODES * sizeof(*op));
	for (uint32_t i = 0; i < NODES; i++) {
		const struct cn_coll_args a = { .op = CN_OP_ALLTOALL,
						.algorithm = "linear",
						.bytes = 0,
						.deadline = cn_sim_now(m.sim) + 20000 * CN_MS,
						.send = op,
						.recv = op };

		assert_int_equal(m.rank[i].status, COLLNET_OK);
		op[i].done.fn = joined;
		assert_int_equal(cn_coll_post(m.rank[i].member, cn_sim_now(m.sim), &a, &op[i].done,
					      &err),
				 COLLNET_OK);
		cn_sim_kick(m.sim, i);
	}
	m.begin = cn_sim_now(m.sim);
	while (n < NODES && cn_sim_step(m.sim, m.begin + 25000 * CN_MS)) {
		n = 0;
		for (uint32_t i = 0; i < NODES; i++) {
			n += op[i].told;
		}
		if (upgraded && cn_sim_now(m.sim) > m.begin + 1000 * CN_MS) {
			struct cn_node *node = cn_engine_node(cn_sim_engine(m.sim, host));

			upgraded = false;
			for (uint32_t i = 0; i < NODES; i++) {
				version_two(m.sim, i, cn_node_config(node)->mac);
			}
		}
	}
	print_message("%llu ms: %s | %s\n",
		      (unsigned long long)((cn_sim_now(m.sim) - m.begin) / CN_MS), op[0].text,
		      op[5].text);
	assert_true(cn_sim_now(m.sim) - m.begin < 2000 * CN_MS);
	mtu_end(&m);
}

static void control__cut_off_node_says_so(void **state)
{
	struct rank op[NODES];

	(void)state;
	cut_under_barrier(5, false, op);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(op[i].status, COLLNET_EPEER);
		assert_non_null(strstr(op[i].text,
				       i == 5 ? "node h5 is cut off: none of its 7 peers answers"
					      : "node h5 stopped answering node h"));
	}
}

static void control__silent_node_of_other_version(void **state)
{
	struct rank op[NODES];

	(void)state;
	cut_under_barrier(5, true, op);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(op[i].status, COLLNET_EPEER);
		if (i != 5) {
			assert_non_null(strstr(op[i].text, "node h5 stopped answering node h"));
			assert_non_null(strstr(op[i].text,
					       "; h5 speaks wire version 2, this node 1"));
		}
	}
}

/*
 * A rank is missing, and its host speaks version 2. Node h0 alone has seen it and tells the others.
 */
static void control__missing_node_of_other_version(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 9, 9 };
	struct collnet_node_info info[NODES + 2];
	struct mtu_team m;
	struct cn_err err;
	size_t count = NODES + 2;
	uint32_t n = 0;

	(void)state;
	mtu_sim(&m, NULL, 4, 0, 3);
	for (uint32_t i = 0; i < NODES; i++) {
		m.rank[i].done.fn = joined;
		assert_int_equal(cn_team_join(cn_sim_engine(m.sim, i), m.begin, OWNER, "job", i,
					      NODES + 1, m.begin + (i == 0 ? 1900 : 2000) * CN_MS,
					      &m.rank[i].done, &m.rank[i].member, &err),
				 COLLNET_OK);
		cn_sim_kick(m.sim, i);
	}
	version_two(m.sim, 0, mac);
	while (n < NODES && cn_sim_step(m.sim, m.begin + 3000 * CN_MS)) {
		n = 0;
		for (uint32_t i = 0; i < NODES; i++) {
			n += m.rank[i].told;
		}
	}
	print_message("%s\n", m.rank[7].text);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(m.rank[i].status, COLLNET_ETIMEOUT);
		assert_non_null(strstr(m.rank[i].text,
				       "1 of 9 ranks missing at the deadline: 8; "
				       "02:00:00:00:09:09 speaks wire version 2, this node 1"));
	}
	cn_engine_nodes(cn_sim_engine(m.sim, 0), cn_sim_now(m.sim), info, &count);
	assert_int_equal(count, NODES + 1);
	assert_string_equal(info[NODES].name, "02:00:00:00:09:09");
	for (uint32_t i = 0; i <= NODES; i++) {
		assert_int_equal(info[i].wire_version, i < NODES ? 1 : 2);
		assert_int_equal(info[i].alive, i < NODES);
	}
	mtu_end(&m);
}

static void control__silent_group_is_named(void **state)
{
	struct rank op[NODES];

	(void)state;
	cut_under_barrier(NODES, false, op);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(op[i].status, COLLNET_EPEER);
		assert_non_null(strstr(op[i].text, "4 of 7 peers stopped answering: h"));
		assert_non_null(strstr(op[i].text, i < 4 ? ": h4-h7" : ": h0-h3"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control__a_node_is_lost_and_found),
		cmocka_unit_test(control__owners_do_not_meet),
		cmocka_unit_test(control__another_rank_in_its_place),
		cmocka_unit_test(control__a_team_does_not_change_its_size),
		cmocka_unit_test(control__path_drops_large_frames),
		cmocka_unit_test(control__nodes_of_different_mtu),
		cmocka_unit_test(control__path_is_no_hindrance),
		cmocka_unit_test(control__cut_off_node_says_so),
		cmocka_unit_test(control__silent_group_is_named),
		cmocka_unit_test(control__silent_node_of_other_version),
		cmocka_unit_test(control__missing_node_of_other_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
