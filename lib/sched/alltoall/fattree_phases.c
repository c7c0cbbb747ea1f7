/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Total exchange: how long each switch's share takes, how it is filled, and a node's phases.
 * See fattree.h for the algorithm.
 *
 * Vertices are in preorder, so loops over them upwards and downwards replace recursion.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/alltoall/fattree.h"

/* A child of a switch as the ring sees it. */
struct part {
	uint32_t child; /* which child, in the tree's order */
	uint32_t hosts;
};

static int compare_parts(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;

	if (a->hosts != b->hosts) {
		return a->hosts > b->hosts ? -1 : 1;
	}
	return a->child < b->child ? -1 : a->child > b->child;
}

static uint32_t child_at(const struct cn_tree *t, uint32_t v, uint32_t i)
{
	return t->children[t->v[v].first_child + i];
}

/* ---- how long ----------------------------------------------------------------------------- */

/* Most hosts a channel of the links at or below a vertex, as an exact fraction. */
struct ratio {
	uint32_t hosts, channels;
};

static struct ratio larger(struct ratio a, struct ratio b)
{
	return (uint64_t)a.hosts * b.channels >= (uint64_t)b.hosts * a.channels ? a : b;
}

/* Phases that a ring of the children needs. */
static uint64_t ring_phases(const struct cn_tree *t, uint32_t v)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
		uint64_t hosts = t->v[child_at(t, v, i)].hosts;

		most = hosts > most ? hosts : most;
	}
	return most * (t->v[v].hosts - most);
}

/* The lower bound of switch v's share; `below` has the ratios of its children. */
static uint64_t share_bound(const struct cn_tree *t, uint32_t v, const struct ratio *below)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
		uint32_t c = child_at(t, v, i);
		uint64_t load = (uint64_t)(t->v[v].hosts - t->v[c].hosts) * below[c].hosts;
		uint64_t d = (load + below[c].channels - 1) / below[c].channels;

		most = d > most ? d : most;
	}
	return most;
}

/* The hosts of v's children by their places in seq. */
static int keep_places(struct cn_fattree *x, uint32_t v, const uint32_t *seq, struct cn_err *err)
{
	const struct cn_tree *t = x->t;
	uint32_t *place = malloc(t->v[v].hosts * sizeof(*place));

	if (place == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", t->nhosts);
	}
	for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
		uint32_t c = child_at(t, v, i);

		for (uint32_t k = 0; k < t->v[c].hosts; k++) {
			place[seq[x->base[c] + k] - x->base[v]] = k;
		}
	}
	x->share[v].place = place;
	return COLLNET_OK;
}

static int choose(struct cn_fattree *x, uint32_t v, const struct ratio *below, const uint32_t *seq,
		  uint32_t *count, struct cn_err *err)
{
	struct cn_fattree_share *h = &x->share[v];
	uint64_t ring = ring_phases(x->t, v), bound = share_bound(x->t, v, below);

	if (ring > UINT32_MAX) {
		return cn_fail(err, COLLNET_ELIMIT, "a total exchange of %u nodes is too long",
			       x->t->nhosts);
	}
	h->phases = (uint32_t)bound;
	if (bound == 0) {
		h->method = CN_FATTREE_NOTHING;
	} else if (bound == ring) {
		h->method = CN_FATTREE_RING;
	} else if (cn_fattree_diagonal(x, v, seq, count)) {
		return keep_places(x, v, seq, err);
	} else if (bound * x->t->v[v].size <= CN_FATTREE_ENTRIES &&
		   (uint64_t)x->t->v[v].hosts * x->t->v[v].hosts <= CN_FATTREE_ENTRIES) {
		h->method = CN_FATTREE_COLOUR;
	} else {
		h->method = CN_FATTREE_RING;
		h->phases = (uint32_t)ring;
	}
	return COLLNET_OK;
}

/* ---- numbering: consecutive hosts far apart ------------------------------------------------ */

struct spread {
	uint32_t index, hosts, child, leaf;
};

/* At (2 index + 1) / (2 hosts) of the way; the same place: by child. Exact. */
static int compare_spread(const void *pa, const void *pb)
{
	const struct spread *a = pa, *b = pb;
	uint64_t p = (2 * (uint64_t)a->index + 1) * b->hosts;
	uint64_t q = (2 * (uint64_t)b->index + 1) * a->hosts;

	if (p != q) {
		return p < q ? -1 : 1;
	}
	return a->child < b->child ? -1 : a->child > b->child;
}

/*
 * Merges the numberings of v's children, which follow one another in seq, into v's. With equal
 * children everywhere it is the digit reversal of the preorder: c consecutive hosts meet each
 * subtree at most ceil(c / number of such subtrees) times.
 */
