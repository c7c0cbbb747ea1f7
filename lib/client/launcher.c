/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process's place in a team, from the variables of whoever started it.
 */
#include "client/env.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* One launcher a row, in the order in which they are asked. */
static const struct launcher {
	const char *name;
	const char *rank, *ranks;
	bool both;	    /* one without the other is an error, not another launcher's business */
	const char *job[2]; /* variables that identify the job; joined by '.' if both are set */
} launchers[] = {
	{ "default", "COLLNET_RANK", "COLLNET_SIZE", true, { NULL, NULL } },
	{ "ompi",
	  "OMPI_COMM_WORLD_RANK",
	  "OMPI_COMM_WORLD_SIZE",
	  false,
	  { "PMIX_NAMESPACE", NULL } },
	{ "pmi", "PMI_RANK", "PMI_SIZE", false, { "PMI_JOBID", NULL } },
	{ "slurm", "SLURM_PROCID", "SLURM_NTASKS", false, { "SLURM_JOB_ID", "SLURM_STEP_ID" } },
};

static const char *value(cn_getenv_fn get, void *arg, const char *name)
{
	const char *v = name == NULL ? NULL : get(arg, name);

	return v == NULL || v[0] == '\0' ? NULL : v;
}

/* Others' identifiers become usable names: strange characters are replaced. */
static void make_name(char *out, size_t size, const char *launcher, const char *a, const char *b)
{
	snprintf(out, size, "%s%s%s%s%s", launcher, a != NULL ? "-" : "", a != NULL ? a : "",
		 b != NULL ? "." : "", b != NULL ? b : "");
	for (char *p = out; *p != '\0'; p++) {
		if (!isalnum((unsigned char)*p) && strchr("._:@/-", *p) == NULL) {
			*p = '_';
		}
	}
}

static int read_place(const struct launcher *l, const char *rank, const char *ranks,
		      struct cn_place *out, struct cn_err *err)
{
	uint64_t r, n;

	if (!cn_parse_uint(ranks, 1, COLLNET_RANKS_MAX, &n)) {
		return cn_fail(
			err, COLLNET_EINVAL,
			"%s is '%.40s' in the environment: a number from 1 to %d is expected",
			l->ranks, ranks, COLLNET_RANKS_MAX);
	}
	if (!cn_parse_uint(rank, 0, n - 1, &r)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%s is '%.40s' in the environment: a number from 0 to %u is "
			       "expected, as %s is %s",
			       l->rank, rank, (unsigned)(n - 1), l->ranks, ranks);
	}
	out->rank = (uint32_t)r;
	out->ranks = (uint32_t)n;
	return COLLNET_OK;
}

int cn_place_from(cn_getenv_fn get, void *arg, struct cn_place *out, struct cn_err *err)
{
	const char *job = value(get, arg, "COLLNET_JOB");
	struct cn_place place = { .rank = 0, .ranks = 1 };
	int rc;

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const struct launcher *l = &launchers[i];
		const char *rank = value(get, arg, l->rank), *ranks = value(get, arg, l->ranks);

		if (l->both && (rank == NULL) != (ranks == NULL)) {
			return cn_fail(err, COLLNET_EINVAL,
				       "%s is set in the environment, and %s is not: set both",
				       rank != NULL ? l->rank : l->ranks,
				       rank != NULL ? l->ranks : l->rank);
		}
		if (rank == NULL || ranks == NULL) {
			continue;
		}
		rc = read_place(l, rank, ranks, &place, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		make_name(place.job, sizeof(place.job), l->name, value(get, arg, l->job[0]),
			  value(get, arg, l->job[1]));
		break;
	}
	if (job != NULL) {
		if (!cn_valid_name(job)) {
			return cn_fail(
				err, COLLNET_EINVAL,
				"COLLNET_JOB is '%.70s' in the environment: 1 to %d characters of "
				"A-Z a-z 0-9 . _ : @ / - are expected",
				job, COLLNET_NAME_MAX);
		}
		snprintf(place.job, sizeof(place.job), "%s", job);
	}
	*out = place;
	return COLLNET_OK;
}
