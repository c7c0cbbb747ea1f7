/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that share a context, as every rank of a team: each has teams of its own, calls
 * operations of every kind on them, and checks every byte, while one thread waits from the
 * beginning to the end for an operation that the last rank calls last. Where that thread tests
 * instead, it takes most completions of the others.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collnet/collnet.h"

#define THREADS	  4u
#define BYTES	  3000u
#define RANKS_MAX 16u

static collnet_t *c;
static uint32_t rank, ranks;
static int rounds = 25;

struct worker {
	pthread_t thread;
	uint32_t number;
	collnet_t *context;
	collnet_team_t *team, *twin;
	collnet_endpoint_t *endpoint;
	unsigned char *send, *recv; /* collnet_alloc() */
	uint32_t combined;	    /* elements, by its user-defined operation */
};

static void check(int ok, const struct worker *w, int line, const char *what)
{
	if (!ok) {
		fprintf(stderr, "threads: rank %u, thread %d, line %d: %s (last error: %s)\n", rank,
			w != NULL ? (int)w->number : -1, line, what,
			collnet_error(w != NULL ? w->context : c));
		_exit(1);
	}
}

#define CHECK(w, what) check((what), (w), __LINE__, #what)
#define OK(w, call)    check((call) == COLLNET_OK, (w), __LINE__, #call)

static unsigned char pattern(uint32_t from, uint32_t to, uint32_t thread, int round, size_t k)
{
	return (unsigned char)(from * 31 + to * 17 + thread * 59 + (uint32_t)round * 101 + k * 7);
}

static void fill(const struct worker *w, unsigned char *p, uint32_t to, size_t n, int round)
{
	for (size_t k = 0; k < n; k++) {
		p[k] = pattern(rank, to, w->number, round, k);
	}
}

static void verify(const struct worker *w, const unsigned char *p, uint32_t from, uint32_t to,
		   size_t n, int round)
{
	for (size_t k = 0; k < n; k++) {
		CHECK(w, p[k] == pattern(from, to, w->number, round, k));
	}
}

static void alltoall(struct worker *w, collnet_team_t *t, unsigned char *send, unsigned char *recv,
		     size_t n, int round)
{
	collnet_request_t *r;
	int rc;

	for (uint32_t i = 0; i < ranks; i++) {
		fill(w, send + i * n, i, n, round);
	}
	memset(recv, 0xEE, n * ranks);
	if (round % 2 == 0) {
		OK(w, collnet_alltoall(t, send, recv, n, NULL));
	} else {
		OK(w, collnet_ialltoall(t, send, recv, n, NULL, &r));
		while ((rc = collnet_test(r)) == COLLNET_INPROGRESS) {
		}
		OK(w, rc);
	}
	for (uint32_t i = 0; i < ranks; i++) {
		verify(w, recv + i * n, i, rank, n, round);
	}
}

static void add(const void *left, const void *right, void *out, size_t n, void *context)
{
	const uint64_t *a = left, *b = right;
	uint64_t *o = out;

	for (size_t i = 0; i < n; i++) {
		o[i] = a[i] + b[i];
	}
	*(uint32_t *)context += (uint32_t)n;
}

/* Two reductions and an allgather on two teams, waited for together or one by one. */
static void several(struct worker *w, int round)
{
	enum { N = 200 };
	const struct collnet_user_op user = { sizeof(user), 8, 1, add, &w->combined };
	struct collnet_coll_options o;
	uint64_t own[N], sum[N], user_sum[N];
	unsigned char block[BYTES], all[RANKS_MAX * BYTES];
	collnet_request_t *r[3];
	size_t index;

	collnet_coll_options_init(&o);
	o.user_op = &user;
	o.algorithm = "ring"; /* by which every node combines */
	for (uint32_t i = 0; i < N; i++) {
		own[i] = (uint64_t)rank * 1000 + i + (uint64_t)round;
	}
	fill(w, block, 0, BYTES, round);
	OK(w, collnet_iallreduce(w->team, own, sum, N, COLLNET_UINT64, COLLNET_SUM, NULL, &r[0]));
	OK(w, collnet_iallgather(w->twin, block, all, BYTES, NULL, &r[1]));
	OK(w,
	   collnet_iallreduce(w->team, own, user_sum, N, COLLNET_UINT64, COLLNET_USER, &o, &r[2]));
	if (round % 2 == 0) {
		OK(w, collnet_waitall(3, r, NULL, 0));
	} else {
		for (int i = 0; i < 3; i++) {
			OK(w, collnet_waitany(3, r, &index, 0));
			CHECK(w, index < 3);
		}
	}
	for (uint32_t i = 0; i < N; i++) {
		const uint64_t want = (uint64_t)ranks * (ranks - 1) / 2 * 1000 +
				      ranks * (i + (uint64_t)round);

		CHECK(w, sum[i] == want && user_sum[i] == want);
	}
	for (uint32_t i = 0; i < ranks; i++) {
		verify(w, all + i * BYTES, i, 0, BYTES, round);
	}
}

