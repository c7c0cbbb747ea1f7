/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The synchronisations of one node's messages, without redundant ones (see aapc.h).
 *
 * Whether an edge m1 -> m2 is redundant is a search backwards from the other messages just before
 * m2, down to the phase of m1: it is if something is found that shares a link with m1. What keeps
 * it short, and exact, is that the groups are ordered so regularly. The group t_i -> t_j comes just
 * after t_i -> t_(j-1) on the link out of t_i, and just after t_(i+1) -> t_j on the link into t_j
 * (numbers modulo k). With d = (j - i) mod k, and global messages alone, all groups that lead to it
 * are therefore t_(i+a) -> t_(j-b) with a + b < d: its cone. Nothing of that needs to be walked.
 *
 * Only local messages lead on from messages into a subtree to messages out of it, or the other way.
 * So the search walks the messages out of t_i, from the latest one reached, just where t_i has
 * local messages and while the messages into t_i are not reached as far; and likewise those into
 * t_i. Once both are reached, its local messages connect nothing that is not connected.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/alltoall/aapc.h"
#include "util/pqueue.h"
#include "util/vector.h"

#define NONE CN_TOPO_NONE

struct list {
	struct cn_aapc_message *m;
	uint32_t n, cap;
};

/* A message that was pushed in a search. One place for many: it forgets. */
#define SEEN 4096u

struct seen {
	uint64_t search;
	uint32_t phase, from; /* sender; or n + i: the local message of t_i */
};

/* What has been reached of the messages out of a subtree and into it, in this search. */
struct reach {
	uint64_t search;
	uint32_t out, in; /* latest phase, plus one; 0: none */
};

/* The message at the end of the search. */
struct target {
	struct cn_aapc_message m;
	bool local;
	uint32_t subtree; /* local: its own ... */
	uint32_t out, in; /* ... and the phases of the first messages after it that go out of it,
			     and into it, and share a link with it; NONE: there is none */
};

struct cn_aapc_sync {
	const struct cn_aapc *a;
	uint32_t effort;
	uint32_t hubs;	 /* subtrees of more than one host: t_0 .. */
	uint64_t search; /* number of the current one */
	struct target target;
	bool found;
	struct reach *reach; /* [k] */
	struct seen *seen;   /* [SEEN] */
	struct list heap;    /* latest phase first */
	struct list prior;   /* users just before the message in question */
	struct list next;    /* users just after it */
	struct list answer;
};

int cn_aapc_sync_new(const struct cn_aapc *a, uint32_t effort, struct cn_aapc_sync **out,
		     struct cn_err *err)
{
	struct cn_aapc_sync *s = calloc(1, sizeof(*s));

	if (s != NULL) {
		s->a = a;
		s->effort = effort;
		s->reach = calloc(a->k + 1, sizeof(*s->reach));
		s->seen = calloc(SEEN, sizeof(*s->seen));
		while (s->hubs < a->k && cn_aapc_size(a, s->hubs) > 1) {
			s->hubs++;
		}
	}
	if (s == NULL || s->reach == NULL || s->seen == NULL) {
		cn_aapc_sync_free(s);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to synchronise %u nodes", a->n);
	}
	*out = s;
	return COLLNET_OK;
}

void cn_aapc_sync_free(struct cn_aapc_sync *s)
{
	if (s != NULL) {
		free(s->reach);
		free(s->seen);
		free(s->heap.m);
		free(s->prior.m);
		free(s->next.m);
		free(s->answer.m);
		free(s);
	}
}

