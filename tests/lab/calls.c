/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call of the library on a real team, with memory of every kind, and what it says to wrong
 * arguments. Runs as every rank of a team of two or more, through the daemon or directly. With the
 * word `away`: one rank computes for three seconds while the others wait for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collnet/collnet.h"

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank, ranks;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "calls: rank %u, line %d: %s (last error: %s)\n", rank,    \
				__LINE__, #what, collnet_error(c));                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* A call that fails with this status and a message that contains the word. */
#define REFUSED(status, word, call)                                                                \
	do {                                                                                       \
		CHECK((call) == (status));                                                         \
		CHECK(strstr(collnet_error(c), (word)) != NULL);                                   \
	} while (0)

/* Byte k of the block from rank a to rank b of round r. */
static unsigned char pattern(uint32_t a, uint32_t b, size_t k, unsigned r)
{
	return (unsigned char)(a * 31 + b * 17 + k * 7 + k / 251 + r * 101);
}

static void fill_alltoall(unsigned char *p, size_t bytes, unsigned r)
{
	for (uint32_t b = 0; b < ranks; b++) {
		for (size_t k = 0; k < bytes; k++) {
			p[b * bytes + k] = pattern(rank, b, k, r);
		}
	}
}

static void check_alltoall(const unsigned char *p, size_t bytes, unsigned r)
{
	for (uint32_t a = 0; a < ranks; a++) {
		for (size_t k = 0; k < bytes; k++) {
			CHECK(p[a * bytes + k] == pattern(a, rank, k, r));
		}
	}
}

static void check_allgather(const unsigned char *p, size_t bytes, unsigned r)
{
	for (uint32_t a = 0; a < ranks; a++) {
		for (size_t k = 0; k < bytes; k++) {
			CHECK(p[a * bytes + k] == pattern(a, 0, k, r));
		}
	}
}

/* All four combinations of collnet_alloc()'s and other memory, at odd places. */
static void memory_of_every_kind(void)
{
	static const size_t sizes[] = { 0, 1, 63, 1476, 1477, 5000, 70000 };
	const size_t most = 70000 * ranks + 16;
	unsigned char *of[2][2] = { { collnet_alloc(c, most), malloc(most) },
				    { collnet_alloc(c, most), malloc(most) } };
	unsigned round = 0;

	CHECK(of[0][0] && of[0][1] && of[1][0] && of[1][1]);
	CHECK(of[0][0][most - 1] == 0); /* zeroed */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int kind = 0; kind < 4; kind++) {
			const size_t n = sizes[i], place = (size_t)kind * 3;
			unsigned char *s = of[0][kind & 1] + place, *r = of[1][kind >> 1] + place;

			round++;
			fill_alltoall(s, n, round);
			memset(r, 0xEE, n * ranks + 1);
			CHECK(collnet_alltoall(t, s, r, n, NULL) == COLLNET_OK);
			check_alltoall(r, n, round);
			CHECK(r[n * ranks] == 0xEE);

			for (size_t k = 0; k < n; k++) {
				s[k] = pattern(rank, 0, k, round);
			}
			memset(r, 0xEE, n * ranks + 1);
			CHECK(collnet_allgather(t, s, r, n, NULL) == COLLNET_OK);
			check_allgather(r, n, round);
			CHECK(r[n * ranks] == 0xEE);

			/* The block of recv itself. */
			memset(r, 0xEE, n * ranks);
			for (size_t k = 0; k < n; k++) {
				r[rank * n + k] = pattern(rank, 0, k, round + 1);
			}
			CHECK(collnet_allgather(t, r + rank * n, r, n, NULL) == COLLNET_OK);
			check_allgather(r, n, round + 1);
			CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
		}
	}
	collnet_free(c, of[0][0]);
	collnet_free(c, of[1][0]);
	collnet_free(c, NULL);
	free(of[0][1]);
	free(of[1][1]);
}

