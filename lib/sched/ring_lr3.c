/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LR3: a ring without contention whose longest path is the shortest that there is. The problem is
 * that of Faraj, Patarasuk and Yuan, Algorithm 3, whose solution tries n^k orders of a switch's
 * children; this one sorts them.
 *
 * The hosts of every subtree follow one another on a ring without contention (their Lemma 2): each
 * child of a switch is an array of hosts, and only the heights of its two ends matter, where the
 * height of a host is the number of switches from it to the child, both counted (a host that is a
 * child itself: 0). Where ends of heights k and l touch at a switch, the path has k + l + 1
 * switches. So with the longest path L given, children are dominoes, and ends may touch if they
 * are at most T = L - 1 together. L is searched for from below: feasible stays feasible.
 *
 * A subtree's front is the set of the pairs of ends (p, q) that it can offer, without those that
 * another one beats in both (lower is never worse), either way round. Its array is to be closed
 * by the rest of the tree, which is one more domino: an array with ends of at most p and q exists
 * exactly when the children and the domino (T - p, T - q) can be laid in a ring. dominoes.c decides
 * that, and lays it, in n log n, exactly. Fronts are found from the leaves to the top, where the
 * children must make a ring by themselves; then the ring is laid from the top to the leaves.
 * Of hosts that are children only one more than the switches can matter: any more go next to any.
 *
 * Which of its pairs does a child with several of them take? For L <= 4 every front is one pair
 * (two pairs p < p' <= q' < q can exclude (p, q') only where some level of heights v is exhausted
 * with T - p' < v <= T - p and T - q' < v <= T - q, for which T = 3 is too small). For higher L
 * fronts of several pairs exist, but need long runs of switches without hosts. Then choices are
 * tried one after the other, children of the same front being alike, and a partial choice is given
 * up when some level lacks small ends whatever the others take: for every big height v the ends of
 * at least v need as many ends of at most T - v. So it is exact always and polynomial for any
 * degree while L is bounded (n^(pairs of heights below L) at worst); with no bound on L the choice
 * looks like interval selection, which is NP-hard, and the authors suspect as much. The work is
 * therefore bounded, by CN_LR3_WORK, and COLLNET_ELIMIT is the answer beyond it. Trees of 1,000
 * switches do not come near it.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/dominoes.h"
#include "sched/ring.h"

/* Elementary steps of trying choices, for one call: less than a second. */
#define CN_LR3_WORK ((uint64_t)200000000)
/* Up to here L grows by one; from here by half, until it is feasible, and then it is halved in. */
#define CN_LR3_STEP_BY_ONE 8u

struct lr3 {
	const struct cn_tree *t;
	struct cn_err *err;
	uint32_t top, most; /* T */
	uint64_t work;	    /* left */
	struct cn_domino *pairs; /* all fronts */
	uint32_t npairs, cap_pairs;
	uint32_t *front, *nfront; /* [t->n] where a vertex's begins in pairs[], how many it has */
	uint32_t *taken;	  /* [t->n] index in pairs[] of the pair that a vertex takes */
	uint32_t *order;	  /* [t->n] children of a switch in the ring, from first_child on:
				     2 * vertex + turned */
	/* For one switch: its dominoes are hosts, switches, and what is above it. */
	struct cn_dominoes rings;
	struct cn_domino *d;
	uint32_t cap_d, *laid;
	uint64_t *many; /* children with several pairs: like ones together */
	uint32_t nmany, *pick;
	uint32_t cap_values, *values, *levels, nlevels; /* heights of ends */
	int32_t *sum, *rest; /* by level: small ends that are left, and what the undecided can add */
};

/* ---- storage ------------------------------------------------------------------------------ */

static int no_memory(const struct lr3 *s)
{
	return cn_fail(s->err, COLLNET_ENOMEM, "no memory for a ring of %u hosts", s->t->nhosts);
}

static int add_pair(struct lr3 *s, uint32_t v, uint32_t p, uint32_t q)
{
	if (s->npairs == s->cap_pairs) {
		uint32_t cap = s->cap_pairs * 2;
		struct cn_domino *pairs = cap < s->cap_pairs ? NULL :
						realloc(s->pairs, (size_t)cap * sizeof(*pairs));

		if (pairs == NULL) {
			return no_memory(s);
		}
		s->pairs = pairs;
		s->cap_pairs = cap;
	}
	if (s->nfront[v]++ == 0) {
		s->front[v] = s->npairs;
	}
	s->pairs[s->npairs++] = (struct cn_domino){{p, q}};
	return COLLNET_OK;
}

/* Room for a switch of n dominoes whose children have `values` ends to choose from. */
static int reserve(struct lr3 *s, uint32_t n, uint32_t values)
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
			return no_memory(s);
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
			return no_memory(s);
		}
		s->cap_values = cap;
	}
	return cn_dominoes_reserve(&s->rings, s->cap_d, s->err);
}

