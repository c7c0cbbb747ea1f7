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
 * Messages are one per chunk, and chunks pass through the rounds as they come.
 *
 * Only for commutative operations: each part is then a node.
 */
#include <stdlib.h>

#include "sched/allreduce/power.h"
#include "sched/planners.h"

struct halving {
	struct cn_reduction r;
	struct cn_power w;
	uint32_t chunks; /* ranges of the block at the end of the rounds: a power of two */
	uint32_t phase;	 /* the next */
	bool all;	 /* the result goes to all ranks */
	uint32_t me;	 /* the part of this node */
	uint32_t *made;	 /* [chunks] what made a chunk of its value, or its result */
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

/*
 * Chunk t of those that member i has before the round of `bit`, as the number of the member whose
 * last range it is: 0 is its own, and the later it is halved away, or comes back, the higher. So
 * the chunks that are passed on first are sent first.
 */
static uint32_t chunk_of(const struct halving *h, uint32_t i, uint32_t t)
{
	for (uint32_t b = h->chunks / 2; t > 0; t /= 2, b /= 2) {
		i ^= (t & 1) != 0 ? b : 0;
	}
	return i;
}

/* Chunks that a member has before the round of `bit`. */
static uint32_t chunks_before(const struct halving *h, uint32_t bit)
{
	return bit < h->chunks ? h->chunks / bit : 1;
}

static struct range whole(const struct halving *h, uint32_t i)
{
	return range_of(h, i, h->chunks);
}

static uint32_t *made_of(struct halving *h, uint32_t i)
{
	return &h->made[i & (h->chunks - 1)];
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

/* The chunks of a member's message in a round, which go to the member i ^ bit. */
static void send_chunks(struct halving *h, uint32_t i, uint32_t bit)
{
	struct cn_reduction *r = &h->r;
	const uint32_t part = part_of(h, i), to = part_of(h, i ^ bit);
	const struct range all = range_of(h, i, bit), kept = range_of(h, i ^ bit, 2 * bit);

	r->in[to].at = cn_reduction_slot(r, cn_power_handler(r, to), kept.len);
	for (uint32_t t = chunks_before(h, 2 * bit); t-- > 0;) {
		const uint32_t chunk = chunk_of(h, i ^ bit, t);
		const struct range x = whole(h, chunk);
		struct cn_value v = part_of_value(r->value[part], all, x);
		struct cn_span place = r->in[to].at;

		if (x.len == 0) {
			continue;
		}
		if (part == h->me) {
			v.made = *made_of(h, chunk);
		}
		place.offset += x.at - kept.at;
		v = cn_reduction_move(r, v, place, x.len, h->phase);
		if (to == h->me) {
			h->made[h->chunks + (chunk & (h->chunks - 1))] = v.made;
		}
	}
}

static void combine_chunks(struct halving *h, uint32_t i, uint32_t bit)
{
	struct cn_reduction *r = &h->r;
	const uint32_t part = part_of(h, i);
	const struct range all = range_of(h, i, bit), kept = range_of(h, i, 2 * bit);
	const bool last = 2 * bit == h->w.members && (h->all || i == 0);
	const struct cn_span to = last ? result_of(h, part, kept) : r->in[part].at;

	for (uint32_t t = chunks_before(h, 2 * bit); part == h->me && t-- > 0;) {
		const uint32_t chunk = chunk_of(h, i, t);
		const struct range x = whole(h, chunk);
		struct cn_value own = part_of_value(r->value[part], all, x), in = r->in[part];
		struct cn_span place = to;

		if (x.len == 0) {
			continue;
		}
		own.made = *made_of(h, chunk);
		in.made = h->made[h->chunks + (chunk & (h->chunks - 1))];
		in.at.offset += x.at - kept.at;
		place.offset += x.at - kept.at;
		*made_of(h, chunk) = cn_reduction_combine(r, (i & bit) != 0 ? in : own,
							  (i & bit) != 0 ? own : in, place, x.len)
					     .made;
	}
	r->value[part].at = to;
}

static void round_of(struct halving *h, uint32_t bit)
{
	for (uint32_t i = 0; i < h->w.members; i++) {
		if (sends(h, i, bit)) {
			send_chunks(h, i, bit);
		}
	}
	for (uint32_t i = 0; i < h->w.members; i++) {
		if (sends(h, i ^ bit, bit)) {
			combine_chunks(h, i, bit);
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
			r->value[part].made = part == h->me ? *made_of(h, k) : CN_REDUCTION_NONE;
			cn_power_combine(r, part, true, r->value[part], NULL, x.len);
			if (part == h->me) {
				*made_of(h, k) = r->value[part].made;
			}
		}
	}
	h->phase += h->w.pairs > 0 ? h->chunks : 0;
}

/* A chunk of the result. */
static struct cn_value value_of(struct halving *h, uint32_t part, uint32_t chunk)
{
	return (struct cn_value){ result_of(h, part, whole(h, chunk)),
				  part == h->me ? *made_of(h, chunk) : CN_REDUCTION_NONE };
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
					   cn_reduction_move(r, value_of(h, part, k),
							     result_of(h, other, x), x.len,
							     h->phase + turn),
					   x.len);
		}
	}
	h->phase += h->w.pairs > 0 ? h->chunks : 0;
}

