/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast, scatter and gather through the public interface, on a real network. Runs as every
 * rank of a team; the words of the command line select the checks:
 *
 *   right      every algorithm, root and size, in place, blocking and not: every byte
 *   wrong      arguments that no rank may give: refused at once, and the team lives on
 *   disagree   ranks with another root, operation, size or algorithm: an error, in time
 *
 * Invariant: no call waits longer than its deadline and SLACK_MS.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collnet/collnet.h"
#include "util/clock.h"

#define SLACK_MS 10000 /* of a busy machine */
#define ROOM	 70001

enum op { BCAST, SCATTER, GATHER, BARRIER };

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank, ranks;
static unsigned char *all, *one; /* of all ranks, and of one */

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "rooted: rank %u, line %d: %s (last error: %s)\n", rank,   \
				__LINE__, #what, collnet_error(c));                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static uint64_t now_ms(void)
{
	return cn_now() / CN_MS;
}

/* ---- correct calls ---------------------------------------------------------------------- */

/* Fills or compares block i of round r; nothing lies between blocks. */
static unsigned char pattern(uint32_t i, size_t k, uint32_t r)
{
	return (unsigned char)(i * 59 + k * 13 + k / 253 + r * 7 + 1);
}

static void fill(unsigned char *p, uint32_t i, size_t bytes, uint32_t r)
{
	for (size_t k = 0; k < bytes; k++) {
		p[k] = pattern(i, k, r);
	}
}

static void compare(const unsigned char *p, uint32_t i, size_t bytes, uint32_t r)
{
	for (size_t k = 0; k < bytes; k++) {
		if (p[k] != pattern(i, k, r)) {
			fprintf(stderr,
				"rooted: rank %u: byte %zu of block %u of %zu, round %u: %u\n",
				rank, k, i, bytes, r, p[k]);
			exit(1);
		}
	}
}

static void one_bcast(size_t bytes, uint32_t root, uint32_t r, const struct collnet_coll_options *o)
{
	memset(one, 0, ROOM);
	if (rank == root) {
		fill(one, root, bytes, r);
	}
	CHECK(collnet_bcast(t, one, bytes, root, o) == COLLNET_OK);
	compare(one, root, bytes, r);
	CHECK(one[bytes] == 0);
}

static void one_scatter(size_t bytes, uint32_t root, uint32_t r)
{
	memset(one, 0, ROOM);
	for (uint32_t i = 0; rank == root && i < ranks; i++) {
		fill(all + i * bytes, i, bytes, r);
	}
	CHECK(collnet_scatter(t, rank == root ? all : NULL, one, bytes, root, NULL) == COLLNET_OK);
	compare(one, rank, bytes, r);
	CHECK(one[bytes] == 0);
}

static void one_gather(size_t bytes, uint32_t root, uint32_t r)
{
	const int in_place = r % 2 && rank == root;
	unsigned char *mine = in_place ? all + rank * bytes : one;

	memset(all, 0, (size_t)ranks * ROOM);
	fill(mine, rank, bytes, r);
	CHECK(collnet_gather(t, mine, rank == root ? all : NULL, bytes, root, NULL) == COLLNET_OK);
	for (uint32_t i = 0; rank == root && i < ranks; i++) {
		compare(all + i * bytes, i, bytes, r);
	}
	CHECK(all[ranks * bytes] == 0);
}

/* As many as there may be, from different roots, waited for in the other order. */
static void outstanding(void)
{
	collnet_request_t *q[COLLNET_OUTSTANDING_MAX];
	const size_t bytes = 5000;

	for (uint32_t i = 0; i < COLLNET_OUTSTANDING_MAX; i++) {
		uint32_t root = i % ranks;

		if (rank == root) {
			fill(all + i * bytes, root, bytes, i);
		}
		CHECK(collnet_ibcast(t, all + i * bytes, bytes, root, NULL, &q[i]) == COLLNET_OK);
	}
	CHECK(collnet_ibcast(t, one, 1, 0, NULL, &(collnet_request_t *){ NULL }) == COLLNET_ELIMIT);
	for (uint32_t i = COLLNET_OUTSTANDING_MAX; i-- > 0;) {
		CHECK(collnet_wait(q[i], 0) == COLLNET_OK);
		compare(all + i * bytes, i % ranks, bytes, i);
	}
	CHECK(collnet_iscatter(t, all, one, 0, 0, NULL, &q[0]) == COLLNET_OK);
	CHECK(collnet_igather(t, one, all, 0, ranks - 1, NULL, &q[1]) == COLLNET_OK);
	CHECK(collnet_wait(q[0], 0) == COLLNET_OK && collnet_wait(q[1], 0) == COLLNET_OK);
}

