/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One case: a cluster in virtual time, the iterations of an operation, and their outcome. `collnet
 * sim` runs one for every row, and so do the experiments of the papers.
 */
#ifndef COLLNET_SIM_CASE_H
#define COLLNET_SIM_CASE_H

#include "tools/measure/model.h"
#include "tools/sim/fault.h"

struct sim_progress; /* progress.h */
struct sim_trace;    /* trace.h */

struct sim_case {
	struct cn_sim_config cluster;  /* with its topology */
	struct cn_sim_faults faults;   /* of all links, in both directions */
	const struct sim_fault *timed; /* [nfaults] */
	uint32_t nfaults;
	struct cn_coll_args args; /* without buffers and deadline */
	uint32_t local, iterations, warmup;
	cn_time combining; /* struct cn_job_config */
	bool verify;
	struct sim_trace *trace;       /* NULL: none */
	struct sim_progress *progress; /* NULL: it is not shown; it has the trace */
};

/* The queue with the largest count: its switch, and the other end of its port. */
struct sim_spot {
	uint32_t at, peer; /* vertices; CN_TOPO_NONE: nowhere */
	uint64_t count;
	uint32_t room; /* frames that this queue holds, or the memory it is in; 0: not limited */
	bool input;    /* of what comes from the peer, not of what goes there */
	bool shared;   /* in the switch's memory */
};

struct sim_outcome {
	struct measure_times ns; /* of the iterations, each the mean of its ranks */
	double slowest_ns;	 /* median of the slowest ranks' times */
	/* From here on of the counted iterations, of all nodes together. */
	uint64_t data_sent, data_resent, bytes_sent, ack_bytes;
	uint64_t ring_drops, drops, lost; /* full receive rings, full queues, faults */
	struct sim_spot worst_drops;
	struct sim_spot longest; /* queue */
	uint32_t window_peak;
	uint64_t wrong, frame_events;
	uint32_t failed; /* ranks; the first one's error is in why */
	char why[CN_ERR_TEXT + 96];
	/* Of a case with timed faults; sim_outcome_free(). */
	struct sim_fault_state *fault_states; /* [nfaults] */
	struct sim_error *errors;	      /* [nerrors], in the order of ranks */
	uint32_t nerrors;
	enum sim_next {
		SIM_NEXT_NONE,	/* no rank failed */
		SIM_NEXT_RIGHT, /* after the faults a new job formed and ran */
		SIM_NEXT_FAILED,
		SIM_NEXT_NEVER, /* a host stays down, or a link stays cut */
	} next;
	char next_why[CN_ERR_TEXT];
};

/* Errors are of the set-up; an operation that fails is an outcome. */
int sim_run(const struct sim_case *c, struct sim_outcome *out, struct cn_err *err);
void sim_outcome_free(struct sim_outcome *out);

#endif
