/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's reductions by means of collnet's. Predefined types and operations that collnet has are its
 * own; all others become a user-defined operation that MPI applies to a piece at a time. Elements
 * are packed if they are not contiguous, so that a layout that differs between ranks does no harm.
 */
#include <stdlib.h>
#include <string.h>

#include "mpi/glue/glue.h"

/* ---- operations that MPI applies ---------------------------------------------------------- */

struct by_mpi {
	MPI_Datatype type;
	MPI_Op op;
	MPI_Comm comm;
	size_t size;	 /* bytes of an element, packed */
	bool contiguous; /* it lies in memory as it is packed */
	int rc;		 /* of the first failure */
};

/* out = left op right, on contiguous elements. MPI's own function replaces its right operand. */
static int apply_contiguous(const struct by_mpi *x, const void *left, const void *right, void *out,
			    size_t count)
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

/* The same on packed elements. */
static int apply_packed(const struct by_mpi *x, const void *left, const void *right, void *out,
			size_t count)
{
	MPI_Aint lower, extent, true_lower, true_extent;
	const int bytes = (int)(count * x->size);
	int at = 0, rc;

	PMPI_Type_get_extent(x->type, &lower, &extent);
	PMPI_Type_get_true_extent(x->type, &true_lower, &true_extent);
	const size_t span = (size_t)(true_extent + (MPI_Aint)(count - 1) * extent);
	char *memory = malloc(2 * span);
	if (memory == NULL) {
		return MPI_ERR_NO_MEM;
	}
	char *a = memory - true_lower, *b = memory + span - true_lower;
	rc = PMPI_Unpack(left, bytes, &at, a, (int)count, x->type, x->comm);
	at = 0;
	if (rc == MPI_SUCCESS) {
		rc = PMPI_Unpack(right, bytes, &at, b, (int)count, x->type, x->comm);
	}
	if (rc == MPI_SUCCESS) {
		rc = PMPI_Reduce_local(a, b, (int)count, x->type, x->op);
	}
	at = 0;
	if (rc == MPI_SUCCESS) {
		rc = PMPI_Pack(b, (int)count, x->type, out, bytes, &at, x->comm);
	}
	free(memory);
	return rc;
}

