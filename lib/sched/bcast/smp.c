/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broadcast of Sun, Bader, Lin and Ling on clusters of SMPs, in three levels:
 *   0  in a node: copies (bcast.c);
 *   1  among the hosts of a switch, from its leader: binomially, or pipelined along a chain or a
 *      binary tree, whichever the model predicts to be faster;
 *   2  among the working switches: the tree of shortest paths from the source's switch, served
 *      in down-to-up order; up-to-down then moves leaders to other hosts that have the message,
 *      behind any switch, if that ends the broadcast earlier.
 * The leader of a switch is its lowest node, of the source's switch the root.
 *
 * The paper broadcasts one message; here it may also be cut into segments, and then the
 * interval between segments counts, too. Frames follow the spanning tree, so shortest paths are its
 * paths.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/bcast/bcast.h"
#include "sched/bcast/relay.h"
#include "sched/bcast/switch.h"

#define NONE CN_TOPO_NONE

#define ROUNDS 4u /* of up-to-down, while the best segment changes */

enum inner { BINOMIAL, CHAIN, BINARY, INNERS };

struct smp {
	const struct cn_tree *t;
	const struct cn_cost *c;
	uint32_t n, root;
	uint32_t most; /* hosts of the team on a switch */
	uint64_t bytes, segment;
	uint32_t *above;  /* [nvertices] working switch above a working switch, of the topology */
	uint32_t *leader; /* [nvertices] node that leads a working switch; NONE */
	bool *working;	  /* [nvertices] */
	bool *movable;	  /* [n] leaders but the root */
};

static void price(const void *ctx, uint32_t from, uint32_t to, uint64_t *busy, uint64_t *total)
{
	const struct smp *s = ctx;

	cn_bcast_cost(s->c, s->t, from, to, s->segment, busy, total);
}

static uint32_t path(const void *ctx, uint32_t from, uint32_t to, uint32_t *links)
{
	const struct smp *s = ctx;

	return cn_tree_path(s->t, from, to, links);
}

static uint32_t channels(const void *ctx, uint32_t link)
{
	const struct smp *s = ctx;

	return cn_tree_channels(s->t, link);
}

static uint32_t switch_of(const struct smp *s, uint32_t node)
{
	return s->t->v[s->t->v[s->t->host[node]].parent].vertex;
}

static void smp_done(struct smp *s)
{
	free(s->above);
	free(s->working);
}

/* Level 2: who leads a working switch, and which one is above it. */
static int find_switches(struct smp *s, struct cn_err *err)
{
	const struct cn_topo *topo = s->t->topo;
	uint64_t *weight = malloc(((size_t)topo->nlinks + 1) * sizeof(*weight));
	struct cn_bswitch net = {
		.topo = topo, .tree_only = true, .weight = weight, .working = s->working
	};
	struct cn_bswitch_paths paths;
	int rc;

	if (weight == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u links", topo->nlinks);
	}
	for (uint32_t i = 0; i < topo->nlinks; i++) {
		double seconds = cn_cost_wire(s->c, s->bytes, topo->links[i].rate) + s->c->hop;

		weight[i] = cn_cost_ns(seconds);
	}
	for (uint32_t v = 0; v < topo->nvertices; v++) {
		s->leader[v] = NONE;
	}
	s->leader[switch_of(s, s->root)] = s->root;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t v = switch_of(s, i);

		s->working[v] = true;
		s->leader[v] = s->leader[v] == NONE ? i : s->leader[v];
		s->movable[i] = s->leader[v] == i && i != s->root;
	}
	for (uint32_t x = 0; x < s->t->n; x++) {
		uint32_t hosts = 0;

		for (uint32_t k = 0; k < s->t->v[x].nchildren; k++) {
			hosts += s->t->v[s->t->children[s->t->v[x].first_child + k]].node != NONE;
		}
		s->most = hosts > s->most ? hosts : s->most;
	}
	rc = cn_bswitch_shortest(&net, switch_of(s, s->root), &paths, err);
	if (!rc) {
		cn_bswitch_above(&net, &paths, s->above);
		cn_bswitch_paths_done(&paths);
	}
	free(weight);
	return rc;
}

static int smp_init(struct smp *s, const struct cn_layout *l, uint32_t root, uint64_t bytes,
		    const struct cn_cost *c, struct cn_err *err)
{
	uint32_t nv = l->tree->topo->nvertices;

	*s = (struct smp){ .t = l->tree, .c = c, .n = l->nnodes, .root = root, .bytes = bytes };
	s->above = malloc((size_t)nv * 2 * sizeof(*s->above));
	s->working = calloc((size_t)nv + s->n, sizeof(*s->working));
	if (s->above == NULL || s->working == NULL) {
		smp_done(s);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a broadcast among %u nodes",
			       s->n);
	}
	s->leader = s->above + nv;
	s->movable = s->working + nv;
	return COLLNET_OK;
}

/* From whom the host at place i of a switch receives. */
static uint32_t inner_parent(enum inner kind, uint32_t i)
{
	return kind == BINOMIAL ? i & (i - 1) : kind == BINARY ? (i - 1) / 2 : i - 1;
}

/* True if an earlier kind gives the same tree, as among three hosts. */
static bool is_repeated(const struct smp *s, enum inner kind)
{
	for (int before = 0; before < (int)kind; before++) {
		uint32_t i = 1;

		while (i < s->most &&
		       inner_parent(kind, i) == inner_parent((enum inner)before, i)) {
			i++;
		}
		if (i >= s->most) {
			return true;
		}
	}
	return false;
}

