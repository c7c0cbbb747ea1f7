/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/task.h"

#include <stdlib.h>
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"
#include "sched/select.h"

/* Memory that takes a few dozen microseconds to free. */
#define FREED_AT_ONCE ((size_t)256 << 10)
/* While a task runs, memory of at least this size is left to the next task to free, and charged to
 * nobody meanwhile: only plans made by tasks are as large. */
#define FREED_MEANWHILE ((size_t)4 << 20)

/* Limit of waiting tasks per payer, as of its calls. Tasks of abandoned calls count. */
#define WAITING_MAX 1024u

struct cn_discarded {
	struct cn_discarded *next;
};

/* ---- the list --------------------------------------------------------------------------- */

static void task_free(struct cn_task *x)
{
	if (x != NULL) {
		cn_sched_reset(&x->sched);
		free((void *)(uintptr_t)x->plan.blocks);
		free(x->storage);
		cn_tree_free(x->tree);
		free(x);
	}
}

static bool is_same(const struct cn_task *x, const struct cn_team *t, enum cn_task_kind kind,
		    const struct cn_plan *p, const struct cn_op *op)
{
	return x != NULL && !x->unwanted && x->team == t && x->kind == kind && x->op == op &&
	       (op != NULL || memcmp(&x->plan, p, sizeof(*p)) == 0);
}

static bool is_there(const struct cn_tasks *all, const struct cn_team *t, enum cn_task_kind kind,
		     const struct cn_plan *p, const struct cn_op *op)
{
	const struct cn_task *x = all->first;

	while (x != NULL && !is_same(x, t, kind, p, op)) {
		x = x->next;
	}
	return x != NULL || is_same(all->running, t, kind, p, op);
}

/* The next ticket: one more than this payer's last waiting task's, or than the last one run; 0: too
 * many. */
static uint64_t next_ticket(const struct cn_tasks *all, uint64_t payer)
{
	uint64_t ticket = all->ticket;
	uint32_t n = 0;

	for (const struct cn_task *x = all->first; x != NULL; x = x->next) {
		if (x->payer == payer) {
			ticket = x->ticket > ticket ? x->ticket : ticket;
			n++;
		}
	}
	return n < WAITING_MAX ? ticket + 1 : 0;
}

int cn_tasks_add(struct cn_team *t, enum cn_task_kind kind, const struct cn_plan *p,
		 struct cn_op *op, struct cn_blocks *blocks, struct cn_err *err)
{
	struct cn_tasks *all = &t->engine->tasks;
	struct cn_task *x, **at = &all->first;
	uint64_t ticket;

	if (is_same(all->failed, t, kind, p, op)) {
		free(blocks);
		return cn_fail(err, all->failed->rc, "%s", all->failed->err.text);
	}
	if (is_there(all, t, kind, p, op)) {
		free(blocks);
		return COLLNET_INPROGRESS;
	}
	ticket = next_ticket(all, cn_team_payer(t));
	if (ticket == 0) {
		free(blocks);
		return cn_fail(err, COLLNET_ELIMIT,
			       "%u plans of this user's operations are to be made already",
			       WAITING_MAX);
	}
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		free(blocks);
		return cn_fail(err, COLLNET_ENOMEM, "no memory for a schedule");
	}
	x->kind = kind;
	x->team = t;
	x->op = op;
	x->plan = *p;
	x->plan.blocks = blocks;
	x->payer = cn_team_payer(t);
	x->ticket = ticket;
	x->layout = t->layout;
	x->me = t->me;
	x->sched.most = cn_op_actions_max(t);
	x->sched.stop = &x->unwanted;
	while (*at != NULL) {
		at = &(*at)->next;
	}
	*at = x;
	return COLLNET_INPROGRESS;
}

/* ---- run -------------------------------------------------------------------------------- */

static void drop_failed(struct cn_tasks *all)
{
	task_free(all->failed);
	all->failed = NULL;
}

/* Removes the task with the lowest ticket from the list. */
static struct cn_task *dequeue(struct cn_tasks *all)
{
	struct cn_task **least = &all->first, *x;

	for (struct cn_task **at = &all->first; *at != NULL; at = &(*at)->next) {
		least = (*at)->ticket < (*least)->ticket ? at : least;
	}
	x = *least;
	if (x != NULL) {
		*least = x->next;
		all->ticket = x->ticket;
	}
	return x;
}

struct cn_task *cn_engine_next_task(struct cn_engine *e)
{
	struct cn_tasks *all = &e->tasks;

	if (all->running != NULL || (all->first == NULL && all->discarded == NULL)) {
		return NULL;
	}
	if (all->discarded != NULL) {
		all->freeing = (struct cn_task){ .kind = CN_TASK_FREE, .memory = all->discarded };
		all->discarded = NULL;
		all->running = &all->freeing;
	} else {
		drop_failed(all);
		all->running = dequeue(all);
	}
	return all->running;
}

void cn_engine_task_over(struct cn_engine *e)
{
	drop_failed(&e->tasks);
}

static void free_all(struct cn_discarded *d)
{
	while (d != NULL) {
		struct cn_discarded *next = d->next;

		free(d);
		d = next;
	}
}