static void right(void)
{
	static const char *const bcasts[] = { NULL, "smp", "chain", "binary", "kary", "binomial" };
	static const size_t sizes[] = { 0, 1, 1476, 20001, ROOM - 1 };
	struct collnet_coll_options o;
	uint32_t r = 0;

	collnet_coll_options_init(&o);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (uint32_t root = 0; root < ranks; root++) {
			for (size_t a = 0; a < sizeof(bcasts) / sizeof(bcasts[0]); a++) {
				o.algorithm = bcasts[a];
				one_bcast(sizes[s], root, r++, &o);
			}
			one_scatter(sizes[s] / 4, root, r++);
			one_gather(sizes[s] / 4, root, r);
			one_gather(sizes[s] / 4, root, ++r);
		}
	}
	outstanding();
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

/* ---- invalid arguments ------------------------------------------------------------------ */

/* Refused at once, with a message; nothing was sent, so that the team lives on. */
#define REFUSED(call, words)                                                                       \
	do {                                                                                       \
		uint64_t begin_ = now_ms();                                                        \
		CHECK((call) == COLLNET_EINVAL);                                                   \
		CHECK(now_ms() - begin_ < SLACK_MS);                                               \
		if (rank == 0) {                                                                   \
			printf("refused: %s\n", collnet_error(c));                                 \
		}                                                                                  \
		CHECK(strstr(collnet_error(c), words) != NULL);                                    \
	} while (0)

static void wrong(void)
{
	const uint32_t no[] = { ranks, ranks + 1, UINT32_MAX };
	struct collnet_coll_options o;
	collnet_request_t *q = NULL;

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		REFUSED(collnet_bcast(t, one, 10, no[i], NULL), "root");
		REFUSED(collnet_scatter(t, all, one, 10, no[i], NULL), "root");
		REFUSED(collnet_gather(t, one, all, 10, no[i], NULL), "root");
		REFUSED(collnet_ibcast(t, one, 10, no[i], NULL, &q), "root");
		CHECK(q == NULL);
	}
	REFUSED(collnet_bcast(t, one, COLLNET_BLOCK_MAX + 1, 0, NULL), "");
	REFUSED(collnet_bcast(t, NULL, 10, 0, NULL), "");
	REFUSED(collnet_scatter(t, all, NULL, 10, 0, NULL), "");
	REFUSED(collnet_gather(t, NULL, all, 10, 0, NULL), "");
	if (rank == 1) {
		REFUSED(collnet_scatter(t, NULL, one, 10, 1, NULL), "");
		REFUSED(collnet_gather(t, one, NULL, 10, 1, NULL), "");
		REFUSED(collnet_scatter(t, all, all + 5, 10, 1, NULL), "overlap");
		REFUSED(collnet_gather(t, all + 5, all, 10, 1, NULL), "overlap");
	}
	collnet_coll_options_init(&o);
	o.algorithm = "lr3";
	REFUSED(collnet_bcast(t, one, 10, 0, &o), "lr3");
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	one_bcast(100, ranks - 1, 3, NULL);
}

/* ---- ranks that disagree ---------------------------------------------------------------- */

/* The call of the odd rank, and that of the others. */
static const struct mismatched_call {
	const char *what;
	enum op odd, other;
	size_t odd_bytes, other_bytes;
	uint32_t odd_root, other_root;
	const char *odd_algorithm;
} mismatched_calls[] = {
	{ "bcast, roots 1 and 0", BCAST, BCAST, 5000, 5000, 1, 0, NULL },
	{ "bcast, roots 0 and 1", BCAST, BCAST, 5000, 5000, 0, 1, NULL },
	{ "bcast, roots 2 and 0", BCAST, BCAST, 5000, 5000, 2, 0, NULL },
	{ "bcast of nothing, roots 1 and 0", BCAST, BCAST, 0, 0, 1, 0, NULL },
	{ "bcast, large, roots 1 and 0", BCAST, BCAST, 60000, 60000, 1, 0, NULL },
	{ "bcast, a byte more", BCAST, BCAST, 5001, 5000, 0, 0, NULL },
	{ "bcast, a byte less", BCAST, BCAST, 4999, 5000, 0, 0, NULL },
	{ "bcast, the root's size", BCAST, BCAST, 5001, 5000, 1, 1, NULL },
	{ "bcast, binomial or not", BCAST, BCAST, 60000, 60000, 0, 0, "binomial" },
	{ "scatter, roots 1 and 0", SCATTER, SCATTER, 5000, 5000, 1, 0, NULL },
	{ "scatter, roots 0 and 1", SCATTER, SCATTER, 5000, 5000, 0, 1, NULL },
	{ "scatter, sizes", SCATTER, SCATTER, 5001, 5000, 0, 0, NULL },
	{ "gather, roots 1 and 0", GATHER, GATHER, 5000, 5000, 1, 0, NULL },
	{ "gather, roots 0 and 1", GATHER, GATHER, 5000, 5000, 0, 1, NULL },
	{ "gather, sizes", GATHER, GATHER, 5001, 5000, 0, 0, NULL },
	{ "bcast or scatter", BCAST, SCATTER, 5000, 5000, 0, 0, NULL },
	{ "scatter or bcast", SCATTER, BCAST, 5000, 5000, 0, 0, NULL },
	{ "gather or scatter", GATHER, SCATTER, 5000, 5000, 0, 0, NULL },
	{ "barrier or bcast", BARRIER, BCAST, 0, 5000, 0, 0, NULL },
	{ "barrier or gather", BARRIER, GATHER, 0, 5000, 0, 0, NULL },
	{ "scatter or barrier", SCATTER, BARRIER, 5000, 0, 0, 0, NULL },
};

