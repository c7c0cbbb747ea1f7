/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that return before their operation has ended, since what they send was copied: a root's
 * broadcast and the other ranks' gather and reduce, of short blocks, through the daemon. Runs as
 * every rank of a team of two or more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collnet/collnet.h"

#define ROUNDS	  300
#define AT_ONCE	  8 /* of one team, that return before they have ended */
#define BYTES_MAX 4097u
#define CONSTANT  300000u
#define GATHERS	  63u /* with what has not ended before: more than a team's operations */

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank, ranks;
static unsigned char *mine, *all;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "buffered: rank %u, line %d: %s (last error: %s)\n", rank, \
				__LINE__, #what, collnet_error(c));                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static unsigned char pattern(uint32_t from, size_t k, unsigned r)
{
	return (unsigned char)(from * 59 + k * 13 + k / 253 + r * 7 + 1);
}

static void fill(unsigned char *p, size_t bytes, unsigned r)
{
	for (size_t k = 0; k < bytes; k++) {
		p[k] = pattern(rank, k, r);
	}
}

static void check_gathered(uint32_t root, size_t bytes, unsigned r)
{
	for (uint32_t i = 0; i < ranks && rank == root; i++) {
		for (size_t k = 0; k < bytes; k++) {
			CHECK(all[i * bytes + k] == pattern(i, k, r));
		}
	}
}

static collnet_team_t *duplicate(void)
{
	collnet_team_t *out = NULL;

	CHECK(collnet_team_dup(t, &out) == COLLNET_OK);
	return out;
}

/* It is complete, and can be collected once, although its operation cannot have ended. */
static void complete_once(collnet_request_t *q, unsigned r)
{
	collnet_request_t *twice[] = { q, q };
	int statuses[2];

	if (r % 2 == 0) {
		CHECK(collnet_test(q) == COLLNET_OK);
	} else {
		CHECK(collnet_waitall(2, twice, statuses, 0) == COLLNET_EINVAL);
		CHECK(twice[0] == q && twice[1] == q);
		CHECK(collnet_testall(2, twice, statuses) == COLLNET_EINVAL);
		CHECK(collnet_waitall(1, twice, statuses, 0) == COLLNET_OK);
		CHECK(statuses[0] == COLLNET_OK);
	}
	CHECK(collnet_test(q) == COLLNET_EINVAL);
	twice[0] = q;
	CHECK(collnet_waitall(1, twice, NULL, 0) == COLLNET_EINVAL);
}