void cn_task_run(struct cn_task *x)
{
	switch (x->kind) {
	case CN_TASK_SELECT:
		x->algorithm = cn_select(&x->layout, &x->plan);
		if (x->algorithm == NULL) {
			x->rc = cn_select_failed(x->plan.op, &x->err);
		}
		break;
	case CN_TASK_PLAN:
		x->rc = cn_sched_plan(&x->layout, &x->plan, x->me, &x->sched, &x->err);
		if (x->rc != COLLNET_OK) {
			cn_sched_reset(&x->sched);
		}
		break;
	default:
		free_all(x->memory);
		break;
	}
}

void cn_engine_task_done(struct cn_engine *e, struct cn_task *x)
{
	struct cn_tasks *all = &e->tasks;

	all->running = NULL;
	if (x->kind == CN_TASK_FREE) {
		return;
	}
	if (!x->unwanted) {
		if (x->rc == COLLNET_OK && x->kind == CN_TASK_SELECT) {
			cn_op_selected(x->team, &x->plan, x->algorithm);
		} else if (x->rc == COLLNET_OK) {
			x->rc = cn_op_planned(x->team, x->op, &x->plan, &x->sched, &x->err);
		}
		if (x->rc != COLLNET_OK) {
			all->failed = x;
			return;
		}
	}
	if (x->sched.actions != NULL) {
		cn_engine_discard(e, x->sched.actions, x->sched.cap * sizeof(*x->sched.actions));
		x->sched.actions = NULL;
	}
	task_free(x);
}

/* True if the task reads blocks there. */
static bool reads(const struct cn_task *x, const void *memory, size_t bytes)
{
	const uintptr_t from = (uintptr_t)memory, to = from + bytes;
	const struct cn_blocks *b = x->plan.blocks;
	const uint32_t n = b != NULL ? x->layout.first[x->me + 1] - x->layout.first[x->me] : 0;

	for (uint32_t i = 0; i < n; i++) {
		if (((uintptr_t)b[i].send >= from && (uintptr_t)b[i].send < to) ||
		    ((uintptr_t)b[i].recv >= from && (uintptr_t)b[i].recv < to)) {
			return true;
		}
	}
	return false;
}

static bool is_freed_at_once(const struct cn_engine *e, const void *memory, size_t bytes)
{
	const struct cn_task *x = e->tasks.running;

	if (bytes < sizeof(struct cn_discarded)) {
		return true;
	}
	return x == NULL ? bytes < FREED_AT_ONCE || e->config.task_min == 0
			 : bytes < FREED_MEANWHILE && !reads(x, memory, bytes);
}

void cn_engine_discard(struct cn_engine *e, void *memory, size_t bytes)
{
	struct cn_discarded *d = memory;

	if (d == NULL || is_freed_at_once(e, memory, bytes)) {
		free(d);
	} else {
		d->next = e->tasks.discarded;
		e->tasks.discarded = d;
	}
}

/* ---- ends ------------------------------------------------------------------------------- */

static bool is_of(const struct cn_task *x, const struct cn_team *t, const struct cn_op *op)
{
	return x != NULL && x->team == t && (op == NULL || x->op == op);
}

/* Those of the team, or of this operation of it, that wait or have failed. */
static void drop(struct cn_tasks *all, const struct cn_team *t, const struct cn_op *op)
{
	if (is_of(all->running, t, op)) {
		all->running->unwanted = all->dropped = true;
	}
	for (struct cn_task **at = &all->first; *at != NULL;) {
		struct cn_task *x = *at;

		if (is_of(x, t, op)) {
			*at = x->next;
			task_free(x);
			all->dropped = true;
		} else {
			at = &x->next;
		}
	}
	if (is_of(all->failed, t, op)) {
		drop_failed(all);
	}
}

void cn_tasks_forget_team(struct cn_team *t)
{
	struct cn_tasks *all = &t->engine->tasks;
	struct cn_task *x = all->running;

	drop(all, t, NULL);
	if (x != NULL && x->team == t) {
		x->team = NULL; /* another team may get its address while the task runs */
		x->storage = t->storage;
		x->tree = t->tree;
		t->storage = NULL;
		t->tree = NULL;
	}
}

void cn_tasks_forget_failed(struct cn_team *t)
{
	drop(&t->engine->tasks, t, NULL);
}

void cn_member_drops_tasks(struct cn_member *m)
{
	for (struct cn_task **at = &m->team->engine->tasks.first; *at != NULL;) {
		struct cn_task *x = *at;

		if (is_of(x, m->team, NULL) && x->op == NULL) {
			*at = x->next;
			task_free(x);
		} else {
			at = &x->next;
		}
	}
}

bool cn_engine_tasks_dropped(struct cn_engine *e)
{
	const bool dropped = e->tasks.dropped;

	e->tasks.dropped = false;
	return dropped;
}

bool cn_engine_has_dropped(const struct cn_engine *e)
{
	return e->tasks.dropped;
}

void cn_tasks_forget_op(struct cn_op *op)
{
	struct cn_tasks *all = &op->team->engine->tasks;

	drop(all, op->team, op);
	op->planning = false;
}

void cn_engine_cancel_task(struct cn_engine *e)
{
	if (e->tasks.running != NULL) {
		e->tasks.running->unwanted = true;
	}
}

void cn_tasks_end(struct cn_engine *e)
{
	drop_failed(&e->tasks);
	free_all(e->tasks.discarded);
	e->tasks.discarded = NULL;
}
