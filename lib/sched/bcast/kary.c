/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast by contention-free trees of at most k children a node, pipelined: every directed link
 * carries messages of one sender only (Patarasuk, Faraj and Yuan ask the same of their trees), so
 * that with the k messages of a sender in k phases, no two ever meet, and the period is k.
 *
 * Nodes stand in depth-first order from the root, 0 .. n - 1. Seen from the root, what lies beyond
 * a link is an interval of that order, and any two such intervals are nested or disjoint. The node
 * at place i serves an interval i .. j: it cuts i + 1 .. j into parts, sends to the first node of
 * each, m_1 = i + 1 < m_2 < ..., which serves its part likewise. The only messages that can share a
 * link with i -> m_c are those inside an earlier part, and none does if
 *   - every interval that holds m_c but not i begins at some m_b, b <= c (else an earlier part
 *     begins outside of it and has to enter it too), and
 *   - every interval that holds i, and ends at e with i < e < m_c, has e + 1 = some m_b, b <= c
 *     (else an earlier part lies on both sides of its end, and has to leave it too).
 * A chain satisfies both, so a tree exists for every network; what the network costs is height.
 *
 * To keep that low, reach[D][i] is how far the node at i gets if the last message is to arrive D
 * phases after i has its own. The parts are cut from left to right, each where the next one
 * reaches farthest, among the last TRIED places that are allowed. Children are served in the order
 * of the parts or, mostly better, in the reverse order: the last part is the longest.
 *
 * The time grows with the height, that is, with long rows of switches, where a chain is as good.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/bcast/bcast.h"

#define NONE	 CN_TOPO_NONE
#define TRIED	 16u		     /* places that a part may begin at, for each part */
#define WORK_MAX ((uint64_t)1 << 22) /* limit of work, some 20 ms; beyond it a chain is used */
#define K_MAX	 8u

/* The interval beyond a link, seen from the root. */
struct beyond {
	uint32_t first, last; /* places */
	uint32_t up;	      /* smallest interval that holds it and ends later; NONE: everything */
	uint32_t parent;      /* smallest interval that holds it */
};

struct kary {
	uint32_t n, k;
	uint32_t *node; /* [n] place -> node */
	struct beyond *iv;
	uint32_t niv;
	uint32_t *inner;  /* [n] smallest interval that holds a place; NONE */
	uint32_t *enter;  /* [n] first place of the smallest one that begins before it; 0: none */
	uint32_t **reach; /* [rows] of [n] */
	uint32_t rows;
	uint64_t work; /* work of begin_part() */
};

/* The parts of the interval that a node serves. */
struct parts {
	uint32_t n, reach;
	bool reverse; /* the last is served first */
	uint32_t m[K_MAX];
};

static int by_place(const void *a, const void *b)
{
	const struct beyond *x = a, *y = b;

	if (x->first != y->first) {
		return x->first < y->first ? -1 : 1;
	}
	return x->last == y->last ? 0 : x->last > y->last ? -1 : 1;
}

/* Intervals by first place, the longer first; before: hosts before a vertex in preorder. */
static void find_intervals(struct kary *k, const struct cn_tree *t, uint32_t root)
{
	uint32_t count = 0, before = 0, at = 0, kept = 0;

	for (uint32_t x = 0; x < t->n; x++) {
		if (t->v[x].node != NONE) {
			at = t->v[x].node == root ? count : at;
			k->node[count++] = t->v[x].node;
		}
	}
	for (uint32_t x = 0; x < t->n; x++) {
		uint32_t h = t->v[x].hosts, first = before, len = h;

		before += t->v[x].node != NONE;
		if (at - first < h) { /* the root is below: the other side */
			first += h;
			len = k->n - h;
		}
		if (x == 0 || len == 0) {
			continue;
		}
		first = (first + k->n - at) % k->n;
		k->iv[k->niv++] = (struct beyond){ .first = first, .last = first + len - 1 };
	}
	qsort(k->iv, k->niv, sizeof(*k->iv), by_place);
	for (uint32_t i = 0; i < k->niv; i++) {
		if (kept == 0 || by_place(&k->iv[kept - 1], &k->iv[i]) != 0) {
			k->iv[kept++] = k->iv[i];
		}
	}
	k->niv = kept;
	/* Preorder from the root: turned. `reach` is not in use yet; inner[] holds the copy. */
	for (uint32_t i = 0; i < k->n; i++) {
		k->inner[i] = k->node[(at + i) % k->n];
	}
	memcpy(k->node, k->inner, k->n * sizeof(*k->node));
}

