/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's reductions by means of collnet's. collnet computes the predefined types and operations that
 * it supports; all others become a user-defined operation that MPI applies to one fragment at a
 * time. Elements are packed if they are not contiguous, so that their layout may differ between
 * ranks.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/glue/glue.h"

/* ---- operations that MPI applies ---------------------------------------------------------- */

/* out = left op right, on contiguous elements. MPI's own function replaces its right operand. */
static int apply_contiguous(const struct glue_by_mpi *x, const void *left, const void *right,
			    void *out, size_t count)
{
	const size_t bytes = count * x->size;
	void *copy;
	int rc;

	if (out != left) {
		if (out != right) {
			memcpy(out, right, bytes);
		}
		return PMPI_Reduce_local(left, out, (int)count, x->type, x->op);
	}
	copy = malloc(bytes);
	if (copy == NULL) {
		return MPI_ERR_NO_MEM;
	}
	memcpy(copy, right, bytes);
	rc = PMPI_Reduce_local(left, copy, (int)count, x->type, x->op);
	memcpy(out, copy, bytes);
	free(copy);
	return rc;
}

/* The same on packed elements. Unpacked they begin where those of any C type can, as the program's
 * function expects. If the extent is negative, the last element is the lowest one. */
static int apply_packed(const struct glue_by_mpi *x, const void *left, const void *right, void *out,
			size_t count)
{
	MPI_Aint lower, extent, true_lower, true_extent;
	const size_t alignment = _Alignof(max_align_t);
	const size_t bytes = count * x->size;
	int rc;

	PMPI_Type_get_extent(x->type, &lower, &extent);
	PMPI_Type_get_true_extent(x->type, &true_lower, &true_extent);
	const MPI_Aint last = (MPI_Aint)(count - 1) * extent;
	const MPI_Aint lowest = true_lower + (last < 0 ? last : 0);
	const size_t before = (size_t)lowest % alignment;
	const size_t end = before + (size_t)(true_extent + (last < 0 ? -last : last));
	const size_t span = (end + alignment - 1) / alignment * alignment;
	char *memory = malloc(2 * span);
	if (memory == NULL) {
		return MPI_ERR_NO_MEM;
	}
	char *a = memory + before - lowest, *b = a + span;
	rc = glue_unpack_block(left, bytes, a, (int)count, x->type, x->comm);
	if (rc == MPI_SUCCESS) {
		rc = glue_unpack_block(right, bytes, b, (int)count, x->type, x->comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = PMPI_Reduce_local(a, b, (int)count, x->type, x->op);
	}
	if (rc == MPI_SUCCESS) {
		rc = glue_pack_block(b, (int)count, x->type, out, bytes, x->comm);
	}
	free(memory);
	return rc;
}

static void apply(const void *left, const void *right, void *out, size_t count, void *context)
{
	struct glue_by_mpi *x = context;
	const int rc = x->contiguous ? apply_contiguous(x, left, right, out, count)
				     : apply_packed(x, left, right, out, count);

	x->rc = x->rc != MPI_SUCCESS ? x->rc : rc;
}

/* ---- what collnet has itself -------------------------------------------------------------- */

static enum collnet_type signed_of(size_t size)
{
	return size == 1   ? COLLNET_INT8
	       : size == 2 ? COLLNET_INT16
	       : size == 4 ? COLLNET_INT32
			   : COLLNET_INT64;
}

static enum collnet_type unsigned_of(size_t size)
{
	return size == 1   ? COLLNET_UINT8
	       : size == 2 ? COLLNET_UINT16
	       : size == 4 ? COLLNET_UINT32
			   : COLLNET_UINT64;
}

/* 0: collnet has no such type. */
static enum collnet_type type_of(MPI_Datatype type)
{
	const MPI_Datatype ints[] = { MPI_SIGNED_CHAR, MPI_SHORT,  MPI_INT,	MPI_LONG,
				      MPI_LONG_LONG,   MPI_INT8_T, MPI_INT16_T, MPI_INT32_T,
				      MPI_INT64_T,     MPI_INTEGER };
	const MPI_Datatype naturals[] = { MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,     MPI_UNSIGNED,
					  MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,
					  MPI_UINT16_T,	     MPI_UINT32_T,	     MPI_UINT64_T,
					  MPI_BYTE };
	const struct {
		MPI_Datatype type;
		enum collnet_type ours;
	} others[] = {
		{ MPI_FLOAT, COLLNET_FLOAT32 },
		{ MPI_DOUBLE, COLLNET_FLOAT64 },
		{ MPI_DOUBLE_PRECISION, COLLNET_FLOAT64 },
		{ MPI_FLOAT_INT, COLLNET_FLOAT32_INT32 },
		{ MPI_DOUBLE_INT, COLLNET_FLOAT64_INT32 },
		{ MPI_SHORT_INT, COLLNET_INT16_INT32 },
		{ MPI_2INT, COLLNET_INT32_INT32 },
		{ MPI_LONG_INT, sizeof(long) == 8 ? COLLNET_INT64_INT32 : COLLNET_INT32_INT32 },
	};
	int size;

	for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
		if (ints[i] == type) {
			PMPI_Type_size(type, &size);
			return signed_of((size_t)size);
		}
	}
	for (size_t i = 0; i < sizeof(naturals) / sizeof(naturals[0]); i++) {
		if (naturals[i] == type) {
			PMPI_Type_size(type, &size);
			return unsigned_of((size_t)size);
		}
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (others[i].type == type) {
			return others[i].ours;
		}
	}
	return (enum collnet_type)0;
}

