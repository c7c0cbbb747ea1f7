/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/split.c: teams are divided; ranks that differ, are late, leave or die meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"

#define PARENTS 8u

/* Four nodes with two ranks each, whose members make room for those of the new teams. */
static struct engine_fixture *parents_of(struct cn_member **parents, bool in_turn)
{
	struct engine_fixture *w = engine_fixture(4, NULL, NULL);

	w->engines[3]->link_mbit = 10000;
	engine_join_all(w, 2, in_turn, "job");
	for (uint32_t r = 0; r < PARENTS; r++) {
		parents[r] = w->rank[r].member;
		w->rank[r].member = NULL;
	}
	return w;
}

static int try_split(struct engine_fixture *w, struct cn_member *parent, uint32_t r,
		     const struct cn_split_call *call, struct cn_err *err)
{
	return cn_team_split(parent, w->now, call, w->now + 10 * SECOND,
			     engine_begin_wait(w, &w->rank[r].joined), &w->rank[r].member, err);
}

static void split(struct engine_fixture *w, struct cn_member *parent, uint32_t r, int32_t color,
		  int32_t key)
{
	char job[32];
	const struct cn_split_call call = { job, CN_MAKING_SPLIT, color, key };
	struct cn_err err = { 0 };

	snprintf(job, sizeof(job), "child-%d", color);
	if (try_split(w, parent, r, &call, &err) != COLLNET_OK) {
		fail_msg("%s", err.text);
	}
	assert_true((w->rank[r].member != NULL) == (color >= 0));
}

static void wait_split(struct engine_fixture *w, cn_time within)
{
	const cn_time limit = w->now + within;
	uint32_t n;

	do {
		n = 0;
		for (uint32_t r = 0; r < PARENTS; r++) {
			n += w->rank[r].joined.calls != 0;
		}
	} while (n < PARENTS && engine_step(w, limit));
	for (uint32_t r = 0; r < PARENTS; r++) {
		assert_int_equal(w->rank[r].joined.calls, 1);
	}
}

static uint64_t data_sent(struct engine_fixture *w, uint32_t node, uint64_t *again)
{
	struct collnet_stats s = { .size = sizeof(s) };

	cn_engine_stats(w->engines[node], &s, false);
	*again = s.data_resent;
	return s.data_sent;
}

/* No node has a record of another one's team but that of the parents. */
static void assert_no_records(struct engine_fixture *w, uint32_t records)
{
	for (uint32_t i = 0; i < w->nodes; i++) {
		struct cn_node *n = cn_engine_node(w->engines[i]);

		for (uint32_t k = 0; k < cn_node_peers(n); k++) {
			assert_int_equal(cn_engine_peer_of(cn_node_peer(n, k))->joins.n, records);
		}
	}
}

static void leave(struct engine_fixture *w, struct cn_member **parents)
{
	engine_leave_all(w);
	for (uint32_t r = 0; r < PARENTS; r++) {
		if (parents[r] != NULL) {
			cn_team_leave(parents[r], w->now, false);
		}
	}
	engine_run(w, SECOND);
}

static void end(struct engine_fixture *w, struct cn_member **parents)
{
	leave(w, parents);
	assert_no_records(w, 0);
	engine_fixture_free(w);
}

/* The member of the fixture's rank r becomes that of rank new[r]. */
static void reorder(struct engine_fixture *w, const uint32_t *new, uint32_t n)
{
	static struct engine_rank all[RANKS];

	memcpy(all, w->rank, sizeof(all));
	for (uint32_t r = 0; r < n; r++) {
		w->rank[new[r]] = all[r];
	}
	w->ranks = n;
}

/* Where the ranks of a new team are, by ranks of the parent; not by those of another team. */
static void assert_in_parent(const struct cn_member *m, const struct cn_member *parent)
{
	uint16_t in_parent[PARENTS];

	assert_true(cn_member_in_parent(m, parent, in_parent));
	for (uint32_t r = 0; r < cn_member_ranks(m); r++) {
		assert_string_equal(cn_member_node_name(parent, in_parent[r]),
				    cn_member_node_name(m, r));
	}
	assert_false(cn_member_in_parent(m, m, in_parent));
	assert_false(cn_member_in_parent(parent, m, in_parent));
}

