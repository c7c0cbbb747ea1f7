/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allgather by rounds of doubling over the nodes, in the order of their numbers: the minimum number
 * of sequential messages, each of all blocks that the node has. Blocks of consecutive ranks are one
 * message.
 *
 * The sends of a round wait for the receives of the previous one. Sends are in list order, so by
 * then all earlier receives are complete too.
 *
 * In the vector variant the offsets on the other node are not known, so each block is a message,
 * and a digest precedes those of a round.
 */
#include "sched/allgather/doubling.h"

#include <stdlib.h>

#include "sched/allgather/allgather.h"
#include "util/ascending.h"

static bool is_power_of_two(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

struct cn_doubling cn_doubling_send(uint32_t parts, uint32_t round, uint32_t part)
{
	const uint32_t d = 1u << round;

	if (is_power_of_two(parts)) {
		return (struct cn_doubling){ part, part ^ d, part & ~(d - 1), d };
	}
	return (struct cn_doubling){ part, (part + parts - d) % parts, part,
				     parts - d < d ? parts - d : d };
}

struct cn_doubling cn_doubling_receive(uint32_t parts, uint32_t round, uint32_t part)
{
	const uint32_t d = 1u << round;

	return cn_doubling_send(parts, round,
				is_power_of_two(parts) ? part ^ d : (part + d) % parts);
}

uint32_t cn_doubling_ranks(const struct cn_layout *l, const struct cn_doubling *m, uint32_t *ranks)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < m->count; k++) {
		const uint32_t node = (m->first + k) % l->nnodes;

		for (uint32_t i = l->first[node]; i < l->first[node + 1]; i++) {
			ranks[n++] = l->ranks[i];
		}
	}
	qsort(ranks, n, sizeof(*ranks), cn_ascending_u32);
	return n;
}

uint32_t cn_doubling_run(const uint32_t *ranks, uint32_t n, uint32_t at)
{
	uint32_t run = 1;

	while (at + run < n && ranks[at + run] == ranks[at] + run) {
		run++;
	}
	return run;
}

/* ---- the planner ------------------------------------------------------------------------ */

struct gathering {
	struct cn_allgather g;
	uint32_t *ranks; /* [nranks] of the message that is planned */
	uint32_t n;
};

/* Adds the blocks of a message, like `a`, which has neither spans nor length. */
static int blocks(struct gathering *x, const struct cn_doubling *m, struct cn_action a)
{
	const struct cn_allgather *g = &x->g;
	int rc = COLLNET_OK;

	for (uint32_t at = 0, run; rc == COLLNET_OK && at < x->n; at += run) {
		run = cn_doubling_run(x->ranks, x->n, at);
		a.src = cn_allgather_place(g, m->from, 0, x->ranks[at]);
		a.dst = cn_allgather_place(g, m->to, 0, x->ranks[at]);
		a.len = run * g->bytes;
		rc = cn_sched_add(g->out, &a, g->err);
		if (rc == COLLNET_OK && a.kind == CN_ACT_RECV) {
			rc = cn_allgather_share(g, x->ranks[at], run, a.phase, g->out->n - 1);
		}
	}
	return rc;
}

/* The same for blocks of any size. */
static int vector_blocks(struct gathering *x, const struct cn_doubling *m, struct cn_action a)
{
	const struct cn_allgather *g = &x->g;
	struct cn_messages messages;
	int rc = cn_messages_begin(&messages, &a, x->n, g->out, g->err);

	for (uint32_t i = 0; rc == COLLNET_OK && i < x->n; i++) {
		const uint32_t origin = x->ranks[i];

		rc = cn_messages_add(&messages, cn_allgather_place(g, m->from, 0, origin),
				     cn_allgather_place(g, m->to, 0, origin),
				     cn_allgather_length(g, origin), g->err);
		if (rc == COLLNET_OK && a.kind == CN_ACT_RECV) {
			rc = cn_allgather_share(g, origin, 1, a.phase, g->out->n - 1);
		}
	}
	return rc == COLLNET_OK ? cn_messages_end(&messages, g->err) : rc;
}

static int message(struct gathering *x, struct cn_doubling m, struct cn_action a)
{
	x->n = cn_doubling_ranks(x->g.l, &m, x->ranks);
	return x->g.blocks != NULL ? vector_blocks(x, &m, a) : blocks(x, &m, a);
}

/* Makes the sends that follow wait for the receives of actions `from` and later at the lowest
 * rank. */
static int wait_for(const struct cn_allgather *g, uint32_t from)
{
	const uint32_t lowest = g->l->ranks[g->l->first[g->me]], end = g->out->n;
	int rc = COLLNET_OK;

	for (uint32_t i = from; rc == COLLNET_OK && i < end; i++) {
		const struct cn_action *of = &g->out->actions[i];
		const struct cn_action a = {
			.kind = CN_ACT_WAIT, .dep = CN_DEP_COMPLETE, .dep_on = i, .peer = g->me
		};

		if (of->kind == CN_ACT_RECV || (from == 0 && of->dst.rank == lowest)) {
			rc = cn_sched_add(g->out, &a, g->err);
		}
	}
	return rc;
}

static int rounds(struct gathering *x)
{
	const struct cn_allgather *g = &x->g;
	const uint32_t nodes = g->l->nnodes;
	struct cn_action send = { .kind = CN_ACT_SEND }, receive = { .kind = CN_ACT_RECV };
	uint32_t brought = 0;
	int rc = COLLNET_OK;

	g->out->phases = cn_log2_up(nodes);
	for (uint32_t k = 0; rc == COLLNET_OK && k < g->out->phases; k++) {
		const struct cn_doubling out = cn_doubling_send(nodes, k, g->me),
					 in = cn_doubling_receive(nodes, k, g->me);

		send.phase = receive.phase = k;
		send.peer = out.to;
		receive.peer = in.from;
		rc = wait_for(g, brought);
		if (rc == COLLNET_OK) {
			rc = message(x, out, send);
		}
		brought = g->out->n;
		if (rc == COLLNET_OK) {
			rc = message(x, in, receive);
		}
	}
	return rc;
}

int cn_plan_allgather_doubling(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
			       struct cn_sched *out, struct cn_err *err)
{
	struct gathering x = { .g = { .l = l,
				      .bytes = p->bytes,
				      .blocks = p->blocks,
				      .me = me,
				      .out = out,
				      .err = err } };
	int rc;

	out->order = CN_ORDER_IN_TURN;
	x.ranks = malloc(l->nranks * sizeof(*x.ranks));
	if (x.ranks == NULL) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan an allgather of %u ranks",
			       l->nranks);
	}
	rc = cn_allgather_own(&x.g);
	if (rc == COLLNET_OK) {
		rc = rounds(&x);
	}
	free(x.ranks);
	return rc;
}
