/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/coll/split.c: what is refused while a team is divided, and leaves no trace: claims that
 * contradict each other, calls, and more early frames than are kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/split.h"
#include "coll/team.h"
#include "engine_fixture.h"
#include "util/byteorder.h"

#define DIVIDED 4u /* ranks, two on each of two nodes */
#define EARLY	64u

static struct cn_member *old[DIVIDED];

/* The teams that are made are the fixture's, and the one that is divided is ours. */
static struct engine_fixture *begin_with(void (*change)(struct cn_engine_config *))
{
	struct engine_fixture *w = engine_fixture(2, NULL, change);

	cn_hub_set_encapsulation(w->hub, w->config.node.encapsulation);
	engine_join_all(w, 2, false, "job");
	for (uint32_t r = 0; r < DIVIDED; r++) {
		old[r] = w->rank[r].member;
		w->rank[r].member = NULL;
		w->rank[r].joined.calls = 0;
	}
	return w;
}

static struct engine_fixture *begin(void)
{
	return begin_with(NULL);
}

static void finish(struct engine_fixture *w)
{
	engine_leave_all(w);
	for (uint32_t r = 0; r < DIVIDED; r++) {
		cn_team_leave(old[r], w->now, false);
	}
	engine_run(w, SECOND);
	for (uint32_t i = 0; i < w->nodes; i++) {
		assert_int_equal(w->engines[i]->deferred_frames, 0);
	}
	engine_fixture_free(w);
}

/* The rank calls. */
static int call(struct engine_fixture *w, uint32_t r)
{
	static const struct cn_split_call made = { "made", CN_MAKING_SPLIT, 0, 0 };
	struct cn_err err;

	return cn_team_split(old[r], w->now, &made, w->now + 10 * SECOND,
			     engine_begin_wait(w, &w->rank[r].joined), &w->rank[r].member, &err);
}

static void all_end(struct engine_fixture *w, int status, const char *text)
{
	engine_run(w, 20 * CN_MS);
	for (uint32_t r = 0; r < DIVIDED; r++) {
		assert_int_equal(w->rank[r].joined.calls, 1);
		assert_int_equal(w->rank[r].joined.status, status);
		assert_non_null(strstr(w->rank[r].joined.text, text));
	}
}

/* Ranks of a node say of its team what no node says: it is not believed, or its frames would be
 * taken for those of another team, and the new one would wait for ever. */
static void claims__that_make_no_sense(void **state)
{
	static const struct {
		uint32_t id;
		uint16_t port;
	} claim[][2] = {
		{ { 77, 9 }, { 77, 10 } }, { { 77, 9 }, { 78, 9 } }, { { 0, 9 }, { 0, 9 } },
		{ { 77, 0 }, { 77, 0 } },  { { 77, 9 }, { 0, 0 } },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(claim) / sizeof(claim[0]); k++) {
		struct engine_fixture *w = begin();
		uint8_t own[2][16] = { 0 }, all[DIVIDED][16];
		struct cn_coll_args a = { .op = CN_OP_ALLGATHER,
					  .making = CN_MAKING_SPLIT,
					  .window = COLLNET_WINDOW_AUTO,
					  .bytes = sizeof(own[0]),
					  .recv = all,
					  .deadline = w->now + SECOND };
		struct cn_err err;

		for (uint32_t r = 0; r < 2; r++) {
			assert_int_equal(call(w, r), COLLNET_OK);
			cn_put_be32(own[r] + 8, claim[k][r].id);
			cn_put_be16(own[r] + 12, claim[k][r].port);
			a.send = own[r];
			assert_int_equal(cn_coll_post(old[2 + r], w->now, &a,
						      engine_begin_wait(w, &w->rank[2 + r].joined),
						      &err),
					 COLLNET_OK);
		}
		engine_run(w, 20 * CN_MS);
		for (uint32_t r = 0; r < 2; r++) {
			assert_int_equal(w->rank[r].joined.calls, 1);
			assert_int_equal(w->rank[r].joined.status, COLLNET_EMISMATCH);
			assert_string_equal(w->rank[r].joined.text,
					    "node n1 contradicts itself about job made");
		}
		finish(w);
	}
}

