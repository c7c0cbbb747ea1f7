/* SPDX-License-Identifier: BSD-2-Clause */
/* JOIN records: what a peer advertised of its teams. */
#include <stdlib.h>
#include <string.h>

#include "coll/control.h"
#include "coll/join.h"

/* Records kept of a peer's teams, and of one owner's among them, that no team here needs. With
 * those that are needed, there are CN_TEAMS_MAX at most. */
#define CN_JOINS_PEER  64u
#define CN_JOINS_OWNER 48u

bool cn_left_is_first(const struct cn_left *l, uint32_t posted)
{
	return !l->any || (int32_t)(posted - l->after) < 0;
}

void cn_left_record(struct cn_left *l, uint32_t rank, uint32_t posted, bool dead)
{
	if (cn_left_is_first(l, posted)) {
		*l = (struct cn_left){ posted, rank, true, dead };
	}
}

/* A node numbers its teams one after the other, so their ids need no mixing. */
static struct cn_join **slot_of(const struct cn_join_list *l, uint32_t id)
{
	return &l->slots[id & (l->nslots - 1)];
}

static struct cn_join **job_slot_of(const struct cn_join_list *l, uint32_t hash)
{
	return &l->slots[l->nslots + (hash & (l->nslots - 1))];
}

static uint32_t hash_of(uint64_t owner, const char *job)
{
	uint64_t h = owner;

	while (*job != '\0') {
		h = cn_mix64(h ^ (uint8_t)*job++);
	}
	return (uint32_t)h;
}

static bool is_of(const struct cn_join *j, uint32_t hash, uint64_t owner, const char *job)
{
	return j->hash == hash && j->owner == owner && strcmp(j->job, job) == 0;
}

struct cn_join *cn_join_find(const struct cn_join_list *l, uint64_t owner, const char *job)
{
	const uint32_t hash = hash_of(owner, job);
	struct cn_join *j = l->nslots > 0 ? *job_slot_of(l, hash) : NULL;

	while (j != NULL && (j->left || !is_of(j, hash, owner, job))) {
		j = j->in_job_slot;
	}
	return j;
}

struct cn_join *cn_join_by_id(const struct cn_join_list *l, uint32_t id)
{
	struct cn_join *j = l->nslots > 0 ? *slot_of(l, id) : NULL;

	while (j != NULL && j->id != id) {
		j = j->in_slot;
	}
	return j;
}

/* The newest record. */
static void enter(const struct cn_join_list *l, struct cn_join *j)
{
	struct cn_join **by_id = slot_of(l, j->id), **by_job = job_slot_of(l, j->hash);

	j->in_slot = *by_id;
	j->in_job_slot = *by_job;
	*by_id = *by_job = j;
}

/* Room for one more. False: no memory for the first slots. */
static bool grow(struct cn_join_list *l)
{
	const uint32_t n = l->nslots > 0 ? 2 * l->nslots : 4;
	struct cn_join **slots = l->n < l->nslots ? NULL : calloc(n, 2 * sizeof(struct cn_join *));
	struct cn_join *oldest = l->first;

	if (slots == NULL) {
		return l->nslots > 0; /* there is room, or lists become longer */
	}
	free(l->slots);
	l->slots = slots;
	l->nslots = n;
	while (oldest != NULL && oldest->next != NULL) {
		oldest = oldest->next;
	}
	for (; oldest != NULL; oldest = oldest->prev) {
		enter(l, oldest);
	}
	return true;
}

static bool is_committed(const struct cn_join *j)
{
	return j->commit_sent != 0 && j->commit_sent == j->commit_received;
}

