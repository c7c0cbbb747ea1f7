/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes that fall silent on a simulated cluster, and nodes of another wire version: every rank's
 * error names them.
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
#include "coll/wireup.h"
#include "control_team.h"
#include "proto/node_impl.h"
#include "proto/wire.h"

/* A hello of wire version 2 from an address comes to a host. */
static void version_two(struct cn_sim *s, uint32_t host, const uint8_t mac[6])
{
	uint8_t frame[60] = { [12] = 0x88, [13] = 0xb5, [14] = 0xc0, [15] = 0x11, [16] = 0x21 };
	const struct cn_rx_frame f = cn_rx_frame_raw(frame, sizeof(frame));

	memset(frame, 0xff, 6);
	memcpy(frame + 6, mac, 6);
	cn_engine_input(cn_sim_engine(s, host), cn_sim_now(s), &f);
	cn_sim_kick(s, host);
}

/* A ready team of 8 on 4x2 runs barriers, as many as may be outstanding, while the link is cut, in
 * the direction from `end` or in both (2); every rank's error in the last one. upgraded: what comes
 * from the host then is of wire version 2. */
static void cut_under_barrier(uint32_t host, uint32_t end, bool upgraded, struct control_rank *op)
{
	static struct control_rank before[CN_OPS - 1][CONTROL_NODES];
	struct control_mtu_team m;
	struct cn_err err;
	uint32_t n = 0, link;

	control_mtu_team(&m, NULL, 9, 0, 3);
	control_mtu_wait(&m);
	link = host < CONTROL_NODES ? control_link_of(m.topo, host) : 0;
	while (host == CONTROL_NODES && (!m.topo->vertices[m.topo->links[link].a].is_switch ||
					 !m.topo->vertices[m.topo->links[link].b].is_switch)) {
		link++; /* the link of the first switch to the root */
	}
	cn_sim_cut(m.sim, link, end, true);
	memset(op, 0, CONTROL_NODES * sizeof(*op));
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		const struct cn_coll_args a = { .op = CN_OP_ALLTOALL,
						.algorithm = "linear",
						.bytes = 0,
						.deadline = cn_sim_now(m.sim) + 20000 * CN_MS,
						.send = op,
						.recv = op };

		assert_int_equal(m.rank[i].status, COLLNET_OK);
		for (uint32_t k = 0; k < CN_OPS; k++) {
			struct control_rank *r = k < CN_OPS - 1 ? &before[k][i] : &op[i];

			r->done.fn = control_joined;
			assert_int_equal(cn_coll_post(m.rank[i].member, cn_sim_now(m.sim), &a,
						      &r->done, &err),
					 COLLNET_OK);
		}
		cn_sim_kick(m.sim, i);
	}
	m.begin = cn_sim_now(m.sim);
	while (n < CONTROL_NODES && cn_sim_step(m.sim, m.begin + 25000 * CN_MS)) {
		n = 0;
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			n += op[i].told;
		}
		if (upgraded && cn_sim_now(m.sim) > m.begin + 1000 * CN_MS) {
			struct cn_node *node = cn_engine_node(cn_sim_engine(m.sim, host));

			upgraded = false;
			for (uint32_t i = 0; i < CONTROL_NODES; i++) {
				version_two(m.sim, i, cn_node_config(node)->mac);
			}
		}
	}
	print_message("%llu ms: %s | %s\n",
		      (unsigned long long)((cn_sim_now(m.sim) - m.begin) / CN_MS), op[0].text,
		      op[5].text);
	assert_true(cn_sim_now(m.sim) - m.begin < 2000 * CN_MS);
	control_mtu_end(&m);
}

/* Only what goes to the host is lost, which hears nobody, or only what comes from it, which nobody
 * hears: all learn so at the same time, and which it is. */
