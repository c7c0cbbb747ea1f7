/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "check_oracle.h"
#include "util/bits.h"

#define EVENTS (2 * O_ACTIONS)
#define WORDS  ((EVENTS + 63) / 64)
#define NONE   UINT32_MAX
#define BYTES  256u /* of a receive buffer */

/* An action of any node. Its events: 2 i when it begins, 2 i + 1 when it ends. */
struct act {
	struct cn_action a;
	uint32_t node, place, partner; /* partner: the other side of a message */
};

static struct act acts[O_ACTIONS];
static uint32_t nacts, first[O_NODES + 1];
static uint64_t reach[EVENTS][WORDS];

static bool comes_before(uint32_t x, uint32_t y)
{
	return cn_bit(reach[x], y);
}

static void edge(uint32_t x, uint32_t y)
{
	cn_bit_set(reach[x], y);
}

static void close_graph(void)
{
	for (uint32_t k = 0; k < 2 * nacts; k++) {
		for (uint32_t i = 0; i < 2 * nacts; i++) {
			for (uint32_t w = 0; comes_before(i, k) && w < WORDS; w++) {
				reach[i][w] |= reach[k][w];
			}
		}
	}
}

static bool is_message(const struct cn_action *a)
{
	return a->kind == CN_ACT_SEND || a->kind == CN_ACT_RECV;
}

static bool empty(const struct cn_action *a)
{
	return a->src.buffer == CN_BUF_NONE;
}

static bool same_span(const struct cn_span *a, const struct cn_span *b)
{
	return a->buffer == b->buffer &&
	       (a->buffer == CN_BUF_NONE || (a->rank == b->rank && a->offset == b->offset));
}

/* ---- each action by itself ---------------------------------------------------------------- */

static bool sound_span(const struct cn_layout *l, const struct cn_plan *p, const struct cn_span *s,
		       uint64_t len, uint32_t node)
{
	bool many_out = p->op == CN_OP_ALLTOALL || p->op == CN_OP_SCATTER;
	bool many_in = p->op == CN_OP_ALLTOALL || p->op == CN_OP_ALLGATHER || p->op == CN_OP_GATHER;
	uint64_t out = p->op == CN_OP_BARRIER ? 0 : p->bytes * (many_out ? l->nranks : 1);
	uint64_t in = p->op == CN_OP_BARRIER ? 0 : p->bytes * (many_in ? l->nranks : 1);

	if (s->buffer == CN_BUF_NONE) {
		return len == 0;
	}
	if (s->rank >= l->nranks || l->node_of[s->rank] != node) {
		return false;
	}
	if (p->op == CN_OP_GATHER && s->rank != p->root) {
		in = 0;
	}
	return s->offset + len <= (s->buffer == CN_BUF_SEND ? out : in);
}

static bool sound(const struct cn_layout *l, const struct cn_plan *p, const struct cn_sched *s,
		  const struct act *x)
{
	const struct cn_action *a = &x->a, *d = &acts[first[x->node] + a->dep_on].a;

	if (a->dep != CN_DEP_NONE && a->dep_on >= x->place) {
		return false;
	}
	if (a->kind == CN_ACT_WAIT) {
		return a->dep == CN_DEP_COMPLETE;
	}
	if (a->peer >= l->nnodes || (a->peer == x->node) == is_message(a) ||
	    (is_message(a) && a->phase >= s->phases) ||
	    empty(a) != (a->dst.buffer == CN_BUF_NONE)) {
		return false;
	}
	if (a->dep == CN_DEP_STREAM && (d->kind == CN_ACT_SEND || d->kind == CN_ACT_WAIT ||
					d->len != a->len || !same_span(&a->src, &d->dst))) {
		return false;
	}
	return sound_span(l, p, &a->src, a->len, a->kind == CN_ACT_RECV ? a->peer : x->node) &&
	       sound_span(l, p, &a->dst, a->len, a->kind == CN_ACT_SEND ? a->peer : x->node);
}

/* ---- the graph ---------------------------------------------------------------------------- */

/* Joins the k-th send from a to b to the k-th receive. */
static bool match(uint32_t nnodes)
{
	for (uint32_t a = 0; a < nnodes; a++) {
		for (uint32_t b = 0; b < nnodes; b++) {
			uint32_t i = first[a], j = first[b], last = NONE;

			for (;;) {
				while (i < first[a + 1] &&
				       !(acts[i].a.kind == CN_ACT_SEND && acts[i].a.peer == b)) {
					i++;
				}
				while (j < first[b + 1] &&
				       !(acts[j].a.kind == CN_ACT_RECV && acts[j].a.peer == a)) {
					j++;
				}
				if (i == first[a + 1] || j == first[b + 1]) {
					break;
				}
				if (acts[i].a.len != acts[j].a.len ||
				    acts[i].a.phase != acts[j].a.phase ||
				    !same_span(&acts[i].a.src, &acts[j].a.src) ||
				    !same_span(&acts[i].a.dst, &acts[j].a.dst)) {
					return false;
				}
				acts[i].partner = j;
				acts[j].partner = i;
				edge(2 * i, 2 * j);
				edge(2 * i + 1, 2 * j + 1);
				if (last != NONE) {
					edge(2 * last + 1, 2 * j);
				}
				last = j++;
				i++;
			}
			if (i < first[a + 1] || j < first[b + 1]) {
				return false;
			}
		}
	}
	return true;
}

