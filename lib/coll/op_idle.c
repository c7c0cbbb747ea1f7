/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle operations. A team caches a few with their plans, most recently used first, for similar
 * calls. Also accounts the memory of all operations and their schedules.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"

struct cn_op *cn_op_new(struct cn_team *t)
{
	struct cn_op *op = calloc(1, sizeof(*op));

	if (op == NULL) {
		return NULL;
	}
	op->team = t;
	cn_op_count(op, 0);
	op->copy_first = CN_NONE;
	op->posts = calloc(cn_op_locals(t), sizeof(*op->posts));
	op->streams = calloc(t->layout.nnodes, sizeof(*op->streams));
	op->targets = calloc(t->layout.nnodes, sizeof(*op->targets));
	op->planned_for = calloc(cn_op_locals(t), sizeof(*op->planned_for));
	if (op->posts == NULL || op->streams == NULL || op->targets == NULL ||
	    op->planned_for == NULL) {
		cn_op_free_storage(op);
		return NULL;
	}
	op->source.pull = cn_op_pull;
	op->source.acked = cn_op_acked;
	return op;
}

struct cn_op *cn_op_get_idle(struct cn_team *t, const struct cn_plan *p)
{
	struct cn_op **at = &t->idle, **last = NULL, *op;

	while (*at != NULL && memcmp(&(*at)->plan, p, sizeof(*p)) != 0) {
		last = at;
		at = &(*at)->next_idle;
	}
	if (*at == NULL) {
		if (t->nidle < CN_OPS_IDLE) {
			return cn_op_new(t);
		}
		at = last;
	}
	op = *at;
	*at = op->next_idle;
	t->nidle--;
	return op;
}

void cn_op_put_idle(struct cn_op *op)
{
	struct cn_team *t = op->team;

	if (t->ops[op->seq % CN_OPS] == op) {
		t->ops[op->seq % CN_OPS] = NULL;
		cn_bit_clear(&t->busy, op->seq % CN_OPS);
	}
	if (op->persistent) {
		return;
	}
	op->next_idle = t->idle;
	t->idle = op;
	t->nidle++;
}

void cn_op_free_idle(struct cn_team *t, uint32_t keep)
{
	struct cn_op **at = &t->idle, *op;

	if (t->nidle <= keep) {
		return;
	}
	for (t->nidle = keep; keep > 0; keep--) {
		at = &(*at)->next_idle;
	}
	op = *at;
	*at = NULL;
	while (op != NULL) {
		struct cn_op *next = op->next_idle;

		cn_op_free_storage(op);
		op = next;
	}
}

uint64_t cn_op_bytes(const struct cn_op *op)
{
	const uint64_t local = sizeof(*op->posts) + sizeof(*op->planned_for),
		       node = sizeof(*op->streams) + sizeof(*op->targets);

	return sizeof(*op) + cn_op_locals(op->team) * local + op->team->layout.nnodes * node +
	       (uint64_t)op->sched.cap * sizeof(*op->sched.actions) +
	       (uint64_t)op->progress_cap * sizeof(*op->progress) + op->mixed_cap;
}

void cn_op_count(struct cn_op *op, uint64_t before)
{
	const uint64_t more = cn_op_bytes(op) - before;

	op->team->scheduled += more;
	op->team->engine->scheduled += more;
}

/* True if all teams of this one's payer together exceed the limit. */
static bool is_beyond(const struct cn_team *t, uint64_t most)
{
	const struct cn_engine *e = t->engine;
	uint64_t bytes = 0;

	for (uint32_t i = 0; e->scheduled > most && i < e->places; i++) {
		if (e->teams[i] != NULL && cn_team_payer(e->teams[i]) == cn_team_payer(t)) {
			bytes += e->teams[i]->scheduled;
		}
	}
	return bytes > most;
}

void cn_op_drop_schedule(struct cn_op *op)
{
	const uint64_t before = cn_op_bytes(op);
	struct cn_engine *e = op->team->engine;

	cn_engine_discard(e, op->sched.actions, op->sched.cap * sizeof(*op->sched.actions));
	memset(&op->sched, 0, sizeof(op->sched));
	cn_engine_discard(e, op->progress, op->progress_cap * sizeof(*op->progress));
	op->progress = NULL;
	op->progress_cap = 0;
	cn_op_count(op, before);
}

int cn_op_check_schedules(struct cn_team *t, struct cn_err *err)
{
	const uint64_t most = t->engine->config.max_schedules;

	if (most == 0 || !is_beyond(t, most)) {
		return COLLNET_OK;
	}
	cn_op_free_idle(t, 0);
	if (!is_beyond(t, most)) {
		return COLLNET_OK;
	}
	return cn_fail(err, COLLNET_ELIMIT,
		       "the schedules of this user's operations on node %s would take more than "
		       "%llu MiB: wait for operations first",
		       t->engine->config.node.name, (unsigned long long)(most >> 20));
}

void cn_op_free_storage(struct cn_op *op)
{
	if (op != NULL) {
		if (op->planning) {
			cn_tasks_forget_op(op);
		}
		cn_op_drop_schedule(op);
		op->team->scheduled -= cn_op_bytes(op);
		op->team->engine->scheduled -= cn_op_bytes(op);
		free(op->posts);
		free(op->streams);
		free(op->targets);
		free(op->mixed);
		free(op->planned_for);
		free(op);
	}
}
