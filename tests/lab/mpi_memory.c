/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long calls where rank 1's address space ends soon: too small for what collnet would take, and
 * large enough for MPI. Every element is checked. Of a call with a count per rank, it is an error
 * on all ranks, while rank 1 calls nothing else; later calls are errors, too, and new communicators
 * are served.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB	   (1 << 20)
#define MAX	   (32 * MIB / (int)sizeof(int))
#define MOST_RANKS 8

static int rank, size;
static int *sent, *received;

static void wrong(const char *what)
{
	fprintf(stderr, "wrong: rank %d, %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* So many bytes more can be mapped by rank 1. */
static void leave(rlim_t bytes)
{
	unsigned long pages = 0;
	struct rlimit l;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%lu", &pages) != 1 || getrlimit(RLIMIT_AS, &l) != 0) {
		wrong("statm");
	}
	fclose(f);
	l.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
	if (rank == 1 && setrlimit(RLIMIT_AS, &l) != 0) {
		wrong("setrlimit");
	}
}

static void fill(int count, int seed)
{
	for (int i = 0; i < count; i++) {
		sent[i] = i + rank * seed;
		received[i] = -1;
	}
}

static void check_sums(int count, int seed, const char *what)
{
	for (int i = 0; i < count; i++) {
		if (received[i] != size * i + size * (size - 1) / 2 * seed) {
			wrong(what);
		}
	}
}

static void allreduce(int count)
{
	fill(count, 3);
	MPI_Allreduce(sent, received, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	check_sums(count, 3, "Allreduce");
}

static void iallreduce(int count)
{
	MPI_Request request;

	fill(count, 5);
	MPI_Iallreduce(sent, received, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	check_sums(count, 5, "Iallreduce");
}

static void bcast(int count)
{
	fill(count, 7);
	MPI_Bcast(sent, count, MPI_INT, size - 1, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++) {
		if (sent[i] != i + (size - 1) * 7) {
			wrong("Bcast");
		}
	}
}

static void gather(int count)
{
	fill(MAX, 11);
	MPI_Gather(sent, count, MPI_INT, received, count, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < size * count; i++) {
		if (received[i] != i % count + i / count * 11) {
			wrong("Gather");
		}
	}
}

/* Blocks of two lengths, whose sum is too much. All ranks know that. */
static void allgatherv(void)
{
	const int longer = MAX / size - 1, shorter = MAX / size - 3;
	int counts[MOST_RANKS], displs[MOST_RANKS];

	for (int i = 0; i < size; i++) {
		counts[i] = i % 2 == 0 ? shorter : longer;
		displs[i] = i == 0 ? 0 : displs[i - 1] + counts[i - 1];
	}
	fill(MAX, 3);
	MPI_Allgatherv(sent, counts[rank], MPI_INT, received, counts, displs, MPI_INT,
		       MPI_COMM_WORLD);
	for (int i = 0; i < size; i++) {
		for (int j = 0; j < counts[i]; j++) {
			if (received[displs[i] + j] != j + 3 * i) {
				wrong("Allgatherv");
			}
		}
	}
}

static void sum(MPI_Comm comm)
{
	int all;

	if (MPI_Allreduce(&size, &all, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS ||
	    all != size * size) {
		wrong("a sum");
	}
}

/* The others tell rank 1 by messages that they have the error. */
static void alltoallv(void)
{
	int counts[MOST_RANKS], displs[MOST_RANKS];
	MPI_Comm comm, next;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; i < size; i++) {
		counts[i] = MAX / size;
		displs[i] = i * counts[i];
	}
	sum(comm);
	leave(20 * MIB);
	if (MPI_Alltoallv(sent, counts, displs, MPI_INT, received, counts, displs, MPI_INT, comm) ==
	    MPI_SUCCESS) {
		wrong("no error of Alltoallv");
	}
	for (int i = 0; i < size; i++) {
		if (rank == 1 && i != 1) {
			MPI_Recv(NULL, 0, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == i && i != 1) {
			MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
		}
	}
	if (MPI_Barrier(comm) == MPI_SUCCESS) {
		wrong("no error of Barrier");
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &next);
	sum(next);
	MPI_Comm_free(&next);
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	sent = malloc(MAX * sizeof(*sent));
	received = malloc(MAX * sizeof(*received));
	if (sent == NULL || received == NULL) {
		wrong("memory");
	}
	iallreduce(1000); /* from the next blocking call on the communicator has its own team */
	allreduce(MAX / 4);
	leave(20 * MIB);
	bcast(MAX / 4 * 3); /* fits where the copies of the one before were */
	leave(100 * MIB);
	allreduce(MAX);
	iallreduce(MAX);
	allreduce(MAX);
	leave(40 * MIB);
	gather(MAX / size); /* takes as much as the next one at its root, but less at rank 1 */
	allgatherv();
	alltoallv(); /* MPI_COMM_WORLD may share the team that rank 1 left */
	if (rank == 0) {
		printf("right: memory\n");
	}
	free(sent);
	free(received);
	MPI_Finalize();
	return 0;
}
