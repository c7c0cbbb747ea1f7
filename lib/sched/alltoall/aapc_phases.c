/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The phases of all-to-all on a tree: the root, extended ring scheduling, the broadcast and rotate
 * patterns, and the six assignment steps, each message's phase in closed form (see aapc.h).
 *
 * Of the phases of t_0 every one has a sender and a receiver: t_0 -> t_1, t_0 -> t_2 .. follow one
 * another without a gap, and begin at multiples of |M_0|, and so do t_(k-1) -> t_0, t_(k-2) -> t_0
 * and so on. So its phases fall into rounds of |M_0|, in each of which every host of t_0 sends once
 * and receives once: in round q t_0 sends to the subtree of place |M_0| + q, and receives from that
 * of place n - 1 - q.
 */
#include <stdlib.h>

#include "sched/alltoall/aapc.h"
#include "sched/residue.h"

#define NONE CN_TOPO_NONE

/* ---- the root (4.1) ----------------------------------------------------------------------- */

/* Branches of a vertex that have hosts, and the most hosts in one of them. */
static uint32_t branches_of(const struct cn_tree *tree, uint32_t x, uint32_t *most)
{
	const struct cn_tree_vertex *v = &tree->v[x];
	uint32_t above = tree->nhosts - v->hosts;

	*most = above;
	for (uint32_t c = 0; c < v->nchildren; c++) {
		uint32_t hosts = tree->v[tree->children[v->first_child + c]].hosts;

		*most = hosts > *most ? hosts : *most;
	}
	return v->nchildren + (above > 0);
}

/* Three branches at least, then as few as possible, then the first of the topology. */
static bool better_root(uint32_t branches, uint32_t vertex, uint32_t best_branches, uint32_t best)
{
	if (best == NONE || (branches >= 3) != (best_branches >= 3)) {
		return best == NONE || branches >= 3;
	}
	return branches != best_branches ? branches < best_branches : vertex < best;
}

uint32_t cn_aapc_root(const struct cn_tree *tree)
{
	uint32_t best = NONE, best_branches = 0;

	for (uint32_t x = 0; x < tree->n; x++) {
		uint32_t most, branches;

		if (tree->v[x].node != NONE) {
			continue;
		}
		branches = branches_of(tree, x, &most);
		if (branches >= 2 && most <= tree->nhosts - most &&
		    better_root(branches, tree->v[x].vertex, best_branches, best)) {
			best = tree->v[x].vertex;
			best_branches = branches;
		}
	}
	return best;
}

/* ---- making ------------------------------------------------------------------------------- */

struct by_size {
	uint32_t hosts, vertex;
};

static int compare_sizes(const void *x, const void *y)
{
	const struct by_size *a = x, *b = y;

	if (a->hosts != b->hosts) {
		return a->hosts > b->hosts ? -1 : 1;
	}
	return a->vertex < b->vertex ? -1 : a->vertex > b->vertex;
}

/* Subtrees by size, their hosts' places, and the places below every vertex. */
static int number(struct cn_aapc *a, struct cn_err *err)
{
	const struct cn_tree *t = a->tree;
	struct by_size *sorted = calloc(a->k + 1, sizeof(*sorted));
	uint32_t place = 0;

	if (sorted == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", a->n);
	}
	for (uint32_t i = 0; i < a->k; i++) {
		uint32_t x = t->children[t->v[0].first_child + i];

		sorted[i] = (struct by_size){ t->v[x].hosts, x };
	}
	qsort(sorted, a->k, sizeof(*sorted), compare_sizes);
	for (uint32_t i = 0; i < a->k; i++) {
		uint32_t top = sorted[i].vertex;

		a->top[i] = top;
		a->first[i] = place;
		for (uint32_t x = top; x < top + t->v[top].size; x++) {
			a->lowest[x] = place;
			if (t->v[x].node != NONE) {
				a->node[place] = t->v[x].node;
				a->place[t->v[x].node] = place;
				a->subtree[place] = i;
				place++;
			}
		}
	}
	a->first[a->k] = place;
	free(sorted);
	return COLLNET_OK;
}

static int count_phases(struct cn_aapc *a, struct cn_err *err)
{
	uint32_t m0 = cn_aapc_size(a, 0);
	uint64_t phases = (uint64_t)m0 * (a->n - m0);

	if (phases >= UINT32_MAX) {
		return cn_fail(err, COLLNET_ELIMIT,
			       "an all-to-all of %u nodes would take %llu phases, more than %u",
			       a->n, (unsigned long long)phases, UINT32_MAX - 1);
	}
	a->phases = (uint32_t)phases;
	for (uint32_t j = 1; j < a->k; j++) {
		struct cn_aapc_rotation *r = &a->rotation[j];
		uint32_t mj = cn_aapc_size(a, j);

		r->gcd = cn_gcd(m0, mj);
		r->lcm = m0 / r->gcd * mj; /* at most the phases */
		r->inverse = cn_inverse(m0 / r->gcd, mj / r->gcd);
	}
	return COLLNET_OK;
}

