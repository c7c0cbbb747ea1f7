/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring_oracle.h"

#define NEVER 1000u /* longer than any path */

bool ro_make(struct ro_tree *r, uint32_t nswitches, const uint32_t *parent, const uint32_t *hosts)
{
	*r = (struct ro_tree){ .nswitches = nswitches };
	for (uint32_t i = 0; i < nswitches; i++) {
		r->parent[i] = parent[i];
		for (uint32_t k = 0; k < hosts[i]; k++) {
			assert_true(r->nhosts < RO_HOSTS);
			r->at[r->nhosts++] = i;
		}
	}
	return r->nhosts > 0;
}

void ro_read(const struct ro_tree *r, struct cn_topo **topo, struct cn_tree **tree)
{
	static char text[1 << 19];
	size_t n = 0;
	struct cn_err err = { 0 };

	for (uint32_t i = 0; i < r->nswitches; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "switch s%u\n", i);
	}
	for (uint32_t i = 1; i < r->nswitches; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "link s%u s%u rate none\n",
				      r->parent[i], i);
	}
	for (uint32_t i = 0; i < r->nhosts; i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "host h%u\nlink h%u s%u rate none\n", i, i, r->at[i]);
	}
	assert_true(n < sizeof(text));
	if (cn_topo_parse(text, n, "oracle", topo, &err) ||
	    cn_tree_make(*topo, (*topo)->hosts, r->nhosts, CN_TOPO_NONE, tree, &err)) {
		fail_msg("%s", err.text);
	}
}

void ro_drop(struct cn_topo *topo, struct cn_tree *tree)
{
	cn_tree_free(tree);
	cn_topo_free(topo);
}

static uint32_t depth(const struct ro_tree *r, uint32_t s)
{
	uint32_t d = 0;

	for (; s != 0; s = r->parent[s]) {
		d++;
	}
	return d;
}

/* Adds `add` to every directed link between switches on the way; returns their number. */
static uint32_t walk(const struct ro_tree *r, uint32_t a, uint32_t b, int32_t *up, int32_t *down,
		     int32_t add)
{
	uint32_t x = r->at[a], y = r->at[b], n = 0;

	while (x != y) {
		n++;
		if (depth(r, x) >= depth(r, y)) {
			up[x] += add;
			x = r->parent[x];
		} else {
			down[y] += add;
			y = r->parent[y];
		}
	}
	return n;
}

uint32_t ro_length(const struct ro_tree *r, uint32_t a, uint32_t b)
{
	int32_t up[RO_SWITCHES] = { 0 }, down[RO_SWITCHES] = { 0 };

	return a == b ? 0 : 1 + walk(r, a, b, up, down, 1);
}

uint32_t ro_longest(const struct ro_tree *r, const uint32_t *ring)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < r->nhosts; i++) {
		uint32_t d = ro_length(r, ring[i], ring[(i + 1) % r->nhosts]);

		longest = d > longest ? d : longest;
	}
	return longest;
}

static bool crowded(const struct ro_tree *r, const int32_t *up, const int32_t *down)
{
	for (uint32_t i = 0; i < r->nswitches; i++) {
		if (up[i] > 1 || down[i] > 1) {
			return true;
		}
	}
	return false;
}

bool ro_free_of_contention(const struct ro_tree *r, const uint32_t *ring)
{
	int32_t up[RO_SWITCHES] = { 0 }, down[RO_SWITCHES] = { 0 };
	bool seen[RO_HOSTS] = { false };

	for (uint32_t i = 0; i < r->nhosts; i++) {
		if (ring[i] >= r->nhosts || seen[ring[i]]) {
			return false; /* no permutation: a host would send twice */
		}
		seen[ring[i]] = true;
		walk(r, ring[i], ring[(i + 1) % r->nhosts], up, down, 1);
	}
	return !crowded(r, up, down);
}

/* ---- all rings ---------------------------------------------------------------------------- */

struct trial {
	const struct ro_tree *r;
	uint32_t ring[RO_TRIED], best;
	bool used[RO_TRIED];
	int32_t up[RO_SWITCHES], down[RO_SWITCHES];
};

