/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which operations of a served communicator collnet performs: those that it performs faster than
 * MPI itself, as the program's own calls show.
 *
 * For each operation and power of two of its block's bytes, the first calls of a team are trials,
 * by collnet and by MPI in turns. If the blocks are small, trials begin only after UNTRIED calls by
 * collnet: programs make a few small calls of many sizes when they start, and a trial costs more
 * than such a call. Before each, a small reduction lets the ranks begin together and
 * tells them the time of the slowest rank in the trial before, so all decide alike. The first trial
 * of each side sets up connections and memory. The medians of the others decide after GLUE_TRIALS
 * of them, or as soon as one side is clearly slower: the longer a call, the smaller the difference
 * that suffices, because trials of the slower side cost more and the first trial and the scheduler
 * disturb it less.
 *
 * Operations with a count per rank have one choice for all sizes, because a rank does not know the
 * others' counts. Operations whose result depends on the order in which the ranks' data is combined
 * are not tried: they are always collnet's, so that a run can be repeated.
 *
 * Non-blocking and persistent calls are not timed, because their time depends on what the program
 * does meanwhile. They follow the choice of the blocking ones; without one they are collnet's.
 */
#include <stdio.h>

#include "mpi/glue/glue.h"

/* One side is clearly slower if a call of it takes `ns` or longer and `ratio` times as long as one
 * of the other, after `trials` of each without the first. */
static const struct {
	unsigned trials;
	int64_t ns;
	double ratio;
} clear[] = {
	{ 0, 100000000, 1.25 },
	{ 1, 100000000, 1.1 },
	{ 1, 20000000, 1.5 },
	{ 1, 2000000, 4 },
};

#define UNTRIED	      32
#define UNTRIED_BYTES (16u << 10) /* of a block; smaller ones are small */

/* How much faster than collnet MPI must be. */
#define MARGIN 1.05

static bool always;

void glue_set_select(const char *how)
{
	always = how != NULL && how[0] == 'a';
}

static const char *name_of(enum glue_op op)
{
	static const char *const names[] = {
#define X(name) #name,
		GLUE_EACH_OP(X)
#undef X
	};

	return names[op];
}

static unsigned class_of(size_t bytes)
{
	unsigned class = 0;

	while (bytes > 1 && class < GLUE_CLASSES - 1) {
		bytes /= 2;
		class ++;
	}
	return class;
}

/* Of 1 to GLUE_TRIALS numbers; of an even number of them the lower middle one. */
static int64_t median(const int64_t *v, unsigned n)
{
	int64_t sorted[GLUE_TRIALS];

	for (unsigned i = 0; i < n; i++) {
		unsigned at = i;

		for (; at > 0 && sorted[at - 1] > v[i]; at--) {
			sorted[at] = sorted[at - 1];
		}
		sorted[at] = v[i];
	}
	return sorted[(n - 1) / 2];
}

static void report(const struct glue_comm *c, MPI_Comm comm, const struct glue_choice *h,
		   const char *name, unsigned class, const int64_t took[2])
{
	char text[160], size[64] = "";

	if (class > 0) {
		snprintf(size, sizeof(size), " of %lu bytes and more", 1ul << class);
	}
	snprintf(text, sizeof(text), "MPI_%s%s: collnet %.1f us, MPI %.1f us: by %s", name, size,
		 (double)took[GLUE_BY_COLLNET] / 1e3, (double)took[GLUE_BY_MPI] / 1e3,
		 h->by == GLUE_BY_COLLNET ? "collnet" : "MPI");
	glue_explain(c, comm, 2, text);
}

static bool is_clear(unsigned trials, int64_t longer, int64_t shorter)
{
	for (size_t i = 0; i < sizeof(clear) / sizeof(clear[0]); i++) {
		if (trials >= clear[i].trials && longer >= clear[i].ns &&
		    (double)longer >= clear[i].ratio * (double)shorter) {
			return true;
		}
	}
	return false;
}

/* Both sides have had equally many trials: decides if they suffice. */
static void settle(const struct glue_comm *c, MPI_Comm comm, struct glue_choice *h,
		   const char *name, unsigned class)
{
	const unsigned trials = h->calls / 2 - 1; /* without the first */
	int64_t took[2];

	for (int by = 0; by < 2; by++) {
		took[by] = trials > 0 ? median(h->ns[by] + 1, trials) : h->ns[by][0];
	}
	h->by = (double)took[GLUE_BY_COLLNET] > MARGIN * (double)took[GLUE_BY_MPI]
			? GLUE_BY_MPI
			: GLUE_BY_COLLNET;
	h->decided = trials == GLUE_TRIALS || is_clear(trials, took[!h->by], took[h->by]);
	if (h->decided && c->rank == 0) {
		report(c, comm, h, name, class, took);
	}
}

/* All ranks come to the next trial, or to the call after the last one. */
static void begin_together(const struct glue_comm *c, MPI_Comm comm, struct glue_choice *h)
{
	int64_t slowest = -h->latest;

	c->mpi->min(c->self, &slowest, 1, comm);
	if (h->calls > 0) {
		h->ns[h->by][(h->calls - 1) / 2] = -slowest;
	}
}

bool glue_serves(struct glue_call *k, enum glue_op op, size_t bytes)
{
	const unsigned class = class_of(bytes);
	struct glue_comm *c = k->c;
	struct glue_choice *h;

	/* An operation with a count per rank may move any number of bytes. */
	bytes = bytes == 0 && op != GLUE_Barrier ? COLLNET_BLOCK_MAX : bytes;
	if (!glue_decide(k, bytes)) {
		return false;
	}
	if (always) {
		return true;
	}
	h = &c->team->choices[op][class];
	if (k->nonblocking || k->persistent) {
		return !h->decided || h->by == GLUE_BY_COLLNET;
	}
	if (bytes < UNTRIED_BYTES && h->untried < UNTRIED) {
		h->untried++;
		return true;
	}
	if (!h->decided) {
		begin_together(c, k->comm, h);
	}
	if (!h->decided && h->calls > 0 && h->calls % 2 == 0) {
		settle(c, k->comm, h, name_of(op), class);
	}
	if (!h->decided) {
		h->by = h->calls % 2 == 0 ? GLUE_BY_COLLNET : GLUE_BY_MPI;
		h->calls++;
		c->trial = h;
		c->began = glue_now();
	}
	return h->by == GLUE_BY_COLLNET;
}

void glue_end(struct glue_comm *c)
{
	if (c != NULL && c->trial != NULL) {
		c->trial->latest = glue_now() - c->began;
		c->trial = NULL;
	}
}