static void many_outstanding(void)
{
	enum { N = COLLNET_OUTSTANDING_MAX };
	const size_t n = 3000;
	struct collnet_coll_options patient;
	collnet_request_t *r[N + 1] = { NULL };
	unsigned char *s[N], *d[N];
	int rc;

	for (int i = 0; i < N; i++) {
		s[i] = malloc(n * ranks);
		d[i] = i % 2 == 0 ? malloc(n * ranks) : collnet_alloc(c, n * ranks);
		CHECK(s[i] && d[i]);
		fill_alltoall(s[i], n, 50 + (unsigned)i);
		CHECK(collnet_ialltoall(t, s[i], d[i], n, NULL, &r[i]) == COLLNET_OK);
	}
	REFUSED(COLLNET_ELIMIT, "outstanding", collnet_ibarrier(t, NULL, &r[N]));
	CHECK(r[N] == NULL);
	for (int i = N - 1; i >= 0; i--) {
		if (i % 3 == 0) {
			while ((rc = collnet_test(r[i])) == COLLNET_INPROGRESS) {
			}
		} else if (i % 3 == 1) {
			while ((rc = collnet_wait(r[i], 1)) == COLLNET_INPROGRESS) {
			}
		} else {
			rc = collnet_wait(r[i], 0);
		}
		CHECK(rc == COLLNET_OK);
		REFUSED(COLLNET_EINVAL, "collected", collnet_test(r[i]));
		check_alltoall(d[i], n, 50 + (unsigned)i);
		free(s[i]);
		if (i % 2 == 0) {
			free(d[i]);
		} else {
			collnet_free(c, d[i]);
		}
	}
	CHECK(collnet_ibarrier(t, NULL, &r[0]) == COLLNET_OK);
	CHECK(collnet_wait(r[0], 0) == COLLNET_OK);
	collnet_coll_options_init(&patient);
	patient.timeout_ms = COLLNET_TIMEOUT_NONE;
	CHECK(collnet_ibarrier(t, &patient, &r[0]) == COLLNET_OK);
	CHECK(collnet_wait(r[0], COLLNET_TIMEOUT_NONE) == COLLNET_OK);
}

