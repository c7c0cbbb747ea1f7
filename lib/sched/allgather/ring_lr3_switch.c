/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LR3 at one switch (ring_lr3.c says what it is about): a ring of its children, who may have
 * several pairs of ends to choose from, and of what is above it.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/allgather/ring_lr3.h"
#include "util/ascending.h"

int cn_lr3_no_memory(const struct cn_lr3 *s)
{
	return cn_fail(s->err, COLLNET_ENOMEM, "no memory for a ring of %u hosts", s->t->nhosts);
}

/* Room for a switch of n segments whose children have `values` ends to choose from. */
static int reserve(struct cn_lr3 *s, uint32_t n, uint32_t values)
{
	if (n > s->cap_d) {
		uint32_t cap = n + n / 2;

		free(s->d);
		free(s->laid);
		free(s->many);
		free(s->pick);
		s->cap_d = 0;
		s->d = calloc(cap, sizeof(*s->d));
		s->laid = calloc(cap, sizeof(*s->laid));
		s->many = calloc(cap, sizeof(*s->many));
		s->pick = calloc(cap, sizeof(*s->pick));
		if (s->d == NULL || s->laid == NULL || s->many == NULL || s->pick == NULL) {
			return cn_lr3_no_memory(s);
		}
		s->cap_d = cap;
	}
	if (values > s->cap_values) {
		uint32_t cap = values + values / 2;

		free(s->values);
		free(s->levels);
		free(s->sum);
		free(s->rest);
		s->cap_values = 0;
		s->values = calloc(cap, sizeof(*s->values));
		s->levels = calloc(cap, sizeof(*s->levels));
		s->sum = calloc(cap, sizeof(*s->sum));
		s->rest = calloc(cap, sizeof(*s->rest));
		if (s->values == NULL || s->levels == NULL || s->sum == NULL || s->rest == NULL) {
			return cn_lr3_no_memory(s);
		}
		s->cap_values = cap;
	}
	return cn_ring_matching_reserve(&s->rings, s->cap_d, s->err);
}

struct cn_crossing cn_lr3_crossing(const struct cn_lr3 *s, uint32_t v)
{
	struct cn_crossing c = { .v = v, .child = s->t->children + s->t->v[v].first_child };

	c.hosts = cn_ring_hosts_of(s->t, v);
	c.switches = s->t->v[v].nchildren - c.hosts;
	c.used = c.hosts <= c.switches ? c.hosts : c.switches + 1;
	c.n = c.used + c.switches;
	return c;
}

static bool same_front(const struct cn_lr3 *s, uint32_t a, uint32_t b)
{
	return s->nfront[a] == s->nfront[b] &&
	       memcmp(&s->pairs[s->front[a]], &s->pairs[s->front[b]],
		      s->nfront[a] * sizeof(*s->pairs)) == 0;
}

uint32_t cn_lr3_distinct(uint32_t *x, uint32_t n)
{
	uint32_t kept = 0;

	qsort(x, n, sizeof(*x), cn_ascending_u32);
	for (uint32_t i = 0; i < n; i++) {
		if (kept == 0 || x[kept - 1] != x[i]) {
			x[kept++] = x[i];
		}
	}
	return kept;
}

/*
 * Segments of the switch's children, first pairs taken; those that have a choice in many[], by a
 * hash of their fronts, so that like ones are neighbours.
 */
int cn_lr3_open(struct cn_lr3 *s, const struct cn_crossing *c)
{
	uint32_t values = 2;
	int rc;

	for (uint32_t i = 0; i < c->switches; i++) {
		values += 2 * s->nfront[c->child[c->hosts + i]];
	}
	rc = reserve(s, c->n + 1, values);
	if (rc != COLLNET_OK) {
		return rc;
	}
	memset(s->d, 0, c->used * sizeof(*s->d));
	s->nmany = 0;
	for (uint32_t i = 0; i < c->switches; i++) {
		uint32_t v = c->child[c->hosts + i], from = s->front[v], n = s->nfront[v];
		uint64_t hash = n;

		s->d[c->used + i] = s->pairs[from];
		s->taken[v] = from;
		if (n == 1) {
			continue;
		}
		for (uint32_t k = from; k < from + n; k++) {
			hash = cn_mix64(hash ^ s->pairs[k].end[0]);
			hash = cn_mix64(hash ^ s->pairs[k].end[1]);
		}
		s->many[s->nmany++] = hash >> 32 << 32 | i;
	}
	qsort(s->many, s->nmany, sizeof(*s->many), cn_ascending_u64);
	return COLLNET_OK;
}

/* The effect of a segment on level i: its ends of at most T - v, less those of at least v. */
static int32_t effect(const struct cn_lr3 *s, const struct cn_ring_segment *d, uint32_t i)
{
	uint32_t v = s->levels[i], w = s->most - v;

	return (d->end[0] <= w) + (d->end[1] <= w) - (d->end[0] >= v) - (d->end[1] >= v);
}

/* The maximum effect on a level of choosing child i, over its pairs. */
static int32_t best_effect(const struct cn_lr3 *s, uint32_t v, uint32_t level)
{
	int32_t best = -2;

	for (uint32_t k = s->front[v]; k < s->front[v] + s->nfront[v]; k++) {
		int32_t e = effect(s, &s->pairs[k], level);

		best = e > best ? e : best;
	}
	return best;
}