static void local_edges(uint32_t nnodes)
{
	for (uint32_t b = 0; b < nnodes; b++) {
		uint32_t before = NONE;

		for (uint32_t i = first[b]; i < first[b + 1]; i++) {
			const struct cn_action *a = &acts[i].a;
			uint32_t d = first[b] + a->dep_on;

			edge(2 * i, 2 * i + 1);
			if (a->kind == CN_ACT_RECV) {
				continue; /* frames come when they come */
			}
			if (a->dep == CN_DEP_COMPLETE) {
				edge(2 * d + 1, 2 * i);
			} else if (a->dep == CN_DEP_STREAM) {
				edge(2 * d, 2 * i);
				edge(2 * d + 1, 2 * i + 1);
			}
			if (a->kind != CN_ACT_COPY) {
				if (before != NONE) {
					edge(2 * before + 1, 2 * i);
				}
				before = i;
			}
		}
	}
}

/* ---- data --------------------------------------------------------------------------------- */

/* Who owns a byte in the end, and where in his send buffer it was: rank << 32 | offset. */
static uint64_t owed(const struct cn_plan *p, uint32_t rank, uint64_t i)
{
	uint64_t block = i / p->bytes, at = i % p->bytes;

	switch (p->op) {
	case CN_OP_ALLTOALL:
		return block << 32 | (rank * p->bytes + at);
	case CN_OP_ALLGATHER:
	case CN_OP_GATHER:
		return block << 32 | at;
	case CN_OP_SCATTER:
		return (uint64_t)p->root << 32 | (rank * p->bytes + at);
	default:
		return (uint64_t)p->root << 32 | i;
	}
}

/* The action that fills a byte: NONE, or NONE - 1 for several. */
static uint32_t writer(uint32_t node, uint32_t rank, uint64_t at)
{
	uint32_t found = NONE;

	for (uint32_t i = first[node]; i < first[node + 1]; i++) {
		const struct cn_action *a = &acts[i].a;

		if ((a->kind == CN_ACT_RECV || a->kind == CN_ACT_COPY) && a->dst.rank == rank &&
		    at >= a->dst.offset && at < a->dst.offset + a->len) {
			found = found == NONE ? i : NONE - 1;
		}
	}
	return found;
}

/* Where a byte of a receive buffer comes from in the end: back from action to action. */
static bool traced(const struct cn_layout *l, const struct cn_plan *p, uint32_t rank, uint64_t at)
{
	uint64_t want = owed(p, rank, at);
	uint32_t w = writer(l->node_of[rank], rank, at);

	for (uint32_t k = 0; k <= nacts && w < NONE - 1; k++) {
		const struct act *x = &acts[w];
		const struct cn_action *a = &x->a;
		uint32_t user = a->kind == CN_ACT_RECV ? x->partner : w;
		uint64_t from = a->src.offset + (at - a->dst.offset);
		uint32_t source;

		if (a->src.buffer == CN_BUF_SEND) {
			return want == ((uint64_t)a->src.rank << 32 | from);
		}
		source = writer(l->node_of[a->src.rank], a->src.rank, from);
		if (source >= NONE - 1) {
			return false;
		}
		if (!(acts[user].a.dep == CN_DEP_STREAM &&
		      first[acts[user].node] + acts[user].a.dep_on == source) &&
		    !comes_before(2 * source + 1, 2 * user)) {
			return false;
		}
		at = from;
		w = source;
	}
	return false;
}

static bool data_right(const struct cn_layout *l, const struct cn_plan *p)
{
	bool many = p->op == CN_OP_ALLTOALL || p->op == CN_OP_ALLGATHER || p->op == CN_OP_GATHER;
	uint64_t size = p->op == CN_OP_BARRIER ? 0 : p->bytes * (many ? l->nranks : 1);

	assert_true(size <= BYTES);
	for (uint32_t r = 0; r < l->nranks; r++) {
		if (p->op == CN_OP_GATHER && r != p->root) {
			continue;
		}
		for (uint64_t i = 0; i < size; i++) {
			if (!traced(l, p, r, i)) {
				return false;
			}
		}
	}
	return true;
}

/* ---- phases, links, order ----------------------------------------------------------------- */

static bool is_data(const struct cn_plan *p, const struct cn_action *a)
{
	return a->kind == CN_ACT_SEND && (!empty(a) || p->op == CN_OP_BARRIER);
}

static bool uses(const struct cn_layout *l, const struct act *x, uint32_t link)
{
	uint32_t path[64];
	uint32_t n = cn_tree_path(l->tree, x->node, x->a.peer, path);

	assert_true(n <= 64);
	for (uint32_t i = 0; i < n; i++) {
		if (path[i] == link) {
			return true;
		}
	}
	return false;
}

