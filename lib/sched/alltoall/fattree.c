/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Total exchange in fat trees: Dimopoulos and Dimakopoulos, section 5; see fattree.h. A message
 * holds its whole path for a phase, so the steps of the paper's pipeline are
 * not those of the schedule: shares follow each other without overlap.
 *
 * There are no synchronisations. A node's send waits for what it receives in the phases before,
 * which keeps neighbours in step but proves no order; so the schedule guarantees free links in a
 * phase (CN_GUARANTEE_LINKS) and not that phases never meet.
 */
#include <stdlib.h>

#include "sched/alltoall/fattree.h"
#include "sched/planners.h"

/* One entry of a node's partner schedule. */
struct partner {
	uint32_t phase, peer;
	bool send;
};

static int compare_partners(const void *pa, const void *pb)
{
	const struct partner *a = pa, *b = pb;

	if (a->phase != b->phase) {
		return a->phase < b->phase ? -1 : 1;
	}
	return (int)b->send - (int)a->send;
}

/* to and from: the phases of cn_fattree_node(). */
static int add_partners(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			const uint32_t *to, const uint32_t *from, struct cn_sched *out,
			struct cn_err *err)
{
	struct partner *m = malloc(2 * (size_t)l->nnodes * sizeof(*m));
	struct cn_after after = { CN_DEP_NONE, 0 };
	uint32_t n = 0;
	int rc = COLLNET_OK;

	if (m == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", l->nnodes);
	}
	for (uint32_t i = 0; i < l->nnodes; i++) {
		if (i != me) {
			m[n++] = (struct partner){ to[i], i, true };
			m[n++] = (struct partner){ from[i], i, false };
		}
	}
	qsort(m, n, sizeof(*m), compare_partners);
	for (uint32_t i = 0; rc == COLLNET_OK && i < n; i++) {
		if (m[i].send) {
			rc = cn_alltoall_send(l, p, me, m[i].peer, m[i].phase, after, out, err);
		} else {
			rc = cn_alltoall_recv(l, p, me, m[i].peer, m[i].phase, out, err);
			after = (struct cn_after){ CN_DEP_COMPLETE, out->n - 1 };
		}
	}
	free(m);
	return rc;
}

int cn_plan_alltoall_fattree(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			     struct cn_sched *out, struct cn_err *err)
{
	uint32_t *phases = malloc(2 * (size_t)l->nnodes * sizeof(*phases));
	struct cn_fattree *x = NULL;
	int rc;

	if (phases == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", l->nnodes);
	}
	rc = cn_fattree_rooted(l->tree, &x, err);
	if (rc == COLLNET_OK) {
		out->order = CN_ORDER_IN_TURN;
		out->phases = x->phases;
		rc = cn_fattree_node(x, me, phases, phases + l->nnodes, err);
	}
	if (rc == COLLNET_OK) {
		rc = cn_alltoall_local(l, p, me, out, err);
	}
	if (rc == COLLNET_OK) {
		rc = add_partners(l, p, me, phases, phases + l->nnodes, out, err);
	}
	cn_fattree_free(x);
	free(phases);
	return rc;
}
