/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drawing a topology as Graphviz DOT.
 *
 * Everything is placed here, and `layout=nop2` tells dot to keep it: switches are boxes, a level
 * of the tree a row; the hosts of all switches are one row at the bottom, from left to right as in
 * a depth-first ring; and messages are arcs below that row, the longer the deeper, so that they
 * cross neither names nor links. (Left to itself, dot draws long arcs through the hosts.) Links
 * that the tree does not use are dashed and grey, above the switches.
 *
 * Lengths are in tenths of a point, in whole numbers, so that no locale changes the text.
 */
#include "tools/plan/draw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo/build.h"
#include "topo/topo.h"

#define PT	    10 /* a point */
#define HOST_HEIGHT 180
#define HOST_GAP    60
#define GROUP_GAP   160
#define LEVEL_MIN   700
#define LEVEL_MAX   1400
#define LABEL_MAX   160

/* Where a vertex is: its middle, and its box; for switches also what was needed to find it. */
struct spot {
	int64_t x, y, w, h;
	int64_t left, block, total;	/* of its subtree; of its own hosts; width of the subtree */
	int64_t next_host, next_switch; /* places of the next children */
	int64_t first, last;		/* middles of the outer child switches */
	uint64_t low, high;		/* known rates of its hosts' links; 0: none */
	uint32_t hosts, level;
};

struct drawing {
	const struct cn_topo *t;
	struct spot *spots;
	int64_t host_width, level, row; /* row: y of the hosts */
	FILE *f;
};

/* Okabe and Ito's colours, which stay distinct for colour-blind readers; without yellow, for white
 * paper. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
				       "#e69f00", "#56b4e9", "#000000" };
static const char *const styles[] = { "solid", "dashed", "dotted" };
#define COLOURS ((uint32_t)(sizeof(colours) / sizeof(colours[0])))

/* ---- text ------------------------------------------------------------------------------- */

static void put_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\') {
			fputc('\\', f);
		}
		if (*text == '\n') {
			fputs("\\n", f);
		} else {
			fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
		}
	}
	fputc('"', f);
}

/* "12.3" */
static void put_points(FILE *f, int64_t v)
{
	fprintf(f, "%s%" PRId64 ".%d", v < 0 ? "-" : "", (v < 0 ? -v : v) / PT,
		(int)((v < 0 ? -v : v) % PT));
}

static void put_at(FILE *f, int64_t x, int64_t y)
{
	put_points(f, x);
	fputc(',', f);
	put_points(f, y);
}

/* A length that DOT wants in inches. */
static void put_inches(FILE *f, const char *key, int64_t v)
{
	int64_t milli = v * 1000 / (72 * PT);

	fprintf(f, " %s=%" PRId64 ".%03d", key, milli / 1000, (int)(milli % 1000));
}

/* "2.5 Gbit/s", or nothing when it is not known. */
static void rate_text(uint64_t rate, char *text, size_t cap)
{
	static const struct {
		uint64_t factor;
		const char *unit;
	} units[] = { { 1000000000000u, "Tbit/s" },
		      { 1000000000u, "Gbit/s" },
		      { 1000000u, "Mbit/s" },
		      { 1000u, "kbit/s" },
		      { 1, "bit/s" } };
	char fraction[8];
	size_t i = 0, n;

	text[0] = '\0';
	if (rate == 0) {
		return;
	}
	while (rate < units[i].factor) {
		i++;
	}
	snprintf(fraction, sizeof(fraction), ".%03u",
		 (unsigned int)(rate % units[i].factor / (units[i].factor / 1000 + (i == 4))));
	n = strlen(fraction);
	while (n > 0 && (fraction[n - 1] == '0' || fraction[n - 1] == '.')) {
		fraction[--n] = '\0';
	}
	snprintf(text, cap, "%" PRIu64 "%s %s", rate / units[i].factor, fraction, units[i].unit);
}

/* "2 x 10 Gbit/s" */
static void link_text(const struct cn_topo_link *l, char *text, size_t cap)
{
	char rate[40];

	rate_text(l->rate, rate, sizeof(rate));
	if (l->channels == 1) {
		snprintf(text, cap, "%s", rate);
	} else if (l->rate == 0) {
		snprintf(text, cap, "%" PRIu32 " channels", l->channels);
	} else {
		snprintf(text, cap, "%" PRIu32 " \xc3\x97 %s", l->channels, rate);
	}
}

/* The second line of a switch: what hangs on it. Empty without hosts. */
static void hosts_text(const struct spot *s, char *text, size_t cap)
{
	char low[40], high[40];

	text[0] = '\0';
	if (s->hosts == 0) {
		return;
	}
	rate_text(s->low, low, sizeof(low));
	rate_text(s->high, high, sizeof(high));
	snprintf(text, cap, "%" PRIu32 " host%s%s%s%s%s", s->hosts, s->hosts == 1 ? "" : "s",
		 s->low == 0 ? "" : ", ", low, s->low == s->high ? "" : " to ",
		 s->low == s->high ? "" : high);
}

