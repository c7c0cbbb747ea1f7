/* SPDX-License-Identifier: BSD-2-Clause */
/* A process's rank, size and job from its launcher's environment variables. */
#include "client/env.h"

#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One launcher per row, in order of precedence. */
static const struct launcher {
	const char *name;
	const char *rank, *ranks;
	bool both;	    /* one without the other is an error, and no other launcher is tried */
	const char *needs;  /* NULL, or a variable without which the row does not count */
	const char *job[2]; /* variables that identify the job; joined by '.' if both are set */
	const char *job_otherwise; /* when neither is set */
	const char *pmi_fd;	   /* when none is set: the descriptor of a PMI-1 server */
} launchers[] = {
	{ .name = "default", .rank = "COLLNET_RANK", .ranks = "COLLNET_SIZE", .both = true },
	/* torchrun. The port comes first, as long names are cut; only one job has it there. */
	{ .name = "torch",
	  .rank = "RANK",
	  .ranks = "WORLD_SIZE",
	  .needs = "MASTER_ADDR",
	  .job = { "MASTER_PORT", "MASTER_ADDR" } },
	/* PMIx gives a namespace; before it there was Open MPI's own number. */
	{ .name = "ompi",
	  .rank = "OMPI_COMM_WORLD_RANK",
	  .ranks = "OMPI_COMM_WORLD_SIZE",
	  .job = { "PMIX_NAMESPACE", NULL },
	  .job_otherwise = "OMPI_MCA_ess_base_jobid" },
	{ .name = "pmi",
	  .rank = "PMI_RANK",
	  .ranks = "PMI_SIZE",
	  .job = { "PMI_JOBID", NULL },
	  .pmi_fd = "PMI_FD" },
	{ .name = "slurm",
	  .rank = "SLURM_PROCID",
	  .ranks = "SLURM_NTASKS",
	  .job = { "SLURM_JOB_ID", "SLURM_STEP_ID" } },
};

/*
 * A job's name: launcher, '-', a, '.', b, without those that are NULL. Characters that names cannot
 * have become '_', and what is too long is cut.
 */
static void job_name(char *out, size_t size, const char *launcher, const char *a, const char *b)
{
	snprintf(out, size, "%s%s%s%s%s", launcher, a != NULL ? "-" : "", a != NULL ? a : "",
		 b != NULL ? "." : "", b != NULL ? b : "");
	for (char *p = out; *p != '\0'; p++) {
		if (!isalnum((unsigned char)*p) && strchr("._:@/-", *p) == NULL) {
			*p = '_';
		}
	}
}

/* The job's name; or, where only a PMI server knows it, its descriptor in place->pmi_fd. */
static void name_job(const struct launcher *l, cn_getenv_fn get, void *arg,
		     struct cn_launch_info *place)
{
	const char *a = cn_env_value(get, arg, l->job[0]), *b = cn_env_value(get, arg, l->job[1]);
	const char *fd = cn_env_value(get, arg, l->pmi_fd);
	uint64_t n;

	if (a == NULL && b == NULL) {
		a = cn_env_value(get, arg, l->job_otherwise);
	}
	job_name(place->job, sizeof(place->job), l->name, a, b);
	if (a == NULL && fd != NULL) {
		place->pmi_fd = cn_parse_uint(fd, 0, INT_MAX, &n) ? (int)n : INT_MAX;
	}
}

static int read_place(const struct launcher *l, const char *rank, const char *ranks,
		      struct cn_launch_info *out, struct cn_err *err)
{
	uint64_t r, n;

	if (!cn_parse_uint(ranks, 1, COLLNET_RANKS_MAX, &n)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%s is '%.40s' in the environment: expected a number from 1 to %d",
			       l->ranks, ranks, COLLNET_RANKS_MAX);
	}
	if (!cn_parse_uint(rank, 0, n - 1, &r)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%s is '%.40s' in the environment: expected a number from 0 to "
			       "%u, as %s is %s",
			       l->rank, rank, (unsigned)(n - 1), l->ranks, ranks);
	}
	out->rank = (uint32_t)r;
	out->ranks = (uint32_t)n;
	return COLLNET_OK;
}

