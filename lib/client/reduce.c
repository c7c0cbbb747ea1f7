/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions: their arguments, and the caller's part of the work. The backend passes fragments of
 * the request's buffers that can be combined; they are combined here, in the caller's process and,
 * for a user-defined operation, on a thread that is in the library.
 */
#include "client/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad(struct cn_err *err, const char *what)
{
	return cn_fail(err, COLLNET_EINVAL, "%s", what);
}

static int settle_user(const struct collnet_user_op *given, struct cn_reduction_call *out,
		       struct cn_err *err)
{
	int rc;

	if (given == NULL) {
		return bad(err, "COLLNET_USER without user_op in the options");
	}
	rc = cn_options_copy(&out->user, sizeof(out->user), given, given->size,
			     "struct collnet_user_op", err);
	if (rc != COLLNET_OK) {
		return rc;
	}
	if (out->user.combine == NULL || out->user.element == 0 ||
	    out->user.element > COLLNET_ELEMENT_MAX) {
		return cn_fail(err, COLLNET_EINVAL,
			       "user_op: expected a function, and elements of 1 to %zu bytes",
			       COLLNET_ELEMENT_MAX);
	}
	out->element = (uint32_t)out->user.element;
	out->alignment = 1;
	out->ordered = !out->user.commutative;
	return COLLNET_OK;
}

static const char *const type_names[] = {
	[COLLNET_INT8] = "INT8",
	[COLLNET_INT16] = "INT16",
	[COLLNET_INT32] = "INT32",
	[COLLNET_INT64] = "INT64",
	[COLLNET_UINT8] = "UINT8",
	[COLLNET_UINT16] = "UINT16",
	[COLLNET_UINT32] = "UINT32",
	[COLLNET_UINT64] = "UINT64",
	[COLLNET_FLOAT16] = "FLOAT16",
	[COLLNET_BFLOAT16] = "BFLOAT16",
	[COLLNET_FLOAT32] = "FLOAT32",
	[COLLNET_FLOAT64] = "FLOAT64",
	[COLLNET_FLOAT32_INT32] = "FLOAT32_INT32",
	[COLLNET_FLOAT64_INT32] = "FLOAT64_INT32",
	[COLLNET_INT16_INT32] = "INT16_INT32",
	[COLLNET_INT32_INT32] = "INT32_INT32",
	[COLLNET_INT64_INT32] = "INT64_INT32",
};

static const char *const op_names[] = {
	[COLLNET_SUM] = "SUM",	 [COLLNET_PROD] = "PROD",     [COLLNET_MIN] = "MIN",
	[COLLNET_MAX] = "MAX",	 [COLLNET_LAND] = "LAND",     [COLLNET_LOR] = "LOR",
	[COLLNET_LXOR] = "LXOR", [COLLNET_BAND] = "BAND",     [COLLNET_BOR] = "BOR",
	[COLLNET_BXOR] = "BXOR", [COLLNET_MINLOC] = "MINLOC", [COLLNET_MAXLOC] = "MAXLOC",
};

#define OPS ((int)(sizeof(op_names) / sizeof(op_names[0])))

/* The type is one: says which operations it has. */
static int no_operation(enum collnet_type type, enum collnet_op op, struct cn_err *err)
{
	char has[160] = "";
	size_t at = 0;

	for (int i = COLLNET_SUM; i < OPS; i++) {
		if (cn_combine_find(type, (enum collnet_op)i) != NULL) {
			at += (size_t)snprintf(has + at, sizeof(has) - at, "%s%s",
					       at > 0 ? ", " : "", op_names[i]);
		}
	}
	if ((int)op < COLLNET_SUM || (int)op >= OPS) {
		return cn_fail(err, COLLNET_EINVAL,
			       "there is no operation %d; COLLNET_%s has %s, and COLLNET_USER",
			       (int)op, type_names[type], has);
	}
	return cn_fail(err, COLLNET_EINVAL, "COLLNET_%s has no operation COLLNET_%s; it has %s",
		       type_names[type], op_names[op], has);
}

int cn_reduction_settle(size_t count, enum collnet_type type, enum collnet_op op,
			const struct collnet_coll_options *o, struct cn_reduction_call *out,
			struct cn_err *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	out->function = cn_combine_id(type, op);
	if (op == COLLNET_USER) {
		rc = settle_user(o->user_op, out, err);
		if (rc != COLLNET_OK) {
			return rc;
		}
	} else {
		out->combine = cn_combine_find(type, op);
		out->element = (uint32_t)cn_type_bytes(type);
		out->alignment = cn_type_alignment(type);
		if (out->element == 0) {
			return cn_fail(err, COLLNET_EINVAL, "there is no type %d", (int)type);
		}
		if (out->combine == NULL) {
			return no_operation(type, op, err);
		}
	}
	if (count > COLLNET_BLOCK_MAX / out->element) {
		return cn_fail(err, COLLNET_EINVAL,
			       "%zu elements of %u bytes are more than %zu bytes", count,
			       out->element, COLLNET_BLOCK_MAX);
	}
	out->bytes = count * out->element;
	return COLLNET_OK;
}

int cn_reduction_blocks(const struct cn_reduction_call *k, struct cn_block *b, uint32_t n,
			struct cn_err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		if (b[i].len > COLLNET_BLOCK_MAX / k->element) {
			return cn_fail(err, COLLNET_EINVAL,
				       "%llu elements of %u bytes are more than %zu bytes",
				       (unsigned long long)b[i].len, k->element, COLLNET_BLOCK_MAX);
		}
		b[i].len *= k->element;
	}
	cn_blocks_follow(b, n);
	return COLLNET_OK;
}