static int lr3_new(struct lr3 *s, const struct cn_tree *t, struct cn_err *err)
{
	*s = (struct lr3){.t = t, .err = err, .top = cn_ring_top(t), .work = CN_LR3_WORK};
	s->cap_pairs = t->n;
	s->pairs = calloc(t->n, sizeof(*s->pairs));
	s->front = calloc(t->n, sizeof(*s->front));
	s->nfront = calloc(t->n, sizeof(*s->nfront));
	s->taken = calloc(t->n, sizeof(*s->taken));
	s->order = calloc(t->n, sizeof(*s->order));
	if (s->pairs == NULL || s->front == NULL || s->nfront == NULL || s->taken == NULL ||
	    s->order == NULL) {
		return no_memory(s);
	}
	return COLLNET_OK;
}

static void lr3_done(struct lr3 *s)
{
	cn_dominoes_done(&s->rings);
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

/* ---- one switch --------------------------------------------------------------------------- */

struct crossing {
	uint32_t v;
	const uint32_t *child; /* of v: hosts, then switches */
	uint32_t hosts, switches;
	uint32_t used; /* hosts that are dominoes */
	uint32_t n;    /* dominoes, without the one above */
};

static struct crossing crossing_of(const struct lr3 *s, uint32_t v)
{
	struct crossing c = {.v = v, .child = s->t->children + s->t->v[v].first_child};

	c.hosts = cn_ring_hosts_of(s->t, v);
	c.switches = s->t->v[v].nchildren - c.hosts;
	c.used = c.hosts <= c.switches ? c.hosts : c.switches + 1;
	c.n = c.used + c.switches;
	return c;
}

static bool same_front(const struct lr3 *s, uint32_t a, uint32_t b)
{
	return s->nfront[a] == s->nfront[b] &&
	       memcmp(&s->pairs[s->front[a]], &s->pairs[s->front[b]],
		      s->nfront[a] * sizeof(*s->pairs)) == 0;
}

static int ascending32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int ascending64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorted, each once. */
static uint32_t distinct(uint32_t *x, uint32_t n)
{
	uint32_t kept = 0;

	qsort(x, n, sizeof(*x), ascending32);
	for (uint32_t i = 0; i < n; i++) {
		if (kept == 0 || x[kept - 1] != x[i]) {
			x[kept++] = x[i];
		}
	}
	return kept;
}

/*
 * Dominoes of the switch's children, first pairs taken; those that have a choice in many[], by a
 * hash of their fronts, so that like ones are neighbours.
 */
static int open_crossing(struct lr3 *s, const struct crossing *c)
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
	qsort(s->many, s->nmany, sizeof(*s->many), ascending64);
	return COLLNET_OK;
}

/* What a domino does to level i: its ends of at most T - v, less those of at least v. */
static int32_t effect(const struct lr3 *s, const struct cn_domino *d, uint32_t i)
{
	uint32_t v = s->levels[i], w = s->most - v;

	return (d->end[0] <= w) + (d->end[1] <= w) - (d->end[0] >= v) - (d->end[1] >= v);
}

/* The most that child i of the choosing ones can do to a level, by any of its pairs. */
static int32_t best_effect(const struct lr3 *s, uint32_t v, uint32_t level)
{
	int32_t best = -2;

	for (uint32_t k = s->front[v]; k < s->front[v] + s->nfront[v]; k++) {
		int32_t e = effect(s, &s->pairs[k], level);

		best = e > best ? e : best;
	}
	return best;
}

/* Levels are the big heights that can occur (others say nothing new), sums those of the decided. */
static void take_stock(struct lr3 *s, const struct crossing *c, uint32_t n)
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
	k = distinct(s->levels, k);
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