/* One color, descending keys: as many frames as an allgather has, and the new ranks work. */
static void split__is_one_allgather(void **state)
{
	struct cn_coll_args a = engine_alltoall(3000);
	struct cn_member *parents[PARENTS];
	struct engine_fixture *w = parents_of(parents, false);
	uint64_t before[4], again;
	uint32_t new[PARENTS];

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		before[i] = data_sent(w, i, &again);
	}
	for (uint32_t r = 0; r < PARENTS; r++) {
		split(w, parents[r], r, 7, r == 3 ? INT32_MIN : -(int32_t)r);
	}
	wait_split(w, 10 * CN_MS);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(data_sent(w, i, &again) - before[i], 2);
	}
	for (uint32_t r = 0; r < PARENTS; r++) {
		assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		assert_int_equal(cn_member_ranks(w->rank[r].member), PARENTS);
		assert_int_equal(cn_member_nodes(w->rank[r].member), 4);
		assert_int_equal(cn_member_local(w->rank[r].member), 2);
		assert_true(cn_member_run(w->rank[r].member) == cn_member_run(w->rank[0].member));
		new[r] = cn_member_rank(w->rank[r].member);
	}
	assert_int_equal(new[3], 0);
	assert_int_equal(new[7], 1);
	assert_int_equal(new[4], 4);
	assert_int_equal(new[2], 5);
	assert_int_equal(new[0], 7);
	reorder(w, new, PARENTS);
	engine_collective(w, &a, SECOND);
	end(w, parents);
}

/* Two teams, one of them on two nodes, and two ranks that are in none. */
static void split__by_color(void **state)
{
	static const int32_t color[PARENTS] = { 0, 0, 1, 0, -1, 1, 0, -5 };
	static const uint32_t rank[PARENTS] = { 0, 1, 0, 2, 0, 1, 3, 0 };
	struct cn_member *parents[PARENTS];
	struct engine_fixture *w = parents_of(parents, false);
	struct cn_coll_args a = engine_alltoall(100);

	(void)state;
	for (uint32_t r = 0; r < PARENTS; r++) {
		split(w, parents[r], r, color[r], 0);
	}
	wait_split(w, 10 * CN_MS);
	for (uint32_t r = 0; r < PARENTS; r++) {
		const struct cn_member *m = w->rank[r].member;

		assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		if (color[r] >= 0) {
			assert_int_equal(cn_member_rank(m), rank[r]);
			assert_int_equal(cn_member_ranks(m), color[r] == 0 ? 4 : 2);
			assert_int_equal(cn_member_nodes(m), color[r] == 0 ? 3 : 2);
			assert_in_parent(m, parents[r]);
			assert_int_equal(m->team->layout.rate, UINT64_C(10000000000));
		}
	}
	engine_leave(w, 2, false);
	engine_leave(w, 5, false);
	w->rank[2] = w->rank[3];
	w->rank[3] = w->rank[6];
	w->rank[6].member = NULL;
	w->ranks = 4;
	engine_collective(w, &a, SECOND);
	end(w, parents);
}

static void poll_until_sent(struct engine_fixture *w, uint32_t node, uint64_t frames)
{
	uint64_t again;

	for (int i = 0; i < 100 && data_sent(w, node, &again) < frames; i++) {
		cn_poller_poll(w->pollers[node], w->now);
	}
	assert_int_equal(data_sent(w, node, &again), frames);
}

/* All call, and node 0 has its team, while node 3 lacks the claims that node 1 is to pass on. */
static void split_at_node_0(struct engine_fixture *w, struct cn_member **parents)
{
	uint64_t again;

	engine_run(w, SECOND);
	for (uint32_t r = 0; r < PARENTS; r++) {
		split(w, parents[r], r, 0, 0);
	}
	poll_until_sent(w, 3, data_sent(w, 3, &again) + 1);
	poll_until_sent(w, 1, data_sent(w, 1, &again) + 1);
	for (int i = 0; i < 100 && w->rank[0].joined.calls == 0; i++) {
		cn_poller_poll(w->pollers[2], w->now);
		cn_poller_poll(w->pollers[0], w->now);
	}
	assert_int_equal(w->rank[0].joined.calls, 1);
	assert_int_equal(w->rank[6].joined.calls, 0);
}