static void control__one_direction_is_cut(void **state)
{
	struct control_rank op[CONTROL_NODES];

	(void)state;
	for (uint32_t end = 0; end < 2; end++) {
		cut_under_barrier(5, end, false, op);
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			const char *deaf = i == 5 ? "node h5 is cut off: none of its 7 peers"
						  : "node h5 did not hear any of its 7 peers for "
						    "long and gave up node h";
			const char *unheard = i == 5 ? " did not hear node h5 for long and gave up "
						       "node h5"
						     : "node h5 stopped answering node h";

			assert_int_equal(op[i].status, COLLNET_EPEER);
			assert_non_null(strstr(op[i].text, end == 0 ? deaf : unheard));
		}
	}
}

static void control__cut_off_node_says_so(void **state)
{
	struct control_rank op[CONTROL_NODES];

	(void)state;
	cut_under_barrier(5, 2, false, op);
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		assert_int_equal(op[i].status, COLLNET_EPEER);
		assert_non_null(strstr(op[i].text,
				       i == 5 ? "node h5 is cut off: none of its 7 peers answers"
					      : "node h5 stopped answering node h"));
	}
}

/*
 * A rank dies, or late: its deadline passes, when others have their team and its own node has not
 * yet: they say so at once, by the node's own words, not when the node is silent for too long.
 */
static void ends_before_it_is_ready(uint32_t others, bool late)
{
	struct control_rank op[CONTROL_NODES] = { 0 };
	struct control_mtu_team m;
	uint32_t ready = 0, dead = CONTROL_NODES;
	cn_time died;

	control_mtu_team(&m, NULL, 9, 0, 3);
	while (ready < others && cn_sim_step(m.sim, m.begin + 40000 * CN_MS)) {
		ready = 0;
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			ready += m.rank[i].told;
			dead = m.rank[i].told == 0 ? i : dead;
		}
	}
	assert_uint_in_range(ready, others, CONTROL_NODES - 1);
	died = cn_sim_now(m.sim);
	if (late) {
		cn_wireup_timeout(m.rank[dead].member->team, died);
	} else {
		cn_team_leave(m.rank[dead].member, died, true);
	}
	cn_sim_kick(m.sim, dead);
	for (uint32_t told = 0; told < CONTROL_NODES - 1;) {
		assert_true(cn_sim_step(m.sim, died + 50 * CN_MS));
		told = 0;
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			if (i != dead && m.rank[i].told == 1 && op[i].done.fn == NULL) {
				const struct cn_coll_args a = { .op = CN_OP_ALLTOALL,
								.algorithm = "linear",
								.deadline = CN_NEVER,
								.send = op,
								.recv = op };
				struct cn_err err;

				op[i].done.fn = control_joined;
				op[i].told = m.rank[i].status != COLLNET_OK;
				memcpy(op[i].text, m.rank[i].text, sizeof(op[i].text));
				if (op[i].told == 0 &&
				    cn_coll_post(m.rank[i].member, cn_sim_now(m.sim), &a,
						 &op[i].done, &err) != COLLNET_OK) {
					op[i].told = 1;
					memcpy(op[i].text, err.text, sizeof(op[i].text));
				}
				cn_sim_kick(m.sim, i);
			}
			told += i != dead && op[i].told == 1;
		}
	}
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		if (i != dead) {
			char want[64] = "not every node confirmed it in time";

			if (!late) {
				snprintf(want, sizeof(want), "rank %u on node h%u died", dead,
					 dead);
			}
			assert_non_null(strstr(op[i].text, want));
			cn_team_leave(m.rank[i].member, cn_sim_now(m.sim), false);
		}
	}
	print_message("%u ready, %llu us: %s\n", ready,
		      (unsigned long long)((cn_sim_now(m.sim) - died) / 1000), op[!dead].text);
	cn_sim_free(m.sim);
	cn_topo_free(m.topo);
}

static void control__rank_dies_before_it_is_ready(void **state)
{
	(void)state;
	for (uint32_t others = 1; others < CONTROL_NODES; others++) {
		ends_before_it_is_ready(others, false);
	}
}

static void control__deadline_passes_before_it_is_ready(void **state)
{
	(void)state;
	for (uint32_t others = 1; others < CONTROL_NODES; others++) {
		ends_before_it_is_ready(others, true);
	}
}

