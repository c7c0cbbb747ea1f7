/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile of a program's collective operations, preloaded into it: at MPI_Finalize() and on
 * SIGUSR1, which mpirun forwards, each rank prints a line per operation,
 *
 *   profile: NAME CALLS BYTES
 *
 * The ranks' BYTES together are what has to be sent at least between ranks: (P - 1) blocks of a
 * rooted operation, of all-to-all and all-gather P (P - 1), of allreduce 2 (P - 1) vectors.
 * Non-blocking operations are counted by calls only.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "profile.h"

static const char *const names[] = {
#define X(name) #name,
	EACH_BLOCKING(X) EACH_NONBLOCKING(X)
#undef X
};
static double calls[OPERATIONS], bytes[OPERATIONS];

static int ranks(MPI_Comm c)
{
	int size;

	PMPI_Comm_size(c, &size);
	return size;
}

static int me(MPI_Comm c)
{
	int rank;

	PMPI_Comm_rank(c, &rank);
	return rank;
}

/* A call, for which this rank accounts for `n` elements. */
static void add(enum operation op, double n, MPI_Datatype t, MPI_Comm c)
{
	int size;

	if (ranks(c) < 2) {
		return;
	}
	calls[op]++;
	if (n > 0) {
		PMPI_Type_size(t, &size);
		bytes[op] += n * size;
	}
}

void profile_from_root(enum operation op, int n, MPI_Datatype t, int root, MPI_Comm c)
{
	add(op, me(c) == root ? (double)n * (ranks(c) - 1) : 0, t, c);
}

void profile_at_root(enum operation op, int n, MPI_Datatype t, int root, MPI_Comm c)
{
	add(op, me(c) == root ? 0 : n, t, c);
}

void profile_each(enum operation op, int n, MPI_Datatype t, MPI_Comm c)
{
	add(op, (double)n * (ranks(c) - 1), t, c);
}

void profile_counts(enum operation op, const int *n, MPI_Datatype t, MPI_Comm c)
{
	double sum = 0;

	for (int i = 0; i < ranks(c); i++) {
		sum += i != me(c) ? n[i] : 0;
	}
	add(op, sum, t, c);
}

void profile_types(enum operation op, const int *n, const MPI_Datatype *t, MPI_Comm c)
{
	double sum = 0;

	for (int i = 0; i < ranks(c); i++) {
		int size;

		if (i != me(c) && n[i] > 0) {
			PMPI_Type_size(t[i], &size);
			sum += (double)n[i] * size;
		}
	}
	add(op, sum, MPI_BYTE, c);
}

void profile_own(enum operation op, const int *n, MPI_Datatype t, MPI_Comm c)
{
	profile_each(op, n[me(c)], t, c);
}

void profile_allreduce(int n, MPI_Datatype t, MPI_Comm c)
{
	add(Allreduce, 2.0 * n * (ranks(c) - 1) / ranks(c), t, c);
}

void profile_scan(enum operation op, int n, MPI_Datatype t, MPI_Comm c)
{
	add(op, me(c) == 0 ? 0 : n, t, c);
}

void profile_call(enum operation op, MPI_Comm c)
{
	add(op, 0, MPI_BYTE, c);
}

void profile_print(void)
{
	for (int i = 0; i < OPERATIONS; i++) {
		if (calls[i] > 0) {
			dprintf(STDERR_FILENO, "profile: %s %.0f %.0f\n", names[i], calls[i],
				bytes[i]);
		}
	}
}

static void on_signal(int signal)
{
	(void)signal;
	profile_print();
}

__attribute__((constructor)) static void print_on_signal(void)
{
	signal(SIGUSR1, on_signal);
}

int MPI_Finalize(void)
{
	profile_print();
	return PMPI_Finalize();
}

int MPI_Barrier(MPI_Comm c)
{
	profile_call(Barrier, c);
	return PMPI_Barrier(c);
}

int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c)
{
	profile_from_root(Bcast, n, t, root, c);
	return PMPI_Bcast(b, n, t, root, c);
}

int MPI_Gather(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr, int root,
	       MPI_Comm c)
{
	profile_at_root(Gather, ns, ts, root, c);
	return PMPI_Gather(s, ns, ts, r, nr, tr, root, c);
}

int MPI_Gatherv(const void *s, int ns, MPI_Datatype ts, void *r, const int *nr, const int *d,
		MPI_Datatype tr, int root, MPI_Comm c)
{
	profile_at_root(Gatherv, ns, ts, root, c);
	return PMPI_Gatherv(s, ns, ts, r, nr, d, tr, root, c);
}

