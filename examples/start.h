/* SPDX-License-Identifier: BSD-2-Clause */
/* What the examples have in common: they join their job, and end with a message if a call fails. */
#ifndef START_H
#define START_H

#include <stdio.h>
#include <stdlib.h>

#include <collnet/collnet.h>

/* The context, the team of all ranks, this process's rank, and how many there are. */
static collnet_t *context;
static collnet_team_t *team;
static uint32_t rank, ranks;

/* Ends the process if a call failed. collnet_error() names the node, the rank and the phase. */
static void check(int status, const char *call)
{
	if (status != COLLNET_OK) {
		const char *why = collnet_error(context);

		fprintf(stderr, "%s: %s\n", call, *why ? why : collnet_strerror(status));
		exit(1);
	}
}

#define CHECK(call) check(call, #call)

/* Rank, size and job come from the launcher. */
static void start(void)
{
	struct collnet_team_options options;

	CHECK(collnet_open(NULL, &context));
	collnet_team_options_init(&options);
	CHECK(collnet_team_create(context, &options, &team));
	rank = collnet_team_rank(team);
	ranks = collnet_team_size(team);
}

static void finish(void)
{
	collnet_team_destroy(team);
	collnet_close(context);
}

/* Memory that is sent without a copy. */
static void *allocate(size_t bytes)
{
	void *p = collnet_alloc(context, bytes > 0 ? bytes : 1);

	check(p != NULL ? COLLNET_OK : COLLNET_ENOMEM, "collnet_alloc");
	return p;
}

/* The first of n rows that belongs to a rank: each has n / ranks of them, or one more. */
static size_t first_row(size_t n, uint32_t r)
{
	return n * r / ranks;
}

#endif
