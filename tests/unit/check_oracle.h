/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An oracle for the checker of schedules, for small teams: brute force, and independent of
 * tools/plan/check.h. Every action is two events, its start and its end; happens-before is a graph
 * of them, and all checks use its transitive closure.
 */
#ifndef CHECK_ORACLE_H
#define CHECK_ORACLE_H

#include "sched/sched.h"

#define O_NODES	  8u
#define O_ACTIONS 600u /* of all nodes */

/*
 * Whether the schedules of all nodes (sends in turn only) keep the rules and the guarantees (LINKS,
 * ORDERED; channels of every link: 1). *why: the rule that is broken, or "".
 */
bool o_check(const struct cn_layout *l, const struct cn_plan *p, const struct cn_sched *s,
	     unsigned guarantees, const char **why);

#endif
