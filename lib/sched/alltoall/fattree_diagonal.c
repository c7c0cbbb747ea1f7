/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Total exchange by windows: c messages at a time between two subtrees of a and b hosts.
 *
 * All pairs in a diagonal walk: message t (0 .. a b - 1) goes from place t mod a to place
 * (t + floor(t / L)) mod b, L = lcm(a, b). Each run of L begins one place further on at the
 * receivers, so every pair comes once, and any c <= min(a, b) messages in a row have different
 * senders and different receivers (t mod a and the receivers' places skip at most one where a run
 * ends, which c < b leaves room for; and where c = b, no window spans the end of a run). Phase
 * floor(t / c) takes messages c floor(t / c) .. . Whether the links below the two subtrees'
 * switches have channels enough for each window is looked at, not assumed: on both sides every c
 * places in a row are tried, and at the receivers those windows that span the end of a run.
 */
#include "sched/alltoall/fattree.h"
#include "sched/residue.h"

uint32_t cn_fattree_window_phase(const struct cn_fattree_share *h, uint32_t a, uint32_t b,
				 uint32_t s, uint32_t d)
{
	uint32_t g = cn_gcd(a, b), run = (d % g + g - s % g) % g, m = b / g;
	uint64_t length = (uint64_t)a / g * b, u, steps;
	int64_t away = ((int64_t)d - run - s) / g; /* exact */

	/* u = s (mod a) and u = d - run (mod b). */
	steps = (uint64_t)(((away % m) + m) % m) * cn_inverse(a / g, m) % m;
	u = s + (uint64_t)a * steps;
	return (uint32_t)((run * length + u) / h->window);
}

/* Adds one message at leaf's way up to the child, or takes it away; false: above the channels. */
static bool count_way(const struct cn_tree *t, uint32_t leaf, uint32_t child, int by,
		      uint32_t *count)
{
	bool fits = true;

	for (uint32_t v = leaf;; v = t->v[v].parent) {
		count[v] += (uint32_t)by;
		fits = fits && count[v] <= cn_fattree_cap(t, v);
		if (v == child) {
			return fits;
		}
	}
}

/* Every c places in a row, round and round, fit the links at and below the child. */
static bool rows_fit(const struct cn_fattree *x, uint32_t child, uint32_t c, const uint32_t *seq,
		     uint32_t *count)
{
	uint32_t n = x->t->v[child].hosts, at = 0;
	bool fits = true;

	for (; fits && at < n + c; at++) {
		if (at >= c) {
			count_way(x->t, x->leaf[seq[(at - c) % n]], child, -1, count);
		}
		fits = count_way(x->t, x->leaf[seq[at % n]], child, 1, count);
	}
	for (uint32_t k = at > c ? at - c : 0; k < at; k++) {
		count_way(x->t, x->leaf[seq[k % n]], child, -1, count);
	}
	return fits;
}

/* The windows that span the end of a run, at the receivers. */
static bool ends_fit(const struct cn_fattree *x, uint32_t child, uint32_t a, uint32_t c,
		     const uint32_t *seq, uint32_t *count)
{
	uint32_t b = x->t->v[child].hosts, g = cn_gcd(a, b);
	uint64_t length = (uint64_t)a / g * b;
	bool fits = true;

	if (length % c == 0) {
		return true;
	}
	for (uint32_t run = 1; fits && run < g; run++) {
		uint64_t first = run * length / c * c, t = first;

		for (; fits && t < first + c; t++) {
			fits = count_way(x->t, x->leaf[seq[(t + t / length) % b]], child, 1, count);
		}
		while (t-- > first) {
			count_way(x->t, x->leaf[seq[(t + t / length) % b]], child, -1, count);
		}
	}
	return fits;
}

bool cn_fattree_diagonal(const struct cn_fattree *x, uint32_t v, const uint32_t *seq,
			 uint32_t *count)
{
	const struct cn_tree *t = x->t;
	struct cn_fattree_share *h = &x->share[v];
	const uint32_t *children = &t->children[t->v[v].first_child];
	uint32_t k = t->v[v].nchildren, a = t->v[children[0]].hosts, b = t->v[children[1]].hosts;
	uint32_t rounds = k - 1, room = h->phases / rounds, least = a < b ? a : b;
	uint64_t c = room == 0 ? 0 : ((uint64_t)a * b + room - 1) / room;
	bool fits = true;

	for (uint32_t i = 2; i < k; i++) {
		if (t->v[children[i]].hosts != a || a != b) {
			return false;
		}
	}
	if (c == 0 || c > least) {
		return false;
	}
	for (uint32_t i = 0; fits && i < k; i++) {
		const uint32_t *own = seq + x->base[children[i]];
		uint32_t other = i == 0 ? b : a;

		fits = rows_fit(x, children[i], (uint32_t)c, own, count) &&
		       ends_fit(x, children[i], other, (uint32_t)c, own, count);
	}
	if (!fits) {
		return false;
	}
	h->window = (uint32_t)c;
	h->method = k == 2 && a == b && c == a && (a & (a - 1)) == 0 ? CN_FATTREE_XOR
								     : CN_FATTREE_DIAGONAL;
	return true;
}
