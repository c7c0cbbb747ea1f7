/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which operations of a served communicator collnet performs: those that it performs faster than
 * MPI itself, as the program's own calls show.
 *
 * For each operation and power of two of its block's bytes, early calls of a team are trials, by
 * collnet and by MPI in turns. The very first calls are not: programs make a few small calls of
 * many sizes when they start, and a trial costs more than such a call; and those that measure their
 * own first calls, such as FFTW's planner, would measure trials. Before each trial, a small
 * reduction lets the ranks begin together and tells them the time of the slowest rank in the trial
 * before, so all decide alike. The first trial of each side sets up connections and memory. The
 * others decide after GLUE_TRIALS of them, or as soon as one side is clearly slower: the longer a
 * call, the smaller the difference that suffices, because trials of the slower side cost more and
 * the first trial and the scheduler disturb it less. If both are equally fast, collnet performs the
 * call, because it loses no frames and therefore has no long timeouts; but not where processors are
 * the limit.
 *
 * A clear choice also applies to communicators of as many ranks on as many nodes, if all their
 * ranks have seen it. While trials are in progress elsewhere, such a communicator makes none.
 * Otherwise programs that divide their ranks into rows and columns would repeat the trials in each.
 *
 * collnet performs untried calls, except short calls of ranks that have a node each, which MPI
 * performs: two process switches, to a daemon and back, take longer than collnet saves on the link.
 * The limit of short calls depends on the link's rate. MPI also performs untried calls that are
 * not small on links of 1 Gbit/s or more, where collnet saves least.
 *
 * Operations with a count per rank have one choice for all sizes, because a rank does not know the
 * others' counts; except an allgather, whose ranks know all counts. Before a trial, the ranks also
 * agree on the most bytes that one of them sends or receives, and the two trials of a pair move
 * about as many. Otherwise, where calls of two lengths alternate, those of one length would be
 * collnet's, and those of the other MPI's. Long calls decide, unless they are rare.
 *
 * Operations whose result depends on the order in which the ranks' data is combined are not tried,
 * so that a run can be repeated. Of these, only short blocking allreduces are MPI's.
 *
 * Non-blocking and persistent calls are not timed, because their time depends on what the program
 * does meanwhile. They follow the choice of the blocking ones; without one they are collnet's.
 */
#include <stdio.h>
#include <string.h>

#include "mpi/glue/glue.h"

/* One side is clearly slower if a call of it takes `ns` or longer and `ratio` times as long as one
 * of the other, after `trials` of each without the first; but not yet collnet after its first. */
static const struct {
	unsigned trials;
	int64_t ns;
	double ratio;
} clear[] = {
	{ 0, 100000000, 1.25 }, { 1, 100000000, 1.1 }, { 1, 20000000, 1.5 },
	{ 1, 2000000, 4 },	{ 2, 2000000, 1.5 },
};

/* Calls before the trials: of blocks of GLUE_UNTRIED_BYTES or more, and of smaller ones. */
#define UNTRIED_LONG 10
#define UNTRIED	     32

/* Of short ones: a program that makes fewer pays for no trials, which cost up to 30 such calls. */
#define UNTRIED_SHORT 256

/* From so many trials of each on, calls are MPI's if collnet takes this many times as long. */
#define SLOW_TRIALS 2
#define SLOW_RATIO  1.5

/* How much faster than collnet MPI must be. */
#define MARGIN 1.05

/* Calls of less than BUSY_NS on fast links, where ranks wait for processors for a share of
 * BUSY_SHARE thousandths of the time: collnetd takes processors from ranks that compute, so a call
 * costs more than the time in it; and times scatter, so a median is often lower by chance. collnet
 * must be faster by BUSY_MARGIN, and slower in at most LOST_MAX of GLUE_TRIALS pairs of trials. */
#define BUSY_NS	    20000000
#define BUSY_SHARE  250
#define BUSY_MARGIN 2.0
#define BUSY_TRIALS 4
#define LOST_MAX    1

/* The trials of a pair differ by this part of their bytes at most. So many calls in a row are not
 * tried because they differ more from those that are; then trials begin again, once. */
#define UNLIKE_SHARE 8
#define UNLIKE_MAX   32

/* Trials of shorter calls are seldom clear. */
#define LONG_NS 2000000

/* A call that is MPI's without a trial has at most so many bytes, or what the link carries in this
 * time. */
#define SHORT_BYTES 1024
#define SHORT_US    50

/* These are short on links of 1 Gbit/s, and such links are fast. */
#define FAST_SHORT_BYTES (SHORT_US * 125)

/* So many calls of a communicator wait for the trials of others. */
#define DEFERRED (2 * (1 + GLUE_TRIALS))

static bool always;