/* The session with a node that is ready ends, that of the nodes goes on: the team fails then, and
 * does not wait for the others' COMMIT. */
static void control__session_ends_before_it_is_ready(void **state)
{
	struct control_mtu_team m;
	uint32_t ready = 0, last = CONTROL_NODES, other = CONTROL_NODES;
	struct cn_team *t;
	struct cn_peer *p;

	(void)state;
	control_mtu_team(&m, NULL, 9, 0, 3);
	while (ready == 0 && cn_sim_step(m.sim, m.begin + 40000 * CN_MS)) {
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			ready += m.rank[i].told;
			*(m.rank[i].told == 0 ? &last : &other) = i;
		}
	}
	assert_uint_in_range(ready, 1, CONTROL_NODES - 1);
	t = m.rank[last].member->team;
	p = cn_node_peer(t->transport->node, 0);
	while (strcmp(cn_peer_name(p), cn_engine_node(cn_sim_engine(m.sim, other))->config.name)) {
		p = cn_node_peer(p->node, cn_peer_index(p) + 1);
	}
	cn_peer_down(p, CN_PEER_UNHEARD);
	assert_int_equal(t->state, CN_TEAM_FAILED);
	control_mtu_wait(&m);
	assert_int_equal(m.rank[last].status, COLLNET_EPEER);
	print_message("%s\n", m.rank[last].text);
	control_mtu_end(&m);
}

/* The same before the job forms, which waits for the host until the deadline: it may come back. */
static void control__one_direction_is_cut_while_it_forms(void **state)
{
	(void)state;
	for (uint32_t end = 0; end < 2; end++) {
		struct control_mtu_team m;

		control_mtu_team(&m, NULL, 9, 0, 3);
		cn_sim_cut(m.sim, control_link_of(m.topo, 5), end, true);
		assert_true(control_mtu_wait(&m) >= 30000 * CN_MS);
		print_message("%s | %s\n", m.rank[0].text, m.rank[5].text);
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			const char *lost = end == 0 ? ": 5; node h5 did not hear this node for long"
						    : ": 5; node h5 stopped answering";

			assert_int_equal(m.rank[i].status, COLLNET_ETIMEOUT);
			assert_non_null(strstr(m.rank[i].text,
					       i != 5 ? lost
						      : ": 0-4, 6-7; node h5 exchanges frames with "
							"no other node"));
		}
		control_mtu_end(&m);
	}
}

static void control__silent_node_of_other_version(void **state)
{
	struct control_rank op[CONTROL_NODES];

	(void)state;
	cut_under_barrier(5, 2, true, op);
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		assert_int_equal(op[i].status, COLLNET_EPEER);
		if (i != 5) {
			assert_non_null(strstr(op[i].text, "node h5 stopped answering node h"));
			assert_non_null(strstr(op[i].text,
					       "; h5 speaks wire version 2, this node 3"));
		}
	}
}

/*
 * A rank is missing, and its host speaks version 2. Node h0 alone has seen it and tells the others.
 */