/* Host `last` of the ring follows; `longest` is that of the `n` hosts so far. */
static void try_all(struct trial *t, uint32_t n, uint32_t longest)
{
	const struct ro_tree *r = t->r;
	bool close = n == r->nhosts;

	for (uint32_t h = close ? 0 : 1; h < (close ? 1 : r->nhosts); h++) {
		uint32_t from = t->ring[n - 1], d;

		if (!close && t->used[h]) {
			continue;
		}
		d = from == h ? 0 : 1 + walk(r, from, h, t->up, t->down, 1);
		d = d > longest ? d : longest;
		if (d < t->best && !crowded(r, t->up, t->down)) {
			if (close) {
				t->best = d;
			} else {
				t->ring[n] = h;
				t->used[h] = true;
				try_all(t, n + 1, d);
				t->used[h] = false;
			}
		}
		walk(r, from, h, t->up, t->down, -1);
	}
}

uint32_t ro_shortest(const struct ro_tree *r)
{
	struct trial t = { .r = r, .best = NEVER };

	assert_true(r->nhosts <= RO_TRIED);
	try_all(&t, 1, 0);
	return t.best;
}

/* ---- Algorithm 3 -------------------------------------------------------------------------- */

/*
 * optimal[i][j]: the longest path of the best array that begins at height i and ends at height j.
 * All sequences of a switch's children are tried, by sets of children that are already in it:
 * concatenating distributes over the minimum, so the best of a set is enough.
 */
struct table {
	uint32_t size; /* heights 0 .. size - 1 */
	uint32_t *x;
};

static struct table table_new(uint32_t size)
{
	struct table t = { size, malloc(size * size * sizeof(uint32_t)) };

	assert_non_null(t.x);
	for (uint32_t i = 0; i < size * size; i++) {
		t.x[i] = NEVER;
	}
	return t;
}

static uint32_t max3(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t m = a > b ? a : b;

	return m > c ? m : c;
}

/* to = min(to, a followed by b) */
static void concatenate(struct table *to, const struct table *a, const struct table *b)
{
	uint32_t n = to->size;
	struct table m = table_new(n); /* [k][j]: b, reached from an end of height k */

	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t l = 0; l < n; l++) {
			for (uint32_t j = 0; j < n; j++) {
				uint32_t d = max3(b->x[l * n + j], k + l + 1, 0);

				m.x[k * n + j] = d < m.x[k * n + j] ? d : m.x[k * n + j];
			}
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < n; k++) {
			for (uint32_t j = 0; j < n && a->x[i * n + k] < NEVER; j++) {
				uint32_t d = max3(a->x[i * n + k], m.x[k * n + j], 0);

				to->x[i * n + j] = d < to->x[i * n + j] ? d : to->x[i * n + j];
			}
		}
	}
	free(m.x);
}

/* The best sequence of `k` tables and `hosts` machines. */
static struct table sequences(uint32_t size, const struct table *child, uint32_t k, uint32_t hosts)
{
	uint32_t sets = 1u << k, n = sets * (hosts + 1);
	struct table *t = calloc(n, sizeof(*t)), machine = table_new(size), result;

	assert_non_null(t);
	machine.x[0] = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t set = i % sets, used = i / sets;

		t[i] = table_new(size);
		if (used > 0) {
			if (set == 0 && used == 1) {
				memcpy(t[i].x, machine.x, size * size * sizeof(uint32_t));
			} else {
				concatenate(&t[i], &t[i - sets], &machine);
			}
		}
		for (uint32_t c = 0; c < k; c++) {
			if ((set >> c & 1) == 0) {
				continue;
			}
			if (used == 0 && set == 1u << c) {
				memcpy(t[i].x, child[c].x, size * size * sizeof(uint32_t));
			} else {
				concatenate(&t[i], &t[i - (1u << c)], &child[c]);
			}
		}
	}
	result = t[n - 1];
	for (uint32_t i = 0; i + 1 < n; i++) {
		free(t[i].x);
	}
	free(machine.x);
	free(t);
	return result;
}