void glue_set_select(const char *how, const char *name)
{
	always = how != NULL && strcmp(how, "always") == 0;
	if (how != NULL && how[0] != '\0' && !always && strcmp(how, "measured") != 0 &&
	    name != NULL) {
		fprintf(stderr,
			"collnet: %s is '%.40s': expected measured or always; measured is used\n",
			name, how);
	}
}

bool glue_is_always(void)
{
	return always;
}

const char *glue_op_name(enum glue_op op)
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
	int64_t sorted[GLUE_TRIALS] = { 0 };

	for (unsigned i = 0; i < n; i++) {
		unsigned at = i;

		for (; at > 0 && sorted[at - 1] > v[i]; at--) {
			sorted[at] = sorted[at - 1];
		}
		sorted[at] = v[i];
	}
	return sorted[(n - 1) / 2];
}

/* What trials are of. */
struct trial {
	struct glue_choice *choice;
	atomic_uchar *found; /* by communicators alike; NULL: unknown */
	enum glue_op op;
	unsigned class;
	size_t bytes; /* of this rank's block, or with a count per rank of all its blocks */
};

/* Why the choice is what it is. */
static void report(const struct glue_call *k, const struct trial *t, const char *why)
{
	char text[200], size[64] = "";

	if (k->c->rank != 0) {
		return;
	}
	if (t->class > 0) {
		snprintf(size, sizeof(size), " of %lu bytes and more", 1ul << t->class);
	}
	snprintf(text, sizeof(text), "MPI_%s%s: %s: by %s", glue_op_name(t->op), size, why,
		 t->choice->by == GLUE_BY_COLLNET ? "collnet" : "MPI");
	glue_explain(k->c, k->comm, 2, text);
}

/* What pairs of trials have found; without the first pair, if there are others. */
struct comparison {
	int64_t took[2]; /* medians */
	unsigned pairs;
	unsigned faster; /* in so many of them collnet was */
	bool busy;	 /* processors are the limit */
};

static struct comparison compare(const struct glue_choice *h)
{
	const unsigned first = h->calls > 2 ? 1 : 0;
	struct comparison x = { .pairs = h->calls / 2 - first };

	for (int by = 0; by < 2; by++) {
		x.took[by] = median(h->ns[by] + first, x.pairs);
	}
	for (unsigned i = first; i < first + x.pairs; i++) {
		x.faster += h->ns[GLUE_BY_COLLNET][i] < h->ns[GLUE_BY_MPI][i];
	}
	x.busy = h->busy && x.took[GLUE_BY_MPI] < BUSY_NS;
	return x;
}

static enum glue_by faster(const struct comparison *x)
{
	const double collnet = (double)x->took[GLUE_BY_COLLNET], mpi = (double)x->took[GLUE_BY_MPI];
	const unsigned lost_max = x->pairs == GLUE_TRIALS ? LOST_MAX : 0;
	const bool by_mpi = x->busy ? collnet * BUSY_MARGIN > mpi || x->pairs - x->faster > lost_max
				    : collnet > MARGIN * mpi;

	return by_mpi ? GLUE_BY_MPI : GLUE_BY_COLLNET;
}

static void report_times(const struct glue_call *k, const struct trial *t,
			 const struct comparison *x)
{
	char why[120];

	snprintf(why, sizeof(why), "collnet %.1f us (faster in %u of %u%s), MPI %.1f us",
		 (double)x->took[GLUE_BY_COLLNET] / 1e3, x->faster, x->pairs,
		 x->busy ? "; ranks wait for processors" : "", (double)x->took[GLUE_BY_MPI] / 1e3);
	report(k, t, why);
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

/* Trials of a collnet that is much slower, or too often to be chosen, end early also where the
 * calls are short: if that is wrong, they are what they would be without collnet. */
static bool is_slow(const struct comparison *x, unsigned trials)
{
	return trials >= SLOW_TRIALS &&
	       ((x->busy && x->pairs - x->faster > LOST_MAX) ||
		(double)x->took[GLUE_BY_COLLNET] >= SLOW_RATIO * (double)x->took[GLUE_BY_MPI]);
}

static void note(const struct trial *t, enum glue_found found)
{
	if (t->found != NULL) {
		*t->found = (unsigned char)found;
	}
}

/* Both sides have had equally many trials: decides if they suffice. */
static void settle(const struct glue_call *k, const struct trial *t)
{
	struct glue_choice *h = t->choice;
	const unsigned trials = h->calls / 2 - 1; /* without the first */
	const struct comparison x = compare(h);
	bool clearly;

	h->by = faster(&x);
	/* A program's start disturbs the first one by collnet, and it sets up more than MPI's. */
	clearly = is_clear(trials, x.took[!h->by], x.took[h->by]) &&
		  (h->by == GLUE_BY_COLLNET ? !x.busy || trials >= BUSY_TRIALS : trials > 0);
	h->decided = clearly || trials == GLUE_TRIALS || is_slow(&x, trials);
	if (h->decided) {
		note(t, !clearly		   ? GLUE_NOTHING
			: h->by == GLUE_BY_COLLNET ? GLUE_CLEARLY_COLLNET
						   : GLUE_CLEARLY_MPI);
		report_times(k, t, &x);
	}
}

static bool is_fast(const struct glue_comm *c)
{
	return c->short_bytes >= FAST_SHORT_BYTES;
}

/* How long this thread has waited for a processor, in ns; 0: the kernel does not tell. */
static int64_t run_delay(void)
{
	long long ran, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f == NULL) {
		return 0;
	}
	if (fscanf(f, "%lld %lld", &ran, &waited) != 2) {
		waited = 0;
	}
	fclose(f);
	return waited;
}

