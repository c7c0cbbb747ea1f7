/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plans of operations: selects the algorithm, plans the schedule, and caches both. Long
 * selections and plans become tasks, if the engine's caller runs tasks (task.h).
 */
#include <stdlib.h>
#include <string.h>

#include "coll/combine.h"
#include "coll/engine_state.h"
#include "coll/op.h"
#include "sched/select.h"

/*
 * True if selection or plan may take more than a fraction of a millisecond. Reductions and trees
 * take time quadratic in the number of nodes; exchanges have at least one action for each block
 * that the node sends or receives.
 */
static bool takes_long(const struct cn_team *t, enum cn_op_kind op)
{
	const uint64_t nodes = t->layout.nnodes, local = cn_op_locals(t);
	const bool blocks = cn_op_is_exchange(op) || cn_op_base(op) == CN_OP_ALLGATHER ||
			    op == CN_OP_ALLREDUCE;

	return t->engine->config.task_min > 0 &&
	       nodes * nodes * 4 + (blocks ? local : 1) * t->ranks > t->engine->config.task_min;
}

/* ---- selection -------------------------------------------------------------------------- */

/* The cache entry of a selection, for similar calls. */
static struct cn_selected *place_of(struct cn_team *t, const struct cn_plan *p)
{
	return &t->selected[cn_mix64(p->bytes ^ (uint64_t)p->root << 32 ^ (uint64_t)p->op << 56) %
			    CN_SELECTED];
}

void cn_op_selected(struct cn_team *t, const struct cn_plan *p, const struct cn_algorithm *a)
{
	t->engine->selections++;
	*place_of(t, p) = (struct cn_selected){ .algorithm = a,
						.bytes = p->bytes,
						.root = p->root,
						.op = (uint8_t)p->op,
						.ordered = p->ordered != 0,
						.user_defined = p->user_defined != 0 };
}

static bool is_for(const struct cn_selected *c, const struct cn_plan *p)
{
	return c->algorithm != NULL && c->op == p->op && c->bytes == p->bytes &&
	       c->root == p->root && c->ordered == (p->ordered != 0) &&
	       c->user_defined == (p->user_defined != 0);
}

/*
 * The algorithm with the smallest predicted time. It is also stored with the rank: other ranks'
 * calls may replace the team's entry while the call waits for its plan, which would then need
 * another selection, and so on.
 */
static int selected(struct cn_member *m, const struct cn_coll_args *a,
		    const struct cn_algorithm **out, struct cn_err *err)
{
	struct cn_team *t = m->team;
	const struct cn_algorithm *best;
	const struct cn_selected *c;
	struct cn_plan p;

	memset(&p, 0, sizeof(p));
	p.op = a->op;
	p.bytes = a->bytes;
	p.root = a->root;
	p.ordered = a->ordered;
	p.user_defined = cn_op_reduces(a->op) &&
			 a->function == cn_combine_id(COLLNET_INT8, COLLNET_USER);
	if (a->op == CN_OP_ALLGATHERV) { /* all ranks know all blocks: the mean */
		p.bytes = cn_blocks_bytes(a->blocks.recv, t->ranks) / t->ranks;
	} else if (a->op == CN_OP_REDUCE_SCATTERV) {
		p.bytes = cn_blocks_bytes(a->blocks.send, t->ranks) / t->ranks;
	}
	c = is_for(&m->selected, &p) ? &m->selected : place_of(t, &p);
	if (!is_for(c, &p)) {
		if (cn_select_predicts(p.op) && takes_long(t, p.op)) {
			return cn_tasks_add(t, CN_TASK_SELECT, &p, NULL, NULL, err);
		}
		best = cn_select(&t->layout, &p);
		if (best == NULL) {
			return cn_select_failed(p.op, err);
		}
		cn_op_selected(t, &p, best);
	}
	m->selected = *c;
	*out = c->algorithm;
	return COLLNET_OK;
}

