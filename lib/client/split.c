/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Teams of ranks of another team. Each is a job of its own, whose name all its ranks derive from
 * the parent's name and run: only the ranks of the new team take part, and names of different teams
 * or runs cannot clash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/backend.h"
#include "client/env.h"
#include "coll/ranges.h"
#include "util/vector.h"
#include "util/bits.h"

/* How much longer than a call a rank waits for the others that must have met in it. */
#define MEET_MS 2000u

/* The ranks of a new team, of a list. */
struct group {
	uint64_t members[COLLNET_RANKS_MAX / 64]; /* a bit per rank of the parent */
	uint32_t n, rank;
};

static void add_member(struct group *g, uint32_t rank)
{
	cn_bit_set(g->members, rank);
	g->n++;
}

/* The parent's name, as far as there is room, and a hash of all that tells the new team apart. */
static void derive_name(const struct collnet_team *parent, uint64_t what, char *out, size_t size)
{
	snprintf(out, size, "%.46s/%016llx", parent->job,
		 (unsigned long long)cn_mix64(cn_mix64(what) ^ parent->run));
}

static int open_child(struct collnet_team *parent, const char *job, uint32_t rank, uint32_t ranks,
		      const struct cn_origin *from, collnet_team_t **out)
{
	const struct collnet_team_options o = {
		.size = sizeof(o),
		.job = job,
		.rank = rank,
		.ranks = ranks,
		.timeout_ms = parent->c->timeout_ms,
	};

	return cn_team_open(parent->c, &o, parent->secret, from, out);
}

/*
 * Its ranks are numbered anew, so errors name the team as the program made it. A team of the same
 * ranks (collnet_team_dup()) is called what its parent is. By its name where that is too long.
 */
static void describe(const struct collnet_team *parent, const char *how, char *out, size_t size)
{
	const bool nested = parent->made_as[0] != '\0';
	const int n = snprintf(out, size, "%s of %s%s", how, nested ? "" : "job ",
			       nested ? parent->made_as : parent->job);

	if (n >= (int)size) {
		snprintf(out, size, "%s of job %s", how, parent->job);
	}
}

/* A call that does not count can be repeated, and makes the same name then. */
static void take_back(uint32_t *count, uint32_t number)
{
	if (*count == number) {
		--*count;
	}
}

/*
 * The others' calls may have failed at their deadlines just before they would have met this one:
 * the team is theirs, too, only when all have been in its barrier. That is not to fail at a
 * deadline itself, at which it could have ended for others.
 */
static int meet(struct collnet_team *t)
{
	const struct cn_coll_call barrier = { .op = CN_OP_BARRIER };
	const uint32_t timeout = t->c->timeout_ms;
	struct collnet_coll_options o;

	collnet_coll_options_init(&o);
	o.timeout_ms = timeout < CN_MSG_TIMEOUT_MAX - MEET_MS ? timeout + MEET_MS : timeout;
	return cn_coll_run_locked(t, &barrier, &o);
}

/* With the lock held. */
static int create(struct collnet_team *parent, uint64_t what, const struct group *g,
		  const char *made_as, collnet_team_t **out)
{
	const struct cn_origin from = { parent, g->members, NULL };
	struct collnet_team *t = NULL;
	char job[COLLNET_NAME_MAX + 1];
	struct cn_err why;
	int rc;

	derive_name(parent, what, job, sizeof(job));
	rc = open_child(parent, job, g->rank, g->n, &from, &t);
	if (rc != COLLNET_OK) {
		return rc;
	}
	memcpy(t->made_as, made_as, sizeof(t->made_as));
	rc = meet(t);
	if (rc == COLLNET_OK) {
		*out = t;
		return rc;
	}
	why = t->c->err;
	cn_team_close(t);
	parent->c->err = why;
	return rc;
}

/* All ranks of the parent call. With the lock held. */
static int divide(struct collnet_team *parent, enum cn_making making, int32_t color, int32_t key,
		  collnet_team_t **out)
{
	/* No color is UINT32_MAX. */
	const uint32_t low = making == CN_MAKING_DUP ? UINT32_MAX : (uint32_t)color;
	char job[COLLNET_NAME_MAX + 1];
	const struct cn_split_call call = { job, making, color, key };
	const struct cn_origin from = { parent, NULL, &call };
	const uint32_t number = ++parent->children;
	const uint32_t split = making == CN_MAKING_SPLIT ? ++parent->splits : 0;
	char how[48], made_as[sizeof(parent->made_as)];
	int rc;

	snprintf(how, sizeof(how), "color %d of split %u", color, split);
	describe(parent, how, made_as, sizeof(made_as));
	derive_name(parent, (uint64_t)number << 32 | low, job, sizeof(job));
	rc = open_child(parent, job, parent->rank, parent->ranks, &from, out);
	/* Refused before others were told of it: theirs, which were not, have the same number. */
	if (rc == COLLNET_ELIMIT || rc == COLLNET_ENOMEM) {
		take_back(&parent->children, number);
		if (split != 0) {
			take_back(&parent->splits, split);
		}
	}
	if (rc == COLLNET_OK && split != 0 && *out != NULL) {
		memcpy((*out)->made_as, made_as, sizeof(made_as));
	}
	return rc;
}

