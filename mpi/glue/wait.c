/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for an operation. The wait alternates between testing the operation and driving MPI's own
 * communication, because a rank that has not called yet may be waiting for a rendezvous with this
 * one. After SPINS tests it sleeps for up to SLEEP_MS per test, so that ranks that share a CPU make
 * progress.
 */
#include <stdio.h>

#include "mpi/glue/glue.h"

#define SPINS	 64
#define SLEEP_MS 1

struct collnet_coll_options glue_options(void)
{
	struct collnet_coll_options o;

	collnet_coll_options_init(&o);
	o.timeout_ms =
		COLLNET_TIMEOUT_NONE; /* an MPI program waits for as long as its peers live */
	return o;
}

int glue_wait(struct glue_comm *c, const char *what, int status, collnet_request_t **r)
{
	bool started = status == COLLNET_OK;

	if (started) {
		status = COLLNET_INPROGRESS;
	}
	for (unsigned i = 0; started && status == COLLNET_INPROGRESS; i++) {
		status = i < SPINS ? collnet_test(*r) : collnet_wait(*r, SLEEP_MS);
		if (status == COLLNET_INPROGRESS) {
			c->mpi->progress();
		}
	}
	if (status == COLLNET_OK) {
		return MPI_SUCCESS;
	}
	fprintf(stderr, "collnet: MPI_%s, rank %d of %d: %s\n", what, c->rank, c->size,
		glue_error());
	return MPI_ERR_OTHER;
}