int cn_reduction_check(const struct cn_reduction_call *k, const void *send, const void *recv,
		       struct cn_err *err)
{
	if ((uintptr_t)send % k->alignment != 0 || (uintptr_t)recv % k->alignment != 0) {
		return cn_fail(err, COLLNET_EINVAL,
			       "send or recv is not aligned to the %zu bytes of its type",
			       k->alignment);
	}
	return COLLNET_OK;
}

bool cn_request_combine(struct collnet_request *r, const struct cn_combine *piece)
{
	const struct cn_reduction_call *k = &r->reduction.call;
	struct cn_operands o;

	if (!cn_combine_operands(&r->reduction.buffers, piece, k->element, &o)) {
		return false;
	}
	for (uint32_t i = 0; i < piece->operands; i++, o.left = o.out, o.right += piece->bytes) {
		if (k->combine != NULL) {
			k->combine(o.left, o.right, o.out, o.count);
		} else {
			cn_set_combining(r->c, true);
			k->user.combine(o.left, o.right, o.out, o.count, k->user.context);
			cn_set_combining(r->c, false);
		}
	}
	return true;
}

/* ---- the public functions --------------------------------------------------------------- */

#define REDUCTION(kind, function_op)                                                               \
	(struct cn_coll_call)                                                                      \
	{                                                                                          \
		.op = (kind), .send = send, .recv = recv, .bytes = count, .type = type,            \
		.function = (function_op)                                                          \
	}

int collnet_allreduce(collnet_team_t *t, const void *send, void *recv, size_t count,
		      enum collnet_type type, enum collnet_op op,
		      const struct collnet_coll_options *o)
{
	return cn_coll_run(t, &REDUCTION(CN_OP_ALLREDUCE, op), o);
}

int collnet_iallreduce(collnet_team_t *t, const void *send, void *recv, size_t count,
		       enum collnet_type type, enum collnet_op op,
		       const struct collnet_coll_options *o, collnet_request_t **out)
{
	return cn_coll_start(t, &REDUCTION(CN_OP_ALLREDUCE, op), o, out);
}

int collnet_reduce(collnet_team_t *t, const void *send, void *recv, size_t count,
		   enum collnet_type type, enum collnet_op op, uint32_t root,
		   const struct collnet_coll_options *o)
{
	struct cn_coll_call call = REDUCTION(CN_OP_REDUCE, op);

	call.root = root;
	return cn_coll_run(t, &call, o);
}

int collnet_ireduce(collnet_team_t *t, const void *send, void *recv, size_t count,
		    enum collnet_type type, enum collnet_op op, uint32_t root,
		    const struct collnet_coll_options *o, collnet_request_t **out)
{
	struct cn_coll_call call = REDUCTION(CN_OP_REDUCE, op);

	call.root = root;
	return cn_coll_start(t, &call, o, out);
}

int collnet_reduce_scatter(collnet_team_t *t, const void *send, void *recv, size_t count,
			   enum collnet_type type, enum collnet_op op,
			   const struct collnet_coll_options *o)
{
	return cn_coll_run(t, &REDUCTION(CN_OP_REDUCE_SCATTER, op), o);
}

int collnet_ireduce_scatter(collnet_team_t *t, const void *send, void *recv, size_t count,
			    enum collnet_type type, enum collnet_op op,
			    const struct collnet_coll_options *o, collnet_request_t **out)
{
	return cn_coll_start(t, &REDUCTION(CN_OP_REDUCE_SCATTER, op), o, out);
}

int collnet_reduce_scatterv(collnet_team_t *t, const void *send, void *recv, const size_t *counts,
			    enum collnet_type type, enum collnet_op op,
			    const struct collnet_coll_options *o)
{
	const size_t count = 0;
	struct cn_coll_call call = REDUCTION(CN_OP_REDUCE_SCATTERV, op);

	call.sends.counts = counts;
	return cn_coll_run(t, &call, o);
}

int collnet_ireduce_scatterv(collnet_team_t *t, const void *send, void *recv, const size_t *counts,
			     enum collnet_type type, enum collnet_op op,
			     const struct collnet_coll_options *o, collnet_request_t **out)
{
	const size_t count = 0;
	struct cn_coll_call call = REDUCTION(CN_OP_REDUCE_SCATTERV, op);

	call.sends.counts = counts;
	return cn_coll_start(t, &call, o, out);
}

int collnet_scan(collnet_team_t *t, const void *send, void *recv, size_t count,
		 enum collnet_type type, enum collnet_op op, const struct collnet_coll_options *o)
{
	return cn_coll_run(t, &REDUCTION(CN_OP_SCAN, op), o);
}

int collnet_iscan(collnet_team_t *t, const void *send, void *recv, size_t count,
		  enum collnet_type type, enum collnet_op op, const struct collnet_coll_options *o,
		  collnet_request_t **out)
{
	return cn_coll_start(t, &REDUCTION(CN_OP_SCAN, op), o, out);
}

int collnet_exscan(collnet_team_t *t, const void *send, void *recv, size_t count,
		   enum collnet_type type, enum collnet_op op, const struct collnet_coll_options *o)
{
	return cn_coll_run(t, &REDUCTION(CN_OP_EXSCAN, op), o);
}

int collnet_iexscan(collnet_team_t *t, const void *send, void *recv, size_t count,
		    enum collnet_type type, enum collnet_op op,
		    const struct collnet_coll_options *o, collnet_request_t **out)
{
	return cn_coll_start(t, &REDUCTION(CN_OP_EXSCAN, op), o, out);
}

size_t collnet_type_size(enum collnet_type type)
{
	return cn_type_bytes(type);
}