/* Sets of requests, of two teams and of every kind. */
static void sets_of_requests(void)
{
	enum { N = 6 };
	const size_t n = 2000;
	collnet_request_t *r[2 * N + 1] = { NULL };
	collnet_request_t *none[2] = { NULL, NULL };
	int statuses[2 * N + 1], rc;
	unsigned char *s = malloc(n * ranks), *d[2 * N];
	struct collnet_team_options to;
	collnet_team_t *other, *alone;
	size_t index = 99, got = 0;
	char job[32];
	collnet_t *more;

	CHECK(s != NULL && collnet_team_dup(t, &other) == COLLNET_OK);
	fill_alltoall(s, n, 7);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2 * N; i++) {
			d[i] = calloc(ranks, n);
			CHECK(d[i] != NULL);
			CHECK(collnet_ialltoall(i % 2 == 0 ? t : other, s, d[i], n, NULL, &r[i]) ==
			      COLLNET_OK);
		}
		memset(statuses, 0xEE, sizeof(statuses));
		if (round == 0) {
			CHECK(collnet_waitall(2 * N + 1, r, statuses, 0) == COLLNET_OK);
			CHECK(statuses[2 * N] == COLLNET_OK); /* of NULL */
		} else {
			while ((rc = collnet_testall(2 * N + 1, r, NULL)) == COLLNET_INPROGRESS) {
				CHECK(r[0] != NULL && r[2 * N - 1] != NULL);
			}
			CHECK(rc == COLLNET_OK);
		}
		for (int i = 0; i < 2 * N; i++) {
			CHECK(r[i] == NULL && (round > 0 || statuses[i] == COLLNET_OK));
			check_alltoall(d[i], n, 7);
			free(d[i]);
		}
	}
	CHECK(collnet_waitall(2 * N, r, NULL, 0) == COLLNET_OK);
	CHECK(collnet_waitall(0, NULL, NULL, 0) == COLLNET_OK);
	statuses[0] = statuses[1] = 9;
	CHECK(collnet_waitall(1, none, statuses, 0) == COLLNET_OK && statuses[0] == 0);
	CHECK(collnet_testall(2, none, statuses) == COLLNET_OK && statuses[1] == 0);
	CHECK(collnet_waitany(2 * N, r, &index, 0) == COLLNET_OK && index == 2 * N);

	/* One after the other; some by tests. The last cannot end before all have called. */
	for (int i = 0; i < N; i++) {
		CHECK(collnet_ibarrier(i % 2 == 0 ? t : other, NULL, &r[i]) == COLLNET_OK);
	}
	for (int i = 0; i < N; i++) {
		do {
			rc = i % 2 == 0 ? collnet_waitany(N, r, &index, 0)
					: collnet_testany(N, r, &index);
		} while (rc == COLLNET_INPROGRESS);
		CHECK(rc == COLLNET_OK && index < N && (got >> index & 1) == 0);
		CHECK(r[index] == NULL);
		got |= (size_t)1 << index;
	}
	CHECK(collnet_testany(N, r, &index) == COLLNET_OK && index == N);

	/* What does not end in time stays, and one team's failure is not another's. */
	collnet_team_options_init(&to);
	to.job = NULL;
	to.rank = 0;
	to.ranks = 1;
	CHECK(collnet_team_create(c, &to, &alone) == COLLNET_OK);
	if (rank == 0) {
		CHECK(collnet_ibarrier(other, NULL, &r[0]) == COLLNET_OK);
		CHECK(collnet_waitall(1, r, NULL, 20) == COLLNET_INPROGRESS && r[0] != NULL);
		CHECK(collnet_waitany(1, r, &index, 20) == COLLNET_INPROGRESS && r[0] != NULL);
		CHECK(collnet_testany(1, r, &index) == COLLNET_INPROGRESS);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	if (rank == 0) {
		collnet_team_destroy(other); /* with a request of it */
		CHECK(collnet_ibarrier(alone, NULL, &r[1]) == COLLNET_OK);
		r[2] = r[1];
		REFUSED(COLLNET_ERANK, "left", collnet_waitall(2, r, statuses, 0));
		CHECK(statuses[0] == COLLNET_ERANK && statuses[1] == COLLNET_OK);
		REFUSED(COLLNET_EINVAL, "request 2", collnet_waitall(3, r, NULL, 0));
		CHECK(collnet_ibarrier(alone, NULL, &r[0]) == COLLNET_OK);
		r[1] = r[0];
		r[2] = NULL;
		REFUSED(COLLNET_EINVAL, "request 1 is listed twice",
			collnet_waitall(2, r, NULL, 0));
		CHECK(collnet_waitall(1, r, NULL, 0) == COLLNET_OK);
	} else {
		collnet_team_destroy(other);
	}
	CHECK(collnet_waitall(1, NULL, NULL, 0) == COLLNET_EINVAL);
	CHECK(collnet_waitany(0, NULL, NULL, 0) == COLLNET_EINVAL);
	if (getenv("COLLNET_MODE") == NULL) { /* directly, a node has one context */
		collnet_team_t *elsewhere;

		CHECK(collnet_open(NULL, &more) == COLLNET_OK);
		snprintf(job, sizeof(job), "elsewhere-%u", rank);
		to.job = job;
		CHECK(collnet_team_create(more, &to, &elsewhere) == COLLNET_OK);
		CHECK(collnet_ibarrier(alone, NULL, &r[0]) == COLLNET_OK);
		CHECK(collnet_ibarrier(elsewhere, NULL, &r[1]) == COLLNET_OK);
		REFUSED(COLLNET_EINVAL, "another context", collnet_waitall(2, r, NULL, 0));
		CHECK(collnet_waitall(1, r, NULL, 0) == COLLNET_OK);
		CHECK(collnet_waitall(1, r + 1, NULL, 0) == COLLNET_OK);
		collnet_close(more);
	}
	collnet_team_destroy(alone);
	free(s);
}

