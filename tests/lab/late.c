/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that waits for an operation long after its deadline, as one that computes does, and one
 * whose memory takes long to copy. Neither may break the context. Runs as both ranks of a team.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collnet/collnet.h"

#define DEADLINE 3000u	  /* milliseconds */
#define COMPUTES 5500000u /* microseconds: beyond what the library waits for collnetd after it */
#define PATIENCE 2400u
#define COPIES	 2400000u
#define BYTES	 100u

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank;
static void *slow;
static size_t page;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "late: rank %u, line %d: %s (last error: %s)\n", rank,     \
				__LINE__, #what, collnet_error(c));                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static collnet_team_t *duplicate(void)
{
	collnet_team_t *out = NULL;

	CHECK(collnet_team_dup(t, &out) == COLLNET_OK);
	return out;
}

/* What ended well before the deadline ended well, also for who looks when it has passed. */
static void waits_late(void)
{
	collnet_team_t *team = duplicate(), *other = duplicate();
	struct collnet_coll_options o;
	unsigned char mine[BYTES], all[2 * BYTES];
	collnet_request_t *q;

	memset(mine, (int)(7 + rank), BYTES);
	collnet_coll_options_init(&o);
	o.timeout_ms = DEADLINE;
	CHECK(collnet_iallgather(team, mine, all, BYTES, &o, &q) == COLLNET_OK);
	CHECK(rank == 1 || collnet_bcast(other, mine, BYTES, 0, &o) == COLLNET_OK);
	usleep(COMPUTES);
	CHECK(collnet_wait(q, 0) == COLLNET_OK);
	CHECK(all[0] == 7 && all[BYTES] == 8);
	collnet_team_destroy(other);
	collnet_team_destroy(team);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

/* Memory that is slow: the first access to it takes COPIES. */
static void first_access(int signal)
{
	(void)signal;
	usleep(COPIES);
	if (mprotect(slow, page, PROT_READ | PROT_WRITE) != 0) {
		_exit(1);
	}
}

/* The deadline counts from when the operation begins, on both sides. */
static void copies_slowly(void)
{
	const struct sigaction action = { .sa_handler = first_access };
	collnet_team_t *team = duplicate();
	struct collnet_coll_options o;
	unsigned char all[2 * BYTES];

	page = (size_t)sysconf(_SC_PAGESIZE);
	slow = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(slow != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0);
	collnet_coll_options_init(&o);
	o.timeout_ms = PATIENCE;
	if (rank == 0) {
		CHECK(collnet_allgather(team, slow, all, BYTES, &o) == COLLNET_ETIMEOUT);
		CHECK(strstr(collnet_error(c), "rank 1") != NULL);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_team_destroy(team);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (collnet_open(NULL, &c) != COLLNET_OK ||
	    collnet_team_create(c, NULL, &t) != COLLNET_OK) {
		fprintf(stderr, "late: %s\n", collnet_error(c));
		return 1;
	}
	rank = collnet_team_rank(t);
	CHECK(collnet_team_size(t) == 2);
	waits_late();
	if (argc < 2) { /* in the process nothing is copied */
		copies_slowly();
	}
	printf("rank %u of 2: done\n", rank);
	collnet_team_destroy(t);
	collnet_close(c);
	return 0;
}
