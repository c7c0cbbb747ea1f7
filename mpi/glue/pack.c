/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Derived datatypes. Only a predefined type whose elements are adjacent is used in place; any other
 * type is packed by MPI, in the order of its type map, which is equal on all ranks.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi/glue/glue.h"

#define SHARED_MIN ((size_t)16 << 10)

/* A context has 64 allocations. Those of packed elements leave some for glue_has_memory(). */
#define SHARED_MAX 60

static atomic_uint shared; /* allocations of the process */

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
	/* MPI would report an error of PMPI_Type_size() to the handler of MPI_COMM_WORLD. */
	if (count < 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS ||
	    size < 0) {
		return COLLNET_BLOCK_MAX + 1;
	}
	return (size_t)count * (size_t)size;
}

int glue_match(size_t received, int nsend, MPI_Datatype tsend)
{
	const size_t sent = glue_bytes(nsend, tsend);

	return sent == received ? MPI_SUCCESS : sent > received ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT;
}

int glue_narrow(MPI_Count count)
{
	return count < 0 ? -1 : count > INT32_MAX ? INT32_MAX : (int)count;
}

int glue_count_in(const int *counts, const struct glue_large *large, uint32_t i)
{
	return large != NULL ? glue_narrow(large->counts[i]) : counts[i];
}

static bool has_counts(const struct glue_blocks *b)
{
	return b->counts != NULL || b->large != NULL;
}

static MPI_Aint displacement(const struct glue_blocks *b, uint32_t i)
{
	return b->large != NULL	   ? b->large->displs[i]
	       : b->displs != NULL ? b->displs[i]
				   : (MPI_Aint)i * b->count;
}

/* Block i of `data`, whose displacements are in elements if all have one type, else in bytes. */
void *glue_block(const struct glue_blocks *b, uint32_t i)
{
	MPI_Aint lower, extent;

	if (b->types != NULL) {
		return (char *)b->data + displacement(b, i);
	}
	PMPI_Type_get_extent(b->type, &lower, &extent);
	return (char *)b->data + displacement(b, i) * extent;
}

static int count_of(const struct glue_blocks *b, uint32_t i)
{
	return has_counts(b) ? glue_count_in(b->counts, b->large, i) : b->count;
}

static MPI_Datatype type_of(const struct glue_blocks *b, uint32_t i)
{
	return b->types != NULL ? b->types[i] : b->type;
}

static void *alloc_shared(collnet_t *context, size_t bytes)
{
	void *p = shared < SHARED_MAX ? collnet_alloc(context, bytes) : NULL;

	shared += p != NULL;
	return p;
}

