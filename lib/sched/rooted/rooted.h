/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to lib/sched: the blocks of scatter and gather, which mirror each other. */
#ifndef CN_ROOTED_H
#define CN_ROOTED_H

#include "sched/planners.h"

/*
 * Adds actions like `a` for the blocks of the ranks of `node`, on node `me`: the root's blocks for
 * them if the operation scatters, else theirs for the root. A COPY is on the root's node; SEND and
 * RECV are between it and `node`.
 */
int cn_rooted_add(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t node,
		  struct cn_action a, struct cn_sched *out, struct cn_err *err);

#endif
