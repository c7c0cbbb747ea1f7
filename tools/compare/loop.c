/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measuring loop. Commands on rank 0's standard input:
 *
 *   measure OP BYTES ITERATIONS WARMUP SEED SERIAL HOLD
 *   quit
 *
 * and its replies, each after LOOP_MARK:
 *
 *   ready RANKS NODES one-clock|own-clocks VERSION       after the start
 *   wrong TEXT                                           the first wrong byte of a measurement
 *   result MEDIAN MIN MAX right|wrong                    nanoseconds of an iteration
 *
 * Before an iteration every rank fills its buffers, with bytes unique to the iteration, and waits
 * in a barrier; then it makes the timed call; then it checks all bytes that it received. The times
 * stay on their ranks until the last iteration is over.
 *
 * Ranks leave a barrier one after another. The first ones call before the last one, and their data
 * is in flight, or has arrived, when the last one calls; it may even fill the ports so that the
 * barrier's own messages to the others wait. With HOLD, in microseconds, rank 0 therefore
 * broadcasts a start time so far ahead, at which all call and the time begins: this requires one
 * clock.
 */
#include "tools/compare/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/pattern.h"

#define LINE 256

/* What rank 0 announces. */
struct command {
	enum loop_op op;		   /* LOOP_OPS: the end */
	uint32_t iterations, warmup, hold; /* microseconds; 0: none */
	uint64_t bytes, seed, serial;
};

/* What every rank gathers at rank 0 after a measurement, before its times. */
struct findings {
	uint64_t wrong, source, offset, want, got;
};
#define FINDINGS (sizeof(struct findings) / sizeof(uint64_t))

struct loop {
	const struct loop_library *lib;
	FILE *in, *out;
	uint32_t rank, ranks;
	int one_clock;
	uint8_t *send, *recv;
	size_t send_size, recv_size;
	struct loop_layout to, from; /* of the operation that is measured */
	uint64_t *moment;	     /* of the common call; memory of the library */
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* ---- the start ------------------------------------------------------------------------ */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int complain(const struct loop *l, const char *what, const char *why)
{
	fprintf(stderr, "collnet compare: rank %" PRIu32 ": %s%s%s\n", l->rank, what,
		why != NULL ? ": " : "", why != NULL ? why : "");
	return 1;
}

static int failed(const struct loop *l, const char *what)
{
	return complain(l, what, l->lib->error());
}

static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text != '\0'; text++) {
		h = (h ^ (uint8_t)*text) * 0x100000001b3u;
	}
	return h;
}

/* Equal on ranks whose CLOCK_MONOTONIC is the same: one boot of one kernel, one time namespace. */
static uint64_t clock_identity(void)
{
	char boot[64] = "";
	struct stat st = { 0 };
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
	bool known = f != NULL && fgets(boot, sizeof(boot), f) != NULL;

	if (f != NULL) {
		fclose(f);
	}
	if (!known) {
		return now(); /* no other rank's */
	}
	(void)stat("/proc/self/ns/time", &st); /* older kernels have no time namespaces */
	return hash(st.st_ino, boot);
}

/* Gathers n numbers of every rank at rank 0: a new array, rank after rank, or NULL elsewhere. */
static int gather(const struct loop *l, const uint64_t *mine, size_t n, uint64_t **all)
{
	size_t bytes = n * sizeof(*mine);
	void *send = l->lib->alloc(bytes), *recv = l->lib->alloc(bytes * l->ranks);
	int rc;

	*all = NULL;
	if (send == NULL || recv == NULL) {
		return failed(l, "a buffer for results");
	}
	memcpy(send, mine, bytes);
	rc = l->lib->ops[LOOP_GATHER](&(struct loop_call){ send, recv, bytes, NULL, NULL });
	if (rc != 0) {
		failed(l, "gathering results");
	} else if (l->rank == 0) {
		*all = malloc(bytes * l->ranks);
		if (*all != NULL) {
			memcpy(*all, recv, bytes * l->ranks);
		}
		rc = *all == NULL;
	}
	l->lib->free(send);
	l->lib->free(recv);
	return rc;
}

/* Where the ranks run. Rank 0 alone knows; it decides what all report. */
static int greet(struct loop *l)
{
	char host[256] = "";
	uint64_t mine[2], *all;
	uint32_t r, q, nodes = 0;
	int rc;

	gethostname(host, sizeof(host) - 1);
	mine[0] = clock_identity();
	mine[1] = hash(0, host);
	rc = gather(l, mine, 2, &all);
	if (rc != 0 || l->rank != 0) {
		return rc;
	}
	l->one_clock = 1;
	for (r = 0; r < l->ranks; r++) {
		for (q = 0; q < r && all[2 * q + 1] != all[2 * r + 1]; q++) {
		}
		nodes += q == r;
		l->one_clock = l->one_clock && all[2 * r] == all[0];
	}
	free(all);
	fprintf(l->out, LOOP_MARK "ready %" PRIu32 " %" PRIu32 " %s %s\n", l->ranks, nodes,
		l->one_clock ? "one-clock" : "own-clocks", l->lib->version());
	return fflush(l->out) != 0;
}

