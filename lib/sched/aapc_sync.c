/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The synchronisations of one node's messages, without redundant ones (see aapc.h).
 *
 * Whether an edge m1 -> m2 is redundant is a search backwards from the other messages just before
 * m2, in the order of phases, latest first, down to the phase of m1: it is if something is found
 * that shares a link with m1. Two things keep it short and exact:
 *  - The messages of a group follow one another on two links, so a group is left at its first
 *    message in one step, unless local messages of its two subtrees could matter on the way.
 *  - Those of t_i connect nothing that is not connected, once both the messages out of t_i and
 *    those into t_i have been reached; unless m1 is one of them.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/aapc.h"

#define NONE CN_TOPO_NONE

struct list {
	struct cn_aapc_message *m;
	uint32_t n, cap;
};

/* What has been reached of the messages out of a subtree and into it, in this search. */
struct reach {
	uint64_t search;
	uint32_t out, in; /* latest phase, plus one; 0: none */
};

struct cn_aapc_sync {
	const struct cn_aapc *a;
	uint32_t effort;
	uint64_t search;	/* number of the current one */
	struct reach *reach;	/* [k] */
	struct list heap;	/* latest phase first */
	struct list near;	/* users just before a message of the search */
	struct list prior;	/* users just before the message in question */
	struct list next;	/* users just after it */
	struct list answer;
	struct cn_aapc_effort done;
};

int cn_aapc_sync_new(const struct cn_aapc *a, uint32_t effort, struct cn_aapc_sync **out,
		     struct cn_err *err)
{
	struct cn_aapc_sync *s = calloc(1, sizeof(*s));

	if (s != NULL) {
		s->a = a;
		s->effort = effort;
		s->reach = calloc(a->k + 1, sizeof(*s->reach));
	}
	if (s == NULL || s->reach == NULL) {
		free(s);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to synchronise %u nodes", a->n);
	}
	*out = s;
	return COLLNET_OK;
}

void cn_aapc_sync_free(struct cn_aapc_sync *s)
{
	if (s != NULL) {
		free(s->reach);
		free(s->heap.m);
		free(s->near.m);
		free(s->prior.m);
		free(s->next.m);
		free(s->answer.m);
		free(s);
	}
}

struct cn_aapc_effort cn_aapc_effort(const struct cn_aapc_sync *s)
{
	return s->done;
}

static int add(struct list *l, struct cn_aapc_message m, struct cn_err *err)
{
	if (l->n == l->cap) {
		uint32_t cap = l->cap == 0 ? 64 : l->cap * 2;
		struct cn_aapc_message *grown = realloc(l->m, (size_t)cap * sizeof(*grown));

		if (grown == NULL) {
			return cn_fail(err, COLLNET_ENOMEM,
				       "no memory for the synchronisations of a message");
		}
		l->m = grown;
		l->cap = cap;
	}
	l->m[l->n++] = m;
	return COLLNET_OK;
}

/* A node sends one message a phase: phase and sender name it. */
static bool same(const struct cn_aapc_message *x, const struct cn_aapc_message *y)
{
	return x->phase == y->phase && x->from == y->from;
}

static bool later(const struct cn_aapc_message *x, const struct cn_aapc_message *y)
{
	return x->phase != y->phase ? x->phase > y->phase : x->from > y->from;
}

/* ---- links -------------------------------------------------------------------------------- */

/*
 * What a message uses of one subtree: all links from `from` up to the one above vertex `up`, and
 * from the one above `down` down to `to`. NONE: no such links.
 */
struct route {
	uint32_t subtree, from, to; /* vertices */
	uint32_t up, down;
};

static struct route local_route(const struct cn_aapc *a, const struct cn_aapc_message *m)
{
	const struct cn_tree *t = a->tree;
	uint32_t from = t->host[a->node[m->from]], to = t->host[a->node[m->to]];
	struct route r = {a->subtree[m->from], from, to, from, to};

	while (!cn_tree_below(t, to, t->v[r.up].parent)) {
		r.up = t->v[r.up].parent;
	}
	while (t->v[r.down].parent != t->v[r.up].parent) {
		r.down = t->v[r.down].parent;
	}
	return r;
}

/* What the message uses of subtree i. */
static struct route route_in(const struct cn_aapc *a, const struct cn_aapc_message *m, uint32_t i)
{
	const struct cn_tree *t = a->tree;
	struct route r = {i, NONE, NONE, NONE, NONE};

	if (a->subtree[m->from] == i && a->subtree[m->to] == i) {
		return local_route(a, m);
	}
	if (a->subtree[m->from] == i) {
		r.from = t->host[a->node[m->from]];
		r.up = a->top[i];
	}
	if (a->subtree[m->to] == i) {
		r.to = t->host[a->node[m->to]];
		r.down = a->top[i];
	}
	return r;
}

/*
 * Two ways up, from x to the link above its ancestor top_x and from y to that above top_y: they
 * share a link if they meet below the lower one of the tops, or in it.
 */
