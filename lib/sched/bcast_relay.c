/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Down-to-up and up-to-down. Every candidate of up-to-down is judged by the time of the whole tree,
 * in its best order, so that what is kept is never worse than what was. The paper's window slides
 * over the holding set; here it is the CANDIDATES holders that would have the child served first.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/bcast_relay.h"

#define NONE UINT32_MAX
#define CANDIDATES 16u
#define BUDGET ((uint64_t)1 << 25)

int cn_relay_init(struct cn_relay *r, uint32_t n, uint32_t root, const struct cn_relay_net *net,
		  struct cn_err *err)
{
	*r = (struct cn_relay){.n = n, .root = root, .net = *net, .budget = BUDGET};
	r->parent = malloc((size_t)n * 5 * sizeof(*r->parent));
	r->busy = calloc((size_t)n * 7, sizeof(*r->busy));
	if (r->parent == NULL || r->busy == NULL) {
		cn_relay_done(r);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a broadcast among %u", n);
	}
	r->first = r->parent + n;
	r->next = r->parent + 2 * (size_t)n;
	r->order = r->parent + 3 * (size_t)n;
	r->scratch = r->parent + 4 * (size_t)n;
	memset(r->parent, 0xff, (size_t)n * 5 * sizeof(*r->parent)); /* NONE */
	r->total = r->busy + n;
	r->start = r->busy + 2 * (size_t)n;
	r->ready = r->busy + 3 * (size_t)n;
	r->cycle = r->busy + 4 * (size_t)n;
	r->pace = r->busy + 5 * (size_t)n;
	r->rest = r->busy + 6 * (size_t)n;
	return COLLNET_OK;
}

void cn_relay_done(struct cn_relay *r)
{
	free(r->parent);
	free(r->busy);
	memset(r, 0, sizeof(*r));
}

static void append(struct cn_relay *r, uint32_t v, uint32_t parent)
{
	uint32_t *at = &r->first[parent];

	while (*at != NONE) {
		at = &r->next[*at];
	}
	*at = v;
	r->next[v] = NONE;
	r->parent[v] = parent;
}

void cn_relay_put(struct cn_relay *r, uint32_t v, uint32_t parent)
{
	if (r->parent[v] != NONE) {
		uint32_t *at = &r->first[r->parent[v]];

		while (*at != v) {
			at = &r->next[*at];
		}
		*at = r->next[v];
	}
	append(r, v, parent);
	r->net.cost(r->net.ctx, parent, v, &r->busy[v], &r->total[v]);
}

void cn_relay_reprice(struct cn_relay *r)
{
	for (uint32_t v = 0; v < r->n; v++) {
		if (r->parent[v] != NONE) {
			r->net.cost(r->net.ctx, r->parent[v], v, &r->busy[v], &r->total[v]);
		}
	}
}

/* Parents before their children; returns how many are in the tree. */
static uint32_t find_order(struct cn_relay *r)
{
	uint32_t tail = 1;

	r->order[0] = r->root;
	for (uint32_t q = 0; q < tail; q++) {
		for (uint32_t c = r->first[r->order[q]]; c != NONE; c = r->next[c]) {
			r->order[tail++] = c;
		}
	}
	return tail;
}

/* Times outwards; order[] is there. */
static void forward(struct cn_relay *r, uint32_t n)
{
	r->finish = r->sum = 0;
	r->ready[r->root] = r->pace[r->root] = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = r->order[i];
		uint64_t end = r->ready[v] + (r->net.segments - 1) * r->pace[v], pace;

		r->cycle[v] = 0;
		for (uint32_t c = r->first[v]; c != NONE; c = r->next[c]) {
			r->start[c] = r->ready[v] + r->cycle[v];
			r->ready[c] = r->start[c] + r->total[c];
			r->cycle[v] += r->busy[c];
		}
		pace = r->cycle[v] > r->pace[v] ? r->cycle[v] : r->pace[v];
		for (uint32_t c = r->first[v]; c != NONE; c = r->next[c]) {
			r->pace[c] = pace;
		}
		r->finish = end > r->finish ? end : r->finish;
		r->sum += r->ready[v];
	}
}

void cn_relay_time(struct cn_relay *r)
{
	forward(r, find_order(r));
}

static uint64_t tail_of(const struct cn_relay *r, uint32_t c)
{
	return r->total[c] - r->busy[c] + r->rest[c];
}

