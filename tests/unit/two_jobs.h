/* SPDX-License-Identifier: BSD-2-Clause */
/* Two jobs, x and y, on a simulated cluster of four hosts on one switch. */
#ifndef TWO_JOBS_H
#define TWO_JOBS_H

#include "coll/engine.h"
#include "tools/sim/core/sim.h"

#define TWO_JOBS_HOSTS 4u
#define TWO_JOBS_CALLS 8u /* outstanding of a rank */
#define SECOND	       (1000 * CN_MS)

struct two_jobs_call {
	struct cn_done done; /* first */
	uint32_t told;
	int status;
	char text[CN_ERR_TEXT];
};

struct two_jobs_job {
	struct cn_member *members[TWO_JOBS_HOSTS];
	struct two_jobs_call calls[TWO_JOBS_HOSTS][TWO_JOBS_CALLS];
	uint32_t ranks, window; /* the window is of its operations */
	uint8_t *send, *recv;	/* of all calls: the bytes are not looked at */
};

struct two_jobs {
	struct cn_topo *topo;
	struct cn_sim *sim;
	struct two_jobs_job x, y;
};

/*
 * Job x has a rank on every host, job y on the first `ranks_y`. window: of every node; pool: frames
 * of a transport's pool, 0: the default.
 */
struct two_jobs *two_jobs_begin_with(uint32_t window, uint32_t pool, uint32_t ranks_y);
struct two_jobs *two_jobs_begin(uint32_t window);
void two_jobs_end(struct two_jobs *c);
void two_jobs_run(struct two_jobs *c, cn_time duration);
/* All ranks of a job join, and it is ready. */
void two_jobs_join(struct two_jobs *c, struct two_jobs_job *j, const char *name, uint32_t ranks);
/* The rank calls an operation, which is the `slot`-th of those that are outstanding. The root of a
 * gather is on the last host, that of other operations on the first. */
void two_jobs_call(struct two_jobs *c, struct two_jobs_job *j, uint32_t rank, uint32_t slot,
		   enum cn_op_kind op, uint64_t bytes, cn_time deadline);
/* All ranks' operations of this slot have succeeded. */
void two_jobs_assert_done(const struct two_jobs_job *j, uint32_t slot);
/* Frames that were refused because a pool was empty, on all hosts. */
uint64_t two_jobs_refusals(struct two_jobs *c);

#endif
