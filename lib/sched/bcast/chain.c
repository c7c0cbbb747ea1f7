/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast along a chain: the ring of LR1 (the hosts depth-first), cut before the root. Every
 * directed link has at most one message of a segment on it, so a new segment starts every phase,
 * and all that a link carries comes from one node in its own order.
 */
#include <stdlib.h>

#include "sched/bcast/bcast.h"

int cn_bcast_chain(const struct cn_layout *l, uint32_t root, uint64_t bytes, uint64_t segment,
		   const struct cn_cost *c, struct cn_bcast *out, struct cn_err *err)
{
	int rc = cn_bcast_kary_tree(l, root, 1, out, err);

	if (!rc) {
		rc = cn_bcast_choose(out, l->tree, c, bytes, segment, err);
	}
	if (!rc) {
		rc = cn_bcast_colour(out, l->tree, err);
	}
	if (rc) {
		cn_bcast_done(out);
	}
	return rc;
}

int cn_plan_bcast_chain(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			struct cn_sched *out, struct cn_err *err)
{
	return cn_bcast_plan(cn_bcast_chain, l, p, me, out, err);
}
