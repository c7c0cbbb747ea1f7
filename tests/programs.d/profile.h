/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the profile counts of a call, for the functions of C and of Fortran. Each takes those
 * arguments of the call on which the bytes depend, and adds a call to its operation.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include <mpi.h>

#define EACH_BLOCKING(X)                                                                           \
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
	X(Exscan)

#define EACH_NONBLOCKING(X)                                                                        \
	X(Ibarrier)                                                                                \
	X(Ibcast) X(Iallgather) X(Iallreduce) X(Ialltoall) X(Ialltoallv)

enum operation {
#define X(name) name,
	EACH_BLOCKING(X) EACH_NONBLOCKING(X)
#undef X
		OPERATIONS
};

/* `n` elements that the root sends to each other rank. */
void profile_from_root(enum operation op, int n, MPI_Datatype t, int root, MPI_Comm c);
/* `n` elements that each rank but the root sends or receives. */
void profile_at_root(enum operation op, int n, MPI_Datatype t, int root, MPI_Comm c);
/* `n` elements that each rank sends to each other one. */
void profile_each(enum operation op, int n, MPI_Datatype t, MPI_Comm c);
/* n[i] elements that this rank exchanges with rank i. */
void profile_counts(enum operation op, const int *n, MPI_Datatype t, MPI_Comm c);
/* n[i] elements of type t[i]. */
void profile_types(enum operation op, const int *n, const MPI_Datatype *t, MPI_Comm c);
/* n[i] elements that rank i sends to each other one. */
void profile_own(enum operation op, const int *n, MPI_Datatype t, MPI_Comm c);
/* An allreduce of `n` elements. */
void profile_allreduce(int n, MPI_Datatype t, MPI_Comm c);
/* A scan of `n` elements. */
void profile_scan(enum operation op, int n, MPI_Datatype t, MPI_Comm c);
/* A call only. */
void profile_call(enum operation op, MPI_Comm c);

void profile_print(void);

#endif