/* COLLNET_USER: collnet has no such operation. */
static enum collnet_op op_of(enum collnet_type type, MPI_Op op)
{
	const struct {
		MPI_Op op;
		enum collnet_op ours;
	} ops[] = {
		{ MPI_SUM, COLLNET_SUM },	{ MPI_PROD, COLLNET_PROD },
		{ MPI_MIN, COLLNET_MIN },	{ MPI_MAX, COLLNET_MAX },
		{ MPI_LAND, COLLNET_LAND },	{ MPI_LOR, COLLNET_LOR },
		{ MPI_LXOR, COLLNET_LXOR },	{ MPI_BAND, COLLNET_BAND },
		{ MPI_BOR, COLLNET_BOR },	{ MPI_BXOR, COLLNET_BXOR },
		{ MPI_MINLOC, COLLNET_MINLOC }, { MPI_MAXLOC, COLLNET_MAXLOC },
	};
	const bool pair = type >= COLLNET_FLOAT32_INT32;
	const bool real = type >= COLLNET_FLOAT16 && !pair;

	for (size_t i = 0; type != 0 && i < sizeof(ops) / sizeof(ops[0]); i++) {
		const enum collnet_op ours = ops[i].ours;

		if (ops[i].op == op) {
			return pair == (ours >= COLLNET_MINLOC) && !(real && ours > COLLNET_MAX)
				       ? ours
				       : COLLNET_USER;
		}
	}
	return COLLNET_USER;
}

/*
 * Whether the result is the same in whatever order the ranks' data is combined. If it is not, or
 * cannot be known, no measurement decides who performs the operation, so that the same calls have
 * the same result.
 */
static bool is_exact(MPI_Datatype type, MPI_Op op)
{
	const MPI_Op exact[] = { MPI_MIN,  MPI_MAX, MPI_LAND, MPI_LOR,	  MPI_LXOR,
				 MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC };
	const enum collnet_type ours = type_of(type);

	for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++) {
		if (exact[i] == op) {
			return true;
		}
	}
	return (op == MPI_SUM || op == MPI_PROD) && ours != 0 && ours < COLLNET_FLOAT16;
}

static bool serves(struct glue_call *k, enum glue_op what, size_t bytes, MPI_Datatype type,
		   MPI_Op op)
{
	return op != MPI_OP_NULL &&
	       (bytes > 0 && is_exact(type, op) ? glue_serves(k, what, bytes)
						: glue_serves_untried(k, what, bytes));
}

/* ---- the operations ------------------------------------------------------------------------ */

enum reduction { ALLREDUCE, REDUCE, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, SCAN, EXSCAN };

/* An operation on elements that collnet can combine. */
struct reduce {
	enum reduction kind;
	struct glue_reduction of;
	bool in_place;
	uint32_t root;
};

int glue_start_reduction(struct glue_call *k, const struct collnet_coll_options *o)
{
	const struct glue_reduction *r = &k->reduction;

	return r->function(k->team->team, r->send, r->recv, r->count, r->type, r->op, o,
			   &k->request);
}

static int reduce_to_root(struct glue_call *k, const struct collnet_coll_options *o)
{
	const struct glue_reduction *r = &k->reduction;

	return collnet_ireduce(k->team->team, r->send, r->recv, r->count, r->type, r->op, k->root,
			       o, &k->request);
}

static int reduce_scatter(struct glue_call *k, const struct collnet_coll_options *o)
{
	const struct glue_reduction *r = &k->reduction;

	return collnet_ireduce_scatterv(k->team->team, r->send, r->recv, r->counts, r->type, r->op,
					o, &k->request);
}

