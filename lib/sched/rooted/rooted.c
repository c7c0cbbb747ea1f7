/* SPDX-License-Identifier: BSD-2-Clause */
/* The root has a buffer with a block of every rank; every rank has its own block alone. */
#include "sched/rooted/rooted.h"

static bool scatters(const struct cn_plan *p)
{
	return cn_op_base(p->op) == CN_OP_SCATTER;
}

/* The block of a rank, which is at `offset` of the root's buffer. */
static void between(const struct cn_plan *p, uint32_t rank, uint64_t offset, struct cn_span *src,
		    struct cn_span *dst)
{
	const bool s = scatters(p);

	*src = s ? (struct cn_span){ CN_BUF_SEND, p->root, offset }
		 : (struct cn_span){ CN_BUF_SEND, rank, 0 };
	*dst = s ? (struct cn_span){ CN_BUF_RECV, rank, 0 }
		 : (struct cn_span){ CN_BUF_RECV, p->root, offset };
}

/* Rank i of the layout's list, of node `me`, has a block of this length of a vector operation. */
static uint64_t own_len(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t i)
{
	const struct cn_blocks *b = &p->blocks[i - l->first[me]];

	return scatters(p) ? b->recv_len : b->send_len;
}

static int copy_vector(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		       struct cn_action a, const struct cn_block *at_root, struct cn_sched *out,
		       struct cn_err *err)
{
	int rc = COLLNET_OK;

	for (uint32_t i = l->first[me]; rc == COLLNET_OK && i < l->first[me + 1]; i++) {
		const uint32_t r = l->ranks[i];
		const uint64_t own = own_len(l, p, me, i);

		a.len = at_root[r].len;
		if (a.len != own) {
			return scatters(p) ? cn_blocks_differ(p->root, a.len, r, own, err)
					   : cn_blocks_differ(r, own, p->root, a.len, err);
		}
		between(p, r, at_root[r].at, &a.src, &a.dst);
		rc = a.len > 0 ? cn_sched_add(out, &a, err) : COLLNET_OK;
	}
	return rc;
}

static int add_vector(const struct cn_layout *l, const struct cn_plan *p, uint32_t me,
		      uint32_t node, const struct cn_action *a, struct cn_sched *out,
		      struct cn_err *err)
{
	const struct cn_block *at_root = NULL; /* known on its node only */
	struct cn_messages m;
	int rc;

	if (me == l->node_of[p->root]) {
		const struct cn_blocks *b = cn_plan_root_blocks(l, p, me);

		at_root = scatters(p) ? b->send : b->recv;
	}
	if (a->kind == CN_ACT_COPY) {
		return copy_vector(l, p, me, *a, at_root, out, err);
	}
	rc = cn_messages_begin(&m, a, l->first[node + 1] - l->first[node], out, err);
	for (uint32_t i = l->first[node]; rc == COLLNET_OK && i < l->first[node + 1]; i++) {
		const uint32_t r = l->ranks[i];
		struct cn_span src, dst;

		between(p, r, at_root != NULL ? at_root[r].at : CN_OFFSET_UNKNOWN, &src, &dst);
		rc = cn_messages_add(&m, src, dst,
				     at_root != NULL ? at_root[r].len : own_len(l, p, me, i), err);
	}
	return rc == COLLNET_OK ? cn_messages_end(&m, err) : rc;
}

int cn_rooted_add(const struct cn_layout *l, const struct cn_plan *p, uint32_t me, uint32_t node,
		  struct cn_action a, struct cn_sched *out, struct cn_err *err)
{
	int rc = COLLNET_OK;

	if (p->blocks != NULL) {
		return add_vector(l, p, me, node, &a, out, err);
	}
	a.len = p->bytes;
	for (uint32_t i = l->first[node]; rc == COLLNET_OK && i < l->first[node + 1]; i++) {
		between(p, l->ranks[i], l->ranks[i] * p->bytes, &a.src, &a.dst);
		rc = cn_sched_add(out, &a, err);
	}
	return rc;
}