/* Rank 0 and the last one talk. */
static void messages(void)
{
	static const size_t sizes[] = { 0, 1, 1476, 1477, 100000 };
	const uint32_t other = rank == 0 ? ranks - 1 : 0;
	struct collnet_address to = { .node = "" }, from;
	collnet_endpoint_t *e, *twin;
	collnet_request_t *r[2];
	unsigned char *a = collnet_alloc(c, 100000), *b = malloc(100000);
	size_t n, m;

	CHECK(a && b);
	CHECK(collnet_endpoint_open(c, (uint16_t)(100 + rank), &e) == COLLNET_OK);
	CHECK(collnet_endpoint_number(e) == 100 + rank);
	CHECK(collnet_endpoint_open(c, (uint16_t)(100 + rank), &twin) < 0);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	snprintf(to.node, sizeof(to.node), "%s", collnet_team_node(t, other));
	to.endpoint = (uint16_t)(100 + other);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && (rank == 0 || other == 0); i++) {
		unsigned char *s = i % 2 == 0 ? a : b, *d = i % 2 == 0 ? b : a;

		if (rank != 0 && rank != ranks - 1) {
			break;
		}
		for (size_t k = 0; k < sizes[i]; k++) {
			s[k] = pattern(rank, other, k, (unsigned)i);
		}
		memset(&from, 0, sizeof(from));
		n = 100000;
		CHECK(collnet_irecv(e, &from, d, &n, 0, &r[0]) == COLLNET_OK);
		CHECK(collnet_isend(e, &to, s, sizes[i], 0, &r[1]) == COLLNET_OK);
		CHECK(collnet_wait(r[1], 0) == COLLNET_OK);
		CHECK(collnet_wait(r[0], 0) == COLLNET_OK);
		CHECK(n == sizes[i] && strcmp(from.node, to.node) == 0);
		CHECK(from.endpoint == to.endpoint);
		for (size_t k = 0; k < n; k++) {
			CHECK(d[k] == pattern(other, rank, k, (unsigned)i));
		}
	}
	if (rank == 0 || rank == ranks - 1) {
		memset(a, (int)rank + 1, 1000);
		memset(b, 0xEE, 1000);
		m = 10;
		CHECK(collnet_send(e, &to, a, 1000, 0) == COLLNET_OK);
		REFUSED(COLLNET_ETRUNC, "longer", collnet_recv(e, NULL, b, &m, 0));
		CHECK(m == 1000 && b[9] == other + 1 && b[10] == 0xEE);
	}
	m = 10;
	REFUSED(COLLNET_ETIMEOUT, "time", collnet_recv(e, NULL, b, &m, 20));
	CHECK(m == 10);
	/* Its requests end with it, and are collected after it. */
	CHECK(collnet_irecv(e, NULL, b, &m, 0, &r[0]) == COLLNET_OK);
	CHECK(collnet_test(r[0]) == COLLNET_INPROGRESS);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_endpoint_close(e);
	REFUSED(COLLNET_EINVAL, "closed", collnet_wait(r[0], 0));
	collnet_free(c, a);
	free(b);
}

