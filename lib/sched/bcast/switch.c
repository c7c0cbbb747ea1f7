/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shortest paths over switches, the tree of working switches, and how long a broadcast among them
 * takes before and after the heuristics.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/bcast/relay.h"
#include "sched/bcast/switch.h"
#include "util/pqueue.h"

#define NONE	  CN_TOPO_NONE
#define PATHS_MAX ((size_t)1 << 24) /* working switches times vertices */

uint32_t cn_bswitch_across(const struct cn_topo *t, uint32_t link, uint32_t v)
{
	return t->links[link].a == v ? t->links[link].b : t->links[link].a;
}

/* ---- Dijkstra ------------------------------------------------------------------------------ */

struct entry {
	uint64_t dist;
	uint32_t v;
};

static bool nearer(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	return a->dist != b->dist ? a->dist < b->dist : a->v < b->v;
}

static void push(struct entry *heap, uint32_t *n, struct entry e)
{
	cn_pqueue_push(heap, (*n)++, sizeof(e), &e, nearer);
}

static struct entry pop(struct entry *heap, uint32_t *n)
{
	struct entry top;

	cn_pqueue_pop(heap, (*n)--, sizeof(top), &top, nearer);
	return top;
}

static bool usable(const struct cn_bswitch *s, uint32_t link)
{
	const struct cn_topo_link *l = &s->topo->links[link];

	if (!s->topo->vertices[l->a].is_switch || !s->topo->vertices[l->b].is_switch) {
		return false;
	}
	return !s->tree_only || s->topo->vertices[l->a].parent_link == link ||
	       s->topo->vertices[l->b].parent_link == link;
}

int cn_bswitch_shortest(const struct cn_bswitch *s, uint32_t source, struct cn_bswitch_paths *out,
			struct cn_err *err)
{
	const struct cn_topo *t = s->topo;
	struct entry *heap = malloc(((size_t)t->nlinks * 2 + 1) * sizeof(*heap));
	uint32_t n = 0;

	*out = (struct cn_bswitch_paths){ 0 };
	out->dist = malloc(t->nvertices * sizeof(*out->dist));
	out->via = malloc(t->nvertices * 2 * sizeof(*out->via));
	if (heap == NULL || out->dist == NULL || out->via == NULL) {
		free(heap);
		cn_bswitch_paths_done(out);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for the paths among %u switches",
			       t->nvertices);
	}
	out->order = out->via + t->nvertices;
	for (uint32_t v = 0; v < t->nvertices; v++) {
		out->dist[v] = UINT64_MAX;
		out->via[v] = NONE;
	}
	out->dist[source] = 0;
	push(heap, &n, (struct entry){ 0, source });
	while (n > 0) {
		struct entry e = pop(heap, &n);

		if (e.dist != out->dist[e.v]) {
			continue; /* it was reached by a shorter path since */
		}
		out->order[out->reached++] = e.v;
		for (uint32_t k = t->adj_start[e.v]; k < t->adj_start[e.v + 1]; k++) {
			uint32_t link = t->adj[k], to = cn_bswitch_across(t, link, e.v);

			if (usable(s, link) && e.dist + s->weight[link] < out->dist[to]) {
				out->dist[to] = e.dist + s->weight[link];
				out->via[to] = link;
				push(heap, &n, (struct entry){ out->dist[to], to });
			}
		}
	}
	free(heap);
	return COLLNET_OK;
}

void cn_bswitch_paths_done(struct cn_bswitch_paths *p)
{
	free(p->dist);
	free(p->via);
	memset(p, 0, sizeof(*p));
}

void cn_bswitch_above(const struct cn_bswitch *s, const struct cn_bswitch_paths *p, uint32_t *above)
{
	for (uint32_t v = 0; v < s->topo->nvertices; v++) {
		above[v] = NONE;
	}
	for (uint32_t i = 1; i < p->reached; i++) {
		uint32_t v = p->order[i], from = cn_bswitch_across(s->topo, p->via[v], v);

		above[v] = s->working[from] || from == p->order[0] ? from : above[from];
	}
}

/* ---- a broadcast among the working switches ------------------------------------------------- */

/* All paths between working switches: R_cluster of the paper. */
struct routes {
	const struct cn_bswitch *s;
	const uint64_t *startup;
	uint32_t n, source;	       /* endpoints; the source's */
	uint32_t *vertex;	       /* [n] */
	uint32_t *number;	       /* [nvertices] endpoint of a switch */
	struct cn_bswitch_paths *from; /* [n] */
};

static void route_cost(const void *ctx, uint32_t from, uint32_t to, uint64_t *busy, uint64_t *total)
{
	const struct routes *r = ctx;

	*busy = *total = r->startup[r->vertex[from]] + r->from[from].dist[r->vertex[to]];
}

static uint32_t route_path(const void *ctx, uint32_t from, uint32_t to, uint32_t *links)
{
	const struct routes *r = ctx;
	const struct cn_topo *t = r->s->topo;
	uint32_t n = 0, v = r->vertex[to];

	while (r->from[from].via[v] != NONE) {
		uint32_t link = r->from[from].via[v], before = cn_bswitch_across(t, link, v);

		links[n++] = 2 * link + (t->links[link].a == before);
		v = before;
	}
	return n;
}