static void control__missing_node_of_other_version(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 9, 9 };
	struct collnet_node_info info[CONTROL_NODES + 2];
	struct control_mtu_team m;
	struct cn_err err;
	size_t count = CONTROL_NODES + 2;
	uint32_t n = 0;

	(void)state;
	control_mtu_sim(&m, NULL, 4, 0, 3);
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		m.rank[i].done.fn = control_joined;
		assert_int_equal(cn_team_join(cn_sim_engine(m.sim, i), m.begin, CONTROL_OWNER,
					      "job", i, CONTROL_NODES + 1,
					      m.begin + (i == 0 ? 1900 : 2000) * CN_MS,
					      &m.rank[i].done, &m.rank[i].member, &err),
				 COLLNET_OK);
		cn_sim_kick(m.sim, i);
	}
	version_two(m.sim, 0, mac);
	while (n < CONTROL_NODES && cn_sim_step(m.sim, m.begin + 3000 * CN_MS)) {
		n = 0;
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			n += m.rank[i].told;
		}
	}
	print_message("%s\n", m.rank[7].text);
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		assert_int_equal(m.rank[i].status, COLLNET_ETIMEOUT);
		assert_non_null(strstr(m.rank[i].text,
				       "1 of 9 ranks missing at the deadline: 8; "
				       "02:00:00:00:09:09 speaks wire version 2, this node 3"));
	}
	cn_engine_nodes(cn_sim_engine(m.sim, 0), cn_sim_now(m.sim), 0, info, &count);
	assert_int_equal(count, CONTROL_NODES + 1);
	assert_string_equal(info[CONTROL_NODES].name, "02:00:00:00:09:09");
	for (uint32_t i = 0; i <= CONTROL_NODES; i++) {
		assert_int_equal(info[i].wire_version, i < CONTROL_NODES ? 3 : 2);
		assert_int_equal(info[i].alive, i < CONTROL_NODES);
		assert_string_equal(info[i].mismatch,
				    i < CONTROL_NODES ? "" : "speaks wire version 2, this node 3");
	}
	control_mtu_end(&m);
}

/* The node table says why there is no session: with nodes that it knew, and with others. */
static void control__mismatches_are_listed(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 9, 9 };
	const struct cn_mismatch udp = { .version = 3, .encapsulation = CN_ENCAPSULATION_UDP };
	const struct cn_mismatch twin = { .version = 3, .name = "h0" };
	struct collnet_node_info info[CONTROL_NODES + 2];
	struct control_mtu_team m;
	struct cn_engine *e;
	size_t count = CONTROL_NODES + 2;

	(void)state;
	control_mtu_sim(&m, NULL, 4, 0, 3);
	e = cn_sim_engine(m.sim, 0);
	cn_engine_nodes(e, m.begin, 0, info, &count);
	assert_int_equal(count, CONTROL_NODES);
	cn_sim_cut(m.sim, control_link_of(m.topo, 0), 2, true);
	cn_sim_run(m.sim, m.begin + CN_MS); /* what was under way */
	cn_foreign_version_record(cn_engine_node(e), info[5].mac, &udp);
	cn_foreign_version_record(cn_engine_node(e), mac, &twin);
	/* The topology has its address, and another name, which others may have. */
	m.topo->vertices[m.topo->hosts[3]].has_mac = true;
	memcpy(m.topo->vertices[m.topo->hosts[3]].mac, mac, 6);
	count = CONTROL_NODES + 2;
	cn_engine_nodes(e, m.begin + 3000 * CN_MS, 0, info, &count);
	assert_int_equal(count, CONTROL_NODES + 1);
	for (uint32_t i = 0; i < count; i++) {
		const char *const why = i == 5 ? "uses encapsulation udp, this node raw"
					: i == CONTROL_NODES ? "is called h0, as this node"
							     : "";

		assert_string_equal(info[i].mismatch, why);
	}
	assert_string_equal(info[CONTROL_NODES].name, "02:00:00:00:09:09");
	/* So does each part of it, and of the others nothing. */
	for (uint32_t i = 0; i <= count; i++) {
		struct collnet_node_info part[2] = { { .mtu = 1 }, { .mtu = 2 } };
		const size_t all = count;

		count = 1;
		cn_engine_nodes(e, m.begin + 3000 * CN_MS, i, part, &count);
		assert_int_equal(count, all);
		assert_int_equal(part[1].mtu, 2);
		if (i < count) {
			assert_memory_equal(&part[0], &info[i], sizeof(info[i]));
		} else {
			assert_int_equal(part[0].mtu, 1);
		}
	}
	cn_sim_free(m.sim);
	cn_topo_free(m.topo);
}

