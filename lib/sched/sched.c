/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storage of schedules, and the interface to the planners: checks the preconditions of all
 * planners.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/planners.h"
#include "sched/sched.h"
#include "util/vector.h"

#define CN_SCHED_MAX (1u << 25) /* twice what 4,096 ranks on one node need */

int cn_sched_check_room(const struct cn_sched *s, uint64_t more, struct cn_err *err)
{
	const uint32_t most = s->most > 0 && s->most < CN_SCHED_MAX ? s->most : CN_SCHED_MAX;

	return more <= most - s->n
		       ? COLLNET_OK
		       : cn_fail(err, COLLNET_ELIMIT,
				 "a schedule of more than %u actions is too long", most);
}

int cn_sched_add(struct cn_sched *s, const struct cn_action *a, struct cn_err *err)
{
	struct cn_action *actions;
	const int rc = cn_sched_check_room(s, 1, err);

	if (rc != COLLNET_OK) {
		return rc;
	}
	if (s->stop != NULL && atomic_load_explicit(s->stop, memory_order_relaxed)) {
		return cn_fail(err, COLLNET_ERANK, "planning of the schedule was cancelled");
	}
	actions = cn_vector_grow(s->actions, s->n, &s->cap, sizeof(*actions));
	if (actions == NULL) {
		return cn_fail(err, COLLNET_ENOMEM,
			       "no memory for a schedule of more than %u actions", s->n);
	}
	s->actions = actions;
	s->actions[s->n++] = *a;
	return COLLNET_OK;
}

void cn_sched_reset(struct cn_sched *s)
{
	free(s->actions);
	memset(s, 0, sizeof(*s));
}

static int check_layout(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			struct cn_err *err)
{
	if (l->nranks == 0 || l->nranks > COLLNET_RANKS_MAX || l->nnodes == 0 ||
	    l->nnodes > l->nranks || l->first[0] != 0 || l->first[l->nnodes] != l->nranks) {
		return cn_fail(err, COLLNET_EINVAL,
			       "a team of %u ranks on %u nodes cannot be planned", l->nranks,
			       l->nnodes);
	}
	if (me >= l->nnodes) {
		return cn_fail(err, COLLNET_EINVAL, "node %u is not one of the team's %u nodes", me,
			       l->nnodes);
	}
	if (p->root >= l->nranks) {
		return cn_fail(err, COLLNET_EINVAL, "root %u is not one of the team's %u ranks",
			       p->root, l->nranks);
	}
	if (p->bytes > COLLNET_BLOCK_MAX) {
		return cn_fail(err, COLLNET_EINVAL, "a block of %llu bytes is longer than %llu",
			       (unsigned long long)p->bytes, (unsigned long long)COLLNET_BLOCK_MAX);
	}
	if (p->element > 0 && p->bytes % p->element != 0) {
		return cn_fail(err, COLLNET_EINVAL, "%llu bytes are not elements of %u bytes",
			       (unsigned long long)p->bytes, p->element);
	}
	for (uint32_t b = 0; b < l->nnodes; b++) {
		if (l->first[b] >= l->first[b + 1]) {
			return cn_fail(err, COLLNET_EINVAL, "node %u of the team has no rank", b);
		}
	}
	return COLLNET_OK;
}

unsigned cn_algorithm_guarantees(const struct cn_algorithm *a, const struct cn_layout *l)
{
	unsigned guarantees = a->guarantees;

	for (uint32_t x = 1; a->op == CN_OP_ALLTOALL && l->tree != NULL && x < l->tree->n; x++) {
		if (cn_tree_channels(l->tree, 2 * x) > 1) {
			guarantees &= ~(unsigned)CN_GUARANTEE_OPTIMAL;
		}
	}
	return guarantees;
}

int cn_sched_plan(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		  struct cn_sched *out, struct cn_err *err)
{
	const struct cn_algorithm *a = cn_algorithm_by_id(p->op, p->algorithm);
	struct cn_plan resolved = *p;
	enum cn_permutation kind = (enum cn_permutation)p->permutation;
	int rc;

	out->n = 0;
	out->phases = 0;
	out->order = CN_ORDER_IN_TURN;
	if (!a || cn_op_is_vector(p->op) != (p->blocks != NULL)) {
		return cn_fail(err, COLLNET_EINVAL, "no algorithm with id %u for operation %d",
			       (unsigned)p->algorithm, (int)p->op);
	}
	rc = check_layout(l, p, me, err);
	if (rc) {
		return rc;
	}
	if (a->needs_tree && l->tree == NULL) {
		return cn_fail(err, COLLNET_ETOPO,
			       "%s plans by the network, which is not known here: "
			       "give every node a topology file that has all hosts of the team",
			       a->name);
	}
	if (kind == CN_PERM_AUTO) {
		kind = a->permutation;
	}
	rc = cn_perm_resolve(kind, l->nnodes, &kind, err);
	if (rc) {
		return rc;
	}
	resolved.permutation = (uint8_t)kind;
	rc = a->plan(l, &resolved, me, out, err);
	if (rc) {
		out->n = 0;
	}
	return rc;
}
