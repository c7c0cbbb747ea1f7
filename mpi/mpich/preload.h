/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of the library that is preloaded into programs of MPICH. */
#ifndef COLLNET_MPICH_PRELOAD_H
#define COLLNET_MPICH_PRELOAD_H

#include <stdbool.h>

#include <mpi.h>

/* Before MPI_Init(), puts where other ranks find it that this one has the library; afterwards,
 * whether all ranks of MPI_COMM_WORLD have. The answer is the same on all that have. One of them
 * prints which have not. */
void mpich_publish(void);
bool mpich_is_on_all(int rank, int size);

/* For the first function that is called, with its return address: a program such as Python may have
 * loaded MPICH for a module alone, which called. */
void mpich_find_library(void *caller);

/* How a type was made, or MPI_UNDEFINED. */
int mpich_combiner_of(MPI_Datatype type);
/* Whether MPI defines a reduction of elements of this type. The operation may be the program's. */
bool mpich_is_reduction(MPI_Datatype type, MPI_Op op);

/* Between these, whether MPICH accepts a type in a call: the program has committed it. No type is
 * left to the glue. */
bool mpich_begin_arguments(void);
bool mpich_is_committed(MPI_Datatype type);
void mpich_end_arguments(void);

#endif
