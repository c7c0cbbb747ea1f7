/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry: ids that are on the wire, names that users type, defaults, windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sched/sched.h"

static void cn_algorithms__ids_and_names_are_fixed(void **state)
{
	static const struct {
		uint8_t id;
		enum cn_op_kind op;
		const char *name;
		enum cn_window_rule window;
	} want[] = {
		{ 1, CN_OP_ALLTOALL, "shuffle", CN_WINDOW_EXCHANGE },
		{ 2, CN_OP_ALLTOALL, "pairwise", CN_WINDOW_NONE },
		{ 3, CN_OP_ALLTOALL, "linear", CN_WINDOW_NONE },
		{ 8, CN_OP_ALLGATHER, "ring", CN_WINDOW_LINK },
		{ 9, CN_OP_ALLGATHER, "lr1", CN_WINDOW_LINK },
		{ 10, CN_OP_ALLGATHER, "lr2", CN_WINDOW_LINK },
		{ 11, CN_OP_ALLGATHER, "lr3", CN_WINDOW_LINK },
		{ 12, CN_OP_ALLGATHER, "doubling", CN_WINDOW_EXCHANGE },
		{ 12, CN_OP_BARRIER, "dissemination", CN_WINDOW_NONE },
		{ 13, CN_OP_BARRIER, "doubling", CN_WINDOW_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct cn_algorithm *a = cn_algorithm_by_id(want[i].op, want[i].id);

		assert_non_null(a);
		assert_int_equal(a->id, want[i].id);
		assert_int_equal(a->op, want[i].op);
		assert_string_equal(a->name, want[i].name);
		assert_int_equal(a->window_rule, want[i].window);
		assert_ptr_equal(cn_algorithm_find(want[i].op, want[i].name), a);
	}
}

static void cn_algorithms__rows_are_sound(void **state)
{
	size_t count;
	const struct cn_algorithm *a = cn_algorithms(&count);

	(void)state;
	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		assert_uint_in_range(a[i].id, 1, CN_ALGORITHMS_MAX);
		assert_non_null(a[i].plan);
		assert_true(strlen(a[i].description) > 10);
		for (size_t j = 0; j < i; j++) {
			assert_true(a[i].op != a[j].op ||
				    (a[i].id != a[j].id && strcmp(a[i].name, a[j].name) != 0));
		}
	}
}

static void cn_algorithm_find__defaults(void **state)
{
	(void)state;
	assert_string_equal(cn_algorithm_find(CN_OP_ALLTOALL, NULL)->name, "shuffle");
	assert_string_equal(cn_algorithm_find(CN_OP_ALLGATHER, NULL)->name, "ring");
	assert_string_equal(cn_algorithm_find(CN_OP_BARRIER, NULL)->name, "dissemination");
}

static void cn_algorithm_find__unknown(void **state)
{
	(void)state;
	assert_null(cn_algorithm_find(CN_OP_ALLTOALL, "ring"));
	assert_null(cn_algorithm_find(CN_OP_BARRIER, ""));
	assert_null(cn_algorithm_find((enum cn_op_kind)0, NULL));
	assert_null(cn_algorithm_by_id(CN_OP_ALLTOALL, 0));
	assert_null(cn_algorithm_by_id(CN_OP_ALLTOALL, 8));
	assert_null(cn_algorithm_by_id(CN_OP_ALLTOALL, 255));
	assert_null(cn_algorithm_by_id((enum cn_op_kind)0, 1));
}

static void cn_algorithm_by_id__of_a_vector_operation(void **state)
{
	(void)state;
	assert_ptr_equal(cn_algorithm_by_id(CN_OP_ALLTOALLV, 1),
			 cn_algorithm_find(CN_OP_ALLTOALL, "shuffle"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_algorithms__ids_and_names_are_fixed),
		cmocka_unit_test(cn_algorithms__rows_are_sound),
		cmocka_unit_test(cn_algorithm_find__defaults),
		cmocka_unit_test(cn_algorithm_find__unknown),
		cmocka_unit_test(cn_algorithm_by_id__of_a_vector_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
