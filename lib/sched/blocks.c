/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of blocks of any size between two nodes, and the digest of their sizes. */
#include "sched/planners.h"

#include "util/byteorder.h"

#define NONE UINT32_MAX

int cn_messages_begin(struct cn_messages *m, const struct cn_action *like, uint32_t blocks,
		      struct cn_sched *out, struct cn_err *err)
{
	struct cn_action a = *like;

	*m = (struct cn_messages){ .like = *like, .out = out, .digest = NONE };
	if (blocks < 2) {
		return COLLNET_OK;
	}
	m->digest = out->n;
	a.src = a.dst = (struct cn_span){ .buffer = CN_BUF_DIGEST };
	a.len = sizeof(a.src.offset);
	return cn_sched_add(out, &a, err);
}

uint64_t cn_digest(uint64_t digest, uint64_t len)
{
	return cn_mix64(digest + len);
}

int cn_messages_add(struct cn_messages *m, struct cn_span src, struct cn_span dst, uint64_t len,
		    struct cn_err *err)
{
	m->like.src = src;
	m->like.dst = dst;
	m->like.len = len;
	m->value = cn_digest(m->value, len);
	if (len == 0) {
		return COLLNET_OK;
	}
	m->any = true;
	return cn_sched_add(m->out, &m->like, err);
}

int cn_messages_end(struct cn_messages *m, struct cn_err *err)
{
	if (m->digest != NONE) {
		struct cn_action *a = &m->out->actions[m->digest];

		cn_put_be64((uint8_t *)&a->src.offset, m->value);
		a->dst.offset = a->src.offset;
		return COLLNET_OK;
	}
	return m->any ? COLLNET_OK : cn_sched_add(m->out, &m->like, err);
}

int cn_blocks_differ(uint32_t from, uint64_t sent, uint32_t to, uint64_t expected,
		     struct cn_err *err)
{
	return cn_fail(err, COLLNET_EMISMATCH,
		       "rank %u does not match rank %u: one sends a block of %llu bytes, the other "
		       "expects %llu",
		       from, to, (unsigned long long)sent, (unsigned long long)expected);
}

const struct cn_blocks *cn_plan_root_blocks(const struct cn_layout *l, const struct cn_plan *p,
					    uint32_t me)
{
	uint32_t i = l->first[me];

	while (l->ranks[i] != p->root) {
		i++;
	}
	return &p->blocks[i - l->first[me]];
}