/* Levels 1 and 2 as a tree of nodes. hosts[n] is scratch. */
static void build(const struct smp *s, enum inner kind, struct cn_relay *r, uint32_t *hosts)
{
	for (uint32_t x = 0; x < s->t->n; x++) {
		const struct cn_tree_vertex *v = &s->t->v[x];
		uint32_t leader = s->leader[v->vertex], n = 1;

		if (v->node != NONE || !s->working[v->vertex]) {
			continue;
		}
		if (leader != s->root) {
			cn_relay_attach(r, leader, s->leader[s->above[v->vertex]]);
		}
		hosts[0] = leader;
		for (uint32_t k = 0; k < v->nchildren; k++) {
			uint32_t node = s->t->v[s->t->children[v->first_child + k]].node;

			if (node != NONE && node != leader) {
				cn_relay_attach(r, node, hosts[inner_parent(kind, n)]);
				hosts[n++] = node;
			}
		}
	}
}

static uint32_t cut(struct smp *s, uint64_t segment, struct cn_relay *r)
{
	s->segment = segment;
	r->net.segments = segment == 0 ? 1 : (uint32_t)((s->bytes - 1) / segment + 1);
	cn_relay_reprice(r);
	return r->net.segments;
}

/* The best segment for the current tree, which is left timed with it. */
static uint64_t best_segment(struct smp *s, uint64_t given, struct cn_relay *r)
{
	uint64_t best = given, time = UINT64_MAX, size;

	for (uint32_t i = 0; given == 0 && (size = cn_bcast_try(s->c, s->bytes, i)) > 0; i++) {
		cut(s, size, r);
		cn_relay_down_up(r);
		if (r->finish < time) {
			time = r->finish;
			best = size;
		}
	}
	cut(s, best, r);
	cn_relay_down_up(r);
	return best;
}

/* Copies the tree in r to a broadcast. */
static int take(const struct cn_relay *r, struct cn_bcast *b, uint32_t *seq, struct cn_err *err)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		for (uint32_t c = r->first[r->order[i]]; c != NONE; c = r->next[c]) {
			seq[n++] = c;
			b->parent[c] = r->order[i];
		}
	}
	return cn_bcast_arrange(b, seq, err);
}

/* The best of the inner kinds into b; *segment: given, or 0 and chosen. */
static int best_tree(struct smp *s, uint64_t *segment, struct cn_bcast *b, uint32_t *scratch,
		     struct cn_err *err)
{
	struct cn_relay_net net = { .ctx = s,
				    .cost = price,
				    .path = path,
				    .channels = channels,
				    .nlinks = 2 * s->t->n,
				    .longest = 2 * s->t->height,
				    .movable = s->movable,
				    .segments = 1 };
	uint64_t best = UINT64_MAX, given = *segment;
	int rc = COLLNET_OK;

	for (int kind = 0; !rc && kind < INNERS; kind++) {
		struct cn_relay r;
		uint64_t size;

		if (is_repeated(s, (enum inner)kind)) {
			continue;
		}
		rc = cn_relay_init(&r, s->n, s->root, &net, err);
		if (rc) {
			break;
		}
		build(s, (enum inner)kind, &r, scratch);
		size = best_segment(s, given, &r);
		for (uint32_t i = 0; !rc && i < ROUNDS; i++) {
			uint64_t before = size;

			rc = cn_relay_up_down(&r, NULL, err);
			size = best_segment(s, given, &r);
			if (size == before) {
				break;
			}
		}
		if (!rc && r.finish < best) {
			best = r.finish;
			*segment = size;
			rc = take(&r, b, scratch, err);
		}
		cn_relay_done(&r);
	}
	return rc;
}

int cn_bcast_smp(const struct cn_layout *l, uint32_t root, uint64_t bytes, uint64_t segment,
		 const struct cn_cost *c, struct cn_bcast *out, struct cn_err *err)
{
	uint32_t *scratch;
	struct smp s;
	int rc = cn_bcast_init(out, l->nnodes, root, err);

	if (rc) {
		return rc;
	}
	scratch = calloc(l->nnodes, sizeof(*scratch));
	rc = scratch == NULL ? cn_fail(err, COLLNET_ENOMEM, "no memory for %u nodes", l->nnodes)
			     : smp_init(&s, l, root, bytes, c, err);
	if (rc) {
		free(scratch);
		cn_bcast_done(out);
		return rc;
	}
	/* A segment that is too short is refused before its use. */
	rc = cn_bcast_segment(out, bytes, segment, err);
	segment = segment == 0 ? 0 : out->segment;
	if (!rc && l->nnodes == 1) {
		rc = cn_bcast_arrange(out, scratch, err);
	} else if (!rc) {
		rc = find_switches(&s, err);
		if (!rc) {
			rc = best_tree(&s, &segment, out, scratch, err);
		}
	}
	if (!rc) {
		rc = cn_bcast_segment(out, bytes, segment, err);
	}
	if (!rc) {
		rc = cn_bcast_colour(out, l->tree, err);
	}
	if (!rc) {
		rc = cn_bcast_time(out, l->tree, c, err);
	}
	free(scratch);
	smp_done(&s);
	if (rc) {
		cn_bcast_done(out);
	}
	return rc;
}

int cn_plan_bcast_smp(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		      struct cn_sched *out, struct cn_err *err)
{
	return cn_bcast_plan(cn_bcast_smp, l, p, me, out, err);
}