int cn_op_make_plan(struct cn_member *m, const struct cn_coll_args *a,
		    const struct cn_algorithm **g, struct cn_plan *p, struct cn_err *err)
{
	const struct cn_team *t = m->team;
	enum cn_permutation perm = a->permutation;
	char known[160];
	int r = COLLNET_OK;

	*g = NULL;
	if (a->algorithm == NULL) {
		r = selected(m, a, g, err);
	} else {
		*g = cn_algorithm_find(a->op, a->algorithm);
	}
	if (r != COLLNET_OK) {
		return r;
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

/* ---- schedules -------------------------------------------------------------------------- */

static int make_room(struct cn_op *op, struct cn_err *err)
{
	struct cn_engine *e = op->team->engine;
	uint32_t n = op->sched.n;

	if (n > op->progress_cap) {
		struct cn_progress *p = malloc(n * sizeof(*p));

		if (p == NULL) {
			return cn_fail(err, COLLNET_ENOMEM,
				       "no memory for a schedule of %u actions", n);
		}
		cn_engine_discard(e, op->progress, op->progress_cap * sizeof(*p));
		op->progress = p;
		op->progress_cap = n;
	}
	return COLLNET_OK;
}

/* Allocates the state to run its schedule; `before`: bytes of the operation without it. */
static int accept(struct cn_op *op, int r, uint64_t before, struct cn_err *err)
{
	if (r == COLLNET_OK) {
		r = make_room(op, err);
	}
	cn_op_count(op, before);
	if (r == COLLNET_OK) {
		r = cn_op_check_schedules(op->team, err);
	}
	if (r != COLLNET_OK) {
		cn_op_drop_schedule(op);
	}
	return r;
}

/* With its state, a longer schedule exceeds the limit in any case. */
uint32_t cn_op_actions_max(const struct cn_team *t)
{
	const uint64_t most = t->engine->config.max_schedules /
			      (sizeof(struct cn_action) + sizeof(struct cn_progress));

	return most < UINT32_MAX ? (uint32_t)most : 0;
}

/* Makes the schedule of this node, and the state to run it. */
static int make_schedule(struct cn_op *op, const struct cn_plan *p, struct cn_err *err)
{
	struct cn_team *t = op->team;
	const uint64_t before = cn_op_bytes(op);

	t->engine->plans++;
	op->sched.most = cn_op_actions_max(t);
	return accept(op, cn_sched_plan(&t->layout, p, t->me, &op->sched, err), before, err);
}

int cn_op_plan(struct cn_op *op, const struct cn_plan *p, struct cn_err *err)
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

/* True if `from` has the schedule of the persistent operations that make up `op`. */
static bool is_planned(const struct cn_op *op, const struct cn_op *from)
{
	for (uint32_t i = 0; i < cn_op_locals(op->team); i++) {
		if (id_of(op, i) == 0 || from->planned_for[i] != id_of(op, i)) {
			return false;
		}
	}
	return true;
}

/* Another rank may have called first last time; then its operation has the schedule. */
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

/* The blocks known to all ranks of this node. NULL: no memory. */
static struct cn_blocks *all_blocks(const struct cn_op *op)
{
	const uint32_t n = cn_op_locals(op->team);
	struct cn_blocks *blocks = calloc(n, sizeof(*blocks));

	for (uint32_t i = 0; blocks != NULL && i < n; i++) {
		blocks[i] = op->posts[i].blocks;
	}
	return blocks;
}

int cn_op_plan_vector(struct cn_op *op, struct cn_err *err)
{
	struct cn_blocks *blocks;
	struct cn_plan p = op->plan;
	int r;

	/* Not while a task plans it: `planned_for` says what the schedule will be. */
	if (!op->planned && !op->planning && find_planned(op)) {
		return COLLNET_OK;
	}
	for (uint32_t i = 0; i < cn_op_locals(op->team); i++) {
		op->planned_for[i] = id_of(op, i);
	}
	if (op->planned) { /* by a task, for this call */
		op->planned = false;
		return COLLNET_OK;
	}
	blocks = all_blocks(op);
	if (blocks == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a schedule");
	}
	if (takes_long(op->team, p.op)) {
		r = cn_tasks_add(op->team, CN_TASK_PLAN, &p, op, blocks, err);
		op->planning = r != COLLNET_OK; /* even if it failed */
		return r;
	}
	p.blocks = blocks;
	r = make_schedule(op, &p, err);
	free(blocks);
	return r;
}

/* ---- by tasks --------------------------------------------------------------------------- */

int cn_op_planned(struct cn_team *t, struct cn_op *vector, const struct cn_plan *p,
		  struct cn_sched *sched, struct cn_err *err)
{
	struct cn_op *op = vector != NULL ? vector : cn_op_new(t);
	uint64_t before;
	int r;

	t->engine->plans++;
	if (op == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory for an operation");
	}
	before = cn_op_bytes(op);
	cn_engine_discard(t->engine, op->sched.actions, op->sched.cap * sizeof(*op->sched.actions));
	op->sched = *sched;
	op->sched.stop = NULL; /* that was the task's */
	memset(sched, 0, sizeof(*sched));
	r = accept(op, COLLNET_OK, before, err);
	if (vector != NULL) {
		op->planned = r == COLLNET_OK;
		op->planning = r != COLLNET_OK;
	} else if (r == COLLNET_OK) {
		op->plan = *p;
		cn_op_put_idle(op);
	} else {
		cn_op_free_storage(op);
	}
	return r;
}

static bool is_idle(const struct cn_team *t, const struct cn_plan *p)
{
	const struct cn_op *op = t->idle;

	while (op != NULL && memcmp(&op->plan, p, sizeof(*p)) != 0) {
		op = op->next_idle;
	}
	return op != NULL;
}

int cn_op_request_plan(struct cn_team *t, const struct cn_plan *p, struct cn_err *err)
{
	if (cn_op_is_vector(p->op) || !takes_long(t, p->op) || is_idle(t, p)) {
		return COLLNET_OK;
	}
	return cn_tasks_add(t, CN_TASK_PLAN, p, NULL, NULL, err);
}

struct cn_op *cn_op_new_planned(struct cn_team *t, const struct cn_plan *p)
{
	const bool planned = !cn_op_is_vector(p->op) && takes_long(t, p->op) && is_idle(t, p);

	return planned ? cn_op_get_idle(t, p) : cn_op_new(t);
}