/* Longest tail first; equal ones by number. */
static void sort_children(struct cn_relay *r, uint32_t v)
{
	uint32_t sorted = NONE, last = NONE, c = r->first[v];

	while (c != NONE) {
		uint32_t after = r->next[c], *at = &sorted;

		/* Mostly they are in order already. */
		if (last != NONE && (tail_of(r, last) > tail_of(r, c) ||
				     (tail_of(r, last) == tail_of(r, c) && last < c))) {
			at = &r->next[last];
		}
		while (*at != NONE && (tail_of(r, *at) > tail_of(r, c) ||
				       (tail_of(r, *at) == tail_of(r, c) && *at < c))) {
			at = &r->next[*at];
		}
		r->next[c] = *at;
		*at = c;
		last = r->next[c] == NONE ? c : last;
		c = after;
	}
	r->first[v] = sorted;
}

void cn_relay_down_up(struct cn_relay *r)
{
	uint32_t n = find_order(r);

	forward(r, n); /* the paces, which do not depend on the order of children */
	for (uint32_t i = n; i-- > 0;) {
		uint32_t v = r->order[i];
		uint64_t before = 0, end;

		sort_children(r, v);
		r->rest[v] = (r->net.segments - 1) * r->pace[v];
		for (uint32_t c = r->first[v]; c != NONE; c = r->next[c]) {
			end = before + r->total[c] + r->rest[c];
			r->rest[v] = end > r->rest[v] ? end : r->rest[v];
			before += r->busy[c];
		}
	}
	forward(r, n);
}

/* ---- the channels of links ------------------------------------------------------------------ */

struct use {
	uint32_t link, v;
};

static int by_link(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->link != y->link) {
		return x->link < y->link ? -1 : 1;
	}
	return x->v < y->v ? -1 : x->v > y->v;
}

/* Of the messages that use one link. Also: does it need longer for a segment than the slowest
 * node does? Then it is the link that sets the pace. */
static uint64_t crowd(const struct cn_relay *r, const struct use *u, uint32_t n, uint64_t pace)
{
	uint32_t channels = r->net.channels(r->net.ctx, u->link);
	uint64_t pairs = 0, all = 0;

	if (n <= channels) {
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = r->start[u[i].v];
		uint32_t same = 0;

		for (uint32_t k = 0; k < n; k++) {
			same += r->start[u[k].v] <= at && at < r->start[u[k].v] + r->busy[u[k].v];
		}
		pairs += same > channels ? same - channels : 0;
		all += r->busy[u[i].v];
	}
	return pairs + (r->net.segments > 1 && all / channels > pace ? 1 : 0);
}

int cn_relay_crowded(const struct cn_relay *r, uint64_t *pairs, struct cn_err *err)
{
	uint32_t *path = malloc(((size_t)r->net.longest + 1) * sizeof(*path));
	struct use *uses = NULL;
	size_t count = 0, cap = 0;
	uint64_t pace = 0;

	*pairs = 0;
	for (uint32_t v = 0; path != NULL && v < r->n; v++) {
		uint32_t n;

		pace = r->cycle[v] > pace ? r->cycle[v] : pace;
		if (r->parent[v] == NONE) {
			continue;
		}
		n = r->net.path(r->net.ctx, r->parent[v], v, path);
		if (count + n > cap) {
			struct use *more = realloc(uses, (cap = 2 * cap + n) * sizeof(*uses));

			if (more == NULL) {
				free(path);
				path = NULL;
				break;
			}
			uses = more;
		}
		while (n > 0) {
			uses[count++] = (struct use){path[--n], v};
		}
	}
	if (path == NULL) {
		free(uses);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the paths of %u messages", r->n);
	}
	if (count > 0) {
		qsort(uses, count, sizeof(*uses), by_link);
	}
	for (size_t i = 0, k; i < count; i = k) {
		for (k = i; k < count && uses[k].link == uses[i].link; k++) {
		}
		*pairs += crowd(r, &uses[i], (uint32_t)(k - i), pace);
	}
	free(uses);
	free(path);
	return COLLNET_OK;
}

/* ---- up-to-down ---------------------------------------------------------------------------- */

struct window {
	uint32_t n, holder[CANDIDATES];
	uint64_t served[CANDIDATES];
};

