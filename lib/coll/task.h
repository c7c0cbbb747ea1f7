/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks: long computations on immutable input: selecting an algorithm, planning a schedule, and
 * freeing much memory.
 *
 * Where the engine's caller runs tasks (config.task_min), a call that needs one ends with
 * COLLNET_INPROGRESS and has changed nothing; but its rank is no longer late. It is repeated when
 * the task is done or dropped, or its deadline has passed, and finds the result: the selection with
 * the team, and then with the rank, the schedule with an idle operation or, of a vector operation,
 * with the operation itself. A task's error is returned to these calls until all of them have been
 * repeated (cn_engine_task_over()), or until another task has run that does more than free memory.
 *
 * A task that is being run reads what it has copied, the arrays of its team's layout, its tree and
 * topology, and the blocks of a vector operation. So a team that ends leaves these to the task, and
 * memory that a caller releases is freed after the task (cn_engine_discard()). Planning of an
 * unwanted schedule stops early.
 *
 * Payers are served round robin.
 */
#ifndef CN_TASK_H
#define CN_TASK_H

#include "coll/engine.h"

struct cn_op;
struct cn_team;
struct cn_discarded;

enum cn_task_kind {
	CN_TASK_SELECT,
	CN_TASK_PLAN,
	CN_TASK_FREE,
};

struct cn_task {
	enum cn_task_kind kind;
	struct cn_task *next;
	struct cn_team *team;
	struct cn_op *op;	/* a vector operation that is planned; NULL: another one */
	atomic_bool unwanted;	/* its team or operation has ended: it fails soon */
	struct cn_plan plan;	/* its blocks are the task's */
	uint64_t payer, ticket; /* the lowest ticket is next */
	struct cn_layout layout;
	uint32_t me;
	/* results */
	const struct cn_algorithm *algorithm;
	struct cn_sched sched;
	int rc;
	struct cn_err err;
	/* of a team that has ended since */
	uint32_t *storage;
	struct cn_tree *tree;
	struct cn_discarded *memory;
};

struct cn_tasks {
	struct cn_task *first;	 /* those that wait */
	struct cn_task *running; /* NULL: none */
	struct cn_task *failed;	 /* the last one, if it did */
	struct cn_task freeing;
	struct cn_discarded *discarded;
	uint64_t ticket; /* of the last one that was run */
	bool dropped;	 /* some that calls may wait for */
};

/* COLLNET_INPROGRESS: it is one of the tasks; the error of the one that failed. `op` is NULL, or a
 * vector operation, whose blocks, one for each rank of this node, become the task's. */
int cn_tasks_add(struct cn_team *t, enum cn_task_kind kind, const struct cn_plan *p,
		 struct cn_op *op, struct cn_blocks *blocks, struct cn_err *err);
/* The team has failed. */
void cn_tasks_forget_failed(struct cn_team *t);
/* The team, or the operation, is about to end. */
void cn_tasks_forget_team(struct cn_team *t);
void cn_tasks_forget_op(struct cn_op *op);
/* The engine is about to end, without a task that is being run. */
void cn_tasks_end(struct cn_engine *e);

#endif
