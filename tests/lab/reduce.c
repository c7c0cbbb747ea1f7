/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reductions through the public interface on a real network. Runs as every rank of a team; the
 * words of the command line select the checks:
 *
 *   table    every type and operation against a sequential model of what all ranks send
 *   every    every function by every algorithm and of many sizes, in place and not, in memory of
 * the library and of the program, blocking and not; by sums, and by products of matrices floats
 * sums that depend on the order: the same bits on all ranks, and by every run wrong    arguments
 * that no rank may give: refused at once, and the team lives on
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collnet/collnet.h"

#define RANKS 64u
#define ROOM  (256u << 10) /* bytes of a buffer */

static collnet_t *c;
static collnet_team_t *t;
static uint32_t rank, ranks, serial;
static unsigned char *memory[4], *all; /* two of the library, two of the program */

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "reduce: rank %u, line %d: %s (last error: %s)\n", rank,   \
				__LINE__, #what, collnet_error(c));                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* ---- every type and operation ----------------------------------------------------------- */

/* Numbers that every type has exactly, and so has their sum or product. */
static int64_t number(enum collnet_op op, uint32_t r, size_t i)
{
	if (op == COLLNET_PROD) {
		return r < 8 ? 1 + (r + (int64_t)i) % 2 : 1;
	}
	return (int64_t)((r * 7 + i * 3 + serial) % 11);
}

static int64_t apply(enum collnet_op op, int64_t x, int64_t y)
{
	switch (op) {
	case COLLNET_SUM:
		return x + y;
	case COLLNET_PROD:
		return x * y;
	case COLLNET_MIN:
	case COLLNET_MINLOC:
		return x < y ? x : y;
	case COLLNET_MAX:
	case COLLNET_MAXLOC:
		return x > y ? x : y;
	case COLLNET_LAND:
		return x != 0 && y != 0;
	case COLLNET_LOR:
		return x != 0 || y != 0;
	case COLLNET_LXOR:
		return (x != 0) != (y != 0);
	case COLLNET_BAND:
		return x & y;
	case COLLNET_BOR:
		return x | y;
	default:
		return x ^ y;
	}
}

static uint16_t half_of(int64_t v)
{
	uint16_t exponent = 15, mantissa;

	if (v == 0) {
		return 0;
	}
	while (v >> (exponent - 15) > 1) {
		exponent++;
	}
	mantissa = (uint16_t)((v << 10 >> (exponent - 15)) & 0x3ff);
	return (uint16_t)(exponent << 10 | mantissa);
}

/* Of so many bytes, in the machine's order. */
static void put_integer(unsigned char *p, int64_t v, size_t size)
{
	const int8_t v8 = (int8_t)v;
	const int16_t v16 = (int16_t)v;
	const int32_t v32 = (int32_t)v;

	if (size == 1) {
		memcpy(p, &v8, 1);
	} else if (size == 2) {
		memcpy(p, &v16, 2);
	} else if (size == 4) {
		memcpy(p, &v32, 4);
	} else {
		memcpy(p, &v, 8);
	}
}

/* Element i of an array. Bytes between value and index are 0. */
static void put(enum collnet_type type, unsigned char *array, size_t i, int64_t v, int32_t index)
{
	const size_t size = collnet_type_size(type);
	unsigned char *p = array + i * size;
	const float f = (float)v;
	const double d = (double)v;
	uint32_t bits;

	memset(p, 0, size);
	if (type >= COLLNET_FLOAT32_INT32) {
		memcpy(p + (size >= 12 ? 8 : 4), &index, sizeof(index));
	}
	switch (type) {
	case COLLNET_FLOAT16:
		put_integer(p, half_of(v), 2);
		break;
	case COLLNET_BFLOAT16:
		memcpy(&bits, &f, sizeof(bits));
		put_integer(p, bits >> 16, 2);
		break;
	case COLLNET_FLOAT32:
	case COLLNET_FLOAT32_INT32:
		memcpy(p, &f, sizeof(f));
		break;
	case COLLNET_FLOAT64:
	case COLLNET_FLOAT64_INT32:
		memcpy(p, &d, sizeof(d));
		break;
	case COLLNET_INT16_INT32:
		put_integer(p, v, 2);
		break;
	case COLLNET_INT32_INT32:
		put_integer(p, v, 4);
		break;
	case COLLNET_INT64_INT32:
		put_integer(p, v, 8);
		break;
	default:
		put_integer(p, v, size);
		break;
	}
}