static void nest_intervals(struct kary *k)
{
	uint32_t top = NONE, next = 0;

	for (uint32_t place = 0; place < k->n; place++) {
		while (top != NONE && k->iv[top].last < place) {
			top = k->iv[top].parent;
		}
		k->enter[place] = top == NONE ? 0 : k->iv[top].first;
		for (; next < k->niv && k->iv[next].first == place; next++) {
			struct beyond *b = &k->iv[next];

			b->parent = b->up = top;
			if (top != NONE && k->iv[top].last == b->last) {
				b->up = k->iv[top].up;
			}
			top = next;
		}
		k->inner[place] = top;
	}
}

static void kary_done(struct kary *k)
{
	for (uint32_t i = 0; k->reach != NULL && i < k->rows; i++) {
		free(k->reach[i]);
	}
	free(k->reach);
	free(k->node);
	free(k->iv);
}

static int kary_init(struct kary *k, const struct cn_tree *t, uint32_t root, uint32_t kids,
		     struct cn_err *err)
{
	*k = (struct kary){ .n = t->nhosts, .k = kids };
	k->node = malloc((size_t)k->n * 3 * sizeof(*k->node));
	k->iv = malloc((size_t)t->n * sizeof(*k->iv));
	k->reach = calloc((size_t)k->n, sizeof(*k->reach));
	if (k->node == NULL || k->iv == NULL || k->reach == NULL) {
		kary_done(k);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a tree of %u nodes", k->n);
	}
	k->inner = k->node + k->n;
	k->enter = k->node + 2 * (size_t)k->n;
	find_intervals(k, t, root);
	nest_intervals(k);
	return COLLNET_OK;
}

/* ---- cutting ------------------------------------------------------------------------------- */

/* True if part c of the node at i may begin at m, as far as it has to enter intervals. */
static bool may_enter(const struct kary *k, uint32_t i, const struct parts *p, uint32_t m)
{
	if (k->enter[m] <= i) {
		return true;
	}
	for (uint32_t b = 0; b < p->n; b++) {
		if (p->m[b] == k->enter[m]) {
			return true;
		}
	}
	return false;
}

/* The best place, from `most` downwards to behind `least`, to begin the next part at. */
static uint32_t begin_part(struct kary *k, uint32_t i, const struct parts *p, uint32_t most,
			   uint32_t least, const uint32_t *reach)
{
	uint32_t best = NONE, tried = 0;

	for (uint32_t m = most; m > least && tried < TRIED; m--, k->work++) {
		if (may_enter(k, i, p, m)) {
			tried++;
			if (best == NONE || reach[m] > reach[best]) {
				best = m;
			}
		}
	}
	return best;
}

/* `count` parts for the node at i with D phases. */
static void cut(struct kary *k, uint32_t i, uint32_t d, uint32_t count, bool reverse,
		struct parts *p)
{
	uint32_t up = k->inner[i];

	*p = (struct parts){ .reach = i, .reverse = reverse };
	if (up != NONE && k->iv[up].last <= i) {
		up = k->iv[up].up;
	}
	for (uint32_t c = 0; c < count && p->reach + 1 < k->n; c++) {
		const uint32_t *reach = k->reach[reverse ? d - (count - c) : d - (c + 1)];
		uint32_t most = p->reach + 1, m;

		if (up != NONE && k->iv[up].last + 1 < most) {
			most = k->iv[up].last + 1;
		}
		m = c == 0 ? i + 1 : begin_part(k, i, p, most, p->m[c - 1], reach);
		if (m == NONE || reach[m] <= p->reach) {
			break;
		}
		while (up != NONE && k->iv[up].last + 1 <= m) {
			up = k->iv[up].up;
		}
		p->m[p->n++] = m;
		p->reach = reach[m];
	}
}

static void best_cut(struct kary *k, uint32_t i, uint32_t d, struct parts *best)
{
	uint32_t most = d < k->k ? d : k->k;
	struct parts p;

	*best = (struct parts){ .reach = i };
	for (uint32_t count = 1; count <= most; count++) {
		cut(k, i, d, count, true, &p);
		if (p.reach > best->reach) {
			*best = p;
		}
	}
	cut(k, i, d, most, false, &p);
	if (p.reach > best->reach) {
		*best = p;
	}
}

/* Fills rows until the root reaches all nodes; *done false: too much work. */
static int fill_rows(struct kary *k, bool *done, struct cn_err *err)
{
	struct parts p;

	*done = false;
	for (uint32_t d = 0; d < k->n && k->work < WORK_MAX && !*done; d++) {
		uint32_t *row = malloc((size_t)k->n * sizeof(*row));

		if (row == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory for a tree of %u nodes",
				       k->n);
		}
		k->reach[k->rows++] = row;
		for (uint32_t i = 0; i < k->n && k->work < WORK_MAX; i++) {
			row[i] = d == 0 ? i : k->reach[d - 1][i];
			if (row[i] + 1 < k->n && d > 0) {
				best_cut(k, i, d, &p);
				row[i] = p.reach > row[i] ? p.reach : row[i];
			}
		}
		*done = k->work < WORK_MAX && row[0] == k->n - 1;
	}
	return COLLNET_OK;
}

