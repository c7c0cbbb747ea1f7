/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments that MPICH rejects. It reports them to the communicator's error handler if it gets the
 * call. The functions by which the glue would use them report to the handler of MPI_COMM_WORLD,
 * which aborts the program, when some ranks already wait.
 */
#include <stddef.h>

#include "mpi/glue/glue.h"
#include "mpi/mpich/preload.h"

/* What MPI's definition of reductions distinguishes. */
enum {
	C_INTEGER = 1 << 0,
	FORTRAN_INTEGER = 1 << 1, /* or one of several languages */
	REAL = 1 << 2,
	LOGICAL = 1 << 3,
	COMPLEX = 1 << 4,
	BYTE = 1 << 5,
	PAIR = 1 << 6,
};

/* Types with large counts have one only by the function with large counts. */
int mpich_combiner_of(MPI_Datatype type)
{
	int combiner, n[3];
#if MPI_VERSION >= 4
	MPI_Count large[4];

	if (PMPI_Type_get_envelope_c != NULL) {
		return PMPI_Type_get_envelope_c(type, &large[0], &large[1], &large[2], &large[3],
						&combiner) == MPI_SUCCESS
			       ? combiner
			       : MPI_UNDEFINED;
	}
#endif
	return PMPI_Type_get_envelope(type, &n[0], &n[1], &n[2], &combiner) == MPI_SUCCESS
		       ? combiner
		       : MPI_UNDEFINED;
}

/* 0: none of these, or MPICH has no operation for it, as for MPI_COMPLEX32. Types of
 * MPI_Type_create_f90_real() and the others stand for predefined ones. */
static unsigned kind_of(MPI_Datatype type)
{
	static const struct {
		MPI_Datatype type;
		unsigned kind;
	} kinds[] = {
		{ MPI_SIGNED_CHAR, C_INTEGER },
		{ MPI_UNSIGNED_CHAR, C_INTEGER },
		{ MPI_SHORT, C_INTEGER },
		{ MPI_UNSIGNED_SHORT, C_INTEGER },
		{ MPI_INT, C_INTEGER },
		{ MPI_UNSIGNED, C_INTEGER },
		{ MPI_LONG, C_INTEGER },
		{ MPI_UNSIGNED_LONG, C_INTEGER },
		{ MPI_LONG_LONG_INT, C_INTEGER },
		{ MPI_UNSIGNED_LONG_LONG, C_INTEGER },
		{ MPI_INT8_T, C_INTEGER },
		{ MPI_INT16_T, C_INTEGER },
		{ MPI_INT32_T, C_INTEGER },
		{ MPI_INT64_T, C_INTEGER },
		{ MPI_UINT8_T, C_INTEGER },
		{ MPI_UINT16_T, C_INTEGER },
		{ MPI_UINT32_T, C_INTEGER },
		{ MPI_UINT64_T, C_INTEGER },
		{ MPI_INTEGER, FORTRAN_INTEGER },
		{ MPI_INTEGER1, FORTRAN_INTEGER },
		{ MPI_INTEGER2, FORTRAN_INTEGER },
		{ MPI_INTEGER4, FORTRAN_INTEGER },
		{ MPI_INTEGER8, FORTRAN_INTEGER },
		{ MPI_INTEGER16, FORTRAN_INTEGER },
		{ MPI_AINT, FORTRAN_INTEGER },
		{ MPI_OFFSET, FORTRAN_INTEGER },
		{ MPI_COUNT, FORTRAN_INTEGER },
		{ MPI_FLOAT, REAL },
		{ MPI_DOUBLE, REAL },
		{ MPI_LONG_DOUBLE, REAL },
		{ MPI_REAL, REAL },
		{ MPI_DOUBLE_PRECISION, REAL },
		{ MPI_REAL4, REAL },
		{ MPI_REAL8, REAL },
		{ MPI_REAL16, REAL },
		{ MPI_LOGICAL, LOGICAL },
		{ MPI_C_BOOL, LOGICAL },
		{ MPI_CXX_BOOL, LOGICAL },
		{ MPI_COMPLEX, COMPLEX },
		{ MPI_DOUBLE_COMPLEX, COMPLEX },
		{ MPI_COMPLEX8, COMPLEX },
		{ MPI_COMPLEX16, COMPLEX },
		{ MPI_C_FLOAT_COMPLEX, COMPLEX },
		{ MPI_C_DOUBLE_COMPLEX, COMPLEX },
		{ MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX },
		{ MPI_CXX_FLOAT_COMPLEX, COMPLEX },
		{ MPI_CXX_DOUBLE_COMPLEX, COMPLEX },
		{ MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX },
		{ MPI_BYTE, BYTE },
		{ MPI_FLOAT_INT, PAIR },
		{ MPI_DOUBLE_INT, PAIR },
		{ MPI_LONG_INT, PAIR },
		{ MPI_SHORT_INT, PAIR },
		{ MPI_2INT, PAIR },
		{ MPI_LONG_DOUBLE_INT, PAIR },
		{ MPI_2INTEGER, PAIR },
		{ MPI_2REAL, PAIR },
		{ MPI_2DOUBLE_PRECISION, PAIR },
	};
	int combiner;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].type == type) {
			return kinds[i].kind;
		}
	}
	combiner = mpich_combiner_of(type);
	return combiner == MPI_COMBINER_F90_INTEGER   ? FORTRAN_INTEGER
	       : combiner == MPI_COMBINER_F90_REAL    ? REAL
	       : combiner == MPI_COMBINER_F90_COMPLEX ? COMPLEX
						      : 0;
}

