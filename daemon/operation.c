/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients' operations: their messages, and their calls of the engine. A call that needs a long plan
 * waits for a task of the engine (coll/task.h). The client's later requests stay in its ring and
 * its socket until then, in their order; PONGs show it that the daemon is alive (client.c).
 */
#include "daemon/daemon.h"

#include <stdlib.h>
#include <string.h>

#define PASSES 2 /* over all calls that wait, in an iteration of the loop */

/* ---- calls ---------------------------------------------------------------------------- */

/* The team does not exist any more. */
static int refuse_gone(struct cn_client *c, uint32_t team, struct cn_err *err)
{
	if (cn_bit(c->lost_teams, team)) {
		cn_client_fail_lost(c, err);
	} else {
		cn_fail(err, COLLNET_ERANK, "this rank left the team");
	}
	return err->code;
}

/*
 * An operation is refused that the engine has not counted: calls behind it, which would be counted
 * in its place, will be, too, until the client knows (struct cn_msg_coll).
 */
static void count_refusal(struct cn_client *c, uint32_t team, bool buffered,
			  const struct cn_coll_args *a, const struct cn_err *err)
{
	if (err->code != COLLNET_ELIMIT && err->code != COLLNET_ENOMEM) {
		return;
	}
	c->refused[team]++;
	if (buffered && c->teams[team] != NULL) {
		cn_coll_refused(c->teams[team], a, err);
	}
}

int cn_operation_in_order(const struct cn_client *c, uint32_t team, uint32_t refused,
			  struct cn_err *err)
{
	return refused == c->refused[team]
		       ? COLLNET_OK
		       : cn_fail(err, COLLNET_ELIMIT,
				 "an earlier operation of the team was refused: it has to be "
				 "called again before this one");
}

static int try_call(struct cn_client *c, const struct cn_client_call *k, struct cn_err *err)
{
	struct cn_op_slot *op = k->op;
	struct cn_member *m = c->teams[op->team];
	const cn_time now = c->daemon->now;

	switch (k->kind) {
	case CN_CALL_POST:
		return m == NULL ? refuse_gone(c, op->team, err)
				 : cn_coll_post(m, now, &k->args, &op->done, err);
	case CN_CALL_PREPARE:
		return m == NULL ? refuse_gone(c, op->team, err)
				 : cn_coll_prepare(m, &k->args, &op->prepared, err);
	case CN_CALL_START:
		return op->prepared == NULL ? refuse_gone(c, op->team, err)
					    : cn_prepared_start(op->prepared, now, k->args.deadline,
								&op->done, err);
	default:
		return cn_client_try_join(op, k->join, k->args.deadline, err);
	}
}

/* Keeps the call, with the contents of its message, until the task is done. */
static bool wait_for_task(struct cn_client *c, const struct cn_client_call *k)
{
	struct cn_daemon *d = c->daemon;
	struct cn_msg_join *join = NULL;

	if (k == &c->call) { /* it has waited */
		return true;
	}
	if (k->join != NULL) {
		join = malloc(sizeof(*join));
		if (join == NULL) {
			return false;
		}
		memcpy(join, k->join, sizeof(*join));
	}
	c->call = *k;
	c->call.join = join;
	if (k->args.algorithm != NULL) {
		c->call.args.algorithm = cn_algorithm_find(k->args.op, k->args.algorithm)->name;
	}
	d->calls_until = d->nwaiting > 0 ? cn_min_time(d->calls_until, k->args.deadline)
					 : k->args.deadline;
	d->waiting[d->nwaiting++] = c;
	cn_event_client_waits(d, c, true);
	cn_client_rings_set_waiting(c, (int)(k->op - c->ops));
	return true;
}

static void forget(struct cn_client *c)
{
	struct cn_daemon *d = c->daemon;
	uint32_t i = 0;

	while (d->waiting[i] != c) {
		i++;
	}
	d->waiting[i] = d->waiting[--d->nwaiting];
	free((void *)(uintptr_t)c->call.join);
	c->call.op = NULL;
	cn_event_client_waits(d, c, false);
	cn_client_rings_set_waiting(c, -1);
}

/* The member whose team the call uses; NULL: none. */
static struct cn_member *member_of(const struct cn_client *c, const struct cn_client_call *k)
{
	const uint32_t team = k->kind == CN_CALL_JOIN ? k->op->parent : k->op->team;

	return team < CN_MSG_TEAMS ? c->teams[team] : NULL;
}

/* Notifies the engine, which may not know that the call is refused. */
static void abandon_call(const struct cn_client *c, const struct cn_client_call *k)
{
	struct cn_member *m = member_of(c, k);

	if (m != NULL) {
		cn_member_drops_call(m);
	}
}

