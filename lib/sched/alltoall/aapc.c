/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All-to-all in phases without contention, as few as the most loaded link of the tree allows: Faraj
 * and Yuan's message scheduling (see aapc.h). A node sends its messages in order of phases. It
 * never waits for a whole phase: where one of its messages shares a link with another node's
 * message of an earlier phase, that node sends it a synchronisation after the message.
 *
 * In a phase the list has the waits, the message, the synchronisations to others after it, and the
 * receives: the message first, then the synchronisations after messages of that phase. The closing
 * synchronisations, which ensure that the next operation finds the links free, come last: no send
 * waits for them, but the operation completes only after them.
 */
#include <stdlib.h>

#include "sched/alltoall/aapc.h"
#include "sched/planners.h"
#include "util/vector.h"

enum item_kind { SYNC_RECV = 0, MESSAGE = 1, SYNC_SEND = 2, CLOSE = 3 };

/* An entry of the list, sorted by `phase`, kind, `until`. */
struct item {
	uint32_t phase, until; /* until: phase of the message that waits for a synchronisation;
				* CLOSE: none of this operation */
	uint32_t peer;	       /* place */
	enum item_kind kind;
};

struct items {
	struct item *i;
	uint32_t n, cap;
};

/* One node's part. */
struct part {
	const struct cn_layout *l;
	const struct cn_plan *p;
	uint32_t me; /* node */
	struct cn_aapc *a;
	struct cn_aapc_sync *sync;
	struct items sends, recvs; /* recvs: messages and synchronisations received */
	uint32_t *index;	   /* [recvs.n] place in the schedule of a synchronisation */
};

static int add_item(struct items *l, struct item i, struct cn_err *err)
{
	struct item *grown = cn_vector_grow(l->i, l->n, &l->cap, sizeof(*grown));

	if (grown == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan an all-to-all");
	}
	l->i = grown;
	l->i[l->n++] = i;
	return COLLNET_OK;
}

static int compare_items(const void *x, const void *y)
{
	const struct item *a = x, *b = y;

	if (a->phase != b->phase) {
		return a->phase < b->phase ? -1 : 1;
	}
	if (a->kind != b->kind) {
		return a->kind < b->kind ? -1 : 1;
	}
	if (a->until != b->until) {
		return a->until < b->until ? -1 : 1;
	}
	return a->peer < b->peer ? -1 : a->peer > b->peer;
}

/* Collects this node's messages and synchronisations. */
static int collect(struct part *t, struct cn_err *err)
{
	uint32_t me = t->a->place[t->me];
	int rc = COLLNET_OK;

	for (uint32_t peer = 0; !rc && peer < t->a->n; peer++) {
		const struct cn_aapc_message *list;
		struct cn_aapc_message m, back;
		uint32_t n = 0;

		if (peer == me) {
			continue;
		}
		m = cn_aapc_between(t->a, me, peer);
		back = cn_aapc_between(t->a, peer, me);
		rc = add_item(&t->sends, (struct item){ m.phase, 0, peer, MESSAGE }, err);
		if (!rc) {
			rc = add_item(&t->recvs, (struct item){ back.phase, 0, peer, MESSAGE },
				      err);
		}
		if (!rc) {
			rc = cn_aapc_after(t->sync, &m, &list, &n, err);
		}
		for (uint32_t e = 0; !rc && e < n; e++) {
			struct item i = { m.phase, list[e].phase, list[e].from, SYNC_SEND };

			rc = add_item(&t->sends, i, err);
		}
		n = 0;
		if (!rc) {
			rc = cn_aapc_before(t->sync, &m, &list, &n, err);
		}
		for (uint32_t e = 0; !rc && e < n; e++) {
			struct item sync_recv = { list[e].phase, m.phase, list[e].from, SYNC_SEND };
			struct item wait = { m.phase, list[e].phase, list[e].from, SYNC_RECV };

			rc = add_item(&t->recvs, sync_recv, err);
			if (!rc) {
				rc = add_item(&t->sends, wait, err);
			}
		}
	}
	return rc;
}

/* True if the peer sends a synchronisation after the phase or later. */
static bool is_synced(const struct items *l, uint32_t peer, uint32_t phase)
{
	for (uint32_t k = 0; k < l->n; k++) {
		if (l->i[k].kind == SYNC_SEND && l->i[k].peer == peer && l->i[k].phase >= phase) {
			return true;
		}
	}
	return false;
}

