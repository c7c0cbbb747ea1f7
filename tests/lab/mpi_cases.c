/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain MPI program for single cases. The argument names one:
 *
 *   rendezvous     a rank waits in a collective while another one needs a long message of it first
 *   threads        MPI_THREAD_MULTIPLE: threads call collectives on communicators of their own at
 * once, whose order differs between ranks
 *   repetition     the same calls often enough for a choice between collnet and MPI
 *   error          calls until one fails, and prints the error's string; MPI_ERRORS_RETURN
 *
 * Rank 0 prints "right: CASE"; in case `error` every rank "failed: TEXT".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#define THREADS 3
#define CALLS	60
#define LONG	(1 << 20)
#define BLOCK	(1 << 17)

#define REPETITIONS 14

static int rank, size;

static void wrong(const char *what)
{
	printf("wrong: rank %d, %s\n", rank, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void rendezvous(void)
{
	char *data = malloc(LONG);

	for (int i = 0; i < 3; i++) {
		MPI_Request request = MPI_REQUEST_NULL;
		int last = size - 1;

		memset(data, rank + i, LONG);
		if (rank == 0) {
			MPI_Isend(data, LONG, MPI_CHAR, last, 0, MPI_COMM_WORLD, &request);
		} else if (rank == last) {
			MPI_Recv(data, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (data[0] != i || data[LONG - 1] != i) {
				wrong("the message");
			}
		}
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	free(data);
}

struct worker {
	MPI_Comm comm;
	int number;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < CALLS; i++) {
		int mine = rank * (w->number + 1) + i, sum, root = i % size;

		usleep((useconds_t)((rank * 31 + w->number * 17 + i * 7) % 5) * 300);
		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, w->comm);
		if (sum != size * (size - 1) / 2 * (w->number + 1) + size * i) {
			wrong("allreduce");
		}
		mine = rank == root ? i * 1000 + w->number : -1;
		MPI_Bcast(&mine, 1, MPI_INT, root, w->comm);
		if (mine != i * 1000 + w->number) {
			wrong("bcast");
		}
	}
	return NULL;
}

static void threads(void)
{
	struct worker w[THREADS];
	pthread_t t[THREADS];

	for (int again = 0; again < 2; again++) { /* the second time on duplicates of free ones */
		for (int i = 0; i < THREADS; i++) {
			w[i].number = i;
			MPI_Comm_dup(MPI_COMM_WORLD, &w[i].comm);
			pthread_create(&t[i], NULL, work, &w[i]);
		}
		for (int i = 0; i < THREADS; i++) {
			pthread_join(t[i], NULL);
		}
		for (int i = 0; i < THREADS; i++) {
			MPI_Comm_free(&w[i].comm);
		}
	}
}

static void check_sum(MPI_Comm comm, const char *what)
{
	int one = 1, sum, n;

	MPI_Comm_size(comm, &n);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	if (sum != n) {
		wrong(what);
	}
}

static void communicators(void)
{
	MPI_Comm half, inter, merged, again, grid;
	int upper = rank >= size / 2, dims[2] = { size / 2, 2 }, periods[2] = { 0, 1 };

	MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
	check_sum(half, "split");
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, 1, &inter);
	MPI_Intercomm_merge(inter, upper, &merged);
	check_sum(merged, "merged");
	MPI_Comm_dup(inter, &again);
	MPI_Barrier(again);
	MPI_Comm_free(&again);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
	check_sum(grid, "grid");
	MPI_Comm_free(&grid);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half);
	check_sum(half, "shared");
	MPI_Comm_free(&half);
}

static void repetition(void)
{
	char *send = malloc((size_t)size * BLOCK), *recv = malloc((size_t)size * BLOCK);

	for (int i = 0; i < REPETITIONS; i++) {
		double one = 1, sum = 0;

		for (int to = 0; to < size; to++) {
			memset(send + (size_t)to * BLOCK, rank * 31 + to * 7 + i, BLOCK);
		}
		MPI_Alltoall(send, BLOCK, MPI_CHAR, recv, BLOCK, MPI_CHAR, MPI_COMM_WORLD);
		for (int from = 0; from < size; from++) {
			const char *block = recv + (size_t)from * BLOCK;

			for (int at = 0; at < BLOCK; at++) {
				if (block[at] != (char)(from * 31 + rank * 7 + i)) {
					wrong("alltoall");
				}
			}
		}
		MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (sum != size) {
			wrong("sum");
		}
	}
	free(send);
	free(recv);
}

static void error(void)
{
	char text[MPI_MAX_ERROR_STRING];
	int length, rc = MPI_SUCCESS;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	while (rc == MPI_SUCCESS) {
		int sum;

		rc = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (rank == 0) {
			fclose(fopen("calling", "w"));
		}
	}
	MPI_Error_string(rc, text, &length);
	printf("failed: %s\n", text);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int level;

	if (strcmp(what, "threads") == 0) {
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	} else {
		MPI_Init(&argc, &argv);
		level = MPI_THREAD_SINGLE;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(what, "rendezvous") == 0) {
		rendezvous();
	} else if (strcmp(what, "threads") == 0 && level == MPI_THREAD_MULTIPLE) {
		threads();
	} else if (strcmp(what, "communicators") == 0) {
		communicators();
	} else if (strcmp(what, "repetition") == 0) {
		repetition();
	} else if (strcmp(what, "error") == 0) {
		error();
	} else {
		wrong("there is no such case here");
	}
	if (rank == 0) {
		printf("right: %s\n", what);
	}
	MPI_Finalize();
	return 0;
}