/* New ranks are in the order of the keys, however far apart these are. */
static void call__with_keys_far_apart(void **state)
{
	static const int32_t key[DIVIDED] = { INT32_MAX, INT32_MIN, 0, -1 };
	static const uint32_t new[DIVIDED] = { 3, 0, 2, 1 };
	struct engine_fixture *w = begin();
	struct cn_err err;

	(void)state;
	for (uint32_t r = 0; r < DIVIDED; r++) {
		const struct cn_split_call made = { "made", CN_MAKING_SPLIT, 0, key[r] };

		assert_int_equal(cn_team_split(old[r], w->now, &made, w->now + SECOND,
					       engine_begin_wait(w, &w->rank[r].joined),
					       &w->rank[r].member, &err),
				 COLLNET_OK);
	}
	all_end(w, COLLNET_OK, "");
	for (uint32_t r = 0; r < DIVIDED; r++) {
		assert_int_equal(cn_member_rank(w->rank[r].member), new[r]);
	}
	finish(w);
}

/* Two teams are divided at the same time: the new ones have two names. */
static void call__of_two_parents(void **state)
{
	static const struct cn_split_call more = { "more", CN_MAKING_SPLIT, 0, 0 };
	struct engine_fixture *w = begin();
	struct cn_member *unused, *m[DIVIDED];
	struct cn_done none = { 0 };
	struct cn_err err;

	(void)state;
	for (uint32_t r = 0; r < DIVIDED; r++) {
		assert_int_equal(call(w, r), COLLNET_OK);
	}
	all_end(w, COLLNET_OK, "");
	for (uint32_t r = 0; r < DIVIDED; r++) {
		w->rank[r].joined.calls = 0;
		assert_int_equal(cn_team_split(old[r], w->now, &more, w->now + SECOND,
					       engine_begin_wait(w, &w->rank[r].joined), &m[r],
					       &err),
				 COLLNET_OK);
		assert_int_equal(cn_team_split(w->rank[r].member, w->now, &more, w->now + SECOND,
					       &none, &unused, &err),
				 COLLNET_EMISMATCH);
		assert_string_equal(err.text, "job more is another team already");
		assert_null(unused);
	}
	all_end(w, COLLNET_OK, "");
	for (uint32_t r = 0; r < DIVIDED; r++) {
		cn_team_leave(m[r], w->now, false);
	}
	finish(w);
}

/* Another rank of the node has called split, and this one dup: the team that is divided fails, and
 * the new one with it. The call is told so once, as one that waits. */
static void call__that_does_not_match(void **state)
{
	static const struct cn_split_call dup = { "made", CN_MAKING_DUP, 0, 0 };
	struct engine_fixture *w = begin();
	struct cn_err err;

	(void)state;
	assert_int_equal(call(w, 0), COLLNET_OK);
	assert_int_equal(cn_team_split(old[1], w->now, &dup, w->now + SECOND,
				       engine_begin_wait(w, &w->rank[1].joined), &w->rank[1].member,
				       &err),
			 COLLNET_OK);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(w->rank[r].joined.calls, 1);
		assert_int_equal(w->rank[r].joined.status, COLLNET_EMISMATCH);
	}
	finish(w);
}

static uint64_t data_sent(const struct engine_fixture *w, uint32_t node)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_engine_stats(w->engines[node], &s, false);
	return s.data_sent;
}

/* Rank 2 dies between its call and that of rank 3 on its node, which begins the new team again. */
static void call__after_a_death(void **state)
{
	(void)state;
	for (uint32_t last = 0; last < 4; last += 3) {
		struct engine_fixture *w = begin();

		assert_int_equal(call(w, 2), COLLNET_OK);
		engine_leave(w, 2, true); /* its place in the old team is next */
		for (uint32_t i = 0; i < DIVIDED; i++) {
			const uint32_t r = (i + last + 1) % DIVIDED;

			if (r != 2) {
				assert_int_equal(call(w, r), COLLNET_OK);
				engine_run(w, CN_MS);
			}
		}
		engine_run(w, 20 * CN_MS);
		for (uint32_t r = 0; r < DIVIDED; r++) {
			assert_int_equal(w->rank[r].joined.calls, 1);
			if (w->rank[r].joined.status != COLLNET_ERANK) {
				fail_msg("rank %u: %d, %s", r, w->rank[r].joined.status,
					 w->rank[r].joined.text);
			}
		}
		finish(w);
	}
}

