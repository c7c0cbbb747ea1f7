/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of reductions: elements of 16 bits by all of their values, integers at their ends,
 * pairs, arrays of all lengths in all three positions. tests/lab/reduce.c has the table of all
 * types and operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "client/reduce.h"
#include "coll/combine.h"

/* Alone, and in an array: the compiler vectorises the loop of the first 64. */
static uint16_t one16(enum collnet_type type, enum collnet_op op, uint16_t x, uint16_t y)
{
	uint16_t left[65], right[65], out[65], alone;

	for (int i = 0; i < 65; i++) {
		left[i] = x;
		right[i] = y;
	}
	cn_combine_find(type, op)(&x, &y, &alone, 1);
	cn_combine_find(type, op)(left, right, out, 65);
	assert_true(out[0] == alone && out[63] == alone && out[64] == alone);
	return alone;
}

/* The value of a float of 16 bits with `digits` bits after the point; not of those that are none.
 */
static double value_of(uint16_t h, int digits)
{
	const int bias = (1 << (14 - digits)) - 1, exponent = (h & 0x7fff) >> digits;
	const double fraction = (double)(h & ((1 << digits) - 1)) / (1 << digits);
	const double size = exponent == 0 ? ldexp(fraction, 1 - bias)
					  : ldexp(1 + fraction, exponent - bias);

	return h & 0x8000 ? -size : size;
}

/* Its neighbour that is no farther from the exact result: no better one exists. */
static void assert_nearest(uint16_t got, double exact, int digits)
{
	const double error = fabs(value_of(got, digits) - exact);
	const uint16_t last = (uint16_t)(((1 << (15 - digits)) - 1) << digits); /* infinity */

	if ((got & 0x7fff) >= last) {
		/* Half a step beyond the greatest number, or more. */
		assert_true(fabs(exact) >= value_of((uint16_t)(last - 1), digits) +
						   ldexp(1, (1 << (14 - digits)) - 2 - digits));
		return;
	}
	if ((got & 0x7fff) > 0) {
		assert_true(error <= fabs(value_of((uint16_t)(got - 1), digits) - exact));
	}
	if ((got & 0x7fff) + 1 < last) {
		const double other = fabs(value_of((uint16_t)(got + 1), digits) - exact);

		assert_true(error < other || (error == other && (got & 1) == 0));
	}
}

static void floats_of_16_bits(enum collnet_type type, int digits)
{
	const uint16_t last = (uint16_t)(((1 << (15 - digits)) - 1) << digits);
	uint64_t seed = 4711;

	for (uint32_t x = 0; x < 0x10000; x++) {
		const uint16_t a = (uint16_t)x, b = (uint16_t)cn_random(&seed);

		if ((a & 0x7fff) > last) {
			assert_true((one16(type, COLLNET_SUM, a, 0) & 0x7fff) > last);
			continue;
		}
		assert_int_equal(one16(type, COLLNET_PROD, a, one16(type, COLLNET_MAX, a, a)) &
					 0x8000,
				 0);
		if ((a & 0x7fff) == last || (b & 0x7fff) >= last) {
			continue;
		}
		assert_int_equal(one16(type, COLLNET_SUM, a, 0x8000), a == 0x8000 ? 0x8000 : a);
		assert_nearest(one16(type, COLLNET_SUM, a, b),
			       value_of(a, digits) + value_of(b, digits), digits);
		assert_nearest(one16(type, COLLNET_PROD, a, b),
			       value_of(a, digits) * value_of(b, digits), digits);
		assert_true(value_of(one16(type, COLLNET_MIN, a, b), digits) ==
			    fmin(value_of(a, digits), value_of(b, digits)));
		assert_true(value_of(one16(type, COLLNET_MAX, a, b), digits) ==
			    fmax(value_of(a, digits), value_of(b, digits)));
	}
}

static void combine__float16(void **state)
{
	(void)state;
	floats_of_16_bits(COLLNET_FLOAT16, 10);
}

static void combine__bfloat16(void **state)
{
	(void)state;
	floats_of_16_bits(COLLNET_BFLOAT16, 7);
}

