/* SPDX-License-Identifier: BSD-2-Clause */
/* Elements as contiguous bytes, by MPICH's functions. */
#include <stdint.h>

#include "mpi/glue/glue.h"

/*
 * MPICH's MPI_Pack() and MPI_Unpack() reject MPI_BOTTOM, which is NULL there. A type that is
 * displaced by as much as another address is allowed with that address.
 */
static int displaced(int count, MPI_Datatype type, void *address, MPI_Datatype *out)
{
	const MPI_Aint by = -(MPI_Aint)(intptr_t)address;
	int rc = PMPI_Type_create_hindexed(1, &count, &by, type, out);

	return rc == MPI_SUCCESS ? PMPI_Type_commit(out) : rc;
}

int glue_pack_block(const void *data, int count, MPI_Datatype type, void *bytes, size_t size,
		    MPI_Comm comm)
{
	MPI_Datatype moved;
	int at = 0, rc;
	char origin;

	if (data != NULL) {
		return PMPI_Pack(data, count, type, bytes, (int)size, &at, comm);
	}
	rc = displaced(count, type, &origin, &moved);
	if (rc == MPI_SUCCESS) {
		rc = PMPI_Pack(&origin, 1, moved, bytes, (int)size, &at, comm);
		PMPI_Type_free(&moved);
	}
	return rc;
}

int glue_unpack_block(const void *bytes, size_t size, void *data, int count, MPI_Datatype type,
		      MPI_Comm comm)
{
	MPI_Datatype moved;
	int at = 0, rc;
	char origin;

	if (data != NULL) {
		return PMPI_Unpack(bytes, (int)size, &at, data, count, type, comm);
	}
	rc = displaced(count, type, &origin, &moved);
	if (rc == MPI_SUCCESS) {
		rc = PMPI_Unpack(bytes, (int)size, &at, &origin, 1, moved, comm);
		PMPI_Type_free(&moved);
	}
	return rc;
}