static void apply(const void *left, const void *right, void *out, size_t count, void *context)
{
	struct by_mpi *x = context;
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
 * cannot be known, collnet always serves the operation, so that the same calls have the same
 * result.
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

static bool serves(struct glue_comm *c, MPI_Comm comm, enum glue_op what, size_t bytes,
		   MPI_Datatype type, MPI_Op op)
{
	return bytes > 0 && is_exact(type, op) ? glue_serves(c, comm, what, bytes)
					       : glue_decide(c, comm);
}

/* ---- the operations ------------------------------------------------------------------------ */

enum reduction { ALLREDUCE, REDUCE, REDUCE_SCATTER, SCAN, EXSCAN };

/* A call, with elements that collnet can combine. */
struct call {
	enum reduction kind;
	const void *send;
	void *recv;
	size_t count;
	enum collnet_type type;
	enum collnet_op op;
	uint32_t root;
};

static int run(struct glue_comm *c, const struct call *k, const struct collnet_user_op *user)
{
	static const char *const names[] = { "Allreduce", "Reduce", "Reduce_scatter_block", "Scan",
					     "Exscan" };
	struct collnet_coll_options o = glue_options();
	collnet_team_t *t = c->team->team;
	collnet_request_t *r = NULL;
	int rc = COLLNET_EINVAL;

	o.user_op = user;
	switch (k->kind) {
	case ALLREDUCE:
		rc = collnet_iallreduce(t, k->send, k->recv, k->count, k->type, k->op, &o, &r);
		break;
	case REDUCE:
		rc = collnet_ireduce(t, k->send, k->recv, k->count, k->type, k->op, k->root, &o,
				     &r);
		break;
	case REDUCE_SCATTER:
		rc = collnet_ireduce_scatter(t, k->send, k->recv, k->count, k->type, k->op, &o, &r);
		break;
	case SCAN:
		rc = collnet_iscan(t, k->send, k->recv, k->count, k->type, k->op, &o, &r);
		break;
	case EXSCAN:
		rc = collnet_iexscan(t, k->send, k->recv, k->count, k->type, k->op, &o, &r);
		break;
	}
	return glue_wait(c, names[k->kind], rc, &r);
}

/* The elements of `blocks` blocks as bytes that must not change: a copy if they are in place. */
static int keep(struct glue_packed *p, size_t bytes)
{
	void *copy;

	if (p->owned != NULL) {
		return MPI_SUCCESS;
	}
	copy = malloc(bytes);
	if (copy == NULL) {
		return MPI_ERR_NO_MEM;
	}
	memcpy(copy, p->bytes, bytes);
	p->bytes = p->owned = copy;
	return MPI_SUCCESS;
}

/* By an operation of MPI's. blocks: in the send buffer. */
static int run_by_mpi(struct glue_comm *c, struct call k, bool in_place, bool result,
		      uint32_t blocks, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct by_mpi x = { .type = type, .op = op, .comm = comm };
	struct collnet_user_op user = { .size = sizeof(user), .combine = apply, .context = &x };
	struct glue_packed in = GLUE_NOT_PACKED, out = GLUE_NOT_PACKED;
	void *recv = k.recv;
	int size, rc;

	PMPI_Type_size(type, &size);
	PMPI_Op_commutative(op, &user.commutative);
	user.element = x.size = (size_t)size;
	k.op = COLLNET_USER;
	rc = glue_pack(c, &in, k.send, blocks, count, type, true, comm);
	x.contiguous = in.owned == NULL;
	if (rc == MPI_SUCCESS && in_place && k.kind == REDUCE_SCATTER) {
		rc = keep(&in, k.count * x.size * blocks);
	}
	if (rc == MPI_SUCCESS && result) {
		rc = glue_pack(c, &out, recv, 1, count, type, false, comm);
	}
	k.send = in.bytes;
	k.recv = out.bytes;
	if (rc == MPI_SUCCESS) {
		rc = run(c, &k, &user);
	}
	rc = rc != MPI_SUCCESS ? rc : x.rc;
	if (rc == MPI_SUCCESS && result) {
		rc = glue_unpack(&out, recv, 1, count, type, comm);
	}
	glue_packed_free(&in);
	glue_packed_free(&out);
	return rc;
}

static int reduce(struct glue_comm *c, struct call k, int count, MPI_Datatype type, MPI_Op op,
		  MPI_Comm comm)
{
	static const enum glue_op ops[] = { GLUE_Allreduce, GLUE_Reduce, GLUE_Reduce_scatter_block,
					    GLUE_Scan, GLUE_Exscan };
	const size_t bytes = glue_bytes(count, type);
	const uint32_t blocks = k.kind == REDUCE_SCATTER ? (uint32_t)c->size : 1;
	const bool in_place = k.send == MPI_IN_PLACE;
	const bool result = k.kind == REDUCE   ? (uint32_t)c->rank == k.root
			    : k.kind == EXSCAN ? c->rank > 0
					       : true;
	struct glue_packed in = GLUE_NOT_PACKED;
	int size, rc = MPI_SUCCESS;

	PMPI_Type_size(type, &size);
	if (bytes > COLLNET_BLOCK_MAX || (size_t)size > COLLNET_ELEMENT_MAX ||
	    !serves(c, comm, ops[k.kind], bytes, type, op)) {
		return GLUE_DECLINED;
	}
	if (bytes == 0) {
		return MPI_SUCCESS;
	}
	k.send = in_place ? k.recv : k.send;
	k.count = (size_t)count;
	k.type = type_of(type);
	k.op = op_of(k.type, op);
	if (k.op == COLLNET_USER) {
		return run_by_mpi(c, k, in_place, result, blocks, count, type, op, comm);
	}
	in.bytes = (void *)(uintptr_t)k.send;
	if (in_place && k.kind == REDUCE_SCATTER) {
		rc = keep(&in, k.count * collnet_type_size(k.type) * blocks);
		k.send = in.bytes;
	}
	rc = rc == MPI_SUCCESS ? run(c, &k, NULL) : rc;
	glue_packed_free(&in);
	return rc;
}

int glue_allreduce(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
		   MPI_Op op, MPI_Comm comm)
{
	const struct call k = { .kind = ALLREDUCE, .send = send, .recv = recv };

	return reduce(c, k, count, type, op, comm);
}

int glue_reduce(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op, int root, MPI_Comm comm)
{
	const struct call k = {
		.kind = REDUCE, .send = send, .recv = recv, .root = (uint32_t)root
	};

	return reduce(c, k, count, type, op, comm);
}

int glue_reduce_scatter_block(struct glue_comm *c, const void *send, void *recv, int count,
			      MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	const struct call k = { .kind = REDUCE_SCATTER, .send = send, .recv = recv };

	return reduce(c, k, count, type, op, comm);
}

/* Blocks of different sizes. With an operation of collnet's, and sizes that differ little, the
 * blocks are padded to the longest one; otherwise rank 0 reduces all and scatters the result.
 * Counts, type and operation are equal on all ranks. */

/* Beyond that, half as many bytes again, padding would be more expensive. */
static bool worth_padding(size_t total, size_t longest, int size)
{
	return 2 * longest * (size_t)size <= 3 * total;
}

static int padded(struct glue_comm *c, const void *send, void *recv, const int *counts,
		  size_t longest, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	const size_t element = collnet_type_size(type_of(type)), block = longest * element;
	const char *from = send == MPI_IN_PLACE ? recv : send;
	char *in = calloc((size_t)c->size + 1, block), *out = in + (size_t)c->size * block;
	int rc;

	if (in == NULL) {
		return MPI_ERR_NO_MEM;
	}
	for (int i = 0; i < c->size; i++) {
		memcpy(in + (size_t)i * block, from, (size_t)counts[i] * element);
		from += (size_t)counts[i] * element;
	}
	rc = glue_reduce_scatter_block(c, in, out, (int)longest, type, op, comm);
	if (rc == MPI_SUCCESS) {
		memcpy(recv, out, (size_t)counts[c->rank] * element);
	}
	free(in);
	return rc;
}

static int by_way_of_rank_0(struct glue_comm *c, const void *send, void *recv, const int *counts,
			    size_t total, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int *displs = calloc((size_t)c->size, sizeof(*displs));
	MPI_Aint lower, extent, true_lower, true_extent;
	char *memory, *all;
	int rc;

	PMPI_Type_get_extent(type, &lower, &extent);
	PMPI_Type_get_true_extent(type, &true_lower, &true_extent);
	memory = malloc((size_t)(true_extent + (MPI_Aint)total * extent));
	if (displs == NULL || memory == NULL) {
		free(displs);
		free(memory);
		return MPI_ERR_NO_MEM;
	}
	all = memory - true_lower;
	for (int i = 1; i < c->size; i++) {
		displs[i] = displs[i - 1] + counts[i - 1];
	}
	rc = glue_reduce(c, send == MPI_IN_PLACE ? recv : send, all, (int)total, type, op, 0, comm);
	if (rc == MPI_SUCCESS) {
		rc = glue_scatterv(c, all, counts, displs, type, recv, counts[c->rank], type, 0,
				   comm);
	}
	free(displs);
	free(memory);
	return rc;
}

int glue_reduce_scatter(struct glue_comm *c, const void *send, void *recv, const int *counts,
			MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	size_t total = 0, longest = 0;
	int rc;

	for (int i = 0; i < c->size; i++) {
		if (counts[i] < 0) {
			return GLUE_DECLINED;
		}
		total += (size_t)counts[i];
		longest = (size_t)counts[i] > longest ? (size_t)counts[i] : longest;
	}
	if (total > INT32_MAX || glue_bytes((int)total, type) > COLLNET_BLOCK_MAX ||
	    !serves(c, comm, GLUE_Reduce_scatter, glue_bytes((int)total, type), type, op)) {
		return GLUE_DECLINED;
	}
	c->nested = true;
	if (longest * (size_t)c->size == total) {
		rc = glue_reduce_scatter_block(c, send, recv, (int)longest, type, op, comm);
	} else if (op_of(type_of(type), op) != COLLNET_USER &&
		   worth_padding(total, longest, c->size)) {
		rc = padded(c, send, recv, counts, longest, type, op, comm);
	} else {
		rc = by_way_of_rank_0(c, send, recv, counts, total, type, op, comm);
	}
	c->nested = false;
	return rc;
}

int glue_scan(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
	      MPI_Op op, MPI_Comm comm)
{
	const struct call k = { .kind = SCAN, .send = send, .recv = recv };

	return reduce(c, k, count, type, op, comm);
}

int glue_exscan(struct glue_comm *c, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op, MPI_Comm comm)
{
	const struct call k = { .kind = EXSCAN, .send = send, .recv = recv };

	return reduce(c, k, count, type, op, comm);
}