int MPI_Scatter(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr, int root,
		MPI_Comm c)
{
	profile_at_root(Scatter, nr, tr, root, c);
	return PMPI_Scatter(s, ns, ts, r, nr, tr, root, c);
}

int MPI_Scatterv(const void *s, const int *ns, const int *d, MPI_Datatype ts, void *r, int nr,
		 MPI_Datatype tr, int root, MPI_Comm c)
{
	profile_at_root(Scatterv, nr, tr, root, c);
	return PMPI_Scatterv(s, ns, d, ts, r, nr, tr, root, c);
}

int MPI_Allgather(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr,
		  MPI_Comm c)
{
	profile_each(Allgather, nr, tr, c);
	return PMPI_Allgather(s, ns, ts, r, nr, tr, c);
}

int MPI_Allgatherv(const void *s, int ns, MPI_Datatype ts, void *r, const int *nr, const int *d,
		   MPI_Datatype tr, MPI_Comm c)
{
	profile_own(Allgatherv, nr, tr, c);
	return PMPI_Allgatherv(s, ns, ts, r, nr, d, tr, c);
}

int MPI_Alltoall(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr,
		 MPI_Comm c)
{
	profile_each(Alltoall, nr, tr, c);
	return PMPI_Alltoall(s, ns, ts, r, nr, tr, c);
}

int MPI_Alltoallv(const void *s, const int *ns, const int *ds, MPI_Datatype ts, void *r,
		  const int *nr, const int *dr, MPI_Datatype tr, MPI_Comm c)
{
	profile_counts(Alltoallv, nr, tr, c);
	return PMPI_Alltoallv(s, ns, ds, ts, r, nr, dr, tr, c);
}

int MPI_Alltoallw(const void *s, const int *ns, const int *ds, const MPI_Datatype *ts, void *r,
		  const int *nr, const int *dr, const MPI_Datatype *tr, MPI_Comm c)
{
	profile_types(Alltoallw, nr, tr, c);
	return PMPI_Alltoallw(s, ns, ds, ts, r, nr, dr, tr, c);
}

int MPI_Reduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c)
{
	profile_at_root(Reduce, n, t, root, c);
	return PMPI_Reduce(s, r, n, t, op, root, c);
}

int MPI_Allreduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	profile_allreduce(n, t, c);
	return PMPI_Allreduce(s, r, n, t, op, c);
}

int MPI_Reduce_scatter(const void *s, void *r, const int *n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	profile_counts(Reduce_scatter, n, t, c);
	return PMPI_Reduce_scatter(s, r, n, t, op, c);
}

int MPI_Reduce_scatter_block(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	profile_each(Reduce_scatter_block, n, t, c);
	return PMPI_Reduce_scatter_block(s, r, n, t, op, c);
}

int MPI_Scan(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	profile_scan(Scan, n, t, c);
	return PMPI_Scan(s, r, n, t, op, c);
}

int MPI_Exscan(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	profile_scan(Exscan, n, t, c);
	return PMPI_Exscan(s, r, n, t, op, c);
}

int MPI_Ibarrier(MPI_Comm c, MPI_Request *q)
{
	profile_call(Ibarrier, c);
	return PMPI_Ibarrier(c, q);
}

int MPI_Ibcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *q)
{
	profile_call(Ibcast, c);
	return PMPI_Ibcast(b, n, t, root, c, q);
}

int MPI_Iallgather(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr,
		   MPI_Comm c, MPI_Request *q)
{
	profile_call(Iallgather, c);
	return PMPI_Iallgather(s, ns, ts, r, nr, tr, c, q);
}

int MPI_Iallreduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c,
		   MPI_Request *q)
{
	profile_call(Iallreduce, c);
	return PMPI_Iallreduce(s, r, n, t, op, c, q);
}

int MPI_Ialltoall(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr,
		  MPI_Comm c, MPI_Request *q)
{
	profile_call(Ialltoall, c);
	return PMPI_Ialltoall(s, ns, ts, r, nr, tr, c, q);
}

int MPI_Ialltoallv(const void *s, const int *ns, const int *ds, MPI_Datatype ts, void *r,
		   const int *nr, const int *dr, MPI_Datatype tr, MPI_Comm c, MPI_Request *q)
{
	profile_call(Ialltoallv, c);
	return PMPI_Ialltoallv(s, ns, ds, ts, r, nr, dr, tr, c, q);
}
