/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Persistent operations as every rank of a team: with memory of both kinds and in place, several at
 * once, between other calls, with new contents at each start. They are planned once: the number of
 * schedules that the node has planned is compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collnet/collnet.h"

#define BYTES	  4000u /* of a block, whole elements */
#define RANKS_MAX 16u
#define ROOM	  (RANKS_MAX * BYTES)

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank, ranks;
static size_t counts[RANKS_MAX], displs[RANKS_MAX];

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "persistent: rank %u, line %d: %s (last error: %s)\n",     \
				rank, __LINE__, #what, collnet_error(c));                          \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum kind {
	ALLTOALL,
	ALLTOALL_IN_PLACE,
	ALLGATHER_IN_PLACE,
	BCAST,
	GATHER,
	ALLTOALLV,
	ALLTOALLV_IN_PLACE,
	ALLREDUCE,
	USER,
	REDUCE_SCATTER,
	KINDS,
};

struct operation {
	collnet_request_t *request;
	unsigned char *send, *recv; /* ROOM bytes */
};

static unsigned char pattern(uint32_t from, uint32_t to, uint32_t round, size_t k)
{
	return (unsigned char)(from * 31 + to * 17 + round * 101 + k * 7 + k / 251);
}

static uint64_t value(uint32_t of, uint32_t round, size_t i)
{
	return (uint64_t)of * 1000003 + round * 101 + i;
}

static void fill(unsigned char *p, uint32_t to, uint32_t round, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		p[k] = pattern(rank, to, round, k);
	}
}

static void verify(const unsigned char *p, uint32_t from, uint32_t to, uint32_t round, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		CHECK(p[k] == pattern(from, to, round, k));
	}
}

/* The bytes from one rank to another in the vector operations: symmetric, for those in place. */
static size_t bytes_between(uint32_t a, uint32_t b)
{
	return (a + b) % 3 * 700 + (a * b) % 5;
}

static void add(const void *left, const void *right, void *out, size_t n, void *context)
{
	const uint64_t *a = left, *b = right;
	uint64_t *o = out;

	(void)context;
	for (size_t i = 0; i < n; i++) {
		o[i] = a[i] + b[i];
	}
}

static int in_place(enum kind k)
{
	return k == ALLTOALL_IN_PLACE || k == ALLTOALLV_IN_PLACE;
}

static void prepare(struct operation *x, enum kind k, int shared)
{
	static const struct collnet_user_op user = { sizeof(user), 8, 0, add, NULL };
	struct collnet_coll_options o;
	const size_t n = BYTES / 8;
	collnet_request_t **r = &x->request;
	void *send, *recv;

	x->send = shared ? collnet_alloc(c, ROOM) : malloc(ROOM);
	x->recv = in_place(k) ? x->send : shared ? collnet_alloc(c, ROOM) : malloc(ROOM);
	CHECK(x->send != NULL && x->recv != NULL);
	send = x->send;
	recv = x->recv;
	collnet_coll_options_init(&o);
	o.persistent = 1;
	o.user_op = &user;
	switch (k) {
	case ALLTOALL:
	case ALLTOALL_IN_PLACE:
		CHECK(collnet_ialltoall(t, send, recv, BYTES, &o, r) == COLLNET_OK);
		break;
	case ALLGATHER_IN_PLACE:
		CHECK(collnet_iallgather(t, x->recv + rank * BYTES, recv, BYTES, &o, r) ==
		      COLLNET_OK);
		break;
	case BCAST:
		CHECK(collnet_ibcast(t, recv, BYTES, ranks - 1, &o, r) == COLLNET_OK);
		break;
	case GATHER:
		CHECK(collnet_igather(t, send, recv, BYTES, 0, &o, r) == COLLNET_OK);
		break;
	case ALLTOALLV:
	case ALLTOALLV_IN_PLACE:
		CHECK(collnet_ialltoallv(t, send, counts, displs, recv, counts, displs, &o, r) ==
		      COLLNET_OK);
		break;
	case ALLREDUCE:
		CHECK(collnet_iallreduce(t, send, recv, n, COLLNET_UINT64, COLLNET_SUM, &o, r) ==
		      COLLNET_OK);
		break;
	case USER:
		CHECK(collnet_iallreduce(t, send, recv, n, COLLNET_UINT64, COLLNET_USER, &o, r) ==
		      COLLNET_OK);
		break;
	default:
		CHECK(collnet_ireduce_scatter(t, send, recv, n, COLLNET_UINT64, COLLNET_SUM, &o,
					      r) == COLLNET_OK);
		break;
	}
}

