/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations that are measured, and the options that `collnet bench` and `collnet sim` share.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/measure/measure.h"

#define BLOCKS	"1k,16k,64k"
#define VECTORS "8,1k,64k,1m"

static const struct operation {
	const char *name;
	enum cn_op_kind kind; /* 0: messages between two ranks */
	const char *sizes;    /* default */
	uint64_t largest;
	uint32_t warmup;
} operations[] = {
	[MEASURE_ALLTOALL] = { "alltoall", CN_OP_ALLTOALL, BLOCKS, COLLNET_BLOCK_MAX, 1 },
	[MEASURE_ALLTOALLV] = { "alltoallv", CN_OP_ALLTOALLV, BLOCKS, COLLNET_BLOCK_MAX / 2, 1 },
	[MEASURE_ALLGATHER] = { "allgather", CN_OP_ALLGATHER, BLOCKS, COLLNET_BLOCK_MAX, 1 },
	[MEASURE_ALLGATHERV] = { "allgatherv", CN_OP_ALLGATHERV, BLOCKS, COLLNET_BLOCK_MAX / 2, 1 },
	[MEASURE_BCAST] = { "bcast", CN_OP_BCAST, "1k,64k,1m", COLLNET_BLOCK_MAX, 1 },
	[MEASURE_SCATTER] = { "scatter", CN_OP_SCATTER, BLOCKS, COLLNET_BLOCK_MAX, 1 },
	[MEASURE_SCATTERV] = { "scatterv", CN_OP_SCATTERV, BLOCKS, COLLNET_BLOCK_MAX / 2, 1 },
	[MEASURE_GATHER] = { "gather", CN_OP_GATHER, BLOCKS, COLLNET_BLOCK_MAX, 1 },
	[MEASURE_GATHERV] = { "gatherv", CN_OP_GATHERV, BLOCKS, COLLNET_BLOCK_MAX / 2, 1 },
	[MEASURE_ALLREDUCE] = { "allreduce", CN_OP_ALLREDUCE, VECTORS, COLLNET_BLOCK_MAX, 1 },
	[MEASURE_REDUCE] = { "reduce", CN_OP_REDUCE, VECTORS, COLLNET_BLOCK_MAX, 1 },
	[MEASURE_REDUCE_SCATTER] = { "reduce_scatter", CN_OP_REDUCE_SCATTER, BLOCKS,
				     COLLNET_BLOCK_MAX, 1 },
	[MEASURE_REDUCE_SCATTERV] = { "reduce_scatterv", CN_OP_REDUCE_SCATTERV, BLOCKS,
				      COLLNET_BLOCK_MAX / 2, 1 },
	[MEASURE_SCAN] = { "scan", CN_OP_SCAN, VECTORS, COLLNET_BLOCK_MAX, 1 },
	[MEASURE_EXSCAN] = { "exscan", CN_OP_EXSCAN, VECTORS, COLLNET_BLOCK_MAX, 1 },
	[MEASURE_BARRIER] = { "barrier", CN_OP_BARRIER, "0", 0, 1 },
	[MEASURE_PINGPONG] = { "pingpong", 0, "64,1k", COLLNET_MESSAGE_MAX, 10 },
	[MEASURE_STREAM] = { "stream", 0, "1m", COLLNET_MESSAGE_MAX, 2 },
};

const char *measure_op_name(enum measure_op op)
{
	return operations[op].name;
}

enum cn_op_kind measure_op_kind(enum measure_op op)
{
	return operations[op].kind;
}

uint32_t measure_op_warmup(enum measure_op op)
{
	return operations[op].warmup;
}

bool measure_op_simulated(enum measure_op op)
{
	const enum cn_op_kind kind = measure_op_kind(op);

	return kind != 0 && !cn_op_is_vector(kind);
}

const char *measure_op_names(bool simulated, char out[MEASURE_NAMES])
{
	out[0] = '\0';
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (!simulated || measure_op_simulated((enum measure_op)i)) {
			tool_list(out, MEASURE_NAMES, operations[i].name);
		}
	}
	return out;
}