/* What share of the time since its first trial this rank has waited, in thousandths; 0 on slow
 * links, where it does not count. */
static int64_t waited_share(const struct glue_call *k, struct glue_choice *h)
{
	int64_t now, delay;

	if (!is_fast(k->c)) {
		return 0;
	}
	now = glue_now();
	delay = run_delay();
	if (h->calls == 0) {
		h->since = now;
		h->delay = delay;
		return 0;
	}
	return now > h->since ? (delay - h->delay) * 1000 / (now - h->since) : 0;
}

/*
 * All ranks come to the next trial, or to the call after the last one. *alike: what all of them
 * have found in communicators alike; in trials, if one still tries. *bytes: of the rank that has
 * most.
 */
static void begin_together(struct glue_call *k, const struct trial *t, enum glue_found *alike,
			   int64_t *bytes)
{
	struct glue_choice *h = t->choice;
	const int64_t found = t->found != NULL ? *t->found : GLUE_NOTHING;
	int64_t v[] = { -h->latest, found, -found, -waited_share(k, h), -(int64_t)t->bytes };

	*alike = GLUE_NOTHING;
	*bytes = 0;
	if (glue_min(k, v, 5) != MPI_SUCCESS) {
		h->decided = true;
		h->by = GLUE_BY_COLLNET; /* the call itself will tell why */
		return;
	}
	if (h->calls > 0) {
		h->ns[(h->calls - 1) % 2][(h->calls - 1) / 2] = -v[0];
		h->busy = -v[3] >= BUSY_SHARE;
	}
	*bytes = -v[4];
	if (v[1] == -v[2] || (v[1] != GLUE_NOTHING && -v[2] == GLUE_IN_TRIALS)) {
		*alike = (enum glue_found)(-v[2]);
	}
}

/* No trial was made yet: decides as communicators alike. False: they still try. */
static bool settle_alike(const struct glue_call *k, const struct trial *t, enum glue_found alike)
{
	struct glue_choice *h = t->choice;

	if (alike == GLUE_IN_TRIALS && h->deferred < DEFERRED) {
		h->deferred++;
		return false;
	}
	if (alike == GLUE_CLEARLY_COLLNET || alike == GLUE_CLEARLY_MPI) {
		h->decided = true;
		h->by = alike == GLUE_CLEARLY_COLLNET ? GLUE_BY_COLLNET : GLUE_BY_MPI;
		report(k, t, "as in a communicator alike");
	}
	return true;
}

/* Whether a call is about as long as those that are tried; the second one of a pair as the first.
 */
static bool is_alike(const struct glue_choice *h, int64_t bytes)
{
	const unsigned class = class_of((size_t)bytes);
	const int64_t more = bytes - h->pair_bytes;

	if (h->calls % 2 == 0) {
		return h->calls == 0 || (class + 1 >= h->class && class <= h->class + 1);
	}
	return (more < 0 ? -more : more) <= h->pair_bytes / UNLIKE_SHARE;
}

/* Whether a call is tried. With a longer one, trials begin again; with a shorter one if too few are
 * as long as those that were tried, and then with none that is longer. */
static bool is_comparable(struct glue_choice *h, int64_t bytes)
{
	const unsigned class = class_of((size_t)bytes);
	const bool alike = is_alike(h, bytes), longer = class > h->class + 1 && h->unlike_rows == 0;

	if (!alike && !longer && h->unlike < UNLIKE_MAX) {
		h->unlike++;
		return false;
	}
	if (!alike && (longer || h->unlike_rows++ == 0)) {
		h->calls = 0;
	}
	h->unlike = 0;
	if (h->calls == 0) {
		h->class = class;
	}
	if (h->calls % 2 == 0) {
		h->pair_bytes = bytes;
	}
	return true;
}