static void wrong_arguments(void)
{
	struct collnet_coll_options o;
	struct {
		struct collnet_coll_options o;
		unsigned char more[16];
	} big;
	struct collnet_stats s;
	struct collnet_node_info node;
	struct collnet_team_options to;
	collnet_team_t *none = NULL;
	collnet_endpoint_t *e = NULL;
	struct collnet_address to_nobody = { .node = "nobody-here", .endpoint = 1 };
	unsigned char b[4096];
	size_t n;

	CHECK(collnet_barrier(NULL, NULL) == COLLNET_EINVAL);
	CHECK(collnet_open(NULL, NULL) == COLLNET_EINVAL);
	CHECK(collnet_test(NULL) == COLLNET_EINVAL);
	CHECK(collnet_wait(NULL, 1) == COLLNET_EINVAL);
	CHECK(collnet_get_stats(NULL, &s, 0) == COLLNET_EINVAL);
	CHECK(collnet_alloc(NULL, 1) == NULL);
	REFUSED(COLLNET_EINVAL, "NULL", collnet_alltoall(t, NULL, b, 1, NULL));
	REFUSED(COLLNET_EINVAL, "overlap", collnet_alltoall(t, b, b + 1, 4, NULL));
	REFUSED(COLLNET_EINVAL, "out", collnet_ibarrier(t, NULL, NULL));
	CHECK(collnet_alloc(c, 0) == NULL && strstr(collnet_error(c), "collnet_alloc") != NULL);
	CHECK(collnet_alloc(c, SIZE_MAX) == NULL);

	collnet_coll_options_init(&o);
	o.algorithm = "guesswork";
	CHECK(collnet_barrier(t, &o) == COLLNET_EINVAL);
	CHECK(strstr(collnet_error(c), "guesswork") != NULL);
	o.algorithm = "an-algorithm-of-a-very-long-name";
	REFUSED(COLLNET_EINVAL, "an-algorithm-of", collnet_barrier(t, &o));
	collnet_coll_options_init(&o);
	o.window = 70000;
	REFUSED(COLLNET_EINVAL, "window", collnet_barrier(t, &o));
	o.size = 0;
	REFUSED(COLLNET_EINVAL, "init", collnet_barrier(t, &o));

	/* A later header's options: fine while their new fields say nothing. */
	memset(&big, 0, sizeof(big));
	collnet_coll_options_init(&big.o);
	big.o.size = sizeof(big);
	CHECK(collnet_barrier(t, &big.o) == COLLNET_OK);
	big.more[15] = 1;
	REFUSED(COLLNET_EINVAL, "update", collnet_barrier(t, &big.o));

	/* An earlier header's statistics. */
	memset(&s, 0xEE, sizeof(s));
	s.size = offsetof(struct collnet_stats, bytes_sent);
	CHECK(collnet_get_stats(c, &s, 0) == COLLNET_OK);
	CHECK(s.frames_sent != UINT64_C(0xEEEEEEEEEEEEEEEE));
	CHECK(s.bytes_sent == UINT64_C(0xEEEEEEEEEEEEEEEE));
	s.size = 0;
	REFUSED(COLLNET_EINVAL, "size", collnet_get_stats(c, &s, 0));

	n = 0;
	CHECK(collnet_get_nodes(c, NULL, &n) == COLLNET_OK && n >= 1);
	n = 1;
	CHECK(collnet_get_nodes(c, &node, &n) == COLLNET_OK && n >= 1 && node.name[0] != '\0');
	REFUSED(COLLNET_EINVAL, "NULL", collnet_get_jobs(c, NULL, NULL));

	collnet_team_options_init(&to);
	to.rank = to.ranks;
	REFUSED(COLLNET_EINVAL, "rank", collnet_team_create(c, &to, &none));
	collnet_team_options_init(&to);
	to.job = "no good name";
	REFUSED(COLLNET_EINVAL, "no good name", collnet_team_create(c, &to, &none));
	CHECK(none == NULL);
	CHECK(collnet_team_node(t, ranks) == NULL);

	CHECK(collnet_endpoint_open(c, 0, &e) == COLLNET_OK && collnet_endpoint_number(e) != 0);
	REFUSED(COLLNET_ENOENT, "nobody-here", collnet_send(e, &to_nobody, b, 1, 0));
	to_nobody.endpoint = 0;
	REFUSED(COLLNET_EINVAL, "address", collnet_send(e, &to_nobody, b, 1, 0));
	collnet_endpoint_close(e);
	collnet_endpoint_close(NULL);
	collnet_team_destroy(NULL);
	collnet_close(NULL);
}