/* Node 0 sends before node 3 has a session. Returns how many frames were sent again. */
static uint64_t send_early(struct engine_fixture *w, struct cn_member **parents, cn_time within)
{
	struct cn_coll_args a = { .op = CN_OP_SCATTER,
				  .bytes = 300,
				  .window = COLLNET_WINDOW_AUTO,
				  .deadline = CN_NEVER };
	struct cn_err err;
	uint64_t all = 0, again;

	split_at_node_0(w, parents);
	w->ranks = PARENTS;
	w->number++;
	assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
	assert_int_equal(engine_post(w, 1, 0, &a, &err), COLLNET_OK);
	for (int i = 0; i < 200; i++) {
		cn_poller_poll(w->pollers[i < 100 ? 0 : 3], w->now);
	}
	assert_int_equal(w->rank[6].joined.calls, 0);
	wait_split(w, 10 * CN_MS);
	for (uint32_t r = 2; r < PARENTS; r++) {
		assert_int_equal(engine_post(w, r, 0, &a, &err), COLLNET_OK);
	}
	engine_wait_all(w, 0, within);
	for (uint32_t r = 0; r < PARENTS; r++) {
		engine_check(w, r, 0, &a);
	}
	for (uint32_t i = 0; i < 4; i++) {
		data_sent(w, i, &again);
		all += again;
	}
	return all;
}

/* Nothing is sent twice, unless so many frames are kept already that there is no room. */
static void split__early_frames_are_kept(void **state)
{
	(void)state;
	for (uint32_t kept = 0; kept <= CN_DEFERRED_FRAMES; kept += CN_DEFERRED_FRAMES) {
		struct cn_member *parents[PARENTS];
		struct engine_fixture *w = parents_of(parents, false);

		w->engines[3]->deferred_frames = kept;
		assert_int_equal(send_early(w, parents, kept > 0 ? SECOND : 2 * CN_MS) > 0,
				 kept > 0);
		assert_int_equal(w->engines[3]->deferred_frames, kept);
		end(w, parents);
	}
}

/* Both ranks of node 3 die when only node 0 has its team, which fails at once: the new team or the
 * one that is divided is the first to hear of it. */
static void split__ranks_die_when_others_are_ready(void **state)
{
	struct cn_coll_args a = { .op = CN_OP_BARRIER,
				  .window = COLLNET_WINDOW_AUTO,
				  .deadline = CN_NEVER };
	struct cn_member *parents[PARENTS];
	struct cn_err err;

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct engine_fixture *w = parents_of(parents, false);

		split_at_node_0(w, parents);
		w->ranks = PARENTS;
		assert_int_equal(engine_post(w, 0, 0, &a, &err), COLLNET_OK);
		assert_int_equal(engine_post(w, 1, 0, &a, &err), COLLNET_OK);
		for (uint32_t r = 6; r < PARENTS; r++) {
			if (k == 0) {
				engine_leave(w, r, true);
			}
			cn_team_leave(parents[r], w->now, true);
			if (k == 1) {
				engine_leave(w, r, true);
			}
			parents[r] = NULL;
		}
		wait_split(w, SECOND);
		engine_run(w, 10 * CN_MS);
		for (uint32_t r = 0; r < 2; r++) {
			assert_int_equal(w->rank[r].op[0].calls, 1);
			assert_int_equal(w->rank[r].op[0].status, COLLNET_ERANK);
			assert_non_null(strstr(w->rank[r].op[0].text, "on node n3 died"));
		}
		end(w, parents);
	}
}

/* Each fails at once, and is told why. */
static void assert_all(struct engine_fixture *w, int status, const char *text)
{
	wait_split(w, 10 * CN_MS);
	for (uint32_t r = 0; r < PARENTS; r++) {
		assert_int_equal(w->rank[r].joined.status, status);
		if (strstr(w->rank[r].joined.text, text) == NULL) {
			fail_msg("rank %u: %s", r, w->rank[r].joined.text);
		}
	}
}

/* What one node calls is not what the others call: an allgather of as many bytes, or a dup. */
static void split__other_calls_do_not_match(void **state)
{
	static uint8_t send[16], recv[16 * PARENTS];
	struct cn_member *parents[PARENTS];
	struct cn_coll_args a = { .op = CN_OP_ALLGATHER, .bytes = 16, .send = send, .recv = recv };
	const struct cn_split_call dup = { "child-dup", CN_MAKING_DUP, 0, 0 };
	struct cn_err err;

	(void)state;
	a.window = COLLNET_WINDOW_AUTO;
	for (int k = 0; k < 2; k++) {
		struct engine_fixture *w = parents_of(parents, false);

		a.deadline = w->now + 10 * SECOND;
		for (uint32_t r = 0; r < PARENTS; r++) {
			if (r / 2 != 1) {
				split(w, parents[r], r, 0, 0);
			} else if (k == 0) {
				assert_int_equal(cn_coll_post(parents[r], w->now, &a,
							      engine_begin_wait(w,
										&w->rank[r].joined),
							      &err),
						 COLLNET_OK);
			} else {
				assert_int_equal(try_split(w, parents[r], r, &dup, &err),
						 COLLNET_OK);
			}
		}
		assert_all(w, COLLNET_EMISMATCH, "does not match node n");
		end(w, parents);
	}
	{
		struct engine_fixture *w = parents_of(parents, false);

		split(w, parents[0], 0, 0, 0);
		a.deadline = w->now + 10 * SECOND;
		assert_int_equal(cn_coll_post(parents[1], w->now, &a,
					      engine_begin_wait(w, &w->rank[1].joined), &err),
				 COLLNET_EMISMATCH);
		assert_non_null(strstr(err.text, "called split of 16 bytes"));
		assert_int_equal(w->rank[0].joined.status, COLLNET_EMISMATCH);
		end(w, parents);
	}
}

