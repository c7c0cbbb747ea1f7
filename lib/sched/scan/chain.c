/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scan and exscan along the chain of the parts: each one puts what comes from the one before in
 * front of its own and passes it on, byte by byte as it comes.
 */
#include "sched/planners.h"
#include "sched/scan/scan.h"

int cn_plan_scan_chain(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       struct cn_sched *out, struct cn_err *err)
{
	const uint64_t len = p->bytes;
	struct cn_value total;
	struct cn_scan s;
	int rc = cn_scan_init(&s, l, p, me, out, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	for (uint32_t x = 0; x < s.r.nparts && len > 0; x++) {
		const uint32_t rank = s.r.parts[x].ranks[0];
		struct cn_value in = { 0 };

		if (x > 0) {
			in = cn_reduction_move(&s.r, total, cn_reduction_slot(&s.r, rank, len), len,
					       x - 1);
		}
		total = cn_scan_total(&s, x);
		if (x > 0 && x + 1 < s.r.nparts) {
			total = cn_reduction_combine(&s.r, in, total,
						     cn_reduction_slot(&s.r, rank, len), len);
		}
		cn_scan_finish(&s, x, x > 0 ? &in : NULL);
	}
	return cn_scan_done(&s);
}
