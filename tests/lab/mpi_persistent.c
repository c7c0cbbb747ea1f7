/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain MPI program for the persistent collectives (MPI_Alltoall_init() and the others).
 * Every one is initialized with several datatypes, counts and MPI_IN_PLACE, and started in several
 * rounds: one by one in another order on each rank, all by MPI_Startall(), and again with a
 * blocking collective in between. Each round has other data, and every byte is checked.
 *
 * Argument 1: the datatypes, the operation, the arrays and the communicator are freed while the
 * requests use them, which Open MPI's own do not survive. Rank 0 prints "right: N operations".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_persistent_names.h"

#define ROUNDS	  3
#define MAX	  80
#define UNTOUCHED 0x5a5a5a5a

#define EACH_KIND(X)                                                                               \
	X(BARRIER)                                                                                 \
	X(BCAST)                                                                                   \
	X(ALLGATHER)                                                                               \
	X(ALLTOALL)                                                                                \
	X(GATHER)                                                                                  \
	X(SCATTER)                                                                                 \
	X(ALLGATHERV)                                                                              \
	X(ALLTOALLV)                                                                               \
	X(ALLTOALLW)                                                                               \
	X(GATHERV)                                                                                 \
	X(SCATTERV)                                                                                \
	X(ALLREDUCE) X(REDUCE) X(REDUCE_SCATTER) X(REDUCE_SCATTER_BLOCK) X(SCAN) X(EXSCAN)

enum kind {
#define X(name) name,
	EACH_KIND(X)
#undef X
		KINDS
};

/* A request with its buffers. Block i of a buffer is that of rank i; a block has count[i] elements
 * at at[i]. An element is an int, which with holes is followed by one that is not written; or in a
 * reduction by the program's own operation a pair of unsigned numbers. */
struct operation {
	enum kind kind;
	int number, root, total;
	int holes, in_place, map;
	int *count, *at;
	int *send, *recv;
};

static int rank, size, freeing, n;
static struct operation operations[MAX];
static MPI_Request requests[MAX];

