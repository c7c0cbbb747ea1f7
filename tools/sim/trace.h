/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace files (Chrome's trace format) and captures (pcap) of a simulation. */
#ifndef COLLNET_SIM_TRACE_H
#define COLLNET_SIM_TRACE_H

#include "tools/sim/core/sim.h"

struct sim_trace;

#define SIM_TRACE_MAX 2000000u /* events of a trace file */

/*
 * trace: a file in Chrome's trace format with every frame of the counted iterations, by port and
 * time. pcap: a capture file of the frames that cross `link` in both directions, from the start.
 * Either may be NULL.
 */
int sim_trace_open(const struct cn_topo *t, const char *trace, const char *pcap, uint32_t link,
		   struct sim_trace **out, struct cn_err *err);
void sim_trace_measure(struct sim_trace *w, bool measuring);
/* For cn_sim_trace(). */
void sim_trace_record(void *arg, const struct cn_sim_record *record);
/* *cut (may be NULL): the trace has reached SIM_TRACE_MAX. NULL is ignored. */
int sim_trace_close(struct sim_trace *w, bool *cut, struct cn_err *err);

#endif