/* ---- places ----------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What hangs on each switch, its level, and the sizes of all boxes. */
static void measure(struct drawing *d)
{
	const struct cn_topo *t = d->t;
	char text[LABEL_MAX];
	size_t longest = 2;

	for (uint32_t i = 0; i < t->nvertices; i++) {
		uint32_t v = t->order[i], p = t->vertices[v].parent;
		uint64_t rate;

		if (p != CN_TOPO_NONE) {
			d->spots[v].level = d->spots[p].level + 1;
		}
		if (t->vertices[v].is_switch) {
			continue;
		}
		longest = strlen(t->vertices[v].name) > longest ? strlen(t->vertices[v].name)
								: longest;
		if (p != CN_TOPO_NONE) {
			struct spot *s = &d->spots[p];

			rate = t->links[t->vertices[v].parent_link].rate;
			if (rate != 0) {
				s->low = s->low == 0 || rate < s->low ? rate : s->low;
			}
			s->high = rate > s->high ? rate : s->high;
			s->hosts++;
		}
	}
	d->host_width = (int64_t)longest * 60 + 100;
	for (uint32_t v = 0; v < t->nvertices; v++) {
		struct spot *s = &d->spots[v];

		s->w = d->host_width;
		s->h = HOST_HEIGHT;
		if (t->vertices[v].is_switch) {
			hosts_text(s, text, sizeof(text));
			s->w = larger((int64_t)strlen(t->vertices[v].name) * 75,
				      (int64_t)strlen(text) * 55) +
			       160;
			s->w = larger(s->w, s->hosts * (d->host_width + HOST_GAP) - HOST_GAP);
			s->h = text[0] == '\0' ? 240 : 340;
		}
	}
}

/* Widths of the subtrees, from the leaves up; and the height of a level. */
static void widths(struct drawing *d)
{
	const struct cn_topo *t = d->t;
	int64_t slot = d->host_width + HOST_GAP;
	uint32_t deepest = 0;

	for (uint32_t i = t->nvertices; i-- > 0;) {
		uint32_t v = t->order[i], p = t->vertices[v].parent;
		struct spot *s = &d->spots[v];

		if (!t->vertices[v].is_switch) {
			continue;
		}
		s->block = s->hosts > 0 ? larger(s->hosts * slot, s->w + HOST_GAP) + GROUP_GAP : 0;
		s->total = larger(s->total + s->block, s->w + GROUP_GAP);
		deepest = s->level > deepest ? s->level : deepest;
		if (p != CN_TOPO_NONE) {
			d->spots[p].total += s->total;
		}
	}
	d->level = d->spots[t->root].total / 18;
	d->level = d->level < LEVEL_MIN ? LEVEL_MIN : d->level > LEVEL_MAX ? LEVEL_MAX : d->level;
	d->row = -(int64_t)(deepest + 1) * d->level;
}

/* Left edges of the subtrees and places of the hosts, from the root down: hosts, then switches. */
static void edges(struct drawing *d)
{
	const struct cn_topo *t = d->t;
	int64_t slot = d->host_width + HOST_GAP;

	for (uint32_t i = 0; i < t->nvertices; i++) {
		uint32_t v = t->order[i], p = t->vertices[v].parent;
		struct spot *s = &d->spots[v], *up = p == CN_TOPO_NONE ? NULL : &d->spots[p];

		s->y = -(int64_t)s->level * d->level;
		if (!t->vertices[v].is_switch) {
			if (up != NULL) {
				s->y = d->row;
				s->x = up->next_host + slot / 2;
				up->next_host += slot;
			}
			continue;
		}
		if (up != NULL) {
			s->left = up->next_switch;
			up->next_switch += s->total;
		}
		s->next_switch = s->left + s->block;
		s->next_host = s->left + (s->block - GROUP_GAP - s->hosts * slot) / 2;
	}
}

/* A switch is above its own hosts, or in the middle of its children: from the leaves up. */
static void middles(struct drawing *d)
{
	const struct cn_topo *t = d->t;

	for (uint32_t i = t->nvertices; i-- > 0;) {
		uint32_t v = t->order[i], p = t->vertices[v].parent;
		struct spot *s = &d->spots[v], *up = p == CN_TOPO_NONE ? NULL : &d->spots[p];

		if (!t->vertices[v].is_switch) {
			continue;
		}
		s->x = s->left + (s->total - GROUP_GAP) / 2;
		if (s->hosts > 0) {
			s->x = s->left + (s->block - GROUP_GAP) / 2;
		} else if (s->last > s->first) {
			s->x = (s->first + s->last) / 2;
		}
		if (up != NULL) {
			/* children come from right to left */
			up->last = up->last == 0 ? s->x : up->last;
			up->first = s->x;
		}
	}
}

