/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations with blocks of any size, and operations in place, through the public interface on a
 * real network. Runs as every rank of a team; the words of the command line select the checks:
 *
 *   right      seeded sizes with zeros, gaps and any order, in memory of the library and of the
 *              program, in place, blocking and not: every byte, those of the gaps, too
 *   uneven     sizes that differ by much: no frame is lost
 *   hot        much for few ranks, and nothing for the others: no frame is lost
 *   fan        a frame from all for one, operation after operation: likewise
 *   wrong      arguments that no rank may give: refused at once, and the team lives on
 *   disagree   a pair with two sizes: an error, in time
 *
 * All ranks draw the same matrix: size[s][d] bytes go from rank s to rank d.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collnet/collnet.h"
#include "util/clock.h"

#define RANKS	 16u
#define LARGEST	 60000u
#define SMALL	 6000u
#define ROOM	 (RANKS * (LARGEST + 8u))
#define SLACK_MS 10000 /* of a busy machine */
#define FRESH	 0xcc

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank, ranks;
static uint64_t seed = 1;
static uint32_t round_number;
static size_t size[RANKS][RANKS];
static unsigned char *shared[2], *own[2], expected[ROOM];
static size_t send_displs[RANKS], recv_displs[RANKS], sends[RANKS], recvs[RANKS];

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "vector: rank %u, line %d: %s (last error: %s)\n", rank,   \
				__LINE__, #what, collnet_error(c));                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* The same on all ranks. */
static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static void draw_sizes(uint32_t zeros)
{
	for (uint32_t s = 0; s < ranks; s++) {
		int silent = draw(100) < zeros / 2;

		for (uint32_t d = 0; d < ranks; d++) {
			size_t bytes = draw(4) == 0 ? 1472u * (1 + draw(4)) : draw(SMALL);

			size[s][d] = silent || draw(100) < zeros ? 0 : bytes;
		}
	}
	round_number++;
}

static void fill(unsigned char *p, uint32_t from, uint32_t to, size_t bytes)
{
	for (size_t k = 0; k < bytes; k++) {
		p[k] = (unsigned char)(from * 59 + to * 31 + k * 13 + k / 253 + round_number * 7);
	}
}

/* Places of blocks of these sizes, the last rank's first, with gaps that differ by rank. */
static void place(const size_t *bytes, size_t *displs)
{
	size_t at = rank % 5;

	for (uint32_t i = ranks; i-- > 0;) {
		displs[i] = at;
		at += bytes[i] + (rank + i) % 8;
	}
}

static void compare(const unsigned char *recv, const char *what)
{
	for (size_t k = 0; k < ROOM; k++) {
		if (recv[k] != expected[k]) {
			fprintf(stderr, "vector: rank %u: %s, round %u: byte %zu is %u, not %u\n",
				rank, what, round_number, k, recv[k], expected[k]);
			exit(1);
		}
	}
}

/* Waits for a request that was started; every other round of tests uses these functions. */
static int finish(int rc, collnet_request_t *q)
{
	/* The arrays belong to the caller again: what they hold must not matter now. */
	memset(sends, 0x5a, sizeof(sends));
	memset(recvs, 0x5a, sizeof(recvs));
	memset(send_displs, 0x5a, sizeof(send_displs));
	memset(recv_displs, 0x5a, sizeof(recv_displs));
	return rc != COLLNET_OK ? rc : collnet_wait(q, 0);
}

static void one_alltoallv(unsigned char *send, unsigned char *recv,
			  const struct collnet_coll_options *o)
{
	collnet_request_t *q = NULL;
	int rc;

	for (uint32_t i = 0; i < ranks; i++) {
		sends[i] = size[rank][i];
		recvs[i] = size[i][rank];
	}
	place(recvs, recv_displs);
	place(sends, send_displs);
	memset(recv, FRESH, ROOM);
	for (uint32_t i = 0; i < ranks; i++) {
		fill(send + send_displs[i], rank, i, sends[i]);
	}
	/* In place, what was to be sent remains where nothing comes. */
	memset(expected, FRESH, ROOM);
	memcpy(expected, recv, ROOM);
	for (uint32_t i = 0; i < ranks; i++) {
		fill(expected + recv_displs[i], i, rank, recvs[i]);
	}
	if (round_number % 2) {
		rc = collnet_alltoallv(t, send, sends, send_displs, recv, recvs, recv_displs, o);
	} else {
		rc = collnet_ialltoallv(t, send, sends, send_displs, recv, recvs, recv_displs, o,
					&q);
		rc = finish(rc, q);
	}
	CHECK(rc == COLLNET_OK);
	compare(recv, "alltoallv");
}

