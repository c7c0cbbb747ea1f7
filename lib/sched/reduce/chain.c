/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce along a chain that ends at the root: each part combines what comes with its own and passes
 * it on, byte by byte. Every link carries the block once. Where only neighbours in the order of the
 * ranks may be combined, the chain is in that order, and the result goes from its end to the root.
 */
#include "sched/planners.h"
#include "sched/reduction.h"

int cn_plan_reduce_chain(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			 struct cn_sched *out, struct cn_err *err)
{
	const uint64_t len = p->bytes;
	const struct cn_span result = cn_reduction_result(p->root, 0);
	struct cn_reduction r;
	struct cn_value v;
	uint32_t first;
	int rc = cn_reduction_init(&r, l, p, me, p->ordered, out, err);

	if (rc != COLLNET_OK || len == 0) {
		return rc != COLLNET_OK ? rc : cn_reduction_done(&r);
	}
	first = p->ordered ? 0 : (cn_reduction_part_of(&r, p->root) + 1) % r.nparts;
	for (uint32_t i = 0; i < r.nparts; i++) {
		const struct cn_part *part = &r.parts[(first + i) % r.nparts];
		const bool last = i == r.nparts - 1;
		const uint32_t rank = cn_reduction_handler(&r, part);
		const bool ends = last && rank == p->root;
		struct cn_value in = { 0 }, own;

		if (i > 0) {
			in = cn_reduction_move(&r, v, cn_reduction_slot(&r, rank, len), len, i - 1);
		}
		own = cn_reduction_fold(&r, part, rank, 0, len, ends && i == 0 ? &result : NULL);
		v = i > 0 ? cn_reduction_combine(&r, in, own, ends ? result : in.at, len) : own;
	}
	if (v.at.buffer != CN_BUF_RECV) {
		cn_reduction_move(&r, v, result, len, r.nparts - 1);
	}
	return cn_reduction_done(&r);
}
