/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/sched/choice.c: algorithms with modifiers, as a user names them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched/choice.h"

static void choice_parse__modifiers(void **state)
{
	static const struct {
		const char *text, *name;
		enum cn_permutation permutation;
		bool contention_aware;
	} good[] = {
		{ "shuffle", "shuffle", CN_PERM_AUTO, true },
		{ "aapc", "aapc", CN_PERM_AUTO, true },
		{ "shuffle:xor", "shuffle", CN_PERM_XOR, true },
		{ "pairwise:edge-color", "pairwise", CN_PERM_EDGE_COLOUR, true },
		{ "shuffle:rank-order", "shuffle", CN_PERM_AUTO, false },
		{ "shuffle:shift,rank-order", "shuffle", CN_PERM_SHIFT, false },
		{ "pairwise:rank-order,edge-colour", "pairwise", CN_PERM_EDGE_COLOUR, false },
	};
	struct cn_choice c;
	struct cn_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(cn_choice_parse(CN_OP_ALLTOALL, good[i].text, &c, &err),
				 COLLNET_OK);
		assert_string_equal(c.algorithm->name, good[i].name);
		assert_int_equal(c.permutation, good[i].permutation);
		assert_int_equal(c.contention_aware, good[i].contention_aware);
	}
	assert_int_equal(cn_choice_parse(CN_OP_ALLTOALL, NULL, &c, &err), COLLNET_OK);
	assert_null(c.algorithm);
	assert_int_equal(c.permutation, CN_PERM_AUTO);
	assert_true(c.contention_aware);
}

/* One line that lists what exists; the choice is not touched. */
static void choice_parse__refuses(void **state)
{
	static const struct {
		enum cn_op_kind op;
		const char *text, *why;
	} bad[] = {
		{ CN_OP_ALLTOALL, "best",
		  "alltoall has no algorithm 'best'; there are shuffle, pairwise, linear, aapc, "
		  "fattree" },
		{ CN_OP_ALLTOALL, "",
		  "alltoall has no algorithm ''; there are shuffle, pairwise, linear, aapc, "
		  "fattree" },
		{ CN_OP_ALLGATHER, "shuffle:xor",
		  "allgather has no algorithm 'shuffle'; there are ring, lr1, lr2, lr3, "
		  "doubling" },
		{ CN_OP_ALLTOALL, "shuffle:fast",
		  "'shuffle:fast': there is no modifier 'fast'; there are shift, xor, "
		  "edge-colour and rank-order" },
		{ CN_OP_ALLTOALL, "shuffle:",
		  "'shuffle:': there is no modifier ''; there are shift, xor, edge-colour and "
		  "rank-order" },
		{ CN_OP_ALLTOALL, "shuffle:xor,",
		  "'shuffle:xor,': there is no modifier ''; there are shift, xor, edge-colour and "
		  "rank-order" },
		{ CN_OP_ALLTOALL, "shuffle:auto",
		  "'shuffle:auto': there is no modifier 'auto'; there are shift, xor, "
		  "edge-colour and rank-order" },
		{ CN_OP_ALLTOALL, "shuffle:xor,shift",
		  "'shuffle:xor,shift' names two permutations: expected one of shift, xor and "
		  "edge-colour" },
		{ CN_OP_ALLTOALL, "aapc:xor", "'aapc:xor': algorithm aapc has no modifiers" },
		{ CN_OP_ALLGATHER, "ring:rank-order",
		  "'ring:rank-order': algorithm ring has no modifiers" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cn_choice c = { NULL, CN_PERM_XOR, false };
		struct cn_err err = { 0 };

		assert_int_equal(cn_choice_parse(bad[i].op, bad[i].text, &c, &err), COLLNET_EINVAL);
		assert_string_equal(err.text, bad[i].why);
		assert_int_equal(c.permutation, CN_PERM_XOR);
	}
}

/* Every row with every modifier that it takes is read as it was written. */
static void choice_format__is_parsed(void **state)
{
	size_t n;
	const struct cn_algorithm *a = cn_algorithms(&n);
	uint32_t texts = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		int last = a[i].permuted ? CN_PERM_EDGE_COLOUR : CN_PERM_AUTO;

		for (int p = CN_PERM_AUTO; p <= last; p++) {
			for (int aware = !a[i].permuted; aware < 2; aware++) {
				struct cn_choice c = { &a[i], (enum cn_permutation)p, aware }, back;
				char text[CN_CHOICE_TEXT];
				struct cn_err err;

				cn_choice_format(&c, text);
				assert_true(strlen(text) < sizeof(text) - 1);
				assert_int_equal(cn_choice_parse(a[i].op, text, &back, &err),
						 COLLNET_OK);
				assert_ptr_equal(back.algorithm, c.algorithm);
				assert_int_equal(back.permutation, c.permutation);
				assert_int_equal(back.contention_aware, c.contention_aware);
				texts++;
			}
		}
	}
	assert_int_equal(texts, 2 * 8 + n - 2);
}

static void choice_override__by_operation(void **state)
{
	const char *text = "alltoall=shuffle:shift,rank-order,allgather=lr3";
	struct cn_choice c;
	struct cn_err err;

	(void)state;
	assert_int_equal(cn_choice_override(text, CN_OP_ALLTOALL, &c, &err), COLLNET_OK);
	assert_string_equal(c.algorithm->name, "shuffle");
	assert_int_equal(c.permutation, CN_PERM_SHIFT);
	assert_false(c.contention_aware);
	assert_int_equal(cn_choice_override(text, CN_OP_ALLGATHER, &c, &err), COLLNET_OK);
	assert_string_equal(c.algorithm->name, "lr3");
	assert_true(c.contention_aware);
	assert_int_equal(cn_choice_override("alltoall=aapc,", CN_OP_BCAST, &c, &err), COLLNET_OK);
	assert_null(c.algorithm);
	assert_int_equal(cn_choice_override("alltoall=shuffle:xor,", CN_OP_ALLTOALL, &c, &err),
			 COLLNET_OK);
	assert_int_equal(c.permutation, CN_PERM_XOR);
	assert_int_equal(cn_choice_override("", CN_OP_BCAST, &c, &err), COLLNET_OK);
	assert_null(c.algorithm);
	assert_true(c.contention_aware);
}

static void choice_override__refuses(void **state)
{
	static const char *const bad[] = {
		"aapc",
		"alltoall",
		"alltoall=",
		"alltoall=lr3",
		"=aapc",
		"all=aapc",
		",",
		"alltoall=aapc,,",
		"alltoall=aapc,xor",
		"alltoall=aapc:xor",
		"alltoall=shuffle:xor,fast",
		"alltoall=aapc allgather=lr3",
		"alltoall=shuffle:xor,allgather=lr3,alltoall=aapc",
		"alltoall=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		("alltoall=shuffle:xor,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cn_choice c;
		struct cn_err err = { 0 };

		if (cn_choice_override(bad[i], CN_OP_BCAST, &c, &err) != COLLNET_EINVAL) {
			fail_msg("'%s' is taken", bad[i]);
		}
		assert_true(strlen(err.text) > 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choice_parse__modifiers),
		cmocka_unit_test(choice_parse__refuses),
		cmocka_unit_test(choice_format__is_parsed),
		cmocka_unit_test(choice_override__by_operation),
		cmocka_unit_test(choice_override__refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
