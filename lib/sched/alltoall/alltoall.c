/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the all-to-all generators share: the blocks between two nodes, and the partners of a node.
 *
 * Rank s sends its block d, at d * bytes of its send buffer, to block s of rank d's receive
 * buffer. Between two nodes the blocks go by source rank, then by destination rank; both sides
 * list them so. In a vector operation rank s has a send block for d, and d a receive block for s.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/planners.h"

/* The blocks of a vector operation, as node `me`, one of the two, knows them. */
static int add_vector(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		      uint32_t from, uint32_t to, const struct cn_action *like,
		      struct cn_sched *out, struct cn_err *err)
{
	uint32_t sources = l->first[from + 1] - l->first[from];
	uint32_t targets = l->first[to + 1] - l->first[to];
	struct cn_messages m;
	int rc = cn_messages_begin(&m, like, sources * targets, out, err);

	for (uint32_t i = 0; i < sources; i++) {
		uint32_t s = l->ranks[l->first[from] + i];

		for (uint32_t j = 0; rc == COLLNET_OK && j < targets; j++) {
			uint32_t d = l->ranks[l->first[to] + j];
			struct cn_block b = from == me ? p->blocks[i].send[d]
						       : p->blocks[j].recv[s];
			struct cn_span src = { CN_BUF_SEND, s, CN_OFFSET_UNKNOWN };
			struct cn_span dst = { CN_BUF_RECV, d, CN_OFFSET_UNKNOWN };

			if (from == me) {
				src.offset = b.at;
			} else {
				dst.offset = b.at;
			}
			rc = cn_messages_add(&m, src, dst, b.len, err);
		}
	}
	return rc == COLLNET_OK ? cn_messages_end(&m, err) : rc;
}

/* Copies of a vector operation between the ranks of this node. */
static int copy_vector(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       struct cn_sched *out, struct cn_err *err)
{
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = me };
	const uint32_t *ranks = l->ranks + l->first[me];
	uint32_t n = l->first[me + 1] - l->first[me];
	int rc = COLLNET_OK;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; rc == COLLNET_OK && j < n; j++) {
			struct cn_block from = p->blocks[i].send[ranks[j]];
			struct cn_block to = p->blocks[j].recv[ranks[i]];

			if (from.len != to.len) {
				return cn_blocks_differ(ranks[i], from.len, ranks[j], to.len, err);
			}
			a.src = (struct cn_span){ CN_BUF_SEND, ranks[i], from.at };
			a.dst = (struct cn_span){ CN_BUF_RECV, ranks[j], to.at };
			a.len = from.len;
			rc = a.len > 0 ? cn_sched_add(out, &a, err) : COLLNET_OK;
		}
	}
	return rc;
}

static int add_blocks(const struct cn_layout *l, const struct cn_plan *p, uint32_t from,
		      uint32_t to, struct cn_action a, struct cn_sched *out, struct cn_err *err)
{
	a.len = p->bytes;
	for (uint32_t i = l->first[from]; i < l->first[from + 1]; i++) {
		uint32_t s = l->ranks[i];

		for (uint32_t j = l->first[to]; j < l->first[to + 1]; j++) {
			uint32_t d = l->ranks[j];
			int rc;

			a.src = (struct cn_span){ CN_BUF_SEND, s, d * p->bytes };
			a.dst = (struct cn_span){ CN_BUF_RECV, d, s * p->bytes };
			rc = cn_sched_add(out, &a, err);
			if (rc) {
				return rc;
			}
		}
	}
	return COLLNET_OK;
}

int cn_alltoall_local(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		      struct cn_sched *out, struct cn_err *err)
{
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = me };
	const uint64_t mine = l->first[me + 1] - l->first[me];
	int rc;

	if (p->blocks != NULL) {
		return copy_vector(l, p, me, out, err);
	}
	/* Each block that this node sends or receives is one action. */
	rc = cn_sched_check_room(out, mine * (2 * l->nranks - mine), err);
	return rc != COLLNET_OK ? rc : add_blocks(l, p, me, me, a, out, err);
}

int cn_alltoall_send(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t to,
		     uint32_t phase, struct cn_after after, struct cn_sched *out,
		     struct cn_err *err)
{
	struct cn_action a = { .kind = CN_ACT_SEND, .peer = to, .phase = phase };

	a.dep = after.dep;
	a.dep_on = after.on;
	return p->blocks != NULL ? add_vector(l, p, me, me, to, &a, out, err)
				 : add_blocks(l, p, me, to, a, out, err);
}

int cn_alltoall_recv(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t from,
		     uint32_t phase, struct cn_sched *out, struct cn_err *err)
{
	struct cn_action a = { .kind = CN_ACT_RECV, .peer = from, .phase = phase };

	return p->blocks != NULL ? add_vector(l, p, me, from, me, &a, out, err)
				 : add_blocks(l, p, from, me, a, out, err);
}

int cn_partners_init(struct cn_partners *m, const struct cn_layout *l, const struct cn_plan *p,
		     uint32_t me, struct cn_err *err)
{
	memset(m, 0, sizeof(*m));
	m->kind = (enum cn_permutation)p->permutation;
	m->nnodes = l->nnodes;
	m->steps = cn_perm_steps(m->kind, l->nnodes);
	m->number = me;
	if (!p->contention_aware || !l->logical) {
		return COLLNET_OK;
	}
	m->number = l->logical[me];
	m->node_at = malloc(l->nnodes * sizeof(*m->node_at));
	if (!m->node_at) {
		return cn_fail(err, COLLNET_ENOMEM, "no memory to plan for %u nodes", l->nnodes);
	}
	for (uint32_t i = 0; i < l->nnodes; i++) {
		m->node_at[i] = CN_IDLE;
	}
	for (uint32_t i = 0; i < l->nnodes; i++) {
		uint32_t number = l->logical[i];

		if (number >= l->nnodes || m->node_at[number] != CN_IDLE) {
			cn_partners_done(m);
			return cn_fail(
				err, COLLNET_EINVAL,
				"the contention-aware numbers of %u nodes are no permutation",
				l->nnodes);
		}
		m->node_at[number] = i;
	}
	return COLLNET_OK;
}

void cn_partners_done(struct cn_partners *m)
{
	free(m->node_at);
	m->node_at = NULL;
}

static uint32_t node_at(const struct cn_partners *m, uint32_t number)
{
	return m->node_at && number != CN_IDLE ? m->node_at[number] : number;
}

uint32_t cn_partners_to(const struct cn_partners *m, uint32_t step)
{
	return node_at(m, cn_perm_to(m->kind, m->nnodes, m->number, step));
}

uint32_t cn_partners_from(const struct cn_partners *m, uint32_t step)
{
	return node_at(m, cn_perm_from(m->kind, m->nnodes, m->number, step));
}