static void contents(struct operation *x, enum kind k, uint32_t round)
{
	uint64_t *v = (uint64_t *)(void *)x->send;

	if (!in_place(k)) {
		memset(x->recv, 0xEE, ROOM);
	}
	for (uint32_t i = 0; i < ranks; i++) {
		if (k == ALLTOALL || k == ALLTOALL_IN_PLACE) {
			fill(x->send + i * BYTES, i, round, BYTES);
		} else if (k == ALLTOALLV || k == ALLTOALLV_IN_PLACE) {
			fill(x->send + displs[i], i, round, counts[i]);
		}
	}
	if (k == ALLGATHER_IN_PLACE) {
		fill(x->recv + rank * BYTES, 0, round, BYTES);
	} else if (k == GATHER) {
		fill(x->send, 0, round, BYTES);
	} else if (k == BCAST && rank == ranks - 1) {
		fill(x->recv, 0, round, BYTES);
	}
	for (size_t i = 0; k >= ALLREDUCE && i < ROOM / 8; i++) {
		v[i] = value(rank, round, i);
	}
}

static void result(const struct operation *x, enum kind k, uint32_t round)
{
	const uint64_t *v = (const uint64_t *)(const void *)x->recv;

	for (uint32_t i = 0; i < ranks; i++) {
		if (k == ALLTOALL || k == ALLTOALL_IN_PLACE) {
			verify(x->recv + i * BYTES, i, rank, round, BYTES);
		} else if (k == ALLTOALLV || k == ALLTOALLV_IN_PLACE) {
			verify(x->recv + displs[i], i, rank, round, counts[i]);
		} else if (k == ALLGATHER_IN_PLACE || (k == GATHER && rank == 0)) {
			verify(x->recv + i * BYTES, i, 0, round, BYTES);
		}
	}
	if (k == BCAST) {
		verify(x->recv, ranks - 1, 0, round, BYTES);
	}
	for (size_t i = 0; k >= ALLREDUCE && i < BYTES / 8; i++) {
		const size_t at = k == REDUCE_SCATTER ? rank * (BYTES / 8) + i : i;
		uint64_t sum = 0;

		for (uint32_t a = 0; a < ranks; a++) {
			sum += value(a, round, at);
		}
		CHECK(v[i] == sum);
	}
}

static uint64_t plans(void)
{
	struct collnet_stats s = { .size = sizeof(s) };

	/* Between barriers, so that no other rank of the node plans meanwhile. */
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	CHECK(collnet_get_stats(c, &s, 0) == COLLNET_OK);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	return s.plans;
}

/* Calls of more sizes than a team keeps plans of: each is planned. */
static void other_calls(void)
{
	unsigned char all[RANKS_MAX * 12] = { 0 };

	for (size_t n = 1; n <= 12; n++) {
		CHECK(collnet_allgather(t, all + rank * n, all, n, NULL) == COLLNET_OK);
	}
}

static void together(struct operation *x, uint32_t round)
{
	collnet_request_t *r[2 * KINDS];
	size_t index, left = 2 * KINDS;
	int done[2 * KINDS] = { 0 };

	for (int i = 0; i < 2 * KINDS; i++) {
		contents(&x[i], (enum kind)(i / 2), round);
		CHECK(collnet_start(x[i].request) == COLLNET_OK);
		r[i] = x[i].request;
	}
	CHECK(collnet_start(r[0]) == COLLNET_EINVAL || round == 0);
	if (round % 2 == 0) {
		CHECK(collnet_waitall(2 * KINDS, r, NULL, 0) == COLLNET_OK);
	} else {
		for (; left > 0; left--) {
			CHECK(collnet_waitany(2 * KINDS, r, &index, 0) == COLLNET_OK);
			CHECK(index < 2 * KINDS && !done[index]++);
		}
	}
	CHECK(collnet_waitany(2 * KINDS, r, &index, 0) == COLLNET_OK && index == 2 * KINDS);
	for (int i = 0; i < 2 * KINDS; i++) {
		CHECK(r[i] == x[i].request && collnet_wait(r[i], 0) == COLLNET_OK);
		result(&x[i], (enum kind)(i / 2), round);
	}
}

