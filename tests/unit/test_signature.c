/* SPDX-License-Identifier: BSD-2-Clause */
/* What the frames of an operation say about the call, and what is said about a different one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coll/combine.h"
#include "coll/op.h"
#include "coll/stream.h"

/* Ranks that name different types or operations get no result: their signatures differ. */
static void cn_op_signature__types_and_operators(void **state)
{
	uint32_t pairs = 0;

	(void)state;
	for (uint32_t a = 0; a < 16u << 8; a++) {
		for (uint32_t b = 0; b < a; b++) {
			struct cn_op x = { .plan = { .op = CN_OP_ALLREDUCE,
						     .function = (uint16_t)a } };
			struct cn_op y = { .plan = { .op = CN_OP_ALLREDUCE,
						     .function = (uint16_t)b } };
			enum collnet_type of_a, of_b;

			if (cn_combine_of_id(x.plan.function, &of_a) == NULL ||
			    cn_combine_of_id(y.plan.function, &of_b) == NULL ||
			    cn_type_bytes(of_a) != cn_type_bytes(of_b)) {
				continue;
			}
			pairs++;
			assert_int_not_equal(cn_op_signature(&x), cn_op_signature(&y));
		}
	}
	assert_true(pairs > 100);
	for (uint32_t i = 1; i < 15; i++) {
		const uint16_t user = cn_combine_id(COLLNET_INT8, COLLNET_USER);
		struct cn_op x = { .plan = { .op = CN_OP_SCAN, .function = user, .element = i } };
		struct cn_op y = { .plan = { .op = CN_OP_SCAN, .function = user, .element = 15 } };

		assert_int_not_equal(cn_op_signature(&x), cn_op_signature(&y));
	}
}

/* What a node says about a frame of another call. */
static void cn_op_difference__names_the_other_call(void **state)
{
	const uint16_t sum = cn_combine_id(COLLNET_INT32, COLLNET_SUM),
		       bor = cn_combine_id(COLLNET_INT32, COLLNET_BOR),
		       floats = cn_combine_id(COLLNET_FLOAT32, COLLNET_SUM);
	const struct cn_op mine = {
		.plan = { .op = CN_OP_ALLREDUCE, .function = sum, .algorithm = 13 }
	};
	const struct cn_op exchange = { .plan = { .op = CN_OP_ALLGATHER, .algorithm = 12 } };
	const struct {
		const struct cn_op *to;
		struct cn_plan plan;
		const char *text;
	} cases[] = {
		{ &mine, { .op = CN_OP_ALLTOALL }, "it called alltoall" },
		{ &mine, { .op = 31 }, "it called an unknown operation" },
		{ &mine, { .op = CN_OP_ALLGATHER, .making = CN_MAKING_SPLIT }, "it called split" },
		{ &exchange, { .op = CN_OP_ALLGATHER, .making = CN_MAKING_DUP }, "it called dup" },
		{ &exchange,
		  { .op = CN_OP_ALLREDUCE, .function = bor, .algorithm = 13 },
		  "it called allreduce" },
		{ &mine,
		  { .op = CN_OP_ALLREDUCE, .function = sum, .ordered = true },
		  "commutative on one of them only" },
		{ &mine, { .op = CN_OP_ALLREDUCE, .function = floats }, "another type" },
		{ &mine,
		  { .op = CN_OP_ALLREDUCE, .function = sum, .algorithm = 14 },
		  "algorithm ring there and doubling here" },
		{ &mine,
		  { .op = CN_OP_ALLREDUCE, .function = bor, .algorithm = 13 },
		  "another root or operator" },
		{ &exchange,
		  { .op = CN_OP_ALLGATHER, .algorithm = 12, .permutation = CN_PERM_XOR },
		  "another order of the nodes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct cn_op theirs = { .plan = cases[i].plan };
		char text[80];

		cn_op_difference(cases[i].to, cn_stream(5, cn_op_signature(&theirs)), text,
				 sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_op_signature__types_and_operators),
		cmocka_unit_test(cn_op_difference__names_the_other_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
