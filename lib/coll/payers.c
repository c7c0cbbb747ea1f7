/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who pays for teams. A node may have many ranks in many teams, and each join counts the teams of
 * its payer: a team therefore lists one member of each of its payers.
 */
#include <string.h>

#include "coll/engine_state.h"
#include "coll/team.h"

void cn_engine_set_payer(struct cn_engine *e, uint64_t payer)
{
	e->payer = payer;
}

uint64_t cn_team_payer(const struct cn_team *t)
{
	return t->members != NULL ? t->members->payer : 0;
}

static bool pays(const struct cn_team *t, uint64_t payer)
{
	const struct cn_member *m = t->payers;

	while (m != NULL && m->payer != payer) {
		m = m->next_payer;
	}
	return m != NULL;
}

void cn_payers_add(struct cn_member *m)
{
	struct cn_team *t = m->team;

	if (!pays(t, m->payer)) {
		m->next_payer = t->payers;
		t->payers = m;
	}
}

void cn_payers_remove(struct cn_member *m)
{
	struct cn_team *t = m->team;
	struct cn_member **at = &t->payers, *other = t->members;

	while (*at != NULL && *at != m) {
		at = &(*at)->next_payer;
	}
	if (*at == NULL) { /* another one of its payer is listed */
		return;
	}
	*at = m->next_payer;
	while (other != NULL && other->payer != m->payer) {
		other = other->next;
	}
	if (other != NULL) {
		cn_payers_add(other);
	}
}

uint32_t cn_engine_teams_paid(const struct cn_engine *e, uint64_t payer, uint64_t owner,
			      const char *job, bool *takes_part)
{
	uint32_t n = 0;

	*takes_part = false;
	for (uint32_t i = 0; i < e->places; i++) {
		const struct cn_team *t = e->teams[i];

		if (t != NULL && pays(t, payer)) {
			n++;
			*takes_part |= t->state == CN_TEAM_FORMING && t->owner == owner &&
				       strcmp(t->job, job) == 0;
		}
	}
	return n;
}
