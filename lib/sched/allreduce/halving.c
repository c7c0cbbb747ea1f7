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
	bool all;	 /* allreduce: all ranks get the result */
	uint32_t me;	 /* the part of this node */
	uint32_t *made;	 /* [chunks] the action that made a chunk of its value or result */
	uint32_t *came;	 /* [chunks] the receive of a chunk to combine */
};

/* The number of a member of power.h, and the inverse. */
static uint32_t number(const struct halving *h, uint32_t member)
{
	return member ^ (h->all ? 0 : cn_power_root(&h->w));
}

static uint32_t part_of(const struct halving *h, uint32_t i)
{
	return cn_power_part(&h->w, number(h, i));
}

/* Of the block; never empty, as there are no more chunks than elements. */
struct range {
	uint64_t at, len; /* bytes */
};

/* Where a chunk begins: whole elements, as equal as they can be. */
static uint64_t cut(const struct halving *h, uint32_t chunk)
{
	const uint64_t element = h->r.p->element > 0 ? h->r.p->element : 1;

	return h->r.p->bytes / element * chunk / h->chunks * element;
}

/* The range that member i has before the round of `bit`. */
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

/* The chunk of member i. */
static struct range chunk(const struct halving *h, uint32_t i)
{
	return range_of(h, i, h->chunks);
}

/* An entry of made or came. */
static uint32_t *entry(const struct halving *h, uint32_t *of, uint32_t i)
{
	return &of[i & (h->chunks - 1)];
}

/* The action that made the chunk of member i in a part's value or result. */
static uint32_t made(const struct halving *h, uint32_t part, uint32_t i)
{
	return part == h->me ? *entry(h, h->made, i) : CN_REDUCTION_NONE;
}

static struct cn_span result_of(const struct halving *h, uint32_t part, struct range x)
{
	return cn_reduction_result(cn_power_handler(&h->r, part), x.at);
}

/* The span of a range within that of another one. */
static struct cn_span within(struct cn_span s, struct range all, struct range x)
{
	s.offset += x.at - all.at;
	return s;
}

/* Sends the chunks of a member's message in a round to the member i ^ bit. */
static void send_chunks(struct halving *h, uint32_t i, uint32_t bit)
{
	struct cn_reduction *r = &h->r;
	const uint32_t part = part_of(h, i), to = part_of(h, i ^ bit);
	const struct range all = range_of(h, i, bit), kept = range_of(h, i ^ bit, 2 * bit);

	r->in[to].at = cn_reduction_slot(r, cn_power_handler(r, to), kept.len);
	for (uint32_t t = chunks_before(h, 2 * bit); t-- > 0;) {
		const uint32_t c = chunk_of(h, i ^ bit, t);
		const struct range x = chunk(h, c);
		const struct cn_value v = { within(r->value[part].at, all, x), made(h, part, c) };
		const struct cn_span place = within(r->in[to].at, kept, x);
		const struct cn_value in = cn_reduction_move(r, v, place, x.len, h->phase);

		if (to == h->me) {
			*entry(h, h->came, c) = in.made;
		}
	}
}

/* The lower member's is on the left: where both combine a chunk, they get the same bits. */
static void combine_chunks(struct halving *h, uint32_t i, uint32_t bit)
{
	struct cn_reduction *r = &h->r;
	const uint32_t part = part_of(h, i);
	const struct range all = range_of(h, i, bit), kept = range_of(h, i, 2 * bit);
	const bool last = 2 * bit == h->w.members && (h->all || i == 0);
	const struct cn_span to = last ? result_of(h, part, kept) : r->in[part].at;
	const bool upper = (i & bit) != 0;

	for (uint32_t t = chunks_before(h, 2 * bit); part == h->me && t-- > 0;) {
		const uint32_t c = chunk_of(h, i, t);
		const struct range x = chunk(h, c);
		const struct cn_value own = { within(r->value[part].at, all, x), made(h, part, c) };
		const struct cn_value in = { within(r->in[part].at, kept, x),
					     *entry(h, h->came, c) };
		const struct cn_value v = cn_reduction_combine(r, upper ? in : own,
							       upper ? own : in,
							       within(to, kept, x), x.len);

		*entry(h, h->made, c) = v.made;
	}
	r->value[part].at = to;
}

static void round_of(struct halving *h, uint32_t bit)
{
	for (uint32_t i = 0; i < h->w.members; i++) {
		if (cn_power_sends(h->r.p, h->chunks, i, bit)) {
			send_chunks(h, i, bit);
		}
	}
	for (uint32_t i = 0; i < h->w.members; i++) {
		if (cn_power_sends(h->r.p, h->chunks, i ^ bit, bit)) {
			combine_chunks(h, i, bit);
		}
	}
	h->phase++;
}

/*
 * A part that is no member, and a nearby member that has chunk k when ranges are no longer halved.
 * Message n of one per pair and chunk: in each phase a part has one, and a member one.
 */
struct aside {
	uint32_t other, part, k, phase;
};