static void merge(const struct cn_fattree *x, uint32_t v, uint32_t *seq, struct spread *room)
{
	const struct cn_tree *t = x->t;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
		uint32_t c = child_at(t, v, i);

		for (uint32_t k = 0; k < t->v[c].hosts; k++) {
			room[n++] = (struct spread){ k, t->v[c].hosts, i, seq[x->base[c] + k] };
		}
	}
	qsort(room, n, sizeof(*room), compare_spread);
	for (uint32_t k = 0; k < n; k++) {
		seq[x->base[v] + k] = room[k].leaf;
	}
}

/* ---- making -------------------------------------------------------------------------------- */

/* True if a link between switches has several channels; without any, windows are never needed. */
static bool has_bundles(const struct cn_tree *t)
{
	for (uint32_t v = 1; v < t->n; v++) {
		if (cn_fattree_cap(t, v) > 1) {
			return true;
		}
	}
	return false;
}

/* Shares from the leaves upwards, so that the children's numberings are there. */
static int make_shares(struct cn_fattree *x, struct cn_err *err)
{
	const struct cn_tree *t = x->t;
	struct ratio *below = calloc(t->n, sizeof(*below));
	struct spread *room = calloc(t->nhosts, sizeof(*room));
	uint32_t *seq = calloc(t->nhosts, sizeof(*seq)), *count = calloc(t->n, sizeof(*count));
	bool bundles = has_bundles(t);
	int rc = COLLNET_OK;

	if (below == NULL || room == NULL || seq == NULL || count == NULL) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", t->nhosts);
	}
	for (uint32_t v = t->n; rc == COLLNET_OK && v-- > 0;) {
		struct ratio own = { t->v[v].hosts, v == 0 ? 1 : cn_fattree_cap(t, v) };

		if (t->v[v].nchildren == 0) {
			seq[x->base[v]] = x->base[v];
			below[v] = own;
			continue;
		}
		rc = choose(x, v, below, seq, count, err);
		if (bundles && t->v[v].nchildren > 1) {
			merge(x, v, seq, room);
		}
		for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
			own = larger(own, below[child_at(t, v, i)]);
		}
		below[v] = own;
	}
	free(below);
	free(room);
	free(seq);
	free(count);
	return rc;
}

/* A subtree begins when its switch's parent is done. */
static int make_starts(struct cn_fattree *x, struct cn_err *err)
{
	for (uint32_t v = 0; v < x->t->n; v++) {
		struct cn_fattree_share *h = &x->share[v];
		const struct cn_fattree_share *up = v == 0 ? NULL : &x->share[x->t->v[v].parent];
		uint64_t start = up == NULL ? 0 : (uint64_t)up->start + up->phases;

		if (start + h->phases >= CN_FATTREE_NONE) {
			return cn_fail(err, COLLNET_ELIMIT,
				       "a total exchange of %u nodes is too long", x->t->nhosts);
		}
		h->start = (uint32_t)start;
		if (h->start + h->phases > x->phases) {
			x->phases = h->start + h->phases;
		}
	}
	return COLLNET_OK;
}

int cn_fattree_new(const struct cn_tree *t, struct cn_fattree **out, struct cn_err *err)
{
	struct cn_fattree *x = calloc(1, sizeof(*x));
	int rc = COLLNET_OK;

	if (x != NULL) {
		x->t = t;
		x->base = calloc(t->n, sizeof(*x->base));
		x->leaf = calloc(t->nhosts, sizeof(*x->leaf));
		x->share = calloc(t->n, sizeof(*x->share));
	}
	if (x == NULL || x->base == NULL || x->leaf == NULL || x->share == NULL) {
		cn_fattree_free(x);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", t->nhosts);
	}
	for (uint32_t v = 0, k = 0; v < t->n; v++) {
		x->base[v] = k;
		if (t->v[v].node != CN_TOPO_NONE) {
			x->leaf[k++] = v;
		}
	}
	rc = make_shares(x, err);
	if (rc == COLLNET_OK) {
		rc = make_starts(x, err);
	}
	if (rc != COLLNET_OK) {
		cn_fattree_free(x);
		return rc;
	}
	*out = x;
	return COLLNET_OK;
}

void cn_fattree_free(struct cn_fattree *x)
{
	if (x == NULL) {
		return;
	}
	for (uint32_t v = 0; x->share != NULL && v < x->t->n; v++) {
		free(x->share[v].place);
		free(x->share[v].colour);
	}
	free(x->share);
	free(x->leaf);
	free(x->base);
	cn_tree_free(x->own);
	free(x);
}

/* ---- a node's phases ----------------------------------------------------------------------- */

/* A switch's children, with what the ring needs of them. */
struct ring {
	struct part *parts; /* by decreasing size */
	uint32_t *place;    /* [children] of a child in parts */
	uint32_t *before;   /* [children + 1] hosts of the parts before */
	uint32_t k;
};