/* Of two operands that are none, neither is the result: which one is a matter of the compiler. */
static void combine__what_is_not_a_number(void **state)
{
	static const struct {
		enum collnet_type type;
		uint16_t one, other, infinite, number;
	} of[] = {
		{ COLLNET_FLOAT16, 0x7e01, 0xfe02, 0x7c00, 0x3c00 },
		{ COLLNET_BFLOAT16, 0x7fc1, 0xffc2, 0x7f80, 0x3f80 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const enum collnet_type t = of[i].type;
		const uint16_t none = one16(t, COLLNET_SUM, of[i].one, of[i].other);

		assert_true((none & 0x7fff) > of[i].infinite);
		for (int op = 0; op < 2; op++) {
			const enum collnet_op o = op == 0 ? COLLNET_SUM : COLLNET_PROD;

			assert_int_equal(one16(t, o, of[i].one, of[i].other), none);
			assert_int_equal(one16(t, o, of[i].other, of[i].one), none);
			assert_int_equal(one16(t, o, of[i].number, of[i].other), none);
		}
		assert_int_equal(one16(t, COLLNET_SUM, of[i].infinite, of[i].infinite | 0x8000),
				 none);
	}
}

static void combine__integers_wrap(void **state)
{
	const int64_t a = INT64_MAX, b = 1;
	const int16_t p = 0x7fff, q = 0x7fff, least = -5, more = 3;
	int64_t sum;
	int16_t product;

	(void)state;
	cn_combine_find(COLLNET_INT64, COLLNET_SUM)(&a, &b, &sum, 1);
	assert_true(sum == INT64_MIN);
	cn_combine_find(COLLNET_INT16, COLLNET_PROD)(&p, &q, &product, 1);
	assert_int_equal(product, 1);
	cn_combine_find(COLLNET_INT16, COLLNET_MIN)(&least, &more, &product, 1);
	assert_int_equal(product, -5);
	cn_combine_find(COLLNET_UINT16, COLLNET_MIN)(&least, &more, &product, 1);
	assert_int_equal(product, 3);
}

static void combine__pairs(void **state)
{
	struct {
		double value;
		int32_t index;
	} a[3], b[3], out[3];

	(void)state;
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	for (int i = 0; i < 3; i++) {
		a[i].value = i;
		b[i].value = 1;
		a[i].index = 7;
		b[i].index = 4;
	}
	cn_combine_find(COLLNET_FLOAT64_INT32, COLLNET_MINLOC)(a, b, out, 3);
	assert_int_equal(out[0].index, 7);
	assert_int_equal(out[1].index, 4); /* of equal values the lowest index */
	assert_int_equal(out[2].index, 4);
	cn_combine_find(COLLNET_FLOAT64_INT32, COLLNET_MAXLOC)(a, b, out, 3);
	assert_int_equal(out[0].index, 4);
	assert_int_equal(out[1].index, 4);
	assert_int_equal(out[2].index, 7);
}

/* Every length around the vectors', into a third array and into either operand. */
static void combine__lengths_and_places(void **state)
{
	enum { MOST = 200 };
	double a[MOST + 1], b[MOST + 1], c[MOST + 1];
	cn_combine_function *sum = cn_combine_find(COLLNET_FLOAT64, COLLNET_SUM);

	(void)state;
	for (size_t n = 0; n <= MOST; n++) {
		for (int where = 0; where < 3; where++) {
			double *out = where == 0 ? c : where == 1 ? a : b;

			for (size_t i = 0; i <= MOST; i++) {
				a[i] = (double)i;
				b[i] = 1000.0 * (double)i;
				c[i] = -1;
			}
			sum(a, b, out, n);
			for (size_t i = 0; i <= MOST; i++) {
				const double old = where == 0	? -1
						   : where == 1 ? (double)i
								: 1000.0 * (double)i;

				assert_true(out[i] == (i < n ? 1001.0 * (double)i : old));
			}
		}
	}
}

static void find__what_there_is(void **state)
{
	(void)state;
	assert_null(cn_combine_find((enum collnet_type)0, COLLNET_SUM));
	assert_null(cn_combine_find((enum collnet_type)18, COLLNET_SUM));
	assert_null(cn_combine_find(COLLNET_FLOAT64, COLLNET_BAND));
	assert_null(cn_combine_find(COLLNET_FLOAT64, COLLNET_MINLOC));
	assert_null(cn_combine_find(COLLNET_FLOAT64_INT32, COLLNET_SUM));
	assert_null(cn_combine_find(COLLNET_FLOAT64, COLLNET_USER));
	assert_int_equal(cn_type_bytes(COLLNET_BFLOAT16), 2);
	assert_int_equal(cn_type_bytes((enum collnet_type)18), 0);
	for (int type = COLLNET_INT8; type <= COLLNET_INT64_INT32; type++) {
		assert_true(cn_type_bytes((enum collnet_type)type) %
				    cn_type_alignment((enum collnet_type)type) ==
			    0);
		for (int op = COLLNET_SUM; op < COLLNET_USER; op++) {
			for (int other = COLLNET_INT8; other < type; other++) {
				assert_int_not_equal(cn_combine_id((enum collnet_type)type,
								   (enum collnet_op)op),
						     cn_combine_id((enum collnet_type)other,
								   (enum collnet_op)op));
			}
		}
	}
}

/* Every type and operation: accepted where there is a function, else an error that names both. */
static void reduction_settle__names_what_there_is(void **state)
{
	const struct collnet_coll_options o = { 0 };
	struct cn_reduction_call call;

	(void)state;
	for (int type = COLLNET_INT8; type <= COLLNET_INT64_INT32; type++) {
		for (int op = COLLNET_SUM; op <= COLLNET_MAXLOC; op++) {
			struct cn_err err = { 0 };
			int rc = cn_reduction_settle(1, (enum collnet_type)type,
						     (enum collnet_op)op, &o, &call, &err);

			if (cn_combine_find((enum collnet_type)type, (enum collnet_op)op)) {
				assert_int_equal(rc, COLLNET_OK);
			} else {
				assert_int_equal(rc, COLLNET_EINVAL);
				assert_non_null(strstr(err.text, " has no operation COLLNET_"));
				assert_null(strstr(err.text, "(null)"));
			}
		}
	}
	struct cn_err err = { 0 };

	assert_int_equal(cn_reduction_settle(1, COLLNET_FLOAT32, COLLNET_BAND, &o, &call, &err),
			 COLLNET_EINVAL);
	assert_string_equal(err.text, "COLLNET_FLOAT32 has no operation COLLNET_BAND; it has "
				      "SUM, PROD, MIN, MAX");
	assert_int_equal(cn_reduction_settle(1, COLLNET_INT64_INT32, (enum collnet_op)99, &o, &call,
					     &err),
			 COLLNET_EINVAL);
	assert_string_equal(err.text, "there is no operation 99; COLLNET_INT64_INT32 has MINLOC, "
				      "MAXLOC, and COLLNET_USER");
}

static void of_id__is_the_inverse(void **state)
{
	enum collnet_type type;

	(void)state;
	for (int t = 0; t < 64; t++) {
		for (int op = 0; op < 64; op++) {
			const uint16_t id = cn_combine_id((enum collnet_type)t,
							  (enum collnet_op)op);
			cn_combine_function *f = cn_combine_find((enum collnet_type)t,
								 (enum collnet_op)op);

			assert_ptr_equal(cn_combine_of_id(id, &type), f);
			assert_true(f == NULL || (int)type == t);
		}
	}
}

static void operands__are_within_the_buffers(void **state)
{
	uint8_t memory[3][64];
	const struct cn_combine_buffers b = { { memory[0], 16 },
					      { memory[1], 32 },
					      { memory[2], 64 } };
	struct cn_combine piece = {
		.left = { .buffer = CN_BUF_SEND, .offset = 8 },
		.right = { .buffer = CN_BUF_SCRATCH, .offset = 40 },
		.out = { .buffer = CN_BUF_RECV, .offset = 24 },
		.bytes = 8,
		.operands = 3,
	};
	struct cn_operands o;

	(void)state;
	assert_true(cn_combine_operands(&b, &piece, 4, &o));
	assert_ptr_equal(o.left, memory[0] + 8);
	assert_ptr_equal(o.right, memory[2] + 40);
	assert_ptr_equal(o.out, memory[1] + 24);
	assert_int_equal(o.count, 2);
	assert_false(cn_combine_operands(&b, &piece, 3, &o));
	assert_false(cn_combine_operands(&b, &piece, 0, &o));
	piece.operands = 4; /* one behind the end */
	assert_false(cn_combine_operands(&b, &piece, 4, &o));
	piece.operands = 0;
	assert_false(cn_combine_operands(&b, &piece, 4, &o));
	piece.operands = 1;
	piece.left.offset = UINT64_MAX - 3;
	assert_false(cn_combine_operands(&b, &piece, 4, &o));
	piece.left.offset = 12;
	assert_false(cn_combine_operands(&b, &piece, 4, &o));
	piece.left = (struct cn_span){ .buffer = CN_BUF_DIGEST };
	assert_false(cn_combine_operands(&b, &piece, 4, &o));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(combine__float16),
		cmocka_unit_test(combine__bfloat16),
		cmocka_unit_test(combine__what_is_not_a_number),
		cmocka_unit_test(combine__integers_wrap),
		cmocka_unit_test(combine__pairs),
		cmocka_unit_test(combine__lengths_and_places),
		cmocka_unit_test(find__what_there_is),
		cmocka_unit_test(reduction_settle__names_what_there_is),
		cmocka_unit_test(of_id__is_the_inverse),
		cmocka_unit_test(operands__are_within_the_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
