/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls of the whole interface by several threads per context and several contexts per
 * process, as every rank of a job; every byte that arrives is checked.
 *
 * What ranks must agree on (teams, operations, their order and sizes) comes from a generator that
 * all ranks seed alike, per thread and round; what each decides for itself (memory, persistent or
 * not, how it waits, wrong calls in between) from another. A thread uses teams of its own only.
 *
 * A watchdog prints what each thread does, and ends the process, when one does nothing for
 * STUCK seconds.
 *
 *     stress [-s SEED] [-r ROUNDS] [-t THREADS] [-c CONTEXTS] [-k RANK (exits)] [-K RANK (killed)]
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stress.h"

static collnet_t *contexts[CONTEXTS_MAX];
static collnet_team_t *worlds[CONTEXTS_MAX];
static struct worker *workers;
static uint32_t nthreads = 4, ncontexts = 2, rank, ranks, dying = UINT32_MAX;
static uint64_t seed = 1;
static int rounds = 30, by_signal;

/* ---- helpers --------------------------------------------------------------------------- */

uint64_t mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15u;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

uint32_t draw(uint64_t *state, uint32_t n)
{
	*state = mix(*state);
	return (uint32_t)(*state >> 20) % n;
}

static void print_all(void)
{
	for (uint32_t i = 0; i < nthreads; i++) {
		fprintf(stderr, "stress: rank %u, thread %u, round %d: %s%s\n", rank, i,
			workers[i].round, workers[i].doing,
			workers[i].finished ? " (finished)" : "");
	}
}

void fail(struct worker *w, int line, const char *what, int rc)
{
	if (dying != UINT32_MAX && (rc == COLLNET_ERANK || rc == COLLNET_EPEER)) {
		const char *text = collnet_error(w->c);

		if (strstr(text, "rank") == NULL && strstr(text, "node") == NULL) {
			fprintf(stderr, "stress: rank %u: no name in '%s'\n", rank, text);
			_exit(1);
		}
		DOING(w, "ended: %s", text);
		__atomic_store_n(&w->finished, 1, __ATOMIC_RELEASE);
		pthread_exit(NULL);
	}
	fprintf(stderr,
		"stress: seed %llu, rank %u, thread %u, round %d, line %d: %s: %d (%s) doing %s\n",
		(unsigned long long)seed, rank, w->number, w->round, line, what, rc,
		collnet_error(w->c), w->doing);
	print_all();
	_exit(1);
}

static void *watch(void *arg)
{
	uint64_t seen[THREADS_MAX] = { 0 };
	int same[THREADS_MAX] = { 0 };

	for (;;) {
		sleep(1);
		for (uint32_t i = 0; i < nthreads; i++) {
			same[i] = seen[i] == workers[i].steps && !workers[i].finished ? same[i] + 1
										      : 0;
			seen[i] = workers[i].steps;
			if (same[i] == STUCK) {
				fprintf(stderr, "stress: seed %llu: rank %u hangs\n",
					(unsigned long long)seed, rank);
				print_all();
				if (getenv("STRESS_STOP") != NULL) {
					raise(SIGSTOP);
				}
				_exit(3);
			}
		}
	}
	return arg;
}

/* ---- the steps of a thread --------------------------------------------------------------- */

static void forget(struct worker *w, struct slot *s)
{
	if (s->request != NULL) {
		DOING(w, "frees a persistent request");
		OK(w, collnet_request_free(s->request));
		s->request = NULL;
	}
}

static void destroy(struct worker *w, uint32_t i)
{
	const int before = OWN(w, 2);

	for (uint32_t k = 0; k < KEPT; k++) {
		if (before && w->kept[k].team == w->teams[i]) {
			forget(w, &w->kept[k]);
		}
	}
	DOING(w, "destroys a team");
	collnet_team_destroy(w->teams[i]);
	for (uint32_t k = 0; k < KEPT; k++) {
		if (w->kept[k].request != NULL && w->kept[k].team == w->teams[i]) {
			CHECK(w, collnet_start(w->kept[k].request) == COLLNET_ERANK);
			forget(w, &w->kept[k]);
		}
	}
	w->teams[i] = NULL;
}