/* ---- one measurement ------------------------------------------------------------------ */

/* What `source` sends to `destination`. */
static struct bench_pattern block(const struct command *c, uint64_t serial, uint32_t source,
				  uint32_t destination)
{
	return bench_pattern(c->seed, serial, source, loop_destination(c->op, destination));
}

static void fill(const struct loop *l, const struct command *c, uint64_t serial)
{
	uint32_t i;

	for (i = 0; i < l->to.n; i++) {
		struct bench_pattern p = block(c, serial, l->rank, i);

		bench_pattern_fill(&p, l->send + l->to.at[i], l->to.bytes[i]);
	}
	for (i = 0; i < l->from.n; i++) {
		struct bench_pattern p = block(c, serial, loop_source(c->op, i), l->rank);

		if (c->op == LOOP_BCAST && l->rank == 0) {
			bench_pattern_fill(&p, l->recv, c->bytes);
		} else {
			bench_pattern_poison(&p, l->recv + l->from.at[i], l->from.bytes[i]);
		}
	}
}

/* Of a reduction each byte is the exclusive or of the ranks'. A wrong one is reported of rank 0's
 * block. */
static void check_reduced(const struct loop *l, const struct command *c, uint64_t serial,
			  struct findings *found)
{
	uint8_t *want = calloc(2, c->bytes), *one;
	uint64_t at;

	if (want == NULL) { /* not checked is not right */
		found->wrong = 1;
		return;
	}
	one = want + c->bytes;
	for (uint32_t r = 0; r < loop_operands(c->op, l->rank, l->ranks); r++) {
		struct bench_pattern p = block(c, serial, r, l->rank);

		bench_pattern_fill(&p, one, c->bytes);
		for (at = 0; at < c->bytes; at++) {
			want[at] ^= one[at];
		}
	}
	for (at = 0; at < c->bytes && !found->wrong; at++) {
		if (l->recv[at] != want[at]) {
			*found = (struct findings){ 1, 0, at, want[at], l->recv[at] };
		}
	}
	free(want);
}

/* The first wrong byte of the measurement is kept. */
static void check(const struct loop *l, const struct command *c, uint64_t serial,
		  struct findings *found)
{
	uint32_t i;
	size_t at;

	for (i = 0; i < l->from.n && !found->wrong; i++) {
		struct bench_pattern p = block(c, serial, loop_source(c->op, i), l->rank);
		const uint8_t *data = l->recv + l->from.at[i];

		if (loop_op_reduces(c->op)) {
			check_reduced(l, c, serial, found);
		} else if (!bench_pattern_check(&p, data, l->from.bytes[i], &at)) {
			found->wrong = 1;
			found->source = loop_source(c->op, i);
			found->offset = at;
			found->want = bench_pattern_byte(&p, at);
			found->got = data[at];
		}
	}
}

/* Makes a buffer large enough; one that grows is replaced. */
static int grow(const struct loop *l, uint8_t **buffer, size_t *size, uint64_t bytes)
{
	if (*buffer != NULL && *size >= bytes) {
		return 0;
	}
	if (*buffer != NULL) {
		l->lib->free(*buffer);
	}
	*size = bytes > 0 ? bytes : 1;
	*buffer = l->lib->alloc(*size);
	return *buffer == NULL ? failed(l, "a buffer") : 0;
}

/* The ranks go on together. */
static int hold(const struct loop *l, uint32_t us)
{
	const struct loop_call call = { l->moment, l->moment, sizeof(*l->moment), NULL, NULL };
	struct timespec t;
	int rc;

	*l->moment = now() + (uint64_t)us * 1000;
	rc = l->lib->ops[LOOP_BCAST](&call);
	if (rc != 0) {
		return failed(l, "broadcast");
	}
	t.tv_sec = (time_t)(*l->moment / 1000000000u);
	t.tv_nsec = (long)(*l->moment % 1000000000u);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
	}
	return 0;
}

/* All iterations; times[2 i] and times[2 i + 1] are call and return of the counted one i. */
static int iterate(const struct loop *l, const struct command *c, uint64_t *times,
		   struct findings *found)
{
	const struct loop_call call = { l->send, l->recv, c->bytes, &l->to, &l->from };
	loop_fn *op = l->lib->ops[c->op];
	uint64_t i, from, to;

	for (i = 0; i < (uint64_t)c->warmup + c->iterations; i++) {
		fill(l, c, c->serial + i);
		if (l->lib->ops[LOOP_BARRIER](&call) != 0) {
			return failed(l, "barrier");
		}
		if (c->hold > 0 && hold(l, c->hold) != 0) {
			return 1;
		}
		from = c->hold > 0 ? *l->moment : now();
		if (op(&call) != 0) {
			return failed(l, loop_op_name(c->op));
		}
		to = now();
		check(l, c, c->serial + i, found);
		if (i >= c->warmup) {
			times[2 * (i - c->warmup)] = from;
			times[2 * (i - c->warmup) + 1] = to;
		}
	}
	return 0;
}