static bool others_wait(const struct cn_client *c, const struct cn_member *m)
{
	const struct cn_daemon *d = c->daemon;

	for (uint32_t i = 0; i < d->nwaiting; i++) {
		const struct cn_client *o = d->waiting[i];
		const struct cn_member *its = o != c ? member_of(o, &o->call) : NULL;

		if (its != NULL && cn_member_run(its) == cn_member_run(m)) {
			return true;
		}
	}
	return false;
}

/* Preparing an operation does not fail its team; late calls of other kinds do, in the engine. */
static int prepare_in_time(const struct cn_client *c, const struct cn_client_call *k,
			   struct cn_err *err)
{
	struct cn_member *m = member_of(c, k);

	if (k->kind != CN_CALL_PREPARE || k->args.deadline > c->daemon->now) {
		return COLLNET_INPROGRESS;
	}
	if (m != NULL && !others_wait(c, m)) {
		cn_member_drops_tasks(m);
	}
	return cn_fail(err, COLLNET_ETIMEOUT, "the operation was not planned before the deadline");
}

void cn_call_make(struct cn_client *c, const struct cn_client_call *k)
{
	struct cn_op_slot *op = k->op;
	const enum cn_call_kind kind = k->kind;
	struct cn_err err;
	int rc = try_call(c, k, &err);

	if (rc == COLLNET_INPROGRESS) {
		rc = prepare_in_time(c, k, &err);
	}
	if (rc == COLLNET_INPROGRESS && wait_for_task(c, k)) {
		return;
	}
	if (rc == COLLNET_INPROGRESS) {
		rc = cn_fail(&err, COLLNET_ENOMEM, "collnetd is out of memory");
	}
	if (rc != COLLNET_OK) {
		abandon_call(c, k);
	}
	if (rc != COLLNET_OK && (kind == CN_CALL_POST || kind == CN_CALL_START)) {
		count_refusal(c, op->team, op->buffered, &k->args, &err);
	}
	if (k == &c->call) {
		forget(c);
	}
	if (rc != COLLNET_OK) {
		cn_slot_refused(op, &err);
	} else if (kind == CN_CALL_PREPARE) { /* slot, memory and blocks stay until RELEASE */
		op->kept = true;
		cn_slot_done(&op->done, COLLNET_OK, "");
	}
}

/* Makes the waiting calls again whose deadline is not later. */
static void make_until(struct cn_daemon *d, cn_time deadline)
{
	/* Backwards: the last one replaces one that does not wait any more. */
	for (uint32_t i = d->nwaiting; i-- > 0;) {
		struct cn_client *c = d->waiting[i];

		if (!c->marked && c->call.args.deadline <= deadline) {
			cn_call_make(c, &c->call);
		}
	}
	d->calls_until = CN_NEVER;
	for (uint32_t i = 0; i < d->nwaiting; i++) {
		const struct cn_client *c = d->waiting[i];

		if (!c->marked) {
			d->calls_until = cn_min_time(d->calls_until, c->call.args.deadline);
		}
	}
}

void cn_call_make_waiting(struct cn_daemon *d)
{
	make_until(d, CN_NEVER);
	cn_engine_task_over(d->runtime.engine);
}

cn_time cn_call_deadline(const struct cn_daemon *d)
{
	return d->nwaiting > 0 ? d->calls_until : CN_NEVER;
}

void cn_call_collect_task(struct cn_daemon *d)
{
	if (d->runtime.engine != NULL && cn_helper_reap(d->helper, d->runtime.engine)) {
		cn_call_make_waiting(d);
	}
}

/* Not only after a task: one that a call waits for may have been dropped. */
static bool may_have_lost_task(struct cn_daemon *d)
{
	return d->nwaiting > 0 &&
	       (cn_engine_tasks_dropped(d->runtime.engine) || !cn_helper_busy(d->helper));
}

void cn_call_submit_task(struct cn_daemon *d)
{
	if (d->helper == NULL || d->runtime.engine == NULL) {
		return;
	}
	cn_helper_submit(d->helper, d->runtime.engine);
	/* Calls that are late fail their teams, in which others wait. */
	if (cn_call_deadline(d) <= d->now) {
		make_until(d, d->now);
		cn_helper_submit(d->helper, d->runtime.engine);
	}
	for (int i = 0; i < PASSES && may_have_lost_task(d); i++) {
		cn_call_make_waiting(d);
		cn_helper_submit(d->helper, d->runtime.engine);
		if (cn_engine_has_dropped(d->runtime.engine)) {
			d->calls_until = 0; /* the loop comes back at once */
		}
	}
}

void cn_call_drop(struct cn_client *c)
{
	struct cn_op_slot *op = c->call.op;

	if (op != NULL) {
		forget(c);
		op->busy = false;
		if (!op->kept) {
			cn_slot_free(op);
		}
	}
}

/* ---- messages ------------------------------------------------------------------------- */

