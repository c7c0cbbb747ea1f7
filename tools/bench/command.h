/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside `collnet bench`: what was asked for, the run, and a result.
 *
 * command.c parses and opens, coll.c measures collectives, p2p.c messages between two
 * ranks, report.c writes results, model.c and pattern.c are pure.
 */
#ifndef COLLNET_BENCH_H
#define COLLNET_BENCH_H

#include "sched/sched.h"
#include "tools/bench/model.h"
#include "tools/tool.h"

#define BENCH_SIZES_MAX	     64
#define BENCH_ALGORITHMS_MAX 8
#define BENCH_ITERATIONS_MAX 1000000u
#define BENCH_DEFAULT	     UINT32_MAX /* iterations, warmup: not said */

struct bench_options {
	enum bench_op op;
	uint64_t sizes[BENCH_SIZES_MAX];
	size_t nsizes;
	const struct cn_algorithm *algorithms[BENCH_ALGORITHMS_MAX];
	size_t nalgorithms; /* 0: the best one for each size */
	bool all;	    /* ... or all that can run here */
	enum collnet_permutation permutation;
	bool contention_aware;
	uint32_t window; /* as in collnet_coll_options */
	uint32_t iterations, warmup;
	uint32_t timeout_ms; /* 0: not said */
	bool ranks_given;    /* --ranks */
	uint64_t rate;	     /* 0: by the topology */
	uint64_t seed;
	bool verify, json, bare;
	const char *csv;
	const char *said_sizes; /* until the operation is known; NULL: not said */
	char *said_algorithms;
	struct collnet_options open;
	struct collnet_team_options team;
};

/* The run, on one rank. */
struct bench {
	const struct bench_options *o;
	collnet_t *c;
	collnet_team_t *team;
	uint32_t rank, ranks;
	struct bench_place place;
	uint32_t *node_of, *vertex; /* what place points to */
	struct cn_topo *topo;
	uint32_t node_window; /* W_g of the node, on leaders */
	bool leader;	      /* the lowest rank of its node: reads the node's counters */
	bool direct;	      /* the transport runs in this process */
	double patience_us;   /* what the present size needs at the wire's limit: deadlines */
	uint64_t serial;      /* iterations so far, warm-up too: no two have the same pattern */
	bool wrong;	      /* a check found wrong bytes here */
	bool progress, progress_shown;
	cn_time progress_last;
	FILE *csv;
	bool header;	   /* the table's header is out */
	uint32_t left_out; /* ids of algorithms of which it is said that they cannot run, as bits */
};

struct bench_result {
	enum bench_op op;
	const char *algorithm;	      /* NULL: has none */
	const char *permutation;      /* NULL: uses none */
	const bool *contention_aware; /* NULL: has none */
	uint32_t window;	      /* COLLNET_WINDOW_OFF: none */
	uint64_t window_peak;
	uint64_t bytes, iterations;
	struct bench_times ns;
	double slowest_ns;	    /* collectives: median of the slowest ranks' times */
	double limit_us, bandwidth; /* Mbit/s in or out of the busiest node */
	uint64_t frames_sent, frames_resent, ring_drops, rss_bytes;
	double ack_bytes_share, cpu_s_per_gib;
	const bool *verified; /* NULL: not checked */
	const char *failed;   /* the sentence why there are no numbers; NULL: there are */
	/* messages between two ranks; NAN where not measured */
	struct bench_times bare_ns;
	double frames_per_s, bare_frames_per_s, bare_ratio;
};

/* command.c. The functions that return int give an exit status after a complaint, 0 for success. */
cn_time bench_now(void);
uint64_t bench_cpu(void); /* nanoseconds of this process */
/* A call failed: one line with rank, node and the library's sentence; TOOL_FAILED. */
int bench_fail(const struct bench *b, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Milliseconds that a call may take: what was said, or the default and patience_us 20 times. */
uint32_t bench_timeout(const struct bench *b);
int bench_barrier(const struct bench *b);
/* n numbers of every rank, rank after rank, into all[ranks * n]. */
int bench_gather(const struct bench *b, const uint64_t *mine, size_t n, uint64_t *all);
/* Everyone's *value becomes rank 0's. */
int bench_agree(const struct bench *b, uint64_t *value);
/* Rank 0 says where it is, at most five times a second. */
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
			struct bench_result *r);

/* options.c: TOOL_OK, TOOL_USAGE, or -1: help was asked for and given. */
int bench_options_parse(struct bench_options *o, int argc, char **argv);