/* Two ranks of a node have one color and different names. */
static void split__contradiction_names_the_node(void **state)
{
	struct cn_member *parents[PARENTS];
	struct engine_fixture *w = parents_of(parents, false);
	const struct cn_split_call other = { "other", CN_MAKING_SPLIT, 0, 0 };
	struct cn_err err;

	(void)state;
	for (uint32_t r = 0; r < PARENTS; r++) {
		if (r != 3) {
			split(w, parents[r], r, 0, 0);
		} else {
			assert_int_equal(try_split(w, parents[r], r, &other, &err), COLLNET_OK);
		}
	}
	assert_all(w, COLLNET_EMISMATCH, "node n1 contradicts itself about job");
	end(w, parents);
}

/* A rank dies before it has called, or after, or leaves the new team before it is there. */
static void split__rank_dies(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++) {
		struct cn_member *parents[PARENTS];
		struct engine_fixture *w = parents_of(parents, k % 2);

		for (uint32_t r = 0; r < PARENTS; r++) {
			if (r != 5 || k > 0) {
				split(w, parents[r], r, r == 1 ? -1 : 0, 0);
			}
		}
		if (k == 2) {
			engine_leave(w, 5, true);
			assert_int_equal(w->rank[5].joined.calls, 1);
		}
		cn_team_leave(parents[5], w->now, true);
		parents[5] = NULL;
		if (k == 0) {
			w->rank[5].joined.calls = 1;
		}
		wait_split(w, 10 * CN_MS);
		for (uint32_t r = 0; r < PARENTS; r++) {
			if (r != 5) {
				assert_int_equal(w->rank[r].joined.status, COLLNET_ERANK);
				assert_non_null(strstr(w->rank[r].joined.text, "rank 5 on node n"));
			}
		}
		end(w, parents);
	}
}

/* All ranks of a node leave its new teams, of two colors, before others have called. They stay in
 * the parent, whose allgather ends: the others are told all the same. */
static void split__a_node_leaves_before_others_call(void **state)
{
	struct cn_member *parents[PARENTS];
	struct engine_fixture *w = parents_of(parents, false);

	(void)state;
	for (uint32_t r = 4; r < 6; r++) {
		split(w, parents[r], r, (int32_t)r % 2, 0);
	}
	for (uint32_t r = 4; r < 6; r++) {
		engine_leave(w, r, false);
	}
	engine_run(w, 10 * CN_MS);
	for (uint32_t r = 0; r < PARENTS; r++) {
		if (r < 4 || r >= 6) {
			split(w, parents[r], r, (int32_t)r % 2, 0);
		}
	}
	wait_split(w, 50 * CN_MS);
	for (uint32_t r = 0; r < PARENTS; r++) {
		if (r < 4 || r >= 6) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_ERANK);
			assert_string_equal(
				w->rank[r].joined.text,
				r % 2 == 0 ? "rank 4 on node n2 left the team before it was ready"
					   : "rank 5 on node n2 left the team before it was ready");
		}
	}
	end(w, parents);
}

/* The names of a node's teams that form are one another's; the claims of a rank that left do not
 * count. */