static int has(enum collnet_type type, enum collnet_op op)
{
	if (type >= COLLNET_FLOAT32_INT32) {
		return op == COLLNET_MINLOC || op == COLLNET_MAXLOC;
	}
	return op <= COLLNET_MAX || (op <= COLLNET_BXOR && type <= COLLNET_UINT64);
}

static void one_of_table(enum collnet_type type, enum collnet_op op, size_t n)
{
	const size_t bytes = n * collnet_type_size(type);
	static unsigned char want[ROOM];

	serial++;
	memset(memory[1], 0xcc, bytes + 1);
	for (size_t i = 0; i < n; i++) {
		int64_t v = number(op, 0, i);
		int32_t index = 0;

		put(type, memory[0], i, number(op, rank, i), (int32_t)rank);
		for (uint32_t r = 1; r < ranks; r++) {
			const int64_t other = number(op, r, i), now = apply(op, v, other);

			index = now != v ? (int32_t)r : index;
			v = now;
		}
		put(type, want, i, v, index);
	}
	CHECK(collnet_allreduce(t, memory[0], memory[1], n, type, op, NULL) == COLLNET_OK);
	if (memcmp(memory[1], want, bytes) != 0) {
		fprintf(stderr, "reduce: rank %u: %zu elements of type %d, operation %d: wrong\n",
			rank, n, (int)type, (int)op);
		exit(1);
	}
	CHECK(memory[1][bytes] == 0xcc);
}

static void table(void)
{
	for (int type = COLLNET_INT8; type <= COLLNET_INT64_INT32; type++) {
		for (int op = COLLNET_SUM; op <= COLLNET_MAXLOC; op++) {
			if (has((enum collnet_type)type, (enum collnet_op)op)) {
				one_of_table((enum collnet_type)type, (enum collnet_op)op, 1);
				one_of_table((enum collnet_type)type, (enum collnet_op)op, 1003);
			} else {
				CHECK(collnet_allreduce(t, memory[0], memory[1], 1,
							(enum collnet_type)type,
							(enum collnet_op)op,
							NULL) == COLLNET_EINVAL);
			}
		}
	}
}

/* ---- every function --------------------------------------------------------------------- */

/* Matrices of 2x2 numbers: their product is associative, and not commutative. */
struct matrix {
	uint32_t m[4];
};

static uint32_t calls;

static void multiply(const void *left, const void *right, void *out, size_t count, void *context)
{
	const struct matrix *a = left, *b = right;
	struct matrix *p = out;

	*(uint32_t *)context += 1;
	for (size_t i = 0; i < count; i++) {
		const struct matrix x = a[i], y = b[i];

		p[i].m[0] = x.m[0] * y.m[0] + x.m[1] * y.m[2];
		p[i].m[1] = x.m[0] * y.m[1] + x.m[1] * y.m[3];
		p[i].m[2] = x.m[2] * y.m[0] + x.m[3] * y.m[2];
		p[i].m[3] = x.m[2] * y.m[1] + x.m[3] * y.m[3];
	}
}

static void add(const struct matrix *left, const struct matrix *right, struct matrix *out, size_t n)
{
	const uint32_t *a = left->m, *b = right->m;

	for (size_t i = 0; i < 4 * n; i++) {
		out->m[i] = a[i] + b[i];
	}
}

static void fill(struct matrix *m, size_t n, uint32_t r)
{
	uint32_t *p = m->m;

	for (size_t i = 0; i < 4 * n; i++) {
		p[i] = (uint32_t)((r + 1) * 2654435761u + i * 40503u + serial * 97u) | (i % 4 == 0);
	}
}

enum function { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTERV, SCAN, EXSCAN, FUNCTIONS };

/* Elements per matrix, and the blocks of reduce_scatterv: for rank r between 0 and 2 n matrices. */
static size_t block_counts[RANKS];

static size_t block_of(uint32_t r, size_t n)
{
	return (r * 7 + serial) % 3 * n + (n > 0 && r % 2 == 0) * (serial % 2);
}

/* The counts of a reduce_scatterv; *own and *n: where this rank's block begins, and its matrices.
 * Returns the matrices of all blocks. */
static size_t draw_counts(size_t most, int user, size_t *own, size_t *n)
{
	size_t at = 0;

	for (uint32_t r = 0; r < ranks; r++) {
		const size_t k = block_of(r, most);

		if (r == rank) {
			*own = at;
			*n = k;
		}
		block_counts[r] = user ? k : 4 * k;
		at += k;
	}
	return at;
}

static int scatters(enum function f)
{
	return f == REDUCE_SCATTER || f == REDUCE_SCATTERV;
}

