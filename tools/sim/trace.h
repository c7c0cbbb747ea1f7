/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces and captures of a simulation, for the tools of others. */
#ifndef COLLNET_SIM_TRACE_H
#define COLLNET_SIM_TRACE_H

#include "tools/sim/core/sim.h"

struct sim_watch;

#define SIM_TRACE_MAX 2000000u /* events of a trace file */

/*
 * trace: a file of Chrome's trace format, who sends what when on which port, of the counted
 * iterations. pcap: a capture file of the frames that cross `link`, in both directions, since the
 * beginning. Either may be NULL.
 */
int sim_watch_open(const struct cn_topo *t, const char *trace, const char *pcap, uint32_t link,
		   struct sim_watch **out, struct cn_err *err);
void sim_watch_measure(struct sim_watch *w, bool measuring);
/* For cn_sim_watch(). */
void sim_watch_see(void *arg, const struct cn_sim_sight *seen);
/* *cut (may be NULL): the trace has reached SIM_TRACE_MAX. NULL is ignored. */
int sim_watch_close(struct sim_watch *w, bool *cut, struct cn_err *err);

#endif
