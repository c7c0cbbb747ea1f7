/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CN_CLIENT_STAGING_H
#define CN_CLIENT_STAGING_H

#include "client/daemon.h"

/*
 * Buffer references for a request's input and output. Memory that the daemon does not map is staged
 * in a region of the library: `in` is copied there before the start of the request, `out` is copied
 * back after its end.
 */
struct cn_staging {
	const void *in;
	void *out;
	uint64_t in_len, out_len, scratch_len;
	bool copy_in; /* what is read must be copied: it is replaced, or its caller goes on */
	/* Of a vector operation; copies of blocks follow one another. */
	const struct cn_blocks *blocks;
	uint32_t ranks;
	struct cn_msg_buffer_ref in_place, out_place, blocks_place, scratch_place;
};

/* Finds the places, with a region of the request's where there must be copies. */
int cn_staging_place(struct collnet_request *r, struct cn_staging *m, struct cn_err *err);
/* Copies what the daemon does not see. */
void cn_staging_copy_in(const struct collnet_request *r);
/* The request needs its region no more. */
void cn_staging_release(struct collnet_request *r);

#endif