static int call(enum function f, int blocking, const void *send, void *recv, size_t n,
		enum collnet_type type, enum collnet_op op, uint32_t root,
		const struct collnet_coll_options *o)
{
	collnet_request_t *q = NULL;
	int rc = COLLNET_EINVAL;

	switch (f) {
	case ALLREDUCE:
		rc = blocking ? collnet_allreduce(t, send, recv, n, type, op, o)
			      : collnet_iallreduce(t, send, recv, n, type, op, o, &q);
		break;
	case REDUCE:
		rc = blocking ? collnet_reduce(t, send, recv, n, type, op, root, o)
			      : collnet_ireduce(t, send, recv, n, type, op, root, o, &q);
		break;
	case REDUCE_SCATTER:
		rc = blocking ? collnet_reduce_scatter(t, send, recv, n, type, op, o)
			      : collnet_ireduce_scatter(t, send, recv, n, type, op, o, &q);
		break;
	case REDUCE_SCATTERV:
		rc = blocking ? collnet_reduce_scatterv(t, send, recv, block_counts, type, op, o)
			      : collnet_ireduce_scatterv(t, send, recv, block_counts, type, op, o,
							 &q);
		break;
	case SCAN:
		rc = blocking ? collnet_scan(t, send, recv, n, type, op, o)
			      : collnet_iscan(t, send, recv, n, type, op, o, &q);
		break;
	default:
		rc = blocking ? collnet_exscan(t, send, recv, n, type, op, o)
			      : collnet_iexscan(t, send, recv, n, type, op, o, &q);
		break;
	}
	while (q != NULL && (rc == COLLNET_OK || rc == COLLNET_INPROGRESS)) {
		rc = collnet_test(q);
		if (rc == COLLNET_OK) {
			break;
		}
	}
	return rc;
}

/* n: matrices of a block. */
static void one(enum function f, const char *algorithm, size_t most, int user, uint32_t variant)
{
	size_t n = most;
	const uint32_t root = variant % ranks, end = f == SCAN	   ? rank + 1
						     : f == EXSCAN ? rank
								   : ranks;
	size_t sent = f == REDUCE_SCATTER ? n * ranks : n, own = rank * n, bytes;
	const struct collnet_user_op op = { sizeof(op), sizeof(struct matrix), 0, multiply,
					    &calls };
	const int in_place = variant % 3 == 0 && !scatters(f) && (f != REDUCE || rank == root);
	struct matrix *send = (struct matrix *)(void *)memory[variant % 4];
	struct matrix *recv = in_place ? send : (struct matrix *)(void *)memory[(variant + 1) % 4];
	struct matrix *want = (struct matrix *)(void *)all, *other;
	struct collnet_coll_options o;
	const int result = f == REDUCE ? rank == root : f == EXSCAN ? rank > 0 : 1;

	serial++;
	if (f == REDUCE_SCATTERV) {
		sent = draw_counts(most, user, &own, &n);
	}
	bytes = n * sizeof(struct matrix);
	other = want + n;
	CHECK(sent * sizeof(*send) < ROOM);
	collnet_coll_options_init(&o);
	o.algorithm = algorithm;
	o.user_op = &op;
	memset(recv, 0xcc, bytes + 1);
	fill(send, sent, rank);
	for (uint32_t r = 0; r < end; r++) {
		fill(other, sent, r);
		if (r == 0) {
			memcpy(want, other + (scatters(f) ? own : 0), bytes);
		} else if (user) {
			multiply(want, other + (scatters(f) ? own : 0), want, n, &calls);
		} else {
			add(want, other + (scatters(f) ? own : 0), want, n);
		}
	}
	CHECK(call(f, (int)(variant / 2 % 2), send, recv, user ? n : 4 * n,
		   user ? (enum collnet_type)0 : COLLNET_UINT32, user ? COLLNET_USER : COLLNET_SUM,
		   root, &o) == COLLNET_OK);
	if (result && memcmp(recv, want, bytes) != 0) {
		fprintf(stderr, "reduce: rank %u: function %d by %s, %zu matrices, %s: wrong\n",
			rank, (int)f, algorithm, n, user ? "product" : "sum");
		exit(1);
	}
	if (!in_place) {
		CHECK(((unsigned char *)recv)[bytes] == 0xcc);
		fill(other, sent, rank);
		CHECK(memcmp(send, other, sent * sizeof(*send)) == 0);
	}
}

