/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls MPI and collnet in turns, on teams of the same ranks, and prints the medians of this rank's
 * times: what MPI_Allreduce() and MPI_Barrier() on collnet cost more than collnet's own functions.
 * The one that begins changes with each round. Argument: rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <mpi.h>

#include <collnet/collnet.h>

enum { BY_MPI, BY_COLLNET };

static collnet_team_t *team;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void allreduce(int by)
{
	double one = 1, sum = 0;
	int rc = by == BY_MPI ? MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)
			      : collnet_allreduce(team, &one, &sum, 1, COLLNET_FLOAT64, COLLNET_SUM,
						  NULL);

	if (rc != 0 || sum != (double)collnet_team_size(team)) {
		fail("allreduce: wrong");
	}
}

static void barrier(int by)
{
	if ((by == BY_MPI ? MPI_Barrier(MPI_COMM_WORLD) : collnet_barrier(team, NULL)) != 0) {
		fail("barrier: wrong");
	}
}

static void measure(const char *name, void (*call)(int by), int rounds, int rank)
{
	double *us[2];

	for (int by = 0; by < 2; by++) {
		us[by] = malloc((size_t)rounds * sizeof(double));
	}
	for (int i = 0; i < rounds; i++) {
		for (int turn = 0; turn < 2; turn++) {
			const int by = (i + turn) % 2;
			const double began = now();

			call(by);
			us[by][i] = now() - began;
		}
	}
	for (int by = 0; by < 2; by++) {
		qsort(us[by], (size_t)rounds, sizeof(double), compare);
	}
	if (rank == 0) {
		printf("%s: collnet %.2f us, MPI %.2f us, more %.2f us\n", name,
		       us[BY_COLLNET][rounds / 2], us[BY_MPI][rounds / 2],
		       us[BY_MPI][rounds / 2] - us[BY_COLLNET][rounds / 2]);
	}
	free(us[BY_MPI]);
	free(us[BY_COLLNET]);
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	struct collnet_team_options o;
	collnet_t *c;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	collnet_team_options_init(&o);
	o.job = "mpi-cost";
	o.rank = (uint32_t)rank;
	o.ranks = (uint32_t)size;
	if (collnet_open(NULL, &c) != COLLNET_OK) {
		fail(collnet_error(NULL));
	}
	if (collnet_team_create(c, &o, &team) != COLLNET_OK) {
		fail(collnet_error(c));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	measure("allreduce", allreduce, rounds, rank);
	measure("barrier", barrier, rounds, rank);
	MPI_Barrier(MPI_COMM_WORLD); /* a team ends when no rank waits in it any more */
	collnet_close(c);
	MPI_Finalize();
	return 0;
}