int measure_options_option(struct measure_options *o, int opt, char *arg, struct cn_err *err)
{
	switch (opt) {
	case MEASURE_OPT_SIZES:
		o->sizes_arg = arg;
		return COLLNET_OK;
	case MEASURE_OPT_ALGORITHM:
		o->algorithms_arg = arg;
		return COLLNET_OK;
	case MEASURE_OPT_PERMUTATION:
		return tool_parse_permutation(arg, &o->permutation, err);
	case MEASURE_OPT_CONTENTION_AWARE:
		return tool_parse_switch(arg, &o->contention_aware, err);
	case MEASURE_OPT_WINDOW:
		return tool_parse_window(arg, &o->window, err);
	case MEASURE_OPT_ITERATIONS:
		return tool_parse_u32(arg, 1, MEASURE_ITERATIONS_MAX, &o->iterations, err);
	case MEASURE_OPT_WARMUP:
		return tool_parse_u32(arg, 0, MEASURE_ITERATIONS_MAX, &o->warmup, err);
	case MEASURE_OPT_VERIFY:
		o->verify = true;
		return COLLNET_OK;
	case MEASURE_OPT_SEED:
		return tool_parse_number(arg, 0, UINT64_MAX, &o->seed, err);
	case MEASURE_OPT_JSON:
		o->json = true;
		return COLLNET_OK;
	default: /* MEASURE_OPT_CSV */
		o->csv = arg;
		return COLLNET_OK;
	}
}

static int parse_algorithms(struct measure_options *o, char *text, struct cn_err *err)
{
	enum cn_op_kind kind = operations[o->op].kind;
	const char *names[CN_ALGORITHMS_MAX];
	char known[256];
	size_t n, i;
	int rc;

	if (kind == 0) {
		return text == NULL ? COLLNET_OK
				    : cn_fail(err, COLLNET_EINVAL, "%s has no algorithms",
					      operations[o->op].name);
	}
	if (text == NULL || strcmp(text, "all") == 0) {
		o->all = text != NULL;
		return COLLNET_OK;
	}
	rc = tool_split(text, names, CN_ALGORITHMS_MAX, &n, err);
	for (i = 0; rc == COLLNET_OK && i < n; i++) {
		o->algorithms[i] = cn_algorithm_find(kind, names[i]);
		if (o->algorithms[i] == NULL && strchr(names[i], ':') != NULL) {
			rc = cn_fail(err, COLLNET_EINVAL,
				     "'%.40s' has modifiers, which are options here: --permutation "
				     "and --contention-aware",
				     names[i]);
		} else if (o->algorithms[i] == NULL) {
			rc = cn_fail(err, COLLNET_EINVAL,
				     "unknown algorithm '%.40s' for %s; there are %s", names[i],
				     operations[o->op].name,
				     cn_algorithm_names(kind, known, sizeof(known)));
		}
		o->nalgorithms = i + 1;
	}
	return rc;
}

/* No algorithm that was named goes by a permutation, which is given. */
static bool ignores_permutation(const struct measure_options *o)
{
	for (size_t i = 0; i < o->nalgorithms; i++) {
		if (o->algorithms[i]->permuted) {
			return false;
		}
	}
	return o->permutation != CN_PERM_AUTO && o->nalgorithms > 0;
}

int measure_options_blame(struct cn_err *err, const char *option)
{
	const struct cn_err e = *err;

	return cn_fail(err, e.code, "%s: %.250s", option, e.text);
}

int measure_options_finish(struct measure_options *o, struct cn_err *err)
{
	const struct operation *op = &operations[o->op];

	if (parse_algorithms(o, o->algorithms_arg, err) != COLLNET_OK) {
		return measure_options_blame(err, "--algorithm");
	}
	if (ignores_permutation(o)) {
		return cn_fail(err, COLLNET_EINVAL, "--permutation: %s does not go by one",
			       o->algorithms[0]->name);
	}
	if (o->op == MEASURE_BARRIER && o->sizes_arg != NULL) {
		return cn_fail(err, COLLNET_EINVAL, "a barrier has no sizes");
	}
	if (tool_parse_sizes(o->sizes_arg != NULL ? o->sizes_arg : op->sizes, op->largest, o->sizes,
			     MEASURE_SIZES_MAX, &o->nsizes, err) != COLLNET_OK) {
		return measure_options_blame(err, "--sizes");
	}
	return COLLNET_OK;
}

void measure_options_init(struct measure_options *o)
{
	memset(o, 0, sizeof(*o));
	o->permutation = CN_PERM_AUTO;
	o->contention_aware = true;
	o->window = COLLNET_WINDOW_AUTO;
	o->iterations = o->warmup = MEASURE_DEFAULT;
	o->seed = 1;
}

bool measure_op_find(const char *name, enum measure_op *out)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (strcmp(name, operations[i].name) == 0) {
			*out = (enum measure_op)i;
			return true;
		}
	}
	return false;
}
