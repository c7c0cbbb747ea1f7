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

/* On clusters in virtual time (sim.h). quick: a few small points, for tests. */
typedef int experiment_simulation(const char *name, uint64_t seed, bool quick, FILE *csv,
				  struct cn_err *err);
experiment_simulation experiment_exchange, experiment_flows, experiment_aapc, experiment_allgather,
	experiment_smp, experiment_loss, experiment_scale;

enum experiment_kind {
	EXPERIMENT_PLANNED,   /* of schedules: collnet schedule */
	EXPERIMENT_SIMULATED, /* in virtual time: collnet sim */
};

/* Runs the one of that name: DIR/NAME.csv, NAME.gp, and with gnuplot NAME.svg; a line of each to
 * `out`. COLLNET_EINVAL: there is none of that name. */
int experiment_run(const char *name, uint64_t seed, bool quick, const char *dir, FILE *out,
		   struct cn_err *err);
/* Names and what they are, a line each; and the n-th name, NULL beyond the last. */
void experiment_list(enum experiment_kind kind, FILE *out);
const char *experiment_name(enum experiment_kind kind, size_t n);

#endif