static int fill(struct cn_aapc *a, const struct cn_tree *tree, struct cn_err *err)
{
	uint32_t *hosts = calloc(a->n, sizeof(*hosts));
	int rc;

	if (hosts == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", a->n);
	}
	for (uint32_t i = 0; i < a->n; i++) {
		hosts[i] = tree->v[tree->host[i]].vertex;
	}
	rc = cn_tree_make(tree->topo, hosts, a->n, cn_aapc_root(tree), &a->tree, err);
	free(hosts);
	if (rc) {
		return rc;
	}
	a->k = a->n > 1 ? a->tree->v[0].nchildren : 0;
	a->first = calloc(a->k + 1, sizeof(*a->first));
	a->top = calloc(a->k + 1, sizeof(*a->top));
	a->rotation = calloc(a->k + 1, sizeof(*a->rotation));
	a->node = calloc(a->n, sizeof(*a->node));
	a->place = calloc(a->n, sizeof(*a->place));
	a->subtree = calloc(a->n, sizeof(*a->subtree));
	a->lowest = calloc(a->tree->n, sizeof(*a->lowest));
	if (a->first == NULL || a->top == NULL || a->rotation == NULL || a->node == NULL ||
	    a->place == NULL || a->subtree == NULL || a->lowest == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", a->n);
	}
	if (a->k == 0) {
		return COLLNET_OK; /* one host: no messages */
	}
	rc = number(a, err);
	return rc ? rc : count_phases(a, err);
}

int cn_aapc_new(const struct cn_tree *tree, struct cn_aapc **out, struct cn_err *err)
{
	struct cn_aapc *a = calloc(1, sizeof(*a));
	int rc;

	if (a == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", tree->nhosts);
	}
	a->n = tree->nhosts;
	rc = fill(a, tree, err);
	if (rc) {
		cn_aapc_free(a);
		return rc;
	}
	*out = a;
	return COLLNET_OK;
}

void cn_aapc_free(struct cn_aapc *a)
{
	if (a != NULL) {
		cn_tree_free(a->tree);
		free(a->first);
		free(a->top);
		free(a->rotation);
		free(a->node);
		free(a->place);
		free(a->subtree);
		free(a->lowest);
		free(a);
	}
}

/* ---- groups (4.2) ------------------------------------------------------------------------- */

/* No product is more than the phases: |M_0| is the largest, all others sum to n - |M_0|. */
uint32_t cn_aapc_start(const struct cn_aapc *a, uint32_t i, uint32_t j)
{
	if (i < j) {
		return cn_aapc_size(a, i) * (a->first[j] - a->first[i + 1]);
	}
	return a->phases - cn_aapc_size(a, j) * (a->first[i + 1] - a->first[j + 1]);
}

uint32_t cn_aapc_group_out(const struct cn_aapc *a, uint32_t i, uint32_t phase)
{
	uint32_t low = 0, high = a->k - 1;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (cn_aapc_start(a, i, cn_aapc_nth_target(a, i, mid)) <= phase) {
			low = mid;
		} else {
			high = mid;
		}
	}
	return low;
}

uint32_t cn_aapc_group_in(const struct cn_aapc *a, uint32_t j, uint32_t phase)
{
	uint32_t low = 0, high = a->k - 1;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (cn_aapc_start(a, cn_aapc_nth_source(a, j, mid), j) <= phase) {
			low = mid;
		} else {
			high = mid;
		}
	}
	return low;
}

static bool in_group(const struct cn_aapc *a, uint32_t i, uint32_t j, uint32_t phase)
{
	return phase - cn_aapc_start(a, i, j) < cn_aapc_size(a, i) * cn_aapc_size(a, j);
}

uint32_t cn_aapc_target(const struct cn_aapc *a, uint32_t i, uint32_t phase)
{
	uint32_t j;

	if (i == 0) {
		return a->subtree[a->first[1] + phase / a->first[1]];
	}
	j = cn_aapc_nth_target(a, i, cn_aapc_group_out(a, i, phase));

	return in_group(a, i, j, phase) ? j : NONE;
}

uint32_t cn_aapc_source(const struct cn_aapc *a, uint32_t j, uint32_t phase)
{
	uint32_t i;

	if (j == 0) {
		return a->subtree[a->n - 1 - phase / a->first[1]];
	}
	i = cn_aapc_nth_source(a, j, cn_aapc_group_in(a, j, phase));

	return in_group(a, i, j, phase) ? i : NONE;
}

/* ---- patterns and steps (4.3) ------------------------------------------------------------- */

/*
 * The base sequence 0 .. mi - 1 again and again; every lcm steps it is rotated once more. The lcm
 * is a multiple of mi, so a rotation begins where the base sequence does.
 */
uint32_t cn_aapc_rotate(uint32_t mi, uint32_t lcm, uint32_t r)
{
	return (r % mi + r / lcm % mi) % mi;
}

uint32_t cn_aapc_mapped(uint32_t m0, uint32_t round, uint32_t sender)
{
	return (sender + round % m0 + 1) % m0;
}

