/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of collective operations: checked, planned, started when every rank of this node has
 * called (op_start.c), and failed when a rank that is needed has left. op.c runs them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"

/* Longest fragment that a rank combines at a time; at least one element (COLLNET_ELEMENT_MAX). */
static const uint64_t combine_max = (uint64_t)1 << 24;

static uint32_t local_index(const struct cn_member *m)
{
	uint32_t i = 0;

	while (m->team->local[i] != m) {
		i++;
	}
	return i;
}

/* A call: its arguments and its plan. */
struct call {
	struct cn_coll_args args;
	const struct cn_algorithm *algorithm;
	struct cn_plan plan;
};

struct cn_prepared {
	struct call call;
	struct cn_member *member;
	struct cn_op *op; /* with the plan; the operation, if this rank calls first */
};

static int check(struct cn_member *m, const struct cn_coll_args *a, struct call *out,
		 struct cn_err *err)
{
	struct cn_team *t = m->team;
	int r = cn_member_check(m, err);

	if (r != COLLNET_OK) {
		return r;
	}
	if (a->root >= t->ranks) {
		return cn_fail(err, COLLNET_EINVAL, "root %u of %u ranks: 0 .. %u is possible",
			       a->root, t->ranks, t->ranks - 1);
	}
	if (a->bytes > COLLNET_BLOCK_MAX) {
		return cn_fail(err, COLLNET_ELIMIT, "a block of %llu bytes: at most %zu",
			       (unsigned long long)a->bytes, COLLNET_BLOCK_MAX);
	}
	if (cn_op_reduces(a->op) && a->reducer == NULL) {
		return cn_fail(err, COLLNET_EINVAL, "%s without a reducer", cn_op_name(a->op));
	}
	out->args = *a;
	return cn_op_make_plan(m, a, &out->algorithm, &out->plan, err);
}

/* The first rank of this node calls operation `seq`; `op`, if not NULL, has the plan and is free.
 */
static int begin(struct cn_team *t, uint32_t seq, const struct call *c, struct cn_op *op,
		 struct cn_err *err)
{
	const struct cn_coll_args *a = &c->args;
	int r;

	cn_op_free_idle(t, CN_OPS_IDLE);
	if (op == NULL) {
		r = cn_op_request_plan(t, &c->plan, err);
		if (r != COLLNET_OK) {
			return r;
		}
		op = cn_op_get_idle(t, &c->plan);
	}
	if (op == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for an operation");
	}
	op->seq = seq;
	r = cn_op_plan(op, &c->plan, err);
	if (r != COLLNET_OK) {
		cn_op_put_idle(op);
		return r;
	}
	t->ops[seq % CN_OPS] = op;
	cn_bit_set(&t->busy, seq % CN_OPS);
	cn_transport_activate(t->transport);
	op->state = OP_POSTED;
	op->args = *a;
	op->algorithm = c->algorithm;
	cn_op_window_begin(op);
	op->deadline = op->ask_at = CN_NEVER;
	op->combine_max = a->element > 0 ? combine_max / a->element * a->element : combine_max;
	return COLLNET_OK;
}

/* Plans the call. If that fails, it also failed for the ranks of this node that called before, and
 * they have called something else meanwhile. */
static int try_plan(struct cn_team *t, const struct call *c, struct cn_err *err)
{
	struct cn_op *op;
	int r = cn_op_request_plan(t, &c->plan, err);

	if (r != COLLNET_OK) {
		return r;
	}
	op = cn_op_get_idle(t, &c->plan);
	if (op == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for an operation");
	}
	r = cn_op_plan(op, &c->plan, err);
	cn_op_put_idle(op);
	return r;
}

/* The difference of two mismatched calls. */
static const char *difference(const struct cn_plan *a, const struct cn_plan *b)
{
	if (a->op != b->op || a->making != b->making) {
		return "another operation";
	}
	if (a->bytes != b->bytes) {
		return "other sizes";
	}
	if (a->root != b->root) {
		return "another root";
	}
	if (a->element != b->element || a->function != b->function || a->ordered != b->ordered ||
	    a->user_defined != b->user_defined) {
		return "another type or reduction";
	}
	return "another algorithm";
}

/* " of N bytes"; nothing for a vector operation. */
static const char *size_of(const struct cn_coll_args *a, char *to, size_t room)
{
	*to = '\0';
	if (!cn_op_is_vector(a->op)) {
		snprintf(to, room, " of %llu bytes", (unsigned long long)a->bytes);
	}
	return to;
}

