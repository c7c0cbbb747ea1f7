/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of an allgather, and their copies on a node. */
#include "sched/allgather/allgather.h"

static uint32_t locals(const struct cn_allgather *g)
{
	return g->l->first[g->me + 1] - g->l->first[g->me];
}

uint64_t cn_allgather_length(const struct cn_allgather *g, uint32_t origin)
{
	return g->blocks == NULL ? g->bytes : g->blocks[0].recv[origin].len;
}

struct cn_span cn_allgather_place(const struct cn_allgather *g, uint32_t node, uint32_t i,
				  uint32_t origin)
{
	const struct cn_layout *l = g->l;
	struct cn_span s = { CN_BUF_RECV, l->ranks[l->first[node] + i], origin * g->bytes };

	if (g->blocks != NULL) {
		s.offset = node == g->me ? g->blocks[i].recv[origin].at : CN_OFFSET_UNKNOWN;
	}
	return s;
}

int cn_allgather_add(const struct cn_allgather *g, const struct cn_action *a)
{
	return g->blocks != NULL && a->len == 0 ? COLLNET_OK : cn_sched_add(g->out, a, g->err);
}

static int check_agreement(const struct cn_allgather *g)
{
	const uint32_t *ranks = g->l->ranks + g->l->first[g->me];

	for (uint32_t i = 1; g->blocks != NULL && i < locals(g); i++) {
		for (uint32_t origin = 0; origin < g->l->nranks; origin++) {
			const uint64_t first = cn_allgather_length(g, origin),
				       len = g->blocks[i].recv[origin].len;

			if (len != first) {
				return cn_blocks_differ(ranks[0], first, ranks[i], len, g->err);
			}
		}
	}
	return COLLNET_OK;
}

int cn_allgather_own(const struct cn_allgather *g)
{
	const struct cn_layout *l = g->l;
	struct cn_action a = { .kind = CN_ACT_COPY, .peer = g->me };
	int rc = check_agreement(g);

	for (uint32_t i = l->first[g->me]; i < l->first[g->me + 1]; i++) {
		a.src = (struct cn_span){ CN_BUF_SEND, l->ranks[i], 0 };
		a.len = cn_allgather_length(g, l->ranks[i]);
		for (uint32_t j = 0; rc == COLLNET_OK && j < locals(g); j++) {
			a.dst = cn_allgather_place(g, g->me, j, l->ranks[i]);
			rc = cn_allgather_add(g, &a);
		}
	}
	return rc;
}

int cn_allgather_share(const struct cn_allgather *g, uint32_t origin, uint32_t n, uint32_t phase,
		       uint32_t received)
{
	struct cn_action a = { .kind = CN_ACT_COPY,
			       .dep = CN_DEP_STREAM,
			       .dep_on = received,
			       .peer = g->me,
			       .phase = phase,
			       .src = cn_allgather_place(g, g->me, 0, origin),
			       .len = n * cn_allgather_length(g, origin) };
	int rc = COLLNET_OK;

	for (uint32_t j = 1; rc == COLLNET_OK && j < locals(g); j++) {
		a.dst = cn_allgather_place(g, g->me, j, origin);
		rc = cn_allgather_add(g, &a);
	}
	return rc;
}
