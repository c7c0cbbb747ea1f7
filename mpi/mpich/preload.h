/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of the library that is preloaded into programs of MPICH. */
#ifndef COLLNET_MPICH_PRELOAD_H
#define COLLNET_MPICH_PRELOAD_H

#include <stdbool.h>

#include <mpi.h>

/* Whether MPI defines a reduction of elements of this type. The operation may be the program's. */
bool mpich_is_reduction(MPI_Datatype type, MPI_Op op);

#endif
