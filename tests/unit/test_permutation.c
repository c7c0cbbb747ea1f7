/* SPDX-License-Identifier: BSD-2-Clause */
/* Permutations: free of node contention for every size, inverse of each other, complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sched/sched.h"

#define P_MAX 128

static bool power_of_two(uint32_t p)
{
	return p && !(p & (p - 1));
}

/* One kind at one size: every step a partial permutation, every ordered pair met exactly once. */
static void check_kind(enum cn_permutation kind, uint32_t p)
{
	static uint8_t met[P_MAX][P_MAX];
	uint32_t steps = cn_perm_steps(kind, p);
	uint32_t idle[P_MAX] = { 0 };

	memset(met, 0, sizeof(met));
	assert_int_equal(steps, kind == CN_PERM_EDGE_COLOUR && p % 2 ? p : p - 1);
	for (uint32_t step = 1; step <= steps; step++) {
		uint8_t reached[P_MAX] = { 0 };

		for (uint32_t me = 0; me < p; me++) {
			uint32_t to = cn_perm_to(kind, p, me, step);
			uint32_t from = cn_perm_from(kind, p, me, step);

			if (to == CN_IDLE) {
				assert_int_equal(from, CN_IDLE);
				idle[me]++;
				continue;
			}
			assert_true(to < p && from < p);
			assert_int_not_equal(to, me);
			assert_int_equal(reached[to]++, 0); /* node contention */
			assert_int_equal(met[me][to]++, 0);
			assert_int_equal(cn_perm_from(kind, p, to, step), me);
			assert_int_equal(cn_perm_to(kind, p, from, step), me);
			if (kind != CN_PERM_SHIFT) {
				assert_int_equal(to, from);
			}
		}
	}
	for (uint32_t a = 0; a < p; a++) {
		assert_int_equal(idle[a], steps - (p - 1));
		for (uint32_t b = 0; b < p; b++) {
			assert_int_equal(met[a][b], a != b);
		}
	}
}

static void cn_perm__shift_is_contention_free(void **state)
{
	(void)state;
	for (uint32_t p = 2; p <= P_MAX; p++) {
		check_kind(CN_PERM_SHIFT, p);
	}
}

static void cn_perm__xor_is_contention_free(void **state)
{
	(void)state;
	for (uint32_t p = 2; p <= P_MAX; p *= 2) {
		check_kind(CN_PERM_XOR, p);
	}
}

static void cn_perm__edge_colour_is_contention_free(void **state)
{
	(void)state;
	for (uint32_t p = 2; p <= P_MAX; p++) {
		check_kind(CN_PERM_EDGE_COLOUR, p);
	}
}

static void cn_perm_steps__none_for_one_node(void **state)
{
	(void)state;
	for (int kind = CN_PERM_SHIFT; kind <= CN_PERM_EDGE_COLOUR; kind++) {
		assert_int_equal(cn_perm_steps((enum cn_permutation)kind, 0), 0);
		assert_int_equal(cn_perm_steps((enum cn_permutation)kind, 1), 0);
	}
}

static void cn_perm_resolve__auto_by_size(void **state)
{
	(void)state;
	for (uint32_t p = 1; p <= P_MAX; p++) {
		enum cn_permutation kind = CN_PERM_AUTO;
		enum cn_permutation want = power_of_two(p) ? CN_PERM_XOR
					   : p % 2 == 0	   ? CN_PERM_EDGE_COLOUR
							   : CN_PERM_SHIFT;

		assert_int_equal(cn_perm_resolve(CN_PERM_AUTO, p, &kind, NULL), COLLNET_OK);
		assert_int_equal(kind, want);
	}
}

static void cn_perm_resolve__xor_needs_a_power_of_two(void **state)
{
	(void)state;
	for (uint32_t p = 1; p <= P_MAX; p++) {
		enum cn_permutation kind = CN_PERM_SHIFT;
		struct cn_err err = { 0 };
		int rc = cn_perm_resolve(CN_PERM_XOR, p, &kind, &err);

		if (power_of_two(p)) {
			assert_int_equal(rc, COLLNET_OK);
			assert_int_equal(kind, CN_PERM_XOR);
		} else {
			assert_int_equal(rc, COLLNET_EINVAL);
			assert_int_equal(kind, CN_PERM_SHIFT); /* untouched */
			assert_non_null(strstr(err.text, "power of two"));
		}
	}
}

static void cn_perm_resolve__unknown_kind(void **state)
{
	enum cn_permutation kind = CN_PERM_SHIFT;
	struct cn_err err = { 0 };

	(void)state;
	assert_int_equal(cn_perm_resolve((enum cn_permutation)9, 4, &kind, &err), COLLNET_EINVAL);
	assert_int_equal(kind, CN_PERM_SHIFT);
}

static void cn_perm_find__names_both_ways(void **state)
{
	enum cn_permutation kind;

	(void)state;
	for (int i = CN_PERM_AUTO; i <= CN_PERM_EDGE_COLOUR; i++) {
		const char *name = cn_perm_name((enum cn_permutation)i);

		assert_true(cn_perm_find(name, &kind));
		assert_int_equal(kind, i);
	}
	assert_string_equal(cn_perm_name(CN_PERM_EDGE_COLOUR), "edge-colour");
	assert_true(cn_perm_find("edge-color", &kind));
	assert_int_equal(kind, CN_PERM_EDGE_COLOUR);
	assert_false(cn_perm_find("", &kind));
	assert_false(cn_perm_find("xo", &kind));
	assert_false(cn_perm_find("XOR", &kind));
	assert_non_null(cn_perm_name((enum cn_permutation)77));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cn_perm__shift_is_contention_free),
		cmocka_unit_test(cn_perm__xor_is_contention_free),
		cmocka_unit_test(cn_perm__edge_colour_is_contention_free),
		cmocka_unit_test(cn_perm_steps__none_for_one_node),
		cmocka_unit_test(cn_perm_resolve__auto_by_size),
		cmocka_unit_test(cn_perm_resolve__xor_needs_a_power_of_two),
		cmocka_unit_test(cn_perm_resolve__unknown_kind),
		cmocka_unit_test(cn_perm_find__names_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