static void every(void)
{
	static const struct {
		enum function f;
		const char *algorithm;
		int sums_only;
		size_t most;
	} rows[] = {
		{ ALLREDUCE, NULL, 0, 5000 },
		{ ALLREDUCE, "doubling", 0, 4096 },
		{ ALLREDUCE, "halving", 1, 4096 },
		{ ALLREDUCE, "allgather", 0, 200 },
		{ ALLREDUCE, "ring", 1, 10000 },
		{ ALLREDUCE, "chain", 0, 5000 },
		{ REDUCE, NULL, 0, 5000 },
		{ REDUCE, "binomial", 0, 4096 },
		{ REDUCE, "halving", 1, 4096 },
		{ REDUCE, "chain", 0, 5000 },
		{ REDUCE_SCATTER, NULL, 0, 200 },
		{ REDUCE_SCATTER, "ring", 1, 300 },
		{ REDUCE_SCATTER, "exchange", 0, 300 },
		{ REDUCE_SCATTERV, NULL, 0, 100 },
		{ REDUCE_SCATTERV, "ring", 1, 150 },
		{ REDUCE_SCATTERV, "exchange", 0, 150 },
		{ SCAN, NULL, 0, 5000 },
		{ SCAN, "doubling", 0, 4096 },
		{ SCAN, "chain", 0, 5000 },
		{ EXSCAN, NULL, 0, 5000 },
		{ EXSCAN, "doubling", 0, 4096 },
		{ EXSCAN, "chain", 0, 5000 },
	};
	uint32_t variant = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t sizes[] = { 0, 1, 2, 93, rows[i].most };

		for (size_t s = 0; s < 5; s++) {
			one(rows[i].f, rows[i].algorithm, sizes[s], 0, variant++);
			if (!rows[i].sums_only) {
				one(rows[i].f, rows[i].algorithm, sizes[s], 1, variant++);
			}
		}
	}
	CHECK(calls > 0 || ranks == 1);
}

/* ---- floats ----------------------------------------------------------------------------- */

static uint64_t hash(const void *p, size_t bytes)
{
	const unsigned char *b = p;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < bytes; i++) {
		h = (h ^ b[i]) * 1099511628211u;
	}
	return h;
}

/* Sums of numbers of very different size: prints a hash that must be the same for all ranks. */
static void floats(void)
{
	static const char *const algorithms[] = { NULL,	  "doubling", "halving",
						  "ring", "chain",    "allgather" };
	static const size_t counts[] = { 1, 7, 1000, 8192 };
	uint64_t total = 0, hashes[RANKS];

	for (int k = 0; k < 24; k++) {
		double *send = (double *)(void *)memory[2], *recv = (double *)(void *)memory[3];
		const size_t n = k < 20 ? counts[k % 4] : counts[k % 4] % 199; /* small blocks */
		struct collnet_coll_options o;
		uint64_t h;

		for (size_t i = 0; i < n; i++) {
			send[i] = (double)((rank * 2654435761u + i * 97) % 1000003) /
				  (1.0 + (double)(rank * 31 + i) * 7919.0);
			send[i] *= rank % 3 == 0 ? 1e9 : 1;
		}
		collnet_coll_options_init(&o);
		o.algorithm = algorithms[k / 4];
		CHECK(collnet_allreduce(t, send, recv, n, COLLNET_FLOAT64, COLLNET_SUM, &o) ==
		      COLLNET_OK);
		h = hash(recv, n * sizeof(*recv));
		CHECK(collnet_allgather(t, &h, hashes, sizeof(h), NULL) == COLLNET_OK);
		for (uint32_t r = 0; r < ranks; r++) {
			CHECK(hashes[r] == h);
		}
		total = total * 31 + h;
	}
	if (rank == 0) {
		printf("floats %016llx\n", (unsigned long long)total);
	}
}

/* ---- wrong arguments -------------------------------------------------------------------- */

#define REFUSED(code, text)                                                                        \
	do {                                                                                       \
		CHECK((code) == COLLNET_EINVAL);                                                   \
		CHECK(strstr(collnet_error(c), text) != NULL);                                     \
	} while (0)

static collnet_request_t *combined;
static uint32_t refusals;

/* Calls the library, which it must not. */
static void calls_back(const void *left, const void *right, void *out, size_t count, void *context)
{
	(void)left;
	(void)right;
	(void)context;
	memset(out, 0, count * 16);
	REFUSED(collnet_barrier(t, NULL), "must not call the library");
	collnet_free(c, memory[0]);
	collnet_team_destroy(t);
	collnet_close(c);
	if (combined != NULL) {
		REFUSED(collnet_test(combined), "must not call the library");
		REFUSED(collnet_waitall(1, &combined, NULL, 0), "must not call the library");
	}
	refusals++;
}

