/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As many teams as a context can have, as every rank of a job: all exist at once, one in a hundred
 * is used, and those freed can be made again. Rank 0 prints what an idle team costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collnet/collnet.h"

#define TEAMS 1024u /* of a context */

static collnet_t *c;
static uint32_t rank, ranks;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "teams: rank %u, line %d: %s (last error: %s)\n", rank,    \
				__LINE__, #what, collnet_error(c));                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The team adds up, and knows the node of each of its ranks. */
static void use(collnet_team_t *t)
{
	static char names[16][COLLNET_NAME_MAX + 1];
	uint64_t own = collnet_team_rank(t) + 1, sum = 0;
	const uint64_t n = collnet_team_size(t);
	char name[COLLNET_NAME_MAX + 1] = "";

	snprintf(name, sizeof(name), "%s", collnet_node_name(c));
	CHECK(n <= 16 && collnet_allgather(t, name, names, sizeof(name), NULL) == COLLNET_OK);
	for (uint32_t r = 0; r < n; r++) {
		CHECK(strcmp(collnet_team_node(t, r), names[r]) == 0);
	}
	CHECK(collnet_allreduce(t, &own, &sum, 1, COLLNET_UINT64, COLLNET_SUM, NULL) == COLLNET_OK);
	CHECK(sum == n * (n + 1) / 2);
}

static uint64_t resident(void)
{
	struct collnet_stats s = { .size = sizeof(s) };

	CHECK(collnet_get_stats(c, &s, 0) == COLLNET_OK);
	return s.rss_bytes;
}

/* Microseconds per barrier. */
static double barriers(collnet_team_t *t)
{
	const double begin = now();

	for (int i = 0; i < 200; i++) {
		CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	}
	return (now() - begin) / 200;
}

/* A call for which the others do not come in time can be repeated when they do. */
static void too_early(collnet_team_t *t, const uint32_t *all)
{
	collnet_team_t *more = NULL;
	struct collnet_coll_options patient;

	collnet_coll_options_init(&patient);
	patient.timeout_ms = COLLNET_TIMEOUT_NONE;
	if (rank == 0) {
		CHECK(collnet_team_from_ranks(t, ranks, all, &more) == COLLNET_ETIMEOUT);
		CHECK(more == NULL);
	}
	CHECK(collnet_barrier(t, &patient) == COLLNET_OK);
	CHECK(collnet_team_from_ranks(t, ranks, all, &more) == COLLNET_OK);
	use(more);
	collnet_team_destroy(more);
}

/* Until this moment of now(). */
static void wait_until(double then)
{
	while (now() < then) {
		if (then - now() > 2000) {
			usleep((useconds_t)(then - now() - 1000));
		}
	}
}

/*
 * Rank 0 calls when another rank's call is about to pass its deadline, a little earlier each time.
 * Its call may succeed while the other one fails. Afterwards all ranks can call again.
 */
static void at_the_deadline(collnet_team_t *t, double timeout_us)
{
	const uint32_t list[2] = { 1, 0 };
	struct collnet_coll_options patient;
	collnet_team_t *copy, *more;
	double start = 0;
	int rc, codes[2], differed = 0;

	CHECK(ranks == 2);
	collnet_coll_options_init(&patient);
	patient.timeout_ms = 30000;
	for (int i = 0; i < 60; i++) {
		CHECK(collnet_barrier(t, &patient) == COLLNET_OK);
		CHECK(collnet_team_dup(t, &copy) == COLLNET_OK);
		start = now() + 50000; /* the same clock on all hosts of the lab */
		CHECK(collnet_bcast(t, &start, sizeof(start), 0, &patient) == COLLNET_OK);
		wait_until(rank == 0 ? start + timeout_us - 50 * i : start);
		more = NULL;
		rc = collnet_team_from_ranks(copy, 2, list, &more);
		CHECK((more != NULL) == (rc == COLLNET_OK));
		CHECK(collnet_allgather(t, &rc, codes, sizeof(rc), &patient) == COLLNET_OK);
		collnet_team_destroy(more);
		differed += codes[0] != codes[1];
		more = NULL;
		for (int k = 0; more == NULL; k++) { /* again, where the machine is slow */
			CHECK(k < 5);
			rc = collnet_team_from_ranks(copy, 2, list, &more);
			CHECK(rc == COLLNET_OK || more == NULL);
			CHECK(collnet_barrier(t, &patient) == COLLNET_OK);
		}
		use(more);
		collnet_team_destroy(more);
		collnet_team_destroy(copy);
	}
	printf("%d of 60 times one rank failed otherwise than the other\n", differed);
}

/* Rank 0 of the job leaves the team: two calls of each other rank, and what both errors begin with.
 */
static void left_by_first(collnet_team_t *t, const char *team)
{
	if (rank != 0) {
		for (int i = 0; i < 2; i++) {
			CHECK(collnet_barrier(t, NULL) == COLLNET_ERANK);
			CHECK(strncmp(collnet_error(c), team, strlen(team)) == 0);
		}
	}
	collnet_team_destroy(t);
}

