/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of rounds, and chunks of a block. */
#include "sched/allreduce/power.h"

#include "sched/cost.h"

/* What one more round of halving must save: it wakes all nodes once more. */
#define WORTH_A_ROUND 0.95

struct cn_power cn_power_of(uint32_t parts)
{
	struct cn_power w = { 1, 0 };

	while (2 * w.members <= parts) {
		w.members *= 2;
	}
	w.pairs = parts - w.members;
	return w;
}

uint32_t cn_power_part(const struct cn_power *w, uint32_t i)
{
	return i < w->pairs ? 2 * i + 1 : i + w->pairs;
}

/* Seconds of a round whose messages have so many bytes, through one switch. */
static double round_of(const struct cn_cost *c, uint64_t slowest, uint64_t bytes)
{
	return c->startup + c->hop + cn_cost_wire(c, bytes, slowest) +
	       cn_cost_wire(c, cn_cost_frame(c, bytes), slowest);
}

uint32_t cn_power_chunks(const struct cn_layout *l, uint32_t members, uint64_t bytes)
{
	const struct cn_cost cost = cn_cost_of(l);
	const uint64_t slowest = l->tree != NULL ? cn_cost_slowest(&cost, l->tree) : 0;
	const uint32_t rounds = cn_log2_up(members);
	double halved = 0, best = rounds * round_of(&cost, slowest, bytes);
	uint32_t chunks = 1;

	for (uint32_t k = 1; k < rounds; k++) {
		double all;

		bytes = (bytes + 1) / 2;
		halved += 2 * round_of(&cost, slowest, bytes);
		all = halved + (rounds - k) * round_of(&cost, slowest, bytes);
		if (all < WORTH_A_ROUND * best) {
			best = all;
			chunks = 1u << k;
		}
	}
	return chunks;
}

uint32_t cn_power_handler(const struct cn_reduction *r, uint32_t part)
{
	return r->parts[part].ranks[0];
}

void cn_power_combine(struct cn_reduction *r, uint32_t part, bool from_below, struct cn_value own,
		      const struct cn_span *to, uint64_t len)
{
	const struct cn_value in = r->in[part];

	r->value[part] = cn_reduction_combine(r, from_below ? in : own, from_below ? own : in,
					      to != NULL ? *to : in.at, len);
}
