/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The equations of Tam and Wang, "Contention-Aware Communication Schedule for High-Speed
 * Communication", with this transport's frames and the simulated cluster's parameters. Pure.
 */
#include <math.h>
#include <stdlib.h>

#include "proto/wire.h"
#include "tools/sim/model.h"

/* Preamble, checksum, gap between frames: as in tools/sim/core, where token buckets do not count
 * them. */
#define WIRE_OVERHEAD 24u

static uint32_t frame_overhead(const struct cn_sim_config *c)
{
	return cn_wire_overhead(c->engine.node.encapsulation, c->engine.node.authenticated);
}

/* Bytes that a frame with so much payload takes on the wire. */
static double wire_bytes(const struct cn_sim_config *c, uint64_t payload)
{
	uint64_t frame = CN_HEAD + frame_overhead(c) + payload;

	return (double)((frame < CN_ETH_MIN ? CN_ETH_MIN : frame) +
			(c->buckets ? 0 : WIRE_OVERHEAD));
}

static uint64_t full_frame(const struct cn_sim_config *c)
{
	return c->engine.node.mtu - CN_WIRE_HEADER - frame_overhead(c);
}

/* Bytes on the wire of a block. */
static double block_bytes(const struct cn_sim_config *c, uint64_t bytes)
{
	uint64_t full = full_frame(c), rest = bytes % full;
	double sum = (double)(bytes / full) * wire_bytes(c, full);

	return rest > 0 || bytes == 0 ? sum + wire_bytes(c, rest) : sum;
}

/* g of one frame, in seconds, at a host whose link has that rate. */
static double frame_gap(const struct cn_sim_config *c, uint64_t payload, double rate)
{
	double wire = wire_bytes(c, payload) * 8 / rate;
	double busy = (double)(c->o_send + c->o_recv + c->u_recv) / 1e9;

	return fmax(wire, fmax((double)c->gap / 1e9, busy));
}

/* k g: all frames of a block. */
static double block_gaps(const struct cn_sim_config *c, uint64_t bytes, double rate)
{
	uint64_t full = full_frame(c), rest = bytes % full;
	double sum = (double)(bytes / full) * frame_gap(c, full, rate);

	return rest > 0 || bytes == 0 ? sum + frame_gap(c, rest, rate) : sum;
}

/* Seconds of a frame on a link; cutting through, of what a switch needs to see of it. A token
 * bucket does not hold it up. */
static double link_seconds(const struct cn_sim_config *c, const struct cn_topo_link *l,
			   uint64_t payload, bool whole)
{
	double rate = (double)(l->rate * l->channels);
	double bytes = whole || !c->cut_through ? wire_bytes(c, payload) : 64;

	return (c->buckets ? 0 : bytes * 8 / rate) + (double)c->latency / 1e9;
}

/*
 * L: a frame from card to card on the longest path. For every vertex the slowest way down to a
 * host; two of them meet at a switch.
 */
static double longest_path(const struct cn_sim_config *c, const struct cn_topo *t, uint64_t payload)
{
	double *down = calloc((size_t)t->nvertices + 1, sizeof(*down)), longest = 0, last = 0;

	if (down == NULL) {
		return NAN;
	}
	for (uint32_t i = t->nvertices; i-- > 1;) {
		uint32_t v = t->order[i], up = t->vertices[v].parent;
		const struct cn_topo_link *l = &t->links[t->vertices[v].parent_link];
		double delay = t->vertices[v].is_switch ? (double)c->delay / 1e9 : 0;
		double path;

		if (t->vertices[v].hosts == 0) {
			continue;
		}
		if (!t->vertices[v].is_switch) {
			last = fmax(last, link_seconds(c, l, payload, true) -
						  link_seconds(c, l, payload, false));
		}
		path = down[v] + delay + link_seconds(c, l, payload, false);
		longest = fmax(longest, down[up] + path + (double)c->delay / 1e9);
		down[up] = fmax(down[up], path);
	}
	free(down);
	return longest + last; /* a frame that cuts through must come whole in the end */
}

static double slowest_host(const struct cn_topo *t)
{
	double rate = INFINITY;

	for (uint32_t i = 0; i < t->nhosts; i++) {
		const struct cn_topo_link *l = &t->links[t->vertices[t->hosts[i]].parent_link];

		rate = fmin(rate, (double)(l->rate * l->channels));
	}
	return rate;
}

/* Eq. 2 and 6, an exchange of nodes with equally many ranks; seconds. `bytes` of a message between
 * two nodes. */
static void exchange(const struct cn_sim_config *c, const struct measure_layout *p, uint64_t bytes,
		     struct sim_model *out)
{
	double rate = slowest_host(p->topo), messages = p->nodes - 1;
	double kg = block_gaps(c, bytes, rate), rounds = p->nodes - 1 + p->nodes % 2;
	uint64_t full = full_frame(c), rest = bytes % full;
	uint64_t last = rest > 0 || bytes == 0 ? rest : full;

	out->g = frame_gap(c, full, rate) * 1e6;
	out->t_w = (longest_path(c, p->topo, last) - frame_gap(c, last, rate) +
		    (double)(c->o_send + c->o_recv + c->u_recv) / 1e9) *
		   1e6;
	out->eq2 = messages * kg * 1e6 + out->t_w;
	out->eq6 = messages * kg * 1e6 + rounds * out->t_w;
}

/* Bytes of a message on the busiest link: the blocks of the ranks of two nodes, or of one, have no
 * frames of their own; in an allgather, which can double, nor do those of all nodes. */
static uint64_t message_bytes(enum measure_op op, const struct measure_layout *p, uint64_t bytes)
{
	uint64_t local = p->nodes > 0 ? p->ranks / p->nodes : 1;

	switch (op) {
	case MEASURE_ALLTOALL:
		return local * local * bytes;
	case MEASURE_SCATTER:
	case MEASURE_GATHER:
	case MEASURE_REDUCE_SCATTER:
		return local * bytes;
	case MEASURE_ALLGATHER:
		return (uint64_t)measure_limit_blocks(op, p) * bytes;
	default:
		return bytes;
	}
}

void sim_model(const struct cn_sim_config *c, const struct measure_layout *place,
	       enum measure_op op, uint64_t bytes, struct sim_model *out)
{
	double payload = measure_limit_us(op, place, bytes);

	*out = (struct sim_model){ NAN, NAN, NAN, NAN, NAN, NAN };
	if (isfinite(payload) && bytes > 0) {
		const uint64_t message = message_bytes(op, place, bytes);

		out->eq7 = payload * block_bytes(c, message) / (double)message;
	}
	if (op == MEASURE_ALLTOALL && place->nodes > 1) {
		exchange(c, place, message_bytes(op, place, bytes), out);
	}
	out->best = fmax(out->eq2, out->eq7); /* fmax leaves out a NAN */
}