/* Computes the levels, which are the big heights that can occur (others are redundant), and the
 * sums of the decided segments. */
static void take_stock(struct cn_lr3 *s, const struct cn_crossing *c, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t j = 0; j < s->nmany; j++) {
		uint32_t m = (uint32_t)s->many[j];

		s->d[c->used + m] = s->pairs[s->front[c->child[c->hosts + m]]];
	}
	for (uint32_t i = c->used; i < n; i++) {
		s->levels[k++] = s->d[i].end[0];
		s->levels[k++] = s->d[i].end[1];
	}
	for (uint32_t j = 0; j < s->nmany; j++) {
		uint32_t v = c->child[c->hosts + (uint32_t)s->many[j]];

		for (uint32_t i = s->front[v] + 1; i < s->front[v] + s->nfront[v]; i++) {
			s->levels[k++] = s->pairs[i].end[0];
			s->levels[k++] = s->pairs[i].end[1];
		}
	}
	k = cn_lr3_distinct(s->levels, k);
	s->nlevels = 0;
	for (uint32_t i = 0; i < k; i++) {
		if (s->levels[i] > s->most / 2) {
			s->levels[s->nlevels++] = s->levels[i];
		}
	}
	for (uint32_t i = 0; i < s->nlevels; i++) {
		s->sum[i] = s->rest[i] = 0;
		for (uint32_t j = 0; j < n; j++) {
			s->sum[i] += effect(s, &s->d[j], i);
		}
		for (uint32_t j = 0; j < s->nmany; j++) {
			uint32_t m = (uint32_t)s->many[j];

			s->sum[i] -= effect(s, &s->d[c->used + m], i);
			s->rest[i] += best_effect(s, c->child[c->hosts + m], i);
		}
	}
}

static bool hopeless(const struct cn_lr3 *s)
{
	for (uint32_t i = 0; i < s->nlevels; i++) {
		if (s->sum[i] + s->rest[i] < 0) {
			return true;
		}
	}
	return false;
}

/* Marks choosing child j decided (sign 1: by the segment in d[]) or undecided (-1). */
static void decide(struct cn_lr3 *s, const struct cn_crossing *c, uint32_t j, int32_t sign)
{
	uint32_t m = (uint32_t)s->many[j], v = c->child[c->hosts + m];

	for (uint32_t i = 0; i < s->nlevels; i++) {
		s->sum[i] += sign * effect(s, &s->d[c->used + m], i);
		s->rest[i] -= sign * best_effect(s, v, i);
	}
}

static int spend(struct cn_lr3 *s, const struct cn_crossing *c, uint64_t work)
{
	if (work > s->work) {
		return cn_fail(s->err, COLLNET_ELIMIT,
			       "the shortest ring takes too long to find (at "
			       "switch %s, with paths of %u switches): use lr1",
			       s->t->topo->vertices[s->t->v[c->v].vertex].name, s->most + 1);
	}
	s->work -= work;
	return COLLNET_OK;
}

/*
 * Tries the choices of many[0 .. nmany) in lexical order, like children in ascending order only.
 * 1: d[] is a choice that makes a ring, and taken[] names it.
 */
static int choose(struct cn_lr3 *s, const struct cn_crossing *c, uint32_t n)
{
	uint32_t j = 0;
	bool fresh = true; /* child j begins its pairs; else it goes on to the next */

	take_stock(s, c, n);
	if (hopeless(s)) {
		return 0;
	}
	for (;;) {
		uint32_t m, v;
		int rc;

		if (j == s->nmany) {
			rc = spend(s, c, 16 * (uint64_t)n);
			if (rc != COLLNET_OK) {
				return rc;
			}
			if (cn_ring_matching_ring(&s->rings, s->d, n, s->most, s->laid)) {
				return 1;
			}
			fresh = false;
			j--;
		}
		m = (uint32_t)s->many[j];
		v = c->child[c->hosts + m];
		rc = spend(s, c, (uint64_t)(s->nlevels + 1) * (s->nfront[v] + 2));
		if (rc != COLLNET_OK) {
			return rc;
		}
		if (fresh) {
			uint32_t before = j > 0 ? c->child[c->hosts + (uint32_t)s->many[j - 1]] : 0;

			s->pick[j] = j > 0 && same_front(s, before, v) ? s->pick[j - 1] : 0;
		} else {
			decide(s, c, j, -1);
			s->pick[j]++;
		}
		if (s->pick[j] == s->nfront[v]) {
			if (j == 0) {
				return 0;
			}
			fresh = false;
			j--;
			continue;
		}
		s->taken[v] = s->front[v] + s->pick[j];
		s->d[c->used + m] = s->pairs[s->taken[v]];
		decide(s, c, j, 1);
		fresh = !hopeless(s);
		j += fresh;
	}
}

int cn_lr3_lay(struct cn_lr3 *s, const struct cn_crossing *c, uint32_t n)
{
	if (s->nmany > 0) {
		return choose(s, c, n);
	}
	return cn_ring_matching_ring(&s->rings, s->d, n, s->most, s->laid);
}
