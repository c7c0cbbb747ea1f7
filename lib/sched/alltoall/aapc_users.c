/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who uses which links: whether two messages share one, and who uses a directed link just before or
 * just after a phase, in closed form (see aapc.h).
 *
 * The link from a subtree to the root is used by all its outgoing messages and nothing else; the
 * link back by all its incoming ones. A link within a subtree, with the consecutive hosts [lo, hi)
 * below it, is used upwards by outgoing messages of senders in [lo, hi) and by local messages from
 * inside to outside of them, and downwards likewise. Those hosts are a part of a circle of |M_i|,
 * and whoever comes next in a pattern goes round that circle: so the next user is one remainder
 * away, in this row of the pattern or the one next to it. Rows are rounds in t_0, and groups, or
 * the phases of one sender in a group, elsewhere.
 */
#include "sched/alltoall/aapc.h"

#define NONE CN_TOPO_NONE

/* Places [lo, lo + len) of a subtree, from 0. */
struct part {
	uint32_t lo, len;
};

/* A row of a pattern: phases first .. last; at phase p a value, one more at p + 1, modulo m. */
struct row {
	uint32_t first, last, m;
};

/*
 * The phase next to p (itself, if it will do) in the row whose value lies in the part; `value` is
 * the one of p. NONE: not in this row.
 */
static uint32_t seek(const struct row *r, uint32_t p, uint32_t value, struct part part, bool back)
{
	uint32_t x = (value % r->m + r->m - part.lo % r->m) % r->m, away;

	if (part.len == 0) {
		return NONE;
	}
	if (x < part.len) {
		return p;
	}
	away = back ? x - part.len + 1 : r->m - x;
	if (away > (back ? p - r->first : r->last - p)) {
		return NONE;
	}
	return back ? p - away : p + away;
}

enum use {
	OUT,  /* to other subtrees, from the part */
	IN,   /* from other subtrees, to the part */
	UP,   /* local, from the part to outside of it */
	DOWN, /* local, from outside to inside */
};

/*
 * In round q of t_0, while x sends, x + d receives, d = (q + 1) mod m. Of senders: those that are
 * looked for, as a part of the circle (for local messages it is never in two pieces).
 */
static struct part senders0(uint32_t m, uint32_t q, enum use use, struct part part)
{
	uint32_t d = (q + 1) % m, low, high, len = part.len;

	switch (use) {
	case OUT:
		return part;
	case IN:
		return (struct part){ part.lo + m - d, len };
	case UP: /* the receiver of global messages sends the local one: x + d inside, x outside */
		low = len > m - d ? len : m - d;
		high = len > d ? m : m + len - d;
		break;
	default: /* x inside, x + d outside */
		low = len > d ? len - d : 0;
		high = len < m - d ? len : m - d;
		break;
	}
	return (struct part){ part.lo + low, high > low ? high - low : 0 };
}

static uint32_t seek0(const struct cn_aapc *a, enum use use, struct part part, uint32_t p,
		      bool back)
{
	uint32_t m = a->first[1], rounds = use == OUT || use == IN ? a->n - m : m - 1;

	if (p / m >= rounds) {
		if (!back || rounds == 0) {
			return NONE;
		}
		p = rounds * m - 1;
	}
	for (;;) {
		uint32_t q = p / m, found;
		struct row r = { q * m, q * m + m - 1, m };

		found = seek(&r, p, p - r.first + cn_aapc_turn(a, q), senders0(m, q, use, part),
			     back);
		if (found != NONE || (back ? q == 0 : q + 1 == rounds)) {
			return found;
		}
		p = back ? r.first - 1 : r.last + 1;
	}
}

/* Outgoing messages of t_i, i > 0: in a group every sender has |M_j| phases, in order. */
static uint32_t seek_out(const struct cn_aapc *a, uint32_t i, struct part part, uint32_t p,
			 bool back)
{
	uint32_t nth = cn_aapc_group_out(a, i, p);

	for (;;) {
		uint32_t j = cn_aapc_nth_target(a, i, nth), mj = cn_aapc_size(a, j);
		uint32_t start = cn_aapc_start(a, i, j);
		uint32_t from = start + part.lo * mj, to = from + part.len * mj;

		if (back && p >= from) {
			return p < to ? p : to - 1;
		}
		if (!back && p < to) {
			return p > from ? p : from;
		}
		if (back ? nth == 0 : nth + 2 == a->k) {
			return NONE;
		}
		nth = back ? nth - 1 : nth + 1;
	}
}