static void wrong(void)
{
	struct collnet_user_op op = { sizeof(op), 16, 0, multiply, &calls };
	struct collnet_coll_options o;
	unsigned char *a = memory[0], *b = memory[1];

	collnet_coll_options_init(&o);
	REFUSED(collnet_allreduce(t, a, b, 1, (enum collnet_type)0, COLLNET_SUM, NULL), "type 0");
	REFUSED(collnet_allreduce(t, a, b, 1, (enum collnet_type)99, COLLNET_SUM, NULL), "type 99");
	REFUSED(collnet_allreduce(t, a, b, 1, COLLNET_FLOAT32, COLLNET_BOR, NULL), "COLLNET_BOR");
	REFUSED(collnet_allreduce(t, a, b, 1, COLLNET_INT8, (enum collnet_op)99, NULL),
		"operation 99");
	REFUSED(collnet_allreduce(t, NULL, b, 1, COLLNET_INT8, COLLNET_SUM, NULL), "NULL");
	REFUSED(collnet_allreduce(t, a, a + 4, 2, COLLNET_INT32, COLLNET_SUM, NULL), "overlap");
	REFUSED(collnet_reduce_scatter(t, a, a, 1, COLLNET_INT32, COLLNET_SUM, NULL), "overlap");
	REFUSED(collnet_reduce_scatterv(t, a, b, NULL, COLLNET_INT32, COLLNET_SUM, NULL), "counts");
	REFUSED(collnet_allreduce(t, a + 1, b, 1, COLLNET_INT32, COLLNET_SUM, NULL), "aligned");
	REFUSED(collnet_reduce(t, a, b, 1, COLLNET_INT32, COLLNET_SUM, ranks, NULL), "root");
	REFUSED(collnet_scan(t, a, b, COLLNET_BLOCK_MAX, COLLNET_INT32, COLLNET_SUM, NULL), "more");
	REFUSED(collnet_allreduce(t, a, b, 1, COLLNET_INT32, COLLNET_USER, &o), "user_op");
	o.user_op = &op;
	op.element = 0;
	REFUSED(collnet_allreduce(t, a, b, 1, COLLNET_INT32, COLLNET_USER, &o), "elements");
	op.element = 16;
	op.size = 0;
	REFUSED(collnet_allreduce(t, a, b, 1, COLLNET_INT32, COLLNET_USER, &o),
		"user_op is 0: expected its sizeof");
	op.size = sizeof(op);
	op.combine = NULL;
	REFUSED(collnet_allreduce(t, a, b, 1, COLLNET_INT32, COLLNET_USER, &o), "function");
	op.combine = multiply;
	o.algorithm = "ring";
	REFUSED(collnet_allreduce(t, a, b, 1, COLLNET_INT32, COLLNET_USER, &o), "commutative");
	o.algorithm = NULL;
	o.persistent = 2;
	REFUSED(collnet_iallreduce(t, a, b, 1, COLLNET_INT32, COLLNET_USER, &o, &combined),
		"persistent is 2");
	o.persistent = 0;
	op.combine = calls_back;
	CHECK(collnet_iallreduce(t, a, b, 1, COLLNET_INT32, COLLNET_USER, &o, &combined) ==
	      COLLNET_OK);
	CHECK(collnet_wait(combined, 10000) == COLLNET_OK);
	CHECK(ranks == 1 || refusals > 0);
	CHECK(collnet_type_size(COLLNET_FLOAT64_INT32) == sizeof(struct {
		      double value;
		      int32_t index;
	      }));
	CHECK(collnet_type_size((enum collnet_type)0) == 0);
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(collnet_open(NULL, &c) == COLLNET_OK);
	CHECK(collnet_team_create(c, NULL, &t) == COLLNET_OK);
	rank = collnet_team_rank(t);
	ranks = collnet_team_size(t);
	CHECK(ranks <= RANKS);
	for (int i = 0; i < 4; i++) {
		memory[i] = i < 2 ? collnet_alloc(c, ROOM) : malloc(ROOM);
		CHECK(memory[i] != NULL);
	}
	all = malloc(2 * ROOM);
	CHECK(all != NULL);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "table") == 0) {
			table();
		} else if (strcmp(argv[i], "every") == 0) {
			every();
		} else if (strcmp(argv[i], "floats") == 0) {
			floats();
		} else if (strcmp(argv[i], "wrong") == 0) {
			wrong();
		} else {
			fprintf(stderr, "reduce: what is '%s'?\n", argv[i]);
			return 2;
		}
		printf("rank %u: %s: done\n", rank, argv[i]);
	}
	CHECK(collnet_barrier(t, NULL) == COLLNET_OK);
	collnet_team_destroy(t);
	collnet_close(c);
	return 0;
}
