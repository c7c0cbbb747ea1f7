/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts, values, and the actions that move and combine them. */
#include "sched/reduction.h"

#include <stdlib.h>
#include <string.h>

#include "sched/allgather/ring.h"
#include "sched/planners.h"
#include "util/byteorder.h"

/* The parts of the nodes, in the order of a ring without contention where the network is known. */
static int parts_by_node(struct cn_reduction *r)
{
	const struct cn_layout *l = r->l;
	uint32_t *order = malloc(l->nnodes * sizeof(*order));

	if (order == NULL) {
		return COLLNET_ENOMEM;
	}
	for (uint32_t k = 0; k < l->nnodes; k++) {
		order[k] = k;
	}
	if (l->tree != NULL) {
		cn_ring_lr1(l->tree, order);
	}
	for (uint32_t k = 0; k < l->nnodes; k++) {
		const uint32_t node = order[k];

		r->parts[r->nparts++] = (struct cn_part){ node, l->ranks + l->first[node],
							  l->first[node + 1] - l->first[node] };
	}
	free(order);
	return COLLNET_OK;
}

/* The parts of consecutive ranks. */
static int parts_by_rank(struct cn_reduction *r)
{
	const struct cn_layout *l = r->l;
	uint32_t *next = malloc(l->nnodes * sizeof(*next)); /* of a node's ranks */

	if (next == NULL) {
		return COLLNET_ENOMEM;
	}
	memcpy(next, l->first, l->nnodes * sizeof(*next));
	for (uint32_t rank = 0; rank < l->nranks; rank++) {
		const uint32_t node = l->node_of[rank], at = next[node]++;

		if (rank > 0 && l->node_of[rank - 1] == node) {
			r->parts[r->nparts - 1].n++;
		} else {
			r->parts[r->nparts++] = (struct cn_part){ node, l->ranks + at, 1 };
		}
	}
	free(next);
	return COLLNET_OK;
}

/* Blocks of a reduce-scatter follow one another, and are of the same sizes for all ranks. */
static int check_blocks(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			struct cn_err *err)
{
	const uint32_t *here = l->ranks + l->first[me];

	for (uint32_t k = 0; p->blocks != NULL && k < l->first[me + 1] - l->first[me]; k++) {
		uint64_t at = 0;

		for (uint32_t r = 0; r < l->nranks; r++) {
			const struct cn_block *b = &p->blocks[k].send[r];

			if (b->len != p->blocks[0].send[r].len) {
				return cn_blocks_differ(here[k], b->len, here[0],
							p->blocks[0].send[r].len, err);
			}
			if (b->at != at || (p->element > 0 && b->len % p->element != 0)) {
				return cn_fail(err, COLLNET_EINVAL,
					       "block %u of rank %u is not where the one before it "
					       "ends, or not of whole elements",
					       r, here[k]);
			}
			at += b->len;
		}
	}
	return COLLNET_OK;
}

int cn_reduction_init(struct cn_reduction *r, const struct cn_layout *l, const struct cn_plan *p,
		      uint32_t me, bool ordered, struct cn_sched *out, struct cn_err *err)
{
	const uint32_t most = ordered ? l->nranks : l->nnodes;

	*r = (struct cn_reduction){ .l = l, .p = p, .me = me, .out = out, .err = err };
	r->rc = check_blocks(l, p, me, err);
	if (r->rc != COLLNET_OK) {
		return r->rc;
	}
	for (uint32_t rank = 0; p->blocks != NULL && rank < l->nranks; rank++) {
		r->digest = cn_digest(r->digest, p->blocks[0].send[rank].len);
	}
	out->order = CN_ORDER_IN_TURN;
	out->phases = 0;
	r->parts = calloc(most, sizeof(*r->parts));
	r->used = calloc(l->nranks, sizeof(*r->used));
	r->value = calloc(most, sizeof(*r->value));
	r->in = calloc(most, sizeof(*r->in));
	if (r->parts == NULL || r->used == NULL || r->value == NULL || r->in == NULL) {
		r->rc = COLLNET_ENOMEM;
	} else {
		r->rc = ordered ? parts_by_rank(r) : parts_by_node(r);
	}
	if (r->rc != COLLNET_OK) {
		r->rc = cn_fail(err, r->rc, "no memory to plan a reduction of %u ranks", l->nranks);
		cn_reduction_done(r);
	}
	return r->rc;
}

