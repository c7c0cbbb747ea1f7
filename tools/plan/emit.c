/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common order of all nodes' messages: a topological order of "comes before", the smallest
 * phase first among those that may come next.
 */
#include "tools/plan/emit.h"

#include <stdlib.h>
#include <string.h>

#include "util/heap.h"

const char *emit_order_name(enum cn_order order)
{
	return order == CN_ORDER_IN_TURN ? "in-turn"
	       : order == CN_ORDER_ANY	 ? "any"
					 : "interleaved";
}

const char *emit_guarantees(unsigned guarantees, char text[EMIT_GUARANTEES_TEXT])
{
	snprintf(text, EMIT_GUARANTEES_TEXT, "%s%s%s%s",
		 guarantees & CN_GUARANTEE_LINKS ? "links " : "",
		 guarantees & CN_GUARANTEE_ORDERED ? "ordered " : "",
		 guarantees & CN_GUARANTEE_OPTIMAL ? "optimal " : "",
		 guarantees == 0 ? "none " : "");
	text[strlen(text) - 1] = '\0';
	return text;
}

void emit_plain(const char *text, FILE *f)
{
	for (; *text != '\0'; text++) {
		bool plain = *text >= ' ' && *text <= '~' && *text != '*';

		putc(plain ? *text : '?', f);
	}
}

bool emit_is_sync(const struct cn_action *a)
{
	return a->len == 0 && a->src.buffer == CN_BUF_NONE && a->dst.buffer == CN_BUF_NONE;
}

/* ---- sends and receives matched ----------------------------------------------------------- */

/* An end of a message. */
struct end {
	uint32_t from, to, action; /* of the list of its node */
};

static int compare_ends(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->from != y->from) {
		return x->from < y->from ? -1 : 1;
	}
	if (x->to != y->to) {
		return x->to < y->to ? -1 : 1;
	}
	return x->action < y->action ? -1 : x->action > y->action;
}

/* All sends of the schedules, or all receives, pair by pair. */
static uint32_t collect(const struct emit *e, enum cn_action_kind kind, struct end *ends)
{
	uint32_t n = 0;

	for (uint32_t b = 0; b < e->layout->nnodes; b++) {
		for (uint32_t i = 0; i < e->parts[b].n; i++) {
			const struct cn_action *a = &e->parts[b].actions[i];

			if (a->kind == kind) {
				ends[n].from = kind == CN_ACT_SEND ? b : a->peer;
				ends[n].to = kind == CN_ACT_SEND ? a->peer : b;
				ends[n++].action = i;
			}
		}
	}
	qsort(ends, n, sizeof(*ends), compare_ends);
	return n;
}

static int unmatched(const struct emit *e, const struct end *s, const struct end *r,
		     struct cn_err *err)
{
	bool sent = r == NULL || (s != NULL && compare_ends(s, r) < 0);
	const struct end *x = sent ? s : r;

	return cn_fail(err, COLLNET_EINVAL, "a message from %s to %s is %s",
		       cn_tree_node_name(e->layout->tree, x->from),
		       cn_tree_node_name(e->layout->tree, x->to),
		       sent ? "sent, but not received" : "received, but not sent");
}

/* Items in the order of nodes and lists; item_of[] of every action but waits. */
static int match(const struct emit *e, struct emit_order *o, struct end *sends, struct end *recvs,
		 struct cn_err *err)
{
	uint32_t ns = collect(e, CN_ACT_SEND, sends), nr = collect(e, CN_ACT_RECV, recvs);

	for (uint32_t b = 0; b < e->layout->nnodes; b++) {
		for (uint32_t i = 0; i < e->parts[b].n; i++) {
			enum cn_action_kind kind = e->parts[b].actions[i].kind;

			if (kind == CN_ACT_SEND || kind == CN_ACT_COPY || kind == CN_ACT_REDUCE) {
				o->item_of[o->start[b] + i] = o->n;
				o->items[o->n++] = (struct emit_item){ b, i, EMIT_NONE };
			}
		}
	}
	for (uint32_t i = 0; i < ns || i < nr; i++) {
		const struct end *s = i < ns ? &sends[i] : NULL, *r = i < nr ? &recvs[i] : NULL;
		uint32_t item;

		if (s == NULL || r == NULL || s->from != r->from || s->to != r->to) {
			return unmatched(e, s, r, err);
		}
		item = o->item_of[o->start[s->from] + s->action];
		o->items[item].received = r->action;
		o->item_of[o->start[r->to] + r->action] = item;
	}
	return COLLNET_OK;
}

/* ---- happens-before ----------------------------------------------------------------------- */

struct graph {
	uint32_t *before; /* how many items an item still waits for */
	size_t *start;	  /* [n + 1] where the items that come after an item begin in after[] */
	uint32_t *after;
	struct cn_timer *timers;
};

