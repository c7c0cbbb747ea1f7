/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LR3: a ring without contention whose longest path is the shortest that there is. The problem is
 * that of Faraj, Patarasuk and Yuan, Algorithm 3, whose solution tries n^k orders of a switch's
 * children; this one sorts them.
 *
 * The hosts of every subtree follow one another on a ring without contention (their Lemma 2): each
 * child of a switch is an array of hosts, and only the heights of its two ends matter, where the
 * height of a host is the number of switches from it up to the child, that one too (a host that is
 * a child itself: 0). Where ends of heights k and l touch at a switch, the path has k + l + 1
 * switches. So with the longest path L given, children are segments, and ends may touch if they
 * are at most T = L - 1 together. L is searched for from below: feasible stays feasible.
 *
 * A subtree's front is the set of the pairs of ends (p, q) that it can offer, without those that
 * another one beats in both (lower is never worse), either way round. Its array is to be closed
 * by the rest of the tree, which is one more segment: an array with ends of at most p and q exists
 * exactly when the children and the segment (T - p, T - q) can be laid in a ring. ring_matching.c
 * decides that, and lays it, in n log n, exactly. Fronts are found from the leaves to the top,
 * where the children must make a ring by themselves; then the ring is laid from the top to the
 * leaves. Of hosts that are children only one more than the switches can matter: any more go next
 * to any.
 *
 * Which of its pairs does a child with several of them take? For L <= 4 every front is one pair.
 * (Let (p, q) and (p', q') with p < p' <= q' < q both be possible. If (p, q') is not, either some
 * height v with T - p' < v <= T - p and q' < v <= q has as many ends of at least v as of at most
 * T - v, which a count of the cases shows and which needs T > 3, as q < T; or the graph of blocks
 * in ring_matching.c falls apart, but for T <= 3 it has two blocks at most, and the segment (T, T -
 * 1) joins them.) From L = 5 on fronts of several pairs exist where hosts are few and far between.
 * Then choices are tried one after the other, children with the same front being alike, and a
 * partial choice is given up when some height lacks low ends whatever the others take: for every v
 * > T / 2 the ends of at least v need as many ends of at most T - v. So it is exact always, and
 * polynomial for any degree as long as L is bounded. Without a bound on L it looks like the
 * selection of intervals, which is NP-hard; the authors suspect the same of the problem. The work
 * is therefore bounded, by CN_LR3_WORK, and COLLNET_ELIMIT is the answer beyond it. No tree that
 * was tried came near: hubs of 60 such children take 2 ms at most.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/allgather/ring_lr3.h"
#include "util/vector.h"

/* Up to here L grows by one; from here by half until feasible, followed by bisection. */
#define CN_LR3_STEP_BY_ONE 8u

/* ---- storage ------------------------------------------------------------------------------ */

static int add_pair(struct cn_lr3 *s, uint32_t v, uint32_t p, uint32_t q)
{
	struct cn_ring_segment *pairs = cn_vector_grow(s->pairs, s->npairs, &s->cap_pairs,
						       sizeof(*pairs));

	if (pairs == NULL) {
		return cn_lr3_no_memory(s);
	}
	s->pairs = pairs;
	if (s->nfront[v]++ == 0) {
		s->front[v] = s->npairs;
	}
	s->pairs[s->npairs++] = (struct cn_ring_segment){ { p, q } };
	return COLLNET_OK;
}

static int lr3_new(struct cn_lr3 *s, const struct cn_tree *t, struct cn_err *err)
{
	*s = (struct cn_lr3){ .t = t, .err = err, .top = cn_ring_top(t), .work = CN_LR3_WORK };
	s->cap_pairs = t->n;
	s->pairs = calloc(t->n, sizeof(*s->pairs));
	s->front = calloc(t->n, sizeof(*s->front));
	s->nfront = calloc(t->n, sizeof(*s->nfront));
	s->taken = calloc(t->n, sizeof(*s->taken));
	s->order = calloc(t->n, sizeof(*s->order));
	if (s->pairs == NULL || s->front == NULL || s->nfront == NULL || s->taken == NULL ||
	    s->order == NULL) {
		return cn_lr3_no_memory(s);
	}
	return COLLNET_OK;
}

static void lr3_done(struct cn_lr3 *s)
{
	cn_ring_matching_done(&s->rings);
	free(s->pairs);
	free(s->front);
	free(s->nfront);
	free(s->taken);
	free(s->order);
	free(s->d);
	free(s->laid);
	free(s->many);
	free(s->pick);
	free(s->values);
	free(s->levels);
	free(s->sum);
	free(s->rest);
}

/* ---- from the leaves to the top ------------------------------------------------------------- */

static int lay_between(struct cn_lr3 *s, const struct cn_crossing *c, uint32_t p, uint32_t q)
{
	s->d[c->n] = (struct cn_ring_segment){ { s->most - p, s->most - q } };
	return cn_lr3_lay(s, c, c->n + 1);
}

/* The heights that an end of the switch's array can have, such that its parent can use it. */
static uint32_t candidates(struct cn_lr3 *s, const struct cn_crossing *c)
{
	uint32_t n = 0, kept = 0;

	if (c->hosts > 0) {
		s->values[n++] = 0;
	}
	for (uint32_t i = 0; i < c->switches; i++) {
		uint32_t v = c->child[c->hosts + i];

		for (uint32_t k = s->front[v]; k < s->front[v] + s->nfront[v]; k++) {
			s->values[n++] = s->pairs[k].end[0];
			s->values[n++] = s->pairs[k].end[1];
		}
	}
	n = cn_lr3_distinct(s->values, n);
	while (kept < n && s->values[kept] < s->most) {
		kept++;
	}
	return kept;
}

/*
 * The front of a switch with several children, as a staircase: the lowest p for which the highest
 * q allowed will do, the lowest q for that p, and on with a lower q. Both by halving, as what can
 * be laid between (p, q) can be laid between higher ones.
 */
static int find_front(struct cn_lr3 *s, const struct cn_crossing *c)
{
	uint32_t n = candidates(s, c), p = 0, q_end = n;
	const uint32_t *x = s->values;

	while (p < q_end) {
		uint32_t low = p, high = q_end; /* lowest p in [low, high], high: none */
		int rc;

		while (low < high) {
			uint32_t mid = low == p ? p : low + (high - low) / 2; /* often p */

			rc = lay_between(s, c, x[mid], x[q_end - 1]);
			if (rc < 0) {
				return rc;
			}
			low = rc > 0 ? low : mid + 1;
			high = rc > 0 ? mid : high;
		}
		if (low == q_end) {
			break;
		}
		p = low;
		high = q_end - 1; /* feasible */
		while (low < high) {
			uint32_t mid = low == p ? p : low + (high - low) / 2;

			rc = lay_between(s, c, x[p], x[mid]);
			if (rc < 0) {
				return rc;
			}
			low = rc > 0 ? low : mid + 1;
			high = rc > 0 ? mid : high;
		}
		rc = add_pair(s, c->v, x[p] + 1, x[high] + 1);
		if (rc != COLLNET_OK) {
			return rc;
		}
		q_end = high;
		p++;
	}
	return COLLNET_OK;
}

/* A switch below the top. Its front may come out empty: L is too small. */
static int front_of(struct cn_lr3 *s, uint32_t v)
{
	struct cn_crossing c = cn_lr3_crossing(s, v);
	int rc = COLLNET_OK;

	if (s->most == 0) {
		return COLLNET_OK; /* its ends have height 1 at least */
	}
	if (c.hosts > c.switches) {
		return add_pair(s, v, 1, 1); /* a host on either side of each switch */
	}
	if (c.n == 1) { /* a run of switches, or a dead end, which cn_tree has not */
		uint32_t child = c.child[0];

		for (uint32_t k = 0; k < s->nfront[child] && rc == COLLNET_OK; k++) {
			struct cn_ring_segment d = s->pairs[s->front[child] + k];

			if (d.end[1] < s->most) {
				rc = add_pair(s, v, d.end[0] + 1, d.end[1] + 1);
			}
		}
		return rc;
	}
	rc = cn_lr3_open(s, &c);
	return rc != COLLNET_OK ? rc : find_front(s, &c);
}

/* 1: a ring of paths of at most T + 1 switches exists. */
static int feasible(struct cn_lr3 *s)
{
	const struct cn_tree *t = s->t;
	struct cn_crossing c = cn_lr3_crossing(s, s->top);
	int rc;

	s->npairs = 0;
	memset(s->nfront, 0, t->n * sizeof(*s->nfront));
	for (uint32_t v = t->n; v-- > s->top + 1;) {
		if (t->v[v].node != CN_TOPO_NONE) {
			continue;
		}
		rc = front_of(s, v);
		if (rc != COLLNET_OK) {
			return rc;
		}
		if (s->nfront[v] == 0) {
			return 0;
		}
	}
	rc = cn_lr3_open(s, &c);
	return rc != COLLNET_OK ? rc : cn_lr3_lay(s, &c, c.n);
}

/* ---- from the top to the leaves ------------------------------------------------------------- */

/*
 * Writes the ring in laid[] as the order of the switch's children: from the segment of what is
 * above, if there is one, round to it again, beginning at its end[0]. Hosts that are no segments
 * follow the first that is.
 */
static void write_order(struct cn_lr3 *s, const struct cn_crossing *c, uint32_t n)
{
	uint32_t *to = s->order + s->t->v[c->v].first_child, start = 0;
	bool back = false, more = true;

	while (n > c->n && s->laid[start] / 2 != c->n) {
		start++;
	}
	if (n > c->n) {
		back = s->laid[start] % 2 == 0; /* left by its end[1]: go the other way */
	}
	for (uint32_t i = n > c->n; i < n; i++) {
		uint32_t x = s->laid[(back ? start + n - i : start + i) % n], k = x / 2;

		if (k >= c->used) {
			*to++ = 2 * c->child[c->hosts + k - c->used] + (x % 2 != back);
			continue;
		}
		*to++ = 2 * c->child[k];
		for (uint32_t h = c->used; more && h < c->hosts; h++) {
			*to++ = 2 * c->child[h];
		}
		more = false;
	}
}

static int order_children(struct cn_lr3 *s, uint32_t v)
{
	struct cn_crossing c = cn_lr3_crossing(s, v);
	int rc = cn_lr3_open(s, &c);

	if (rc == COLLNET_OK && v == s->top) {
		rc = cn_lr3_lay(s, &c, c.n);
		write_order(s, &c, c.n);
	} else if (rc == COLLNET_OK) {
		struct cn_ring_segment d = s->pairs[s->taken[v]];

		rc = lay_between(s, &c, d.end[0] - 1, d.end[1] - 1);
		if (rc > 0) {
			write_order(s, &c, c.n + 1);
		}
	}
	if (rc == 0) {
		return cn_fail(s->err, COLLNET_EINVAL, "a bug: the ring at switch %s was lost",
			       s->t->topo->vertices[s->t->v[v].vertex].name);
	}
	return rc < 0 ? rc : COLLNET_OK;
}

/* Every vertex gets its places of the ring and its direction from its parent's order. */
static int write_ring(struct cn_lr3 *s, uint32_t *ring)
{
	const struct cn_tree *t = s->t;
	uint32_t *place = calloc(t->n, sizeof(*place));
	bool *turned = calloc(t->n, sizeof(*turned));
	int rc = place != NULL && turned != NULL ? COLLNET_OK : cn_lr3_no_memory(s);

	for (uint32_t v = s->top; v < t->n && rc == COLLNET_OK; v++) {
		uint32_t n = t->v[v].nchildren, at = place[v];
		const uint32_t *order = s->order + t->v[v].first_child;

		if (t->v[v].node != CN_TOPO_NONE) {
			ring[place[v]] = t->v[v].node;
			continue;
		}
		rc = order_children(s, v);
		for (uint32_t i = 0; i < n && rc == COLLNET_OK; i++) {
			uint32_t x = order[turned[v] ? n - 1 - i : i], child = x / 2;

			place[child] = at;
			turned[child] = (x % 2 != 0) != turned[v];
			at += t->v[child].hosts;
		}
	}
	free(place);
	free(turned);
	return rc;
}

/* The smallest L for which a ring exists; fronts are those for it. */
static int search(struct cn_lr3 *s)
{
	uint32_t low = 0, high = 1; /* not feasible, perhaps feasible */
	int rc;

	for (;;) {
		s->most = high - 1;
		rc = feasible(s);
		if (rc != 0) {
			break;
		}
		low = high;
		high += high < CN_LR3_STEP_BY_ONE ? 1 : high / 2;
	}
	while (rc > 0 && high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		s->most = mid - 1;
		rc = feasible(s);
		low = rc > 0 ? low : mid;
		high = rc > 0 ? mid : high;
		rc = rc < 0 ? rc : 1;
	}
	if (rc > 0 && s->most != high - 1) {
		s->most = high - 1;
		rc = feasible(s);
	}
	return rc;
}

int cn_ring_lr3(const struct cn_tree *t, uint32_t *ring, struct cn_err *err)
{
	struct cn_lr3 s;
	int rc;

	if (t->nhosts == 1) {
		ring[0] = 0;
		return COLLNET_OK;
	}
	rc = lr3_new(&s, t, err);
	if (rc == COLLNET_OK) {
		rc = search(&s);
	}
	if (rc > 0) {
		rc = write_ring(&s, ring);
	}
	lr3_done(&s);
	return rc;
}