static int add(struct list *l, struct cn_aapc_message m, struct cn_err *err)
{
	struct cn_aapc_message *grown = cn_vector_grow(l->m, l->n, &l->cap, sizeof(*grown));

	if (grown == NULL) {
		return cn_fail(err, COLLNET_ENOMEM,
			       "no memory for the synchronisations of a message");
	}
	l->m = grown;
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

/* ---- users just before and after ---------------------------------------------------------- */

/* The users of the message's links next to it; the same one may come more than once. */
static int all_users(const struct cn_aapc *a, const struct cn_aapc_message *m, bool before,
		     struct list *l, struct cn_err *err)
{
	const struct cn_tree *t = a->tree;
	uint32_t ends[2] = { t->host[a->node[m->from]], t->host[a->node[m->to]] };
	uint32_t top = 0;
	int rc = COLLNET_OK;

	l->n = 0;
	if (cn_aapc_is_local(a, m)) {
		top = t->v[cn_aapc_local_route(a, m).up].parent;
	}
	for (uint32_t e = 0; e < 2; e++) {
		for (uint32_t x = ends[e]; !rc && x != top; x = t->v[x].parent) {
			struct cn_aapc_message u;

			if (cn_aapc_user(a, 2 * x + e, m->phase, before, CN_AAPC_ANY, &u)) {
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
static int users(const struct cn_aapc *a, const struct cn_aapc_message *m, bool before,
		 struct list *l, struct cn_err *err)
{
	uint32_t kept = 0;
	int rc = all_users(a, m, before, l, err);

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
		*r = (struct reach){ s->search, 0, 0 };
	}
	return r;
}

/* True if this was seen in this search before; marks it seen. */
static bool seen(struct cn_aapc_sync *s, uint32_t phase, uint32_t from)
{
	struct seen *x = &s->seen[(phase * 29 + from) % SEEN];

	if (x->search == s->search && x->phase == phase && x->from == from) {
		return true;
	}
	*x = (struct seen){ s->search, phase, from };
	return false;
}

static bool pops_before(const void *a, const void *b)
{
	return later(a, b);
}

static int push(struct cn_aapc_sync *s, struct cn_aapc_message m, struct cn_err *err)
{
	struct list *h = &s->heap;
	int rc;

	if (seen(s, m.phase, m.from)) {
		return COLLNET_OK;
	}
	rc = add(h, m, err);
	if (rc == COLLNET_OK) {
		cn_pqueue_push(h->m, h->n - 1, sizeof(m), &m, pops_before);
	}
	return rc;
}

static struct cn_aapc_message pop(struct list *h)
{
	struct cn_aapc_message top;

	cn_pqueue_pop(h->m, h->n--, sizeof(top), &top, pops_before);
	return top;
}

static void aim(struct cn_aapc_sync *s, const struct cn_aapc_message *m1)
{
	struct target *t = &s->target;
	struct cn_aapc_message u;

	*t = (struct target){ *m1, cn_aapc_is_local(s->a, m1), s->a->subtree[m1->from], NONE,
			      NONE };
	if (t->local) {
		struct cn_aapc_route r = cn_aapc_local_route(s->a, m1);

		if (cn_aapc_user(s->a, 2 * r.up, m1->phase, false, CN_AAPC_GLOBAL, &u)) {
			t->out = u.phase;
		}
		if (cn_aapc_user(s->a, 2 * r.down + 1, m1->phase, false, CN_AAPC_GLOBAL, &u)) {
			t->in = u.phase;
		}
	}
}

/* (x - y) modulo the number of subtrees. */
static uint32_t apart(const struct cn_aapc *a, uint32_t x, uint32_t y)
{
	return x >= y ? x - y : x + a->k - y;
}

/* Messages of t_i -> t_j, at `phase` and before, are reached. */
static void mark(struct cn_aapc_sync *s, uint32_t i, uint32_t j, uint32_t phase)
{
	const struct target *t = &s->target;
	struct reach *from = reach_of(s, i), *to = reach_of(s, j);

	from->out = from->out > phase + 1 ? from->out : phase + 1;
	to->in = to->in > phase + 1 ? to->in : phase + 1;
	if (t->local) {
		s->found = s->found || (i == t->subtree && phase >= t->out) ||
			   (j == t->subtree && phase >= t->in);
	} else {
		uint32_t a = apart(s->a, s->a->subtree[t->m.from], i);
		uint32_t b = apart(s->a, j, s->a->subtree[t->m.to]);

		s->found = s->found || a + b == 0 || a + b < apart(s->a, j, i);
	}
}

/* The last message of t_i -> t_j is reached; it is pushed if it is news of where locals are. */
static int cone(struct cn_aapc_sync *s, uint32_t i, uint32_t j, uint32_t known, struct cn_err *err)
{
	const struct cn_aapc *a = s->a;
	uint32_t last = cn_aapc_start(a, i, j) + cn_aapc_size(a, i) * cn_aapc_size(a, j) - 1;

	if (last <= s->target.m.phase || last < known) {
		return COLLNET_OK;
	}
	mark(s, i, j, last);
	return push(s, cn_aapc_global(a, i, j, last), err);
}

/* A global message is reached by another way than a walk: with it, its cone. */
static int reached(struct cn_aapc_sync *s, const struct cn_aapc_message *m, struct cn_err *err)
{
	const struct cn_aapc *a = s->a;
	uint32_t i = a->subtree[m->from], j = a->subtree[m->to], d = apart(a, j, i);
	int rc = COLLNET_OK;

	if (m->phase <= s->target.m.phase || reach_of(s, i)->out > m->phase ||
	    reach_of(s, j)->in > m->phase) {
		return COLLNET_OK;
	}
	mark(s, i, j, m->phase);
	if (i < s->hubs || j < s->hubs) {
		rc = push(s, *m, err);
	}
	for (uint32_t x = 0; !rc && !s->found && x < s->hubs; x++) {
		if (x != i && apart(a, x, i) < d) {
			rc = cone(s, x, j, reach_of(s, x)->out, err);
		}
		if (!rc && x != j && apart(a, j, x) < d) {
			rc = cone(s, i, x, reach_of(s, x)->in, err);
		}
	}
	return rc;
}

/*
 * True if all messages out of t_i (or into it) before a phase are reached, as far as they come
 * after the target or are the target.
 */
static bool covered(struct cn_aapc_sync *s, uint32_t i, bool out, uint32_t phase)
{
	const struct reach *r = reach_of(s, i);
	uint32_t reached_end = out ? r->out : r->in;
	struct cn_aapc_message last;

	return reached_end >= phase ||
	       !cn_aapc_user(s->a, 2 * s->a->top[i] + !out, phase, true, CN_AAPC_GLOBAL, &last) ||
	       last.phase < s->target.m.phase || reached_end > last.phase;
}

/* True if t_i has local messages after a phase and before another. */
static bool has_locals(const struct cn_aapc *a, uint32_t i, uint32_t after, uint32_t before)
{
	uint32_t m = cn_aapc_size(a, i), first = 0, end = a->phases;

	if (i == 0) {
		end = m * (m - 1);
	} else {
		first = a->phases - m * cn_aapc_size(a, i - 1);
	}
	return m > 1 && before > first && after + 1 < end && after + 1 < before;
}

/* True if a walk down the messages out of t_i (or into it) can still find something. */
static bool locals_matter(struct cn_aapc_sync *s, uint32_t i, bool out, uint32_t phase)
{
	const struct target *t = &s->target;

	return has_locals(s->a, i, t->m.phase, phase) &&
	       ((t->local && t->subtree == i) || !covered(s, i, !out, phase));
}

/* The local messages of t_i just before m on the links from vertex x up to `top`, down or up. */
static int locals_before(struct cn_aapc_sync *s, const struct cn_aapc_message *m, uint32_t x,
			 uint32_t top, bool down, struct cn_err *err)
{
	const struct cn_aapc *a = s->a;
	uint32_t i = a->subtree[a->lowest[x]];
	int rc = COLLNET_OK;

	for (; !rc && x != top; x = a->tree->v[x].parent) {
		uint32_t phase = cn_aapc_local_before(a, 2 * x + down, m->phase);
		struct cn_aapc_message u;

		if (phase != NONE && phase > s->target.m.phase && !seen(s, phase, a->n + i) &&
		    cn_aapc_local(a, i, phase, &u)) {
			rc = push(s, u, err);
		}
	}
	return rc;
}

/* One step of the walk down the messages out of t_i, or into it. */
static int walk(struct cn_aapc_sync *s, const struct cn_aapc_message *m, bool out,
		struct cn_err *err)
{
	const struct cn_aapc *a = s->a;
	uint32_t place = out ? m->from : m->to, i = a->subtree[place], from = m->phase;
	uint32_t m0 = a->first[1], settled = m0 * (m0 - 1) + m0;
	struct cn_aapc_message u;
	int rc;

	if (!locals_matter(s, i, out, m->phase)) {
		return COLLNET_OK;
	}
	if (i == 0 && from > settled) {
		from = settled; /* in the round after its last local message everyone sends once */
	}
	rc = locals_before(s, m, a->tree->host[a->node[place]], a->top[i], !out, err);
	if (!rc && cn_aapc_user(a, 2 * a->top[i] + !out, from, true, CN_AAPC_GLOBAL, &u) &&
	    u.phase > s->target.m.phase) {
		rc = push(s, u, err);
	}
	return rc;
}

/* What is just before m. */
static int expand(struct cn_aapc_sync *s, const struct cn_aapc_message *m, struct cn_err *err)
{
	struct cn_aapc_message u;
	struct cn_aapc_route r;
	uint32_t i, top;
	int rc;

	if (!cn_aapc_is_local(s->a, m)) {
		rc = walk(s, m, true, err);
		return rc ? rc : walk(s, m, false, err);
	}
	if (cn_aapc_share(s->a, m, &s->target.m)) {
		s->found = true;
		return COLLNET_OK;
	}
	i = s->a->subtree[m->from];
	if (!(s->target.local && s->target.subtree == i) && covered(s, i, true, m->phase) &&
	    covered(s, i, false, m->phase)) {
		return COLLNET_OK;
	}
	r = cn_aapc_local_route(s->a, m);
	top = s->a->tree->v[r.up].parent;
	rc = locals_before(s, m, r.from, top, false, err);
	rc = rc ? rc : locals_before(s, m, r.to, top, true, err);
	/* The highest link has all global messages of the lower ones. */
	if (!rc && cn_aapc_user(s->a, 2 * r.up, m->phase, true, CN_AAPC_GLOBAL, &u)) {
		rc = reached(s, &u, err);
	}
	if (!rc && cn_aapc_user(s->a, 2 * r.down + 1, m->phase, true, CN_AAPC_GLOBAL, &u)) {
		rc = reached(s, &u, err);
	}
	return rc;
}

/*
 * True if a message leads to any local one before a phase. From t_i -> t_j, global messages lead to
 * t_(i-a) -> t_(j+b) with d + a + b < k: the first ones out of t_x are to t_j, the first ones into
 * it are from t_i.
 */
static bool leads_to_locals(const struct cn_aapc_sync *s, const struct cn_aapc_message *m,
			    uint32_t before)
{
	const struct cn_aapc *a = s->a;
	uint32_t i = a->subtree[m->from], j = a->subtree[m->to], d = apart(a, j, i);

	if (i == j || has_locals(a, i, m->phase, before) || has_locals(a, j, m->phase, before)) {
		return true;
	}
	for (uint32_t x = 0; x < s->hubs; x++) {
		if (x != i && x != j &&
		    ((d + apart(a, i, x) < a->k &&
		      has_locals(a, x, cn_aapc_start(a, x, j), before)) ||
		     (d + apart(a, x, j) < a->k &&
		      has_locals(a, x, cn_aapc_start(a, i, x), before)))) {
			return true;
		}
	}
	return false;
}

/* Goes on until the target is found to be before, or all is looked at. */
static int search(struct cn_aapc_sync *s, struct cn_err *err)
{
	struct cn_aapc_message last = { NONE, NONE, NONE };
	uint64_t looked = 0;
	int rc = COLLNET_OK;

	while (!rc && !s->found && s->heap.n > 0 && looked < s->effort) {
		struct cn_aapc_message m = pop(&s->heap);

		if (!same(&m, &last)) {
			last = m;
			looked++;
			rc = expand(s, &m, err);
		}
	}
	return rc;
}

/*
 * *answer: true if m1, one of the users just before m2 (all of them in s->prior), also leads to m2
 * by another of them. Global messages alone do that only on a link that both use: an edge from one
 * group to the next adds one to (j - i) mod k, and two such edges would add two.
 */
static int redundant(struct cn_aapc_sync *s, const struct cn_aapc_message *m1,
		     const struct cn_aapc_message *m2, bool *answer, struct cn_err *err)
{
	const struct list *p = &s->prior;
	int rc = COLLNET_OK;

	*answer = false;
	for (uint32_t e = 0; e < p->n && p->m[e].phase > m1->phase; e++) {
		if (cn_aapc_share(s->a, &p->m[e], m1)) {
			*answer = true;
			return COLLNET_OK;
		}
	}
	if (p->n == 0 || p->m[0].phase <= m1->phase || !leads_to_locals(s, m1, m2->phase)) {
		return COLLNET_OK;
	}
	s->found = false;
	s->heap.n = 0;
	s->search++;
	aim(s, m1);
	for (uint32_t e = 0; !rc && e < p->n && p->m[e].phase > m1->phase; e++) {
		rc = cn_aapc_is_local(s->a, &p->m[e]) ? push(s, p->m[e], err)
						      : reached(s, &p->m[e], err);
	}
	rc = rc ? rc : search(s, err);
	*answer = s->found;
	return rc;
}

/* ---- the two questions -------------------------------------------------------------------- */

int cn_aapc_before(struct cn_aapc_sync *s, const struct cn_aapc_message *m,
		   const struct cn_aapc_message **list, uint32_t *n, struct cn_err *err)
{
	int rc = users(s->a, m, true, &s->prior, err);

	s->answer.n = 0;
	for (uint32_t e = 0; !rc && e < s->prior.n; e++) {
		bool out;

		if (s->prior.m[e].from == m->from) {
			continue;
		}
		rc = redundant(s, &s->prior.m[e], m, &out, err);
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
	int rc = users(s->a, m, false, &s->next, err);

	s->answer.n = 0;
	for (uint32_t e = 0; !rc && e < s->next.n; e++) {
		bool out;

		if (s->next.m[e].from == m->from) {
			continue;
		}
		rc = users(s->a, &s->next.m[e], true, &s->prior, err);
		if (!rc) {
			rc = redundant(s, m, &s->next.m[e], &out, err);
		}
		if (!rc && !out) {
			rc = add(&s->answer, s->next.m[e], err);
		}
	}
	*list = s->answer.m;
	*n = s->answer.n;
	return rc;
}
