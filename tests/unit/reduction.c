/* SPDX-License-Identifier: BSD-2-Clause */
#include "reduction.h"

#include <string.h>

#include "sched/reduction.h"

void reduction_combine(bool ordered, const uint8_t *left, const uint8_t *right, uint8_t *out,
		       uint64_t bytes)
{
	for (uint64_t i = 0; !ordered && i < bytes; i++) {
		out[i] = (uint8_t)(left[i] + right[i]);
	}
	for (uint64_t i = 0; ordered && i + 1 < bytes; i += 2) {
		const uint8_t a = left[i], b = left[i + 1], c = right[i], d = right[i + 1];

		out[i] = (uint8_t)(a * c);
		out[i + 1] = (uint8_t)(a * d + b);
	}
}

void reduction_combine_all(bool ordered, const uint8_t *left, const uint8_t *right, uint8_t *out,
			   uint64_t bytes, uint32_t operands)
{
	for (uint32_t i = 0; i < operands; i++, left = out) {
		reduction_combine(ordered, left, right + i * bytes, out, bytes);
	}
}

bool reduction_takes(const struct cn_algorithm *a, bool ordered, uint64_t bytes, uint32_t ranks)
{
	const bool small = strcmp(a->name, "doubling") == 0 || strcmp(a->name, "halving") == 0 ||
			   strcmp(a->name, "binomial") == 0;

	return !((strcmp(a->name, "ring") == 0 || strcmp(a->name, "halving") == 0) && ordered) &&
	       !(small && bytes > CN_REDUCTION_SMALL) &&
	       !(strcmp(a->name, "allgather") == 0 && !cn_reduction_gathers(ranks, bytes));
}

void reduction_expect(enum cn_op_kind op, bool ordered, uint32_t rank, uint32_t ranks,
		      uint64_t bytes, uint8_t *const *send, uint8_t *out)
{
	const uint64_t from = op == CN_OP_REDUCE_SCATTER ? rank * bytes : 0;
	const uint32_t end = op == CN_OP_SCAN ? rank + 1 : op == CN_OP_EXSCAN ? rank : ranks;

	for (uint32_t r = 0; r < end; r++) {
		if (r == 0) {
			memcpy(out, send[r] + from, bytes);
		} else {
			reduction_combine(ordered, out, send[r] + from, out, bytes);
		}
	}
}
