/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Total exchange by colouring: the messages that cross one switch, in as few phases (colours) as
 * the links allow, on any tree with any channels.
 *
 * All of them go up from their senders to the switch and down to their receivers, so the messages
 * on an upward link are those of a set of senders, and these sets are nested in each other or
 * disjoint; the same holds for receivers downwards. A Kempe chain then recolours any two colours so
 * that every link has as many messages of one as of the other, give or take one: in every subtree,
 * from the leaves upwards, the messages of both colours are put in pairs, and at most one is left
 * over for the subtree above. A message is in at most one pair by its sender and one by its
 * receiver, so the pairs form paths and even cycles, and the two of every pair can have different
 * colours.
 *
 * So: start with any colours, and while a link has more messages of a colour than channels,
 * recolour that colour and one that has room on the link. The sum over links and colours of the
 * squares of these numbers gets smaller each time, so this ends; and a colour with room exists
 * while the link's messages are at most colours * channels, which is how the number was chosen.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/alltoall/fattree.h"

#define NONE UINT32_MAX

struct message {
	uint32_t leaf[2]; /* of the sender, and of the receiver: vertices */
	uint32_t mate[2]; /* the other message of its pair, by either */
	uint32_t colour;
	uint32_t next; /* of its colour; while pairing: at its vertex */
	bool recoloured;
};

struct colouring {
	const struct cn_tree *t;
	uint32_t top, colours, n;
	struct message *m;  /* [n] */
	uint32_t *head;	    /* [colours] lists */
	uint32_t *at;	    /* [vertices below top, and top] lists while pairing */
	uint32_t *chain;    /* [most of two colours] messages being recoloured */
	uint16_t *count[2]; /* [vertices * colours] messages on the link above, up and down */
};

static uint16_t *count_of(const struct colouring *c, int side, uint32_t v, uint32_t colour)
{
	return &c->count[side][(size_t)(v - c->top) * c->colours + colour];
}

static void count_message(struct colouring *c, uint32_t i, int by)
{
	const struct message *m = &c->m[i];

	for (int side = 0; side < 2; side++) {
		for (uint32_t v = m->leaf[side]; v != c->top; v = c->t->v[v].parent) {
			uint16_t *count = count_of(c, side, v, m->colour);

			*count = (uint16_t)(*count + by);
		}
	}
}

static void set_colour(struct colouring *c, uint32_t i, uint32_t colour)
{
	c->m[i].colour = colour;
	c->m[i].next = c->head[colour];
	c->head[colour] = i;
	count_message(c, i, 1);
}

/* Pairs the messages in chain by their sender's (or receiver's) subtrees. */
static void pair(struct colouring *c, uint32_t n, int side)
{
	for (uint32_t k = 0; k < n; k++) {
		struct message *m = &c->m[c->chain[k]];
		uint32_t *list = &c->at[m->leaf[side] - c->top];

		m->mate[side] = NONE;
		m->next = *list;
		*list = c->chain[k];
	}
	for (uint32_t v = c->top + c->t->v[c->top].size; v-- > c->top;) {
		uint32_t i = c->at[v - c->top];

		c->at[v - c->top] = NONE;
		while (i != NONE && c->m[i].next != NONE) {
			uint32_t j = c->m[i].next, rest = c->m[j].next;

			c->m[i].mate[side] = j;
			c->m[j].mate[side] = i;
			i = rest;
		}
		if (i != NONE && v != c->top) {
			uint32_t *list = &c->at[c->t->v[v].parent - c->top];

			c->m[i].next = *list;
			*list = i;
		}
	}
}

/* Colours in turns along a path of pairs, beginning with message i's pair on one side. */
static void walk(struct colouring *c, uint32_t i, int side, const uint32_t *colours)
{
	int which = 1;

	for (i = c->m[i].mate[side]; i != NONE && !c->m[i].recoloured; i = c->m[i].mate[side]) {
		c->m[i].recoloured = true;
		set_colour(c, i, colours[which]);
		which = !which;
		side = !side;
	}
}

/* Recolours all messages of two colours so that every link has as many of one as of the other. */
static void recolour(struct colouring *c, uint32_t one, uint32_t other)
{
	uint32_t colours[2] = { one, other }, n = 0;

	for (int k = 0; k < 2; k++) {
		for (uint32_t i = c->head[colours[k]]; i != NONE; i = c->m[i].next) {
			count_message(c, i, -1);
			c->m[i].recoloured = false;
			c->chain[n++] = i;
		}
		c->head[colours[k]] = NONE;
	}
	pair(c, n, 0);
	pair(c, n, 1);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = c->chain[k];

		if (!c->m[i].recoloured) {
			c->m[i].recoloured = true;
			set_colour(c, i, one);
			walk(c, i, 0, colours);
			walk(c, i, 1, colours);
		}
	}
}

