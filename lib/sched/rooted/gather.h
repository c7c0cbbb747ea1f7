/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/sched: gathers in an order of the senders. */
#ifndef CN_GATHER_H
#define CN_GATHER_H

#include "sched/planners.h"

struct cn_gather {
	uint32_t width; /* nodes that may send at a time, 1 or more */
	bool closed;	/* the first `width` nodes return only when the last ones have sent */
};

int cn_gather_plan(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		   const struct cn_gather *g, struct cn_sched *out, struct cn_err *err);

#endif
