/* SPDX-License-Identifier: BSD-2-Clause */
/* What a simulation has done so far, on standard error. */
#ifndef COLLNET_TOOLS_SIM_PROGRESS_H
#define COLLNET_TOOLS_SIM_PROGRESS_H

#include "tools/sim/core/sim.h"
#include "tools/sim/trace.h"

struct sim_progress {
	char what[96];		 /* is simulated */
	struct sim_trace *trace; /* what has the records, too; NULL: none */
	uint64_t records, frames;
	cn_time last; /* shown; 0: not yet */
	bool line;    /* on a terminal, where one is to be cleared */
};

/* Whether it is to be shown: to a terminal, or because COLLNET_PROGRESS is 1. */
bool sim_progress_wanted(void);
/* For cn_sim_trace(). */
void sim_progress_record(void *progress, const struct cn_sim_record *record);
void sim_progress_end(struct sim_progress *p);

#endif