/* Makes or destroys a team in each place. Its parent is the thread's first. */
static void change_teams(struct worker *w)
{
	collnet_team_t *t = w->teams[0];
	const uint32_t i = 1 + ALL(w, TEAMS - 1), how = ALL(w, 3), salt = ALL(w, 1000);
	uint32_t list[RANKS_MAX], n = 0;

	for (uint32_t k = 0; k < KEPT; k++) {
		w->kept_at[k] = w->kept_at[k] == (int)i ? -1 : w->kept_at[k];
	}
	if (w->teams[i] != NULL) {
		destroy(w, i);
	}
	if (w->made[i]) {
		w->made[i] = 0;
		if (ALL(w, 2)) {
			return;
		}
	}
	w->made[i] = 1;
	if (how == 0) {
		DOING(w, "splits");
		OK(w, collnet_team_split(t, (int32_t)(mix(salt + rank) % 3) - 1,
					 (int32_t)(rank * 7 % 5), &w->teams[i]));
	} else if (how == 1) {
		DOING(w, "duplicates");
		OK(w, collnet_team_dup(t, &w->teams[i]));
	} else {
		int in = 0;

		for (uint32_t r = 0; r < ranks; r++) {
			if (mix(salt * 31 + r) % 3 != 0) {
				list[n++] = r;
				in |= r == rank;
			}
		}
		for (uint32_t k = 0; k + 1 < n; k += 2) {
			const uint32_t x = list[k];

			list[k] = list[k + 1];
			list[k + 1] = x;
		}
		DOING(w, "makes a team of %u ranks", n);
		if (in) {
			OK(w, collnet_team_from_ranks(t, n, list, &w->teams[i]));
		}
	}
}

static void message(struct worker *w, collnet_request_t **recv, collnet_request_t **send,
		    size_t *length)
{
	const uint32_t next = (rank + 1) % ranks;
	struct collnet_address to;

	snprintf(to.node, sizeof(to.node), "%s", collnet_team_node(w->teams[0], next));
	to.endpoint = (uint16_t)(100 + next * THREADS_MAX + w->number);
	put(w->out, (uint64_t)w->round, rank, 0, sizeof(w->out));
	*length = sizeof(w->in);
	OK(w, collnet_irecv(w->endpoint, NULL, w->in, length, 0, recv));
	OK(w, collnet_isend(w->endpoint, &to, w->out, sizeof(w->out), 0, send));
}

/* Operations on all teams, new and persistent, and a message, all outstanding at a time. */
static void batch(struct worker *w)
{
	collnet_request_t *set[SLOTS + KEPT + 4];
	struct slot *used[SLOTS + KEPT];
	const uint32_t n = ALL(w, 5) == 0 ? SLOTS : 1 + ALL(w, 8);
	const int talks = ALL(w, 3) == 0 && dying == UINT32_MAX;
	const uint32_t message_at = ALL(w, n);
	size_t length = 0, k = 0, m = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct slot *s = &w->slots[i];
		const uint32_t which = ALL(w, TEAMS);
		collnet_team_t *t = w->teams[which];
		const uint64_t after = mix(w->all ^ i), blocks = ALL(w, 4);

		if (talks && i == message_at) {
			message(w, &set[k], &set[k + 1], &length);
			k += 2;
		}
		if (t != NULL) {
			shape(w, s, t, i == 0);
			fill(s);
			DOING(w, "calls %s on team %u, n %u, %u of %u", names[s->kind], which, s->n,
			      i, n);
			if (n < 5 && blocks == 0) {
				OK(w, call(s, 1));
				verify(w, s);
			} else if (OWN(w, 4) == 0) {
				OK(w, call_persistent(s));
				OK(w, collnet_start(s->request));
				s->o.persistent = 1; /* to be freed */
				CHECK(w, OWN(w, 8) != 0 || collnet_request_free(s->request) ==
								   COLLNET_EINVAL);
				used[m++] = s;
				set[k++] = s->request;
			} else {
				OK(w, call(s, 0));
				used[m++] = s;
				set[k++] = s->request;
			}
		}
		w->all = after; /* also where this rank is not in the team */
	}
	for (size_t i = k; i > 1; i--) { /* any order */
		const size_t j = OWN(w, (uint32_t)i);
		collnet_request_t *x = set[i - 1];

		set[i - 1] = set[j];
		set[j] = x;
	}
	wait_set(w, set, k);
	for (size_t i = 0; i < m; i++) {
		verify(w, used[i]);
		if (used[i]->o.persistent) {
			forget(w, used[i]);
		}
	}
	if (talks) {
		const struct slot s = { .tag = (uint64_t)w->round };

		CHECK(w, length == sizeof(w->in));
		get(w, &s, w->in, (rank + ranks - 1) % ranks, 0, length);
	}
}

