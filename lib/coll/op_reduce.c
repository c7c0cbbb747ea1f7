/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The REDUCE actions of an operation: passed to the ranks that own the memory, one fragment at a
 * time per rank, of all whole elements available. Data that arrive while a rank combines form one
 * fragment, so a slow rank gets fewer and longer ones (coalescing). Actions that add consecutive
 * operands to one result are one fragment when all operands have arrived.
 */
#include <string.h>

#include "coll/engine_state.h"
#include "coll/op.h"

#define TOGETHER_MAX 65536u /* bytes of a fragment of several actions */

/* Bytes that action i can be combined up to. */
static uint64_t available(const struct cn_op *op, uint32_t i)
{
	const struct cn_action *a = &op->sched.actions[i];
	const struct cn_progress *d = &op->progress[a->dep_on];
	const uint64_t element = op->plan.element > 0 ? op->plan.element : 1;

	if (a->after != i && !op->progress[a->after].complete) {
		return 0;
	}
	if (a->dep == CN_DEP_NONE || d->complete) {
		return a->len;
	}
	return a->dep == CN_DEP_STREAM ? d->done / element * element : 0;
}

static struct cn_span span_at(struct cn_span s, uint64_t done)
{
	s.offset += done;
	return s;
}

/* The rank has combined `n` bytes more of its current action. */
static void advance(struct cn_op *op, struct cn_post *post, uint64_t n)
{
	const uint32_t i = post->reduce;
	const struct cn_action *a = &op->sched.actions[i];
	struct cn_progress *p = &op->progress[i];

	p->done += n;
	cn_op_stream_copies(op, i, cn_op_address(op, &a->dst) + p->done - n, p->done - n,
			    (uint32_t)n);
	if (p->done == a->len) {
		post->reduce = p->next;
		cn_op_complete(op, i);
	}
}

/*
 * How many actions from `first` on are one fragment: the second adds what follows the first's right
 * operand to the first's result, and so on. 0: not all operands have arrived. Long operands are
 * combined as they arrive.
 */
static uint32_t operands(const struct cn_op *op, uint32_t first)
{
	const struct cn_action *a = &op->sched.actions[first];
	struct cn_span right = a->right;
	bool all = available(op, first) == a->len;
	uint32_t n = 1;

	for (uint32_t i = op->progress[first].next; i != CN_NONE; i = op->progress[i].next, n++) {
		const struct cn_action *b = &op->sched.actions[i];

		right.offset += a->len;
		if (b->len != a->len || !cn_span_same(&b->src, &a->dst) ||
		    !cn_span_same(&b->dst, &a->dst) || !cn_span_same(&b->right, &right)) {
			break;
		}
		all = all && available(op, i) == b->len;
	}
	return n == 1 || n * a->len > TOGETHER_MAX ? 1 : all ? n : 0;
}

/* The rank has combined its fragment. */
static void advance_piece(struct cn_op *op, struct cn_post *post)
{
	uint64_t bytes = post->combining;

	post->combining = 0;
	for (uint32_t n = post->operands; n > 0; n--) {
		advance(op, post, bytes);
		if (n > 1) {
			bytes = op->sched.actions[post->reduce].len;
		}
	}
}

/*
 * True if a short fragment, the rank's last `n` actions from `first` on, should wait for the
 * remaining actions, copies and sends that can all run. After them it ends the operation, so its
 * combiner need not report.
 */
static bool goes_last(const struct cn_op *op, uint32_t first, uint32_t n)
{
	uint32_t i = first, others = op->remaining - n;

	for (uint32_t k = 0; k < n; k++) {
		i = op->progress[i].next;
	}
	if (i != CN_NONE || others == 0 || n * op->sched.actions[first].len > TOGETHER_MAX) {
		return false;
	}
	for (i = 0; i < op->sched.n && others > 0; i++) {
		const struct cn_action *a = &op->sched.actions[i];

		if (op->progress[i].complete || a->kind == CN_ACT_REDUCE) {
			continue;
		}
		if (a->kind == CN_ACT_RECV ||
		    (a->dep != CN_DEP_NONE && !op->progress[a->dep_on].complete)) {
			return false;
		}
		others--;
	}
	return others == 0;
}

/* True: the rank has combined something. */
static bool reduce_rank(struct cn_op *op, uint32_t k)
{
	struct cn_post *post = &op->posts[k];
	bool combined = false;

	while (post->reduce != CN_NONE && post->combining == 0) {
		const struct cn_action *a = &op->sched.actions[post->reduce];
		const uint64_t done = op->progress[post->reduce].done;
		const uint64_t up_to = available(op, post->reduce);
		uint32_t n = 1;
		struct cn_combine c;

		if (up_to <= done) {
			return combined;
		}
		if (a->len <= op->combine_max) {
			n = operands(op, post->reduce);
		}
		if (n == 0) {
			return combined;
		}
		op->deferred_reduces = up_to == a->len && goes_last(op, post->reduce, n) ? n : 0;
		if (op->deferred_reduces > 0) {
			return combined;
		}
		c = (struct cn_combine){
			.left = span_at(a->src, done),
			.right = span_at(a->right, done),
			.out = span_at(a->dst, done),
			/* Fragments that copies follow are counted in 32 bits. */
			.bytes = up_to - done < op->combine_max ? up_to - done : op->combine_max,
			.operands = n,
		};
		c.last = n == op->remaining && done + c.bytes == a->len;
		post->combining = c.bytes;
		post->operands = n;
		if (!post->reducer->combine(post->reducer, &c)) {
			return combined;
		}
		advance_piece(op, post);
		combined = true;
	}
	return combined;
}

/* Repeats until nothing is ready: a fragment combined for one rank may be copied at once to a rank
 * that the loop has already passed. */
void cn_op_reduce(struct cn_op *op)
{
	bool again = op->reduces;

	while (again) {
		again = false;
		for (uint32_t k = 0; k < cn_op_locals(op->team); k++) {
			again |= reduce_rank(op, k);
		}
	}
}

void cn_coll_combined(struct cn_reducer *r)
{
	struct cn_op *op = r->op;
	struct cn_post *post;

	if (op == NULL || op->state != OP_RUNNING || op->posts[r->local].combining == 0) {
		return;
	}
	post = &op->posts[r->local];
	advance_piece(op, post);
	cn_op_progress(op);
}