/* Marks in scratch[]: c and all below it. */
static void mark_below(struct cn_relay *r, uint32_t c)
{
	uint32_t v = c;

	memset(r->scratch, 0, r->n * sizeof(*r->scratch));
	for (;;) {
		r->scratch[v] = 1;
		if (r->first[v] != NONE) {
			v = r->first[v];
			continue;
		}
		while (v != c && r->next[v] == NONE) {
			v = r->parent[v];
		}
		if (v == c) {
			return;
		}
		v = r->next[v];
	}
}

/* The holders that would have c served first. */
static void find_window(struct cn_relay *r, uint32_t c, struct window *w)
{
	w->n = 0;
	mark_below(r, c);
	for (uint32_t u = 0; u < r->n; u++) {
		uint64_t busy, total, served, pace;
		uint32_t i;

		if (r->scratch[u] || u == r->parent[c] || (u != r->root && r->parent[u] == NONE)) {
			continue;
		}
		r->net.cost(r->net.ctx, u, c, &busy, &total);
		pace = r->cycle[u] + busy > r->pace[u] ? r->cycle[u] + busy : r->pace[u];
		served = r->ready[u] + r->cycle[u] + total + (r->net.segments - 1) * pace;
		if (w->n == CANDIDATES && served >= w->served[w->n - 1]) {
			continue;
		}
		w->n += w->n < CANDIDATES;
		for (i = w->n - 1; i > 0 && w->served[i - 1] > served; i--) {
			w->served[i] = w->served[i - 1];
			w->holder[i] = w->holder[i - 1];
		}
		w->served[i] = served;
		w->holder[i] = u;
	}
}

static int try_child(struct cn_relay *r, uint32_t c, uint64_t *pairs, uint32_t *moves,
		     struct cn_err *err)
{
	uint64_t finish = r->finish, sum = r->sum, now, steps;
	uint32_t old = r->parent[c], best = old;
	struct window w;
	int rc = COLLNET_OK;

	find_window(r, c, &w);
	steps = (uint64_t)r->n * (w.n + 3);
	if (r->budget < steps) {
		r->budget = 0;
		return COLLNET_OK;
	}
	r->budget -= steps;
	for (uint32_t i = 0; !rc && i < w.n; i++) {
		cn_relay_put(r, c, w.holder[i]);
		cn_relay_down_up(r);
		if (r->finish > finish || (r->finish == finish && r->sum >= sum)) {
			continue;
		}
		rc = cn_relay_crowded(r, &now, err);
		if (!rc && now <= *pairs) {
			best = w.holder[i];
			finish = r->finish;
			sum = r->sum;
			*pairs = now;
		}
	}
	cn_relay_put(r, c, best);
	cn_relay_down_up(r);
	*moves += best != old;
	return rc;
}

/* All in depth-first order. */
static void depth_first(const struct cn_relay *r, uint32_t *out)
{
	uint32_t n = 0, v = r->root;

	for (;;) {
		out[n++] = v;
		if (r->first[v] != NONE) {
			v = r->first[v];
			continue;
		}
		while (v != r->root && r->next[v] == NONE) {
			v = r->parent[v];
		}
		if (v == r->root) {
			return;
		}
		v = r->next[v];
	}
}

int cn_relay_up_down(struct cn_relay *r, uint32_t *moves, struct cn_err *err)
{
	uint32_t *list = malloc(2 * (size_t)r->n * sizeof(*list)), *kids, count, n = 0;
	uint64_t pairs;
	int rc;

	if (list == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a broadcast among %u", r->n);
	}
	kids = list + r->n;
	cn_relay_down_up(r);
	rc = cn_relay_crowded(r, &pairs, err);
	for (int pass = 0; !rc && pass < 2; pass++) {
		count = find_order(r);
		memcpy(list, r->order, count * sizeof(*list));
		if (pass == 1) {
			depth_first(r, list);
		}
		for (uint32_t i = 0; !rc && i < count && r->budget > 0; i++) {
			uint32_t m = 0;

			for (uint32_t c = r->first[list[i]]; c != NONE; c = r->next[c]) {
				kids[m++] = c;
			}
			for (uint32_t k = 1; !rc && k < m && r->budget > 0; k++) {
				if (r->net.movable == NULL || r->net.movable[kids[k]]) {
					rc = try_child(r, kids[k], &pairs, &n, err);
				}
			}
		}
	}
	free(list);
	if (moves != NULL) {
		*moves = n;
	}
	return rc;
}
