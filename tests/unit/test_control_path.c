/* SPDX-License-Identifier: BSD-2-Clause */
/* The path MTU during wire-up on a simulated cluster: paths that drop large frames, and other MTUs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>

#include <cmocka.h>

#include "control_team.h"

/* A job of two hosts on one side of the trunk. */
static void join_near(struct control_mtu_team *m, struct control_rank near[2])
{
	struct cn_err err;

	for (uint32_t i = 0; i < 2; i++) {
		near[i] = (struct control_rank){ .done = { control_joined } };
		assert_int_equal(cn_team_join(cn_sim_engine(m->sim, i), m->begin, CONTROL_OWNER,
					      "near", i, 2, m->begin + 30000 * CN_MS, &near[i].done,
					      &near[i].member, &err),
				 COLLNET_OK);
		cn_sim_kick(m->sim, i);
	}
}

/* Every rank is told of two nodes on different sides of the trunk, the size and the word. */
static void control__path_drops_large_frames(void **state)
{
	(void)state;
	for (uint32_t end = 0; end < 3; end++) {
		struct control_mtu_team m;
		struct control_rank near[2];
		struct cn_err err;
		cn_time took;

		control_mtu_team(&m, NULL, 5, 0, end);
		join_near(&m, near);
		took = control_mtu_wait(&m);
		print_message("end %u: %llu ms: %s\n", end, (unsigned long long)(took / CN_MS),
			      m.rank[0].text);
		assert_true(took < 1000 * CN_MS);
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
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
		for (uint32_t i = 0; i < 2; i++) { /* they need no such path */
			assert_int_equal(near[i].told, 1);
			assert_int_equal(near[i].status, COLLNET_OK);
			assert_int_equal(cn_member_check(near[i].member, &err), COLLNET_OK);
			cn_team_leave(near[i].member, cn_sim_now(m.sim), false);
		}
		control_mtu_end(&m);
	}
}

static void control__nodes_of_different_mtu(void **state)
{
	static const uint32_t mtus[CONTROL_NODES] = {
		1500, 1500, 1500, 9000, 1500, 1500, 1500, 1500
	};
	struct control_mtu_team m;
	cn_time took;

	(void)state;
	control_mtu_team(&m, mtus, 6, 0, 3);
	took = control_mtu_wait(&m);
	print_message("%llu ms: %s\n", (unsigned long long)(took / CN_MS), m.rank[0].text);
	assert_true(took < 200 * CN_MS);
	for (uint32_t i = 0; i < CONTROL_NODES; i++) {
		assert_int_equal(m.rank[i].status, COLLNET_EMISMATCH);
		/* found here, or told by the other: which is first differs */
		assert_non_null(strstr(m.rank[i].text, "node h3"));
		assert_non_null(strstr(m.rank[i].text, "9000"));
		assert_non_null(strstr(m.rank[i].text, "1500"));
		assert_non_null(strstr(m.rank[i].text, "set them alike"));
	}
	control_mtu_end(&m);
}

/* What it costs: the team is ready as soon without losses, and with them no path is taken for
 * narrow. */
static void control__path_is_no_hindrance(void **state)
{
	cn_time took;
	struct control_mtu_team m;

	(void)state;
	control_mtu_team(&m, NULL, 7, 0, 3);
	took = control_mtu_wait(&m);
	print_message("ready after %llu us\n", (unsigned long long)(took / CN_US));
	assert_true(took < 10 * CN_MS);
	control_mtu_end(&m);
	for (uint64_t seed = 1; seed <= 100; seed++) {
		control_mtu_team(&m, NULL, seed, 50000, 3);
		control_mtu_wait(&m);
		for (uint32_t i = 0; i < CONTROL_NODES; i++) {
			if (m.rank[i].status != COLLNET_OK) {
				fail_msg("seed %llu: %s", (unsigned long long)seed, m.rank[i].text);
			}
		}
		control_mtu_end(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control__path_drops_large_frames),
		cmocka_unit_test(control__nodes_of_different_mtu),
		cmocka_unit_test(control__path_is_no_hindrance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
