/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixed text of the routines that emit_mpi.c writes (emit_mpi_text.c). */
#ifndef COLLNET_EMIT_MPI_H
#define COLLNET_EMIT_MPI_H

#include "sched/sched.h"

#define EMIT_MPI_STEPS_MAX (1u << 23)

struct emit_mpi_routine {
	enum cn_op_kind op;
	const char *mpi_name;  /* of the routine of MPI that it stands for */
	const char *prototype; /* in it and in the body '@' stands for the routine's name */
	const char *body;
};

extern const char emit_mpi_comment[]; /* ends the comment at the top */
extern const char emit_mpi_kinds[];   /* tags, and what a step can be */
extern const char emit_mpi_machine[]; /* goes through the steps */
extern const struct emit_mpi_routine emit_mpi_routines[];
extern const size_t emit_mpi_nroutines;

#endif