static void one_by_one(struct operation *x, uint32_t round)
{
	for (int i = 0; i < 2 * KINDS; i++) {
		contents(&x[i], (enum kind)(i / 2), round);
		CHECK(collnet_start(x[i].request) == COLLNET_OK);
		CHECK(collnet_wait(x[i].request, 0) == COLLNET_OK);
		result(&x[i], (enum kind)(i / 2), round);
	}
}

static void wrong(collnet_request_t *persistent)
{
	struct collnet_coll_options o;
	collnet_request_t *r;

	collnet_coll_options_init(&o);
	o.persistent = 1;
	CHECK(collnet_barrier(t, &o) == COLLNET_EINVAL);
	CHECK(strstr(collnet_error(c), "non-blocking") != NULL);
	CHECK(collnet_start(NULL) == COLLNET_EINVAL);
	CHECK(collnet_request_free(NULL) == COLLNET_EINVAL);
	CHECK(collnet_ibarrier(t, NULL, &r) == COLLNET_OK);
	CHECK(collnet_start(r) == COLLNET_EINVAL && collnet_request_free(r) == COLLNET_EINVAL);
	CHECK(collnet_wait(r, 0) == COLLNET_OK);
	CHECK(collnet_start(persistent) == COLLNET_OK);
	CHECK(collnet_request_free(persistent) == COLLNET_EINVAL);
	CHECK(collnet_wait(persistent, 0) == COLLNET_OK);
	o.algorithm = "guesswork";
	CHECK(collnet_ibarrier(t, &o, &r) == COLLNET_EINVAL);
	o.algorithm = NULL;
	/* Requests come back: more than there are in all. */
	for (int i = 0; i < 1000; i++) {
		CHECK(collnet_ibarrier(t, &o, &r) == COLLNET_OK);
		CHECK(collnet_request_free(r) == COLLNET_OK);
	}
	/* One that is persistent here only. */
	if (rank == 0) {
		CHECK(collnet_ibarrier(t, &o, &r) == COLLNET_OK);
		CHECK(collnet_start(r) == COLLNET_OK && collnet_wait(r, 0) == COLLNET_OK);
		CHECK(collnet_request_free(r) == COLLNET_OK);
	} else {
		CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	}
}

int main(void)
{
	static struct operation x[2 * KINDS];
	collnet_request_t *late;
	struct collnet_coll_options o;
	uint64_t before;
	size_t at = 3;

	if (collnet_open(NULL, &c) != COLLNET_OK || collnet_team_create(c, NULL, &t) < 0) {
		fprintf(stderr, "persistent: %s\n", collnet_error(c));
		return 1;
	}
	rank = collnet_team_rank(t);
	ranks = collnet_team_size(t);
	CHECK(ranks <= RANKS_MAX);
	for (uint32_t i = 0; i < ranks; i++) {
		counts[i] = bytes_between(rank, i);
		displs[i] = at;
		at += counts[i] + i % 4;
	}
	for (int i = 0; i < 2 * KINDS; i++) {
		prepare(&x[i], (enum kind)(i / 2), i % 2);
	}
	memset(counts + ranks, 0, sizeof(counts) - ranks * sizeof(counts[0]));
	one_by_one(x, 1);
	plans();
	before = plans();
	for (uint32_t round = 2; round < 6; round++) {
		together(x, round);
		one_by_one(x, round + 10);
	}
	CHECK(plans() == before);
	other_calls();
	before = plans();
	together(x, 6);
	other_calls();
	CHECK(plans() == before + 12 + 1); /* the barrier's plan was replaced, too */
	wrong(x[0].request);
	for (int i = 0; i < 2 * KINDS; i++) {
		CHECK(collnet_request_free(x[i].request) == COLLNET_OK);
	}
	collnet_coll_options_init(&o);
	o.persistent = 1;
	CHECK(collnet_ibarrier(t, &o, &late) == COLLNET_OK);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_team_destroy(t);
	CHECK(collnet_start(late) == COLLNET_ERANK);
	CHECK(collnet_request_free(late) == COLLNET_OK);
	collnet_close(c);
	printf("rank %u of %u: done\n", rank, ranks);
	return 0;
}
