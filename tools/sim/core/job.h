/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job on a simulated cluster: one or several ranks per host, operations one after another, every
 * byte checked. `collnet sim`, the experiments and the tests run.
 */
#ifndef CN_SIM_JOB_H
#define CN_SIM_JOB_H

#include "tools/sim/core/sim.h"

struct cn_job;

struct cn_job_config {
	uint32_t local;	    /* ranks per host */
	uint32_t hosts;	    /* the first so many; 0: all */
	uint64_t bytes;	    /* largest block of any operation */
	enum cn_op_kind op; /* the only one that it runs; 0: any */
	bool shared;	    /* all ranks send from one buffer and receive into one, and no byte is
				  checked: for clusters whose buffers would not fit into memory */
	cn_time combining;  /* reductions: from handing out a piece to its report */
	uint64_t owner;
	const char *name; /* NULL: "sim" */
};

/* Bytes of a rank's buffers, the largest of all ranks'. */
void cn_job_room(enum cn_op_kind op, uint64_t bytes, uint32_t ranks, uint64_t *send,
		 uint64_t *recv);
int cn_job_new(struct cn_sim *s, const struct cn_job_config *c, struct cn_job **out,
	       struct cn_err *err);
void cn_job_free(struct cn_job *j); /* before the simulation; NULL is ignored */

/* All ranks join; runs until all have joined or failed, or `within` is over. COLLNET_ENOMEM here
 * and below: the simulation ran out of memory, and goes on no more. */
int cn_job_join(struct cn_job *j, cn_time within, struct cn_err *err);
/* A rank whose host was restarted, and all others after a failure: leave, and join again. */
void cn_job_leave(struct cn_job *j);

/* The outcome of a rank's operation. */
struct cn_job_rank {
	uint32_t host;
	bool done; /* its done function was called */
	int status;
	char text[CN_ERR_TEXT];
	cn_time from, to;
	uint64_t wrong; /* wrong bytes (where the status is COLLNET_OK) */
};

struct cn_job_result {
	cn_time mean, slowest;		 /* of the ranks that succeeded; from the call to its end */
	uint32_t ended, failed, pending; /* ranks */
	uint64_t wrong;
};

/*
 * One operation on all ranks that are joined: they call now, and it runs until all are done or
 * `within` is over. args gives op, algorithm, permutation, contention_aware, window, bytes and
 * root; its deadline is relative.
 */
int cn_job_run(struct cn_job *j, const struct cn_coll_args *args, cn_time within,
	       struct cn_job_result *out, struct cn_err *err);
/*
 * The same `times` times back to back, as the benchmark does it: a rank calls again as soon as it
 * has returned, and does not wait for the others. mean[] and slowest[] (of `times`; NULL: not
 * wanted) are of each time's ranks; out->mean and out->slowest are the last one's, out->wrong is of
 * all. After a failure a rank does not call again.
 */
int cn_job_repeat(struct cn_job *j, const struct cn_coll_args *args, uint32_t times, cn_time within,
		  uint64_t *mean, uint64_t *slowest, struct cn_job_result *out, struct cn_err *err);
uint32_t cn_job_ranks(const struct cn_job *j);
const struct cn_job_rank *cn_job_rank(const struct cn_job *j, uint32_t rank);

#endif