static void edge(struct graph *g, uint32_t from, uint32_t to, bool fill)
{
	if (from == EMIT_NONE || to == EMIT_NONE || from == to) {
		return;
	}
	if (fill) {
		g->after[g->start[from]++] = to;
		g->before[to]++;
	} else {
		g->start[from + 1]++;
	}
}

/* A node's part: sends one after another, each after what is waited for and depended on. */
static void node_edges(const struct cn_sched *s, const uint32_t *item_of, bool in_turn,
		       struct graph *g, bool fill)
{
	uint32_t last = EMIT_NONE, reduced = EMIT_NONE, first_wait = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		if (a->dep != CN_DEP_NONE && (a->kind == CN_ACT_SEND || a->kind == CN_ACT_COPY ||
					      a->kind == CN_ACT_REDUCE)) {
			edge(g, item_of[a->dep_on], item_of[i], fill);
		}
		if (a->kind == CN_ACT_REDUCE) {
			edge(g, item_of[a->after], item_of[i], fill); /* itself: none */
			edge(g, reduced, item_of[i], fill);	      /* in the order of the list */
			reduced = item_of[i];
		}
		if (a->kind != CN_ACT_SEND) {
			continue;
		}
		if (in_turn) {
			edge(g, last, item_of[i], fill);
		}
		last = item_of[i];
		for (; first_wait < i; first_wait++) {
			const struct cn_action *w = &s->actions[first_wait];

			if (w->kind == CN_ACT_WAIT && w->dep != CN_DEP_NONE) {
				edge(g, item_of[w->dep_on], item_of[i], fill);
			}
		}
	}
}

static void all_edges(const struct emit *e, const struct emit_order *o, bool in_turn,
		      struct graph *g, bool fill)
{
	for (uint32_t b = 0; b < e->layout->nnodes; b++) {
		node_edges(&e->parts[b], o->item_of + o->start[b], in_turn, g, fill);
	}
}

static int graph_make(const struct emit *e, const struct emit_order *o, bool in_turn,
		      struct graph *g, struct cn_err *err)
{
	g->start = calloc((size_t)o->n + 2, sizeof(*g->start));
	g->before = calloc((size_t)o->n + 1, sizeof(*g->before));
	g->timers = calloc((size_t)o->n + 1, sizeof(*g->timers));
	if (g->start != NULL) {
		all_edges(e, o, in_turn, g, false);
		for (uint32_t i = 0; i < o->n; i++) {
			g->start[i + 1] += g->start[i];
		}
		g->after = calloc(g->start[o->n] + 1, sizeof(*g->after));
	}
	if (g->start == NULL || g->before == NULL || g->timers == NULL || g->after == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to put %u messages in order", o->n);
	}
	all_edges(e, o, in_turn, g, true);
	/* Filling moved every start to the next one's. */
	memmove(g->start + 1, g->start, o->n * sizeof(*g->start));
	g->start[0] = 0;
	return COLLNET_OK;
}

static void graph_free(struct graph *g)
{
	free(g->before);
	free(g->start);
	free(g->after);
	free(g->timers);
	memset(g, 0, sizeof(*g));
}

static void ready(const struct emit *e, const struct emit_order *o, struct graph *g, uint32_t i,
		  struct cn_heap *heap)
{
	const struct cn_action *a = &e->parts[o->items[i].node].actions[o->items[i].action];
	uint64_t sent = a->kind == CN_ACT_SEND;

	g->timers[i].owner = &g->timers[i];
	cn_heap_set(heap, &g->timers[i], (uint64_t)a->phase << 33 | sent << 32 | i);
}

/* place[i]: the item that comes i-th. Returns how many could be put in order. */
static uint32_t sort_items(const struct emit *e, const struct emit_order *o, struct graph *g,
			   struct cn_heap *heap, uint32_t *place)
{
	struct cn_timer *t;
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->n; i++) {
		if (g->before[i] == 0) {
			ready(e, o, g, i, heap);
		}
	}
	while ((t = cn_heap_first(heap)) != NULL) {
		uint32_t i = (uint32_t)(t - g->timers);

		cn_heap_set(heap, t, CN_NEVER);
		place[n++] = i;
		for (size_t k = g->start[i]; k < g->start[i + 1]; k++) {
			if (--g->before[g->after[k]] == 0) {
				ready(e, o, g, g->after[k], heap);
			}
		}
	}
	return n;
}

static int deadlock(const struct emit *e, const struct emit_order *o, const struct graph *g,
		    struct cn_err *err)
{
	const struct cn_tree *t = e->layout->tree;
	uint32_t i = 0;