uint32_t cn_aapc_turn(const struct cn_aapc *a, uint32_t round)
{
	uint32_t m0 = a->first[1], j = a->subtree[m0 + round];

	return (round * m0 - cn_aapc_start(a, 0, j)) / a->rotation[j].lcm;
}

/* The sender of t_0 at a phase, by step 1.b. */
static uint32_t sender0(const struct cn_aapc *a, uint32_t phase)
{
	uint32_t m0 = a->first[1], j = a->subtree[m0 + phase / m0];

	return cn_aapc_rotate(m0, a->rotation[j].lcm, phase - cn_aapc_start(a, 0, j));
}

/* The phase in a round of t_0 at which x sends. */
static uint32_t phase_of_sender0(const struct cn_aapc *a, uint32_t round, uint32_t x)
{
	uint32_t m0 = a->first[1];

	return round * m0 + (x + m0 - cn_aapc_turn(a, round)) % m0;
}

struct cn_aapc_message cn_aapc_global(const struct cn_aapc *a, uint32_t i, uint32_t j,
				      uint32_t phase)
{
	uint32_t r = phase - cn_aapc_start(a, i, j), m0 = a->first[1], x, y;

	if (i == 0) { /* step 1 */
		x = cn_aapc_rotate(m0, a->rotation[j].lcm, r);
		y = cn_aapc_aligned(a, cn_aapc_size(a, j), phase);
	} else if (j == 0) { /* step 2 */
		x = r / m0;
		y = cn_aapc_mapped(m0, phase / m0, sender0(a, phase));
	} else { /* steps 4 and 6 */
		x = r / cn_aapc_size(a, j);
		y = r % cn_aapc_size(a, j);
	}
	return (struct cn_aapc_message){ phase, a->first[i] + x, a->first[j] + y };
}

bool cn_aapc_local(const struct cn_aapc *a, uint32_t i, uint32_t phase, struct cn_aapc_message *out)
{
	uint32_t m = cn_aapc_size(a, i), before, r, from, to;

	if (i == 0) { /* step 3 */
		if (phase / m >= m - 1) {
			return false;
		}
		to = sender0(a, phase);
		from = cn_aapc_mapped(m, phase / m, to);
	} else { /* step 5 */
		before = cn_aapc_size(a, i - 1);
		if (phase < a->phases - m * before) {
			return false;
		}
		r = phase - (a->phases - m * before);
		to = r / before;
		from = cn_aapc_aligned(a, m, phase);
		if (r % before >= m || from == to) {
			return false;
		}
	}
	*out = (struct cn_aapc_message){ phase, a->first[i] + from, a->first[i] + to };
	return true;
}

/*
 * Step 1 the other way round. The step is r = rho lcm + w with w < lcm; the sender says
 * w = x - rho (mod m0), the receiver w + c = y (mod mj). Both hold for one rho below the gcd, and
 * then for one w (the Chinese remainder theorem).
 */
static uint32_t rotate_step(const struct cn_aapc *a, uint32_t j, uint32_t x, uint32_t y)
{
	const struct cn_aapc_rotation *t = &a->rotation[j];
	uint32_t m0 = a->first[1], mj = cn_aapc_size(a, j);
	uint32_t c = cn_aapc_aligned(a, mj, cn_aapc_start(a, 0, j));
	uint32_t want = (y + mj - c) % mj;
	uint32_t rho = (x % t->gcd + t->gcd - want % t->gcd) % t->gcd;
	uint32_t w = (x + m0 - rho) % m0;
	uint64_t times = (uint64_t)((want + mj - w % mj) % mj / t->gcd) * t->inverse;

	return rho * t->lcm + w + (uint32_t)(times % (mj / t->gcd)) * m0;
}

static uint32_t local_phase(const struct cn_aapc *a, uint32_t i, uint32_t x, uint32_t y)
{
	uint32_t m = cn_aapc_size(a, i), before, base;

	if (i == 0) {
		return phase_of_sender0(a, (x + m - y - 1) % m, y);
	}
	before = cn_aapc_size(a, i - 1);
	base = a->phases - (m - y) * before;
	return base + (x + m - cn_aapc_aligned(a, m, base)) % m;
}

struct cn_aapc_message cn_aapc_between(const struct cn_aapc *a, uint32_t from, uint32_t to)
{
	uint32_t i = a->subtree[from], j = a->subtree[to], m0 = a->first[1];
	uint32_t x = from - a->first[i], y = to - a->first[j], phase;

	if (i == j) {
		phase = local_phase(a, i, x, y);
	} else if (i == 0) {
		phase = cn_aapc_start(a, 0, j) + rotate_step(a, j, x, y);
	} else if (j == 0) {
		uint32_t round = cn_aapc_start(a, i, 0) / m0 + x;

		/* Table 3 backwards: who sends in t_0 while y receives. */
		phase = phase_of_sender0(a, round, (y + 2 * m0 - 1 - round % m0) % m0);
	} else {
		phase = cn_aapc_start(a, i, j) + x * cn_aapc_size(a, j) + y;
	}
	return (struct cn_aapc_message){ phase, from, to };
}
