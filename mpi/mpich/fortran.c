/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Those functions of Fortran's module mpi_f08 that have no buffers. MPICH's call PMPI_*, and all
 * its other Fortran functions those of C, which are this library's.
 */
#include <stddef.h>

#include "mpi/mpich/preload.h"

#define EXPORT __attribute__((visibility("default")))

/* `error` is optional: NULL. */
#define DEFINE(function, parameters, call)                                                         \
	EXPORT void function parameters;                                                           \
	EXPORT void function parameters                                                            \
	{                                                                                          \
		const int rc = call;                                                               \
		if (error != NULL) {                                                               \
			*error = rc;                                                               \
		}                                                                                  \
	}

/* MPI_Init() itself would take this library for its caller. */
#define FROM_CALLER(call) (mpich_find_library(__builtin_return_address(0)), call)

DEFINE(mpi_init_f08_, (MPI_Fint * error), FROM_CALLER(MPI_Init(NULL, NULL)))
DEFINE(mpi_init_thread_f08_, (const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error),
       FROM_CALLER(MPI_Init_thread(NULL, NULL, *required, provided)))
DEFINE(mpi_finalize_f08_, (MPI_Fint * error), MPI_Finalize())
DEFINE(mpi_barrier_f08_, (const MPI_Comm *comm, MPI_Fint *error), MPI_Barrier(*comm))
DEFINE(mpi_comm_free_f08_, (MPI_Comm * comm, MPI_Fint *error), MPI_Comm_free(comm))
DEFINE(mpi_comm_disconnect_f08_, (MPI_Comm * comm, MPI_Fint *error), MPI_Comm_disconnect(comm))
