/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments in a ring, touching ends at most T together, in n log n.
 *
 * A ring is a perfect matching of the 2 n ends (those that touch) that together with the segments
 * makes one cycle. An end e is big when 2 e > T. Two small ends may always touch, two big ends
 * never, and of a big and a small one the sum decides.
 *
 * Matching. Let b_1 >= b_2 >= ... be the big ends and s_1 <= s_2 <= ... the small ones. If there is
 * a matching at all, then b_i with s_i is one (exchange two pairs that are in the wrong order), and
 * the small ends that are left match as they like.
 *
 * One cycle. Call i tight when b_i + s_(i+1) > T, or when there is no s_(i+1). The big ends up to a
 * tight i can only touch s_1 .. s_i: in every matching these 2 i ends are matched among
 * themselves. So the tight places cut the ends into blocks, and no matching leaves a block: when
 * the graph of blocks, joined by the segments that have an end in either, is not connected, there
 * is no ring. Inside a block all can be joined: for i = 1, 2, ... in turn, if b_i and b_(i+1) lie
 * on different cycles and i is not tight, let them exchange their partners, which makes the two
 * cycles one. It is allowed: b_(i+1) still has s_(i+1), which b_i may touch; and b_i has some s_j
 * with j <= i, which is no larger than s_(i+1), so b_(i+1) may touch it. The same goes for the
 * last big end and the first pair of small ones left, and for those pairs among one another. After
 * that all ends of a block lie on one cycle; so there is one cycle in the end exactly when the
 * graph of blocks is connected, which had to be.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/allgather/ring_matching.h"
#include "util/union_find.h"
#include "util/ascending.h"

int cn_ring_matching_reserve(struct cn_ring_matching *w, uint32_t n, struct cn_err *err)
{
	if (n <= w->cap) {
		return COLLNET_OK;
	}
	cn_ring_matching_done(w);
	w->keys = calloc(n, 2 * sizeof(*w->keys));
	w->mate = calloc(n, 2 * sizeof(*w->mate));
	w->set = calloc(n, sizeof(*w->set));
	if (w->keys == NULL || w->mate == NULL || w->set == NULL) {
		cn_ring_matching_done(w);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to lay %u arrays in a ring", n);
	}
	w->cap = n;
	return COLLNET_OK;
}

void cn_ring_matching_done(struct cn_ring_matching *w)
{
	free(w->keys);
	free(w->mate);
	free(w->set);
	memset(w, 0, sizeof(*w));
}

/* Ascending: insertion for the few ends of most switches, qsort() for the others. */
static void sort(uint64_t *k, uint32_t n)
{
	if (n > 24) {
		qsort(k, n, sizeof(*k), cn_ascending_u64);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		uint64_t x = k[i];
		uint32_t j = i;

		for (; j > 0 && k[j - 1] > x; j--) {
			k[j] = k[j - 1];
		}
		k[j] = x;
	}
}

/* A key is an end's value, above its name 2 * segment + side. */
static uint64_t value(uint64_t key)
{
	return key >> 32;
}

static uint32_t name(uint64_t key)
{
	return (uint32_t)key;
}

/* Joins the cycles of two ends; false: they lay on one. */
static bool join(struct cn_ring_matching *w, uint32_t a, uint32_t b)
{
	return cn_union_join(w->set, a / 2, b / 2);
}

static void match(struct cn_ring_matching *w, uint32_t a, uint32_t b)
{
	w->mate[a] = b;
	w->mate[b] = a;
}

/* If they are on different cycles, swaps the partners of a and b. True: one cycle less. */
static bool swap_partners(struct cn_ring_matching *w, uint32_t a, uint32_t b)
{
	uint32_t of_a = w->mate[a], of_b = w->mate[b];

	if (!join(w, a, b)) {
		return false;
	}
	match(w, a, of_b);
	match(w, b, of_a);
	return true;
}

static void write_order(const struct cn_ring_matching *w, uint32_t n, uint32_t *order)
{
	uint32_t entered = 0;

	for (uint32_t i = 0; i < n; i++) {
		order[i] = entered;
		entered = w->mate[entered ^ 1];
	}
}

bool cn_ring_matching_ring(struct cn_ring_matching *w, const struct cn_ring_segment *d, uint32_t n,
			   uint32_t most, uint32_t *order)
{
	const uint64_t *k = w->keys;
	uint32_t ends = 2 * n, nsmall = 0, nbig, cycles = n;

	for (uint32_t e = 0; e < ends; e++) {
		uint32_t x = d[e / 2].end[e % 2];

		w->keys[e] = (uint64_t)x << 32 | e;
		nsmall += x <= most / 2;
	}
	nbig = ends - nsmall;
	if (nbig > nsmall) {
		return false;
	}
	sort(w->keys, ends);
	for (uint32_t i = 0; i < nbig; i++) {
		if (value(k[i]) + value(k[ends - 1 - i]) > most) {
			return false;
		}
	}
	cn_union_init(w->set, n);
	/* b_(i+1) is k[ends - 1 - i], s_(i+1) is k[i]. */
	for (uint32_t i = 0; i < nbig; i++) {
		match(w, name(k[ends - 1 - i]), name(k[i]));
		cycles -= join(w, name(k[ends - 1 - i]), name(k[i]));
	}
	for (uint32_t i = nbig; i < nsmall; i += 2) {
		match(w, name(k[i]), name(k[i + 1]));
		cycles -= join(w, name(k[i]), name(k[i + 1]));
	}
	for (uint32_t i = 0; i + 1 < nbig && cycles > 1; i++) {
		if (value(k[ends - 1 - i]) + value(k[i + 1]) <= most) {
			cycles -= swap_partners(w, name(k[ends - 1 - i]), name(k[ends - 2 - i]));
		}
	}
	/* The last big end takes the smaller of the first pair that is left: k[nbig]. */
	if (nbig > 0 && nbig < nsmall && value(k[nsmall]) + value(k[nbig]) <= most) {
		cycles -= swap_partners(w, name(k[nsmall]), name(k[nbig + 1]));
	}
	/* k[i + 1] has a small partner whatever came before. */
	for (uint32_t i = nbig; i + 3 < nsmall && cycles > 1; i += 2) {
		cycles -= swap_partners(w, name(k[i + 1]), name(k[i + 3]));
	}
	if (cycles == 1 && order != NULL) {
		write_order(w, n, order);
	}
	return cycles == 1;
}
