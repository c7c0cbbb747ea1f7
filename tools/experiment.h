/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Experiments: computations whose result is a table and a plot, as the papers' figures are. No
 * network, no clock: a seed gives the same table everywhere.
 */
#ifndef COLLNET_EXPERIMENT_H
#define COLLNET_EXPERIMENT_H

#include <stdio.h>

#include "util/util.h"

/* They write the table: comma-separated, with a line of names. */
int experiment_rings(uint64_t seed, FILE *csv, struct cn_err *err);
int experiment_bcast(uint64_t seed, FILE *csv, struct cn_err *err);

/* Runs the one of that name: DIR/NAME.csv, NAME.gp, and with gnuplot NAME.svg; a line of each to
 * `out`. COLLNET_EINVAL: there is none of that name. */
int experiment_run(const char *name, uint64_t seed, const char *dir, FILE *out,
		   struct cn_err *err);
/* Names and what they are, a line each. */
void experiment_list(FILE *out);

#endif
