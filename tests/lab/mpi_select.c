/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice between collnet and MPI (mpi/glue/select.c) by one rank, with a clock that this
 * program sets: which calls trials compare, and who is chosen. Neither MPI nor collnet is called.
 */
#include <stdlib.h>

#include "mpi/glue/select.c"

#define CALLS_MAX 2000

static int64_t clock_ns = 1;
static size_t exchanged; /* by the call */
static bool failed;

int64_t glue_now(void)
{
	return clock_ns;
}

int glue_min(const struct glue_call *k, int64_t *v, size_t n)
{
	(void)k;
	(void)v;
	(void)n;
	return MPI_SUCCESS;
}

bool glue_decides_later(struct glue_call *k, size_t bytes)
{
	(void)k;
	(void)bytes;
	return false;
}

bool glue_decide(struct glue_call *k, size_t bytes)
{
	(void)bytes;
	k->team = k->c->team;
	return true;
}

bool glue_has_memory(struct glue_call *k, enum glue_op op, size_t bytes)
{
	(void)k;
	(void)op;
	(void)bytes;
	return true;
}

size_t glue_total(const struct glue_blocks *b)
{
	(void)b;
	return exchanged;
}

void glue_explain(const struct glue_comm *c, MPI_Comm comm, int level, const char *text)
{
	(void)c;
	(void)comm;
	(void)level;
	printf("%s\n", text);
}

int collnet_get_stats(collnet_t *c, struct collnet_stats *out, int reset)
{
	(void)c;
	(void)out;
	(void)reset;
	return COLLNET_EUNSUPPORTED;
}

#define LONG_CALL                                                                                  \
	{                                                                                          \
		1 << 20,                                                                           \
		{                                                                                  \
			5000, 7000                                                                 \
		}                                                                                  \
	}
#define SHORT_CALL                                                                                 \
	{                                                                                          \
		64,                                                                                \
		{                                                                                  \
			50, 30                                                                     \
		}                                                                                  \
	}

/* What a program calls: `often` calls of the first length, one of the second, and so on. */
static const struct program {
	const char *what;
	bool counts; /* an operation with a count per rank */
	struct length {
		size_t bytes;
		int64_t us[2]; /* of a call by collnet, by MPI */
	} length[2];
	unsigned often;
	unsigned begin; /* at this call of those */
	enum glue_by by;
	int decides; /* the length that does; -1: both */
} programs[] = {
	{ "one length", false, { { 130000, { 29, 47 } }, { 130000, { 29, 47 } } }, 1, 0, 0, 0 },
	{ "two of a class", false, { { 130000, { 29, 47 } }, { 66000, { 13, 23 } } }, 1, 0, 0, -1 },
	{ "shorter first", false, { { 66000, { 13, 23 } }, { 130000, { 29, 47 } } }, 1, 0, 0, -1 },
	{ "a third", true, { { 1900000, { 190, 247 } }, { 600000, { 60, 78 } } }, 1, 0, 0, -1 },
	{ "MPI's", true, { { 600000, { 78, 60 } }, { 1900000, { 247, 190 } } }, 1, 0, 1, -1 },
	{ "in turns", true, { { 64, { 1, 2 } }, { 1 << 20, { 1000, 1300 } } }, 1, 0, 0, 1 },
	{ "few long calls", true, { SHORT_CALL, LONG_CALL }, 5, 0, 0, 1 },
	{ "one in 30", true, { SHORT_CALL, LONG_CALL }, 29, 19, 0, 1 },
	/* 32 calls that differ from the long one follow it. */
	{ "one in 40", true, { SHORT_CALL, LONG_CALL }, 39, 29, 1, 0 },
	{ "short ones first", true, { SHORT_CALL, LONG_CALL }, 20, 0, 1, 0 },
};

/* Whether the times of both trials of each pair are those of one length, of that if it decides. */
static bool compares_alike(const struct program *p, const struct glue_choice *h)
{
	for (unsigned i = 0; i < h->calls / 2; i++) {
		const int64_t collnet = h->ns[GLUE_BY_COLLNET][i], mpi = h->ns[GLUE_BY_MPI][i];
		bool some = false;

		for (int n = 0; n < 2; n++) {
			const int64_t *us = p->length[n].us;

			some = some ||
			       (p->decides != 1 - n && collnet == us[GLUE_BY_COLLNET] * 1000 &&
				mpi == us[GLUE_BY_MPI] * 1000);
		}
		if (!some) {
			return false;
		}
	}
	return h->calls >= 4;
}

static void run(const struct program *p)
{
	static const struct glue_blocks blocks;
	struct glue_team *team = calloc(1, sizeof(*team));
	struct glue_comm c = { .size = 8, .team = team, .short_bytes = SHORT_BYTES };
	const enum glue_op op = p->counts ? GLUE_Alltoallv : GLUE_Alltoall;
	struct glue_choice *h;
	unsigned calls = p->begin;

	if (team == NULL) {
		exit(1);
	}
	team->nodes = 4;
	h = &team->choices[op][p->counts ? 0 : class_of(p->length[0].bytes)];
	for (; calls < CALLS_MAX; calls++) {
		const struct length *l = &p->length[calls % (p->often + 1) == p->often];
		struct glue_call k = { .c = &c };
		bool by_collnet;

		exchanged = l->bytes;
		by_collnet = p->counts ? glue_serves_counts(&k, op, &blocks)
				       : glue_serves(&k, op, l->bytes);
		if (h->decided) {
			break;
		}
		clock_ns += l->us[by_collnet ? GLUE_BY_COLLNET : GLUE_BY_MPI] * 1000;
		glue_end(&k);
	}
	if (!h->decided || h->by != p->by || !compares_alike(p, h)) {
		printf("wrong: %s, after %u calls\n", p->what, calls - p->begin);
		failed = true;
	}
	free(team);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		printf("%s: ", programs[i].what);
		run(&programs[i]);
	}
	if (!failed) {
		printf("right: choices\n");
	}
	return failed;
}