/* Persistent operations on the thread's first team, started several times at once. */
static void again(struct worker *w)
{
	const uint32_t times = 1 + ALL(w, 6);
	collnet_request_t *set[KEPT];

	for (uint32_t i = 0; i < KEPT; i++) {
		struct slot *s = &w->kept[i];
		const uint32_t fresh = ALL(w, 3), at = ALL(w, TEAMS);
		const uint64_t after = mix(w->all);

		if (fresh == 0 || w->kept_at[i] < 0) {
			forget(w, s);
			w->kept_at[i] = w->made[at] ? (int)at : -1;
			if (w->teams[at] != NULL) {
				shape(w, s, w->teams[at], 0);
				DOING(w, "prepares %s of %u", names[s->kind], s->n);
				OK(w, call_persistent(s));
			}
		}
		w->all = after;
	}
	for (uint32_t k = 0; k < times; k++) {
		for (uint32_t i = 0; i < KEPT; i++) {
			struct slot *s = &w->kept[i];

			set[i] = s->request;
			if (s->request == NULL) {
				continue;
			}
			fill(s);
			DOING(w, "starts %s of %u", names[s->kind], s->n);
			OK(w, collnet_start(s->request));
			CHECK(w, OWN(w, 8) != 0 || collnet_start(s->request) == COLLNET_EINVAL);
		}
		wait_set(w, set, KEPT);
		for (uint32_t i = 0; i < KEPT; i++) {
			if (w->kept[i].request != NULL) {
				verify(w, &w->kept[i]);
			}
		}
	}
}

/* A deadline that expires because a rank does not call. */
static void expire(struct worker *w)
{
	const uint32_t absent = ALL(w, ranks);
	struct collnet_coll_options o;
	collnet_team_t *t;
	uint32_t x[RANKS_MAX] = { 0 };
	collnet_request_t *r, *p;
	int rc;

	DOING(w, "duplicates, for a deadline");
	OK(w, collnet_team_dup(w->teams[0], &t));
	collnet_coll_options_init(&o);
	o.timeout_ms = 1 + ALL(w, 30);
	o.persistent = 1;
	DOING(w, "prepares");
	do { /* its time may be too short for the daemon to take it */
		rc = collnet_iallgather(t, &rank, x, 4, &o, &p);
	} while (rc == COLLNET_ETIMEOUT);
	OK(w, rc);
	o.persistent = 0;
	OK(w, collnet_barrier(w->teams[0], NULL));
	if (rank != absent) {
		DOING(w, "calls what will expire");
		rc = collnet_iallgather(t, &rank, x, 4, &o, &r);
		if (rc == COLLNET_OK) {
			DOING(w, "waits for what will expire");
			rc = collnet_wait(r, 0);
		}
		if (rc != COLLNET_ETIMEOUT) {
			fail(w, __LINE__, "a deadline", rc);
		}
		DOING(w, "calls again");
		CHECK(w, collnet_barrier(t, &o) == COLLNET_ETIMEOUT);
		rc = collnet_start(p);
		if (rc == COLLNET_OK) {
			rc = collnet_wait(p, 0);
		}
		CHECK(w, rc == COLLNET_ETIMEOUT);
	}
	/* The absent one destroys it when the others are done. */
	DOING(w, "barrier after a deadline");
	OK(w, collnet_barrier(w->teams[0], NULL));
	if (OWN(w, 2)) {
		OK(w, collnet_request_free(p));
		p = NULL;
	}
	DOING(w, "destroys the team of a deadline");
	collnet_team_destroy(t);
	if (p != NULL) {
		OK(w, collnet_request_free(p));
	}
}