bool mpich_is_reduction(MPI_Datatype type, MPI_Op op)
{
	static const struct {
		MPI_Op op;
		unsigned kinds;
	} ops[] = {
		{ MPI_MAX, C_INTEGER | FORTRAN_INTEGER | REAL },
		{ MPI_MIN, C_INTEGER | FORTRAN_INTEGER | REAL },
		{ MPI_SUM, C_INTEGER | FORTRAN_INTEGER | REAL | COMPLEX },
		{ MPI_PROD, C_INTEGER | FORTRAN_INTEGER | REAL | COMPLEX },
		{ MPI_LAND, C_INTEGER | LOGICAL },
		{ MPI_LOR, C_INTEGER | LOGICAL },
		{ MPI_LXOR, C_INTEGER | LOGICAL },
		{ MPI_BAND, C_INTEGER | FORTRAN_INTEGER | BYTE },
		{ MPI_BOR, C_INTEGER | FORTRAN_INTEGER | BYTE },
		{ MPI_BXOR, C_INTEGER | FORTRAN_INTEGER | BYTE },
		{ MPI_MINLOC, PAIR },
		{ MPI_MAXLOC, PAIR },
		{ MPI_REPLACE, 0 },
		{ MPI_NO_OP, 0 },
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (ops[i].op == op) {
			return (ops[i].kinds & kind_of(type)) != 0;
		}
	}
	return true;
}

/* A communicator of this rank alone, whose errors are returned. */
static MPI_Comm quiet = MPI_COMM_NULL;

bool mpich_begin_arguments(void)
{
	return PMPI_Comm_dup(MPI_COMM_SELF, &quiet) == MPI_SUCCESS &&
	       PMPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN) == MPI_SUCCESS;
}

void mpich_end_arguments(void)
{
	PMPI_Comm_free(&quiet);
}

/* MPI cannot be asked, but packing fails. */
bool mpich_is_committed(MPI_Datatype type)
{
	char nothing = 0;
	int at = 0;

	return type != MPI_DATATYPE_NULL &&
	       PMPI_Pack(&nothing, 0, type, &nothing, 0, &at, quiet) == MPI_SUCCESS;
}
