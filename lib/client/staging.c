/* SPDX-License-Identifier: BSD-2-Clause */
/* Staging: regions of the library in place of request memory that the daemon does not map. */
#include "client/staging.h"

#include <string.h>

_Static_assert(CN_MSG_REGIONS - CN_MSG_USER_REGIONS >= CN_MSG_REQUESTS, "a region a request");

static const struct cn_msg_buffer_ref nowhere = { .region = CN_MSG_NO_REGION };

/* The blocks as the daemon is to see them, at `to`. */
static void place_blocks(const struct cn_staging *m, bool copy_in, bool copy_out,
			 struct cn_block *to)
{
	const struct cn_blocks *b = m->blocks;

	if (b->send != NULL) {
		memcpy(to, b->send, m->ranks * sizeof(*to));
		if (copy_in) {
			cn_blocks_follow(to, m->ranks);
		}
		to += m->ranks;
	}
	if (b->recv != NULL) {
		memcpy(to, b->recv, m->ranks * sizeof(*to));
		if (copy_out) {
			cn_blocks_follow(to, m->ranks);
		}
	}
}

/* The parts of a region begin on lines of their own. */
static uint64_t whole_lines(uint64_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

int cn_staging_place(struct collnet_request *r, struct cn_staging *m, struct cn_err *err)
{
	struct collnet *c = r->c;
	const struct cn_daemon_side *d = c->impl;
	const struct cn_block *sends = m->blocks != NULL ? m->blocks->send : NULL;
	const struct cn_block *recvs = m->blocks != NULL ? m->blocks->recv : NULL;
	uint64_t entries = (sends != NULL ? m->ranks : 0) + (recvs != NULL ? m->ranks : 0);
	uint64_t in_size, out_at, out_size, blocks_at;
	bool copy_in, copy_out;
	uint64_t scratch_at;
	uint32_t region;
	char *p;
	int rc;

	m->in_place = m->out_place = m->blocks_place = m->scratch_place = nowhere;
	copy_in = m->in_len > 0 &&
		  (m->copy_in || !cn_region_find(c, m->in, m->in_len, &m->in_place));
	copy_out = m->out_len > 0 && !cn_region_find(c, m->out, m->out_len, &m->out_place);
	if (!copy_in && !copy_out && entries == 0 && m->scratch_len == 0) {
		return COLLNET_OK;
	}
	in_size = !copy_in ? 0 : sends != NULL ? cn_blocks_bytes(sends, m->ranks) : m->in_len;
	out_size = !copy_out ? 0 : recvs != NULL ? cn_blocks_bytes(recvs, m->ranks) : m->out_len;
	out_at = whole_lines(in_size);
	blocks_at = out_at + whole_lines(out_size);
	scratch_at = blocks_at + whole_lines(entries * sizeof(struct cn_block));
	rc = cn_region_acquire(c, scratch_at + m->scratch_len, &region, err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	r->staging.region = region;
	p = d->regions[region].p;
	if (copy_in) {
		m->in_place = (struct cn_msg_buffer_ref){ .region = region };
		r->staging.in = m->in;
		r->staging.in_offset = 0;
		r->staging.in_len = m->in_len;
		r->staging.in_blocks = sends;
		r->staging.nblocks = m->ranks;
	}
	if (m->scratch_len > 0) {
		m->scratch_place.region = region;
		m->scratch_place.offset = scratch_at;
	}
	if (copy_out) {
		m->out_place = (struct cn_msg_buffer_ref){ .region = region, .offset = out_at };
		r->staging.back = m->out;
		r->staging.offset = out_at;
		r->staging.len = m->out_len;
		r->staging.blocks = recvs;
		r->staging.nblocks = m->ranks;
	}
	if (entries > 0) {
		m->blocks_place = (struct cn_msg_buffer_ref){ .region = region,
							      .offset = blocks_at };
		place_blocks(m, copy_in, copy_out, (struct cn_block *)(void *)(p + blocks_at));
	}
	return COLLNET_OK;
}

void cn_staging_copy_in(const struct collnet_request *r)
{
	const struct cn_daemon_side *d = r->c->impl;
	char *to;

	if (r->staging.in == NULL) {
		return;
	}
	to = (char *)d->regions[r->staging.region].p + r->staging.in_offset;
	if (r->staging.in_blocks != NULL) {
		cn_blocks_pack(r->staging.in_blocks, r->staging.nblocks, r->staging.in, to);
	} else {
		memcpy(to, r->staging.in, r->staging.in_len);
	}
}

void cn_staging_release(struct collnet_request *r)
{
	if (r->staging.region != CN_MSG_NO_REGION) {
		cn_region_release(r->c, r->staging.region);
		r->staging.region = CN_MSG_NO_REGION;
		r->staging.in = NULL;
		r->staging.back = NULL;
		r->staging.blocks = NULL;
	}
}