/* Takes the lock. */
static int enter_team(struct collnet_team *t, collnet_team_t **out, const char *what)
{
	int rc;

	if (t == NULL) {
		return cn_argument_error("the team is NULL");
	}
	rc = cn_enter(t->c);
	if (rc == COLLNET_OK && out == NULL) {
		return cn_leave(t->c, cn_fail(&t->c->err, COLLNET_EINVAL, "%s: out is NULL", what));
	}
	return rc;
}

int collnet_team_split(collnet_team_t *t, int32_t color, int32_t key, collnet_team_t **out)
{
	int rc = enter_team(t, out, "collnet_team_split");

	return rc != COLLNET_OK ? rc : cn_leave(t->c, divide(t, CN_MAKING_SPLIT, color, key, out));
}

int collnet_team_dup(collnet_team_t *t, collnet_team_t **out)
{
	int rc = enter_team(t, out, "collnet_team_dup");

	return rc != COLLNET_OK ? rc : cn_leave(t->c, divide(t, CN_MAKING_DUP, 0, 0, out));
}

/* The index of the list in those of the parent, of which this rank has made another team. */
static int count_list(struct collnet_team *t, uint64_t hash, uint32_t *out)
{
	struct cn_list *more;

	for (uint32_t i = 0; i < t->nlists; i++) {
		if (t->lists[i].hash == hash) {
			t->lists[i].n++;
			*out = i;
			return COLLNET_OK;
		}
	}
	more = cn_vector_grow(t->lists, t->nlists, &t->lists_cap, sizeof(*more));
	if (more == NULL) {
		return cn_fail(&t->c->err, COLLNET_ENOMEM, "out of memory for a team");
	}
	t->lists = more;
	t->lists[t->nlists] = (struct cn_list){ hash, 1 };
	*out = t->nlists++;
	return COLLNET_OK;
}

static int read_list(struct collnet_team *t, uint32_t n, const uint32_t *ranks, struct group *g,
		     uint64_t *hash)
{
	struct cn_err *err = &t->c->err;

	if (ranks == NULL) {
		return cn_fail(err, COLLNET_EINVAL, "the list of ranks is NULL");
	}
	*hash = n;
	for (uint32_t i = 0; i < n; i++) {
		if (ranks[i] >= t->ranks || cn_bit(g->members, ranks[i])) {
			return cn_fail(err, COLLNET_EINVAL,
				       "entry %u of the list is rank %u of %u: %s", i, ranks[i],
				       t->ranks,
				       ranks[i] >= t->ranks ? "there is none"
							    : "it is listed twice");
		}
		if (ranks[i] == t->rank) {
			g->rank = i;
		}
		add_member(g, ranks[i]);
		*hash = cn_mix64(*hash ^ ranks[i]);
	}
	return cn_bit(g->members, t->rank)
		       ? COLLNET_OK
		       : cn_fail(err, COLLNET_EINVAL,
				 "rank %u is not in the list: only ranks that are "
				 "listed call",
				 t->rank);
}

static void describe_list(const struct collnet_team *parent, uint32_t n, const uint32_t *ranks,
			  char *out, size_t size)
{
	char list[40], how[48];
	struct cn_rank_list l = { .text = list, .cap = sizeof(list) };

	for (uint32_t i = 0; i < n; i++) {
		cn_rank_list_add(&l, ranks[i]);
	}
	cn_rank_list_end(&l);
	if (l.len + 1 < sizeof(list)) {
		snprintf(how, sizeof(how), "ranks %s", list);
	} else {
		snprintf(how, sizeof(how), "%u ranks", n);
	}
	describe(parent, how, out, size);
}

int collnet_team_from_ranks(collnet_team_t *t, uint32_t n, const uint32_t *ranks,
			    collnet_team_t **out)
{
	struct group g = { { 0 }, 0, 0 };
	uint64_t hash = 0;
	uint32_t list = 0, times;
	char made_as[sizeof(t->made_as)];
	int rc = enter_team(t, out, "collnet_team_from_ranks");

	if (rc != COLLNET_OK) {
		return rc;
	}
	rc = read_list(t, n, ranks, &g, &hash);
	if (rc == COLLNET_OK) {
		rc = count_list(t, hash, &list);
	}
	if (rc == COLLNET_OK) {
		times = t->lists[list].n;
		describe_list(t, n, ranks, made_as, sizeof(made_as));
		rc = create(t, cn_mix64(hash) ^ times, &g, made_as, out);
		/* Ranks that never called have not counted either: a call after a timeout meets
		 * theirs. */
		if (rc != COLLNET_OK) {
			take_back(&t->lists[list].n, times);
		}
	}
	return cn_leave(t->c, rc);
}
