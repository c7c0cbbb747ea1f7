/* SPDX-License-Identifier: BSD-2-Clause */
/* The cost model of cost.h. */
#include "sched/cost.h"

#include "sched/sched.h"

const struct cn_cost cn_cost_default = {
	.startup = 10e-6,
	.message = 0.5e-6,
	.combine = 40e-6,
	.combine_short = 1e-6,
	.loss = 5e-3,
	.hop = 5e-6,
	.payload = 1476,
	.overhead = 62,
	.rate = 1e9,
};

struct cn_cost cn_cost_of(const struct cn_layout *l)
{
	struct cn_cost c = cn_cost_default;

	c.payload -= l->headers;
	c.overhead += l->headers;
	if (l->rate != 0) {
		c.rate = (double)l->rate;
	}
	return c;
}

static double on_link(const struct cn_cost *c, uint64_t bytes, uint64_t frames, uint64_t rate)
{
	const double bits = 8.0 * ((double)bytes + (double)frames * c->overhead);

	return bits / (rate == 0 ? c->rate : (double)rate);
}

uint64_t cn_cost_frames(const struct cn_cost *c, uint64_t bytes)
{
	return bytes == 0 ? 1 : (bytes - 1) / c->payload + 1;
}

double cn_cost_wire(const struct cn_cost *c, uint64_t bytes, uint64_t rate)
{
	const uint64_t frames = cn_cost_frames(c, bytes);
	const double seconds = on_link(c, bytes, frames, rate), paced = (double)frames * c->pace;

	return seconds > paced ? seconds : paced;
}

uint64_t cn_cost_frame(const struct cn_cost *c, uint64_t bytes)
{
	const uint64_t frames = cn_cost_frames(c, bytes);

	return (bytes + frames - 1) / frames;
}

static uint64_t link_rate(const struct cn_cost *c, const struct cn_tree *t, uint32_t x)
{
	uint64_t rate = cn_tree_rate(t, x);

	return rate == 0 ? (uint64_t)c->rate : rate;
}

double cn_cost_message_and_wire(const struct cn_cost *c, const struct cn_tree *t, uint32_t a,
				uint32_t b, uint64_t bytes, double *wire)
{
	uint32_t x = t->host[a], y = t->host[b], top = cn_tree_lca(t, x, y);
	uint64_t slowest = UINT64_MAX, rate;
	double frames = 0, longest = 0, one;
	uint64_t first = bytes < c->payload ? bytes : c->payload;
	uint32_t ends[2] = { x, y }, links = 0;

	if (a == b) {
		*wire = 0;
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		for (x = ends[i]; x != top; x = t->v[x].parent) {
			rate = link_rate(c, t, x);
			slowest = rate < slowest ? rate : slowest;
			one = on_link(c, first, 1, rate);
			frames += one;
			longest = one > longest ? one : longest;
			links++;
		}
	}
	*wire = cn_cost_wire(c, bytes, slowest);
	return c->startup + *wire + (frames - longest) + (links - 1) * c->hop;
}

double cn_cost_message(const struct cn_cost *c, const struct cn_tree *t, uint32_t a, uint32_t b,
		       uint64_t bytes)
{
	double wire;

	return cn_cost_message_and_wire(c, t, a, b, bytes, &wire);
}

/*
 * An acknowledgement is requested when half of the window has been sent. Each frame that it
 * acknowledges is one more that may be on its way: their number doubles per round trip until the
 * link is busy all the time.
 */
double cn_cost_waits(const struct cn_cost *c, uint64_t frames, double interval, double way)
{
	const double round_trip = 2 * way - c->startup; /* no message's start-up back */
	uint64_t burst = c->at_once, sent = burst;
	double waits = 0;

	while (burst > 0 && sent < frames && (double)burst * interval / 2 < round_trip) {
		waits += round_trip - (double)burst * interval / 2;
		burst *= 2;
		sent += burst;
	}
	return waits;
}

uint64_t cn_cost_ns(double seconds)
{
	const double most = 0x1p44;

	return seconds * 1e9 < most ? (uint64_t)(seconds * 1e9 + 0.5) : (uint64_t)most;
}

uint64_t cn_cost_slowest(const struct cn_cost *c, const struct cn_tree *t)
{
	uint64_t slowest = UINT64_MAX;

	for (uint32_t x = 1; x < t->n; x++) {
		uint64_t rate = link_rate(c, t, x);

		slowest = rate < slowest ? rate : slowest;
	}
	return slowest == UINT64_MAX ? (uint64_t)c->rate : slowest;
}
