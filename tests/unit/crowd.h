/* SPDX-License-Identifier: BSD-2-Clause */
/* Teams of more ranks per node than the fixture of engines has: their schedules are long. */
#ifndef CROWD_H
#define CROWD_H

#include "engine_fixture.h"

#define CROWD_RANKS 320u
#define CROWD_BYTES 3u /* of a block */

struct crowd {
	struct engine_fixture *w;
	uint32_t ranks;
	struct {
		struct cn_member *member;
		struct engine_waiter joined, done;
		uint8_t *send, *recv;	 /* a block for each rank */
		struct cn_block *blocks; /* the same for both */
	} rank[CROWD_RANKS];
};

/* The first ranks on node 0, the others on node 1. */
struct crowd *crowd_join(struct engine_fixture *w, const char *job, uint32_t here, uint32_t there,
			 uint64_t payer);
void crowd_free(struct crowd *c);
/* An all-to-all, of blocks that have sizes of their own if `vector`. */
struct cn_coll_args crowd_alltoall(struct crowd *c, uint32_t rank, bool vector);
int crowd_call(struct crowd *c, uint32_t rank, const struct cn_coll_args *a, struct cn_err *err);
/* All ranks from `first` on call the all-to-all. */
void crowd_call_all(struct crowd *c, uint32_t first, bool vector);
/* Ranks that were called back. */
uint32_t crowd_done(const struct crowd *c);
/* They were, with the right bytes. */
void crowd_check(struct crowd *c);

#endif
