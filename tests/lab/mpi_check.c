/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares routines written by collnet schedule --emit mpi-c with MPI's own, byte by byte: random
 * contents, counts from 0, a datatype with holes, MPI_IN_PLACE, communicators that the routine is
 * not for, and messages of the caller's own under way. Compiled by mpicc with the routines named by
 * macros (all of those of the operations that were emitted):
 *
 *   mpicc -DALLTOALL=name -DALLGATHER=name -DBCAST=name -DBCAST_ROOT=3 ... mpi_check.c ROUTINES.c
 *
 * Arguments: seed, then counts. Rank 0 prints "right: N calls".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define BUFFERS const void *, int, MPI_Datatype, void *, int, MPI_Datatype
#ifdef ALLTOALL
int ALLTOALL(BUFFERS, MPI_Comm);
#endif
#ifdef ALLGATHER
int ALLGATHER(BUFFERS, MPI_Comm);
#endif
#ifdef BCAST
int BCAST(void *, int, MPI_Datatype, int, MPI_Comm);
#endif
#ifdef SCATTER
int SCATTER(BUFFERS, int, MPI_Comm);
#endif
#ifdef GATHER
int GATHER(BUFFERS, int, MPI_Comm);
#endif
#ifdef BARRIER
int BARRIER(MPI_Comm);
#endif
#ifndef BCAST_ROOT
#define BCAST_ROOT 0
#endif
#ifndef SCATTER_ROOT
#define SCATTER_ROOT 0
#endif
#ifndef GATHER_ROOT
#define GATHER_ROOT 0
#endif

static unsigned long long state;
static int rank, ranks, calls;

static unsigned char byte(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned char)(state >> 56);
}

static void fail(const char *what, int count)
{
	printf("wrong: rank %d, %s, count %d\n", rank, what, count);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int rc, const char *what, int count)
{
	if (rc != MPI_SUCCESS) {
		fail(what, count);
	}
}

/* Buffers for ours and MPI's: the same random bytes before the calls, and after them. */
struct buffers {
	size_t size;
	char *in, *ours, *theirs;
};

static void renew(struct buffers *b)
{
	for (size_t i = 0; i < b->size; i++) {
		b->in[i] = (char)byte();
		b->ours[i] = b->theirs[i] = (char)byte();
	}
}

static void compare(const struct buffers *b, const char *what, int count)
{
	if (memcmp(b->ours, b->theirs, b->size) != 0) {
		fail(what, count);
	}
	calls++;
}

static void round_of(struct buffers *b, int count, MPI_Datatype type, MPI_Comm comm)
{
#ifdef ALLTOALL
	renew(b);
	check(ALLTOALL(b->in, count, type, b->ours, count, type, comm), "alltoall", count);
	check(MPI_Alltoall(b->in, count, type, b->theirs, count, type, comm), "theirs", count);
	compare(b, "alltoall", count);
	renew(b);
	check(ALLTOALL(MPI_IN_PLACE, 0, MPI_BYTE, b->ours, count, type, comm), "alltoall", count);
	check(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, b->theirs, count, type, comm), "", count);
	compare(b, "alltoall in place", count);
#endif
#ifdef ALLGATHER
	renew(b);
	check(ALLGATHER(b->in, count, type, b->ours, count, type, comm), "allgather", count);
	check(MPI_Allgather(b->in, count, type, b->theirs, count, type, comm), "theirs", count);
	compare(b, "allgather", count);
#endif
#ifdef BCAST
	int other = BCAST_ROOT == 0, size = 0;

	MPI_Comm_size(comm, &size);
	other %= size;
	renew(b);
	check(BCAST(b->ours, count, type, BCAST_ROOT, comm), "bcast", count);
	check(MPI_Bcast(b->theirs, count, type, BCAST_ROOT, comm), "theirs", count);
	compare(b, "bcast", count);
	renew(b);
	check(BCAST(b->ours, count, type, other, comm), "bcast", count);
	check(MPI_Bcast(b->theirs, count, type, other, comm), "theirs", count);
	compare(b, "bcast from another root", count);
