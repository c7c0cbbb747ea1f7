/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of collective operations: checked, planned, started when every rank of this node has
 * called (op_start.c), and failed when a rank that is needed has left. op.c runs them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/combine.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "sched/select.h"

/* Bytes of what a rank is given to combine at a time; at least one element (COLLNET_ELEMENT_MAX).
 */
static const uint64_t combine_max = (uint64_t)1 << 24;

/* ---- starting ------------------------------------------------------------------------- */

static int make_room(struct cn_op *op, struct cn_err *err)
{
	uint32_t n = op->sched.n;

	if (n > op->progress_cap) {
		struct cn_progress *p = realloc(op->progress, n * sizeof(*p));

		if (p == NULL) {
			return cn_fail(err, COLLNET_ENOMEM,
				       "no memory for a schedule of %u actions", n);
		}
		op->progress = p;
		op->progress_cap = n;
	}
	return COLLNET_OK;
}

/* The schedule of this node, and room to run it. */
static int make_schedule(struct cn_op *op, const struct cn_plan *p, struct cn_err *err)
{
	struct cn_team *t = op->team;
	const uint64_t most = t->engine->config.max_schedules / sizeof(struct cn_action);
	const uint64_t before = cn_op_bytes(op);
	int r;

	t->engine->plans++;
	op->sched.most = most < UINT32_MAX ? (uint32_t)most : 0;
	r = cn_sched_plan(&t->layout, p, t->me, &op->sched, err);
	if (r == COLLNET_OK) {
		r = make_room(op, err);
	}
	cn_op_count(op, before);
	if (r == COLLNET_OK) {
		r = cn_op_check_schedules(t, err);
	}
	if (r != COLLNET_OK) {
		cn_op_drop_schedule(op);
	}
	return r;
}

static int plan(struct cn_op *op, const struct cn_plan *p, struct cn_err *err)
{
	int r = COLLNET_OK;

	if (cn_op_is_vector(p->op)) {
		op->plan = *p;
		r = cn_op_check_schedules(op->team, err);
	} else if (memcmp(&op->plan, p, sizeof(*p)) != 0) {
		memset(&op->plan, 0, sizeof(op->plan));
		r = make_schedule(op, p, err);
		if (r == COLLNET_OK) {
			op->plan = *p;
		}
	}
	return r;
}

/* The persistent operation that the local rank i has started; 0: none. */
static uint64_t id_of(const struct cn_op *op, uint32_t i)
{
	return op->posts[i].own != NULL ? op->posts[i].own->id : 0;
}

/* Whether `from` has the schedule of the persistent operations that make up `op`. */
static bool is_planned(const struct cn_op *op, const struct cn_op *from)
{
	for (uint32_t i = 0; i < cn_op_locals(op->team); i++) {
		if (id_of(op, i) == 0 || from->planned_for[i] != id_of(op, i)) {
			return false;
		}
	}
	return true;
}

/* Another rank may have called first the last time, and its operation has the schedule. */
static bool find_planned(struct cn_op *op)
{
	const struct cn_sched sched = op->sched;
	struct cn_progress *const progress = op->progress;
	uint64_t *const planned_for = op->planned_for;
	const uint32_t cap = op->progress_cap;

	if (is_planned(op, op)) {
		return true;
	}
	for (uint32_t i = 0; i < cn_op_locals(op->team); i++) {
		struct cn_op *o = op->posts[i].own;

		if (o != NULL && o->state == OP_FREE && is_planned(op, o)) {
			op->sched = o->sched;
			op->progress = o->progress;
			op->progress_cap = o->progress_cap;
			op->planned_for = o->planned_for;
			o->sched = sched;
			o->progress = progress;
			o->progress_cap = cap;
			o->planned_for = planned_for;
			return true;
		}
	}
	return false;
}

/*
 * A vector operation is planned when all ranks of this node have called: each knows its own blocks
 * only. False: the team has failed.
 */
static bool plan_vector(struct cn_op *op)
{
	uint32_t n = cn_op_locals(op->team);
	struct cn_blocks *blocks = calloc(n, sizeof(*blocks));
	struct cn_plan p = op->plan;
	struct cn_err err;
	int r;

	for (uint32_t i = 0; blocks != NULL && i < n; i++) {
		blocks[i] = op->posts[i].blocks;
		op->planned_for[i] = id_of(op, i);
	}
	p.blocks = blocks;
	r = blocks != NULL ? make_schedule(op, &p, &err)
			   : cn_fail(&err, COLLNET_ENOMEM, "no memory for a schedule");
	free(blocks);
	if (r != COLLNET_OK) {
		cn_team_fail(op->team, true, r, "operation %u (%s) on node %s: %s", op->seq + 1,
			     cn_op_name(op->args.op), op->team->engine->config.node.name, err.text);
	}
	return r == COLLNET_OK;
}

static void start(struct cn_op *op, cn_time now)
{
	if (!cn_op_is_vector(op->args.op) || find_planned(op) || plan_vector(op)) {
		cn_op_start(op, now);
	}
}