/* ---- output ----------------------------------------------------------------------------- */

static void put_vertex(const struct drawing *d, uint32_t v)
{
	const struct spot *s = &d->spots[v];
	const struct cn_vertex *x = &d->t->vertices[v];
	char text[LABEL_MAX];

	fputc('\t', d->f);
	put_text(d->f, x->name);
	fputs(" [pos=\"", d->f);
	put_at(d->f, s->x, s->y);
	fputc('"', d->f);
	put_inches(d->f, "width", s->w);
	put_inches(d->f, "height", s->h);
	if (x->is_switch) {
		hosts_text(s, text, sizeof(text));
		fprintf(d->f,
			" style=filled fillcolor=\"#dfe6ec\" label=<<b>%s</b>%s<font point-size=\"9\">"
			"%s</font>>]\n",
			x->name, text[0] == '\0' ? "" : "<br/>", text[0] == '\0' ? " " : text);
	} else {
		fputs(" style=\"rounded,filled\" fillcolor=white fontsize=10]\n", d->f);
	}
}

/* Tooltip of a link: what the drawing leaves out. */
static void put_link_tip(const struct drawing *d, const struct cn_topo_link *l)
{
	char rate[80];

	link_text(l, rate, sizeof(rate));
	fprintf(d->f, " tooltip=\"%s - %s%s%s", d->t->vertices[l->a].name,
		d->t->vertices[l->b].name, rate[0] == '\0' ? "" : ", ", rate);
	if (l->buffer != 0) {
		fprintf(d->f, ", %" PRIu32 " frames per port", l->buffer);
	}
	fputs("\"", d->f);
}

static void put_ends(const struct drawing *d, uint32_t a, uint32_t b)
{
	fputc('\t', d->f);
	put_text(d->f, d->t->vertices[a].name);
	fputs(" -> ", d->f);
	put_text(d->f, d->t->vertices[b].name);
}

/* Words on a line: a small box without a border. */
static void put_words(const struct drawing *d, const char *kind, uint32_t i, int64_t x, int64_t y,
		      const char *words, const char *colour)
{
	fprintf(d->f,
		"\t\"%s %" PRIu32 "\" [shape=plaintext style=filled fillcolor=white "
		"margin=0 height=0.13 fontsize=9 fontcolor=\"%s\"",
		kind, i, colour);
	put_inches(d->f, "width", (int64_t)strlen(words) * 46 + 20);
	fputs(" pos=\"", d->f);
	put_at(d->f, x, y);
	fputs("\" label=", d->f);
	put_text(d->f, words);
	fputs("]\n", d->f);
}