static bool hopeless(const struct lr3 *s)
{
	for (uint32_t i = 0; i < s->nlevels; i++) {
		if (s->sum[i] + s->rest[i] < 0) {
			return true;
		}
	}
	return false;
}

/* Child j of the choosing ones becomes decided (sign 1: by the domino in d[]) or undecided (-1). */
static void decide(struct lr3 *s, const struct crossing *c, uint32_t j, int32_t sign)
{
	uint32_t m = (uint32_t)s->many[j], v = c->child[c->hosts + m];

	for (uint32_t i = 0; i < s->nlevels; i++) {
		s->sum[i] += sign * effect(s, &s->d[c->used + m], i);
		s->rest[i] -= sign * best_effect(s, v, i);
	}
}

static int spend(struct lr3 *s, const struct crossing *c, uint64_t work)
{
	if (work > s->work) {
		return cn_fail(s->err, COLLNET_ELIMIT, "the shortest ring takes too long to find (at "
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
static int choose(struct lr3 *s, const struct crossing *c, uint32_t n)
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
			if (cn_dominoes_ring(&s->rings, s->d, n, s->most, s->laid)) {
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

/* 1: the n dominoes of d[] can be laid in a ring (laid[]), by some choice (taken[]); 0: not. */
static int lay(struct lr3 *s, const struct crossing *c, uint32_t n)
{
	if (s->nmany > 0) {
		return choose(s, c, n);
	}
	return cn_dominoes_ring(&s->rings, s->d, n, s->most, s->laid);
}

/* ---- from the leaves to the top ------------------------------------------------------------- */

static int lay_between(struct lr3 *s, const struct crossing *c, uint32_t p, uint32_t q)
{
	s->d[c->n] = (struct cn_domino){{s->most - p, s->most - q}};
	return lay(s, c, c->n + 1);
}

/* The heights that an end of the switch's array can have, such that its parent can use it. */
static uint32_t candidates(struct lr3 *s, const struct crossing *c)
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
	n = distinct(s->values, n);
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
static int find_front(struct lr3 *s, const struct crossing *c)
{
	uint32_t n = candidates(s, c), p = 0, q_end = n;
	const uint32_t *x = s->values;

	while (p < q_end) {
		uint32_t low = p, high = q_end; /* lowest p in [low, high], high: none */
		int rc;

		while (low < high) {
			uint32_t mid = low == p ? p : low + (high - low) / 2; /* it is often p */

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
		high = q_end - 1; /* it will do */
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
static int front_of(struct lr3 *s, uint32_t v)
{
	struct crossing c = crossing_of(s, v);
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
			struct cn_domino d = s->pairs[s->front[child] + k];

			if (d.end[1] < s->most) {
				rc = add_pair(s, v, d.end[0] + 1, d.end[1] + 1);
			}
		}
		return rc;
	}
	rc = open_crossing(s, &c);
	return rc != COLLNET_OK ? rc : find_front(s, &c);
}

/* 1: a ring of paths of at most T + 1 switches exists. */
static int feasible(struct lr3 *s)
{
	const struct cn_tree *t = s->t;
	struct crossing c = crossing_of(s, s->top);
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
	rc = open_crossing(s, &c);
	return rc != COLLNET_OK ? rc : lay(s, &c, c.n);
}

/* ---- from the top to the leaves ------------------------------------------------------------- */

/*
 * Writes the ring in laid[] as the order of the switch's children: from the domino of what is
 * above, if there is one, round to it again, beginning at its end[0]. Hosts that are no dominoes
 * follow the first that is.
 */
static void write_order(struct lr3 *s, const struct crossing *c, uint32_t n)
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

static int order_children(struct lr3 *s, uint32_t v)
{
	struct crossing c = crossing_of(s, v);
	int rc = open_crossing(s, &c);

	if (rc == COLLNET_OK && v == s->top) {
		rc = lay(s, &c, c.n);
		write_order(s, &c, c.n);
	} else if (rc == COLLNET_OK) {
		struct cn_domino d = s->pairs[s->taken[v]];

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
static int write_ring(struct lr3 *s, uint32_t *ring)
{
	const struct cn_tree *t = s->t;
	uint32_t *place = calloc(t->n, sizeof(*place));
	bool *turned = calloc(t->n, sizeof(*turned));
	int rc = place != NULL && turned != NULL ? COLLNET_OK : no_memory(s);

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
static int search(struct lr3 *s)
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
	struct lr3 s;
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
