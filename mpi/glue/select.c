/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which operations of a served communicator collnet performs: those that it performs faster than
 * MPI itself, as the program's own calls show.
 *
 * For each operation and power of two of its block's bytes, the first calls of a team are trials,
 * by collnet and by MPI in turns. The first of each is not timed: it sets up connections and
 * memory. The others begin together, after a small reduction. The time of a trial is that of its
 * slowest rank, and the medians decide, after the first timed trial of each if one took DECISIVE_NS
 * or longer and DECISIVE_RATIO times as long as the other. The ranks exchange their times, so all
 * decide alike.
 *
 * Operations with a count per rank have one choice for all sizes, because a rank does not know the
 * others' counts. Operations whose result depends on the order in which the ranks' data is combined
 * are not tried: they are always collnet's, so that a run can be repeated.
 *
 * Non-blocking calls are not timed, because their time depends on what the program does meanwhile.
 * They follow the choice of the blocking ones; without one they are collnet's.
 */
#include <stdio.h>

#include "mpi/glue/glue.h"

#define DECISIVE_NS    2000000
#define DECISIVE_RATIO 4

/* How much faster than collnet MPI must be. */
#define MARGIN 1.05

/* Calls before the first timed trial, before an early decision, and in all. */
#define WARM_UP (2 * 1)
#define EARLY	(2 * 2)
#define CALLS	(2 * (1 + GLUE_TRIALS))

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

/* Of at most GLUE_TRIALS, an odd number. */
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
	return sorted[n / 2];
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

/* Decides if the trials so far suffice. */
static void settle(struct glue_comm *c, MPI_Comm comm, struct glue_choice *h, const char *name,
		   unsigned class)
{
	const unsigned n = h->calls == EARLY ? 1 : GLUE_TRIALS;
	int64_t slowest[2 * GLUE_TRIALS], took[2];

	for (unsigned i = 0; i < n; i++) {
		slowest[i] = -h->ns[GLUE_BY_COLLNET][i];
		slowest[n + i] = -h->ns[GLUE_BY_MPI][i];
	}
	if (c->mpi->min(c->self, slowest, (int)(2 * n), comm) != MPI_SUCCESS) {
		return;
	}
	took[GLUE_BY_COLLNET] = -median(slowest, n);
	took[GLUE_BY_MPI] = -median(slowest + n, n);
	h->by = (double)took[GLUE_BY_COLLNET] > MARGIN * (double)took[GLUE_BY_MPI]
			? GLUE_BY_MPI
			: GLUE_BY_COLLNET;
	const int64_t longer = took[!h->by], shorter = took[h->by];
	h->decided = h->calls == CALLS ||
		     (longer >= DECISIVE_NS && longer >= DECISIVE_RATIO * shorter);
	if (h->decided && c->rank == 0) {
		report(c, comm, h, name, class, took);
	}
}

bool glue_serves(const struct glue_call *k, enum glue_op op, size_t bytes)
{
	const unsigned class = class_of(bytes);
	struct glue_comm *c = k->c;
	struct glue_choice *h;
	int64_t together = 0;

	/* An operation with a count per rank may move any number of bytes. */
	if (!glue_decide(k, bytes == 0 && op != GLUE_Barrier ? COLLNET_BLOCK_MAX : bytes)) {
		return false;
	}
	if (always || c->nested) {
		return true;
	}
	h = &c->team->choices[op][class];
	if (k->nonblocking) {
		return !h->decided || h->by == GLUE_BY_COLLNET;
	}
	if (!h->decided && (h->calls == EARLY || h->calls == CALLS)) {
		settle(c, k->comm, h, name_of(op), class);
	}
	if (h->decided) {
		return h->by == GLUE_BY_COLLNET;
	}
	h->by = h->calls % 2 == 0 ? GLUE_BY_COLLNET : GLUE_BY_MPI;
	if (h->calls >= WARM_UP) {
		c->mpi->min(c->self, &together, 1, k->comm);
		c->trial = h;
		c->began = glue_now();
	}
	h->calls++;
	return h->by == GLUE_BY_COLLNET;
}

void glue_end(struct glue_comm *c)
{
	struct glue_choice *h;

	if (c == NULL || c->trial == NULL) {
		return;
	}
	h = c->trial;
	h->ns[h->by][(h->calls - WARM_UP - 1) / 2] = glue_now() - c->began;
	c->trial = NULL;
}
