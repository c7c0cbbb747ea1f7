/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One loop per type and operation, which the compiler vectorises: STRIDE elements at a time, a
 * constant, because GCC 12 at -O2 vectorises only loops without a remainder; and without a check
 * whether the arrays overlap, which they do only element by element.
 *
 * Elements of 16 bits are combined as floats and rounded to the nearest even, which is exact: a
 * float has more than twice their digits. Integers overflow modulo a power of two.
 */
#include "coll/combine.h"

#include <stdbool.h>
#include <string.h>

#define STRIDE 64u

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* A function of arrays from an expression of two elements x and y. */
#define LOOP(name, type, value)                                                                    \
	static void name(const void *left, const void *right, void *out, size_t n)                 \
	{                                                                                          \
		const type *a = left, *b = right;                                                  \
		type *c = out;                                                                     \
		for (; n >= STRIDE; n -= STRIDE, a += STRIDE, b += STRIDE, c += STRIDE) {          \
			INDEPENDENT                                                                \
			for (size_t i = 0; i < STRIDE; i++) {                                      \
				const type x = a[i], y = b[i];                                     \
				c[i] = (value);                                                    \
			}                                                                          \
		}                                                                                  \
		for (size_t i = 0; i < n; i++) {                                                   \
			const type x = a[i], y = b[i];                                             \
			c[i] = (value);                                                            \
		}                                                                                  \
	}

