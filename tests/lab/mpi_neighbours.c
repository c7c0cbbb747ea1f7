/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain MPI program for collectives of neighbourhoods, which collnet does not serve: allgather,
 * allgatherv, alltoall, alltoallv and alltoallw, each blocking, non-blocking and persistent, on a
 * grid and on a graph. While one is outstanding, the communicator performs ordinary collectives,
 * before the wait on the ranks with an even number and after it on the others. Every byte is
 * checked, also those that may not be written.
 *
 * Rank 0 prints "right: N operations of neighbourhoods".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_persistent_names.h"

#define LONG	  30000 /* elements of a block: longer than a message that MPI sends at once */
#define MAX	  16	/* neighbours */
#define GAP	  3	/* elements between blocks */
#define UNTOUCHED 0x5a
#define GRID	  4 /* neighbours in the grid; the graph has 3 */

enum kind { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS };
enum how { BLOCKING, NONBLOCKING, PERSISTENT, HOWS };

/* A communicator with this rank's neighbours, of which some may be MPI_PROC_NULL. */
struct neighbourhood {
	MPI_Comm comm;
	int rank, size;
	int nfrom, nto;
	int from[MAX], to[MAX];
};

/* The blocks of one side. An element is an int; with holes another one follows, which is not
 * written. */
struct blocks {
	int n, total;
	int count[MAX], at[MAX];
	MPI_Aint at_byte[MAX];
	MPI_Datatype type[MAX];
	int *data;
};

static MPI_Datatype sparse;
static int calls;

static void wrong(const struct neighbourhood *h, const char *what)
{
	printf("wrong: rank %d of %s, operation %d: %s\n", h->rank,
	       h->nfrom == GRID ? "the grid" : "the graph", calls, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static int value(int from, int to, int i)
{
	return calls * 1000003 + from * 7919 + to * 104729 + i * 31;
}

static int step(const struct blocks *b, int j)
{
	return b->type[j] == sparse ? 2 : 1;
}

/* Elements of the block that rank `from` sends to rank `to`. */
static int count_of(enum kind kind, int from, int to)
{
	if (kind == ALLTOALLV || kind == ALLTOALLW) {
		return (from * 3 + to * 5) % 4 == 0 ? 0 : LONG + from * 17 + to;
	}
	return kind == ALLGATHERV ? LONG + from * 17 : LONG;
}

/* One block for each neighbour; operations without counts have them side by side. */
static void lay_out(struct blocks *b, enum kind kind, const struct neighbourhood *h, int receiving)
{
	const int *peers = receiving ? h->from : h->to;

	b->n = receiving ? h->nfrom : h->nto;
	b->total = 0;
	for (int j = 0; j < b->n; j++) {
		int from = receiving ? peers[j] : h->rank, to = receiving ? h->rank : peers[j];

		b->count[j] = peers[j] == MPI_PROC_NULL && kind != ALLGATHER && kind != ALLTOALL
				      ? GAP
				      : count_of(kind, from, to);
		b->type[j] = receiving && kind == ALLTOALLW && j % 2 ? sparse : MPI_INT;
		b->at[j] = b->total;
		b->at_byte[j] = (MPI_Aint)b->total * (MPI_Aint)sizeof(int);
		b->total += b->count[j] * step(b, j);
		b->total += kind == ALLGATHER || kind == ALLTOALL ? 0 : GAP;
	}
	b->data = malloc(((size_t)b->total + 1) * sizeof(int));
}

static void fill(struct blocks *b, enum kind kind, const struct neighbourhood *h)
{
	const int gathers = kind == ALLGATHER || kind == ALLGATHERV;

	if (gathers) {
		b->n = 1;
		b->count[0] = count_of(kind, h->rank, 0);
		free(b->data);
		b->data = malloc((size_t)b->count[0] * sizeof(int));
	}
	for (int j = 0; j < b->n; j++) {
		for (int i = 0; i < b->count[j]; i++) {
			b->data[b->at[j] + i] = value(h->rank, gathers ? 0 : h->to[j], i);
		}
	}
}

/* Compares all of the memory with the neighbours' data. */
static void check(const struct blocks *b, enum kind kind, const struct neighbourhood *h)
{
	const int to = kind == ALLGATHER || kind == ALLGATHERV ? 0 : h->rank;
	int *expected = malloc((size_t)b->total * sizeof(int) + 1);

	memset(expected, UNTOUCHED, (size_t)b->total * sizeof(int));
	for (int j = 0; j < b->n; j++) {
		for (int i = 0; h->from[j] != MPI_PROC_NULL && i < b->count[j]; i++) {
			expected[b->at[j] + i * step(b, j)] = value(h->from[j], to, i);
		}
	}
	if (memcmp(expected, b->data, (size_t)b->total * sizeof(int)) != 0) {
		wrong(h, "data");
	}
	free(expected);
}

#define CALL(name, ...)                                                                            \
	(how == BLOCKING ? MPI_Neighbor_##name(__VA_ARGS__, comm)                                  \
	 : how == NONBLOCKING                                                                      \
		 ? MPI_Ineighbor_##name(__VA_ARGS__, comm, request)                                \
		 : MPI_Neighbor_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, request))

static void call(enum kind kind, enum how how, MPI_Comm comm, const struct blocks *s,
		 const struct blocks *r, MPI_Request *request)
{
	switch (kind) {
	case ALLGATHER:
		CALL(allgather, s->data, LONG, MPI_INT, r->data, LONG, MPI_INT);
		break;
	case ALLGATHERV:
		CALL(allgatherv, s->data, s->count[0], MPI_INT, r->data, r->count, r->at, MPI_INT);
		break;
	case ALLTOALL:
		CALL(alltoall, s->data, LONG, MPI_INT, r->data, LONG, MPI_INT);
		break;
	case ALLTOALLV:
		CALL(alltoallv, s->data, s->count, s->at, MPI_INT, r->data, r->count, r->at,
		     MPI_INT);
		break;
	default:
		CALL(alltoallw, s->data, s->count, s->at_byte, s->type, r->data, r->count,
		     r->at_byte, r->type);
		break;
	}
}

/* What collnet serves. */
static void ordinary(const struct neighbourhood *h)
{
	int send[MAX], recv[MAX], sum;

	for (int to = 0; to < h->size; to++) {
		send[to] = value(h->rank, to, -1);
	}
	MPI_Alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, h->comm);
	for (int from = 0; from < h->size; from++) {
		if (recv[from] != value(from, h->rank, -1)) {
			wrong(h, "alltoall");
		}
	}
	MPI_Allreduce(&h->rank, &sum, 1, MPI_INT, MPI_SUM, h->comm);
	if (sum != h->size * (h->size - 1) / 2) {
		wrong(h, "allreduce");
	}
}