static bool ways_share(const struct cn_tree *t, uint32_t x, uint32_t top_x, uint32_t y,
		       uint32_t top_y)
{
	if (x == NONE || y == NONE) {
		return false;
	}
	if (cn_tree_below(t, top_x, top_y)) {
		return cn_tree_below(t, y, top_x);
	}
	return cn_tree_below(t, top_y, top_x) && cn_tree_below(t, x, top_y);
}

static bool share_in(const struct cn_aapc *a, const struct cn_aapc_message *x,
		     const struct cn_aapc_message *y, uint32_t i)
{
	struct route p = route_in(a, x, i), q = route_in(a, y, i);

	return ways_share(a->tree, p.from, p.up, q.from, q.up) ||
	       ways_share(a->tree, p.to, p.down, q.to, q.down);
}

static bool is_local(const struct cn_aapc *a, const struct cn_aapc_message *m)
{
	return a->subtree[m->from] == a->subtree[m->to];
}

static bool share_link(const struct cn_aapc *a, const struct cn_aapc_message *x,
		       const struct cn_aapc_message *y)
{
	if (x->from == y->from || x->to == y->to) {
		return true;
	}
	if (is_local(a, x)) {
		return share_in(a, x, y, a->subtree[x->from]);
	}
	if (is_local(a, y)) {
		return share_in(a, x, y, a->subtree[y->from]);
	}
	return a->subtree[x->from] == a->subtree[y->from] ||
	       a->subtree[x->to] == a->subtree[y->to];
}

/* The users of the message's links next to it; the same one may come more than once. */
static int users(const struct cn_aapc *a, const struct cn_aapc_message *m, bool before,
		 struct list *l, struct cn_err *err)
{
	const struct cn_tree *t = a->tree;
	uint32_t ends[2] = {t->host[a->node[m->from]], t->host[a->node[m->to]]};
	uint32_t top = 0;
	int rc = COLLNET_OK;

	l->n = 0;
	if (is_local(a, m)) {
		top = t->v[local_route(a, m).up].parent;
	}
	for (uint32_t e = 0; e < 2; e++) {
		for (uint32_t x = ends[e]; !rc && x != top; x = t->v[x].parent) {
			struct cn_aapc_message u;

			if (cn_aapc_user(a, 2 * x + e, m->phase, before, &u)) {
				rc = add(l, u, err);
			}
		}
	}
	return rc;
}

static int compare_latest_first(const void *x, const void *y)
{
	const struct cn_aapc_message *a = x, *b = y;

	return later(a, b) ? -1 : later(b, a);
}

/* Each user once, latest first. */
static int sorted_users(const struct cn_aapc *a, const struct cn_aapc_message *m, bool before,
			struct list *l, struct cn_err *err)
{
	uint32_t kept = 0;
	int rc = users(a, m, before, l, err);

	if (rc) {
		return rc;
	}
	if (l->n > 1) {
		qsort(l->m, l->n, sizeof(*l->m), compare_latest_first);
	}
	for (uint32_t i = 0; i < l->n; i++) {
		if (kept == 0 || !same(&l->m[kept - 1], &l->m[i])) {
			l->m[kept++] = l->m[i];
		}
	}
	l->n = kept;
	return COLLNET_OK;
}

/* ---- the search --------------------------------------------------------------------------- */

static struct reach *reach_of(struct cn_aapc_sync *s, uint32_t i)
{
	struct reach *r = &s->reach[i];

	if (r->search != s->search) {
		*r = (struct reach){s->search, 0, 0};
	}
	return r;
}

