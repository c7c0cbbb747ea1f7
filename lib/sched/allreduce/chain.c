/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce along a chain: the first part's contribution goes to the next, which combines it with
 * its own, and so on to the last; the result comes back along the chain. All byte by byte, so that
 * every link is used in both directions at once. For long blocks of non-commutative operations.
 *
 * A node sends in any order: the result returns while it still sends forward. In list order,
 * nothing would return before the last byte was sent forward, which takes twice the message's time
 * where both messages share a port, and the result would take as long again.
 */
#include "sched/planners.h"
#include "sched/reduction.h"

int cn_plan_allreduce_chain(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			    struct cn_sched *out, struct cn_err *err)
{
	const uint64_t len = p->bytes;
	struct cn_reduction r;
	struct cn_value v;
	uint32_t last;
	int rc = cn_reduction_init(&r, l, p, me, p->ordered, out, err);

	if (rc != COLLNET_OK || len == 0) {
		return rc != COLLNET_OK ? rc : cn_reduction_done(&r);
	}
	out->order = CN_ORDER_ANY;
	last = r.nparts - 1;
	for (uint32_t i = 0; i <= last; i++) {
		const uint32_t rank = r.parts[i].ranks[0];
		const struct cn_span result = cn_reduction_result(rank, 0);
		struct cn_value in = { 0 }, own;

		if (i > 0) {
			in = cn_reduction_move(&r, v, cn_reduction_slot(&r, rank, len), len, i - 1);
		}
		own = cn_reduction_fold(&r, &r.parts[i], rank, 0, len, last == 0 ? &result : NULL);
		v = i > 0 ? cn_reduction_combine(&r, in, own, i == last ? result : in.at, len)
			  : own;
	}
	for (uint32_t i = last;; i--) {
		cn_reduction_share(&r, &r.parts[i], v, len);
		if (i == 0) {
			break;
		}
		v = cn_reduction_move(&r, v, cn_reduction_result(r.parts[i - 1].ranks[0], 0), len,
				      2 * last - i);
	}
	return cn_reduction_done(&r);
}
