/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The comparison: cell by cell, and in a cell round by round, every contender has a turn. The turns
 * of a round follow each other directly, and each round begins with another contender, so that
 * other load on the machines affects all of them equally.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/compare/command.h"

#define TRIAL 3 /* iterations before it is known how long one takes */

/* A library makes 268 calls of a short operation before its choice; of longer ones fewer. */
#define CHOICE_CALLS 300
#define CHOICE_TIME  (10000 * CN_MS)

/* "bcast of 1 KiB", "barrier" */
static const char *describe(const struct cell *cell, char out[2 * TOOL_TEXT])
{
	char size[TOOL_TEXT];

	snprintf(out, 2 * TOOL_TEXT, "%s%s%s", loop_op_name(cell->op),
		 cell->op == LOOP_BARRIER ? "" : " of ",
		 cell->op == LOOP_BARRIER ? "" : tool_format_size(cell->bytes, size));
	return out;
}

static void progress(const struct compare *c, const struct cell *cell, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void progress(const struct compare *c, const struct cell *cell, const char *fmt, ...)
{
	char what[2 * TOOL_TEXT];
	va_list ap;

	if (!isatty(STDERR_FILENO)) {
		return;
	}
	fputs("\r\033[K", stderr);
	if (fmt[0] != '\0') {
		fprintf(stderr, "cell %zu of %zu: %s, ", (size_t)(cell - c->cells) + 1, c->ncells,
			describe(cell, what));
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
	}
	fflush(stderr);
}

/* One turn: the median and the minimum of its iterations in microseconds; NAN when the contender
 * has failed. */
static double turn(struct compare *c, struct cell *cell, size_t contender, uint32_t iterations,
		   double *min)
{
	struct contender *t = &c->contenders[contender];
	const struct measure_options *m = &c->o->m;
	uint32_t warmup = m->warmup != MEASURE_DEFAULT ? m->warmup : iterations / 5 + 1;
	char line[512], what[2 * TOOL_TEXT], verdict[8] = "";
	double ns = NAN, least = NAN;

	*min = NAN;
	if (t->failed) {
		return NAN;
	}
	snprintf(line, sizeof(line),
		 "measure %s %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32
		 "\n",
		 loop_op_name(cell->op), cell->bytes, iterations, warmup, m->seed, c->serial,
		 cell->hold);
	c->serial += (uint64_t)iterations + warmup;
	if (!contender_send(t, line)) {
		return NAN;
	}
	do {
		if (!contender_receive(t, c->o->timeout_ms, line, sizeof(line))) {
			return NAN;
		}
		if (strncmp(line, "wrong ", 6) == 0 && !cell->wrong[contender]) {
			progress(c, cell, "%s", "");
			tool_complain("wrong: %s, %s, %s", compare_library_name(t->library),
				      describe(cell, what), line + 6);
		}
	} while (sscanf(line, "result %lf %lf %*s %7s", &ns, &least, verdict) != 3);
	if (strcmp(verdict, "right") != 0) {
		cell->wrong[contender] = c->bad = true;
	}
	*min = least / 1e3;
	return ns / 1e3;
}

/* The bytes by which an MPI library on collnet chooses: a block's, the mean; 0: it has one choice
 * for all. */
static uint64_t choice_bytes(const struct compare *c, const struct cell *cell)
{
	struct loop_layout l = { 0 };
	uint64_t bytes = cell->bytes;

	if (cell->op == LOOP_ALLTOALLV || cell->op == LOOP_GATHERV) {
		return 0;
	}
	if (cell->op == LOOP_ALLGATHERV && loop_layout(&l, cell->op, false, c->o->m.seed, bytes, 0,
						       c->nhosts * c->o->ranks_per_node) == 0) {
		bytes = (l.total + l.n - 1) / l.n;
	}
	loop_layout_free(&l);
	return bytes;
}

/*
 * An MPI library on collnet performs its first calls itself, or by collnet, before it compares
 * both. Lets it make as many as that takes, so that the rounds measure what it has chosen. The
 * result: how long an iteration takes then.
 */
static double choose(struct compare *c, struct cell *cell, size_t contender, double us)
{
	const struct contender *t = &c->contenders[contender];
	const uint64_t bytes = choice_bytes(c, cell);
	const cn_time until = cn_now() + CHOICE_TIME;
	const char **by = &cell->by[contender];
	char what[2 * TOOL_TEXT];
	uint32_t n, calls = 0;
	double min;

	*by = contender_choice(t, cell->op, bytes);
	while (*by == NULL && !t->failed && calls < CHOICE_CALLS && cn_now() < until) {
		progress(c, cell, "choice of %s", t->key);
		n = cell_iterations(us);
		us = turn(c, cell, contender, n, &min);
		calls += n;
		*by = contender_choice(t, cell->op, bytes);
	}
	if (*by == NULL && !t->failed) {
		progress(c, cell, "%s", "");
		tool_complain("%s (%s), %s: the choice between collnet and MPI is not made",
			      compare_library_name(t->library), t->key, describe(cell, what));
	}
	return calls == 0 ? us : turn(c, cell, contender, TRIAL, &min);
}

/*
 * How many iterations the turns have, and whether ranks wait for one moment, from a first turn of
 * every contender, which is not counted. A slow library must not leave a fast one so few that
 * waking up is most of its time.
 */
static void prepare(struct compare *c, struct cell *cell)
{
	const bool given = c->o->m.iterations != MEASURE_DEFAULT;
	double min, us, longest = 0;

	for (size_t i = 0; i < c->ncontenders; i++) {
		const bool chooses = cell_on_collnet(cell->library[i]);

		cell->iterations[i] = c->o->m.iterations;
		if (given && !c->one_clock && !chooses) {
			continue;
		}
		progress(c, cell, "trial of %s", c->contenders[i].key);
		us = turn(c, cell, i, TRIAL, &min);
		us = chooses ? choose(c, cell, i, us) : us;
		longest = fmax(longest, us); /* which passes over NAN */
		if (!given) {
			cell->iterations[i] = cell_iterations(us);
		}
	}
	cell->hold = c->one_clock ? cell_start_delay(longest) : 0;
}

static int measure(struct compare *c, struct cell *cell)
{
	double min;

	prepare(c, cell);
	for (uint32_t round = 0; round < cell->rounds; round++) {
		for (size_t k = 0; k < c->ncontenders && !compare_interrupted(); k++) {
			size_t i = (k + round) % c->ncontenders;

			progress(c, cell, "round %u of %u: %s", round + 1, cell->rounds,
				 c->contenders[i].key);
			cell->us[i][round] = turn(c, cell, i, cell->iterations[i], &min);
			cell->min_us[i] = fmin(cell->min_us[i], min);
			if (c->contenders[i].failed) {
				c->bad = true;
			}
		}
		if (c->contenders[0].failed || compare_interrupted()) {
			return TOOL_FAILED;
		}
	}
	progress(c, cell, "%s", "");
	return compare_report_cell(c, cell);
}

static void add_cell(struct compare *c, enum loop_op op, uint64_t bytes)
{
	struct cell *cell = &c->cells[c->ncells++];

	cell->op = op;
	cell->bytes = bytes;
	cell->rounds = c->o->rounds;
	cell->contenders = (uint32_t)c->ncontenders;
	for (size_t i = 0; i < c->ncontenders; i++) {
		cell->library[i] = c->contenders[i].library;
		cell->min_us[i] = NAN;
	}
}

int compare_run(struct compare *c)
{
	const struct measure_options *m = &c->o->m;
	int rc = compare_report_begin(c);

	c->cells = calloc(c->o->nops * m->nsizes, sizeof(*c->cells));
	if (c->cells == NULL) {
		tool_complain("no memory");
		return TOOL_FAILED;
	}
	for (size_t op = 0; op < c->o->nops; op++) {
		if (c->o->ops[op] == LOOP_BARRIER) {
			add_cell(c, LOOP_BARRIER, 0);
			continue;
		}
		for (size_t s = 0; s < m->nsizes; s++) {
			add_cell(c, c->o->ops[op], m->sizes[s]);
		}
	}
	for (size_t i = 0; i < c->ncells && rc == TOOL_OK; i++) {
		rc = measure(c, &c->cells[i]);
	}
	for (size_t i = 0; i < c->ncontenders; i++) {
		const struct contender *t = &c->contenders[i];

		if (cell_on_collnet(t->library) && !t->failed && !contender_used_collnet(t)) {
			c->bad = true;
		}
	}
	return rc == TOOL_OK ? compare_report_end(c) : rc;
}