	while (g->before[i] == 0) {
		i++;
	}
	return cn_fail(
		err, COLLNET_EINVAL,
		"the message from %s to %s in phase %u waits for an action that "
		"waits for it: deadlock",
		cn_tree_node_name(t, o->items[i].node),
		cn_tree_node_name(t, e->parts[o->items[i].node].actions[o->items[i].action].peer),
		e->parts[o->items[i].node].actions[o->items[i].action].phase);
}

static int arrange(const struct emit *e, struct emit_order *o, struct cn_err *err)
{
	uint32_t *place = calloc((size_t)o->n + 1, sizeof(*place)), done = 0;
	struct emit_item *items = calloc((size_t)o->n + 1, sizeof(*items));
	uint32_t *back = calloc((size_t)o->n + 1, sizeof(*back));
	struct cn_heap heap = { 0 };
	struct graph g = { 0 };
	int rc = COLLNET_ENOMEM;

	if (place != NULL && items != NULL && back != NULL && cn_heap_init(&heap, o->n + 1) == 0) {
		/* Where the order of the list is not the order of sending it may be a cycle. */
		for (int strict = 1; strict >= 0 && done < o->n; strict--) {
			graph_free(&g);
			rc = graph_make(e, o, strict == 1, &g, err);
			if (rc != COLLNET_OK) {
				break;
			}
			done = sort_items(e, o, &g, &heap, place);
			if (done < o->n && e->parts[0].order == CN_ORDER_IN_TURN) {
				rc = deadlock(e, o, &g, err);
				break;
			}
		}
		rc = rc == COLLNET_OK && done < o->n ? deadlock(e, o, &g, err) : rc;
	} else {
		cn_fail(err, rc, "no memory to put %u messages in order", o->n);
	}
	if (rc == COLLNET_OK || o->n == 0) {
		rc = COLLNET_OK;
		for (uint32_t i = 0; i < o->n; i++) {
			items[i] = o->items[place[i]];
			back[place[i]] = i;
		}
		memcpy(o->items, items, o->n * sizeof(*items));
		for (uint32_t i = 0; i < o->start[e->layout->nnodes]; i++) {
			o->item_of[i] = o->item_of[i] == EMIT_NONE ? EMIT_NONE
								   : back[o->item_of[i]];
		}
	}
	graph_free(&g);
	cn_heap_fini(&heap);
	free(place);
	free(items);
	free(back);
	return rc;
}

/* ------------------------------------------------------------------------------------------ */

static int count_actions(const struct emit *e, uint32_t *start, struct cn_err *err)
{
	uint64_t n = 0;

	for (uint32_t b = 0; b < e->layout->nnodes; b++) {
		start[b] = (uint32_t)n;
		n += e->parts[b].n;
		if (n > UINT32_MAX / 2) {
			return cn_fail(err, COLLNET_ELIMIT,
				       "a schedule of more than %u actions is "
				       "too long to be written as one",
				       UINT32_MAX / 2);
		}
	}
	start[e->layout->nnodes] = (uint32_t)n;
	return COLLNET_OK;
}

int emit_order_make(const struct emit *e, struct emit_order *o, struct cn_err *err)
{
	struct end *sends = NULL, *recvs = NULL;
	uint32_t total = 0;
	int rc;

	memset(o, 0, sizeof(*o));
	if (e->layout->nranks != e->layout->nnodes) {
		return cn_fail(err, COLLNET_EINVAL,
			       "only a schedule with one rank per host can be "
			       "written; this one has %u ranks on %u hosts",
			       e->layout->nranks, e->layout->nnodes);
	}
	o->start = calloc((size_t)e->layout->nnodes + 1, sizeof(*o->start));
	if (o->start == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to put messages in order");
	}
	rc = count_actions(e, o->start, err);
	if (rc == COLLNET_OK) {
		total = o->start[e->layout->nnodes];
		o->items = calloc((size_t)total + 1, sizeof(*o->items));
		o->item_of = malloc(((size_t)total + 1) * sizeof(*o->item_of));
		sends = calloc((size_t)total + 1, sizeof(*sends));
		recvs = calloc((size_t)total + 1, sizeof(*recvs));
		if (o->items == NULL || o->item_of == NULL || sends == NULL || recvs == NULL) {
			rc = cn_fail(err, COLLNET_ENOMEM, "no memory to put %u actions in order",
				     total);
		} else {
			memset(o->item_of, 0xff, ((size_t)total + 1) * sizeof(*o->item_of));
			rc = match(e, o, sends, recvs, err);
		}
	}
	free(sends);
	free(recvs);
	rc = rc == COLLNET_OK ? arrange(e, o, err) : rc;
	if (rc != COLLNET_OK) {
		emit_order_free(o);
	}
	return rc;
}

void emit_order_free(struct emit_order *o)
{
	free(o->items);
	free(o->start);
	free(o->item_of);
	memset(o, 0, sizeof(*o));
}
