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

#include <mpi.h>

#define EACH(X)                                                                                    \
	X(Barrier)                                                                                 \
	X(Bcast)                                                                                   \
	X(Gather)                                                                                  \
	X(Gatherv)                                                                                 \
	X(Scatter)                                                                                 \
	X(Scatterv)                                                                                \
	X(Allgather)                                                                               \
	X(Allgatherv)                                                                              \
	X(Alltoall)                                                                                \
	X(Alltoallv)                                                                               \
	X(Alltoallw)                                                                               \
	X(Reduce)                                                                                  \
	X(Allreduce)                                                                               \
	X(Reduce_scatter)                                                                          \
	X(Reduce_scatter_block)                                                                    \
	X(Scan)                                                                                    \
	X(Exscan)                                                                                  \
	X(Ibarrier) X(Ibcast) X(Iallreduce) X(Ialltoall) X(Ialltoallv)

enum {
#define X(name) name,
	EACH(X)
#undef X
		OPERATIONS
};
static const char *const names[] = {
#define X(name) #name,
	EACH(X)
#undef X
};
static double counts[2 * OPERATIONS]; /* calls, bytes */

/* A call, for which this rank accounts for `n` elements. */
static void add(int op, double n, MPI_Datatype type, MPI_Comm comm)
{
	int size, ranks;

	PMPI_Comm_size(comm, &ranks);
	if (ranks < 2) {
		return;
	}
	counts[2 * op]++;
	if (n > 0) {
		PMPI_Type_size(type, &size);
		counts[2 * op + 1] += n * size;
	}
}

static int others(MPI_Comm comm)
{
	int size;

	PMPI_Comm_size(comm, &size);
	return size - 1;
}

static int me(MPI_Comm comm)
{
	int rank;

	PMPI_Comm_rank(comm, &rank);
	return rank;
}

static double sum(const int *n, MPI_Comm comm)
{
	double s = 0;

	for (int i = 0; i <= others(comm); i++) {
		s += i != me(comm) ? n[i] : 0;
	}
	return s;
}

static void print(int signal)
{
	(void)signal;
	for (int i = 0; i < OPERATIONS; i++) {
		if (counts[2 * i] > 0) {
			dprintf(STDERR_FILENO, "profile: %s %.0f %.0f\n", names[i], counts[2 * i],
				counts[2 * i + 1]);
		}
	}
}

__attribute__((constructor)) static void print_on_signal(void)
{
	signal(SIGUSR1, print);
}

int MPI_Finalize(void)
{
	print(0);
	return PMPI_Finalize();
}

int MPI_Barrier(MPI_Comm c)
{
	add(Barrier, 0, MPI_BYTE, c);
	return PMPI_Barrier(c);
}

int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c)
{
	add(Bcast, me(c) == root ? (double)n * others(c) : 0, t, c);
	return PMPI_Bcast(b, n, t, root, c);
}

int MPI_Gather(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr, int root,
	       MPI_Comm c)
{
	add(Gather, me(c) == root ? 0 : ns, ts, c);
	return PMPI_Gather(s, ns, ts, r, nr, tr, root, c);
}

int MPI_Gatherv(const void *s, int ns, MPI_Datatype ts, void *r, const int *nr, const int *d,
		MPI_Datatype tr, int root, MPI_Comm c)
{
	add(Gatherv, me(c) == root ? 0 : ns, ts, c);
	return PMPI_Gatherv(s, ns, ts, r, nr, d, tr, root, c);
}

int MPI_Scatter(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr, int root,
		MPI_Comm c)
{
	add(Scatter, me(c) == root ? 0 : nr, tr, c);
	return PMPI_Scatter(s, ns, ts, r, nr, tr, root, c);
}

int MPI_Scatterv(const void *s, const int *ns, const int *d, MPI_Datatype ts, void *r, int nr,
		 MPI_Datatype tr, int root, MPI_Comm c)
{
	add(Scatterv, me(c) == root ? 0 : nr, tr, c);
	return PMPI_Scatterv(s, ns, d, ts, r, nr, tr, root, c);
}

