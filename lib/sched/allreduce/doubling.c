/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce by recursive doubling: in round k the parts whose numbers differ in bit k exchange what
 * they have combined so far, and combine it, the lower part's on the left. After log2 rounds every
 * part has everything, in the order of the parts, by the same combinations and so with the same
 * bits.
 *
 * Of parts beyond a power of two, as many pairs of neighbours as there are too many begin with
 * their lower one's contribution to the upper one, and end with the result's way back.
 */
#include "sched/planners.h"
#include "sched/reduction.h"

/* The handler of a part: the rank that combines for it. */
static uint32_t handler(const struct cn_reduction *r, uint32_t part)
{
	return r->parts[part].ranks[0];
}

static void combine_pair(struct cn_reduction *r, uint32_t part, bool from_below,
			 const struct cn_span *to, uint64_t len)
{
	const struct cn_value in = r->in[part], own = r->value[part];

	r->value[part] = cn_reduction_combine(r, from_below ? in : own, from_below ? own : in,
					      to != NULL ? *to : in.at, len);
}

/* A part that takes part in the rounds: number `i` of `power`. */
static uint32_t member(uint32_t i, uint32_t pairs)
{
	return i < pairs ? 2 * i + 1 : i + pairs;
}

static void rounds(struct cn_reduction *r, uint32_t power, uint32_t pairs, uint32_t *phase)
{
	const uint64_t len = r->p->bytes;

	for (uint32_t bit = 1; bit < power; bit *= 2, (*phase)++) {
		for (uint32_t i = 0; i < power; i++) {
			const uint32_t to = member(i ^ bit, pairs);

			r->in[to] = cn_reduction_move(r, r->value[member(i, pairs)],
						      cn_reduction_slot(r, handler(r, to), len),
						      len, *phase);
		}
		for (uint32_t i = 0; i < power; i++) {
			const uint32_t part = member(i, pairs);
			const struct cn_span result = cn_reduction_result(handler(r, part), 0);

			combine_pair(r, part, (i & bit) != 0, 2 * bit == power ? &result : NULL,
				     len);
		}
	}
}

static void run(struct cn_reduction *r)
{
	const uint64_t len = r->p->bytes;
	uint32_t power = 1, pairs, phase = 0;

	while (2 * power <= r->nparts) {
		power *= 2;
	}
	pairs = r->nparts - power;
	for (uint32_t part = 0; part < r->nparts; part++) {
		const struct cn_span result = cn_reduction_result(handler(r, part), 0);

		r->value[part] = cn_reduction_fold(r, &r->parts[part], handler(r, part), 0, len,
						   r->nparts == 1 ? &result : NULL);
	}
	for (uint32_t i = 0; i < pairs; i++) {
		const uint32_t to = 2 * i + 1;

		r->in[to] = cn_reduction_move(r, r->value[2 * i],
					      cn_reduction_slot(r, handler(r, to), len), len,
					      phase);
	}
	for (uint32_t i = 0; i < pairs; i++) {
		combine_pair(r, 2 * i + 1, true, NULL, len);
	}
	phase += pairs > 0;
	rounds(r, power, pairs, &phase);
	for (uint32_t i = 0; i < pairs; i++) {
		r->value[2 * i] = cn_reduction_move(r, r->value[2 * i + 1],
						    cn_reduction_result(handler(r, 2 * i), 0), len,
						    phase);
	}
	for (uint32_t part = 0; part < r->nparts; part++) {
		cn_reduction_share(r, &r->parts[part], r->value[part], len);
	}
}

int cn_plan_allreduce_doubling(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			       struct cn_sched *out, struct cn_err *err)
{
	struct cn_reduction r;
	int rc = cn_reduction_small(p, "doubling", err);

	if (rc == COLLNET_OK) {
		rc = cn_reduction_init(&r, l, p, me, p->ordered, out, err);
	}
	if (rc != COLLNET_OK || p->bytes == 0) {
		return rc != COLLNET_OK ? rc : cn_reduction_done(&r);
	}
	run(&r);
	return cn_reduction_done(&r);
}