static int ring_new(const struct cn_tree *t, uint32_t v, struct ring *r, struct cn_err *err)
{
	uint32_t k = t->v[v].nchildren;

	r->k = k;
	r->parts = calloc(k, sizeof(*r->parts));
	r->place = calloc(2 * (size_t)k + 1, sizeof(*r->place));
	if (r->parts == NULL || r->place == NULL) {
		free(r->parts);
		free(r->place);
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", t->nhosts);
	}
	r->before = r->place + k;
	for (uint32_t i = 0; i < k; i++) {
		r->parts[i] = (struct part){ i, t->v[child_at(t, v, i)].hosts };
	}
	qsort(r->parts, k, sizeof(*r->parts), compare_parts);
	for (uint32_t i = 0; i < k; i++) {
		r->place[r->parts[i].child] = i;
		r->before[i + 1] = r->before[i] + r->parts[i].hosts;
	}
	return COLLNET_OK;
}

/* Faraj and Yuan, extended ring scheduling: when part i's messages to part j begin. */
static uint32_t ring_start(const struct ring *r, uint32_t phases, uint32_t i, uint32_t j)
{
	if (i < j) {
		return r->parts[i].hosts * (r->before[j] - r->before[i + 1]);
	}
	return phases - r->parts[j].hosts * (r->before[i + 1] - r->before[j + 1]);
}

/* Host s (from 0, in preorder) of child i to host d of child j. */
static uint32_t phase_of(const struct cn_fattree *x, uint32_t v, const struct ring *r, uint32_t i,
			 uint32_t s, uint32_t j, uint32_t d)
{
	const struct cn_fattree_share *h = &x->share[v];
	uint32_t ci = child_at(x->t, v, i), cj = child_at(x->t, v, j);
	uint32_t a = x->t->v[ci].hosts, b = x->t->v[cj].hosts, n = x->t->v[v].hosts, k = r->k;
	uint32_t si = x->base[ci] - x->base[v] + s, dj = x->base[cj] - x->base[v] + d;
	uint64_t round; /* phases of one; child i's with child j is the (j - i) mod k-th, from 1 */

	switch (h->method) {
	case CN_FATTREE_RING:
		return ring_start(r, h->phases, r->place[i], r->place[j]) + s * b + d;
	case CN_FATTREE_XOR:
		return s ^ d;
	case CN_FATTREE_DIAGONAL:
		round = ((uint64_t)a * b + h->window - 1) / h->window;
		return ((j + k - i) % k - 1) * (uint32_t)round +
		       cn_fattree_window_phase(h, a, b, h->place[si], h->place[dj]);
	case CN_FATTREE_COLOUR:
		return h->colour[(size_t)si * n + dj];
	case CN_FATTREE_NOTHING:
		break;
	}
	return 0;
}

/* The messages between a node and those that it meets at switch v, coming from child `mine`. */
static int meet_at(struct cn_fattree *x, uint32_t v, uint32_t node, uint32_t mine, uint32_t *to,
		   uint32_t *from, struct cn_err *err)
{
	const struct cn_tree *t = x->t;
	struct cn_fattree_share *h = &x->share[v];
	uint32_t me = x->base[t->host[node]], i = 0;
	struct ring r;
	int rc = COLLNET_OK;

	if (h->method == CN_FATTREE_COLOUR && h->colour == NULL) {
		rc = cn_fattree_colour(x, v, err);
	}
	if (rc == COLLNET_OK) {
		rc = ring_new(t, v, &r, err);
	}
	if (rc != COLLNET_OK) {
		return rc;
	}
	while (child_at(t, v, i) != mine) {
		i++;
	}
	for (uint32_t j = 0; j < r.k; j++) {
		uint32_t c = child_at(t, v, j), s = me - x->base[mine];

		for (uint32_t d = 0; j != i && d < t->v[c].hosts; d++) {
			uint32_t other = t->v[x->leaf[x->base[c] + d]].node;

			to[other] = h->start + phase_of(x, v, &r, i, s, j, d);
			from[other] = h->start + phase_of(x, v, &r, j, d, i, s);
		}
	}
	free(r.parts);
	free(r.place);
	return COLLNET_OK;
}

int cn_fattree_node(struct cn_fattree *x, uint32_t node, uint32_t *to, uint32_t *from,
		    struct cn_err *err)
{
	const struct cn_tree *t = x->t;
	uint32_t below = t->host[node];
	int rc = COLLNET_OK;

	to[node] = from[node] = CN_FATTREE_NONE;
	while (rc == COLLNET_OK && below != 0) {
		uint32_t v = t->v[below].parent;

		if (x->share[v].method != CN_FATTREE_NOTHING) {
			rc = meet_at(x, v, node, below, to, from, err);
		}
		below = v;
	}
	return rc;
}