/* A team is destroyed with operations outstanding. */
static void abandon(struct worker *w)
{
	const uint32_t absent = ALL(w, ranks), n = 1 + ALL(w, 10);
	collnet_request_t *set[12];
	collnet_team_t *t;
	int rc, persistent[12];
	struct slot *s;

	DOING(w, "duplicates, to abandon");
	rc = collnet_team_dup(w->teams[0], &t);
	if (rc == COLLNET_ERANK) { /* another has abandoned it before all were ready */
		return;
	}
	OK(w, rc);
	for (uint32_t i = 0; i < n; i++) {
		s = &w->slots[i];
		shape(w, s, t, 0);
		fill(s);
		set[i] = NULL;
		if (rank != absent) {
			persistent[i] = (int)OWN(w, 2);
			rc = persistent[i] ? call_persistent(s) : call(s, 0);
			if (rc == COLLNET_ERANK) { /* another has left already */
				s->request = NULL;
			} else {
				OK(w, rc);
				set[i] = s->request;
				rc = collnet_start(s->request);
				CHECK(w, rc == COLLNET_OK || rc == COLLNET_EINVAL ||
						 rc == COLLNET_ERANK);
			}
		}
	}
	DOING(w, "abandons a team");
	collnet_team_destroy(t);
	for (uint32_t i = 0; i < n; i++) {
		if (set[i] != NULL) {
			DOING(w, "collects of an abandoned team");
			rc = collnet_wait(set[i], 0);
			/* A root need not wait for others. */
			CHECK(w, rc == COLLNET_ERANK || rc == COLLNET_OK);
			if (persistent[i]) {
				OK(w, collnet_request_free(set[i]));
			}
		}
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct collnet_stats stats = { .size = sizeof(stats) };
	void *p;

	for (w->round = 0; w->round < rounds; w->round++) {
		w->all = mix(seed * 1000003 + w->number * 7919 + (uint64_t)w->round);
		if (rank == dying && w->number == 0 && w->round == rounds / 2) {
			usleep(OWN(w, 3000));
			if (by_signal) {
				kill(getpid(), SIGKILL);
			}
			_exit(0);
		}
		if (OWN(w, 4) == 0 && dying == UINT32_MAX) {
			wrong(w);
		}
		if (OWN(w, 6) == 0) {
			DOING(w, "allocates");
			p = collnet_alloc(w->c, 5000);
			CHECK(w, p != NULL);
			OK(w, collnet_get_stats(w->c, &stats, 0));
			collnet_free(w->c, p);
		}
		switch (ALL(w, 12)) {
		case 0:
		case 1:
		case 2:
			change_teams(w);
			break;
		case 3:
		case 4:
			again(w);
			break;
		case 5:
			if (dying == UINT32_MAX && ranks > 1) {
				expire(w);
			}
			break;
		case 6:
			if (dying == UINT32_MAX && ranks > 1) {
				abandon(w);
			}
			break;
		default:
			batch(w);
		}
	}
	DOING(w, "last barrier");
	OK(w, collnet_barrier(w->teams[0], NULL));
	__atomic_store_n(&w->finished, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- main --------------------------------------------------------------------------------- */

static void place(struct worker *w, struct slot *s, size_t bytes)
{
	for (int i = 0; i < 2; i++) {
		s->plain[i] = malloc(bytes);
		CHECK(w, s->plain[i] != NULL);
	}
}

static void prepare(struct worker *w, uint32_t number)
{
	const uint32_t context = number % ncontexts;
	const size_t each = MEMORY;
	unsigned char *shared;

	w->number = number;
	w->c = contexts[context];
	w->own = mix(seed ^ (uint64_t)(rank + 1) << 32 ^ number);
	w->made[0] = 1;
	memset(w->kept_at, -1, sizeof(w->kept_at));
	OK(w, collnet_team_dup(worlds[context], &w->teams[0]));
	OK(w, collnet_endpoint_open(w->c, (uint16_t)(100 + rank * THREADS_MAX + number),
				    &w->endpoint));
	shared = collnet_alloc(w->c, (SLOTS + KEPT) * 2 * each);
	CHECK(w, shared != NULL);
	for (uint32_t i = 0; i < SLOTS + KEPT; i++) {
		struct slot *s = i < SLOTS ? &w->slots[i] : &w->kept[i - SLOTS];

		place(w, s, each);
		s->shared[0] = shared + (size_t)i * 2 * each;
		s->shared[1] = s->shared[0] + each;
	}
}

int main(int argc, char **argv)
{
	struct collnet_team_options to;
	char job[COLLNET_NAME_MAX + 1];
	pthread_t watchdog;
	int o;

	while ((o = getopt(argc, argv, "s:r:t:c:k:K:")) != -1) {
		const long v = o == '?' ? 0 : atol(optarg);

		switch (o) {
		case 's':
			seed = (uint64_t)v;
			break;
		case 'r':
			rounds = (int)v;
			break;
		case 't':
			nthreads = (uint32_t)v;
			break;
		case 'c':
			ncontexts = (uint32_t)v;
			break;
		case 'k':
		case 'K':
			dying = (uint32_t)v;
			by_signal = o == 'K';
			break;
		default:
			return 2;
		}
	}
	if (getenv("COLLNET_MODE") != NULL) {
		ncontexts = 1; /* of an interface */
	}
	if (nthreads < 1 || nthreads > THREADS_MAX || ncontexts < 1 || ncontexts > CONTEXTS_MAX) {
		return 2;
	}
	workers = calloc(nthreads, sizeof(*workers));
	for (uint32_t i = 0; workers != NULL && i < ncontexts; i++) {
		collnet_team_options_init(&to);
		snprintf(job, sizeof(job), "%.50s-%u", to.job, i);
		to.job = job;
		if (collnet_open(NULL, &contexts[i]) != COLLNET_OK ||
		    collnet_team_create(contexts[i], &to, &worlds[i]) != COLLNET_OK) {
			fprintf(stderr, "stress: %s\n", collnet_error(contexts[i]));
			return 1;
		}
	}
	rank = collnet_team_rank(worlds[0]);
	ranks = collnet_team_size(worlds[0]);
	if (ranks > RANKS_MAX) {
		return 2;
	}
	if (rank == 0) {
		printf("seed %llu\n", (unsigned long long)seed);
		fflush(stdout);
	}
	for (uint32_t i = 0; i < nthreads; i++) {
		prepare(&workers[i], i);
	}
	for (uint32_t i = 0; i < ncontexts; i++) {
		if (collnet_barrier(worlds[i], NULL) != COLLNET_OK) {
			fprintf(stderr, "stress: %s\n", collnet_error(contexts[i]));
			return 1;
		}
	}
	pthread_create(&watchdog, NULL, watch, NULL);
	for (uint32_t i = 0; i < nthreads; i++) {
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (uint32_t i = 0; i < nthreads; i++) {
		pthread_join(workers[i].thread, NULL);
	}
	for (uint32_t i = 0; i < ncontexts; i++) {
		collnet_close(contexts[i]);
	}
	printf("rank %u of %u: done\n", rank, ranks);
	return 0;
}