static void one_allgatherv(unsigned char *send, unsigned char *recv,
			   const struct collnet_coll_options *o, int in_place)
{
	collnet_request_t *q = NULL;
	unsigned char *mine = send;
	size_t bytes = size[rank][0];
	int rc;

	for (uint32_t i = 0; i < ranks; i++) {
		recvs[i] = size[i][0];
	}
	place(recvs, recv_displs);
	memset(recv, FRESH, ROOM);
	memset(expected, FRESH, ROOM);
	for (uint32_t i = 0; i < ranks; i++) {
		fill(expected + recv_displs[i], i, 0, recvs[i]);
	}
	mine = in_place ? recv + recv_displs[rank] : send;
	fill(mine, rank, 0, bytes);
	if (round_number % 2) {
		rc = collnet_allgatherv(t, mine, bytes, recv, recvs, recv_displs, o);
	} else {
		rc = collnet_iallgatherv(t, mine, bytes, recv, recvs, recv_displs, o, &q);
		rc = finish(rc, q);
	}
	CHECK(rc == COLLNET_OK);
	compare(recv, "allgatherv");
}

static void one_gatherv(unsigned char *send, unsigned char *recv, uint32_t root, int in_place)
{
	collnet_request_t *q = NULL;
	unsigned char *mine = send;
	size_t bytes = size[rank][root];
	int rc;

	for (uint32_t i = 0; i < ranks; i++) {
		recvs[i] = size[i][root];
	}
	place(recvs, recv_displs);
	memset(recv, FRESH, ROOM);
	memset(expected, FRESH, ROOM);
	for (uint32_t i = 0; rank == root && i < ranks; i++) {
		fill(expected + recv_displs[i], i, root, recvs[i]);
	}
	mine = in_place && rank == root ? recv + recv_displs[rank] : send;
	fill(mine, rank, root, bytes);
	if (round_number % 2) {
		rc = collnet_gatherv(t, mine, bytes, rank == root ? recv : NULL,
				     rank == root ? recvs : NULL, rank == root ? recv_displs : NULL,
				     root, NULL);
	} else {
		rc = collnet_igatherv(t, mine, bytes, recv, recvs, recv_displs, root, NULL, &q);
		rc = finish(rc, q);
	}
	CHECK(rc == COLLNET_OK);
	compare(recv, "gatherv");
}

static void one_scatterv(unsigned char *send, unsigned char *recv, uint32_t root, int in_place)
{
	collnet_request_t *q = NULL;
	unsigned char *mine = recv;
	size_t bytes = size[root][rank];
	int rc;

	for (uint32_t i = 0; i < ranks; i++) {
		sends[i] = size[root][i];
	}
	place(sends, send_displs);
	memset(recv, FRESH, ROOM);
	memset(expected, FRESH, ROOM);
	for (uint32_t i = 0; rank == root && i < ranks; i++) {
		fill(send + send_displs[i], root, i, sends[i]);
	}
	mine = in_place && rank == root ? send + send_displs[rank] : recv;
	if (mine == recv) {
		fill(expected, root, rank, bytes);
	}
	if (round_number % 2) {
		rc = collnet_scatterv(t, rank == root ? send : NULL, rank == root ? sends : NULL,
				      rank == root ? send_displs : NULL, mine, bytes, root, NULL);
	} else {
		rc = collnet_iscatterv(t, send, sends, send_displs, mine, bytes, root, NULL, &q);
		rc = finish(rc, q);
	}
	CHECK(rc == COLLNET_OK);
	compare(recv, "scatterv");
}

