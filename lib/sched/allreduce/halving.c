/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce and reduce by recursive halving and doubling (Rabenseifner): rounds of halving that are
 * a reduce-scatter, rounds of doubling, and the rounds of halving once more, backwards, which are
 * an allgather; in a reduce, the doubling goes in one direction, and the root gets the chunks.
 *
 * Members (power.h) have numbers in which the root's is 0. In round k those whose numbers differ in
 * bit k have the same range of the block. While ranges are halved, each sends the half that the
 * other one keeps, and combines the half that it keeps with what comes; then, all of the range. So
 * the longest messages go to the nearest members. After log2 rounds the range of a member is
 * complete.
 *
 * A part that is no member contributes once ranges are as short as they get, one message per range,
 * each to a member that has the range then; so it gets the result, too.
 *
 * Halving log2 P times, a member sends 2 (P - 1) / P of the block, as in a ring. But two messages
 * of half a range cost one message more than one of a range: the last round, and those of short
 * ranges, do not halve.
 *
 * Only for commutative operations: each part is then a node, all of whose messages are sends, in
 * turn.
 */
#include "sched/allreduce/power.h"
#include "sched/planners.h"

struct halving {
	struct cn_reduction r;
	struct cn_power w;
	uint32_t chunks; /* ranges of the block at the end of the rounds: a power of two */
	uint32_t phase;	 /* the next */
	bool all;	 /* the result goes to all ranks */
};

/* The number of one of power.h's members, and the other way round. */
static uint32_t number(const struct halving *h, uint32_t member)
{
	return member ^ (h->all ? 0 : cn_power_root(&h->w));
}

static uint32_t part_of(const struct halving *h, uint32_t i)
{
	return cn_power_part(&h->w, number(h, i));
}

/* Of the block. */
struct range {
	uint64_t at, len; /* bytes */
};

/* Where a chunk begins: whole elements, as equal as they can be. */
static uint64_t cut(const struct halving *h, uint32_t chunk)
{
	const uint64_t element = h->r.p->element > 0 ? h->r.p->element : 1;

	return h->r.p->bytes / element * chunk / h->chunks * element;
}

/* What member i has before the round of `bit`. */
static struct range range_of(const struct halving *h, uint32_t i, uint32_t bit)
{
	uint32_t first = 0, count = h->chunks;

	for (uint32_t b = 1; b < bit && b < h->chunks; b *= 2) {
		count /= 2;
		first += (i & b) != 0 ? count : 0;
	}
	return (struct range){ cut(h, first), cut(h, first + count) - cut(h, first) };
}

static struct cn_span result_of(const struct halving *h, uint32_t part, struct range x)
{
	return cn_reduction_result(cn_power_handler(&h->r, part), x.at);
}

/* A range of a value that has all of another one. */
static struct cn_value part_of_value(struct cn_value v, struct range all, struct range x)
{
	v.at.offset += x.at - all.at;
	return v;
}

static void fold(struct halving *h)
{
	struct cn_reduction *r = &h->r;

	for (uint32_t part = 0; part < r->nparts; part++) {
		const uint32_t rank = cn_power_handler(r, part);
		const struct cn_span result = cn_reduction_result(rank, 0);

		r->value[part] = cn_reduction_fold(r, &r->parts[part], rank, 0, r->p->bytes,
						   r->nparts == 1 ? &result : NULL);
	}
}

/* Whether a member sends in a round, or combines. Of those that have one range, in a reduce, half
 * do either in the first round that does not halve, and only the others go on. */
static bool sends(const struct halving *h, uint32_t i, uint32_t bit)
{
	const uint32_t done = (bit - 1) & ~(h->chunks - 1);

	return h->all || bit < h->chunks || ((i & done) == 0 && (i & bit) != 0);
}

static void round_of(struct halving *h, uint32_t bit)
{
	struct cn_reduction *r = &h->r;

	for (uint32_t i = 0; i < h->w.members; i++) {
		const uint32_t part = part_of(h, i), to = part_of(h, i ^ bit);
		const struct range all = range_of(h, i, bit), x = range_of(h, i ^ bit, 2 * bit);

		if (x.len > 0 && sends(h, i, bit)) {
			r->in[to] = cn_reduction_move(r, part_of_value(r->value[part], all, x),
						      cn_reduction_slot(r, cn_power_handler(r, to),
									x.len),
						      x.len, h->phase);
		}
	}
	for (uint32_t i = 0; i < h->w.members; i++) {
		const uint32_t part = part_of(h, i);
		const struct range all = range_of(h, i, bit), x = range_of(h, i, 2 * bit);
		const struct cn_span result = result_of(h, part, x);
		const bool last = 2 * bit == h->w.members && (h->all || i == 0);

		if (x.len > 0 && sends(h, i ^ bit, bit)) {
			cn_power_combine(r, part, (i & bit) != 0,
					 part_of_value(r->value[part], all, x),
					 last ? &result : NULL, x.len);
		}
	}
	h->phase++;
}

/* The member to which the part of a pair that is none sends its range k: one near by. */
static uint32_t taker(const struct halving *h, uint32_t pair, uint32_t k)
{
	return number(h, pair) / h->chunks * h->chunks + k;
}