void cn_join_commit(struct cn_join_list *l, struct cn_join *j, uint32_t received, uint32_t sent)
{
	l->ncommitted -= is_committed(j);
	j->commit_received = received;
	j->commit_sent = sent;
	l->ncommitted += is_committed(j);
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
void cn_join_move_ranges(struct cn_join *j, struct cn_join *from)
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

/* The oldest record that is not in use, of the owner or (all) of anyone; NULL: none. */
static struct cn_join *oldest(const struct cn_join_list *l, uint64_t owner, bool all,
			      cn_join_in_use *in_use, const void *ctx)
{
	struct cn_join *last = NULL;

	for (struct cn_join *j = l->first; j != NULL; j = j->next) {
		if ((all || j->owner == owner) && !in_use(ctx, j)) {
			last = j;
		}
	}
	return last;
}

/* The record whose place a new one of the owner takes; NULL: there may be one more, or none is not
 * in use. */
static struct cn_join *victim_of(const struct cn_join_list *l, uint64_t owner,
				 cn_join_in_use *in_use, const void *ctx)
{
	uint32_t of_owner = 0, unused = 0;

	if (l->n - l->ncommitted < CN_JOINS_OWNER && l->n < CN_TEAMS_MAX) {
		return NULL;
	}
	for (const struct cn_join *j = l->first; j != NULL; j = j->next) {
		const bool spare = !in_use(ctx, j);

		unused += spare;
		of_owner += spare && j->owner == owner;
	}
	if (of_owner >= CN_JOINS_OWNER) {
		return oldest(l, owner, false, in_use, ctx);
	}
	return unused >= CN_JOINS_PEER || l->n >= CN_TEAMS_MAX ? oldest(l, owner, true, in_use, ctx)
							       : NULL;
}

struct cn_join *cn_join_new(struct cn_join_list *l, const struct cn_join *in, const char *job,
			    cn_join_in_use *in_use, const void *ctx)
{
	const uint32_t hash = hash_of(in->owner, job);
	struct cn_join *j = l->nslots > 0 ? *job_slot_of(l, hash) : NULL, *victim;

	/* A node forms one team of a job at a time: no new one here is made with that. */
	for (; j != NULL; j = j->in_job_slot) {
		j->left |= is_of(j, hash, in->owner, job);
	}
	victim = victim_of(l, in->owner, in_use, ctx);
	if (victim != NULL) {
		cn_join_remove(l, victim);
	}
	j = l->n < CN_TEAMS_MAX && grow(l) ? calloc(1, sizeof(*j) + strlen(job) + 1) : NULL;
	if (j == NULL) {
		return NULL;
	}
	*j = *in;
	memcpy(j->job, job, strlen(job) + 1);
	j->ranges = NULL;
	j->nranges = 0;
	j->prev = NULL;
	j->next = l->first;
	if (j->next != NULL) {
		j->next->prev = j;
	}
	l->first = j;
	j->hash = hash;
	enter(l, j);
	l->n++;
	return j;
}

void cn_join_remove(struct cn_join_list *l, struct cn_join *j)
{
	struct cn_join **at = slot_of(l, j->id);

	l->ncommitted -= is_committed(j);
	while (*at != j) {
		at = &(*at)->in_slot;
	}
	*at = j->in_slot;
	at = job_slot_of(l, j->hash);
	while (*at != j) {
		at = &(*at)->in_job_slot;
	}
	*at = j->in_job_slot;
	if (j->prev != NULL) {
		j->prev->next = j->next;
	} else {
		l->first = j->next;
	}
	if (j->next != NULL) {
		j->next->prev = j->prev;
	}
	l->n--;
	cn_join_forget(j);
	free(j);
}

void cn_join_remove_all(struct cn_join_list *l)
{
	while (l->first != NULL) {
		cn_join_remove(l, l->first);
	}
	free(l->slots);
	l->slots = NULL;
	l->nslots = 0;
	free(l->failures);
	l->failures = NULL;
}

struct cn_join_failure *cn_join_fail(struct cn_join_list *l)
{
	if (l->failures == NULL) {
		l->failures = calloc(CN_JOIN_FAILURES, sizeof(*l->failures));
	}
	return l->failures != NULL ? &l->failures[l->nfailures++ % CN_JOIN_FAILURES] : NULL;
}

const struct cn_join_failure *cn_join_failure(const struct cn_join_list *l, uint32_t id)
{
	for (uint32_t i = 0; l->failures != NULL && i < CN_JOIN_FAILURES; i++) {
		if (l->failures[i].id == id) {
			return &l->failures[i];
		}
	}
	return NULL;
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
		r[i].gap = cn_get16(c);
		r[i].n = cn_get16(c);
		c->bad |= r[i].first >= j->ranks || r[i].n == 0 ||
			  (uint64_t)(r[i].n - 1) * (1u + r[i].gap) >= j->ranks - r[i].first;
	}
	j->ranges = r;
	j->nranges = n;
	if (c->bad) {
		cn_join_forget(j);
		return false;
	}
	return true;
}