bool cn_operation_coll(struct cn_client *c, const struct cn_msg_coll *m)
{
	struct cn_member *member = c->teams[m->team];
	struct cn_coll_args a = {
		.op = (enum cn_op_kind)m->op,
		.algorithm = m->algorithm[0] != '\0' ? m->algorithm : NULL,
		.permutation = (enum cn_permutation)m->permutation,
		.contention_aware = m->contention_aware != 0,
		.window = m->window,
		.root = m->root,
		.bytes = m->bytes,
		.deadline = cn_slot_deadline(c, m->called, m->timeout_ms),
		.element = m->element,
		.function = m->function,
		.ordered = m->ordered != 0,
	};
	struct cn_op_slot *op;
	struct cn_err err;
	struct cn_call call;
	int rc;

	if (member == NULL && cn_bit(c->lost_teams, m->team)) {
		return cn_client_refuse_lost(c, m->head.tag);
	}
	if (member == NULL) {
		return cn_client_violation(c, "team number not in use");
	}
	op = cn_slot_begin(c, m->head.tag);
	/* Its caller has ended a late call and does not repeat it, so the team fails, whatever else
	 * is wrong. A late preparation does not fail it. */
	if (m->persistent == 0 && !c->marked && a.deadline <= c->daemon->now) {
		cn_coll_late(member, &a, &err);
	} else if (op == NULL && m->persistent == 0 && !c->marked) {
		cn_fail(&err, COLLNET_ELIMIT, "the user has too many requests");
		count_refusal(c, m->team, m->buffered != 0, &a, &err);
	}
	if (op == NULL) {
		return !c->marked;
	}
	if (cn_member_check(member, &err) != COLLNET_OK) { /* its numbers say how much is read */
		return cn_slot_refused(op, &err);
	}
	if (a.deadline <= c->daemon->now) {
		return cn_slot_late(op);
	}
	if (m->persistent == 0 &&
	    cn_operation_in_order(c, m->team, m->refused, &err) != COLLNET_OK) {
		count_refusal(c, m->team, m->buffered != 0, &a, &err);
		return cn_slot_refused(op, &err);
	}
	call = (struct cn_call){
		.op = a.op,
		.bytes = a.bytes,
		.rank = cn_member_rank(member),
		.ranks = cn_member_ranks(member),
		.root = a.root,
		.nodes = cn_member_nodes(member),
		.local = cn_member_local(member),
		.element = a.element,
	};
	rc = cn_buffers_resolve(op, m, &call, &a, &err);
	if (rc == COLLNET_EINVAL) {
		cn_slot_free(op);
		return false;
	}
	if (rc != COLLNET_OK) {
		if (m->persistent == 0) {
			count_refusal(c, m->team, m->buffered != 0, &a, &err);
		}
		return cn_slot_refused(op, &err);
	}
	a.reducer = cn_op_reduces(a.op) ? cn_combine_by(op, &a, &call) : NULL;
	op->buffered = m->buffered != 0;
	op->team = m->team;
	cn_call_make(c, &(struct cn_client_call){ .kind = m->persistent != 0 ? CN_CALL_PREPARE
									     : CN_CALL_POST,
						  .op = op,
						  .args = a });
	return true;
}

bool cn_operation_start(struct cn_client *c, const struct cn_msg_start *m)
{
	struct cn_op_slot *op = &c->ops[m->head.tag];
	struct cn_client_call k = { .kind = CN_CALL_START, .op = op };
	struct cn_err err;

	if (!op->kept || op->busy) {
		return cn_client_violation(
			c, "START of what is not a persistent operation, or outstanding");
	}
	op->busy = true;
	op->combining = false;
	k.args.deadline = cn_slot_deadline(c, m->called, m->timeout_ms);
	if (k.args.deadline <= c->daemon->now && op->prepared != NULL) {
		cn_prepared_late(op->prepared, &err);
		return cn_slot_refused(op, &err);
	}
	if (op->prepared != NULL && cn_member_check(c->teams[op->team], &err) == COLLNET_OK &&
	    cn_operation_in_order(c, op->team, m->refused, &err) != COLLNET_OK) {
		count_refusal(c, op->team, false, &k.args, &err);
		return cn_slot_refused(op, &err);
	}
	cn_call_make(c, &k);
	return true;
}

bool cn_operation_release(struct cn_client *c, const struct cn_msg_release *m)
{
	struct cn_op_slot *op = &c->ops[m->head.tag];

	if (!op->kept || op->busy) {
		return cn_client_violation(
			c, "RELEASE of what is not a persistent operation, or outstanding");
	}
	cn_prepared_release(op->prepared);
	cn_slot_free(op);
	return true;
}

void cn_client_release_team(struct cn_client *c, uint32_t team)
{
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		struct cn_op_slot *op = &c->ops[i];

		if (op->kept && op->team == team) {
			cn_prepared_release(op->prepared);
			op->prepared = NULL;
		}
	}
}

void cn_client_release_all(struct cn_client *c)
{
	for (uint32_t i = 0; i < CN_MSG_REQUESTS; i++) {
		if (c->ops[i].kept) {
			cn_slot_free(&c->ops[i]);
		}
	}
}