int cn_reduction_done(struct cn_reduction *r)
{
	free(r->parts);
	free(r->used);
	free(r->value);
	free(r->in);
	r->parts = NULL;
	r->used = NULL;
	r->value = r->in = NULL;
	return r->rc;
}

uint32_t cn_reduction_part_of(const struct cn_reduction *r, uint32_t rank)
{
	for (uint32_t i = 0; i < r->nparts; i++) {
		for (uint32_t k = 0; k < r->parts[i].n; k++) {
			if (r->parts[i].ranks[k] == rank) {
				return i;
			}
		}
	}
	return 0;
}

uint32_t cn_reduction_handler(const struct cn_reduction *r, const struct cn_part *part)
{
	for (uint32_t k = 0; k < part->n && r->p->op == CN_OP_REDUCE; k++) {
		if (part->ranks[k] == r->p->root) {
			return part->ranks[k];
		}
	}
	return part->ranks[0];
}

int cn_reduction_small(const struct cn_plan *p, const char *algorithm, struct cn_err *err)
{
	if (p->bytes > CN_REDUCTION_SMALL) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%s of %llu bytes: algorithm %s is for blocks of up to %u bytes",
			       cn_op_name(p->op), (unsigned long long)p->bytes, algorithm,
			       CN_REDUCTION_SMALL);
	}
	return COLLNET_OK;
}

int cn_reduction_unordered(const struct cn_plan *p, const char *algorithm, struct cn_err *err)
{
	if (p->ordered) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%s: algorithm %s is for commutative operations", cn_op_name(p->op),
			       algorithm);
	}
	return COLLNET_OK;
}

struct cn_block cn_reduction_block(const struct cn_reduction *r, uint32_t rank)
{
	if (r->p->blocks != NULL) {
		return r->p->blocks[0].send[rank];
	}
	return (struct cn_block){ rank * r->p->bytes, r->p->bytes };
}

struct cn_span cn_reduction_slot(struct cn_reduction *r, uint32_t rank, uint64_t len)
{
	const struct cn_span s = { CN_BUF_SCRATCH, rank, r->used[rank] };

	r->used[rank] += cn_reduction_room(len);
	return s;
}

struct cn_value cn_reduction_own(uint32_t rank, uint64_t offset)
{
	return (struct cn_value){ { CN_BUF_SEND, rank, offset }, CN_REDUCTION_NONE };
}

/* ---- actions -------------------------------------------------------------------------- */

/* How an action uses a value: byte by byte as it is made, if it is made in the same bytes. */
static enum cn_dep dep_of(const struct cn_reduction *r, const struct cn_value *v, uint64_t len)
{
	const struct cn_action *by;

	if (v->made == CN_REDUCTION_NONE) {
		return CN_DEP_NONE;
	}
	by = &r->out->actions[v->made];
	return by->len == len && cn_span_same(&by->dst, &v->at) ? CN_DEP_STREAM : CN_DEP_COMPLETE;
}

/* Adds the action; its number. */
static uint32_t add(struct cn_reduction *r, const struct cn_action *a)
{
	if (r->rc == COLLNET_OK) {
		r->rc = cn_sched_add(r->out, a, r->err);
	}
	return r->rc == COLLNET_OK ? r->out->n - 1 : CN_REDUCTION_NONE;
}

struct cn_value cn_reduction_move(struct cn_reduction *r, struct cn_value v, struct cn_span to,
				  uint64_t len, uint32_t phase)
{
	const uint32_t from_node = r->l->node_of[v.at.rank], to_node = r->l->node_of[to.rank];
	struct cn_action a = { .phase = phase, .src = v.at, .dst = to, .len = len };
	struct cn_value moved = { to, CN_REDUCTION_NONE };

	if (r->rc != COLLNET_OK) {
		return moved;
	}
	if (from_node == r->me) {
		a.kind = to_node == r->me ? CN_ACT_COPY : CN_ACT_SEND;
		a.peer = to_node;
		a.dep = dep_of(r, &v, len);
		a.dep_on = a.dep == CN_DEP_NONE ? 0 : v.made;
		moved.made = add(r, &a);
	} else if (to_node == r->me) {
		a.kind = CN_ACT_RECV;
		a.peer = from_node;
		moved.made = add(r, &a);
	}
	if (to_node != r->me) {
		moved.made = CN_REDUCTION_NONE;
	}
	if (from_node != to_node && phase >= r->out->phases) {
		r->out->phases = phase + 1;
	}
	return moved;
}