/* What the other parts of pairs contribute, to members whose ranges are not halved any more: in
 * each phase to another one, and each member takes one. */
static void take_others(struct halving *h)
{
	struct cn_reduction *r = &h->r;

	for (uint32_t n = 0; n < h->w.pairs * h->chunks; n++) {
		const uint32_t pair = n % h->w.pairs, turn = n / h->w.pairs,
			       k = (pair + turn) % h->chunks, other = cn_power_other(&h->w, pair),
			       part = part_of(h, taker(h, pair, k));
		const struct range x = range_of(h, k, h->chunks), all = { 0, 0 };

		if (x.len > 0) {
			r->in[part] = cn_reduction_move(r, part_of_value(r->value[other], all, x),
							cn_reduction_slot(r,
									  cn_power_handler(r, part),
									  x.len),
							x.len, h->phase + turn);
			cn_power_combine(r, part, true, r->value[part], NULL, x.len);
		}
	}
	h->phase += h->w.pairs > 0 ? h->chunks : 0;
}

/* And the result to them. */
static void give_others(struct halving *h)
{
	struct cn_reduction *r = &h->r;

	for (uint32_t n = 0; n < h->w.pairs * h->chunks; n++) {
		const uint32_t pair = n % h->w.pairs, turn = n / h->w.pairs,
			       k = (pair + turn) % h->chunks, other = cn_power_other(&h->w, pair),
			       part = part_of(h, taker(h, pair, k));
		const struct range x = range_of(h, k, h->chunks);

		if (x.len > 0) {
			cn_reduction_share(r, &r->parts[other],
					   cn_reduction_move(r, r->value[part],
							     result_of(h, other, x), x.len,
							     h->phase + turn),
					   x.len);
		}
	}
	h->phase += h->w.pairs > 0 ? h->chunks : 0;
}

/*
 * Ranges that are complete, to all members, and the ranks of their parts. A send waits for the last
 * receive of what it sends; sends go in turn, so by then those before have been waited for.
 */
static void gather(struct halving *h)
{
	struct cn_reduction *r = &h->r;
	const struct cn_power *w = &h->w;

	for (uint32_t i = 0; i < w->members; i++) {
		const uint32_t part = part_of(h, i);
		const struct range x = range_of(h, i, w->members);

		if (x.len > 0) {
			cn_reduction_share(r, &r->parts[part], r->value[part], x.len);
		}
	}
	for (uint32_t bit = h->chunks / 2; bit > 0; bit /= 2, h->phase++) {
		for (uint32_t i = 0; i < w->members; i++) {
			const uint32_t part = part_of(h, i), to = part_of(h, i ^ bit);
			const struct range x = range_of(h, i, 2 * bit);
			const struct cn_value v = { result_of(h, part, x), r->value[part].made };

			if (x.len > 0) {
				r->in[to] = cn_reduction_move(r, v, result_of(h, to, x), x.len,
							      h->phase);
			}
		}
		for (uint32_t i = 0; i < w->members; i++) {
			const uint32_t part = part_of(h, i);
			const struct range x = range_of(h, i ^ bit, 2 * bit);

			if (x.len > 0) {
				r->value[part] = r->in[part];
				cn_reduction_share(r, &r->parts[part], r->value[part], x.len);
			}
		}
	}
}

/* The chunks that are complete, to the root, which has its own. */
static void gather_at_root(struct halving *h)
{
	struct cn_reduction *r = &h->r;
	const uint32_t root = part_of(h, 0);

	for (uint32_t i = 1; i < h->chunks; i++) {
		const struct range x = range_of(h, i, h->chunks);

		if (x.len > 0) {
			cn_reduction_move(r, r->value[part_of(h, i)], result_of(h, root, x), x.len,
					  h->phase + i - 1);
		}
	}
}

static uint32_t part_of_root(const struct cn_reduction *r)
{
	return r->p->op == CN_OP_REDUCE ? cn_reduction_part_of(r, r->p->root) : UINT32_MAX;
}

static void run(struct halving *h)
{
	h->all = h->r.p->op == CN_OP_ALLREDUCE;
	h->w = cn_power_of(h->r.nparts, part_of_root(&h->r));
	h->chunks = cn_power_chunks(h->r.l, h->r.p, h->w.members);
	fold(h);
	for (uint32_t bit = 1; bit < h->chunks; bit *= 2) {
		round_of(h, bit);
	}
	take_others(h);
	for (uint32_t bit = h->chunks; bit < h->w.members; bit *= 2) {
		round_of(h, bit);
	}
	if (h->all) {
		give_others(h);
		gather(h);
	} else {
		gather_at_root(h);
	}
}

int cn_plan_halving(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		    struct cn_sched *out, struct cn_err *err)
{
	struct halving h = { .phase = 0 };
	int rc = cn_reduction_small(p, "halving", err);

	if (rc == COLLNET_OK) {
		rc = cn_reduction_unordered(p, "halving", err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_reduction_init(&h.r, l, p, me, false, out, err);
	}
	if (rc != COLLNET_OK || p->bytes == 0) {
		return rc != COLLNET_OK ? rc : cn_reduction_done(&h.r);
	}
	run(&h);
	return cn_reduction_done(&h.r);
}
