/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce by recursive doubling: in round k the members (power.h) whose numbers differ in bit k
 * exchange what they have combined so far, and combine it, the lower one's on the left. After log2
 * rounds every member has everything, in the order of the parts, by the same combinations and so
 * with the same bits.
 *
 * Pairs begin with the other part's contribution to the member, and end with the result sent back.
 */
#include "sched/allreduce/power.h"
#include "sched/planners.h"

/* Members' values are those of their part, and of the other one in a pair. Returns the next phase.
 */
static uint32_t begin(struct cn_reduction *r, const struct cn_power *w)
{
	const uint64_t len = r->p->bytes;

	cn_power_fold(r);
	for (uint32_t i = 0; i < w->pairs; i++) {
		const uint32_t to = cn_power_part(w, i), rank = cn_power_handler(r, to);

		r->in[to] = cn_reduction_move(r, r->value[cn_power_other(w, i)],
					      cn_reduction_slot(r, rank, len), len, 0);
	}
	for (uint32_t i = 0; i < w->pairs; i++) {
		cn_power_combine(r, cn_power_part(w, i), true, NULL, len);
	}
	return w->pairs > 0;
}

static void rounds(struct cn_reduction *r, const struct cn_power *w, uint32_t *phase)
{
	const uint64_t len = r->p->bytes;

	for (uint32_t bit = 1; bit < w->members; bit *= 2, (*phase)++) {
		for (uint32_t i = 0; i < w->members; i++) {
			const uint32_t to = cn_power_part(w, i ^ bit),
				       rank = cn_power_handler(r, to);

			r->in[to] = cn_reduction_move(r, r->value[cn_power_part(w, i)],
						      cn_reduction_slot(r, rank, len), len, *phase);
		}
		for (uint32_t i = 0; i < w->members; i++) {
			const uint32_t part = cn_power_part(w, i);
			const struct cn_span result = cn_reduction_result(cn_power_handler(r, part),
									  0);

			cn_power_combine(r, part, (i & bit) != 0,
					 2 * bit == w->members ? &result : NULL, len);
		}
	}
}

static void end(struct cn_reduction *r, const struct cn_power *w, uint32_t phase)
{
	for (uint32_t i = 0; i < w->pairs; i++) {
		const uint32_t to = cn_power_other(w, i);

		r->value[to] = cn_reduction_move(r, r->value[cn_power_part(w, i)],
						 cn_reduction_result(cn_power_handler(r, to), 0),
						 r->p->bytes, phase);
	}
	for (uint32_t part = 0; part < r->nparts; part++) {
		cn_reduction_share(r, &r->parts[part], r->value[part], r->p->bytes);
	}
}

int cn_plan_allreduce_doubling(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			       struct cn_sched *out, struct cn_err *err)
{
	struct cn_reduction r;
	struct cn_power w;
	uint32_t phase;
	int rc = cn_reduction_small(p, "doubling", err);

	if (rc == COLLNET_OK) {
		rc = cn_reduction_init(&r, l, p, me, p->ordered, out, err);
	}
	if (rc != COLLNET_OK || p->bytes == 0) {
		return rc != COLLNET_OK ? rc : cn_reduction_done(&r);
	}
	w = cn_power_of(r.nparts, CN_POWER_NO_ROOT);
	phase = begin(&r, &w);
	rounds(&r, &w, &phase);
	end(&r, &w, phase);
	return cn_reduction_done(&r);
}