static void wrong(const struct operation *o, int round, const char *what)
{
	static const char *const names[] = {
#define X(name) #name,
		EACH_KIND(X)
#undef X
	};

	printf("wrong: rank %d, %s, operation %d%s%s%s, round %d: %s\n", rank, names[o->kind],
	       o->number, o->holes ? ", holes" : "", o->in_place ? ", in place" : "",
	       o->map ? ", maps" : "", round, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Element i that rank `from` sends to rank `to`. */
static int value(const struct operation *o, int round, int from, int to, int i)
{
	return (int)((unsigned)(round + 1) * 1000003u + (unsigned)o->number * 15485863u +
		     (unsigned)from * 7919u + (unsigned)to * 104729u + (unsigned)i * 31u);
}

static int step(const struct operation *o)
{
	return o->holes || o->map ? 2 : 1;
}

/* Writes the block for `to` at element `at` of a buffer. */
static void put(const struct operation *o, int *buffer, int width, int at, int round, int to,
		int count)
{
	for (int i = 0; i < count; i++) {
		int *e = buffer + (size_t)(at + i) * (size_t)width;

		e[0] = value(o, round, rank, to, i);
		if (o->map) {
			e[1] = value(o, round, rank, to, i) ^ 0x1234567;
		}
	}
}

static void get(const struct operation *o, int at, int round, int from, int to, int count)
{
	for (int i = 0; i < count; i++) {
		const int *e = o->recv + (size_t)(at + i) * (size_t)step(o);

		if (e[0] != value(o, round, from, to, i)) {
			wrong(o, round, "data");
		}
		if (o->holes && e[1] != UNTOUCHED) {
			wrong(o, round, "a hole was written");
		}
	}
}

/* The elements of ranks below `end`, combined. */
static void get_combined(const struct operation *o, int at, int round, int end, int to, int count)
{
	for (int i = 0; i < count; i++) {
		const unsigned *e = (const unsigned *)o->recv + (size_t)(at + i) * (size_t)step(o);
		unsigned sum = 0, p = 1, q = 0;

		for (int r = 0; r < end; r++) {
			unsigned v = (unsigned)value(o, round, r, to, i), w = v ^ 0x1234567;

			sum += v;
			q = p * w + q;
			p = p * v;
		}
		if (o->map ? e[0] != p || e[1] != q : e[0] != sum) {
			wrong(o, round, "reduction");
		}
	}
}

/* Composition of affine maps x -> p x + q: associative, not commutative. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
	unsigned *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *count; i++, a += 2, b += 2) {
		unsigned p = a[0] * b[0], q = a[0] * b[1] + a[1];
		b[0] = p;
		b[1] = q;
	}
}

static int has_counts(enum kind kind)
{
	return (kind >= ALLGATHERV && kind <= SCATTERV) || kind == REDUCE_SCATTER;
}

static int reduces(enum kind kind)
{
	return kind >= ALLREDUCE;
}

/* Whether this rank's data lies in the receive buffer. */
static int in_place_here(const struct operation *o)
{
	int rooted = o->kind == GATHER || o->kind == GATHERV || o->kind == REDUCE ||
		     o->kind == SCATTER || o->kind == SCATTERV;

	return o->kind == BCAST || (o->in_place && (!rooted || rank == o->root));
}

/* Elements that this rank exchanges with rank i. */
static int count_with(const struct operation *o, int i)
{
	return o->kind == ALLTOALLV || o->kind == ALLTOALLW ? o->count[(rank + i) % size]
							    : o->count[i];
}

/* The program writes what this rank sends in a round. */
static void fill(const struct operation *o, int round)
{
	int here = in_place_here(o), *buffer = here ? o->recv : o->send;
	int width = here || o->map ? step(o) : 1;

	for (int i = 0; i < 2 * (o->total + 1); i++) {
		o->send[i] = o->recv[i] = UNTOUCHED;
	}
	switch (o->kind) {
	case BARRIER:
	case KINDS:
		break;
	case BCAST:
		if (rank == o->root) {
			put(o, o->recv, width, 0, round, 0, o->count[0]);
		}
		break;
	case ALLGATHER:
	case GATHER:
	case ALLGATHERV:
	case GATHERV:
		put(o, buffer, width, here ? o->at[rank] : 0, round, 0, o->count[rank]);
		break;
	case SCATTER:
	case SCATTERV:
		for (int i = 0; rank == o->root && i < size; i++) {
			put(o, o->send, 1, o->at[i], round, i, o->count[i]);
		}
		break;
	case ALLTOALL:
	case ALLTOALLV:
	case ALLTOALLW:
	case REDUCE_SCATTER:
	case REDUCE_SCATTER_BLOCK:
		for (int i = 0; i < size; i++) {
			put(o, buffer, width, o->at[i], round, i, count_with(o, i));
		}
		break;
	default:
		put(o, buffer, width, 0, round, 0, o->count[0]);
		break;
	}
}

static void check(const struct operation *o, int round)
{
	switch (o->kind) {
	case BARRIER:
	case KINDS:
		break;
	case BCAST:
		get(o, 0, round, o->root, 0, o->count[0]);
		break;
	case ALLGATHER:
	case ALLGATHERV:
	case GATHER:
	case GATHERV:
		for (int i = 0; i < size; i++) {
			if (o->kind == ALLGATHER || o->kind == ALLGATHERV || rank == o->root) {
				get(o, o->at[i], round, i, 0, o->count[i]);
			}
		}
		break;
	case SCATTER:
	case SCATTERV:
		if (!in_place_here(o)) {
			get(o, 0, round, o->root, rank, o->count[rank]);
		}
		break;
	case ALLTOALL:
	case ALLTOALLV:
	case ALLTOALLW:
		for (int i = 0; i < size; i++) {
			get(o, o->at[i], round, i, rank, count_with(o, i));
		}
		break;
	case REDUCE:
		if (rank == o->root) {
			get_combined(o, 0, round, size, 0, o->count[0]);
		}
		break;
	case ALLREDUCE:
		get_combined(o, 0, round, size, 0, o->count[0]);
		break;
	case REDUCE_SCATTER:
	case REDUCE_SCATTER_BLOCK:
		get_combined(o, 0, round, size, rank, o->count[rank]);
		break;
	case SCAN:
		get_combined(o, 0, round, rank + 1, 0, o->count[0]);
		break;
	case EXSCAN:
		get_combined(o, 0, round, rank, 0, rank > 0 ? o->count[0] : 0);
		break;
	}
}

/* Arrays that the call to initialize gets, and then are lost. */
struct arguments {
	int *counts, *places, *bytes, *send_bytes;
	MPI_Datatype *types, *send_types;
};

static struct arguments arguments_of(const struct operation *o, MPI_Datatype type)
{
	struct arguments a = { malloc(4 * (size_t)size * sizeof(int)),		NULL, NULL, NULL,
			       malloc(2 * (size_t)size * sizeof(MPI_Datatype)), NULL };

	a.places = a.counts + size;
	a.bytes = a.places + size;
	a.send_bytes = a.bytes + size;
	a.send_types = a.types + size;
	for (int i = 0; i < size; i++) {
		a.counts[i] = count_with(o, i);
		a.places[i] = o->at[i];
		a.bytes[i] = o->at[i] * step(o) * (int)sizeof(int);
		a.send_bytes[i] = o->at[i] * (int)sizeof(int);
		a.types[i] = type;
		a.send_types[i] = MPI_INT;
	}
	return a;
}

static void forget(struct arguments *a)
{
	if (freeing) {
		memset(a->counts, 0x7f, 4 * (size_t)size * sizeof(int));
		memset(a->types, 0, 2 * (size_t)size * sizeof(MPI_Datatype));
		free(a->counts);
		free(a->types);
	}
}

static void initialize(const struct operation *o, MPI_Comm comm, MPI_Request *q)
{
	const int root = o->root, count = o->count[0], one = o->count[rank];
	const int here = in_place_here(o);
	const void *s = here ? MPI_IN_PLACE : o->send;
	MPI_Info info = MPI_INFO_NULL;
	MPI_Datatype type = MPI_INT, sent = MPI_INT;
	MPI_Op op = MPI_SUM;
	struct arguments a;
	void *r = o->recv;

	if (o->holes) {
		MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
		MPI_Type_commit(&type);
	}
	if (o->map) {
		MPI_Type_contiguous(2, MPI_UNSIGNED, &type);
		MPI_Type_commit(&type);
		MPI_Op_create(compose, 0, &op);
	}
	a = arguments_of(o, type);
	switch (o->kind) {
	case BARRIER:
	case KINDS:
		MPI_Barrier_init(comm, info, q);
		break;
	case BCAST:
		MPI_Bcast_init(r, count, type, root, comm, info, q);
		break;
	case ALLGATHER:
		MPI_Allgather_init(s, count, sent, r, count, type, comm, info, q);
		break;
	case ALLTOALL:
		MPI_Alltoall_init(s, count, sent, r, count, type, comm, info, q);
		break;
	case GATHER:
		MPI_Gather_init(s, count, sent, r, count, type, root, comm, info, q);
		break;
	case SCATTER:
		MPI_Scatter_init(o->send, count, sent, here ? MPI_IN_PLACE : r, count, type, root,
				 comm, info, q);
		break;
	case ALLGATHERV:
		MPI_Allgatherv_init(s, one, sent, r, a.counts, a.places, type, comm, info, q);
		break;
	case ALLTOALLV:
		MPI_Alltoallv_init(s, a.counts, a.places, sent, r, a.counts, a.places, type, comm,
				   info, q);
		break;
	case ALLTOALLW:
		MPI_Alltoallw_init(s, a.counts, a.send_bytes, a.send_types, r, a.counts, a.bytes,
				   a.types, comm, info, q);
		break;
	case GATHERV:
		MPI_Gatherv_init(s, one, sent, r, a.counts, a.places, type, root, comm, info, q);
		break;
	case SCATTERV:
		MPI_Scatterv_init(o->send, a.counts, a.places, sent, here ? MPI_IN_PLACE : r, one,
				  type, root, comm, info, q);
		break;
	case ALLREDUCE:
		MPI_Allreduce_init(s, r, count, type, op, comm, info, q);
		break;
	case REDUCE:
		MPI_Reduce_init(s, r, count, type, op, root, comm, info, q);
		break;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter_init(s, r, a.counts, type, op, comm, info, q);
		break;
	case REDUCE_SCATTER_BLOCK:
		MPI_Reduce_scatter_block_init(s, r, count, type, op, comm, info, q);
		break;
	case SCAN:
		MPI_Scan_init(s, r, count, type, op, comm, info, q);
		break;
	case EXSCAN:
		MPI_Exscan_init(s, r, count, type, op, comm, info, q);
		break;
	}
	forget(&a);
	if (freeing && type != MPI_INT) {
		MPI_Type_free(&type);
	}
	if (freeing && op != MPI_SUM) {
		MPI_Op_free(&op);
	}
}

/* Buffers and counts of an operation, which are equal on all ranks. */
static struct operation new_operation(enum kind kind, int variant, int count)
{
	struct operation o = { kind, n, n % size, 0, 0, 0, 0, NULL, NULL, NULL, NULL };

	o.in_place = variant & 1 && kind != BARRIER && kind != BCAST;
	o.holes = variant & 2 && !reduces(kind) && kind != BARRIER;
	o.map = variant & 2 && reduces(kind);
	o.count = malloc(2 * (size_t)size * sizeof(int));
	o.at = o.count + size;
	for (int i = 0; i < size; i++) {
		int uneven = has_counts(kind) && !(kind == REDUCE_SCATTER && variant == 1);

		o.count[i] = uneven ? (i * 37 + count) % (count + 2) : count;
		o.at[i] = o.total;
		/* Blocks of an all-to-all may be any of them. */
		o.total += kind == ALLTOALLV || kind == ALLTOALLW ? count + 2 : o.count[i];
	}
	o.send = malloc(2 * (size_t)(o.total + 1) * sizeof(int));
	o.recv = malloc(2 * (size_t)(o.total + 1) * sizeof(int));
	return o;
}

static void start(int round)
{
	int sum = 0;

	switch (round) {
	case 0: /* another order on each rank */
		for (int i = 0; i < n; i++) {
			MPI_Start(&requests[(i + rank * 5) % n]);
		}
		break;
	case 1:
		MPI_Startall(n, requests);
		break;
	default: /* one at a time, and a collective before or after the start */
		for (int i = 0; i < n; i++) {
			if (i == n / 2 && rank % 2) {
				MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			}
			MPI_Start(&requests[i]);
			if (i == n / 2 && rank % 2 == 0) {
				MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			}
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		}
		break;
	}
}

int main(int argc, char **argv)
{
	static const int counts[] = { 1, 300, 17, 3000, 40 };
	MPI_Comm comm;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	freeing = argc > 1 && atoi(argv[1]) != 0;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int kind = 0; kind < KINDS; kind++) {
		for (int variant = kind % 2; variant < 4; variant += 1 + (kind == BARRIER) * 3) {
			struct operation *o = &operations[n];

			*o = new_operation((enum kind)kind, variant, counts[n % 5]);
			initialize(o, n % 2 ? comm : MPI_COMM_WORLD, &requests[n]);
			if (n % 8 == 3) { /* never started */
				MPI_Request_free(&requests[n]);
				initialize(o, n % 2 ? comm : MPI_COMM_WORLD, &requests[n]);
			}
			n++;
		}
	}
	if (freeing) {
		MPI_Comm_free(&comm);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < n; i++) {
			fill(&operations[i], round);
		}
		start(round);
		MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
		for (int i = 0; i < n; i++) {
			check(&operations[i], round);
		}
	}
	for (int i = 1; i < n; i++) { /* one stays until MPI is finalized */
		MPI_Request_free(&requests[i]);
	}
	if (rank == 0) {
		printf("right: %d operations\n", n);
	}
	MPI_Finalize();
	return 0;
}