int MPI_Allgather(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr,
		  MPI_Comm c)
{
	add(Allgather, (double)nr * others(c), tr, c);
	return PMPI_Allgather(s, ns, ts, r, nr, tr, c);
}

int MPI_Allgatherv(const void *s, int ns, MPI_Datatype ts, void *r, const int *nr, const int *d,
		   MPI_Datatype tr, MPI_Comm c)
{
	add(Allgatherv, (double)nr[me(c)] * others(c), tr, c);
	return PMPI_Allgatherv(s, ns, ts, r, nr, d, tr, c);
}

int MPI_Alltoall(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr,
		 MPI_Comm c)
{
	add(Alltoall, (double)nr * others(c), tr, c);
	return PMPI_Alltoall(s, ns, ts, r, nr, tr, c);
}

int MPI_Alltoallv(const void *s, const int *ns, const int *ds, MPI_Datatype ts, void *r,
		  const int *nr, const int *dr, MPI_Datatype tr, MPI_Comm c)
{
	add(Alltoallv, sum(nr, c), tr, c);
	return PMPI_Alltoallv(s, ns, ds, ts, r, nr, dr, tr, c);
}

int MPI_Alltoallw(const void *s, const int *ns, const int *ds, const MPI_Datatype *ts, void *r,
		  const int *nr, const int *dr, const MPI_Datatype *tr, MPI_Comm c)
{
	double bytes = 0;

	for (int i = 0; i <= others(c); i++) {
		int size;

		if (i != me(c) && nr[i] > 0) {
			PMPI_Type_size(tr[i], &size);
			bytes += (double)nr[i] * size;
		}
	}
	add(Alltoallw, bytes, MPI_BYTE, c);
	return PMPI_Alltoallw(s, ns, ds, ts, r, nr, dr, tr, c);
}

int MPI_Reduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c)
{
	add(Reduce, me(c) == root ? 0 : n, t, c);
	return PMPI_Reduce(s, r, n, t, op, root, c);
}

int MPI_Allreduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	add(Allreduce, 2.0 * n * others(c) / (others(c) + 1), t, c);
	return PMPI_Allreduce(s, r, n, t, op, c);
}

int MPI_Reduce_scatter(const void *s, void *r, const int *n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	add(Reduce_scatter, sum(n, c), t, c);
	return PMPI_Reduce_scatter(s, r, n, t, op, c);
}

int MPI_Reduce_scatter_block(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	add(Reduce_scatter_block, (double)n * others(c), t, c);
	return PMPI_Reduce_scatter_block(s, r, n, t, op, c);
}

int MPI_Scan(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	add(Scan, me(c) == 0 ? 0 : n, t, c);
	return PMPI_Scan(s, r, n, t, op, c);
}

int MPI_Exscan(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	add(Exscan, me(c) == 0 ? 0 : n, t, c);
	return PMPI_Exscan(s, r, n, t, op, c);
}

int MPI_Ibarrier(MPI_Comm c, MPI_Request *q)
{
	add(Ibarrier, 0, MPI_BYTE, c);
	return PMPI_Ibarrier(c, q);
}

int MPI_Ibcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *q)
{
	add(Ibcast, 0, t, c);
	return PMPI_Ibcast(b, n, t, root, c, q);
}

int MPI_Iallreduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c,
		   MPI_Request *q)
{
	add(Iallreduce, 0, t, c);
	return PMPI_Iallreduce(s, r, n, t, op, c, q);
}

int MPI_Ialltoall(const void *s, int ns, MPI_Datatype ts, void *r, int nr, MPI_Datatype tr,
		  MPI_Comm c, MPI_Request *q)
{
	add(Ialltoall, 0, ts, c);
	return PMPI_Ialltoall(s, ns, ts, r, nr, tr, c, q);
}

int MPI_Ialltoallv(const void *s, const int *ns, const int *ds, MPI_Datatype ts, void *r,
		   const int *nr, const int *dr, MPI_Datatype tr, MPI_Comm c, MPI_Request *q)
{
	add(Ialltoallv, 0, ts, c);
	return PMPI_Ialltoallv(s, ns, ds, ts, r, nr, dr, tr, c, q);
}