int cn_launch_info_from(cn_getenv_fn get, void *arg, struct cn_launch_info *out, struct cn_err *err)
{
	const char *job = cn_env_value(get, arg, "COLLNET_JOB");
	struct cn_launch_info place = { .rank = 0, .ranks = 1, .pmi_fd = -1 };
	int rc;

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const struct launcher *l = &launchers[i];
		const char *rank = cn_env_value(get, arg, l->rank),
			   *ranks = cn_env_value(get, arg, l->ranks);

		if (l->both && (rank == NULL) != (ranks == NULL)) {
			return cn_fail(
				err, COLLNET_EINVAL,
				"%s is set in the environment, and %s is not: set both, or unset "
				"it where a launcher starts the ranks",
				rank != NULL ? l->rank : l->ranks,
				rank != NULL ? l->ranks : l->rank);
		}
		if (rank == NULL || ranks == NULL ||
		    (l->needs != NULL && cn_env_value(get, arg, l->needs) == NULL)) {
			continue;
		}
		rc = read_place(l, rank, ranks, &place, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
		place.specified_by = l->ranks;
		name_job(l, get, arg, &place);
		break;
	}
	if (place.specified_by == NULL && cn_env_value(get, arg, "PMI_PORT") != NULL) {
		return cn_fail(err, COLLNET_EINVAL,
			       "PMI_PORT is set in the environment, and PMI_RANK is not: start "
			       "mpiexec without -pmi-port, or set COLLNET_RANK and COLLNET_SIZE");
	}
	if (job != NULL) {
		if (!cn_valid_name(job)) {
			return cn_fail(
				err, COLLNET_EINVAL,
				"COLLNET_JOB is '%.70s' in the environment: expected 1 to %d characters of "
				"A-Z a-z 0-9 . _ : @ / -",
				job, COLLNET_NAME_MAX);
		}
		snprintf(place.job, sizeof(place.job), "%s", job);
		place.pmi_fd = -1;
	}
	*out = place;
	return COLLNET_OK;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is said to the PMI server */
static char id[COLLNET_NAME_MAX + 1];			 /* its response, cached */

/* The child lacks the thread that had the lock and may have been writing the response. */
static void in_child(void)
{
	if (pthread_mutex_trylock(&lock) != 0) {
		id[0] = '\0';
	}
	pthread_mutex_init(&lock, NULL);
}

static void register_handler(void)
{
	/* It fails without memory: then a child that asks while its parent does hangs. */
	(void)pthread_atfork(NULL, NULL, in_child);
}

int cn_launch_info(struct cn_launch_info *out, struct cn_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct cn_launch_info place;
	int rc = cn_launch_info_from(cn_getenv, NULL, &place, err);
	bool known;

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (place.pmi_fd >= 0) {
		pthread_once(&once, register_handler);
		pthread_mutex_lock(&lock);
		known = id[0] != '\0' || cn_pmi_job(place.pmi_fd, id, sizeof(id));
		if (known) {
			job_name(place.job, sizeof(place.job), "pmi", id, NULL);
		}
		pthread_mutex_unlock(&lock);
		if (!known) {
			return cn_fail(err, COLLNET_EINVAL,
				       "the launcher's PMI server (PMI_FD) does not name the job: "
				       "set COLLNET_JOB to a name that no other job has");
		}
	}
	*out = place;
	return COLLNET_OK;
}

int cn_peers_from(cn_getenv_fn get, void *arg, const char *given, char **out, struct cn_err *err)
{
	static const struct {
		const char *name;
		bool is_list; /* else a file */
	} hosts[] = {
		{ "SLURM_STEP_NODELIST", true },
		{ "SLURM_JOB_NODELIST", true },
		{ "PBS_NODEFILE", false },
		{ "LSB_DJOB_HOSTFILE", false },
	};
	const char *v = given, *end = "";
	size_t size;

	*out = NULL;
	if (given == NULL) {
		return COLLNET_OK;
	}
	if (strcmp(given, "launcher") == 0) {
		v = NULL;
		for (size_t i = 0; v == NULL && i < sizeof(hosts) / sizeof(hosts[0]); i++) {
			v = cn_env_value(get, arg, hosts[i].name);
			end = hosts[i].is_list ? "," : ""; /* one host is a list, too */
		}
	}
	if (v == NULL) {
		return cn_fail(
			err, COLLNET_EINVAL,
			"the launcher names no hosts: none of SLURM_STEP_NODELIST, "
			"SLURM_JOB_NODELIST, PBS_NODEFILE and LSB_DJOB_HOSTFILE is set in "
			"the environment; give peers as a list, a file or a multicast group");
	}
	size = strlen(v) + 2;
	*out = malloc(size);
	if (*out == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "out of memory for a context");
	}
	snprintf(*out, size, "%s%s", v, end);
	return COLLNET_OK;
}
