/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Teams of the ranks of another team. Each is a job of its own, whose name all its ranks derive
 * from the parent's: nothing but the ranks of the new team takes part, and the names of two cannot
 * clash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/backend.h"
#include "client/env.h"

/* What a rank says of itself. */
struct claim {
	int32_t color, key;
};

static uint64_t mix_text(uint64_t h, const char *s)
{
	while (*s != '\0') {
		h = cn_mix64(h ^ (uint8_t)*s++);
	}
	return h;
}

/* The parent's name, as far as there is room, and a hash of all that tells the new team apart. */
static void derive_name(const struct collnet_team *parent, uint64_t what, char *out, size_t size)
{
	snprintf(out, size, "%.46s/%016llx", parent->job,
		 (unsigned long long)cn_mix64(mix_text(what, parent->job)));
}

/* The team of the ranks members[0 .. n - 1] of the parent, as the member `rank`. */
static int create(struct collnet_team *parent, uint64_t what, uint32_t n, uint32_t rank,
		  collnet_team_t **out)
{
	struct collnet *c = parent->c;
	char job[COLLNET_NAME_MAX + 1];
	const struct collnet_team_options o = {
		.size = sizeof(o),
		.job = job,
		.rank = rank,
		.ranks = n,
		.timeout_ms = c->timeout_ms,
	};
	int rc = cn_enter(c);

	if (rc != COLLNET_OK) {
		return rc;
	}
	derive_name(parent, what, job, sizeof(job));
	return cn_leave(c, cn_team_open(c, &o, parent->secret, out));
}

/* The number of a new team, the same on all ranks. */
static uint32_t next_child(struct collnet_team *t)
{
	uint32_t n;

	cn_lock(t->c);
	n = ++t->children;
	cn_leave(t->c, COLLNET_OK);
	return n;
}

/* Whether rank a comes before rank b in their new team. */
static bool before(const struct claim *all, uint32_t a, uint32_t b)
{
	return all[a].key != all[b].key ? all[a].key < all[b].key : a < b;
}

static int check_team(struct collnet_team *t, collnet_team_t **out, const char *what)
{
	int rc;

	if (t == NULL) {
		return cn_complain("the team is NULL");
	}
	if (out != NULL) {
		return COLLNET_OK;
	}
	rc = cn_enter(t->c);
	return rc != COLLNET_OK ? rc
				: cn_leave(t->c, cn_fail(&t->c->err, COLLNET_EINVAL,
							 "%s: out is NULL", what));
}

int collnet_team_split(collnet_team_t *t, int32_t color, int32_t key, collnet_team_t **out)
{
	const struct claim own = { color, key };
	uint32_t n = 0, rank = 0, children;
	struct claim *all;
	int rc = check_team(t, out, "collnet_team_split");

	if (rc != COLLNET_OK) {
		return rc;
	}
	children = next_child(t);
	all = calloc(t->ranks, sizeof(*all));
	if (all == NULL) {
		rc = cn_enter(t->c);
		return rc != COLLNET_OK ? rc
					: cn_leave(t->c, cn_fail(&t->c->err, COLLNET_ENOMEM,
								 "out of memory for a team"));
	}
	rc = collnet_allgather(t, &own, all, sizeof(own), NULL);
	for (uint32_t r = 0; rc == COLLNET_OK && r < t->ranks; r++) {
		if (all[r].color == color) {
			n++;
			rank += r != t->rank && before(all, r, t->rank);
		}
	}
	free(all);
	if (rc == COLLNET_OK && color < 0) {
		*out = NULL;
		return rc;
	}
	return rc != COLLNET_OK
		       ? rc
		       : create(t, (uint64_t)children << 32 | (uint32_t)color, n, rank, out);
}

int collnet_team_dup(collnet_team_t *t, collnet_team_t **out)
{
	int rc = check_team(t, out, "collnet_team_dup");

	/* All ranks know all that it takes. */
	return rc != COLLNET_OK ? rc
				: create(t, (uint64_t)next_child(t) << 32 | UINT32_MAX, t->ranks,
					 t->rank, out);
}
