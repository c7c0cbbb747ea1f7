/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker: the data of reductions. A position may be written more than once, and its contents
 * are not known beforehand, so all schedules are executed together on symbolic values: the ranks
 * whose contributions are combined, and the byte of a send buffer that the first byte belongs to.
 *
 * Each contribution is combined once, and only with the same bytes of others; where the operation
 * requires it, only with adjacent ranks. An action reads the result of the action that it depends
 * on, and data that a send or a copy has read is not written again. A message or a copy has one
 * value, a part of one, or several consecutive ones. At the end every byte of a result has exactly
 * the contributions that belong to it. In an allreduce the results of all ranks are combined in the
 * same way, with the same operands on the left: commutative operations are not so for NaN and zeros
 * with signs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/plan/check_parts.h"
#include "util/vector.h"
#include "util/bits.h"

/* What is at a place: one write of `len` bytes. */
struct cell {
	struct cn_span at;
	uint64_t len;
	uint64_t origin; /* in the send buffers */
	uint64_t way;	 /* a hash of how it was combined */
	uint32_t writer; /* action of the node */
	bool read;	 /* by a send or a copy: it must not change */
	uint64_t *ranks; /* a bit each */
};

struct node {
	struct cell *cells;
	uint32_t ncells, cap;
	uint32_t *send_of; /* [sends] their actions */
	uint32_t *recv_of;
	uint32_t *before; /* [n] REDUCE: the one before it of the same rank; SEND, WAIT in turn: the
			     SEND or WAIT before it; CN_CHECK_NONE */
	uint32_t *number; /* [n] of a send or receive */
	bool *done;
};

struct run {
	struct cn_check *c;
	struct cn_err *wrong;
	struct node *nodes;
	uint32_t words; /* of a set of ranks */
	uint32_t node;	/* of the action that is carried out */
	uint32_t action;
	uint64_t *set; /* [words] its operand */
};

static bool ordered(const struct cn_check *c)
{
	return c->plan.ordered || c->plan.op == CN_OP_SCAN || c->plan.op == CN_OP_EXSCAN;
}

static void fault(struct run *r, const char *what)
{
	char name[CN_CHECK_NAME];

	if (r->wrong->code == 0) {
		cn_fail(r->wrong, COLLNET_EINVAL, "%s, action %u: %s",
			cn_check_name(r->c, r->node, name), r->action, what);
	}
}

/* ---- dependencies ----------------------------------------------------------------------- */

/* Whether action i of the node waits for action w, directly or not: reductions of a rank and sends
 * in turn follow one another, and a send begins when those before it have begun. */
static bool waits_for(const struct run *r, uint32_t node, uint32_t i, uint32_t w)
{
	const struct cn_action *a = &r->c->nodes[node].actions[i];
	const struct node *n = &r->nodes[node];

	if (i == w) {
		return true;
	}
	if (i < w) {
		return false; /* dependencies point backwards */
	}
	return (n->before[i] != CN_CHECK_NONE && waits_for(r, node, n->before[i], w)) ||
	       (a->dep != CN_DEP_NONE && waits_for(r, node, a->dep_on, w)) ||
	       (a->kind == CN_ACT_REDUCE && a->after != i && waits_for(r, node, a->after, w));
}

/* ---- values ----------------------------------------------------------------------------- */

static struct cell *find(const struct run *r, uint32_t node, const struct cn_span *s, uint64_t len)
{
	struct node *n = &r->nodes[node];

	for (uint32_t i = n->ncells; i-- > 0;) {
		struct cell *x = &n->cells[i];

		if (x->at.buffer == s->buffer && x->at.rank == s->rank &&
		    x->at.offset < s->offset + len && s->offset < x->at.offset + x->len) {
			return x;
		}
	}
	return NULL;
}

/* Besides its ranks: where a value is from, and how it was combined. */
struct value {
	uint64_t origin, way;
};

/* The value at a place of this node, or a part of it: its ranks into `set`. False: there is none.
 */