/* The algorithm with the smallest predicted time; what was selected is kept for calls alike. */
static const struct cn_algorithm *selected(struct cn_team *t, const struct cn_coll_args *a)
{
	struct cn_selected *c;
	const bool user_defined = cn_op_reduces(a->op) &&
				  a->function == cn_combine_id(COLLNET_INT8, COLLNET_USER);
	uint64_t bytes = a->bytes;

	if (a->op == CN_OP_ALLGATHERV) { /* all ranks know all blocks: the mean */
		bytes = cn_blocks_bytes(a->blocks.recv, t->ranks) / t->ranks;
	} else if (a->op == CN_OP_REDUCE_SCATTERV) {
		bytes = cn_blocks_bytes(a->blocks.send, t->ranks) / t->ranks;
	}
	c = &t->selected[cn_mix64(bytes ^ (uint64_t)a->root << 32 ^ (uint64_t)a->op << 56) %
			 CN_SELECTED];
	if (c->algorithm == NULL || c->op != a->op || c->bytes != bytes || c->root != a->root ||
	    c->ordered != a->ordered || c->user_defined != user_defined) {
		const struct cn_plan p = { .op = a->op,
					   .bytes = bytes,
					   .root = a->root,
					   .user_defined = user_defined,
					   .ordered = a->ordered };

		t->engine->selections++;
		*c = (struct cn_selected){ .algorithm = cn_select(&t->layout, &p),
					   .bytes = bytes,
					   .root = a->root,
					   .op = (uint8_t)a->op,
					   .ordered = a->ordered,
					   .user_defined = user_defined };
	}
	return c->algorithm;
}

static int make_plan(struct cn_team *t, const struct cn_coll_args *a, const struct cn_algorithm **g,
		     struct cn_plan *p, struct cn_err *err)
{
	enum cn_permutation perm = a->permutation;
	char known[160];
	int r;

	*g = a->algorithm == NULL ? selected(t, a) : cn_algorithm_find(a->op, a->algorithm);
	if (*g == NULL && a->algorithm == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to select an algorithm for %s",
			       cn_op_name(a->op));
	}
	if (*g == NULL) {
		return cn_fail(err, COLLNET_EINVAL, "%s has no algorithm '%s'; there are %s",
			       cn_op_name(a->op), a->algorithm,
			       cn_algorithm_names(a->op, known, sizeof(known)));
	}
	if (perm == CN_PERM_AUTO) {
		perm = (*g)->permutation;
	}
	r = cn_perm_resolve(perm, t->layout.nnodes, &perm, err);
	if (r != COLLNET_OK) {
		return r;
	}
	memset(p, 0, sizeof(*p));
	p->op = a->op;
	p->making = a->making;
	p->algorithm = (*g)->id;
	p->permutation = (uint8_t)perm;
	p->contention_aware = a->contention_aware && t->layout.logical != NULL;
	p->bytes = a->op == CN_OP_BARRIER ? 0 : a->bytes;
	p->root = a->root;
	p->element = a->element;
	p->function = a->function;
	p->ordered = a->ordered;
	return COLLNET_OK;
}

static uint32_t local_index(const struct cn_member *m)
{
	uint32_t i = 0;

	while (m->team->local[i] != m) {
		i++;
	}
	return i;
}

/* A call: what it asks for, and how that is done. */
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
	return make_plan(t, a, &out->algorithm, &out->plan, err);
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
		op = cn_op_take_idle(t, &c->plan);
	}
	if (op == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for an operation");
	}
	op->seq = seq;
	r = plan(op, &c->plan, err);
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

/* The call of a rank that was checked; `own` is of a persistent operation. */
static int post(struct cn_member *m, cn_time now, const struct call *c, struct cn_op *own,
		struct cn_done *done, struct cn_err *err)
{
	const struct cn_coll_args *a = &c->args;
	struct cn_team *t = m->team;
	struct cn_op *op = t->ops[m->posted % CN_OPS];
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
		cn_team_fail(t, true, COLLNET_EMISMATCH,
			     "rank %u on node %s called %s of %llu bytes where another rank of the "
			     "node called %s of %llu bytes, or with other options",
			     m->rank, t->engine->config.node.name, cn_op_called(a),
			     (unsigned long long)a->bytes, cn_op_called(&op->args),
			     (unsigned long long)op->args.bytes);
		return cn_fail(err, t->status, "%s", t->text);
	}
	cn_op_set_deadline(op, now, a->deadline);
	op->posts[local_index(m)] = (struct cn_post){
		.done = done,
		.send = a->send,
		.recv = a->recv,
		.scratch = a->scratch,
		.blocks = a->blocks,
		.own = own,
		.reducer = a->reducer,
	};
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
	if (t->state == CN_TEAM_READY && op->state == OP_POSTED && op->nposts == cn_op_locals(t)) {
		start(op, now);
		cn_op_called_late(t);
	}
	return COLLNET_OK;
}

int cn_coll_post(struct cn_member *m, cn_time now, const struct cn_coll_args *a,
		 struct cn_done *done, struct cn_err *err)
{
	struct call c;
	int r = check(m, a, &c, err);

	return r != COLLNET_OK ? r : post(m, now, &c, NULL, done, err);
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
		p->op = cn_op_new(m->team);
		r = p->op == NULL ? cn_fail(err, COLLNET_ENOMEM, "no memory for an operation")
				  : plan(p->op, &p->call.plan, err);
	}
	if (r != COLLNET_OK) {
		cn_op_free_storage(p->op);
		free(p);
		return r;
	}
	p->op->kept = true;
	p->op->id = ++m->team->engine->prepared;
	*out = p;
	return COLLNET_OK;
}

int cn_prepared_start(struct cn_prepared *p, cn_time now, cn_time deadline, struct cn_done *done,
		      struct cn_err *err)
{
	struct cn_team *t = p->member->team;

	if (t->state != CN_TEAM_READY) {
		return cn_fail(err, t->status, "%s", t->text);
	}
	p->call.args.deadline = deadline;
	return post(p->member, now, &p->call, p->op, done, err);
}

/* Ranks of this node that have started it with others: the schedule is made again. */
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
	p->op->kept = false;
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