/* A hello from an address, which it has proved to have. */
static void hello_as(struct cn_sim *s, uint32_t host, const uint8_t mac[6], const char *name)
{
	struct cn_node *n = cn_engine_node(cn_sim_engine(s, host));
	const struct cn_peer *p = cn_peer_by_mac(n, mac);
	const uint64_t echo = p != NULL ? p->nonce_out : cn_nonce(n, mac, 0);
	struct cn_hello h = { .epoch = 77, .nonce = 1, .mtu = 1500, .cluster = n->config.cluster };
	struct cn_wire w = { .type = CN_TYPE_HELLO,
			     .flags = CN_FLAG_UNICAST,
			     .seq = (uint32_t)(echo >> 32),
			     .ack = (uint32_t)echo };
	uint8_t frame[CN_FRAME_HEAD] = { [12] = 0x88, [13] = 0xb5 };
	struct cn_rx_frame f;

	memcpy(frame, n->config.mac, 6);
	memcpy(frame + 6, mac, 6);
	strcpy(h.name, name);
	w.length = (uint16_t)cn_hello_put(frame + CN_HEAD, &h);
	cn_wire_put(frame + CN_ETH_HEADER, &w);
	f = cn_rx_frame_raw(frame, CN_HEAD + (size_t)w.length);
	cn_engine_input(cn_sim_engine(s, host), cn_sim_now(s), &f);
	cn_sim_kick(s, host);
}

/* A host comes back with another address: it is listed once. While it has the name of one that
 * answers, it is listed by its address, and why. */
static void control__another_address_is_listed_once(void **state)
{
	static const uint8_t mac[6] = { 2, 9, 0, 0, 0, 99 };
	struct collnet_node_info info[CONTROL_NODES + 2];
	struct control_mtu_team m;
	struct cn_engine *e;
	size_t count;

	(void)state;
	control_mtu_sim(&m, NULL, 4, 0, 3);
	e = cn_sim_engine(m.sim, 0);
	for (uint32_t crashed = 0; crashed < 2; crashed++) {
		uint32_t named = 0;

		if (crashed) {
			cn_sim_crash(m.sim, 5);
		}
		for (uint32_t i = 0; i < 10; i++) {
			hello_as(m.sim, 0, mac, "h5");
			cn_sim_run(m.sim, cn_sim_now(m.sim) + 500 * CN_MS);
		}
		count = CONTROL_NODES + 2;
		cn_engine_nodes(e, cn_sim_now(m.sim), 0, info, &count);
		assert_int_equal(count, CONTROL_NODES + !crashed);
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			assert_true(info[i].alive);
			assert_string_equal(info[i].mismatch, "");
			named += strcmp(info[i].name, "h5") == 0;
		}
		assert_int_equal(named, 1);
		assert_memory_equal(info[count - 1].mac, mac, 6);
		if (!crashed) {
			assert_string_equal(info[count - 1].name, "02:09:00:00:00:63");
			assert_string_equal(info[count - 1].mismatch,
					    "is called h5, as another node");
			assert_false(info[count - 1].alive);
		}
	}
	cn_sim_free(m.sim);
	cn_topo_free(m.topo);
}

/* A rank leaves once it has sent its block. Its node, whose part of the team is gone 6 s later, is
 * neither blamed for a node that dies nor counted as one that could answer. */