/* Without displacements: blocks follow one another. */
static void without_displacements(void)
{
	size_t at = 0;

	for (uint32_t i = 0; i < ranks; i++) {
		sends[i] = size[rank][i];
		recvs[i] = size[i][rank];
		fill(own[0] + at, rank, i, sends[i]);
		at += sends[i];
	}
	memset(own[1], FRESH, ROOM);
	memset(expected, FRESH, ROOM);
	at = 0;
	for (uint32_t i = 0; i < ranks; i++) {
		fill(expected + at, i, rank, recvs[i]);
		at += recvs[i];
	}
	CHECK(collnet_alltoallv(t, own[0], sends, NULL, own[1], recvs, NULL, NULL) == COLLNET_OK);
	compare(own[1], "without displacements");
}

/* Blocks of one size, in place: alltoall and scatter. */
static void equal_blocks(unsigned char *p)
{
	const size_t bytes = 1 + draw(SMALL);
	const uint32_t root = draw(ranks);

	memset(p, FRESH, ROOM);
	memset(expected, FRESH, ROOM);
	for (uint32_t i = 0; i < ranks; i++) {
		fill(p + i * bytes, rank, i, bytes);
		fill(expected + i * bytes, i, rank, bytes);
	}
	CHECK(collnet_alltoall(t, p, p, bytes, NULL) == COLLNET_OK);
	compare(p, "alltoall in place");
	memset(p, FRESH, ROOM);
	memset(expected, FRESH, ROOM);
	for (uint32_t i = 0; i < ranks && rank == root; i++) {
		fill(p + i * bytes, root, i, bytes);
		fill(expected + i * bytes, root, i, bytes);
	}
	fill(expected + (rank == root ? rank * bytes : 0), root, rank, bytes);
	CHECK(collnet_scatter(t, rank == root ? p : NULL, rank == root ? p + rank * bytes : p,
			      bytes, root, NULL) == COLLNET_OK);
	compare(p, "scatter in place");
}

/* In place with the same memory for both sides, and places of their own on each. */
static void alltoallv_in_place(unsigned char *p)
{
	for (uint32_t i = 0; i < ranks; i++) {
		sends[i] = size[rank][i];
		recvs[i] = size[i][rank];
	}
	place(sends, send_displs);
	place(recvs, recv_displs);
	memset(p, FRESH, ROOM);
	for (uint32_t i = 0; i < ranks; i++) {
		fill(p + send_displs[i], rank, i, sends[i]);
	}
	memcpy(expected, p, ROOM);
	for (uint32_t i = 0; i < ranks; i++) {
		fill(expected + recv_displs[i], i, rank, recvs[i]);
	}
	CHECK(collnet_alltoallv(t, p, sends, send_displs, p, recvs, recv_displs, NULL) ==
	      COLLNET_OK);
	compare(p, "alltoallv in place");
}

