/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce by a binomial tree of the parts: in round k every second one of those that are left sends
 * what it has to the one before it. The parts are counted from the root's; where only neighbours in
 * the order of the ranks may be combined, from rank 0's, and the result goes from there to the
 * root.
 */
#include "sched/planners.h"
#include "sched/reduction.h"

static void run(struct cn_reduction *r)
{
	const uint64_t len = r->p->bytes;
	const uint32_t n = r->nparts, root = r->p->root;
	const uint32_t first = r->p->ordered ? 0 : cn_reduction_part_of(r, root);
	const struct cn_span result = cn_reduction_result(root, 0);
	uint32_t phase = 0;

	for (uint32_t x = 0; x < n; x++) {
		const struct cn_part *part = &r->parts[(first + x) % n];
		const uint32_t rank = cn_reduction_handler(r, part);

		r->value[x] = cn_reduction_fold(r, part, rank, 0, len,
						n == 1 && rank == root ? &result : NULL);
	}
	for (uint32_t d = 1; d < n; d *= 2, phase++) {
		for (uint32_t x = 0; x < n && x + d < n; x += 2 * d) {
			const uint32_t rank = cn_reduction_handler(r, &r->parts[(first + x) % n]);

			r->in[x] = cn_reduction_move(r, r->value[x + d],
						     cn_reduction_slot(r, rank, len), len, phase);
		}
		for (uint32_t x = 0; x < n && x + d < n; x += 2 * d) {
			const bool ends = 2 * d >= n && r->in[x].at.rank == root;

			r->value[x] = cn_reduction_combine(r, r->value[x], r->in[x],
							   ends ? result : r->in[x].at, len);
		}
	}
	if (r->value[0].at.buffer != CN_BUF_RECV) {
		cn_reduction_move(r, r->value[0], result, len, phase);
	}
}

int cn_plan_reduce_binomial(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			    struct cn_sched *out, struct cn_err *err)
{
	struct cn_reduction r;
	int rc = cn_reduction_small(p, "binomial", err);

	if (rc == COLLNET_OK) {
		rc = cn_reduction_init(&r, l, p, me, p->ordered, out, err);
	}
	if (rc != COLLNET_OK || p->bytes == 0) {
		return rc != COLLNET_OK ? rc : cn_reduction_done(&r);
	}
	run(&r);
	return cn_reduction_done(&r);
}