static void control__departed_node_is_not_counted(void **state)
{
	(void)state;
	for (uint32_t cut = 0; cut < 2; cut++) {
		struct control_rank gather[2] = { { .done.fn = control_joined },
						  { .done.fn = control_joined } };
		struct control_mtu_team m;
		struct cn_err err;
		char block[8] = "", all[CONTROL_NODES * 8];

		control_mtu_team(&m, NULL, 9, 0, 3);
		control_mtu_wait(&m);
		for (uint32_t i = 0; i < 2; i++) {
			const struct cn_coll_args a = { .op = CN_OP_GATHER,
							.algorithm = "windowed",
							.bytes = sizeof(block),
							.deadline = CN_NEVER,
							.send = block,
							.recv = all };

			assert_int_equal(cn_coll_post(m.rank[7 * i].member, cn_sim_now(m.sim), &a,
						      &gather[i].done, &err),
					 COLLNET_OK);
			cn_sim_kick(m.sim, 7 * i);
		}
		while (!gather[1].told) {
			assert_true(cn_sim_step(m.sim, m.begin + 10000 * CN_MS));
		}
		cn_team_leave(m.rank[7].member, cn_sim_now(m.sim), false);
		cn_sim_kick(m.sim, 7);
		cn_sim_run(m.sim, cn_sim_now(m.sim) + 7000 * CN_MS);
		if (cut) {
			cn_sim_cut(m.sim, control_link_of(m.topo, 0), 2, true);
		} else {
			cn_sim_crash(m.sim, 5);
		}
		cn_sim_run(m.sim, cn_sim_now(m.sim) + 3000 * CN_MS);
		assert_int_equal(gather[0].status, COLLNET_EPEER);
		assert_non_null(strstr(gather[0].text,
				       cut ? "node h0 is cut off: none of its 6 peers"
					   : "node h5 stopped answering node h0"));
		for (uint32_t i = 0; i < CONTROL_NODES - 1; i++) {
			if (cut || i != 5) {
				cn_team_leave(m.rank[i].member, cn_sim_now(m.sim), false);
			}
		}
		cn_sim_free(m.sim);
		cn_topo_free(m.topo);
	}
}

/* Two nodes die while a team forms. One is back under another address before the deadline. */
static void control__back_with_another_address(void **state)
{
	static const uint8_t mac[6] = { 2, 9, 0, 0, 0, 99 };
	struct control_rank rank = { .done.fn = control_joined };
	struct control_mtu_team m;
	struct cn_err err;

	(void)state;
	control_mtu_sim(&m, NULL, 4, 0, 3);
	cn_sim_run(m.sim, cn_sim_now(m.sim) + 1000 * CN_MS);
	cn_sim_crash(m.sim, 5);
	cn_sim_crash(m.sim, 6);
	assert_int_equal(cn_team_join(cn_sim_engine(m.sim, 0), cn_sim_now(m.sim), CONTROL_OWNER,
				      "job", 0, 3, cn_sim_now(m.sim) + 6000 * CN_MS, &rank.done,
				      &rank.member, &err),
			 COLLNET_OK);
	cn_sim_kick(m.sim, 0);
	cn_sim_run(m.sim, cn_sim_now(m.sim) + 5500 * CN_MS);
	while (!rank.told) { /* for less than a peer timeout, as nothing answers there */
		hello_as(m.sim, 0, mac, "h5");
		cn_sim_run(m.sim, cn_sim_now(m.sim) + 100 * CN_MS);
	}
	assert_int_equal(rank.status, COLLNET_ETIMEOUT);
	print_message("%s\n", rank.text);
	assert_non_null(strstr(rank.text, "; node h6 stopped answering"));
	cn_team_leave(rank.member, cn_sim_now(m.sim), false);
	cn_sim_free(m.sim);
	cn_topo_free(m.topo);
}

static void control__silent_group_is_named(void **state)
{
	struct control_rank op[CONTROL_NODES];

	(void)state;
	cut_under_barrier(CONTROL_NODES, 2, false, op);
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		assert_int_equal(op[i].status, COLLNET_EPEER);
		assert_non_null(strstr(op[i].text, "4 of 7 peers stopped answering: h"));
		assert_non_null(strstr(op[i].text, i < 4 ? ": h4-h7" : ": h0-h3"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control__cut_off_node_says_so),
		cmocka_unit_test(control__one_direction_is_cut),
		cmocka_unit_test(control__silent_group_is_named),
		cmocka_unit_test(control__departed_node_is_not_counted),
		cmocka_unit_test(control__back_with_another_address),
		cmocka_unit_test(control__rank_dies_before_it_is_ready),
		cmocka_unit_test(control__deadline_passes_before_it_is_ready),
		cmocka_unit_test(control__session_ends_before_it_is_ready),
		cmocka_unit_test(control__one_direction_is_cut_while_it_forms),
		cmocka_unit_test(control__silent_node_of_other_version),
		cmocka_unit_test(control__missing_node_of_other_version),
		cmocka_unit_test(control__mismatches_are_listed),
		cmocka_unit_test(control__another_address_is_listed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
