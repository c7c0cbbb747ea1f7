/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `collnet bench` and `collnet sim` share: the operation, sizes and algorithms to measure,
 * the team that is measured, and a result. One measures on a network, the other in virtual time.
 *
 * options.c takes the options, choose.c finds the algorithms and what they run with, report.c
 * writes a result as JSON and CSV, model.c is the arithmetic.
 */
#ifndef COLLNET_MEASURE_H
#define COLLNET_MEASURE_H

#include "sched/choice.h"
#include "tools/measure/model.h"
#include "tools/tool.h"

#define MEASURE_SIZES_MAX      64
#define MEASURE_ITERATIONS_MAX 1000000u
#define MEASURE_DEFAULT	       UINT32_MAX /* iterations, warmup: not specified */

struct measure_options {
	enum measure_op op;
	uint64_t sizes[MEASURE_SIZES_MAX];
	size_t nsizes;
	const struct cn_algorithm *algorithms[CN_ALGORITHMS_MAX];
	size_t nalgorithms; /* 0: the fastest for each size, by prediction */
	bool all;	    /* ... or all that can run here */
	enum cn_permutation permutation;
	bool contention_aware;
	uint32_t window; /* as in collnet_coll_options */
	uint32_t iterations, warmup;
	uint64_t seed;
	bool verify, json;
	const char *csv;
	/* Arguments of --sizes and --algorithm until the operation is known; NULL: not given. */
	const char *sizes_arg;
	char *algorithms_arg;
};

/* The team that is measured, as one of its ranks sees it. */
struct measure {
	const struct measure_options *o;
	uint32_t rank;
	struct measure_layout place;
	uint32_t node_window; /* W_g of the node; of leaders only */
	bool direct;	      /* the transport runs in this process */
	uint32_t headers;     /* bytes per frame of the encapsulation, and of a tag */
	uint64_t link_rate;   /* bit/s of the slowest node's link; 0: not known */
	FILE *csv;
	bool header;	  /* the table's header is out */
	uint32_t omitted; /* ids of algorithms that were reported as not applicable, as bits */
	/* By measure_choose(): modifiers from the options, else from COLLNET_ALGORITHM; of rows
	 * that go by a permutation. */
	struct cn_choice modifiers;
};

struct measure_result {
	enum measure_op op;
	const char *algorithm;	      /* NULL: has none */
	const char *permutation;      /* NULL: uses none */
	const bool *contention_aware; /* NULL: has none */
	uint32_t window;	      /* COLLNET_WINDOW_OFF: none; _AUTO: it adapted */
	uint64_t window_peak;
	uint64_t bytes, iterations;
	struct measure_times ns;
	double slowest_ns;	    /* collectives: median of the slowest ranks' times */
	double limit_us, bandwidth; /* Mbit/s in or out of the busiest node */
	uint64_t frames_sent, frames_resent, ring_drops, rss_bytes;
	double ack_bytes_share, cpu_s_per_gib;
	const bool *verified; /* NULL: not checked */
	const char *failed;   /* the message why there are no numbers; NULL: there are */
	/* messages between two ranks; NAN where not measured */
	struct measure_times baseline_ns;
	double frames_per_s, baseline_frames_per_s, baseline_ratio;
};

/* ---- options.c ------------------------------------------------------------------------ */

const char *measure_op_name(enum measure_op op);
enum cn_op_kind measure_op_kind(enum measure_op op); /* 0: messages between two ranks */
bool measure_op_find(const char *name, enum measure_op *out);
/* Whether `collnet sim` runs it. */
bool measure_op_simulated(enum measure_op op);
#define MEASURE_NAMES 256
/* "alltoall, allgather, ...": those that can be simulated, or all operations. */
const char *measure_op_names(bool simulated, char out[MEASURE_NAMES]);
/* Iterations that are not counted, unless --warmup specifies them. */
uint32_t measure_op_warmup(enum measure_op op);