static bool read_value(struct run *r, const struct cn_span *s, uint64_t len, bool keeps,
		       uint64_t *set, struct value *out)
{
	struct cell *x;

	memset(set, 0, r->words * sizeof(*set));
	if (s->buffer == CN_BUF_SEND) {
		cn_bit_set(set, s->rank);
		*out = (struct value){ s->offset, cn_mix64(s->rank) };
		return true;
	}
	x = find(r, r->node, s, len);
	if (x == NULL || x->at.offset > s->offset || x->at.offset + x->len < s->offset + len) {
		fault(r, "it uses a value that no action computes");
		return false;
	}
	if (!waits_for(r, r->node, r->action, x->writer)) {
		fault(r, "it does not wait for its operands");
		return false;
	}
	x->read = x->read || keeps;
	memcpy(set, x->ranks, r->words * sizeof(*set));
	*out = (struct value){ x->origin + (s->offset - x->at.offset), x->way };
	return true;
}

static int write_value(struct run *r, const struct cn_span *s, uint64_t len, struct value v,
		       const uint64_t *set, struct cn_err *err)
{
	struct node *n = &r->nodes[r->node];
	struct cell *x = find(r, r->node, s, len), *more;

	if (x != NULL) {
		if (x->at.offset != s->offset || x->len != len || x->read ||
		    r->c->nodes[r->node].actions[r->action].kind != CN_ACT_REDUCE) {
			fault(r,
			      "it overwrites data that was sent or copied, or part of another value");
			return COLLNET_OK;
		}
	} else {
		more = cn_vector_grow(n->cells, n->ncells, &n->cap, sizeof(*more));
		if (more == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory to check the data");
		}
		n->cells = more;
		x = &n->cells[n->ncells];
		*x = (struct cell){ .at = *s, .len = len };
		x->ranks = malloc(r->words * sizeof(*x->ranks));
		if (x->ranks == NULL) {
			return cn_fail(err, COLLNET_ENOMEM, "no memory to check the data");
		}
		n->ncells++;
	}
	x->origin = v.origin;
	x->way = v.way;
	x->writer = r->action;
	memcpy(x->ranks, set, r->words * sizeof(*set));
	return COLLNET_OK;
}

/* The lowest and the highest rank of a set. */
static void ends(const struct run *r, const uint64_t *set, uint32_t *low, uint32_t *high)
{
	*low = CN_CHECK_NONE;
	*high = 0;
	for (uint32_t k = 0; k < r->c->l->nranks; k++) {
		if (cn_bit(set, k)) {
			*low = *low == CN_CHECK_NONE ? k : *low;
			*high = k;
		}
	}
}

/* set := left and right together. */
static void unite(struct run *r, uint64_t *left, const uint64_t *right)
{
	uint32_t a, b, c, d;

	ends(r, left, &a, &b);
	ends(r, right, &c, &d);
	if (ordered(r->c) && b + 1 != c) {
		fault(r, "its operands are not adjacent in the order of the ranks");
	}
	for (uint32_t w = 0; w < r->words; w++) {
		if (left[w] & right[w]) {
			fault(r, "it combines a contribution twice");
		}
		left[w] |= right[w];
	}
}

/* ---- actions ---------------------------------------------------------------------------- */

/* Bytes of the value at a place, of the `len` that are wanted: to the end of a cell, or all. */
static uint64_t one_value(const struct run *r, const struct cn_span *s, uint64_t len)
{
	const struct cell *x = s->buffer == CN_BUF_SEND ? NULL : find(r, r->node, s, 1);

	const uint64_t left = x != NULL ? x->at.offset + x->len - s->offset : len;

	return left < len ? left : len;
}

/* The values that the sender of a message has there, or that a copy takes, which do not change. */
static int receive(struct run *r, const struct cn_action *a, uint32_t from, uint32_t send,
		   struct cn_err *err)
{
	const uint32_t to = r->node, action = r->action;
	struct value v = { 0 };
	uint64_t n;
	int rc = COLLNET_OK;

	for (uint64_t at = 0; at < a->len && rc == COLLNET_OK && r->wrong->code == 0; at += n) {
		struct cn_span src = a->src, dst = a->dst;

		src.offset += at;
		dst.offset += at;
		r->node = from;
		r->action = send;
		n = one_value(r, &src, a->len - at);
		read_value(r, &src, n, true, r->set, &v);
		r->node = to;
		r->action = action;
		if (r->wrong->code == 0) {
			rc = write_value(r, &dst, n, v, r->set, err);
		}
	}
	return rc;
}

