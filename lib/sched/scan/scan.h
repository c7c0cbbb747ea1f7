/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the algorithms of scan and exscan share. Parts are ranks that follow one another, for a
 * prefix is in the order of the ranks whatever the operation is. A part's first rank combines for
 * it: it makes the prefixes within the part, and puts what comes of the parts before in front.
 */
#ifndef CN_SCAN_H
#define CN_SCAN_H

#include "sched/reduction.h"

struct cn_scan {
	struct cn_reduction r;
	struct cn_value *prefix; /* [nranks] within the rank's part, the rank's own included */
	struct cn_value *before; /* [nranks] for the planner: of all parts before a part */
};

int cn_scan_init(struct cn_scan *s, const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		 struct cn_sched *out, struct cn_err *err);
int cn_scan_done(struct cn_scan *s);
/* The combination of all ranks of a part. */
struct cn_value cn_scan_total(const struct cn_scan *s, uint32_t part);
/* Computes the results of the part's ranks. before: the combination of all parts before it; NULL:
 * none. */
void cn_scan_finish(struct cn_scan *s, uint32_t part, const struct cn_value *before);

#endif
