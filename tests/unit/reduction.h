/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions for tests, byte by byte: a sum modulo 256, which is commutative, or, of elements of
 * two bytes, the composition of maps x -> a x + b modulo 256, which is not. The expected result
 * comes from a sequential model of what all ranks send.
 */
#ifndef TEST_REDUCTION_H
#define TEST_REDUCTION_H

#include "sched/sched.h"

/* Bytes of an element. */
static inline uint32_t reduction_element(bool ordered)
{
	return ordered ? 2 : 1;
}

void reduction_combine(bool ordered, const uint8_t *left, const uint8_t *right, uint8_t *out,
		       uint64_t bytes);
/* As struct cn_combine: with `operands` blocks at `right`, one after the other. */
void reduction_combine_all(bool ordered, const uint8_t *left, const uint8_t *right, uint8_t *out,
			   uint64_t bytes, uint32_t operands);
/* True if the algorithm supports blocks of this size, combined in this order. */
bool reduction_takes(const struct cn_algorithm *a, bool ordered, uint64_t bytes, uint32_t ranks);
/*
 * What rank `rank` receives, `bytes` bytes; send[r]: what rank r sends. Only of ranks that receive
 * something (cn_call_recv_bytes()).
 */
void reduction_expect(enum cn_op_kind op, bool ordered, uint32_t rank, uint32_t ranks,
		      uint64_t bytes, uint8_t *const *send, uint8_t *out);

#endif