/* A call that is refused is no rank that left: others are told nothing, and wait for the next one.
 */
static void call__that_is_refused(void **state)
{
	struct engine_fixture *w = begin();
	const uint64_t most = w->engines[0]->config.max_schedules, sent = data_sent(w, 0);

	(void)state;
	assert_int_equal(call(w, 2), COLLNET_OK);
	assert_int_equal(call(w, 3), COLLNET_OK);
	w->engines[0]->config.max_schedules = 1;
	assert_int_equal(call(w, 0), COLLNET_ELIMIT);
	w->engines[0]->config.max_schedules = most;
	assert_null(w->rank[0].member);
	assert_int_equal(w->rank[0].joined.calls, 0);
	engine_run(w, 10 * CN_MS);
	assert_int_equal(data_sent(w, 0), sent);
	assert_int_equal(w->rank[2].joined.calls, 0);
	assert_int_equal(call(w, 0), COLLNET_OK);
	assert_int_equal(call(w, 1), COLLNET_OK);
	all_end(w, COLLNET_OK, "");
	finish(w);
}

/* A team that is woken before all claims are there sleeps again. */
static void expire__without_claims(void **state)
{
	struct engine_fixture *w = begin();
	uint16_t unused[DIVIDED];
	struct cn_team *t;

	(void)state;
	assert_int_equal(call(w, 0), COLLNET_OK);
	t = w->rank[0].member->team;
	assert_false(cn_member_in_parent(w->rank[0].member, old[0], unused));
	cn_wireup_wake(t, 1);
	assert_int_equal(cn_team_deadline(t), 1);
	cn_team_expire(t, w->now);
	assert_true(cn_team_deadline(t) == CN_NEVER);
	for (uint32_t r = 1; r < DIVIDED; r++) {
		assert_int_equal(call(w, r), COLLNET_OK);
	}
	all_end(w, COLLNET_OK, "");
	/* Of a team that has failed nothing is said. */
	assert_true(cn_member_in_parent(w->rank[0].member, old[0], unused));
	cn_team_fail(old[0]->team, true, COLLNET_ERANK, "failed");
	assert_false(cn_member_in_parent(w->rank[0].member, old[0], unused));
	finish(w);
}

/* Whether a frame of so many bytes is kept, which the node with this address sends. */
static bool keeps(struct cn_team *t, const uint8_t *mac, enum cn_type type, uint32_t bytes)
{
	static uint8_t ether[CN_HEAD], payload[MTU]; /* as where the link has put it in its place */
	const struct cn_wire w = { .type = (uint8_t)type,
				   .length = (uint16_t)bytes,
				   .port_to = t->transport->port,
				   .session = 1 };
	const struct cn_rx_frame f = { .ether = ether,
				       .data = ether + CN_ETH_HEADER,
				       .len = CN_WIRE_HEADER + bytes,
				       .payload = payload };

	memcpy(ether + 6, mac, 6);
	cn_wire_put(ether + CN_ETH_HEADER, &w);
	return cn_division_defer(t, &f);
}

