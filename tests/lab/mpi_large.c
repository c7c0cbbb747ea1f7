/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's functions with large counts: most are called by the odd ranks, and those with counts of
 * type int by the others. Also a displacement that an int cannot hold, and types with large counts.
 * Rank 0 prints "right: large"; also where MPI has no such functions.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_RANKS 8
#define N	   100		       /* integers of a block */
#define FAR	   ((MPI_Aint)3 << 30) /* bytes */

#if MPI_VERSION >= 4
static int rank, size;
static int sent[MOST_RANKS * N], got[MOST_RANKS * N];

static void wrong(const char *what)
{
	printf("wrong: rank %d, %s\n", rank, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Block `to` of rank `from`; its first element tells both. */
static int value(int from, int to, int i)
{
	return from * 10000 + to * 1000 + i;
}

static void fill(void)
{
	for (int i = 0; i < size * N; i++) {
		sent[i] = value(rank, i / N, i % N);
	}
	memset(got, -1, sizeof(got));
}

/* Block k is one of rank `from`, for `to`. */
static void check(const char *what, int k, int from, int to)
{
	for (int i = 0; i < N; i++) {
		if (got[k * N + i] != value(from, to, i)) {
			wrong(what);
		}
	}
}

/* Block k is the sum of block `of` of so many ranks. */
static void check_sum(const char *what, int k, int ranks, int of)
{
	for (int i = 0; i < N; i++) {
		if (got[k * N + i] != ranks * value(0, of, i) + ranks * (ranks - 1) / 2 * 10000) {
			wrong(what);
		}
	}
}

#define EITHER(operation, ...)                                                                     \
	(rank % 2 != 0 ? MPI_##operation##_c(__VA_ARGS__) : MPI_##operation(__VA_ARGS__))

static void alike(MPI_Comm comm)
{
	fill();
	EITHER(Bcast, rank == 1 ? sent : got, N, MPI_INT, 1, comm);
	if (rank != 1) {
		check("bcast", 0, 1, 0);
	}
	fill();
	EITHER(Allgather, sent, N, MPI_INT, got, N, MPI_INT, comm);
	for (int k = 0; k < size; k++) {
		check("allgather", k, k, 0);
	}
	fill();
	EITHER(Alltoall, sent, N, MPI_INT, got, N, MPI_INT, comm);
	for (int k = 0; k < size; k++) {
		check("alltoall", k, k, rank);
	}
	fill();
	EITHER(Gather, sent, N, MPI_INT, got, N, MPI_INT, 1, comm);
	for (int k = 0; k < size && rank == 1; k++) {
		check("gather", k, k, 0);
	}
	fill();
	EITHER(Scatter, sent, N, MPI_INT, got, N, MPI_INT, 0, comm);
	check("scatter", 0, 0, rank);
}

static void reductions(MPI_Comm comm)
{
	fill();
	EITHER(Allreduce, sent, got, N, MPI_INT, MPI_SUM, comm);
	check_sum("allreduce", 0, size, 0);
	fill();
	EITHER(Reduce, sent, got, N, MPI_INT, MPI_SUM, 0, comm);
	if (rank == 0) {
		check_sum("reduce", 0, size, 0);
	}
	fill();
	EITHER(Reduce_scatter_block, sent, got, N, MPI_INT, MPI_SUM, comm);
	check_sum("reduce_scatter_block", 0, size, rank);
	fill();
	EITHER(Scan, sent, got, N, MPI_INT, MPI_SUM, comm);
	check_sum("scan", 0, rank + 1, 0);
	fill();
	EITHER(Exscan, sent, got, N, MPI_INT, MPI_SUM, comm);
	if (rank > 0) {
		check_sum("exscan", 0, rank, 0);
	}
}

/* Where counts are those of a rank alone, all ranks call the same function. */
static void vectors(MPI_Comm comm)
{
	int counts[MOST_RANKS], displs[MOST_RANKS];
	MPI_Count large_counts[MOST_RANKS];
	MPI_Aint large_displs[MOST_RANKS], large_bytes[MOST_RANKS];
	MPI_Datatype types[MOST_RANKS];
	const int at = rank > 0 ? rank * N - 1 : 0;
	int sum = 0;

	for (int i = 0; i < size; i++) {
		large_counts[i] = counts[i] = N;
		large_displs[i] = displs[i] = i * N;
		large_bytes[i] = i * N * (int)sizeof(int);
		types[i] = MPI_INT;
	}
	fill();
	if (rank % 2 != 0) {
		MPI_Allgatherv_c(sent, N, MPI_INT, got, large_counts, large_displs, MPI_INT, comm);
	} else {
		MPI_Allgatherv(sent, N, MPI_INT, got, counts, displs, MPI_INT, comm);
	}
	for (int k = 0; k < size; k++) {
		check("allgatherv", k, k, 0);
	}
	fill();
	MPI_Gatherv_c(sent, N, MPI_INT, got, large_counts, large_displs, MPI_INT, 1, comm);
	for (int k = 0; k < size && rank == 1; k++) {
		check("gatherv", k, k, 0);
	}
	fill();
	MPI_Scatterv_c(sent, large_counts, large_displs, MPI_INT, got, N, MPI_INT, 1, comm);
	check("scatterv", 0, 1, rank);
	fill();
	MPI_Alltoallv_c(sent, large_counts, large_displs, MPI_INT, got, large_counts, large_displs,
			MPI_INT, comm);
	for (int k = 0; k < size; k++) {
		check("alltoallv", k, k, rank);
	}
	fill();
	MPI_Alltoallw_c(sent, large_counts, large_bytes, types, got, large_counts, large_bytes,
			types, comm);
	for (int k = 0; k < size; k++) {
		check("alltoallw", k, k, rank);
	}
	counts[0] = N - 1;
	large_counts[0] = N - 1;
	fill();
	if (rank % 2 != 0) {
		MPI_Reduce_scatter_c(sent, got, large_counts, MPI_INT, MPI_SUM, comm);
	} else {
		MPI_Reduce_scatter(sent, got, counts, MPI_INT, MPI_SUM, comm);
	}
	for (int r = 0; r < size; r++) {
		sum += value(r, at / N, at % N);
	}
	if (got[0] != sum) {
		wrong("reduce_scatter");
	}
}

/* The last rank's block is far from the others. */
static void far(MPI_Comm comm)
{
	char *p = mmap(NULL, FAR + 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MPI_Count counts[MOST_RANKS];
	MPI_Aint displs[MOST_RANKS];
	char mine = (char)('a' + rank);

	if (p == MAP_FAILED) {
		wrong("no memory");
	}
	for (int i = 0; i < size; i++) {
		counts[i] = 1;
		displs[i] = i < size - 1 ? i : FAR;
	}
	MPI_Allgatherv_c(&mine, 1, MPI_CHAR, p, counts, displs, MPI_CHAR, comm);
	if (p[0] != 'a' || p[FAR] != 'a' + size - 1) {
		wrong("a displacement");
	}
	munmap(p, FAR + 4096);
}

static void types(MPI_Comm comm)
{
	MPI_Datatype block, nothing;

	MPI_Type_contiguous_c(N, MPI_INT, &block);
	MPI_Type_commit(&block);
	MPI_Type_contiguous(0, MPI_INT, &nothing);
	MPI_Type_commit(&nothing);
	fill();
	EITHER(Allgather, sent, 1, block, got, N, MPI_INT, comm);
	for (int k = 0; k < size; k++) {
		check("allgather of a type", k, k, 0);
	}
	if (rank == 0) {
		MPI_Bcast_c(got, (MPI_Count)1 << 33, nothing, 0, comm);
	} else {
		MPI_Bcast(got, 0, MPI_INT, 0, comm);
	}
	MPI_Type_free(&block);
	MPI_Type_free(&nothing);
}
#endif

int main(int argc, char **argv)
{
	int first;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &first);
#if MPI_VERSION >= 4
	rank = first;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	alike(MPI_COMM_WORLD);
	reductions(MPI_COMM_WORLD);
	vectors(MPI_COMM_WORLD);
	far(MPI_COMM_WORLD);
	types(MPI_COMM_WORLD);
#endif
	if (first == 0) {
		puts("right: large");
	}
	MPI_Finalize();
	return 0;
}
