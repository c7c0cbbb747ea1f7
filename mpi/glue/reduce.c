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

/* The same on packed elements. */
static int apply_packed(const struct glue_by_mpi *x, const void *left, const void *right, void *out,
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

static bool serves(const struct glue_call *k, enum glue_op what, size_t bytes, MPI_Datatype type,
		   MPI_Op op)
{
	return bytes > 0 && is_exact(type, op) ? glue_serves(k, what, bytes)
					       : glue_decide(k, bytes);
}

/* ---- the operations ------------------------------------------------------------------------ */

enum reduction { ALLREDUCE, REDUCE, REDUCE_SCATTER, SCAN, EXSCAN };

/* An operation on elements that collnet can combine. */
struct reduce {
	enum reduction kind;
	const void *send;
	void *recv;
	size_t count;
	enum collnet_type type;
	enum collnet_op op;
	uint32_t root;
};

static int start(struct glue_call *k, const struct reduce *r, const struct collnet_user_op *user)
{
	static const char *const names[] = { "Allreduce", "Reduce", "Reduce_scatter_block", "Scan",
					     "Exscan" };
	struct collnet_coll_options o = glue_options();
	collnet_team_t *t = k->c->team->team;
	collnet_request_t **q = &k->request;
	int rc = COLLNET_EINVAL;

	o.user_op = user;
	glue_make_room(k->c);
	switch (r->kind) {
	case ALLREDUCE:
		rc = collnet_iallreduce(t, r->send, r->recv, r->count, r->type, r->op, &o, q);
		break;
	case REDUCE:
		rc = collnet_ireduce(t, r->send, r->recv, r->count, r->type, r->op, r->root, &o, q);
		break;
	case REDUCE_SCATTER:
		rc = collnet_ireduce_scatter(t, r->send, r->recv, r->count, r->type, r->op, &o, q);
		break;
	case SCAN:
		rc = collnet_iscan(t, r->send, r->recv, r->count, r->type, r->op, &o, q);
		break;
	case EXSCAN:
		rc = collnet_iexscan(t, r->send, r->recv, r->count, r->type, r->op, &o, q);
		break;
	}
	return glue_started(k, names[r->kind], rc);
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
static int start_by_mpi(struct glue_call *k, struct reduce r, bool in_place, bool result,
			uint32_t blocks, int count, MPI_Datatype type, MPI_Op op)
{
	const struct glue_blocks sent = { (void *)r.send, blocks, count, type, NULL, NULL, NULL };
	struct glue_by_mpi *x = &k->by_mpi;
	struct collnet_user_op user = { .size = sizeof(user), .combine = apply, .context = x };
	int size, rc;

	PMPI_Type_size(type, &size);
	PMPI_Op_commutative(op, &user.commutative);
	*x = (struct glue_by_mpi){ .type = type, .op = op, .comm = k->comm, .used = true };
	user.element = x->size = (size_t)size;
	r.op = COLLNET_USER;
	rc = glue_pack(k, &k->in, &sent, true);
	x->contiguous = k->in.owned == NULL;
	if (rc == MPI_SUCCESS && in_place && r.kind == REDUCE_SCATTER) {
		rc = keep(&k->in, r.count * x->size * blocks);
	}
	if (rc == MPI_SUCCESS && result) {
		k->received = (struct glue_blocks){ r.recv, 1, count, type, NULL, NULL, NULL };
		rc = glue_pack(k, &k->out, &k->received, false);
	}
	if (rc != MPI_SUCCESS) {
		return rc;
	}
	r.send = k->in.bytes;
	r.recv = k->out.bytes;
	return start(k, &r, &user);
}

static int reduce(struct glue_call *k, struct reduce r, int count, MPI_Datatype type, MPI_Op op)
{
	static const enum glue_op ops[] = { GLUE_Allreduce, GLUE_Reduce, GLUE_Reduce_scatter_block,
					    GLUE_Scan, GLUE_Exscan };
	const size_t bytes = glue_bytes(count, type);
	const uint32_t blocks = r.kind == REDUCE_SCATTER ? (uint32_t)k->c->size : 1;
	const bool in_place = r.send == MPI_IN_PLACE;
	const bool result = r.kind == REDUCE   ? (uint32_t)k->c->rank == r.root
			    : r.kind == EXSCAN ? k->c->rank > 0
					       : true;
	int size, rc = MPI_SUCCESS;

	PMPI_Type_size(type, &size);
	if (bytes > COLLNET_BLOCK_MAX || (size_t)size > COLLNET_ELEMENT_MAX ||
	    !serves(k, ops[r.kind], bytes, type, op)) {
		return GLUE_DECLINED;
	}
	if (bytes == 0) {
		return MPI_SUCCESS;
	}
	r.send = in_place ? r.recv : r.send;
	r.count = (size_t)count;
	r.type = type_of(type);
	r.op = op_of(r.type, op);
	if (r.op == COLLNET_USER) {
		return start_by_mpi(k, r, in_place, result, blocks, count, type, op);
	}
	if (in_place && r.kind == REDUCE_SCATTER) {
		k->in.bytes = (void *)(uintptr_t)r.send;
		rc = keep(&k->in, r.count * collnet_type_size(r.type) * blocks);
		r.send = k->in.bytes;
	}
	return rc == MPI_SUCCESS ? start(k, &r, NULL) : rc;
}

int glue_allreduce(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		   MPI_Op op)
{
	const struct reduce r = { .kind = ALLREDUCE, .send = send, .recv = recv };

	return reduce(k, r, count, type, op);
}

int glue_reduce(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op, int root)
{
	const struct reduce r = {
		.kind = REDUCE, .send = send, .recv = recv, .root = (uint32_t)root
	};

	return reduce(k, r, count, type, op);
}

int glue_reduce_scatter_block(struct glue_call *k, const void *send, void *recv, int count,
			      MPI_Datatype type, MPI_Op op)
{
	const struct reduce r = { .kind = REDUCE_SCATTER, .send = send, .recv = recv };

	return reduce(k, r, count, type, op);
}

int glue_scan(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
	      MPI_Op op)
{
	const struct reduce r = { .kind = SCAN, .send = send, .recv = recv };

	return reduce(k, r, count, type, op);
}

int glue_exscan(struct glue_call *k, const void *send, void *recv, int count, MPI_Datatype type,
		MPI_Op op)
{
	const struct reduce r = { .kind = EXSCAN, .send = send, .recv = recv };

	return reduce(k, r, count, type, op);
}

/* Blocks of different sizes. Where collnet does not have the operation, rank 0 reduces all and
 * scatters the result. Counts, type and operation are equal on all ranks. */

static int with_counts(struct glue_call *k, const void *send, void *recv, const int *counts,
		       size_t total, MPI_Datatype type, MPI_Op op)
{
	const enum collnet_type ours = type_of(type);
	struct collnet_coll_options o = glue_options();
	size_t *blocks = calloc((size_t)k->c->size, sizeof(*blocks));
	int rc = blocks != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	for (int i = 0; blocks != NULL && i < k->c->size; i++) {
		blocks[i] = (size_t)counts[i];
	}
	if (rc == MPI_SUCCESS && send == MPI_IN_PLACE) {
		k->in.bytes = recv;
		rc = keep(&k->in, total * collnet_type_size(ours));
		send = k->in.bytes;
	}
	if (rc == MPI_SUCCESS) {
		glue_make_room(k->c);
		rc = collnet_ireduce_scatterv(k->c->team->team, send, recv, blocks, ours,
					      op_of(ours, op), &o, &k->request);
		rc = glue_started(k, "Reduce_scatter", rc);
	}
	free(blocks);
	return rc;
}

static int by_way_of_rank_0(struct glue_comm *c, const void *send, void *recv, const int *counts,
			    size_t total, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct glue_call reduced = { .c = c, .comm = comm }, scattered = reduced;
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
	rc = glue_finish(&reduced, glue_reduce(&reduced, send == MPI_IN_PLACE ? recv : send, all,
					       (int)total, type, op, 0));
	if (rc == MPI_SUCCESS) {
		rc = glue_finish(&scattered, glue_scatterv(&scattered, all, counts, displs, type,
							   recv, counts[c->rank], type, 0));
	}
	free(displs);
	free(memory);
	return rc;
}

int glue_reduce_scatter(struct glue_call *k, const void *send, void *recv, const int *counts,
			MPI_Datatype type, MPI_Op op)
{
	struct glue_comm *c = k->c;
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
	    !serves(k, GLUE_Reduce_scatter, glue_bytes((int)total, type), type, op)) {
		return GLUE_DECLINED;
	}
	c->nested = true;
	if (longest * (size_t)c->size == total) {
		rc = glue_reduce_scatter_block(k, send, recv, (int)longest, type, op);
	} else if (op_of(type_of(type), op) != COLLNET_USER) {
		rc = with_counts(k, send, recv, counts, total, type, op);
	} else {
		rc = by_way_of_rank_0(c, send, recv, counts, total, type, op, k->comm);
	}
	c->nested = false;
	return rc;
}