static void operation(enum kind kind, enum how how, const struct neighbourhood *h)
{
	MPI_Request request = MPI_REQUEST_NULL;
	struct blocks s, r;

	lay_out(&s, kind, h, 0);
	lay_out(&r, kind, h, 1);
	fill(&s, kind, h);
	memset(r.data, UNTOUCHED, (size_t)r.total * sizeof(int));
	call(kind, how, h->comm, &s, &r, &request);
	for (int again = 0; again < (how == PERSISTENT ? 2 : 1); again++) {
		if (how == PERSISTENT) {
			MPI_Start(&request);
		}
		if (h->rank % 2 == 0) {
			ordinary(h);
		}
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (h->rank % 2 != 0) {
			ordinary(h);
		}
		check(&r, kind, h);
		memset(r.data, UNTOUCHED, (size_t)r.total * sizeof(int));
	}
	if (how == PERSISTENT) {
		MPI_Request_free(&request);
	}
	free(s.data);
	free(r.data);
	calls++;
}

static void name(struct neighbourhood *h, const char *text)
{
	MPI_Comm_set_name(h->comm, text);
	MPI_Comm_rank(h->comm, &h->rank);
	MPI_Comm_size(h->comm, &h->size);
}

/* A ring times a line, at whose ends a neighbour is missing. */
static void make_grid(struct neighbourhood *h, int size)
{
	int dims[2] = { size / 2, 2 }, periods[2] = { 1, 0 };

	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &h->comm);
	h->nfrom = h->nto = GRID;
	for (int d = 0; d < 2; d++) {
		MPI_Cart_shift(h->comm, d, 1, &h->to[2 * d], &h->to[2 * d + 1]);
	}
	memcpy(h->from, h->to, sizeof(h->from));
	name(h, "grid");
}

/* Each rank sends to itself and to the next two. As many send to it: MPI_Neighbor_alltoallw() of
 * MPICH 4.0.2 confuses the two numbers of neighbours. */
static void make_graph(struct neighbourhood *h, int rank, int size)
{
	static const int weights[3] = { 1, 1, 1 };

	h->nfrom = h->nto = 3;
	for (int i = 0; i < 3; i++) {
		h->from[i] = (rank + size - i) % size;
		h->to[i] = (rank + i) % size;
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, h->nfrom, h->from, weights, h->nto, h->to,
				       weights, MPI_INFO_NULL, 0, &h->comm);
	name(h, "graph");
}

int main(int argc, char **argv)
{
	struct neighbourhood h[2];
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size < 6 || size > MAX || size % 2 != 0) {
		printf("wrong: 6 to %d ranks, an even number\n", MAX);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &sparse);
	MPI_Type_commit(&sparse);
	make_grid(&h[0], size);
	make_graph(&h[1], rank, size);
	for (int how = 0; how < HOWS; how++) {
		for (int kind = 0; kind < KINDS; kind++) {
			for (int i = 0; i < 2; i++) {
				operation((enum kind)kind, (enum how)how, &h[i]);
			}
		}
	}
	if (rank == 0) {
		printf("right: %d operations of neighbourhoods\n", calls);
	}
	MPI_Comm_free(&h[1].comm);
	MPI_Comm_free(&h[0].comm);
	MPI_Type_free(&sparse);
	MPI_Finalize();
	return 0;
}