/* Decides, if what is known suffices, or begins the next trial. The result: collnet performs the
 * call; untried, if that is neither. */
static bool try_next(struct glue_call *k, const struct trial *t, bool untried)
{
	struct glue_choice *h = t->choice;
	enum glue_found alike;
	int64_t bytes;

	begin_together(k, t, &alike, &bytes);
	if (h->decided) {
		return true;
	}
	if (h->calls == 0) {
		if (!settle_alike(k, t, alike)) {
			return untried;
		}
	} else if (h->calls % 2 == 0) {
		settle(k, t);
	}
	if (!h->decided) {
		if (!is_comparable(h, bytes)) {
			return untried;
		}
		h->by = h->calls % 2 == 0 ? GLUE_BY_COLLNET : GLUE_BY_MPI;
		h->calls++;
		k->trial = h;
		k->found = t->found;
		k->began = glue_now();
	}
	return h->by == GLUE_BY_COLLNET;
}

static bool is_short(const struct glue_call *k, size_t bytes)
{
	return bytes <= (uint64_t)k->c->short_bytes && k->team->nodes == (uint32_t)k->c->size;
}

/* Whether this is one of the first calls, which are not tried. *by_mpi: who performs such calls. */
static bool is_untried(const struct glue_call *k, struct glue_choice *h, size_t bytes, bool *by_mpi)
{
	const bool small = bytes < GLUE_UNTRIED_BYTES, is_mpis = is_short(k, bytes);
	const unsigned most = !small ? UNTRIED_LONG : is_mpis ? UNTRIED_SHORT : UNTRIED;

	*by_mpi = is_mpis || (!small && is_fast(k->c));
	if (h->untried >= most) {
		return false;
	}
	h->untried++;
	return true;
}

/* blocks: those of this rank, where each rank has its own count; then bytes are the most possible,
 * and class is 0. */
static bool serves(struct glue_call *k, enum glue_op op, size_t bytes, unsigned class,
		   const struct glue_blocks *blocks)
{
	struct glue_choice *h;
	bool by_mpi;

	if (glue_decides_later(k, bytes) || !glue_decide(k, bytes)) {
		return false;
	}
	h = &k->c->team->choices[op][class]; /* a persistent call's team has none */
	if ((!k->c->always && h->decided && h->by == GLUE_BY_MPI) ||
	    !glue_has_memory(k, op, bytes)) {
		return false;
	}
	if (k->c->always || h->decided || k->nonblocking || k->persistent) {
		return true;
	}
	if (is_untried(k, h, bytes, &by_mpi)) {
		return !by_mpi;
	}
	const struct trial t = { h,
				 k->team->alike != NULL ? &k->team->alike->found[op][class] : NULL,
				 op, class, blocks != NULL ? glue_total(blocks) : bytes };
	return try_next(k, &t, !by_mpi);
}

bool glue_serves(struct glue_call *k, enum glue_op op, size_t bytes)
{
	return serves(k, op, bytes, class_of(bytes), NULL);
}

bool glue_serves_counts(struct glue_call *k, enum glue_op op, const struct glue_blocks *blocks)
{
	return serves(k, op, COLLNET_BLOCK_MAX, 0, blocks);
}

int64_t glue_short_bytes(collnet_t *context)
{
	struct collnet_stats s = { .size = sizeof(s) };
	int64_t bytes;

	if (collnet_get_stats(context, &s, 0) != COLLNET_OK) {
		return 0;
	}
	bytes = (int64_t)(s.link_rate / 8 / 1000000 * SHORT_US);
	return bytes > SHORT_BYTES ? bytes : SHORT_BYTES;
}

bool glue_serves_untried(struct glue_call *k, enum glue_op op, size_t bytes)
{
	if ((op == GLUE_Allreduce && glue_decides_later(k, bytes)) || !glue_decide(k, bytes)) {
		return false;
	}
	if (k->c->always || k->nonblocking || k->persistent || op != GLUE_Allreduce || bytes == 0 ||
	    !is_short(k, bytes)) {
		return glue_has_memory(k, op, bytes);
	}
	if (!k->c->reported_short && k->c->rank == 0) {
		char text[160];

		snprintf(text, sizeof(text),
			 "MPI_Allreduce: floating-point or user-defined, of up to %lld bytes: by "
			 "MPI",
			 (long long)k->c->short_bytes);
		glue_explain(k->c, k->comm, 2, text);
	}
	k->c->reported_short = true;
	return false;
}

void glue_end(struct glue_call *k)
{
	if (k->trial != NULL) {
		k->trial->latest = glue_now() - k->began;
		if (k->trial->latest >= LONG_NS && k->found != NULL && *k->found == GLUE_NOTHING) {
			*k->found = GLUE_IN_TRIALS;
		}
	}
}
