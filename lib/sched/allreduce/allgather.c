/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce of small blocks by an allgather: the blocks of all ranks go to all nodes, by recursive
 * doubling, and one rank of every node combines them at the end, in one order and so with the same
 * bits. As many messages as recursive doubling of values, but longer ones; and nothing is combined
 * before the last has come, so that a rank is asked to combine once.
 *
 * Every node has an array of one place per rank, in the order of the nodes on the ring. In each
 * round (allgather/doubling.h) it sends what it has, which is a range of places, or two, where the
 * range goes beyond the end. A send waits for the last receive of what it sends; sends go in turn,
 * so by then all earlier receives have been waited for too.
 */
#include <stdlib.h>

#include "sched/allgather/doubling.h"
#include "sched/planners.h"
#include "sched/reduction.h"

struct gathering {
	struct cn_reduction r;
	uint32_t me;	 /* the part of this node */
	uint32_t copies; /* copies before all messages, which wait for them */
	uint32_t *begin; /* [nparts + 1] a node's places in the array; node by position */
	uint32_t *place; /* [nranks] of a rank's block */
	uint32_t *made;	 /* [nranks] the action that brought a slot's block to this node */
};

/* A place in the array of the node at position `part`. */
static struct cn_span span_of(const struct gathering *g, uint32_t part, uint32_t place)
{
	struct cn_span s = g->r.in[part].at;

	s.offset += place * g->r.p->bytes;
	return s;
}

/* Copies the ranks' blocks into their slots; the node's sends wait for the copies. */
static void begin(struct gathering *g)
{
	struct cn_reduction *r = &g->r;
	const struct cn_part *mine = &r->parts[g->me];

	for (uint32_t i = 0; i < r->nparts; i++) {
		r->in[i].at = cn_reduction_slot(r, r->parts[i].ranks[0],
						r->l->nranks * r->p->bytes);
	}
	for (uint32_t k = 0; k < mine->n; k++) {
		const uint32_t at = g->begin[g->me] + k;
		const struct cn_value v = cn_reduction_move(r, cn_reduction_own(mine->ranks[k], 0),
							    span_of(g, g->me, at), r->p->bytes, 0);

		g->made[at] = v.made;
		cn_reduction_wait(r, v);
	}
	g->copies = r->out->n;
}

/* Sends slots first .. end - 1, after the last receive that filled them. */
static void pass(struct gathering *g, const struct cn_doubling *m, uint32_t first, uint32_t end,
		 uint32_t phase)
{
	struct cn_value v = { span_of(g, m->from, first), CN_REDUCTION_NONE }, moved;

	for (uint32_t at = first; m->from == g->me && at < end; at++) {
		if (g->made[at] >= g->copies &&
		    (v.made == CN_REDUCTION_NONE || g->made[at] > v.made)) {
			v.made = g->made[at];
		}
	}
	moved = cn_reduction_move(&g->r, v, span_of(g, m->to, first), (end - first) * g->r.p->bytes,
				  phase);
	for (uint32_t at = first; m->to == g->me && at < end; at++) {
		g->made[at] = moved.made;
	}
}

static void message(struct gathering *g, struct cn_doubling m, uint32_t phase)
{
	const uint32_t parts = g->r.nparts, end = m.first + m.count;

	pass(g, &m, g->begin[m.first], g->begin[end < parts ? end : parts], phase);
	if (end > parts) {
		pass(g, &m, 0, g->begin[end - parts], phase);
	}
}

static void exchange(struct gathering *g)
{
	const uint32_t parts = g->r.nparts;

	for (uint32_t k = 0; k < cn_log2_up(parts); k++) {
		message(g, cn_doubling_send(parts, k, g->me), k);
		message(g, cn_doubling_receive(parts, k, g->me), k);
	}
}

/* Combines all blocks: in rank order where it matters, else in array order. */
static void combine(struct gathering *g)
{
	struct cn_reduction *r = &g->r;
	const struct cn_part *mine = &r->parts[g->me];
	const struct cn_span result = cn_reduction_result(mine->ranks[0], 0);
	struct cn_value v = { result, CN_REDUCTION_NONE };

	for (uint32_t i = 0; i < r->l->nranks; i++) {
		const uint32_t at = r->p->ordered ? g->place[i] : i;
		const struct cn_value b = { span_of(g, g->me, at), g->made[at] };

		v = i == 0 ? b : cn_reduction_combine(r, v, b, result, r->p->bytes);
	}
	cn_reduction_share(r, mine, (struct cn_value){ result, v.made }, r->p->bytes);
}

/* A single node: its first rank combines. */
static void alone(struct cn_reduction *r)
{
	const struct cn_part *part = &r->parts[0];
	const struct cn_span result = cn_reduction_result(part->ranks[0], 0);
	const uint64_t len = r->p->bytes;

	cn_reduction_share(r, part, cn_reduction_fold(r, part, part->ranks[0], 0, len, &result),
			   len);
}

static bool number_places(struct gathering *g)
{
	const struct cn_reduction *r = &g->r;
	const size_t ranks = r->l->nranks, parts = r->nparts;
	uint32_t at = 0;

	g->begin = calloc(2 * ranks + parts + 1, sizeof(*g->begin));
	if (g->begin == NULL) {
		return false;
	}
	g->place = g->begin + parts + 1;
	g->made = g->place + ranks;
	for (uint32_t i = 0; i < r->nparts; i++) {
		g->begin[i] = at;
		for (uint32_t k = 0; k < r->parts[i].n; k++, at++) {
			g->place[r->parts[i].ranks[k]] = at;
		}
		g->me = r->parts[i].node == r->me ? i : g->me;
	}
	g->begin[r->nparts] = at;
	return true;
}

int cn_plan_allreduce_allgather(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
				struct cn_sched *out, struct cn_err *err)
{
	struct gathering g = { 0 };
	int rc;

	if (!cn_reduction_gathers(l->nranks, p->bytes)) {
		return cn_fail(err, COLLNET_EINVAL,
			       "allreduce of %llu bytes on %u ranks: algorithm allgather is for "
			       "blocks of up to %u bytes together",
			       (unsigned long long)p->bytes, l->nranks, CN_REDUCTION_SMALL);
	}
	rc = cn_reduction_init(&g.r, l, p, me, false, out, err);
	if (rc != COLLNET_OK || p->bytes == 0) {
		return rc != COLLNET_OK ? rc : cn_reduction_done(&g.r);
	}
	if (g.r.nparts == 1) {
		alone(&g.r);
	} else if (number_places(&g)) {
		begin(&g);
		exchange(&g);
		combine(&g);
	} else {
		g.r.rc = cn_fail(err, COLLNET_ENOMEM, "no memory to plan a reduction of %u ranks",
				 l->nranks);
	}
	free(g.begin);
	return cn_reduction_done(&g.r);
}
