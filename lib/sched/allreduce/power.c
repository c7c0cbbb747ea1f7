/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of rounds, and chunks of a block. */
#include "sched/allreduce/power.h"

#include "sched/cost.h"

/* The minimum gain of one more round of halving, which wakes all nodes once more. Larger in a
 * reduce, which needs no window without halving. */
#define WORTH_A_ROUND	     0.95
#define WORTH_A_ROUND_TO_ONE 0.85

struct cn_power cn_power_of(uint32_t parts, uint32_t root)
{
	struct cn_power w = { 1, 0, root };

	while (2 * w.members <= parts) {
		w.members *= 2;
	}
	w.pairs = parts - w.members;
	return w;
}

uint32_t cn_power_part(const struct cn_power *w, uint32_t i)
{
	if (i >= w->pairs) {
		return i + w->pairs;
	}
	return w->root == 2 * i ? 2 * i : 2 * i + 1;
}

uint32_t cn_power_other(const struct cn_power *w, uint32_t pair)
{
	return w->root == 2 * pair ? 2 * pair + 1 : 2 * pair;
}

uint32_t cn_power_root(const struct cn_power *w)
{
	return w->root < 2 * w->pairs ? w->root / 2 : w->root - w->pairs;
}

/* Seconds of a round with messages of `bytes` bytes, through one switch. */
static double round_of(const struct cn_cost *c, uint64_t slowest, uint64_t bytes)
{
	return c->startup + c->hop + cn_cost_wire(c, bytes, slowest) +
	       cn_cost_wire(c, cn_cost_frame(c, bytes), slowest);
}

/*
 * No chunk is empty, and one frame is not halved: frames cost processor time at both ends, which
 * the model does not include where many nodes share processors.
 *
 * A chunk comes back in one more round of an allreduce; those of a reduce come to the root in a
 * round of their own, one behind the other.
 */
uint32_t cn_power_chunks(const struct cn_layout *l, const struct cn_plan *p, uint32_t members)
{
	const struct cn_cost cost = cn_cost_of(l);
	const uint64_t slowest = l->tree != NULL ? cn_cost_slowest(&cost, l->tree) : 0;
	const uint32_t rounds = cn_log2_up(members);
	const uint64_t elements = p->bytes / (p->element > 0 ? p->element : 1);
	const bool back = p->op == CN_OP_ALLREDUCE;
	const double worth = back ? WORTH_A_ROUND : WORTH_A_ROUND_TO_ONE;
	uint64_t bytes = p->bytes;
	double halved = 0, best = rounds * round_of(&cost, slowest, bytes);
	uint32_t chunks = 1;

	for (uint32_t k = 1; k < rounds && cn_cost_frames(&cost, bytes) > 1; k++) {
		double one, all;

		bytes = (bytes + 1) / 2;
		one = round_of(&cost, slowest, bytes);
		halved += (back ? 2 : 1) * one;
		all = halved + (rounds - k) * one +
		      (back ? 0 : round_of(&cost, slowest, p->bytes - bytes));
		if (all < worth * best && elements >> k > 0) {
			best = all;
			chunks = 1u << k;
		}
	}
	return chunks;
}

bool cn_power_sends(const struct cn_plan *p, uint32_t chunks, uint32_t i, uint32_t bit)
{
	const uint32_t done = (bit - 1) & ~(chunks - 1);

	return p->op == CN_OP_ALLREDUCE || bit < chunks || ((i & done) == 0 && (i & bit) != 0);
}

uint32_t cn_power_handler(const struct cn_reduction *r, uint32_t part)
{
	return cn_reduction_handler(r, &r->parts[part]);
}

void cn_power_fold(struct cn_reduction *r)
{
	for (uint32_t part = 0; part < r->nparts; part++) {
		const uint32_t rank = cn_power_handler(r, part);
		const struct cn_span result = cn_reduction_result(rank, 0);

		r->value[part] = cn_reduction_fold(r, &r->parts[part], rank, 0, r->p->bytes,
						   r->nparts == 1 ? &result : NULL);
	}
}

void cn_power_combine(struct cn_reduction *r, uint32_t part, bool from_below,
		      const struct cn_span *to, uint64_t len)
{
	const struct cn_value in = r->in[part], own = r->value[part];

	r->value[part] = cn_reduction_combine(r, from_below ? in : own, from_below ? own : in,
					      to != NULL ? *to : in.at, len);
}