/* On rank 0, from what all ranks found. */
static void report(const struct loop *l, const struct command *c, const uint64_t *all)
{
	size_t row = FINDINGS + 2 * (size_t)c->iterations, n = c->iterations;
	uint64_t *ns = calloc(n, sizeof(*ns)), *call = calloc(l->ranks, sizeof(*call));
	uint64_t *ret = calloc(l->ranks, sizeof(*ret));
	bool right = true;
	uint32_t r;
	size_t i;

	for (r = 0; r < l->ranks && right; r++) {
		const uint64_t *f = all + r * row; /* the members of struct findings */

		if (f[0] != 0) {
			fprintf(l->out,
				LOOP_MARK "wrong rank %" PRIu32 ", block from rank %" PRIu64
					  ", offset %" PRIu64 ": expected 0x%02" PRIx64
					  ", got 0x%02" PRIx64 "\n",
				r, f[1], f[2], f[3], f[4]);
			right = false;
		}
	}
	for (i = 0; i < n && ns != NULL && call != NULL && ret != NULL; i++) {
		for (r = 0; r < l->ranks; r++) {
			call[r] = all[r * row + FINDINGS + 2 * i];
			ret[r] = all[r * row + FINDINGS + 2 * i + 1];
		}
		ns[i] = loop_time(c->op, l->one_clock, call, ret, l->ranks);
		if (right && c->op == LOOP_BARRIER && l->one_clock &&
		    !loop_barrier_is_valid(call, ret, l->ranks)) {
			fputs(LOOP_MARK "wrong a rank left the barrier before the last one "
					"entered it\n",
			      l->out);
			right = false;
		}
	}
	if (ns != NULL && n > 0) {
		qsort(ns, n, sizeof(*ns), by_value);
		fprintf(l->out, LOOP_MARK "result %.1f %" PRIu64 " %" PRIu64 " %s\n",
			((double)ns[(n - 1) / 2] + (double)ns[n / 2]) / 2, ns[0], ns[n - 1],
			right ? "right" : "wrong");
	}
	fflush(l->out);
	free(ns);
	free(call);
	free(ret);
}

static int measure(struct loop *l, const struct command *c)
{
	size_t n = FINDINGS + 2 * (size_t)c->iterations;
	uint64_t *mine = calloc(n, sizeof(*mine)), *all = NULL;
	struct findings found = { 0 };
	int rc;

	if (mine == NULL) {
		return complain(l, "no memory for times", NULL);
	}
	if (loop_layout(&l->to, c->op, true, c->seed, c->bytes, l->rank, l->ranks) != 0 ||
	    loop_layout(&l->from, c->op, false, c->seed, c->bytes, l->rank, l->ranks) != 0) {
		free(mine);
		return complain(l, "too many bytes", NULL);
	}
	rc = grow(l, &l->send, &l->send_size, l->to.total);
	rc = rc != 0 ? rc : grow(l, &l->recv, &l->recv_size, l->from.total);
	rc = rc != 0 ? rc : iterate(l, c, mine + FINDINGS, &found);
	memcpy(mine, &found, sizeof(found));
	rc = rc != 0 ? rc : gather(l, mine, n, &all);
	if (rc == 0 && l->rank == 0) {
		report(l, c, all);
	}
	free(all);
	free(mine);
	return rc;
}

/* ---- commands ------------------------------------------------------------------------- */

/* Anything that is not a measurement, and the end of the input, is the end. */
static void read_command(const struct loop *l, struct command *c)
{
	char line[LINE], op[16];

	memset(c, 0, sizeof(*c));
	c->op = LOOP_OPS;
	if (fgets(line, sizeof(line), l->in) == NULL ||
	    sscanf(line,
		   "measure %15s %" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64
		   " %" SCNu32,
		   op, &c->bytes, &c->iterations, &c->warmup, &c->seed, &c->serial,
		   &c->hold) != 7) {
		return;
	}
	c->op = loop_op_find(op);
}

int loop_run(const struct loop_library *lib, FILE *in, FILE *out)
{
	struct loop l = { .lib = lib, .in = in, .out = out };
	struct command c = { .op = LOOP_OPS };
	int rc = lib->open(&l.rank, &l.ranks);

	if (rc != 0) {
		fprintf(stderr, "collnet compare: %s\n", lib->error());
		return 1;
	}
	l.moment = lib->alloc(sizeof(*l.moment));
	rc = l.moment == NULL ? failed(&l, "a buffer") : greet(&l);
	while (rc == 0) {
		if (l.rank == 0) {
			read_command(&l, &c);
		}
		rc = lib->announce(&c, sizeof(c));
		if (rc != 0) {
			failed(&l, "waiting for a command");
		} else if (c.op >= LOOP_OPS) {
			break;
		} else {
			rc = measure(&l, &c);
		}
	}
	if (l.send != NULL) {
		lib->free(l.send);
	}
	if (l.recv != NULL) {
		lib->free(l.recv);
	}
	if (l.moment != NULL) {
		lib->free(l.moment);
	}
	loop_layout_free(&l.to);
	loop_layout_free(&l.from);
	lib->close();
	return rc;
}