/* Incoming messages of t_j, j > 0: in a group all receivers in turn. */
static uint32_t seek_in(const struct cn_aapc *a, uint32_t j, struct part part, uint32_t p,
			bool back)
{
	uint32_t nth = cn_aapc_group_in(a, j, p), m = cn_aapc_size(a, j);

	for (;;) {
		uint32_t i = cn_aapc_nth_source(a, j, nth), start = cn_aapc_start(a, i, j);
		uint32_t value, found;
		struct row r = { start, start + cn_aapc_size(a, i) * m - 1, m };

		if (back && p > r.last) {
			p = r.last;
		} else if (!back && p < start) {
			p = start;
		}
		value = i == 0 ? cn_aapc_aligned(a, m, p) : p - start;
		found = p > r.last ? NONE : seek(&r, p, value, part, back);
		if (found != NONE || (back ? nth == 0 : nth + 2 == a->k)) {
			return found;
		}
		p = back ? start - 1 : r.last + 1;
		nth = back ? nth - 1 : nth + 1;
	}
}

/*
 * Local messages of t_i, i > 0: to y in the first |M_i| phases of those in which y sends to
 * t_(i-1), from every other in turn.
 */
static uint32_t seek_local(const struct cn_aapc *a, uint32_t i, enum use use, struct part part,
			   uint32_t p, bool back)
{
	uint32_t m = cn_aapc_size(a, i), each = cn_aapc_size(a, i - 1), hi = part.lo + part.len;
	uint32_t begin = a->phases - m * each, y;
	struct part from = use == UP ? part : (struct part){ hi, m - part.len };

	if (p < begin) {
		if (back) {
			return NONE;
		}
		p = begin;
	}
	for (;;) {
		struct row r = { 0, 0, m };
		uint32_t found;

		y = (p - begin) / each;
		if (use == UP && y >= part.lo && y < hi) { /* past them all */
			if (back ? part.lo == 0 : hi == m) {
				return NONE;
			}
			y = back ? part.lo - 1 : hi;
		} else if (use == DOWN && (back ? y >= hi : y < part.lo)) {
			y = back ? hi - 1 : part.lo;
		} else if (use == DOWN && (back ? y < part.lo : y >= hi)) {
			return NONE;
		}
		r.first = begin + y * each;
		r.last = r.first + m - 1;
		if (back && p > r.last) {
			p = r.last;
		} else if (!back && p < r.first) {
			p = r.first;
		}
		found = p > r.last ? NONE : seek(&r, p, cn_aapc_aligned(a, m, p), from, back);
		if (found != NONE || (back ? y == 0 : y + 1 == m)) {
			return found;
		}
		p = back ? r.first - 1 : r.first + each;
	}
}

/* By phase: the global and the local user of a link next to p. */
static uint32_t seek_global(const struct cn_aapc *a, uint32_t dlink, uint32_t p, bool back)
{
	uint32_t x = dlink / 2, i = a->subtree[a->lowest[x]];
	struct part part = { a->lowest[x] - a->first[i], a->tree->v[x].hosts };

	if (i == 0) {
		return seek0(a, dlink % 2 == 0 ? OUT : IN, part, p, back);
	}
	return dlink % 2 == 0 ? seek_out(a, i, part, p, back) : seek_in(a, i, part, p, back);
}

static uint32_t seek_inside(const struct cn_aapc *a, uint32_t dlink, uint32_t p, bool back)
{
	uint32_t x = dlink / 2, i = a->subtree[a->lowest[x]];
	struct part part = { a->lowest[x] - a->first[i], a->tree->v[x].hosts };

	if (part.len == cn_aapc_size(a, i)) {
		return NONE; /* nobody is outside */
	}
	return i == 0 ? seek0(a, dlink % 2 == 0 ? UP : DOWN, part, p, back)
		      : seek_local(a, i, dlink % 2 == 0 ? UP : DOWN, part, p, back);
}

static bool message_at(const struct cn_aapc *a, uint32_t dlink, uint32_t phase, bool local,
		       struct cn_aapc_message *out)
{
	uint32_t i = a->subtree[a->lowest[dlink / 2]];

