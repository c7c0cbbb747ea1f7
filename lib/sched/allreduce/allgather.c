/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce of small blocks by an allgather: the blocks of all ranks go to all nodes, by recursive
 * doubling, and one rank of every node combines them at the end, in one order and so with the same
 * bits. As many messages as recursive doubling of values, but longer ones; and nothing is combined
 * before the last has come, so that a rank is asked to combine once.
 *
 * Every node has an array of one place per rank, in the order of the nodes on the ring. In round k
 * two nodes whose numbers differ in bit k exchange what they have, which is a range of places. A
 * send waits for the receive of the round before; sends go in turn, so by then all earlier receives
 * have been waited for too.
 *
 * Of nodes beyond a power of two, as many pairs of neighbours as there are too many begin with the
 * lower one's blocks to the upper one, and end with the result's way back.
 */
#include <stdlib.h>

#include "sched/planners.h"
#include "sched/reduction.h"

struct gathering {
	struct cn_reduction r;
	uint32_t power, pairs;
	uint32_t rounds;   /* of the power */
	uint32_t *begin;   /* [nparts + 1] a node's places in the array; node by position */
	uint32_t *place;   /* [nranks] of a rank's block */
	uint32_t *part_of; /* [nranks] the node of a place */
	uint32_t *made; /* [rounds + 1] what this node received in a round; the last: of a pair */
	uint32_t *own;	/* [nranks] the copy that made a place of this node */
};

/* A place in the array of the node at position `part`. */
static struct cn_span span_of(const struct gathering *g, uint32_t part, uint32_t place)
{
	struct cn_span s = g->r.in[part].at;

	s.offset += place * g->r.p->bytes;
	return s;
}

static bool is_mine(const struct gathering *g, uint32_t part)
{
	return g->r.parts[part].node == g->r.me;
}

/* The node that takes part in the rounds as number `i` of `power`. */
static uint32_t member(const struct gathering *g, uint32_t i)
{
	return i < g->pairs ? 2 * i + 1 : i + g->pairs;
}

/* As which number a node takes part, or the other one of its pair. */
static uint32_t number(const struct gathering *g, uint32_t part)
{
	return part < 2 * g->pairs ? part / 2 : part - g->pairs;
}

/* The first place of what member i has at the beginning of the rounds. */
static uint32_t first_place(const struct gathering *g, uint32_t i)
{
	return g->begin[i < g->pairs ? 2 * i : i + g->pairs];
}

/* Places first .. end - 1 from one node's array to another's; *made is set on the latter. */
static void pass(struct gathering *g, uint32_t from, uint32_t to, uint32_t first, uint32_t end,
		 uint32_t after, uint32_t phase, uint32_t *made)
{
	const struct cn_value v = { span_of(g, from, first), after };
	const struct cn_value moved = cn_reduction_move(&g->r, v, span_of(g, to, first),
							(end - first) * g->r.p->bytes, phase);

	if (is_mine(g, to)) {
		*made = moved.made;
	}
}

/* The ranks' blocks into their places; the node's sends wait for them. */
static void begin(struct gathering *g)
{
	struct cn_reduction *r = &g->r;

	for (uint32_t i = 0; i < r->nparts; i++) {
		const struct cn_part *part = &r->parts[i];

		r->in[i].at = cn_reduction_slot(r, part->ranks[0], r->l->nranks * r->p->bytes);
		for (uint32_t k = 0; k < part->n && is_mine(g, i); k++) {
			const uint32_t at = g->begin[i] + k;
			const struct cn_value v = cn_reduction_move(r,
								    cn_reduction_own(part->ranks[k],
										     0),
								    span_of(g, i, at), r->p->bytes,
								    0);

			g->own[at] = v.made;
			cn_reduction_wait(r, v);
		}
	}
}

static void exchange(struct gathering *g, uint32_t *phase)
{
	for (uint32_t i = 0; i < g->pairs; i++) {
		pass(g, 2 * i, 2 * i + 1, g->begin[2 * i], g->begin[2 * i + 1], CN_REDUCTION_NONE,
		     0, &g->made[g->rounds]);
	}
	*phase = g->pairs > 0;
	for (uint32_t k = 0; k < g->rounds; k++, (*phase)++) {
		const uint32_t bit = 1u << k;

		for (uint32_t i = 0; i < g->power; i++) {
			const uint32_t low = i & ~(bit - 1);
			const uint32_t after = k > 0	      ? g->made[k - 1]
					       : i < g->pairs ? g->made[g->rounds]
							      : CN_REDUCTION_NONE;

			pass(g, member(g, i), member(g, i ^ bit), first_place(g, low),
			     first_place(g, low + bit), after, *phase, &g->made[k]);
		}
	}
}

/* The block of a rank, in the array of this node. */
static struct cn_value block(const struct gathering *g, uint32_t part, uint32_t place)
{
	const uint32_t of = g->part_of[place], differ = number(g, part) ^ number(g, of);
	uint32_t round = g->rounds;

	for (uint32_t k = 0; differ >> k > 0; k++) {
		round = k;
	}
	return (struct cn_value){ span_of(g, part, place),
				  of == part ? g->own[place] : g->made[round] };
}

/* All blocks: in the order of the ranks where it matters, else in that of the array. */
static void combine(struct gathering *g, uint32_t part)
{
	struct cn_reduction *r = &g->r;
	const struct cn_span result = cn_reduction_result(r->parts[part].ranks[0], 0);
	struct cn_value v = { result, CN_REDUCTION_NONE };

	for (uint32_t i = 0; i < r->l->nranks && is_mine(g, part); i++) {
		const struct cn_value b = block(g, part, r->p->ordered ? g->place[i] : i);

		v = i == 0 ? b : cn_reduction_combine(r, v, b, result, r->p->bytes);
	}
	r->value[part] = (struct cn_value){ result, v.made };
}

static void run(struct gathering *g)
{
	struct cn_reduction *r = &g->r;
	uint32_t phase;

	begin(g);
	exchange(g, &phase);
	for (uint32_t i = 0; i < g->power; i++) {
		combine(g, member(g, i));
	}
	for (uint32_t i = 0; i < g->pairs; i++) {
		const struct cn_span to = cn_reduction_result(r->parts[2 * i].ranks[0], 0);

		r->value[2 * i] = cn_reduction_move(r, r->value[2 * i + 1], to, r->p->bytes, phase);
	}
	for (uint32_t part = 0; part < r->nparts; part++) {
		cn_reduction_share(r, &r->parts[part], r->value[part], r->p->bytes);
	}
}

/* Ranks of one node: the first one combines. */
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

	for (g->power = 1, g->rounds = 0; 2 * g->power <= r->nparts; g->power *= 2) {
		g->rounds++;
	}
	g->pairs = r->nparts - g->power;
	g->begin = calloc(3 * ranks + parts + 1 + g->rounds + 1, sizeof(*g->begin));
	if (g->begin == NULL) {
		return false;
	}
	g->place = g->begin + parts + 1;
	g->part_of = g->place + ranks;
	g->own = g->part_of + ranks;
	g->made = g->own + ranks;
	for (uint32_t i = 0; i < r->nparts; i++) {
		g->begin[i] = at;
		for (uint32_t k = 0; k < r->parts[i].n; k++, at++) {
			g->place[r->parts[i].ranks[k]] = at;
			g->part_of[at] = i;
		}
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
		run(&g);
	} else {
		g.r.rc = cn_fail(err, COLLNET_ENOMEM, "no memory to plan a reduction of %u ranks",
				 l->nranks);
	}
	free(g.begin);
	return cn_reduction_done(&g.r);
}