static uint32_t route_channels(const void *ctx, uint32_t link)
{
	const struct routes *r = ctx;

	return r->s->topo->links[link / 2].channels;
}

static void routes_done(struct routes *r)
{
	for (uint32_t i = 0; r->from != NULL && i < r->n; i++) {
		cn_bswitch_paths_done(&r->from[i]);
	}
	free(r->from);
	free(r->vertex);
}

static int routes_init(struct routes *r, const struct cn_bswitch *s, const uint64_t *startup,
		       uint32_t source, struct cn_err *err)
{
	uint32_t nv = s->topo->nvertices;
	int rc = COLLNET_OK;

	*r = (struct routes){ .s = s, .startup = startup };
	r->vertex = malloc((size_t)nv * 2 * sizeof(*r->vertex));
	if (r->vertex == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u switches", nv);
	}
	r->number = r->vertex + nv;
	for (uint32_t v = 0; v < nv; v++) {
		r->number[v] = NONE;
		if (s->topo->vertices[v].is_switch && (s->working[v] || v == source)) {
			r->source = v == source ? r->n : r->source;
			r->number[v] = r->n;
			r->vertex[r->n++] = v;
		}
	}
	if ((size_t)r->n * nv > PATHS_MAX) {
		rc = cn_fail(err, COLLNET_ELIMIT,
			     "all paths among %u working switches of %u vertices are too many",
			     r->n, nv);
	}
	r->from = rc ? NULL : calloc(r->n, sizeof(*r->from));
	if (!rc && r->from == NULL) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory for %u switches", r->n);
	}
	for (uint32_t i = 0; !rc && i < r->n; i++) {
		rc = cn_bswitch_shortest(s, r->vertex[i], &r->from[i], err);
	}
	for (uint32_t i = 0; !rc && i < r->n; i++) {
		if (r->from[r->source].dist[r->vertex[i]] == UINT64_MAX) {
			rc = cn_fail(err, COLLNET_ETOPO, "no path from switch %s to switch %s",
				     s->topo->vertices[source].name,
				     s->topo->vertices[r->vertex[i]].name);
		}
	}
	if (rc) {
		routes_done(r);
	}
	return rc;
}

/* Every message sent by who has it, in rounds of halving distance. */
static int binomial_time(const struct routes *r, const struct cn_relay_net *net, uint64_t *time,
			 struct cn_err *err)
{
	uint32_t d = 1;
	struct cn_relay b;
	int rc = cn_relay_init(&b, r->n, r->source, net, err);

	while (d < r->n) {
		d *= 2;
	}
	for (d /= 2; !rc && d > 0; d /= 2) {
		for (uint32_t x = d; x < r->n; x += 2 * d) {
			cn_relay_attach(&b, (r->source + x) % r->n, (r->source + x - d) % r->n);
		}
	}
	if (!rc) {
		cn_relay_time(&b);
		*time = b.finish;
		cn_relay_done(&b);
	}
	return rc;
}

static int relay_times(const struct routes *r, const struct cn_relay_net *net,
		       struct cn_bswitch_times *out, struct cn_err *err)
{
	uint32_t *above = malloc(r->s->topo->nvertices * sizeof(*above));
	struct cn_relay b;
	int rc;

	if (above == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for %u switches", r->n);
	}
	cn_bswitch_above(r->s, &r->from[r->source], above);
	rc = cn_relay_init(&b, r->n, r->source, net, err);
	if (rc) {
		free(above);
		return rc;
	}
	for (uint32_t i = 0; i < r->n; i++) {
		if (i != r->source) {
			cn_relay_attach(&b, i, r->number[above[r->vertex[i]]]);
		}
	}
	free(above);
	cn_relay_time(&b);
	out->shortest = b.finish;
	cn_relay_down_up(&b);
	out->down_up = b.finish;
	rc = cn_relay_up_down(&b, &out->reparented, err);
	out->final = b.finish;
	cn_relay_done(&b);
	return rc;
}

int cn_bswitch_broadcast(const struct cn_bswitch *s, const uint64_t *startup, uint32_t source,
			 struct cn_bswitch_times *out, struct cn_err *err)
{
	struct cn_relay_net net = {
		.cost = route_cost, .path = route_path, .channels = route_channels, .segments = 1
	};
	struct routes r;
	int rc;

	*out = (struct cn_bswitch_times){ 0 };
	if (source >= s->topo->nvertices || !s->topo->vertices[source].is_switch) {
		return cn_fail(err, COLLNET_EINVAL, "a broadcast begins at a switch");
	}
	rc = routes_init(&r, s, startup, source, err);
	if (rc) {
		return rc;
	}
	out->working = r.n;
	net.ctx = &r;
	net.nlinks = 2 * s->topo->nlinks;
	net.longest = s->topo->nvertices;
	rc = relay_times(&r, &net, out, err);
	if (!rc) {
		rc = binomial_time(&r, &net, &out->binomial, err);
	}
	routes_done(&r);
	return rc;
}