static struct aside aside_of(const struct halving *h, uint32_t n)
{
	const uint32_t pair = n % h->w.pairs, turn = n / h->w.pairs, k = (pair + turn) % h->chunks,
		       taker = number(h, pair) / h->chunks * h->chunks + k;

	return (struct aside){ cn_power_other(&h->w, pair), part_of(h, taker), k, h->phase + turn };
}

/* Combines the contributions of the other parts of pairs. */
static void fold_others(struct halving *h)
{
	struct cn_reduction *r = &h->r;
	const struct range all = { 0, r->p->bytes };

	for (uint32_t n = 0; n < h->w.pairs * h->chunks; n++) {
		const struct aside a = aside_of(h, n);
		const struct range x = chunk(h, a.k);
		const struct cn_value v = { within(r->value[a.other].at, all, x),
					    r->value[a.other].made };

		r->in[a.part] = cn_reduction_move(r, v,
						  cn_reduction_slot(r, cn_power_handler(r, a.part),
								    x.len),
						  x.len, a.phase);
		r->value[a.part].made = made(h, a.part, a.k);
		cn_power_combine(r, a.part, true, NULL, x.len);
		if (a.part == h->me) {
			*entry(h, h->made, a.k) = r->value[a.part].made;
		}
	}
	h->phase += h->w.pairs > 0 ? h->chunks : 0;
}

/* A chunk of the result. */
static struct cn_value value_of(const struct halving *h, uint32_t part, uint32_t i)
{
	return (struct cn_value){ result_of(h, part, chunk(h, i)), made(h, part, i) };
}

/* Sends a chunk of the result to another part, and its ranks. */
static void send_result(struct halving *h, uint32_t part, uint32_t to, uint32_t i, uint32_t phase)
{
	struct cn_reduction *r = &h->r;
	const struct range x = chunk(h, i);
	const struct cn_value v = cn_reduction_move(r, value_of(h, part, i), result_of(h, to, x),
						    x.len, phase);

	if (to == h->me) {
		*entry(h, h->made, i) = v.made;
	}
	cn_reduction_share(r, &r->parts[to], v, x.len);
}

/* Sends the result to the other parts of pairs. */
static void send_results(struct halving *h)
{
	for (uint32_t n = 0; n < h->w.pairs * h->chunks; n++) {
		const struct aside a = aside_of(h, n);

		send_result(h, a.part, a.other, a.k, a.phase);
	}
	h->phase += h->w.pairs > 0 ? h->chunks : 0;
}

/* Distributes complete chunks to all members and the ranks of their parts. */
static void gather(struct halving *h)
{
	struct cn_reduction *r = &h->r;

	for (uint32_t i = 0; i < h->w.members; i++) {
		const uint32_t part = part_of(h, i);

		cn_reduction_share(r, &r->parts[part], value_of(h, part, i), chunk(h, i).len);
	}
	for (uint32_t bit = h->chunks / 2; bit > 0; bit /= 2, h->phase++) {
		for (uint32_t i = 0; i < h->w.members; i++) {
			for (uint32_t t = 0; t < chunks_before(h, 2 * bit); t++) {
				send_result(h, part_of(h, i), part_of(h, i ^ bit),
					    chunk_of(h, i, t), h->phase);
			}
		}
	}
}

/* Sends the complete chunks to the root, which has its own. */
static void gather_at_root(struct halving *h)
{
	struct cn_reduction *r = &h->r;

	for (uint32_t i = 1; i < h->chunks; i++) {
		const uint32_t part = part_of(h, i);
		const struct cn_value v = { r->value[part].at, made(h, part, i) };
		const struct range x = chunk(h, i);

		cn_reduction_move(r, v, result_of(h, part_of(h, 0), x), x.len, h->phase + i - 1);
	}
}

static void rounds(struct halving *h)
{
	for (uint32_t bit = 1; bit < h->chunks; bit *= 2) {
		round_of(h, bit);
	}
	fold_others(h);
	for (uint32_t bit = h->chunks; bit < h->w.members; bit *= 2) {
		round_of(h, bit);
	}
	if (h->all) {
		send_results(h);
		gather(h);
	} else {
		gather_at_root(h);
	}
}

static void run(struct halving *h)
{
	struct cn_reduction *r = &h->r;

	h->all = r->p->op == CN_OP_ALLREDUCE;
	h->w = cn_power_of(r->nparts,
			   h->all ? CN_POWER_NO_ROOT : cn_reduction_part_of(r, r->p->root));
	h->chunks = cn_power_chunks(r->l, r->p, h->w.members);
	h->made = malloc(2 * (size_t)h->chunks * sizeof(*h->made));
	if (h->made == NULL) {
		r->rc = cn_fail(r->err, COLLNET_ENOMEM, "no memory to plan a reduction of %u ranks",
				r->l->nranks);
		return;
	}
	h->came = h->made + h->chunks;
	cn_power_fold(r);
	while (r->parts[h->me].node != r->me) {
		h->me++;
	}
	for (uint32_t k = 0; k < h->chunks; k++) {
		h->made[k] = r->value[h->me].made;
	}
	rounds(h);
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
