/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library on a real network, at length: what calls.c tries once is done here with every size,
 * hundreds of teams, and ranks that disagree. Runs as every rank of a team; the words of the
 * command line select the checks:
 *
 *   sizes        exchanges of every size from nothing to three frames and a byte
 *   mismatch     ranks that call different things: all fail, none waits forever
 *   teams        many teams one after another
 *   endpoints    messages to endpoints that are there, are not there any more, never were
 *   missing LIST creates the team in 700 ms; fails with exactly those ranks missing
 *   wait FILE    says in FILE that it waits, then waits in a barrier for rank 2, which only
 *                waits to be killed; prints what the barrier says
 *   stuck FILE   calls operations of 1 MiB that the last rank, which is their root, never calls;
 *                says in FILE that it does, and waits to be killed
 *
 * Invariant: no call waits longer than its deadline and SLACK_MS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collnet/collnet.h"
#include "util/clock.h"

#define SLACK_MS   10000 /* of a busy machine */
#define MISSING_MS 3000	 /* within which those that come find each other */
#define MTU	   1500

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank, ranks;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "api: rank %u, line %d: %s (last error: %s)\n", rank,      \
				__LINE__, #what, collnet_error(c));                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static uint64_t now_ms(void)
{
	return cn_now() / CN_MS;
}

/* Byte k of the block from rank a to rank b of round r. */
static unsigned char pattern(uint32_t a, uint32_t b, size_t k, size_t r)
{
	return (unsigned char)(a * 59 + b * 23 + k * 13 + k / 253 + r * 7);
}

/* ---- every size ------------------------------------------------------------------------- */

/* No counter of the node ever goes back. */
static void check_stats(struct collnet_stats *last)
{
	struct collnet_stats s = { .size = sizeof(s) };

	CHECK(collnet_get_stats(c, &s, 0) == COLLNET_OK);
#define GROWS(field) CHECK(s.field >= last->field)
	GROWS(frames_sent);
	GROWS(frames_received);
	GROWS(bytes_sent);
	GROWS(bytes_received);
	GROWS(data_sent);
	GROWS(data_resent);
	GROWS(data_received);
	GROWS(acks_sent);
	GROWS(ack_bytes_sent);
	GROWS(naks_sent);
	GROWS(duplicates);
	GROWS(gaps);
	GROWS(timeouts);
	GROWS(busy);
	GROWS(ring_drops);
	GROWS(send_full);
	GROWS(send_errors);
	GROWS(cpu_ns);
	GROWS(window_peak);
#undef GROWS
	CHECK(s.frames_sent >= s.data_sent + s.data_resent);
	CHECK(s.bytes_sent >= 60 * s.frames_sent);
	CHECK(s.bad_frames == 0 && s.ring_drops == 0 && s.jobs >= 1);
	CHECK(s.mtu == MTU);
	*last = s;
}

