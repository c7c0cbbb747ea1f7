/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to lib/sched: the empty messages of barriers. */
#ifndef CN_BARRIER_H
#define CN_BARRIER_H

#include "sched/planners.h"

/* Adds a message to a node, which waits for the action before it, or one from a node. */
int cn_barrier_add(struct cn_sched *out, enum cn_action_kind kind, uint32_t peer, uint32_t phase,
		   struct cn_err *err);
/* A message to one node and one from another, or the same. */
int cn_barrier_round(struct cn_sched *out, uint32_t to, uint32_t from, uint32_t phase,
		     struct cn_err *err);

#endif