static int carry_out(struct run *r, const struct cn_action *a, struct cn_err *err)
{
	uint64_t *left = r->set, *right = r->set + r->words;
	struct value v, other;
	const struct cn_check_node *n = &r->c->nodes[r->node];

	if (a->len == 0 || a->src.buffer == CN_BUF_DIGEST) {
		return COLLNET_OK;
	}
	if (a->kind == CN_ACT_RECV) {
		const uint32_t j = r->nodes[r->node].number[r->action];
		const uint32_t g = r->c->match[r->c->rbase[r->node] + j];
		const uint32_t from = n->recv[j].from;

		return receive(r, a, from, r->nodes[from].send_of[g - r->c->base[from]], err);
	}
	if (a->kind == CN_ACT_SEND || a->kind == CN_ACT_WAIT) {
		return COLLNET_OK; /* read when it is received */
	}
	if (a->kind == CN_ACT_COPY) {
		return receive(r, a, r->node, r->action, err);
	}
	if (!read_value(r, &a->src, a->len, false, left, &v) ||
	    !read_value(r, &a->right, a->len, false, right, &other)) {
		return COLLNET_OK;
	}
	if (v.origin != other.origin) {
		fault(r, "it combines different bytes");
	}
	unite(r, left, right);
	v.way = cn_mix64(cn_mix64(v.way) + other.way);
	return write_value(r, &a->dst, a->len, v, left, err);
}

static bool ready(const struct run *r, uint32_t node, uint32_t i)
{
	const struct cn_action *a = &r->c->nodes[node].actions[i];
	const struct node *n = &r->nodes[node];

	if (a->kind == CN_ACT_RECV) {
		const uint32_t from = a->peer;
		const uint32_t g = r->c->match[r->c->rbase[node] + n->number[i]];

		return r->nodes[from].done[r->nodes[from].send_of[g - r->c->base[from]]];
	}
	return (a->dep == CN_DEP_NONE || n->done[a->dep_on]) &&
	       (a->kind != CN_ACT_REDUCE || a->after == i || n->done[a->after]) &&
	       (n->before[i] == CN_CHECK_NONE || n->done[n->before[i]]);
}

static int carry_out_all(struct run *r, struct cn_err *err)
{
	bool moved = true;
	int rc = COLLNET_OK;

	while (moved && rc == COLLNET_OK && r->wrong->code == 0) {
		moved = false;
		for (uint32_t b = 0; b < r->c->l->nnodes; b++) {
			for (uint32_t i = 0; i < r->c->nodes[b].nactions && rc == COLLNET_OK; i++) {
				if (!r->nodes[b].done[i] && ready(r, b, i)) {
					r->node = b;
					r->action = i;
					rc = carry_out(r, &r->c->nodes[b].actions[i], err);
					r->nodes[b].done[i] = moved = true;
				}
			}
		}
	}
	return rc;
}

/* ---- results ---------------------------------------------------------------------------- */

static bool belongs(const struct run *r, uint32_t rank, uint32_t from)
{
	switch (r->c->plan.op) {
	case CN_OP_SCAN:
		return from <= rank;
	case CN_OP_EXSCAN:
		return from < rank;
	default:
		return true;
	}
}

static void check_result(struct run *r, uint32_t rank)
{
	const struct cn_plan *p = &r->c->plan;
	const uint32_t node = r->c->l->node_of[rank];
	const uint64_t size = cn_check_recv_size(r->c, rank);
	const uint64_t origin = p->blocks != NULL		? p->blocks[0].send[rank].at
				: p->op == CN_OP_REDUCE_SCATTER ? rank * p->bytes
								: 0;
	char name[CN_CHECK_NAME];
	uint64_t at = 0;

	while (at < size && r->wrong->code == 0) {
		const struct cn_span s = { CN_BUF_RECV, rank, at };
		const struct cell *x = find(r, node, &s, 1);

		cn_check_name(r->c, node, name);
		if (x == NULL || x->at.offset != at) {
			cn_fail(r->wrong, COLLNET_EINVAL,
				"rank %u on %s never gets byte %llu of its result", rank, name,
				(unsigned long long)at);
			return;
		}
		for (uint32_t k = 0; k < r->c->l->nranks; k++) {
			const bool is = cn_bit(x->ranks, k);

			if (is != belongs(r, rank, k) || x->origin != origin + at) {
				cn_fail(r->wrong, COLLNET_EINVAL,
					"byte %llu of the result of rank %u on %s is wrong: the "
					"contribution of rank %u",
					(unsigned long long)at, rank, name, k);
				return;
			}
		}
		at += x->len;
	}
}

