/* SPDX-License-Identifier: BSD-2-Clause */
/* What the experiments in virtual time share: networks of the papers, and one measured point. */
#ifndef COLLNET_EXPERIMENT_SIM_H
#define COLLNET_EXPERIMENT_SIM_H

#include "tools/sim/case.h"
#include "tools/sim/model.h"

/*
 * Switches s0, s1, ... in a chain, or as a star around s0; hosts n0, n1, ... behind them: `hosts`
 * in equal blocks, or (dealt) one after another in turn.
 */
struct experiment_network {
	uint32_t switches, hosts;
	bool chain, dealt;
	const uint32_t *block; /* [switches] hosts of each switch's block; NULL: equal ones */
	uint64_t rate;	       /* bit/s, of all links */
	uint32_t buffer;       /* frames, of all ports; 0: unknown */
	uint32_t channels;     /* of links between switches; 0: 1 */
};
int experiment_network(const struct experiment_network *n, struct cn_topo **out,
		       struct cn_err *err);

/* Hosts and switches of the papers on schedules: shared buffers, 5 us of processor time per frame.
 */
void experiment_cluster(struct cn_sim_config *c, const struct cn_topo *t, uint64_t seed);

struct experiment_point {
	const struct cn_sim_config *cluster; /* with its topology */
	enum measure_op op;
	const char *algorithm;
	enum cn_permutation permutation;
	bool contention_aware;
	uint32_t window; /* COLLNET_WINDOW_AUTO, _OFF, frames */
	uint64_t bytes;
	uint32_t iterations;		    /* 0: 1; their median counts */
	bool cold;			    /* without the iteration that is not counted */
	const struct cn_sim_faults *faults; /* of all links; NULL: none */
};
struct experiment_result {
	struct sim_outcome out;
	struct sim_model model;
	double ms; /* NAN: ranks failed (out.failed, out.why) */
};
/* After an iteration that is not counted (one of blocks of 128 KiB and more: without). */
int experiment_measure(const struct experiment_point *p, struct experiment_result *r,
		       struct cn_err *err);
/* A comma and the number; nothing behind the comma when it is not known. */
void experiment_cell(FILE *csv, double value, int decimals);
/* The last cells of a row, ",resent,drops,failed_ranks", and its end. */
int experiment_end_row(FILE *csv, const struct sim_outcome *out, struct cn_err *err);

/* In the plot's script, after what papers.c writes. */
extern const char experiment_exchange_plot[], experiment_exchange_single_plot[],
	experiment_flows_plot[], experiment_aapc_plot[], experiment_rings_9_plot[],
	experiment_rings_10_plot[], experiment_rings_table_plot[], experiment_smp_plot[],
	experiment_loss_plot[], experiment_scale_plot[];

/* For their test: the network of a figure, as in examples/topologies but for the buffers. */
int experiment_aapc_network(char which, struct cn_topo **out, struct cn_err *err);
int experiment_allgather_network(char which, bool dealt, struct cn_topo **out, struct cn_err *err);

#endif