/* Chunks that are complete, to all members, and the ranks of their parts. */
static void gather(struct halving *h)
{
	struct cn_reduction *r = &h->r;

	for (uint32_t i = 0; i < h->w.members; i++) {
		const uint32_t part = part_of(h, i);

		if (whole(h, i).len > 0) {
			cn_reduction_share(r, &r->parts[part], value_of(h, part, i),
					   whole(h, i).len);
		}
	}
	for (uint32_t bit = h->chunks / 2; bit > 0; bit /= 2, h->phase++) {
		for (uint32_t i = 0; i < h->w.members; i++) {
			const uint32_t part = part_of(h, i), to = part_of(h, i ^ bit);

			for (uint32_t t = 0; t < chunks_before(h, 2 * bit); t++) {
				const uint32_t chunk = chunk_of(h, i, t);
				const struct range x = whole(h, chunk);
				struct cn_value v;

				if (x.len == 0) {
					continue;
				}
				v = cn_reduction_move(r, value_of(h, part, chunk),
						      result_of(h, to, x), x.len, h->phase);
				if (to == h->me) {
					*made_of(h, chunk) = v.made;
				}
				cn_reduction_share(r, &r->parts[to], v, x.len);
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
			struct cn_value v = r->value[part_of(h, i)];

			v.made = part_of(h, i) == h->me ? *made_of(h, i) : CN_REDUCTION_NONE;
			cn_reduction_move(r, v, result_of(h, root, x), x.len, h->phase + i - 1);
		}
	}
}

static uint32_t part_of_root(const struct cn_reduction *r)
{
	return r->p->op == CN_OP_REDUCE ? cn_reduction_part_of(r, r->p->root) : UINT32_MAX;
}

static void begin(struct halving *h)
{
	const struct cn_reduction *r = &h->r;

	while (r->parts[h->me].node != r->me) {
		h->me++;
	}
	for (uint32_t k = 0; k < h->chunks; k++) {
		h->made[k] = r->value[h->me].made;
	}
}

static void run(struct halving *h)
{
	h->all = h->r.p->op == CN_OP_ALLREDUCE;
	h->w = cn_power_of(h->r.nparts, part_of_root(&h->r));
	h->chunks = cn_power_chunks(h->r.l, h->r.p, h->w.members);
	h->made = malloc(2 * (size_t)h->chunks * sizeof(*h->made));
	if (h->made == NULL) {
		h->r.rc = cn_fail(h->r.err, COLLNET_ENOMEM,
				  "no memory to plan a reduction of %u ranks", h->r.l->nranks);
		return;
	}
	fold(h);
	begin(h);
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
	free(h->made);
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