static void right(void)
{
	static const char *const exchanges[] = { NULL, "shuffle", "pairwise", "linear", "aapc" };
	static const char *const gathers[] = { NULL, "ring", "lr1", "lr3", "doubling" };
	struct collnet_coll_options o, p;

	collnet_coll_options_init(&o);
	collnet_coll_options_init(&p);
	for (uint32_t r = 0; r < 20; r++) {
		/* Both buffers of the library, one of them, none. */
		unsigned char *a = r % 3 ? shared[0] : own[0], *b = r % 4 ? shared[1] : own[1];
		int in_place = r % 2;
		uint32_t root;

		draw_sizes(r % 4 * 30);
		root = draw(ranks);
		o.algorithm = exchanges[r % 5];
		p.algorithm = gathers[r % 5];
		one_alltoallv(a, b, &o);
		alltoallv_in_place(a);
		one_allgatherv(a, b, &p, in_place);
		one_gatherv(a, b, root, in_place);
		one_scatterv(a, b, root, in_place);
		without_displacements();
		equal_blocks(a);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

/* Sizes that differ, but not so much that one rank is everyone's. */
static void uneven(void)
{
	for (uint32_t r = 0; r < 6; r++) {
		for (uint32_t s = 0; s < ranks; s++) {
			for (uint32_t d = 0; d < ranks; d++) {
				size[s][d] = draw(3) == 0 ? 0 : draw(LARGEST);
			}
		}
		round_number++;
		one_alltoallv(shared[0], shared[1], NULL);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

/* Every rank has much for one of them, which changes, or for two. */
static void hot(void)
{
	for (uint32_t r = 0; r < ranks; r++) {
		uint32_t first = r % ranks, second = r * 7 % ranks;

		memset(size, 0, sizeof(size));
		for (uint32_t s = 0; s < ranks; s++) {
			size[s][first] = LARGEST * (1 + r % 2) / 2;
			size[s][second] = LARGEST;
		}
		round_number++;
		one_alltoallv(shared[0], shared[1], NULL);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

/*
 * Again and again, at once, a frame from every rank for one of them: those of one operation are
 * still in the port when those of the next come.
 */
static void fan(void)
{
	for (uint32_t r = 0; r < 2; r++) {
		memset(size, 0, sizeof(size));
		for (uint32_t s = 0; s < ranks; s++) {
			size[s][r] = 1400;
		}
		round_number++;
		one_alltoallv(shared[0], shared[1], NULL);
		for (uint32_t i = 0; i < ranks; i++) {
			sends[i] = size[rank][i];
			recvs[i] = size[i][rank];
		}
		place(recvs, recv_displs);
		place(sends, send_displs);
		for (int i = 0; i < 40; i++) {
			CHECK(collnet_alltoallv(t, shared[0], sends, send_displs, shared[1], recvs,
						recv_displs, NULL) == COLLNET_OK);
		}
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

/* Refused at once, with a message; nothing was sent, so that the team lives on. */
#define REFUSED(call, words)                                                                       \
	do {                                                                                       \
		CHECK((call) == COLLNET_EINVAL);                                                   \
		CHECK(strstr(collnet_error(c), words) != NULL);                                    \
	} while (0)

static void wrong(void)
{
	unsigned char *a = own[0], *b = own[1];
	collnet_request_t *q = NULL;

	for (uint32_t i = 0; i < ranks; i++) {
		sends[i] = recvs[i] = 10;
		send_displs[i] = recv_displs[i] = i * 10;
	}
	REFUSED(collnet_alltoallv(t, a, NULL, NULL, b, recvs, NULL, NULL), "counts");
	REFUSED(collnet_alltoallv(t, a, sends, NULL, b, NULL, NULL, NULL), "counts");
	REFUSED(collnet_alltoallv(t, NULL, sends, NULL, b, recvs, NULL, NULL), "NULL");
	REFUSED(collnet_alltoallv(t, a, sends, NULL, a + 5, recvs, NULL, NULL), "overlap");
	REFUSED(collnet_ialltoallv(t, a, sends, NULL, NULL, recvs, NULL, NULL, &q), "NULL");
	REFUSED(collnet_allgatherv(t, a, 9, b, recvs, NULL, NULL), "count");
	REFUSED(collnet_allgatherv(t, b + rank * 10 + 1, 10, b, recvs, NULL, NULL), "overlap");
	REFUSED(collnet_gatherv(t, a, 10, b, recvs, NULL, ranks, NULL), "root");
	REFUSED(collnet_gatherv(t, a, COLLNET_BLOCK_MAX + 1, b, recvs, NULL, (rank + 1) % ranks,
				NULL),
		"block");
	REFUSED(collnet_scatterv(t, NULL, sends, NULL, b, 10, rank, NULL), "NULL");
	REFUSED(collnet_scatterv(t, a, sends, NULL, b, 11, rank, NULL), "count");
	send_displs[1] = SIZE_MAX - 5;
	REFUSED(collnet_alltoallv(t, a, sends, send_displs, b, recvs, NULL, NULL), "address");
	sends[1] = COLLNET_BLOCK_MAX + 1;
	send_displs[1] = 0;
	REFUSED(collnet_alltoallv(t, a, sends, send_displs, b, recvs, NULL, NULL), "block");
	CHECK(q == NULL);
	draw_sizes(30);
	without_displacements();
}

/* Rank 1 expects other sizes from `from` than that rank sends. */
static void disagreement(uint32_t from, size_t sent, size_t wanted, int op)
{
	struct collnet_team_options team_options;
	struct collnet_coll_options o;
	collnet_team_t *team = NULL;
	char job[COLLNET_NAME_MAX + 1];
	unsigned char bad, all[RANKS];
	uint64_t begin;
	int rc;

	collnet_team_options_init(&team_options);
	snprintf(job, sizeof(job), "%.30s-disagree", team_options.job);
	team_options.job = job;
	CHECK(collnet_team_create(c, &team_options, &team) == COLLNET_OK);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK); /* no rank leaves while others still join */
	draw_sizes(20);
	size[from][1] = sent;
	for (uint32_t i = 0; i < ranks; i++) {
		sends[i] = size[rank][i];
		recvs[i] = size[i][rank];
	}
	if (rank == 1) {
		recvs[from] = wanted;
	}
	collnet_coll_options_init(&o);
	o.timeout_ms = 3 * SLACK_MS;
	begin = cn_now() / CN_MS;
	if (op == 0) {
		rc = collnet_alltoallv(team, own[0], sends, NULL, own[1], recvs, NULL, &o);
	} else if (op == 1) {
		rc = collnet_gatherv(team, own[0], sends[1], own[1], recvs, NULL, 1, &o);
	} else {
		rc = collnet_scatterv(team, own[0], sends, NULL, own[1], recvs[from], from, &o);
	}
	begin = cn_now() / CN_MS - begin;
	printf("%zu bytes sent, %zu expected: rank %u: %s after %llu ms%s%s\n", sent, wanted, rank,
	       collnet_strerror(rc), (unsigned long long)begin, rc ? ": " : "",
	       rc ? collnet_error(c) : "");
	CHECK(begin <= SLACK_MS); /* long before the deadline */
	CHECK(rc == COLLNET_OK || rc == COLLNET_EMISMATCH);
	CHECK(rc == COLLNET_OK || strstr(collnet_error(c), "other sizes") == NULL ||
	      strstr(collnet_error(c), "two ranks of a block must pass the same size") != NULL);
	bad = rc < 0;
	rc = collnet_barrier(team, &o);
	CHECK(rc < 0);
	collnet_team_destroy(team);
	CHECK(collnet_allgather(t, &bad, all, 1, NULL) == COLLNET_OK);
	CHECK(memchr(all, 1, ranks) != NULL);
}

static void disagree(void)
{
	static const size_t sizes[] = { 0, 1, 1476, 5000 };

	for (size_t i = 0; i < 4; i++) {
		for (int op = 0; op < 3; op++) {
			disagreement(ranks - 1, sizes[i], sizes[(i + 1) % 4], op);
			disagreement(0, sizes[(i + 2) % 4], sizes[i], op);
		}
	}
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(collnet_open(NULL, &c) == COLLNET_OK);
	CHECK(collnet_team_create(c, NULL, &t) == COLLNET_OK);
	rank = collnet_team_rank(t);
	ranks = collnet_team_size(t);
	CHECK(ranks >= 2 && ranks <= RANKS);
	for (int i = 0; i < 2; i++) {
		shared[i] = collnet_alloc(c, ROOM);
		own[i] = malloc(ROOM);
		CHECK(shared[i] != NULL && own[i] != NULL);
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "right") == 0) {
			right();
		} else if (strcmp(argv[i], "uneven") == 0) {
			uneven();
		} else if (strcmp(argv[i], "hot") == 0) {
			hot();
		} else if (strcmp(argv[i], "fan") == 0) {
			fan();
		} else if (strcmp(argv[i], "wrong") == 0) {
			wrong();
		} else if (strcmp(argv[i], "disagree") == 0) {
			disagree();
		} else {
			fprintf(stderr, "vector: what is '%s'?\n", argv[i]);
			return 2;
		}
		printf("rank %u: %s: done\n", rank, argv[i]);
	}
	collnet_team_destroy(t);
	collnet_close(c);
	return 0;
}
