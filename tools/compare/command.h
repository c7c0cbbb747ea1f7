/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside `collnet compare`: the same loops over collnet, Open MPI and MPICH.
 *
 *   collnet compare --shape ...     starts a lab and itself in it (command.c)
 *   collnet compare                 in a lab, or with --hosts: compiles the MPI libraries' loops
 *                                   (find.c), starts one job per contender (contender.c), lets them
 *                                   measure in turn (run.c) and reports (report.c, plot.c)
 *   `- mpirun, one per contender
 *      `- the loop, on every rank   loop.c, loop_blocks.c; collnet's is `collnet compare loop`
 *
 * All jobs live as long as the comparison. Only one measures at a time; the ranks of the others
 * sleep. cell.c is the arithmetic.
 */
#ifndef COLLNET_COMPARE_H
#define COLLNET_COMPARE_H

#include <limits.h>
#include <sys/types.h>

#include "tools/compare/cell.h"
#include "tools/compare/loop.h"
#include "tools/measure/measure.h"
#include "tools/shape.h"
#include "util/clock.h"

#define COMPARE_PATH 4096
#define COMPARE_TEXT 256

struct compare_options {
	struct measure_options m; /* its operation is not used */
	enum loop_op ops[LOOP_OPS];
	size_t nops;
	bool loop; /* `collnet compare loop` */
	uint32_t rounds, ranks_per_node, timeout_ms;
	bool direct, spin, mpi_on_collnet;
	const char *hosts, *interface, *directory, *plot;
	char *mpicc; /* a list */
	/* for the lab, which checks them itself */
	struct shape shape;
	const char *topology;
	bool lab_given;
	char **lab_args, **own_args; /* "--name=value", [argc] each */
	size_t nlab_args, nown_args;
};

/* An MPI library that is installed here. */
struct compare_mpi {
	enum cell_library library;
	char mpicc[COMPARE_PATH], mpirun[COMPARE_PATH], program[COMPARE_PATH];
	/* What its programs load to run on collnet: the directory of Open MPI's component, the
	 * library for MPICH; empty: not wanted, or not installed. */
	char collnet[COMPARE_PATH];
};

/* One job: a library with a setting. */
struct contender {
	enum cell_library library;
	int yield; /* mpi_yield_when_idle; -1: not Open MPI */
	const struct compare_mpi *launcher;
	char key[32]; /* names its files */
	char log[COMPARE_PATH];
	char version[COMPARE_TEXT];
	pid_t pid;	 /* 0: not running */
	int to, from;	 /* -1: closed */
	char line[2048]; /* what was read and is not a whole line yet */
	size_t len;
	bool failed;
};

struct compare {
	const struct compare_options *o;
	char self[COMPARE_PATH];      /* this program */
	char directory[COMPARE_PATH]; /* for programs and logs */
	bool keep;		      /* the user named it */
	bool in_lab;
	char **hosts;
	uint32_t nhosts;
	struct compare_mpi mpi[CELL_LIBRARIES];
	size_t nmpi;
	struct contender contenders[CELL_CONTENDERS_MAX];
	size_t ncontenders;
	struct cell *cells;
	size_t ncells;
	uint64_t serial; /* iterations so far, warm-up too: no two have the same bytes */
	bool one_clock;
	FILE *csv;
	bool bad; /* something failed that did not end the comparison, or a byte was wrong */
};

/* Functions that return int give an exit status after a complaint, 0 for success. */

/* command.c: whether a signal ends the comparison. */
bool compare_interrupted(void);

/* options.c: TOOL_OK, TOOL_USAGE, or -1: help was asked for and given. */
int compare_options_parse(struct compare_options *o, int argc, char **argv);
void compare_options_free(struct compare_options *o);
/* The names in a list "a,n[1-8]" or in a file, of which the first word of a line counts; up to ":".
 */
int compare_hosts(const char *arg, char ***hosts, uint32_t *n, struct cn_err *err);

/* find.c: c->mpi, with their programs compiled. */
int compare_find(struct compare *c);
const char *compare_library_name(enum cell_library library);
const char *compare_library_key(enum cell_library library);

/* contender.c */
int compare_start(struct compare *c);
/* The command line of a contender's launcher, without what enters the lab; to be freed with
 * compare_argv_free(). */
char **compare_argv(const struct compare *c, const struct contender *t);
void compare_argv_free(char **argv);
/* An MPI library on collnet: whether its ranks did use it; false: the complaint is out. */
bool contender_used_collnet(const struct contender *t);
/* Who performs an operation of such a library, blocks of `bytes` bytes; 0: of any: "collnet" or
 * "mpi"; NULL: that is not chosen. */
const char *contender_choice(const struct contender *t, enum loop_op op, uint64_t bytes);
/* Sends a line; false: the contender has failed, and the complaint is out. */
bool contender_send(struct contender *t, const char *line);
/* The next line behind LOOP_MARK; false: as above. `within` in milliseconds. */
bool contender_receive(struct contender *t, uint32_t within, char *line, size_t size);
void compare_stop(struct compare *c);

/* loop_collnet.c */
int compare_loop(const struct compare_options *o);

/* run.c: measures and reports all cells; c->cells stay the caller's to free. */
int compare_run(struct compare *c);

/* report.c: as the cells are measured; each as JSON or as a row of the table, and to the CSV file.
 */
int compare_report_begin(struct compare *c);
int compare_report_cell(struct compare *c, const struct cell *cell);
int compare_report_end(struct compare *c);
bool compare_csv_row(const struct compare *c, const struct cell *cell);
/* plot.c: whether a file can be written, which stays as it is; the gnuplot script, and its picture
 * when the name ends in .svg. */
bool compare_can_write(const char *path, struct cn_err *err);
bool compare_can_plot(const char *path, struct cn_err *err);
int compare_plot(const struct compare *c);
void compare_plot_script(const struct compare *c, FILE *f);

#endif