/* ---- the tree ------------------------------------------------------------------------------ */

struct job {
	uint32_t i, j, d; /* the node at i serves up to j in d phases */
};

static uint32_t hand_out(struct kary *k, struct job *stack, struct cn_bcast *b, uint32_t *seq)
{
	uint32_t depth = 1, count = 0;

	stack[0] = (struct job){ 0, k->n - 1, k->rows - 1 };
	while (depth > 0) {
		struct job x = stack[--depth];
		struct parts p;

		if (x.j == x.i) {
			continue;
		}
		while (x.d > 1 && k->reach[x.d - 1][x.i] >= x.j) {
			x.d--;
		}
		best_cut(k, x.i, x.d, &p);
		while (p.m[p.n - 1] > x.j) {
			p.n--;
		}
		for (uint32_t c = 0; c < p.n; c++) {
			uint32_t at = p.reverse ? p.n - 1 - c : c;

			b->parent[k->node[p.m[at]]] = k->node[x.i];
			seq[count++] = k->node[p.m[at]];
			stack[depth++] = (struct job){ p.m[at],
						       at + 1 < p.n ? p.m[at + 1] - 1 : x.j,
						       x.d - 1 };
		}
	}
	return count;
}

static uint32_t chain(const struct kary *k, struct cn_bcast *b, uint32_t *seq)
{
	for (uint32_t i = 1; i < k->n; i++) {
		b->parent[k->node[i]] = k->node[i - 1];
		seq[i - 1] = k->node[i];
	}
	return k->n - 1;
}

int cn_bcast_kary_tree(const struct cn_layout *l, uint32_t root, uint32_t kids, struct cn_bcast *b,
		       struct cn_err *err)
{
	struct job *stack = NULL;
	uint32_t *seq = NULL;
	struct kary k;
	bool done = false;
	int rc = cn_bcast_init(b, l->nnodes, root, err);

	if (rc) {
		return rc;
	}
	rc = kary_init(&k, l->tree, root, kids > K_MAX ? K_MAX : kids, err);
	if (rc) {
		cn_bcast_done(b);
		return rc;
	}
	if (kids > 1) {
		rc = fill_rows(&k, &done, err);
	}
	seq = malloc((size_t)k.n * sizeof(*seq));
	stack = malloc((size_t)k.n * sizeof(*stack));
	if (!rc && (seq == NULL || stack == NULL)) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory for a tree of %u nodes", k.n);
	}
	if (!rc) {
		if (done) {
			hand_out(&k, stack, b, seq);
		} else {
			chain(&k, b, seq);
		}
		rc = cn_bcast_arrange(b, seq, err);
	}
	free(seq);
	free(stack);
	kary_done(&k);
	if (rc) {
		cn_bcast_done(b);
	}
	return rc;
}

/* The best of several k by the model; the smallest of equal ones. */
static int best_tree(const struct cn_layout *l, uint32_t root, uint64_t bytes, uint64_t segment,
		     const struct cn_cost *c, const uint32_t *kids, struct cn_bcast *out,
		     struct cn_err *err)
{
	struct cn_bcast b;
	bool have = false;
	int rc = COLLNET_OK;

	for (; !rc && *kids > 0; kids++) {
		rc = cn_bcast_kary_tree(l, root, *kids, &b, err);
		if (rc) {
			break;
		}
		rc = cn_bcast_choose(&b, l->tree, c, bytes, segment, err);
		if (!rc && (!have || b.time < out->time)) {
			if (have) {
				cn_bcast_done(out);
			}
			*out = b;
			have = true;
		} else {
			cn_bcast_done(&b);
		}
	}
	if (!rc) {
		rc = cn_bcast_colour(out, l->tree, err);
	}
	if (rc && have) {
		cn_bcast_done(out);
	}
	return rc;
}

int cn_bcast_binary(const struct cn_layout *l, uint32_t root, uint64_t bytes, uint64_t segment,
		    const struct cn_cost *c, struct cn_bcast *out, struct cn_err *err)
{
	static const uint32_t kids[] = { 2, 0 };

	return best_tree(l, root, bytes, segment, c, kids, out, err);
}

int cn_bcast_kary(const struct cn_layout *l, uint32_t root, uint64_t bytes, uint64_t segment,
		  const struct cn_cost *c, struct cn_bcast *out, struct cn_err *err)
{
	static const uint32_t kids[] = { 3, 4, 8, 0 };

	return best_tree(l, root, bytes, segment, c, kids, out, err);
}

int cn_plan_bcast_binary(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			 struct cn_sched *out, struct cn_err *err)
{
	return cn_bcast_plan(cn_bcast_binary, l, p, me, out, err);
}

int cn_plan_bcast_kary(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       struct cn_sched *out, struct cn_err *err)
{
	return cn_bcast_plan(cn_bcast_kary, l, p, me, out, err);
}