static int push(struct cn_aapc_sync *s, struct cn_aapc_message m, struct cn_err *err)
{
	struct list *h = &s->heap;
	uint32_t i = h->n;
	int rc = add(h, m, err);

	if (rc) {
		return rc;
	}
	while (i > 0 && later(&m, &h->m[(i - 1) / 2])) {
		h->m[i] = h->m[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->m[i] = m;
	if (!is_local(s->a, &m)) {
		struct reach *from = reach_of(s, s->a->subtree[m.from]);
		struct reach *to = reach_of(s, s->a->subtree[m.to]);

		from->out = from->out > m.phase + 1 ? from->out : m.phase + 1;
		to->in = to->in > m.phase + 1 ? to->in : m.phase + 1;
	}
	return COLLNET_OK;
}

static struct cn_aapc_message pop(struct list *h)
{
	struct cn_aapc_message top = h->m[0], last = h->m[--h->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= h->n) {
			break;
		}
		if (c + 1 < h->n && later(&h->m[c + 1], &h->m[c])) {
			c++;
		}
		if (!later(&h->m[c], &last)) {
			break;
		}
		h->m[i] = h->m[c];
		i = c;
	}
	if (h->n > 0) {
		h->m[i] = last;
	}
	return top;
}

/*
 * Whether local messages of subtree i matter to the search for m1, from a message out of it (or
 * into it) at `phase` downwards.
 */
static bool locals_matter(struct cn_aapc_sync *s, const struct cn_aapc_message *m1, uint32_t i,
			  bool out, uint32_t phase)
{
	const struct cn_aapc *a = s->a;
	uint32_t m = cn_aapc_size(a, i), first = 0, end = a->phases;
	struct cn_aapc_message other;

	if (m == 1) {
		return false;
	}
	if (i == 0) {
		end = m * (m - 1);
	} else {
		first = a->phases - m * cn_aapc_size(a, i - 1);
	}
	if (first >= phase || end <= m1->phase) {
		return false;
	}
	if (is_local(a, m1) && a->subtree[m1->from] == i) {
		return true;
	}
	return cn_aapc_user(a, 2 * a->top[i] + out, phase, true, &other) &&
	       other.phase >= m1->phase && /* it may be m1 */
	       (out ? reach_of(s, i)->in : reach_of(s, i)->out) <= other.phase;
}

/* Pushes what is just before m and later than m1. */
static int expand(struct cn_aapc_sync *s, const struct cn_aapc_message *m1,
		  const struct cn_aapc_message *m, struct cn_err *err)
{
	const struct cn_aapc *a = s->a;
	uint32_t i = a->subtree[m->from], j = a->subtree[m->to];
	int rc = COLLNET_OK;

	if (i != j && !locals_matter(s, m1, i, true, m->phase) &&
	    !locals_matter(s, m1, j, false, m->phase)) {
		uint32_t start = cn_aapc_start(a, i, j);
		struct cn_aapc_message u;

		if (cn_aapc_user(a, 2 * a->top[i], start, true, &u) && u.phase > m1->phase) {
			rc = push(s, u, err);
		}
		if (!rc && cn_aapc_user(a, 2 * a->top[j] + 1, start, true, &u) &&
		    u.phase > m1->phase) {
			rc = push(s, u, err);
		}
		return rc;
	}
	rc = users(a, m, true, &s->near, err);
	for (uint32_t e = 0; !rc && e < s->near.n; e++) {
		if (s->near.m[e].phase > m1->phase) {
			rc = push(s, s->near.m[e], err);
		}
	}
	return rc;
}

/*
 * Whether m1, one of the users just before m2 (all of them in s->prior), also leads to m2 by
 * another of them. Uses s->near.
 */
static int redundant(struct cn_aapc_sync *s, const struct cn_aapc_message *m1, bool *answer,
		     struct cn_err *err)
{
	struct cn_aapc_message last = {NONE, NONE, NONE};
	uint64_t looked = 0;
	int rc = COLLNET_OK;

	s->done.edges++;
	*answer = false;
	for (uint32_t e = 0; e < s->prior.n && s->prior.m[e].phase > m1->phase; e++) {
		if (share_link(s->a, &s->prior.m[e], m1)) {
			*answer = true;
			return COLLNET_OK;
		}
	}
	s->heap.n = 0;
	s->search++;
	for (uint32_t e = 0; !rc && e < s->prior.n && s->prior.m[e].phase > m1->phase; e++) {
		rc = push(s, s->prior.m[e], err);
	}
	s->done.searches += s->heap.n > 0;
	while (!rc && s->heap.n > 0) {
		struct cn_aapc_message m = pop(&s->heap);

		if (same(&m, &last)) {
			continue;
		}
		last = m;
		if (++looked > s->effort) {
			s->done.undecided++;
			break;
		}
		if (share_link(s->a, &m, m1)) {
			*answer = true;
			break;
		}
		rc = expand(s, m1, &m, err);
	}
	s->done.messages += looked;
	s->done.most = looked > s->done.most ? looked : s->done.most;
	return rc;
}

/* ---- the two questions -------------------------------------------------------------------- */

int cn_aapc_before(struct cn_aapc_sync *s, const struct cn_aapc_message *m,
		   const struct cn_aapc_message **list, uint32_t *n, struct cn_err *err)
{
	int rc = sorted_users(s->a, m, true, &s->prior, err);

	s->answer.n = 0;
	for (uint32_t e = 0; !rc && e < s->prior.n; e++) {
		bool out;

		if (s->prior.m[e].from == m->from) {
			continue;
		}
		rc = redundant(s, &s->prior.m[e], &out, err);
		if (!rc && !out) {
			rc = add(&s->answer, s->prior.m[e], err);
		}
	}
	*list = s->answer.m;
	*n = s->answer.n;
	return rc;
}

int cn_aapc_after(struct cn_aapc_sync *s, const struct cn_aapc_message *m,
		  const struct cn_aapc_message **list, uint32_t *n, struct cn_err *err)
{
	int rc = sorted_users(s->a, m, false, &s->next, err);

	s->answer.n = 0;
	for (uint32_t e = 0; !rc && e < s->next.n; e++) {
		bool out;

		if (s->next.m[e].from == m->from) {
			continue;
		}
		rc = sorted_users(s->a, &s->next.m[e], true, &s->prior, err);
		if (!rc) {
			rc = redundant(s, m, &out, err);
		}
		if (!rc && !out) {
			rc = add(&s->answer, s->next.m[e], err);
		}
	}
	*list = s->answer.m;
	*n = s->answer.n;
	return rc;
}