/* Recolours until no colour has more messages than channels on the link above v. */
static bool recolour_link(struct colouring *c, uint32_t v, int side)
{
	uint32_t cap = cn_fattree_cap(c->t, v), room = 0;
	bool recoloured = false;

	for (uint32_t colour = 0; colour < c->colours; colour++) {
		while (*count_of(c, side, v, colour) > cap) {
			while (*count_of(c, side, v, room) >= cap) {
				room = (room + 1) % c->colours;
			}
			recolour(c, colour, room);
			recoloured = true;
		}
	}
	return recoloured;
}

/*
 * The first colours: the messages in order of their senders, each to the hosts that come after its
 * own subtree, round; colours in turn. Senders' links are even by that, receivers' nearly so.
 */
static void first_colours(struct cn_fattree *x, struct colouring *c)
{
	const struct cn_tree *t = x->t;
	uint32_t v = c->top, hosts = t->v[v].hosts, n = 0;

	for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
		uint32_t child = t->children[t->v[v].first_child + i], own = t->v[child].hosts;
		uint32_t first = x->base[child] - x->base[v];

		for (uint32_t s = first; s < first + own; s++) {
			for (uint32_t k = 0; k < hosts - own; k++, n++) {
				uint32_t d = (first + own + k) % hosts;

				c->m[n].leaf[0] = x->leaf[x->base[v] + s];
				c->m[n].leaf[1] = x->leaf[x->base[v] + d];
				set_colour(c, n, n % c->colours);
			}
		}
	}
}

static int colouring_new(struct cn_fattree *x, uint32_t v, struct colouring *c, struct cn_err *err)
{
	const struct cn_tree *t = x->t;
	size_t hosts = t->v[v].hosts, n = hosts * hosts, entries;

	for (uint32_t i = 0; i < t->v[v].nchildren; i++) {
		size_t own = t->v[t->children[t->v[v].first_child + i]].hosts;

		n -= own * own;
	}
	*c = (struct colouring){ .t = t, .top = v, .colours = x->share[v].phases };
	entries = (size_t)t->v[v].size * c->colours;
	c->n = (uint32_t)n;
	c->m = malloc(n * sizeof(*c->m));
	c->head = malloc(c->colours * sizeof(*c->head));
	c->at = malloc(t->v[v].size * sizeof(*c->at));
	c->chain = malloc(n * sizeof(*c->chain));
	c->count[0] = calloc(entries, sizeof(*c->count[0]));
	c->count[1] = calloc(entries, sizeof(*c->count[1]));
	if (c->m == NULL || c->head == NULL || c->at == NULL || c->chain == NULL ||
	    c->count[0] == NULL || c->count[1] == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", t->nhosts);
	}
	memset(c->head, 0xff, c->colours * sizeof(*c->head)); /* NONE */
	memset(c->at, 0xff, t->v[v].size * sizeof(*c->at));
	return COLLNET_OK;
}

int cn_fattree_colour(struct cn_fattree *x, uint32_t v, struct cn_err *err)
{
	const struct cn_tree *t = x->t;
	size_t hosts = t->v[v].hosts;
	uint32_t *table = malloc(hosts * hosts * sizeof(*table));
	struct colouring c;
	bool recoloured = true;
	int rc = colouring_new(x, v, &c, err);

	if (rc == COLLNET_OK && table == NULL) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", t->nhosts);
	}
	if (rc == COLLNET_OK) {
		first_colours(x, &c);
	}
	while (rc == COLLNET_OK && recoloured) {
		recoloured = false;
		for (uint32_t u = v + 1; u < v + t->v[v].size; u++) {
			recoloured = recolour_link(&c, u, 0) || recoloured;
			recoloured = recolour_link(&c, u, 1) || recoloured;
		}
	}
	for (uint32_t i = 0; rc == COLLNET_OK && i < c.n; i++) {
		size_t s = x->base[c.m[i].leaf[0]] - x->base[v];

		table[s * hosts + (x->base[c.m[i].leaf[1]] - x->base[v])] = c.m[i].colour;
	}
	free(c.m);
	free(c.head);
	free(c.at);
	free(c.chain);
	free(c.count[0]);
	free(c.count[1]);
	if (rc != COLLNET_OK) {
		free(table);
		return rc;
	}
	x->share[v].colour = table;
	return COLLNET_OK;
}