/* Errors name the team where its ranks are not those of the job. */
static void named_in_errors(collnet_team_t *t, const uint32_t *all)
{
	const char *job = getenv("COLLNET_JOB");
	collnet_team_t *split, *listed, *copy, *deep[4];
	char name[400], list[20];

	CHECK(job != NULL && collnet_team_split(t, 0, 0, &split) == COLLNET_OK);
	collnet_team_destroy(split);
	CHECK(collnet_team_split(t, 5, -(int32_t)rank, &split) == COLLNET_OK);
	CHECK(collnet_team_dup(split, &copy) == COLLNET_OK);
	CHECK(collnet_team_from_ranks(split, ranks, all, &listed) == COLLNET_OK);
	for (int i = 0; i < 4; i++) {
		CHECK(collnet_team_split(i == 0 ? listed : deep[i - 1], INT32_MAX, 0, &deep[i]) ==
		      COLLNET_OK);
	}
	snprintf(name, sizeof(name), "color 5 of split 2 of job %s: rank %u on node ", job,
		 ranks - 1);
	left_by_first(split, name);
	left_by_first(copy, name);
	snprintf(list, sizeof(list), ranks == 2 ? "1, 0" : "2, 1, 0");
	snprintf(name, sizeof(name), "ranks %s of color 5 of split 2 of job %s: rank 0 on node ",
		 list, job);
	left_by_first(listed, name);
	/* Too deep: by what collnet status calls the team that it was made of. */
	snprintf(name, sizeof(name), "color 2147483647 of split 1 of job %s/", job);
	left_by_first(deep[3], name);
	for (int i = 0; i < 3; i++) {
		collnet_team_destroy(deep[i]);
	}
	CHECK(collnet_team_dup(t, &copy) == COLLNET_OK);
	left_by_first(copy, "rank 0 on node ");
}

int main(int argc, char **argv)
{
	static collnet_team_t *t[TEAMS];
	struct collnet_options options;
	collnet_team_t *more = NULL;
	uint32_t all[16];
	double before, after, begin, each;
	uint64_t memory;

	collnet_options_init(&options);
	options.timeout_ms = argc > 1 ? (uint32_t)atoi(argv[1]) : 5000;
	if (collnet_open(&options, &c) != COLLNET_OK ||
	    collnet_team_create(c, NULL, &t[0]) != COLLNET_OK) {
		fprintf(stderr, "teams: %s\n", collnet_error(c));
		return 1;
	}
	rank = collnet_team_rank(t[0]);
	ranks = collnet_team_size(t[0]);
	for (uint32_t i = 0; i < ranks && i < 16; i++) {
		all[i] = ranks - 1 - i;
	}
	if (argc > 1) {
		at_the_deadline(t[0], options.timeout_ms * 1e3);
		collnet_close(c);
		printf("rank %u of %u: done\n", rank, ranks);
		return 0;
	}
	use(t[0]);
	too_early(t[0], all);
	named_in_errors(t[0], all);
	before = barriers(t[0]);
	memory = resident();
	begin = now();
	for (uint32_t i = 1; i < TEAMS; i++) {
		if (i % 3 == 0) {
			CHECK(collnet_team_split(t[0], 0, -(int32_t)rank, &t[i]) == COLLNET_OK);
		} else if (i % 3 == 1) {
			CHECK(collnet_team_dup(t[i / 2], &t[i]) == COLLNET_OK);
		} else {
			CHECK(collnet_team_from_ranks(t[0], ranks, all, &t[i]) == COLLNET_OK);
		}
	}
	each = (now() - begin) / (TEAMS - 1);
	memory = resident() - memory;
	CHECK(collnet_team_dup(t[0], &more) == COLLNET_ELIMIT && more == NULL);
	CHECK(strstr(collnet_error(c), "1024") != NULL);
	if (rank == 0) { /* what only one rank was refused can be repeated all the same */
		CHECK(collnet_team_split(t[0], 0, 0, &more) == COLLNET_ELIMIT);
		CHECK(collnet_team_from_ranks(t[0], ranks, all, &more) == COLLNET_ELIMIT);
	}
	for (uint32_t i = 0; i < TEAMS; i += 100) {
		use(t[i]);
	}
	use(t[TEAMS - 1]);
	after = barriers(t[0]);
	if (rank == 0) {
		printf("%.0f us and %llu bytes per team; a barrier takes %.0f us, among %u teams "
		       "%.0f us\n",
		       each, (unsigned long long)(memory / (TEAMS - 1)), before, TEAMS, after);
	}
	/* Those that were made of it outlive their parent. */
	for (uint32_t i = 1; i < TEAMS / 2; i++) {
		collnet_team_destroy(t[i]);
	}
	CHECK(collnet_team_dup(t[TEAMS / 2], &more) == COLLNET_OK);
	use(more);
	for (uint32_t i = 1; i < 4; i++) {
		CHECK(i < 3 ? collnet_team_split(t[0], 0, 0, &t[i]) == COLLNET_OK
			    : collnet_team_from_ranks(t[0], ranks, all, &t[i]) == COLLNET_OK);
		use(t[i]);
	}
	for (uint32_t i = 1; i < 4; i++) {
		CHECK(collnet_team_from_ranks(t[i], ranks, all, &t[3 + i]) == COLLNET_OK);
		use(t[3 + i]);
	}
	use(t[TEAMS - 1]);
	CHECK(collnet_barrier(t[0], NULL) == COLLNET_OK);
	collnet_close(c);
	printf("rank %u of %u: done\n", rank, ranks);
	return 0;
}
