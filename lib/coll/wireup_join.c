/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers advertised of their teams: join records, a list for each peer, the newest first. */
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"

/* Records kept of a peer's teams, and of one owner's among them, as long as no team here needs
 * them; those that are needed count, and there are CN_TEAMS_MAX at most. */
#define CN_JOINS_PEER  64u
#define CN_JOINS_OWNER 48u

struct cn_join *cn_join_find(struct cn_engine_peer *m, uint64_t owner, const char *job)
{
	struct cn_join *j = m->joins; /* the newest first */

	while (j != NULL && (j->left || j->owner != owner || strcmp(j->job, job) != 0)) {
		j = j->next;
	}
	return j;
}

struct cn_join *cn_join_by_id(struct cn_engine_peer *m, uint32_t id)
{
	struct cn_join *j = m->joins;

	while (j != NULL && j->id != id) {
		j = j->next;
	}
	return j;
}

void cn_join_forget(struct cn_join *j)
{
	if (j->ranges != &j->one) {
		free(j->ranges);
	}
	j->ranges = NULL;
	j->nranges = 0;
}

/* `from` gives its ranges to j, which is the same or had others. */
void cn_join_take(struct cn_join *j, struct cn_join *from)
{
	cn_join_forget(j);
	j->nranges = from->nranges;
	j->one = from->one;
	j->ranges = from->nranges == 1 ? &j->one : from->ranges;
}

uint32_t cn_join_ranks(const struct cn_join *j)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->nranges; i++) {
		n += j->ranges[i].n;
	}
	return n;
}

/* Whether the record is of a job that has a team here. */
static bool in_use(const struct cn_engine *e, const struct cn_join *j)
{
	for (uint32_t i = 0; i < e->config.max_teams; i++) {
		const struct cn_team *t = e->teams[i];

		if (t != NULL && t->owner == j->owner && strcmp(t->job, j->job) == 0) {
			return true;
		}
	}
	return false;
}

/* The oldest record without a team here, of the owner or (all) of anyone; NULL: none. */
static struct cn_join *oldest(const struct cn_engine *e, const struct cn_engine_peer *m,
			      uint64_t owner, bool all)
{
	struct cn_join *last = NULL;

	for (struct cn_join *j = m->joins; j != NULL; j = j->next) {
		if ((all || j->owner == owner) && !in_use(e, j)) {
			last = j;
		}
	}
	return last;
}

struct cn_join *cn_join_new(struct cn_engine *e, struct cn_engine_peer *m, const struct cn_join *in,
			    const char *job)
{
	struct cn_join *j, *victim = NULL;
	uint32_t of_owner = 0;

	for (j = m->joins; j != NULL; j = j->next) {
		of_owner += j->owner == in->owner;
		/* A node forms one team of a job at a time: no new one here is made with that. */
		j->left |= j->owner == in->owner && strcmp(j->job, job) == 0;
	}
	if (of_owner >= CN_JOINS_OWNER) {
		victim = oldest(e, m, in->owner, false);
	} else if (m->njoins >= CN_JOINS_PEER) {
		victim = oldest(e, m, in->owner, true);
	}
	if (victim != NULL) {
		cn_join_remove(m, victim);
	}
	j = m->njoins < CN_TEAMS_MAX ? calloc(1, sizeof(*j) + strlen(job) + 1) : NULL;
	if (j == NULL) {
		return NULL;
	}
	*j = *in;
	memcpy(j->job, job, strlen(job) + 1);
	j->ranges = NULL;
	j->nranges = 0;
	j->next = m->joins;
	m->joins = j;
	m->njoins++;
	return j;
}

void cn_join_remove(struct cn_engine_peer *m, struct cn_join *j)
{
	struct cn_join **at = &m->joins;

	while (*at != j) {
		at = &(*at)->next;
	}
	*at = j->next;
	m->njoins--;
	cn_join_forget(j);
	free(j);
}

void cn_join_remove_all(struct cn_engine_peer *m)
{
	while (m != NULL && m->joins != NULL) {
		cn_join_remove(m, m->joins);
	}
}

bool cn_join_read(struct cn_cursor *c, struct cn_join *j)
{
	uint32_t n = cn_get16(c);
	struct cn_range *r;

	if (c->bad || n == 0 || n > CN_CONTROL_MAX / 8) {
		return false;
	}
	r = n == 1 ? &j->one : calloc(n, sizeof(*r));
	if (r == NULL) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		r[i].first = cn_get32(c);
		r[i].n = cn_get32(c);
		c->bad |= r[i].first >= j->ranks || r[i].n == 0 || r[i].n > j->ranks - r[i].first;
	}
	j->ranges = r;
	j->nranges = n;
	if (c->bad) {
		cn_join_forget(j);
		return false;
	}
	return true;
}
