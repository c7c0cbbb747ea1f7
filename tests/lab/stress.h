/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the random calls share (stress.c). */
#ifndef STRESS_H
#define STRESS_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "collnet/collnet.h"

#define THREADS_MAX  8u
#define CONTEXTS_MAX 4u
#define RANKS_MAX    16u
#define SLOTS	     48u
#define TEAMS	     5u
#define KEPT	     6u			      /* persistent operations of a thread */
#define BLOCK	     2048u		      /* bytes of a block at most */
#define MEMORY	     (RANKS_MAX * BLOCK * 2u) /* bytes of a buffer */
#define STUCK	     50			      /* s */

enum kind {
	ALLTOALL,
	ALLGATHER,
	BCAST,
	SCATTER,
	GATHER,
	ALLTOALLV,
	ALLGATHERV,
	GATHERV,
	SCATTERV,
	ALLREDUCE,
	REDUCE,
	REDUCE_SCATTER,
	SCAN,
	EXSCAN,
	BARRIER,
	KINDS
};

extern const char *const names[];

/* An operation, its memory and its request. */
struct slot {
	enum kind kind;
	collnet_team_t *team;
	uint32_t n; /* bytes of a block, or elements */
	uint32_t root;
	uint64_t tag;
	int user, in_place;
	unsigned char *plain[2], *shared[2]; /* memory: malloc(), collnet_alloc() */
	unsigned char *send, *recv;
	size_t counts[RANKS_MAX], counts2[RANKS_MAX];
	struct collnet_user_op op;
	struct collnet_coll_options o;
	collnet_request_t *request;
};

struct worker {
	pthread_t thread;
	uint32_t number;
	collnet_t *c;
	collnet_team_t *teams[TEAMS]; /* the first stays */
	uint64_t all, own;	      /* generators */
	int round;
	struct slot slots[SLOTS], kept[KEPT];
	int made[TEAMS], kept_at[KEPT]; /* agreed: teams; of which team, or -1 */
	collnet_endpoint_t *endpoint;
	unsigned char out[BLOCK], in[BLOCK];
	char doing[160];
	uint64_t steps;
	int finished;
};

/* ---- stress.c -------------------------------------------------------------------------- */

uint64_t mix(uint64_t x);
/* 0 .. n - 1 */
uint32_t draw(uint64_t *state, uint32_t n);
/* Ends the process; where a rank is to die, ends the thread if that is the reason. */
void fail(struct worker *w, int line, const char *what, int rc);

#define ALL(w, n) draw(&(w)->all, (n))
#define OWN(w, n) draw(&(w)->own, (n))

#define DOING(w, ...)                                                                              \
	do {                                                                                       \
		(w)->steps++;                                                                      \
		snprintf((w)->doing, sizeof((w)->doing), __VA_ARGS__);                             \
	} while (0)

#define CHECK(w, what)                                                                             \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fail((w), __LINE__, #what, 1);                                             \
		}                                                                                  \
	} while (0)
#define OK(w, call)                                                                                \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ != COLLNET_OK) {                                                           \
			fail((w), __LINE__, #call, rc_);                                           \
		}                                                                                  \
	} while (0)

/* ---- stress_call.c ---------------------------------------------------------------------- */

void put(unsigned char *p, uint64_t tag, uint32_t from, uint32_t to, size_t n);
void get(struct worker *w, const struct slot *s, const unsigned char *p, uint32_t from, uint32_t to,
	 size_t n);
/* What the operation is: the same on all ranks of its team. */
void shape(struct worker *w, struct slot *s, collnet_team_t *t, int large);
/* Before a start: contents of the memory. */
void fill(struct slot *s);
void verify(struct worker *w, const struct slot *s);
int call(struct slot *s, int blocking);
int call_persistent(struct slot *s);
/* All of the set, in one of the ways there are. */
void wait_set(struct worker *w, collnet_request_t **set, size_t n);
/* A call with a wrong argument, which changes nothing. */
void wrong(struct worker *w);

#endif