/* A second team of this rank alone, left with a request that cannot end. */
static void teams_of_their_own(void)
{
	struct collnet_team_options to;
	collnet_team_t *second;
	collnet_request_t *r;
	char job[COLLNET_NAME_MAX + 1];

	collnet_team_options_init(&to);
	to.job = NULL;
	to.rank = 0;
	to.ranks = 1;
	CHECK(collnet_team_create(c, &to, &second) == COLLNET_OK);
	CHECK(collnet_team_size(second) == 1 && collnet_team_nodes(second) == 1);
	CHECK(strcmp(collnet_team_node(second, 0), collnet_node_name(c)) == 0);
	CHECK(collnet_barrier(second, NULL) == COLLNET_OK);
	collnet_team_destroy(second);

	collnet_team_options_init(&to);
	snprintf(job, sizeof(job), "second-of-%.40s", to.job);
	to.job = job;
	CHECK(collnet_team_create(c, &to, &second) == COLLNET_OK);
	CHECK(collnet_barrier(second, NULL) == COLLNET_OK);
	if (rank == 0) { /* the others never call it */
		CHECK(collnet_ibarrier(second, NULL, &r) == COLLNET_OK);
		CHECK(collnet_test(r) == COLLNET_INPROGRESS);
		CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
		collnet_team_destroy(second);
		CHECK(collnet_wait(r, 0) == COLLNET_ERANK);
	} else {
		CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
		collnet_team_destroy(second);
	}
}

/* Sum of the parent's ranks over a team; each rank gives its own. */
static uint64_t sum_of_ranks(collnet_team_t *team)
{
	uint64_t own = rank, sum = 0;

	CHECK(collnet_allreduce(team, &own, &sum, 1, COLLNET_UINT64, COLLNET_SUM, NULL) ==
	      COLLNET_OK);
	return sum;
}

/* Even and odd ranks, in reverse order; all of them again; and a rank that is in neither. */
static void split_teams(void)
{
	uint32_t half = (ranks + 1 - rank % 2) / 2;
	uint64_t all = (uint64_t)ranks * (ranks - 1) / 2, odd = (uint64_t)(ranks / 2) * (ranks / 2);
	collnet_team_t *a, *b, *none = t;
	uint32_t list[16];

	for (int i = 0; i < 20; i++) {
		CHECK(collnet_team_split(t, (int32_t)(rank % 2), -(int32_t)rank, &a) == COLLNET_OK);
		CHECK(collnet_team_dup(a, &b) == COLLNET_OK);
		CHECK(collnet_team_size(a) == half && collnet_team_size(b) == half);
		CHECK(collnet_team_rank(a) == half - 1 - rank / 2);
		CHECK(collnet_team_rank(b) == collnet_team_rank(a));
		CHECK(strcmp(collnet_team_node(a, collnet_team_rank(a)),
			     collnet_team_node(t, rank)) == 0);
		CHECK(sum_of_ranks(a) == (rank % 2 == 1 ? odd : all - odd));
		collnet_team_destroy(a);
		CHECK(sum_of_ranks(b) == (rank % 2 == 1 ? odd : all - odd));
		collnet_team_destroy(b);
		CHECK(sum_of_ranks(t) == all);
	}
	/* All but the first, in reverse order, twice at once; the first one makes none. */
	for (uint32_t r = 0; r + 1 < ranks; r++) {
		list[r] = ranks - 1 - r;
	}
	if (rank > 0) {
		CHECK(collnet_team_from_ranks(t, ranks - 1, list, &a) == COLLNET_OK);
		CHECK(collnet_team_from_ranks(t, ranks - 1, list, &b) == COLLNET_OK);
		CHECK(collnet_team_size(a) == ranks - 1 &&
		      collnet_team_rank(a) == ranks - 1 - rank);
		CHECK(sum_of_ranks(a) == all && sum_of_ranks(b) == all);
		collnet_team_destroy(a);
		CHECK(sum_of_ranks(b) == all);
		collnet_team_destroy(b);
	} else {
		REFUSED(COLLNET_EINVAL, "not in the list",
			collnet_team_from_ranks(t, ranks - 1, list, &a));
		list[1] = list[0] = 0;
		REFUSED(COLLNET_EINVAL, "twice", collnet_team_from_ranks(t, 2, list, &a));
		list[0] = ranks;
		REFUSED(COLLNET_EINVAL, "there is none", collnet_team_from_ranks(t, 1, list, &a));
		CHECK(collnet_team_from_ranks(NULL, 1, list, &a) == COLLNET_EINVAL);
		REFUSED(COLLNET_EINVAL, "out is NULL", collnet_team_from_ranks(t, 1, list, NULL));
	}
	CHECK(collnet_team_split(t, rank == 0 ? -1 : 7, 0, &none) == COLLNET_OK);
	CHECK((none == NULL) == (rank == 0));
	CHECK(none == NULL || (sum_of_ranks(none) == all && collnet_team_rank(none) == rank - 1));
	collnet_team_destroy(none);
	REFUSED(COLLNET_EINVAL, "out is NULL", collnet_team_split(t, 0, 0, NULL));
	CHECK(collnet_team_split(NULL, 0, 0, &none) == COLLNET_EINVAL);
	CHECK(collnet_team_dup(NULL, &none) == COLLNET_EINVAL);
}

