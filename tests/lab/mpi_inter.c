/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inter-communicators of Open MPI, whose parts are communicators that collnet serves.
 *
 *   spawn HOST    two processes more on HOST; all call collectives of the merged communicator
 *   idup          MPI_Comm_idup() of an inter-communicator among other calls; MPI_THREAD_MULTIPLE
 *
 * Rank 0 prints "right: CASE".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS  40
#define ROUNDS 10
#define BLOCK  8

static void expect(int is, int should, const char *what)
{
	if (is != should) {
		fprintf(stderr, "wrong: %s: %d, expected %d\n", what, is, should);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* Calls of all ranks; frees the communicator while one is under way. */
static void call(MPI_Comm *all)
{
	int rank, size, sum, *sent, *received;
	MPI_Request request;

	MPI_Comm_rank(*all, &rank);
	MPI_Comm_size(*all, &size);
	for (int i = 0; i < CALLS; i++) {
		const int mine = rank + i;

		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, *all);
		expect(sum, size * (size - 1) / 2 + size * i, "sum of all");
	}
	sent = malloc((size_t)size * BLOCK * sizeof(*sent));
	received = malloc((size_t)size * BLOCK * sizeof(*received));
	for (int i = 0; i < size * BLOCK; i++) {
		sent[i] = rank * 1000 + i;
	}
	MPI_Ialltoall(sent, BLOCK, MPI_INT, received, BLOCK, MPI_INT, *all, &request);
	MPI_Comm_free(all);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < size * BLOCK; i++) {
		expect(received[i], i / BLOCK * 1000 + rank * BLOCK + i % BLOCK, "exchanged");
	}
	free(sent);
	free(received);
}

static void spawn(char *program, char *host)
{
	MPI_Comm parent, others, all;
	MPI_Info info;
	int rank;

	MPI_Comm_get_parent(&parent);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	others = parent;
	if (parent == MPI_COMM_NULL) {
		char *arguments[] = { "spawn", host, NULL };

		MPI_Info_create(&info);
		MPI_Info_set(info, "host", host);
		MPI_Comm_spawn(program, arguments, 2, info, 0, MPI_COMM_WORLD, &others,
			       MPI_ERRCODES_IGNORE);
		MPI_Info_free(&info);
	}
	MPI_Intercomm_merge(others, parent != MPI_COMM_NULL, &all);
	call(&all);
	MPI_Barrier(others);
	MPI_Comm_disconnect(&others);
	if (rank == 0 && parent == MPI_COMM_NULL) {
		puts("right: spawn");
	}
}

static void idup(void)
{
	MPI_Comm half, others, made;
	int rank, size, most, done;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &others);
	srand((unsigned)rank);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request request;

		MPI_Comm_idup(others, &made, &request);
		for (int k = 0; k < 4; k++) {
			MPI_Allreduce(&rank, &most, 1, MPI_INT, MPI_MAX, others);
			expect(most, rank % 2 ? size - 2 : size - 1, "the others' last rank");
			/* Only some ranks drive what MPI_Comm_idup() has begun here. */
			for (int n = 0; n < 30 && rand() % 2 == 0; n++) {
				MPI_Test(&request, &done, MPI_STATUS_IGNORE);
			}
		}
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Barrier(made);
		MPI_Comm_free(&made);
	}
	MPI_Comm_free(&others);
	MPI_Comm_free(&half);
	if (rank == 0) {
		puts("right: idup");
	}
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	if (argc > 2 && strcmp(argv[1], "spawn") == 0) {
		spawn(argv[0], argv[2]);
	} else {
		idup();
	}
	MPI_Finalize();
	return 0;
}