/* A message to the same thread of the next rank. */
static void message(struct worker *w, int round)
{
	const uint32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	struct collnet_address to, from;
	unsigned char out[BYTES], in[BYTES];
	size_t n = sizeof(in);
	collnet_request_t *r;

	snprintf(to.node, sizeof(to.node), "%s", collnet_team_node(w->team, next));
	to.endpoint = (uint16_t)(100 + next * THREADS + w->number);
	fill(w, out, next, BYTES, round);
	OK(w, collnet_irecv(w->endpoint, &from, in, &n, 0, &r));
	OK(w, collnet_send(w->endpoint, &to, out, BYTES, 0));
	OK(w, collnet_wait(r, 0));
	CHECK(w, n == BYTES && from.endpoint == 100 + before * THREADS + w->number);
	verify(w, in, before, rank, BYTES, round);
}

/* Each thread has the message of its own last error. */
static void errors(struct worker *w)
{
	struct collnet_coll_options o;
	char name[16];

	snprintf(name, sizeof(name), "wrong%u", w->number);
	collnet_coll_options_init(&o);
	o.algorithm = name;
	CHECK(w, collnet_barrier(w->team, &o) == COLLNET_EINVAL);
	CHECK(w, strstr(collnet_error(w->context), name) != NULL);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned char *plain = malloc((size_t)2 * ranks * BYTES);
	struct collnet_stats s = { .size = sizeof(s) };
	collnet_team_t *brief;

	CHECK(w, plain != NULL);
	for (int round = 0; round < rounds; round++) {
		alltoall(w, w->team, w->send, w->recv, BYTES, round);
		alltoall(w, w->twin, plain, plain + ranks * BYTES, 100, round);
		several(w, round);
		message(w, round);
		errors(w);
		if (round % 8 == 0) {
			void *p = collnet_alloc(w->context, 10000);

			CHECK(w, p != NULL);
			OK(w, collnet_get_stats(w->context, &s, 0));
			OK(w, collnet_team_dup(w->team, &brief));
			OK(w, collnet_barrier(brief, NULL));
			collnet_team_destroy(brief);
			collnet_free(w->context, p);
		}
	}
	CHECK(w, ranks == 1 || rank % ranks != 0 || w->combined > 0);
	free(plain);
	return NULL;
}

struct long_wait {
	collnet_team_t *team;
	int status;
};

static void *wait_long(void *arg)
{
	struct long_wait *l = arg;
	collnet_request_t *r;

	if (rank % 2 == 0) {
		l->status = collnet_barrier(l->team, NULL);
		return NULL;
	}
	OK(NULL, collnet_ibarrier(l->team, NULL, &r));
	while ((l->status = collnet_test(r)) == COLLNET_INPROGRESS) {
		sched_yield();
	}
	return NULL;
}

static void prepare(struct worker *w, uint32_t number, collnet_t *context, collnet_team_t *t)
{
	w->number = number;
	w->context = context;
	OK(w, collnet_team_dup(t, &w->team));
	OK(w, collnet_team_dup(t, &w->twin));
	OK(w,
	   collnet_endpoint_open(context, (uint16_t)(100 + rank * THREADS + number), &w->endpoint));
	w->send = collnet_alloc(context, (size_t)ranks * BYTES);
	w->recv = collnet_alloc(context, (size_t)ranks * BYTES);
	CHECK(w, w->send != NULL && w->recv != NULL);
}

/* The last worker has a context of its own, where a process can have two. */
static collnet_t *another(collnet_team_t **team)
{
	struct collnet_team_options to;
	collnet_t *more;
	char job[COLLNET_NAME_MAX + 1];

	if (getenv("COLLNET_MODE") != NULL) {
		return NULL;
	}
	collnet_team_options_init(&to);
	snprintf(job, sizeof(job), "more-%.50s", to.job);
	to.job = job;
	OK(NULL, collnet_open(NULL, &more));
	OK(NULL, collnet_team_create(more, &to, team));
	return more;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	struct long_wait last = { NULL, 0 };
	collnet_team_t *t, *other = NULL;
	collnet_t *more;
	pthread_t thread;

	if (argc == 2) {
		rounds = atoi(argv[1]);
	}
	if (collnet_open(NULL, &c) != COLLNET_OK || collnet_team_create(c, NULL, &t) < 0) {
		fprintf(stderr, "threads: %s\n", collnet_error(c));
		return 1;
	}
	rank = collnet_team_rank(t);
	ranks = collnet_team_size(t);
	CHECK(NULL, ranks <= RANKS_MAX);
	more = another(&other);
	for (uint32_t i = 0; i < THREADS; i++) {
		const int own = more != NULL && i == THREADS - 1;

		prepare(&workers[i], i, own ? more : c, own ? other : t);
	}
	OK(NULL, collnet_team_dup(t, &last.team));
	OK(NULL, collnet_barrier(t, NULL));
	if (rank != ranks - 1) {
		CHECK(NULL, pthread_create(&thread, NULL, wait_long, &last) == 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		CHECK(NULL, pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
	}
	OK(NULL, collnet_barrier(t, NULL));
	if (rank != ranks - 1) {
		pthread_join(thread, NULL);
	} else {
		wait_long(&last);
	}
	CHECK(NULL, last.status == COLLNET_OK);
	collnet_close(more);
	collnet_close(c);
	printf("rank %u of %u: done\n", rank, ranks);
	return 0;
}
