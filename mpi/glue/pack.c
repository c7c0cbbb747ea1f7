/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Derived datatypes. Only a predefined type whose elements are adjacent is used in place; any other
 * type is packed by MPI, in the order of its type map, which is equal on all ranks.
 */
#include <stdlib.h>

#include "mpi/glue/glue.h"

#define SHARED_MIN ((size_t)16 << 10)

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

/*
 * Long ones are in memory that the daemon sees, so that the library does not copy them again. A
 * team keeps it for its next operations. If there is none, any memory will do.
 */
static bool share(struct glue_team *t, struct glue_packed *p, size_t bytes)
{
	struct glue_buffer *b = t->buffers;

	if (bytes < SHARED_MIN || t->no_buffers) {
		return false;
	}
	while (b < t->buffers + GLUE_BUFFERS && b->busy) {
		b++;
	}
	if (b == t->buffers + GLUE_BUFFERS) {
		return false;
	}
	/* The other free one may fit as it is. */
	if (b == t->buffers && b->bytes < bytes && !b[1].busy && b[1].bytes >= bytes) {
		b++;
	}
	if (b->bytes < bytes) {
		collnet_free(t->context, b->p);
		b->bytes = bytes + bytes / 4;
		b->p = collnet_alloc(t->context, b->bytes);
	}
	if (b->p == NULL) {
		b->bytes = 0;
		t->no_buffers = true;
		return false;
	}
	b->busy = true;
	p->buffer = b;
	p->bytes = p->owned = b->p;
	return true;
}

void *glue_packed_alloc(struct glue_comm *c, struct glue_packed *p, size_t bytes)
{
	*p = GLUE_NOT_PACKED;
	if (!share(c->team, p, bytes)) {
		p->bytes = p->owned = malloc(bytes + 1);
	}
	return p->bytes;
}

void glue_packed_free(struct glue_packed *p)
{
	if (p->buffer != NULL) {
		p->buffer->busy = false;
	} else {
		free(p->owned);
	}
	p->owned = NULL;
	p->buffer = NULL;
}

int glue_pack(struct glue_comm *c, struct glue_packed *p, const void *data, uint32_t blocks,
	      int count, MPI_Datatype type, bool filled, MPI_Comm comm)
{
	size_t bytes = glue_bytes(count, type);

	*p = GLUE_NOT_PACKED;
	p->bytes = (void *)data;
	if (glue_is_contiguous(type)) {
		return MPI_SUCCESS;
	}
	if (glue_packed_alloc(c, p, bytes * blocks) == NULL) {
		return MPI_ERR_NO_MEM;
	}
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
