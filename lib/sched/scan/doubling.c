/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scan and exscan by doubling (Hillis and Steele): in round k a part sends the combination of the
 * 2^k parts that end with it to the part 2^k places ahead.
 */
#include "sched/planners.h"
#include "sched/scan/scan.h"

/* Prepends the value received in a round to the two combinations of the part. */
static void take(struct cn_scan *s, uint32_t x, uint32_t distance)
{
	struct cn_reduction *r = &s->r;
	const struct cn_value in = r->in[x];
	const uint64_t len = r->p->bytes;
	const uint32_t rank = r->parts[x].ranks[0];

	if (x + 2 * distance < r->nparts) {
		r->value[x] = cn_reduction_combine(r, in, r->value[x],
						   cn_reduction_slot(r, rank, len), len);
	}
	s->before[x] = distance == 1 ? in : cn_reduction_combine(r, in, s->before[x], in.at, len);
}

static void run(struct cn_scan *s)
{
	struct cn_reduction *r = &s->r;
	const uint64_t len = r->p->bytes;
	uint32_t phase = 0;

	for (uint32_t x = 0; x < r->nparts; x++) {
		r->value[x] = cn_scan_total(s, x);
	}
	for (uint32_t d = 1; d < r->nparts; d *= 2, phase++) {
		for (uint32_t x = 0; x + d < r->nparts; x++) {
			const uint32_t to = x + d;

			r->in[to] = cn_reduction_move(r, r->value[x],
						      cn_reduction_slot(r, r->parts[to].ranks[0],
									len),
						      len, phase);
		}
		for (uint32_t x = d; x < r->nparts; x++) {
			take(s, x, d);
		}
	}
	for (uint32_t x = 0; x < r->nparts; x++) {
		cn_scan_finish(s, x, x > 0 ? &s->before[x] : NULL);
	}
}

int cn_plan_scan_doubling(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			  struct cn_sched *out, struct cn_err *err)
{
	struct cn_scan s;
	int rc = cn_reduction_small(p, "doubling", err);

	if (rc == COLLNET_OK) {
		rc = cn_scan_init(&s, l, p, me, out, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (p->bytes > 0) {
		run(&s);
	}
	return cn_scan_done(&s);
}