static void early__frames_are_bounded(void **state)
{
	struct engine_fixture *w = begin();
	const uint8_t *mac = w->engines[1]->config.node.mac;
	uint32_t most;
	struct cn_team *t;

	(void)state;
	assert_int_equal(call(w, 0), COLLNET_OK);
	t = w->rank[0].member->team;
	most = cn_node_payload(t->transport->node);
	assert_false(keeps(t, w->engines[0]->config.node.mac, CN_TYPE_COLL, 8));
	assert_false(keeps(t, mac, CN_TYPE_ACK, 0));
	assert_false(keeps(t, mac, CN_TYPE_COLL, most + 1));
	for (uint32_t i = 0; i < EARLY; i++) {
		assert_int_equal(w->engines[0]->deferred_frames, i);
		assert_true(keeps(t, mac, i % 2 ? CN_TYPE_COLL : CN_TYPE_CONTROL, most));
	}
	assert_false(keeps(t, mac, CN_TYPE_COLL, 8));
	assert_int_equal(w->engines[0]->deferred_frames, EARLY);
	/* Their session is none of ours: they are dropped when there is one. */
	for (uint32_t r = 1; r < DIVIDED; r++) {
		assert_int_equal(call(w, r), COLLNET_OK);
	}
	all_end(w, COLLNET_OK, "");
	finish(w);
}

static void use_udp(struct cn_engine_config *c)
{
	c->node.encapsulation = CN_ENCAPSULATION_UDP;
}

/* What has come to the node, as a link gives it whose payloads lie elsewhere, while no timers
 * expire. */
static void take_elsewhere(struct engine_fixture *w, uint32_t node)
{
	struct cn_link *l = cn_hub_port(w->hub, node);
	struct cn_rx_frame f;

	while (cn_link_recv(l, &f, 1) > 0) {
		uint8_t head[CN_HEAD + MTU], payload[MTU];

		memset(head, 0xee, sizeof(head));
		memcpy(head, f.ether, CN_ETH_HEADER);
		memcpy(head + CN_ETH_HEADER, f.data, CN_WIRE_HEADER);
		memcpy(payload, f.data + CN_WIRE_HEADER, f.len - CN_WIRE_HEADER);
		f.ether = head;
		f.data = head + CN_ETH_HEADER;
		f.payload = payload;
		cn_engine_input(w->engines[node], w->now, &f);
		cn_link_release(l);
	}
}

static void poll_only(struct engine_fixture *w, uint32_t node)
{
	for (int i = 0; i < 10; i++) {
		cn_poller_poll(w->pollers[node], w->now);
	}
}

/* Node 0 has the new team and sends before node 1 has looked at the claims: each byte arrives, and
 * nothing is sent again. */
static void early__frames_are_whole(void **state)
{
	const struct cn_coll_args a = { .op = CN_OP_SCATTER,
					.bytes = 700,
					.window = COLLNET_WINDOW_AUTO,
					.deadline = CN_NEVER };
	struct engine_fixture *w = begin_with(use_udp);
	struct collnet_stats s = { .size = sizeof(s) };
	struct cn_err err;

	(void)state;
	assert_int_equal(call(w, 2), COLLNET_OK);
	assert_int_equal(call(w, 3), COLLNET_OK);
	poll_only(w, 1);
	assert_int_equal(call(w, 0), COLLNET_OK);
	assert_int_equal(call(w, 1), COLLNET_OK);
	poll_only(w, 0);
	w->number++;
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		assert_int_equal(w->rank[r].joined.calls, 1);
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	poll_only(w, 0);
	take_elsewhere(w, 1);
	assert_int_equal(w->rank[2].joined.calls, 0);
	assert_true(w->engines[1]->deferred_frames > 1);
	all_end(w, COLLNET_OK, "");
	for (uint32_t r = 2; r < DIVIDED; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	engine_wait_all(w, 0, 10 * CN_MS);
	for (uint32_t r = 0; r < DIVIDED; r++) {
		engine_check(w, r, 0, &a);
	}
	cn_engine_stats(w->engines[0], &s, false);
	assert_int_equal(s.data_resent, 0);
	finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claims__that_make_no_sense),
		cmocka_unit_test(call__with_keys_far_apart),
		cmocka_unit_test(call__of_two_parents),
		cmocka_unit_test(call__that_does_not_match),
		cmocka_unit_test(call__after_a_death),
		cmocka_unit_test(call__that_is_refused),
		cmocka_unit_test(expire__without_claims),
		cmocka_unit_test(early__frames_are_bounded),
		cmocka_unit_test(early__frames_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