static int post(struct glue_call *k, const struct reduce *r)
{
	static const struct {
		const char *name;
		glue_start_function *start;
		glue_reduce_function *function;
	} kinds[] = {
		[ALLREDUCE] = { "Allreduce", glue_start_reduction, collnet_iallreduce },
		[REDUCE] = { "Reduce", reduce_to_root, NULL },
		[REDUCE_SCATTER_BLOCK] = { "Reduce_scatter_block", glue_start_reduction,
					   collnet_ireduce_scatter },
		[REDUCE_SCATTER] = { "Reduce_scatter", reduce_scatter, NULL },
		[SCAN] = { "Scan", glue_start_reduction, collnet_iscan },
		[EXSCAN] = { "Exscan", glue_start_reduction, collnet_iexscan },
	};

	k->reduction = r->of;
	k->reduction.function = kinds[r->kind].function;
	k->root = r->root;
	return glue_post(k, kinds[r->kind].name, kinds[r->kind].start);
}

static bool has_result(const struct glue_call *k, const struct reduce *r)
{
	return r->kind == REDUCE   ? (uint32_t)k->c->rank == r->root
	       : r->kind == EXSCAN ? k->c->rank > 0
				   : true;
}

static struct glue_blocks result(const struct glue_call *k, const struct reduce *r,
				 MPI_Datatype type)
{
	const size_t count = r->of.counts != NULL ? r->of.counts[k->c->rank] : r->of.count;

	return (struct glue_blocks){
		.data = r->of.recv, .n = 1, .count = (int)count, .type = type
	};
}

/* By an operation of MPI's. */
static int start_by_mpi(struct glue_call *k, struct reduce *r, const struct glue_blocks *sent,
			enum glue_side side, MPI_Op op)
{
	const MPI_Datatype type = sent->type;
	const struct glue_blocks received = result(k, r, type);
	struct glue_by_mpi *x = &k->by_mpi;
	struct collnet_user_op *user = &r->of.user;
	int size, rc;