#define ORDERED(prefix, type)                                                                      \
	LOOP(prefix##_min, type, x < y ? x : y)                                                    \
	LOOP(prefix##_max, type, x > y ? x : y)

/* `wide`: an unsigned type that is not promoted to a signed one. */
#define UNSIGNED(prefix, type, wide)                                                               \
	LOOP(prefix##_sum, type, (type)((wide)x + (wide)y))                                        \
	LOOP(prefix##_prod, type, (type)((wide)x * (wide)y))                                       \
	LOOP(prefix##_land, type, (type)((x != 0) & (y != 0)))                                     \
	LOOP(prefix##_lor, type, (type)((x != 0) | (y != 0)))                                      \
	LOOP(prefix##_lxor, type, (type)((x != 0) ^ (y != 0)))                                     \
	LOOP(prefix##_band, type, (type)(x & y))                                                   \
	LOOP(prefix##_bor, type, (type)(x | y))                                                    \
	LOOP(prefix##_bxor, type, (type)(x ^ y))                                                   \
	ORDERED(prefix, type)

#define FLOATING(prefix, type)                                                                     \
	LOOP(prefix##_sum, type, x + y)                                                            \
	LOOP(prefix##_prod, type, x *y)                                                            \
	ORDERED(prefix, type)

UNSIGNED(u8, uint8_t, uint32_t)
UNSIGNED(u16, uint16_t, uint32_t)
UNSIGNED(u32, uint32_t, uint32_t)
UNSIGNED(u64, uint64_t, uint64_t)
ORDERED(i8, int8_t)
ORDERED(i16, int16_t)
ORDERED(i32, int32_t)
ORDERED(i64, int64_t)
FLOATING(f32, float)
FLOATING(f64, double)

/* ---- elements of 16 bits ---------------------------------------------------------------- */

/* A result that is not a number is the same one for all operands: of two of them, the compiler may
 * select another one in the vector loop than in the loop of the rest, and ranks cut blocks in
 * different places. */

static inline float float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline float from_bf16(uint16_t h)
{
	return float_of((uint32_t)h << 16);
}

static inline uint16_t to_bf16(float f)
{
	const uint32_t bits = bits_of(f);

	if ((bits & 0x7fffffff) > 0x7f800000) {
		return 0x7fc0;
	}
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* As `condition ? yes : no`, whose operands the compiler may move into branches, after which the
 * loop around it is not vectorised. */
static inline uint32_t pick(bool condition, uint32_t yes, uint32_t no)
{
	const uint32_t mask = 0u - (uint32_t)condition;

	return (yes & mask) | (no & ~mask);
}

/* Sizes are compared as signed numbers: SSE2 has no comparison of unsigned ones. */
static inline float from_f16(uint16_t h)
{
	const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	const int32_t rest = h & 0x7fff;
	/* The exponent is 112 too low, also that of a subnormal; the product is exact. */
	const uint32_t size = bits_of(float_of((uint32_t)rest << 13) * 0x1p112F);
	const uint32_t infinite = pick(rest >= 0x7c00, 0x7f800000, 0); /* or not a number */

	return float_of(sign | size | infinite);
}

static inline uint16_t to_f16(float f)
{
	const uint32_t bits = bits_of(f), sign = bits >> 16 & 0x8000;
	const int32_t size = (int32_t)(bits & 0x7fffffff);
	/* A subnormal: 0.5 has its digits where they are wanted. */
	const uint32_t subnormal = bits_of(float_of((uint32_t)size) + 0.5F) - 0x3f000000;
	const uint32_t exact = (uint32_t)size - 0x38000000;
	const uint32_t normal = (exact + 0xfff + (exact >> 13 & 1)) >> 13;
	uint32_t half = pick(size < 0x38800000, subnormal, normal);

	half = pick(size >= 0x477ff000, 0x7c00, half); /* 65520 and above round to infinity */
	return (uint16_t)pick(size > 0x7f800000, 0x7e00, sign | half);
}

#define SHORT_FLOATING(prefix, from, to)                                                           \
	LOOP(prefix##_sum, uint16_t, to(from(x) + from(y)))                                        \
	LOOP(prefix##_prod, uint16_t, to(from(x) * from(y)))                                       \
	LOOP(prefix##_min, uint16_t, from(x) < from(y) ? x : y)                                    \
	LOOP(prefix##_max, uint16_t, from(x) > from(y) ? x : y)

SHORT_FLOATING(f16, from_f16, to_f16)
SHORT_FLOATING(bf16, from_bf16, to_bf16)

/* ---- pairs ------------------------------------------------------------------------------ */

/* Elements are copied with what lies between their fields, so that all ranks get the same bits. */
#define PAIR_LOOP(name, type, is_left)                                                             \
	static void name(const void *left, const void *right, void *out, size_t n)                 \
	{                                                                                          \
		const type *x = left, *y = right;                                                  \
		type *to = out;                                                                    \
		for (; n > 0; n--, x++, y++, to++) {                                               \
			const type *from = (is_left) ? x : y;                                      \
			if (from != to) {                                                          \
				memcpy(to, from, sizeof(*to));                                     \
			}                                                                          \
		}                                                                                  \
	}

#define PAIR(prefix, type)                                                                         \
	struct prefix {                                                                            \
		type value;                                                                        \
		int32_t index;                                                                     \
	};                                                                                         \
	PAIR_LOOP(prefix##_minloc, struct prefix,                                                  \
		  x->value < y->value || (x->value == y->value && x->index <= y->index))           \
	PAIR_LOOP(prefix##_maxloc, struct prefix,                                                  \
		  x->value > y->value || (x->value == y->value && x->index <= y->index))

PAIR(pair_f32, float)
PAIR(pair_f64, double)
PAIR(pair_i16, int16_t)
PAIR(pair_i32, int32_t)
PAIR(pair_i64, int64_t)

/* ---- the table -------------------------------------------------------------------------- */

#define INTEGERS(prefix, bits)                                                                     \
	{                                                                                          \
		[COLLNET_SUM] = u##bits##_sum, [COLLNET_PROD] = u##bits##_prod,                    \
		[COLLNET_MIN] = prefix##bits##_min, [COLLNET_MAX] = prefix##bits##_max,            \
		[COLLNET_LAND] = u##bits##_land, [COLLNET_LOR] = u##bits##_lor,                    \
		[COLLNET_LXOR] = u##bits##_lxor, [COLLNET_BAND] = u##bits##_band,                  \
		[COLLNET_BOR] = u##bits##_bor, [COLLNET_BXOR] = u##bits##_bxor,                    \
	}
#define NUMBERS(prefix)                                                                            \
	{                                                                                          \
		[COLLNET_SUM] = prefix##_sum, [COLLNET_PROD] = prefix##_prod,                      \
		[COLLNET_MIN] = prefix##_min, [COLLNET_MAX] = prefix##_max,                        \
	}
#define PAIRS(prefix)                                                                              \
	{                                                                                          \
		[COLLNET_MINLOC] = prefix##_minloc, [COLLNET_MAXLOC] = prefix##_maxloc,            \
	}

static const struct {
	size_t bytes, alignment;
	cn_combine_function *functions[COLLNET_MAXLOC + 1];
} types[] = {
	[COLLNET_INT8] = { 1, 1, INTEGERS(i, 8) },
	[COLLNET_INT16] = { 2, 2, INTEGERS(i, 16) },
	[COLLNET_INT32] = { 4, 4, INTEGERS(i, 32) },
	[COLLNET_INT64] = { 8, _Alignof(int64_t), INTEGERS(i, 64) },
	[COLLNET_UINT8] = { 1, 1, INTEGERS(u, 8) },
	[COLLNET_UINT16] = { 2, 2, INTEGERS(u, 16) },
	[COLLNET_UINT32] = { 4, 4, INTEGERS(u, 32) },
	[COLLNET_UINT64] = { 8, _Alignof(uint64_t), INTEGERS(u, 64) },
	[COLLNET_FLOAT16] = { 2, 2, NUMBERS(f16) },
	[COLLNET_BFLOAT16] = { 2, 2, NUMBERS(bf16) },
	[COLLNET_FLOAT32] = { 4, 4, NUMBERS(f32) },
	[COLLNET_FLOAT64] = { 8, _Alignof(double), NUMBERS(f64) },
	[COLLNET_FLOAT32_INT32] = { sizeof(struct pair_f32), _Alignof(struct pair_f32),
				    PAIRS(pair_f32) },
	[COLLNET_FLOAT64_INT32] = { sizeof(struct pair_f64), _Alignof(struct pair_f64),
				    PAIRS(pair_f64) },
	[COLLNET_INT16_INT32] = { sizeof(struct pair_i16), _Alignof(struct pair_i16),
				  PAIRS(pair_i16) },
	[COLLNET_INT32_INT32] = { sizeof(struct pair_i32), _Alignof(struct pair_i32),
				  PAIRS(pair_i32) },
	[COLLNET_INT64_INT32] = { sizeof(struct pair_i64), _Alignof(struct pair_i64),
				  PAIRS(pair_i64) },
};

static bool known(enum collnet_type type)
{
	return (size_t)type < sizeof(types) / sizeof(types[0]) && types[type].bytes > 0;
}

cn_combine_function *cn_combine_find(enum collnet_type type, enum collnet_op op)
{
	return known(type) && (size_t)op <= COLLNET_MAXLOC ? types[type].functions[op] : NULL;
}

size_t cn_type_bytes(enum collnet_type type)
{
	return known(type) ? types[type].bytes : 0;
}

size_t cn_type_alignment(enum collnet_type type)
{
	return known(type) ? types[type].alignment : 0;
}

uint16_t cn_combine_id(enum collnet_type type, enum collnet_op op)
{
	return (uint16_t)((unsigned)op << 8 | (op == COLLNET_USER ? 0 : (unsigned)type));
}

cn_combine_function *cn_combine_of_id(uint16_t id, enum collnet_type *type)
{
	*type = (enum collnet_type)(id & 0xff);
	return cn_combine_find(*type, (enum collnet_op)(id >> 8));
}

/* ---- fragments ------------------------------------------------------------------------ */

struct cn_combine_buffers cn_combine_buffers_of(const struct cn_coll_args *a,
						const struct cn_call *call)
{
	return (struct cn_combine_buffers){
		.send = { (uint8_t *)(uintptr_t)a->send, cn_call_send_bytes(call) },
		.recv = { a->recv, cn_call_recv_bytes(call) },
		.scratch = { a->scratch, cn_call_scratch_bytes(call) },
	};
}

/* Resolves the address of n times `bytes`; NULL: not within the buffer. */
static uint8_t *address(const struct cn_combine_buffers *b, const struct cn_span *s, uint64_t bytes,
			uint32_t n)
{
	const struct cn_memory *m;

	switch (s->buffer) {
	case CN_BUF_SEND:
		m = &b->send;
		break;
	case CN_BUF_RECV:
		m = &b->recv;
		break;
	case CN_BUF_SCRATCH:
		m = &b->scratch;
		break;
	default:
		return NULL;
	}
	return n > 0 && s->offset <= m->bytes && bytes <= (m->bytes - s->offset) / n
		       ? m->p + s->offset
		       : NULL;
}

bool cn_combine_operands(const struct cn_combine_buffers *b, const struct cn_combine *piece,
			 size_t element, struct cn_operands *out)
{
	out->left = address(b, &piece->left, piece->bytes, 1);
	out->right = address(b, &piece->right, piece->bytes, piece->operands);
	out->out = address(b, &piece->out, piece->bytes, 1);
	out->count = element > 0 ? piece->bytes / element : 0;
	return out->left != NULL && out->right != NULL && out->out != NULL && element > 0 &&
	       piece->bytes % element == 0;
}