/* The result of a rank is combined as that of rank 0. */
static void check_ways(struct run *r, uint32_t rank)
{
	const uint64_t size = cn_check_recv_size(r->c, rank);
	struct cn_span mine = { CN_BUF_RECV, rank, 0 }, first = { CN_BUF_RECV, 0, 0 };
	char name[CN_CHECK_NAME];

	while (mine.offset < size && r->wrong->code == 0) {
		const struct cell *x = find(r, r->c->l->node_of[rank], &mine, 1),
				  *y = find(r, r->c->l->node_of[0], &first, 1);
		const uint64_t a = x->at.offset + x->len, b = y->at.offset + y->len;

		if (x->way != y->way) {
			cn_fail(r->wrong, COLLNET_EINVAL,
				"byte %llu of the result of rank %u on %s is not combined as that "
				"of rank 0",
				(unsigned long long)mine.offset, rank,
				cn_check_name(r->c, r->c->l->node_of[rank], name));
		}
		mine.offset = first.offset = a < b ? a : b;
	}
}

/* ---- numbers of actions ------------------------------------------------------------------ */

static void free_numbers(struct node *n)
{
	free(n->send_of);
	free(n->recv_of);
	free(n->before);
	free(n->number);
	free(n->done);
}

static bool number_actions(const struct run *r, const struct cn_check_node *c, struct node *n)
{
	uint32_t sends = 0, recvs = 0, turn = CN_CHECK_NONE;
	uint32_t *last = malloc((r->c->l->nranks + 1) * sizeof(*last));

	n->send_of = malloc((c->nsent + 1) * sizeof(*n->send_of));
	n->recv_of = malloc((c->nrecv + 1) * sizeof(*n->recv_of));
	n->before = malloc((c->nactions + 1) * sizeof(*n->before));
	n->number = calloc(c->nactions + 1, sizeof(*n->number));
	n->done = calloc(c->nactions + 1, sizeof(*n->done));
	if (last == NULL || n->send_of == NULL || n->recv_of == NULL || n->before == NULL ||
	    n->number == NULL || n->done == NULL) {
		free(last);
		return false;
	}
	memset(last, 0xff, (r->c->l->nranks + 1) * sizeof(*last));
	for (uint32_t i = 0; i < c->nactions; i++) {
		const struct cn_action *a = &c->actions[i];

		n->before[i] = CN_CHECK_NONE;
		if (c->in_turn && (a->kind == CN_ACT_SEND || a->kind == CN_ACT_WAIT)) {
			n->before[i] = turn;
			turn = i;
		}
		if (a->kind == CN_ACT_SEND) {
			n->number[i] = sends;
			n->send_of[sends++] = i;
		} else if (a->kind == CN_ACT_RECV) {
			n->number[i] = recvs;
			n->recv_of[recvs++] = i;
		} else if (a->kind == CN_ACT_REDUCE) {
			n->before[i] = last[a->dst.rank];
			last[a->dst.rank] = i;
		}
	}
	free(last);
	return true;
}

/* ---- one node's schedule ---------------------------------------------------------------- */

/* The receives that action i waits for, directly or not, that no step before has waited for. */
struct waits {
	struct cn_check_node *n;
	const struct cn_sched *s;
	const uint32_t *before, *number;
	bool *seen;
	bool some; /* sends wait for what comes */
};

