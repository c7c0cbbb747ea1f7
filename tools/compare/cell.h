/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of `collnet compare`: a cell is one operation at one size; every contender has a
 * time in every round. Pure.
 *
 * A contender is a library with a setting. Of the contenders of one library the one with the lowest
 * median time counts. Ratios are paired: round by round, collnet's time divided by the other's, so
 * that what slows a whole round down cancels out; the median of these quotients is reported.
 *
 * An MPI library on collnet is a library of its own here: its ratio is the one to itself without
 * collnet.
 */
#ifndef COLLNET_COMPARE_CELL_H
#define COLLNET_COMPARE_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/compare/loop.h"

#define CELL_CONTENDERS_MAX 7
#define CELL_ROUNDS_MAX	    99
#define CELL_NOT_SLOWER	    1.05 /* up to this ratio collnet counts as not slower */

enum cell_library {
	CELL_COLLNET,
	CELL_OPENMPI,
	CELL_MPICH,
	CELL_OPENMPI_ON_COLLNET,
	CELL_MPICH_ON_COLLNET,
	CELL_LIBRARIES,
};

struct cell {
	enum loop_op op;
	uint64_t bytes;
	uint32_t rounds, contenders;
	enum cell_library library[CELL_CONTENDERS_MAX];
	uint32_t iterations[CELL_CONTENDERS_MAX]; /* per turn */
	uint32_t hold; /* microseconds, as in the loop's command; the same for all */
	double us[CELL_CONTENDERS_MAX][CELL_ROUNDS_MAX]; /* NAN: none, the contender failed */
	double min_us[CELL_CONTENDERS_MAX]; /* the fastest iteration of all rounds; NAN */
	bool wrong[CELL_CONTENDERS_MAX];    /* it delivered wrong bytes */
	/* Of an MPI library on collnet: who performs it, "collnet" or "mpi"; NULL: not chosen. */
	const char *by[CELL_CONTENDERS_MAX];
};

#define CELL_NONE SIZE_MAX

/* Median over the rounds; NAN without one. */
double cell_median(const struct cell *c, size_t contender);
/* The contender with the lowest median of a library; CELL_NONE. */
size_t cell_of_library(const struct cell *c, enum cell_library library);
/* Whether it is an MPI library on collnet. */
bool cell_on_collnet(enum cell_library library);
/* An MPI library on collnet, by the one without. */
enum cell_library cell_with_collnet(enum cell_library library);
/* The fastest contender without collnet; CELL_NONE. */
size_t cell_best(const struct cell *c);

struct cell_ratio {
	double median, min, max; /* NAN: no round has both times */
};
/* collnet's time / that contender's, of CELL_NONE nothing. */
struct cell_ratio cell_ratio(const struct cell *c, size_t contender);
/* The time of an MPI library on collnet / without. */
struct cell_ratio cell_ratio_on_collnet(const struct cell *c, enum cell_library library);

/* The fastest iteration of a library; NAN without one. */
double cell_fastest(const struct cell *c, enum cell_library library);
/* collnet's fastest iteration / that of the fastest MPI library: what other processes on the same
 * machines hardly change. */
double cell_fastest_ratio(const struct cell *c);

/* Iterations per turn of a contender that needs so long for one, so that a turn takes about a tenth
 * of a second: 3 .. 200. */
uint32_t cell_iterations(double us);

/* How long ranks wait for a common moment, where the slowest contender needs so long for an
 * iteration: 2 to 5 milliseconds; 0: not at all, since waking up would be much of a short one. */
uint32_t cell_start_delay(double us);

#endif