/*
 * Rank 0 has 64 operations outstanding, which the others begin only then, when it divides the team:
 * it is refused, and calls again. A team of a list of ranks of the new one needs its name on all
 * ranks.
 */
static void split_again(void)
{
	collnet_request_t *r[COLLNET_OUTSTANDING_MAX];
	const uint32_t list[2] = { 0, ranks - 1 };
	collnet_team_t *gate, *a, *b;

	CHECK(collnet_team_dup(t, &gate) == COLLNET_OK);
	for (int k = 0; k < 2; k++) {
		if (k == (rank == 0)) {
			CHECK(collnet_barrier(gate, NULL) == COLLNET_OK);
			continue;
		}
		for (int i = 0; i < COLLNET_OUTSTANDING_MAX; i++) {
			CHECK(collnet_ibarrier(t, NULL, &r[i]) == COLLNET_OK);
		}
		if (rank == 0) {
			REFUSED(COLLNET_ELIMIT, "outstanding", collnet_team_split(t, 0, 0, &a));
			REFUSED(COLLNET_ELIMIT, "outstanding", collnet_team_dup(t, &a));
		}
	}
	CHECK(collnet_waitall(COLLNET_OUTSTANDING_MAX, r, NULL, 0) == COLLNET_OK);
	CHECK(collnet_team_split(t, 0, 0, &a) == COLLNET_OK);
	CHECK(sum_of_ranks(a) == (uint64_t)ranks * (ranks - 1) / 2);
	if (rank == 0 || rank == ranks - 1) {
		CHECK(collnet_team_from_ranks(a, 2, list, &b) == COLLNET_OK);
		CHECK(sum_of_ranks(b) == ranks - 1);
		collnet_team_destroy(b);
	}
	collnet_team_destroy(a);
	collnet_team_destroy(gate);
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* One rank computes for longer than a silent node lives; the others wait for it. */
static void away(void)
{
	const time_t end = seconds() + 4;

	while (rank == 1 && seconds() < end) {
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

int main(int argc, char **argv)
{
	if (collnet_open(NULL, &c) != COLLNET_OK ||
	    collnet_team_create(c, NULL, &t) != COLLNET_OK) {
		fprintf(stderr, "calls: %s\n", collnet_error(c));
		return 1;
	}
	rank = collnet_team_rank(t);
	ranks = collnet_team_size(t);
	CHECK(ranks >= 2);
	if (argc == 2 && strcmp(argv[1], "away") == 0) {
		away();
		collnet_close(c);
		return 0;
	}
	memory_of_every_kind();
	many_outstanding();
	sets_of_requests();
	messages();
	wrong_arguments();
	teams_of_their_own();
	split_teams();
	split_again();
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_close(c); /* leaves the team */
	printf("rank %u of %u: all calls answer as they should\n", rank, ranks);
	return 0;
}
