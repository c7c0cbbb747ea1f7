/* SPDX-License-Identifier: BSD-2-Clause */
/* One random network of the experiment on broadcasts between switches, for its test too. */
#ifndef COLLNET_EXPERIMENT_BCAST_H
#define COLLNET_EXPERIMENT_BCAST_H

#include "sched/bcast/switch.h"

#define EXPERIMENT_BCAST_NETWORKS 1000u

/*
 * Draws a network (2 to 40 switches in a connected graph with cycles, links of 100 Mbit/s to
 * 10 Gbit/s and one or two channels, three switches in four with members), start-ups of 5 to
 * 200 us, a message of 1 KiB to 1 MiB and a source from the seed, and models the broadcast.
 */
int experiment_bcast_network(uint64_t *seed, uint32_t *switches, struct cn_bswitch_times *out,
			     struct cn_err *err);

#endif
