/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Phases of a broadcast: a periodic colouring of its messages.
 *
 * Two messages that share a link (all its channels being taken), or a sender, must not meet in a
 * phase: their offsets differ modulo the period. First fit, from the root outwards; when it finds
 * no place, the period grows. A period of n always does: no message can meet more than n - 2
 * others. With one segment nothing repeats, so the period is n, which no offset reaches: a message
 * waits only for others, so every phase before it has a message.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/bcast/bcast.h"

struct colour {
	struct cn_bcast *b;
	const struct cn_tree *t;
	uint32_t *load, *placed; /* [2 t->n] messages of a link: all, and those that have a phase */
	uint32_t *start;	 /* [2 t->n] where the residues of a link begin */
	uint32_t *taken;	 /* residues, link by link; only of shared links */
	uint32_t *path;		 /* [2 height] */
	uint32_t *stamp, *count; /* [n] by residue */
	uint32_t round;		 /* of stamps */
};

static bool is_contended(const struct colour *c, uint32_t d)
{
	return c->load[d] > 1 && c->load[d] > cn_tree_channels(c->t, d);
}

static void colour_done(struct colour *c)
{
	free(c->load);
	free(c->taken);
	free(c->path);
	free(c->stamp);
}

static int colour_init(struct colour *c, struct cn_bcast *b, const struct cn_tree *t,
		       struct cn_err *err)
{
	size_t links = 2 * (size_t)t->n;
	uint32_t total = 0;

	*c = (struct colour){ .b = b, .t = t };
	c->load = calloc(links * 3, sizeof(*c->load));
	c->path = malloc(((size_t)t->height * 2 + 1) * sizeof(*c->path));
	c->stamp = calloc((size_t)b->n * 2, sizeof(*c->stamp));
	if (c->load != NULL && c->path != NULL && c->stamp != NULL) {
		c->placed = c->load + links;
		c->start = c->load + 2 * links;
		c->count = c->stamp + b->n;
		for (uint32_t i = 1; i < b->n; i++) {
			uint32_t v = b->order[i], n = cn_tree_path(t, b->parent[v], v, c->path);

			while (n > 0) {
				c->load[c->path[--n]]++;
			}
		}
		for (uint32_t d = 0; d < links; d++) {
			c->start[d] = total;
			total += is_contended(c, d) ? c->load[d] : 0;
		}
		c->taken = malloc(((size_t)total + 1) * sizeof(*c->taken));
	}
	if (c->taken == NULL) {
		colour_done(c);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the phases of %u nodes", b->n);
	}
	return COLLNET_OK;
}

/* No period can be shorter. */
static uint32_t shortest(const struct colour *c)
{
	uint32_t period = 1;

	for (uint32_t v = 0; v < c->b->n; v++) {
		period = c->b->nchildren[v] > period ? c->b->nchildren[v] : period;
	}
	for (uint32_t d = 2; d < 2 * c->t->n; d++) {
		uint32_t need = c->load[d] == 0 ? 0 : (c->load[d] - 1) / cn_tree_channels(c->t, d);

		period = need + 1 > period ? need + 1 : period;
	}
	return period;
}

/* Stamps the residues that the links of the path have no channel left for. */
static void block(struct colour *c, uint32_t nlinks)
{
	uint32_t *taken;

	for (uint32_t i = 0; i < nlinks; i++) {
		uint32_t d = c->path[i], channels;

		if (!is_contended(c, d)) {
			continue;
		}
		channels = cn_tree_channels(c->t, d);
		taken = c->taken + c->start[d];
		for (uint32_t k = 0; k < c->placed[d]; k++) {
			if (++c->count[taken[k]] == channels) {
				c->stamp[taken[k]] = c->round;
			}
		}
		for (uint32_t k = 0; k < c->placed[d]; k++) {
			c->count[taken[k]] = 0;
		}
	}
}

/* A phase in [from, to) that is free; `to` when there is none. */
static uint32_t first_free(const struct colour *c, uint32_t period, uint32_t from, uint32_t to)
{
	while (from < to && c->stamp[from % period] == c->round) {
		from++;
	}
	return from;
}

static bool place_children(struct colour *c, uint32_t v, uint32_t period)
{
	struct cn_bcast *b = c->b;
	uint32_t base = v == b->root ? 0 : b->offset[v] + 1, first = base, previous = base;

	for (uint32_t k = 0; k < b->nchildren[v]; k++) {
		uint32_t child = b->order[b->first[v] + k], x;
		uint32_t n = cn_tree_path(c->t, v, child, c->path);

		c->round++;
		block(c, n);
		for (uint32_t j = 0; j < k; j++) {
			c->stamp[b->offset[b->order[b->first[v] + j]] % period] = c->round;
		}
		x = first_free(c, period, previous, first + period);
		if (x == first + period) {
			x = first_free(c, period, first, previous);
			if (x == previous) {
				return false;
			}
		}
		first = k == 0 ? x : first;
		previous = x;
		b->offset[child] = x;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t d = c->path[i];

			if (is_contended(c, d)) {
				c->taken[c->start[d] + c->placed[d]++] = x % period;
			}
		}
	}
	return true;
}

static bool place_all(struct colour *c, uint32_t period)
{
	memset(c->placed, 0, 2 * (size_t)c->t->n * sizeof(*c->placed));
	for (uint32_t i = 0; i < c->b->n; i++) {
		if (!place_children(c, c->b->order[i], period)) {
			return false;
		}
	}
	return true;
}

/* List order is the order of phases. Insertion: they are nearly sorted. */
static void sort_children(struct cn_bcast *b)
{
	for (uint32_t v = 0; v < b->n; v++) {
		uint32_t *kid = b->order + b->first[v];

		for (uint32_t i = 1; i < b->nchildren[v]; i++) {
			uint32_t x = kid[i], j = i;

			for (; j > 0 && b->offset[kid[j - 1]] > b->offset[x]; j--) {
				kid[j] = kid[j - 1];
			}
			kid[j] = x;
		}
	}
}

int cn_bcast_colour(struct cn_bcast *b, const struct cn_tree *t, struct cn_err *err)
{
	struct colour c;
	uint32_t period, last = 0;
	int rc = colour_init(&c, b, t, err);

	if (rc) {
		return rc;
	}
	period = b->segments == 1 ? b->n : shortest(&c);
	while (!place_all(&c, period)) {
		period += 1 + period / 16;
		period = period > b->n ? b->n : period;
	}
	colour_done(&c);
	for (uint32_t i = 1; i < b->n; i++) {
		last = b->offset[b->order[i]] > last ? b->offset[b->order[i]] : last;
	}
	b->period = b->segments == 1 ? last + 1 : period;
	b->phases = b->n == 1 ? 0 : last + 1 + period * (b->segments - 1);
	b->phased = true;
	sort_children(b);
	return COLLNET_OK;
}