/* A rank's call differs from that of the first rank of this node that has called. */
static void mismatch(const struct cn_member *m, const struct cn_op *op, const struct call *c)
{
	struct cn_team *t = m->team;
	char mine[40], others[40];
	uint32_t i = 0;

	while (i + 1 < cn_op_locals(t) && op->posts[i].done == NULL) {
		i++;
	}
	cn_team_fail(
		t, true, COLLNET_EMISMATCH,
		"rank %u on node %s called %s%s as operation %u, where rank %u called %s%s: %s; "
		"every rank must call the same operation with the same sizes, root, types and "
		"options",
		m->rank, t->engine->config.node.name, cn_op_called(&c->args),
		size_of(&c->args, mine, sizeof(mine)), op->seq + 1, t->local[i]->rank,
		cn_op_called(&op->args), size_of(&op->args, others, sizeof(others)),
		difference(&c->plan, &op->plan));
}

/*
 * A vector operation is planned when all ranks of this node have called: each knows its own blocks
 * only.
 */
static int plan_last(struct cn_op *op, struct cn_err *err)
{
	return cn_op_is_vector(op->args.op) && op->nposts + 1 == cn_op_locals(op->team)
		       ? cn_op_plan_vector(op, err)
		       : COLLNET_OK;
}

/* The call of a rank that was checked; `own` is of a persistent operation. */
static int post(struct cn_member *m, cn_time now, const struct call *c, struct cn_op *own,
		struct cn_done *done, struct cn_err *err)
{
	const struct cn_coll_args *a = &c->args;
	struct cn_team *t = m->team;
	struct cn_op *op = t->ops[m->posted % CN_OPS];
	struct cn_post *at;
	struct cn_err why;
	int r;

	if (op != NULL && op->seq != m->posted) {
		return cn_fail(err, COLLNET_ELIMIT, "%d operations are outstanding: wait for one",
			       CN_OPS);
	}
	if (op == NULL) {
		r = begin(t, m->posted, c, own != NULL && own->state == OP_FREE ? own : NULL, err);
		if (r != COLLNET_OK) {
			return r;
		}
		op = t->ops[m->posted % CN_OPS];
	} else if (memcmp(&op->plan, &c->plan, sizeof(c->plan)) != 0) {
		r = try_plan(t, c, err);
		if (r == COLLNET_OK) {
			mismatch(m, op, c);
			r = cn_fail(err, t->status, "%s", t->text);
		}
		return r;
	}
	at = &op->posts[local_index(m)];
	*at = (struct cn_post){
		.done = done,
		.send = a->send,
		.recv = a->recv,
		.scratch = a->scratch,
		.blocks = a->blocks,
		.own = own,
		.reducer = a->reducer,
	};
	r = plan_last(op, &why);
	if (r == COLLNET_INPROGRESS) {
		memset(at, 0, sizeof(*at)); /* it calls again */
		return r;
	}
	cn_op_set_deadline(op, now, a->deadline);
	if (a->reducer != NULL) {
		a->reducer->op = op;
		a->reducer->local = local_index(m);
	}
	op->nposts++;
	m->posted++;
	cn_team_touch(t);
	for (uint32_t k = 0; k < t->layout.nnodes && t->state == CN_TEAM_READY; k++) {
		if (t->nodes[k].left.any) {
			cn_op_check_left(t, k);
		}
	}
	if (t->state != CN_TEAM_READY || op->state != OP_POSTED || op->nposts < cn_op_locals(t)) {
		return COLLNET_OK;
	}
	if (r == COLLNET_OK) {
		cn_op_start(op, now);
	} else {
		cn_team_fail(t, true, r, "operation %u (%s) on node %s: %s", op->seq + 1,
			     cn_op_name(op->args.op), t->engine->config.node.name, why.text);
	}
	cn_op_called_late(t);
	return COLLNET_OK;
}

/* The end of a call. While it waits for a task it counts as made, and its deadline applies. */
static int end_call(struct cn_member *m, cn_time now, const struct cn_coll_args *a, int r,
		    struct cn_err *err)
{
	struct cn_team *t = m->team;

	m->waits = r == COLLNET_INPROGRESS && a->deadline > now;
	if (r == COLLNET_INPROGRESS && !m->waits) {
		cn_team_fail(
			t, true, COLLNET_ETIMEOUT,
			"operation %u (%s) passed its deadline on node %s: not planned in time",
			m->posted + 1, cn_op_called(a), t->engine->config.node.name);
		r = cn_fail(err, t->status, "%s", t->text);
	}
	return r;
}

void cn_member_drops_call(struct cn_member *m)
{
	m->waits = false;
}

