/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommand `collnet sim`: its options and its report, over the cases of case.h.
 *
 * command.c puts the network together and goes through sizes and algorithms, options.c is the
 * command line, report.c and fault_report.c write the table, JSON and CSV.
 */
#ifndef COLLNET_SIM_COMMAND_H
#define COLLNET_SIM_COMMAND_H

#include "tools/measure/measure.h"
#include "tools/sim/case.h"
#include "tools/sim/model.h"

struct sim_options {
	struct measure_options measure; /* operation, sizes, algorithms, ..., iterations, outputs */
	const char *shape, *topology;
	uint64_t rate, uplink; /* 0: not specified */
	uint32_t buffer, uplink_buffer;
	bool buffer_set, uplink_buffer_set, alpha_set;
	struct cn_sim_config cluster; /* without topology: kind, times, seed */
	struct cn_sim_faults faults;
	const char *fault_texts[SIM_FAULTS_MAX];
	struct sim_fault timed[SIM_FAULTS_MAX]; /* of the texts, once the topology is there */
	uint32_t nfaults;
	uint32_t local;
	const char *trace, *pcap, *port;
	const char *experiment, *output;
	const char *not_of_experiment; /* the first option that --experiment does not take */
	bool quick;
};

/* TOOL_OK, TOOL_USAGE, or -1: help was asked for and given. */
int sim_options_parse(struct sim_options *o, int argc, char **argv);

/* A row of the table; and the closing line, of the fastest of `rivals` algorithms. */
struct sim_row {
	const struct sim_options *o;
	const struct measure_result *r; /* failed: of the rest only model and predicted_us count */
	const struct sim_outcome *out;
	const struct sim_model *model;
	double predicted_us;
};
bool sim_report(struct measure *m, const struct sim_row *row);

/* Of timed faults (fault_report.c): keys of the object, columns of the CSV file, and lines. */
extern const char sim_fault_names[];
void sim_fault_json(struct json *j, const struct cn_topo *t, const struct sim_row *row);
void sim_fault_cells(FILE *f, const struct sim_outcome *out);
void sim_fault_table(const struct cn_topo *t, const struct sim_row *row);

void sim_report_end(const struct measure *m, const struct sim_row *best, uint32_t rivals);

#endif