static void sizes(void)
{
	const size_t most = 3 * MTU + 1, room = most * ranks + 64;
	unsigned char *of[2][2] = { { collnet_alloc(c, room), malloc(room) },
				    { collnet_alloc(c, room), malloc(room) } };
	struct collnet_stats first = { .size = sizeof(first) }, last;
	uint64_t bytes = 0;

	CHECK(of[0][0] && of[0][1] && of[1][0] && of[1][1]);
	CHECK(collnet_get_stats(c, &first, 1) == COLLNET_OK);
	last = first;
	last.window_peak = 0; /* it was just reset */
	for (size_t n = 0; n <= most; n++) {
		unsigned char *s = of[0][n & 1], *d = of[1][n >> 1 & 1] + n % 7;

		for (uint32_t b = 0; b < ranks; b++) {
			for (size_t k = 0; k < n; k++) {
				s[b * n + k] = pattern(rank, b, k, n);
			}
		}
		/* What is right already would hide what does not come. */
		for (size_t i = 0; i < n * ranks; i++) {
			d[i] = (unsigned char)~pattern((uint32_t)(i / n), rank, i % n, n);
		}
		memset(d + n * ranks, 0xA5, 16);
		CHECK(collnet_alltoall(t, s, d, n, NULL) == COLLNET_OK);
		for (size_t i = 0; i < n * ranks; i++) {
			const unsigned char right = pattern((uint32_t)(i / n), rank, i % n, n);

			if (d[i] != right) {
				fprintf(stderr, "api: size %zu, from rank %zu, byte %zu\n", n,
					i / n, i % n);
			}
			CHECK(d[i] == right);
		}
		for (size_t i = 0; i < 16; i++) {
			CHECK(d[n * ranks + i] == 0xA5);
		}
		bytes += n * (ranks - 1);
		if (n % 100 == 0) {
			check_stats(&last);
		}
	}
	check_stats(&last);
	CHECK(last.bytes_sent - first.bytes_sent > bytes);
	CHECK(last.bytes_received - first.bytes_received > bytes);
	for (int i = 0; i < 2; i++) {
		collnet_free(c, of[i][0]);
		free(of[i][1]);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

/* ---- ranks that disagree ------------------------------------------------------------------ */

enum { ALLTOALL, ALLGATHER, BARRIER };

/* The call of the odd rank, and that of the others. */
static const struct quarrel {
	const char *what;
	int odd, other;
	size_t odd_bytes, other_bytes;
	const char *odd_algorithm;
} quarrels[] = {
	{ "a byte more", ALLTOALL, ALLTOALL, 1001, 1000, NULL },
	{ "a byte less", ALLTOALL, ALLTOALL, 999, 1000, NULL },
	{ "a frame more", ALLTOALL, ALLTOALL, 20000, 1000, NULL },
	{ "much less", ALLTOALL, ALLTOALL, 100, 50000, NULL },
	{ "nothing", ALLTOALL, ALLTOALL, 0, 5000, NULL },
	{ "something", ALLTOALL, ALLTOALL, 5000, 0, NULL },
	{ "allgather, sizes", ALLGATHER, ALLGATHER, 3001, 3000, NULL },
	{ "allgather or alltoall", ALLGATHER, ALLTOALL, 2000, 2000, NULL },
	{ "barrier or alltoall", BARRIER, ALLTOALL, 0, 40000, NULL },
	{ "alltoall or barrier", ALLTOALL, BARRIER, 40000, 0, NULL },
	{ "linear or shuffle", ALLTOALL, ALLTOALL, 9000, 9000, "linear" },
};

static int call(collnet_team_t *team, int op, void *s, void *d, size_t bytes,
		const struct collnet_coll_options *o)
{
	switch (op) {
	case ALLTOALL:
		return collnet_alltoall(team, s, d, bytes, o);
	case ALLGATHER:
		return collnet_allgather(team, s, d, bytes, o);
	default:
		return collnet_barrier(team, o);
	}
}

static collnet_team_t *team_of(const char *name)
{
	struct collnet_team_options o;
	collnet_team_t *team = NULL;
	char job[COLLNET_NAME_MAX + 1];

	collnet_team_options_init(&o);
	snprintf(job, sizeof(job), "%.30s-%s", o.job, name);
	o.job = job;
	o.timeout_ms = 10000;
	CHECK(collnet_team_create(c, &o, &team) == COLLNET_OK);
	CHECK(collnet_team_rank(team) == rank && collnet_team_size(team) == ranks);
	return team;
}

static void disagree(const struct quarrel *q, unsigned char *s, unsigned char *d, size_t room)
{
	const int odd = rank == 1;
	struct collnet_coll_options o;
	collnet_team_t *team = team_of("quarrel"); /* the same name again and again */
	uint64_t begin;
	int rc;

	/* The team works before it fails. */
	memset(s, (int)rank + 1, room);
	CHECK(collnet_alltoall(team, s, d, 10, NULL) == COLLNET_OK);
	for (uint32_t a = 0; a < ranks; a++) {
		CHECK(d[a * 10 + 9] == a + 1);
	}
	/* On all ranks, before one of them fails it. */
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_coll_options_init(&o);
	o.timeout_ms = 2000;
	if (odd) {
		o.algorithm = q->odd_algorithm;
	}
	begin = now_ms();
	rc = call(team, odd ? q->odd : q->other, s, d, odd ? q->odd_bytes : q->other_bytes, &o);
	begin = now_ms() - begin;
	if (rc >= 0 || begin > o.timeout_ms + SLACK_MS) {
		fprintf(stderr, "api: rank %u: %s: %s after %llu ms\n", rank, q->what,
			collnet_strerror(rc), (unsigned long long)begin);
	}
	CHECK(rc < 0 && begin <= o.timeout_ms + SLACK_MS);
	CHECK(collnet_error(c)[0] != '\0');
	printf("%s: rank %u: %s after %llu ms: %s\n", q->what, rank, collnet_strerror(rc),
	       (unsigned long long)begin, collnet_error(c));
	/* It stays failed, at once. */
	begin = now_ms();
	CHECK(collnet_barrier(team, NULL) < 0 && now_ms() - begin < SLACK_MS);
	collnet_team_destroy(team);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK); /* others are not harmed */
}

static void mismatch(void)
{
	const size_t room = 50000 * ranks;
	unsigned char *s = malloc(room), *d = collnet_alloc(c, room);

	CHECK(s && d);
	for (size_t i = 0; i < sizeof(quarrels) / sizeof(quarrels[0]); i++) {
		disagree(&quarrels[i], s, d, room);
	}
	collnet_free(c, d);
	free(s);
}

/* ---- teams ---------------------------------------------------------------------------------- */

static void teams(void)
{
	struct collnet_job_info jobs[32];
	uint32_t all[64];
	size_t n;

	CHECK(ranks <= 64);
	for (uint32_t i = 0; i < 200; i++) {
		char name[16];
		collnet_team_t *team;
		uint32_t mine = i * 1000 + rank;

		/* Half of them under one name, half under new ones. */
		snprintf(name, sizeof(name), "t%u", i % 2 == 0 ? 0 : i);
		team = team_of(name);
		CHECK(collnet_allgather(team, &mine, all, sizeof(mine), NULL) == COLLNET_OK);
		for (uint32_t a = 0; a < ranks; a++) {
			CHECK(all[a] == i * 1000 + a);
		}
		collnet_team_destroy(team);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	/* They are gone from the node, but for those that others on it are just leaving. */
	n = 32;
	CHECK(collnet_get_jobs(c, jobs, &n) == COLLNET_OK && n >= 1 && n <= 3);

	/* A team of one rank does not wait. */
	if (rank == 0) {
		struct collnet_team_options o;
		collnet_team_t *team;
		unsigned char s[5000], d[5000];

		collnet_team_options_init(&o);
		o.job = "hermit";
		o.rank = 0;
		o.ranks = 1;
		CHECK(collnet_team_create(c, &o, &team) == COLLNET_OK);
		CHECK(collnet_team_nodes(team) == 1);
		for (size_t size = 0; size <= sizeof(s); size += 1250) {
			memset(s, (int)size / 1250 + 1, sizeof(s));
			memset(d, 0, sizeof(d));
			CHECK(collnet_alltoall(team, s, d, size, NULL) == COLLNET_OK);
			CHECK(memcmp(s, d, size) == 0);
			memset(d, 0, sizeof(d));
			CHECK(collnet_allgather(team, s, d, size, NULL) == COLLNET_OK);
			CHECK(memcmp(s, d, size) == 0 && (size == sizeof(s) || d[size] == 0));
		}
		CHECK(collnet_alltoall(team, s, s + 10, 11, NULL) == COLLNET_EINVAL);
		CHECK(collnet_alltoall(team, s + 1, s, 10, NULL) == COLLNET_EINVAL);
		CHECK(collnet_allgather(team, s + 1, s, 10, NULL) == COLLNET_EINVAL);
		CHECK(collnet_alltoall(team, s, s + 10, 10, NULL) == COLLNET_OK);
		collnet_team_destroy(team);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

/* ---- endpoints ------------------------------------------------------------------------------ */

/* Everybody writes to everybody, its own node included; then to those who have left. */
static void endpoints(void)
{
	enum { ROUNDS = 20 };
	collnet_endpoint_t *e;
	struct collnet_address from, to = { .node = "" };
	collnet_request_t *r[64];
	unsigned char s[4000], d[4000];
	uint32_t next[64] = { 0 };
	uint64_t begin;
	size_t n;

	CHECK(ranks <= 64);
	CHECK(collnet_endpoint_open(c, (uint16_t)(1000 + rank), &e) == COLLNET_OK);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		n = (size_t)i * 199 + 8; /* up to three frames */
		memset(s, (int)(i + rank), n);
		memcpy(s, &rank, 4);
		memcpy(s + 4, &i, 4);
		for (uint32_t b = 0; b < ranks; b++) {
			snprintf(to.node, sizeof(to.node), "%s", collnet_team_node(t, b));
			to.endpoint = (uint16_t)(1000 + b);
			CHECK(collnet_isend(e, &to, s, n, 5000, &r[b]) == COLLNET_OK);
		}
		for (uint32_t b = 0; b < ranks; b++) {
			uint32_t who, number;

			n = sizeof(d);
			CHECK(collnet_recv(e, &from, d, &n, 3 * SLACK_MS) == COLLNET_OK);
			memcpy(&who, d, 4);
			memcpy(&number, d + 4, 4);
			CHECK(who < ranks && number == next[who]); /* in order, once */
			next[who]++;
			CHECK(n == (size_t)number * 199 + 8);
			for (size_t k = 8; k < n; k++) {
				CHECK(d[k] == (unsigned char)(number + who));
			}
			CHECK(from.endpoint == 1000 + who);
			CHECK(strcmp(from.node, collnet_team_node(t, who)) == 0);
		}
		for (uint32_t b = 0; b < ranks; b++) {
			CHECK(collnet_wait(r[b], 0) == COLLNET_OK);
		}
		/* Or one that is ahead takes the place of another's message, whose sender waits. */
		CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	}
	n = sizeof(d);
	CHECK(collnet_recv(e, NULL, d, &n, 50) == COLLNET_ETIMEOUT); /* and no more */

	/* A known node without that endpoint. */
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	snprintf(to.node, sizeof(to.node), "%s", collnet_team_node(t, (rank + 1) % ranks));
	to.endpoint = 999;
	begin = now_ms();
	CHECK(collnet_send(e, &to, s, 10, 3 * SLACK_MS) == COLLNET_ENOENT);
	CHECK(now_ms() - begin < SLACK_MS && strstr(collnet_error(c), "999") != NULL);
	CHECK(strstr(collnet_error(c), to.node) != NULL);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);

	/* One that was there, is closed, and comes back. */
	to.endpoint = (uint16_t)(1000 + (rank + 1) % ranks);
	collnet_endpoint_close(e);
	CHECK(collnet_endpoint_open(c, (uint16_t)(2000 + rank), &e) == COLLNET_OK);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	CHECK(collnet_send(e, &to, s, 10, 3 * SLACK_MS) == COLLNET_ENOENT);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_endpoint_close(e);
	CHECK(collnet_endpoint_open(c, (uint16_t)(1000 + rank), &e) == COLLNET_OK);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	CHECK(collnet_send(e, &to, s, 10, 3 * SLACK_MS) == COLLNET_OK);
	n = sizeof(d);
	CHECK(collnet_recv(e, NULL, d, &n, 3 * SLACK_MS) == COLLNET_OK && n == 10);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_endpoint_close(e);
}

/* ---- ranks that are not there --------------------------------------------------------------- */

static int missing(const char *list)
{
	struct collnet_team_options o;
	const char *found;
	uint64_t begin = now_ms();
	int rc;

	collnet_team_options_init(&o);
	rank = o.rank;
	o.timeout_ms = MISSING_MS;
	rc = collnet_team_create(c, &o, &t);
	begin = now_ms() - begin;
	printf("rank %u: %s after %llu ms: %s\n", rank, collnet_strerror(rc),
	       (unsigned long long)begin, collnet_error(c));
	CHECK(rc == COLLNET_ETIMEOUT);
	CHECK(begin >= MISSING_MS - 10 && begin < MISSING_MS + SLACK_MS);
	found = strstr(collnet_error(c), " at the deadline: ");
	CHECK(found != NULL);
	found += strlen(" at the deadline: ");
	CHECK(strspn(found, "0123456789,- ") == strlen(list));
	CHECK(strncmp(found, list, strlen(list)) == 0);
	return 0;
}

static void write_pid(const char *file)
{
	char tmp[4096];
	FILE *f;

	snprintf(tmp, sizeof(tmp), "%s.tmp", file);
	f = fopen(tmp, "w");
	CHECK(f != NULL && fprintf(f, "%d\n", (int)getpid()) > 0 && fclose(f) == 0);
	CHECK(rename(tmp, file) == 0);
}

static int wait_for_rank_2(const char *file)
{
	struct collnet_coll_options o;
	struct timespec now;
	int rc;

	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	write_pid(file);
	if (rank == 2) {
		alarm(60);
		for (;;) {
			pause();
		}
	}
	collnet_coll_options_init(&o);
	o.timeout_ms = 15000;
	rc = collnet_barrier(t, &o);
	clock_gettime(CLOCK_REALTIME, &now);
	printf("end %u %lld %d %s: %s\n", rank,
	       (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, rc, collnet_strerror(rc),
	       collnet_error(c));
	return 0;
}

static void stuck(const char *file)
{
	static unsigned char block[1 << 20];
	struct collnet_coll_options o;
	collnet_request_t *r[8];

	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_coll_options_init(&o);
	o.timeout_ms = 120000;
	for (int i = 0; rank + 1 < ranks && i < 8; i++) {
		CHECK(collnet_igather(t, block, NULL, sizeof(block), ranks - 1, &o, &r[i]) ==
		      COLLNET_OK);
	}
	write_pid(file);
	alarm(120);
	for (;;) {
		pause();
	}
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr,
			"usage: api sizes|mismatch|teams|endpoints|missing LIST|wait FILE|stuck FILE\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (collnet_open(NULL, &c) != COLLNET_OK) {
		fprintf(stderr, "api: %s\n", collnet_error(NULL));
		return 1;
	}
	if (strcmp(argv[1], "missing") == 0 && argc == 3) {
		return missing(argv[2]);
	}
	if (collnet_team_create(c, NULL, &t) != COLLNET_OK) {
		fprintf(stderr, "api: %s\n", collnet_error(c));
		return 1;
	}
	rank = collnet_team_rank(t);
	ranks = collnet_team_size(t);
	if (strcmp(argv[1], "wait") == 0 && argc == 3) {
		return wait_for_rank_2(argv[2]);
	}
	if (strcmp(argv[1], "stuck") == 0 && argc == 3) {
		stuck(argv[2]);
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "sizes") == 0) {
			sizes();
		} else if (strcmp(argv[i], "mismatch") == 0) {
			mismatch();
		} else if (strcmp(argv[i], "teams") == 0) {
			teams();
		} else if (strcmp(argv[i], "endpoints") == 0) {
			endpoints();
		} else {
			fprintf(stderr, "api: what is %s?\n", argv[i]);
			return 2;
		}
		printf("rank %u: %s: done\n", rank, argv[i]);
	}
	collnet_close(c);
	return 0;
}
