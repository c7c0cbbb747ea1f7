/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Derived datatypes. Only a predefined type whose elements are adjacent is used in place; any other
 * type is packed by MPI, in the order of its type map, which is equal on all ranks.
 */
#include <stdlib.h>

#include "mpi/glue/glue.h"

bool glue_is_contiguous(MPI_Datatype type)
{
	int size;
	MPI_Aint lower, extent;

	return glue_is_predefined(type) && PMPI_Type_size(type, &size) == MPI_SUCCESS &&
	       PMPI_Type_get_extent(type, &lower, &extent) == MPI_SUCCESS && lower == 0 &&
	       extent == size;
}

size_t glue_bytes(int count, MPI_Datatype type)
{
	int size;

	if (count == 0) {
		return 0; /* some programs pass no type with it */
	}
	if (count < 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0) {
		return COLLNET_BLOCK_MAX + 1;
	}
	return (size_t)count * (size_t)size;
}

void *glue_block(const void *data, uint32_t i, int count, MPI_Datatype type)
{
	MPI_Aint lower, extent;

	PMPI_Type_get_extent(type, &lower, &extent);
	return (char *)data + (MPI_Aint)i * count * extent;
}

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

int glue_pack(struct glue_packed *p, const void *data, uint32_t blocks, int count,
	      MPI_Datatype type, bool filled, MPI_Comm comm)
{
	size_t bytes = glue_bytes(count, type);

	p->owned = NULL;
	p->bytes = (void *)data;
	if (glue_is_contiguous(type)) {
		return MPI_SUCCESS;
	}
	p->owned = malloc(bytes * blocks + 1);
	if (p->owned == NULL) {
		return MPI_ERR_NO_MEM;
	}
	p->bytes = p->owned;
	for (uint32_t i = 0; filled && i < blocks; i++) {
		int rc = glue_pack_block(glue_block(data, i, count, type), count, type,
					 (char *)p->bytes + i * bytes, bytes, comm);
		if (rc != MPI_SUCCESS) {
			glue_packed_free(p);
			return rc;
		}
	}
	return MPI_SUCCESS;
}

int glue_unpack(const struct glue_packed *p, void *data, uint32_t blocks, int count,
		MPI_Datatype type, MPI_Comm comm)
{
	size_t bytes = glue_bytes(count, type);

	for (uint32_t i = 0; p->owned != NULL && i < blocks; i++) {
		int rc = glue_unpack_block((char *)p->bytes + i * bytes, bytes,
					   glue_block(data, i, count, type), count, type, comm);
		if (rc != MPI_SUCCESS) {
			return rc;
		}
	}
	return MPI_SUCCESS;
}

void glue_packed_free(struct glue_packed *p)
{
	free(p->owned);
	p->owned = NULL;
}
