/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measuring loop over an MPI library: a program of its own, which the user's mpicc compiles.
 *
 * Errors end the program, as is MPI's default, with the library's own message. MPI libraries wait
 * by spinning, but the library that is being measured needs the processors. Ranks that wait for a
 * command therefore sleep between tests, for PAUSE_MIN and then for twice as long each time, up to
 * PAUSE_MAX: 32 ranks that test every 20 ms take 6 % of two processors during the others' turns.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/compare/loop.h"

#define TAG	  1
#define PAUSE_MIN 5000000 /* ns */
#define PAUSE_MAX 100000000

static int mpi_open(uint32_t *rank, uint32_t *ranks)
{
	int r, n;

	if (MPI_Init(NULL, NULL) != MPI_SUCCESS) {
		return 1;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	*rank = (uint32_t)r;
	*ranks = (uint32_t)n;
	return 0;
}

static void mpi_close(void)
{
	MPI_Finalize();
}

static void *mpi_alloc(size_t bytes)
{
	void *p;

	return MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &p) == MPI_SUCCESS ? p : NULL;
}

static void mpi_free(void *p)
{
	MPI_Free_mem(p);
}

static int wait_gently(MPI_Request *request)
{
	struct timespec pause = { .tv_nsec = PAUSE_MIN };
	int done = 0, rc;

	for (;;) {
		rc = MPI_Test(request, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS || done) {
			return rc != MPI_SUCCESS;
		}
		nanosleep(&pause, NULL);
		pause.tv_nsec = 2 * pause.tv_nsec < PAUSE_MAX ? 2 * pause.tv_nsec : PAUSE_MAX;
	}
}

static int mpi_announce(void *data, size_t bytes)
{
	MPI_Request request;
	int rank, ranks, rc = MPI_SUCCESS;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank != 0) {
		rc = MPI_Irecv(data, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
		return rc != MPI_SUCCESS ? 1 : wait_gently(&request);
	}
	for (int r = 1; r < ranks && rc == MPI_SUCCESS; r++) {
		rc = MPI_Send(data, (int)bytes, MPI_BYTE, r, TAG, MPI_COMM_WORLD);
	}
	return rc != MPI_SUCCESS;
}

static const char *mpi_version(void)
{
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int n;

	MPI_Get_library_version(text, &n);
	for (char *p = text; *p != '\0'; p++) {
		if (*p == '\t') {
			*p = ' ';
		}
	}
	text[strcspn(text, ",\n")] = '\0'; /* what follows is how it was built */
	return text;
}

static const char *mpi_error(void)
{
	return "MPI reported an error";
}

/* ---- operations ----------------------------------------------------------------------- */

static int mpi_alltoall(const struct loop_call *c)
{
	return MPI_Alltoall(c->send, (int)c->bytes, MPI_BYTE, c->recv, (int)c->bytes, MPI_BYTE,
			    MPI_COMM_WORLD);
}

static int mpi_alltoallv(const struct loop_call *c)
{
	return MPI_Alltoallv(c->send, c->to->count, c->to->displ, MPI_BYTE, c->recv, c->from->count,
			     c->from->displ, MPI_BYTE, MPI_COMM_WORLD);
}

static int mpi_allgather(const struct loop_call *c)
{
	return MPI_Allgather(c->send, (int)c->bytes, MPI_BYTE, c->recv, (int)c->bytes, MPI_BYTE,
			     MPI_COMM_WORLD);
}

static int mpi_allgatherv(const struct loop_call *c)
{
	return MPI_Allgatherv(c->send, (int)c->to->total, MPI_BYTE, c->recv, c->from->count,
			      c->from->displ, MPI_BYTE, MPI_COMM_WORLD);
}

static int mpi_bcast(const struct loop_call *c)
{
	return MPI_Bcast(c->recv, (int)c->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int mpi_scatter(const struct loop_call *c)
{
	return MPI_Scatter(c->send, (int)c->bytes, MPI_BYTE, c->recv, (int)c->bytes, MPI_BYTE, 0,
			   MPI_COMM_WORLD);
}

static int mpi_gather(const struct loop_call *c)
{
	return MPI_Gather(c->send, (int)c->bytes, MPI_BYTE, c->recv, (int)c->bytes, MPI_BYTE, 0,
			  MPI_COMM_WORLD);
}

static int mpi_gatherv(const struct loop_call *c)
{
	return MPI_Gatherv(c->send, (int)c->to->total, MPI_BYTE, c->recv, c->from->count,
			   c->from->displ, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int mpi_allreduce(const struct loop_call *c)
{
	return MPI_Allreduce(c->send, c->recv, (int)c->bytes, MPI_UINT8_T, MPI_BXOR,
			     MPI_COMM_WORLD);
}

static int mpi_reduce(const struct loop_call *c)
{
	return MPI_Reduce(c->send, c->recv, (int)c->bytes, MPI_UINT8_T, MPI_BXOR, 0,
			  MPI_COMM_WORLD);
}

static int mpi_reduce_scatter(const struct loop_call *c)
{
	return MPI_Reduce_scatter_block(c->send, c->recv, (int)c->bytes, MPI_UINT8_T, MPI_BXOR,
					MPI_COMM_WORLD);
}

static int mpi_scan(const struct loop_call *c)
{
	return MPI_Scan(c->send, c->recv, (int)c->bytes, MPI_UINT8_T, MPI_BXOR, MPI_COMM_WORLD);
}

static int mpi_barrier(const struct loop_call *c)
{
	(void)c;
	return MPI_Barrier(MPI_COMM_WORLD);
}

int main(void)
{
	static const struct loop_library mpi = {
		.open = mpi_open,
		.close = mpi_close,
		.alloc = mpi_alloc,
		.free = mpi_free,
		.announce = mpi_announce,
		.version = mpi_version,
		.error = mpi_error,
		.ops = {
			[LOOP_ALLTOALL] = mpi_alltoall,
			[LOOP_ALLTOALLV] = mpi_alltoallv,
			[LOOP_ALLGATHER] = mpi_allgather,
			[LOOP_ALLGATHERV] = mpi_allgatherv,
			[LOOP_BCAST] = mpi_bcast,
			[LOOP_SCATTER] = mpi_scatter,
			[LOOP_GATHER] = mpi_gather,
			[LOOP_GATHERV] = mpi_gatherv,
			[LOOP_ALLREDUCE] = mpi_allreduce,
			[LOOP_REDUCE] = mpi_reduce,
			[LOOP_REDUCE_SCATTER] = mpi_reduce_scatter,
			[LOOP_SCAN] = mpi_scan,
			[LOOP_BARRIER] = mpi_barrier,
		},
	};
	int rc = loop_run(&mpi, stdin, stdout);

	if (rc != 0) {
		MPI_Abort(MPI_COMM_WORLD, rc);
	}
	return rc;
}