uint32_t ro_algorithm3(const struct ro_tree *r)
{
	uint32_t hosts[RO_SWITCHES] = { 0 }, below_it[RO_SWITCHES] = { 0 }, size = 2, best = NEVER;
	struct table at[RO_SWITCHES] = { { 0 } };

	if (r->nhosts == 1) {
		return 0;
	}
	for (uint32_t i = 0; i < r->nhosts; i++) {
		hosts[r->at[i]]++;
	}
	for (uint32_t s = r->nswitches; s-- > 0;) {
		below_it[s] += hosts[s];
		below_it[s > 0 ? r->parent[s] : 0] += s > 0 ? below_it[s] : 0;
		size = depth(r, s) + 2 > size ? depth(r, s) + 2 : size;
	}
	for (uint32_t s = r->nswitches; s-- > 0 && best == NEVER;) {
		struct table child[8], seq;
		uint32_t k = 0;

		for (uint32_t c = s + 1; c < r->nswitches; c++) {
			if (r->parent[c] == s && below_it[c] > 0) {
				assert_true(k < 8);
				child[k++] = at[c];
			}
		}
		if (below_it[s] == 0) {
			continue;
		}
		seq = sequences(size, child, k, hosts[s]);
		at[s] = table_new(size);
		for (uint32_t i = 0; i + 1 < size; i++) {
			for (uint32_t j = 0; j + 1 < size; j++) {
				at[s].x[(i + 1) * size + j + 1] = seq.x[i * size + j];
			}
		}
		free(seq.x);
		/* The first switch above all hosts closes the ring. */
		for (uint32_t i = 1; below_it[s] == r->nhosts && i < size; i++) {
			for (uint32_t j = 1; j < size; j++) {
				uint32_t d = max3(at[s].x[i * size + j], i + j - 1, 0);

				best = d < best ? d : best;
			}
		}
	}
	for (uint32_t s = 0; s < r->nswitches; s++) {
		free(at[s].x);
	}
	return best;
}

/* ---- trees --------------------------------------------------------------------------------- */

static bool next(uint32_t *digit, uint32_t n, const uint32_t *most)
{
	for (uint32_t i = 0; i < n; i++) {
		if (digit[i] < most[i]) {
			digit[i]++;
			return true;
		}
		digit[i] = 0;
	}
	return false;
}

void ro_every(uint32_t nswitches, uint32_t most, void (*f)(const struct ro_tree *r, void *arg),
	      void *arg)
{
	uint32_t parent[8] = { 0 }, parent_most[8] = { 0 }, hosts[8] = { 0 }, hosts_most[8];
	struct ro_tree r;

	assert_true(nswitches <= 8);
	for (uint32_t i = 0; i < 8; i++) {
		parent_most[i] = i > 0 ? i - 1 : 0;
		hosts_most[i] = most;
	}
	for (uint32_t n = 1; n <= nswitches; n++) {
		do {
			do {
				if (ro_make(&r, n, parent, hosts)) {
					f(&r, arg);
				}
			} while (next(hosts, n, hosts_most));
		} while (next(parent, n, parent_most));
	}
}

void ro_random(struct ro_tree *r, uint32_t nswitches, uint32_t reach, uint32_t degree,
	       uint32_t percent, uint32_t most, uint64_t *seed)
{
	uint32_t parent[RO_SWITCHES] = { 0 }, hosts[RO_SWITCHES] = { 0 };
	uint32_t children[RO_SWITCHES] = { 0 };

	for (uint32_t i = 1; i < nswitches; i++) {
		uint32_t low = reach == 0 || i < reach ? 0 : i - reach;

		do {
			parent[i] = low + cn_below(seed, i - low);
		} while (children[parent[i]] == degree && parent[i] != i - 1);
		children[parent[i]]++;
	}
	for (uint32_t i = 0; i < nswitches; i++) {
		if (children[i] == 0 || cn_below(seed, 100) < percent) {
			hosts[i] = 1 + cn_below(seed, most);
		}
	}
	assert_true(ro_make(r, nswitches, parent, hosts));
	for (uint32_t i = r->nhosts; i > 1; i--) {
		uint32_t j = cn_below(seed, i), x = r->at[i - 1];

		r->at[i - 1] = r->at[j];
		r->at[j] = x;
	}
}