#endif
#ifdef SCATTER
	renew(b);
	check(SCATTER(b->in, count, type, b->ours, count, type, SCATTER_ROOT, comm), "scatter",
	      count);
	check(MPI_Scatter(b->in, count, type, b->theirs, count, type, SCATTER_ROOT, comm), "",
	      count);
	compare(b, "scatter", count);
	renew(b);
	check(SCATTER(b->in, count, type, rank == SCATTER_ROOT ? MPI_IN_PLACE : b->ours, count,
		      type, SCATTER_ROOT, comm),
	      "scatter in place", count);
	check(MPI_Scatter(b->in, count, type, rank == SCATTER_ROOT ? MPI_IN_PLACE : b->theirs,
			  count, type, SCATTER_ROOT, comm),
	      "", count);
	compare(b, "scatter in place", count);
#endif
#ifdef GATHER
	renew(b);
	check(GATHER(b->in, count, type, b->ours, count, type, GATHER_ROOT, comm), "gather", count);
	check(MPI_Gather(b->in, count, type, b->theirs, count, type, GATHER_ROOT, comm), "", count);
	compare(b, "gather", count);
#endif
#ifdef BARRIER
	check(BARRIER(comm), "barrier", count);
#endif
}

/* The caller's own messages, with the tags that the routine uses, neither lost nor mistaken. */
static void among_others(struct buffers *b, int count)
{
	MPI_Request q[6];
	int got[3] = { -1, -1, -1 }, mine = rank, right = (rank + 1) % ranks;
	int left = (rank + ranks - 1) % ranks;

	for (int tag = 1; tag <= 3; tag++) {
		MPI_Irecv(&got[tag - 1], 1, MPI_INT, left, tag, MPI_COMM_WORLD, &q[tag - 1]);
	}
	round_of(b, count, MPI_INT, MPI_COMM_WORLD);
	for (int tag = 1; tag <= 3; tag++) {
		MPI_Isend(&mine, 1, MPI_INT, right, tag, MPI_COMM_WORLD, &q[tag + 2]);
	}
	round_of(b, count, MPI_INT, MPI_COMM_WORLD);
	MPI_Waitall(6, q, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 3; i++) {
		if (got[i] != left) {
			fail("a message of the caller's", i);
		}
	}
}

int main(int argc, char **argv)
{
	struct buffers b;
	MPI_Datatype holes, strided;
	MPI_Comm half, again;
	int most = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	state = strtoull(argc > 1 ? argv[1] : "1", NULL, 10) + (unsigned long long)rank * 7919;
	for (int i = 2; i < argc; i++) {
		int n = (int)strtol(argv[i], NULL, 10);

		most = n > most ? n : most;
	}
	/* two ints, a hole, one int: 12 bytes of 20 */
	MPI_Type_vector(2, 2, 3, MPI_INT, &strided);
	MPI_Type_create_resized(strided, 0, 24, &holes);
	MPI_Type_commit(&holes);
	b.size = (size_t)most * (size_t)ranks * 24;
	b.in = malloc(b.size);
	b.ours = malloc(b.size);
	b.theirs = malloc(b.size);
	if (b.in == NULL || b.ours == NULL || b.theirs == NULL) {
		fail("memory", most);
	}
	for (int i = 2; i < argc; i++) {
		int n = (int)strtol(argv[i], NULL, 10);

		round_of(&b, n, MPI_INT, MPI_COMM_WORLD);
		round_of(&b, n, MPI_BYTE, MPI_COMM_WORLD);
		round_of(&b, n / 2, holes, MPI_COMM_WORLD);
	}
	among_others(&b, 1);
	/* Another communicator with the same ranks, freed; and one with half of them. */
	MPI_Comm_dup(MPI_COMM_WORLD, &again);
	round_of(&b, 1, MPI_INT, again);
	MPI_Comm_free(&again);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	if (BCAST_ROOT == 0 && SCATTER_ROOT == 0 && GATHER_ROOT == 0) {
		int was = rank;

		MPI_Comm_rank(half, &rank);
		round_of(&b, 1, MPI_INT, half);
		rank = was;
	}
	MPI_Comm_free(&half);
	if (rank == 0) {
		printf("right: %d calls\n", calls);
	}
	MPI_Type_free(&strided);
	MPI_Type_free(&holes);
	free(b.in);
	free(b.ours);
	free(b.theirs);
	MPI_Finalize();
	return 0;
}
