/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multinode broadcast without queues; see multinode.h.
 *
 * Why none waits: let T = step + depth of the sender. A packet is on the way up from depth q in
 * step T - q, and, having turned at depth r, on the way down to depth q in step T - 2 r + q - 1. So
 * two packets meet on a link upwards if their T are equal, and downwards if their T - 2 r are.
 */
#include <stdlib.h>

#include "multinode.h"

#define NONE CN_TOPO_NONE

/* ---- by turns ------------------------------------------------------------------------------ */

static uint32_t turn_phases(const struct cn_tree *t, uint32_t v)
{
	uint32_t most = 0;

	if (t->v[v].nchildren != 2) {
		return t->v[v].nchildren > 2 ? t->v[v].hosts : 0;
	}
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t hosts = t->v[t->children[t->v[v].first_child + i]].hosts;

		most = hosts > most ? hosts : most;
	}
	return most;
}

/* start[v]: when switch v's turns begin; base[v]: hosts before v in preorder. */
static uint32_t lay_turns(const struct cn_tree *t, uint64_t *start, uint32_t *base)
{
	uint32_t hosts = 0;
	uint64_t count = 0;

	for (uint32_t v = 0; v < t->n; v++) {
		uint32_t up = t->v[v].parent;

		start[v] = up == NONE ? 0 : start[up] + turn_phases(t, up);
		base[v] = hosts;
		hosts += t->v[v].node != NONE;
		count += t->v[v].nchildren > 1 ? t->v[v].hosts : 0;
	}
	return count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

int cn_multinode_turns(const struct cn_tree *t, struct cn_turn **out, uint32_t *count,
		       struct cn_err *err)
{
	uint64_t *start = calloc(t->n, sizeof(*start));
	uint32_t *base = calloc(t->n, sizeof(*base)), n = 0, k = 0;
	struct cn_turn *turns = NULL;

	if (start != NULL && base != NULL) {
		n = lay_turns(t, start, base);
		turns = n == UINT32_MAX ? NULL : calloc(n > 0 ? n : 1, sizeof(*turns));
	}
	for (uint32_t node = 0; turns != NULL && node < t->nhosts; node++) {
		uint32_t x = t->host[node];

		for (uint32_t below = x; below != 0; below = t->v[below].parent) {
			uint32_t top = t->v[below].parent, first = top;
			uint64_t phase;

			if (t->v[top].nchildren < 2) {
				continue;
			}
			if (t->v[top].nchildren == 2) {
				first = below; /* they go opposite ways: each counts for itself */
			}
			/* Different T upwards; downwards different phases, as T - 2 r - phase is
			 * the same for all. */
			phase = start[top] + base[x] - base[first];
			turns[k++] = (struct cn_turn){ node, top,
						       phase + 2 * (uint64_t)t->v[top].depth +
							       t->height - t->v[x].depth + 1 };
		}
	}
	free(start);
	free(base);
	if (turns == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the turns of %u nodes",
			       t->nhosts);
	}
	*out = turns;
	*count = k;
	return COLLNET_OK;
}

/* ---- by one flood -------------------------------------------------------------------------- */

/* Steps that are taken, as values of T; grows. taken[T] == the number of the host that asks. */
struct calendar {
	uint32_t *taken;
	uint64_t cap;
};

static int calendar_mark(struct calendar *c, int64_t when, uint32_t who, struct cn_err *err)
{
	if (when < 0) {
		return COLLNET_OK;
	}
	if ((uint64_t)when >= c->cap) {
		uint64_t cap = 2 * (uint64_t)when + 64;
		uint32_t *taken = realloc(c->taken, cap * sizeof(*taken));

		if (taken == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory for %llu steps",
				       (unsigned long long)cap);
		}
		for (uint64_t i = c->cap; i < cap; i++) {
			taken[i] = NONE;
		}
		c->taken = taken;
		c->cap = cap;
	}
	c->taken[when] = who;
	return COLLNET_OK;
}

/*
 * Marks what a flood at T = `other` rules out for another one that it meets at switch `top`, at the
 * switches between `host`, which is the sender of one of them, and top: there that one turns to
 * hosts to which the other one comes down from top. T - 2 r = T' - 2 r' with r and r' the depths at
 * which they turn; sign is 1 when the host is the one marked for.
 */
static int mark_turns(struct calendar *c, const struct cn_tree *t, uint32_t top, uint32_t host,
		      int64_t other, int sign, uint32_t who, struct cn_err *err)
{
	int rc = COLLNET_OK;

	for (uint32_t s = t->v[host].parent; rc == COLLNET_OK && s != top; s = t->v[s].parent) {
		int64_t apart = 2 * ((int64_t)t->v[s].depth - t->v[top].depth);

		if (t->v[s].nchildren > 1) {
			rc = calendar_mark(c, other + sign * apart, who, err);
		}
	}
	return rc;
}

/* Marks for host x (a vertex) what the flood of host y at T = `other` rules out. */
static int mark_pair(struct calendar *c, const struct cn_tree *t, uint32_t x, uint32_t y,
		     int64_t other, struct cn_err *err)
{
	uint32_t top = cn_tree_lca(t, x, y);
	int rc = COLLNET_OK;

	/* Both turn at `top` towards others, or both come up further, to reach some. */
	if (t->v[top].nchildren > 2 || t->v[top].hosts < t->nhosts) {
		rc = calendar_mark(c, other, x, err);
	}
	if (rc == COLLNET_OK) {
		rc = mark_turns(c, t, top, x, other, 1, x, err);
	}
	if (rc == COLLNET_OK) {
		rc = mark_turns(c, t, top, y, other, -1, x, err);
	}
	return rc;
}

int cn_multinode_times(const struct cn_tree *t, uint64_t *times, struct cn_err *err)
{
	struct calendar c = { NULL, 0 };
	int rc = COLLNET_OK;

	for (uint32_t x = 0; rc == COLLNET_OK && x < t->n; x++) {
		uint64_t when = (uint64_t)t->v[x].depth + 1; /* T of step 1 */

		if (t->v[x].node == NONE) {
			continue;
		}
		for (uint32_t y = 0; rc == COLLNET_OK && y < x; y++) {
			uint32_t node = t->v[y].node;

			if (node != NONE) {
				rc = mark_pair(&c, t, x, y, (int64_t)times[node] + t->v[y].depth,
					       err);
			}
		}
		while (when < c.cap && c.taken[when] == x) {
			when++;
		}
		times[t->v[x].node] = when - t->v[x].depth;
	}
	free(c.taken);
	return rc;
}
