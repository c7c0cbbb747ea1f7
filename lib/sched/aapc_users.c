/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who uses a directed link just before or just after a phase, in closed form (see aapc.h).
 *
 * The link from a subtree to the root is used by all its outgoing messages and nothing else; the
 * link back by all its incoming ones. A link within a subtree, with the consecutive hosts [lo, hi)
 * below it, is used upwards by outgoing messages of senders in [lo, hi) and by local messages from
 * inside to outside of them, and downwards likewise. Those hosts are a part of a circle of |M_i|,
 * and whoever comes next in a pattern goes round that circle: so the next user is one remainder
 * away, in this row of the pattern or the one next to it. Rows are rounds in t_0, and groups, or
 * the phases of one sender in a group, elsewhere.
 */
#include "sched/aapc.h"

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
		return (struct part){part.lo + m - d, len};
	case UP: /* the receiver of global messages sends the local one: x + d inside, x outside */
		low = len > m - d ? len : m - d;
		high = len > d ? m : m + len - d;
		break;
	default: /* x inside, x + d outside */
		low = len > d ? len - d : 0;
		high = len < m - d ? len : m - d;
		break;
	}
	return (struct part){part.lo + low, high > low ? high - low : 0};
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
		struct row r = {q * m, q * m + m - 1, m};

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
		uint32_t i = cn_aapc_nth_source(a, j, nth), start = cn_aapc_start(a, i, j), found;
		struct row r = {start, start + cn_aapc_size(a, i) * m - 1, m};

		if (back && p > r.last) {
			p = r.last;
		} else if (!back && p < start) {
			p = start;
		}
		found = p > r.last ? NONE :
				     seek(&r, p, i == 0 ? cn_aapc_aligned(a, m, p) : p - start, part,
					  back);
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
	struct part from = use == UP ? part : (struct part){hi, m - part.len};

	if (p < begin) {
		if (back) {
			return NONE;
		}
		p = begin;
	}
	for (;;) {
		struct row r = {0, 0, m};
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

static bool nearer(uint32_t x, uint32_t y, bool back)
{
	return y == NONE || (x != NONE && (back ? x > y : x < y));
}

bool cn_aapc_user(const struct cn_aapc *a, uint32_t dlink, uint32_t phase, bool before,
		  struct cn_aapc_message *out)
{
	uint32_t x = dlink / 2, i = a->subtree[a->lowest[x]], p = before ? phase - 1 : phase + 1;
	bool up = dlink % 2 == 0;
	struct part part = {a->lowest[x] - a->first[i], a->tree->v[x].hosts};
	uint32_t global, local = NONE;

	if (before ? phase == 0 : p >= a->phases) {
		return false;
	}
	if (i == 0) {
		global = seek0(a, up ? OUT : IN, part, p, before);
	} else {
		global = up ? seek_out(a, i, part, p, before) : seek_in(a, i, part, p, before);
	}
	if (x != a->top[i]) {
		local = i == 0 ? seek0(a, up ? UP : DOWN, part, p, before) :
				 seek_local(a, i, up ? UP : DOWN, part, p, before);
	}
	if (global == NONE && local == NONE) {
		return false;
	}
	if (nearer(local, global, before)) {
		return cn_aapc_local(a, i, local, out);
	}
	*out = up ? cn_aapc_global(a, i, cn_aapc_target(a, i, global), global) :
		    cn_aapc_global(a, cn_aapc_source(a, i, global), i, global);
	return true;
}