static int call(collnet_team_t *team, enum op op, size_t bytes, uint32_t root,
		const struct collnet_coll_options *o)
{
	switch (op) {
	case BCAST:
		return collnet_bcast(team, one, bytes, root, o);
	case SCATTER:
		return collnet_scatter(team, all, one, bytes, root, o);
	case GATHER:
		return collnet_gather(team, one, all, bytes, root, o);
	default:
		return collnet_barrier(team, o);
	}
}

/* Whether rank `me` only sends. */
static bool only_sends(enum op op, uint32_t root, uint32_t me)
{
	return op == GATHER ? root != me : op != BARRIER && root == me;
}

static void mismatched_call(const struct mismatched_call *q)
{
	const int odd = rank == 1;
	struct collnet_team_options team_options;
	struct collnet_coll_options o;
	collnet_team_t *team = NULL;
	char job[COLLNET_NAME_MAX + 1];
	unsigned char bad;
	uint64_t begin;
	int rc;

	collnet_team_options_init(&team_options);
	snprintf(job, sizeof(job), "%.30s-mismatched_call", team_options.job);
	team_options.job = job;
	CHECK(collnet_team_create(c, &team_options, &team) == COLLNET_OK);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK); /* no rank leaves while others still join */
	collnet_coll_options_init(&o);
	o.timeout_ms = 2000;
	o.algorithm = odd ? q->odd_algorithm : NULL;
	begin = now_ms();
	rc = odd ? call(team, q->odd, q->odd_bytes, q->odd_root, &o)
		 : call(team, q->other, q->other_bytes, q->other_root, &o);
	begin = now_ms() - begin;
	printf("%s: rank %u: %s after %llu ms%s%s\n", q->what, rank, collnet_strerror(rc),
	       (unsigned long long)begin, rc ? ": " : "", rc ? collnet_error(c) : "");
	CHECK(begin <= o.timeout_ms + SLACK_MS);
	CHECK(rc <= 0);
	bad = rc < 0;
	/*
	 * A rank may have had all it needed before the others found out, but its next call fails.
	 */
	begin = now_ms();
	rc = collnet_barrier(team, &o);
	CHECK(rc < 0 && now_ms() - begin <= o.timeout_ms + SLACK_MS);
	collnet_team_destroy(team);
	/*
	 * At least one rank was told at once, and others are not harmed. Two that only send can be
	 * done before they hear of each other.
	 */
	CHECK(collnet_allgather(t, &bad, all, 1, NULL) == COLLNET_OK);
	CHECK(memchr(all, 1, ranks) != NULL ||
	      (only_sends(q->odd, q->odd_root, 1) && only_sends(q->other, q->other_root, 0)));
}

static void disagree(void)
{
	for (size_t i = 0; i < sizeof(mismatched_calls) / sizeof(mismatched_calls[0]); i++) {
		mismatched_call(&mismatched_calls[i]);
	}
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(collnet_open(NULL, &c) == COLLNET_OK);
	CHECK(collnet_team_create(c, NULL, &t) == COLLNET_OK);
	rank = collnet_team_rank(t);
	ranks = collnet_team_size(t);
	all = collnet_alloc(c, (size_t)(ranks > COLLNET_OUTSTANDING_MAX ? ranks
									: COLLNET_OUTSTANDING_MAX) *
					       ROOM +
				       1);
	one = collnet_alloc(c, ROOM);
	CHECK(all != NULL && one != NULL);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "right") == 0) {
			right();
		} else if (strcmp(argv[i], "wrong") == 0) {
			wrong();
		} else if (strcmp(argv[i], "disagree") == 0) {
			disagree();
		} else {
			fprintf(stderr, "rooted: what is '%s'?\n", argv[i]);
			return 2;
		}
		printf("rank %u: %s: done\n", rank, argv[i]);
	}
	collnet_team_destroy(t);
	collnet_close(c);
	return 0;
}