/* Rank 0 calls last. The first test of the others' requests finds them complete. */
static void complete_at_once(void)
{
	collnet_team_t *team = duplicate(), *other = duplicate();
	collnet_request_t *q;

	for (unsigned r = 0; r < AT_ONCE && rank != 0; r++) {
		fill(mine, 100, r);
		CHECK(collnet_igather(team, mine, NULL, 100, 0, NULL, &q) == COLLNET_OK);
		complete_once(q, r);
		memset(mine, 0xff, 100); /* before the daemon runs, as a rule */
	}
	/* Rank 0's part of a broadcast is complete, too, though no other rank has called. */
	for (unsigned r = 0; r < AT_ONCE && rank == 0; r++) {
		fill(mine, 100, r);
		CHECK(collnet_ibcast(other, mine, 100, 0, NULL, &q) == COLLNET_OK);
		CHECK(collnet_test(q) == COLLNET_OK);
		memset(mine, 0xff, 100);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	for (unsigned r = 0; r < AT_ONCE && rank == 0; r++) {
		fill(mine, 100, r);
		CHECK(collnet_gather(team, mine, all, 100, 0, NULL) == COLLNET_OK);
		check_gathered(0, 100, r);
	}
	for (unsigned r = 0; r < AT_ONCE && rank != 0; r++) {
		CHECK(collnet_bcast(other, mine, 100, 0, NULL) == COLLNET_OK);
		for (size_t k = 0; k < 100; k++) {
			CHECK(mine[k] == pattern(0, k, r));
		}
	}
	collnet_team_destroy(other);
	collnet_team_destroy(team);
}

/* A root only reads what it broadcasts: the memory may be read-only. */
static void broadcast_of_a_constant(void)
{
	static const size_t sizes[] = { 1, 1024, 1025, CONSTANT };
	const size_t length = CONSTANT;
	unsigned char *constant = mmap(NULL, length, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(constant != MAP_FAILED);
	fill(constant, length, 3);
	if (rank == 0) {
		CHECK(mprotect(constant, length, PROT_READ) == 0);
	}
	for (int i = 0; i < 4; i++) {
		CHECK(collnet_bcast(t, constant, sizes[i], 0, NULL) == COLLNET_OK);
		for (size_t k = 0; k < sizes[i]; k++) {
			CHECK(constant[k] == pattern(0, k, 3));
		}
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	munmap(constant, length);
}

/* Operations of every kind back to back, of blocks around the longest that is copied. */
static void back_to_back(void)
{
	static const size_t sizes[] = { 1, 100, 1024, 1025, 4096, BYTES_MAX };

	for (unsigned r = 0; r < ROUNDS; r++) {
		const size_t bytes = sizes[r % 6];
		const uint32_t root = r / 6 % ranks;
		unsigned char *sum = all;

		fill(mine, bytes, r);
		CHECK(collnet_gather(t, mine, all, bytes, root, NULL) == COLLNET_OK);
		check_gathered(root, bytes, r);
		CHECK(collnet_reduce(t, mine, sum, bytes, COLLNET_UINT8, COLLNET_SUM, root, NULL) ==
		      COLLNET_OK);
		for (size_t k = 0; k < bytes && rank == root; k++) {
			unsigned char want = 0;

			for (uint32_t i = 0; i < ranks; i++) {
				want = (unsigned char)(want + pattern(i, k, r));
			}
			CHECK(sum[k] == want);
		}
		CHECK(collnet_bcast(t, mine, bytes, root, NULL) == COLLNET_OK);
		for (size_t k = 0; k < bytes; k++) {
			CHECK(mine[k] == pattern(root, k, r));
		}
		memset(mine, 0xff, bytes);
	}
}

/* A team that is destroyed at once loses nothing. */
static void destroyed_at_once(void)
{
	for (unsigned r = 0; r < 5; r++) {
		collnet_team_t *team = duplicate();

		fill(mine, 1000, r);
		CHECK(collnet_gather(team, mine, all, 1000, 0, NULL) == COLLNET_OK);
		check_gathered(0, 1000, r);
		collnet_team_destroy(team);
	}
}

/* Rank 1 gathers a byte more. What its call does not know, its next one says. */
static void reported_later(void)
{
	collnet_team_t *team = duplicate();
	struct collnet_coll_options o;
	int rc;

	collnet_coll_options_init(&o);
	o.timeout_ms = 30000;
	rc = collnet_gather(team, mine, all, rank == 1 ? 101 : 100, 0, &o);
	CHECK(rank == 1 ? rc == COLLNET_OK : rank != 0 || rc == COLLNET_EMISMATCH);
	if (rank == 1) {
		CHECK(collnet_barrier(team, &o) == COLLNET_EMISMATCH);
		CHECK(strstr(collnet_error(c), "gather") != NULL);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_team_destroy(team);
}

/* Rank 0's broadcasts of 8 bytes, until one waits for the last rank: those before it have returned.
 * How many there are. */
static uint32_t broadcast_until_one_waits(collnet_team_t *team, collnet_request_t **q)
{
	uint32_t n = 0;

	do {
		CHECK(n++ < 1000 && collnet_ibcast(team, mine, 8, 0, NULL, q) == COLLNET_OK);
	} while (collnet_wait(*q, 50) == COLLNET_OK);
	return n;
}

/*
 * The last rank is late. Rank 0 goes on with operations that do not need it, one at a time, until
 * the oldest one that has not ended is 64 back: the next call waits for the last rank.
 */
static void far_ahead(void)
{
	collnet_team_t *team = duplicate();
	collnet_request_t *q[GATHERS], *waits = NULL;
	uint32_t n = 0;

	if (rank == ranks - 1) {
		usleep(1000000); /* how late it is */
	}
	fill(mine, 8, 0);
	if (rank == 0) {
		n = broadcast_until_one_waits(team, &waits);
	}
	CHECK(collnet_bcast(t, &n, sizeof(n), 0, NULL) == COLLNET_OK);
	for (uint32_t i = 0; i < n && rank != 0; i++) {
		CHECK(collnet_bcast(team, mine, 8, 0, NULL) == COLLNET_OK);
		CHECK(mine[7] == pattern(0, 7, 0));
	}
	fill(mine, 8, 1);
	for (uint32_t i = 0; i < GATHERS; i++) {
		if (rank == 1) {
			CHECK(collnet_igather(team, mine, all + i * ranks * 8, 8, 1, NULL, &q[i]) ==
			      COLLNET_OK);
		} else {
			CHECK(collnet_gather(team, mine, NULL, 8, 1, NULL) == COLLNET_OK);
		}
	}
	if (rank == 0) {
		CHECK(collnet_wait(waits, 0) == COLLNET_OK);
	}
	for (uint32_t i = 0; i < GATHERS && rank == 1; i++) {
		CHECK(collnet_wait(q[i], 0) == COLLNET_OK);
		for (uint32_t k = 0; k < ranks * 8; k++) {
			CHECK(all[i * ranks * 8 + k] == pattern(k / 8, k % 8, 1));
		}
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_team_destroy(team);
}

/* The others end without closing anything, before rank 0 calls. */
static void end_of_the_process(void)
{
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	if (rank == 0) {
		usleep(200000); /* how late it is */
	}
	fill(mine, 1000, 9);
	CHECK(collnet_gather(t, mine, all, 1000, 0, NULL) == COLLNET_OK);
	check_gathered(0, 1000, 9);
	printf("rank %u of %u: done\n", rank, ranks);
}

int main(void)
{
	if (collnet_open(NULL, &c) != COLLNET_OK ||
	    collnet_team_create(c, NULL, &t) != COLLNET_OK) {
		fprintf(stderr, "buffered: %s\n", collnet_error(c));
		return 1;
	}
	rank = collnet_team_rank(t);
	ranks = collnet_team_size(t);
	mine = malloc(BYTES_MAX);
	/* Also memory that the daemon sees is copied. */
	all = collnet_alloc(c, (size_t)ranks * BYTES_MAX);
	CHECK(ranks >= 2 && mine != NULL && all != NULL);
	complete_at_once();
	back_to_back();
	if (ranks > 2) {
		far_ahead();
	}
	broadcast_of_a_constant();
	free(mine);
	mine = collnet_alloc(c, BYTES_MAX);
	CHECK(mine != NULL);
	complete_at_once();
	back_to_back();
	destroyed_at_once();
	reported_later();
	end_of_the_process();
	return 0;
}