/*
 * A measurement of one rank is what a user gets whose launcher is not known or was called in
 * another's way, so one rank has to be asked for: by --ranks 1 or COLLNET_SIZE=1. `said_by` is the
 * variable that specified the number of ranks, or NULL. A usage error otherwise.
 */
int bench_check_ranks(const struct bench_options *o, const char *said_by);

const char *bench_op_name(enum bench_op op);
enum cn_op_kind bench_op_kind(enum bench_op op); /* collectives only */

/*
 * What `collnet sim` has in common: defaults, an operation by its name, the options that say what
 * to measure and how to report it, and, when the operation is known, its sizes and algorithms.
 */
enum bench_shared_option {
	BENCH_OPT_SIZES = 256,
	BENCH_OPT_ALGORITHM,
	BENCH_OPT_PERMUTATION,
	BENCH_OPT_CONTENTION_AWARE,
	BENCH_OPT_WINDOW,
	BENCH_OPT_ITERATIONS,
	BENCH_OPT_WARMUP,
	BENCH_OPT_VERIFY,
	BENCH_OPT_SEED,
	BENCH_OPT_JSON,
	BENCH_OPT_CSV,
	BENCH_OPT_OWN, /* a verb's own begin here */
};
#define BENCH_SHARED_OPTIONS                                                                       \
	{ "sizes", required_argument, NULL, BENCH_OPT_SIZES },                                     \
		{ "algorithm", required_argument, NULL, BENCH_OPT_ALGORITHM },                     \
		{ "permutation", required_argument, NULL, BENCH_OPT_PERMUTATION },                 \
		{ "contention-aware", required_argument, NULL, BENCH_OPT_CONTENTION_AWARE },       \
		{ "window", required_argument, NULL, BENCH_OPT_WINDOW },                           \
		{ "iterations", required_argument, NULL, BENCH_OPT_ITERATIONS },                   \
		{ "warmup", required_argument, NULL, BENCH_OPT_WARMUP },                           \
		{ "verify", no_argument, NULL, BENCH_OPT_VERIFY },                                 \
		{ "seed", required_argument, NULL, BENCH_OPT_SEED },                               \
		{ "json", no_argument, NULL, BENCH_OPT_JSON },                                     \
	{                                                                                          \
		"csv", required_argument, NULL, BENCH_OPT_CSV                                      \
	}
void bench_options_init(struct bench_options *o);
bool bench_op_find(const char *name, enum bench_op *out);
int bench_options_take(struct bench_options *o, int opt, char *arg, struct cn_err *err);
int bench_options_finish(struct bench_options *o, struct cn_err *err);

/* choose.c: the algorithms to measure at this size; COLLNET_ALGORITHM may name it. */
int bench_choose(struct bench *b, uint64_t bytes,
		 const struct cn_algorithm *rows[BENCH_ALGORITHMS_MAX], size_t *count);
/* The time that the library's choice goes by, in microseconds; NAN: the row cannot run here. */
int bench_predict(struct bench *b, uint64_t bytes, const struct cn_algorithm *row, double *us);

/* coll.c, p2p.c: run all sizes. */
int bench_collective(struct bench *b);
int bench_messages(struct bench *b);
/* The permutation that a row runs with, NULL: it has none; and its global window. */
const char *bench_permutation(const struct bench *b, const struct cn_algorithm *row);
uint32_t bench_window(const struct bench *b, const struct cn_algorithm *row);

/* report.c: nothing measured yet. */
void bench_result_init(struct bench_result *r, const struct bench *b, uint64_t bytes);
/* Rank 0 writes a result, as JSON or as a row of the table, and to the CSV file.
 * False: an output could not be written. */
bool bench_report(struct bench *b, const struct bench_result *r);
/* The keys of the JSON object; names and cells of a line of the CSV file; without their ends. */
void bench_report_keys(struct json *j, const struct bench *b, const struct bench_result *r);
extern const char bench_report_names[];
void bench_report_cells(FILE *f, const struct bench_result *r);
/* A number in the CSV file, in the table: nothing, and -, for what is not known. */
void bench_report_cell(FILE *f, double value);
void bench_report_column(double value, int width, int decimals, const char *unit);
/* `ok`, after a complaint that begins with `where` if it is false; errno says why. */
bool bench_report_written(bool ok, const char *where);
double bench_efficiency(const struct bench_result *r);

/* plan.c: `collnet bench plan`, argv[0] being "plan"; an exit status. */
int bench_plan(int argc, char **argv);

#endif