	PMPI_Type_size(type, &size);
	*user = (struct collnet_user_op){ .size = sizeof(*user), .combine = apply, .context = x };
	PMPI_Op_commutative(op, &user->commutative);
	*x = (struct glue_by_mpi){ .type = type, .op = op, .comm = k->comm, .used = true };
	if (k->persistent) {
		k->c->mpi->retain_op(op, true);
	}
	user->element = x->size = (size_t)size;
	x->contiguous = glue_is_contiguous(type);
	r->of.op = COLLNET_USER;
	rc = glue_pack(k, &k->in, sent, side);
	if (rc == MPI_SUCCESS && has_result(k, r)) {
		rc = glue_pack(k, &k->out, &received, GLUE_RECEIVED);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	r->of.send = k->in.bytes;
	r->of.recv = k->out.bytes;
	return post(k, r);
}

/* Whether collnet can use elements there. MPI programs may have them at any address that the
 * processor allows, such as in COMMON blocks of Fortran. */
static bool is_aligned(const void *p, enum collnet_type type)
{
	const size_t size = collnet_type_size(type);

	return (uintptr_t)p % (size < 8 ? size : 8) == 0;
}

/* As bytes, with the holes of pairs, in memory of the call's own. */
static int copy(struct glue_call *k, struct glue_packed *p, struct glue_blocks b, size_t size,
		enum glue_side side)
{
	b.count *= (int)size;
	b.type = MPI_BYTE;
	return glue_pack(k, p, &b, side);
}

/* What is served. */
static int reduce(struct glue_call *k, struct reduce *r, MPI_Datatype type, MPI_Op op)
{
	const bool scatters = r->kind == REDUCE_SCATTER_BLOCK || r->kind == REDUCE_SCATTER;
	const struct glue_blocks sent = {
		.data = r->in_place ? r->of.recv : (void *)(uintptr_t)r->of.send,
		.n = r->kind == REDUCE_SCATTER_BLOCK ? (uint32_t)k->c->size : 1,
		.count = (int)r->of.count,
		.type = type,
	};
	/* A reduce-scatter of collnet's is not in place. */
	const enum glue_side side = r->in_place && scatters ? GLUE_COPIED : GLUE_SENT;
	int rc = MPI_SUCCESS;

	if (glue_bytes(sent.count, type) == 0) {
		return MPI_SUCCESS;
	}
	r->of.type = type_of(type);
	r->of.op = op_of(r->of.type, op);
	if (r->of.op == COLLNET_USER) {
		return start_by_mpi(k, r, &sent, side, op);
	}
	r->of.send = sent.data;
	if (side == GLUE_COPIED || !is_aligned(sent.data, r->of.type)) {
		rc = copy(k, &k->in, sent, collnet_type_size(r->of.type), GLUE_COPIED);
		r->of.send = k->in.bytes;
	}
	if (rc == MPI_SUCCESS && !is_aligned(r->of.recv, r->of.type)) {
		rc = copy(k, &k->out, result(k, r, type), collnet_type_size(r->of.type),
			  GLUE_RECEIVED_COPIED);
		r->of.recv = k->out.bytes;
		if (!has_result(k, r)) {
			k->out.blocks.n = 0; /* it stays as it is */
		}
	}
	return rc == MPI_SUCCESS ? post(k, r) : rc;
}

/* Whether elements of a type can be combined, so many in a block; collnet counts the holes of
 * pairs, and MPI does not. */
static bool are_short(size_t count, MPI_Datatype type)
{
	const size_t ours = collnet_type_size(type_of(type));
	int size;

	return type != MPI_DATATYPE_NULL && PMPI_Type_size(type, &size) == MPI_SUCCESS &&
	       (size_t)size <= COLLNET_ELEMENT_MAX &&
	       count * ((size_t)size > ours ? (size_t)size : ours) <= COLLNET_BLOCK_MAX;
}

static int reduce_blocks(struct glue_call *k, enum glue_op what, struct reduce r, int count,
			 MPI_Datatype type, MPI_Op op)
{
	const size_t bytes = glue_bytes(count, type);

	if (count < 0 || !are_short((size_t)count, type) || !serves(k, what, bytes, type, op)) {
		return GLUE_DECLINED;
	}
	r.in_place = r.of.send == MPI_IN_PLACE;
	r.of.count = (size_t)count;
	return reduce(k, &r, type, op);
}

int glue_allreduce(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		   MPI_Op op)
{
	const struct reduce r = { .kind = ALLREDUCE, .of = { .send = send, .recv = recv } };

	return reduce_blocks(k, GLUE_Allreduce, r, count, type, op);
}

int glue_reduce(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op, int root)
{
	const struct reduce r = { .kind = REDUCE,
				  .of = { .send = send, .recv = recv },
				  .root = (uint32_t)root };

	return reduce_blocks(k, GLUE_Reduce, r, count, type, op);
}

int glue_reduce_scatter_block(struct glue_call *k, const void *send, void *recv, int count,
			      MPI_Datatype type, MPI_Op op)
{
	const struct reduce r = { .kind = REDUCE_SCATTER_BLOCK,
				  .of = { .send = send, .recv = recv } };

	return reduce_blocks(k, GLUE_Reduce_scatter_block, r, count, type, op);
}

int glue_scan(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
	      MPI_Op op)
{
	const struct reduce r = { .kind = SCAN, .of = { .send = send, .recv = recv } };

	return reduce_blocks(k, GLUE_Scan, r, count, type, op);
}

int glue_exscan(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op)
{
	const struct reduce r = { .kind = EXSCAN, .of = { .send = send, .recv = recv } };

	return reduce_blocks(k, GLUE_Exscan, r, count, type, op);
}

/* Blocks of different sizes. Counts, type and operation are equal on all ranks. */
int glue_reduce_scatter(struct glue_call *k, const void *send, void *recv, const int *counts,
			MPI_Datatype type, MPI_Op op)
{
	const int size = k->c->size;
	struct reduce r = {
		.kind = REDUCE_SCATTER,
		.of = { .send = send, .recv = recv },
		.in_place = send == MPI_IN_PLACE,
	};
	size_t longest = 0, bytes, *blocks;

	for (int i = 0; i < size; i++) {
		const int count = glue_count_in(counts, k->receives, (uint32_t)i);

		if (count < 0) {
			return GLUE_DECLINED;
		}
		r.of.count += (size_t)count;
		longest = (size_t)count > longest ? (size_t)count : longest;
	}
	if (r.of.count > INT32_MAX || !are_short(r.of.count, type)) {
		return GLUE_DECLINED;
	}
	bytes = glue_bytes((int)r.of.count, type);
	k->bytes = glue_bytes((int)longest, type);
	if (!serves(k, GLUE_Reduce_scatter, bytes, type, op)) {
		return GLUE_DECLINED;
	}
	if (bytes == 0) {
		return MPI_SUCCESS; /* keeps no counts: nothing will end it */
	}
	if (longest * (size_t)size == r.of.count) {
		r.kind = REDUCE_SCATTER_BLOCK;
		r.of.count = longest;
		return reduce(k, &r, type, op);
	}
	blocks = malloc((size_t)size * sizeof(*blocks));
	if (blocks == NULL) {
		return MPI_ERR_NO_MEM;
	}
	for (int i = 0; i < size; i++) {
		blocks[i] = (size_t)glue_count_in(counts, k->receives, (uint32_t)i);
	}
	r.of.counts = k->counts = blocks;
	return reduce(k, &r, type, op);
}
