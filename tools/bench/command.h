/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside `collnet bench`: the options, the run, and a result.
 *
 * options.c parses, command.c opens, coll.c measures collectives, p2p.c messages between two ranks
 * (pair.h), baseline.c frames on raw sockets, plan.c planning; report.c writes results, pattern.c
 * is pure.
 */
#ifndef COLLNET_BENCH_H
#define COLLNET_BENCH_H

#include "tools/measure/measure.h"
#include "util/clock.h"

struct bench_options {
	struct measure_options m;
	uint32_t timeout_ms;	 /* 0: not specified */
	bool ranks_given;	 /* --ranks */
	uint64_t rate;		 /* 0: by the topology */
	bool baseline;		 /* --baseline */
	const char *direct_only; /* the last option that only direct mode has, or NULL */
	struct collnet_options open;
	struct collnet_team_options team;
};

/* The run, on one rank. */
struct bench {
	const struct bench_options *o;
	struct measure m;
	collnet_t *c;
	collnet_team_t *team;
	uint32_t *node_of, *vertex; /* what m.place points to */
	struct cn_topo *topo;
	bool leader;	    /* the lowest rank of its node: reads the node's counters */
	double expected_us; /* what the present size needs at the links' limit: deadlines */
	uint64_t serial;    /* iterations so far, warm-up too: no two have the same pattern */
	bool wrong;	    /* a check found wrong bytes here */
	bool progress, progress_shown;
	cn_time progress_last;
};

/* command.c. The functions that return int give an exit status after a complaint, 0 for success. */
uint64_t bench_cpu(void); /* nanoseconds of this process */
/* A call failed: one line with rank, node and the library's message; TOOL_FAILED. */
int bench_fail(const struct bench *b, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Milliseconds that a call may take: --timeout, or the default and 20 times expected_us. */
uint32_t bench_timeout(const struct bench *b);
int bench_barrier(const struct bench *b);
/* n numbers of every rank, rank after rank, into all[ranks * n]. */
int bench_gather(const struct bench *b, const uint64_t *mine, size_t n, uint64_t *all);
/* Everyone's *value becomes rank 0's. */
int bench_agree(const struct bench *b, uint64_t *value);
/* Rank 0 prints its progress, at most five times per second. */
void bench_progress(struct bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void bench_progress_end(struct bench *b);
/* The first wrong byte of a message or block, to stderr. */
void bench_wrong(struct bench *b, const char *what, uint32_t source, size_t offset, uint8_t want,
		 uint8_t got);

/* Counters of the node over a measured part: snapshots by leaders, gathered as numbers. */
enum bench_counter {
	BENCH_DATA_SENT,
	BENCH_DATA_RESENT,
	BENCH_BYTES_SENT,
	BENCH_ACK_BYTES,
	BENCH_RING_DROPS,
	BENCH_CPU,	   /* of the ranks in their timed calls, and of the daemons */
	BENCH_WRONG,	   /* ranks that found wrong bytes */
	BENCH_WINDOW_PEAK, /* from here on the largest counts, not the sum */
	BENCH_RSS,
	BENCH_COUNTERS,
};
#define BENCH_SUMS BENCH_WINDOW_PEAK
int bench_count_begin(struct bench *b, struct collnet_stats *before);
int bench_count_end(const struct bench *b, const struct collnet_stats *before,
		    uint64_t counters[BENCH_COUNTERS]);
/* Everyone's counters together, the same on every rank. */
int bench_count_gather(const struct bench *b, const uint64_t mine[BENCH_COUNTERS],
		       uint64_t total[BENCH_COUNTERS]);
void bench_count_report(const uint64_t total[BENCH_COUNTERS], double payload,
			struct measure_result *r);

/* options.c: TOOL_OK, TOOL_USAGE, or -1: help was asked for and given. */
int bench_options_parse(struct bench_options *o, int argc, char **argv);

/*
 * A single rank is usually the mistake of an unknown launcher or of a launcher with wrong options,
 * so that it must be requested: by --ranks 1 or COLLNET_SIZE=1. `specified_by` is the
 * variable that specified the number of ranks, or NULL. A usage error otherwise.
 */
int bench_check_ranks(const struct bench_options *o, const char *specified_by);

/* coll.c, p2p.c: run all sizes. */
int bench_collective(struct bench *b);
int bench_messages(struct bench *b);
/* report.c: rank 0 writes a result, as JSON or as a row of the table, and to the CSV file.
 * False: an output could not be written. */
bool bench_report(struct bench *b, const struct measure_result *r);

/* plan.c: `collnet bench plan`; an exit status. True if "plan" is the operation, which its own
 * options may precede. */
bool bench_plans(int argc, char **argv);
int bench_plan(int argc, char **argv);

#endif