enum measure_option {
	MEASURE_OPT_SIZES = 256,
	MEASURE_OPT_ALGORITHM,
	MEASURE_OPT_PERMUTATION,
	MEASURE_OPT_CONTENTION_AWARE,
	MEASURE_OPT_WINDOW,
	MEASURE_OPT_ITERATIONS,
	MEASURE_OPT_WARMUP,
	MEASURE_OPT_VERIFY,
	MEASURE_OPT_SEED,
	MEASURE_OPT_JSON,
	MEASURE_OPT_CSV,
	MEASURE_OPT_OWN, /* a subcommand's own begin here */
};
/* clang-format off */
#define MEASURE_OPTIONS                                                                            \
	{ "sizes", required_argument, NULL, MEASURE_OPT_SIZES },                                   \
	{ "algorithm", required_argument, NULL, MEASURE_OPT_ALGORITHM },                           \
	{ "permutation", required_argument, NULL, MEASURE_OPT_PERMUTATION },                       \
	{ "contention-aware", required_argument, NULL, MEASURE_OPT_CONTENTION_AWARE },             \
	{ "window", required_argument, NULL, MEASURE_OPT_WINDOW },                                 \
	{ "iterations", required_argument, NULL, MEASURE_OPT_ITERATIONS },                         \
	{ "warmup", required_argument, NULL, MEASURE_OPT_WARMUP },                                 \
	{ "verify", no_argument, NULL, MEASURE_OPT_VERIFY },                                       \
	{ "seed", required_argument, NULL, MEASURE_OPT_SEED },                                     \
	{ "json", no_argument, NULL, MEASURE_OPT_JSON },                                           \
	{ "csv", required_argument, NULL, MEASURE_OPT_CSV }
/* clang-format on */
void measure_options_init(struct measure_options *o);
int measure_options_option(struct measure_options *o, int opt, char *arg, struct cn_err *err);
/* When the operation is known: its sizes and algorithms. */
int measure_options_finish(struct measure_options *o, struct cn_err *err);
/* The message of `err`, with the option it is about before it. */
int measure_options_blame(struct cn_err *err, const char *option);

/* ---- choose.c: return an exit status after a complaint, 0 for success ------------------ */

/* The algorithms to measure at this size; COLLNET_ALGORITHM may name it. */
int measure_choose(struct measure *m, uint64_t bytes,
		   const struct cn_algorithm *rows[CN_ALGORITHMS_MAX], size_t *count);
/* The time that the library's choice goes by, in microseconds; NAN: the row cannot run here. */
int measure_predict(struct measure *m, uint64_t bytes, const struct cn_algorithm *row, double *us);
/* The row with the modifiers that it takes. */
struct cn_choice measure_choice(const struct measure *m, const struct cn_algorithm *row);
/* What a row runs with: whether nodes have contention-aware numbers, as in measure_choice(); its
 * permutation, NULL: it has none; and its global window. */
const bool *measure_contention_aware(const struct measure *m, const struct cn_algorithm *row);
const char *measure_permutation(const struct measure *m, const struct cn_algorithm *row);
uint32_t measure_window(const struct measure *m, const struct cn_algorithm *row);

/* ---- report.c --------------------------------------------------------------------------- */

/* Nothing measured yet. */
void measure_result_init(struct measure_result *r, const struct measure *m, uint64_t bytes);
double measure_efficiency(const struct measure_result *r);
/* The keys of the JSON object; names and cells of a line of the CSV file; without their ends. */
void measure_report_keys(struct json *j, const struct measure *m, const struct measure_result *r);
extern const char measure_report_names[];
void measure_report_cells(FILE *f, const struct measure_result *r);
/* The column of the window: the maximum in flight, and what was allowed. */
void measure_report_window(const struct measure_result *r, char out[TOOL_TEXT]);
/* A number in the CSV file, in the table: nothing, and -, for what is not known. */
void measure_report_cell(FILE *f, double value);
void measure_report_column(double value, int width, int decimals, const char *unit);
/* A switch of the JSON object, null where there is none. */
void measure_report_bool(struct json *j, const char *key, const bool *value);
/* "right", "WRONG", "-". */
const char *measure_report_checked(const bool *verified);
/* `ok`, after a complaint that begins with `where` if it is false; errno says why. */
bool measure_report_written(bool ok, const char *where);

#endif