static int64_t within(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* A straight line from the parent's lower edge; with its rate when it joins switches. */
static void put_tree_link(const struct drawing *d, uint32_t v)
{
	uint32_t p = d->t->vertices[v].parent, link = d->t->vertices[v].parent_link;
	const struct spot *s = &d->spots[v], *up = &d->spots[p];
	const struct cn_topo_link *l = &d->t->links[link];
	int64_t room = up->w / 2 - 60, x = within(s->x, up->x - room, up->x + room);
	int64_t y = up->y - up->h / 2, to = s->y + s->h / 2;
	char text[80];

	put_ends(d, p, v);
	fputs(" [pos=\"", d->f);
	put_at(d->f, x, y);
	fputc(' ', d->f);
	put_at(d->f, x + (s->x - x) / 3, y + (to - y) / 3);
	fputc(' ', d->f);
	put_at(d->f, x + (s->x - x) * 2 / 3, y + (to - y) * 2 / 3);
	fputc(' ', d->f);
	put_at(d->f, s->x, to);
	fprintf(d->f, "\" penwidth=%s",
		!d->t->vertices[v].is_switch ? "0.8"
		: l->channels == 1	     ? "2"
					     : "4");
	put_link_tip(d, l);
	fputs("]\n", d->f);
	link_text(l, text, sizeof(text));
	if (d->t->vertices[v].is_switch && text[0] != '\0') {
		put_words(d, "rate", link, x + (s->x - x) * 2 / 3, y + (to - y) * 2 / 3, text,
			  "#3c474f");
	}
}

/* From the top of one switch over to the top of the other. */
static void put_unused_link(const struct drawing *d, uint32_t link)
{
	const struct cn_topo_link *l = &d->t->links[link];
	const struct spot *a = &d->spots[l->a], *b = &d->spots[l->b];
	int64_t ya = a->y + a->h / 2, yb = b->y + b->h / 2, aside = 0;
	int64_t over = larger(ya, yb) + d->level * 2 / 5;

	if (a->x - b->x < 400 && b->x - a->x < 400) {
		aside = (a->w + b->w) / 2; /* one below the other */
	}
	put_ends(d, l->a, l->b);
	fputs(" [pos=\"", d->f);
	put_at(d->f, a->x, ya);
	fputc(' ', d->f);
	put_at(d->f, a->x + (b->x - a->x) / 6 + aside, over);
	fputc(' ', d->f);
	put_at(d->f, b->x - (b->x - a->x) / 6 + aside, aside != 0 ? yb : over);
	fputc(' ', d->f);
	put_at(d->f, b->x, yb);
	fputs("\" style=dashed color=\"#a0a8ae\"", d->f);
	put_link_tip(d, l);
	fputs("]\n", d->f);
}

/* How far below the hosts an arc hangs: the logarithm of how many hosts it passes. */
static int64_t depth_of(int64_t distance, int64_t slot)
{
	int64_t depth = 180, one = slot;

	while (distance >= 2 * one) {
		one *= 2;
		depth += 120;
	}
	return depth + (distance - one) * 120 / one;
}

/* An arc, from the sender's side that looks to the target to the target's that looks back. */
static void put_message(const struct drawing *d, const struct cn_drawn *m, uint32_t i)
{
	const struct spot *a = &d->spots[m->from], *b = &d->spots[m->to];
	bool right = a->x < b->x;
	int64_t x = a->x + (right ? 3 : -1) * d->host_width / 10;
	int64_t to = b->x + (right ? -3 : 1) * d->host_width / 10;
	int64_t y = d->row - HOST_HEIGHT / 2, far = right ? to - x : x - to;
	int64_t depth = depth_of(right ? b->x - a->x : a->x - b->x, d->host_width + HOST_GAP);
	int64_t low, bend;
	const char *colour = colours[m->colour % COLOURS];

	depth += right ? 0 : 50;
	low = depth * 4 / 3;
	bend = within(far / 5, -depth / 2, depth / 2) * (right ? 1 : -1);
	put_ends(d, m->from, m->to);
	fputs(" [pos=\"e,", d->f);
	put_at(d->f, to, y);
	fputc(' ', d->f);
	put_at(d->f, x, y);
	fputc(' ', d->f);
	put_at(d->f, x + bend, y - low);
	fputc(' ', d->f);
	put_at(d->f, to - bend, y - low);
	fputc(' ', d->f);
	put_at(d->f, to - bend * 60 / low, y - 60);
	fprintf(d->f, "\" dir=forward arrowsize=0.7 penwidth=1.8 style=%s color=\"%s\"]\n",
		styles[m->colour / COLOURS % 3], colour);
	if (m->label != NULL && m->label[0] != '\0') {
		put_words(d, "message", i, (x + to) / 2, y - depth - 70, m->label, colour);
	}
}

static bool drawable(const struct cn_topo *t, const struct cn_drawn *m)
{
	return m->from < t->nvertices && m->to < t->nvertices && m->from != m->to &&
	       !t->vertices[m->from].is_switch && !t->vertices[m->to].is_switch;
}

int cn_topo_draw(const struct cn_topo *t, const struct cn_drawn *m, uint32_t n, const char *title,
		 FILE *f)
{
	struct drawing d = { .t = t, .f = f };

	d.spots = calloc(t->nvertices, sizeof(*d.spots));
	if (d.spots == NULL) {
		return COLLNET_ENOMEM;
	}
	measure(&d);
	widths(&d);
	edges(&d);
	middles(&d);
	fputs("digraph topology {\n"
	      "\tgraph [layout=nop2 outputorder=edgesfirst pad=0.2 labelloc=t fontsize=14 "
	      "fontname=\"Helvetica,Arial,sans-serif\"",
	      f);
	if (title != NULL) {
		fputs(" label=", f);
		put_text(f, title);
	}
	fputs("]\n\tnode [shape=box color=\"#5b6770\" margin=0 fontsize=11 "
	      "fontname=\"Helvetica,Arial,sans-serif\"]\n"
	      "\tedge [dir=none color=\"#5b6770\"]\n",
	      f);
	for (uint32_t v = 0; v < t->nvertices; v++) {
		put_vertex(&d, v);
	}
	for (uint32_t i = 0; i < t->nlinks; i++) {
		if (!cn_topo_in_tree(t, i)) {
			put_unused_link(&d, i);
		}
	}
	for (uint32_t i = 1; i < t->nvertices; i++) {
		put_tree_link(&d, t->order[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (drawable(t, &m[i])) {
			put_message(&d, &m[i], i);
		}
	}
	fputs("}\n", f);
	free(d.spots);
	return ferror(f) || fflush(f) != 0 ? COLLNET_ESYSTEM : COLLNET_OK;
}
