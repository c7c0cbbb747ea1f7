/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of mpi_cases.c that end with an error: a node or its daemon dies while they run. */

static void print_error(int rc)
{
	char text[MPI_MAX_ERROR_STRING], of_class[MPI_MAX_ERROR_STRING];
	int class, length;

	MPI_Error_string(rc, text, &length);
	printf("failed: %s\n", text);
	MPI_Error_class(rc, &class);
	MPI_Error_string(class, of_class, &length);
	if (class <= MPI_ERR_LASTCODE || strcmp(of_class, text) != 0) {
		wrong("not a class of its own");
	}
}

/* Calls until one fails, which under the handler of every program aborts it. */
static void fatal(void)
{
	int rc = MPI_SUCCESS, mine[SMALL] = { 0 }, sum[SMALL];

	MPI_Barrier(MPI_COMM_WORLD);
	while (rc == MPI_SUCCESS) {
		rc = MPI_Allreduce(mine, sum, SMALL, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (rank == 0) {
			fclose(fopen("calling", "w"));
		}
	}
	print_error(rc);
}

/* The same, and the program goes on. */
static void error(void)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	fatal();
}

static int wait_for(int rc, MPI_Request *request)
{
	return rc == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
}

static void nonblocking_error(void)
{
	int mine[SMALL] = { 0 }, got[SMALL], all[SMALL], counts[SMALL] = { 0, 1, 2 };
	int reduced = MPI_SUCCESS, exchanged = MPI_SUCCESS, rc;
	MPI_Request request, persistent, barrier;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Alltoall_init(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
			  &persistent);
	while (reduced == MPI_SUCCESS || exchanged == MPI_SUCCESS) {
		if (exchanged == MPI_SUCCESS) {
			MPI_Start(&persistent);
		}
		if (reduced == MPI_SUCCESS) {
			rc = MPI_Iallreduce(mine, got, SMALL, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
					    &request);
			reduced = wait_for(rc, &request);
		}
		exchanged = wait_for(exchanged, &persistent);
		if (rank == 0) {
			fclose(fopen("calling", "w"));
		}
	}
	print_error(reduced);
	rc = MPI_Ireduce_scatter(mine, got, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	if (wait_for(rc, &request) == MPI_SUCCESS) {
		wrong("no error");
	}
	/* What the ranks agree on first is no allreduce of the program's. */
	if (MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier) != MPI_SUCCESS) {
		wrong("not left to MPI");
	}
	MPI_Request_free(&barrier);
}