void glue_free_shared(collnet_t *context, void *p)
{
	shared -= p != NULL;
	collnet_free(context, p);
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
		glue_free_shared(t->context, b->p);
		b->bytes = bytes + bytes / 4;
		b->p = alloc_shared(t->context, b->bytes);
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

/* A persistent call keeps its memory until it is freed. */
static bool allocate_shared(struct glue_team *t, struct glue_packed *p, size_t bytes)
{
	if (bytes < SHARED_MIN) {
		return false;
	}
	p->bytes = p->owned = alloc_shared(t->context, bytes);
	p->context = p->owned != NULL ? t->context : NULL;
	return p->owned != NULL;
}

static int allocate(const struct glue_call *k, struct glue_packed *p, size_t bytes)
{
	if (!(k->persistent ? allocate_shared : share)(k->team, p, bytes)) {
		p->bytes = p->owned = malloc(bytes + 1);
	}
	return p->bytes != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* The types of packed blocks are held, or no longer. */
static void retain_types(const struct glue_mpi *mpi, const struct glue_blocks *b, bool hold)
{
	for (uint32_t i = 0; i < (b->types != NULL ? b->n : 1); i++) {
		mpi->retain_type(b->types != NULL ? b->types[i] : b->type, hold);
	}
}

/*
 * A persistent call uses the blocks after the program has freed the types and changed the arrays.
 * So does a non-blocking one with a type per block: Open MPI's binding for Fortran converts the
 * types in an array, which it frees before the operation is complete.
 */
static int keep(const struct glue_mpi *mpi, struct glue_packed *p)
{
	struct glue_blocks *b = &p->blocks;
	int *counts, *displs;
	MPI_Datatype *types;

	if (b->counts != NULL) {
		types = malloc(b->n * (sizeof(*types) + 2 * sizeof(*counts)));
		if (types == NULL) {
			return MPI_ERR_NO_MEM;
		}
		p->arrays = types;
		counts = (int *)(types + b->n);
		displs = counts + b->n;
		memcpy(counts, b->counts, b->n * sizeof(*counts));
		memcpy(displs, b->displs, b->n * sizeof(*displs));
		b->counts = counts;
		b->displs = displs;
		if (b->types != NULL) {
			memcpy(types, b->types, b->n * sizeof(*types));
			b->types = types;
		}
	}
	retain_types(mpi, b, true);
	p->holder = mpi;
	return MPI_SUCCESS;
}

void glue_packed_free(struct glue_packed *p)
{
	if (p->buffer != NULL) {
		p->buffer->busy = false;
	} else if (p->context != NULL) {
		glue_free_shared(p->context, p->owned);
	} else {
		free(p->owned);
	}
	if (p->holder != NULL) {
		retain_types(p->holder, &p->blocks, false);
	}
	free(p->arrays);
	free(p->counts);
	*p = GLUE_NOT_PACKED;
}

/* MPI displaces blocks in either direction; collnet from the lowest one. The displacement of a
 * block without elements may be anything. */
static void use_in_place(struct glue_packed *p, const struct glue_blocks *b)
{
	uint32_t lowest = b->n;

	p->bytes = b->data;
	if (!has_counts(b)) {
		return;
	}
	for (uint32_t i = 0; i < b->n; i++) {
		if (p->counts[i] > 0 &&
		    (lowest == b->n || displacement(b, i) < displacement(b, lowest))) {
			lowest = i;
			p->bytes = glue_block(b, i);
		}
	}
	for (uint32_t i = 0; i < b->n; i++) {
		p->displs[i] = p->counts[i] == 0
				       ? 0
				       : (size_t)((char *)glue_block(b, i) - (char *)p->bytes);
	}
}

void *glue_packed_block(const struct glue_packed *p, const struct glue_blocks *b, uint32_t i,
			size_t *bytes)
{
	if (p->counts != NULL) {
		*bytes = p->counts[i];
		return (char *)p->bytes + p->displs[i];
	}
	*bytes = glue_bytes(b->count, b->type);
	return (char *)p->bytes + i * *bytes;
}

size_t glue_total(const struct glue_blocks *b)
{
	size_t total = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		total += glue_bytes(count_of(b, i), type_of(b, i));
	}
	return total;
}

int glue_repack(const struct glue_packed *p, MPI_Comm comm)
{
	const struct glue_blocks *b = &p->blocks;
	int rc = MPI_SUCCESS;
	size_t bytes;

	for (uint32_t i = 0; p->filled && rc == MPI_SUCCESS && i < b->n; i++) {
		void *at = glue_packed_block(p, b, i, &bytes);

		if (bytes > 0) {
			rc = glue_pack_block(glue_block(b, i), count_of(b, i), type_of(b, i), at,
					     bytes, comm);
		}
	}
	return rc;
}

int glue_pack(const struct glue_call *k, struct glue_packed *p, const struct glue_blocks *b,
	      enum glue_side side)
{
	size_t total = 0;
	int rc;

	*p = GLUE_NOT_PACKED;
	if (!has_counts(b)) {
		total = b->n * glue_bytes(b->count, b->type);
	} else {
		p->counts = calloc(2 * (size_t)b->n, sizeof(*p->counts));
		if (p->counts == NULL) {
			return MPI_ERR_NO_MEM;
		}
		p->displs = p->counts + b->n;
		for (uint32_t i = 0; i < b->n; i++) {
			p->counts[i] = glue_bytes(count_of(b, i), type_of(b, i));
			p->displs[i] = total;
			total += p->counts[i];
		}
	}
	if ((side == GLUE_RECEIVED || side == GLUE_SENT) && b->types == NULL &&
	    glue_is_contiguous(b->type)) {
		use_in_place(p, b);
		return MPI_SUCCESS;
	}
	p->blocks = *b;
	p->filled = side == GLUE_SENT || side == GLUE_COPIED;
	rc = allocate(k, p, total);
	if (rc == MPI_SUCCESS && (k->persistent || (k->nonblocking && b->types != NULL))) {
		rc = keep(k->c->mpi, p);
	}
	return rc == MPI_SUCCESS && !k->persistent ? glue_repack(p, k->comm) : rc;
}

int glue_unpack(const struct glue_packed *p, MPI_Comm comm)
{
	const struct glue_blocks *b = &p->blocks;
	int rc = MPI_SUCCESS;
	size_t bytes;

	for (uint32_t i = 0; p->owned != NULL && !p->filled && rc == MPI_SUCCESS && i < b->n; i++) {
		void *at = glue_packed_block(p, b, i, &bytes);

		if (bytes > 0) {
			rc = glue_unpack_block(at, bytes, glue_block(b, i), count_of(b, i),
					       type_of(b, i), comm);
		}
	}
	return rc;
}
