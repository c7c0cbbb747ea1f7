/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/coll/payers.c: the teams that a user pays for, whichever of his ranks are in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "engine_fixture.h"

static uint32_t teams_of(const struct engine_fixture *w, uint64_t payer, bool *takes_part)
{
	return cn_engine_teams_paid(w->engines[0], payer, OWNER, "job", takes_part);
}

/* Members that a join visits. */
static uint32_t listed(const struct engine_fixture *w)
{
	uint32_t n = 0;

	for (const struct cn_member *m = w->engines[0]->teams[0]->payers; m != NULL;
	     m = m->next_payer) {
		n++;
	}
	return n;
}

/* In any order of their ends; a join visits one of each, however many ranks there are. */
static void payers__are_those_of_the_ranks(void **state)
{
	static const uint64_t payers[] = { 7, 8, 7, 9, 7 };
	static const uint32_t orders[][5] = {
		{ 0, 1, 2, 3, 4 }, { 4, 3, 2, 1, 0 }, { 2, 0, 3, 4, 1 }, { 1, 4, 0, 2, 3 }
	};

	(void)state;
	for (size_t o = 0; o < sizeof(orders) / sizeof(orders[0]); o++) {
		struct engine_fixture *w = engine_fixture(1, NULL, NULL);
		uint32_t ranks[10] = { 0 };
		bool takes_part;

		w->ranks = 6; /* the team stays incomplete */
		for (uint32_t r = 0; r < 5; r++) {
			cn_engine_set_payer(w->engines[0], payers[r]);
			engine_join(w, r, 0, "job", SECOND);
			ranks[payers[r]]++;
		}
		for (uint32_t i = 0; i < 5; i++) {
			const uint32_t r = orders[o][i];
			uint32_t different = 0;

			for (uint64_t payer = 6; payer < 10; payer++) {
				assert_int_equal(teams_of(w, payer, &takes_part), ranks[payer] > 0);
				assert_int_equal(takes_part, ranks[payer] > 0);
				different += ranks[payer] > 0;
			}
			assert_int_equal(listed(w), different);
			engine_leave(w, r, false);
			ranks[payers[r]]--;
		}
		assert_int_equal(teams_of(w, 7, &takes_part), 0);
		engine_fixture_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(payers__are_those_of_the_ranks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
