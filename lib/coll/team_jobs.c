/* SPDX-License-Identifier: BSD-2-Clause */
/* The teams of a node by their jobs. Users choose names and owners, so the hash is keyed. */
#include <string.h>

#include "coll/engine_state.h"
#include "coll/team.h"
#include "util/siphash.h"

static uint32_t slot_of(const struct cn_engine *e, uint64_t owner, const char *job)
{
	const size_t n = strnlen(job, COLLNET_NAME_MAX);
	uint8_t what[sizeof(owner) + COLLNET_NAME_MAX];

	memcpy(what, &owner, sizeof(owner));
	memcpy(what + sizeof(owner), job, n);
	return cn_siphash(e->config.node.key, what, sizeof(owner) + n) % CN_JOB_SLOTS;
}

struct cn_team *cn_team_of_job(const struct cn_engine *e, const struct cn_team *t, uint64_t owner,
			       const char *job)
{
	struct cn_team *next = t != NULL ? t->in_job_slot : e->jobs[slot_of(e, owner, job)];

	while (next != NULL && (next->owner != owner || strcmp(next->job, job) != 0)) {
		next = next->in_job_slot;
	}
	return next;
}

void cn_team_jobs_enter(struct cn_team *t)
{
	struct cn_team **first = &t->engine->jobs[slot_of(t->engine, t->owner, t->job)];

	t->in_job_slot = *first;
	*first = t;
}

void cn_team_jobs_leave(struct cn_team *t)
{
	struct cn_team **at = &t->engine->jobs[slot_of(t->engine, t->owner, t->job)];

	while (*at != t) {
		at = &(*at)->in_job_slot;
	}
	*at = t->in_job_slot;
}