/*
 * Adds the closing synchronisations. Each is the last message between two nodes: later data would
 * serve as well, and so does another synchronisation, which both ends know.
 */
static int close_operation(struct part *t, struct cn_err *err)
{
	uint32_t me = t->a->place[t->me], n;
	struct cn_aapc_closing *list;
	int rc = cn_aapc_closing(t->a, me, &list, &n, err);

	for (uint32_t k = 0; !rc && k < n; k++) {
		bool mine = list[k].last.from == me;
		struct items *l = mine ? &t->sends : &t->recvs;
		struct item i = { list[k].last.phase, CN_TOPO_NONE,
				  mine ? list[k].to : list[k].last.from, CLOSE };

		if (!is_synced(l, i.peer, i.phase)) {
			rc = add_item(l, i, err);
		}
	}
	free(list);
	return rc;
}

static int add_send(struct part *t, const struct item *i, struct cn_sched *out, struct cn_err *err)
{
	const struct cn_after nothing = { CN_DEP_NONE, 0 };
	struct cn_action s = { .kind = CN_ACT_SEND,
			       .peer = t->a->node[i->peer],
			       .phase = i->phase };
	struct item key = { i->until, i->phase, i->peer, SYNC_SEND };
	const struct item *sync_recv;

	switch (i->kind) {
	case MESSAGE:
		return cn_alltoall_send(t->l, t->p, t->me, s.peer, i->phase, nothing, out, err);
	case SYNC_SEND:
	case CLOSE:
		return cn_sched_add(out, &s, err);
	case SYNC_RECV:
		break;
	}
	sync_recv = bsearch(&key, t->recvs.i, t->recvs.n, sizeof(key), compare_items);
	s.kind = CN_ACT_WAIT;
	s.dep = CN_DEP_COMPLETE;
	s.dep_on = t->index[sync_recv - t->recvs.i];
	return cn_sched_add(out, &s, err);
}

static int add_recv(struct part *t, uint32_t r, struct cn_sched *out, struct cn_err *err)
{
	const struct item *i = &t->recvs.i[r];
	struct cn_action a = { .kind = CN_ACT_RECV,
			       .peer = t->a->node[i->peer],
			       .phase = i->phase };

	t->index[r] = out->n;
	if (i->kind == MESSAGE) {
		return cn_alltoall_recv(t->l, t->p, t->me, a.peer, i->phase, out, err);
	}
	return cn_sched_add(out, &a, err);
}

/* Merges both lists by phase. */
static int merge(struct part *t, struct cn_sched *out, struct cn_err *err)
{
	uint32_t s = 0, r = 0;
	int rc = COLLNET_OK;

	qsort(t->sends.i, t->sends.n, sizeof(*t->sends.i), compare_items);
	qsort(t->recvs.i, t->recvs.n, sizeof(*t->recvs.i), compare_items);
	t->index = calloc(t->recvs.n, sizeof(*t->index));
	if (t->index == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan an all-to-all");
	}
	while (!rc && (s < t->sends.n || r < t->recvs.n)) {
		if (r == t->recvs.n ||
		    (s < t->sends.n && t->sends.i[s].phase <= t->recvs.i[r].phase)) {
			rc = add_send(t, &t->sends.i[s++], out, err);
		} else {
			rc = add_recv(t, r++, out, err);
		}
	}
	return rc;
}

int cn_plan_alltoall_aapc(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			  struct cn_sched *out, struct cn_err *err)
{
	struct part t = { .l = l, .p = p, .me = me };
	int rc = cn_aapc_new(l->tree, &t.a, err);

	out->order = CN_ORDER_IN_TURN;
	if (!rc) {
		out->phases = t.a->phases;
		rc = cn_alltoall_local(l, p, me, out, err);
	}
	if (!rc && l->nnodes > 1) {
		rc = cn_aapc_sync_new(t.a, CN_AAPC_EFFORT, &t.sync, err);
		if (!rc) {
			rc = collect(&t, err);
		}
		if (!rc) {
			rc = close_operation(&t, err);
		}
		if (!rc) {
			rc = merge(&t, out, err);
		}
	}
	free(t.index);
	free(t.sends.i);
	free(t.recvs.i);
	cn_aapc_sync_free(t.sync);
	cn_aapc_free(t.a);
	return rc;
}