int cn_coll_late(struct cn_member *m, const struct cn_coll_args *a, struct cn_err *err)
{
	struct cn_team *t = m->team;
	const int r = cn_member_check(m, err);

	if (r != COLLNET_OK) {
		return r;
	}
	cn_team_fail(
		t, true, COLLNET_ETIMEOUT,
		"operation %u (%s) passed its deadline on node %s before the call of rank %u was "
		"taken",
		m->posted + 1, cn_op_called(a), t->engine->config.node.name, m->rank);
	return cn_fail(err, t->status, "%s", t->text);
}

void cn_coll_refused(struct cn_member *m, const struct cn_coll_args *a, const struct cn_err *why)
{
	struct cn_team *t = m->team;

	if (t->state == CN_TEAM_READY) {
		cn_team_fail(
			t, true, why->code,
			"operation %u (%s) of rank %u was refused on node %s, after its call had "
			"returned: %s",
			m->posted + 1, cn_op_called(a), m->rank, t->engine->config.node.name,
			why->text);
	}
}

int cn_coll_check(struct cn_member *m, cn_time now, const struct cn_coll_args *a,
		  struct cn_err *err)
{
	struct call c;
	int r = check(m, a, &c, err);

	if (r == COLLNET_OK && m->team->ops[m->posted % CN_OPS] == NULL) {
		r = cn_op_request_plan(m->team, &c.plan, err);
	}
	return end_call(m, now, a, r, err);
}

int cn_coll_post(struct cn_member *m, cn_time now, const struct cn_coll_args *a,
		 struct cn_done *done, struct cn_err *err)
{
	struct call c;
	int r = check(m, a, &c, err);

	if (r == COLLNET_OK) {
		r = post(m, now, &c, NULL, done, err);
	}
	return end_call(m, now, a, r, err);
}

int cn_coll_prepare(struct cn_member *m, const struct cn_coll_args *a, struct cn_prepared **out,
		    struct cn_err *err)
{
	struct cn_prepared *p = calloc(1, sizeof(*p));
	int r;

	if (p == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for an operation");
	}
	p->member = m;
	r = check(m, a, &p->call, err);
	if (r == COLLNET_OK) {
		r = cn_op_request_plan(m->team, &p->call.plan, err);
	}
	if (r == COLLNET_OK) {
		p->op = cn_op_new_planned(m->team, &p->call.plan);
		r = p->op == NULL ? cn_fail(err, COLLNET_ENOMEM, "no memory for an operation")
				  : cn_op_plan(p->op, &p->call.plan, err);
	}
	if (r != COLLNET_OK) {
		cn_op_free_storage(p->op);
		free(p);
		return r;
	}
	p->op->persistent = true;
	p->op->id = ++m->team->engine->prepared;
	*out = p;
	return COLLNET_OK;
}

int cn_prepared_start(struct cn_prepared *p, cn_time now, cn_time deadline, struct cn_done *done,
		      struct cn_err *err)
{
	const struct cn_team *t = p->member->team;

	if (t->state != CN_TEAM_READY) {
		return cn_fail(err, t->status, "%s", t->text);
	}
	p->call.args.deadline = deadline;
	return end_call(p->member, now, &p->call.args,
			post(p->member, now, &p->call, p->op, done, err), err);
}

int cn_prepared_late(struct cn_prepared *p, struct cn_err *err)
{
	return cn_coll_late(p->member, &p->call.args, err);
}

/* The persistent operation is released: forgets it in calls of its ranks that are posted, so that
 * their schedule is planned again. */
static void forget_own(const struct cn_op *own)
{
	const struct cn_team *t = own->team;

	for (int i = 0; i < CN_OPS; i++) {
		struct cn_op *op = t->ops[i];

		for (uint32_t k = 0; op != NULL && op->state == OP_POSTED && k < t->nlocal; k++) {
			if (op->posts[k].own == own) {
				op->posts[k].own = NULL;
			}
		}
	}
}

void cn_prepared_release(struct cn_prepared *p)
{
	if (p == NULL) {
		return;
	}
	forget_own(p->op);
	p->op->persistent = false;
	if (p->op->state == OP_FREE) {
		cn_op_free_storage(p->op);
	}
	free(p);
}

/* ---- ranks that left -------------------------------------------------------------------- */

void cn_op_check_left(struct cn_team *t, uint32_t k)
{
	const struct cn_left *l = &t->nodes[k].left;

	for (uint64_t left = t->busy; left != 0; left &= left - 1) {
		const struct cn_op *op = t->ops[cn_bit_first(left)];

		if (op->state != OP_FREE && (int32_t)(op->seq - l->after) >= 0) {
			cn_team_fail(
				t, true, COLLNET_ERANK,
				"rank %u on node %s %s after %u operations, before operation %u (%s)",
				l->rank, t->nodes[k].name, l->dead ? "died" : "left the team",
				l->after, op->seq + 1, cn_op_called(&op->args));
			return;
		}
	}
}
