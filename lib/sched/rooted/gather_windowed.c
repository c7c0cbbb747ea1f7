/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gather, windowed: the nodes send at once, each with a window so small that the ports before the
 * root's node hold the frames of all. The root's link never waits for a synchronisation, not even
 * between two gathers, and shares itself. If there are more nodes than those ports hold frames,
 * that many send at a time, the nearest first, and each passes its token on when its frames are
 * acknowledged.
 */
#include "sched/rooted/gather.h"

int cn_plan_gather_windowed(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			    struct cn_sched *out, struct cn_err *err)
{
	struct cn_gather g = { .closed = true };
	uint32_t window;
	int rc = cn_fan_in(l, &g.width, &window, err);

	return rc == COLLNET_OK ? cn_gather_plan(l, p, me, &g, out, err) : rc;
}