void cn_reduction_agree(struct cn_reduction *r, uint32_t from, uint32_t to, uint32_t phase)
{
	struct cn_action a = { .kind = from == r->me ? CN_ACT_SEND : CN_ACT_RECV,
			       .peer = from == r->me ? to : from,
			       .phase = phase,
			       .src = { .buffer = CN_BUF_DIGEST },
			       .len = sizeof(a.src.offset) };

	if (r->p->blocks == NULL || from == to) {
		return;
	}
	if (phase >= r->out->phases) {
		r->out->phases = phase + 1;
	}
	if (from == r->me || to == r->me) {
		cn_put_be64((uint8_t *)&a.src.offset, r->digest);
		a.dst = a.src;
		add(r, &a);
	}
}

void cn_reduction_wait(struct cn_reduction *r, struct cn_value v)
{
	const struct cn_action a = {
		.kind = CN_ACT_WAIT, .dep = CN_DEP_COMPLETE, .dep_on = v.made, .peer = r->me
	};

	add(r, &a);
}

/* True if the action is a REDUCE of the rank, which its later ones follow anyway. */
static bool reduced_by(const struct cn_reduction *r, uint32_t action, uint32_t rank)
{
	const struct cn_action *a = &r->out->actions[action];

	return a->kind == CN_ACT_REDUCE && a->dst.rank == rank;
}

struct cn_value cn_reduction_combine(struct cn_reduction *r, struct cn_value left,
				     struct cn_value right, struct cn_span to, uint64_t len)
{
	const uint32_t node = r->l->node_of[to.rank];
	struct cn_value made = { to, CN_REDUCTION_NONE };
	const struct cn_value *waits[2], *v[2] = { &left, &right };
	struct cn_action a = { .kind = CN_ACT_REDUCE,
			       .peer = node,
			       .src = left.at,
			       .right = right.at,
			       .dst = to,
			       .len = len };
	int n = 0;

	if (r->rc != COLLNET_OK || node != r->me) {
		return made;
	}
	for (int i = 0; i < 2; i++) {
		if (v[i]->made != CN_REDUCTION_NONE && !reduced_by(r, v[i]->made, to.rank)) {
			waits[n++] = v[i];
		}
	}
	a.after = r->out->n;
	if (n > 0) {
		a.dep = dep_of(r, waits[0], len);
		a.dep_on = waits[0]->made;
	}
	if (n > 1) {
		a.after = waits[1]->made;
	}
	made.made = add(r, &a);
	return made;
}

struct cn_value cn_reduction_fold(struct cn_reduction *r, const struct cn_part *part,
				  uint32_t handler, uint64_t offset, uint64_t len,
				  const struct cn_span *to)
{
	struct cn_value v = cn_reduction_own(handler, offset);
	uint32_t h = 0, left = part->n - 1;

	/* Another node's copies and combinations are not in this plan: their places are. */
	if (part->node != r->me && left > 0) {
		r->used[handler] += (left - 1) * cn_reduction_room(len);
		v.at = cn_reduction_slot(r, handler, len);
		if (to != NULL) {
			v.at = *to;
		}
		return v;
	}
	while (part->ranks[h] != handler) {
		h++;
	}
	/* From the handler's own outwards: those before it, and then those after it. */
	for (uint32_t i = 0; i < part->n; i++) {
		const uint32_t k = i < h ? h - 1 - i : i;
		struct cn_value other;

		if (k == h) {
			continue;
		}
		left--;
		other = cn_reduction_move(r, cn_reduction_own(part->ranks[k], offset),
					  cn_reduction_slot(r, handler, len), len, 0);
		v = cn_reduction_combine(r, k < h ? other : v, k < h ? v : other,
					 left == 0 && to != NULL ? *to : other.at, len);
	}
	if (part->n == 1 && to != NULL) {
		v = cn_reduction_move(r, v, *to, len, 0);
	}
	return v;
}

void cn_reduction_share(struct cn_reduction *r, const struct cn_part *part, struct cn_value v,
			uint64_t len)
{
	for (uint32_t i = 0; part->node == r->me && i < part->n; i++) {
		if (part->ranks[i] != v.at.rank) {
			cn_reduction_move(r, v, cn_reduction_result(part->ranks[i], v.at.offset),
					  len, 0);
		}
	}
}