	if (phase == NONE) {
		return false;
	}
	if (local) {
		return cn_aapc_local(a, i, phase, out);
	}
	*out = dlink % 2 == 0 ? cn_aapc_global(a, i, cn_aapc_target(a, i, phase), phase)
			      : cn_aapc_global(a, cn_aapc_source(a, i, phase), i, phase);
	return true;
}

bool cn_aapc_user(const struct cn_aapc *a, uint32_t dlink, uint32_t phase, bool before,
		  enum cn_aapc_kind kind, struct cn_aapc_message *out)
{
	uint32_t p = before ? phase - 1 : phase + 1, global = NONE, local = NONE; /* NONE + 1: 0 */

	if (before ? phase == 0 : p >= a->phases) {
		return false;
	}
	if (kind != CN_AAPC_LOCAL) {
		global = seek_global(a, dlink, p, before);
	}
	if (kind != CN_AAPC_GLOBAL) {
		local = seek_inside(a, dlink, p, before);
	}
	if (local != NONE && (global == NONE || (before ? local > global : local < global))) {
		return message_at(a, dlink, local, true, out);
	}
	return message_at(a, dlink, global, false, out);
}

uint32_t cn_aapc_local_before(const struct cn_aapc *a, uint32_t dlink, uint32_t phase)
{
	return phase == 0 ? NONE : seek_inside(a, dlink, phase - 1, true);
}

/* ---- what two messages share --------------------------------------------------------------- */

struct cn_aapc_route cn_aapc_local_route(const struct cn_aapc *a, const struct cn_aapc_message *m)
{
	const struct cn_tree *t = a->tree;
	uint32_t from = t->host[a->node[m->from]], to = t->host[a->node[m->to]];
	struct cn_aapc_route r = { a->subtree[m->from], from, to, from, to };

	while (!cn_tree_below(t, to, t->v[r.up].parent)) {
		r.up = t->v[r.up].parent;
	}
	while (t->v[r.down].parent != t->v[r.up].parent) {
		r.down = t->v[r.down].parent;
	}
	return r;
}

/* What the message uses of subtree i. */
static struct cn_aapc_route route_in(const struct cn_aapc *a, const struct cn_aapc_message *m,
				     uint32_t i)
{
	const struct cn_tree *t = a->tree;
	struct cn_aapc_route r = { i, NONE, NONE, NONE, NONE };

	if (a->subtree[m->from] == i && a->subtree[m->to] == i) {
		return cn_aapc_local_route(a, m);
	}
	if (a->subtree[m->from] == i) {
		r.from = t->host[a->node[m->from]];
		r.up = a->top[i];
	}
	if (a->subtree[m->to] == i) {
		r.to = t->host[a->node[m->to]];
		r.down = a->top[i];
	}
	return r;
}

/*
 * Two ways up, from x to the link above its ancestor top_x and from y to that above top_y: they
 * share a link if they meet below the lower one of the tops, or in it.
 */
static bool ways_share(const struct cn_tree *t, uint32_t x, uint32_t top_x, uint32_t y,
		       uint32_t top_y)
{
	if (x == NONE || y == NONE) {
		return false;
	}
	if (cn_tree_below(t, top_x, top_y)) {
		return cn_tree_below(t, y, top_x);
	}
	return cn_tree_below(t, top_y, top_x) && cn_tree_below(t, x, top_y);
}

static bool share_in(const struct cn_aapc *a, const struct cn_aapc_message *x,
		     const struct cn_aapc_message *y, uint32_t i)
{
	struct cn_aapc_route p = route_in(a, x, i), q = route_in(a, y, i);

	return ways_share(a->tree, p.from, p.up, q.from, q.up) ||
	       ways_share(a->tree, p.to, p.down, q.to, q.down);
}

bool cn_aapc_share(const struct cn_aapc *a, const struct cn_aapc_message *x,
		   const struct cn_aapc_message *y)
{
	if (x->from == y->from || x->to == y->to) {
		return true;
	}
	if (cn_aapc_is_local(a, x)) {
		return share_in(a, x, y, a->subtree[x->from]);
	}
	if (cn_aapc_is_local(a, y)) {
		return share_in(a, x, y, a->subtree[y->from]);
	}
	return a->subtree[x->from] == a->subtree[y->from] || a->subtree[x->to] == a->subtree[y->to];
}