static void split__refuses(void **state)
{
	struct cn_member *parents[PARENTS];
	struct engine_fixture *w = parents_of(parents, false);
	const struct cn_split_call call = { "child-0", CN_MAKING_SPLIT, 1, 0 };
	const struct cn_split_call bad = { "a name", CN_MAKING_SPLIT, 1, 0 };
	struct cn_member *m = NULL;
	struct cn_err err;

	(void)state;
	split(w, parents[0], 0, 0, 0);
	assert_int_equal(try_split(w, parents[1], 1, &call, &err), COLLNET_EMISMATCH);
	assert_int_equal(try_split(w, parents[1], 1, &bad, &err), COLLNET_EINVAL);
	assert_int_equal(cn_team_join(w->engines[0], w->now, OWNER, "child-0", 1, PARENTS,
				      w->now + SECOND, NULL, &m, &err),
			 COLLNET_EMISMATCH);
	assert_null(w->rank[1].member);
	for (uint32_t r = 1; r < PARENTS; r++) {
		split(w, parents[r], r, r < 2 ? 0 : 1, 0);
	}
	engine_leave(w, 0, false);
	wait_split(w, 10 * CN_MS);
	assert_int_equal(w->rank[0].joined.status, COLLNET_ERANK);
	assert_int_equal(w->rank[1].joined.status, COLLNET_ERANK);
	for (uint32_t r = 2; r < PARENTS; r++) {
		assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
	}
	end(w, parents);
}

/* A rank leaves before its node knows all claims: of those that stay none has a rank that a team of
 * their number does not have. */
static void split__failed_team_has_its_ranks(void **state)
{
	struct cn_member *parents[PARENTS];
	struct engine_fixture *w = parents_of(parents, false);

	(void)state;
	for (uint32_t r = 0; r < PARENTS; r++) {
		split(w, parents[r], r, r < 6 ? 1 : 0, 0);
	}
	engine_leave(w, 6, false);
	wait_split(w, 10 * CN_MS);
	assert_int_equal(w->rank[7].joined.status, COLLNET_ERANK);
	assert_true(cn_member_rank(w->rank[7].member) < cn_member_ranks(w->rank[7].member));
	end(w, parents);
}

/* Another version of collnet duplicates teams by JOINs. */
static void split__other_version_is_named(void **state)
{
	struct cn_member *parents[PARENTS], *m = NULL;
	struct engine_fixture *w = parents_of(parents, false);
	const uint64_t members = 0xff;
	struct cn_err err;

	(void)state;
	for (uint32_t r = 0; r < PARENTS; r++) {
		if (r / 2 != 2) {
			split(w, parents[r], r, 0, 0);
			continue;
		}
		assert_int_equal(cn_team_derive(parents[r], w->now, "child-0", r, PARENTS, &members,
						w->now + 10 * SECOND,
						engine_begin_wait(w, &w->rank[r].joined), &m, &err),
				 COLLNET_OK);
		w->rank[r].member = m;
	}
	engine_run(w, 10 * CN_MS);
	for (uint32_t r = 0; r < PARENTS; r++) {
		if (r / 2 != 2) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_EMISMATCH);
			assert_non_null(strstr(w->rank[r].joined.text, "node n2 makes teams"));
		}
	}
	leave(w, parents);
	engine_fixture_free(w); /* the JOINs are stale records */
}

/* Frames are lost, and teams end as soon as they are there: no record of them stays. */
static void split__survives_loss(void **state)
{
	struct cn_coll_args a = engine_alltoall(1000);

	(void)state;
	for (uint32_t k = 0; k < 12; k++) {
		struct cn_hub_faults faults = { .seed = SEED + k,
						.loss = 100000,
						.reorder = 50000 };
		struct cn_member *parents[PARENTS];
		struct engine_fixture *w = parents_of(parents, k % 2);

		cn_hub_set_faults(w->hub, &faults);
		for (uint32_t r = 0; r < PARENTS; r++) {
			split(w, parents[r], r, 0, 0);
		}
		wait_split(w, 5 * SECOND);
		for (uint32_t r = 0; r < PARENTS; r++) {
			assert_int_equal(w->rank[r].joined.status, COLLNET_OK);
		}
		if (k % 3 > 0) {
			engine_collective(w, &a, 5 * SECOND);
		}
		engine_leave_all(w);
		engine_run(w, 5 * SECOND);
		assert_no_records(w, 1);
		end(w, parents);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split__is_one_allgather),
		cmocka_unit_test(split__by_color),
		cmocka_unit_test(split__early_frames_are_kept),
		cmocka_unit_test(split__ranks_die_when_others_are_ready),
		cmocka_unit_test(split__other_calls_do_not_match),
		cmocka_unit_test(split__contradiction_names_the_node),
		cmocka_unit_test(split__rank_dies),
		cmocka_unit_test(split__a_node_leaves_before_others_call),
		cmocka_unit_test(split__refuses),
		cmocka_unit_test(split__failed_team_has_its_ranks),
		cmocka_unit_test(split__other_version_is_named),
		cmocka_unit_test(split__survives_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