static bool one_message(const struct act *x, const struct act *y)
{
	return x->node == y->node && x->a.peer == y->a.peer && x->a.phase == y->a.phase;
}

/* No two messages of a phase at one port, or (links) on one link. */
static bool phases_free(const struct cn_layout *l, const struct cn_plan *p, bool links)
{
	for (uint32_t i = 0; i < nacts; i++) {
		for (uint32_t j = 0; j < i; j++) {
			const struct act *x = &acts[i], *y = &acts[j];

			if (!is_data(p, &x->a) || !is_data(p, &y->a) || one_message(x, y) ||
			    x->a.phase != y->a.phase) {
				continue;
			}
			if (x->node == y->node || x->a.peer == y->a.peer) {
				return false;
			}
			for (uint32_t link = 2; links && link < 2 * l->tree->n; link++) {
				if (uses(l, x, link) && uses(l, y, link)) {
					return false;
				}
			}
		}
	}
	return true;
}

/* Phases agree with what must come before what, and with the lists. */
static bool phases_hold(const struct cn_plan *p)
{
	for (uint32_t i = 0; i < nacts; i++) {
		const struct cn_action *a = &acts[i].a;
		uint32_t j = i;

		for (uint32_t k = 0; k < nacts && a->kind == CN_ACT_SEND; k++) {
			if (is_data(p, &acts[k].a) && acts[k].a.phase > a->phase &&
			    comes_before(2 * k, 2 * i)) {
				return false;
			}
		}
		if (a->kind != CN_ACT_SEND || is_data(p, a)) {
			continue;
		}
		while (j > first[acts[i].node] && !is_data(p, &acts[j].a)) {
			j--;
		}
		if (is_data(p, &acts[j].a) && acts[j].a.phase != a->phase) {
			return false;
		}
	}
	return true;
}

/* Of two messages in different phases on one link, the earlier phase's is sent first. */
static bool ordered(const struct cn_layout *l, const struct cn_plan *p)
{
	for (uint32_t link = 2; link < 2 * l->tree->n; link++) {
		for (uint32_t i = 0; i < nacts; i++) {
			for (uint32_t j = 0; j < nacts; j++) {
				if (is_data(p, &acts[i].a) && is_data(p, &acts[j].a) &&
				    acts[i].a.phase < acts[j].a.phase && uses(l, &acts[i], link) &&
				    uses(l, &acts[j], link) && !comes_before(2 * i + 1, 2 * j)) {
					return false;
				}
			}
		}
	}
	return true;
}

/* Who is through has heard of everyone's first message. */
static bool barrier_holds(uint32_t nnodes)
{
	for (uint32_t a = 0; a < nnodes; a++) {
		uint32_t send = first[a];

		while (send < first[a + 1] && acts[send].a.kind != CN_ACT_SEND) {
			send++;
		}
		for (uint32_t b = 0; b < nnodes; b++) {
			bool heard = a == b;

			for (uint32_t i = first[b]; i < first[b + 1] && send < first[a + 1]; i++) {
				heard = heard || comes_before(2 * send + 1, 2 * i + 1);
			}
			if (!heard) {
				return false;
			}
		}
	}
	return true;
}

bool o_check(const struct cn_layout *l, const struct cn_plan *p, const struct cn_sched *s,
	     unsigned guarantees, const char **why)
{
	nacts = 0;
	memset(reach, 0, sizeof(reach));
	for (uint32_t b = 0; b < l->nnodes; b++) {
		first[b] = nacts;
		for (uint32_t i = 0; i < s[b].n; i++) {
			assert_true(nacts < O_ACTIONS);
			acts[nacts++] = (struct act){ s[b].actions[i], b, i, NONE };
		}
	}
	first[l->nnodes] = nacts;
	*why = "an action";
	for (uint32_t i = 0; i < nacts; i++) {
		if (!sound(l, p, &s[acts[i].node], &acts[i])) {
			return false;
		}
	}
	*why = "phases";
	if (guarantees != 0 && !phases_free(l, p, (guarantees & CN_GUARANTEE_LINKS) != 0)) {
		return false;
	}
	*why = "lists";
	if (!match(l->nnodes)) {
		return false;
	}
	local_edges(l->nnodes);
	close_graph();
	*why = "a circle";
	for (uint32_t i = 0; i < 2 * nacts; i++) {
		if (comes_before(i, i)) {
			return false;
		}
	}
	*why = "data";
	if (!data_right(l, p) || (p->op == CN_OP_BARRIER && !barrier_holds(l->nnodes))) {
		return false;
	}
	*why = "phases that do not hold";
	if (guarantees != 0 && !phases_hold(p)) {
		return false;
	}
	*why = "order";
	if ((guarantees & CN_GUARANTEE_ORDERED) && !ordered(l, p)) {
		return false;
	}
	*why = "";
	return true;
}