static void add_waits(struct waits *w, uint32_t i)
{
	const struct cn_action *a = &w->s->actions[i];

	if (w->seen[i]) {
		return;
	}
	w->seen[i] = true;
	if (a->kind == CN_ACT_RECV) {
		w->some = true;
		w->n->recv[w->number[i]].after = 1;
		w->n->steps[w->n->nsteps++] = (uint32_t)CN_CHECK_WAIT << CN_CHECK_SHIFT |
					      w->number[i];
		return;
	}
	if (a->dep != CN_DEP_NONE) {
		add_waits(w, a->dep_on);
	}
	if (a->kind == CN_ACT_REDUCE && a->after != i) {
		add_waits(w, a->after);
	}
	if (a->kind == CN_ACT_REDUCE && w->before[i] != CN_CHECK_NONE) {
		add_waits(w, w->before[i]);
	}
}

int cn_check_reduce_steps(struct cn_check *c, uint32_t node, const struct cn_sched *s,
			  struct cn_err *err)
{
	struct cn_check_node *n = &c->nodes[node];
	struct node numbers = { 0 };
	struct run r = { .c = c, .nodes = &numbers };
	struct waits w = { .n = n, .s = s };
	int rc = COLLNET_OK;

	n->actions = malloc((s->n + 1) * sizeof(*n->actions));
	n->steps = malloc(((size_t)n->nsent + n->nrecv + 1) * sizeof(*n->steps));
	w.seen = calloc(s->n + 1, sizeof(*w.seen));
	if (n->actions != NULL && n->steps != NULL && w.seen != NULL) {
		if (s->n > 0) {
			memcpy(n->actions, s->actions, s->n * sizeof(*n->actions));
		}
		n->nactions = s->n;
	}
	if (n->nactions != s->n || !number_actions(&r, n, &numbers)) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory to check %u actions", s->n);
	}
	w.before = numbers.before;
	w.number = numbers.number;
	for (uint32_t i = 0; rc == COLLNET_OK && i < s->n; i++) {
		const struct cn_action *a = &s->actions[i];

		if ((a->kind == CN_ACT_SEND || a->kind == CN_ACT_WAIT) && a->dep != CN_DEP_NONE) {
			add_waits(&w, a->dep_on);
		}
		if (a->kind == CN_ACT_SEND) {
			n->steps[n->nsteps++] = CN_CHECK_SEND;
		}
	}
	if (w.some) {
		cn_check_waits(c, node, s);
	}
	free(w.seen);
	free_numbers(&numbers);
	return rc;
}

/* ---- all together ----------------------------------------------------------------------- */

int cn_check_reduce(struct cn_check *c, struct cn_err *wrong, struct cn_err *err)
{
	struct run r = { .c = c, .wrong = wrong, .words = c->l->nranks / 64 + 1 };
	int rc = COLLNET_OK;

	r.nodes = calloc(c->l->nnodes, sizeof(*r.nodes));
	r.set = calloc(2 * (size_t)r.words, sizeof(*r.set));
	for (uint32_t b = 0; r.nodes != NULL && b < c->l->nnodes && rc == COLLNET_OK; b++) {
		rc = number_actions(&r, &c->nodes[b], &r.nodes[b]) ? COLLNET_OK : COLLNET_ENOMEM;
	}
	if (r.nodes == NULL || r.set == NULL || rc != COLLNET_OK) {
		rc = cn_fail(err, COLLNET_ENOMEM, "no memory to check the data");
	} else {
		rc = carry_out_all(&r, err);
	}
	for (uint32_t rank = 0; rc == COLLNET_OK && wrong->code == 0 && rank < c->l->nranks;
	     rank++) {
		check_result(&r, rank);
	}
	for (uint32_t rank = 1; rc == COLLNET_OK && wrong->code == 0 && rank < c->l->nranks &&
				c->plan.op == CN_OP_ALLREDUCE;
	     rank++) {
		check_ways(&r, rank);
	}
	for (uint32_t b = 0; r.nodes != NULL && b < c->l->nnodes; b++) {
		struct node *n = &r.nodes[b];

		for (uint32_t i = 0; i < n->ncells; i++) {
			free(n->cells[i].ranks);
		}
		free(n->cells);
		free_numbers(n);
	}
	free(r.nodes);
	free(r.set);
	return rc;
}
